"""The numbers of a running study: who began, listens, stopped and where, how long it takes, flags, reports.

No rating is read here: while a study is open, nobody may see how a system does. Every number comes with a constant
number of queries, however many sessions there are. Durations in s. Coverage: an answer counts once the last task of its
trial is there. Usable are those of finished sessions that no rule in force excludes; those of sessions still under way
and of sessions that ended early for no fault of theirs (expired, technical) are told beside them. Practice, control and
bridge trials do not count; of a board, and of what is compared, every sample but a reference counts for its own system.
Of recordings that evaluators report, system and utterance are told once the study is closed. Previews do not count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from math import ceil
from statistics import median
from types import SimpleNamespace
from typing import Any

from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet

from listening.app.models import (
    Answer,
    Exclusion,
    Flag,
    Presentation,
    PresentationSample,
    Session,
    SessionEvent,
    Study,
    Trial,
)
from listening.app.sessions.answers import BROKEN, NOTE
from listening.app.sessions.payloads import SOUND_PROBLEMS
from listening.app.sessions.selectors import STEPS, list_steps
from listening.app.studies.rules import STALLED_AFTER, is_stalled
from listening.questions import COMPARED_SLOTS

State = Session.State
PARTIAL = (State.EXPIRED, State.TECHNICAL)
COUNTED = (State.FINISHED, State.ACTIVE, *PARTIAL)


@dataclass(frozen=True)
class AnswerCounts:
    """Answers of one system or of one class of it."""

    planned: int = 0
    usable: int = 0
    under_way: int = 0
    partial: int = 0

    def __add__(self, other: AnswerCounts) -> AnswerCounts:
        return AnswerCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def percent(self) -> int:
        """Return the percentage of what is planned, rounded down, so that 100 means all."""
        return 100 * self.usable // self.planned if self.planned else 0


@dataclass(frozen=True)
class MonitoredSystem:
    """A system, or original speech. `same` and `different` speaker: None where no voices are compared."""

    name: str
    total: AnswerCounts
    same: AnswerCounts | None
    different: AnswerCounts | None


@dataclass(frozen=True)
class Coverage:
    """All systems, original speech first. `items`: what is to be heard; `heard`: how many of it was, usably."""

    rows: tuple[MonitoredSystem, ...]
    items: int
    heard: int
    answers: int

    @property
    def total(self) -> AnswerCounts:
        return sum((row.total for row in self.rows), AnswerCounts())

    @property
    def has_classes(self) -> bool:
        return any(row.same or row.different for row in self.rows)

    def as_data(self) -> dict[str, Any]:
        """Return for the audit log how many usable answers each system has."""
        return {"answers": self.answers, "items": self.heard, "systems": {r.name: r.total.usable for r in self.rows}}


def standing_exclusion(session: str = "pk") -> Exists:
    """Return whether a rule that was not revoked leaves the session out; `session`: the field that names it."""
    return Exists(Exclusion.objects.filter(session=OuterRef(session), rule__revoked_at=None))


def usable_answers(study: Study, *, without: Collection[int] = ()) -> QuerySet[Answer]:
    """Return the last answer of each completely answered scored trial, of all sessions that count.

    Args:
        without: sessions that are to be left out as well.
    """
    sessions = Session.objects.filter(study=study, is_preview=False, state__in=COUNTED).exclude(pk__in=without)
    return Answer.objects.filter(
        session__in=sessions.exclude(standing_exclusion()).order_by(),
        task=study.last_asked_key,
        trial__presentation__purpose=Presentation.Purpose.SCORED,
    ).order_by()


def measure_coverage(study: Study, *, without: Collection[int] = ()) -> Coverage:
    """Return the coverage as it stands, or as it would stand without some sessions: two queries."""
    by_sample = study.is_crossed or study.form == Study.Form.LINKABILITY
    system = f"presentation__{'samples__stimulus__' if by_sample else ''}condition__code"
    scored = Trial.objects.filter(block__study=study, presentation__purpose=Presentation.Purpose.SCORED).order_by()
    if study.is_crossed:
        scored = scored.filter(presentation__samples__slot__in=COMPARED_SLOTS)
    counts: dict[tuple[str, bool | None], Counter[str]] = defaultdict(Counter)
    # Whose recordings an item has, and how many of each: a board has samples of several systems.
    owners: dict[int, list[tuple[Counter[str], int]]] = defaultdict(list)
    of_items = scored.values_list("presentation", system, "presentation__is_target")
    for item, code, is_target, trials, planned in of_items.annotate(
        trials=Count("pk", distinct=True), planned=Count("pk")
    ):
        counts[code, is_target]["planned"] += planned
        owners[item].append((counts[code, is_target], planned // trials))
    heard: set[int] = set()
    answers = 0
    by_state = usable_answers(study, without=without).values_list("trial__presentation", "session__state")
    for item, state, count in by_state.annotate(count=Count("pk")):
        told = {State.FINISHED: "usable", State.ACTIVE: "under_way"}.get(State(state), "partial")
        for owner, recordings in owners[item]:
            owner[told] += recordings * count
        if state == State.FINISHED:
            heard.add(item)
            answers += count
    cells = {owner: AnswerCounts(**count) for owner, count in counts.items()}
    return Coverage(_rows(cells, study.original_name), len(owners), len(heard), answers)


def _rows(cells: dict[tuple[str, bool | None], AnswerCounts], original: str) -> tuple[MonitoredSystem, ...]:
    codes = sorted({code for code, _ in cells})
    return tuple(
        MonitoredSystem(
            name=code or original,
            total=sum((cell for (owner, _), cell in cells.items() if owner == code), AnswerCounts()),
            same=cells.get((code, True)),
            different=cells.get((code, False)),
        )
        for code in codes
    )


UNPLAYABLE = "unplayable"
KINDS = {"silence": "Silence", "cut-off": "Cut off", "noise": "Noise", "other": "Other", UNPLAYABLE: "Does not play"}
Place = tuple[int, int, str]  # block, position, slot


def reported_clips(study: Study) -> list[dict[str, Any]]:
    """Return every recording of which something was reported, the one of most sessions first: at most two queries.

    Each has its `name`, empty until the study is closed, its `counts` by the labels of `KINDS`, and its `sessions`.
    """
    events = SessionEvent.objects.filter(
        session__study=study, session__is_preview=False, kind__in=(BROKEN, NOTE), is_told=False
    )
    reports: dict[Place, list[tuple[int, str]]] = defaultdict(list)
    for block, session, data in events.values_list("session__block", "session", "data"):
        what = data["what"] if data["what"] in SOUND_PROBLEMS else UNPLAYABLE
        reports[block, data["position"], data["slot"]].append((session, what))
    if not reports:
        return []
    blocks, positions, slots = (set(part) for part in zip(*reports, strict=True))
    samples = PresentationSample.objects.filter(
        presentation__trials__block__in=blocks, presentation__trials__position__in=positions, slot__in=slots
    )
    of_stimulus: dict[int, list[tuple[int, str]]] = defaultdict(list)
    names: dict[int, str] = {}
    for stimulus, system, utterance, *place in samples.values_list(
        *("stimulus", "stimulus__condition__code", "stimulus__item__name"),
        *("presentation__trials__block", "presentation__trials__position", "slot"),
    ):
        of_stimulus[stimulus] += reports.get(tuple(place), [])
        names[stimulus] = f"{system or study.original_name}, {utterance}" if study.state == Study.State.CLOSED else ""
    clips = [
        {
            "stimulus": stimulus,
            "name": names[stimulus],
            "counts": {label: sum(what == kind for _, what in told) for kind, label in KINDS.items()},
            "sessions": len({session for session, _ in told}),
        }
        for stimulus, told in of_stimulus.items()
        if told
    ]
    return sorted(clips, key=lambda clip: (-clip["sessions"], clip["stimulus"]))


Step = Session.Step
GROUPS_OF_TRIALS = 6
LEFT = (State.EXPIRED, State.WITHDRAWN, State.SCREENED_OUT, State.FAILED_ATTENTION, State.TECHNICAL)


@dataclass
class SessionLine:
    """A session as the monitor shows it. `step`: where it is, or where it was when it ended."""

    session: Session
    step: str
    answered: int
    is_stalled: bool
    flags: list[Flag] = field(default_factory=list)

    @property
    def is_excluded(self) -> bool:
        return bool(getattr(self.session, "is_excluded", False))

    @property
    def badge(self) -> str:
        """Return how its state looks among the badges of the portal."""
        return BADGES.get(State(self.session.state), "failed")

    @property
    def place_until(self) -> datetime | None:
        """Return when the place of a silent session is given to somebody else; None without a place."""
        block = self.session.block
        is_theirs = block is not None and block.holder_id == self.session.pk and not block.is_finished
        return block.lease_expires_at if block is not None and is_theirs else None

    @property
    def step_label(self) -> str:
        return Step(self.step).label.lower()


BADGES = {
    State.ACTIVE: "running",
    State.FINISHED: "succeeded",
    State.SCREENED_OUT: "cancelled",
    State.WITHDRAWN: "cancelled",
}
# What the list of sessions shows, and which lines these are.
SHOWS: Mapping[str, tuple[str, Callable[[SessionLine], bool]]] = {
    "active": ("under way", lambda line: line.session.state == State.ACTIVE),
    "stalled": ("stalled", lambda line: line.is_stalled),
    "finished": ("finished", lambda line: line.session.state == State.FINISHED),
    "left": ("ended early", lambda line: line.session.state in LEFT),
    "flagged": ("flagged", lambda line: bool(getattr(line.session, "is_flagged", False))),
    "excluded": ("left out", lambda line: line.is_excluded),
}


def build_monitor(study: Study, lines: Sequence[SessionLine], now: datetime) -> SimpleNamespace:
    """Return all numbers of the study at once.

    Args:
        lines: from `list_lines`.

    Returns:
        `trials` of the longest block, practice and controls included; `counts`, `blocks`, `times`, `stages`, `flags`,
        `coverage` and reported `clips`.
    """
    longest = Trial.objects.filter(block__study=study).aggregate(longest=Max("position"))["longest"] or 0
    return SimpleNamespace(
        trials=longest,
        counts=_counts(lines),
        blocks=_blocks(study, now),
        times=_times(lines, longest),
        stages=_stages(study, lines, longest),
        flags=_flag_counts(study),
        coverage=measure_coverage(study),
        clips=reported_clips(study),
    )


# Sessions ------------------------------------------------------------------------------------------


def list_lines(study: Study, now: datetime, *, only: int | None = None) -> list[SessionLine]:
    """Return every session but previews, the newest first, or only one: three queries. Flags come with `with_flags`."""
    is_flagged = Exists(Flag.objects.filter(session=OuterRef("pk"), data__holds=True))
    sessions = study.sessions.filter(is_preview=False)
    sessions = sessions.annotate(is_excluded=standing_exclusion(), is_flagged=is_flagged)
    if only is not None:
        sessions = sessions.filter(pk=only)
    wanted = sessions.select_related("block", "participant").defer("questionnaire", "platform_data", "device", "texts")
    of_last = Answer.objects.filter(session__study=study, task=study.last_asked_key).order_by()
    answered = dict(of_last.values_list("session").annotate(Count("pk")))  # whole trials
    ends = SessionEvent.objects.filter(session__study=study, kind__startswith="ended-", is_told=False).order_by("-pk")
    # What was noted at the end of each: its step, and of who withdrew how many trials were answered.
    left_at = {pk: data for pk, data in ends.values_list("session", "data") if data.get("step") in STEPS}
    return [
        SessionLine(
            session=one,
            step=_step_of(one, left_at.get(one.pk, {})),
            answered=answered.get(one.pk) or left_at.get(one.pk, {}).get("trials", 0),
            is_stalled=is_stalled(one, now),
        )
        for one in wanted.order_by("-pk")
    ]


def with_flags(lines: Sequence[SessionLine]) -> Sequence[SessionLine]:
    """Return the same lines with their flags, whose labels hold no comma (`short`): one query."""
    of_session = defaultdict(list)
    for flag in Flag.objects.filter(session__in=[line.session.pk for line in lines]):
        flag.short = flag.get_kind_display().replace(", as the analysis finds", " (analysis)")  # type: ignore[attr-defined]
        of_session[flag.session_id].append(flag)
    for line in lines:
        line.flags = of_session[line.session.pk]
    return lines


def count_activity(now: datetime) -> tuple[int, int]:
    """Return how many evaluators listen now in all studies, and how many answers there are; without previews."""
    sessions = Session.objects.filter(is_preview=False, state=State.ACTIVE, last_seen_at__gt=now - STALLED_AFTER)
    return sessions.count(), Answer.objects.filter(session__is_preview=False).count()


def count_answers_since(moment: datetime) -> int:
    """Return how many answers of all studies came since then; without previews."""
    return Answer.objects.filter(session__is_preview=False, received_at__gt=moment).count()


def _step_of(session: Session, left: dict[str, Any]) -> str:
    """Return the page of a session: where it is, or where it was when it ended; if that is not known, surely was."""
    if session.state == State.ACTIVE:
        return session.step
    if session.state == State.FINISHED:
        return Step.END
    if step := left.get("step"):
        return str(step)
    if not session.trials_started_at:
        return Step.CONSENT
    return Step.END if session.state == State.WITHDRAWN else Step.TRIALS  # who withdraws afterwards was at the end


# Numbers -------------------------------------------------------------------------------------------


def _counts(lines: Sequence[SessionLine]) -> SimpleNamespace:
    """Return sessions by what became of them; `starts` is all of them, `stalled` part of `active`."""
    states = Counter(line.session.state for line in lines)
    return SimpleNamespace(
        starts=len(lines),
        stalled=sum(line.is_stalled for line in lines),
        excluded=sum(line.is_excluded for line in lines),
        **{state.name.lower(): states[state] for state in State},
    )


def _blocks(study: Study, now: datetime) -> SimpleNamespace:
    """Return how many there are in all, and of each kind."""
    held = Q(is_finished=False, holder__isnull=False)
    is_over = Q(lease_expires_at__lte=now)
    kinds = {
        "finished": Q(is_finished=True),
        "free": Q(is_finished=False, holder=None),
        "offered_again": Q(offers__gt=1),
    }
    kinds |= {"leased": held & ~is_over, "overdue": held & is_over}
    counts = {name: Count("pk", filter=kind) for name, kind in kinds.items()}
    return SimpleNamespace(**study.blocks.aggregate(total=Count("pk"), **counts))


def _times(lines: Sequence[SessionLine], trials: int) -> SimpleNamespace:
    """Return medians over finished sessions, None before there is one; `trial_s`: per trial."""
    done: list[Any] = [line.session for line in lines if line.session.state == State.FINISHED and line.session.ended_at]
    spans = {
        name: [(one.ended_at - start).total_seconds() for one in done if (start := getattr(one, name))]
        for name in ("started_at", "trials_started_at")
    }
    session_s, trials_s = (median(found) if found else None for found in spans.values())
    return SimpleNamespace(
        finished=len(done),
        session_s=session_s,
        trials_s=trials_s,
        trial_s=trials_s / trials if trials_s is not None and trials else None,
    )


def _stages(study: Study, lines: Sequence[SessionLine], trials: int) -> list[dict[str, Any]]:
    """Return how many came to each page or group of trials (`reached`), are there now (`here`) and stopped there."""
    size = max(1, ceil(trials / GROUPS_OF_TRIALS))
    starts = range(1, max(trials, 1) + 1, size)
    seen = {line.step for line in lines}
    there = {*list_steps(study), *seen}
    pages = [step for step in STEPS if step != Step.TRIALS and step in there]
    names = [(str(step), step.label.capitalize()) for step in pages]
    for start in starts:
        last = min(start + size - 1, trials)
        names.append((f"trial-{start}", f"Trial {start}" if start >= last else f"Trials {start}–{last}"))
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
        {"name": label, "reached": sum(at[one] for one in places[number:]), "here": here[name], "left": left[name]}
        for number, (name, label) in enumerate(names)
    ]


def _flag_counts(study: Study) -> list[dict[str, Any]]:
    """Return sessions by flag, of flags that hold; those of an analysis only where there are any."""
    flags = Flag.objects.filter(session__study=study, session__is_preview=False, data__holds=True).order_by()
    counts = dict(flags.values_list("kind").annotate(Count("pk")))
    shown = [kind for kind in Flag.Kind if kind not in Flag.FOUND_BY_ANALYSIS or counts.get(kind)]
    return [{"kind": kind.value, "label": kind.label, "sessions": counts.get(kind, 0)} for kind in shown]


def list_plays(session: Session) -> list[dict[str, Any]]:
    """Return trial by trial what was served and played, and how long it took; no systems or ratings: three queries."""
    trials = Trial.objects.filter(block=session.block_id or 0).select_related("presentation").order_by("position")
    answers = session.answers.order_by().values("trial").annotate(at=Max("received_at"), ms=Max("client_ms"))
    told: dict[int, dict[str, Any]] = {row["trial"]: dict(row) for row in answers}
    played: dict[int, list[Any]] = defaultdict(list)
    for play in session.plays.all():
        played[play.trial_id].append(play)
    serves: Counter[int] = Counter(session.serves.exclude(complete_at=None).values_list(F("trial"), flat=True))
    found = []
    for trial in trials:
        answer, plays = told.get(trial.pk, {}), played[trial.pk]
        client_ms = answer.get("ms")
        shown = {
            "position": trial.position,
            "purpose": trial.presentation.purpose,
            "answered_at": answer.get("at"),
            "spent_s": None if client_ms is None else client_ms / 1000,
            "plays": len(plays),
            "whole_plays": sum(play.is_whole for play in plays),
            "served": serves[trial.pk],
            "remarks": ", ".join(sorted({str(note) for play in plays for note in play.remarks})),
        }
        found.append(shown)
    return found
