"""Trials that everybody meets beside the scored ones: practice, control trials with a known answer, bridge trials.

They are chosen first and their recordings are kept out of the scored trials, so that nobody hears one of them twice.
Practice and bridge trials are of each kind in turn: original and anonymised, same and other speaker. Control trials
are original pairs whose answer everybody hears: one speaker in two recordings, and a woman beside a man. Never one
recording beside itself: nobody shall find a control trial by comparing what was downloaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from listening.design.plan import DesignError, PoolUtterance
from listening.models import Item, Task
from listening.studies.study_rules import right_ratings

# Original or anonymised, same or other speaker.
KINDS_OF_PRACTICE = ((True, True), (False, False), (False, True), (True, False))
KINDS_OF_BRIDGE = ((True, True), (False, False), (True, False), (False, True))
STREAM = 20  # of the seed: other draws than those of the scored trials


@dataclass(frozen=True)
class Control:
    """An item that is not scored. `a` and `b` are utterances, `b` is empty where no voices are compared."""

    purpose: str
    key: str
    system: str
    a: str
    b: str
    is_target: bool | None
    expected: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class ControlPlan:
    """How many of each, on which scale; `has_pairs`: whether voices are compared."""

    practice: int
    gold: int
    bridge: int
    scale_points: int
    has_pairs: bool


def choose_controls(
    pool: Sequence[PoolUtterance], *, systems: Sequence[str], plan: ControlPlan, seed: int
) -> tuple[Control, ...]:
    """Practice, control and bridge trials from recordings that no other of them uses; the same for the same seed.

    Raises:
        DesignError: the pool has too few recordings.
    """
    supply = _Supply(pool, systems, np.random.default_rng([seed, STREAM]))
    names = [systems[place] for place in supply.rng.permutation(len(systems))]
    made: list[Control] = []
    try:
        made.extend(_gold(supply, number, plan.scale_points) for number in range(plan.gold))
        for purpose, count, kinds in (
            (Item.Purpose.PRACTICE, plan.practice, KINDS_OF_PRACTICE),
            (Item.Purpose.BRIDGE, plan.bridge, KINDS_OF_BRIDGE),
        ):
            for number in range(count):
                is_original, is_target = kinds[number % len(kinds)]
                system = "" if is_original or not names else names[len(made) % len(names)]
                made.append(_pair(supply, purpose, number, system, is_target=is_target, has_pairs=plan.has_pairs))
    except LookupError as error:
        count = plan.practice + plan.gold + plan.bridge
        raise DesignError(
            [
                f"The {count} practice, control and bridge trials need recordings of their own, and the data sets have "
                f"too few: {error.args[0]} Take fewer of these trials ({len(made)} would do), or data sets with more "
                "utterances."
            ]
        ) from None
    return tuple(made)


def used_by(controls: Sequence[Control]) -> frozenset[str]:
    """The utterances that controls are made of."""
    return frozenset(name for control in controls for name in (control.a, control.b) if name)


def _gold(supply: _Supply, number: int, scale_points: int) -> Control:
    key, is_same = f"gold-{number + 1}", number % 2 == 0
    right = {Task.VERIFIABILITY.value: right_ratings(scale_points, is_high=is_same)}
    if is_same:
        heard = supply.take_trial(is_original=True, has_enrolment=True)
        compared = supply.take_enrolment(speaker=heard.speaker)
        return Control(Item.Purpose.GOLD, key, "", heard.key, compared, True, right)
    sexes = ("f", "m") if number % 4 == 1 else ("m", "f")
    heard = supply.take_trial(is_original=True, sex=sexes[0])
    return Control(Item.Purpose.GOLD, key, "", heard.key, supply.take_enrolment(sex=sexes[1]), False, right)


def _pair(supply: _Supply, purpose: str, number: int, system: str, *, is_target: bool, has_pairs: bool) -> Control:
    key = f"{purpose}-{number + 1}"
    if not has_pairs:
        return Control(purpose, key, system, supply.take_trial(is_original=not system).key, "", None)
    heard = supply.take_trial(is_original=not system, has_enrolment=is_target)
    if is_target:
        compared = supply.take_enrolment(speaker=heard.speaker)
    else:
        compared = supply.take_enrolment(sex=heard.sex, not_speaker=heard.speaker)
    return Control(purpose, key, system, heard.key, compared, is_target)


class _Supply:
    """Recordings that are still free, taken from who has most of them, so that nobody runs out.

    Of trial utterances those that some system lacks come first where an original is wanted: nothing else needs them.
    """

    def __init__(self, pool: Sequence[PoolUtterance], systems: Sequence[str], rng: np.random.Generator) -> None:
        self.rng = rng
        self.shared = frozenset(one.key for one in pool if frozenset(systems) <= one.systems)
        self.free: dict[str, list[PoolUtterance]] = {"trial": [], "enrolment": []}
        for place in rng.permutation(len(pool)):
            self.free[pool[place].role].append(pool[place])

    def take_trial(self, *, is_original: bool, sex: str = "", has_enrolment: bool = False) -> PoolUtterance:
        compared = {one.speaker for one in self.free["enrolment"]}
        fits = [
            one
            for one in self.free["trial"]
            if sex in ("", one.sex)
            and (is_original or one.key in self.shared)
            and (not has_enrolment or one.speaker in compared)
        ]
        of_sex = f" of {'a woman' if sex == 'f' else 'a man'}" if sex else ""
        which = "" if is_original else " that every system has anonymised"
        spare = [one for one in fits if one.key not in self.shared] if is_original else []
        compared_with = Counter(one.speaker for one in self.free["enrolment"]) if has_enrolment else Counter()
        return self._take(spare or fits, f"no trial utterance{of_sex}{which} is left.", compared_with)

    def take_enrolment(self, *, sex: str = "", speaker: str = "", not_speaker: str = "") -> str:
        fits = [
            one
            for one in self.free["enrolment"]
            if sex in ("", one.sex) and speaker in ("", one.speaker) and one.speaker != not_speaker
        ]
        whose = f"of {speaker}" if speaker else f"of another {'woman' if sex == 'f' else 'man'}"
        return self._take(fits, f"no enrolment utterance {whose} is left.").key

    def _take(
        self, fits: list[PoolUtterance], sentence: str, compared_with: Mapping[str, int] = MappingProxyType({})
    ) -> PoolUtterance:
        """One of the speaker who has most to be compared with, and then most that fit."""
        if not fits:
            raise LookupError(sentence)
        held = Counter(one.speaker for one in fits)
        chosen = max(fits, key=lambda one: (compared_with.get(one.speaker, 0), held[one.speaker]))
        self.free[chosen.role].remove(chosen)
        return chosen
