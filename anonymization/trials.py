"""How fast each method is on this machine, measured on one real utterance before anybody waits for thousands.

A trial is a job like any other: it runs where the work would run, and its result is kept as a row.
"""

from __future__ import annotations

import io
import time
from typing import Any

from django.db import transaction
from django.db.models import F

from anonymization.methods.conforming import Conformed, conform
from anonymization.methods.contract import Anonymizer, Item, Samples, takes_targets
from anonymization.methods.errors import MethodError
from anonymization.methods.pseudo_speakers import draw_pseudo_speaker, pseudo_speaker_key
from anonymization.methods.registry import get_method
from anonymization.methods.target_pool import pool_of_samples, target_voice
from anonymization.running import threads
from evaluation.formats.audio import AudioError, write_flac16
from portal.challenges.models import Corpus, Utterance
from portal.core.audio import load_audio
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job, State
from portal.jobs.runner import JobContext
from portal.jobs.services import create_job

# By whether the methods need a graphics card: such trials wait for a worker that has one.
KIND, KIND_GPU = KINDS = ("try-anonymizers", "try-anonymizers-gpu")
# Utterances are this long on average; the one tried is the nearest.
USUAL_S = 6.0
# Split, speaker and target of a trial; the target is the speaker, which costs what any other does.
_TRIAL = "trial"


@transaction.atomic
def start_trials(*, corpus: Corpus, methods: list[str], by: Any = None) -> Job:
    """A job that tries these methods on one utterance of the corpus, and one for those that need a graphics card.

    Returns:
        The first of them; of each kind the one under way, where there is one.
    """
    by_kind: dict[str, list[str]] = {}
    for name in methods:
        by_kind.setdefault(_kind_for(name), []).append(name)
    under_way = {job.kind: job for job in trials_under_way(corpus)}
    jobs = [
        under_way.get(kind)
        or create_job(
            kind=kind,
            title=f"Trial of anonymisers on one utterance of {corpus}",
            parameters={"corpus": corpus.name, "methods": by_kind[kind]},
            by=by,
        )
        for kind in KINDS
        if kind in by_kind
    ]
    return jobs[0]


def _kind_for(name: str) -> str:
    try:
        return KIND_GPU if get_method(name).needs_gpu else KIND
    except MethodError:  # its trial tells
        return KIND


def trials_under_way(corpus: Corpus) -> list[Job]:
    """The trials on this corpus that have not ended."""
    jobs = Job.objects.filter(kind__in=KINDS, state__in=[State.WAITING, State.RUNNING], parameters__corpus=corpus.name)
    return list(jobs.order_by("kind"))


def run_trials(context: JobContext) -> dict[str, Any]:
    """Body of the job: seconds of work for a second of speech of each method, or why there are none."""
    utterance = _usual_utterance(context.parameters["corpus"])
    try:
        conformed = conform(*load_audio(utterance.audio))
    except (AudioError, MethodError, OSError) as error:
        raise JobFailure(
            f"The utterance {utterance.name} cannot be read: {error}",
            actor=Actor.ORGANIZER,
            remedy="Mend its audio in the corpus, then run the trial again.",
        ) from error
    names = context.parameters["methods"]
    found: dict[str, Any] = {}
    for done, name in enumerate(names):
        context.progress(f"Trying {name}", done, len(names))
        found[name] = _try(name, conformed)
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


def _try(name: str, conformed: Conformed) -> dict[str, Any]:
    """The second of two calls counts: the first may compile and load."""
    try:
        method = get_method(name)
        if takes_targets(method):
            method = method.prepare(pool_of_samples({_TRIAL: conformed.samples}, conformed.rate_hz))
        # A method with targets may keep the analysis of what it saw: half of it is something else.
        first = conformed.samples[: conformed.samples.size // 2] if takes_targets(method) else conformed.samples
        _anonymize(method, first, conformed.rate_hz)
        began = time.monotonic()
        _anonymize(method, conformed.samples, conformed.rate_hz)
        took_s = time.monotonic() - began
    except MethodError as error:
        return {"reason": str(error)}
    except Exception as error:  # a plug-in may raise anything
        return {"reason": f"{type(error).__name__}: {error}"}
    speech_s = conformed.samples.size / conformed.rate_hz
    return {"version": method.version, "work_per_second": took_s / speech_s / (1 if method.needs_gpu else threads())}


def _anonymize(method: Anonymizer, samples: Samples, rate_hz: int) -> None:
    key = pseudo_speaker_key(seed=0, role="trial", split=_TRIAL, speaker=_TRIAL)
    voice = target_voice(_TRIAL) if takes_targets(method) else draw_pseudo_speaker(key, method.parameters)
    [output] = method.anonymize_batch([Item(samples, voice)], rate_hz)
    write_flac16(io.BytesIO(), output, rate_hz)
