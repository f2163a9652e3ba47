"""The balance certificate: every constraint of a design, computed again from the request and the blocks alone.

Nothing of what made the design is used, only the definitions of `listening.design.plan`; a design from anywhere, or one
read back from a database, is checked alike. The certificate of the same request and design is always the same, byte by
byte, and names both by their SHA-256, so that anybody with the seed can make it again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from listening.design import order_checks
from listening.design.plan import Bounds, Candidate, Design, DesignRequest, Half, Requirements, required
from listening.design.reports import Check, check_counts, check_faults

CERTIFICATE_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Certificate:
    """What the checker found.

    Attributes:
        checks: one for each constraint, in the order of `listening.design.plan`.
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
        """Plain values, equal whenever request and design are."""
        return {
            "certificate": CERTIFICATE_VERSION,
            "version": self.design_version,
            "seed": self.seed,
            "sha256": self.sha256,
            "passes": self.passes,
            "numbers": dict(self.numbers),
            "relaxed": list(self.relaxed),
            "checks": [asdict(check) for check in self.checks],
        }


def certify(request: DesignRequest, design: Design) -> Certificate:
    """Check a design; blocks of extensions are checked together with the first ones. Never raises."""
    evaluators = request.evaluators + sum(extension.blocks for extension in design.extensions)
    whole = replace(request, evaluators=evaluators)
    known = {candidate.key: candidate for candidate in whole.candidates}
    blocks = [[known[key] for key in block if key in known] for block in design.blocks]
    checks = [_request(whole), *_form(whole, design, known)]
    relaxed: tuple[str, ...] = ()
    if checks[0].passed:
        needs = required(whole)
        relaxed = needs.relaxed
        checks += _coverage(whole, needs, blocks)
        checks += _sessions(whole, needs, blocks)
        checks += order_checks.check_order(whole, needs, blocks, len(design.extensions))
        checks += _candidates(whole)
    return Certificate(
        design_version=design.version,
        seed=design.seed,
        sha256=digest(request, design),
        numbers={
            "evaluators": evaluators,
            "trials": whole.trials,
            "originals": whole.originals,
            "systems": len(whole.systems),
            "candidates": len(whole.candidates),
            "speakers": len({candidate.speaker for candidate in whole.candidates}),
            "extensions": len(design.extensions),
        },
        relaxed=relaxed,
        checks=tuple(checks),
    )


def digest(request: DesignRequest, design: Design) -> str:
    """SHA-256 of request and design as JSON with sorted keys and no spaces."""
    whole = {"request": asdict(request), "design": asdict(design)}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _request(request: DesignRequest) -> Check:
    """Whether there is anything that the other checks could be made of."""
    of_system = Counter(candidate.system for candidate in request.candidates)
    wanted = {*request.systems, *([""] if request.originals else [])}
    faults = [
        *([f"{request.evaluators} evaluators"] if request.evaluators < 1 else []),
        *([f"{request.trials} trials"] if request.trials < 1 else []),
        *([f"{request.originals} originals"] if not 0 <= request.originals <= request.trials else []),
        *(["anonymised trials of no system"] if request.anonymised > 0 and not request.systems else []),
        *(f"trials of {_name(system)}, which nobody asked for" for system in sorted(set(of_system) - wanted)),
        *(f"no trials of {_name(system)}" for system in sorted(wanted - set(of_system))),
        *(
            [f"a system named twice: {', '.join(request.systems)}"]
            if len(set(request.systems)) < len(request.systems)
            else []
        ),
    ]
    found = f"{len(request.candidates)} trials of {len(request.systems)} systems and originals"
    return check_faults("request", "numbers that can be, and trials of every system asked for", found, faults)


def _form(request: DesignRequest, design: Design, known: Mapping[str, Candidate]) -> Iterable[Check]:
    yield check_faults(
        "blocks",
        f"{request.evaluators} blocks of {request.trials} trials each, all of them known",
        f"{len(design.blocks)} blocks",
        [
            *(
                [f"{len(design.blocks)} blocks"]
                if len(design.blocks) != request.evaluators or not design.blocks
                else []
            ),
            *(f"evaluator {n} has {len(b)} trials" for n, b in enumerate(design.blocks, 1) if len(b) != request.trials),
            *(f"evaluator {n} meets unknown {k}" for n, b in enumerate(design.blocks, 1) for k in b if k not in known),
        ],
    )
    keys = Counter(candidate.key for candidate in request.candidates)
    twice = [f"{key} names {count} trials" for key, count in keys.items() if count > 1]
    yield check_faults("names", "every trial has a name of its own", f"{len(keys)} trials", twice)
    yield check_faults(
        "trial once",
        "no trial twice in a session",
        f"{len(design.blocks)} sessions",
        [
            f"evaluator {number} meets {key} {count} times"
            for number, block in enumerate(design.blocks, 1)
            for key, count in Counter(block).items()
            if count > 1
        ],
    )


def _coverage(request: DesignRequest, needs: Requirements, blocks: Sequence[Sequence[Candidate]]) -> Iterable[Check]:
    ratings = Counter(trial.key for block in blocks for trial in block)
    missing = [candidate.key for candidate in request.candidates if not ratings[candidate.key]]
    yield check_faults(
        "coverage",
        "every trial is rated at least once",
        f"{len(request.candidates) - len(missing)} of {len(request.candidates)} trials",
        [f"{key} is never rated" for key in missing],
    )
    counts: dict[str, list[int]] = defaultdict(list)
    for candidate in request.candidates:
        counts[candidate.system].append(ratings[candidate.key])
    yield check_faults(
        "evenness",
        "ratings of the trials of a system, and of the originals, differ by at most 1",
        "; ".join(f"{_name(system)} {min(of)} to {max(of)}" for system, of in sorted(counts.items())),
        [f"{_name(system)}: {min(of)} to {max(of)}" for system, of in sorted(counts.items()) if max(of) - min(of) > 1],
    )
    yield check_counts(
        "system totals",
        "ratings of each system over all evaluators",
        [(_name(system), sum(counts[system]), needs.system_total) for system in request.systems],
    )


def _sessions(request: DesignRequest, needs: Requirements, blocks: Sequence[Sequence[Candidate]]) -> Iterable[Check]:
    whole = Bounds(request.originals, request.originals)
    yield check_counts(
        "originals",
        "originals in each session",
        [(f"evaluator {n}", sum(not t.system for t in block), whole) for n, block in enumerate(blocks, 1)],
    )
    yield check_counts(
        "systems",
        "trials of each system in each session",
        [
            (f"evaluator {n}, {_name(system)}", sum(t.system == system for t in block), needs.system)
            for n, block in enumerate(blocks, 1)
            for system in request.systems
        ],
    )
    yield _in_halves(
        "classes", "targets and non-targets in each half", blocks, needs, lambda half: half.classes, _class
    )
    yield _in_halves("sexes", "female and male trials in each half", blocks, needs, lambda half: half.sexes, _sex)
    yield _in_halves(
        "speakers",
        "trials of one speaker in each half",
        blocks,
        needs,
        lambda half: {speaker: Bounds(0, most) for speaker, most in half.speakers.items()},
        lambda trial: trial.speaker,
    )
    for name, limit in (("source", needs.source), ("enrolment", needs.enrolment)):
        yield _repeats(name, limit, blocks)


def _class(trial: Candidate) -> object:
    return trial.is_target


def _sex(trial: Candidate) -> object:
    return trial.sex


def _in_halves(
    name: str,
    what: str,
    blocks: Sequence[Sequence[Candidate]],
    needs: Requirements,
    bounds_of: Callable[[Half], Mapping[Any, Bounds]],
    group_of: Callable[[Candidate], object],
) -> Check:
    words = {True: "target", False: "non-target", "f": "female", "m": "male"}
    rows = []
    for number, block in enumerate(blocks, 1):
        for word, half, members in (
            ("originals", needs.originals, [trial for trial in block if not trial.system]),
            ("anonymised", needs.anonymised, [trial for trial in block if trial.system]),
        ):
            counts = Counter(group_of(trial) for trial in members)
            for group, bounds in bounds_of(half).items():
                rows.append((f"evaluator {number}, {word}, {words.get(group, group)}", counts[group], bounds))
    return check_counts(name, what, rows)


def _repeats(what: str, limit: int, blocks: Sequence[Sequence[Candidate]]) -> Check:
    role = "trial" if what == "source" else "enrolment"
    faults, most = [], 0
    for number, block in enumerate(blocks, 1):
        for name, count in Counter(str(getattr(trial, what)) for trial in block).items():
            most = max(most, count if name else 0)
            if name and count > limit:
                faults.append(f"evaluator {number} meets {role} utterance {name} {count} times")
    return check_faults(
        f"{role} utterances",
        f"no {role} utterance more than {_times(limit)} in a session",
        f"at most {_times(most)}",
        faults,
    )


def _candidates(request: DesignRequest) -> Iterable[Check]:
    """Balance of what can be given, which no allocation can mend."""
    rows: dict[str, Counter[object]] = defaultdict(Counter)
    for candidate in request.candidates:
        rows[candidate.system].update([candidate.sex, candidate.is_target])
    for name, first, second, may in (
        ("class balance", True, False, False),
        ("sex balance", "f", "m", request.sexes_as_in_pool),
    ):
        words = "as many targets as non-targets" if first is True else "as many female as male trials"
        faults = [
            f"{_name(system)}: {counts[first]} and {counts[second]}"
            for system, counts in sorted(rows.items())
            if abs(counts[first] - counts[second]) > 1 and not may
        ]
        found = "; ".join(f"{_name(s)} {counts[first]} and {counts[second]}" for s, counts in sorted(rows.items()))
        yield check_faults(name, f"in each system {words}" + (", or as in the pool" if may else ""), found, faults)
    yield _pairs(request)


def _pairs(request: DesignRequest) -> Check:
    """Targets tell whose an enrolment utterance is; other trials must agree."""
    owner: dict[str, Candidate] = {}
    faults = []
    for trial in request.candidates:
        if trial.is_target:
            first = owner.setdefault(trial.enrolment, trial)
            if first.speaker != trial.speaker:
                faults.append(f"{trial.enrolment} would be of {first.speaker} and of {trial.speaker}")
    for trial in request.candidates:
        whose = owner.get(trial.enrolment)
        if trial.is_target is False and whose is not None:
            if whose.speaker == trial.speaker:
                faults.append(f"{trial.key} is called non-target, but both samples are of {trial.speaker}")
            elif whose.sex != trial.sex:
                faults.append(f"{trial.key} compares speakers of two sexes")
        if trial.enrolment and trial.enrolment == trial.source:
            faults.append(f"{trial.key} compares an utterance with itself")
    compared = sum(trial.is_target is not None for trial in request.candidates)
    return check_faults(
        "pairs", "both samples of one sex, and of one speaker in targets alone", f"{compared} pairs", faults
    )


def _name(system: str) -> str:
    return system or "originals"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
