"""Mails to the members of a team: what happened to their submissions, team and leaderboard; and to organizers.

`notify_team` and `notify_organizers` make a job of kind ``send-notice`` (body: `handlers`). Of what concerns a team
nobody is written to but its members and, where they want it, the organizers of its edition. Who declined a kind of
notification gets none of it, and no attempt of a job mails anybody twice (`SentNotification`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.accounts.rules import ALWAYS_SENT, NotificationKind
from portal.core.mail import Mail
from portal.jobs.models import Job
from portal.jobs.services import create_job
from portal.teams.models import Team

ORGANIZERS = "organizers"


@transaction.atomic
def notify_team(*, team: Team, kind: NotificationKind, mail: Mail, url: str) -> Job | None:
    """Write to the members of a team; None where each of them declined this kind.

    Args:
        mail: its subject is said after the title of the edition.
        url: path of the page where it goes on.
    """
    return _make_job(f"Notifications to {team.label or 'a team'} of {team.edition.name}", team, kind, mail, url)


@transaction.atomic
def notify_organizers(*, team: Team, kind: NotificationKind, mail: Mail, url: str, besides: Any = None) -> Job | None:
    """Write to the organizers of a team's edition; None where each of them declined this kind.

    Args:
        mail, url: as of `notify_team`.
        besides: a person who knows already, for it is their own action.
    """
    readers = {"to": ORGANIZERS, "besides": besides.pk if besides is not None else None}
    return _make_job(f"Notifications to the organizers of {team.edition.name}", team, kind, mail, url, **readers)


def _make_job(title: str, team: Team, kind: NotificationKind, mail: Mail, url: str, **readers: Any) -> Job | None:
    notification = {"team": team.pk, "kind": str(kind), "subject": mail.subject, "lines": [mail.text], "url": url}
    notification |= readers
    people = [user.pk for user in find_readers(team, notification)]
    if not people:
        return None
    parameters = notification | {"members": people}
    return create_job(kind="send-notice", title=title[:200], edition=team.edition.name, parameters=parameters)


def was_told(team: Team, kind: NotificationKind, *, since: datetime) -> bool:
    """Whether a notification of this kind to this team was begun since then."""
    jobs = Job.objects.filter(kind="send-notice", created_at__gte=since, parameters__team=team.pk)
    return jobs.filter(parameters__kind=str(kind)).exists()


def find_readers(team: Team, notification: dict[str, Any]) -> list[User]:
    """To whom a notification goes, as things stand now."""
    if notification.get("to") == ORGANIZERS:
        people = team.edition.organizers.filter(is_active=True).exclude(pk=notification["besides"] or 0)
    else:
        people = User.objects.filter(memberships__team=team, is_active=True)
    kind = notification["kind"]
    return [user for user in people.order_by("pk") if kind in ALWAYS_SENT or kind not in user.unwanted_notifications]
