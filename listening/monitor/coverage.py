"""How many answers each system has against what is planned, without a rating: of each class, and of each pair.

Conventions: an answer counts once the last task of its trial is there. Usable are those of finished sessions that no
standing rule excludes; those of sessions still under way and of sessions that ended early for no fault of theirs
(expired, technical) are told beside them. Practice, control and bridge trials do not count. Of a board every sample
counts for its own system. Public: `coverage_of`, `usable_answers`, `standing_exclusion`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet

from listening.models import Answer, Exclusion, Item, Session, Study, Trial

State = Session.State
PARTIAL = (State.EXPIRED, State.TECHNICAL)
COUNTED = (State.FINISHED, State.ACTIVE, *PARTIAL)
ORIGINAL = "original"


@dataclass(frozen=True)
class Cell:
    """Answers of one system or of one class of it."""

    planned: int = 0
    usable: int = 0
    under_way: int = 0
    partial: int = 0

    def __add__(self, other: Cell) -> Cell:
        return Cell(
            self.planned + other.planned,
            self.usable + other.usable,
            self.under_way + other.under_way,
            self.partial + other.partial,
        )

    @property
    def percent(self) -> int:
        """Of what is planned, rounded down, so that 100 means all."""
        return 100 * self.usable // self.planned if self.planned else 0


@dataclass(frozen=True)
class Row:
    """A system, or original speech. `same` and `different` speaker: None where no voices are compared."""

    name: str
    is_original: bool
    total: Cell
    same: Cell | None
    different: Cell | None


@dataclass(frozen=True)
class Coverage:
    """All systems, original speech first. `items`: what is to be heard; `heard`: how many of it was, usably."""

    rows: tuple[Row, ...]
    items: int
    heard: int
    answers: int

    @property
    def total(self) -> Cell:
        return sum((row.total for row in self.rows), Cell())

    @property
    def has_classes(self) -> bool:
        return any(row.same or row.different for row in self.rows)

    def as_data(self) -> dict[str, Any]:
        """For the audit trail: how many usable answers each system has."""
        return {
            "answers": self.answers,
            "items": self.heard,
            "systems": {r.name: r.total.usable for r in self.rows},
        }


def standing_exclusion(session: str = "pk") -> Exists:
    """Whether a rule that was not revoked leaves the session out; `session`: the field that names it."""
    return Exists(Exclusion.objects.filter(session=OuterRef(session), rule__revoked_at=None))


def usable_answers(study: Study, *, without: Collection[int] = ()) -> QuerySet[Answer]:
    """The last answer of each completely answered scored trial, of all sessions that count.

    Args:
        without: sessions that are to be left out as well.
    """
    answers = Answer.objects.filter(
        session__study=study,
        session__is_preview=False,
        session__state__in=COUNTED,
        task=study.tasks[-1] if study.tasks else "",
        trial__item__purpose=Item.Purpose.SCORED,
    )
    return answers.exclude(session__in=without).exclude(standing_exclusion("session")).order_by()


def coverage_of(study: Study, *, without: Collection[int] = ()) -> Coverage:
    """Coverage as it stands, or as it would stand without some sessions: four queries."""
    scored = Trial.objects.filter(block__study=study, item__purpose=Item.Purpose.SCORED).order_by()
    system = "item__system__code"
    if study.form == Study.Form.LINKABILITY:
        system = "item__samples__stimulus__system__code"
    answers = usable_answers(study, without=without)
    cells: dict[tuple[str | None, bool | None], Cell] = {}
    for code, is_target, count in scored.values_list(system, "item__is_target").annotate(Count("pk")):
        cells[code, is_target] = Cell(planned=count)
    by_state = answers.values_list(f"trial__{system}", "trial__item__is_target", "session__state")
    for code, is_target, state, count in by_state.annotate(Count("pk")):
        cells[code, is_target] = cells.get((code, is_target), Cell()) + _cell(state, count)
    finished = answers.filter(session__state=State.FINISHED)
    counts = finished.aggregate(heard=Count("trial__item", distinct=True), answers=Count("pk"))
    return Coverage(_rows(cells), scored.aggregate(items=Count("item", distinct=True))["items"], **counts)


def _cell(state: str, count: int) -> Cell:
    if state == State.FINISHED:
        return Cell(usable=count)
    return Cell(under_way=count) if state == State.ACTIVE else Cell(partial=count)


def _rows(cells: dict[tuple[str | None, bool | None], Cell]) -> tuple[Row, ...]:
    codes = sorted({code for code, _ in cells}, key=lambda code: (code is not None, code or ""))
    return tuple(
        Row(
            name=code or ORIGINAL,
            is_original=code is None,
            total=sum((cell for (owner, _), cell in cells.items() if owner == code), Cell()),
            same=cells.get((code, True)),
            different=cells.get((code, False)),
        )
        for code in codes
    )
