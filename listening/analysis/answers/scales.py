"""Answers on a scale or a slider: means of conditions, their differences, and the listeners of a MUSHRA test.

**MOS, DCR, own scales** (`estimate_scale`): the mean of each condition, the difference of each two, letters.

**MUSHRA** (`estimate_mushra`): the same, with median and quartiles, as ITU-R BS.1534-3 asks for. Its post-screening
(`screen_mushra`) names the listeners who rated the hidden reference below 90, or the 7 kHz anchor above 90, in more
than 15 % of their items. It leaves nobody out: that is the experimenter's choice.

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
    """Return a row for each listener: in which share of items the reference was rated low, and the anchor high.

    Args:
        reference: condition that is the hidden reference. `anchor`: the 7 kHz anchor; empty where there is none.
    """
    rows = []
    for listener, own in answers.groupby("listener"):
        low = (own["score"] < WELL_RATED).groupby(own["condition"]).mean().get(reference)
        high = (own["score"] > WELL_RATED).groupby(own["condition"]).mean().get(anchor)
        shares = [float(share) for share in (low, high) if share is not None]
        rows.append(
            {
                "question": str(own["question"].iloc[0]),
                "listener": str(listener),
                "items": own["item"].nunique(),
                "reference_low": low,
                "anchor_high": high,
                "is_caught": any(share > MOST_ITEMS for share in shares),
                "remark": "" if low is not None else "The listener did not rate the hidden reference.",
            }
        )
    return rows
