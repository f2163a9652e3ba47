"""When a submission may be withdrawn; a rule of its arguments alone, as every rule is.

A team takes a submission back for as long as the public does not see it: what stands on the published board stays. The
organizer may withdraw what is published, for instance at the wish of its team, but not what a board rests on that was
frozen with it: an "as of" that changes would be none.
"""

from __future__ import annotations

from datetime import datetime

from portal.submissions.visibility import Relation, is_on_board


def is_frozen(*, frozen_at: datetime | None, evaluated_at: datetime | None) -> bool:
    """Whether a board that was frozen at `frozen_at` rests on a submission evaluated at `evaluated_at`."""
    return frozen_at is not None and evaluated_at is not None and evaluated_at <= frozen_at


def refusal_to_withdraw(
    relation: Relation,
    *,
    is_withdrawn: bool,
    published_at: datetime | None,
    frozen_at: datetime | None,
    evaluated_at: datetime | None,
) -> str:
    """Why somebody in this relation to a submission may not withdraw it, as a sentence; empty where they may.

    Args:
        published_at, frozen_at: of the board of its edition.
        evaluated_at: when the submission was evaluated.
    """
    if relation is Relation.OTHER:
        return "Only the team of a submission and the organizers of its edition withdraw it."
    if is_withdrawn:
        return "This submission has been withdrawn already."
    if is_frozen(frozen_at=frozen_at, evaluated_at=evaluated_at):
        return "The board of this edition was frozen with this submission; it can be withdrawn once that is lifted."
    on_board = is_on_board(published_at=published_at, frozen_at=frozen_at, evaluated_at=evaluated_at)
    if relation is Relation.TEAM and on_board:
        return "This submission stands on the published board; ask the organizer to withdraw it."
    return ""
