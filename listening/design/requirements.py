"""What a design is asked for, what it is, and which numbers every constraint means: the one definition of each.

A request names evaluators, trials for each of them, how many of these are originals, the systems, and the candidates:
the trials that exist. A design gives every evaluator (a block) an ordered list of candidates. `compute_requirements`
turns the request into the numbers below (`order_rules` says which may follow each other); `allocation` and `ordering`
meet them, `certificate` checks them on its own.
`validate_request` says which of a request's numbers are in the way of a design, and which would do.

Words: a *half* is the originals or the anonymised trials of a session, however many each are; a *class* is target (both
samples of one speaker) or non-target; the *share* of a group in a half is its part of the half's candidates where
every system weighs the same: a candidate of a system with n candidates weighs 1/(Kn), an original 1/n.

Constraints, for E evaluators, T trials each, O of them originals, P = T - O anonymised, K systems:

coverage    every candidate is rated; counts of the candidates of a system differ by at most 1, so do the originals';
            the totals of the systems are floor or ceil of EP/K.
evaluator   exactly O originals; of every system floor or ceil of P/K, and so of each class of a system; of every class
            and of each sex in each half floor or ceil of the half times the share; of a speaker in a half at most ceil
            of the half times its share.
repeats     no source utterance twice in a session, in whatever version, and no enrolment utterance twice.
order       at most two of a kind (original or anonymised) in a row; the same speaker at least 3 places apart; a system
            never next to itself; every quarter holds floor or ceil of its part of each kind and of each class; over
            all evaluators every system stands in each quarter as often as its part says, give or take a tenth, at
            least 1, and 1 more for each extension. Quarter q (0 to 3) is the places from floor(qT/4) to
            floor((q+1)T/4), counted from 0.
places      of kind, class and system a trial's place, and the two kinds before it, tell no more than any order under
            these rules does (`listening.design.places`).
candidates  in each half as many targets as non-targets, as many female as male trials (each system, give or take 1),
            enrolment and trial of one sex.

Where the numbers themselves forbid a rule, it gives way by what they permit, and the certificate reports it as relaxed:
runs (one kind more than half again as frequent as the other), the distance of a speaker (fewer than five speakers, or
one with a large share), systems next to each other (one system alone). Three further relaxations happen only if the
request asks: `sources_may_repeat`, `enrolments_may_repeat` (then twice in a session, or as often as the share rounded
up says) and `sexes_as_in_pool` (then each sex has its share of the candidates instead of one half).

For 52 × 52 with 26 originals, 26 speakers and 11 to 13 systems with 104 trials each this is the layout of 2022.

What `validate_request` counts is necessary: a request that fails can have no design. One that passes nearly always has
one; where the search then ends without, `allocation` and `ordering` say so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from typing import Literal, TypeVar

from common.errors import ProblemsError
from common.wording import counted, name_some
from listening.design.order_rules import LONGEST_RUN, SPEAKER_GAP, longest_run, speaker_gap

VERSION = "2"
QUARTERS = 4
Sex = Literal["f", "m"]
Name = TypeVar("Name")
Progress = Callable[[int, int, str], None]  # how many are done, of how many, of what


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
        is_target: whether sample B is of the same speaker.
        source: the utterance of sample A, the same in every version of it.
        enrolment: the utterance of sample B.
    """

    key: str
    system: str
    speaker: str
    sex: Sex
    is_target: bool
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
        """Return how many anonymised trials each session has."""
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
        """Return floor and ceil of what would be exactly proportional."""
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
        classes: for target (True) and non-target (False).
        sexes: for ``f`` and ``m``.
        speakers: the most trials of each speaker.
    """

    trials: int
    classes: Mapping[bool, Bounds]
    sexes: Mapping[str, Bounds]
    speakers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DesignRequirements:
    """Every number that a design for a request must meet.

    Attributes:
        system_total: ratings of each system, over all evaluators.
        system: trials of each system in one session.
        system_classes: targets (True) and non-targets (False) of each system in one session.
        originals, anonymised: the two halves of a session.
        source, enrolment: how often one may occur in a session.
        longest_run: trials of one kind in a row.
        speaker_gap: least difference of the places of two trials of one speaker.
        systems_apart: whether a system may never stand next to itself.
        relaxed: one sentence for each rule that is weaker than the full one.
    """

    system_total: Bounds
    system: Bounds
    system_classes: Mapping[tuple[str, bool], Bounds]
    originals: Half
    anonymised: Half
    source: int
    enrolment: int
    longest_run: int
    speaker_gap: int
    systems_apart: bool
    relaxed: tuple[str, ...]


def quarter_sizes(trials: int) -> tuple[int, ...]:
    """Return how many places each quarter of a session has."""
    edges = [quarter * trials // QUARTERS for quarter in range(QUARTERS + 1)]
    return tuple(after - before for before, after in pairwise(edges))


def quarter_of_place(trials: int) -> list[int]:
    """Return for each place from 0 the quarter, 0 to 3, that it lies in."""
    return [quarter for quarter, size in enumerate(quarter_sizes(trials)) for _ in range(size)]


def position_bounds(total: int, places: int, trials: int, extensions: int = 0) -> Bounds:
    """Return how often a system with `total` ratings may stand in a quarter of `places` of `trials` places."""
    share = Fraction(total * places, trials)
    slack = max(1, floor(share / 10)) + extensions
    return Bounds(max(0, floor(share) - slack), ceil(share) + slack)


def weigh_candidates(request: DesignRequest) -> dict[str, Fraction]:
    """Return how often a candidate would be in one session if all could be cut to pieces: its weight times its half."""
    sizes = Counter(candidate.system for candidate in request.candidates)
    kinds = max(1, len(request.systems))
    of_system = {
        system: Fraction(request.anonymised, kinds * size) if system else Fraction(request.originals, size)
        for system, size in sizes.items()
    }
    return {candidate.key: of_system[candidate.system] for candidate in request.candidates}


def compute_requirements(request: DesignRequest) -> DesignRequirements:
    """Return the numbers of every constraint (head of this module) for a request that is valid."""
    weight = weigh_candidates(request)
    relaxed: list[str] = []
    originals = _half(request, weight, original=True)
    anonymised = _half(request, weight, original=False)
    if request.sexes_as_in_pool:
        relaxed.append("Each sex has its share of the candidates, which need not be one half.")
    kinds = max(1, len(request.systems))
    run = longest_run(request.originals, request.anonymised)
    most = Counter(originals.speakers)
    most.update(anonymised.speakers)
    gap = speaker_gap(request.trials, most)
    if run > LONGEST_RUN:
        relaxed.append(f"Up to {run} of a kind in a row: {request.originals} originals among {request.trials} trials.")
    if gap < SPEAKER_GAP:
        relaxed.append(
            f"A speaker may be heard again after {gap} place{'s' if gap > 1 else ''}: too few speakers, or trials."
        )
    if kinds == 1 and request.anonymised > 1:
        relaxed.append("The only system may stand next to itself.")
    return DesignRequirements(
        system_total=Bounds.around(Fraction(request.evaluators * request.anonymised, kinds)),
        system=Bounds.around(Fraction(request.anonymised, kinds)),
        system_classes=_system_classes(request, weight),
        originals=originals,
        anonymised=anonymised,
        source=_limit(request, weight, "source", request.sources_may_repeat, relaxed),
        enrolment=_limit(request, weight, "enrolment", request.enrolments_may_repeat, relaxed),
        longest_run=run,
        speaker_gap=gap,
        systems_apart=kinds > 1,
        relaxed=tuple(relaxed),
    )


def sum_weights(
    candidates: Iterable[Candidate], name: Callable[[Candidate], Name], weight: Mapping[str, Fraction]
) -> dict[Name, Fraction]:
    """Sum the weight of all candidates that share a name."""
    found: dict[Name, Fraction] = defaultdict(Fraction)
    counts = Counter((name(candidate), weight[candidate.key]) for candidate in candidates)  # few different weights
    for (of, each), count in counts.items():
        found[of] += count * each
    return dict(found)


def _half(request: DesignRequest, weight: Mapping[str, Fraction], *, original: bool) -> Half:
    members = [candidate for candidate in request.candidates if candidate.is_original == original]
    classes = sum_weights(members, lambda candidate: candidate.is_target, weight)
    sexes = sum_weights(members, lambda candidate: candidate.sex, weight)
    speakers = sum_weights(members, lambda candidate: candidate.speaker, weight)
    return Half(
        trials=request.originals if original else request.anonymised,
        classes={name: Bounds.around(share) for name, share in classes.items()},
        sexes={name: Bounds.around(share) for name, share in sexes.items()},
        speakers={name: ceil(share) for name, share in speakers.items()},
    )


def _system_classes(request: DesignRequest, weight: Mapping[str, Fraction]) -> dict[tuple[str, bool], Bounds]:
    members = [one for one in request.candidates if not one.is_original]
    shares = sum_weights(members, lambda one: (one.system, one.is_target), weight)
    return {name: Bounds.around(share) for name, share in shares.items()}


def _limit(
    request: DesignRequest,
    weight: Mapping[str, Fraction],
    what: Literal["source", "enrolment"],
    may_repeat: bool,
    relaxed: list[str],
) -> int:
    """Return how often an utterance may occur in a session: once; if it may repeat, twice or its share rounded up."""
    if not may_repeat:
        return 1
    shares = sum_weights(request.candidates, lambda candidate: str(getattr(candidate, what)), weight)
    most = max([2, *map(ceil, shares.values())])
    role = "trial" if what == "source" else "enrolment"
    relaxed.append(f"The same {role} utterance may be heard up to {most} times in a session.")
    return most


def validate_request(request: DesignRequest) -> None:
    """Raise for everything that is wrong with a request.

    Raises:
        ProblemsError: one sentence for each problem.
    """
    problems = [*_wrong_numbers(request), *_wrong_candidates(request)]
    if not problems:
        needs = compute_requirements(request)
        problems = [*_uncovered(request), *_unbalanced(request), *_too_few_utterances(request, needs)]
    if problems:
        raise ProblemsError(problems)


def _wrong_numbers(request: DesignRequest) -> Iterable[str]:
    if request.evaluators < 1 or request.trials < 1:
        yield f"Expected at least 1 evaluator and 1 trial, found {request.evaluators} and {request.trials}."
    if not 0 <= request.originals <= request.trials:
        yield f"Expected 0 to {request.trials} originals among {request.trials} trials, found {request.originals}."
    if request.anonymised > 0 and not request.systems:
        yield f"Expected at least 1 system for {request.anonymised} anonymised trials of each evaluator, found none."
    if request.systems and request.anonymised < 1:
        yield (
            f"Expected anonymised trials for {len(request.systems)} systems, found none: {request.trials} trials, of"
            f" which {request.originals} are originals. At most {request.trials - 1} originals would do."
        )
    if len(set(request.systems)) < len(request.systems) or not all(request.systems):
        yield f"Expected systems with names of their own, found {', '.join(map(repr, request.systems))}."
    if request.seed < 0:
        yield f"Expected a seed of 0 or more, found {request.seed}."


def _wrong_candidates(request: DesignRequest) -> Iterable[str]:
    candidates = request.candidates
    twice = [key for key, count in Counter(candidate.key for candidate in candidates).items() if count > 1]
    if twice:
        yield f"Expected every trial once, found twice: {name_some(twice)}."
    unknown = {candidate.system for candidate in candidates} - {"", *request.systems}
    if unknown:
        systems = ", ".join(request.systems)
        yield f"Expected trials of the systems {systems}, found some of {name_some(sorted(unknown))}."
    sexes = {str(candidate.sex) for candidate in candidates} - {"f", "m"}
    if sexes:
        yield f"Expected speakers of sex f or m, found {name_some(sorted(sexes))}."
    same = [one.key for one in candidates if one.source == one.enrolment]
    if same:
        yield f"Expected two different utterances in a trial, found one only in {name_some(same)}."
    of_system = Counter(candidate.system for candidate in candidates)
    without = [system for system in request.systems if not of_system[system]]
    if without and request.anonymised > 0:
        yield f"Expected trials of every system, found none of {name_some(without)}."
    if (request.originals > 0) != (of_system[""] > 0):
        yield f"Expected original trials as the request has {request.originals} originals, found {of_system['']}."


def _uncovered(request: DesignRequest) -> Iterable[str]:
    """Yield why some trial would not be rated even once."""
    of_system = Counter(candidate.system for candidate in request.candidates)
    originals, kinds, evaluators = of_system.pop("", 0), len(request.systems), request.evaluators
    if originals > evaluators * request.originals:
        yield (
            f"Coverage: {originals} original trials, but {evaluators} evaluators × {request.originals} originals rate"
            f" {evaluators * request.originals}. {ceil(originals / request.originals)} evaluators,"
            f" {ceil(originals / evaluators)} originals each, or {evaluators * request.originals} original trials would"
            " do."
        )
    most = max(of_system.values(), default=0)
    slots = evaluators * request.anonymised
    if kinds and most > slots // kinds:
        needed = most * kinds
        each = ceil(needed / evaluators)
        fewer = f", or {slots // kinds} trials of each system" if slots >= kinds else ""
        yield (
            f"Coverage: {kinds} systems with {most} trials each are {needed}, but {evaluators} evaluators ×"
            f" {request.anonymised} anonymised trials rate {slots}. {ceil(needed / request.anonymised)} evaluators,"
            f" {each} anonymised trials each ({each + request.originals} trials with {request.originals} originals),"
            f"{'' if fewer else ' or'} {slots // most} systems{fewer} would do."
        )


def _unbalanced(request: DesignRequest) -> Iterable[str]:
    """Yield what is uneven: in each system and the originals, as many targets as non-targets, female as male."""
    rows: dict[str, Counter[object]] = defaultdict(Counter)
    for candidate in request.candidates:
        rows[candidate.system].update([candidate.sex, candidate.is_target])
    for system, counts in rows.items():
        name = f"system {system}" if system else "the originals"
        if abs(counts[True] - counts[False]) > 1:
            yield (
                f"Balance of classes: expected as many target as non-target trials of {name}, found {counts[True]} and"
                f" {counts[False]}. {2 * min(counts[True], counts[False])} trials, half of each, would do."
            )
        if abs(counts["f"] - counts["m"]) > 1 and not request.sexes_as_in_pool:
            yield (
                f"Balance of sexes: expected as many female as male trials of {name}, found {counts['f']} and"
                f" {counts['m']}. {2 * min(counts['f'], counts['m'])} trials, half of each, or sexes as in the pool,"
                " would do."
            )


def _too_few_utterances(request: DesignRequest, needs: DesignRequirements) -> Iterable[str]:
    sources = {candidate.source for candidate in request.candidates}
    enrolments = {candidate.enrolment for candidate in request.candidates}
    for role, found, limit in (("trial", sources, needs.source), ("enrolment", enrolments, needs.enrolment)):
        if found and len(found) * limit < request.trials:
            yield (
                f"Repeats: {request.trials} trials of one evaluator need {ceil(request.trials / limit)} different"
                f" {role} utterances, found {len(found)}. {len(found) * limit} trials per evaluator,"
                f" {ceil(request.trials / limit) - len(found)} more {role} utterances, or {role} utterances that may"
                " repeat would do."
            )
            continue
        yield from _too_often(request, role, limit)


def _too_often(request: DesignRequest, role: str, limit: int) -> Iterable[str]:
    """Yield why trials with one utterance have more ratings than evaluators who each meet it `limit` times."""
    what = "source" if role == "trial" else "enrolment"
    weight = weigh_candidates(request)

    def utterance(candidate: Candidate) -> str:
        return str(getattr(candidate, what))

    shares = sum_weights(request.candidates, utterance, weight)
    ratings: Counter[str] = Counter()
    for candidate in request.candidates:
        ratings[utterance(candidate)] += floor(request.evaluators * weight[candidate.key])
    worst = [name for name, count in ratings.most_common() if count > request.evaluators * limit]
    if worst:
        share = shares[worst[0]] / limit
        fewer = counted(max(1, floor(request.trials / share)), "trial") + " per evaluator in the same parts"
        yield (
            f"Repeats: {len(worst)} {role} utterance{'s' if len(worst) > 1 else ''} ({name_some(worst)}) would be met"
            f" {float(share * limit):.1f} times in a session, where {limit} is allowed. {fewer},"
            f" more {role} utterances of the same speakers, or {role} utterances that may repeat would do."
        )
