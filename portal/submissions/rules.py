"""Whether an archive may be uploaded and become a submission: functions of their arguments, `now` included.

Each `*_refusal` gives the sentence that the sender reads, or "" where all is well. They are asked before the first byte
and again after the last. Sizes are in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from evaluation.formats.sizes import size_words
from portal.challenges.rules import Phase, submission_phase

if TYPE_CHECKING:
    from portal.challenges.models import Edition
    from portal.teams.models import Team

UNFINISHED_LASTS = timedelta(days=7)
UNFINISHED_AT_MOST = 20
UNFINISHED_ARCHIVES = 2  # of the largest size: nobody reserves the disk of all
SPARE_BYTES = 1 << 30
ARCHIVE_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tzst")
_NOT_APPROVED = {
    "waiting": "The team “{team}” waits for its approval by the organizer; archives can be sent once it is approved.",
    "declined": "The team “{team}” was declined by the organizer and cannot send archives.",
    "withdrawn": "The team “{team}” is withdrawn and cannot send archives.",
}


def refusal(edition: Edition, team: Team | None, *, used: int, by_organizer: bool, now: datetime) -> str:
    """Why this team (None: the organizers, with a baseline) cannot submit to its edition.

    An organizer of the edition who acts for a team is bound by approval and quota, but not by the time.

    Args:
        used: submissions of the team that count, which are those neither refused nor withdrawn.
    """
    if team is None:
        return "" if by_organizer else "An archive belongs to a team: name the team that sends it."
    if team.state != "approved":
        return _NOT_APPROVED[team.state].format(team=team)
    phase = submission_phase(edition, now)
    if phase is Phase.BEFORE and not by_organizer:
        return f"Submissions open on {_moment(edition.submissions_open_at)}."
    if phase is Phase.CLOSED and not by_organizer:
        closed = edition.late_until or edition.submissions_close_at
        return f"Submissions closed on {_moment(closed)}. Ask the organizer of the edition."
    if used >= edition.submissions_per_team:
        return (
            f"The team “{team}” has used {_all_of(edition.submissions_per_team)} of this edition. What was refused or "
            "withdrawn does not count; ask the organizer for more."
        )
    return ""


def is_late(edition: Edition, now: datetime) -> bool:
    """Whether a submission made now is marked late: from the deadline on, the organizer's own for a team included."""
    return submission_phase(edition, now) in {Phase.LATE, Phase.CLOSED}


def size_refusal(edition: Edition, size: int) -> str:
    """Why an archive of this size is not taken."""
    if size < 1:
        return "The file is empty. Choose the archive that you want to submit."
    if size > edition.largest_archive_bytes:
        largest = size_words(edition.largest_archive_bytes)
        return f"The archive has {size_words(size)}, but this edition takes {largest} at most."
    return ""


def name_refusal(file_name: str) -> str:
    """Why a file of this name is no archive that could be read."""
    if not file_name:
        return "The archive has no name: send it as “filename” in Upload-Metadata."
    if not file_name.lower().endswith(ARCHIVE_ENDINGS):
        return f"“{file_name}” is no archive that can be read here. Pack it as {archive_words()}."
    return ""


def archive_words() -> str:
    return ".zip, .tar, .tar.gz, .tar.bz2, .tar.xz or .tar.zst"


def room_refusal(size: int, *, free: int, promised: int) -> str:
    """Why the portal has no room for an archive.

    Args:
        free: free bytes of the disk that receives archives.
        promised: bytes that uploads under way may still bring.
    """
    if free - promised - SPARE_BYTES < size:
        return "The portal has no room for this archive just now. Tell the organizer, and try again later."
    return ""


def unfinished_refusal(edition: Edition, size: int, *, unfinished: int, reserved: int) -> str:
    """Why no further upload can be begun beside the unfinished ones of the same team or organizers.

    Args:
        size: of the new upload, in bytes.
        unfinished: how many there are.
        reserved: how many bytes they were announced with.
    """
    together = f"{unfinished} upload{' is' if unfinished == 1 else 's are'} unfinished"
    if unfinished >= UNFINISHED_AT_MOST:
        return f"{together}. Finish or discard one of them first."
    if reserved + size > UNFINISHED_ARCHIVES * edition.largest_archive_bytes:
        return f"{together}, with {size_words(reserved)} in all. Finish or discard one of them first."
    return ""


def next_label(prefix: str, taken: Iterable[str]) -> str:
    """The first label after those taken: ``T11-p3`` for the prefix ``T11-p`` where ``T11-p2`` is the last."""
    numbers = (re.fullmatch(re.escape(prefix) + r"(\d+)", label) for label in taken)
    return f"{prefix}{max((int(found[1]) for found in numbers if found), default=0) + 1}"


def _all_of(count: int) -> str:
    return "its one submission" if count == 1 else f"all {count} submissions"


def _moment(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M} UTC"
