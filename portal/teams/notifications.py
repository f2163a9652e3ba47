"""Mails to the members of a team: what happened to their submissions, team and leaderboard; and to organizers.

`notify_team` and `notify_organizers` make a job of kind ``send-notice`` (body: `handlers`). Of what concerns a team
nobody is written to but its members and, where they want it, the organizers of its edition. Who declined a kind of
notification gets none of it, and no attempt of a job mails anybody twice (`SentNotification`).
"""

from __future__ import annotations

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
def notify_team(*, team: Team, kind: NotificationKind, mail: Mail, url: str, besides: Any = None) -> Job | None:
    """Write to the members of a team; None where each of them declined this kind.

    Args:
        mail: its subject is said after the title of the edition.
        url: path of the page where it goes on.
        besides: a person who knows already, for it is their own action.
    """
    title = f"Notifications to {team.label or 'a team'} of {team.edition.name}"
    return _make_job(title, team, kind, mail, url, **_besides(besides))


@transaction.atomic
def notify_organizers(*, team: Team, kind: NotificationKind, mail: Mail, url: str, besides: Any = None) -> Job | None:
    """Write to the organizers of a team's edition; None where each of them declined this kind.

    Args:
        mail, url, besides: as of `notify_team`.
    """
    readers = {"to": ORGANIZERS} | _besides(besides)
    return _make_job(f"Notifications to the organizers of {team.edition.name}", team, kind, mail, url, **readers)


def _besides(person: Any) -> dict[str, int]:
    return {} if person is None else {"besides": person.pk}


def _make_job(title: str, team: Team, kind: NotificationKind, mail: Mail, url: str, **readers: Any) -> Job | None:
    notification = {"team": team.pk, "kind": str(kind), "subject": mail.subject, "lines": [mail.text], "url": url}
    notification |= readers
    people = [user.pk for user in find_readers(team, notification)]
    if not people:
        return None
    parameters = notification | {"members": people}
    return create_job(kind="send-notice", title=title[:200], edition=team.edition.name, parameters=parameters)


def find_readers(team: Team, notification: dict[str, Any]) -> list[User]:
    """To whom a notification goes, as things stand now."""
    if notification.get("to") == ORGANIZERS:
        people = team.edition.organizers.filter(is_active=True)
    else:
        people = User.objects.filter(memberships__team=team, is_active=True)
    kind, people = notification["kind"], people.exclude(pk=notification.get("besides") or 0)
    return [user for user in people.order_by("pk") if kind in ALWAYS_SENT or kind not in user.unwanted_notifications]
