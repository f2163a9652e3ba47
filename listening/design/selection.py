"""Which trials a study gives its evaluators, chosen from the utterances that exist.

Every system gets the same pairs of a trial and an enrolment utterance (pairs of its own where a study is so
small that evaluators would meet a pair in two systems), half of them target, half non-target; both samples are
of one sex; speakers and utterances are used as evenly as they are many. Originals come from all trial
utterances, those first that the anonymised trials use least, so that no session has to meet one twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from math import ceil
from typing import Any

import numpy as np

from common.errors import ProblemsError
from listening.design.requirements import Candidate, DesignRequest, PoolUtterance, validate_request

TRIALS_2022 = 104  # of each system, in sessions of 52 trials with 26 originals for 52 evaluators
_LAYOUT_2022 = (52, 52, 26)
_STREAM = 10  # of the seed: other draws than those of the allocation
_SHARED_FROM = 1.5  # pairs for each anonymised trial of a session leave room to meet none in two systems
_EVEN_ENOUGH = 0.85  # of the ratings must be left where every speaker, or every sex and class, gets equally many trials


def choose_candidates(
    pool: Sequence[PoolUtterance],
    *,
    trials_per_system: int | None = None,
    systems: Sequence[str],
    **asked: Any,
) -> tuple[Candidate, ...]:
    """Choose the candidates of a request; originals are as many as there are places for, or pairs.

    Args:
        pool: utterances of both roles.
        trials_per_system: None: 104 for the numbers of 2022, else as many as can all be rated, in fours where possible.
        asked: everything else of the `DesignRequest`.

    Raises:
        ProblemsError: the pool is too small or too uneven; what would do.
    """
    numbers = DesignRequest(systems=tuple(systems), candidates=(), **asked)
    choice = _Choice(pool, numbers)
    candidates = _anonymised(choice, trials_per_system) if numbers.systems and numbers.anonymised > 0 else []
    if numbers.originals > 0:
        room = numbers.evaluators * numbers.originals
        pairs = choice.pairs(choice.trials, room, numbers.originals, "originals")
        candidates += [choice.candidate("", *pair) for pair in pairs]
    if choice.problems:
        raise ProblemsError(choice.problems)
    validate_request(replace(numbers, candidates=tuple(candidates)))
    return tuple(candidates)


def _anonymised(choice: _Choice, trials_per_system: int | None) -> list[Candidate]:
    numbers = choice.numbers
    systems = numbers.systems
    shared = choice.shared_by_systems()
    count = trials_per_system or _trials_of_system(numbers, len({one.speaker for one in shared}))
    can_share = numbers.evaluators >= len(systems) and count >= _SHARED_FROM * numbers.anonymised
    found = []
    for turn, alike in enumerate([systems] if can_share else [(system,) for system in systems]):
        share = numbers.anonymised * len(alike) / len(systems)
        pairs = choice.pairs(shared, count, share, "anonymised trials", turn)
        found += [choice.candidate(system, *pair) for system in alike for pair in pairs]
    return found


def _trials_of_system(numbers: DesignRequest, speakers: int) -> int:
    if (numbers.evaluators, numbers.trials, numbers.originals) == _LAYOUT_2022:
        return TRIALS_2022
    room = numbers.evaluators * numbers.anonymised // len(numbers.systems)
    for step in (2 * speakers, 4, 2):
        even = room - room % max(1, step)
        if even >= max(1, _EVEN_ENOUGH * room):
            return even
    return max(1, room - room % 2 if room > 1 else room)


Pair = tuple[PoolUtterance, PoolUtterance, bool]
Groups = dict[tuple[str, bool], dict[str, list[PoolUtterance]]]  # by sex and class, then by speaker


class _Choice:
    """Pairs of a pool, used evenly; `load` says how often a session meets an utterance by what was chosen so far."""

    def __init__(self, pool: Sequence[PoolUtterance], numbers: DesignRequest) -> None:
        self.numbers = numbers
        self.random = np.random.default_rng([numbers.seed, _STREAM])
        shuffled = [pool[place] for place in self.random.permutation(len(pool))]
        self.trials = [one for one in shuffled if one.role == "trial"]
        self.enrolments = [one for one in shuffled if one.role == "enrolment"]
        self.load: dict[str, float] = defaultdict(float)
        self.spoken: dict[str, int] = defaultdict(int)
        self.problems: list[str] = []

    def candidate(self, system: str, trial: PoolUtterance, enrolment: PoolUtterance, target: bool) -> Candidate:
        key = f"{system or 'original'}:{trial.key}:{enrolment.key}"
        return Candidate(key, system, trial.speaker, trial.sex, target, trial.key, enrolment.key)

    def shared_by_systems(self) -> list[PoolUtterance]:
        """Return trial utterances that every system has; a problem for each system that has none."""
        wanted = frozenset(self.numbers.systems)
        shared = [one for one in self.trials if wanted <= one.systems]
        without = [system for system in self.numbers.systems if not any(system in one.systems for one in self.trials)]
        if without:
            self.problems.append(
                f"Expected anonymised trial utterances of every system, found none of {', '.join(without)}."
            )
        elif not shared:
            self.problems.append("Expected trial utterances that all systems have, found none that is in every one.")
        return shared

    def pairs(
        self, trials: Sequence[PoolUtterance], count: int, per_session: float, what: str, turn: int = 0
    ) -> list[Pair]:
        """Return at most `count` pairs, half of them target, of each sex its part, spread over speakers."""
        groups = self._groups(trials, what)
        if not groups:
            return []
        parts = self._parts(groups, min(count, self._most(groups)), turn)
        made = [
            pair
            for (sex, target), number in parts.items()
            for pair in self._spread(groups[sex, target], number, target, per_session / max(1, sum(parts.values())))
        ]
        return [made[place] for place in self.random.permutation(len(made))]

    def _groups(self, trials: Sequence[PoolUtterance], what: str) -> Groups:
        """Group trial utterances by speaker of everybody who can be target and non-target, by sex and class."""
        own: dict[str, int] = defaultdict(int)
        of_sex: dict[str, set[str]] = defaultdict(set)
        for one in self.enrolments:
            own[one.speaker] += 1
            of_sex[one.sex].add(one.speaker)
        found: Groups = {}
        for one in trials:
            if not (own[one.speaker] and of_sex[one.sex] - {one.speaker}):
                continue
            for target in (True, False):
                found.setdefault((one.sex, target), {}).setdefault(one.speaker, []).append(one)
        missing = [name for sex, name in (("f", "female"), ("m", "male")) if not any(key[0] == sex for key in found)]
        if trials and (len(missing) == 2 or (missing and not self.numbers.sexes_as_in_pool)):
            self.problems.append(
                f"Expected {' and '.join(missing)} speakers of {what} with an enrolment utterance of their own and one "
                "of another speaker of their sex, found none."
                + ("" if len(missing) == 2 else " Such speakers, or sexes as in the pool, would do.")
            )
            return {}
        return found

    def _most(self, groups: Groups) -> int:
        """Return the largest number of pairs of which every sex and class can give its part."""
        room = {
            key: sum(len(trials) * len(self._compared(trials[0], key[1])) for trials in speakers.values())
            for key, speakers in groups.items()
        }

        def is_too_many(pairs: int) -> bool:
            return any(count > room[key] for key, count in self._parts(groups, pairs).items())

        most = bisect_left(range(1, sum(room.values()) + 1), True, key=is_too_many)
        return most - most % 4 if most >= 4 else most

    def _compared(self, trial: PoolUtterance, target: bool) -> list[PoolUtterance]:
        return [one for one in self.enrolments if one.sex == trial.sex and (one.speaker == trial.speaker) == target]

    def _parts(self, groups: Groups, count: int, turn: int = 0) -> dict[tuple[str, bool], int]:
        """Return how many pairs there are of each sex and class.

        Alike to 1 unless sexes are as in the pool; odd ones by turns.
        """
        speakers = {sex: len({name for key in groups if key[0] == sex for name in groups[key]}) for sex in ("f", "m")}
        share = speakers["f"] / sum(speakers.values()) if self.numbers.sexes_as_in_pool else 0.5
        is_male_turn = count == 1 and turn % 4 > 1  # where systems have one trial each, sexes take turns, too
        female = 0 if is_male_turn else ceil(count * share)
        parts: dict[tuple[str, bool], int] = {}
        for sex, number in (("f", female), ("m", count - female)):
            more, less = number - number // 2, number // 2
            is_more_target = (sex == "f") == (turn % 2 == 0)
            parts[sex, True], parts[sex, False] = (more, less) if is_more_target else (less, more)
        return {key: number for key, number in parts.items() if key in groups}

    def _spread(self, speakers: dict[str, list[PoolUtterance]], number: int, target: bool, share: float) -> list[Pair]:
        """Spread pairs of one sex and class: the speaker with fewest of them next, then what sessions meet least."""
        made: list[Pair] = []
        waiting = [
            (0, self.spoken[name], chance, name)
            for name, chance in zip(speakers, self.random.random(len(speakers)), strict=True)
        ]
        heapify(waiting)
        compared = {name: self._compared(trials[0], target) for name, trials in speakers.items()}
        used: set[tuple[str, str]] = set()
        late: list[tuple[int, int, float, str]] = []  # speakers of whom a session would meet an utterance twice
        while len(made) < number and (waiting or late):
            is_late = not waiting
            count, spoken, chance, name = late.pop(0) if is_late else heappop(waiting)
            pair = self._least_heard(speakers[name], compared[name], used)
            if pair is None:
                continue
            trial, enrolment = pair
            if not is_late and self._is_full(trial, enrolment, share):
                late.append((count, spoken, chance, name))
                continue
            for one in pair:
                self.load[one.key] += share
            used.add((trial.key, enrolment.key))
            self.spoken[name] += 1
            made.append((trial, enrolment, target))
            back = (count + 1, self.spoken[name], chance, name)
            if is_late:
                late.append(back)
            else:
                heappush(waiting, back)
        return made

    def _is_full(self, trial: PoolUtterance, enrolment: PoolUtterance, share: float) -> bool:
        """Return whether a session would meet an utterance more than once if this pair were added."""
        full = 1 + 1e-9 - share
        once = [] if self.numbers.sources_may_repeat else [trial]
        once += [] if self.numbers.enrolments_may_repeat else [enrolment]
        return any(self.load[one.key] > full for one in once)

    def _least_heard(
        self, trials: Sequence[PoolUtterance], compared: Sequence[PoolUtterance], used: set[tuple[str, str]]
    ) -> tuple[PoolUtterance, PoolUtterance] | None:
        for trial in sorted(trials, key=lambda one: self.load[one.key]):
            free = [one for one in compared if (trial.key, one.key) not in used]
            if free:
                return trial, min(free, key=lambda one: self.load[one.key])
        return None
