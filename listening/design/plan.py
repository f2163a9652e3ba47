"""What a design is asked for, what it is, and which numbers every constraint means: the one definition of each.

A request names evaluators, trials for each of them, how many of these are originals, the systems, and the candidates:
the trials that exist. A design gives every evaluator (a block) an ordered list of candidates. `required` turns the
request into the numbers below; `allocation` and `ordering` meet them, `certificate` checks them on its own.

Words: a *half* is the originals or the anonymised trials of a session, however many each are; a *class* is target (both
samples of one speaker) or non-target; the *share* of a group in a half is its part of the half's candidates where
every system weighs the same: a candidate of a system with n candidates weighs 1/(Kn), an original 1/n.

Constraints, for E evaluators, T trials each, O of them originals, P = T - O anonymised, K systems:

coverage    every candidate is rated; counts of the candidates of a system differ by at most 1, so do the originals';
            the totals of the systems are floor or ceil of EP/K.
evaluator   exactly O originals; of every system floor or ceil of P/K; of every class and of each sex in each half
            floor or ceil of the half times the share; of a speaker in a half at most ceil of the half times its share.
repeats     no source utterance twice in a session, in whatever version, and no enrolment utterance twice.
order       at most two of a kind (original or anonymised) in a row; the same speaker at least 3 places apart; a system
            never next to itself; every quarter holds floor or ceil of its part of each kind and of each class; over
            all evaluators every system stands in each quarter as often as its part says, give or take a tenth, at
            least 1, and 1 more for each extension. Quarter q (0 to 3) is the places from floor(qT/4) to
            floor((q+1)T/4), counted from 0.
candidates  in each half as many targets as non-targets, as many female as male trials (each system, give or take 1),
            enrolment and trial of one sex.

Where the numbers themselves forbid a rule, it gives way by what they permit, and the certificate reports it as relaxed:
runs (one kind far more frequent than the other), the distance of a speaker (fewer than five speakers, or one with a
large share), systems next to each other (one system alone). Three further relaxations happen only if the request asks:
`sources_may_repeat`, `enrolments_may_repeat` (then twice in a session, or as often as the share rounded up says) and
`sexes_as_in_pool` (then each sex has its share of the candidates instead of one half).

For 52 × 52 with 26 originals, 26 speakers and 11 to 13 systems with 104 trials each this is the layout of 2022.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from typing import Literal, TypeVar

VERSION = "1"
QUARTERS = 4
SPEAKER_GAP = 3
LONGEST_RUN = 2
Sex = Literal["f", "m"]
Name = TypeVar("Name")


class DesignError(ValueError):
    """What was asked for cannot be; each of `problems` says which constraint, and which numbers would do."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__(" ".join(self.problems))


@dataclass(frozen=True, slots=True)
class PoolUtterance:
    """An utterance that may be heard.

    Attributes:
        key: its unique name.
        role: whether it is a trial utterance (sample A) or an enrolment utterance (sample B).
        systems: the systems that have an anonymised version of it.
    """

    key: str
    speaker: str
    sex: Sex
    role: Literal["trial", "enrolment"]
    systems: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trial that can be given to evaluators.

    Attributes:
        key: its unique name.
        system: name of the system that anonymised sample A; empty for an original.
        speaker: of sample A.
        sex: of that speaker.
        is_target: whether sample B is of the same speaker; None where no voices are compared.
        source: the utterance of sample A, the same in every version of it.
        enrolment: the utterance of sample B; empty where there is none.
    """

    key: str
    system: str
    speaker: str
    sex: Sex
    is_target: bool | None
    source: str
    enrolment: str

    @property
    def is_original(self) -> bool:
        return not self.system


@dataclass(frozen=True, slots=True)
class DesignRequest:
    """What is asked for: numbers, candidates, the seed, and which rules may give way (see the head of this module).

    `evaluators` are those of the launch; blocks that are added later stand in the design's extensions.
    """

    evaluators: int
    trials: int
    originals: int
    systems: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    seed: int
    sources_may_repeat: bool = False
    enrolments_may_repeat: bool = False
    sexes_as_in_pool: bool = False

    @property
    def anonymised(self) -> int:
        """Anonymised trials in each session."""
        return self.trials - self.originals


@dataclass(frozen=True, slots=True)
class Extension:
    """Blocks that were added later, and the seed that dealt them."""

    blocks: int
    seed: int


@dataclass(frozen=True, slots=True)
class Design:
    """For every evaluator the keys of the candidates in the order of hearing; extensions come after the first ones."""

    version: str
    seed: int
    blocks: tuple[tuple[str, ...], ...]
    extensions: tuple[Extension, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """The lowest and the highest count that is right."""

    lowest: int
    highest: int

    @classmethod
    def around(cls, share: Fraction) -> Bounds:
        """Floor and ceil of what would be exactly proportional."""
        return cls(floor(share), ceil(share))

    def __contains__(self, count: object) -> bool:
        return isinstance(count, int) and self.lowest <= count <= self.highest

    def __str__(self) -> str:
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest} to {self.highest}"


@dataclass(frozen=True, slots=True)
class Half:
    """Rules for the originals, or for the anonymised trials, of one session.

    Attributes:
        trials: how many they are.
        classes: for target (True) and non-target (False); empty where no voices are compared.
        sexes: for ``f`` and ``m``.
        speakers: the most trials of each speaker.
    """

    trials: int
    classes: Mapping[bool, Bounds]
    sexes: Mapping[str, Bounds]
    speakers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Requirements:
    """Every number that a design for a request must meet.

    Attributes:
        system_total: ratings of each system, over all evaluators.
        system: trials of each system in one session.
        originals, anonymised: the two halves of a session.
        source, enrolment: how often one may occur in a session.
        longest_run: trials of one kind in a row.
        speaker_gap: least difference of the places of two trials of one speaker.
        systems_apart: whether a system may never stand next to itself.
        relaxed: one sentence for each rule that is weaker than the full one.
    """

    system_total: Bounds
    system: Bounds
    originals: Half
    anonymised: Half
    source: int
    enrolment: int
    longest_run: int
    speaker_gap: int
    systems_apart: bool
    relaxed: tuple[str, ...]


def quarter_sizes(trials: int) -> tuple[int, ...]:
    """Places in each quarter of a session."""
    edges = [quarter * trials // QUARTERS for quarter in range(QUARTERS + 1)]
    return tuple(after - before for before, after in pairwise(edges))


def quarter_of_place(trials: int) -> list[int]:
    """For each place from 0 the quarter, 0 to 3, that it lies in."""
    return [quarter for quarter, size in enumerate(quarter_sizes(trials)) for _ in range(size)]


def position_bounds(total: int, places: int, trials: int, extensions: int = 0) -> Bounds:
    """How often a system with `total` ratings may stand in a quarter of `places` of `trials` places."""
    share = Fraction(total * places, trials)
    slack = max(1, floor(share / 10)) + extensions
    return Bounds(max(0, floor(share) - slack), ceil(share) + slack)


def weights(request: DesignRequest) -> dict[str, Fraction]:
    """How often a candidate would be in one session if all could be cut to pieces: its weight times its half."""
    sizes = Counter(candidate.system for candidate in request.candidates)
    kinds = max(1, len(request.systems))
    of_system = {
        system: Fraction(request.anonymised, kinds * size) if system else Fraction(request.originals, size)
        for system, size in sizes.items()
    }
    return {candidate.key: of_system[candidate.system] for candidate in request.candidates}


def required(request: DesignRequest) -> Requirements:
    """The numbers of every constraint (head of this module) for a request that `validation` has accepted."""
    weight = weights(request)
    relaxed: list[str] = []
    originals = _half(request, weight, original=True)
    anonymised = _half(request, weight, original=False)
    if request.sexes_as_in_pool:
        relaxed.append("Each sex has its share of the candidates, which need not be one half.")
    kinds = max(1, len(request.systems))
    run, gap = _longest_run(request), _speaker_gap(request, originals, anonymised)
    if run > LONGEST_RUN:
        relaxed.append(f"Up to {run} of a kind in a row: {request.originals} originals among {request.trials} trials.")
    if gap < SPEAKER_GAP:
        relaxed.append(
            f"A speaker may be heard again after {gap} place{'s' if gap > 1 else ''}: too few speakers, or trials."
        )
    if kinds == 1 and request.anonymised > 1:
        relaxed.append("The only system may stand next to itself.")
    return Requirements(
        system_total=Bounds.around(Fraction(request.evaluators * request.anonymised, kinds)),
        system=Bounds.around(Fraction(request.anonymised, kinds)),
        originals=originals,
        anonymised=anonymised,
        source=_limit(request, weight, "source", request.sources_may_repeat, relaxed),
        enrolment=_limit(request, weight, "enrolment", request.enrolments_may_repeat, relaxed),
        longest_run=run,
        speaker_gap=gap,
        systems_apart=kinds > 1,
        relaxed=tuple(relaxed),
    )


def sums(
    candidates: Iterable[Candidate], name: Callable[[Candidate], Name], weight: Mapping[str, Fraction]
) -> dict[Name, Fraction]:
    """Weight of all candidates that share a name."""
    found: dict[Name, Fraction] = defaultdict(Fraction)
    for candidate in candidates:
        found[name(candidate)] += weight[candidate.key]
    return dict(found)


def _half(request: DesignRequest, weight: Mapping[str, Fraction], *, original: bool) -> Half:
    members = [candidate for candidate in request.candidates if candidate.is_original == original]
    return Half(
        trials=request.originals if original else request.anonymised,
        classes={
            name: Bounds.around(share)
            for name, share in sums(members, lambda candidate: candidate.is_target, weight).items()
            if name is not None
        },
        sexes={
            name: Bounds.around(share) for name, share in sums(members, lambda candidate: candidate.sex, weight).items()
        },
        speakers={
            name: ceil(share) for name, share in sums(members, lambda candidate: candidate.speaker, weight).items()
        },
    )


def _longest_run(request: DesignRequest) -> int:
    """Two, or as many as come to one of the rarer kind; all trials where there is one kind only."""
    rarer, commoner = sorted([request.originals, request.anonymised])
    return request.trials if rarer == 0 else max(LONGEST_RUN, ceil(Fraction(commoner, rarer)))


def _speaker_gap(request: DesignRequest, *halves: Half) -> int:
    """At a gap of g, g - 1 speakers are barred from each place: as many again, and one, must be left to choose from.

    And all trials of each speaker, T/g of them at most, must find places that far apart.
    """
    most: Counter[str] = Counter()
    for half in halves:
        most.update(half.speakers)
    gap = min(SPEAKER_GAP, (len(most) + 1) // 2)
    largest = max(most.values(), default=1)
    return max(1, min(gap, request.trials // max(1, largest)))


def _limit(
    request: DesignRequest,
    weight: Mapping[str, Fraction],
    what: Literal["source", "enrolment"],
    may_repeat: bool,
    relaxed: list[str],
) -> int:
    """How often an utterance may occur in a session: once, or where it may repeat twice, or its share rounded up."""
    if not may_repeat:
        return 1
    shares = sums(request.candidates, lambda candidate: str(getattr(candidate, what)), weight)
    most = max((ceil(share) for name, share in shares.items() if name), default=1)
    most = max(2, most)
    role = "trial" if what == "source" else "enrolment"
    relaxed.append(f"The same {role} utterance may be heard up to {most} times in a session.")
    return most
