"""The numbers of a system as CSV, JSON and LaTeX, each with all that identifies it, and what was learnt as an archive.

Full precision in CSV and JSON; reported numbers for its own people only. The value of a ZEBRA category is a number
(0 to 6), with its letter as `category`.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from operator import attrgetter
from typing import IO, Any

from django.core.files.storage import default_storage
from django.http import Http404

from common.latex import latex_document
from common.tables import Row, Table
from evaluation.app.attacker_training.selectors import list_epochs, make_report
from evaluation.app.attacks.selectors import AttackValues, list_attacks
from evaluation.app.attacks.stored_attackers import REPORT, encoder_key, list_files, list_seeds, list_trained_seeds
from evaluation.app.audio_measures.selectors import list_finished_runs, select_measures
from evaluation.app.models import EvaluationRun, MetricValue
from evaluation.app.objective_results.selectors import judge_attacks
from evaluation.attackers.training.trained_attacker import MEASURES
from evaluation.metrics.catalogue import METRICS
from evaluation.objective_results.attack_strength import Reliability
from evaluation.objective_results.track_averages import estimator_of
from evaluation.objective_results.values import BASES, Number, letter_of
from portal.submissions.models import Submission, System
from portal.systems.objective_results.pages import list_reasons, load_numbers, read_standing, summarize
from portal.systems.objective_results.tables import TableMaker
from portal.systems.selectors import View, edition_of

NUMBER_COLUMNS = (
    *("data_set", "gender", "metric", "estimator", "attack_model", "training", "enrolment", "speech"),
    *("unit", "better", "value", "category", "spread", "low", "high", "n", "basis", "note"),
)
CHUNK_BYTES = 1 << 20
REPORTED_COLUMNS = ("reported", "reported_in", "agrees")
_ENGINE = ("name", "key", "title", "description", "source", "licence")
_AGREES = {True: "yes", False: "no", None: ""}

# Objective numbers ---------------------------------------------------------------------------------


def objective_rows(view: View) -> Iterator[tuple[Any, ...]]:
    """Yield a header, then every number with all that identifies it."""
    edition_of(view.system)  # only a system in one has objective numbers
    numbers = list(load_numbers(view).numbers.values())
    reported = REPORTED_COLUMNS if view.is_own else ()
    yield ("system", "version", *NUMBER_COLUMNS, *reported)
    for number in numbers:
        cells = _identified(number).values()
        told = (number.reported_text, number.reported_in, _AGREES[number.agrees]) if view.is_own else ()
        yield (view.system.name, view.submission.version, *cells, *told)


def objective_as_dict(view: View) -> dict[str, Any]:
    """Return the same for JSON; to its own also what is missing."""
    values = load_numbers(view)
    found: dict[str, Any] = {
        "system": view.system.name,
        "label": str(view.system),
        "edition": edition_of(view.system).name,
        "version": view.submission.version,
        "state": view.submission.get_state_display().lower(),
        "summary": summarize(view, values, read_standing(view, values)),
        "measured_at": values.measured_at.isoformat() if values.measured_at else None,
        "computed_by": values.computed_by,
        "not_ranked": list_reasons(view, values) if values.run else [],
        "numbers": [number_as_dict(number, with_reported=view.is_own) for number in values.numbers.values()],
    }
    return found | {"missing": [asdict(one) for one in values.missing]} if view.is_own else found


def number_as_dict(number: Number, *, with_reported: bool) -> dict[str, Any]:
    """Return one number for JSON with all that identifies it."""
    found = _identified(number) | {"is_recomputed": number.is_recomputed}
    if with_reported:
        category = letter_of(number.identity, number.reported)
        found |= {"reported": number.reported, "reported_category": category}
        found |= {"reported_in": number.reported_in, "agrees": number.agrees}
    return found


def objective_as_latex(view: View) -> str:
    """Return a booktabs table of the averages and one of each kind of number; reported numbers are left out."""
    edition = edition_of(view.system)
    maker = TableMaker(load_numbers(view), edition.recipe, edition.ranked_track, with_reported=False)
    title = f"{edition.title}, {view.system}, version {view.submission.version}"
    tables = [
        (
            _printed(table),
            f"{title}: {table.title}. {table.caption} {table.note}",
            f"tab:{view.system.name}-{table.name}",
        )
        for table in (maker.averages(), *maker.tables())
        if table.groups
    ]
    return latex_document(title, tables)


def _printed(table: Table) -> Table:
    """Return the table without counts, and without headings over what is no number."""
    kept = [place for place, column in enumerate(table.columns) if column.key != "n"]
    groups = tuple(
        replace(group, rows=tuple(Row(tuple(row.cells[place - 1] for place in kept[1:])) for row in group.rows))
        for group in table.groups
    )
    columns = (table.columns[place] for place in kept)
    named = tuple(column if column.is_number else replace(column, heading="") for column in columns)
    return replace(table, columns=named, groups=groups)


# Attacks of the portal evaluation ------------------------------------------------------------------


def attack_rows(view: View) -> Iterator[tuple[Any, ...]]:
    """Yield a header, then every number of every attacker with all that identifies it."""
    yield ("system", "version", "attacker", "title", *(name for name in NUMBER_COLUMNS if name != "spread"))
    for one in _found(view):
        for number in one.numbers.values():
            cells = _without_spread(_identified(number)).values()
            yield (view.system.name, view.submission.version, one.engine.key, one.engine.title, *cells)


def _attack_numbers(one: AttackValues) -> list[dict[str, Any]]:
    return [{"attacker": one.engine.key} | _without_spread(_identified(number)) for number in one.numbers.values()]


def attacks_as_dict(view: View) -> dict[str, Any]:
    """Return the same for JSON."""
    found = _found(view)
    return {
        "system": view.system.name,
        "version": view.submission.version,
        "attackers": [
            {name: getattr(one.engine, name) for name in _ENGINE}
            | {"measured_at": one.finished_at.isoformat() if one.finished_at else None}
            for one in found
        ],
        "numbers": [number for one in found for number in _attack_numbers(one)],
    }


def _found(view: View) -> list[AttackValues]:
    found = list_attacks(view.submission, as_of=view.as_of)
    if not found:
        raise Http404
    return found


def _identified(number: Number) -> dict[str, Any]:
    """Return a number with all that identifies it, by the names of `NUMBER_COLUMNS`."""
    identity, metric = number.identity, number.metric
    test = (identity.attack_model or "", identity.training or "", identity.enrolment or "", identity.speech)
    named = (identity.data_set, identity.gender, identity.metric, identity.estimator, *test)
    spread = (number.spread, number.low, number.high, number.n, BASES[number.basis], number.note)
    cells = (*map(str, named), metric.unit, str(metric.direction), number.value, number.letter, *spread)
    return dict(zip(NUMBER_COLUMNS, cells, strict=True))


def _without_spread(cells: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in cells.items() if name != "spread"}


# Measures of the audio -----------------------------------------------------------------------------

VALUE_COLUMNS = (
    *("system", "version", "data_set", "role", "gender", "metric", "estimator"),
    *("unit", "better", "value", "spread", "n", "recipe", "code"),
)
MEASURE_COLUMNS = (
    *("utterance", "speaker", "gender", "pitch_correlation", "pitch_correlation_voiced", "lag_frames"),
    *("pitch_correlation_realigned", "pitch_correlation_unrelated", "predicted_naturalness", "predicted_original"),
    *("duration_difference_ms", "level_change_db", "peak_dbfs", "faults"),
)
_MEASURED = attrgetter(
    *("pitch_correlation", "voiced_pitch_correlation", "lag_frames"),
    *("realigned_pitch_correlation", "unrelated_pitch_correlation", "predicted_naturalness", "predicted_original"),
    *("duration_difference_ms", "level_change_db", "peak_dbfs"),
)


def value_rows(system: System, submission: Submission) -> Iterator[tuple[Any, ...]]:
    """Every number of the newest finished runs over the audio of a submission."""
    yield VALUE_COLUMNS
    runs = list_finished_runs(submission)
    values = MetricValue.objects.filter(run__in=runs).select_related("run__data_set")
    for value in values.order_by("run__data_set__name", "metric", "gender"):
        metric, run = METRICS[value.metric], value.run
        named = (system.name, submission.version, run.measured_set.name, run.measured_set.role)
        kind = (value.get_gender_display(), value.metric, value.estimator, metric.unit, metric.direction)
        made_by = (f"{run.recipe} {run.recipe_version}", run.code_version)
        yield (*named, *kind, value.value, value.spread, value.n, *made_by)


def measure_rows(run: EvaluationRun) -> Iterator[tuple[Any, ...]]:
    """Yield every utterance of a run with its measures, by name."""
    yield MEASURE_COLUMNS
    for measure in select_measures(run).order_by("file__utterance__name").iterator(chunk_size=500):
        utterance = measure.file.utterance
        named = (utterance.name, utterance.speaker.name, utterance.speaker.get_gender_display())
        yield (*named, *_MEASURED(measure), " ".join(measure.faults))


# Trained attackers ---------------------------------------------------------------------------------


def epoch_rows(run: EvaluationRun) -> Iterator[list[Any]]:
    """Yield a line for each epoch of each seed; error rates are shares, what does not exist is empty."""
    yield ["seed", "epoch", "seconds", *MEASURES]
    for seed, epochs in list_epochs([run])[run.pk].items():
        for epoch in epochs:
            cells = [epoch.values.get(name) for name in MEASURES]
            yield [seed, epoch.epoch, f"{epoch.seconds:.3f}", *("" if cell is None else cell for cell in cells)]


def training_as_dict(run: EvaluationRun, system: System) -> dict[str, Any]:
    """Return everything that a training measured, with its recipe and the attacks with its attackers."""
    epochs = list_epochs([run])[run.pk]
    report = make_report(epochs)
    attacks = list_attacks(run.submission)
    judged = {one.run: one.numbers for one in attacks}
    verdicts = judge_attacks(judged, estimator_of(system.edition.recipe if system.edition else None))
    spreads = {name: report.spread(name) for name in ("source_error", "target_error", "target_probe")}
    return {
        "system": system.name,
        "submission_version": run.submission.version,
        "training": run.pk,
        "recipe": run.parameters["recipe"],
        "recipe_version": run.recipe_version,
        "code_version": run.code_version,
        **{name: run.parameters[name] for name in ("variant", "data_sets", "device")},
        "unit": "shares of held-out segments; deviations are those of a sample over the seeds",
        "report": {
            name: None if found is None else {"mean": found.mean, "deviation": found.deviation, "n": len(found.values)}
            for name, found in spreads.items()
        },
        "seeds": [
            {
                "seed": seed,
                "final": next((one.values[REPORT] for one in epochs.get(seed, []) if REPORT in one.values), None),
                "epochs": [
                    {"epoch": one.epoch, "seconds": one.seconds}
                    | {name: value for name, value in one.values.items() if name != REPORT}
                    for one in epochs.get(seed, [])
                ],
            }
            for seed in list_seeds(run)
        ],
        "attacks": [
            {
                "attacker": one.engine.key,
                "title": one.engine.title,
                "seed": one.run.parameters["seed"],
                "scoring": one.run.parameters["scoring"],
                "reliability": reliability_as_list(verdicts.get(one.run.pk, {})),
                "numbers": _attack_numbers(one),
            }
            for one in attacks
            if one.run.parameters.get("trained") == run.pk
        ],
    }


def reliability_as_list(verdicts: Mapping[str, Reliability]) -> list[dict[str, Any]]:
    """Return whether an attacker is strong enough, a row for each data set."""
    return [asdict(one) | {"data_set": data_set, "word": one.word} for data_set, one in verdicts.items()]


def attacker_archive(run: EvaluationRun, seed: int) -> IO[bytes]:
    """Return a zip of the attacker of a seed: weights, recipe, values and fitted back end; "not found" until it is
    there."""
    keys = {name: encoder_key(run, seed, name) for name in list_files(run)}
    if seed not in list_trained_seeds(run) or not all(map(default_storage.exists, keys.values())):
        raise Http404
    return pack_files(keys)


def pack_files(keys: Mapping[str, str]) -> IO[bytes]:
    """Return a zip of stored files, by their names in it."""
    packed = tempfile.TemporaryFile(prefix="portal-zip-")  # noqa: SIM115 - the sender closes it
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, key in keys.items():
            with default_storage.open(key) as stored, archive.open(name, "w", force_zip64=True) as place:
                shutil.copyfileobj(stored, place, CHUNK_BYTES)
    packed.seek(0)
    return packed
