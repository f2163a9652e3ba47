"""Starts evaluation runs, stores what they found, and ends or continues them: the same for every kind of runs.

A run is a chain of jobs, each after the other; the last is the run's own. Cancelling a run ends the whole chain;
one that is run again continues where it stopped, because what was made of a recording is kept by its content.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
from django.db import transaction

from common.errors import InputError
from evaluation.app.models import EvaluationRun, MetricValue, ScoreSet
from evaluation.app.runs.context import SetState
from evaluation.app.runs.kinds import EngineRunKind
from evaluation.app.runs.one_at_a_time import require_no_other
from evaluation.app.runs.selectors import FACTS, GENDERS, list_jobs
from evaluation.attackers.training.recipe import TRAINING_ENGINE
from evaluation.figures.style import SYNTHETIC, ImageFormat, Plot, Theme, draw_files
from evaluation.formats.results import AttackModel, Gender, NumberIdentity
from evaluation.objective_results.compute import Objective
from evaluation.objective_results.recomputation import MeasuredTest
from evaluation.objective_results.values import Number
from evaluation.protocols.recipes import Recipe
from portal.core import audit
from portal.core.storage import replace_named, store_bytes
from portal.core.version import code_version
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job, JobState
from portal.jobs.runner import JobContext
from portal.jobs.services import NotPossible, cancel_chain, continue_chain, create_job
from portal.jobs.workers import lacking
from portal.submissions.models import Submission
from portal.submissions.services import refuse_deleted, refuse_without_speech
from speech.model_files.devices import runs_on_card

# A submission whose speech is there to be heard.
HEARD = frozenset(
    {Submission.State.ACCEPTED, Submission.State.EVALUATING, Submission.State.EVALUATED, Submission.State.FAILED}
)
GONE = frozenset({Submission.State.REFUSED, Submission.State.WITHDRAWN})
BATCH = 500
# Of each enrolled speaker, beside the scores of a test: no names, the most exposed first.
SPEAKER_COLUMNS = ("kaldi_eer", "linkability", "n_target", "n_nontarget")
GENDER_COLUMNS = {gender: column for column, gender in GENDERS.items()}


# Starting ------------------------------------------------------------------------------------------


@transaction.atomic
def start_run(
    run: EvaluationRun,
    *,
    job: str,
    title: str,
    earlier_jobs: Iterable[tuple[str, str, dict[str, str]]] = (),
    needs: str = "",
    last_needs: str = "",
    card: bool | None = None,
    after: Job | None = None,
    by: Any = None,
    **details: Any,
) -> EvaluationRun:
    """Save a new run with its chain of jobs.

    Args:
        job, title: of the last job, which computes the numbers.
        earlier_jobs: kind, title and parameters of each job before it.
        needs: the engine, by its name, that the jobs before the last need; where it is alone, that it needs.
        last_needs: the engine that the last of several jobs needs.
        card: whether the jobs that need the engine run on a graphics card, as `create_job` takes it.
        after: the job that the chain follows.
        details: for the audit log.

    Raises:
        NotPossible: the submission is being deleted, or its recordings are gone and the run needs them.
    """
    refuse_deleted([run.submission])
    if run.kind != EvaluationRun.Kind.OBJECTIVE:
        refuse_without_speech([run.submission])
    run.code_version = code_version()
    run.save()
    place = run.submission.system.place_of_work
    for kind, heading, parameters in [*earlier_jobs, (job, title, {})]:
        is_by_engine = kind != job or not earlier_jobs
        named: dict[str, Any] = {"run": run.pk} | parameters
        after = create_job(
            kind=kind,
            title=heading[:200],
            parameters=named,
            engine=needs if is_by_engine else last_needs,
            card=card if is_by_engine else None,
            by=by,
            after=after,
            **place,
        )
    run.job = after
    run.save(update_fields=["job"])
    audit.record("evaluation.started", run, actor=by, **details)
    return run


@transaction.atomic
def start_engine_run(
    kind: EngineRunKind,
    run: EvaluationRun,
    *,
    engine_title: str,
    data_sets: Sequence[str],
    after: Job | None = None,
    by: Any = None,
) -> EvaluationRun:
    """Save a new run of an engine with its chain of jobs: one for each data set, then the one of the numbers.

    Raises:
        NotPossible: the submission has no speech to work on, or a run of the same engine over it is under way.
    """
    if after is None:
        _require_speech(run.submission, data_sets)
    require_no_other(run, f"{kind.title} {engine_title}", data_sets)
    return start_chain(kind, run, engine_title=engine_title, data_sets=data_sets, after=after, by=by)


def start_chain(
    kind: EngineRunKind,
    run: EvaluationRun,
    *,
    engine_title: str,
    data_sets: Sequence[str],
    after: Job | None = None,
    by: Any = None,
) -> EvaluationRun:
    """As `start_engine_run`, whatever there is to work on and whatever else is under way: the jobs tell."""
    title, first_title = f"{kind.title} {engine_title}", f"{kind.data_set_title} {engine_title}"
    system, engine = run.submission.system, kind.engines.engines().get(run.engine)
    return start_run(
        run,
        job=kind.job,
        title=f"{title} · {system}",
        earlier_jobs=[
            (kind.data_set_job, f"{first_title}, {name} · {system}", {"data_set": name}) for name in data_sets
        ],
        needs=TRAINING_ENGINE if "trained" in run.parameters else run.engine,
        card=None if engine is None or runs_on_card(engine.packages) else False,
        after=after,
        by=by,
        engine=run.engine,
    )


def find_engine(kind: EngineRunKind, name: str) -> Any:
    """Return the engine of a name, ready to work.

    Raises:
        NotPossible: there is none, or something that it needs is missing here.
    """
    try:
        engine = kind.engines.find_engine(name)
    except InputError as error:
        raise NotPossible(str(error)) from error
    if sentence := lacking({engine.name: kind.engines.explain_missing(engine)})[engine.name]:
        raise NotPossible(sentence)
    return engine


def choose_sets(kind: EngineRunKind, states: Iterable[SetState], wanted: Collection[str] | None) -> list[SetState]:
    """Return the sets that an engine goes over; all of those that are named have to be possible.

    Raises:
        NotPossible: one of those named is unknown or impossible, or there is none.
    """
    found = list(states)
    known = [one.name for one in found]
    if unknown := sorted(set(wanted or ()) - set(known)):
        raise NotPossible(
            f"Expected {kind.set_name} among {', '.join(sorted(known)) or 'none'}, found {', '.join(unknown)}."
        )
    chosen = [one for one in found if wanted is None or one.name in wanted]
    refused = [one for one in chosen if one.problem]
    if not chosen:
        raise NotPossible(kind.no_set)
    if refused and (wanted is not None or len(refused) == len(chosen)):
        raise NotPossible(refused[0].problem)
    return [one for one in chosen if not one.problem]


def _require_speech(submission: Submission, data_sets: Iterable[str]) -> None:
    """That these data sets of a submission are there as they will stay.

    Raises:
        NotPossible: it is not accepted, or an anonymiser is still at work on them.
    """
    if submission.state not in HEARD:
        raise NotPossible(f"{submission} is {submission.get_state_display().lower()}; there is no speech to work on.")
    runs = submission.anonymization_runs.filter(data_set__name__in=list(data_sets))
    unfinished = runs.exclude(job__state=JobState.SUCCEEDED).select_related("data_set").first()
    if unfinished is not None:
        raise NotPossible(
            f"The anonymisation of {unfinished.data_set} has not finished; start this once it has succeeded."
        )


# Working -------------------------------------------------------------------------------------------


def load_run(context: JobContext) -> EvaluationRun:
    """Return the run of a job, which may go on with its submission.

    Raises:
        JobFailure: the submission was withdrawn or refused since the job was made.
    """
    runs = EvaluationRun.objects.select_related("submission__system__edition__corpus", "submission__system__corpus")
    run = runs.get(pk=context.parameters["run"])
    if run.submission.state in GONE:
        raise JobFailure(
            f"{run.submission} is {run.submission.get_state_display().lower()}, so nothing is computed of its speech "
            "any more.",
            actor=Actor.NOBODY,
            remedy="There is nothing to do; numbers of other versions are not touched.",
        )
    return run


# Storing -------------------------------------------------------------------------------------------


@transaction.atomic
def store_numbers(run: EvaluationRun, numbers: Iterable[Number], score_sets: Sequence[ScoreSet] = ()) -> None:
    """Store the numbers of a run and its scores; what an interrupted attempt left is replaced."""
    run.values.all().delete()
    run.score_sets.all().delete()
    rows = (make_row(run, one) for one in numbers if np.isfinite(one.value))
    MetricValue.objects.bulk_create(rows, batch_size=BATCH)
    ScoreSet.objects.bulk_create(score_sets)


def make_row(run: EvaluationRun, number: Number) -> MetricValue:
    """Return the row of a number."""
    identity = number.identity
    names = {name: getattr(identity, name) for name in ("data_set", "metric", "estimator")}
    tested = {name: getattr(identity, name) or "" for name in ("attack_model", "training", "enrolment", "speech")}
    facts = {name: getattr(number, name) for name in ("basis", "value", *FACTS)}
    facts |= {"reported_text": number.reported_text[:60], "reported_in": number.reported_in[:400]}
    if number.reported is not None and not np.isfinite(number.reported):
        facts["reported"] = None
    return MetricValue(run=run, gender=GENDER_COLUMNS[identity.gender], **names, **tested, **facts)


@transaction.atomic
def store_objective(run: EvaluationRun, objective: Objective, score_sets: Sequence[ScoreSet]) -> None:
    """Store the numbers of scores, these scores, and the resampled averages for paired comparisons."""
    store_numbers(run, objective.numbers.values(), score_sets)
    averages = {
        replicates_name(identity): found.resampled
        for identity, found in objective.replicates.items()
        if identity.data_set.startswith("average_")
    }
    if averages:
        packed = io.BytesIO()
        np.savez_compressed(packed, allow_pickle=False, **averages)
        replace_named(replicates_key(run.pk), packed.getvalue())


def replicates_key(run: int) -> str:
    """Return where the resampled averages of a run lie."""
    return f"derived/objective/{run}/averages.npz"


def replicates_name(identity: NumberIdentity) -> str:
    """Name of an average in that file, such as ``average_test eer kaldi semi-informed``."""
    attack: AttackModel | str = identity.attack_model or identity.speech
    return f"{identity.data_set} {identity.metric} {identity.estimator} {attack}"


def make_score_set(run: EvaluationRun, test: MeasuredTest, recipe: Recipe) -> ScoreSet:
    """Return the scores of a test, sorted and stored; the row is to be saved."""
    targets, nontargets = np.sort(test.joined.target_scores), np.sort(test.joined.nontarget_scores)
    packed, exposure = io.BytesIO(), test.exposure
    beyond = {name: np.array([getattr(one, name) for one in exposure.speakers]) for name in SPEAKER_COLUMNS}
    if exposure.ranks is not None:
        beyond |= {"rank_counts": exposure.ranks.counts, "rank_chances": exposure.ranks.chances}
    np.savez_compressed(packed, allow_pickle=False, targets=targets, nontargets=nontargets, **beyond)
    file = test.file
    gender = Gender(recipe.data_sets[file.data_set].gender)
    identity = NumberIdentity(file.data_set, gender, "eer", "kaldi", *file.speeches)
    return ScoreSet(
        run=run,
        data_set=file.data_set,
        gender=GENDER_COLUMNS[gender],
        attack_model=identity.attack_model or "",
        training=file.training,
        enrolment=file.enrolment,
        speech=file.speech,
        target_count=targets.size,
        nontarget_count=nontargets.size,
        key=store_bytes(packed.getvalue(), ".npz"),
    )


def store_figure(run: EvaluationRun, key: Callable[[Theme, ImageFormat], str], plot: Plot, **words: Any) -> None:
    """Draw a figure of a run and keep its files; it says where the speech is synthetic.

    Args:
        key: where they lie.
        words: title, description and what else `draw_files` takes.
    """
    system = run.submission.system
    corpus = system.edition.corpus if system.edition else system.corpus
    stamp = SYNTHETIC if corpus and corpus.is_synthetic else ""
    for (theme, image_format), content in draw_files(plot, stamp=stamp, **words).items():
        replace_named(key(theme, image_format), content)


# Ending and continuing -----------------------------------------------------------------------------


def cancel_run(run: EvaluationRun, by: Any) -> None:
    """End a run: what is at work is asked to stop, what waits for it is cancelled with it.

    Raises:
        NotPossible: it has ended, or was asked before.
    """
    cancel_chain(list_jobs(run), by=by)


def continue_run(run: EvaluationRun, by: Any) -> None:
    """Let a failed or cancelled run go on where it stopped.

    Raises:
        NotPossible: nothing in it failed or was cancelled, or the submission is being deleted.
    """
    refuse_deleted([run.submission])
    continue_chain(list_jobs(run), by=by)
