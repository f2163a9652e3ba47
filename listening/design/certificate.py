"""The balance certificate: every constraint of a design, computed again from the request and the blocks alone.

Nothing of what made the design is used, only the definitions of `listening.design.requirements`; a design from
anywhere, or one read back from a database, is checked alike. The certificate of the same request and design is always
the same, byte by byte, and names both by their SHA-256, so that anybody with the seed can make it again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any

from listening.design.places import (
    CUES,
    KindsByPlace,
    bound_by_chance,
    bound_guesses,
    find_kinds_by_place,
    guess_held_out,
)
from listening.design.requirements import (
    QUARTERS,
    Bounds,
    Candidate,
    Design,
    DesignRequest,
    DesignRequirements,
    compute_requirements,
    position_bounds,
)

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Check:
    """Attributes:
    name: short stable name of the constraint.
    passed: whether it is met everywhere.
    required, found: in words.
    sentence: both, with the first places where it is not met.
    """

    name: str
    passed: bool
    required: str
    found: str
    sentence: str


def check_problems(name: str, required: str, found: str, problems: Iterable[str]) -> Check:
    """Return a check that passes without problems; its sentence names the first ones."""
    listed = list(problems)
    start = f"{name[0].upper()}{name[1:]}: {required}; found {found}."
    if not listed:
        return Check(name, True, required, found, start)
    more = f"; and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return Check(name, False, required, found, f"{start} Not met: {'; '.join(listed[:_NAMED])}{more}.")


def check_counts(name: str, what: str, rows: Sequence[tuple[str, int, Bounds]]) -> Check:
    """Return a check of counts, each with its place and its bounds."""
    bounds = sorted({str(bounds) for _, _, bounds in rows}, key=lambda words: (int(words.split()[0]), words))
    required = " or ".join(bounds) or "nothing"
    found = span_words(count for _, count, _ in rows) if rows else "nothing"
    problems = [f"{place}: {count} instead of {bounds}" for place, count, bounds in rows if count not in bounds]
    return check_problems(name, f"{what}: {required}", found, problems)


def span_words(counts: Iterable[int]) -> str:
    """Return the lowest and the highest count, such as ``3 to 5``."""
    found = list(counts) or [0]
    return str(Bounds(min(found), max(found)))


Blocks = Sequence[Sequence[Candidate]]


def check_order(request: DesignRequest, needs: DesignRequirements, blocks: Blocks, extensions: int) -> Iterable[Check]:
    """Check all constraints on the order within sessions, and on the places of systems over sessions."""
    yield _runs(needs, blocks)
    yield _distances(needs, blocks)
    yield _neighbours(needs, blocks)
    yield _quarters("quarters by kind", "originals and anonymised trials in each quarter", blocks, _kind)
    yield _quarters("quarters by class", "targets and non-targets in each quarter", blocks, _class)
    yield _positions(request, blocks, extensions)


def _runs(needs: DesignRequirements, blocks: Blocks) -> Check:
    problems, longest = [], 0
    for number, block in enumerate(blocks, 1):
        for kind, run in groupby(block, key=_kind):
            length = sum(1 for _ in run)
            longest = max(longest, length)
            if length > needs.longest_run:
                problems.append(f"evaluator {number} meets {length} {kind} trials in a row")
    return check_problems("runs", f"at most {needs.longest_run} of a kind in a row", f"at most {longest}", problems)


def _distances(needs: DesignRequirements, blocks: Blocks) -> Check:
    problems, least = [], 0
    for number, block in enumerate(blocks, 1):
        last: dict[str, int] = {}
        for place, trial in enumerate(block, 1):
            if trial.speaker in last:
                distance = place - last[trial.speaker]
                least = min(least or distance, distance)
                if distance < needs.speaker_gap:
                    problems.append(
                        f"evaluator {number} meets speaker {trial.speaker} at {last[trial.speaker]} and {place}"
                    )
            last[trial.speaker] = place
    found = f"at least {least}" if least else "no speaker twice"
    return check_problems("speaker distance", f"a speaker at least {needs.speaker_gap} places apart", found, problems)


def _neighbours(needs: DesignRequirements, blocks: Blocks) -> Check:
    beside = list_neighbours([[trial.system for trial in block] for block in blocks], " meets system {}")
    rule = "a system never next to itself" if needs.systems_apart else "no rule for one system alone"
    return check_problems("neighbours", rule, f"{len(beside)} such places", beside if needs.systems_apart else [])


def _quarters(name: str, what: str, blocks: Blocks, group_of: Callable[[Candidate], str]) -> Check:
    rows = []
    for number, block in enumerate(blocks, 1):
        total = Counter(group_of(trial) for trial in block)
        for quarter in range(QUARTERS):
            part = block[quarter * len(block) // QUARTERS : (quarter + 1) * len(block) // QUARTERS]
            here = Counter(group_of(trial) for trial in part)
            for group, count in total.items():
                bounds = Bounds.around(Fraction(count * len(part), len(block)))
                rows.append((f"evaluator {number}, quarter {quarter + 1}, {group}", here[group], bounds))
    return check_counts(name, what, rows)


def _positions(request: DesignRequest, blocks: Blocks, extensions: int) -> Check:
    heard: dict[str, list[int]] = defaultdict(lambda: [0] * QUARTERS)
    for block in blocks:
        for quarter in range(QUARTERS):
            for trial in block[quarter * len(block) // QUARTERS : (quarter + 1) * len(block) // QUARTERS]:
                heard[trial.system][quarter] += 1
    rows = []
    for system in request.systems:
        for quarter, count in enumerate(heard[system]):
            places = (quarter + 1) * request.trials // QUARTERS - quarter * request.trials // QUARTERS
            bounds = position_bounds(sum(heard[system]), places, request.trials, extensions)
            rows.append((f"{system}, quarter {quarter + 1}", count, bounds))
    return check_counts("positions", "how often each system stands in each quarter over all evaluators", rows)


def check_places(request: DesignRequest, needs: DesignRequirements, blocks: Blocks) -> Iterable[Check]:
    """Yield what places tell of kind, class and system, over all evaluators; two lines for each of the three."""
    kinds = find_kinds_by_place(request.trials, request.originals, needs.longest_run)
    if kinds is None:
        return
    for what, group_of in (("kind", _kind), ("class", _class), ("system", lambda trial: trial.system)):
        total = Counter(group_of(trial) for block in blocks for trial in block)
        del total[""]
        yield _stands(what, group_of, total, kinds, request, blocks)
        yield _guesses(what, group_of, total, kinds, blocks)


def _stands(
    what: str,
    group_of: Callable[[Candidate], str],
    total: Counter[str],
    kinds: KindsByPlace,
    request: DesignRequest,
    blocks: Blocks,
) -> Check:
    """Return how often each group stands at each place: as its share says, or as the rules of order shift it there."""
    whole, problems, found, allowed = sum(map(len, blocks)), [], [], []
    for place, likely in enumerate(kinds.originals):
        here = Counter(group_of(block[place]) for block in blocks if place < len(block))
        for group, count in total.items():
            share = count / whole
            shifted = share
            if group == "original":
                shifted = likely
            elif what != "class" and request.anonymised:
                shifted = min(1.0, share * (1 - likely) * request.trials / request.anonymised)
            ends = [bound_by_chance(len(blocks), one) for one in (share, shifted)]
            bounds = Bounds(min(end.lowest for end in ends), max(end.highest for end in ends))
            allowed += [bounds.lowest, bounds.highest]
            found.append(here[group])
            if here[group] not in bounds:
                problems.append(f"place {place + 1}, {group}: {here[group]} instead of {bounds}")
    required = f"each {what} as often at every place as chance explains: {span_words(allowed)} of {len(blocks)}"
    return check_problems(f"places by {what}", required, span_words(found), problems)


def _guesses(
    what: str, group_of: Callable[[Candidate], str], total: Counter[str], kinds: KindsByPlace, blocks: Blocks
) -> Check:
    """Check how often a group is guessed from place, and from that and two kinds before, as other evaluators had it."""
    usual = max(total.values(), default=0) / max(1, total.total())
    by_rules = kinds.guessed if what == "kind" else (usual, usual)
    required, found, problems = [], [], []
    for words, before, share in zip(("the place", "that and the two kinds before"), (0, CUES), by_rules, strict=True):
        sessions = [
            [
                ((place, *map(_kind, block[max(0, place - before) : place])), group_of(trial))
                for place, trial in enumerate(block)
                if group_of(trial)
            ]
            for block in blocks
        ]
        right, guesses = guess_held_out(sessions)
        limit = bound_guesses(share, guesses)
        required.append(f"{100 * limit:.1f} % by {words} ({100 * share:.1f} % in any such order)")
        found.append(f"{100 * right / max(1, guesses):.1f} %")
        if right > limit * guesses:
            problems.append(f"{found[-1]} by {words}")
    most = f"guessed right from other evaluators at most {', '.join(required)}"
    return check_problems(f"guesses of {what}", most, " and ".join(found), problems)


def describe_power(name: str, required: str, numbers: Mapping[str, int]) -> str:
    """Say what a check that allows for chance can find at all; empty for one that fails by a single breach.

    Args:
        name, required: of the check.
        numbers: of the certificate that holds it.
    """
    if name.startswith("guesses of "):
        if required.count(" 100.0 % by ") == 2:
            return f"Cannot fail with {numbers['evaluators']} evaluators: any share could be chance."
        return "Detects an order by which more than this can be guessed; an order that gives less away passes."
    if name not in ("places by kind", "places by class", "places by system"):
        return ""
    evaluators, trials, originals = (numbers[key] for key in ("evaluators", "trials", "originals"))
    part = {"kind": originals, "class": trials / 2, "system": (trials - originals) / max(1, numbers["systems"])}
    what = name.removeprefix("places by ")
    bounds = bound_by_chance(evaluators, part[what] / trials)
    if bounds == Bounds(0, evaluators):
        return f"Cannot fail with {evaluators} evaluators: any order could be chance."
    group = {"kind": "originals", "class": "targets", "system": "a system"}[what]
    ends = [f"fewer than {bounds.lowest}"] if bounds.lowest else []
    ends += [f"more than {bounds.highest}"] if bounds.highest < evaluators else []
    return f"Detects {group} at a place only for {' or '.join(ends)} of {evaluators} evaluators."


def _kind(trial: Candidate) -> str:
    return "anonymised" if trial.system else "original"


def _class(trial: Candidate) -> str:
    return "target" if trial.is_target else "non-target"


CERTIFICATE_VERSION = "2"


@dataclass(frozen=True, slots=True)
class Certificate:
    """What the checker found.

    Attributes:
        checks: one for each constraint, in the order of `listening.design.requirements`.
        relaxed: one sentence for each rule that is weaker than the full one.
        sha256: of request and design, hexadecimal.
    """

    design_version: str
    seed: int
    sha256: str
    numbers: Mapping[str, int]
    relaxed: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def passes(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    def as_json(self) -> dict[str, Any]:
        """Return plain values, equal whenever request and design are."""
        told = {"certificate": CERTIFICATE_VERSION, "version": self.design_version, "seed": self.seed}
        told |= {"sha256": self.sha256, "passes": self.passes, "numbers": dict(self.numbers)}
        return told | {"relaxed": list(self.relaxed), "checks": [asdict(check) for check in self.checks]}


def certify(request: DesignRequest, design: Design) -> Certificate:
    """Check a design; blocks of extensions are checked together with the first ones. Never raises."""
    evaluators = request.evaluators + sum(extension.blocks for extension in design.extensions)
    whole = replace(request, evaluators=evaluators)
    known = {candidate.key: candidate for candidate in whole.candidates}
    blocks = [[known[key] for key in block if key in known] for block in design.blocks]
    checks = [_request(whole), *_form(whole, design, known)]
    relaxed: Sequence[str] = ()
    if checks[0].passed:
        needs = compute_requirements(whole)
        relaxed = needs.relaxed
        checks += _coverage(whole, needs, blocks)
        checks += _sessions(whole, needs, blocks)
        checks += check_order(whole, needs, blocks, len(design.extensions))
        checks += check_places(whole, needs, blocks)
        checks += _candidates(whole)
    numbers = {"evaluators": evaluators, "trials": whole.trials, "originals": whole.originals}
    numbers |= {"systems": len(whole.systems), "candidates": len(whole.candidates)}
    numbers |= {"speakers": len({one.speaker for one in whole.candidates}), "extensions": len(design.extensions)}
    return make_certificate(request, design, numbers, relaxed, checks)


def make_certificate(
    request: Any, design: Any, numbers: Mapping[str, int], relaxed: Iterable[str], checks: Iterable[Check]
) -> Certificate:
    """Return the certificate of a design of any form."""
    sha256 = compute_digest(request, design)
    return Certificate(design.version, design.seed, sha256, numbers, tuple(relaxed), tuple(checks))


def compute_digest(request: Any, design: Any) -> str:
    """Return the SHA-256 of request and design as JSON with sorted keys and no spaces."""
    whole = {"request": request, "design": design}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), default=_as_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _as_plain(value: Any) -> Any:
    """Return a dataclass as a dictionary, a set of systems as a list."""
    return {one.name: getattr(value, one.name) for one in fields(value)} if is_dataclass(value) else sorted(value)


def _request(request: DesignRequest) -> Check:
    """Return whether there is anything that the other checks could be made of."""
    of_system = Counter(candidate.system for candidate in request.candidates)
    wanted = {*request.systems, *([""] if request.originals else [])}
    is_twice = len(set(request.systems)) < len(request.systems)
    wrong = {
        f"{request.evaluators} evaluators": request.evaluators < 1,
        f"{request.trials} trials": request.trials < 1,
        f"{request.originals} originals": not 0 <= request.originals <= request.trials,
        "anonymised trials of no system": request.anonymised > 0 and not request.systems,
    }
    problems = [
        *(words for words, is_wrong in wrong.items() if is_wrong),
        *(f"trials of {_name(system)}, which nobody asked for" for system in sorted(set(of_system) - wanted)),
        *(f"no trials of {_name(system)}" for system in sorted(wanted - set(of_system))),
        *([f"a system named twice: {', '.join(request.systems)}"] if is_twice else []),
    ]
    found = f"{len(request.candidates)} trials of {len(request.systems)} systems and originals"
    return check_problems("request", "numbers that can be, and trials of every system asked for", found, problems)


def _form(request: DesignRequest, design: Design, known: Mapping[str, Candidate]) -> Iterable[Check]:
    blocks, found = list(enumerate(design.blocks, 1)), f"{len(design.blocks)} blocks"
    problems = [found] if len(blocks) != request.evaluators or not blocks else []
    problems += [f"evaluator {n} has {len(block)} trials" for n, block in blocks if len(block) != request.trials]
    problems += [f"evaluator {n} meets unknown {key}" for n, block in blocks for key in block if key not in known]
    each = f"{request.evaluators} blocks of {request.trials} trials each, all of them known"
    yield check_problems("blocks", each, found, problems)
    keys = Counter(candidate.key for candidate in request.candidates)
    twice = [f"{key} names {count} trials" for key, count in keys.items() if count > 1]
    yield check_problems("names", "every trial has a name of its own", f"{len(keys)} trials", twice)
    found = f"{len(blocks)} sessions"
    yield check_problems("trial once", "no trial twice in a session", found, list_repeats(design.blocks))


def list_repeats(heard: Iterable[Sequence[str]], words: str = "meets {}") -> list[str]:
    """Return a problem for each name that stands in one session more than once."""
    return [
        f"evaluator {number} {words.format(name)} {count} times"
        for number, names in enumerate(heard, 1)
        for name, count in Counter(names).items()
        if count > 1
    ]


def list_neighbours(heard: Iterable[Sequence[str]], words: str = ": {}") -> list[str]:
    """Return a problem for each name that stands next to itself in a session; empty ones do not count."""
    return [
        f"evaluator {number}{words.format(name)} at {place} and {place + 1}"
        for number, names in enumerate(heard, 1)
        for place, (name, after) in enumerate(pairwise(names), 1)
        if name and name == after
    ]


def _coverage(
    request: DesignRequest, needs: DesignRequirements, blocks: Sequence[Sequence[Candidate]]
) -> Iterable[Check]:
    ratings = Counter(trial.key for block in blocks for trial in block)
    missing = [candidate.key for candidate in request.candidates if not ratings[candidate.key]]
    found = f"{len(request.candidates) - len(missing)} of {len(request.candidates)} trials"
    problems = [f"{key} is never rated" for key in missing]
    yield check_problems("coverage", "every trial is rated at least once", found, problems)
    counts: dict[str, list[int]] = defaultdict(list)
    for candidate in request.candidates:
        counts[candidate.system].append(ratings[candidate.key])
    ends = {_name(system): (min(of), max(of)) for system, of in sorted(counts.items())}
    required = "ratings of the trials of a system, and of the originals, differ by at most 1"
    found = "; ".join(f"{name} {low} to {high}" for name, (low, high) in ends.items())
    problems = [f"{name}: {low} to {high}" for name, (low, high) in ends.items() if high - low > 1]
    yield check_problems("evenness", required, found, problems)
    totals = [(_name(system), sum(counts[system]), needs.system_total) for system in request.systems]
    yield check_counts("system totals", "ratings of each system over all evaluators", totals)


def _sessions(request: DesignRequest, needs: DesignRequirements, blocks: Blocks) -> Iterable[Check]:
    whole = Bounds(request.originals, request.originals)
    originals = [(f"evaluator {n}", sum(not t.system for t in block), whole) for n, block in enumerate(blocks, 1)]
    yield check_counts("originals", "originals in each session", originals)
    of_systems = [
        (f"evaluator {n}, {_name(system)}", sum(t.system == system for t in block), needs.system)
        for n, block in enumerate(blocks, 1)
        for system in request.systems
    ]
    yield check_counts("systems", "trials of each system in each session", of_systems)
    words = {True: "target", False: "non-target", "f": "female", "m": "male"}
    of_both = [
        (f"evaluator {n}, {system}, {words[of_class]}", heard[system, of_class], bounds)
        for n, block in enumerate(blocks, 1)
        for heard in [Counter((trial.system, trial.is_target) for trial in block)]
        for (system, of_class), bounds in needs.system_classes.items()
    ]
    yield check_counts("classes of systems", "targets and non-targets of each system in each session", of_both)
    for name, what, one in (
        ("classes", "targets and non-targets", "is_target"),
        ("sexes", "female and male trials", "sex"),
        ("speakers", "trials of one speaker", "speaker"),
    ):
        rows = []
        for number, block in enumerate(blocks, 1):
            for kind, half in (("originals", needs.originals), ("anonymised", needs.anonymised)):
                members = [trial for trial in block if trial.is_original == (kind == "originals")]
                counts = Counter(getattr(trial, one) for trial in members)
                most = {speaker: Bounds(0, count) for speaker, count in half.speakers.items()}
                allowed: Mapping[Any, Bounds] = most if one == "speaker" else getattr(half, name)
                for group, bounds in allowed.items():
                    rows.append((f"evaluator {number}, {kind}, {words.get(group, group)}", counts[group], bounds))
        yield check_counts(name, f"{what} in each half", rows)
    for name, limit in (("source", needs.source), ("enrolment", needs.enrolment)):
        yield _repeats(name, limit, blocks)


def _repeats(what: str, limit: int, blocks: Sequence[Sequence[Candidate]]) -> Check:
    role = "trial" if what == "source" else "enrolment"
    problems, most = [], 0
    for number, block in enumerate(blocks, 1):
        for name, count in Counter(str(getattr(trial, what)) for trial in block).items():
            most = max(most, count)
            if count > limit:
                problems.append(f"evaluator {number} meets {role} utterance {name} {count} times")
    required = f"no {role} utterance more than {_times(limit)} in a session"
    return check_problems(f"{role} utterances", required, f"at most {_times(most)}", problems)


def _candidates(request: DesignRequest) -> Iterable[Check]:
    """Balance of what can be given, which no allocation can fix."""
    rows: dict[str, Counter[object]] = defaultdict(Counter)
    for candidate in request.candidates:
        rows[candidate.system].update([candidate.sex, candidate.is_target])
    for name, first, second, may in (
        ("class balance", True, False, False),
        ("sex balance", "f", "m", request.sexes_as_in_pool),
    ):
        words = "as many targets as non-targets" if first is True else "as many female as male trials"
        problems = [
            f"{_name(system)}: {counts[first]} and {counts[second]}"
            for system, counts in sorted(rows.items())
            if abs(counts[first] - counts[second]) > 1 and not may
        ]
        found = "; ".join(f"{_name(s)} {counts[first]} and {counts[second]}" for s, counts in sorted(rows.items()))
        yield check_problems(name, f"in each system {words}" + (", or as in the pool" if may else ""), found, problems)
    yield _pairs(request)


def _pairs(request: DesignRequest) -> Check:
    """Check that targets tell whose an enrolment utterance is; other trials must agree."""
    owner: dict[str, Candidate] = {}
    problems = []
    for trial in request.candidates:
        if trial.is_target:
            first = owner.setdefault(trial.enrolment, trial)
            if first.speaker != trial.speaker:
                problems.append(f"{trial.enrolment} would be of {first.speaker} and of {trial.speaker}")
    for trial in request.candidates:
        whose = owner.get(trial.enrolment)
        if not trial.is_target and whose is not None:
            if whose.speaker == trial.speaker:
                problems.append(f"{trial.key} is called non-target, but both samples are of {trial.speaker}")
            elif whose.sex != trial.sex:
                problems.append(f"{trial.key} compares speakers of two sexes")
        if not trial.enrolment or trial.enrolment == trial.source:
            problems.append(f"{trial.key} compares an utterance with {'itself' if trial.enrolment else 'nothing'}")
    found = f"{len(request.candidates)} pairs"
    return check_problems("pairs", "both samples of one sex, and of one speaker in targets alone", found, problems)


def _name(system: str) -> str:
    return system or "originals"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
