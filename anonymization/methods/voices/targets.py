"""Target speakers: the pool of those whose voices a method may give, and who gets which of them.

Targets are drawn from a seed before anything is synthesised. At speaker level a speaker has one target in a role and
split; two speakers have two as long as there are enough, and a speaker's target for enrolment is not the one for
trials. At utterance level, that of training data, each utterance draws by itself, but for the selections that say
otherwise. Nobody gets their own voice, unless there is one for all.

Sources: levels and rules: VoicePrivacy 2022 evaluation plan, sections 3.1 and 7; the selections, and what each does to
an attacker: Franzreb, Das, Polzehl, Möller: Improving the speaker anonymization evaluation's robustness to target
speakers with adversarial learning; the menu of the 2024 baseline B5 (random, constant, one for each speaker).
Conventions: genders are f, m or empty (not known); names are texts of any kind; a recording is a function that gives
samples, int16, shape (n,), mono, and their rate in hertz; targets are in the order of their names, so that a pool is
the same whatever order its source has.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from anonymization.methods.contract import MethodError, PseudoSpeaker, Recording, Target, TargetPool
from anonymization.methods.voices.pseudo_speakers import Assignment, Level, Place, Role, pseudo_speaker_key
from common.arrays import Samples

GenderRule = Literal["any", "same", "opposite"]
Scope = Literal["level", "speaker", "all"]


def pool_of_samples(samples: Mapping[str, Samples], rate: int, genders: Mapping[str, str] | None = None) -> TargetPool:
    """Return a pool of one recording for each target.

    Args:
        samples: by target, int16, shape (n,), `rate` in hertz.
        genders: by target, f or m.
    """
    of = genders or {}
    return TargetPool(
        Target(name, of.get(name, ""), (partial(_given, sound, rate),)) for name, sound in samples.items()
    )


def _given(samples: Samples, rate: int) -> tuple[Samples, int]:
    return samples, rate


def target_voice(name: str) -> PseudoSpeaker:
    """Return the voice of a target; equal targets have equal keys, SHA-256 of ``target|name`` in hexadecimal."""
    text = f"target|{name}".encode("utf-8", "surrogatepass")
    return PseudoSpeaker(hashlib.sha256(text).hexdigest(), {}, name)


@dataclass(frozen=True, slots=True)
class Selection:
    """A rule of selection.

    Attributes:
        title, meaning: for people; meaning is a sentence.
        gender: whose targets a speaker may get.
        scope: who shares a draw: what the level says, a speaker at either level, or all.
    """

    name: str
    title: str
    meaning: str
    gender: GenderRule = "any"
    scope: Scope = "level"


SELECTIONS: Mapping[str, Selection] = {
    name: Selection(name, **about)
    for name, about in tomllib.loads(Path(__file__).with_name("selections.toml").read_text(encoding="utf-8")).items()
}
DEFAULT_SELECTION = "random"


@dataclass(frozen=True, slots=True)
class SourceUtterance:
    """An utterance, or at speaker level a speaker, that is to get a voice: whose it is, and by which rules.

    recordings: for methods that plan their voices, of the speaker or of the utterance alone.
    """

    utterance: str
    speaker: str
    gender: str
    role: Role
    split: str
    level: Level
    recordings: tuple[Recording, ...] = field(default=(), repr=False, compare=False)

    @property
    def place(self) -> Place:
        """Return what the voice is for."""
        return self.role, self.split, self.speaker, self.utterance


def find_selection(name: str) -> Selection:
    """Return the selection of that name. Raises MethodError, which lists the known ones."""
    if name not in SELECTIONS:
        raise MethodError(f'Targets are selected by one of {", ".join(SELECTIONS)}; found "{name}".')
    return SELECTIONS[name]


def plan_targets(
    sources: Sequence[SourceUtterance],
    targets: Iterable[Target],
    selection: str,
    *,
    seed: int,
    population: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Assignment]:
    """Return the target of each source, as its voice, in the order of the sources.

    Nothing but the arguments decides it, and not the order of targets.

    Args:
        targets: the pool.
        selection: a name of `SELECTIONS`.
        seed: what is drawn from: SHA-256 of seed, role, split, speaker and, at utterance level, utterance.
        population: by split the gender of every speaker who enrols or is tried in it; None for those of `sources`.
            Runs that share a split then agree, whatever data sets each has.

    Raises:
        MethodError: no such selection; a speaker without gender where genders count; nobody left to be a target;
            training data at speaker level.
    """
    rule, pool = find_selection(selection), sorted(targets, key=lambda target: target.name)
    if not pool:
        raise MethodError("Targets are drawn from at least one speaker; found none.")
    people = _population(sources) if population is None else population
    drawn = _Draws(rule, pool, seed)
    planned: dict[tuple[Role, str], Mapping[str, str]] = {}
    assigned = []
    for each in sources:
        if each.level == "speaker" and rule.scope != "all":
            if each.role == "training":
                raise MethodError("Training data is anonymised at utterance level; found the level speaker.")
            place = (each.role, each.split)
            if place not in planned:
                planned[place] = drawn.for_split(*place, people.get(each.split, {}))
            if each.speaker not in planned[place]:
                raise MethodError(f"The speaker {each.speaker} is not among those of the split {each.split}.")
            target = planned[place][each.speaker]
        else:
            target = drawn.for_utterance(each)
        assigned.append(
            Assignment(each.role, each.split, each.level, each.speaker, each.utterance, target_voice(target))
        )
    return assigned


def _population(sources: Iterable[SourceUtterance]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for each in sources:
        if each.role != "training":
            found[each.split][each.speaker] = each.gender
    return found


class _Draws:
    """Draws of one selection from one pool with one seed. pool: in the order of names."""

    def __init__(self, rule: Selection, pool: Sequence[Target], seed: int) -> None:
        self._rule, self._pool, self._seed = rule, pool, seed

    def for_utterance(self, source: SourceUtterance) -> str:
        """By its own key, by its speaker's, or by the seed alone, as the scope of the selection says."""
        if self._rule.scope == "all":
            text = f"{self._seed:d}|constant"
            return _pick([target.name for target in self._pool], hashlib.sha256(text.encode()).hexdigest())
        utterance = source.utterance if self._rule.scope == "level" else "*"
        key = pseudo_speaker_key(
            seed=self._seed, role=source.role, split=source.split, speaker=source.speaker, utterance=utterance
        )
        return _pick(self._allowed(source.speaker, source.gender), key)

    def for_split(self, role: Role, split: str, speakers: Mapping[str, str]) -> dict[str, str]:
        """Return one target for each speaker (name → gender): the least used of those allowed, drawn in the order of
        keys.

        For enrolment the speaker's own target for trials is left out, where there is another.
        """
        trial = self.for_split("trial", split, speakers) if role == "enrolment" else {}
        keys = {name: pseudo_speaker_key(seed=self._seed, role=role, split=split, speaker=name) for name in speakers}
        used: Counter[str] = Counter()
        chosen: dict[str, str] = {}
        for name in sorted(speakers, key=keys.__getitem__):
            allowed = self._allowed(name, speakers[name])
            allowed = [target for target in allowed if target != trial.get(name)] or allowed
            least = min(used[target] for target in allowed)
            chosen[name] = _pick([target for target in allowed if used[target] == least], keys[name])
            used[chosen[name]] += 1
        return chosen

    def _allowed(self, speaker: str, gender: str) -> list[str]:
        """Return names of the targets that a speaker may get."""
        others = [target for target in self._pool if target.name != speaker]
        if not others:
            raise MethodError(f"The pool contains only {speaker}, who is to be anonymised. Add other targets.")
        if self._rule.gender == "any":
            return [target.name for target in others]
        if gender not in ("f", "m"):
            raise MethodError(
                f"The selection {self._rule.name} needs the gender of every speaker; found none of {speaker}. "
                "State it (spk2gender), or select at random."
            )
        wanted = gender if self._rule.gender == "same" else {"f": "m", "m": "f"}[gender]
        found = [target.name for target in others if target.gender == wanted]
        if not found:
            kind = "female" if wanted == "f" else "male"
            raise MethodError(
                f"The selection {self._rule.name} needs a {kind} target for the speaker {speaker}; the pool has none. "
                "Add one, state the genders of the pool (spk2gender), or select at random."
            )
        return found


def _pick(names: Sequence[str], key: str) -> str:
    """Return one of so many by a key of 256 bits, whose remainder is uniform to 1 part in 10^70."""
    return names[int(key, 16) % len(names)]
