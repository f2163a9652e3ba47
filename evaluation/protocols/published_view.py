"""What the published results of an edition say of one data set, or of an average: one line for each system.

An average is that of the recipe where every data set of it was published, else the printed average of the test sets. A
measure that the recipe does not average has the weights of the one that stands for it in `WEIGHED_AS`. Of attackers,
the numbers of one attack model are read, and beside them those of unprotected speech.
Conventions: as `published`; a data set is chosen by the name of its verification trials, and word error rates are those
of the recognition set of the same corpus and split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from evaluation.formats.results import AttackModel
from evaluation.metrics.averages import weighted_average
from evaluation.protocols.published import AVERAGE_TEST, ORIGINAL, PublishedNumber, load_published
from evaluation.protocols.recipes import Recipe, Track, load_recipe, shipped_editions

AVERAGE = "average"
SPLITS = ("test", "dev")
EER, WER = "eer", "wer"
# What was measured of an attacker.
ATTACKED = (EER, "min_cllr", "cllr", "linkability", "zebra_population", "zebra_individual")
RECALL = "accuracy_"  # of one emotion
# Whose weights a measure has that no recipe averages.
WEIGHED_AS = MappingProxyType(
    dict.fromkeys(ATTACKED, EER) | {RECALL: "uar", "de_identification": "gain_of_voice_distinctiveness"}
)


@dataclass(frozen=True)
class PublishedTask:
    """A task of an edition with published results. `key`: in addresses, such as ``2022`` or ``2026-track2``."""

    key: str
    title: str
    recipe: Recipe
    track: Track

    @cached_property
    def attacks(self) -> tuple[str, ...]:
        """Return the attack models of its numbers, the strongest last."""
        found = {one.attack_model for one in load_published(self.recipe.edition)}
        return tuple(str(one) for one in AttackModel if one in found)

    @property
    def strongest(self) -> str:
        return self.attacks[-1] if self.attacks else ""


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """A number of a line.

    Attributes:
        text: as it was printed, or an average of printed numbers.
        is_average: whether it was averaged here.
        note: that its sources disagree.
        sources: where it stands, or what it is made of.
        attack_model: of an attacker's numbers; empty where their sources say none.
    """

    value: float
    text: str
    is_average: bool
    note: str
    sources: tuple[str, ...]
    attack_model: str = ""


@dataclass(frozen=True, slots=True)
class PublishedLine:
    """A system with what was published of it, by metric and estimator."""

    system: str
    values: Mapping[tuple[str, str], PublishedValue]


def list_tasks() -> list[PublishedTask]:
    """Return every task with published results, the oldest first."""
    found = []
    for edition in shipped_editions():
        recipe, numbers = load_recipe(edition), load_published(edition)
        for track in recipe.tracks.values():
            sets = {name for average in track.averages for split in average.weights.values() for name in split}
            if numbers and (len(recipe.tracks) == 1 or any(one.data_set in sets for one in numbers)):
                several = len(recipe.tracks) > 1
                title = f"{edition}, {track.name.replace('track', 'track ')}" if several else edition
                found.append(PublishedTask(f"{edition}-{track.name}" if several else edition, title, recipe, track))
    return found


def list_trial_sets(task: PublishedTask, split: str) -> list[str]:
    """Return the verification sets of a split with a published EER, as the file has them."""
    allowed = {name for one in task.track.averages for names in one.weights.values() for name in names}
    return list(
        dict.fromkeys(
            one.data_set
            for one in load_published(task.recipe.edition)
            if one.metric == EER and _has_split(one.data_set, split) and (not allowed or one.data_set in allowed)
        )
    )


def list_measures(task: PublishedTask) -> list[tuple[str, str]]:
    """Return metric and estimator of what was published: the EER, WERs, the others, then those that no recipe
    averages."""
    found = dict.fromkeys((one.metric, one.estimator) for one in load_published(task.recipe.edition))
    return sorted(found, key=lambda one: (one[0] != EER, one[0] != WER, is_further(one[0])))


def is_further(metric: str) -> bool:
    """Return whether a measure stands beside those that the challenges average."""
    return metric != EER and _stand_in(metric) in WEIGHED_AS


def read_lines(task: PublishedTask, split: str, data_set: str, attack: str = "") -> list[PublishedLine]:
    """Return what was published of each system on a set, or on average; systems without any number of it are left out.

    Args:
        data_set: a set of `list_trial_sets`, or `AVERAGE`.
        attack: the attack model of an attacker's numbers, the strongest if empty. With ``unprotected``, original speech
            is the only line.
    """
    by_system: dict[str, list[PublishedNumber]] = {}
    for one in _of_attack(task, attack):
        by_system.setdefault(one.system, []).append(one)
    lines = []
    for system, numbers in by_system.items():
        found = {
            key: value
            for key in list_measures(task)
            if (value := _read_value(task, numbers, key, split, data_set)) is not None
        }
        if found:
            lines.append(PublishedLine(system, found))
    return lines


def select_numbers(
    task: PublishedTask, systems: Sequence[str], split: str, data_set: str, attack: str = ""
) -> list[PublishedNumber]:
    """Return the printed numbers behind the lines of some systems."""
    keys = list_measures(task)
    wanted = {key: set(_sets(task, key, split, data_set)) for key in keys}
    return [
        one
        for one in _of_attack(task, attack)
        if one.system in systems and one.data_set in wanted[one.metric, one.estimator]
    ]


def _of_attack(task: PublishedTask, attack: str) -> Iterator[PublishedNumber]:
    """Yield numbers of one attack, of no attack, and of original speech; without an attack only these."""
    shown = attack or task.strongest
    for one in load_published(task.recipe.edition):
        if one.system == ORIGINAL or (one.attack_model in ("", shown) and shown != AttackModel.UNPROTECTED):
            yield one


def _read_value(
    task: PublishedTask, numbers: Sequence[PublishedNumber], key: tuple[str, str], split: str, data_set: str
) -> PublishedValue | None:
    mine: dict[str, PublishedNumber] = {}
    for one in numbers:
        if (one.metric, one.estimator) == key:
            mine.setdefault(one.data_set, one)  # of several for one set the first counts
    if data_set != AVERAGE:
        return next((_printed(mine[name]) for name in _sets(task, key, split, data_set) if name in mine), None)
    weights = _weights(task, key, split)
    if weights and all(name in mine for name in weights):
        value = weighted_average([(name, float(mine[name].value)) for name in weights], weights).value
        differ = "; ".join(_note_on(name, mine[name].note) for name in weights if mine[name].note)
        notes = f"{differ}." if differ else ""
        sources = tuple(dict.fromkeys(f"{mine[name].source}, {mine[name].table}" for name in weights))
        attacks = {mine[name].attack_model for name in weights}
        return PublishedValue(value, "", True, notes, sources, attacks.pop() if len(attacks) == 1 else "")
    return _printed(mine[AVERAGE_TEST]) if split == "test" and AVERAGE_TEST in mine else None


def _note_on(data_set: str, note: str) -> str:
    """Such as ``On libri_test_asr the sources differ: 4.15 and 4.17``."""
    return f"On {data_set} {note[:1].lower()}{note[1:].rstrip('.')}"


def _printed(one: PublishedNumber) -> PublishedValue:
    return PublishedValue(
        float(one.value), one.value, False, one.note, (f"{one.source}, {one.table}",), one.attack_model
    )


def _weights(task: PublishedTask, key: tuple[str, str], split: str) -> Mapping[str, float]:
    averages = task.track.averages
    own = [one for one in averages if (one.metric, one.estimator) == key]
    found = own or [one for one in averages if one.metric == WEIGHED_AS.get(_stand_in(key[0]))]
    return found[0].weights.get(split, {}) if found else {}


def _stand_in(metric: str) -> str:
    """Return the key of a measure in `WEIGHED_AS`: recalls of all emotions have one."""
    return RECALL if metric.startswith(RECALL) else metric


def _sets(task: PublishedTask, key: tuple[str, str], split: str, data_set: str) -> Iterator[str]:
    """Yield the data sets of a measure that belong to the chosen one."""
    if data_set == AVERAGE:
        yield from _weights(task, key, split)
        if split == "test":
            yield AVERAGE_TEST
        return
    yield f"{data_set.partition('_trials')[0]}_asr" if key[0] == WER else data_set


def _has_split(data_set: str, split: str) -> bool:
    return f"_{split}_" in data_set
