"""What the results page shows of each question whose answers are comparisons or choices: sentences, figures, tables.

The sentences say which condition is best, and which pairs of conditions differ significantly: by their p-values, which
are corrected over all pairs of the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.text import capfirst

from common.tables import Row, Table, Value
from listening.analysis.answers.choices import AVERAGE_RECALL, CHANCE_OF_ABX, D_PRIME, GIVEN, RECALL, RIGHT
from listening.analysis.answers.pairs import FIRST_HEARD, MEAN_AGAINST_ALL, MEAN_RATING, STRENGTH, TIES, WINS
from listening.analysis.answers.scales import DIFFERENCE, MEAN
from listening.analysis.tables import CONTENTS
from listening.app.results import labels
from listening.app.results.figures import ShownFigure
from listening.app.results.tables import (
    Record,
    Shape,
    as_number,
    make_cell,
    make_table,
    place_column,
    shown_table,
    table_columns,
)
from listening.questions import AskedQuestion
from listening.stimuli.anchors import ANCHORS_HZ, name_anchor

SHARES = frozenset({WINS, TIES, FIRST_HEARD, RIGHT, RECALL, AVERAGE_RECALL, GIVEN})  # measures that read in percent
OF_LABELS = frozenset({RECALL, GIVEN})
OF_PAIRS = (WINS, MEAN_RATING, DIFFERENCE, RIGHT)
OPEN = frozenset({MEAN, STRENGTH, MEAN_AGAINST_ALL, *OF_PAIRS, D_PRIME, AVERAGE_RECALL, GIVEN})  # tables without a fold
ANCHORS = frozenset(map(name_anchor, ANCHORS_HZ))
DIGITS = 2


def list_answered(shape: Shape, figures: Sequence[ShownFigure]) -> list[dict[str, Any]]:
    """Return the questions that have estimates, in the order of asking."""
    names = dict.fromkeys(str(row["question"]) for row in shape.records("estimates", scores="common"))
    in_order = [*(name for name in shape.results.questions if name in names), *names]
    return [_describe_question(shape, name, figures) for name in dict.fromkeys(in_order)]


def _describe_question(shape: Shape, name: str, figures: Sequence[ShownFigure]) -> dict[str, Any]:
    question = shape.results.questions.get(name)
    estimates: dict[str, list[Record]] = {}
    for row in shape.records("estimates", scores="common", question=name):
        estimates.setdefault(str(row["measure"]), []).append(row)
    title = question.title if question else name
    further = [row for measure, rows in estimates.items() if measure not in OPEN for row in rows]
    confusion = shape.records("confusion", scores="common", question=name)
    tables = [
        *(_make_table(shape, title, rows) for measure, rows in estimates.items() if measure in OPEN),
        shown_table(
            "confusion", title, shape.without("question"), confusion, csv=shape.reader.csv("common", "confusion")
        ),
    ]
    screening = shape.records("screening", scores="common", task=name) if shape.reader.sees_listeners else []
    return {
        "name": name,
        "title": title,
        "question": question.question if question else "",
        "reading": question.results.get("reading", "") if question else "",
        "said": read_answers(shape, question, estimates),
        "figures": [figure for figure in figures if figure["task"] == name and figure["place"] == "answers"],
        "tables": [table for table in tables if table],
        "further": _make_table(shape, title, further) if further else None,
        "caught": len({row["listener"] for row in screening if row["is_caught"]}),
        "screened": len({row["listener"] for row in screening}),
    }


def _make_table(shape: Shape, caption: str, rows: Sequence[Record]) -> Table:
    """Return the estimates of a measure, those of conditions with the highest first, or of further measures."""
    content, measure = CONTENTS["estimates"], str(rows[0]["measure"])
    shape, heading = shape.without("question", "p"), "Further numbers"
    if measure in OPEN:
        shape, heading = shape.without("measure"), measure if measure == D_PRIME else capfirst(measure)
    if not any(row["against"] for row in rows):
        rows = sorted(rows, key=lambda row: (str(row["measure"]), -(as_number(row["value"]) or 0)))
    if measure in OF_LABELS:
        shape = replace(shape, titles={"against": "Label"})
    columns = [
        replace(column, is_share=True, digits=labels.PERCENT_DIGITS)
        if column.key == "value" and measure in SHARES
        else column
        for column in sorted(table_columns(content, rows, shape), key=place_column)
    ]
    rows = [{**row, "condition": row["condition"] or "all"} for row in rows]
    if any(row["value_low"] is not None for row in rows):
        caption += f"; beneath a number its {100 * shape.results.level:g}\u00a0% interval"
    cells = [Row(tuple(make_cell(column, row, shape) for column in columns)) for row in rows]
    csv = shape.reader.csv("common", content.name)
    return make_table(heading, caption, columns, cells, note=content.note, csv=csv)


# What its sentences say ----------------------------------------------------------------------------


def read_answers(
    shape: Shape, question: AskedQuestion | None, estimates: Mapping[str, Sequence[Record]]
) -> dict[str, Any]:
    """Return what the estimates of a question, by measure, say, for ``_answer_sentences.html``."""
    wins, ratings, shares_right = (estimates.get(measure, ()) for measure in (WINS, MEAN_RATING, RIGHT))
    verbs = {MEAN: question.said_of_best if question else "has the highest mean", STRENGTH: "was preferred most often"}
    if len(ratings) != 1:
        verbs[MEAN_AGAINST_ALL] = "was rated best against all others"
    return {
        "right": _read_discrimination(shape, shares_right[-1], estimates[D_PRIME][-1]) if shares_right else None,
        "best": [best for one, verb in verbs.items() if (best := _find_best(shape, estimates.get(one, ()), verb))],
        "preferred": _judge(shape, _turn(wins[0], 0.5, 1)) if len(wins) == 1 else None,
        "rated": _judge(shape, _turn(ratings[0], 0.0, 0)) if len(ratings) == 1 else None,
        "pairs": [pairs for one in OF_PAIRS if (pairs := _read_pairs(shape, one, estimates.get(one, ())))],
        "ties": _write(shape, estimates[TIES][0]) if TIES in estimates else "",
        "first_heard": [
            _write(shape, row)
            for row in estimates.get(FIRST_HEARD, ())
            if row["p"] is not None and _is_significant(shape, row["p"])
        ],
        "recall": _write(shape, min(estimates[AVERAGE_RECALL], key=lambda row: str(row["condition"] or "")))
        if AVERAGE_RECALL in estimates
        else "",
        "chosen": _find_chosen(estimates.get(GIVEN, ())),
    }


def _find_best(shape: Shape, rows: Sequence[Record], verb: str) -> dict[str, Any] | None:
    """Return which condition has the highest value; of means the original stands beside the others, as a reference.

    Anchors are made to be worse, so none is the best.
    """
    known = sorted((row for row in rows if row["value"] is not None), key=lambda row: -float(row["value"] or 0))
    original = [row for row in known if row["condition"] == shape.results.original and row["measure"] == MEAN]
    compared = [row for row in known if row not in original and row["condition"] not in ANCHORS]
    if not compared or (shape.few and len(compared) > 1):
        return None
    best = compared[0]
    is_bare = len(compared) > 1 and best["measure"] == STRENGTH
    number = "" if is_bare else _write(shape, best)
    beside = _write(shape, original[0]) if original else ""
    told = {"name": best["condition"], "measure": best["measure"], "of": len(compared), "verb": verb}
    told["has_anchors"] = any(row["condition"] in ANCHORS for row in known)
    return told | {"number": number, "original": beside, "reference": labels.refer_to_original(shape.results)}


def _read_discrimination(shape: Shape, share: Record, d_prime: Record) -> dict[str, Any]:
    """Return how often X was identified, of all pairs; below chance it is never significant."""
    found = _judge(shape, share) | {"d_prime": "" if d_prime["value"] is None else _write(shape, d_prime)}
    is_above = (as_number(share["value"]) or 0) >= CHANCE_OF_ABX
    return found | {"is_judged": bool(share["against"]), "is_significant": found["is_significant"] and is_above}


def _read_pairs(shape: Shape, measure: str, rows: Sequence[Record]) -> dict[str, Any] | None:
    """Return how many pairs of conditions differ significantly, and which do not; None without any to compare."""
    pairs = [row for row in rows if row["against"]]
    if shape.few or not pairs or (len(pairs) == 1 and measure != DIFFERENCE):
        return None
    tested = [row for row in pairs if row["adjusted"] is not None]
    alike = [f"{row['condition']} – {row['against']}" for row in tested if not _is_significant(shape, row["adjusted"])]
    return {"tested": len(tested), "apart": len(tested) - len(alike), "alike": alike}


def _find_chosen(rows: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Return the most frequent label of each condition, or those that are equally frequent, and its share."""
    chosen = []
    for name in sorted({str(row["condition"]) for row in rows}):
        shares = {str(row["against"]): as_number(row["value"]) or 0 for row in rows if str(row["condition"]) == name}
        most = max(shares.values())
        names = " or ".join(label for label, share in shares.items() if share == most)
        chosen.append((names, labels.percent(most, 0), name))
    return chosen


def _turn(pair: Record, alike: float, whole: int) -> Record:
    """Return a pair with the better condition first: a share of `whole`, or with 0 a difference."""
    if (as_number(pair["value"]) or 0) >= alike:
        return pair
    ends = {"value": "value", "value_low": "value_high", "value_high": "value_low"}
    turned = {name: None if (end := as_number(pair[of])) is None else whole - end for name, of in ends.items()}
    return {**pair, **turned, "condition": pair["against"], "against": pair["condition"]}


def _judge(shape: Shape, pair: Record) -> dict[str, Any]:
    """Return a pair with its number and whether it differs significantly; without p where this was not tested."""
    adjusted = None if shape.few else as_number(pair["adjusted"])
    p = "" if adjusted is None else labels.p_value(adjusted)
    return {
        "condition": pair["condition"],
        "against": pair["against"],
        "number": _write(shape, pair),
        "is_judged": True,
        "is_significant": adjusted is not None and _is_significant(shape, adjusted),
        "p": p if p.startswith("<") or not p else f"= {p}",
    }


def _is_significant(shape: Shape, p: Value) -> bool:
    return float(p or 0) < round(1 - shape.results.level, 10)


def _write(shape: Shape, row: Record) -> str:
    """Return a value with its interval, such as ``71 % (95 % interval 60 to 80)``."""
    value, low, high = (as_number(row[name]) for name in ("value", "value_low", "value_high"))
    if value is None:
        return labels.MISSING
    text, span = labels.rounded(value, low, high, DIGITS, is_share=row["measure"] in SHARES)
    return f"{text} ({100 * shape.results.level:g}\u00a0% interval {span})" if span else text
