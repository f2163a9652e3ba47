"""The rules that look for listeners whose ratings should not count: what each finds, and from where it is a finding.

**Rules only propose.** A flagged listener is left out by an organizer, never by an analysis, and can be taken back: a
finding becomes a reversible exclusion, which comes back as `Ratings.excluded`. All rules look at raw ratings, because
ranks would hide who used two points of the scale.

**The tables** say what each rule finds (`make_screening_table`), and what leaving out those it catches would change
(`make_effect_tables`).

**Thresholds come from practice.** Where each rule comes from stands in the data dictionary, for pages and files:

- P.808: ITU-T P.808 as implemented by its open toolkit. Its numbers are for five points; they are carried to another
  scale by its range, variances by the square of it.
- P.913: ITU-T P.913, clause on screening by correlation; BT.500: ITU-R BT.500, annex on observer screening, as
  implemented by SUREAL.

Conventions: a rule gives a `ScreeningFinding` for each listener, or listener and task; `value` is what it looked at
and `limit` from where it catches; where nothing can be said the value is NaN and the note says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from common.arrays import Flags, Floats, Ints, Texts
from common.tables import DataTable
from listening.analysis.post_screening.listeners import (
    LEAST_CELLS,
    Rated,
    add_left_out,
    measure_agreement,
    select_rated,
)
from listening.analysis.reading.inputs import BRIDGE, COMPARING, GOLD, PRACTICE, RAW, Ratings, Scale, Scored, Settings
from listening.analysis.scoring.detection import Point, estimate_points
from listening.analysis.scoring.normalisation import score_ratings
from listening.analysis.tables import Row, make_table

LEAST_RATINGS = 8
VARIANCE_ON_FIVE_POINTS = 0.1
AGREEMENT_FLOOR, AGREEMENT_CEILING = 0.3, 0.7
LEAST_LISTENERS = 3
GOLD_SHARE, LEAST_OTHERS = 0.5, 5
OUTLIER_SHARE, ONE_SIDED, LEAST_RATERS = 0.05, 0.3, 10
OUTLIER_Z, LEAST_VOTES, LEAST_JUDGED = 3.29, 6, 20
Gold = Mapping[str, Mapping[str, Sequence[float]]]


@dataclass(frozen=True, slots=True)
class ScreeningFinding:
    """`task` is empty where a rule looks at all tasks together."""

    listener: str
    task: str
    value: float
    limit: float
    is_caught: bool
    remark: str = ""


@dataclass(frozen=True, eq=False)
class ListenerPanel:
    """What the rules look at.

    Attributes:
        scored: raw ratings of everybody, also of listeners who are left out (`add_left_out`).
        ratings: of every purpose, of sessions that count, and of listeners of whom nothing counts.
        scale: lowest and highest rating by task.
        gold: right ratings of control items, lowest and highest, by item and task; empty where not known.
    """

    scored: Scored
    ratings: Ratings
    scale: Scale
    gold: Gold

    @property
    def listeners(self) -> Texts:
        return self.scored.listeners

    @property
    def counts(self) -> Flags:
        """Return whether anything of a listener counts, shape (listeners,)."""
        found = np.zeros(self.listeners.size, np.bool_)
        found[self.scored.listener[self.scored.ratings.excluded == ""]] = True
        return found

    def points(self, task: str) -> float:
        """Return how far apart neighbours on a five-point scale would be on this one."""
        lowest, highest = self.scale[task]
        return (highest - lowest) / 4


def low_variance(panel: ListenerPanel) -> Iterator[ScreeningFinding]:
    """Yield findings by P.808: variance of a session under 0.1 on five points. Of several sessions the least counts."""
    ratings = panel.scored.ratings
    for task in panel.scored.tasks:
        limit = VARIANCE_ON_FIVE_POINTS * panel.points(task) ** 2
        of_task = ratings.task == task
        for place in np.unique(panel.scored.listener[of_task]).tolist():
            own = of_task & (panel.scored.listener == place)
            sessions = (ratings.rating[own][ratings.session[own] == one] for one in np.unique(ratings.session[own]))
            variances = [float(one.var()) for one in sessions if one.size >= LEAST_RATINGS]
            name = str(panel.listeners[place])
            if not variances:
                yield ScreeningFinding(
                    name, task, np.nan, limit, False, f"Fewer than {LEAST_RATINGS} ratings in a session."
                )
            else:
                yield ScreeningFinding(name, task, min(variances), limit, min(variances) < limit)


def disagrees(panel: ListenerPanel) -> Iterator[ScreeningFinding]:
    """Yield findings of agreement (`measure_agreement`) under 0.3 *and* under min(0.7, mean − SD) of everybody.

    P.913 leaves out below min(0.7, mean r − SD r) alone. That is meant for laboratories, where r is above 0.9: with few
    ratings a system it takes out one in six of any panel, however good. A floor of 0.3 alone would take out half of a
    panel that hears small differences. Both together leave out who agrees with nobody while the others do.
    """
    for task in panel.scored.tasks:
        rated = select_rated(panel.scored, task)
        found, cells = measure_agreement(rated)
        numbers = np.bincount(rated.listener, minlength=panel.listeners.size)
        told = np.isfinite(found) & (numbers >= LEAST_RATINGS)
        judged = told & panel.counts
        if judged.sum() >= LEAST_LISTENERS:
            of_panel = min(AGREEMENT_CEILING, float(found[judged].mean() - found[judged].std(ddof=1)))
        else:
            of_panel = np.nan
        limit = min(AGREEMENT_FLOOR, of_panel)
        for place in np.unique(rated.listener).tolist():
            name = str(panel.listeners[place])
            if not np.isfinite(of_panel) or not told[place]:
                why = _why_no_agreement(int(numbers[place]), int(cells[place]), is_told=bool(told[place]))
                yield ScreeningFinding(name, task, np.nan, limit, False, why)
                continue
            value = float(found[place])
            is_between = limit <= value < of_panel
            remark = f"Under {of_panel:.2f}, the limit of P.913, which takes one in six of any panel."
            yield ScreeningFinding(name, task, value, limit, value < limit, remark if is_between else "")


def gold_missed(panel: ListenerPanel) -> Iterator[ScreeningFinding]:
    """Yield findings by P.808: control trials off their known answer by over one point of five.

    Caught with more than half.

    A range given by the organizer stands as it is. Where the right answer is not among the inputs, the median of at
    least five others stands for it.
    """
    had = set(panel.ratings.listener[panel.ratings.purpose == GOLD].tolist())
    trials, by_median = _control_trials(panel)
    for name in panel.listeners.tolist():
        if own := trials.get(name, {}):
            share = sum(own.values()) / len(own)
            remark = "Right answers are not known; the median of the other listeners is used."
            yield ScreeningFinding(name, "", share, GOLD_SHARE, share > GOLD_SHARE, remark if name in by_median else "")
        else:
            why = "Right answers are not known, and too few others rated." if name in had else "No control trials."
            yield ScreeningFinding(name, "", np.nan, GOLD_SHARE, False, why)


def _control_trials(panel: ListenerPanel) -> tuple[dict[str, dict[tuple[str, str], bool]], set[str]]:
    """Return by listener, session and item whether a control trial was missed; and who was judged by a median."""
    golden: Ratings = panel.ratings.rows(panel.ratings.purpose == GOLD)
    given = _ratings_of_control_items(golden)
    trials: dict[str, dict[tuple[str, str], bool]] = {}
    by_median: set[str] = set()
    columns = (golden.listener, golden.session, golden.item, golden.task, golden.rating)
    for listener, session, item, task, rating in zip(*(column.tolist() for column in columns), strict=True):
        right = panel.gold.get(item, {}).get(task)
        if right is None:
            others = [value for name, value in given.get((item, task), ()) if name != listener]
            if len(others) < LEAST_OTHERS:
                continue
            by_median.add(listener)
            right = [float(np.median(others))]
        slack = panel.points(task) if right[0] == right[-1] else 0.0
        own = trials.setdefault(listener, {})
        is_off = not right[0] - slack <= rating <= right[-1] + slack
        own[session, item] = own.get((session, item), False) or is_off
    return trials, by_median


def count_missed_controls(ratings: Ratings, scale: Scale, settings: Settings, gold: Gold) -> dict[str, int]:
    """Count the control trials of the sessions that count, and those of them that were missed; empty without any."""
    trials, _ = _control_trials(_panel(ratings, scale, settings, gold))
    counting = ratings.rows(ratings.excluded == "")
    kept = set(zip(counting.listener.tolist(), counting.session.tolist(), strict=True))
    looked_at = [
        is_off for name, own in trials.items() for (session, _), is_off in own.items() if (name, session) in kept
    ]
    return {"control_trials": len(looked_at), "controls_missed": sum(looked_at)} if looked_at else {}


def bridge_outlier(panel: ListenerPanel) -> Iterator[ScreeningFinding]:
    """Yield findings by BT.500 on the bridge set, all tasks together: over 5 % of ratings far off, on both sides.

    Of each item mean, standard deviation and kurtosis b over listeners; far off is 2 SD if 2 ≤ b ≤ 4, else √20 SD. With
    P ratings above and Q below of N: caught if (P + Q) / N > 0.05 and |P − Q| / (P + Q) < 0.3; who is off on one side
    only is strict or mild, not careless.
    """
    is_bridge = panel.ratings.purpose == BRIDGE
    bridge: Ratings = panel.ratings.rows(is_bridge & np.isin(panel.ratings.listener, panel.listeners))
    listener = np.searchsorted(panel.listeners, bridge.listener).astype(np.int64)
    _, item = np.unique(np.char.add(np.char.add(bridge.task, "\n"), bridge.item), return_inverse=True)
    above, below, rated = bt500_counts(item, listener, bridge.rating, bridge.excluded == "", panel.listeners.size)
    has_bridge = np.bincount(listener, minlength=panel.listeners.size) > 0
    for place, name in enumerate(panel.listeners.tolist()):
        outside = int(above[place] + below[place])
        if not rated[place]:
            few = f"No item of the bridge set has {LEAST_RATERS} listeners."
            why = few if has_bridge[place] else "No ratings of a bridge set."
            yield ScreeningFinding(name, "", np.nan, OUTLIER_SHARE, False, why)
            continue
        share = outside / int(rated[place])
        is_both = outside > 0 and abs(int(above[place] - below[place])) / outside < ONE_SIDED
        remark = f"One-sided: {above[place]} above and {below[place]} below the others."
        is_off = share > OUTLIER_SHARE
        yield ScreeningFinding(
            name, "", share, OUTLIER_SHARE, is_off and is_both, remark if is_off and not is_both else ""
        )


def vote_outliers(panel: ListenerPanel) -> Iterator[ScreeningFinding]:
    """Yield findings by P.808: ratings at |z| ≥ 3.29 among more than five of an item.

    The toolkit drops them; here, listeners with > 5 % are caught.

    z uses the standard deviation with n in the denominator, as the toolkit does, so that |z| is at most √(n − 1) and an
    item with fewer than twelve ratings has no outliers. Twenty ratings are asked for, so that one alone never catches.
    """
    for task in panel.scored.tasks:
        rated = select_rated(panel.scored, task)
        scores, votes = _z_scores(rated)
        is_judged = votes >= LEAST_VOTES
        judged = np.bincount(rated.listener[is_judged], minlength=panel.listeners.size)
        is_far = is_judged & (np.abs(scores) >= OUTLIER_Z)
        far = np.bincount(rated.listener[is_far], minlength=panel.listeners.size)
        most = int(votes.max(initial=0))
        for place in np.unique(rated.listener).tolist():
            name = str(panel.listeners[place])
            if most <= OUTLIER_Z**2 + 1:
                why = f"No item has more than {most} ratings, so |z| cannot reach {OUTLIER_Z}."
                yield ScreeningFinding(name, task, np.nan, OUTLIER_SHARE, False, why)
            elif judged[place] < LEAST_JUDGED:
                why = f"Fewer than {LEAST_JUDGED} ratings of items with more than {LEAST_VOTES - 1}."
                yield ScreeningFinding(name, task, np.nan, OUTLIER_SHARE, False, why)
            else:
                share = float(far[place] / judged[place])
                yield ScreeningFinding(name, task, share, OUTLIER_SHARE, share > OUTLIER_SHARE)


def bt500_counts(item: Ints, listener: Ints, rating: Floats, counts: Flags, listeners: int) -> tuple[Ints, Ints, Ints]:
    """Count for each listener how many ratings lie above, below, and how many were looked at.

    Args:
        item, listener, rating: shape (ratings,). counts: whether a rating enters mean, deviation and kurtosis.

    Returns:
        Shape (listeners,) each; items with fewer than `LEAST_RATERS` ratings that count are not looked at.
    """
    above, below, rated = (np.zeros(listeners, np.int64) for _ in range(3))
    for one in np.unique(item).tolist():
        own = item == one
        values = rating[own & counts]
        if values.size < LEAST_RATERS:
            continue
        rated += np.bincount(listener[own], minlength=listeners)
        deviation = values - values.mean()
        variance = float((deviation**2).mean())
        if variance == 0:
            continue
        kurtosis = float((deviation**4).mean()) / variance**2
        limit = (2.0 if 2 <= kurtosis <= 4 else np.sqrt(20)) * float(values.std(ddof=1))
        above += np.bincount(listener[own & (rating >= values.mean() + limit)], minlength=listeners)
        below += np.bincount(listener[own & (rating <= values.mean() - limit)], minlength=listeners)
    return above, below, rated


def _ratings_of_control_items(golden: Ratings) -> dict[tuple[str, str], list[tuple[str, float]]]:
    """Return by item and task who gave which rating, of those that count; the first of each listener."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in np.flatnonzero(golden.excluded == "").tolist():
        of_item = found.setdefault((str(golden.item[row]), str(golden.task[row])), {})
        of_item.setdefault(str(golden.listener[row]), float(golden.rating[row]))
    return {key: list(of_item.items()) for key, of_item in found.items()}


def _z_scores(rated: Rated) -> tuple[Floats, Ints]:
    """Return the distance of each rating from its item's mean in standard deviations, and of how many ratings.

    Those of the item that count, and the rating itself: one that does not count is added to them, so that the bound
    of |z| is the same for everybody.
    """
    items = int(rated.item.max()) + 1 if rated.item.size else 0
    item, value = rated.item[rated.counts], rated.score[rated.counts]
    votes = np.bincount(item, minlength=items)
    mean = np.bincount(item, value, items) / np.maximum(votes, 1)
    variance = np.bincount(item, (value - mean[item]) ** 2, items) / np.maximum(votes, 1)
    n, off, square = votes[rated.item].astype(np.float64), rated.score - mean[rated.item], variance[rated.item]
    added = ~rated.counts
    square = np.where(added, (n * square + off**2 * n / (n + 1)) / (n + 1), square)
    off, n = np.where(added, off * n / (n + 1), off), n + added
    scores = np.divide(off, np.sqrt(square), out=np.zeros(off.size), where=square > 0)
    return scores, n.astype(np.int64)


def _why_no_agreement(ratings: int, cells: int, *, is_told: bool) -> str:
    if is_told:
        return f"Fewer than {LEAST_LISTENERS} listeners can be compared."
    if ratings < LEAST_RATINGS:
        return f"Fewer than {LEAST_RATINGS} ratings."
    if cells < LEAST_CELLS:
        return f"Fewer than {LEAST_CELLS} systems that others rated too."
    return "All ratings of the listener, or all means of the others, are equal."


STANDING = "standing"


# By the names under which the data dictionary describes them.
RULES: Mapping[str, Callable[[ListenerPanel], Iterable[ScreeningFinding]]] = {
    "low-variance": low_variance,
    "disagrees": disagrees,
    "gold-missed": gold_missed,
    "bridge-outlier": bridge_outlier,
    "vote-outliers": vote_outliers,
}


def make_screening_table(
    ratings: Ratings,
    scale: Scale,
    settings: Settings,
    gold: Gold | None = None,
    comparing: frozenset[str] = COMPARING,
) -> DataTable:
    """Make ``screening``: every rule, then every listener, those who are left out too.

    Args:
        ratings: of every purpose.
        gold: lowest and highest right rating by control item and task, as ``{"item": {"naturalness": [9, 10]}}``.
        comparing: tasks in which voices are compared.
    """
    panel = _panel(ratings, scale, settings, gold or {}, comparing)
    sessions = _sessions(ratings)
    rows = [
        {"rule": rule, "session": sessions[found.listener], **asdict(found), "task": found.task or None}
        for rule, find in RULES.items()
        for found in sorted(find(panel), key=lambda one: one.listener)
    ]
    return make_table("screening", rows)


def read_right_answers(design: Mapping[str, Any]) -> Gold:
    """Return right ratings of control items from the facts of a design, where it tells them as ``gold``."""
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


def make_effect_tables(
    ratings: Ratings,
    scale: Scale,
    settings: Settings,
    kind: str,
    screening: DataTable,
    comparing: frozenset[str] = COMPARING,
) -> list[DataTable]:
    """Make ``exclusion_effect``: for all exclusions in force, and for each rule that would leave out more.

    Before and after of a rule: with the exclusions in force, and without whomever it catches as well.

    Args:
        kind: ``raw`` or ``normalised``.
        screening: as `make_screening_table` gives it.
        comparing: tasks in which voices are compared.
    """

    def points(of: Ratings, *, with_excluded: bool = False) -> dict[tuple[str, str], Point]:
        scored = score_ratings(of, scale, settings, kind, comparing=comparing, with_excluded=with_excluded)
        return estimate_points(scored)

    now = points(ratings)
    rows: list[Row] = []
    if (ratings.excluded != "").any():
        rows += _effect_rows(STANDING, points(ratings, with_excluded=True), now)
    counting = set(ratings.listener[ratings.excluded == ""].tolist())
    for rule in RULES:
        caught = {str(row["listener"]) for row in screening.records(rule=rule, is_caught=1)} & counting
        if caught:
            is_out = np.isin(ratings.listener, sorted(caught)) & (ratings.excluded == "")
            without = replace(ratings, excluded=np.where(is_out, rule, ratings.excluded))
            rows += _effect_rows(rule, now, points(without))
    return [make_table("exclusion_effect", rows)]


def _panel(
    ratings: Ratings, scale: Scale, settings: Settings, gold: Gold, comparing: frozenset[str] = COMPARING
) -> ListenerPanel:
    counting = score_ratings(ratings, scale, settings, RAW, comparing=comparing)
    every = score_ratings(ratings, scale, settings, RAW, comparing=comparing, with_excluded=True)
    everyone: Scored = add_left_out(counting, every)
    stands = (ratings.excluded == "") | ~np.isin(ratings.listener, counting.listeners)
    return ListenerPanel(everyone, ratings.rows(stands & (ratings.purpose != PRACTICE)), scale, gold)


def _sessions(ratings: Ratings) -> dict[str, str]:
    """Return the sessions of each listener in the order of the rows, by blanks."""
    found: dict[str, dict[str, None]] = {}
    for listener, session in zip(ratings.listener.tolist(), ratings.session.tolist(), strict=True):
        found.setdefault(listener, {})[session] = None
    return {listener: " ".join(sessions) for listener, sessions in found.items()}


def _effect_rows(
    rule: str, before: Mapping[tuple[str, str], Point], after: Mapping[tuple[str, str], Point]
) -> list[Row]:
    """Return rows with the numbers before and after; a system that nobody is left to rate has empty cells after."""
    rows = []
    for (task, system), point in before.items():
        row = {"rule": rule, "task": task, "system": system, "listeners_after": 0, "n_after": 0}
        for when, one in (("before", point), ("after", after.get((task, system)))):
            if one is not None:
                row |= {f"{name}_{when}": value for name, value in asdict(one).items()}
        rows.append(row)
    return rows
