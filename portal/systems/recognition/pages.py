"""What the page of the recognisers of the portal shows: word error rates, and the utterances that lost most words.

Rates are public when the other numbers of the system are; texts and recordings of single utterances are its own
people's. Of the words that were said, a team sees those that its edition gives (`may_read_words`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest

from common.rounding import round_to_interval
from common.tables import Cell, Group, Row, Table
from evaluation.app.models import EvaluationRun
from evaluation.app.recognition.selectors import (
    RecognitionValues,
    SpokenRow,
    WordDifference,
    WordRow,
    align_texts,
    list_recognitions,
    read_recognitions,
    read_utterances,
)
from evaluation.app.recognizer_training.selectors import RetrainedValues, list_retrained, read_retrained
from evaluation.app.recognizer_training.services import find_problem
from evaluation.app.runs.kinds import RECOGNITION, RETRAINED
from evaluation.app.runs.selectors import NumbersOfRuns
from evaluation.formats.results import Speech
from evaluation.metrics.word_errors import AlignedWord
from evaluation.objective_results.values import AVERAGE, Number
from portal.core.labels import decimals
from portal.core.signed_urls import voice_sources
from portal.submissions.models import SubmittedFile
from portal.systems.engines.forms import list_unfinished
from portal.systems.objective_results.tables import SPEECHES, number_group, number_row, number_table
from portal.systems.selectors import View, may_read_words

PAGE_SIZE = 10
RATE_DIGITS = 2
GENDERS = {"all": "", "f": "female", "m": "male"}
GENDER_ORDER, SPEECH_ORDER = tuple(GENDERS), tuple(map(str, Speech))
RATE, WORSE = "WER, %", "Worse than the original, points"
KINDS = ("Substituted", "Deleted", "Inserted")
FURTHER = ("WER of all utterances, %", "Clipped WER, %")
FURTHER_IN_WORDS = (
    "“Of all utterances”: those that were not recognised at all count as deleted. “Clipped”: no utterance counts more "
    "errors than it has words."
)


# Words ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AlignedWords:
    """Words of an alignment: `kind` is empty for words that were understood, else what became of one word."""

    kind: str
    reference: str
    hypothesis: str


def make_steps(alignment: Iterable[AlignedWord]) -> list[AlignedWords]:
    """Return the alignment for people: words that were understood in runs, every error by itself."""
    steps: list[AlignedWords] = []
    for is_correct, words in groupby(alignment, key=lambda word: word.is_correct):
        if is_correct:
            text = " ".join(word.reference or "" for word in words)
            steps.append(AlignedWords("", text, text))
        else:
            steps += [_error(word) for word in words]
    return steps


def _error(word: AlignedWord) -> AlignedWords:
    if word.hypothesis is None:
        return AlignedWords("deleted", word.reference or "", "")
    if word.reference is None:
        return AlignedWords("inserted", "", word.hypothesis)
    return AlignedWords("substituted", word.reference, word.hypothesis)


@dataclass(frozen=True)
class SpokenUtterance:
    """One utterance of the list: its counts, its alignment, and where both recordings are heard.

    Attributes:
        steps: empty where the reader may not have the words that were said (`may_read`).
    """

    row: SpokenRow
    may_read: bool
    steps: list[AlignedWords]
    sources: list[dict[str, str]]

    @property
    def error_rate(self) -> str:
        """In per cent of the words of its transcript; empty where that has none."""
        return decimals(100 * self.row.errors / self.row.words, 1) if self.row.words else ""


# The page ------------------------------------------------------------------------------------------


def recognition_page(request: HttpRequest, view: View) -> dict[str, Any]:
    """Return word error rates of each recogniser; for the system's own people the utterances of the one that is
    chosen."""
    found = list_recognitions(view.submission, as_of=view.as_of)
    if not view.is_own and not found and not list_retrained(view.submission, as_of=view.as_of):
        raise Http404
    return view.context | {
        "runs": list_unfinished(view, RECOGNITION),
        **retrained_section(view),
        "heard": [(one, words_table(one, short=True), words_table(one)) for one in found],
        **(_utterance_list(request, view, found) if found and view.is_own else {}),
    }


def retrained(runs: list[EvaluationRun], numbers: NumbersOfRuns) -> dict[str, Any]:
    """Return the short form for the page of a system."""
    found = read_retrained(runs, numbers)
    return {"tables": [phones_table(one, short=True) for one in found]} if found else {}


def recognised(view: View, runs: list[EvaluationRun], numbers: NumbersOfRuns) -> dict[str, Any]:
    """Return the short form for the page of a system."""
    found = read_recognitions(runs, numbers)
    if not found:
        return {}
    return {"tables": [words_table(one, short=True) for one in found], "has_utterances": view.is_own}


# Rates ---------------------------------------------------------------------------------------------


def words_table(one: RecognitionValues, *, short: bool = False) -> Table:
    """Return word error rates by data set and gender, the anonymised speech beneath the original; n counts words.

    Args:
        short: without the genders of a data set of both, without trial sets whose words stand in a set of recognition
            too, and without the kinds of errors.
    """
    differences = {(found.data_set, found.gender): found for found in one.differences}
    heads = (RATE, WORSE) if short else (RATE, WORSE, *KINDS, *FURTHER)
    groups = []
    names = {row.data_set for row in one.rows}
    for data_set, found in groupby(one.rows, key=lambda row: row.data_set):
        corpus, is_of_trials, _ = data_set.partition("_trials")
        if short and is_of_trials and f"{corpus}_asr" in names:
            continue
        rows = sorted(found, key=lambda row: (GENDER_ORDER.index(row.gender), SPEECH_ORDER.index(row.speech)))
        shown = [row for row in rows if row.gender == rows[0].gender] if short else rows
        cells = (number_row(_title_of(row), _cells(row, differences, short=short), row.words) for row in shown)
        groups.append(number_group(data_set, cells))
    groups += _averages(one, len(heads))
    caption = f"{one.engine.title}. n counts words. Small figures: 95 % interval over speakers."
    caption += " Of averages no difference from the original is computed." if one.averages else ""
    note = "" if short else FURTHER_IN_WORDS
    title = f"Word error rates by {one.engine.title}{'' if short else ', in full'}"
    name = f"words-{one.run.pk}{'' if short else '-full'}"
    table = number_table(name, title, caption, heads, groups, note=note)
    return replace(table, styles=f"{table.styles} sparse")


def _averages(one: RecognitionValues, width: int) -> list[Group]:
    """Return the averages by the weights of the edition, a group for each split."""
    empty = (Cell(),) * (width - 1)
    found: dict[str, list[Row]] = {}
    for number in sorted(one.averages, key=lambda number: SPEECH_ORDER.index(number.identity.speech)):
        split = number.identity.data_set.removeprefix(AVERAGE)
        row = number_row(
            SPEECHES[number.identity.speech], (_percent(number.value, number.low, number.high), *empty), n=0
        )
        found.setdefault(split, []).append(row)
    return [number_group(f"Weighted average, {split}", rows) for split, rows in found.items()]


def _title_of(row: WordRow) -> str:
    gender, speech = GENDERS.get(row.gender, row.gender), SPEECHES[Speech(row.speech)]
    return f"{speech}, {gender}" if gender else speech


def _cells(row: WordRow, differences: dict[tuple[str, str], WordDifference], *, short: bool) -> tuple[Cell, ...]:
    rate = _percent(row.error_rate, row.low, row.high)
    difference = differences.get((row.data_set, row.gender)) if row.speech == Speech.ANONYMISED else None
    worse = _percent(difference.value, difference.low, difference.high) if difference else Cell()
    if short:
        return rate, worse
    counts = (row.substitutions, row.deletions, row.insertions)
    further = (_percent(row.honest), _percent(row.clipped))
    return (rate, worse, *(Cell(f"{count:,}") for count in counts), *further)


def _percent(value: float | None, low: float | None = None, high: float | None = None) -> Cell:
    if value is None:
        return Cell()
    text, interval = round_to_interval(value, low, high, RATE_DIGITS, "%")
    return Cell(text, interval, value=value, title=decimals(value, RATE_DIGITS))


# Retrained recognisers -----------------------------------------------------------------------------

ROWS = {
    "ceiling": "ceiling: trained on and tested on originals",
    "retrained": "retrained: trained and tested on anonymised speech",
    "frozen": "frozen: trained on originals, tested on anonymised speech",
}


def retrained_section(view: View) -> dict[str, Any]:
    """Return phone error rates of retrained recognisers, their runs, and why none can be trained, for organizers."""
    found = list_retrained(view.submission, as_of=view.as_of)
    runs = list_unfinished(view, RETRAINED)
    return {
        "retrained": [(one, phones_table(one, short=True), phones_table(one)) for one in found],
        "retraining_runs": runs,
        "retraining_problem": find_problem(view.submission) if view.is_organizer else "",
    }


def phones_table(one: RetrainedValues, *, short: bool = False) -> Table:
    """Return the three rows of each data set: phone error rate, points above the ceiling, share of them taken back.

    Args:
        short: of averages alone, where there are any.
    """
    names = one.data_sets
    if short:
        names = [name for name in names if name.startswith(AVERAGE)] or names
    groups = []
    for name in names:
        rows = [
            number_row(ROWS[row], _phone_cells(one, name, row, number), number.n if name in one.changes else 0)
            for row in ROWS
            if (number := one.numbers.get((name, row))) is not None
        ]
        title = f"Weighted average, {name.removeprefix(AVERAGE)}" if name.startswith(AVERAGE) else name
        groups.append(number_group(title, rows))
    caption = "Phone error rates; n counts phones. Small figures: 95 % interval over speakers."
    heads = ("PER, %", "Change, points", "Taken back, %")
    title = f"Phone errors of a retrained recogniser{'' if short else ', each data set'}"
    table = number_table(f"phones-{one.run.pk}{'' if short else '-full'}", title, caption, heads, groups)
    return replace(table, styles=f"{table.styles} sparse")


def _phone_cells(one: RetrainedValues, name: str, row: str, number: Number) -> tuple[Cell, ...]:
    change = one.changes.get(name, {}).get({"frozen": "damage", "retrained": "retraining"}.get(row, ""))
    compared = {"frozen": "from the ceiling", "retrained": "from frozen"}.get(row, "")
    change_cell = Cell()
    if change:
        change_cell = replace(_percent(*change), note=compared)
    regained = one.regained.get(name) if row == "retrained" else None
    regained_cell = Cell() if regained is None else Cell(f"{regained:.0f}", value=regained)
    return _percent(number.value, number.low, number.high), change_cell, regained_cell


# Utterances ----------------------------------------------------------------------------------------


def _utterance_list(request: HttpRequest, view: View, found: list[RecognitionValues]) -> dict[str, Any]:
    """Return the utterances of the recogniser and the data set that the address names, the worst first, a part of
    them."""
    chosen = next((one for one in found if one.engine.name == request.GET.get("recogniser", "")), found[0])
    names: list[str] = chosen.run.parameters["data_sets"]
    asked = request.GET.get("data_set", "")
    data_set = asked if asked in names else ""
    page: Page[SpokenRow] = Paginator(read_utterances(chosen.run, data_set), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    utterances = _spoken(request, list(page.object_list), chosen.run.parameters["rule"], _unread_sets(view))
    return {
        "chosen": chosen.engine,
        "data_sets": names,
        "data_set": data_set,
        "page": page,
        "utterances": utterances,
        "has_texts": any(one.may_read for one in utterances),
        "lacks_texts": not all(one.may_read for one in utterances),
        "signs": {step.kind for one in utterances for step in one.steps if step.kind},
    }


def _unread_sets(view: View) -> set[str]:
    """Return the data sets whose words this reader may not have."""
    corpus = view.system.corpus
    sets = corpus.data_sets.all() if corpus else ()
    return {one.name for one in sets if not may_read_words(view.relations, view.system, one)}


def _spoken(request: HttpRequest, rows: list[SpokenRow], rule: str, unread: set[str]) -> list[SpokenUtterance]:
    """Return the rows with alignment and recordings, in one query."""
    wanted = [row.file for row in rows if row.file]
    files = {file.pk: file for file in SubmittedFile.objects.filter(pk__in=wanted).select_related("utterance")}
    return [
        SpokenUtterance(
            row,
            row.data_set not in unread,
            [] if row.data_set in unread else make_steps(align_texts(row, rule)),
            _sources(request, files.get(row.file or 0)),
        )
        for row in rows
    ]


def _sources(request: HttpRequest, file: SubmittedFile | None) -> list[dict[str, str]]:
    if file is None:
        return []
    return voice_sources(request, {"original": file.utterance.audio, "anonymised": file.audio})


# Files ---------------------------------------------------------------------------------------------

_RATES = (
    *("data_set", "gender", "speech", "utterances", "speakers", "words", "insertions", "deletions", "substitutions"),
    *("error_rate", "low", "high", "honest", "clipped"),
)
RATE_COLUMNS = (
    *("system", "version", "recogniser", "text_rule"),
    *(f"{name}_error_rate" if name in ("honest", "clipped") else name for name in _RATES),
)
_UTTERANCES = (
    *("data_set", "utterance", "speaker", "gender", "words", "errors", "insertions", "deletions", "substitutions"),
    *("original_errors", "is_runaway", "reference", "hypothesis", "original"),
)
_RENAMED = {"original_errors": "errors_of_original", "original": "hypothesis_of_original"}
UTTERANCE_COLUMNS = ("system", "version", "recogniser", *(_RENAMED.get(name, name) for name in _UTTERANCES))


def rate_rows(view: View) -> Iterable[tuple[Any, ...]]:
    """Yield a header, then every word error rate of every recogniser, in per cent."""
    yield RATE_COLUMNS
    for one in _found(view):
        start = (view.system.name, view.submission.version, one.engine.key, one.rule)
        yield from ((*start, *attrgetter(*_RATES)(row)) for row in one.rows)


PHONE_COLUMNS = ("system", "version", "data_set", "recogniser", "training", "speech", "phones", "per", "low", "high")


def phone_rows(view: View) -> Iterable[tuple[Any, ...]]:
    """Yield a header, then every phone error rate of retrained recognisers, in per cent."""
    found = list_retrained(view.submission, as_of=view.as_of)
    if not found:
        raise Http404
    yield PHONE_COLUMNS
    for one in found:
        for (data_set, row), number in one.numbers.items():
            identity = number.identity
            start = (view.system.name, view.submission.version, data_set, row, identity.training, identity.speech)
            yield (*start, "" if number.is_average else number.n, number.value, number.low, number.high)


def utterance_rows(view: View) -> Iterable[tuple[Any, ...]]:
    """Yield a header, then every utterance of every recogniser, the worst of each first; words that teams lack are
    empty."""
    yield UTTERANCE_COLUMNS
    unread = _unread_sets(view)
    for one in _found(view):
        start = (view.system.name, view.submission.version, one.engine.key)
        for row in read_utterances(one.run, ""):
            told = replace(row, reference="") if row.data_set in unread else row
            yield (*start, *attrgetter(*_UTTERANCES)(told))


def _found(view: View) -> list[RecognitionValues]:
    found = list_recognitions(view.submission, as_of=view.as_of)
    if not found:
        raise Http404
    return found
