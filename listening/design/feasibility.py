"""Whether a request can be met at all, by counting; and if not, which constraint is in the way and what would do.

Everything here is necessary: a request that fails can have no design. One that passes nearly always has one; where the
search then ends without, `filling` and `ordering` say so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor

from listening.design.plan import Candidate, DesignError, DesignRequest, Requirements, required, sums, weights

_NAMED = 3


def validate_request(request: DesignRequest) -> None:
    """Raise for everything that is wrong with a request.

    Raises:
        DesignError: one sentence for each fault.
    """
    problems = [*_wrong_numbers(request), *_wrong_candidates(request)]
    if not problems:
        problems = [*_uncovered(request), *_unbalanced(request), *_too_few_utterances(request, required(request))]
    if problems:
        raise DesignError(problems)


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
        yield f"Expected every trial once, found twice: {_some(twice)}."
    unknown = {candidate.system for candidate in candidates} - {"", *request.systems}
    if unknown:
        yield f"Expected trials of the systems {', '.join(request.systems)}, found some of {_some(sorted(unknown))}."
    sexes = {str(candidate.sex) for candidate in candidates} - {"f", "m"}
    if sexes:
        yield f"Expected speakers of sex f or m, found {_some(sorted(sexes))}."
    if len({candidate.is_target is None for candidate in candidates}) > 1:
        yield "Expected either all trials with a class (target or non-target) or none, found both."
    unpaired = [one.key for one in candidates if (one.is_target is None) != (not one.enrolment)]
    if unpaired:
        yield f"Expected an enrolment utterance where voices are compared and only there, not so in {_some(unpaired)}."
    same = [one.key for one in candidates if one.enrolment and one.source == one.enrolment]
    if same:
        yield f"Expected two different utterances in a trial, found one only in {_some(same)}."
    of_system = Counter(candidate.system for candidate in candidates)
    without = [system for system in request.systems if not of_system[system]]
    if without and request.anonymised > 0:
        yield f"Expected trials of every system, found none of {_some(without)}."
    if (request.originals > 0) != (of_system[""] > 0):
        yield f"Expected original trials as the request has {request.originals} originals, found {of_system['']}."


def _uncovered(request: DesignRequest) -> Iterable[str]:
    """Every trial must be rated at least once."""
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
        yield (
            f"Coverage: {kinds} systems with {most} trials each are {needed}, but {evaluators} evaluators ×"
            f" {request.anonymised} anonymised trials rate {slots}. {ceil(needed / request.anonymised)} evaluators,"
            f" {each} anonymised trials each ({each + request.originals} trials with {request.originals} originals),"
            f" {slots // most} systems, or {slots // kinds} trials of each system would do."
        )


def _unbalanced(request: DesignRequest) -> Iterable[str]:
    """In each system, and in the originals, as many targets as non-targets and as many female as male."""
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


def _too_few_utterances(request: DesignRequest, needs: Requirements) -> Iterable[str]:
    sources = {candidate.source for candidate in request.candidates}
    enrolments = {candidate.enrolment for candidate in request.candidates} - {""}
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
    """The ratings of all trials with one utterance, over all evaluators, who may each meet it `limit` times."""
    what = "source" if role == "trial" else "enrolment"
    weight = weights(request)

    def utterance(candidate: Candidate) -> str:
        return str(getattr(candidate, what))

    shares = sums(request.candidates, utterance, weight)
    ratings: Counter[str] = Counter()
    for candidate in request.candidates:
        ratings[utterance(candidate)] += floor(request.evaluators * weight[candidate.key])
    worst = [name for name, count in ratings.most_common() if name and count > request.evaluators * limit]
    if worst:
        share = shares[worst[0]] / limit
        yield (
            f"Repeats: {len(worst)} {role} utterance{'s' if len(worst) > 1 else ''} ({_some(worst)}) would be met"
            f" {float(share * limit):.1f} times in a session, where {limit} is allowed. {_shorter(request, share)},"
            f" more {role} utterances of the same speakers, or {role} utterances that may repeat would do."
        )


def _shorter(request: DesignRequest, share: Fraction) -> str:
    trials = max(1, floor(request.trials / share))
    return f"{trials} trial{'s' if trials > 1 else ''} per evaluator in the same parts"


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
