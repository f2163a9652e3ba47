"""What the page of the portal's own recognisers shows: word error rates, and the utterances that lost most words.

Rates are public when the other numbers of the system are; texts and recordings of single utterances are its own
people's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest

from evaluation.encoders import EngineText
from evaluation.formats.claims import Speech
from evaluation.metrics.word_errors import AlignedWord
from evaluation.models import EvaluationRun
from evaluation.objective.values import AVERAGE, ObjectiveValues
from evaluation.selectors_attack import runs_of
from evaluation.selectors_recognition import (
    RecognitionValues,
    SpokenRow,
    WordDifference,
    WordRow,
    alignment_of,
    recognitions_of,
    utterances_of,
)
from portal.core.media import signed_address
from portal.core.wording import decimals
from portal.results.attack_pages import as_of, own_section
from portal.results.engine_runs import CANCELLABLE, EngineRuns, is_organizer, unfinished_runs
from portal.results.objective_tables import SPEECHES, Cell, Group, Row, Table
from portal.results.shown import View
from portal.submissions.models import SubmittedFile

RECOGNITION = EvaluationRun.Kind.RECOGNITION
PAGE_SIZE = 25
RATE_DIGITS = 2
GENDERS = {"all": "", "f": "female", "m": "male"}
GENDER_ORDER, SPEECH_ORDER = tuple(GENDERS), tuple(map(str, Speech))
RATE, WORSE = "WER, %", "Worse than the original, points"
KINDS = ("Substituted", "Deleted", "Inserted")
FURTHER = ("Honest WER, %", "Clipped WER, %")


# Words ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """Words of an alignment: `kind` is empty for words that were understood, else what became of one word."""

    kind: str
    reference: str
    hypothesis: str


def steps_of(alignment: Iterable[AlignedWord]) -> list[Step]:
    """The alignment for people: words that were understood in runs, every error by itself."""
    steps: list[Step] = []
    for is_correct, words in groupby(alignment, key=lambda word: word.is_correct):
        if is_correct:
            text = " ".join(word.reference or "" for word in words)
            steps.append(Step("", text, text))
        else:
            steps += [_error(word) for word in words]
    return steps


def _error(word: AlignedWord) -> Step:
    if word.hypothesis is None:
        return Step("deleted", word.reference or "", "")
    if word.reference is None:
        return Step("inserted", "", word.hypothesis)
    return Step("substituted", word.reference, word.hypothesis)


@dataclass(frozen=True)
class SpokenUtterance:
    """One utterance of the list: its counts, its alignment, and where both recordings are heard."""

    row: SpokenRow
    steps: list[Step]
    sources: list[dict[str, str]]

    @property
    def error_rate(self) -> str:
        """In per cent of the words of its transcript; empty where that has none."""
        return decimals(100 * self.row.errors / self.row.words, 1) if self.row.words else ""


# The page ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Heard:
    """What one recogniser understood, as the page shows it."""

    engine: EngineText
    run: EvaluationRun
    finished_at: datetime | None
    rule: str
    table: Table
    notes: Sequence[str]


def recognition_page(request: HttpRequest, view: View) -> dict[str, Any]:
    """Word error rates of each recogniser; for the system's own people the utterances of the one that is chosen."""
    found = recognitions_of(view.submission, as_of=as_of(view))
    if not found and not view.is_own:
        raise Http404
    runs = unfinished_recognitions(view)
    system = view.system
    return {
        "system": system,
        "edition": system.edition,
        "corpus": system.corpus,
        "submission": view.submission,
        "is_own": view.is_own,
        "is_organizer": is_organizer(view),
        "version_query": view.query,
        "runs": runs,
        "heard": [_heard(one) for one in found],
        **(_utterance_list(request, found) if found and view.is_own else {}),
    }


@dataclass(frozen=True)
class HeardSection:
    """What the page of a system says of this portal's own recognisers."""

    tables: list[Table]
    runs: EngineRuns | None
    is_organizer: bool
    has_utterances: bool


def heard_section(view: View, every: list[EvaluationRun]) -> HeardSection | None:
    """The short form for the page of a system; None where there is nothing to say to this reader.

    Args:
        every: all recognitions of the submission, the newest first, whatever became of them.
    """
    organizes = is_organizer(view)
    found = recognitions_of(view.submission, as_of=as_of(view)) if every else []
    runs = unfinished_runs(every) if view.is_own and every else None
    if not found and runs is None:
        return HeardSection([], None, organizes, has_utterances=False) if organizes else None
    return HeardSection([words_table(one, short=True) for one in found], runs, organizes, has_utterances=view.is_own)


def own_sections(view: View, uploaded: ObjectiveValues | None) -> dict[str, Any]:
    """What the page of a system says of this portal's own attackers and recognisers (systems/_own.html)."""
    runs = EvaluationRun.objects.filter(submission=view.submission, kind__in=CANCELLABLE)
    every = list(runs.select_related("job").order_by("-pk"))
    attacks, recognitions = ([run for run in every if run.kind == kind] for kind in CANCELLABLE)
    return {"own": own_section(view, uploaded, attacks), "heard": heard_section(view, recognitions)}


def unfinished_recognitions(view: View) -> EngineRuns | None:
    """The recognitions under way or stopped, for the system's own people."""
    return unfinished_runs(runs_of(view.submission, RECOGNITION)) if view.is_own else None


def _heard(one: RecognitionValues) -> Heard:
    return Heard(one.engine, one.run, one.finished_at, one.rule, words_table(one), one.notes)


# Rates ---------------------------------------------------------------------------------------------


def words_table(one: RecognitionValues, *, short: bool = False) -> Table:
    """Word error rates by data set and gender, the anonymised speech beneath the original; n counts words.

    Args:
        short: without the genders of a data set of both, and without the kinds of errors.
    """
    differences = {(found.data_set, found.gender): found for found in one.differences}
    heads = (RATE, WORSE) if short else (RATE, WORSE, *KINDS, *FURTHER)
    groups = []
    for data_set, found in groupby(one.rows, key=lambda row: row.data_set):
        rows = sorted(found, key=lambda row: (GENDER_ORDER.index(row.gender), SPEECH_ORDER.index(row.speech)))
        shown = [row for row in rows if row.gender == rows[0].gender] if short else rows
        cells = (Row(_title_of(row), heads, _cells(row, differences, short=short), row.words) for row in shown)
        groups.append(Group(data_set, tuple(cells)))
    groups += _averages(one, heads)
    caption = (
        f"{one.engine.title}. Word error rate; n counts the words of the transcripts, of an average data sets. Small "
        "figures: 95 % interval over speakers."
    )
    if not short:
        caption += (
            " Honest: what was not recognised at all counts as deleted. Clipped: no utterance counts more errors than "
            "it has words."
        )
    return Table(f"words-{one.run.pk}", f"Word error rates by {one.engine.title}", caption, heads, tuple(groups))


def _averages(one: RecognitionValues, heads: tuple[str, ...]) -> list[Group]:
    """The averages by the weights of the edition, a group for each split."""
    empty = (Cell(),) * (len(heads) - 1)
    found: dict[str, list[Row]] = {}
    for number in sorted(one.averages, key=lambda number: SPEECH_ORDER.index(number.identity.speech)):
        split = number.identity.data_set.removeprefix(AVERAGE)
        row = Row(SPEECHES[number.identity.speech], heads, (_percent(number.value), *empty), number.n)
        found.setdefault(split, []).append(row)
    return [Group(f"Weighted average, {split}", tuple(rows)) for split, rows in found.items()]


def _title_of(row: WordRow) -> str:
    gender, speech = GENDERS.get(row.gender, row.gender), SPEECHES[Speech(row.speech)]
    return f"{speech}, {gender}" if gender else speech


def _cells(
    row: WordRow, differences: dict[tuple[str, str], WordDifference], *, short: bool
) -> tuple[Cell, ...]:  # fmt: skip
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
    interval = ""
    if low is not None and high is not None:
        interval = f"{decimals(low, RATE_DIGITS)} to {decimals(high, RATE_DIGITS)}"
    return Cell(decimals(value, RATE_DIGITS), interval)


# Utterances ----------------------------------------------------------------------------------------


def _utterance_list(request: HttpRequest, found: list[RecognitionValues]) -> dict[str, Any]:
    """The utterances of the recogniser and the data set that the address names, the worst first, a part of them."""
    chosen = next((one for one in found if one.engine.name == request.GET.get("recogniser", "")), found[0])
    names: list[str] = chosen.run.parameters["data_sets"]
    asked = request.GET.get("data_set", "")
    data_set = asked if asked in names else ""
    page: Page[SpokenRow] = Paginator(utterances_of(chosen.run, data_set), PAGE_SIZE).get_page(request.GET.get("page"))
    return {
        "chosen": chosen.engine,
        "data_sets": names,
        "data_set": data_set,
        "page": page,
        "utterances": _spoken(request, list(page.object_list), chosen.run.parameters["rule"]),
    }


def _spoken(request: HttpRequest, rows: list[SpokenRow], rule: str) -> list[SpokenUtterance]:
    """The rows with alignment and recordings, in one query."""
    wanted = [row.file for row in rows if row.file]
    files = {file.pk: file for file in SubmittedFile.objects.filter(pk__in=wanted).select_related("utterance")}
    return [
        SpokenUtterance(row, steps_of(alignment_of(row, rule)), _sources(request, files.get(row.file or 0)))
        for row in rows
    ]


def _sources(request: HttpRequest, file: SubmittedFile | None) -> list[dict[str, str]]:
    if file is None:
        return []
    audio = {"original": file.utterance.audio, "anonymised": file.audio}
    return [
        {"url": signed_address(request, key), "name": voice.capitalize(), "voice": voice}
        for voice, key in audio.items()
        if key
    ]


# Files ---------------------------------------------------------------------------------------------

RATE_COLUMNS = (
    "system", "version", "recogniser", "text_rule", "data_set", "gender", "speech", "utterances", "speakers", "words",
    "insertions", "deletions", "substitutions", "error_rate", "low", "high", "honest_error_rate", "clipped_error_rate",
)  # fmt: skip
UTTERANCE_COLUMNS = (
    "system", "version", "recogniser", "data_set", "utterance", "speaker", "gender", "words", "errors", "insertions",
    "deletions", "substitutions", "errors_of_original", "is_runaway", "reference", "hypothesis",
    "hypothesis_of_original",
)  # fmt: skip


def rate_rows(view: View) -> Iterable[tuple[Any, ...]]:
    """A header, then every word error rate of every recogniser, in per cent."""
    yield RATE_COLUMNS
    for one in _found(view):
        for row in one.rows:
            yield (
                view.system.name, view.submission.version, one.engine.key, one.rule, row.data_set, row.gender,
                row.speech, row.utterances, row.speakers, row.words, row.insertions, row.deletions,
                row.substitutions, row.error_rate, row.low, row.high, row.honest, row.clipped,
            )  # fmt: skip


def utterance_rows(view: View) -> Iterable[tuple[Any, ...]]:
    """A header, then every utterance of every recogniser, the worst of each first."""
    yield UTTERANCE_COLUMNS
    for one in _found(view):
        for row in utterances_of(one.run, ""):
            yield (
                view.system.name, view.submission.version, one.engine.key, row.data_set, row.utterance, row.speaker,
                row.gender, row.words, row.errors, row.insertions, row.deletions, row.substitutions,
                row.original_errors, row.is_runaway, row.reference, row.hypothesis, row.original,
            )  # fmt: skip


def _found(view: View) -> list[RecognitionValues]:
    found = recognitions_of(view.submission, as_of=as_of(view))
    if not found:
        raise Http404
    return found
