"""What the demo says on the terminal, without mails to its own people, and at which addresses it is met."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from portal.core.network_addresses import EVERYWHERE, own_address
from portal.jobs.models import ACTIVE_STATES, Job, JobState
from portal.jobs.terminal import failure_report, progress_line
from portal.submissions.models import Submission, SubmissionEvent

SOME_OTHER_MACHINE = ("192.0.2.1", 9)  # an address reserved for documentation; nothing is sent to it
Say = Callable[[str], Any]
LOOK_EVERY_S = 0.5
TELL_EVERY_S = 10.0
PATIENCE_STEPS = 60
TOLD = (
    Submission.State.ACCEPTED,
    Submission.State.REFUSED,
    Submission.State.EVALUATED,
    Submission.State.FAILED,
    Submission.State.WITHDRAWN,
)


def network_address(address: str) -> str:
    """Return HOST:PORT by which others in the network reach it; empty if it does not listen to them or there is no
    network."""
    host, _, port = address.rpartition(":")
    if host not in EVERYWHERE:
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(SOME_OTHER_MACHINE)
        except OSError:
            return ""
        own = str(probe.getsockname()[0])
    return "" if own.startswith("127.") else f"{own}:{port}"


def answer_to_network(address: str) -> None:
    """Let the processes that are started after this answer under the address that others in the network use."""
    os.environ.setdefault("PORTAL_SITE_URL", f"http://{own_address(address)}")
    if others := network_address(address):
        hosts = [*settings.ALLOWED_HOSTS, others.rpartition(":")[0]]
        os.environ["PORTAL_ALLOWED_HOSTS"] = ",".join(dict.fromkeys(hosts))


class TerminalScreen:
    """Lines on the terminal and, below them, one that moves; where output is no terminal, a line every ten seconds.

    Args:
        write: takes text as it is to be printed.
        moves: whether a line can be written again.
    """

    def __init__(self, write: Callable[[str], Any], *, moves: bool) -> None:
        self._write, self._moves = write, moves
        self._moving, self._said_at = "", time.monotonic()
        self._lock = threading.Lock()  # the processes say something, too

    def __call__(self, line: str) -> None:
        """Print a line that stays."""
        with self._lock:
            self._said_at = time.monotonic()
            self._write(f"{self._clear()}{line}\n{self._moving}")

    def show(self, line: str) -> None:
        """Say how far something is."""
        if not self._moves:
            if time.monotonic() - self._said_at >= TELL_EVERY_S:
                self(line)
            return
        with self._lock:
            width = shutil.get_terminal_size().columns - 1
            clear, self._moving = self._clear(), line if len(line) <= width else f"{line[: width - 1]}…"
            self._write(f"{clear}{self._moving}")

    def settle(self) -> None:
        """Take the moving line away."""
        with self._lock:
            self._write(self._clear())
            self._moving = ""

    def _clear(self) -> str:
        return "\r\x1b[K" if self._moving else ""


def describe_jobs(jobs: Iterable[Job]) -> str:
    """Such as ``12 of 31 jobs done · Attack on T01-p1: Speaker vectors 12 of 48 (25 %)``; what runs stands behind."""
    every = list(jobs)
    parts = [f"{sum(job.has_ended for job in every)} of {len(every)} jobs done"]
    return " · ".join([*parts, *(progress_line(job) for job in every if job.state == JobState.RUNNING)])


def finish_jobs(jobs: Iterable[Job | None], say: TerminalScreen) -> None:
    """Wait until all of these have succeeded; each end is told at once, how far the others are as it changes.

    Raises:
        CommandError: one has not.
    """
    keys = [job.pk for job in jobs if job is not None]
    told = {job.pk for job in Job.objects.filter(pk__in=keys) if job.has_ended}
    while True:
        now = {job.pk: job for job in Job.objects.filter(pk__in=keys)}
        for job in (now[key] for key in keys):
            if job.has_ended and job.pk not in told:
                say(progress_line(job))
                told.add(job.pk)
        if len(told) == len(set(keys)):
            break
        say.show(describe_jobs(now.values()))
        time.sleep(LOOK_EVERY_S)
    say.settle()
    for key in keys:
        if now[key].state != JobState.SUCCEEDED:
            raise CommandError(failure_report(now[key]))


def wait_for_mails() -> None:
    """Wait until the mails that are on their way have been sent, but not for long."""
    for _ in range(PATIENCE_STEPS):
        if not Job.objects.filter(kind="send-notice", state__in=ACTIVE_STATES).exists():
            break
        time.sleep(LOOK_EVERY_S)
    time.sleep(LOOK_EVERY_S)  # what was printed last arrives


class SubmissionTeller:
    """Tells what becomes of submissions from now on."""

    def __init__(self, say: TerminalScreen) -> None:
        self.say = say
        newest = SubmissionEvent.objects.order_by("pk").last()
        self._after = newest.pk if newest else 0

    def __call__(self, submissions: Iterable[Submission], jobs: Iterable[Job]) -> None:
        """Say each step that has been taken, and how far the jobs are."""
        events = SubmissionEvent.objects.filter(submission__in=submissions, pk__gt=self._after).order_by("pk")
        for event in events.select_related("submission__system"):
            self._after = event.pk
            if event.state in TOLD:
                self.say(": ".join(part for part in (str(event), event.note) if part))
        self.say.show(describe_jobs(jobs))


class QuietMail:
    """A `say` for the processes that leaves out mails to the people of the demo, who read none, until it is `over`."""

    def __init__(self, say: Say, domain: str) -> None:
        self.say, self.domain = say, domain
        self.over = False
        self._mail_of: dict[str, bool] = {}  # of a process that prints a mail now: whether it is left out

    def __call__(self, line: str) -> None:
        process, _, text = line.partition(" | ")
        if text.startswith("Mail to "):
            self._mail_of[process] = not self.over and f"@{self.domain}: " in text
        elif not text.startswith("  | "):
            self._mail_of.pop(process, None)
        if not self._mail_of.get(process, False):
            self.say(line)
