"""Sessions as they stand: finding one by its token, the steps it has, the trials of its block, and how far it has come.

The token is the only credential: an unknown one is not found. The order of trials is that of the block. One whose sound
failed moves to the end once and is given up the second time (`Session.skips`). A launched study's blocks never change,
so what they ask is read once by each process. An address of sound is derived from the session's secret, the trial and
the slot by a keyed hash: nothing is stored for it, it tells nothing, and the same recording has another one in every
session and every trial. A browser is told of a trial its position, whether it is for practice, its tasks, and its
samples by slot, address and length; nothing tells its purpose, system, class or speaker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from listening.app.models import Answer, Block, Presentation, Session, Stimulus, Study, Trial
from listening.app.sessions.attention import seconds_to_hear
from listening.app.sessions.clip_urls import clip_address
from listening.app.sessions.payloads import Value
from listening.app.studies.rules import seconds_of_trial
from listening.app.studies.settings import BackgroundQuestion, Screening, parse_questionnaire, parse_screening
from listening.questions import AskedQuestion, Kind, slot_order

Step = Session.Step
STEPS = (Step.CONSENT, Step.QUESTIONS, Step.SOUND, Step.HEADPHONES, Step.ROLE_PLAY, Step.TRIALS)
AHEAD = 3  # the trial to answer and the two after it
MOST_CACHED = 1024
GIVEN_UP_AFTER = 2
Answered = Mapping[int, Mapping[str, int | None]]
_cached_blocks: dict[tuple[str, int | None], PlannedBlock] = {}  # by token and block of a session


def session_for(token: str, lock: bool = False) -> Session:
    """Return the session of this address with its study and block.

    Args:
        lock: hold its row until the transaction ends, so that nobody else changes it meanwhile.

    Raises:
        Http404: there is none.
    """
    sessions = Session.objects.select_related("study", "block")
    return get_object_or_404(lock_sessions(sessions) if lock else sessions, token=token)


def lock_sessions(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Return the rows of sessions alone, held until the end of the transaction."""
    return sessions.select_for_update(of=("self",), no_key=True)


def lease_seconds_left(session: Session, now: datetime) -> int | None:
    """Return until the session's lease ends; None where it has none."""
    block = session.block
    if block is None or block.holder_id != session.pk or block.lease_expires_at is None:
        return None
    return max(0, int((block.lease_expires_at - now).total_seconds()))


# Steps ---------------------------------------------------------------------------------------------


def read_screening(study: Study) -> Screening:
    return parse_screening(study.screening)


def list_questions(study: Study) -> tuple[BackgroundQuestion, ...]:
    return parse_questionnaire(study.questionnaire, screening=read_screening(study))


def list_steps(study: Study) -> tuple[Session.Step, ...]:
    """Return the steps that this study has, in their order; one in which there is nothing to do is none of them."""
    tests = read_screening(study)
    left_out = {
        Step.QUESTIONS: not list_questions(study),
        Step.SOUND: not tests.sound,
        Step.HEADPHONES: not tests.checks,
    }
    return tuple(step for step in STEPS if not left_out.get(step))


# Trials --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlannedSample:
    slot: str
    seconds: float  # as long as its file lasts
    address: str  # in this session


@dataclass(frozen=True)
class PlannedTrial:
    """`trial` has its key and position, nothing more. `usual_s`: about how long it takes.

    `right`: of a choice for practice number and label of the right answer by question, where it is known.
    """

    trial: Trial
    position: int
    is_practice: bool
    tasks: tuple[str, ...]
    samples: tuple[PlannedSample, ...]
    usual_s: float
    right: Mapping[str, tuple[int, str]]

    @property
    def seconds(self) -> dict[str, float]:
        """Return how long each sample lasts, by slot."""
        return {sample.slot: sample.seconds for sample in self.samples}


@dataclass(frozen=True)
class PlannedBlock:
    """The trials of a block by position; the questions are `asked` of each, in this order.

    Of `study` only what is fixed since the launch may be read: it lives longer than one request.
    """

    study: Study
    asked: tuple[AskedQuestion, ...]
    trials: Mapping[int, PlannedTrial]


@dataclass(frozen=True)
class SessionProgress:
    """`left`: what is to be answered, in order; `done`: how many are answered or given up, of `total`; the first ones
    are for `practice`."""

    total: int
    practice: int
    left: tuple[PlannedTrial, ...]
    given_up: int

    @property
    def done(self) -> int:
        return self.total - len(self.left)

    @property
    def next(self) -> PlannedTrial | None:
        return self.left[0] if self.left else None

    def after(self, trial: PlannedTrial) -> SessionProgress:
        """Return the progress once this trial is answered as well."""
        return replace(self, left=tuple(one for one in self.left if one is not trial))

    @property
    def ahead(self) -> tuple[PlannedTrial, ...]:
        """Return the trials whose sound a browser may have now."""
        return self.left[:AHEAD]


def load_block(session: Session) -> PlannedBlock:
    """Return what the session's block asks; nothing where it has none."""
    study = session.study
    if session.block_id is None:
        return PlannedBlock(study, study.asked, {})
    block = cached_block(session)
    if block is None:
        block = _read_block(session)
        if study.is_launched:
            if len(_cached_blocks) >= MOST_CACHED:
                _cached_blocks.clear()
            _cached_blocks[session.token, session.block_id] = block
    return block


def cached_block(session: Session) -> PlannedBlock | None:
    """Return the trials of the session's block if this process has read it before, in a launched study."""
    return _cached_blocks.get((session.token, session.block_id))


def measure_progress(
    block: PlannedBlock, answered: Mapping[int, Collection[str]], skips: Sequence[int]
) -> SessionProgress:
    """Return how far somebody has come.

    Args:
        answered: by trial the tasks that are answered.
        skips: positions whose sound failed, in the order of the reports.
    """
    again = [position for position in dict.fromkeys(skips) if position in block.trials]
    practice = {position for position in again if block.trials[position].is_practice}  # after the others it is none
    given_up = {position for position in again if skips.count(position) >= GIVEN_UP_AFTER or position in practice}
    order = [position for position in block.trials if position not in again] if again else block.trials
    asked = len(block.asked)
    left = tuple(
        trial
        for trial in (block.trials[position] for position in [*order, *again])
        if trial.position not in given_up and len(answered.get(trial.trial.pk, ())) < asked
    )
    first = sum(trial.is_practice for trial in block.trials.values())
    return SessionProgress(len(block.trials), first, left, len(given_up - practice))


def answered_by(session: Session) -> dict[int, dict[str, int | None]]:
    """Return by trial and task the ratings of this session; None for what is written or placed."""
    answered: dict[int, dict[str, int | None]] = {}
    rows = Answer.objects.filter(session_id=session.pk).order_by()
    for trial, task, rating in rows.values_list("trial_id", "task", "rating"):
        answered.setdefault(trial, {})[task] = rating
    return answered


def _read_block(session: Session) -> PlannedBlock:
    study, block = session.study, Block.objects.get(sessions=session)
    asked = study.asked_in(block.number)
    rows = (
        Trial.objects.filter(block=block)
        .select_related("presentation")
        .prefetch_related("presentation__samples__stimulus")
    )
    planned = [_plan(session, row, asked) for row in rows.order_by("position")]
    return PlannedBlock(study, asked, {trial.position: trial for trial in planned})


def _plan(session: Session, row: Trial, asked: tuple[AskedQuestion, ...]) -> PlannedTrial:
    found = {sample.slot: sample_seconds(sample.stimulus) for sample in row.presentation.samples.all()}
    needed = seconds_to_hear(asked, found)
    trial = Trial(pk=row.pk, position=row.position, block_id=row.block_id, presentation_id=row.presentation_id)
    samples = tuple(
        PlannedSample(slot, found[slot], clip_address(session, trial, slot)) for slot in sorted(needed, key=slot_order)
    )
    usual_s = seconds_of_trial(asked, [sample.seconds for sample in samples])
    tasks = tuple(one.key for one in asked)
    is_practice = row.presentation.purpose == Presentation.Purpose.PRACTICE
    known = row.presentation.expected if is_practice else {}
    right = {
        one.key: (known[one.key][0], one.labels(session.language)[known[one.key][0]])
        for one in asked
        if one.kind == Kind.CHOICE and one.key in known
    }
    return PlannedTrial(trial, row.position, is_practice, tasks, samples, usual_s, right)


def sample_seconds(stimulus: Stimulus) -> float:
    """Return how long its file lasts, the silence at its end included; 0 while there is no file."""
    return float(stimulus.facts.get("padded_s") or stimulus.duration_s)


# What a browser is told ------------------------------------------------------------------------------


def describe_state(session: Session, now: datetime) -> dict[str, Any]:
    """Return where an active session stands; trials only once it has come to them."""
    study, block = session.study, load_block(session)
    answered = answered_by(session)
    progress = measure_progress(block, answered, session.skips)
    is_there = session.step == Session.Step.TRIALS
    return {
        "state": session.state,
        "step": session.step,
        "form": study.form,
        "pages": study.pages,
        "tasks": [one.key for one in block.asked],
        "plays_at_most": study.plays_at_most,
        "total": progress.total,
        "done": progress.done,
        "next": progress.next.position if progress.next and is_there else None,
        "effort": measure_effort(session, block, progress),
        "trials": _describe_ahead(progress, answered) if is_there else [],
        "lease_ends_in_s": lease_seconds_left(session, now),
    }


def describe_saved(
    session: Session, trial: PlannedTrial, values: Mapping[str, Value], progress: SessionProgress, answered: Answered
) -> dict[str, Any]:
    """Return the acknowledgement of an answer."""
    told = {
        "saved": True,
        "position": trial.position,
        "answers": {key: _told(value) for key, value in values.items()},
    }
    return told | describe_next(session, progress, answered)


def describe_next(session: Session, progress: SessionProgress, answered: Answered) -> dict[str, Any]:
    """Return what comes next; the address of the end where nothing does."""
    if session.state != Session.State.ACTIVE:
        return {"next": None, "done": progress.done, "ahead": [], "address": session.get_absolute_url()}
    return {
        "next": progress.next.position if progress.next else None,
        "done": progress.done,
        "ahead": _describe_ahead(progress, answered),
    }


def measure_effort(session: Session, block: PlannedBlock, progress: SessionProgress) -> dict[str, Any]:
    """Return what the page tells the time left from: the median of this person's paces and the usual one.

    Returns:
        ``left_s``, the seconds that what is left usually takes by its form and its sound; ``paces``, how long each
        answered trial took this person over what it usually takes, without practice.
    """
    spent: dict[int, list[int]] = {}
    for trial, ms in session.answers.exclude(client_ms=None).values_list("trial", "client_ms"):
        spent.setdefault(trial, []).append(ms or 0)
    total = max if session.study.pages == Study.Pages.TOGETHER else sum  # the tasks of a page were timed together
    timed = [one for one in block.trials.values() if len(spent.get(one.trial.pk, ())) == len(block.asked)]
    return {
        "left_s": round(sum(one.usual_s for one in progress.left), 1),
        "paces": [round(total(spent[one.trial.pk]) / 1000 / one.usual_s, 2) for one in timed if not one.is_practice],
    }


def _describe_ahead(progress: SessionProgress, answered: Answered) -> list[dict[str, Any]]:
    """Return the trials that a browser may have, each with its place: among those for practice, or among the others."""
    practice = progress.practice
    return [
        _trial(trial, answered)
        | {
            "place": {"n": place, "total": practice}
            if trial.is_practice
            else {"n": place - practice, "total": progress.total - practice}
        }
        for place, trial in enumerate(progress.ahead, progress.done + 1)
    ]


def _trial(planned: PlannedTrial, answered: Answered) -> dict[str, Any]:
    return {
        "position": planned.position,
        "is_practice": planned.is_practice,
        "tasks": list(planned.tasks),
        "samples": [vars(sample) for sample in planned.samples],
        "usual_s": round(planned.usual_s, 1),
        "answered": dict(answered.get(planned.trial.pk, {})),
    } | ({"right": dict(planned.right)} if planned.right else {})


def _told(value: Value) -> Any:
    """Return an answer as it was sent: a rating or several by slot, what was written, or a board."""
    if value.rating is not None:
        return value.rating
    if "ratings" in value.data:
        return value.data["ratings"]
    return value.data if "samples" in value.data else {"raw": value.text} | value.data
