"""The jobs that compute what the listeners of a study said, and that read large files of ratings.

The first keeps what it has (the inputs, the tables, each figure) as soon as it has it, so an interrupted one goes on
where it was; it always computes from the stored inputs, as anyone who downloads the bundle does.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.files.storage import default_storage
from django.db import transaction

from common.errors import ProblemsError
from listening.analysis.analyse import analyse
from listening.analysis.bundle import compute_fingerprint, read_inputs, write_inputs
from listening.analysis.figures import list_figures
from listening.analysis.reading.inputs import Inputs, Settings, parse_settings
from listening.analysis.tables import Results
from listening.app.models import Analysis
from listening.app.results.importing import IMPORT_JOB, finish_import, forget_import
from listening.app.results.inputs import collect_inputs, compute_basis
from listening.app.results.services import ANALYSIS_JOB, delete_unused_files, write_flags
from portal.core import audit
from portal.core.clock import read_clock
from portal.core.one_state import read_one_state
from portal.core.storage import store_bytes
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext

COLLECTING, DRAWING = "Collecting the ratings", "Drawing the figures"
READING = "Reading the ratings"
WITHDREW = "Somebody withdrew while the study was analysed, so what was computed is deleted."


@job_kind(ANALYSIS_JOB, title="Analysis of a listening test", queue=Queue.CPU)
def run_analysis(context: JobContext) -> dict[str, Any]:
    """Collect, compute, draw.

    Raises:
        JobFailure: there is nothing to analyse, or somebody withdrew meanwhile.
    """
    analysis = Analysis.objects.select_related("study__edition").filter(job=context.job).first()
    if analysis is None:
        raise _failure("The study was analysed again since this job was started.")
    context.progress(COLLECTING, 0, 0)
    try:
        inputs, settings = _load_inputs(analysis)
        is_known = _take_from_equal(analysis)
        results = _compute_results(context, analysis, inputs, settings)
    except ProblemsError as error:
        raise _failure(" ".join(error.problems)) from None
    if not is_known:
        _draw(context, analysis, results)
    _finish(analysis, results)
    return {"tables": len(results.tables), "figures": len(analysis.figures), **_told(results)}


@job_kind(
    IMPORT_JOB,
    title="Import of ratings",
    queue=Queue.INTAKE,
    time_limit_s=3600,
    comes_first=True,
    on_end=forget_import,
)
def run_import(context: JobContext) -> dict[str, Any]:
    """Read a large file of ratings into a study.

    Raises:
        JobFailure: something is wrong with the file, or the name was taken meanwhile.
    """
    context.progress(READING, 0, 0)
    try:
        made = finish_import(context.job, context.check)
    except (ProblemsError, ValidationError) as error:
        sentences = error.problems if isinstance(error, ProblemsError) else error.messages
        raise JobFailure(
            " ".join(sentences), actor=Actor.ORGANIZER, remedy="Correct the file, then import it again."
        ) from None
    return {"study": made.study.name, "ratings": made.ratings, "matched_systems": list(made.matched)}


def _load_inputs(analysis: Analysis) -> tuple[Inputs, Settings]:
    """Return the stored inputs, stored now where they are not there yet."""
    if not analysis.inputs:
        settings = parse_settings(analysis.chosen)
        with read_one_state():
            basis, inputs = compute_basis(analysis.study), collect_inputs(analysis.study)
        key = store_bytes(write_inputs(inputs, settings), ".zip")
        _keep(analysis, basis=basis, inputs=key, fingerprint=compute_fingerprint(inputs, settings))
    with default_storage.open(analysis.inputs) as stored:
        return read_inputs(stored.read())


def _take_from_equal(analysis: Analysis) -> bool:
    """Take tables and figures from a finished analysis of equal inputs; whether there is one."""
    others = analysis.study.analyses.filter(fingerprint=analysis.fingerprint, erased_at=None, finished_at__isnull=False)
    equal = others.exclude(pk=analysis.pk).first()
    if equal is not None:
        _keep(analysis, results=equal.results, figures=equal.figures)
    return equal is not None


def _compute_results(context: JobContext, analysis: Analysis, inputs: Inputs, settings: Settings) -> Results:
    if analysis.results:
        with default_storage.open(analysis.results) as stored:
            return Results.from_json(stored.read())
    results = analyse(inputs, settings, context.progress)
    _keep(analysis, results=store_bytes(results.as_json().encode(), ".json"))
    return results


def _draw(context: JobContext, analysis: Analysis, results: Results) -> None:
    """Draw every figure that is not there yet, each in all of its forms, and keep it at once."""
    figures = list_figures(results)
    for done, figure in enumerate(figures):
        context.progress(DRAWING, done, len(figures))
        if missing := [path for path in figure.files if path not in analysis.figures]:
            made = figure.draw(missing).items()
            drawn = {path: store_bytes(content, f".{path.rpartition('.')[2]}") for path, content in made}
            _keep(analysis, figures=analysis.figures | drawn)
    context.progress(DRAWING, len(figures), len(figures))


def _keep(analysis: Analysis, **fields: Any) -> None:
    """Write fields of the analysis, unless its answers were erased meanwhile; then delete what was just stored.

    Raises:
        JobFailure: they were.
    """
    if Analysis.objects.filter(pk=analysis.pk, erased_at=None).update(**fields):
        for name, value in fields.items():
            setattr(analysis, name, value)
        return
    stored = [fields.get(name) for name in ("inputs", "results")] + list(fields.get("figures", {}).values())
    delete_unused_files(filter(None, stored))
    raise _failure(WITHDREW)


def _finish(analysis: Analysis, results: Results) -> None:
    """Let the analysis be there, with the flags that follow from it."""
    with transaction.atomic():
        _keep(analysis, finished_at=read_clock())
        flags = write_flags(analysis.study, results)
        audit.record(
            "study.analysed",
            analysis.study,
            actor=analysis.created_by,
            analysis=analysis.pk,
            fingerprint=analysis.fingerprint,
            flags=flags,
            **_told(results),
        )


def _told(results: Results) -> dict[str, int]:
    return {name: count for name, count in results.counts.items() if name in ("listeners", "sessions", "ratings")}


def _failure(sentence: str) -> JobFailure:
    remedy = "Analyse the study again from the page of its results."
    return JobFailure(sentence, actor=Actor.ORGANIZER, remedy=remedy)
