"""Faults during a challenge of several machines: does every job end, and are the numbers those of a run without faults?

Run from the root of the repository: ``python -m benchmarks.experiments.faults redis`` or ``… rabbitmq``; names of
faults after it choose some of them. It starts servers of its own: PostgreSQL, the broker, a double of an S3 store, and
a mail server. The web host (web server, scheduler, worker for mails, checks and short jobs) and the
other host (worker ``cpu``) have data folders of their own. Speech of the demo is imported, two teams send systems with
``vp submit``, the portal makes a baseline, and everything is checked, measured and attacked. Meanwhile one kind of
fault strikes again and again; what is killed is started again after a few seconds, as systemd does.

A job may fail with a reason: then it is run again, as its page offers. What is there in the end has to equal what is
there without faults: jobs by kind (but mails, which tell failures), submissions by state, files, runs and every number.
The exit status counts the faults for which something differs, a job does not end, or ``verify`` finds a difference.

Jobs give a heartbeat each 2 s and are lost after 10 s, in place of 5 and 30. Disks are full where this may mount a
small file system; clocks are wrong where Debian's ``libfaketime`` can be fetched. Both are left out with a sentence
elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.buckets import KEYS, Store, free_port
from tests.mails import Mails

ROOT = Path(__file__).parents[2]
SPEECH = ROOT / "demo" / "corpus"
PATIENCE_S = 600.0
DISK_MB = 1400  # of which the portal keeps 1,074 free
AHEAD_S = 600
TRIES = 40  # of people, with 5 s between two
QUICK = {"PORTAL_JOB_HEARTBEAT_S": "2", "PORTAL_JOB_LOST_AFTER_S": "10", "PORTAL_SWEEP_EVERY_S": "2"}
SYSTEMS = (("pitch-shift-psola", 1), ("world-formant-f0", 2))
COMMANDS = {
    "web": ("web", "web"),
    "scheduler": ("web", "scheduler"),
    "light worker": ("web", "worker --queues mail,intake,light --processes 1"),
    "cpu worker": ("other", "worker --queues cpu --processes 1"),
}
RABBIT_FOLDERS = ("MNESIA_BASE", "LOG_BASE", "SCHEMA_DIR", "GENERATED_CONFIG_DIR")


def _find_family(pid: int) -> list[int]:
    """A process and those below it."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    return []


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# Servers ---------------------------------------------------------------------------------------------


class Postgres:
    """A PostgreSQL of its own; it runs as the user ``postgres`` where this is root, which it refuses to be."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder / "postgres", port
        self._user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        self.folder.mkdir()
        if self._user:
            shutil.chown(self.folder, "postgres")
        self._run("initdb", "-U", "postgres", "--auth", "trust")
        self.start()

    def _run(self, program: str, *words: str) -> None:
        command = [*self._user, program, "-D", str(self.folder), *words]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL)

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """At once, as after a power cut."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    def url(self, name: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as server:
            server.execute(statement)  # type: ignore[call-overload]


class Broker:
    """A Redis that keeps nothing on disk, or a RabbitMQ that does."""

    def __init__(self, kind: str, folder: Path, port: int) -> None:
        self.kind, self.folder, self.port = kind, folder / kind, port
        self._make_folder()
        self.url = f"redis://127.0.0.1:{port}/0" if kind == "redis" else f"amqp://guest:guest@127.0.0.1:{port}//"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        from kombu import Connection

        command = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        environment = dict(os.environ)
        if self.kind == "rabbitmq":
            command = ["rabbitmq-server"]
            environment |= {"RABBITMQ_NODENAME": f"faults{self.port}@localhost", "HOME": str(self.folder)}
            (self.folder / "own.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n")
            environment |= {"RABBITMQ_CONFIG_FILE": str(self.folder / "own.conf")}
            environment |= {"RABBITMQ_NODE_PORT": str(self.port), "RABBITMQ_DIST_PORT": str(free_port())}
            environment |= {f"RABBITMQ_{name}": str(self.folder) for name in RABBIT_FOLDERS}
            environment |= {
                "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "none"),
                "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            }
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, env=environment, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )

        def answers() -> bool:
            with suppress(Exception), Connection(self.url, connect_timeout=3) as broker:
                broker.ensure_connection(max_retries=1)
                return True
            return False

        _wait(answers, f"{self.kind} does not start: {self.folder / 'log'}")

    def _make_folder(self) -> None:
        """RabbitMQ runs as a user of its own where this is root."""
        self.folder.mkdir()
        if self.kind == "rabbitmq" and os.getuid() == 0:
            shutil.chown(self.folder, "rabbitmq")

    def kill(self) -> None:
        """With all that it holds: a RabbitMQ's disk is lost, too."""
        if self._process is None:
            return
        _kill(_find_family(self._process.pid))
        self._process.wait()
        if self.kind == "rabbitmq":
            shutil.rmtree(self.folder)
            self._make_folder()

    def empty(self) -> None:
        """Take every message out."""
        from kombu import Connection, Queue

        from portal.jobs.models import Queue as Names

        with suppress(Exception), Connection(self.url) as broker:
            for name in Names.values:
                with suppress(Exception):
                    Queue(name, channel=broker.channel()).purge()


# One challenge ---------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What one challenge left: `counts` has to equal that of a run without faults, `again` and `strikes` need not."""

    counts: dict[str, Any] = field(default_factory=dict)
    strikes: int = 0
    attempts: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    took_s: float = 0.0


class Trial:
    """The hosts of one challenge and the programs that run there."""

    def __init__(self, folder: Path, servers: Any, database_url: str) -> None:
        self.folder, self.servers = folder, servers
        self.port = free_port()
        self.common = {"PORTAL_DATABASE_URL": database_url, "PORTAL_ADDRESS": f"127.0.0.1:{self.port}"}
        self.clocks: dict[str, int] = {}
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        self.strikes = 0
        self.is_over = threading.Event()

    def environment(self, host: str) -> dict[str, str]:
        folder = self.folder / host
        found = os.environ | self.common | {"PORTAL_DATA_DIR": str(folder), "TMPDIR": str(folder / "tmp")}
        if ahead := self.clocks.get(host):
            found |= {"LD_PRELOAD": str(self.servers.faketime), "FAKETIME": f"{ahead:+d}", "NO_FAKE_STAT": "1"}
            found |= {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        return found

    def start(self, name: str) -> None:
        host, words = COMMANDS[name]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.programs[name] = subprocess.Popen(
                [sys.executable, "-m", "portal.config", *words.split()],
                cwd=ROOT,
                env=self.environment(host),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def family(self, name: str) -> list[int]:
        """The program and the processes below it."""
        return _find_family(self.programs[name].pid)

    def strike(self, name: str, *, is_alone: bool = False) -> None:
        """``kill -9`` of a program, with all its processes or alone; it comes back after 3 s."""
        family = self.family(name)
        _kill(family[:1] if is_alone else family)
        self.programs[name].wait()
        time.sleep(3)
        self.start(name)

    def end(self) -> None:
        for name in self.programs:
            _kill(self.family(name))

    def run(self, words: str) -> str:
        """What a command of the portal says."""
        answer = subprocess.run(
            [sys.executable, "-m", "portal.config", *words.split()],
            cwd=ROOT,
            env=self.environment("web"),
            capture_output=True,
            text=True,
            check=False,
        )
        return answer.stdout + answer.stderr


def run_challenge(trial: Trial, fault: Callable[[Trial], Iterator[float]] | None) -> Outcome:
    """One challenge from the import to its numbers, with a fault; the fault yields how long it rests after a strike."""
    from portal.challenges.models import Corpus
    from portal.corpora.services import start_import
    from portal.demo.challenge import make_demo_edition
    from portal.demo.terminal import Screen
    from portal.jobs.models import Job
    from portal.systems.services import start_edition_baseline
    from tests.portal.factories import make_organizer, make_team, make_user

    began, outcome = time.monotonic(), Outcome()
    _copy_speech(trial.folder / "web" / "import" / "speech")
    for name in COMMANDS:
        trial.start(name)
    _wait(lambda: _is_ready(trial), "the portal is not ready")
    organizer = make_organizer()
    striking = threading.Thread(target=_strike, args=(trial, fault), daemon=True)
    striking.start()
    folder = str(trial.folder / "web" / "import" / "speech")
    _patiently(lambda: start_import(folder=folder, name="speech", is_synthetic=True, by=organizer))
    _settle(outcome, organizer)
    screen = Screen(lambda _: None, moves=False)
    edition = _patiently(
        lambda: make_demo_edition(corpus=Corpus.objects.get(), organizer=organizer, with_models=False, say=screen)
    )
    if not trial.servers.archives:
        trial.servers.make_archives(edition)
    teams = [_patiently(lambda: make_team(edition, owner=make_user())) for _ in SYSTEMS]
    sets = _patiently(lambda: list(edition.corpus.data_sets.filter(name__in=edition.recipe.data_sets).order_by("name")))
    made: dict[str, Any] = {"method": "mcadams-2022", "seed": 2022, "data_sets": sets}
    _patiently(lambda: start_edition_baseline(edition=edition, label="B2", by=organizer, **made))
    senders = [
        threading.Thread(target=_send, args=(trial, outcome, team, archive))
        for team, archive in zip(teams, trial.servers.archives, strict=True)
    ]
    for sender in senders:
        sender.start()
    while any(sender.is_alive() for sender in senders):
        time.sleep(0.5)
    _settle(outcome, organizer)
    trial.is_over.set()
    striking.join()
    _wait(lambda: _is_ready(trial), "the portal is not ready after the fault")
    _settle(outcome, organizer)
    outcome.counts, outcome.strikes = _patiently(count_all), trial.strikes
    outcome.attempts = _patiently(lambda: sum(max(0, one - 1) for one in Job.objects.values_list("attempt", flat=True)))
    if ": 0 differences." not in (said := trial.run("verify")):
        outcome.problems.append(said.strip()[-300:])
    outcome.took_s = time.monotonic() - began
    return outcome


def _copy_speech(folder: Path) -> None:
    """Every third utterance of the demo."""
    shutil.copytree(SPEECH, folder)
    manifest = folder / "utterances.csv"
    head, *rows = manifest.read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if int(row.partition(",")[0][-4:]) % 3 == 1]
    manifest.write_text("\n".join([head, *kept, ""]), encoding="utf-8")


def _strike(trial: Trial, fault: Callable[[Trial], Iterator[float]] | None) -> None:
    for rest_s in fault(trial) if fault is not None else ():
        trial.strikes += 1
        if trial.is_over.wait(rest_s):
            return


def _send(trial: Trial, outcome: Outcome, team: Any, archive: Path) -> None:
    """Hand in a system with ``vp submit``, and call it again where it gives up, which continues the upload."""
    from django.db import connection

    from portal.accounts.tokens import create_token

    _, token = _patiently(
        lambda: create_token(user=team.memberships.get().user, name="vp", scopes=["read", "submit"], expires_at=None)
    )
    edition = team.edition.name
    connection.close()
    home = trial.folder / f"team {team.pk}"
    environment = os.environ | {"VP_SERVER": f"http://127.0.0.1:{trial.port}", "VP_TOKEN": token}
    environment |= {"XDG_CONFIG_HOME": str(home / "config")}
    said = ""
    for _ in range(10):
        command = [
            sys.executable,
            "-m",
            "portal.client",
            "submit",
            str(archive),
            "--edition",
            edition,
            "--title",
            archive.stem,
        ]
        answer = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return
        said = (answer.stdout + answer.stderr).strip()[-300:]
        if "The check failed" in said:  # it is there, and its job is run again by an organizer
            return
        outcome.reasons[f"vp submit: {said}"] += 1
        time.sleep(5)
    outcome.problems.append(f"vp submit gives up: {said}")


def _settle(outcome: Outcome, organizer: Any) -> None:
    """Wait until every job has ended; what failed with a reason is run again, as its page offers."""
    from portal.jobs.models import ACTIVE_STATES, Job, JobState
    from portal.jobs.services import run_again

    for _ in range(TRIES):
        _wait(
            lambda: _patiently(lambda: not Job.objects.filter(state__in=ACTIVE_STATES).exists()),
            "jobs that do not end",
        )
        failed = _patiently(lambda: list(Job.objects.filter(state=JobState.FAILED)))
        if not failed:
            return
        for job in failed:
            outcome.reasons[f"{job.kind}: {job.failure} {job.failure_remedy}"] += 1
            if not job.failure:
                outcome.problems.append(f"{job} failed without a reason")
            _patiently(lambda job=job: run_again(job, by=organizer))
        time.sleep(5)
    outcome.problems.append("jobs fail again and again")


def count_all() -> dict[str, Any]:
    """Everything that has to be there whatever happened, with a hash of all numbers."""
    from evaluation.app.models import EvaluationRun, MetricValue
    from portal.jobs.models import Job
    from portal.submissions.models import Submission, SubmittedFile, Upload

    def by(rows: Any, *names: str) -> dict[str, int]:
        return {" ".join(map(str, row)): count for row, count in sorted(Counter(rows.values_list(*names)).items())}

    numbers = MetricValue.objects.values_list(
        "run__submission__system__title", "data_set", "metric", "estimator", "value"
    )
    lines = sorted(f"{title} {where} {what} {how} {value:.9g}" for title, where, what, how, value in numbers)
    files = SubmittedFile.objects.values_list("data_set__name", "utterance__name", "audio")
    return {
        "jobs": by(Job.objects.exclude(kind="send-notice"), "kind", "state"),
        "submissions": by(Submission.objects.all(), "system__title", "state"),
        "runs": by(EvaluationRun.objects.all(), "kind"),
        "uploads": by(Upload.objects.all(), "state"),
        "files": len(files),
        "hash of files": hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()[:12],
        "numbers": len(lines),
        "hash of numbers": hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12],
    }


def _is_ready(trial: Trial) -> bool:
    import requests

    with suppress(requests.RequestException):
        return requests.get(f"http://127.0.0.1:{trial.port}/health/ready", timeout=10).ok
    return False


def _wait(condition: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.5)


def _patiently(work: Callable[[], Any]) -> Any:
    """The same once database and store answer: this stands for people, who try again."""
    from django.db import Error, connection

    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return work()
        except (Error, OSError):
            if time.monotonic() > end:
                raise
            connection.close()
            time.sleep(1)


# Faults ----------------------------------------------------------------------------------------------
# Each strikes and then yields for how many seconds it rests.


def kill_web(trial: Trial) -> Iterator[float]:
    for _ in range(5):
        trial.strike("web")
        _wait(lambda: _is_ready(trial), "the web server does not come back")
        yield 6


def kill_scheduler(trial: Trial) -> Iterator[float]:
    for _ in range(6):
        trial.strike("scheduler")
        yield 5


def kill_processes(trial: Trial) -> Iterator[float]:
    """Those in which jobs run; the workers go on."""
    trial.is_over.wait(8)
    for _ in range(5):
        for name in ("cpu worker", "light worker"):
            _kill(trial.family(name)[1:])
        yield 9


def kill_workers(*, is_alone: bool) -> Callable[[Trial], Iterator[float]]:
    """With their processes, or alone, so that these are orphans."""

    def kill(trial: Trial) -> Iterator[float]:
        trial.is_over.wait(8)
        for name in 2 * ("cpu worker", "light worker"):
            trial.strike(name, is_alone=is_alone)
            yield 9

    return kill


def empty_broker(trial: Trial) -> Iterator[float]:
    for _ in range(30):
        trial.servers.broker.empty()
        yield 2


def kill_broker(trial: Trial) -> Iterator[float]:
    trial.is_over.wait(5)
    for _ in range(2):
        trial.servers.broker.kill()
        time.sleep(8)
        trial.servers.broker.start()
        yield 12


def restart_postgres(trial: Trial) -> Iterator[float]:
    trial.is_over.wait(5)
    for _ in range(3):
        trial.servers.postgres.stop()
        time.sleep(5)
        trial.servers.postgres.start()
        yield 12


def take_store(trial: Trial) -> Iterator[float]:
    """A minute away."""
    trial.is_over.wait(10)
    trial.servers.store.stop()
    time.sleep(60)
    trial.servers.store.start()
    yield 1


def fill_disk(host: str) -> Callable[[Trial], Iterator[float]]:
    def fill(trial: Trial) -> Iterator[float]:
        for _ in range(2):
            with suppress(OSError), (trial.folder / host / "full").open("wb") as file:
                while True:
                    file.write(bytes(1 << 20))
                    file.flush()
            time.sleep(25)
            (trial.folder / host / "full").unlink(missing_ok=True)
            yield 10

    return fill


FAULTS: dict[str, tuple[str, Callable[[Trial], Iterator[float]] | None]] = {
    "none": ("no fault", None),
    "web": ("`kill -9` of the web server", kill_web),
    "scheduler": ("`kill -9` of the scheduler", kill_scheduler),
    "processes": ("`kill -9` of the processes that run jobs", kill_processes),
    "workers": ("`kill -9` of a whole worker", kill_workers(is_alone=False)),
    "parents": ("`kill -9` of a worker but not of its processes", kill_workers(is_alone=True)),
    "emptied": ("every message lost, each 2 s", empty_broker),
    "broker": ("`kill -9` of the broker, 8 s away, all messages lost", kill_broker),
    "postgres": ("PostgreSQL stopped at once, 5 s away", restart_postgres),
    "store": ("the store away for a minute", take_store),
    "web-disk": ("disk of the web host full for 25 s", fill_disk("web")),
    "other-disk": ("disk of the other host full for 25 s", fill_disk("other")),
    "clocks-ahead": ("clock of the other host 10 minutes ahead", None),
    "clocks-behind": ("clock of the other host 10 minutes behind", None),
}


# The runs --------------------------------------------------------------------------------------------


class Servers:
    """The servers of all runs, and what is made once: archives of the teams, the library that shifts clocks."""

    def __init__(self, folder: Path, kind: str, stack: ExitStack) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.postgres = Postgres(folder, free_port())
        stack.callback(self.postgres.stop)
        self.broker = Broker(kind, folder, free_port())
        stack.callback(self.broker.kill)
        self.store = Store()
        stack.callback(self.store.stop)
        self.mails = stack.enter_context(Mails())
        stack.callback(self.mails.shutdown)
        self.faketime = _find_faketime(folder)
        self.archives_at = folder / "archives"
        self.archives: list[Path] = []

    def environment(self) -> dict[str, str]:
        """What all programs have in common."""
        return {
            "DJANGO_SETTINGS_MODULE": "portal.config.settings",
            "PORTAL_DATABASE_URL": self.postgres.url("base"),
            "PORTAL_BROKER_URL": self.broker.url,
            "PORTAL_FILES_URL": self.store.url,
            "PORTAL_MAIL_URL": f"smtp://127.0.0.1:{self.mails.server_address[1]}",
            "PORTAL_SECRET_KEY": "a key of fifty characters that both hosts have alike, long enough",
            "PORTAL_LOG_FORMAT": "json",
            **KEYS,
            **QUICK,
        }

    def make_archives(self, edition: Any) -> None:
        """What each team sends, made once."""
        from portal.demo import archives

        self.archives_at.mkdir()
        sets = edition.corpus.data_sets.filter(name__in=edition.recipe.data_sets)
        utterances = archives.read_utterances(sets.order_by("name"))
        for method, seed in SYSTEMS:
            made = archives.anonymise(utterances, method, seed)
            made.files["system_description.pdf"] = archives.describe(method, "One of the portal's own anonymisers.")
            self.archives.append(self.archives_at / f"{method}.zip")
            archives.pack(made, self.archives[-1], edition.recipe.anonymised_suffix)


def _find_faketime(folder: Path) -> Path | None:
    """The library that shifts the clock of a process, unpacked from Debian's package."""
    place = folder / "faketime"
    place.mkdir()
    script = "apt-get download -qq libfaketime && dpkg-deb -x libfaketime_*.deb ."
    with suppress(OSError):
        subprocess.run(["sh", "-c", script], cwd=place, check=False, capture_output=True)
    return next(place.rglob("libfaketimeMT.so.1"), None)


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """A file system of `DISK_MB` at this folder; whether there is one."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
    is_mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        (folder / "tmp").mkdir()
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def main(arguments: list[str]) -> int:
    """Print a row for each fault; the exit status counts those after which something differs."""
    kind, *chosen = arguments or ["redis"]
    unknown = [name for name in chosen if name not in FAULTS]
    if unknown or kind not in ("redis", "rabbitmq"):
        sys.exit(f"Expected redis or rabbitmq, then any of {', '.join(FAULTS)}; found {' '.join(arguments)}.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    names = [name for name in FAULTS if name == "none" or not chosen or name in chosen]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        servers = Servers(folder, kind, stack)
        servers.postgres.execute("CREATE DATABASE base")
        os.environ |= servers.environment() | {"PORTAL_DATA_DIR": str(folder / "driver")}
        subprocess.run([sys.executable, "-m", "portal.config", "migrate"], cwd=ROOT, check=True, capture_output=True)
        import django

        django.setup()
        print(f"Broker {kind}. What differs from the run without faults stands beneath its row.\n", flush=True)
        print(f"{'fault':56} strikes  again  failed  numbers  same  seconds", flush=True)
        expected: dict[str, Any] = {}
        missed = 0
        for fault in names:
            outcome = _run_one(fault, folder / fault, servers)
            expected = expected or (outcome.counts if outcome else {})
            missed += outcome is not None and not _describe(fault, outcome, expected)
        return missed


def _run_one(fault: str, folder: Path, servers: Servers) -> Outcome | None:
    """The outcome of a challenge with this fault on a database of its own; None where this machine cannot have it."""
    from django.conf import settings
    from django.db import connections

    database = f"portal_{fault.replace('-', '_')}"
    servers.postgres.execute(f"CREATE DATABASE {database} TEMPLATE base")
    connections["default"].close()
    connections["default"].settings_dict["NAME"] = database
    servers.store.empty()
    servers.broker.empty()
    settings.IMPORT_ROOTS = [folder / "web" / "import"]
    with _small_disk(folder / "web") as is_small, _small_disk(folder / "other"):
        trial = Trial(folder, servers, servers.postgres.url(database))
        if fault.startswith("clocks"):
            trial.clocks = {"other": AHEAD_S if fault == "clocks-ahead" else -AHEAD_S}
        if (trial.clocks and servers.faketime is None) or (fault.endswith("disk") and not is_small):
            print(f"{FAULTS[fault][0]:56} left out: this machine cannot make it")
            return None
        try:
            return run_challenge(trial, FAULTS[fault][1])
        except TimeoutError as error:
            return Outcome(problems=[str(error)])
        finally:
            trial.end()
            if "--keep" in sys.argv:
                shutil.copytree(folder, Path("/tmp/faults") / fault, dirs_exist_ok=True)


def _describe(fault: str, outcome: Outcome, expected: dict[str, Any]) -> bool:
    """Print the row of a fault; whether everything is as without faults."""
    counts = outcome.counts
    differing = [name for name in expected if counts.get(name) != expected[name]]
    is_same = not differing and not outcome.problems
    failed = sum(outcome.reasons.values())
    print(
        f"{FAULTS[fault][0]:56} {outcome.strikes:7} {outcome.attempts:6} {failed:7} {counts.get('numbers', 0):8} "
        f"{'yes' if is_same else 'NO':>5} {outcome.took_s:8.0f}",
        flush=True,
    )
    for name in differing:
        print(f"  {name}: expected {expected[name]}, found {counts.get(name)}")
    for problem in outcome.problems:
        print(f"  {problem}")
    for reason, count in outcome.reasons.most_common():
        print(f"  {count} × {reason[:300]}", flush=True)
    return is_same


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
