"""One row a listener and task: level, spread, bias, agreement with the others and with himself, and what rules say.

Listeners whom a standing rule leaves out have rows too, compared with those who count; so an organizer sees on one page
what a rule did and what it would do. Measures: `listener_measures`; repeats: `reliability`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from listening.analysis.contents import LISTENER
from listening.analysis.everybody import everybody
from listening.analysis.inputs import Ratings, Scored
from listening.analysis.listener_measures import agreement, deviations, rated_of
from listening.analysis.reliability import bridge_of, given_of, repeats_of
from listening.analysis.settings import Settings
from listening.analysis.tables import Table

_Row = dict[str, Any]


def listener_tables(
    all_ratings: Ratings,
    scored: Scored,
    scored_with_excluded: Scored,
    settings: Settings,  # noqa: ARG001 - as every section
    screening: Table,
) -> list[Table]:
    """`contents.LISTENER`: by listener, then by task.

    Args:
        all_ratings: of every purpose, for repeats in the bridge set and for sessions that are left out.
        screening: as `screening.screening_table` gives it.
    """
    everyone = everybody(scored, scored_with_excluded)
    reasons = _reasons(all_ratings)
    caught = _caught(screening)
    rows: list[_Row] = []
    for task in everyone.tasks:
        rows += _rows_of_task(task, everyone, all_ratings)
    rows.sort(key=lambda row: row["listener"])
    for row in rows:
        name = row["listener"]
        row["excluded"] = reasons.get(name, "")
        row["caught"] = ", ".join(rule for rule, task in caught.get(name, ()) if task in (None, row["task"]))
    return [LISTENER.table(rows)]


def _rows_of_task(task: str, everyone: Scored, all_ratings: Ratings) -> list[_Row]:
    rated = rated_of(everyone, task)
    correlation, _ = agreement(rated)
    deviating = deviations(rated)
    repeated = _repeated(task, everyone, all_ratings)
    rows = []
    for listener in np.unique(rated.listener).tolist():
        scores = rated.score[rated.listener == listener]
        row = {
            "listener": str(everyone.listeners[listener]), "task": task, "n": scores.size, "mean": scores.mean(),
            "sd": scores.std(ddof=1) if scores.size > 1 else None,
            "bias": deviating.bias[listener], "inconsistency": deviating.inconsistency[listener],
            "correlation": correlation[listener],
        }  # fmt: skip
        rows.append(row | repeated.get(listener, {"repeats": 0}))
    return rows


def _repeated(task: str, everyone: Scored, all_ratings: Ratings) -> dict[int, _Row]:
    """Cells about items that a listener rated more than once, those of the bridge set among them."""
    out = ~np.isin(everyone.listeners, everyone.listeners[everyone.listener[everyone.ratings.excluded == ""]])
    is_of_one_out = np.isin(all_ratings.listener, everyone.listeners[out])
    told_about = replace(all_ratings, excluded=np.where(is_of_one_out, "", all_ratings.excluded))
    repeats = repeats_of(given_of(everyone, task), bridge_of(told_about, everyone, task))
    found = {}
    for listener in np.unique(repeats.listener).tolist():
        own = repeats.listener == listener
        found[listener] = {
            "repeats": int(own.sum()),
            "repeat_difference": repeats.score_difference[own].mean(),
            "repeat_within_one": (repeats.rating_difference[own] <= 1).mean(),
        }
    return found


def _reasons(ratings: Ratings) -> dict[str, str]:
    """Why sessions of a listener are left out, by listener; how many of them where others count."""
    found: dict[str, str] = {}
    for name in np.unique(ratings.listener[ratings.excluded != ""]).tolist():
        own = ratings.listener == name
        why = dict(zip(ratings.session[own].tolist(), ratings.excluded[own].tolist(), strict=True))
        told = "; ".join(dict.fromkeys(reason for reason in why.values() if reason))
        out = sum(bool(reason) for reason in why.values())
        found[name] = told if out == len(why) else f"{out} of {len(why)} sessions: {told}"
    return found


def _caught(screening: Table) -> dict[str, list[tuple[str, str | None]]]:
    """By listener the rules that would leave them out, each with its task, None where it looks at all tasks."""
    found: dict[str, list[tuple[str, str | None]]] = {}
    for row in screening.records(is_caught=1):
        task = str(row["task"]) if row["task"] else None
        found.setdefault(str(row["listener"]), []).append((str(row["rule"]), task))
    return found
