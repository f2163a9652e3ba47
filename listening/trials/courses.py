"""What a block asks in which order, and how far a session has come in it.

The order is that of the block. A trial whose sound failed moves to the end once and is given up the second time
(`Session.skips`). A launched study's blocks never change, so what they ask is read once by each process.
Public: `course_of`, `known_course`, `progress_of`, `Course`, `PlannedTrial`, `Progress`, `required_slots`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from listening.models import Item, Session, Study, Task, Trial
from listening.trials import clips

AHEAD = 3  # the trial to answer and the two after it
MOST_COURSES = 1024
GIVEN_UP_AFTER = 2
_PAIRED = frozenset({Task.VERIFIABILITY.value})
_known: dict[tuple[str, int | None], Course] = {}  # by token and block of a session


@dataclass(frozen=True)
class PlannedSample:
    slot: str
    seconds: float  # as long as its file lasts
    address: str  # in this session


@dataclass(frozen=True)
class PlannedTrial:
    """`trial` has its key and position, nothing more."""

    trial: Trial
    position: int
    is_practice: bool
    tasks: tuple[str, ...]
    samples: tuple[PlannedSample, ...]

    @cached_property
    def seconds(self) -> float:
        """Of all its samples, one after the other."""
        return sum(sample.seconds for sample in self.samples)


@dataclass(frozen=True)
class Course:
    """The trials of a block by position; `tasks` are asked of each, in this order.

    Of `study` only what is fixed since the launch may be read: the course lives longer than one request.
    """

    study: Study
    tasks: tuple[str, ...]
    trials: Mapping[int, PlannedTrial]


@dataclass(frozen=True)
class Progress:
    """`left`: what is to be answered, in order; `done`: how many are answered or given up, of `total`."""

    total: int
    left: tuple[PlannedTrial, ...]
    given_up: int

    @property
    def done(self) -> int:
        return self.total - len(self.left)

    @property
    def next(self) -> PlannedTrial | None:
        return self.left[0] if self.left else None

    def after(self, trial: PlannedTrial) -> Progress:
        """Once this trial is answered as well."""
        return replace(self, left=tuple(one for one in self.left if one is not trial))

    @property
    def ahead(self) -> tuple[PlannedTrial, ...]:
        """The trials whose sound a browser may have now."""
        return self.left[:AHEAD]


def course_of(session: Session) -> Course:
    """What the session's block asks; nothing where it has none."""
    study = session.study
    if session.block_id is None:
        return Course(study, tuple(study.tasks), {})
    course = known_course(session)
    if course is None:
        course = _read_course(session)
        if study.is_launched:
            if len(_known) >= MOST_COURSES:
                _known.clear()
            _known[session.token, session.block_id] = course
    return course


def known_course(session: Session) -> Course | None:
    """The course if this process has read it before, in a launched study."""
    return _known.get((session.token, session.block_id))


def progress_of(course: Course, answered: Mapping[int, Collection[str]], skips: Sequence[int]) -> Progress:
    """How far somebody has come.

    Args:
        answered: by trial the tasks that are answered.
        skips: positions whose sound failed, in the order of the reports.
    """
    again = [position for position in dict.fromkeys(skips) if position in course.trials]
    given_up = {position for position in again if skips.count(position) >= GIVEN_UP_AFTER}
    order = [position for position in course.trials if position not in again] if again else course.trials
    asked = len(course.tasks)
    left = tuple(
        trial
        for trial in (course.trials[position] for position in [*order, *again])
        if trial.position not in given_up and len(answered.get(trial.trial.pk, ())) < asked
    )
    return Progress(len(course.trials), left, len(given_up))


def required_slots(tasks: Collection[str], trial: PlannedTrial) -> frozenset[str]:
    """Which samples of a trial have to be heard for these tasks."""
    if Task.LINKABILITY in tasks:
        return frozenset(sample.slot for sample in trial.samples)
    return frozenset({"a", "b"} if _PAIRED.intersection(tasks) else {"a"})


def _read_course(session: Session) -> Course:
    study = session.study
    tasks = tuple(study.tasks)
    rows = (
        Trial.objects.filter(block=session.block_id).select_related("item").prefetch_related("item__samples__stimulus")
    )
    planned = [_plan(session, row, tasks) for row in rows.order_by("position")]
    return Course(study, tasks, {trial.position: trial for trial in planned})


def _plan(session: Session, row: Trial, tasks: tuple[str, ...]) -> PlannedTrial:
    found = {sample.slot: sample.stimulus for sample in row.item.samples.all()}
    of_rating = ["a", "b"] if _PAIRED.intersection(tasks) else ["a"]
    wanted = list(found) if Task.LINKABILITY in tasks else of_rating
    trial = Trial(pk=row.pk, position=row.position, block_id=row.block_id, item_id=row.item_id)
    samples = tuple(
        PlannedSample(slot, clips.sample_seconds(found[slot]), clips.clip_address(session, trial, slot))
        for slot in wanted
    )
    return PlannedTrial(trial, row.position, row.item.purpose == Item.Purpose.PRACTICE, tasks, samples)
