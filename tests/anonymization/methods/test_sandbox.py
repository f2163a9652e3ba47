"""What a confined command cannot do, each tried by a program that could do it if it were not confined."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest

from anonymization.methods.contract import MethodError
from anonymization.methods.external import sandbox
from anonymization.methods.external.method import watching
from anonymization.methods.external.sandbox import CommandCall, CommandLimits, explain_missing_bubblewrap, run_confined
from tests.anonymization.programs import confined, items, make_command

ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 60.0

PAIR = "[one.detach() for one in socket.socketpair()]"

pytestmark = confined


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where the work folders of commands are made; nothing may be left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def data(tmp_path):
    """What the portal keeps, readable and writable for its user."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "secret_key").write_text("a secret")
    return folder


def run(tmp_path, code, **limits):
    """How a program ends that is run in folders of its own."""
    own, work = tmp_path / "own", tmp_path / "work"
    for folder in (own, work / "written" / "home"):
        folder.mkdir(parents=True, exist_ok=True)
    (own / "program.py").write_text(code)
    limits = CommandLimits(**{"time_limit_s": WAIT_S, **limits})
    outcome = run_confined(CommandCall([sys.executable, "program.py"], own, work, limits=limits))
    return outcome, outcome.failure(limits)


def find_processes(folder):
    """The processes, with their parents, that name a folder in their command or run in it, in a sandbox or not."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(folder) in f"{(process / 'cwd').readlink()} {(process / 'cmdline').read_text()}":
                found[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def wait_until(true):
    ends_at = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.05)


FORBIDDEN = {
    "reads-the-data-folder": "print(open('{data}/secret_key').read())",
    "lists-the-data-folder": "os.listdir('{data}')",
    "reads-below-root": "assert set({below_root!r}) <= set(os.listdir('/'))",
    "writes-into-the-data-folder": "open('{data}/new', 'w').write('x')",
    "empties-a-file": "os.truncate('{data}/emptied', 8)",
    "links-a-file": "os.link('{data}/secret_key', '{work}/written/link')",
    "renames-a-file": "os.rename('{data}/renamed', '{data}/moved')",
    "removes-a-file": "os.remove('{data}/removed')",
    "writes-beside-itself": "open('{own}/left', 'w').write('x')",
    "writes-its-input": "open('{work}/note', 'w').write('x')",
    "reads-the-environment-of-the-portal": "open('/proc/{portal}/environ').read()",
    "reads-the-environment-of-its-parent": "assert {variable!r} in open(f'/proc/{{os.getppid()}}/environ').read()",
    "reads-the-memory-of-the-portal": "open('/proc/{portal}/maps').read()",
    "signals-the-portal": "os.kill({portal}, 0)",
    "limits-the-portal": "import resource as r; r.prlimit({portal}, r.RLIMIT_CORE, r.prlimit({portal}, r.RLIMIT_CORE))",
    "makes-namespaces": "assert os.system('unshare --user true 2>/dev/null') == 0",
    "connects-to-the-loopback": "socket.create_connection(('127.0.0.1', {port}), 5)",
    "connects-to-the-loopback-of-version-6": "socket.create_connection(('::ffff:127.0.0.1', {port}), 5)",
    "connects-to-a-socket-of-the-portal": "socket.socket(socket.AF_UNIX).connect('{data}/socket')",
    "connects-to-a-socket-without-file": "socket.socket(socket.AF_UNIX).connect('\\0portal-{portal}')",
    "sends-elsewhere-by-a-pair": "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', '{data}/datagrams')",
    "sees-the-network-of-the-machine": "assert {routes!r} == open('/proc/self/net/route').read()",
    "lists-the-sockets-of-others": "assert '{data}/socket' in open('/proc/self/net/unix').read()",
    "watches-the-names-of-files": (
        "import ctypes; c = ctypes.CDLL(None)\nassert c.inotify_add_watch(c.inotify_init1(0), b'{data}', 0x100) >= 0"
    ),
    "sees-the-shared-memory-of-others": "assert 'portal-{portal}' in os.listdir('/dev/shm')",
}
TRY_EACH = """
import os, socket
for name, code in {tries!r}.items():
    try:
        exec(code, {{"os": os, "socket": socket}})
        print(name, "allowed")
    except (OSError, AssertionError) as error:
        print(name, type(error).__name__, getattr(error, "strerror", ""), sep=": ")
"""


def test_command_cannot_do_what_the_portal_could(data, tmp_path):
    for name in ("emptied", "renamed", "removed"):
        (data / name).write_text("whole text")
    variable = f"HOME={os.environ['HOME']}"
    assert variable in Path("/proc/self/environ").read_text()
    shared = Path(f"/dev/shm/portal-{os.getpid()}")
    shared.touch()
    with ExitStack() as opened:
        opened.callback(shared.unlink)
        server = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        for place, kind in (
            (f"{data}/socket", socket.SOCK_STREAM),
            (f"\0portal-{os.getpid()}", socket.SOCK_STREAM),
            (f"{data}/datagrams", socket.SOCK_DGRAM),
        ):
            local = opened.enter_context(socket.socket(socket.AF_UNIX, kind))
            local.bind(place)
            if kind == socket.SOCK_STREAM:
                local.listen()
        named = {
            "data": data,
            "work": tmp_path / "work",
            "own": tmp_path / "own",
            "port": server.getsockname()[1],
            "portal": os.getpid(),
            "below_root": [path.name for path in Path("/").iterdir()],
            "routes": Path("/proc/self/net/route").read_text(),
            "variable": variable,
        }
        tries = {name: code.format(**named) for name, code in FORBIDDEN.items()}
        ended, failure = run(tmp_path, TRY_EACH.format(tries=tries))
        # What failed is what is forbidden: the same code does well without confinement.
        free = [sys.executable, "-c", TRY_EACH.format(tries=tries)]
        allowed = subprocess.run(free, capture_output=True, text=True, check=True)
    assert failure == ""
    found = dict(line.split(": ", 1) for line in ended.errors.splitlines())
    reasons = (
        "FileNotFoundError|ProcessLookupError|ConnectionRefusedError|AssertionError"
        "|OSError: (Read-only file system|Invalid cross-device link|Network is unreachable)"
    )
    assert [name for name, reason in found.items() if not re.match(reasons, reason)] == []
    assert found.keys() == FORBIDDEN.keys()
    assert allowed.stdout.splitlines() == ["a secret", *(f"{name} allowed" for name in FORBIDDEN)]


def test_settings_of_the_kernel_cannot_be_written(tmp_path):
    """Nor by commands of root, whose files they are."""
    code = """
for name in ("sys/kernel/core_pattern", "sys/vm/overcommit_memory", "self/oom_score_adj"):
    try:
        open(f"/proc/{name}", "r+").close()
    except OSError:
        continue
    print(name)
"""
    outcome, failure = run(tmp_path, code)
    assert (outcome.errors, failure) == ("", "")


def test_command_that_kills_its_parent_goes_on(tmp_path):
    """Its parent is the first process of its sandbox, which takes no signal from within."""
    outcome, failure = run(tmp_path, "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nprint('goes on')")
    assert (outcome.errors, failure) == ("goes on\n", "")


def test_variable_of_a_command_does_not_change_the_program_that_confines_it(data, tmp_path):
    """Such as what is to be loaded before it: that would run unconfined."""
    own = tmp_path / "own"
    own.mkdir()
    written = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": f"{data}/written"}
    task = CommandCall(["/bin/true"], own, tmp_path / "work", own_variables=written)
    task.written.mkdir(parents=True)
    assert run_confined(task).failure(CommandLimits()) == ""
    subprocess.run(["/bin/true"], env=written, check=True)
    assert len(list(data.glob("written*"))) == 1


# Who owns a pipe or a socket gets a signal once there is something to read: five ways to become it.
OWNERS = {
    "F_SETOWN of a pipe": ("os.pipe()", "fcntl.fcntl(read, fcntl.F_SETOWN, {victim})"),
    "F_SETOWN of a socket": (PAIR, "fcntl.fcntl(read, fcntl.F_SETOWN, {victim})"),
    "F_SETOWN_EX of a socket": (PAIR, "fcntl.fcntl(read, 15, struct.pack('ii', 1, {victim}))"),
    "FIOSETOWN of a socket": (PAIR, "fcntl.ioctl(read, 0x8901, struct.pack('i', {victim}))"),
    "SIOCSPGRP of a socket": (PAIR, "fcntl.ioctl(read, 0x8902, struct.pack('i', {victim}))"),
}
SIGNAL_EACH = """
import fcntl, os, socket, struct
for files, own in {ways!r}:
    try:
        read, write = eval(files)
        exec(own)
        fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
        os.write(write, b"x")
    except OSError as error:
        print(error)
"""


def test_command_sends_no_signal_through_a_file(tmp_path):
    victims = [subprocess.Popen(["sleep", "1000"]) for _ in OWNERS]
    try:
        ways = [
            (files, own.format(victim=victim.pid))
            for (files, own), victim in zip(OWNERS.values(), victims, strict=True)
        ]
        code = SIGNAL_EACH.format(ways=ways)
        assert run(tmp_path, code)[1] == ""
        assert [victim.poll() for victim in victims] == [None] * len(OWNERS)
        subprocess.run([sys.executable, "-c", code], check=True)
        assert [victim.wait(WAIT_S) for victim in victims] == [-signal.SIGIO] * len(OWNERS)
    finally:
        for victim in victims:  # else a failure would wait for them
            victim.kill()
            victim.wait()


def test_secret_of_the_environment_does_not_reach_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("PORTAL_SECRET_KEY", "a secret")
    outcome, _ = run(tmp_path, "import os; print(sorted(os.environ.items())); print(os.listdir('/proc/self/fd'))")
    variables, files = outcome.errors.splitlines()
    assert "PORTAL" not in variables
    assert "a secret" not in variables
    assert "('HOME'," in variables
    assert files == "['0', '1', '2', '3']"  # the last is the list's own


@pytest.mark.parametrize("name", ["/bin/python3", "/usr/bin/python3", sys.executable, sys._base_executable])
def test_interpreter_opens_what_is_installed_with_it_and_no_more(name, data):
    program = Path(name)
    if not program.exists():
        pytest.skip(f"{name} is not here")
    opened = [path.resolve() for path in sandbox.list_program_folders(program)]
    assert program.resolve() in opened
    homes = [Path("/"), Path.home(), Path.home() / ".local", Path.home() / ".ssh", ROOT, data]
    assert not any(home.is_relative_to(path) for home in homes for path in opened)


def test_interpreter_beside_the_root_does_not_open_it(data, tmp_path):
    if not Path("/bin/python3").exists():
        pytest.skip("this machine has no such program")
    own = tmp_path / "own"
    own.mkdir()
    code = f"import os; print(os.listdir({str(data)!r}))"
    task = CommandCall(["/bin/python3", "-c", code], own, tmp_path / "work")
    task.written.mkdir(parents=True)
    assert "FileNotFoundError" in run_confined(task).failure(CommandLimits())


def test_what_root_keeps_from_others_is_closed(tmp_path):
    shadow = Path("/etc/shadow")
    if not shadow.exists():
        pytest.skip("this machine has no such file")
    assert "FileNotFoundError" in run(tmp_path, "open('/etc/shadow').read()")[1]


def test_rights_times_and_attributes_of_what_it_reads_cannot_be_changed(tmp_path):
    code = """
import os
for change in (
    lambda: os.chmod("program.py", 0o777),
    lambda: os.chown("program.py", 1, 1),
    lambda: os.utime("program.py", (0, 0)),
    lambda: os.setxattr("program.py", "user.left", b"x"),
):
    try:
        change()
    except OSError as error:
        print(error.strerror)
"""
    outcome, failure = run(tmp_path, code)
    assert (outcome.errors.splitlines(), failure) == (["Read-only file system"] * 4, "")
    program = tmp_path / "own" / "program.py"
    assert (program.stat().st_mode & 0o777, program.stat().st_uid) == (0o644, os.getuid())
    assert time.time() - program.stat().st_mtime < WAIT_S


def test_privileges_are_gone(tmp_path):
    code = "print([line.split()[1] for line in open('/proc/self/status') if line[:3] in ('Cap', 'NoN')])"
    assert run(tmp_path, code)[0].errors.strip() == str(["0" * 16] * 5 + ["1"])


def test_ordinary_work_is_possible(tmp_path):
    """Numbers, processes, pipes, locks, sound and files of its own."""
    code = """
import multiprocessing, os, pathlib, shutil, subprocess, tempfile, threading
import numpy, scipy.signal, soundfile, soxr
if __name__ == "__main__":
    assert subprocess.run(["echo", "hush"], capture_output=True, check=True).stdout == b"hush\\n"
    with tempfile.NamedTemporaryFile() as file:
        pathlib.Path(file.name + '.touched').touch()
        pathlib.Path(file.name + '.touched').touch()
        shutil.copy2(file.name + '.touched', file.name + '.copied')
        subprocess.run(['touch', file.name + '.made', file.name], check=True)
        subprocess.run(['cp', '-p', file.name, file.name + '.preserved'], check=True)
        shutil.copy(file.name, file.name + ".copy")
    os.kill(os.getpid(), 0)
    thread = threading.Thread(target=print); thread.start(); thread.join()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [1, -2]) == [1, 2]
    print(numpy.linalg.eigvals(numpy.eye(40)).sum().real)
"""
    outcome, failure = run(tmp_path, code)
    assert (outcome.end, failure) == ("exit", "")
    assert outcome.errors.split() == ["40.0"]


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="this machine has no shared memory at /dev/shm")
def test_command_whose_folders_lie_in_the_shared_memory_finds_them():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        outcome, failure = run(Path(folder), "import os; print(os.listdir())")
    assert (failure, outcome.errors.strip()) == ("", "['program.py']")


def test_child_that_outlives_the_command_is_ended_and_told(tmp_path):
    code = """
import os, time
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(write, b"started")
        time.sleep(1000)
    os._exit(0)
print(os.read(read, 20).decode())
"""
    outcome, failure = run(tmp_path, code)
    assert failure.startswith("It ended while processes that it had started still ran; they were ended.")
    assert outcome.errors == "started\n"
    assert find_processes(tmp_path) == {}


def test_command_that_sleeps_is_ended_at_its_limit_with_all_its_children(tmp_path):
    code = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        break
os.write(1, b"%d " % os.getpid())
time.sleep(1000)
"""
    outcome, failure = run(tmp_path, code, time_limit_s=5)
    assert failure.startswith("It ran longer than its limit of 5 s and was ended.")
    assert 5 <= outcome.wall_s < 500
    assert len(outcome.errors.split()) == 4
    assert find_processes(tmp_path) == {}


def test_command_that_eats_memory_is_ended(tmp_path):
    slowly = "import time\nkept = []\nwhile True:\n  kept.append(bytearray(5_000_000)); time.sleep(0.01)"
    outcome, failure = run(tmp_path, slowly, memory_mb=100)
    assert failure.startswith("It used more memory than its limit of 100 MB and was ended.")
    assert outcome.peak_mb > 100
    _, failure = run(tmp_path, "bytearray(4_000_000_000)", memory_mb=100)
    assert "MemoryError" in failure


def test_memory_of_all_processes_counts(tmp_path):
    code = "import os, time\nfor _ in range(4): os.fork()\nkept = bytearray(os.urandom(20_000_000)); time.sleep(1000)"
    assert run(tmp_path, code, memory_mb=150)[1].startswith("It used more memory than its limit of 150 MB")


def test_shared_memory_and_full_buffers_count_once(tmp_path):
    """Whether somebody looks at it or not."""
    code = """
import os, time
from multiprocessing import shared_memory
one = shared_memory.SharedMemory(create=True, size=90_000_000)
for start in range(0, 90_000_000, 1_000_000):
    one.buf[start : start + 1_000_000] = bytes(1_000_000)
"""
    outcome, failure = run(tmp_path, f"{code}time.sleep(0.5)\none.unlink()", memory_mb=150)
    assert (outcome.end, failure) == ("exit", "")
    for more in ("open('/dev/shm/x', 'wb').write(os.urandom(65_000_000))", "kept = os.urandom(65_000_000)"):
        _, failure = run(tmp_path, f"{code}{more}\ntime.sleep(1000)", memory_mb=150)
        assert failure.startswith("It used more memory than its limit of 150 MB")
    code = """
import os, time
file = os.memfd_create("x")
for _ in range(200):
    os.write(file, bytes(1_000_000))
time.sleep(1000)
"""
    assert run(tmp_path, code, memory_mb=150)[1].startswith("It used more memory than its limit of 150 MB")
    pairs = "import socket, time\nkept = [socket.socketpair() for _ in range(300)]\ntime.sleep(1000)"
    assert run(tmp_path, pairs, memory_mb=100)[1].startswith("It used more memory than its limit of 100 MB")


def test_command_that_starts_too_many_processes_is_ended(tmp_path):
    code = "import os, time\nfor _ in range(60):\n  if os.fork() == 0:\n    os.setsid(); break\ntime.sleep(1000)"
    assert run(tmp_path, code, processes=20)[1].startswith("It ran more than its limit of 20 processes at a time")


def test_file_that_grows_too_large_is_cut_off(tmp_path):
    code = "import os\nwith open(os.environ['HOME'] + '/x', 'wb') as file:\n  while True: file.write(bytes(1_000_000))"
    assert "File too large" in run(tmp_path, code, file_size_mb=5)[1]
    code = """
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # which Python ignores, unlike most programs
os.execvp("dd", ["dd", "if=/dev/zero", "of=" + os.environ["HOME"] + "/x", "bs=1M", "status=none"])
"""
    assert run(tmp_path, code, file_size_mb=5)[1].startswith("It wrote a file larger than its limit of 5 MB")
    assert max(path.stat().st_size for path in (tmp_path / "work" / "written" / "home").iterdir()) == 5 * 1024**2


def test_command_that_fills_the_disk_is_ended(tmp_path):
    code = "import os\nn = 0\nwhile True:\n  n += 1\n  open(os.environ['HOME'] + f'/{n}', 'wb').write(bytes(1_000_000))"
    assert run(tmp_path, code, disk_mb=20)[1].startswith("It wrote more files than its limit of 20 MB and was ended.")


HIDDEN = {
    "names-too-long": """
for _ in range(20):
    os.mkdir("d" * 250); os.chdir("d" * 250)
for n in range(3):
    Path(str(n)).write_bytes(bytes(10_000_000))
""",
    "no-right-to-look": """
os.mkdir("x", 0o300)
for n in range(3):
    Path("x", str(n)).write_bytes(bytes(10_000_000))
""",
    "removed-but-mapped": """
import ctypes
mapped = ctypes.CDLL(None).mmap
mapped.restype = ctypes.c_void_p
for n in range(3):
    with open("x", "w+b") as file:
        file.write(bytes(8_000_000)); file.flush()
        address = mapped(None, ctypes.c_size_t(4096), 1, 1, file.fileno(), ctypes.c_long(0))
        assert address not in (None, 2**64 - 1)
    os.remove("x")
""",
    "removed-but-open": """
kept = [open("x", "wb") for n in range(3) if not os.path.exists("x") or not os.remove("x")]
os.remove("x")
for file in kept:
    file.write(bytes(10_000_000)); file.flush()
""",
}


@pytest.mark.parametrize("code", HIDDEN.values(), ids=HIDDEN)
def test_hidden_files_count_and_are_removed(code, tmp_path):
    """That nothing is left, the input neither, is looked at after each test here."""
    limits, code = {"disk_mb": 20, "file_size_mb": 10}, f"os.chdir(os.environ['HOME'])\n{code}\ntime.sleep(1000)"
    command = make_command(tmp_path / "own", code, limits=limits)
    with pytest.raises(MethodError, match=r"hush failed\. It wrote more files than its limit of 20 MB and was ended"):
        command.anonymize_batch(items(1600), 16_000)


def test_folders_too_deep_to_measure_end_the_command_and_are_removed(tmp_path):
    code = "copy()\nos.chdir(os.environ['HOME'])\nfor _ in range(300):\n  os.mkdir('d' * 250); os.chdir('d' * 250)"
    with pytest.raises(MethodError, match="it wrote cannot be measured: folders are nested more than 100 deep"):
        make_command(tmp_path / "own", code).anonymize_batch(items(1600), 16_000)


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is hidden from root")
def test_process_that_hides_what_it_holds_is_ended(tmp_path):
    code = "import ctypes, time\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\ntime.sleep(1000)"
    assert "a process hides which files it has open" in run(tmp_path, code)[1]


def test_hundred_megabytes_of_errors_are_kept_as_their_end(tmp_path):
    code = "import sys\nfor _ in range(1600): sys.stderr.write('x' * 65535 + '\\n')\nsys.exit('the reason')"
    outcome, failure = run(tmp_path, code)
    assert outcome.cut
    assert len(outcome.errors) == 64 * 1024
    assert failure.endswith("the reason")
    assert len(failure) < 1500
    outcome, failure = run(tmp_path, code.replace("'the reason'", "0"))
    assert (outcome.status, failure) == (0, "")


def test_errors_that_are_no_text_make_a_sentence(tmp_path):
    _, failure = run(tmp_path, "import os, sys; os.write(2, bytes(range(256))); sys.exit(3)")
    assert failure.startswith("It ended with exit code 3, expected 0. The last that it printed:")
    assert failure.isprintable()


def test_crash_is_told_by_its_signal(tmp_path):
    assert run(tmp_path, "import os; os.abort()")[1] == "It was ended by signal SIGABRT."


def test_program_that_cannot_be_started_is_told(tmp_path):
    with pytest.raises(MethodError, match=r'There is no program "hush-7" in /usr/local/bin:/usr/bin:/bin'):
        run_confined(CommandCall(["hush-7"], tmp_path, tmp_path))
    program = tmp_path / "program"
    program.write_text("#!/nonexistent/interpreter\n")
    program.chmod(0o700)
    task = CommandCall(["./program"], tmp_path, tmp_path / "work")
    task.written.mkdir(parents=True)
    assert run_confined(task).failure(task.limits) == "It could not be started: No such file or directory."


def test_run_is_stopped_from_outside(tmp_path):
    command = make_command(tmp_path / "own", "time.sleep(1000)")
    with watching(should_stop=lambda: True), pytest.raises(CancelledError, match="ended because the run was stopped"):
        command.anonymize_batch(items(16_000), 16_000)


def test_run_that_is_stopped_before_its_command_is_watched_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "_SUPERVISE", "import time; time.sleep(1000)")  # which SIGTERM ends at once
    command = make_command(tmp_path / "own", "pass")
    with watching(should_stop=lambda: True), pytest.raises(CancelledError, match="ended because the run was stopped"):
        command.anonymize_batch(items(16_000), 16_000)


def test_exception_while_waiting_ends_the_command(tmp_path, temporary):
    """As the time limit of a job does, or Ctrl-C."""
    command = make_command(tmp_path / "own", "Path(os.environ['HOME'], 'started').touch(); time.sleep(1000)")

    def interrupt():
        if list(temporary.glob("*/written/home/started")):
            assert find_processes(temporary)
            raise KeyboardInterrupt
        return False

    with watching(should_stop=interrupt), pytest.raises(KeyboardInterrupt):
        command.anonymize_batch(items(16_000), 16_000)
    assert find_processes(temporary) == {}


def test_kill_of_the_watching_process_is_told_and_ends_the_command(tmp_path, temporary):
    command = make_command(tmp_path / "own", "Path(os.environ['HOME'], 'started').touch(); time.sleep(1000)")

    def kill():
        if list(temporary.glob("*/written/home/started")):
            running = find_processes(temporary)
            [watching_process] = set(running.values()) - running.keys()
            assert watching_process != os.getpid()
            os.kill(watching_process, signal.SIGKILL)
        return False

    with watching(should_stop=kill), pytest.raises(MethodError, match="watches a command ended unexpectedly"):
        command.anonymize_batch(items(16_000), 16_000)
    wait_until(lambda: find_processes(temporary) == {})


def test_kill_of_the_portal_leaves_neither_process_nor_file(tmp_path):
    make_command(tmp_path / "own", "Path(os.environ['HOME'], 'started').touch(); time.sleep(1000)")
    code = f"""
from pathlib import Path
from anonymization.methods.external.method import load_command
from tests.anonymization.programs import items
load_command(Path({str(tmp_path / "own" / "anonymizer.toml")!r})).anonymize_batch(items(16_000), 16_000)
"""
    folder = tmp_path / "of-the-killed"
    folder.mkdir()
    portal = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "TMPDIR": str(folder)})
    try:
        wait_until(lambda: list(folder.glob("anonymize-*/written/home/started")))
        assert len(find_processes(folder)) == 3  # bubblewrap, its first process and the command
    finally:
        portal.send_signal(signal.SIGKILL)
        portal.wait()
    wait_until(lambda: not find_processes(folder) and not list(folder.iterdir()))


def test_machine_that_cannot_confine_runs_nothing_unless_the_operator_accepts(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "explain_missing_bubblewrap", lambda: "bubblewrap is missing")
    monkeypatch.setenv("PORTAL_SECRET_KEY", "a secret")
    command = make_command(tmp_path / "own", "copy()")
    assert command.missing().startswith("hush cannot be confined on this machine: bubblewrap is missing.")
    with pytest.raises(MethodError, match="cannot be confined on this machine"):
        command.anonymize_batch(items(16_000), 16_000)
    limited = make_command(
        tmp_path / "own", "copy() if 'PORTAL_SECRET_KEY' not in os.environ else None", isolation="limited"
    )
    assert limited.missing() == ""
    notes = []
    with watching(note=notes.append):
        [output] = limited.anonymize_batch(items(16_000), 16_000)
    assert np.array_equal(output.view(np.uint8)[::-1], items(16_000)[0].samples.view(np.uint8))
    assert notes == [
        "hush is not confined: it may read what this user may read, and use the network (bubblewrap is missing)."
    ]


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (None, "bubblewrap is missing: install it, on Debian and Ubuntu with apt-get install bubblewrap"),
        ("echo 'bwrap: Unknown option --disable-userns' >&2; exit 1", "bubblewrap 0.8 or newer is needed"),
        (
            "echo 'bwrap: No permissions to create new namespace' >&2; exit 1",
            "bubblewrap cannot make a sandbox (No permissions to create new namespace): ",
        ),
    ],
)
def test_what_keeps_bubblewrap_from_working_is_told_with_its_remedy(program, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "PATH", str(tmp_path))
    if program is not None:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "bwrap").chmod(0o700)
    assert explain_missing_bubblewrap.__wrapped__().startswith(sentence)
