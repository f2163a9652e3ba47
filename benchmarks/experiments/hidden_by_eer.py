"""What the EER hides, on published speaker vectors and on six published anonymisers: the tables of ``docs/methods.md``.

Run as ``python -m benchmarks.experiments.hidden_by_eer``. Vectors, trials and speech are those of ``../shared``; of
each speaker of an anonymiser the first half of the utterances, by name, is enrolled, and the others are tried on every
speaker. The attacker is WeSpeaker ResNet34, by cosine with the mean vector; a score of the published vectors is the
same cosine. Prints two tables; the exit status is 1 where the data or the model is missing.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.attackers.trial_scores import score_trials
from evaluation.formats.kaldi import Trial, read_enrolls, read_trials, read_utt2spk
from evaluation.metrics.exposure import FALSE_ALARM_RATES, Exposure, make_trials, measure_exposure
from speech.audio.files import read_pcm16
from speech.encoders.registry import explain_missing, find_engine, load

SHARED = Path("../shared")
VECTORS, SPEECH = SHARED / "vpc-librispeech", SHARED / "speech"
ENGINE = "wespeaker-resnet34"
# Enrolment side and trial side of each attack.
ATTACKS = {
    "unprotected": ("original", "original"),
    "ignorant": ("original", "anonymised"),
    "lazy-informed": ("anonymised", "anonymised"),
}
HEAD = f"{'trials':16} {'attack':14} {'EER':>6} {'found at 1, 0.1, 0.01 %':>24} {'bits (by chance)':>17} "
HEAD += f"{'worst':>6} {'mean':>6} {'turned':>6} {'inverted':>8}"

Vectors = Mapping[str, NDArray[np.float32]]


def main() -> int:
    """Print both tables."""
    engine = find_engine(ENGINE)
    for missing in (
        *(f"{folder} is absent." for folder in (VECTORS, SPEECH) if not folder.is_dir()),
        explain_missing(engine),
    ):
        if missing:
            print(missing)
            return 1
    print(f"Published vectors, trials of the challenge\n\n{HEAD}")
    for gender in "fm":
        for attack in ATTACKS:
            print_row(f"dev {gender}", attack, measure_vectors(gender, attack))
    print(f"\nPublished anonymisers, {engine.title}\n\n{HEAD}")
    for system, attack, exposure in measure_anonymisers():
        print_row(system, attack, exposure)
    return 0


def measure_vectors(gender: str, attack: str) -> Exposure:
    """The published vectors of a gender under an attack."""
    data = VECTORS / "data" / "libri_dev_enrolls"
    enrolled, tried = (read_npz(VECTORS / f"embeddings-dev-{_published(side)}.npz") for side in ATTACKS[attack])
    speakers = read_utt2spk(data / "utt2spk").content
    models: dict[str, list[NDArray[np.float32]]] = defaultdict(list)
    for utterance in read_enrolls(data / "enrolls").content:
        models[speakers[utterance]].append(enrolled[f"enrolls/{utterance}"])
    part = f"trials_{gender}"
    tests = {name.partition("/")[2]: one for name, one in tried.items() if name.startswith(f"{part}/")}
    return _measure(models, tests, read_trials(VECTORS / "data" / f"libri_dev_{part}" / "trials").content)


def measure_anonymisers() -> Iterator[tuple[str, str, Exposure]]:
    """Original speech, then each system under both attacks: its name, the attack, the measures."""
    encoder = load(ENGINE)
    originals: dict[str, NDArray[np.float32]] = {}
    paths = {row["utterance_id"]: row["path"] for row in _rows("utterances.csv")}
    systems: dict[str, dict[str, tuple[str, Path]]] = defaultdict(dict)
    for row in _rows("anonymised.csv"):
        systems[row["system"]][row["utterance_id"]] = row["source_speaker"], SPEECH / row["path"]

    def embed(path: Path) -> NDArray[np.float32]:
        samples, rate_hz = read_pcm16(path)
        return np.asarray(encoder.embed([samples], rate_hz)[0], np.float32)

    for system, files in systems.items():
        for name in files.keys() - originals.keys():
            originals[name] = embed(SPEECH / paths[name])
        vectors = {"original": originals, "anonymised": {name: embed(path) for name, (_, path) in files.items()}}
        speakers = {name: speaker for name, (speaker, _) in sorted(files.items())}
        for attack in ATTACKS:
            if attack != "unprotected" or system == next(iter(systems)):
                first, second = (vectors[side] for side in ATTACKS[attack])
                yield "original" if attack == "unprotected" else system, attack, _halves(first, second, speakers)


def _halves(first: Vectors, second: Vectors, speakers: Mapping[str, str]) -> Exposure:
    """The first half of the utterances of each speaker is enrolled, the others are tried."""
    own: dict[str, list[str]] = defaultdict(list)
    for name, speaker in speakers.items():
        own[speaker].append(name)
    models = {speaker: [first[name] for name in names[: len(names) // 2]] for speaker, names in own.items()}
    tried = [(name, speaker) for speaker, names in own.items() for name in names[len(names) // 2 :]]
    trials = tuple(Trial(model, name, model == speaker) for name, speaker in tried for model in models)
    return _measure(models, {name: second[name] for name, _ in tried}, trials)


def _measure(models: Mapping[str, list[NDArray[np.float32]]], tests: Vectors, trials: tuple[Trial, ...]) -> Exposure:
    scores = score_trials(models, tests, trials)
    is_target = np.array([trial.target for trial in trials])
    return measure_exposure(
        make_trials(scores, is_target, [one.model for one in trials], [one.utterance for one in trials])
    )


def print_row(what: str, attack: str, exposure: Exposure) -> None:
    """One line of a table."""
    values = exposure.values()
    found = ", ".join(f"{values[key]:.1f}" if key in values else "–" for key in FALSE_ALARM_RATES)
    bits = f"{values['rank_disclosure']:.2f} ({values['rank_disclosure_shuffled']:.2f})"
    print(f"{what:16} {attack:14} {100 * exposure.kaldi_eer:6.2f} {found:>24} {bits:>17} ", end="")
    print(f"{values['worst_speaker_eer']:6.1f} {values['mean_speaker_eer']:6.1f} ", end="")
    print(f"{values['better_sign_eer']:6.2f} {values['inverted_targets']:8.1f}", flush=True)


def read_npz(path: Path) -> dict[str, NDArray[np.float32]]:
    """Vectors by ``<set>/<utterance>``."""
    with np.load(path) as file:
        return dict(zip(map(str, file["ids"]), file["vectors"], strict=True))


def _published(side: str) -> str:
    return "ohnn" if side == "anonymised" else side


def _rows(table: str) -> list[dict[str, str]]:
    with (SPEECH / table).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


if __name__ == "__main__":
    sys.exit(main())
