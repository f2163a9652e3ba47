"""The tables that pages of systems share: systems in a list, trial sets beside the minimum, measures, histograms.

A number is shown with its deviation behind it; a data set has a row for each gender.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from django.urls import reverse

from common.tables import Cell, Column, Group, Row, Table, number_columns, plain_table
from common.wording import counted
from evaluation.app.audio_measures.selectors import PitchComparison, PitchTable, RunValues, SetCounts, format_number
from evaluation.app.models import EvaluationRun, MetricValue, UtteranceMeasure
from evaluation.metrics.averages import Bin, Summary
from evaluation.metrics.catalogue import (
    PITCH_CORRELATION,
    PITCH_CORRELATION_REALIGNED,
    PITCH_CORRELATION_UNRELATED,
    Metric,
)
from evaluation.metrics.pitch import MINIMUM_OF_2022
from portal.challenges.models import Corpus, Edition, Role
from portal.core.labels import decimals, moment_cell
from portal.corpora.pages import ribbon_of
from portal.submissions.models import System

ROLE_ORDER = (Role.TRIAL, Role.ENROLMENT, Role.TRAINING)
ABOVE = f"Above {MINIMUM_OF_2022}?"
PITCH_COLUMNS = (*number_columns("ρF0, female", "ρF0, male"), Column("above", ABOVE))


# Systems in a list ---------------------------------------------------------------------------------


def pitch_cells(pitch: PitchTable | None) -> list[Cell]:
    """Return the cells of `PITCH_COLUMNS`: the means over all trial sets, and whether each of them is above the
    minimum."""
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
    """Return where a system stands; every table that names a corpus without real speakers says so."""
    ribbon = ribbon_of(corpus)
    return Cell(str(home), link=home.get_absolute_url(), ribbon=ribbon) if home else Cell(ribbon=ribbon)


def latest_systems_table(systems: Iterable[tuple[System, PitchTable | None]]) -> Table:
    """Return systems with their results, as the home page shows them."""
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
    """Return the trial sets, and all of them together in a group of its own."""
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
        of_speakers = f", {counted(speakers, 'speaker')}" if speakers else ""
        yield Cell(_mean(summary), aside=f"± {decimals(summary.std, 4)}, n = {summary.n}{of_speakers}")
    yield Cell(decimals(row.average, 4))


# Measures by data set and gender -------------------------------------------------------------------


def measures_table(
    runs: Iterable[EvaluationRun], values: RunValues, counts: SetCounts, caption: str, system: System | None = None
) -> Table:
    """Return the numbers of data sets, trial sets first; with a system, names lead to pages and roles stand above."""
    columns = [Column("set", "Data set"), Column("gender", "Gender", kind="brief")]
    columns += [Column(name, name, kind="num brief") for name in ("n", "Speakers")]
    columns += [
        Column(metric.key, metric.label, kind="num", unit=metric.unit, footnote=str(number))
        for number, metric in enumerate(values.metrics, 1)
        if metric is not PITCH_CORRELATION_UNRELATED
    ]
    measured = [(run.measured_set, rows) for run in runs if (rows := tuple(_measured_rows(run, values, counts)))]
    is_banded = system is not None or len({data_set.role for data_set, _ in measured}) > 1
    groups, banded = [], set()
    for data_set, rows in sorted(measured, key=lambda pair: ROLE_ORDER.index(Role(pair[0].role))):
        role, band, note = Role(data_set.role), "", ""
        if is_banded and role not in banded:
            label = str(role.label)
            band, note = f"{label[:1].upper()}{label[1:]} sets", "" if role == Role.TRIAL else "as information"
            banded.add(role)
        link = reverse("systems:data-set", args=[system.name, data_set.name]) if system else ""
        groups.append(Group(rows, head=Cell(data_set.name, link=link), band=band, band_note=note))
    return Table(
        tuple(columns),
        tuple(groups),
        "Measures by data set and gender",
        lead="Objective measures.",
        caption=f" {caption} n counts utterances. Mean ± standard deviation over utterances.",
        styles="stack sets",
        missing="none",
    )


def _measured_rows(run: EvaluationRun, values: RunValues, counts: SetCounts) -> Iterator[Row]:
    """Return women, men and all; only the one gender where a set has one."""
    present = values.genders_of(run)
    for gender in present if len(present) == 1 else [*present, ""]:
        if measured := values.of(run, gender):
            n = max(value.n for value in measured.values())
            speakers = counts.speakers(run.measured_set.pk, gender)
            shown = (one for one in values.metrics if one is not PITCH_CORRELATION_UNRELATED)
            cells = (_measured_cell(metric, measured, n) for metric in shown)
            label = str(MetricValue.Gender(gender).label)
            yield Row((Cell(label), Cell(str(n)), Cell(str(speakers)), *cells))


def _measured_cell(metric: Metric, measured: Mapping[str, MetricValue], n: int) -> Cell:
    """Return a number of a row; what unrelated utterances give stands below the realigned pitch correlation."""
    value, by_chance = measured.get(metric.key), measured.get(PITCH_CORRELATION_UNRELATED.key)
    note = ""
    if metric is PITCH_CORRELATION_REALIGNED and by_chance is not None:
        note = f"unrelated {format_number(by_chance.value, PITCH_CORRELATION_UNRELATED)}"
    if value is None:
        return Cell(note=note)
    other_n = "" if value.n == n else f", n = {value.n}"
    spread = decimals(value.spread, metric.decimals)
    return Cell(format_number(value.value, metric), aside=f"± {spread}{other_n}", note=note)


# Utterances ----------------------------------------------------------------------------------------


def histogram_table(bins: Sequence[Bin], rows: Iterable[tuple[str, Summary, Sequence[int]]]) -> Table:
    """Return the bars of histograms: a row for each data set and gender, with its summary and its counts."""
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
    """Return the utterances of lowest and of highest pitch correlation, as far as there are any."""
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
