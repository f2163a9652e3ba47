"""A leaderboard as data: a dictionary for JSON and the API, rows for CSV, LaTeX tables with the digits of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from common.latex import latex_document
from common.tables import Cell, Column, Group, Row, Table
from evaluation.metrics.catalogue import find_metric
from evaluation.protocols.ranking.entries import LeaderboardEntry, MeasuredValue, RankingRow, RankingTable
from evaluation.protocols.ranking.policy import condition_in_words, policy_as_dict
from portal.leaderboard.changes import list_published_changes
from portal.leaderboard.selectors import Leaderboard
from portal.leaderboard.tables import (
    letters_of,
    list_doubts,
    measured_of,
    place_in_words,
    round_average,
)

COLUMNS = (
    *("minimum_eer", "below_eer", "ranked_by", "place", "rank", "group"),
    *("system", "label", "team", "kind", "late", "reported", "doubts"),
)


def leaderboard_as_dict(leaderboard: Leaderboard) -> dict[str, Any]:
    """Return all of a leaderboard: its times, policy, rankings, and the systems that are in none of them."""
    edition = leaderboard.edition
    return {
        "edition": edition.name,
        "title": edition.title,
        "protocol": edition.protocol_name,
        "published_at": _time(edition.published_at),
        "changes": [asdict(one) | {"at": _time(one.at)} for one in list_published_changes(edition)],
        "as_of": _time(leaderboard.as_of),
        "measured_at": _time(leaderboard.measured_at),
        "policy": policy_as_dict(leaderboard.policy),
        "averages": [
            {
                "metric": column.key,
                "estimator": column.estimator,
                "label": column.metric.label,
                "unit": column.metric.unit,
                "better": str(column.metric.direction),
            }
            for column in leaderboard.columns
        ],
        **_standings_as_dict(leaderboard),
    }


def _standings_as_dict(leaderboard: Leaderboard) -> dict[str, list[dict[str, Any]]]:
    """Return each system in each ranking, and those that are in none."""
    return {
        "rankings": [_table_as_dict(leaderboard, table) for table in leaderboard.table.tables],
        "unrankable": [
            _entry_as_dict(leaderboard, one.entry) | {"reasons": list(map(asdict, one.reasons))}
            for one in leaderboard.table.unrankable
        ],
        "outside": [_entry_as_dict(leaderboard, entry) for entry in leaderboard.table.outside],
    }


def leaderboard_rows(leaderboard: Leaderboard) -> Iterator[tuple[Any, ...]]:
    """Yield a header, then each system in each ranking, then those that are in none."""
    found, columns = _standings_as_dict(leaderboard), [one.key for one in leaderboard.columns]
    yield (*COLUMNS, *(f"{key}{end}" for key in columns for end in ("", "_low", "_high")), "reasons")
    for table in found["rankings"]:
        condition = (table["condition"]["minimum_eer"], table["condition"]["below_eer"], table["ranked_by"]["metric"])
        for row in table["rows"]:
            yield (*condition, row["place"], *_cells(row, columns))
    outside = [row for row in found["outside"] if row["kind"] != "original" or not found["rankings"]]
    for place, rows in (("unrankable", found["unrankable"]), ("outside", outside)):
        yield from ((None, None, "", place, *_cells(row, columns)) for row in rows)


def _cells(row: Mapping[str, Any], columns: Iterable[str]) -> tuple[Any, ...]:
    """Return a row of `_standings_as_dict` behind its place."""
    named = (row["system"], row["label"], row["team"], row["kind"])
    said = ("yes" if row["is_late"] else "no", "yes" if row["is_reported"] else "no", "; ".join(row["doubts"]))
    numbers = (row["averages"].get(key, {}).get(end) for key in columns for end in ("value", "low", "high"))
    reasons = " ".join(one["text"] for one in (*row.get("reasons", ()), *row.get("notes", ())))
    return (row.get("rank"), letters_of(row.get("groups", ())), *named, *said, *numbers, reasons)


def leaderboard_as_latex(leaderboard: Leaderboard) -> str:
    """Return a booktabs table for each ranking that has a competitor."""
    edition, policy = leaderboard.edition, leaderboard.policy
    day = f" Numbers of {leaderboard.measured_at:%Y-%m-%d}." if leaderboard.measured_at else ""
    attack = f"EERs of {policy.attack_model} attacks; beneath numbers their 95 % intervals."
    synthetic = " Synthetic speech." if edition.corpus and edition.corpus.is_synthetic else ""
    tables = []
    for ranking in leaderboard.table.tables:
        if ranking.competitors:
            title = condition_in_words(ranking.minimum, ranking.upper, policy)
            utility = find_metric(ranking.utility.metric, ranking.utility.estimator).label
            caption = f"{edition.title}, {policy.split} set: {title}, by {utility}. {attack}{day}{synthetic}"
            label = f"tab:{edition.name}-{ranking.minimum:g}-{ranking.utility.metric}"
            tables.append((_printed(leaderboard, ranking), caption, label))
    return latex_document(f"{edition.title}: leaderboard", tables)


def _printed(leaderboard: Leaderboard, ranking: RankingTable) -> Table:
    """Return a ranking as it is printed."""
    columns = [Column("rank", "Rank", kind="rank"), Column("system", "System")]
    columns += [Column(average.key, average.heading, kind="num") for average in leaderboard.averages]
    rows = []
    for row in ranking.rows:
        late = ("late",) if row.entry.is_late else ()
        name = Cell(row.entry.label, marks=(*late, *list_doubts(leaderboard, row.entry)))
        numbers = (_printed_number(measured_of(row.entry, one), one.metric.unit) for one in leaderboard.averages)
        rows.append(Row((Cell(place_in_words(row)), name, *numbers)))
    return Table(tuple(columns), (Group(tuple(rows)),), ranking.utility.metric)


def _printed_number(measured: MeasuredValue | None, unit: str) -> Cell:
    if measured is None:
        return Cell()
    text, around = round_average(measured, unit)
    return Cell(text, around, marks=("reported by the team",) if measured.is_reported else ())


def _table_as_dict(leaderboard: Leaderboard, table: RankingTable) -> dict[str, Any]:
    nearest, utility = table.nearest, table.utility
    text = condition_in_words(table.minimum, table.upper, leaderboard.policy)
    condition = {"number": table.number, "minimum_eer": table.minimum, "below_eer": table.upper, "text": text}
    return {
        "condition": condition,
        "ranked_by": {"metric": utility.metric, "estimator": utility.estimator, "better": utility.better},
        "rows": [_row_as_dict(leaderboard, row) for row in table.rows],
        "groups": [list(keys) for keys in table.groups],
        "nearest": {"system": nearest.entry.key, "distance": nearest.distance} if nearest else None,
        "just_missed": [{"system": miss.entry.key, "distance": miss.distance} for miss in table.just_missed],
    }


def _row_as_dict(leaderboard: Leaderboard, row: RankingRow) -> dict[str, Any]:
    return {
        "place": row.place.value,
        "rank": row.rank,
        **_entry_as_dict(leaderboard, row.entry),
        "groups": list(row.groups),
        "reasons": list(map(asdict, row.reasons)),
        "notes": list(map(asdict, row.notes)),
    }


def _entry_as_dict(leaderboard: Leaderboard, entry: LeaderboardEntry) -> dict[str, Any]:
    return {
        "system": entry.key,
        "label": entry.label,
        "title": entry.title,
        "team": entry.team_name,
        "kind": entry.kind,
        "is_late": entry.is_late,
        "is_reported": entry.is_reported,
        "weak_attack": list(entry.weak_attack),
        "doubts": list(list_doubts(leaderboard, entry)),
        "averages": {
            column.key: asdict(measured) for column in leaderboard.columns if (measured := measured_of(entry, column))
        },
    }


def _time(at: Any) -> str | None:
    return at.isoformat() if at else None
