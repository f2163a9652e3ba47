"""Two light extras of an own attack, from vectors that it has anyway: gender preservation and the inversion attack.

Both pool an enrolment set with the trial sets attacked with it, because a trial set often holds one gender and few
speakers; their numbers bear the name of the enrolment set. `WORTH` says what each is worth. Conventions: rates in per
cent; the draws of the inversion attack depend on the number of the split alone, so that systems can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from evaluation.formats.results import Gender, NumberIdentity, Speech
from evaluation.metrics import inversion
from evaluation.metrics.inversion import invert_embeddings
from evaluation.metrics.speaker_traits import gender_preservation
from evaluation.objective_results.sources import Attacker, Vectors, Work
from evaluation.objective_results.values import Basis

GENDER = "gender_preservation"
RECOVERY, CHANCE = "inversion_recovery_rate", "inversion_chance"
MAP: inversion.Map = "orthogonal"
# Halves of the speakers drawn; the rates are means over them, for one half of few speakers may be odd.
SPLITS = 5
WORTH = {
    GENDER: (
        "A prediction by an encoder of speakers, not a judgement by listeners: a hint for comparing systems. The "
        "value of the originals is the highest that can be expected."
    ),
    RECOVERY: inversion.WORTH,
}


@dataclass(frozen=True)
class _Pool:
    """Utterances that have a vector of both forms, shape (n, d) each, and the speaker of each."""

    name: str
    original: NDArray[np.float32]
    anonymised: NDArray[np.float32]
    speakers: list[str]
    genders: Mapping[str, str]


def add_extras(work: Work, attacker: Attacker) -> None:
    """Add the extras of each enrolment set; where one cannot be had, the reason."""
    pools = dict.fromkeys(one.enrolment for one in attacker.trials)
    for done, enrolment in enumerate(pools):
        work.progress("Gender and inversion", done, len(pools))
        pool = _pool(enrolment, attacker)
        for add in (_add_gender, _add_inversion):
            add(work, pool)


def _pool(enrolment: str, attacker: Attacker) -> _Pool:
    names = [enrolment, *(one.name for one in attacker.trials if one.enrolment == enrolment)]
    original: dict[str, NDArray[np.float32]] = {}
    anonymised: dict[str, NDArray[np.float32]] = {}
    speakers: dict[str, str] = {}
    genders: dict[str, str] = {}
    for name in names:
        original.update(attacker.vectors(name, Speech.ORIGINAL))
        anonymised.update(attacker.vectors(name, Speech.ANONYMISED))
        speakers.update(attacker.speakers(name))
        genders.update(attacker.genders(name))
    both = sorted(original.keys() & anonymised.keys() & speakers.keys())
    return _Pool(
        enrolment, _stacked(original, both), _stacked(anonymised, both), [speakers[one] for one in both], genders
    )


def _stacked(vectors: Vectors, names: list[str]) -> NDArray[np.float32]:
    return np.stack([vectors[one] for one in names]) if names else np.zeros((0, 1), np.float32)


def _add_gender(work: Work, pool: _Pool) -> None:
    """The share of anonymised utterances nearer to their speaker's gender, and that of the originals."""
    identity = NumberIdentity(pool.name, Gender.ALL, GENDER, "nearest-centroid")
    if not any(pool.genders.get(speaker) for speaker in pool.speakers):
        work.reasons[identity] = "the gender of its speakers is not known"
        return
    try:
        found = gender_preservation(
            pool.original,
            pool.speakers,
            pool.anonymised,
            pool.speakers,
            {speaker: gender for speaker, gender in pool.genders.items() if gender},
        )
    except InputError as error:
        work.reasons[identity] = str(error).removesuffix(".")
        return
    work.add(identity, 100 * found.preserved, Basis.AUDIO, found.utterances)
    for gender, share in found.preserved_by_gender.items():
        if gender in (Gender.FEMALE, Gender.MALE):
            own = sum(pool.genders[speaker] == gender for speaker in pool.speakers)
            work.add(replace(identity, gender=Gender(gender)), 100 * share, Basis.AUDIO, own)
    ceiling = replace(identity, speech=Speech.ORIGINAL)
    work.add(ceiling, 100 * found.originals, Basis.AUDIO, found.utterances)


def _add_inversion(work: Work, pool: _Pool) -> None:
    """How many utterances lead back to their speaker by a map learnt from other speakers, and how many by chance."""
    identity = NumberIdentity(pool.name, Gender.ALL, RECOVERY, MAP)
    try:
        sides = pool.original, pool.anonymised, pool.speakers
        draws = [np.random.default_rng(split) for split in range(SPLITS)]
        found = [invert_embeddings(*sides, generator=each, kind=MAP) for each in draws]
    except InputError as error:
        work.reasons[identity] = str(error).removesuffix(".")
        return
    recovered = 100 * float(np.mean([one.speaker_recovery_rate for one in found]))
    chance = 100 * float(np.mean([one.speaker_chance_rate for one in found]))
    work.add(identity, recovered, Basis.AUDIO, len(pool.speakers))
    work.add(replace(identity, metric=CHANCE), chance, Basis.AUDIO, len(pool.speakers))
