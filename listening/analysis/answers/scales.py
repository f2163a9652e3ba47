"""Answers on a scale or a slider: means of conditions, their differences, and the listeners of a MUSHRA test.

**MOS, DCR, own scales** (`estimate_scale`): the mean of each condition, the difference of each two, letters.

**MUSHRA** (`estimate_mushra`): the same, with median and quartiles, as ITU-R BS.1534-3 asks for. Its post-screening
(`screen_mushra`) has two rules, which catch listeners who rated the hidden reference below 90, or the 7 kHz anchor
above 90, in more than 15 % of their items. They leave nobody out: that is the experimenter's choice.

Source: Recommendation ITU-R BS.1534-3 (2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from listening.analysis.answers.estimates import Estimate, add_letters, compare_means, count, decide, estimate_means
from listening.analysis.reading.inputs import Settings
from listening.analysis.tables import Row

if TYPE_CHECKING:
    from pandas import DataFrame

MEAN, DIFFERENCE = "mean", "difference"
QUANTILES = {"median": 0.5, "lower quartile": 0.25, "upper quartile": 0.75}
MUSHRA_SCALE = (0.0, 100.0)
WELL_RATED = 90.0
MOST_ITEMS = 0.15  # share of a listener's items
REFERENCE_LOW, ANCHOR_HIGH = "reference-low", "anchor-high"


def estimate_scale(answers: DataFrame, settings: Settings, limits: tuple[float, float]) -> list[Estimate]:
    """Return the mean of each condition with letters, and the difference of each two.

    Args:
        answers: of one question, with the column `score`.
        limits: ends of the scale.
    """
    estimates, means = estimate_means(answers, "condition", MEAN, settings, limits)
    differences = decide(compare_means(estimates, means, DIFFERENCE, settings), settings)
    return [*add_letters(estimates, differences, settings), *differences]


def estimate_mushra(answers: DataFrame, settings: Settings) -> list[Estimate]:
    """Return what `estimate_scale` does, with median and quartiles of each condition."""
    found = estimate_scale(answers, settings, MUSHRA_SCALE)
    question = str(answers["question"].iloc[0])
    for condition, of_condition in answers.groupby("condition"):
        for measure, share in QUANTILES.items():
            value = float(of_condition["score"].quantile(share))
            found.append(Estimate(question, str(condition), measure, **count(of_condition), value=value))
    return found


def screen_mushra(answers: DataFrame, reference: str, anchor: str = "") -> list[Row]:
    """Return rows of the table ``screening``: of each rule and listener the share of items that were rated so.

    Args:
        answers: of one question, with the column `score`.
        reference: condition that is the hidden reference. `anchor`: the 7 kHz anchor; empty where there is none.
    """
    rules = [(REFERENCE_LOW, reference, answers["score"] < WELL_RATED)]
    rules += [(ANCHOR_HIGH, anchor, answers["score"] > WELL_RATED)] if anchor else []
    rows: list[Row] = []
    for rule, condition, is_off in rules:
        for listener, own in answers.assign(is_off=is_off).groupby("listener"):
            heard = own[own["condition"] == condition]
            share = float(heard["is_off"].mean()) if len(heard) else None
            row: Row = {"rule": rule, "listener": str(listener), "session": " ".join(dict.fromkeys(own["session"]))}
            row |= {"task": str(own["question"].iloc[0]), "value": share, "limit": MOST_ITEMS}
            row |= {"is_caught": share is not None and share > MOST_ITEMS}
            rows.append(row | {"remark": "" if len(heard) else f"The listener did not rate {condition}."})
    return rows
