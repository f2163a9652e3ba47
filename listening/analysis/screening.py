"""Screening of listeners: what each rule finds, and what leaving out those it catches would change.

Nothing is left out here. A rule proposes; an organizer makes it a reversible exclusion, which comes back as
`Ratings.excluded`. The rules are data, so that pages and files can say where each comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from listening.analysis import screening_rules
from listening.analysis.contents import EXCLUSION_EFFECT, SCREENING
from listening.analysis.everybody import everybody
from listening.analysis.inputs import PRACTICE, Ratings, Scored
from listening.analysis.points import Point, points_of
from listening.analysis.scoring import RAW, scored_ratings
from listening.analysis.screening_rules import Finding, Gold, Panel
from listening.analysis.settings import Settings
from listening.analysis.tables import Table

STANDING = "standing"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. `source`: where it comes from. `threshold`: from where it catches, in words."""

    name: str
    title: str
    source: str
    looks_at: str
    threshold: str
    find: Callable[[Panel], Iterable[Finding]]


RULES: tuple[Rule, ...] = (
    Rule(
        "low-variance", "Nearly equal ratings", "P.808 toolkit",
        "the variance of the ratings of a session, at least 8 of them",
        "under 0.1 on five points, carried to the scale by the square of its range (0.506 on ten points)",
        screening_rules.low_variance,
    ),
    Rule(
        "disagrees", "Agrees with nobody", "ITU-T P.913, with a floor",
        "the correlation of the ratings with the system means of the others",
        "under 0.3, and under min(0.7, mean − SD) over listeners",
        screening_rules.disagrees,
    ),
    Rule(
        "gold-missed", "Control trials missed", "P.808 toolkit",
        "the share of control trials rated more than one point of five off the known answer, or outside of its range",
        "over half",
        screening_rules.gold_missed,
    ),
    Rule(
        "bridge-outlier", "Far from the others on the bridge set", "ITU-R BT.500, as in SUREAL",
        "the share of ratings beyond 2 SD of the others (√20 SD where kurtosis is not within 2 to 4)",
        "over 5 %, and on both sides: |above − below| under 0.3 of them",
        screening_rules.bridge_outlier,
    ),
    Rule(
        "vote-outliers", "Single ratings far off", "P.808 toolkit",
        "the share of ratings at |z| of at least 3.29, of items with more than five",
        "over 5 %",
        screening_rules.vote_outliers,
    ),
)  # fmt: skip


def screening_table(
    ratings: Ratings, scale: Mapping[str, tuple[float, float]], settings: Settings, gold: Gold | None = None
) -> Table:
    """`contents.SCREENING`: every rule, then every listener, those who are left out too.

    Args:
        ratings: of every purpose.
        gold: lowest and highest right rating by control item and task, as ``{"item": {"naturalness": [9, 10]}}``.
    """
    panel = _panel(ratings, scale, settings, gold or {})
    sessions = _sessions(ratings)
    rows = [
        {
            "rule": rule.name, "listener": found.listener, "session": sessions[found.listener],
            "task": found.task or None, "value": found.value, "limit": found.limit,
            "is_caught": found.is_caught, "remark": found.remark,
        }
        for rule in RULES
        for found in sorted(rule.find(panel), key=lambda one: one.listener)
    ]  # fmt: skip
    return SCREENING.table(rows)


def right_answers(design: Mapping[str, Any]) -> Gold:
    """Right ratings of control items from the facts of a design, where it tells them as ``gold``."""
    told = design.get("gold")
    if not isinstance(told, Mapping):
        return {}
    return {
        str(item): {str(task): ends for task, ends in tasks.items() if _is_range(ends)}
        for item, tasks in told.items()
        if isinstance(tasks, Mapping)
    }


def _is_range(ends: Any) -> bool:
    return isinstance(ends, list | tuple) and len(ends) in (1, 2) and all(isinstance(one, int | float) for one in ends)


def effect_tables(
    ratings: Ratings,
    scale: Mapping[str, tuple[float, float]],
    settings: Settings,
    kind: str,
    screening: Table,
) -> list[Table]:
    """`contents.EXCLUSION_EFFECT`: for all exclusions that stand, and for each rule that would leave out more.

    Before and after of a rule: with the exclusions that stand, and without whomever it catches as well.

    Args:
        kind: ``raw`` or ``normalised``.
        screening: as `screening_table` gives it.
    """

    def points(of: Ratings, *, with_excluded: bool = False) -> dict[tuple[str, str], Point]:
        return points_of(scored_ratings(of, scale, settings, kind, with_excluded=with_excluded))

    now = points(ratings)
    rows: list[dict[str, Any]] = []
    if (ratings.excluded != "").any():
        rows += _effect_rows(STANDING, points(ratings, with_excluded=True), now)
    counting = set(ratings.listener[ratings.excluded == ""].tolist())
    for rule in RULES:
        caught = {str(row["listener"]) for row in screening.records(rule=rule.name, is_caught=1)} & counting
        if caught:
            is_out = np.isin(ratings.listener, sorted(caught)) & (ratings.excluded == "")
            without = replace(ratings, excluded=np.where(is_out, rule.name, ratings.excluded))
            rows += _effect_rows(rule.name, now, points(without))
    return [EXCLUSION_EFFECT.table(rows)]


def _panel(ratings: Ratings, scale: Mapping[str, tuple[float, float]], settings: Settings, gold: Gold) -> Panel:
    counting = scored_ratings(ratings, scale, settings, RAW)
    everyone: Scored = everybody(counting, scored_ratings(ratings, scale, settings, RAW, with_excluded=True))
    stands = (ratings.excluded == "") | ~np.isin(ratings.listener, counting.listeners)
    return Panel(everyone, ratings.rows(stands & (ratings.purpose != PRACTICE)), scale, gold)


def _sessions(ratings: Ratings) -> dict[str, str]:
    """The sessions of each listener in the order of the rows, by blanks."""
    found: dict[str, dict[str, None]] = {}
    for listener, session in zip(ratings.listener.tolist(), ratings.session.tolist(), strict=True):
        found.setdefault(listener, {})[session] = None
    return {listener: " ".join(sessions) for listener, sessions in found.items()}


def _effect_rows(
    rule: str, before: Mapping[tuple[str, str], Point], after: Mapping[tuple[str, str], Point]
) -> list[dict[str, Any]]:
    """A system that nobody is left to rate has empty cells after."""
    rows = []
    for (task, system), point in before.items():
        row = {
            "rule": rule, "task": task, "system": system, "listeners_before": point.listeners, "n_before": point.n,
            "mean_before": point.mean, "eer_before": point.eer, "listeners_after": 0, "n_after": 0,
        }  # fmt: skip
        if left := after.get((task, system)):
            row |= {
                "listeners_after": left.listeners, "n_after": left.n, "mean_after": left.mean, "eer_after": left.eer,
            }  # fmt: skip
        rows.append(row)
    return rows
