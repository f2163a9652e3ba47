"""The tables that pages of systems share: systems in a list, trial sets beside the minimum, measures, histograms.

A number is shown with its deviation behind it; a data set has a row for each gender.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from django.urls import reverse

from common.tables import Cell, Column, Group, Row, Table, number_columns, plain_table
from evaluation.app.audio_measures.selectors import (
    PitchComparison,
    PitchTable,
    ResultCell,
    ResultGroup,
    ResultRow,
    ResultSet,
    ResultTable,
)
from evaluation.app.models import UtteranceMeasure
from evaluation.metrics.averages import Bin, Summary
from evaluation.metrics.catalogue import PITCH_CORRELATION, PITCH_CORRELATION_REALIGNED, PITCH_CORRELATION_UNRELATED
from evaluation.metrics.pitch import MINIMUM_OF_2022
from portal.challenges.models import Corpus, Edition, Role
from portal.core.labels import decimals, moment_cell
from portal.corpora.pages import ribbon_of
from portal.submissions.models import System

ABOVE = f"Above {MINIMUM_OF_2022}?"
PITCH_COLUMNS = (*number_columns("ρF0, female", "ρF0, male"), Column("above", ABOVE))


# Systems in a list ---------------------------------------------------------------------------------


def pitch_cells(pitch: PitchTable | None) -> list[Cell]:
    """The cells of `PITCH_COLUMNS`: the means over all trial sets, and whether each of them is above the minimum."""
    overall = pitch.overall if pitch else None
    means = (overall.female, overall.male) if overall else (None, None)
    return [*(Cell(_mean(one)) for one in means), verdict_cell(pitch)]


def _mean(summary: Summary | None) -> str:
    return decimals(summary.mean, PITCH_CORRELATION.decimals) if summary else ""


def verdict_cell(pitch: PitchTable | None) -> Cell:
    if pitch is None:
        return Cell(aside="not measured")
    held = pitch.n_above if pitch.is_above else pitch.n_not_above
    n_sets = len(pitch.rows)
    return replace(_badge(pitch.is_above), aside=f"in {held} of {n_sets} trial sets" if held < n_sets else "")


def _badge(is_above: bool) -> Cell:
    return Cell("above", badge="succeeded") if is_above else Cell("not above", badge="failed")


def home_cell(home: Edition | Corpus | None, corpus: Corpus | None) -> Cell:
    """Where a system stands; every table that names a corpus without real speakers says so."""
    ribbon = ribbon_of(corpus)
    return Cell(str(home), link=home.get_absolute_url(), ribbon=ribbon) if home else Cell(ribbon=ribbon)


def latest_systems_table(systems: Iterable[tuple[System, PitchTable | None]]) -> Table:
    """Systems with their results, as the home page shows them."""
    columns = [Column("name", "Name"), Column("method", "Method"), Column("corpus", "Corpus")]
    return plain_table(
        "Systems with their results",
        [*columns, *PITCH_COLUMNS, Column("begun", "Begun")],
        (
            [
                Cell(system.name, link=system.get_absolute_url()),
                system.title,
                replace(home_cell(system.corpus, system.corpus), link=""),
                *pitch_cells(pitch),
                moment_cell(system.created_at),
            ]
            for system, pitch in systems
        ),
        caption="Systems",
        is_caption_hidden=True,
        missing="–",
    )


# Trial sets beside the minimum ---------------------------------------------------------------------


def comparison_table(found: PitchTable) -> Table:
    """The trial sets, and all of them together in a group of its own."""
    total = [Row((*_pitch_cells(found.total, "*"), Cell(aside="for orientation")))] if found.total else []
    sets = [
        Row((*_pitch_cells(row), replace(_badge(row.is_above), aside=f"by {decimals(row.distance, 4)}")))
        for row in found.rows
    ]
    return Table(
        (Column("set", "Trial set"), *number_columns("Female", "Male", "Average"), Column("above", ABOVE)),
        tuple(Group(tuple(rows)) for rows in (sets, total) if rows),
        "Pitch correlation of the trial sets",
        lead="Pitch correlation ρF0 of the trial sets",
        caption=f", mean over utterances, against the minimum of {MINIMUM_OF_2022} of VoicePrivacy 2022.",
        missing="none",
    )


def _pitch_cells(row: PitchComparison, mark: str = "") -> Iterator[Cell]:
    yield Cell(f"{row.subset}{mark}")
    for _, summary, speakers in row.genders:
        if summary is None:
            yield Cell()
            continue
        counted = f", {speakers} speaker{'' if speakers == 1 else 's'}" if speakers else ""
        yield Cell(_mean(summary), aside=f"± {decimals(summary.std, 4)}, n = {summary.n}{counted}")
    yield Cell(decimals(row.average, 4))


# Measures by data set and gender -------------------------------------------------------------------


def measures_table(found: ResultTable, caption: str, system: System | None = None) -> Table:
    """The numbers of data sets; with a system their names lead to their pages, and roles stand above them."""
    columns = [Column("set", "Data set"), Column("gender", "Gender", kind="brief")]
    columns += [Column(name, name, kind="num brief") for name in ("n", "Speakers")]
    columns += [
        Column(metric.key, metric.label, kind="num", unit=metric.unit, footnote=str(number))
        for number, metric in enumerate(found.metrics, 1)
        if metric is not PITCH_CORRELATION_UNRELATED
    ]
    is_banded = len(found.groups) > 1 or system is not None
    return Table(
        tuple(columns),
        tuple(one for group in found.groups for one in _role(group, system, is_banded=is_banded)),
        "Measures by data set and gender",
        lead="Objective measures.",
        caption=f" {caption} n counts utterances. Mean ± standard deviation over utterances.",
        styles="stack sets",
        missing="none",
    )


def _role(group: ResultGroup, system: System | None, *, is_banded: bool) -> Iterator[Group]:
    for place, one in enumerate(group.sets):
        if place or not is_banded:
            yield _set(one, system)
            continue
        label = str(group.role.label)
        note = "" if group.role == Role.TRIAL else "as information"
        yield replace(_set(one, system), band=f"{label[:1].upper()}{label[1:]} sets", band_note=note)


def _set(one: ResultSet, system: System | None) -> Group:
    name = one.run.measured_set.name
    link = reverse("systems:data-set", args=[system.name, name]) if system else ""
    rows = (Row((Cell(row.gender), Cell(str(row.n)), Cell(str(row.speakers)), *_numbers(row))) for row in one.rows)
    return Group(tuple(rows), head=Cell(name, link=link))


def _numbers(row: ResultRow) -> Iterator[Cell]:
    """The cells of a row; what unrelated utterances give stands below the realigned pitch correlation."""
    by_chance = next((cell for cell in row.cells if cell.metric is PITCH_CORRELATION_UNRELATED), None)
    for cell in row.cells:
        if cell is by_chance:
            continue
        shown = _number(cell, row.n)
        if cell.metric is PITCH_CORRELATION_REALIGNED and by_chance is not None and by_chance.value is not None:
            shown = replace(shown, note=f"unrelated {by_chance.text}")
        yield shown


def _number(cell: ResultCell, n: int) -> Cell:
    if cell.value is None:
        return Cell()
    counted = "" if cell.value.n == n else f", n = {cell.value.n}"
    return Cell(cell.text, aside=f"± {cell.spread}{counted}")


# Utterances ----------------------------------------------------------------------------------------


def histogram_table(bins: Sequence[Bin], rows: Iterable[tuple[str, Summary, Sequence[int]]]) -> Table:
    """The bars of histograms: a row for each data set and gender, with its summary and its counts."""
    columns = [Column("set", "Data set"), *number_columns("n", "Mean", *(f"{each.lower:.2f}" for each in bins))]
    return plain_table(
        "Numbers of the histograms",
        columns,
        (
            [name, str(summary.n), _mean(summary), *(Cell(str(n)) if n else Cell(aside="0") for n in counts)]
            for name, summary, counts in rows
        ),
        caption="Utterances by pitch correlation; each column counts from its value to below the next.",
        styles="pin",
    )


def extremes_tables(system: System, worst: Iterable[UtteranceMeasure], best: Iterable[UtteranceMeasure]) -> list[Table]:
    """The utterances of lowest and of highest pitch correlation, as far as there are any."""
    columns = (Column("utterance", "Utterance"), Column("set", "Data set"), *number_columns("ρF0"))
    tables = [
        plain_table(
            f"Utterances of {order} pitch correlation",
            columns,
            (_extreme(system, measure, order) for measure in measures),
            caption=order.capitalize(),
        )
        for order, measures in (("lowest", worst), ("highest", best))
    ]
    return [table for table in tables if table.rows]


def _extreme(system: System, measure: UtteranceMeasure, order: str) -> list[Cell]:
    link = f"{reverse('systems:compare', args=[system.name, measure.file_id])}?order={order}"
    number = decimals(measure.pitch_correlation, PITCH_CORRELATION.decimals)
    return [Cell(measure.file.utterance.name, link=link), Cell(aside=measure.file.data_set.name), Cell(number)]
