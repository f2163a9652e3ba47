"""Does the portal tell a weak attacker from a strong one? Attackers trained badly on purpose, with real speech.

Run as ``python -m benchmarks.experiments.reliability --work FOLDER [--jobs 2] [--seeds 5]``. Speech is that of
``../shared/speech``, targets and attacked speakers as in `benchmarks.experiments.semi_informed`; attackers learn from
the speakers of the pool of ``../shared/speech-train``. The folder keeps conversions and trainings, so that the same
command goes on where an earlier one ended. The anonymiser is kNN-WORLD with same-gender targets, of which
the attacked speech has one half and the attacker with other voices the other half. Prints the table of
``docs/semi_informed.md``; the exit status is 1 where a verdict is not the one that was expected.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from anonymization.methods.contract import TargetPool
from benchmarks.experiments import semi_informed
from benchmarks.experiments._semi_informed_data import (
    ATTACKED,
    SPEECH,
    Conversion,
    Original,
    convert_all,
    make_pool,
    of,
    plan,
    read_originals,
)
from evaluation.attackers.training.corpus import TrainingUtterance, read_audio
from evaluation.attackers.training.recipe import PRESETS, with_variant
from evaluation.attackers.training.train import train
from evaluation.attackers.training.trained_attacker import load_trained
from evaluation.metrics.detection import kaldi_eer
from evaluation.objective_results.attack_strength import AttackStrength, judge_attack
from speech.encoders.registry import explain_missing, find_engine, load

SELECTION = "same-gender"
EPOCHS = 20
CONVERSIONS = 3
TRAINING_SPEECH = Path("../shared/speech-train")
FULL, ONE_EPOCH, OTHER_VOICES, SHUFFLED = "full", "one epoch", "other voices", "shuffled labels"
KINDS = (FULL, ONE_EPOCH, OTHER_VOICES, SHUFFLED)


@dataclass(frozen=True)
class Outcome:
    """EER of an attack and on its own training speakers, shares of inverted targets and unheard voices; per cent."""

    eer: float
    own_eer: float | None
    inverted: float
    unheard: float


def main() -> int:
    """Convert, train, attack, judge and print."""
    options = _options()
    if not all((one / "utterances.csv").is_file() for one in (SPEECH, TRAINING_SPEECH)):
        print(f"{SPEECH}, {TRAINING_SPEECH}: the real speech is not here; nothing was measured.")
        return 0
    began = time.monotonic()
    plans = _plans(options.work)
    speech_s, took_s = convert_all([each for part in plans.values() for each in part], options.jobs)
    if speech_s:
        print(f"{speech_s / 60:.0f} min of speech converted in {took_s:.0f} s", flush=True)
    frozen = _frozen_eer(plans)
    found: dict[str, list[Outcome]] = defaultdict(list)
    tasks = [(kind, seed, options.work) for seed in range(1, options.seeds + 1) for kind in KINDS]
    with ProcessPoolExecutor(options.jobs, initializer=semi_informed.one_thread) as workers:
        for (kind, seed, _), outcome in zip(tasks, workers.map(_train_and_attack, tasks), strict=True):
            found[kind].append(outcome)
            print(f"{kind}, seed {seed}: {outcome}, {(time.monotonic() - began) / 60:.1f} min", flush=True)
    return 1 if _print_verdicts(found, frozen) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of conversions and trainings")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5)
    return parser.parse_args()


def _plans(work: Path) -> dict[str, list[Conversion]]:
    """Conversions for enrolment and trials, and for training with the voices of the attacked speech and with others."""
    originals = read_originals()
    sources, attacked = _read_sources(), of(originals, ATTACKED)
    own, other = _halves(make_pool(originals))
    draws, folder = range(1, CONVERSIONS + 1), work / "speech"
    return {
        "enrolment": plan(attacked, own, SELECTION, "enrolment", [0], folder),
        "trial": plan(attacked, own, SELECTION, "trial", range(1, semi_informed.TRIAL_DRAWS + 1), folder),
        FULL: plan(sources, own, SELECTION, "training", draws, folder),
        OTHER_VOICES: plan(sources, other, SELECTION, "training", draws, folder),
    }


def _read_sources() -> list[Original]:
    """The recordings that attackers learn from: one of each speaker who is no target."""
    targets = {target.name for target in make_pool(read_originals()).targets}
    with (TRAINING_SPEECH / "utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "pool" and row["speaker"] not in targets]
    return [
        Original(row["utterance_id"], row["speaker"], row["gender"].lower(), "pool", TRAINING_SPEECH / row["path"])
        for row in sorted(rows, key=lambda row: row["utterance_id"])
    ]


def _halves(pool: TargetPool) -> tuple[TargetPool, TargetPool]:
    """Every second target of each gender, and the rest."""
    sides: tuple[list, list] = ([], [])
    for gender in sorted({target.gender for target in pool.targets}):
        for number, target in enumerate(one for one in pool.targets if one.gender == gender):
            sides[number % 2].append(target)
    return TargetPool(sides[0]), TargetPool(sides[1])


def _frozen_eer(plans: Mapping[str, Sequence[Conversion]]) -> float:
    """The lowest EER of the attackers that were not trained on anonymised speech, per cent."""
    attacked = of(read_originals(), ATTACKED)
    eers = []
    for name in semi_informed.ENGINES:
        if missing := explain_missing(find_engine(name)):
            print(f"{name}: {missing}")
            continue
        encoder = load(name)
        plain = semi_informed.vectors_of(encoder, [each.path for each in attacked])
        vectors = semi_informed.vectors_of(encoder, [each.path for each in (*plans["enrolment"], *plans["trial"])])
        tried = semi_informed.by_name(plans["trial"], vectors)
        lazy = {each: some[0] for each, some in semi_informed.by_name(plans["enrolment"], vectors).items()}
        for scenario, enrolled in (
            ("ignorant", {each.name: plain[str(each.path)] for each in attacked}),
            ("lazy-informed", lazy),
        ):
            eers.append(_eer_and_inverted(semi_informed.list_trials(attacked, enrolled, tried))[0])
            print(f"{name}, {scenario}: EER {eers[-1]:.1f} %", flush=True)
    return min(eers)


def _eer_and_inverted(trials: semi_informed.AttackTrials) -> tuple[float, float]:
    is_target = trials.models == trials.speakers
    targets, nontargets = trials.scores[is_target], trials.scores[~is_target]
    return 100 * kaldi_eer(targets, nontargets), 100 * float((targets < np.median(nontargets)).mean())


def _train_and_attack(task: tuple[str, int, Path]) -> Outcome:
    kind, seed, work = task
    plans = _plans(work)
    recipe = with_variant(PRESETS["small"].changed(epochs=1 if kind == ONE_EPOCH else EPOCHS), "none")
    folder = work / "trained" / f"{EPOCHS}-{CONVERSIONS}-{kind.replace(' ', '-')}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    learned = plans[OTHER_VOICES if kind == OTHER_VOICES else FULL]
    train(_material(learned, kind, seed), recipe, seed, folder)
    trained, attacked = load_trained(folder), of(read_originals(), ATTACKED)
    paths = [each.path for each in (*plans["enrolment"], *plans["trial"])]
    vectors = semi_informed.vectors_of(trained, paths, trained.training_mean)
    enrolled = {each: some[0] for each, some in semi_informed.by_name(plans["enrolment"], vectors).items()}
    tried = semi_informed.by_name(plans["trial"], vectors)
    eer, inverted = _eer_and_inverted(semi_informed.list_trials(attacked, enrolled, tried))
    own = trained.summary.own_eer
    known = {each.target for each in learned}
    unheard = 100 * float(np.mean([each.target not in known for each in plans["trial"]]))
    return Outcome(eer, None if own is None else 100 * own, inverted, unheard)


def _material(conversions: Sequence[Conversion], kind: str, seed: int) -> list[TrainingUtterance]:
    """What the attacker learns from; with shuffled labels each conversion has the speaker of another one."""
    speakers = [each.original.speaker for each in conversions]
    if kind == SHUFFLED:
        speakers = np.random.default_rng(seed).permutation(speakers).tolist()
    return [
        TrainingUtterance(
            f"{each.original.name}-{each.draw}",
            speaker,
            partial(read_audio, each.path),
            target=each.target,
            gender=each.original.gender,
            original=each.original.name,
        )
        for each, speaker in zip(conversions, speakers, strict=True)
    ]


def _print_verdicts(found: Mapping[str, Sequence[Outcome]], frozen: float) -> int:
    """The table; how many verdicts are not as they should be."""
    wrong = 0
    print(f"\nLowest EER of a frozen encoder: {frozen:.1f} %")
    print("| attacker | EER, % | own EER, % | inverted targets, % | called not reliable | all seeds together |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind, outcomes in found.items():
        eers = [one.eer for one in outcomes]
        single, together = (
            [
                judge_attack(AttackStrength(one.eer, frozen, one.own_eer, seeds, one.inverted, one.unheard))
                for one in outcomes
            ]
            for seeds in ((), eers)
        )
        weak = sum(not one.is_reliable for one in single)
        wrong += weak if kind == FULL else len(single) - weak
        columns = (
            _range(eers),
            _range([one.own_eer for one in outcomes if one.own_eer is not None]),
            _range([one.inverted for one in outcomes]),
        )
        counted = sum(not one.is_reliable for one in together)
        print(f"| {kind} | {' | '.join(columns)} | {weak} of {len(single)} | {counted} of {len(single)} |")
        for reason in dict.fromkeys(reason for one in together for reason in one.reasons):
            print(f"  {kind}: {reason}")
    return wrong


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}" if values else "–"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
