"""What the numbers of an analysis mean, in words, and how they come about: one line for each, the same on every page.

Conventions: rates are shares in [0, 1] and read in percent; a number that is missing reads as an en dash; what a rate
says follows from its interval first, as a point on a few ratings says little. Formulas and
sources stand in method.toml.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.rounding import fixed, round_to_interval
from common.tables import Column, Value
from listening.analysis.figures.detection import PAIRS
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import DICTIONARY, Results, choice_in_words
from portal.core.labels import MISSING, decimals

METHOD = tomllib.loads(Path(__file__).with_name("method.toml").read_text(encoding="utf-8"))
ORIGINAL_LABEL = "Original speech"
SCORES = {"normalised": "Normalised ranks", "raw": "Raw ratings"}
OF_BOARDS = {"normalised": "Ranked distances", "raw": "Plain distances"}
P_DIGITS, PERCENT_DIGITS, SCORE_DIGITS = 3, 1, 3
CHANCE = 0.5
P_COLUMNS = frozenset(
    {"p", "adjusted", "wilcoxon_p", "wilcoxon_adjusted", "permutation_p", "permutation_adjusted"}
    | {"two_way_p", "two_way_adjusted", "decisive_p"}
)
P_OF_ENOUGH = frozenset({"two_way_p", "two_way_adjusted", "decisive_p"})  # known only where listeners are enough
EVERY = "all"  # in place of the name of a system
WORDS: Mapping[str, Mapping[str, str]] = METHOD["words"] | {
    "pairs": PAIRS,
    "system": {EVERY: "all systems together"},
}
ANSWERS = ("rating", "placement", "transcript", "answer")  # what results rest on, as `Results.counts` counts it
OF_QUESTIONS = frozenset({"first", "second", "task"})  # columns that may name a question
TRUTHS = frozenset({"is_told_apart", "is_caught"})


def label_of(name: str, labels: Mapping[str, str]) -> str:
    """Return what a system is called on pages."""
    return labels.get(name) or (ORIGINAL_LABEL if name == ORIGINAL else name)


def refer_to_original(results: Results) -> str:
    """Return what a sentence calls the original: the name of one's own recordings, where it has one."""
    return "the original" if results.original == ORIGINAL else results.original


def name_scores(scores: str, form: str) -> str:
    """Return what a kind of scores is called in a form of study; empty for tables that rest on neither."""
    return (OF_BOARDS if form == "linkability" else SCORES).get(scores, "")


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share in percent, such as ``46.2 %``."""
    return MISSING if share is None else f"{decimals(100 * share, digits)} %"


def number(value: Value, column: Column) -> str:
    """Return a cell as a page shows it; empty where there is none."""
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        return value
    if column.key in TRUTHS:
        return "yes" if value else "no"
    if column.key in P_COLUMNS:
        return p_value(float(value))
    if column.digits is None:
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return percent(float(value), column.digits) if column.is_share else decimals(float(value), column.digits)


def p_value(p: float | None) -> str:
    """Return a p-value in words, such as ``0.012``; a very small one as a bound."""
    if p is None:
        return MISSING
    return "< 0.001" if p < 0.001 else decimals(p, P_DIGITS)


def number_and_span(row: Mapping[str, Value], column: Column) -> tuple[str, str]:
    """Return the number of a column and its interval, which has no unit, rounded to it: ``46 %`` and ``41 to 50``.

    Args:
        row: holds the number under the name of the column, and the ends under this name with ``_low`` and ``_high``.
    """
    value, low, high = (row.get(f"{column.key}{end}") for end in ("", "_low", "_high"))
    if not isinstance(value, (int, float)) or column.digits is None or column.key in P_COLUMNS:
        return number(value, column), ""
    unit = "points" if column.key == "difference" else "%"
    text, span = rounded(value, low, high, column.digits, is_share=column.is_share, unit=unit)
    if column.is_share and not span and f"{column.key}_low" in row:  # no more exact than one that has an interval
        return f"{fixed(100 * value, 0)} {unit}", ""
    return text, span


def rounded(value: float, low: Value, high: Value, digits: int, *, is_share: bool, unit: str = "%") -> tuple[str, str]:
    """Return a number and its interval as texts: ``46 %`` and ``41 to 50``; the interval is empty without both ends.

    Args:
        digits: the most decimals; a score has at least one, as 0 and 1 are most of its scale.
        is_share: whether it reads in percent.
        unit: of a share: points of a difference of shares.
    """
    factor = 100 if is_share else 1
    first, last = (factor * end if isinstance(end, (int, float)) else None for end in (low, high))
    fewest = 0 if is_share else min(1, digits)
    text, span = round_to_interval(factor * value, first, last, digits, "%" if is_share else "", fewest=fewest)
    return (f"{text} {unit}" if is_share else text), span


def may_be_guessing(rate: float, low: float | None, high: float | None, auc: tuple[float | None, float | None]) -> bool:
    """Return whether the intervals of an equal error rate and of its AUC, which is less noisy, both allow guessing."""
    if low is None or high is None or not low <= CHANCE <= high:
        return False
    worst, best = auc
    is_better, is_worse = worst is not None and worst > CHANCE, best is not None and best < CHANCE
    return not (is_better if rate < CHANCE else is_worse)


def privacy_in_words(rate: float | None, high: float | None) -> str:
    """Return what listeners' rates say of privacy: who cannot distinguish originals makes every voice seem private.

    Args:
        rate, high: equal error rate of unprotected speech and the upper end of its interval.
    """
    if rate is None:
        return str(METHOD["privacy"]["unknown"])
    return str(METHOD["privacy"]["too_hard" if _is_too_hard(rate, high) else "heard"]).format(rate=percent(rate, 0))


def privacy_in_doubt(rate: float | None, high: float | None) -> str:
    """Return why listeners' equal error rates do not tell privacy, as the end of a sentence; empty where they do.

    Args:
        rate, high: as in `privacy_in_words`.
    """
    if rate is None:
        return str(METHOD["privacy"]["unknown_briefly"])
    return str(METHOD["privacy"]["too_hard_briefly"]) if _is_too_hard(rate, high) else ""


def _is_too_hard(rate: float, high: float | None) -> bool:
    return bool(rate >= METHOD["rates"]["on_originals"][0][0] or (high is not None and high >= CHANCE))


def step_of(rate: float) -> str:
    """Return what a rate on unprotected speech says, by the steps of method.toml."""
    return next(str(words) for least, words in METHOD["rates"]["on_originals"] if rate >= least)


def share_a_letter(first: str, second: str, *, is_spaced: bool) -> bool:
    """Return whether two systems are in one group. `is_spaced`: letters stand apart, as with more than 26."""
    take = str.split if is_spaced else set
    return bool(set(take(first)) & set(take(second)))


def scores_in_words(scores: str, scale: Sequence[float] | None) -> str:
    """Return what the scores of a page are, for its captions."""
    if scores == "normalised":
        return "normalised ranks, 0 lowest and 1 highest of each listener"
    return f"raw ratings, {scale[0]:g} to {scale[1]:g}" if scale else "raw ratings"


def formulas(results: Results, scores: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts of what a reader needs to know to compute the same, in the order of the page."""
    chosen = results.settings
    normalisation, _, formula = choice_in_words("normalisation", chosen).partition(": ")
    values = {
        "normalisation": normalisation,
        "formula": formula,
        "correction": choice_in_words("correction", chosen),
        "permutations": f"{chosen.get('permutations', 0):,}",
        "resamples": f"{chosen.get('resamples', 0):,}",
        "level": f"{100 * results.level:g}",
        "least_clusters": chosen.get("least_clusters", 10),
    }
    measures = {row["measure"] for row in results.records("common", "estimates")}
    for one in _of_form("formulas", results.study["form"]):
        if one.get("scores", scores) == scores and measures.issuperset(filter(None, [one.get("measure")])):
            yield one["name"].format(**values), one["text"].format(**values)


def settings_of(form: str) -> dict[str, dict[str, Any]]:
    """Return the settings by which analyses of this form of study differ, as the data dictionary describes them."""
    return {name: about for name, about in DICTIONARY["settings"].items() if form in about.get("forms", (form,))}


def settings_facts(results: Results) -> Iterator[tuple[str, str]]:
    """Yield settings that analyses of this form have, seed and versions."""
    for name, about in settings_of(str(results.study["form"])).items():
        if name in results.settings:
            value = results.settings[name]
            in_words = choice_in_words(name, results.settings) if name == "correction" else str(value)
            yield about["title"], f"{100 * value:g} %" if name == "level" else in_words
    design = results.study.get("design", {})
    for name, title in (("seed", "Design: seed"), ("fingerprint", "Design: fingerprint")):
        if design.get(name) not in (None, ""):
            yield title, str(design[name])
    for name, version in results.versions.items():
        yield ("This analysis" if name == "analysis" else name), f"version {version}"


def sources(results: Results) -> Iterator[str]:
    """Yield where the methods are from."""
    for one in _of_form("sources", results.study["form"]):
        yield from one["texts"]


def _of_form(part: str, form: str) -> list[dict[str, Any]]:
    """Return the entries of a part of the method that are about a form of study."""
    return [one for one in METHOD[part] if form in one.get("forms", (form,))]
