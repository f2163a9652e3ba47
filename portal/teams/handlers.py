"""The mails to members of a team and organizers of its edition as a job; what asks for them is in `notifications`."""

from __future__ import annotations

from typing import Any

from django.core.mail import EmailMessage, get_connection
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.rules import ALWAYS_SENT
from portal.core.mail import NOT_SENT, absolute, render_mail
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import Actor, JobEvent, Queue
from portal.jobs.runner import JobContext
from portal.teams.models import SentNotification, Team
from portal.teams.notifications import ORGANIZERS, find_readers


@job_kind(
    "send-notice", title="Notifications by mail", queue=Queue.MAIL, memory_mb=200, time_limit_s=300, comes_first=True
)
def send_notifications(context: JobContext) -> dict[str, Any]:
    """Mail each member of then who still is one and still wants it; continues after an interruption.

    Raises:
        JobFailure: the mail server did not take every mail.
    """
    given = context.parameters
    team = Team.objects.select_related("edition").filter(pk=given["team"]).first()
    if team is None:
        return {"mails": 0}
    people = [user for user in find_readers(team, given) if user.pk in given["members"]]
    sent, failures = 0, {}
    with get_connection() as connection:
        for number, person in enumerate(people):
            context.progress("Sending mail", number, len(people))
            try:
                sent += _mail_once(context, _write_mail(team, person, given, connection), person)
            except NOT_SENT as error:
                failures[person.pk] = str(error)
    if failures:
        raise JobFailure(
            f"The mail server refused {len(failures)} of {len(people)} notifications: {next(iter(failures.values()))}",
            actor=Actor.OPERATOR,
            remedy="See that mail can be sent, then run the job again: only who got no mail is written to.",
        )
    return {"mails": sent}


def _mail_once(context: JobContext, mail: EmailMessage, person: User) -> bool:
    """Send unless an attempt before did; one that ended in the midst of sending counts as sent."""
    row, is_new = SentNotification.objects.get_or_create(job=context.job, user=person)
    if not is_new:
        if row.sent_at is None:
            context.note(
                f"An earlier attempt ended while it wrote to {person}; no second mail is sent.",
                level=JobEvent.Level.WARNING,
            )
        return False
    try:
        mail.send()
    except NOT_SENT:
        row.delete()
        raise
    SentNotification.objects.filter(pk=row.pk).update(sent_at=timezone.now())
    return True


def _write_mail(team: Team, person: User, given: dict[str, Any], connection: Any) -> EmailMessage:
    context = {
        "team": team,
        "person": person,
        "subject": " ".join(given["subject"].split()),
        "text": "\n\n".join(given["lines"]),
        "address": absolute(given["url"]),
        "is_to_organizers": given.get("to") == ORGANIZERS,
        "is_always_sent": given["kind"] in ALWAYS_SENT,
        "choice": absolute(reverse("accounts:notifications")),
    }
    mail = render_mail("teams/mail/notification.txt", context)
    return EmailMessage(subject=mail.subject, body=f"{mail.text}\n", to=[person.email], connection=connection)
