"""What the results page shows of each question whose answers are comparisons or choices: sentences, figures, tables.

The sentences say which condition is best, and which pairs of conditions differ significantly: by their p-values, which
are corrected over all pairs of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.text import capfirst

from common.tables import Row, Table, Value
from common.wording import counted
from listening.analysis.answers.choices import AVERAGE_RECALL, CHANCE_OF_ABX, D_PRIME, GIVEN, RECALL, RIGHT
from listening.analysis.answers.pairs import FIRST_HEARD, MEAN_AGAINST_ALL, MEAN_RATING, STRENGTH, TIES, WINS
from listening.analysis.answers.scales import DIFFERENCE, MEAN
from listening.analysis.reading.inputs import ORIGINAL
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

SHARES = frozenset({WINS, TIES, FIRST_HEARD, RIGHT, RECALL, AVERAGE_RECALL, GIVEN})  # measures that read in percent
OF_LABELS = frozenset({RECALL, GIVEN})
OF_PAIRS = (WINS, MEAN_RATING, DIFFERENCE, RIGHT)
OPEN = frozenset({MEAN, STRENGTH, MEAN_AGAINST_ALL, *OF_PAIRS, D_PRIME, AVERAGE_RECALL, GIVEN})  # tables without a fold
MOST_NAMED = 3  # pairs that do not differ; of more only the number is said
DIGITS = 2
UNTESTED = "whether this is chance was not tested"


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
        "sentences": [sentence for sentence in _say_estimates(shape, question, estimates) if sentence],
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


# Sentences -----------------------------------------------------------------------------------------


def _say_estimates(
    shape: Shape, question: AskedQuestion | None, estimates: Mapping[str, Sequence[Record]]
) -> Iterator[str]:
    """Yield what the estimates of a question, by measure, say; some sentences are empty."""
    if RIGHT in estimates:
        yield _say_discrimination(shape, estimates[RIGHT][-1], estimates[D_PRIME][-1])  # of all pairs, the last
    if MEAN in estimates:
        yield _say_best(shape, estimates[MEAN], question.said_of_best if question else "has the highest mean")
    if STRENGTH in estimates:
        yield _say_best(shape, estimates[STRENGTH], "was preferred most often")
    elif WINS in estimates:
        yield _say_preference(shape, estimates[WINS][0])
    if len(estimates.get(MEAN_RATING, ())) == 1:
        yield _say_comparison(shape, estimates[MEAN_RATING][0])
    elif MEAN_AGAINST_ALL in estimates:
        yield _say_best(shape, estimates[MEAN_AGAINST_ALL], "was rated best against all others")
    for measure in OF_PAIRS:
        pairs = [row for row in estimates.get(measure, ()) if row["against"]]
        if not shape.few and (len(pairs) > 1 or (pairs and measure == DIFFERENCE)):
            yield _say_pairs(shape, pairs)
    if TIES in estimates:
        yield f"Neither was preferred in {_write(shape, estimates[TIES][0])} of comparisons; these count half for each."
    for row in estimates.get(FIRST_HEARD, ()):
        if row["p"] is not None and _is_significant(shape, row["p"]):
            yield f"What was heard first won {_write(shape, row)} of comparisons: the order had an influence."
    if AVERAGE_RECALL in estimates:
        of_all = min(estimates[AVERAGE_RECALL], key=lambda row: str(row["condition"] or ""))
        yield f"The unweighted average recall of the labels is {_write(shape, of_all)}."
    if GIVEN in estimates:
        yield _say_labels(estimates[GIVEN])


def _say_best(shape: Shape, rows: Sequence[Record], verb: str) -> str:
    """Return which condition has the highest value; of means the original stands beside the others, as a reference."""
    known = sorted((row for row in rows if row["value"] is not None), key=lambda row: -float(row["value"] or 0))
    original = [row for row in known if row["condition"] == ORIGINAL and row["measure"] == MEAN]
    compared = [row for row in known if row not in original]
    if not compared or (shape.few and len(compared) > 1):
        return ""
    best, beside = compared[0], f"; the original: {_write(shape, original[0])}" if original else ""
    number = "" if best["measure"] == STRENGTH else f": {_write(shape, best)}{beside}"
    if len(compared) == 1:
        return f"{best['condition']}: {best['measure']} {_write(shape, best)}{beside}."
    others = f"Of {len(compared)} conditions{' beside the original' if original else ''}"
    return f"{others}, {best['condition']} {verb}{number}."


def _say_preference(shape: Shape, pair: Record) -> str:
    better, other, turned = _turn(pair, 0.5, lambda share: 1 - share)
    verdict = _judge(shape, pair, "no significant preference")
    return f"{better} was preferred to {other} in {_write(shape, turned)} of comparisons{verdict}."


def _say_comparison(shape: Shape, pair: Record) -> str:
    better, other, turned = _turn(pair, 0.0, lambda rating: -rating)
    verdict = _judge(shape, pair, "no significant difference")
    return f"{better} was rated {_write(shape, turned)} better than {other}{verdict}."


def _say_discrimination(shape: Shape, share: Record, d_prime: Record) -> str:
    otherwise = "not significantly above guessing"
    verdict = _judge(shape, share, otherwise) if share["against"] else ""
    if verdict and (as_number(share["value"]) or 0) < CHANCE_OF_ABX:
        verdict = f": {otherwise}"
    sensitivity = "" if d_prime["value"] is None else f"; d′ is {_write(shape, d_prime)}"
    return f"X was identified in {_write(shape, share)} of trials, guessing 50 %{verdict}{sensitivity}."


def _say_pairs(shape: Shape, pairs: Sequence[Record]) -> str:
    """Return how many pairs of conditions differ significantly, and which do not."""
    tested = [row for row in pairs if row["adjusted"] is not None]
    alike = [f"{row['condition']} – {row['against']}" for row in tested if not _is_significant(shape, row["adjusted"])]
    if not tested:
        return "Whether conditions differ significantly was not tested."
    if len(tested) == 1:
        return f"Their difference is {'not ' if alike else ''}significant."
    if not alike:
        return f"All {len(tested)} pairs of conditions differ significantly."
    if len(alike) == len(tested):
        return f"None of the {len(tested)} pairs of conditions differs significantly."
    names = f"; not {', '.join(alike)}" if len(alike) <= MOST_NAMED else ""
    apart = len(tested) - len(alike)
    differ = "differs" if apart == 1 else "differ"
    return f"{apart} of {counted(len(tested), 'pair')} of conditions {differ} significantly{names}."


def _say_labels(rows: Sequence[Record]) -> str:
    """Return the most frequent label of each condition, or those that are equally frequent."""
    of_condition = []
    for name in sorted({str(row["condition"]) for row in rows}):
        shares = {str(row["against"]): as_number(row["value"]) or 0 for row in rows if str(row["condition"]) == name}
        most = max(shares.values())
        chosen = " or ".join(label for label, share in shares.items() if share == most)
        of_condition.append(f"{chosen} ({labels.percent(most, 0)}) of {name}")
    return f"Chosen most often: {labels.listed(of_condition)}."


def _turn(pair: Record, alike: float, turn: Callable[[float], float]) -> tuple[Any, Any, Record]:
    """Return the better condition of a pair, the other one, and the row as of the better against the other."""
    if (as_number(pair["value"]) or 0) >= alike:
        return pair["condition"], pair["against"], pair
    ends = {"value": "value", "value_low": "value_high", "value_high": "value_low"}
    turned = {name: None if (end := as_number(pair[of])) is None else turn(end) for name, of in ends.items()}
    return pair["against"], pair["condition"], {**pair, **turned}


def _judge(shape: Shape, pair: Record, otherwise: str) -> str:
    """Return whether a pair differs significantly, as the end of a sentence."""
    adjusted = as_number(pair["adjusted"])
    if adjusted is None or shape.few:
        return f"; {UNTESTED}"
    p = labels.p_value(adjusted)
    verdict = "significant" if _is_significant(shape, adjusted) else otherwise
    return f": {verdict}, p {'' if p.startswith('<') else '= '}{p}"


def _is_significant(shape: Shape, p: Value) -> bool:
    return float(p or 0) < round(1 - shape.results.level, 10)


def _write(shape: Shape, row: Record) -> str:
    """Return a value with its interval, such as ``71 % (95 % interval 60 to 80)``."""
    value, low, high = (as_number(row[name]) for name in ("value", "value_low", "value_high"))
    if value is None:
        return labels.MISSING
    text, span = labels.rounded(value, low, high, DIGITS, is_share=row["measure"] in SHARES)
    return f"{text} ({100 * shape.results.level:g}\u00a0% interval {span})" if span else text
