"""What the numbers of an analysis mean, in words: one line for each, the same on every page that shows it.

Conventions: rates are shares in [0, 1] and read in percent; a number that is missing reads as an en dash; what a rate
says follows from its interval first, as a point on a few ratings says little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Cell, Column
from portal.core.wording import MISSING, decimals

ORIGINAL_LABEL = "Original speech"
SCORES = {"normalised": "Normalised ranks", "raw": "Raw ratings"}
P_DIGITS = 3
CHANCE = 0.5
P_COLUMNS = frozenset(
    {"p", "adjusted", "wilcoxon_p", "wilcoxon_adjusted", "permutation_p", "permutation_adjusted"}
)  # fmt: skip
TRUTHS = frozenset({"is_told_apart", "is_caught"})


@dataclass(frozen=True, slots=True)
class TaskWords:
    """A task for readers. `asked`: what listeners were asked. `reading`: how its headline is to be read."""

    title: str
    asked: str
    reading: str
    is_detection: bool = False  # its headline is an error rate, not a mean


TASKS: Mapping[str, TaskWords] = {
    "verifiability": TaskWords(
        "Verifiability",
        "Are the two samples of one speaker?",
        "The equal error rate of listeners who say whether two samples are of one speaker, both errors being equally "
        "frequent. Near 50 % they guess, so that the voice is private. The first row is the check: on unprotected "
        "speech a low rate shows that listeners can do the task.",
        is_detection=True,
    ),
    "naturalness": TaskWords(
        "Naturalness",
        "How natural does the sample sound?",
        "Mean score, higher is more natural. The equal error rate beside it is that of telling unprotected speech from "
        "the system by these ratings alone: near 50 % the system sounds as natural as unprotected speech.",
    ),
    "intelligibility": TaskWords(
        "Intelligibility",
        "How well can the sample be understood?",
        "Mean score, higher is easier to understand. The equal error rate beside it is that of telling unprotected "
        "speech from the system by these ratings alone: near 50 % the system is as easy to understand.",
    ),
}


def label_of(name: str, labels: Mapping[str, str]) -> str:
    """What a system is called on pages."""
    return labels.get(name) or (ORIGINAL_LABEL if name == ORIGINAL else name)


def percent(share: float | None, digits: int = 1) -> str:
    """Such as ``46.2 %``."""
    return MISSING if share is None else f"{decimals(100 * share, digits)} %"


def number(value: Cell, column: Column) -> str:
    """A cell as a page shows it; empty where there is none."""
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        return value
    if column.name in TRUTHS:
        return "yes" if value else "no"
    if column.name in P_COLUMNS:
        return p_value(float(value))
    if column.digits is None:
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return percent(float(value), column.digits) if column.is_share else decimals(float(value), column.digits)


def p_value(p: float | None) -> str:
    """Such as ``0.012``; what is smaller than can be told is told so."""
    if p is None:
        return MISSING
    return "< 0.001" if p < 0.001 else decimals(p, P_DIGITS)


def span(low: Cell, high: Cell, column: Column) -> str:
    """An interval without its unit, as it stands beneath its number: ``41.0 to 50.3``; empty where there is none."""
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return ""
    factor, digits = (100, column.digits or 0) if column.is_share else (1, column.digits or 0)
    return f"{decimals(factor * low, digits)} to {decimals(factor * high, digits)}"


def rate_in_words(task: str, *, is_original: bool, rate: float | None, low: float | None, high: float | None) -> str:
    """What an equal error rate of listeners says, in a line; by its interval where it has one."""
    if rate is None:
        return (
            "No rate: it takes ratings of both kinds of pairs"
            if task == "verifiability"
            else "No rate: too few ratings"
        )
    if task == "verifiability":
        said = _originals(rate) if is_original else _verified(rate, low, high)
    else:
        said = _detected(task, rate, low, high)
    return said if low is not None else f"{said}; too few listeners for an interval"


def _originals(rate: float) -> str:
    if rate < 0.15:
        return "Listeners can do the task on unprotected speech"
    if rate < 0.3:
        return "Listeners can do the task on unprotected speech, with many errors"
    return "Listeners hardly manage even unprotected speech: read the rates below with care"


def _verified(rate: float, low: float | None, high: float | None) -> str:
    if _holds_chance(low, high):
        return "Listeners did no better than guessing, as far as can be told"
    if rate > CHANCE:
        return "Listeners took different speakers for one more often than the other way round"
    if rate >= 0.4:
        return "Listeners could hardly tell speakers apart"
    if rate >= 0.25:
        return "Listeners could tell speakers apart at times"
    return "Listeners could mostly tell speakers apart: little privacy"


def _detected(task: str, rate: float, low: float | None, high: float | None) -> str:
    what = "sounds as natural" if task == "naturalness" else "is as easy to understand"
    less = "less natural" if task == "naturalness" else "harder to understand"
    if _holds_chance(low, high):
        return f"It {what} as unprotected speech, as far as can be told"
    if rate > CHANCE:
        return f"It was rated above unprotected speech: it {what} or more so"
    if rate >= 0.4:
        return f"Slightly {less} than unprotected speech"
    if rate >= 0.2:
        return f"Clearly {less} than unprotected speech"
    return f"Far {less} than unprotected speech"


def _holds_chance(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low <= CHANCE <= high


def share_a_letter(first: str, second: str, *, is_spaced: bool) -> bool:
    """Whether two systems are in one group. `is_spaced`: letters stand apart, as where there are more than 26."""
    take = str.split if is_spaced else set
    return bool(set(take(first)) & set(take(second)))


def scores_in_words(scores: str, normalisation: str, scale: Sequence[float] | None) -> str:
    """What the scores of a page are, for its captions."""
    if scores == "normalised":
        return f"normalised ranks ({normalisation}), 0 lowest and 1 highest of each listener"
    return f"raw ratings, {scale[0]:g} to {scale[1]:g}" if scale else "raw ratings"


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def counted(count: int, one: str, several: str = "") -> str:
    """``1 listener``, ``52 listeners``."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"
