"""What an edition allows at a time; every rule is a function of its arguments, `now` included."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from portal.core.wording import duration

if TYPE_CHECKING:
    from portal.challenges.models import Edition


class Phase(StrEnum):
    BEFORE = "not open yet"
    OPEN = "open"
    LATE = "open for late submissions"
    CLOSED = "closed"


def registration_phase(edition: Edition, now: datetime) -> Phase:
    """Whether teams may register; the opening belongs to the time that is open, the closing does not."""
    return _phase(edition.registration_opens_at, edition.registration_closes_at, None, now)


def submission_phase(edition: Edition, now: datetime) -> Phase:
    """Whether archives are taken; from the deadline until `late_until` they are marked late."""
    return _phase(edition.submissions_open_at, edition.submissions_close_at, edition.late_until, now)


def submission_refusal(edition: Edition, now: datetime) -> str:
    """Why no archive is taken at this time; "" while one is, late ones included."""
    phase = submission_phase(edition, now)
    if phase is Phase.BEFORE and edition.submissions_open_at is not None:
        return f"Submissions open on {moment(edition.submissions_open_at)}."
    closed = edition.late_until or edition.submissions_close_at
    return f"Submissions closed on {moment(closed)}." if phase is Phase.CLOSED and closed is not None else ""


def phase_in_words(edition: Edition, part: str, now: datetime) -> str:
    """Such as ``open until 2026-12-01 12:00 UTC, 10 d 3 h left``.

    Args:
        part: ``registration`` or ``submissions``.
    """
    if part == "registration":
        opens, closes, late = edition.registration_opens_at, edition.registration_closes_at, None
    else:
        opens, closes, late = edition.submissions_open_at, edition.submissions_close_at, edition.late_until
    phase = _phase(opens, closes, late, now)
    if phase is Phase.BEFORE and opens is not None:
        return f"opens on {moment(opens)}, in {duration(opens - now)}"
    if phase is Phase.OPEN and closes is not None:
        return f"open until {moment(closes)}, {duration(closes - now)} left"
    if phase is Phase.LATE and late is not None and closes is not None:
        return f"late since {moment(closes)}; late ones are taken until {moment(late)}, {duration(late - now)} left"
    if phase is Phase.CLOSED:
        return f"closed since {moment(max(time for time in (closes, late) if time is not None))}"
    return "open, without an end"


def moment(time: datetime) -> str:
    """A time as pages and sentences give it, in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def date_problems(dates: Mapping[str, datetime | None]) -> dict[str, str]:
    """What is wrong with the dates of an edition: by the name of the field, a sentence. Empty times do not limit."""
    problems = {}
    if _reversed(dates, "registration_opens_at", "registration_closes_at"):
        problems["registration_closes_at"] = "Registration has to close after it opens."
    if _reversed(dates, "submissions_open_at", "submissions_close_at"):
        problems["submissions_close_at"] = "The deadline has to come after submissions open."
    if dates.get("late_until") and not dates.get("submissions_close_at"):
        problems["late_until"] = "Late submissions need a deadline that they come after."
    elif _reversed(dates, "submissions_close_at", "late_until"):
        problems["late_until"] = "Late submissions have to end after the deadline."
    return problems


def locked_fields(*, has_submissions: bool) -> frozenset[str]:
    """The fields of an edition that cannot change any more: results rest on them and addresses hold its name."""
    return frozenset({"name", "protocol", "recipe_text", "track", "corpus"}) if has_submissions else frozenset()


def _reversed(dates: Mapping[str, datetime | None], first: str, second: str) -> bool:
    earlier, later = dates.get(first), dates.get(second)
    return earlier is not None and later is not None and later <= earlier


def _phase(opens: datetime | None, closes: datetime | None, late_until: datetime | None, now: datetime) -> Phase:
    if opens is not None and now < opens:
        return Phase.BEFORE
    if closes is None or now < closes:
        return Phase.OPEN
    if late_until is not None and now < late_until:
        return Phase.LATE
    return Phase.CLOSED
