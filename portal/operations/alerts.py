"""Mails operators when a queue starves, when a kind of job keeps failing, and when the disk fills up.

Each alert is mailed once, again once a day while it lasts, and once when it is over. One that comes back within a day
of its mail waits for the end of that day. What was mailed is a `Heartbeat` of its own kind, so that a restart mails
nothing twice. Where a mail cannot be sent, nothing is noted and it is tried again.
"""

from __future__ import annotations

import logging
import shutil
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage

from portal.accounts.selectors import operators
from portal.core.labels import duration
from portal.core.mail import absolute, render_mail
from portal.core.models import Heartbeat
from portal.core.storage import SPARE_BYTES
from portal.jobs.checks import explain_starved
from portal.jobs.models import Actor, Job, JobState
from portal.jobs.selectors import queue_states

log = logging.getLogger(__name__)
KIND = "alert"
AGAIN = timedelta(days=1)
LOW_BYTES = 5 * SPARE_BYTES
FAILURES, RECENT = 3, timedelta(days=1)


def find_alerts(now: datetime) -> dict[str, str]:
    """What an operator has to look at, a sentence by the name of its cause."""
    found: dict[str, str] = {}
    limit = timedelta(minutes=settings.ALERT_WAIT_MINUTES)
    for queue in queue_states(now):
        waited = queue.oldest_waiting
        if starved := explain_starved([queue]):
            found[f"queue {queue.name}"] = starved
        elif waited is not None and waited > limit:
            found[f"queue {queue.name}"] = (
                f"A job has waited for {duration(waited)} in the queue {queue.name}, all of whose workers are busy. "
                "Start another one, or tell teams."
            )
    found |= _find_failures(now)
    free = shutil.disk_usage(settings.DATA_DIR).free
    if free < LOW_BYTES:
        found["disk"] = (
            f"{free / 1e9:.1f} GB are free in {settings.DATA_DIR}. Below {SPARE_BYTES / 1e9:.1f} GB uploads are "
            "refused. Make room."
        )
    return found


def _find_failures(now: datetime) -> dict[str, str]:
    """Kinds of jobs whose last ones all failed, by no fault of who sent or asked for them."""
    ended = Job.objects.filter(state__in=[JobState.SUCCEEDED, JobState.FAILED], finished_at__gt=now - RECENT)
    failed = ended.filter(state=JobState.FAILED).exclude(failure_actor__in=[Actor.TEAM, Actor.ORGANIZER])
    found = {}
    for kind in failed.order_by("kind").values_list("kind", flat=True).distinct():
        theirs = ended.filter(kind=kind).exclude(failure_actor__in=[Actor.TEAM, Actor.ORGANIZER])
        last = list(theirs.order_by("-finished_at", "-pk").values_list("pk", "state")[:FAILURES])
        if len(last) == FAILURES and all(state == JobState.FAILED for _, state in last):
            found[f"jobs {kind}"] = (
                f"The last {FAILURES} jobs of the kind {kind} failed. Open the newest: "
                f"{absolute(Job(pk=last[0][0]).get_absolute_url())}"
            )
    return found


def tell_operators(now: datetime) -> int:
    """Mail what is new, lasts for another day, or is over; how many of them."""
    found = find_alerts(now)
    told = {one.name.removeprefix(f"{KIND} "): one for one in Heartbeat.objects.filter(kind=KIND)}
    new = {name: text for name, text in found.items() if name not in told or told[name].at <= now - AGAIN}
    over = [name for name, one in told.items() if name not in found and not one.details["is_over"]]
    if new or over:
        readers = list(operators().exclude(email="").values_list("email", flat=True))
        if not readers:
            return 0
        context = {"new": new.values(), "over": over, "address": absolute("/operations/")}
        mail = render_mail("operations/mail/alerts.txt", context)
        try:
            EmailMessage(mail.subject, f"{mail.text}\n", bcc=readers).send()
        except Exception:
            log.exception("Operators could not be mailed that something needs a look: %s", " ".join(new.values()))
            return 0
    for name in new:
        Heartbeat.objects.update_or_create(
            name=f"{KIND} {name}", defaults={"kind": KIND, "at": now, "details": {"is_over": False}}
        )
    for name in over:
        Heartbeat.objects.filter(name=f"{KIND} {name}").update(details={"is_over": True})
    Heartbeat.objects.filter(kind=KIND, details__is_over=True, at__lte=now - AGAIN).delete()
    return len(new) + len(over)
