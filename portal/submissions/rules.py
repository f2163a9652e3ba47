"""What may be done with archives and submissions, and who may see what: functions of their arguments, `now` included.

Each `*_refusal` gives the sentence that the sender reads, or "" where all is well. Those on uploads are asked before
the first byte and again after the last. Sizes are in bytes.

Who may see what of a system is one rule for page, API, CSV, figure and audio: its *numbers* become public when the
leaderboard of its edition is published; everything else stays between its team and the organizers. A team
takes a submission back for as long as the public does not see it: what stands on the published leaderboard stays. The
organizer may withdraw what is published, for instance at the wish of its team, but not what a frozen
leaderboard rests on: an "as of" that changes would be none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from common.memory import format_size
from portal.challenges.rules import ARCHIVED, PUBLISHED, Phase, submission_phase
from portal.core.storage import SPARE_BYTES
from portal.intake.archives.limits import ARCHIVE_ENDINGS, ARCHIVE_FORMATS, GIGABYTE

if TYPE_CHECKING:
    from portal.challenges.models import Edition
    from portal.teams.models import Team

UNFINISHED_LASTS = timedelta(days=7)  # after the last byte
EMPTY_LASTS = timedelta(hours=1)  # after its beginning, where no byte came
COMING_LASTS = timedelta(minutes=15)  # after the last byte: then it holds no room for more than is here
UNFINISHED_AT_MOST = 20
SAMPLES_AT_MOST = 6
UNFINISHED_ARCHIVES = 2  # of the largest size: nobody fills the disk of all
LARGEST_RECORDINGS_BYTES = 2 * GIGABYTE  # of an archive of own recordings
LARGEST_CORPUS_BYTES = 40 * GIGABYTE  # of an archive; larger ones are copied to the server
_NOT_APPROVED = {
    "waiting": "The team “{team}” waits for its approval by the organizer; archives can be sent once it is approved.",
    "declined": "The team “{team}” was declined by the organizer and cannot send archives. Its owner can ask again.",
    "withdrawn": "The team “{team}” is withdrawn and cannot send archives.",
}


def refusal(edition: Edition, team: Team | None, *, used: int, by_organizer: bool, now: datetime) -> str:
    """Return why this team (None: the organizers, with a baseline) cannot submit to its edition.

    An organizer of the edition who acts for a team is bound by approval and quota, but not by the time.

    Args:
        used: submissions of the team that count, which are those neither refused nor withdrawn.
    """
    if team is None:
        if not by_organizer:
            return "An archive belongs to a team: name the team that sends it."
        return ARCHIVED if edition.archived_at is not None else ""
    if team.state != "approved":
        return _NOT_APPROVED[team.state].format(team=team)
    if edition.archived_at is not None:
        return ARCHIVED
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
    """Return whether a submission made now is late: from the deadline on, the organizer's own for a team included."""
    return submission_phase(edition, now) in {Phase.LATE, Phase.CLOSED}


def size_problem(edition: Edition, size: int) -> str:
    """Return why an archive of this size is not taken."""
    if size < 1:
        return "The file is empty. Choose the archive that you want to submit."
    if size > edition.largest_archive_bytes:
        largest = format_size(edition.largest_archive_bytes)
        return f"The archive has {format_size(size)}, but this edition takes {largest} at most."
    return ""


def corpus_size_problem(size: int) -> str:
    """Return why the archive of a corpus of this size is not taken."""
    if size < 1:
        return "The file is empty. Choose the archive of the corpus."
    if size > LARGEST_CORPUS_BYTES:
        largest = format_size(LARGEST_CORPUS_BYTES)
        return (
            f"The archive has {format_size(size)}, but the portal takes {largest} at most. "
            "Have the operator copy the corpus to the server, and import it from its folder."
        )
    return ""


def recordings_size_problem(size: int) -> str:
    """Return why an archive of own recordings of this size is not taken."""
    if size < 1:
        return "The archive is empty. Choose one with recordings."
    if size > LARGEST_RECORDINGS_BYTES:
        sizes = format_size(LARGEST_RECORDINGS_BYTES), format_size(size)
        return "Expected at most {}, found {}. Send shorter recordings.".format(*sizes)
    return ""


def name_problem(file_name: str) -> str:
    """Return why a file of this name is no archive that could be read."""
    if not file_name:
        return "The archive has no name: send it as “filename” in Upload-Metadata."
    if not file_name.lower().endswith(ARCHIVE_ENDINGS):
        return f"“{file_name}” is not a supported archive. Pack it as {ARCHIVE_FORMATS}."
    return ""


def room_problem(size: int, *, free: int, promised: int) -> str:
    """Return why the portal has no room for an archive, or for what is left of it.

    Args:
        size: how many bytes are to come.
        free: free bytes of the disk that receives archives.
        promised: bytes that uploads under way may still bring.
    """
    if free - promised - SPARE_BYTES < size:
        return (
            "The portal has no room for this archive just now. Tell the organizer, and try again later; what has "
            "arrived is kept."
        )
    return ""


def unfinished_problem(largest: int, size: int, *, unfinished: int, held: int) -> str:
    """Return why an upload cannot be begun, or go on, beside the other unfinished ones of the same team or organizers.

    Args:
        largest: an archive may have so many bytes.
        size: of the upload, in bytes.
        unfinished: how many others there are.
        held: how many bytes of them are here.
    """
    together = f"{unfinished} other upload{' is' if unfinished == 1 else 's are'} unfinished"
    if unfinished >= UNFINISHED_AT_MOST:
        return f"{together}. Finish or discard one of them first."
    if held + size > UNFINISHED_ARCHIVES * largest:
        return f"{together}, with {format_size(held)} in all. Finish or discard one of them first."
    return ""


def next_label(prefix: str, taken: Iterable[str]) -> str:
    """Return the first label after those taken: ``T11-p3`` for the prefix ``T11-p`` where ``T11-p2`` is the last."""
    numbers = (re.fullmatch(re.escape(prefix) + r"(\d+)", label) for label in taken)
    return f"{prefix}{max((int(found[1]) for found in numbers if found), default=0) + 1}"


def _all_of(count: int) -> str:
    return "its one submission" if count == 1 else f"all {count} submissions"


def _moment(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M} UTC"


class Relation(StrEnum):
    """What a visitor is to a system."""

    ORGANIZER = "organizer"  # of its edition; of a baseline without an edition, those who may see its corpus
    TEAM = "team"
    OTHER = "other"


class SystemPart(StrEnum):
    """What there is to see of a system."""

    NUMBERS = "numbers"  # recomputed values, averages, conditions, their figures
    REPORT = "report"  # validation, claims, timeline, provenance
    SPEECH = "speech"  # audio and numbers of single utterances
    FILES = "files"  # what the team sent


def may_see(part: SystemPart, relation: Relation, *, is_published: bool) -> bool:
    """Return whether somebody in this relation to a system may see this part of it.

    Args:
        is_published: whether the system stands on a published leaderboard (`is_on_leaderboard`).
    """
    return relation is not Relation.OTHER or (part is SystemPart.NUMBERS and is_published)


def is_on_leaderboard(
    *, published_at: datetime | None, frozen_at: datetime | None, evaluated_at: datetime | None, is_held: bool
) -> bool:
    """Return whether a submission evaluated at `evaluated_at` stands on its edition's public leaderboard.

    Args:
        frozen_at: the leaderboard rests on what had been evaluated by then; None for everything.
        is_held: it waits for its release by an organizer.
    """
    is_shown = published_at is not None and evaluated_at is not None and not is_held
    return is_shown and (frozen_at is None or is_frozen(frozen_at=frozen_at, evaluated_at=evaluated_at))


def is_frozen(*, frozen_at: datetime | None, evaluated_at: datetime | None) -> bool:
    """Return whether a leaderboard that was frozen at `frozen_at` rests on a submission evaluated at `evaluated_at`."""
    return frozen_at is not None and evaluated_at is not None and evaluated_at <= frozen_at


def withdrawing_problem(
    relation: Relation,
    *,
    is_withdrawn: bool,
    published_at: datetime | None,
    frozen_at: datetime | None,
    evaluated_at: datetime | None,
    is_held: bool,
) -> str:
    """Return why somebody in this relation to a submission may not withdraw it, as a sentence; empty where they may.

    Args:
        published_at, frozen_at: of the leaderboard of its edition.
        evaluated_at: when the submission was evaluated.
        is_held: whether it waits for its release.
    """
    if relation is Relation.OTHER:
        return "Only the team of a submission and the organizers of its edition withdraw it."
    if is_withdrawn:
        return "This submission has been withdrawn already."
    if is_frozen(frozen_at=frozen_at, evaluated_at=evaluated_at):
        return "The leaderboard of this edition was frozen with this submission; unfreeze it before withdrawing."
    on_leaderboard = is_on_leaderboard(
        published_at=published_at, frozen_at=frozen_at, evaluated_at=evaluated_at, is_held=is_held
    )
    if relation is Relation.TEAM and on_leaderboard:
        return "The leaderboard is published and this version was evaluated: only the organizer can withdraw it."
    return ""


def release_problem(
    *, is_held: bool, is_evaluated: bool, frozen_at: datetime | None, evaluated_at: datetime | None
) -> str:
    """Return why a submission cannot be released to the leaderboard, as a sentence; empty where it can."""
    if not is_held:
        return "This submission is not held back."
    if not is_evaluated:
        return "This submission has no numbers yet: it can be released once its evaluation has ended."
    if is_frozen(frozen_at=frozen_at, evaluated_at=evaluated_at):
        return "The leaderboard must not change before it is unfrozen, or published again: then release the submission."
    return ""


def deletion_problem(*, accepted: int, is_of_team: bool, is_published: bool, archived: str = "it") -> str:
    """Return why submissions, and what holds them, cannot be deleted.

    Args:
        accepted: how many of them passed the check and were not withdrawn.
        is_published: whether the leaderboard that they stand on is or was public.
        archived: what can be archived instead.
    """
    if accepted and is_published:
        return PUBLISHED.format(archived)
    if accepted and is_of_team:
        these = "A submission of a team was" if accepted == 1 else f"{accepted} submissions of teams were"
        return f"{these} accepted. Archive {archived}, or have the submission{'s' * (accepted > 1)} withdrawn first."
    return ""


def sharing_problem(relations: Collection[Relation], *, is_baseline: bool, is_accepted: bool) -> str:
    """Return why somebody in these relations to a submission cannot offer parts of it to all; empty if they can."""
    if (Relation.ORGANIZER if is_baseline else Relation.TEAM) not in relations:
        return "Only the team of a submission, or the organizers for their baselines, let others hear it."
    if not is_accepted:
        return "Others can hear and read only accepted submissions that were not withdrawn."
    return ""
