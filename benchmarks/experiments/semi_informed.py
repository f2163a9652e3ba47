"""The semi-informed attacker on kNN-WORLD with real speech, in small: who learns from what, and what a target hides.

Run as ``python -m benchmarks.experiments.semi_informed --work FOLDER [--jobs 2] [--seeds 3] [--epochs 20]``. Speech is
that of ``../shared/speech``; the folder keeps conversions and trainings, so that the same command goes on where an
earlier one ended. It prints the table of ``docs/semi_informed.md``. Cells come seed by seed, so that an early end
leaves a whole table of fewer seeds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.experiments._attack_measures import AttackTrials, attack_measures
from benchmarks.experiments._semi_informed_data import (
    ATTACKED,
    RATE_HZ,
    SOURCES,
    SPEECH,
    Conversion,
    Original,
    convert_all,
    make_pool,
    of,
    plan,
    read,
    read_originals,
    splits,
)
from evaluation.attackers.training.corpus import TrainingUtterance, read_audio
from evaluation.attackers.training.recipe import PRESETS, with_variant
from evaluation.attackers.training.report import AttackMeasures, ReportRow, SeedResult, table_cells
from evaluation.attackers.training.train import train
from evaluation.attackers.training.trained_attacker import load_trained
from speech.encoders.contract import SpeakerEncoder
from speech.encoders.registry import explain_missing, find_engine, load

Vectors = dict[str, npt.NDArray[np.float64]]

SELECTIONS = ("same-gender", "random")
CONVERSIONS = 6
TRIAL_DRAWS = 4
N_SPLITS = 10
ENGINES = ("ge2e", "wespeaker-resnet34")
CONTROL = "control"


@dataclass(frozen=True)
class Cell:
    """A training. selection: of its targets; empty for the control, which learns from originals."""

    selection: str
    variant: str
    seed: int

    @property
    def name(self) -> str:
        return "-".join(filter(None, (self.selection, self.variant, str(self.seed))))


def cells(seeds: int) -> list[Cell]:
    """In the order in which they are trained; random targets have one seed, as in the note."""
    found = []
    for seed in range(1, seeds + 1):
        found += [Cell("same-gender", "measured", seed), Cell("", CONTROL, seed)]
        found += [Cell("same-gender", variant, seed) for variant in ("literal", "stabilised")]
        if seed == 1:
            found += [Cell("random", variant, seed) for variant in ("measured", "literal", "stabilised")]
    return found


def main() -> int:
    """Convert, train, attack, and print."""
    options = _options()
    if not (SPEECH / "utterances.csv").is_file():
        print(f"{SPEECH}: the real speech is not here; nothing was measured.")
        return 0
    began = time.monotonic()
    originals = read_originals()
    pool = make_pool(originals)
    plans = _plans(originals, options.work)
    wanted = [each for training, enrolment, trial in plans.values() for each in (*training, *enrolment, *trial)]
    speech_s, took_s = convert_all(wanted, options.jobs)
    if speech_s:
        print(f"{speech_s / 60:.0f} min of speech converted in {took_s:.0f} s, {speech_s / took_s:.0f} times real time")
    print(f"{len(of(originals, SOURCES))} training recordings, {len(pool.targets)} targets", flush=True)
    results: dict[Cell, SeedResult] = {}
    scores: dict[tuple[Cell, str], AttackMeasures] = {}
    tasks = [(cell, options.work, options.epochs) for cell in cells(options.seeds)]
    with ProcessPoolExecutor(options.jobs, initializer=one_thread) as workers:
        for cell, result, attacks in workers.map(_train_and_attack, tasks):
            results[cell] = result
            scores |= {(cell, selection): attack for selection, attack in attacks.items()}
            _print_cell(cell, result, attacks, time.monotonic() - began)
    _print_engines(originals, plans)
    _print_table(results, scores)
    print(f"In all {(time.monotonic() - began) / 60:.1f} min.")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of conversions and trainings")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20, help="of the trainings on conversions")
    return parser.parse_args()


def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


Plans = dict[str, tuple[list[Conversion], list[Conversion], list[Conversion]]]


def _plans(originals: Sequence[Original], work: Path) -> Plans:
    """By selection the conversions for training, enrolment and trials."""
    pool, sources, attacked = make_pool(originals), of(originals, SOURCES), of(originals, ATTACKED)
    return {
        selection: (
            plan(sources, pool, selection, "training", range(1, CONVERSIONS + 1), work / "speech"),
            plan(attacked, pool, selection, "enrolment", [0], work / "speech"),
            plan(attacked, pool, selection, "trial", range(1, TRIAL_DRAWS + 1), work / "speech"),
        )
        for selection in SELECTIONS
    }


# Attacks ---------------------------------------------------------------------------------------------


def _print_engines(originals: Sequence[Original], plans: Plans) -> None:
    """The attackers that were trained elsewhere: unprotected, ignorant, lazy-informed."""
    attacked = of(originals, ATTACKED)
    for name in ENGINES:
        engine = find_engine(name)
        if missing := explain_missing(engine):
            print(f"{name}: {missing}")
            continue
        encoder = load(name)
        plain = vectors_of(encoder, [each.path for each in attacked])
        own = {each.name: plain[str(each.path)] for each in attacked}
        _print_measures(f"{name} unprotected", _attack(attacked, own, {each: [own[each]] for each in own}))
        for selection, (_, enrolment, trial) in plans.items():
            vectors = vectors_of(encoder, [each.path for each in (*enrolment, *trial)])
            tried, enrolled = by_name(trial, vectors), by_name(enrolment, vectors)
            _print_measures(f"{name} ignorant {selection}", _attack(attacked, own, tried))
            single = {each: found[0] for each, found in enrolled.items()}
            _print_measures(f"{name} lazy-informed {selection}", _attack(attacked, single, tried))


def vectors_of(encoder: SpeakerEncoder, paths: Sequence[Path], mean: Any = 0.0) -> Vectors:
    """Of recordings by path, less a mean."""
    found: Vectors = {}
    unique = sorted(set(paths))
    for start in range(0, len(unique), 16):
        part = unique[start : start + 16]
        embedded = encoder.embed([read(path)[0] for path in part], RATE_HZ)
        for path, vector in zip(part, np.asarray(embedded, np.float64) - mean, strict=True):
            found[str(path)] = vector
    return found


def by_name(conversions: Sequence[Conversion], vectors: Vectors) -> dict[str, list[npt.NDArray[np.float64]]]:
    found: dict[str, list[npt.NDArray[np.float64]]] = defaultdict(list)
    for each in conversions:
        found[each.original.name].append(vectors[str(each.path)])
    return found


def _attack(
    attacked: Sequence[Original], enrolled: Vectors, tried: Mapping[str, Sequence[npt.NDArray[np.float64]]]
) -> AttackMeasures:
    return attack_measures(list_trials(attacked, enrolled, tried), random=np.random.default_rng(1))


def list_trials(
    attacked: Sequence[Original], enrolled: Vectors, tried: Mapping[str, Sequence[npt.NDArray[np.float64]]]
) -> AttackTrials:
    """Cosine of each trial with the mean enrolment vector of each speaker, over all splits; pooled over genders."""
    speaker_of = {each.name: each.speaker for each in attacked}
    speakers = sorted(set(speaker_of.values()))
    scores, models, of_trial = [], [], []
    for enrolment, trials in splits(attacked, N_SPLITS):
        means = np.stack(
            [
                np.mean([enrolled[name] for name in enrolment if speaker_of[name] == speaker], axis=0)
                for speaker in speakers
            ]
        )
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        for name in trials:
            for vector in tried[name]:
                scores.append(means @ (vector / np.linalg.norm(vector)))
                models.append(speakers)
                of_trial.append([speaker_of[name]] * len(speakers))
    return AttackTrials(
        np.concatenate(scores),
        np.concatenate([np.array(each) for each in models]),
        np.concatenate([np.array(each) for each in of_trial]),
        {each.speaker: each.gender for each in attacked},
    )


# Trainings -------------------------------------------------------------------------------------------


def _train_and_attack(task: tuple[Cell, Path, int]) -> tuple[Cell, SeedResult, dict[str, AttackMeasures]]:
    cell, work, epochs = task
    originals = read_originals()
    plans, folder = _plans(originals, work), work / "trained" / f"{epochs}-{cell.name}"
    folder.mkdir(parents=True, exist_ok=True)
    if cell.variant == CONTROL:
        # As many steps as on conversions, of which there are several of each recording.
        recipe = with_variant(PRESETS["small"].changed(epochs=CONVERSIONS * epochs), "none")
        speech = [
            TrainingUtterance(each.name, each.speaker, partial(read_audio, each.path), gender=each.gender)
            for each in of(originals, SOURCES)
        ]
    else:
        recipe = with_variant(PRESETS["small"].changed(epochs=epochs), cell.variant)
        speech = [
            TrainingUtterance(
                f"{each.original.name}-{each.draw}",
                each.original.speaker,
                partial(read_audio, each.path),
                target=each.target,
                gender=each.original.gender,
                original=each.original.name,
            )
            for each in plans[cell.selection][0]
        ]
    train(speech, recipe, cell.seed, folder)
    trained, attacked = load_trained(folder), of(originals, ATTACKED)
    attacks = {}
    if cell.variant == CONTROL:
        plain = vectors_of(trained, [each.path for each in attacked], trained.training_mean)
        own = {each.name: plain[str(each.path)] for each in attacked}
        attacks["none"] = _attack(attacked, own, {each: [own[each]] for each in own})
    for selection in (cell.selection,) if cell.selection else SELECTIONS:
        _, enrolment, trial = plans[selection]
        vectors = vectors_of(trained, [each.path for each in (*enrolment, *trial)], trained.training_mean)
        enrolled = {name: found[0] for name, found in by_name(enrolment, vectors).items()}
        attacks[selection] = _attack(attacked, enrolled, by_name(trial, vectors))
    return cell, SeedResult(cell.seed, trained.summary, next(iter(attacks.values()))), attacks


# What is printed -------------------------------------------------------------------------------------


def _print_measures(name: str, found: AttackMeasures) -> None:
    print(f"{name}: EER {_with_interval(found)} %, same gender {_per_cent(found.same_gender_eer)} %", flush=True)


def _with_interval(found: AttackMeasures) -> str:
    interval = found.eer_interval
    return _per_cent(found.eer) + (f" ({_per_cent(interval.lower)}–{_per_cent(interval.upper)})" if interval else "")


def _per_cent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def _print_cell(cell: Cell, result: SeedResult, attacks: Mapping[str, AttackMeasures], passed_s: float) -> None:
    for selection, found in attacks.items():
        _print_measures(f"{cell.name} on {selection}", found)
    print(f"  {result.training}\n  {passed_s / 60:.1f} min", flush=True)


def _print_table(results: Mapping[Cell, SeedResult], scores: Mapping[tuple[Cell, str], AttackMeasures]) -> None:
    rows: dict[tuple[str, str], list[SeedResult]] = defaultdict(list)
    for (cell, selection), attack in scores.items():
        rows[selection, cell.variant].append(SeedResult(cell.seed, results[cell].training, attack))
    print(
        "| targets | attacker | seeds | 95 % over speakers, seed 1 | "
        + "EER | same gender | VER_S | VER_T | chance | probe |"
    )
    for (selection, variant), found in rows.items():
        cells_of = table_cells(ReportRow("kNN-WORLD", selection, variant, tuple(found)))
        first = found[0].attack
        keys = ("eer", "same_gender_eer", "source_error", "target_error", "target_chance", "target_probe")
        values = " | ".join(cells_of[key] for key in keys)
        print(f"| {selection} | {variant} | {len(found)} | {_with_interval(first) if first else '–'} | {values} |")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
