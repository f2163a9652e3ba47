"""Computing what the listeners of a study said, as a job: started by organizers, or by itself once a study is closed.

An analysis of equal inputs, settings and code is never computed twice. The job keeps what it has (the inputs, the
tables, each figure) as soon as it has it, so an interrupted one goes on where it was; it always computes from the
stored inputs, as whoever downloads the bundle does. While a study recruits it is refused, because whoever sees results
may stop at the ones they like. Public: `start_analysis`, `start_due_analysis`, `start_due_analyses`, `run_analysis`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone

from listening.analysis.errors import AnalysisInputError
from listening.analysis.inputs import Inputs
from listening.analysis.settings import Settings, settings_from
from listening.analysis.tables import Results
from listening.models import Analysis, Session, Study
from listening.monitor.exports import one_state
from listening.results.collecting import basis_of, has_answers, inputs_of
from listening.results.erasing import delete_unused
from listening.results.screening_flags import write_flags
from listening.results.selectors import current_analysis, parsed_results, running_job
from portal.core import audit
from portal.core.storage import store_bytes
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor
from portal.jobs.runner import JobContext
from portal.jobs.services import NotPossible, create_job

KIND = "analyse-study"
COLLECTING, DRAWING = "Collecting the ratings", "Drawing the figures"
LOCKED = "Results are locked until the study is closed: whoever sees them before may stop at the ones they like."
NOTHING = "There is nothing to analyse: no session that counts has an answer."
BUSY = "The study is being analysed already. Wait for it, or cancel its job first."
WITHDREW = "Somebody withdrew while the study was analysed, so what was computed is deleted."
WITHDREW_SINCE = "Somebody withdrew just now, so what was computed before is out of date. Analyse the study again."


@transaction.atomic
def start_analysis(
    study: Study, by: Any, chosen: Mapping[str, Any] | None = None, *, run_here: bool = False
) -> Analysis:
    """The analysis of a study as it is now: the one there is, or a new one whose job is started.

    Args:
        chosen: settings that differ from the usual ones.
        run_here: the caller executes the job.

    Raises:
        AnalysisInputError: a setting is unknown or out of range.
        NotPossible: the study is not closed, nobody answered, it is being analysed, or somebody withdrew meanwhile.
    """
    settings = settings_from(chosen or {}).as_data()
    study = Study.objects.select_for_update(of=("self",)).select_related("edition").get(pk=study.pk)
    _refuse(study)
    basis = basis_of(study)
    alike = [one for one in study.analyses.filter(basis=basis, erased_at=None) if one.chosen == settings]
    if made := next((one for one in alike if one.is_ready), None):
        return _again(study, made, by)
    analysis = next(iter(alike), None) or study.analyses.create(basis=basis, chosen=settings, created_by=by)
    analysis.job = create_job(
        kind=KIND,
        title=f"What listeners said in {study}"[:200],
        parameters={"analysis": analysis.pk},
        by=by,
        edition=study.edition.name,
        run_here=run_here,
    )
    analysis.save(update_fields=["job"])
    audit.record("study.analysis_started", study, actor=by, analysis=analysis.pk, settings=settings)
    return analysis


def start_due_analysis(study: Study) -> Analysis | None:
    """Analyse a closed study for the first time, once nobody listens to it any more; None where that is not due."""
    study = Study.objects.get(pk=study.pk)
    listening = study.sessions.filter(state=Session.State.ACTIVE, is_preview=False)
    if study.state != Study.State.CLOSED or study.analyses.exists() or listening.exists():
        return None
    with suppress(NotPossible):  # nobody answered
        return start_analysis(study, None)
    return None


def start_due_analyses() -> None:
    """`start_due_analysis` of every study that was never analysed."""
    for study in Study.objects.filter(state=Study.State.CLOSED, analyses=None):
        start_due_analysis(study)


def run_analysis(context: JobContext) -> dict[str, Any]:
    """Body of the job.

    Raises:
        JobFailure: there is nothing to analyse, or somebody withdrew meanwhile.
    """
    analysis = Analysis.objects.select_related("study__edition").filter(job=context.job).first()
    if analysis is None:
        raise _failure("The study was analysed anew since this job was started.")
    context.progress(COLLECTING, 0, 0)
    try:
        inputs, settings = _inputs(analysis)
        is_known = _take_from_equal(analysis)
        results = _results(context, analysis, inputs, settings)
    except AnalysisInputError as error:
        raise _failure(" ".join(error.problems)) from None
    if not is_known:
        _draw(context, analysis, results)
    _finish(analysis, results)
    return {"tables": len(results.tables), "figures": len(analysis.figures), **_told(results)}


# Starting ------------------------------------------------------------------------------------------


def _refuse(study: Study) -> None:
    if study.state != Study.State.CLOSED:
        raise NotPossible(LOCKED)
    job = running_job(study)
    if job is not None and not job.has_ended:
        raise NotPossible(BUSY)
    if not has_answers(study):
        raise NotPossible(NOTHING)


def _again(study: Study, made: Analysis, by: Any) -> Analysis:
    """An analysis that was made before, as the newest one, with the flags that follow from it; nothing is computed.

    Nothing is copied either: a withdrawal at this moment finds everything that holds answers.
    """
    newest = current_analysis(study)
    if newest is not None and newest.pk == made.pk:
        return made
    if not study.analyses.filter(pk=made.pk, erased_at=None).update(finished_at=timezone.now()):
        raise NotPossible(WITHDREW_SINCE)
    made.refresh_from_db()
    flags = write_flags(study, parsed_results(made.results))
    audit.record("study.analysis_taken_again", study, actor=by, analysis=made.pk, flags=flags)
    return made


# Running -------------------------------------------------------------------------------------------


def _inputs(analysis: Analysis) -> tuple[Inputs, Settings]:
    """The stored inputs, stored now where they are not there yet."""
    from listening.analysis.bundle import fingerprint, read_inputs, write_inputs

    if not analysis.inputs:
        settings = settings_from(analysis.chosen)
        with one_state():
            basis, inputs = basis_of(analysis.study), inputs_of(analysis.study)
        key = store_bytes(write_inputs(inputs, settings), ".zip")
        _keep(analysis, basis=basis, inputs=key, fingerprint=fingerprint(inputs, settings))
    with default_storage.open(analysis.inputs) as stored:
        return read_inputs(stored.read())


def _take_from_equal(analysis: Analysis) -> bool:
    """Take tables and figures from a finished analysis of equal inputs; whether there is one."""
    others = analysis.study.analyses.filter(fingerprint=analysis.fingerprint, erased_at=None, finished_at__isnull=False)
    equal = others.exclude(pk=analysis.pk).first()
    if equal is not None:
        _keep(analysis, results=equal.results, figures=equal.figures)
    return equal is not None


def _results(context: JobContext, analysis: Analysis, inputs: Inputs, settings: Settings) -> Results:
    from listening.analysis.analyse import analyse

    if analysis.results:
        with default_storage.open(analysis.results) as stored:
            return Results.from_json(stored.read())
    results = analyse(inputs, settings, context.progress)
    _keep(analysis, results=store_bytes(results.as_json().encode(), ".json"))
    return results


def _draw(context: JobContext, analysis: Analysis, results: Results) -> None:
    """Draw every figure that is not there yet, each in all of its forms, and keep it at once."""
    from listening.analysis.figures import figures_of

    figures = figures_of(results)
    for done, figure in enumerate(figures):
        context.progress(DRAWING, done, len(figures))
        missing = [file for file in figure.files() if file.path not in analysis.figures]
        drawn: dict[str, str] = {}
        for theme in dict.fromkeys(file.theme for file in missing):
            files = {file.image_format: file.path for file in missing if file.theme == theme}
            made = figure.draw_formats(theme, files)
            drawn |= {path: store_bytes(made[one], f".{one}") for one, path in files.items()}
        if drawn:
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
    delete_unused(filter(None, stored))
    raise _failure(WITHDREW)


def _finish(analysis: Analysis, results: Results) -> None:
    """Let the analysis be there, with the flags that follow from it."""
    with transaction.atomic():
        _keep(analysis, finished_at=timezone.now())
        flags = write_flags(analysis.study, results)
        audit.record(
            "study.analysed", analysis.study, actor=analysis.created_by, analysis=analysis.pk,
            fingerprint=analysis.fingerprint, flags=flags, **_told(results),
        )  # fmt: skip


def _told(results: Results) -> dict[str, int]:
    return {name: count for name, count in results.counts.items() if name in ("listeners", "sessions", "ratings")}


def _failure(sentence: str) -> JobFailure:
    remedy = "Analyse the study again from the page of its results."
    return JobFailure(sentence, actor=Actor.ORGANIZER, remedy=remedy)
