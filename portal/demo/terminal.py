"""What the demo says on the terminal, without mails to its own people, and at which addresses it is met."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from portal.core.addresses import EVERYWHERE, own_address
from portal.jobs.models import Job, State
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
    """HOST:PORT by which others in the network reach it; empty if it does not listen to them or there is no network."""
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


def wait_for_jobs(jobs: Iterable[Job], say: Say) -> list[Job]:
    """Wait until all of these have ended; each end is told at once, how far the others are every ten seconds."""
    known = list(jobs)
    keys, told = [job.pk for job in known], {job.pk for job in known if job.has_ended}
    last = time.monotonic()
    while True:
        now = {job.pk: job for job in Job.objects.filter(pk__in=keys)}
        is_time = time.monotonic() - last >= TELL_EVERY_S
        for key in keys:
            job = now[key]
            if (job.has_ended and key not in told) or (is_time and job.state == State.RUNNING):
                say(progress_line(job))
                last = time.monotonic()
            if job.has_ended:
                told.add(key)
        if len(told) == len(keys):
            return [now[key] for key in keys]
        time.sleep(LOOK_EVERY_S)


def finish_jobs(jobs: Iterable[Job | None], say: Say) -> None:
    """Wait until all of these have succeeded.

    Raises:
        CommandError: one has not.
    """
    for ended in wait_for_jobs(filter(None, jobs), say):
        if ended.state != State.SUCCEEDED:
            raise CommandError(failure_report(ended))


def wait_for_mails() -> None:
    """Wait until the mails that are on their way have been sent, but not for long."""
    for _ in range(PATIENCE_STEPS):
        if not Job.objects.filter(kind="send-notice", state__in=[State.WAITING, State.RUNNING]).exists():
            break
        time.sleep(LOOK_EVERY_S)
    time.sleep(LOOK_EVERY_S)  # what was printed last arrives


class SubmissionTeller:
    """Tells what becomes of submissions from now on."""

    def __init__(self, say: Say) -> None:
        self.say = say
        newest = SubmissionEvent.objects.order_by("pk").last()
        self._after = newest.pk if newest else 0
        self._last = time.monotonic()

    def __call__(self, submissions: Iterable[Submission], jobs: Iterable[Job]) -> None:
        """Say each step that has been taken, and every ten seconds without one how many jobs are done."""
        events = SubmissionEvent.objects.filter(submission__in=submissions, pk__gt=self._after).order_by("pk")
        for event in events.select_related("submission__system"):
            self._after = event.pk
            if event.state in TOLD:
                self._say(": ".join(part for part in (str(event), event.note) if part))
        if time.monotonic() - self._last >= TELL_EVERY_S:
            every = list(jobs)
            self._say(f"{sum(job.has_ended for job in every)} of {len(every)} jobs of the submissions are done")

    def _say(self, line: str) -> None:
        self.say(line)
        self._last = time.monotonic()


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
