"""Who may see what of a system: one rule for page, API, CSV, figure and audio.

A system's *numbers* become public when the board of its edition is published; everything else stays between its team
and the organizers of its edition.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum


class Relation(StrEnum):
    """What a visitor is to a system."""

    ORGANIZER = "organizer"  # of its edition; of a baseline without an edition, any organizer
    TEAM = "team"
    OTHER = "other"


class Part(StrEnum):
    """What there is to see of a system."""

    NUMBERS = "numbers"  # recomputed values, averages, conditions, their figures
    REPORT = "report"  # validation, claims, timeline, provenance
    SPEECH = "speech"  # audio and numbers of single utterances
    FILES = "files"  # what the team sent


def may_see(part: Part, relation: Relation, *, is_published: bool) -> bool:
    """Whether somebody in this relation to a system may see this part of it.

    Args:
        is_published: whether the system stands on a published board (`is_on_board`).
    """
    if relation is Relation.OTHER:
        return part is Part.NUMBERS and is_published
    return True


def is_on_board(*, published_at: datetime | None, frozen_at: datetime | None, evaluated_at: datetime | None) -> bool:
    """Whether a submission evaluated at `evaluated_at` stands on its edition's public board.

    Args:
        frozen_at: the board rests on what had been evaluated by then; None for everything.
    """
    if published_at is None or evaluated_at is None:
        return False
    return frozen_at is None or evaluated_at <= frozen_at
