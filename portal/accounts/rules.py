"""Whether a token may be used; the kinds of mail that people get, and which of them can be declined."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import TextChoices

from portal.accounts.models import AccessToken, User


@dataclass(frozen=True)
class Voucher:
    """What vouches for an address besides a mail that reached it.

    Attributes:
        email: the address; "" is any.
        by: who made it; None where that account is gone.
        kind: such as ``invitation``.
        key: which of its kind.
    """

    email: str
    by: User | None
    kind: str
    key: str

    def covers(self, email: str) -> bool:
        return self.email.casefold() in ("", email.casefold())


class NotificationKind(TextChoices):
    """What a notice is about; its value stands in `User.unwanted_notifications` of those who declined it.

    The label ends the sentence "Mail me when …".
    """

    VALIDATED = "validated", "an archive of my team was accepted"
    REFUSED = "refused", "an archive of my team was refused, with the report of its errors"
    FAILED = "failed", "the evaluation of a submission fails"
    FINISHED = "finished", "the numbers of a submission are ready"
    RELEASED = "released", "an organizer releases a submission, samples or a description of my team"
    WITHDRAWN = "withdrawn", "a submission of my team, or in an edition that I organise, is withdrawn"
    PUBLISHED = "published", "the leaderboard of an edition is published or taken back, or the edition is archived"
    HEARD = "heard", "the results of a listening test with a system of my team are published"
    REGISTERED = "registered", "a team registers for an edition that I organise"
    CHECKED = "checked", "an archive of a team was checked in an edition that I organise"
    OFFERED = "offered", "a team offers samples or a description in an edition that I organise"
    MEMBERSHIP = "membership", ""  # always sent: who belongs to a team must know


ALWAYS_SENT = frozenset({NotificationKind.MEMBERSHIP})
TO_ORGANIZERS = frozenset({NotificationKind.REGISTERED, NotificationKind.CHECKED, NotificationKind.OFFERED})
DECLINABLE = [kind for kind in NotificationKind if kind not in ALWAYS_SENT]


def is_good(token: AccessToken, now: datetime) -> bool:
    """Return whether a token may be used: not revoked, not at its end, its owner's account open."""
    ended = token.expires_at is not None and token.expires_at <= now
    return token.revoked_at is None and not ended and token.user.is_active
