"""The numbers of a running study: who began, listens, stopped and where, how long it takes, what is flagged.

No rating is read here: while a study recruits, nobody may see how a system does. Every number comes with a constant
number of queries, however many sessions there are. Durations in s. Public: `monitor_of`, `lines_of`, `line_of`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from statistics import median
from typing import Any

from django.db.models import Count, F, Max

from listening.models import Answer, Flag, Session, SessionEvent, Study, Trial
from listening.monitor.coverage import Coverage, coverage_of, standing_exclusion
from listening.monitor.flags import sentence
from listening.monitor.reported_clips import ReportedClip, reported_clips
from listening.people.steps import ORDER, steps_of

State, Step = Session.State, Session.Step
# An open page says that it is there every half minute; after four times in vain somebody has stopped for now.
STALLED_AFTER = timedelta(minutes=2)
GROUPS_OF_TRIALS = 6
LEFT = (State.EXPIRED, State.WITHDRAWN, State.SCREENED_OUT, State.FAILED_ATTENTION, State.TECHNICAL)


@dataclass(frozen=True)
class FlagLine:
    """A flag in words; `holds`: whether the rule still finds it."""

    kind: str
    label: str
    sentence: str
    holds: bool
    at: datetime


@dataclass
class Line:
    """A session as the monitor shows it. `step`: where it is, or where it was when it ended."""

    session: Session
    step: str
    answered: int
    is_stalled: bool
    flags: list[FlagLine] = field(default_factory=list)

    @property
    def is_excluded(self) -> bool:
        return bool(getattr(self.session, "is_excluded", False))

    @property
    def step_label(self) -> str:
        return Step(self.step).label.lower()


@dataclass(frozen=True)
class Counts:
    """Sessions by what became of them; `starts` is all of them, `stalled` part of `active`."""

    starts: int
    active: int
    stalled: int
    finished: int
    expired: int
    withdrawn: int
    screened_out: int
    failed_attention: int
    technical: int
    excluded: int


@dataclass(frozen=True)
class Blocks:
    total: int
    finished: int
    leased: int
    overdue: int
    free: int
    offered_again: int


@dataclass(frozen=True)
class Times:
    """Medians over finished sessions, None before there is one; `trial_s`: per trial."""

    finished: int
    session_s: float | None
    trials_s: float | None
    trial_s: float | None


@dataclass(frozen=True)
class Stage:
    """A page of the session or a group of its trials: how many came there, are there now and stopped there."""

    name: str
    reached: int
    here: int
    left: int


@dataclass(frozen=True)
class FlagCount:
    kind: str
    label: str
    sessions: int


@dataclass(frozen=True)
class Monitor:
    """Everything at once; `trials`: of the longest block, practice and controls included."""

    trials: int
    counts: Counts
    blocks: Blocks
    times: Times
    stages: list[Stage]
    flags: list[FlagCount]
    coverage: Coverage
    clips: list[ReportedClip]


def monitor_of(study: Study, lines: Sequence[Line], now: datetime) -> Monitor:
    """All numbers of the study; `lines`: from `lines_of`."""
    longest = _longest_block(study)
    return Monitor(
        trials=longest,
        counts=_counts(lines),
        blocks=_blocks(study, now),
        times=_times(lines, longest),
        stages=_stages(study, lines, longest),
        flags=_flag_counts(study),
        coverage=coverage_of(study),
        clips=reported_clips(study),
    )


# Sessions ------------------------------------------------------------------------------------------


def lines_of(study: Study, now: datetime, *, only: int | None = None) -> list[Line]:
    """Every session but previews, the newest first, or only one: three queries. Flags come with `with_flags`."""
    sessions = study.sessions.filter(is_preview=False).annotate(is_excluded=standing_exclusion())
    if only is not None:
        sessions = sessions.filter(pk=only)
    wanted = sessions.select_related("block", "participant").defer("questionnaire", "platform_data", "device", "texts")
    answered = _answered(study)
    left_at = _left_at(study)
    return [
        Line(
            session=one,
            step=one.step if one.state == State.ACTIVE else left_at.get(one.pk, {}).get("step") or _last_step(one),
            answered=answered.get(one.pk) or left_at.get(one.pk, {}).get("trials", 0),
            is_stalled=is_stalled(one, now),
        )
        for one in wanted.order_by("-pk")
    ]


def line_of(session: Session, now: datetime) -> Line:
    """One session with its flags, as in `lines_of`."""
    return with_flags(lines_of(session.study, now, only=session.pk))[0]


def with_flags(lines: list[Line]) -> list[Line]:
    """The same lines with their flags: one query."""
    of_session = defaultdict(list)
    for flag in Flag.objects.filter(session__in=[line.session.pk for line in lines]):
        told = FlagLine(
            flag.kind, flag.get_kind_display(), sentence(flag.kind, flag.data), flag.data.get("holds", True), flag.at
        )
        of_session[flag.session_id].append(told)
    for line in lines:
        line.flags = of_session[line.session.pk]
    return lines


def is_stalled(session: Session, now: datetime) -> bool:
    """Whether nothing was heard of an active session for `STALLED_AFTER`."""
    return session.state == State.ACTIVE and now - (session.last_seen_at or session.started_at) >= STALLED_AFTER


def _answered(study: Study) -> dict[int, int]:
    """Completely answered trials by session."""
    answers = Answer.objects.filter(session__study=study, task=study.tasks[-1] if study.tasks else "").order_by()
    return dict(answers.values_list("session").annotate(Count("pk")))


def _left_at(study: Study) -> dict[int, dict[str, Any]]:
    """What was noted at the end of each session: its step, and of who withdrew how many trials were answered."""
    ends = SessionEvent.objects.filter(session__study=study, kind__startswith="ended-", is_told=False).order_by("-pk")
    return {session: data for session, data in ends.values_list("session", "data") if data.get("step") in ORDER}


def _last_step(session: Session) -> str:
    """Where a session surely was, if nothing else is known: who withdraws afterwards had come to the end."""
    if session.state == State.WITHDRAWN and session.trials_started_at:
        return Step.END
    return Step.TRIALS if session.trials_started_at else Step.CONSENT


# Numbers -------------------------------------------------------------------------------------------


def _counts(lines: Sequence[Line]) -> Counts:
    states = Counter(line.session.state for line in lines)
    return Counts(
        starts=len(lines),
        active=states[State.ACTIVE],
        stalled=sum(line.is_stalled for line in lines),
        finished=states[State.FINISHED],
        expired=states[State.EXPIRED],
        withdrawn=states[State.WITHDRAWN],
        screened_out=states[State.SCREENED_OUT],
        failed_attention=states[State.FAILED_ATTENTION],
        technical=states[State.TECHNICAL],
        excluded=sum(line.is_excluded for line in lines),
    )


def _blocks(study: Study, now: datetime) -> Blocks:
    rows = list(study.blocks.values_list("is_finished", "holder", "lease_expires_at", "offers"))
    held = [until for is_finished, holder, until, _ in rows if holder and not is_finished]
    overdue = sum(until is not None and until <= now for until in held)
    finished = sum(is_finished for is_finished, *_ in rows)
    return Blocks(
        total=len(rows),
        finished=finished,
        leased=len(held) - overdue,
        overdue=overdue,
        free=len(rows) - finished - len(held),
        offered_again=sum(offers > 1 for *_, offers in rows),
    )


def _longest_block(study: Study) -> int:
    return Trial.objects.filter(block__study=study).aggregate(longest=Max("position"))["longest"] or 0


def _times(lines: Sequence[Line], trials: int) -> Times:
    done = [line.session for line in lines if line.session.state == State.FINISHED and line.session.ended_at]
    whole = [_seconds(one.started_at, one.ended_at) for one in done]
    in_trials = [_seconds(one.trials_started_at, one.ended_at) for one in done if one.trials_started_at]
    trials_s = median(in_trials) if in_trials else None
    return Times(
        finished=len(done),
        session_s=median(whole) if whole else None,
        trials_s=trials_s,
        trial_s=trials_s / trials if trials_s is not None and trials else None,
    )


def _seconds(start: Any, end: Any) -> float:
    return float((end - start).total_seconds())


def _stages(study: Study, lines: Sequence[Line], trials: int) -> list[Stage]:
    """The pages of a session in their order, the trials in a few equal groups."""
    size = max(1, ceil(trials / GROUPS_OF_TRIALS))
    starts = range(1, max(trials, 1) + 1, size)
    seen = {line.step for line in lines}
    there = {*steps_of(study), *seen}
    pages = [step for step in ORDER if step != Step.TRIALS and step in there]
    names = [(str(step), step.label.capitalize()) for step in pages]
    names += [(f"trial-{start}", _group_name(start, min(start + size - 1, trials))) for start in starts]
    places = [name for name, _ in names]
    at: Counter[str] = Counter()
    here: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for line in lines:
        place = line.step
        if place == Step.TRIALS:
            group = min(line.answered // size, len(starts) - 1)
            place = f"trial-{starts[group]}"
        has_passed_all = line.session.state == State.FINISHED or place == Step.END
        at[places[-1] if has_passed_all else place] += 1
        here[place] += line.session.state == State.ACTIVE
        left[place] += line.session.state in LEFT
    return [
        Stage(label, sum(at[later] for later in places[number:]), here[name], left[name])
        for number, (name, label) in enumerate(names)
    ]


def _group_name(first: int, last: int) -> str:
    return f"Trial {first}" if first >= last else f"Trials {first}–{last}"


def _flag_counts(study: Study) -> list[FlagCount]:
    """Sessions by flag, of flags that hold; those of an analysis only where there are any."""
    flags = Flag.objects.filter(session__study=study, session__is_preview=False, data__holds=True).order_by()
    counts = dict(flags.values_list("kind").annotate(Count("pk")))
    shown = [kind for kind in Flag.Kind if kind not in Flag.FOUND_BY_ANALYSIS or counts.get(kind)]
    return [FlagCount(kind.value, kind.label, counts.get(kind, 0)) for kind in shown]


def plays_of(session: Session) -> Any:
    """What was served, played and how long it took, trial by trial; no rating: three queries."""
    trials = Trial.objects.filter(block=session.block_id or 0).select_related("item").order_by("position")
    answers = session.answers.order_by().values("trial").annotate(at=Max("received_at"), ms=Max("client_ms"))
    told: dict[int, dict[str, Any]] = {row["trial"]: dict(row) for row in answers}
    plays: dict[int, list[Any]] = defaultdict(list)
    for play in session.plays.all():
        plays[play.trial_id].append(play)
    serves: Counter[int] = Counter(session.serves.exclude(complete_at=None).values_list(F("trial"), flat=True))
    return [TrialLine.of(trial, told.get(trial.pk), plays[trial.pk], serves[trial.pk]) for trial in trials]


@dataclass(frozen=True)
class TrialLine:
    """A trial of one session: when and how fast it was answered, what was heard; neither its system nor a rating."""

    position: int
    purpose: str
    answered_at: datetime | None
    spent_s: float | None
    plays: int
    whole_plays: int
    served: int
    remarks: str

    @classmethod
    def of(cls, trial: Trial, told: dict[str, Any] | None, plays: list[Any], served: int) -> TrialLine:
        remarks = sorted({str(remark) for play in plays for remark in play.remarks})
        return cls(
            position=trial.position,
            purpose=trial.item.purpose,
            answered_at=told["at"] if told else None,
            spent_s=told["ms"] / 1000 if told and told["ms"] is not None else None,
            plays=len(plays),
            whole_plays=sum(play.is_whole for play in plays),
            served=served,
            remarks=", ".join(remarks),
        )
