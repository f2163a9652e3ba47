"""What the results page of a system shows: its numbers beside the originals and the others, its curves, each comparison
it is part of; and for those who may hear it, its utterances, and where listeners and recogniser disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from common.tables import Cell, Column, Row, Table
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import BY_SCORES, CONTENTS, Results
from listening.app.results import labels, tables
from listening.app.results.figures import Reader, ShownFigure
from listening.app.results.labels import METHOD, SCORES, label_of
from listening.app.results.opening import compare_letters, read_basis
from listening.app.results.pages import find_decided_otherwise, tasks_of
from listening.app.results.tables import RatedSystem, Record, Shape, caption_of, shown_table

ENDS = {"naturalness": "Naturalness", "intelligibility": "Intelligibility"}
EXTREMES = 12  # utterances at either end
KINDS = {"target": "same speaker", "nontarget": "different speakers"}


def system_page(results: Results, reader: Reader, name: str, figures: Sequence[ShownFigure]) -> dict[str, Any] | None:
    """Return everything of a system that everybody sees; None where the study does not have it."""
    shape = Shape(reader, results)
    own = [one for one in figures if one["system"] == name]
    tasks = [made for task in tasks_of(results, reader.scores) if (made := _task(shape, task, name, own)) is not None]
    others = _own_tables(shape, name)
    if not tasks and not others:
        return None
    rest = [one for one in own if one["task"] not in {task["name"] for task in tasks}]
    label = label_of(name, shape.system_labels)
    said = {"label": label, "few": shape.few, "basis": read_basis(results, name)}
    return said | {"tasks": tasks, "others": others, "said": list(_say_others(shape, name)), "figures": rest}


def heard_page(
    shape: Shape, utterances: Sequence[Record], disagreements: Sequence[Record], heard: Mapping[str, str]
) -> dict[str, Any]:
    """Show single utterances to those who may hear them: worst and best of each score, and the disagreements.

    Args:
        utterances, disagreements: rows of the tables of these names, of one system.
        heard: by utterance the address of the page that plays it beside the original.
    """
    shape = replace(shape, hidden=frozenset({"system", "kind", "speaker"}), has_links=False)
    ends = []
    for column, title in ENDS.items():
        rated = [row for row in utterances if isinstance(row[column], (int, float))]
        known = sorted(rated, key=lambda row: float(row[column] or 0))
        half = min(EXTREMES, -(-len(known) // 2))
        for rows, words in ((known[:half], "rated lowest"), (known[half:][::-1][:EXTREMES], "rated highest")):
            if rows:
                what, other = f"{title}, {words}", shape.without(*(ENDS.keys() - {column}))
                ends.append((what, _heard_table(rows, "utterances", what, other, heard)))
    unlike = [
        (one["title"], one["lead"], _heard_table(rows, "disagreements", one["title"], shape, heard))
        for one in METHOD["disagreements"]
        if (rows := [row for row in disagreements if row["kind"] == one["kind"]])
    ]
    return {"disagreements": unlike, "utterances": ends}


# A task --------------------------------------------------------------------------------------------


def _task(shape: Shape, task: str, name: str, figures: Sequence[ShownFigure]) -> dict[str, Any] | None:
    """Return a system in a task."""
    systems = {one.name: one for one in tables.read_systems(shape, task)}
    own, original = systems.pop(name, None), systems.pop(ORIGINAL, None)
    if own is None:
        return None
    others = list(systems.values())
    return {
        "name": task,
        "words": shape.results.questions[task],
        "said": "" if shape.few else tables.in_words(tables.read_rate(shape, own, task, original)),
        **_compare(own, others, task, shape),
        "numbers": _numbers(own, original, others, task, shape),
        **_comparisons(shape, task, name),
        "figures": [figure for figure in figures if figure["task"] == task],
    }


def _compare(own: RatedSystem, others: Sequence[RatedSystem], task: str, shape: Shape) -> dict[str, Any]:
    """Return the number of a task, what it rests on, and which systems cannot be told from this one."""
    is_rate = shape.results.questions[task].compares_voices
    rows = [one.detection if is_rate else one.all for one in (own, *others)]
    column = tables.find_column(CONTENTS["detection" if is_rate else "summary"], "eer" if is_rate else "mean")
    counted = ("n_target", "n_nontarget") if is_rate else ("n",)
    return compare_letters(shape, rows[0], rows[1:]) | {
        "number": labels.number_and_span(rows[0], column)[0],
        "ratings": sum(int(rows[0].get(name) or 0) for name in counted),
    }


_OF_MEANS = (("mean", "all"), ("median", "all"), ("eer", ""), ("auc", ""), ("cllr", ""))
_OF_RATES = (("eer", ""), ("auc", ""), ("cllr", ""), ("mean", "target"), ("mean", "nontarget"))


_NUMBERS = (
    Column("number", "Number", "what is measured"),
    Column("own", "This system", "with its interval over listeners", kind="num"),
    Column("original", "Original speech", "the same of unprotected speech, where it is known", kind="num"),
    Column("others", "Other systems", "the lowest and the highest of them", kind="num"),
    Column("meaning", "What it is", "how it is computed", kind="text"),
)


def _numbers(
    own: RatedSystem, original: RatedSystem | None, others: Sequence[RatedSystem], task: str, shape: Shape
) -> Table:
    """Return the system beside the originals and what the other systems reach."""
    rows = []
    for name, kind in _OF_RATES if shape.results.questions[task].compares_voices else _OF_MEANS:
        column = tables.find_column(CONTENTS["summary"] if kind else CONTENTS["detection"], name)
        if own.row(kind).get(name) is None:
            continue
        known = [value for one in others if (value := tables.as_number(one.row(kind).get(name))) is not None]
        ends = dict.fromkeys(labels.number(end, column) for end in (min(known), max(known))) if known else ()
        words = f", {KINDS[kind]}" if kind in KINDS else ""
        cells = (
            Cell(f"{column.heading}{words}"),
            tables.number_cell(column, own.row(kind)),
            tables.number_cell(column, original.row(kind)) if original else Cell(),
            Cell(" to ".join(ends)),
            Cell(column.description[:1].upper() + column.description[1:]),
        )
        rows.append(Row(cells))
    return tables.make_table("Compared with other systems", caption_of(task, shape), _NUMBERS, rows)


def _comparisons(shape: Shape, task: str, name: str) -> dict[str, Any]:
    """Return each comparison of the system, turned so that it stands first; by rates in a task that is about one.

    Returns:
        the table, if any, and the pairs that differ significantly with one kind of scores only.
    """
    paths = ("eer_differences", "differences") if shape.results.questions[task].compares_voices else ("differences",)
    for path in paths:
        records = [
            _turned(row, name) for row in shape.records(path, task=task) if name in (row["first"], row["second"])
        ]
        if records:
            records.sort(key=lambda row: (row["second"] != ORIGINAL, str(row["second"])))
            of = replace(shape.without("task", "first"), titles={"second": "Other system"})
            what = "EER" if path == "eer_differences" else "score"
            caption = f"{caption_of(task, shape)}: {what} of this system less that of the other"
            csv = shape.reader.csv(shape.scores, path)
            table = shown_table(path, caption, of, records, title="Compared", csv=csv)
            return {"comparisons": table, **find_decided_otherwise(shape, task, path, records)}
    return {"comparisons": None}


def _turned(row: Record, name: str) -> Record:
    if row["first"] == name:
        return row
    turned = dict(row, first=row["second"], second=row["first"])
    pairs = ("difference", "difference"), ("rank_biserial", "rank_biserial")
    for key, opposite in (*pairs, ("difference_low", "difference_high"), ("difference_high", "difference_low")):
        if isinstance(value := row.get(opposite), (int, float)):
            turned[key] = -value
    return turned


# Other forms and single utterances -----------------------------------------------------------------


def _own_tables(shape: Shape, name: str) -> list[Table]:
    """Return its rows in the tables of boards and transcripts, beside the originals."""
    made = []
    for scores, path in ((shape.scores, "pair_detection"), ("common", "transcription")):
        records = [row for row in shape.records(path, scores=scores) if row["system"] in (name, ORIGINAL, "all")]
        if any(row["system"] == name for row in records):
            made.append(
                shown_table(path, shape.name_scores(scores), shape, records, csv=shape.reader.csv(scores, path))
            )
    return [one for one in made if one is not None]


def _say_others(shape: Shape, name: str) -> Iterator[str]:
    """Say its number in each of these tables, in a sentence."""
    for one in METHOD["own_numbers"]:
        column = tables.find_column(CONTENTS[one["table"]], one["column"])
        scores = shape.scores if CONTENTS[one["table"]] in BY_SCORES else "common"
        for row in shape.records(one["table"], scores=scores, system=name, **one["rows"]):
            if row[column.key] is not None:
                yield one["said"].format(", ".join(filter(None, labels.number_and_span(row, column))))


def _heard_table(rows: Sequence[Record], name: str, title: str, shape: Shape, heard: Mapping[str, str]) -> Table:
    """Make a table of utterances that lead to where they can be heard."""
    columns = sorted(tables.table_columns(CONTENTS[name], rows, shape), key=lambda one: one.key != "utterance")
    made = []
    for row in rows:
        first, *rest = (tables.make_cell(column, row, shape) for column in columns)
        made.append(Row((replace(first, link=heard.get(str(row["utterance"]), "")), *rest)))
    return tables.make_table(title, SCORES[shape.scores], columns, made)
