"""Work in a process of its own: what comes back of it, and how it ends."""

import os
import re
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from common.child_process import ChildEnded, ChildLimits, How, run_in_child

LIMITS = ChildLimits(cpu_s=20, memory_bytes=1 << 28, time_s=60)
KILLED = """
import os, signal, sys
from common.child_process import ChildLimits, run_in_child

def work(child):
    child.say(os.getpid())
    signal.pause()

def hear(pid):
    print(pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

run_in_child(work, ChildLimits(20, 1 << 28, 60), hear=hear)
"""


def test_result_and_what_is_said_come_back():
    heard = []

    def work(child):
        child.say("Reading", 1, 2)
        child.say("é\ud800", None)
        return {"text": "x" * 300_000, "pid": os.getpid()}

    found = run_in_child(work, LIMITS, hear=lambda *said: heard.append(said))
    assert (len(found["text"]), heard) == (300_000, [("Reading", 1, 2), ("é\ud800", None)])
    assert found["pid"] != os.getpid()


def test_child_asks_its_parent_for_what_it_must_not_touch():
    def work(child):
        return [child.ask("é", 2), child.ask("ö", 3)]

    assert run_in_child(work, LIMITS, answer=lambda text, count: text * count) == ["éé", "ööö"]


@pytest.mark.parametrize(
    ("end", "limits", "how"),
    [
        (lambda: re.fullmatch(r"(a+)+", "a" * 60 + "b"), ChildLimits(1, 1 << 28, 60), How.CPU),
        (lambda: bytearray(1 << 29), LIMITS, How.MEMORY),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), LIMITS, How.DIED),
        (lambda: os._exit(0), LIMITS, How.DIED),
        (signal.pause, ChildLimits(20, 1 << 28, 0), How.TIME),
    ],
)
def test_end_without_a_result_tells_how_and_where(end, limits, how):
    def work(child):
        child.look_at("another.txt")
        thread = threading.Thread(target=child.look_at, args=("wav/b.flac",))
        thread.start()
        thread.join()
        child.look_at("docs/results.txt" if how is not How.TIME else "")
        end()

    with pytest.raises(ChildEnded) as ended:
        run_in_child(work, limits)
    assert ended.value.how is how
    if how is not How.TIME:
        assert ended.value.places == ["docs/results.txt", "wav/b.flac"]


def test_error_of_the_work_is_one_of_the_parent():
    with pytest.raises(OSError, match="No space left") as full:
        run_in_child(lambda _: (_ for _ in ()).throw(OSError(28, "No space left")), LIMITS)
    assert full.value.errno == 28
    with pytest.raises(RuntimeError, match=r"KeyError: 'lost'"):
        run_in_child(lambda _: {}["lost"], LIMITS)


def test_parent_that_stops_leaves_no_child():
    said = []

    def check():
        if said:
            raise InterruptedError

    def work(child):
        child.say(os.getpid())
        re.fullmatch(r"(a+)+", "a" * 60 + "b")

    with pytest.raises(InterruptedError):
        run_in_child(work, LIMITS, hear=said.append, check=check)
    with pytest.raises(ProcessLookupError):
        os.kill(said[0], 0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a child ends with its processor time")
def test_killed_parent_takes_its_child_along():
    process = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=60)
    assert process.returncode == -signal.SIGKILL
    with suppress(ProcessLookupError):
        assert select.select([os.pidfd_open(int(process.stdout))], [], [], 60)[0]
