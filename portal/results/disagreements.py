"""Numbers that a team claims otherwise than they follow from its files, in words for its own people."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.objective.values import ObjectiveValues, number_words
from portal.core.wording import decimals
from portal.results.objective_tables import AVERAGE_DIGITS


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A number that is claimed otherwise than it follows from the files."""

    what: str
    claimed: str
    recomputed: str
    where: str


def disagreements_of(values: ObjectiveValues) -> list[Disagreement]:
    """Every disagreement, averages first."""
    numbers = sorted(values.disagreements, key=lambda one: not one.is_average)
    return [
        Disagreement(
            what=number_words(one.identity),
            claimed=one.claimed_text,
            recomputed=one.letter or decimals(one.value, max(AVERAGE_DIGITS, one.metric.decimals)),
            where=one.claimed_in,
        )
        for one in numbers
    ]
