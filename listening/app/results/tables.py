"""Tables of an analysis as pages show them: columns by their contents, a number with its interval beneath.

The first table of each task is what a reader came for, one row a system, the sanity anchor first. Systems stand in the
order of their value, without a rank: letters say which of them do not differ significantly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.template.loader import render_to_string

from common.tables import Cell, Column, Group, Order, Row, Table, Value
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import CONTENTS, Results
from listening.app.results import labels
from listening.app.results.figures import Reader
from listening.app.results.labels import METHOD, SCORES, label_of
from listening.app.results.rules import warn_of_few

NAMES = frozenset({"system", "first", "second"})
PROSE = frozenset({"remark", "reference", "heard", "caught", "excluded"})
# What numbers rest on; it stands after them, so that a phone shows the numbers.
COUNTS = frozenset({"n", "n_target", "n_nontarget", "listeners", "utterances", "items", "words", "boards"})
LONG = 18  # rows; a longer table scrolls inside its region
TOO_FEW = "too few listeners"  # in place of a p-value; files keep it
Record = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Shape:
    """Results, and how the tables of a page show them.

    Attributes:
        hidden: columns that are not shown; so are those that are empty in every row.
        titles: headings in place of the usual ones.
        has_links: whether the names of systems lead to their pages.
    """

    reader: Reader
    results: Results
    hidden: frozenset[str] = frozenset()
    titles: Mapping[str, str] = field(default_factory=dict)
    has_links: bool = True

    @property
    def scores(self) -> str:
        return self.reader.scores

    @property
    def few(self) -> str:
        """Return that listeners are too few to compare systems; else empty."""
        return warn_of_few(self.results)

    @property
    def compared(self) -> str:
        """Return what is compared, in the plural."""
        return "conditions" if self.results.is_crossed else "systems"

    @property
    def system_labels(self) -> Mapping[str, str]:
        """Return what systems are called."""
        called: Mapping[str, str] = self.results.study["labels"]
        return called

    def without(self, *columns: str) -> Shape:
        """Return the same with further columns hidden."""
        return replace(self, hidden=self.hidden.union(columns))

    def name_scores(self, scores: str) -> str:
        """Return what a kind of scores is called here."""
        return labels.name_scores(scores, self.results.study["form"])

    def records(self, name: str, *, scores: str = "", **equal: Value) -> list[Record]:
        """Return the rows of a table of the reader's scores, or of other ones."""
        return list(self.results.records(scores or self.scores, name, **equal))


def caption_of(task: str, shape: Shape) -> str:
    """Return title and scores, such as ``Naturalness, raw ratings``."""
    return f"{shape.results.questions[task].title}, {SCORES[shape.scores].lower()}"


def shown_table(
    name: str, caption: str, shape: Shape, records: Sequence[Record], *, csv: str = "", title: str = ""
) -> Table | None:
    """Return rows of a table of this name; None where there are none."""
    if not records:
        return None
    content = CONTENTS[name]
    columns = sorted(table_columns(content, records, shape), key=place_column)
    rows = [Row(tuple(make_cell(one, row, shape) for one in columns)) for row in records]
    return make_table(title or content.title, caption, columns, rows, note=content.note, csv=csv)


def make_table(title: str, caption: str, columns: Iterable[Column], rows: Sequence[Row], **more: Any) -> Table:
    """Return a table of results by its title, which `name` keeps, and what it holds."""
    about: dict[str, Any] = {"title": f"{title}: {caption}" if caption else title, "caption": caption, "name": title}
    lead = title if title.endswith("?") else f"{title}."
    usual: dict[str, Any] = {"lead": f"{lead} ", "styles": "results-table", "is_tall": len(rows) > LONG}
    return Table(tuple(columns), (Group(tuple(rows)),), **about | usual | more)


def table_columns(content: Table, records: Sequence[Record], shape: Shape) -> list[Column]:
    """Return the columns that are shown, with their headings."""
    return [
        replace(one, heading=shape.titles.get(one.key, one.heading), kind=_kind(one, records))
        for one in content.columns
        if _is_shown(one, records, shape)
    ]


def make_cell(column: Column, row: Record, shape: Shape) -> Cell:
    """Return what a cell holds; a number with its interval beneath it."""
    value = row.get(column.key)
    if value is not None and rests_on_few(column, row, shape):
        return Cell(TOO_FEW)
    if value is None and column.key == "threshold":
        return Cell("no score")  # the end of a DET curve, where nothing is accepted
    if column.key in NAMES and shape.has_links:
        return system_cell(str(value), shape)
    if isinstance(value, str):
        questions = shape.results.questions if column.key in labels.OF_QUESTIONS else {}
        asked = questions.get(value)
        return Cell(asked.title if asked else labels.WORDS.get(column.key, {}).get(value, value))
    return number_cell(column, row)


def rests_on_few(column: Column, row: Record, shape: Shape) -> bool:
    """Return whether a cell is the p-value of a test that has too few listeners."""
    if column.key not in labels.P_COLUMNS or column.key in labels.P_OF_ENOUGH:
        return False
    listeners = as_number(row.get("listeners", shape.results.counts.get("listeners")))
    return listeners is not None and listeners < float(shape.results.settings.get("least_clusters") or 0)


def number_cell(column: Column, row: Record) -> Cell:
    """Return a number with its interval."""
    text, interval = labels.number_and_span(row, column)
    return Cell(text, interval, value=row.get(column.key))


def system_cell(name: str, shape: Shape) -> Cell:
    """Return the name of a system, leading to its page."""
    if several := labels.WORDS["system"].get(name):
        return Cell(several)
    return Cell(label_of(name, shape.system_labels), link=shape.reader.system(name))


def _is_shown(column: Column, records: Sequence[Record], shape: Shape) -> bool:
    base = column.key.removesuffix("_low").removesuffix("_high")
    is_limit = base != column.key and base in records[0]  # it stands beneath its number
    if column.key.endswith("adjusted") and all(rests_on_few(column, row, shape) for row in records):
        return False  # what is corrected says so
    return (
        not is_limit
        and column.key not in shape.hidden
        and any(row.get(column.key) not in (None, "") for row in records)
    )


def place_column(column: Column) -> int:
    """Return the place of a column: what is measured, then what it rests on, then words about it."""
    return 2 if column.key in PROSE else int(column.key in COUNTS)


def _kind(column: Column, records: Sequence[Record]) -> str:
    """Return the kind of a column: numbers stand to the right, and prose is for words."""
    if column.key in PROSE:
        return "text"
    is_word = column.key in labels.TRUTHS or any(isinstance(row.get(column.key), str) for row in records)
    return "" if is_word else "num"


# The first table of a task ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RatedSystem:
    """The numbers of a system in a task: its rows of `summary` by kind, and of `detection`."""

    name: str
    summary: Mapping[str, Record]
    detection: Record

    @property
    def all(self) -> Record:
        return self.summary.get("all", {})

    def row(self, kind: str) -> Record:
        """Return its row of `summary` for a kind of pairs, or with none of `detection`."""
        return self.summary.get(kind, {}) if kind else self.detection


def read_systems(shape: Shape, task: str) -> list[RatedSystem]:
    """Return every system of a task; the original, if it was rated, first."""
    by_system: dict[str, dict[str, Record]] = {}
    for row in shape.records("summary", task=task):
        by_system.setdefault(str(row["system"]), {})[str(row["kind"])] = row
    rates = {str(row["system"]): row for row in shape.records("detection", task=task)}
    names = sorted({**by_system, **rates}, key=lambda name: name != ORIGINAL)
    return [RatedSystem(name, by_system.get(name, {}), rates.get(name, {})) for name in names]


@dataclass(frozen=True, slots=True)
class _Key:
    """A column: what it is called and means, and where its number stands (`kind` as in `RatedSystem.row`).

    `style`: of its cells; `natural`: the order in which it sorts first, empty where it does not.
    """

    title: str
    meaning: str
    column: str = ""
    kind: str = "all"
    style: str = "num"
    natural: Order = "desc"

    def value(self, one: RatedSystem) -> Any:
        """Return what it sorts by."""
        if not self.column:
            return one.name if self.natural else None
        found = one.row(self.kind).get(self.column)
        return found or one.detection.get("listeners") if self.column == "listeners" else found

    @property
    def content(self) -> Column:
        return find_column(CONTENTS["summary"] if self.kind else CONTENTS["detection"], self.column)


KEYS: Mapping[str, _Key] = {name: _Key(**one) for name, one in METHOD["headline"].items()}
# By the number that comes first: a mean, a rate, or where pairs of one kind only were rated the mean of these.
COLUMNS = {
    "mean": ("median", "group", "listeners", "n", "words"),
    "rate": ("auc", "same", "different", "rate_group", "listeners", "n", "words"),
    "same": ("different", "rate", "auc", "listeners", "n", "words"),
}


def find_column(content: Table, name: str) -> Column:
    """Return a column of a content by its name."""
    return next(one for one in content.columns if one.key == name)


def chosen_sorting(query: Mapping[str, str]) -> tuple[str, Order]:
    """Return the column and the order that an address asks for; empty where it asks for none that exist."""
    sort, order = query.get("sort", ""), query.get("order", "")
    if sort not in KEYS or not KEYS[sort].natural:
        return "", ""
    return sort, "asc" if order == "asc" else "desc" if order == "desc" else KEYS[sort].natural


def headline(shape: Shape, task: str, sorting: tuple[str, Order]) -> Table | None:
    """Return the headline table of a task; None where nobody rated it.

    Args:
        sorting: of `chosen_sorting`.
    """
    scores = shape.scores
    systems = read_systems(shape, task)
    if not systems:
        return None
    main = _main(systems, compares_voices=shape.results.questions[task].compares_voices)
    always = ("system",) if shape.few else ("system", "words")
    keys = {
        name: KEYS[name]
        for name in dict.fromkeys(("system", main, *COLUMNS[main]))
        if name in always or any(KEYS[name].value(one) not in (None, "") for one in systems)
    }
    sort, order = sorting if sorting[0] in keys else ("", KEYS[main].natural)
    original = next((one for one in systems if one.name == ORIGINAL), None)
    columns = []
    for name, key in keys.items():
        column = Column(name, key.title, key.meaning, kind=key.style)
        columns.append(column.sortable(key.natural, sort, order, {"scores": scores}) if key.natural else column)
    usual = _ordered(systems, KEYS[main], KEYS[main].natural, is_chosen=False)  # in which ties stay
    rows = [
        Row(
            tuple(_headline_cell(name, one, task, shape, main, original) for name in keys),
            "reference" if one.name == ORIGINAL else "",
        )
        for one in (_ordered(usual, KEYS[sort], order, is_chosen=True) if sort else usual)
    ]
    settings = shape.results.settings
    what = labels.scores_in_words(scores, shape.results.study["scale"].get(task))
    level = f"{100 * shape.results.level:g}\u00a0%"
    low = f"{KEYS[main].column}_low"
    has_intervals = any(as_number(one.row(KEYS[main].kind).get(low)) is not None for one in systems)
    fewest = settings.get("least_clusters")
    why_none = f"no intervals, which need at least {fewest} listeners" if fewest else "no intervals"
    beneath = f"beneath a number its {level} interval" if has_intervals else why_none
    return make_table(
        f"{shape.results.questions[task].title}: {CONTENTS['summary'].title.lower()}",
        f"{shape.results.questions[task].title}: {what}; {beneath}.",
        columns,
        rows,
        csv=shape.reader.csv(scores, "detection" if main == "rate" else "summary"),  # with the letters shown
        lead="",
        note=shape.results.questions[task].reading,
        anchor=task,
        styles="results-table headline",
    )


def _main(systems: Sequence[RatedSystem], *, compares_voices: bool) -> str:
    """Return the number that a task is about, as far as its ratings give it."""
    if not compares_voices:
        return "mean"
    has_rates = any(one.detection.get("eer") is not None for one in systems if one.name != ORIGINAL)
    has_same = any("target" in one.summary for one in systems)
    return "rate" if has_rates or not has_same else "same"


def _ordered(systems: Sequence[RatedSystem], key: _Key, order: Order, *, is_chosen: bool) -> list[RatedSystem]:
    """Return systems by a column, those without a value last; the original first unless the reader chose the order."""
    known = [one for one in systems if key.value(one) is not None]
    found = sorted(known, key=lambda one: key.value(one), reverse=order == "desc")
    found += [one for one in systems if key.value(one) is None]
    return found if is_chosen else sorted(found, key=lambda one: one.name != ORIGINAL)


def _headline_cell(
    name: str, one: RatedSystem, task: str, shape: Shape, main: str, original: RatedSystem | None
) -> Cell:
    key = KEYS[name]
    if name == "system":
        return replace(system_cell(one.name, shape), value=label_of(one.name, shape.system_labels))
    if name == "words":
        return Cell(_words(shape, one, task, main, original))
    if key.style == "letters":
        return Cell(str(key.value(one) or ""), value=key.value(one))
    cell = number_cell(key.content, one.row(key.kind))
    if name in ("mean", "rate", main):
        return cell
    return Cell(cell.text or labels.number(key.value(one), key.content), value=key.value(one))


def _words(shape: Shape, one: RatedSystem, task: str, main: str, original: RatedSystem | None) -> str:
    if main == "same" and one.detection.get("eer") is None:
        return ""
    if one.name == ORIGINAL and not shape.results.questions[task].compares_voices:
        return "Unprotected speech, the reference"
    return in_words(read_rate(shape, one, task, original))


def in_words(rate: dict[str, Any]) -> str:
    """Return what `read_rate` found as a line without its full stop."""
    return " ".join(render_to_string("listening/results/_in_words.html", {"words": rate}).split())


def read_rate(shape: Shape, one: RatedSystem, task: str, original: RatedSystem | None) -> dict[str, Any]:
    """Return what the error rate of a system says, and where it compares no voices the test of its mean.

    By its interval where it has one; `is_like_original`: whether the mean does not differ significantly from that of
    unprotected speech, or where this was not tested, the rate allows guessing.

    Args:
        original: unprotected speech, where it was rated.
    """
    names = ("eer", "eer_low", "eer_high", "auc_low", "auc_high")
    rate, low, high, worst, best = (as_number(one.detection.get(name)) for name in names)
    question, is_original = shape.results.questions[task], one.name == ORIGINAL
    letters = [str(each.all.get("group") or "") for each in (one, original) if each is not None]
    is_tested = len(letters) == 2 and all(letters) and not question.compares_voices
    is_guess = rate is not None and labels.may_be_guessing(rate, low, high, (worst, best))
    return {
        "question": question,
        "is_original": is_original,
        "rate": rate,
        "step": labels.step_of(rate) if is_original and rate is not None else "",
        "is_guess": is_guess,
        "is_above": rate is not None and rate > labels.CHANCE,
        "has_interval": low is not None,
        "is_like_original": labels.share_a_letter(*letters, is_spaced=" " in "".join(letters))
        if is_tested
        else is_guess,
        "difference": _find_difference(shape, one.name, task) if is_tested else None,
    }


def _find_difference(shape: Shape, name: str, task: str) -> dict[str, Any] | None:
    """Return how far the mean of a system is from that of the originals, of how many tested pairs; None if untested."""
    tested = [row for row in shape.records("differences", task=task) if row.get("is_told_apart") is not None]
    row = next((one for one in tested if {one["first"], one["second"]} == {name, ORIGINAL}), None)
    difference = None if row is None else as_number(row.get("difference"))
    if row is None or difference is None:
        return None
    sign = 1 if difference > 0 else -1
    ends = (as_number(row.get(f"difference_{end}")) for end in ("low", "high"))
    known = sorted(sign * end for end in ends if end is not None)
    low, high = known if len(known) == 2 else (None, None)
    text, span = labels.rounded(sign * difference, low, high, labels.SCORE_DIGITS, is_share=False)
    is_none = not text.strip("0.")  # as far as it is shown
    is_lower = (difference > 0) == (row["first"] == ORIGINAL)
    return {"number": "" if is_none else text, "span": span, "is_lower": is_lower, "pairs": len(tested)}


def as_number(value: Value) -> float | None:
    """Return the value of a cell if it is a number."""
    return float(value) if isinstance(value, (int, float)) else None
