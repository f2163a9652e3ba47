"""What a browser is told of a session: where it stands, and the trials whose sound it may have now.

A trial is told by its position, whether it is for practice, its tasks, and its samples by slot, address and length;
nothing here tells its purpose, system, class or speaker. Public: `state_of`, `saved`, `onward`, `answered_by`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from listening.models import Answer, Session, Task
from listening.trials import leases
from listening.trials.courses import Course, PlannedTrial, Progress, course_of, progress_of
from listening.trials.payloads import Value
from listening.trials.statements import Statement

Answered = Mapping[int, Mapping[str, int | None]]
SECONDS_OF_TASK = 4.0  # to answer it, besides listening
SLOWEST, FASTEST = 3.0, 0.5  # of what a trial is thought to take
PACE_KNOWN_AFTER = 3  # trials
ANSWERED = Statement(lambda: Answer.objects.filter(session__token=""), "trial", "task", "rating")


def answered_by(session: Session) -> dict[int, dict[str, int | None]]:
    """By trial and task the ratings of this session; None for what is written or placed."""
    return by_trial(ANSWERED.read(session.token))


def by_trial(rows: Iterable[Sequence[Any]]) -> dict[int, dict[str, int | None]]:
    """The same of what `ANSWERED` found."""
    answered: dict[int, dict[str, int | None]] = {}
    for trial, task, rating in rows:
        answered.setdefault(trial, {})[task] = rating
    return answered


def state_of(session: Session, now: datetime) -> dict[str, Any]:
    """Where an active session stands; trials only once it has come to them."""
    study, course = session.study, course_of(session)
    answered = answered_by(session)
    progress = progress_of(course, answered, session.skips)
    is_there = session.step == Session.Step.TRIALS
    return {
        "state": session.state,
        "step": session.step,
        "form": study.form,
        "pages": study.pages,
        "tasks": list(study.tasks),
        "scale": study.scale_points,
        "plays_at_most": study.plays_at_most,
        "total": progress.total,
        "done": progress.done,
        "next": progress.next.position if progress.next and is_there else None,
        "seconds_left": seconds_left(session, course, progress, now),
        "trials": [_trial(trial, answered) for trial in progress.ahead] if is_there else [],
        "lease_ends_in_s": leases.seconds_left(session, now),
    }


def saved(
    session: Session, trial: PlannedTrial, values: Mapping[str, Value], progress: Progress, answered: Answered
) -> dict[str, Any]:
    """The acknowledgement of an answer."""
    told = {
        "saved": True,
        "position": trial.position,
        "answers": {task: _told(task, value) for task, value in values.items()},
    }
    return told | onward(session, progress, answered)


def onward(session: Session, progress: Progress, answered: Answered) -> dict[str, Any]:
    """What comes next; the address of the end where nothing does."""
    if session.state != Session.State.ACTIVE:
        return {"next": None, "done": progress.done, "ahead": [], "address": session.get_absolute_url()}
    return {
        "next": progress.next.position if progress.next else None,
        "done": progress.done,
        "ahead": [_trial(trial, answered) for trial in progress.ahead],
    }


def seconds_left(session: Session, course: Course, progress: Progress, now: datetime) -> int:
    """How long the rest will take: its sound and a while for each task, at the pace of the session so far."""
    left = _usual_seconds(course, progress.left)
    done = _usual_seconds(course, course.trials.values()) - left
    pace = 1.0
    if session.trials_started_at is not None and progress.done >= PACE_KNOWN_AFTER and done > 0:
        pace = (now - session.trials_started_at).total_seconds() / done
    return round(left * min(SLOWEST, max(FASTEST, pace)))


def _usual_seconds(course: Course, trials: Iterable[PlannedTrial]) -> float:
    return sum(trial.seconds + SECONDS_OF_TASK * len(course.tasks) for trial in trials)


def _trial(planned: PlannedTrial, answered: Answered) -> dict[str, Any]:
    return {
        "position": planned.position,
        "is_practice": planned.is_practice,
        "tasks": list(planned.tasks),
        "samples": [vars(sample) for sample in planned.samples],
        "answered": dict(answered.get(planned.trial.pk, {})),
    }


def _told(task: str, value: Value) -> Any:
    if task == Task.TRANSCRIPTION:
        return {"raw": value.text} | value.data
    return value.data if task == Task.LINKABILITY else value.rating
