"""The listeners of the demo's closed studies, who are simulated: nobody listened, and every session says so.

What they answer follows `portal.demo.listener_model`. How good a sample sounds to them follows two numbers of the
same utterance: its pitch correlation ρ with the original, and the word error rate w of the portal's recogniser. With
d = 1 − ρ, all latent and in [0, 1] (the formulas stand in `model_sound`):

    naturalness      0.85 − 0.60 d          distance to the same speaker       0.22 + 0.75 d
    intelligibility  0.88 − 0.35 d − 0.3 w  distance to another speaker        0.75 − 0.05 d
    words misheard   0.04 + 0.30 d²         share of the voice that is kept    1 − 0.9 d  (mean of the system)

The last listener of a study of ratings is careless and rates at random; nobody leaves the session out. All others get
the control trials right. `answer_study` writes sessions and answers as finished ones look; times are simulated too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.db import transaction

from evaluation.app.audio_measures.selectors import count_utterance_errors, read_pitch_correlations
from evaluation.formats.results import Speech
from listening.analysis.reading.inputs import ORIGINAL
from listening.app.models import Answer, Block, Participant, Play, PresentationSample, Session, Study, Trial
from listening.app.sessions.payloads import validate_board
from listening.app.studies.selectors import heard_submissions
from portal.challenges.models import Edition
from portal.demo.listener_model import (
    ORIGINAL_SPEECH,
    RatedTrial,
    SystemModel,
    draw_voices,
    simulate_board,
    simulate_ratings,
    simulate_transcripts,
)

UNKNOWN_PITCH = 0.5
SECONDS_A_TASK = 5.0
QUICKEST = 0.5  # of these times, where the study has less time


@dataclass(frozen=True)
class Sample:
    """What is heard of a trial: `system` is its code, or `ORIGINAL`."""

    slot: str
    system: str
    utterance: str
    speaker: str
    words: str
    seconds: float


@dataclass(frozen=True)
class PresentedTrial:
    """A trial as one listener meets it; `expected` as `Presentation` has it."""

    pk: int
    block: int
    is_target: bool | None
    expected: Mapping[str, Sequence[int]]
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Said:
    """An answer to one task of a trial."""

    trial: PresentedTrial
    task: str
    rating: int | None = None
    text: str = ""
    data: Mapping[str, Any] | None = None


Models = Mapping[str, SystemModel]


@transaction.atomic
def answer_study(study: Study, now: datetime) -> None:
    """Let a simulated listener answer every block of a launched study, between its launch and `now`.

    Where that time is too short for anybody to listen in, the launch is moved to before.
    """
    trials = presented(study)
    answer = {Study.Form.RATING: _rate, Study.Form.LINKABILITY: _place, Study.Form.TRANSCRIPTION: _write}[study.form]
    said: dict[int, list[Said]] = defaultdict(list)
    for one in answer(study, trials, make_models(study, trials), np.random.default_rng(study.seed)):
        said[one.trial.block].append(one)
    blocks = list(study.blocks.order_by("number"))
    sessions = _sessions(study, blocks)
    longest = timedelta(seconds=max(sum(map(_seconds, one)) for one in said.values()))
    room = now - (study.launched_at or now)
    pace = min(1.0, max(QUICKEST, room / longest))
    room = max(room, pace * longest)
    study.launched_at = now - room
    study.save(update_fields=["launched_at"])
    for place, (block, session) in enumerate(zip(blocks, sessions, strict=True), 1):
        _keep(session, said[block.pk], now - (1 - place / len(blocks)) * (room - pace * longest), pace)
        block.holder, block.is_finished, block.offers = session, True, 1
    times = ["started_at", "consented_at", "trials_started_at", "last_seen_at", "ended_at"]
    Session.objects.bulk_update(sessions, times)
    Block.objects.bulk_update(blocks, ["holder", "is_finished", "offers"])


def presented(study: Study) -> list[PresentedTrial]:
    """Return every trial of a study with its samples, block by block in the order of presentation."""
    samples: dict[int, list[Sample]] = defaultdict(list)
    told = ("stimulus__item__name", "stimulus__item__speaker", "stimulus__item__transcript", "stimulus__duration_s")
    found = PresentationSample.objects.filter(presentation__study=study).order_by("pk")
    rows = found.values_list("presentation", "slot", "stimulus__condition__code", *told)
    for item, slot, system, utterance, speaker, words, seconds in rows:
        samples[item].append(Sample(slot, system or ORIGINAL, utterance, speaker, words, seconds))
    trials = Trial.objects.filter(block__study=study).order_by("block__number", "position")
    fields = ("pk", "block", "presentation__is_target", "presentation__expected", "presentation")
    return [
        PresentedTrial(pk, block, is_target, expected, tuple(samples[item]))
        for pk, block, is_target, expected, item in trials.values_list(*fields)
    ]


# How systems sound ---------------------------------------------------------------------------------


def model_sound(pitch_correlation: float, word_error_rate: float) -> SystemModel:
    """Return how a sample of these numbers sounds to a simulated listener."""
    distortion = 1 - min(1.0, max(0.0, pitch_correlation))
    return SystemModel(
        naturalness=0.85 - 0.60 * distortion,
        intelligibility=0.88 - 0.35 * distortion - 0.3 * min(1.0, word_error_rate),
        same_distance=0.22 + 0.75 * distortion,
        different_distance=0.75 - 0.05 * distortion,
        voice_kept=1 - 0.9 * distortion,
        word_error_rate=0.04 + 0.30 * distortion**2,
    )


def make_models(study: Study, trials: Sequence[PresentedTrial]) -> dict[str, SystemModel]:
    """Return how each system sounds on the whole, by its code, and each of its samples, by `_key`."""
    heard = {(one.system, one.utterance): one.words for trial in trials for one in trial.samples}
    transcripts = {utterance: words for (_, utterance), words in heard.items()}
    systems = heard_submissions(study)
    words = count_utterance_errors(systems.values(), transcripts, Edition.objects.get(studies=study).recipe)
    pitch = read_pitch_correlations(systems.values(), transcripts)
    models = {ORIGINAL: ORIGINAL_SPEECH}
    of_system: dict[str, list[float]] = defaultdict(list)
    for system, utterance in sorted(heard):
        if system == ORIGINAL:
            models[_key(system, utterance)] = ORIGINAL_SPEECH
            continue
        submission = systems[system].pk
        count = words.get((submission, Speech.ANONYMISED), {}).get(utterance)
        known = pitch.get((submission, utterance), UNKNOWN_PITCH)
        of_system[system].append(known)
        models[_key(system, utterance)] = model_sound(known, count.errors / count.words if count else 0.0)
    return models | {system: model_sound(float(np.mean(values)), 0.0) for system, values in of_system.items()}


def _key(system: str, utterance: str) -> str:
    return f"{system}\t{utterance}"


# What listeners answer -----------------------------------------------------------------------------


def _rate(
    study: Study, trials: Sequence[PresentedTrial], models: Models, numbers: np.random.Generator
) -> Iterator[Said]:
    asked = [(trial, task) for trial in trials for task in study.asked_keys]
    rated = []
    for trial, task in asked:
        first, is_target = trial.samples[0], int(bool(trial.is_target))
        key = _key(first.system, first.utterance)
        rated.append(RatedTrial(trial.block, key, is_target, first.utterance, first.speaker, task))
    points = {one.key: one.points for one in study.asked}
    scale = {task: (1.0, float(highest)) for task, highest in points.items()}
    ratings = simulate_ratings(rated, models, scale, numbers)
    careless = trials[-1].block
    for (trial, task), rating in zip(asked, ratings.tolist(), strict=True):
        low, high = trial.expected.get(task, (1, points[task]))
        is_careless = trial.block == careless
        chosen = int(numbers.integers(1, points[task] + 1)) if is_careless else min(high, max(low, rating))
        yield Said(trial, task, rating=chosen)


def _place(
    study: Study, trials: Sequence[PresentedTrial], models: Models, numbers: np.random.Generator
) -> Iterator[Said]:
    samples = [(one.system, one.utterance, one.speaker) for trial in trials for one in trial.samples]
    of_boards = np.cumsum([len(trial.samples) for trial in trials])[:-1]
    for trial, voices in zip(trials, np.split(draw_voices(samples, models, numbers), of_boards), strict=True):
        speakers = len({one.speaker for one in trial.samples})
        places, groups, declared = simulate_board(voices, speakers, study.board_dimensions, numbers)
        board, moves = {}, []
        for number, (one, at, group) in enumerate(zip(trial.samples, places, groups, strict=True), 1):
            board[one.slot] = {"at": at, "group": group if study.board_groups else "", "plays": 2}
            moves.append({"slot": one.slot, "ms": 8000 * number, "by": "drag", "from": None, "to": at})
        given = {"speakers": declared, "samples": board, "moves": moves, "left_out": 0}
        slots = [one.slot for one in trial.samples]
        kept = validate_board(given, slots=slots, dimensions=study.board_dimensions, has_groups=study.board_groups)
        yield Said(trial, study.asked_keys[0], data=kept)


def _write(
    study: Study, trials: Sequence[PresentedTrial], models: Models, numbers: np.random.Generator
) -> Iterator[Said]:
    heard = [(trial, trial.samples[0]) for trial in trials]
    sentences = [
        (trial.block, models[_key(one.system, one.utterance)].word_error_rate, one.words.lower())
        for trial, one in heard
    ]
    for trial, text in zip(trials, simulate_transcripts(sentences, numbers), strict=True):
        yield Said(trial, study.asked_keys[0], text=text, data={"nothing": not text})


# Rows ----------------------------------------------------------------------------------------------


def _sessions(study: Study, blocks: Sequence[Block]) -> list[Session]:
    """Return a finished session for each block, marked as simulated; nobody was asked anything before its trials."""
    people = Participant.objects.bulk_create(
        Participant(study=study, person_key=f"simulated-{block.number}") for block in blocks
    )
    ended: dict[str, Any] = {"state": Session.State.FINISHED, "step": Session.Step.END, "is_simulated": True}
    return Session.objects.bulk_create(
        Session(study=study, participant=person, block=block, **ended)
        for block, person in zip(blocks, people, strict=True)
    )


def _keep(session: Session, said: Sequence[Said], end: datetime, pace: float) -> None:
    """Write the answers of a session, and set its times so that it ends then."""
    spent = [pace * _seconds(one) for one in said]
    at = session.started_at = end - timedelta(seconds=sum(spent))
    session.consented_at = session.trials_started_at = at
    answers = []
    for one, seconds in zip(said, spent, strict=True):
        at += timedelta(seconds=seconds)
        fields = {"rating": one.rating, "text": one.text, "data": dict(one.data or {})}
        told = round(1000 * seconds)
        answers.append(
            Answer(session=session, trial_id=one.trial.pk, task=one.task, received_at=at, client_ms=told, **fields)
        )
    Answer.objects.bulk_create(answers)
    heard = {one.trial.pk: one.trial.samples for one in said}
    Play.objects.bulk_create(
        Play(
            session=session,
            trial_id=trial,
            slot=one.slot,
            started_ms=0,
            heard_ms=round(1000 * one.seconds),
            is_whole=True,
        )
        for trial, samples in heard.items()
        for one in samples
    )
    session.last_seen_at = session.ended_at = at


def _seconds(said: Said) -> float:
    """Return how long an answer takes: what is heard of its trial, and some seconds."""
    return sum(one.seconds for one in said.trial.samples) + SECONDS_A_TASK
