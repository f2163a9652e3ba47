"""Gender preservation and the inversion attack of an own attack, from vectors whose answers are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluation.formats.results import Gender, NumberIdentity, Speech
from evaluation.objective_results.attack import choose_scorer, run_attack
from evaluation.objective_results.results.folders import SystemResults
from evaluation.objective_results.sources import Attacker, Sources, Work
from evaluation.objective_results.voice_extras import CHANCE, GENDER, MAP, RECOVERY, add_extras
from evaluation.protocols.recipes import load_recipe

RECIPE = load_recipe("2022")
ENROLLED = "libri_dev_enrolls"
TRIALS = [RECIPE.data_sets["libri_dev_trials_f"], RECIPE.data_sets["libri_dev_trials_m"]]
DIMENSION, EACH = 12, 6


class Voices:
    """Speakers with vectors near a direction of their own and of their gender; `change` makes anonymised ones."""

    def __init__(self, women, men, change):
        random = np.random.default_rng(1)
        pole = 3 * np.eye(DIMENSION)[0]
        self.genders = {f"s{n}": "f" if n < women else "m" for n in range(women + men)}
        self.original, self.speaker = {}, {}
        for speaker, gender in self.genders.items():
            voice = (pole if gender == "f" else -pole) + random.normal(size=DIMENSION)
            for sentence in range(EACH):
                name = f"{speaker}-{sentence}"
                self.original[name] = (voice + 0.02 * random.normal(size=DIMENSION)).astype(np.float32)
                self.speaker[name] = speaker
        self.anonymised = {name: change(vector, random) for name, vector in self.original.items()}

    def of(self, data_set):
        """The first half of the sentences enrols, the others are tried by gender."""
        gender = data_set[-1] if "trials" in data_set else ""
        return [
            name
            for name, speaker in self.speaker.items()
            if (int(name[-1]) < EACH // 2) == (not gender) and gender in ("", self.genders[speaker])
        ]

    def vectors(self, data_set, speech):
        side = self.original if speech is Speech.ORIGINAL else self.anonymised
        return {name: side[name] for name in self.of(data_set)}

    def speakers(self, data_set):
        return {name: self.speaker[name] for name in self.of(data_set)}


def extras_of(voices, **fields):
    attacker = Attacker(
        "some",
        Speech.ORIGINAL,
        voices.vectors,
        voices.speakers,
        choose_scorer("some"),
        TRIALS,
        **({"genders": lambda _: voices.genders} | fields),
    )
    results = SystemResults("some", "2022", (), (), (), (), ())
    sources = Sources(RECIPE, RECIPE.track)
    work = Work(Path(), results, sources, lambda _: None, lambda *_: None)
    add_extras(work, attacker)
    return work


def value(work, metric, speech=Speech.ANONYMISED, gender=Gender.ALL):
    estimator = "nearest-centroid" if metric == GENDER else MAP
    return work.numbers[NumberIdentity(ENROLLED, gender, metric, estimator, speech=speech)].value


def rotated(vector, _):
    turned = np.linalg.qr(np.random.default_rng(7).normal(size=(DIMENSION, DIMENSION)))[0]
    return (turned @ vector).astype(np.float32)


def swapped(vector, _):
    return vector * np.where(np.arange(DIMENSION) == 0, -1, 1).astype(np.float32)


def forgotten(_, random):
    return random.normal(size=DIMENSION).astype(np.float32)


def test_rotation_of_all_voices_is_undone_for_speakers_that_were_never_met():
    work = extras_of(Voices(10, 10, rotated))
    assert value(work, RECOVERY) == 100
    assert value(work, CHANCE) == pytest.approx(10)  # ten of twenty speakers are looked for, equally often
    found = work.numbers[NumberIdentity(ENROLLED, Gender.ALL, RECOVERY, MAP)]
    assert found.n == 20 * EACH  # enrolment and trials of both genders together


def test_voices_that_are_forgotten_are_recovered_by_chance():
    work = extras_of(Voices(10, 10, forgotten))
    assert value(work, RECOVERY) < 30


def test_gender_is_judged_beside_what_originals_allow():
    kept, lost = extras_of(Voices(4, 4, lambda vector, _: vector)), extras_of(Voices(4, 4, swapped))
    assert (value(kept, GENDER), value(lost, GENDER)) == (100, 0)
    assert value(kept, GENDER, Speech.ORIGINAL) == value(lost, GENDER, Speech.ORIGINAL) == 100
    half = extras_of(Voices(4, 4, lambda vector, _: vector if vector[0] > 0 else swapped(vector, None)))
    genders = [value(half, GENDER, gender=gender) for gender in (Gender.ALL, Gender.FEMALE, Gender.MALE)]
    assert genders == [50, 100, 0]


@pytest.mark.parametrize(
    ("voices", "fields", "metric", "reason"),
    [
        (Voices(4, 0, rotated), {}, GENDER, "two genders, found 4 of f"),
        (Voices(1, 1, rotated), {}, RECOVERY, "needs three speakers"),
    ],
)
def test_too_few_are_left_out_with_the_reason(voices, fields, metric, reason):
    work = extras_of(voices, **fields)
    [told] = [said for identity, said in work.reasons.items() if identity.metric == metric]
    assert reason in told
    assert metric not in {identity.metric for identity in work.numbers}


def test_attack_adds_them_and_says_of_each_why_it_is_missing(tmp_path):
    voices = Voices(1, 1, rotated)
    sources = Sources(RECIPE, RECIPE.track)
    attacker = Attacker("some", Speech.ORIGINAL, voices.vectors, voices.speakers, choose_scorer("some"), TRIALS)
    nothing = {"kept": lambda _: None, "drawn": lambda *_: None, "progress": lambda *_: None}
    found = run_attack(tmp_path, attacker, sources, **nothing)
    told = {one.what: one.reason for one in found.missing if ENROLLED in one.what}
    assert sorted(told) == [f"Gender preservation of {ENROLLED}", f"Inversion attack of {ENROLLED}"]
    trained = Attacker("some", Speech.ANONYMISED, voices.vectors, voices.speakers, choose_scorer("some"), TRIALS)
    found = run_attack(tmp_path, trained, sources, **nothing)  # it has no original vectors
    assert [one for one in found.missing if ENROLLED in one.what] == []
