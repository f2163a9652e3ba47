"""What the order of an attacker's error rates says: the ladder from ignorant over lazy- to semi-informed.

An attacker with more knowledge should have a lower EER. Where an order breaks, the numbers at hand say what may be
behind it, and every reason named here is one that they give: intervals that overlap, rates at chance, an attacker
that never met such speech, few speakers. Conventions: EERs and limits in per cent; 50 is a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evaluation.formats.results import AttackModel
from portal.core.labels import decimals

ORDER = (AttackModel.IGNORANT, AttackModel.LAZY_INFORMED, AttackModel.SEMI_INFORMED)
CHANCE = 50.0
NEAR_CHANCE = 5.0
# Of an attacker that works: the encoders of this portal err in less than 3 % of trials on clean original speech.
WEAK_FROM = 10.0
FEW_SPEAKERS = 20
DIGITS = 1


@dataclass(frozen=True, slots=True)
class Rung:
    """The EER of one attacker.

    Attributes:
        attacker: its name, for people.
        is_trained: whether it was trained on speech that this system anonymised.
        low, high: limits of its 95 % interval over speakers; None where there is none.
    """

    attack: AttackModel
    attacker: str
    eer: float
    low: float | None = None
    high: float | None = None
    is_trained: bool = False

    @property
    def is_near_chance(self) -> bool:
        return abs(self.eer - CHANCE) < NEAR_CHANCE

    @property
    def said(self) -> str:
        """Such as ``lazy-informed 41.2 %``."""
        return f"{self.attack} {decimals(self.eer, DIGITS)} %"


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rungs of one attacker, or one and those trained on its like, on one data set and gender.

    Attributes:
        title: of data set and gender.
        rungs: the weakest attacker first; unprotected, where it is known, aside.
        unprotected: the same attacker on original speech.
        speakers: enrolled speakers; 0 where unknown.
        drawn_apart: whether the system is known to give the enrolment and the trials of a speaker different voices.
    """

    title: str
    attacker: str
    rungs: tuple[Rung, ...]
    unprotected: Rung | None = None
    speakers: int = 0
    drawn_apart: bool = False

    @property
    def steps_up(self) -> list[tuple[Rung, Rung]]:
        """Neighbours of which the one that knows more errs more."""
        return [(less, more) for less, more in pairwise(self.rungs) if more.eer > less.eer]

    @property
    def is_monotone(self) -> bool:
        return not self.steps_up


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about a ladder. `is_unlike`: it tells an order that should not be."""

    place: str
    sentence: str
    is_unlike: bool


@dataclass(frozen=True, slots=True)
class LadderReading:
    """What all ladders of a system say.

    Attributes:
        summary: one sentence; empty where no ladder has two rungs.
        notes: one for each ladder that breaks or that no interval settles, and for each attacker that is weak.
        missing: why the ladder ends before the strongest attacker; empty where it does not.
    """

    summary: str
    notes: tuple[Note, ...]
    missing: str

    @property
    def is_unlike(self) -> bool:
        return any(note.is_unlike for note in self.notes)


def read_ladders(ladders: Sequence[Ladder]) -> LadderReading:
    """Return what the ladders of a system say together, and what of each has to be known."""
    whole = [ladder for ladder in ladders if len(ladder.rungs) > 1]
    notes = [note for ladder in ladders for note in _notes(ladder)]
    return LadderReading(_summary(whole), tuple(notes), _missing(ladders))


def _summary(ladders: Sequence[Ladder]) -> str:
    if not ladders:
        return ""
    falling = sum(ladder.is_monotone for ladder in ladders)
    if falling == len(ladders):
        return f"No attacker with more knowledge has a higher EER, as expected: {_span(ladders)}."
    if not falling:
        where = f"in none of {len(ladders)} cases" if len(ladders) > 1 else "not here"
        return f"More knowledge should give a lower EER. That holds {where}; the reasons stand below."
    return (
        f"More knowledge should give a lower EER. That holds in {falling} of {len(ladders)} cases; for the rest the "
        "notes below say why not."
    )


def _span(ladders: Sequence[Ladder]) -> str:
    """Means over the ladders of the attacks that all have, such as ``48.1 % ignorant, 41.2 % lazy-informed``."""
    shared = [attack for attack in ORDER if all(any(rung.attack == attack for rung in one.rungs) for one in ladders)]
    rates = {attack: [_mean(ladder, attack) for ladder in ladders] for attack in shared}
    means = (f"{decimals(sum(of) / len(of), DIGITS)} % {attack}" for attack, of in rates.items())
    return ("on average " if len(ladders) > 1 else "") + ", ".join(means)


def _mean(ladder: Ladder, attack: AttackModel) -> float:
    rates = [rung.eer for rung in ladder.rungs if rung.attack == attack]
    return sum(rates) / len(rates)


def _missing(ladders: Sequence[Ladder]) -> str:
    attacks = {rung.attack for ladder in ladders for rung in ladder.rungs}
    if not attacks or AttackModel.SEMI_INFORMED in attacks:
        return ""
    return (
        "No attacker was trained on speech that this system anonymised, so the strongest one, semi-informed, is not "
        "among these: the true EER may be lower than any number here."
    )


def _notes(ladder: Ladder) -> Iterator[Note]:
    weak = ladder.unprotected
    if weak is not None and weak.eer >= WEAK_FROM:
        yield Note(
            ladder.title,
            f"{ladder.attacker} errs in {decimals(weak.eer, DIGITS)} % of the trials of original speech: it is a weak "
            "attacker, and a high EER of it proves little.",
            is_unlike=False,
        )
    for less, more in ladder.steps_up:
        reasons = list(_reasons(less, more, ladder))
        yield Note(ladder.title, f"{_naming(less, more)}: {'; '.join(reasons)}.", is_unlike=True)
    if ladder.is_monotone and len(ladder.rungs) > 1:
        unsettled = [pair for pair in pairwise(ladder.rungs) if _overlap(*pair)]
        if unsettled:
            yield Note(ladder.title, f"{_unsettled(unsettled, ladder.speakers)}.", is_unlike=False)


def _naming(less: Rung, more: Rung) -> str:
    who = less.attacker if less.attacker == more.attacker else f"{less.attacker} and {more.attacker}"
    return f"{who}: {more.said} is above {less.said}"


def _reasons(less: Rung, more: Rung, ladder: Ladder) -> Iterator[str]:
    """Yield what the numbers give for an attacker that errs more than one that knows less."""
    overlaps, speakers = _overlap(less, more), ladder.speakers
    if less.is_near_chance and more.is_near_chance:
        yield "both are near 50 %, where the attacker guesses, so their order means nothing"
    elif overlaps:
        yield f"their intervals overlap ({_limits(more)} and {_limits(less)}), so the order is not settled"
    if 0 < speakers < FEW_SPEAKERS:
        yield f"{speakers} enrolled speaker{'s are' if speakers > 1 else ' is'} few for an order"
    if more.attack is AttackModel.LAZY_INFORMED and ladder.drawn_apart:
        yield (
            "this system gives the enrolment and the trials of a speaker different voices, so anonymised enrolment "
            "lies further from the trials than original enrolment does"
        )
    elif not more.is_trained:
        yield (
            f"{more.attacker} never was trained on such speech, and anonymised enrolment can mislead it more than "
            "original enrolment does"
        )
    elif not overlaps:
        yield (
            f"{more.attacker} is the weaker attacker although it was trained on such speech: its training is too "
            "small or too short to take its number for the strongest attack"
        )


def _unsettled(pairs: Sequence[tuple[Rung, Rung]], speakers: int) -> str:
    names = " and of ".join(f"{less.said} and {more.said}" for less, more in pairs)
    few = f" of {speakers} speakers" if speakers else ""
    [attacker] = {less.attacker for less, _ in pairs[:1]}
    return f"{attacker}: the order is as it should be, but the intervals{few} of {names} overlap, so it is not settled"


def _overlap(less: Rung, more: Rung) -> bool:
    if less.low is None or less.high is None or more.low is None or more.high is None:
        return False
    return less.low <= more.high and more.low <= less.high


def _limits(rung: Rung) -> str:
    return f"{decimals(rung.low, DIGITS)} to {decimals(rung.high, DIGITS)} %"
