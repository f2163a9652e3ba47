"""The first table of each task: what a reader came for, one row a system, the sanity anchor first.

Systems stand in the order of their value, without a rank: which of them cannot be told apart is said by letters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from listening.analysis.contents import DETECTION, SUMMARY
from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Cell, Column, Content, Results
from listening.results.result_drawings import strip_html
from listening.results.result_tables import Head, Shape, ShownTable, reading_html, system_html
from listening.results.result_words import CHANCE, TASKS, label_of, number, rate_in_words, scores_in_words, span

ORDERS = {"asc": "ascending", "desc": "descending"}
RATES = (0.0, 0.7)  # what the strip of an error rate reaches over
Record = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class System:
    """The numbers of a system in a task: its rows of `summary` by kind, and of `detection`."""

    name: str
    summary: Mapping[str, Record]
    detection: Record

    @property
    def all(self) -> Record:
        return self.summary.get("all", {})


def systems_of(results: Results, scores: str, task: str) -> list[System]:
    """Every system of a task; the original, if it was rated, first."""
    by_system: dict[str, dict[str, Record]] = {}
    if summary := results.table(scores, "summary"):
        for row in summary.records(task=task):
            by_system.setdefault(str(row["system"]), {})[str(row["kind"])] = row
    detection = results.table(scores, "detection")
    rates = {str(row["system"]): row for row in detection.records(task=task)} if detection else {}
    names = sorted({**by_system, **rates}, key=lambda name: name != ORIGINAL)
    return [System(name, by_system.get(name, {}), rates.get(name, {})) for name in names]


def chosen_sorting(query: Mapping[str, str]) -> tuple[str, str]:
    """The column and the order that an address asks for; empty where it asks for none that exist."""
    sort, order = query.get("sort", ""), query.get("order", "")
    if sort not in KEYS or sort in UNSORTED:
        return "", ""
    return sort, order if order in ORDERS else KEYS[sort].natural


def headline(
    results: Results, scores: str, task: str, shape: Shape, sorting: tuple[str, str], csv: str = ""
) -> ShownTable | None:  # fmt: skip
    """The headline table of a task; None where nobody rated it.

    Args:
        sorting: of `chosen_sorting`.
    """
    systems = systems_of(results, scores, task)
    if not systems:
        return None
    main = _main(systems, task)
    original = next((one for one in systems if one.name == ORIGINAL), None)
    context = _Context(results, scores, task, shape, original, main)
    usual = [main, *(key for key in COLUMNS[main] if key != main)]
    keys = [key for key in ("system", *usual) if key in ALWAYS or context.has(key, systems)]
    sort, order = sorting
    heads = tuple(_head(KEYS[key], key, scores, sort, order, task) for key in keys)
    ordered = _ordered(systems, main, sort if sort in keys else "", order)
    rows = tuple(_row(one, keys, heads, context) for one in ordered)
    return ShownTable(f"{TASKS[task].title}: {SUMMARY.title.lower()}", _caption(context), heads, rows, csv=csv)


# Columns -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Key:
    """A column: what it is called and means, the number it sorts by, and its cell."""

    title: str
    meaning: str
    value: Callable[[System], Any]
    kind: str = "num"
    natural: str = "desc"


@dataclass(frozen=True, slots=True)
class _Context:
    results: Results
    scores: str
    task: str
    shape: Shape
    original: System | None
    main: str

    @property
    def scale(self) -> Sequence[float]:
        if self.scores == "normalised":
            return (0.0, 1.0)
        low, high = self.results.study["scale"].get(self.task, (1, 10))
        return (float(low), float(high))

    def has(self, key: str, systems: Sequence[System]) -> bool:
        return any(KEYS[key].value(one) not in (None, "") for one in systems)


def _of(content: Content, name: str) -> Column:
    return next(one for one in content.columns if one.name == name)


KEYS: Mapping[str, _Key] = {
    "system": _Key("System", "its name; unprotected speech first", lambda one: one.name, "", "asc"),
    "mean": _Key("Mean", "mean score with its interval", lambda one: one.all.get("mean")),
    "rate": _Key("EER", "equal error rate of listeners with its interval", lambda one: one.detection.get("eer")),
    "strip": _Key("Interval", "the same drawn: point and interval; the line is the reference", lambda _: None, "drawn"),
    "median": _Key("Median", "middle score", lambda one: one.all.get("median")),
    "auc": _Key("AUC", "area under the curve, less noisy than the EER; 0.5 is guessing", lambda one: one.detection.get("auc")),  # noqa: E501
    "same": _Key("Same speaker", "mean score of pairs of one speaker", lambda one: one.summary.get("target", {}).get("mean")),  # noqa: E501
    "different": _Key("Different", "mean score of pairs of two speakers", lambda one: one.summary.get("nontarget", {}).get("mean")),  # noqa: E501
    "group": _Key("Group", "systems that share a letter cannot be told apart", lambda one: one.all.get("group"), "", "asc"),  # noqa: E501
    "rate_group": _Key("Group", "systems that share a letter cannot be told apart", lambda one: one.detection.get("group"), "", "asc"),  # noqa: E501
    "n": _Key("Ratings", "ratings that count", lambda one: one.all.get("n")),
    "listeners": _Key("Listeners", "different listeners", lambda one: one.all.get("listeners") or one.detection.get("listeners")),  # noqa: E501
    "words": _Key("In words", "what the error rate says", lambda _: None, "text"),
}  # fmt: skip
# By the number that comes first: a mean, a rate, or where pairs of one kind only were rated the mean of these.
COLUMNS = {
    "mean": ("strip", "median", "rate", "group", "listeners", "n", "words"),
    "rate": ("strip", "auc", "same", "different", "rate_group", "listeners", "n", "words"),
    "same": ("strip", "different", "rate", "auc", "listeners", "n", "words"),
}
ALWAYS = frozenset({"system", "strip", "words"})
UNSORTED = frozenset({"strip", "words"})


def _main(systems: Sequence[System], task: str) -> str:
    """The number that a task is about, as far as its ratings give it."""
    if not TASKS[task].is_detection:
        return "mean"
    has_rates = any(one.detection.get("eer") is not None for one in systems if one.name != ORIGINAL)
    has_same = any("target" in one.summary for one in systems)
    return "rate" if has_rates or not has_same else "same"


def _head(key: _Key, name: str, scores: str, sort: str, order: str, task: str) -> Head:
    if name in UNSORTED:
        return Head(key.title, key.kind, key.meaning)
    order = order if order in ORDERS else key.natural
    opposite = "asc" if key.natural == "desc" else "desc"
    following = opposite if sort == name and order == key.natural else key.natural
    query = urlencode({"scores": scores, "sort": name, "order": following}) + f"#{task}"
    return Head(key.title, key.kind, key.meaning, query, key.natural, ORDERS[order] if sort == name else "")


def _ordered(systems: Sequence[System], usual: str, sort: str, order: str) -> list[System]:
    """By a column, rows without a value last; the original first unless the reader asked for an order."""
    key = KEYS[sort or usual]
    is_down = (order if sort and order in ORDERS else key.natural) == "desc"
    known = [one for one in systems if key.value(one) is not None]
    found = sorted(known, key=lambda one: key.value(one), reverse=is_down)
    found += [one for one in systems if key.value(one) is None]
    return found if sort else sorted(found, key=lambda one: one.name != ORIGINAL)


def _row(one: System, keys: Sequence[str], heads: Sequence[Head], context: _Context) -> SafeString:
    kind = ' data-place="reference"' if one.name == ORIGINAL else ""
    parts = [f"<tr{kind}>"]
    for key, head in zip(keys, heads, strict=True):
        value = KEYS[key].value(one)
        bare = label_of(one.name, context.shape.labels or {}).lower() if key == "system" else value
        sorts = "" if key in UNSORTED else f' data-value="{escape("" if bare is None else bare)}"'
        if key == "system":
            parts.append(f'<th scope="row"{sorts}>{_cell(key, one, context)}</th>')
        else:
            classes = {"group": "letters", "rate_group": "letters"}.get(key, head.kind)
            of = f' class="{classes}"' if classes else ""
            parts.append(f'<td{of} data-label="{escape(head.title)}"{sorts}>{_cell(key, one, context)}</td>')
    return mark_safe("".join([*parts, "</tr>"]))  # noqa: S308 - every text in it was escaped


def _cell(key: str, one: System, context: _Context) -> str:
    if key == "system":
        return system_html(one.name, context.shape)
    if key == "mean":
        return _reading(SUMMARY, "mean", one.all)
    if key == "rate":
        return _reading(DETECTION, "eer", one.detection)
    if key == "same" and context.main == "same":
        return _reading(SUMMARY, "mean", one.summary.get("target", {}))
    if key == "strip":
        return _strip(one, context)
    if key == "words":
        return escape(_words(one, context))
    value = KEYS[key].value(one)
    if key in ("group", "rate_group"):
        return escape(value or "")
    name = "mean" if key in ("same", "different") else key
    return escape(number(value, _of(DETECTION if key == "auc" else SUMMARY, name)))


def _reading(content: Content, name: str, row: Record) -> str:
    column = _of(content, name)
    return reading_html(number(row.get(name), column), span(row.get(f"{name}_low"), row.get(f"{name}_high"), column))


def _strip(one: System, context: _Context) -> str:
    if context.main == "rate":
        row: Record = one.detection
        return strip_html(_number(row, "eer"), _number(row, "eer_low"), _number(row, "eer_high"), RATES, CHANCE)
    kind = "target" if context.main == "same" else "all"
    row = one.summary.get(kind, {})
    reference = None if context.original is None else _number(context.original.summary.get(kind, {}), "mean")
    return strip_html(
        _number(row, "mean"), _number(row, "mean_low"), _number(row, "mean_high"), context.scale, reference
    )


def _words(one: System, context: _Context) -> str:
    row, task = one.detection, context.task
    if context.main == "same" and row.get("eer") is None:
        return ""
    if one.name == ORIGINAL and not TASKS[task].is_detection:
        return "Unprotected speech, the reference"
    return rate_in_words(
        task,
        is_original=one.name == ORIGINAL,
        rate=_number(row, "eer"),
        low=_number(row, "eer_low"),
        high=_number(row, "eer_high"),
    )


def _number(row: Record, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def _caption(context: _Context) -> str:
    scale = context.results.study["scale"].get(context.task)
    level = 100 * context.results.settings.get("level", 0.95)
    what = scores_in_words(context.scores, context.results.settings.get("normalisation", ""), scale)
    return f"{TASKS[context.task].title} from {what}. Beneath a number its {level:g} % interval over listeners."
