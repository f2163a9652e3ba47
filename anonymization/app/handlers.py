"""Background work of anonymisers: a run over a data set, and trials of their speed on one real utterance.

A trial is a job like any other: it runs where the work would run, before anybody waits for thousands of utterances, and
its result is kept as a row.
"""

from __future__ import annotations

import io
import time
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from django.db.models import F

from anonymization.app import job
from anonymization.app.models import AnonymizationRun
from anonymization.app.networks import open_run_method
from anonymization.app.selectors import NETWORKS, TRIAL
from anonymization.app.services import settle_anonymization
from anonymization.app.voice_assignment import (
    check_run_voices,
    give_voices,
    is_planned_in_job,
    list_planned_voices,
    list_speakers,
    plan_run_voices,
    prepare_targets,
    take_plan_of_others,
)
from anonymization.methods.audio_conversion import ConvertedAudio, convert_audio
from anonymization.methods.content_decoder.retrained import find_retrained
from anonymization.methods.contract import (
    Anonymizer,
    MethodError,
    VoicedUtterance,
    VoiceRequest,
    complete_options,
    makes_vectors,
    takes_targets,
    validate_voice,
)
from anonymization.methods.registry import explain_missing, get_method, methods
from anonymization.methods.voices.pseudo_speakers import draw_voice, pseudo_speaker_key
from anonymization.methods.voices.targets import pool_of_samples, target_voice
from common.arrays import Samples
from portal.challenges.models import DataSet, Utterance
from portal.core.storage import load_audio
from portal.core.version import code_version
from portal.jobs.kinds import JobFailure, engine_finder, job_kind
from portal.jobs.long_work import threads
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext
from speech.audio.files import AudioError, write_flac16

PLANNING = "Planning voices"
# So many speakers are named where several lack a voice.
SPEAKERS_NAMED = 5
# Utterances are this long on average; the one tried is the nearest.
USUAL_S = 6.0
# Split, speaker and target of a trial; the target is the speaker, which costs what any other does.
_TRIAL = "trial"


@job_kind(
    "anonymize", title="Anonymisation of a data set", queue=Queue.CPU, memory_mb=1000, on_end=settle_anonymization
)
def run_anonymization(context: JobContext) -> dict[str, Any]:
    """Body of the job: anonymise each utterance of the run's data set that has no file yet.

    The first utterance goes alone: when it fails, the others are not tried.
    """
    rows = AnonymizationRun.objects.select_related("data_set__corpus", "submission__system", NETWORKS)
    run = rows.get(pk=context.parameters["run"])
    extent = job.measure_extent(run)
    _require_audio(run.data_set, extent)
    with ExitStack() as files:
        return _anonymize(run, _load_method(run, extent, files), extent, context)


def _anonymize(run: AnonymizationRun, method: Anonymizer, extent: job.RunExtent, context: JobContext) -> dict[str, Any]:
    _plan_voices(run, method, context)
    _require_voices(run)
    method = prepare_targets(run, method)
    work = job.AnonymizationWork(run, method, extent, context.check)
    if 0 < extent.kept < extent.total:
        context.note(f"{extent.kept} of {extent.total} utterances were anonymised before; continuing.")
    if extent.kept < extent.total:
        context.progress(job.PREPARING, 0, 0)
        work.prepare()
        context.progress(job.ANONYMISING, extent.kept, extent.total)
        work.go(lambda done: context.progress(job.ANONYMISING, done, extent.total))
    context.progress(job.ANONYMISING, work.done, extent.total)
    if work.failed:
        raise _failure(run, work)
    voices, problems = check_run_voices(run)
    told = {name: getattr(voices, name) for name in ("n_voices", "distance", "smallest_distance")}
    told |= {"sentence": voices.sentence(), "holds": voices.voices_differ}
    told["problems"] = [asdict(problem) for problem in problems]
    job.store_report(run, voices=told)
    context.problems += [*job.read_stored_problems(run), *problems]
    return {"utterances": extent.total}


@engine_finder
def find_methods() -> list[str]:
    """Return the anonymisers that this machine has."""
    return [method.name for method in methods() if not explain_missing(method)]


def _load_method(run: AnonymizationRun, extent: job.RunExtent, files: ExitStack) -> Anonymizer:
    """Return the method of a run, in the version that made what is there already; where nothing is, in the one at hand.

    Args:
        files: keeps those of its network until it is closed.
    """
    try:
        method = files.enter_context(open_run_method(run))
        missing = explain_missing(method)
    except MethodError as error:
        missing = str(error)
    if missing and run.retrained and run.network is None:
        raise JobFailure(missing, actor=Actor.ORGANIZER, remedy="Start the system again with another network.")
    if missing:
        raise JobFailure(missing, actor=Actor.OPERATOR, remedy="Then run the job again; what was finished is kept.")
    if method.version != run.recipe_version and extent.kept:
        raise JobFailure(
            f"{extent.kept} of {extent.total} utterances of {run.data_set} were anonymised by {method.name} in version "
            f"{run.recipe_version}; this portal has version {method.version}, whose output may differ.",
            actor=Actor.ORGANIZER,
            remedy="Start the system again, so that one version makes all of it.",
        )
    if method.version != run.recipe_version:
        _renew(run, method)
    return method


def _renew(run: AnonymizationRun, method: Anonymizer) -> None:
    """Let a run that made nothing yet begin with another version of its method, as if it were started now.

    Voices that this version can take stay, because other runs may share them.
    """
    try:
        run.options = complete_options(method, run.options)
    except MethodError as error:
        raise JobFailure(
            f"The options of this run were chosen for version {run.recipe_version} of {method.name}; this portal has "
            f"version {method.version}. {error}",
            actor=Actor.ORGANIZER,
            remedy="Start the system again with the options of this version.",
        ) from error
    try:
        for _, voice in list_planned_voices(run):
            validate_voice(method, voice)
    except MethodError:
        run.voices = {}
        if not is_planned_in_job(run, method):
            give_voices(run, plan_run_voices(method, run))
    run.recipe_version, run.code_version = method.version, code_version()
    run.retrained = dict(find_retrained(method))
    run.save(update_fields=["recipe_version", "code_version", "options", "voices", "voice_distance", "retrained"])


def _plan_voices(run: AnonymizationRun, method: Anonymizer, context: JobContext) -> None:
    """Let a method that plans its voices itself do so, once for all runs of a role and split (at utterance level for
    each run); an interrupted plan is made again, to the same voices."""
    if run.voices or not is_planned_in_job(run, method):
        return
    if not take_plan_of_others(run):
        total = (
            run.data_set.utterances.count()
            if run.is_by_utterance
            else len(list_speakers(run.data_set.corpus, run.data_set.split))
        )
        context.progress(PLANNING, 0, total)
        owners: set[str] = set()

        def heard(owner: str) -> None:
            owners.add(owner)
            context.progress(PLANNING, len(owners) - 1, total)

        try:
            give_voices(run, plan_run_voices(method, run, heard))
        except MethodError as error:
            raise JobFailure(
                f"The voices of {run.data_set} could not be planned: {error}",
                actor=Actor.ORGANIZER,
                remedy="Fix the recordings that it names in the corpus, then run the job again.",
            ) from error
        context.progress(PLANNING, total, total)
    run.save(update_fields=["voices", "voice_distance"])


def _require_voices(run: AnonymizationRun) -> None:
    """The plan of a run has a voice, or a target, for everything in its data set."""
    plans = [(run.voices, "voice", "all speakers")] if run.voices else []
    plans += [(run.targets, "target", "all")] if run.target_selection else []
    column = "name" if run.is_by_utterance else "speaker__name"
    every = run.data_set.utterances.order_by(column).values_list(column, flat=True).distinct()
    for planned, what, whose in plans:
        names = list(every)
        if unplanned := [name for name in names if name not in planned]:
            named = ", ".join(unplanned[:SPEAKERS_NAMED]) + (", …" if len(unplanned) > SPEAKERS_NAMED else "")
            raise JobFailure(
                f"{len(unplanned)} of {len(names)} {run.level}s of {run.data_set} have no {what} in this run, because "
                f"they came into the corpus after its {what}s were planned: {named}.",
                actor=Actor.ORGANIZER,
                remedy=f"Start the system again, so that the {what}s of {whose} are planned together.",
            )


def _require_audio(data_set: DataSet, extent: job.RunExtent) -> None:
    if extent.without_audio or not extent.total:
        raise JobFailure(
            f"{extent.without_audio} of {extent.total} utterances of {data_set} have no audio in the corpus.",
            actor=Actor.ORGANIZER,
            remedy="Import the corpus again with its audio; it is then added to what is there.",
        )


def _failure(run: AnonymizationRun, work: job.AnonymizationWork) -> JobFailure:
    is_canary = not work.extent.kept and not work.done
    return JobFailure(
        f"{work.failed} of {work.extent.total} utterances of {run.data_set} could not be anonymised"
        f"{', the first one among them, so the others were not tried' if is_canary else ''}.",
        actor=Actor.ORGANIZER,
        remedy="The report names each with its reason. Fix the corpus or the method and run the job again.",
        problems=[*work.failures.report(), *job.read_stored_problems(run)],
    )


# Trials ---------------------------------------------------------------------------------------------


@job_kind(
    TRIAL,
    title="Trial of anonymisers on one utterance",
    queue=Queue.CPU,
    memory_mb=1000,
    time_limit_s=7200,
    comes_first=True,
)
def measure_speed(context: JobContext) -> dict[str, Any]:
    """Body of the job: seconds of work for a second of speech of each method, or why there are none."""
    utterance = _usual_utterance(context.parameters["corpus"])
    try:
        conformed = convert_audio(*load_audio(utterance.audio))
    except (AudioError, MethodError, OSError) as error:
        raise JobFailure(
            f"The utterance {utterance.name} cannot be read: {error}",
            actor=Actor.ORGANIZER,
            remedy="Fix its audio in the corpus, then run the trial again.",
        ) from error
    names = context.parameters["methods"]
    found: dict[str, Any] = {}
    for done, name in enumerate(names):
        context.progress(f"Trying {name}", done, len(names))
        found[name] = _try_method(name, conformed)
    return {"utterance": utterance.name, "methods": found}


def _usual_utterance(corpus: str) -> Utterance:
    spoken = Utterance.objects.filter(corpus__name=corpus, duration_s__isnull=False).exclude(audio="")
    nearest = spoken.alias(away=(F("duration_s") - USUAL_S) * (F("duration_s") - USUAL_S)).order_by("away", "name")
    utterance = nearest.first()
    if utterance is None:
        raise JobFailure(
            f"No utterance of {corpus} has audio.", actor=Actor.ORGANIZER, remedy="Import the corpus with its audio."
        )
    return utterance


def _try_method(name: str, conformed: ConvertedAudio) -> dict[str, Any]:
    """The second of two calls counts: the first may compile and load."""
    try:
        method = get_method(name)
        if takes_targets(method):
            method = method.prepare(pool_of_samples({_TRIAL: conformed.samples}, conformed.rate_hz))
        # A method with targets may keep the analysis of what it saw: half of it is something else.
        first = conformed.samples[: conformed.samples.size // 2] if takes_targets(method) else conformed.samples
        _anonymize_once(method, first, conformed.rate_hz)
        began = time.monotonic()
        _anonymize_once(method, conformed.samples, conformed.rate_hz)
        took_s = time.monotonic() - began
    except MethodError as error:
        return {"reason": str(error)}
    except Exception as error:  # a plug-in may raise anything
        return {"reason": f"{type(error).__name__}: {error}"}
    speech_s = conformed.samples.size / conformed.rate_hz
    at_once = 1 if method.needs_gpu else threads()
    return {"version": method.version, "work_per_second": took_s / speech_s / at_once}


def _anonymize_once(method: Anonymizer, samples: Samples, rate_hz: int) -> None:
    key = pseudo_speaker_key(seed=0, role="trial", split=_TRIAL, speaker=_TRIAL)
    request = VoiceRequest(key, "", (lambda: (samples, rate_hz),) if makes_vectors(method) else ())
    voice = target_voice(_TRIAL) if takes_targets(method) else draw_voice(method, request)
    [output] = method.anonymize_batch([VoicedUtterance(samples, voice)], rate_hz)
    write_flac16(io.BytesIO(), output, rate_hz)
