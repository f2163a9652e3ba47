"""Mails to the members of a team: what happened to their submissions, their team and their board; and to organizers.

`notify_team` and `notify_organizers` make a job of kind ``send-notice``; `send_notice` is its body. Of what concerns a
team nobody is written to but its members and, where they want it, the organizers of its edition. Who declined a kind of
notice gets none of it, and no attempt of a job mails anybody twice (`SentNotice`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from smtplib import SMTPException
from typing import Any

from django.core.mail import EmailMessage, get_connection
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.notice_kinds import ALWAYS_SENT, NoticeKind
from portal.core.addresses import absolute
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job, JobEvent
from portal.jobs.runner import JobContext
from portal.jobs.services import create_job
from portal.teams.models import SentNotice, Team

NOT_SENT = (SMTPException, OSError)
ORGANIZERS = "organizers"


@transaction.atomic
def notify_team(*, team: Team, kind: NoticeKind, subject: str, lines: Iterable[str], url: str) -> Job | None:
    """Write to the members of a team; None where each of them declined this kind.

    Args:
        subject: said after the title of the edition.
        lines: the paragraphs of the mail, plain text.
        url: path of the page where it goes on.
    """
    notice = {"team": team.pk, "kind": str(kind), "subject": subject, "lines": list(lines), "url": url}
    return _make_job(team, notice, f"Notices to {team.label or 'a team'} of {team.edition.name}")


@transaction.atomic
def notify_organizers(
    *, team: Team, kind: NoticeKind, subject: str, lines: Iterable[str], url: str, besides: Any = None
) -> Job | None:
    """Write to the organizers of a team's edition; None where each of them declined this kind.

    Args:
        subject, lines, url: as of `notify_team`.
        besides: a person who knows already, for it is their own deed.
    """
    notice = {"team": team.pk, "kind": str(kind), "subject": subject, "lines": list(lines), "url": url}
    notice |= {"to": ORGANIZERS, "besides": besides.pk if besides is not None else None}
    return _make_job(team, notice, f"Notices to the organizers of {team.edition.name}")


def _make_job(team: Team, notice: dict[str, Any], title: str) -> Job | None:
    people = [user.pk for user in _wanting(team, notice)]
    if not people:
        return None
    parameters = notice | {"members": people}
    return create_job(kind="send-notice", title=title[:200], edition=team.edition.name, parameters=parameters)


def was_told(team: Team, kind: NoticeKind, *, since: datetime) -> bool:
    """Whether a notice of this kind to this team was begun since then."""
    jobs = Job.objects.filter(kind="send-notice", created_at__gte=since, parameters__team=team.pk)
    return jobs.filter(parameters__kind=str(kind)).exists()


def send_notice(context: JobContext) -> dict[str, Any]:
    """Mail each member of then who still is one and still wants it; continues after an interruption.

    Raises:
        JobFailure: the mail server did not take every mail.
    """
    given = context.parameters
    team = Team.objects.select_related("edition").filter(pk=given["team"]).first()
    if team is None:
        return {"mails": 0}
    people = [user for user in _wanting(team, given) if user.pk in given["members"]]
    sent, failures = 0, {}
    with get_connection() as connection:
        for number, person in enumerate(people):
            context.progress("Sending mail", number, len(people))
            try:
                sent += _mail_once(context, _notice(team, person, given, connection), person)
            except NOT_SENT as error:
                failures[person.pk] = str(error)
    if failures:
        raise JobFailure(
            f"The mail server did not take {len(failures)} of {len(people)} notices: {next(iter(failures.values()))}",
            actor=Actor.OPERATOR,
            remedy="See that mail can be sent, then run the job again: only who got no mail is written to.",
        )
    return {"mails": sent}


def _mail_once(context: JobContext, mail: EmailMessage, person: User) -> bool:
    """Send unless an attempt before did; one that ended in the midst of sending counts as sent."""
    row, is_new = SentNotice.objects.get_or_create(job=context.job, user=person)
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
    SentNotice.objects.filter(pk=row.pk).update(sent_at=timezone.now())
    return True


def _wanting(team: Team, notice: dict[str, Any]) -> list[User]:
    """To whom a notice goes, as things stand now."""
    if notice.get("to") == ORGANIZERS:
        people = team.edition.organizers.filter(is_active=True).exclude(pk=notice["besides"] or 0)
    else:
        people = User.objects.filter(memberships__team=team, is_active=True)
    kind = notice["kind"]
    return [user for user in people.order_by("pk") if kind in ALWAYS_SENT or kind not in user.unwanted_notices]


def _notice(team: Team, person: User, given: dict[str, Any], connection: Any) -> EmailMessage:
    declining = (
        "Mails about your team itself go to every member."
        if given["kind"] in ALWAYS_SENT
        else f"Choose which mails you get: {absolute(reverse('accounts:notices'))}"
    )
    reason = (
        f"you organise {team.edition}"
        if given.get("to") == ORGANIZERS
        else f"you are a member of the team “{team}” in {team.edition}"
    )
    paragraphs = [
        f"Hello {person},",
        *given["lines"],
        absolute(given["url"]),
        f"-- \nYou get this mail because {reason} on the VoicePrivacy Portal.\n{declining}",
    ]
    return EmailMessage(
        subject=" ".join(f"{team.edition}: {given['subject']}".split()),
        body="\n\n".join(paragraphs) + "\n",
        to=[person.email],
        connection=connection,
    )
