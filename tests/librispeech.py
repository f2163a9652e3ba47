"""The LibriSpeech half of the challenge at full size: its data directories, and made-up scores of all its dev trials.

The lists of utterances are the challenge's; what stands in `text` is made up. The scores have the EERs of `EERS`,
which Kaldi's own compute-eer gives for these files (tests/golden/librispeech/PROVENANCE.md).
"""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from pathlib import Path

LISTS = Path(__file__).parent / "golden" / "librispeech" / "utterances.csv"
# What Kaldi prints of each, in per cent.
EERS = {
    ("unprotected", "f"): "2.557",
    ("ignorant", "f"): "63.78",
    ("lazy-informed", "f"): "3.267",
    ("unprotected", "m"): "0.1553",
    ("ignorant", "m"): "74.07",
    ("lazy-informed", "m"): "0.1553",
}
# Attack model and gender: suffix of the enrolment set, suffix of the trial set, how far targets lie above nontargets.
TESTS = {
    ("unprotected", "f"): ("", "", 2.17),
    ("ignorant", "f"): ("", "_anon", -0.42),
    ("lazy-informed", "f"): ("_anon", "_anon", 2.1),
    ("unprotected", "m"): ("", "", 3.2),
    ("ignorant", "m"): ("", "_anon", -0.75),
    ("lazy-informed", "m"): ("_anon", "_anon", 3.15),
}


def name_test(attack_model: str, gender: str) -> str:
    """Return the folder of the scores of a test."""
    enrolment, trial, _ = TESTS[attack_model, gender]
    return f"ASV-libri_dev_enrolls{enrolment}-libri_dev_trials_{gender}{trial}"


def write_data_directories(folder: Path) -> Path:
    """Write the six Kaldi data directories, without audio."""
    sets: dict[str, list[tuple[str, str, str, str]]] = defaultdict(list)
    with LISTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            utterance = row["utterance"]
            sets[row["data_set"]].append((utterance, utterance.partition("-")[0], row["gender"], row["duration_s"]))
    for name, rows in sets.items():
        _write_directory(folder / name, rows)
        split, _, role = name.partition("_")[2].partition("_")
        if role == "enrolls":
            (folder / name / "enrolls").write_text("".join(f"{utterance}\n" for utterance, *_ in rows))
        else:
            enrolled = sets[f"libri_{split}_enrolls"]
            models = sorted({speaker for _, speaker, gender, _ in enrolled if gender == role[-1]})
            with (folder / name / "trials").open("w") as trials:
                for model in models:
                    for utterance, speaker, *_ in rows:
                        trials.write(f"{model} {utterance} {'target' if speaker == model else 'nontarget'}\n")
    return folder


def _write_directory(folder: Path, rows: list[tuple[str, str, str, str]]) -> None:
    folder.mkdir(parents=True)
    spoken, genders = defaultdict(list), {}
    for utterance, speaker, gender, _ in rows:
        spoken[speaker].append(utterance)
        genders[speaker] = gender
    corpus = folder.name.rpartition("_enrolls" if "enrolls" in folder.name else "_trials")[0]
    below = "{0}/{0}" if corpus == "libri_dev" else "{0}"
    listings = {
        "utt2spk": [(utterance, speaker) for utterance, speaker, *_ in rows],
        "utt2dur": [(utterance, f"{duration_s} ") for utterance, _, _, duration_s in rows],
        "text": [(utterance, "WORDS THAT NOBODY SAID") for utterance, *_ in rows],
        "wav.scp": [(utterance, f"data/{corpus}/wav/{below.format(utterance)}.wav") for utterance, *_ in rows],
        "spk2utt": [(speaker, " ".join(utterances)) for speaker, utterances in spoken.items()],
        "spk2gender": list(genders.items()),
    }
    for name, pairs in listings.items():
        (folder / name).write_text("".join(f"{key} {value}\n" for key, value in pairs))


def write_scores(folder: Path, data: Path) -> Path:
    """Write the scores of the six tests of dev, `<test>/scores`: the same numbers wherever this runs."""
    for (attack_model, gender), (*_, distance) in TESTS.items():
        test = name_test(attack_model, gender)
        drawn = random.Random(test)
        (folder / test).mkdir(parents=True)
        with (folder / test / "scores").open("w") as scores:
            for line in (data / f"libri_dev_trials_{gender}" / "trials").read_text().splitlines():
                pair, kind = line.rsplit(" ", 1)
                value = sum(drawn.random() for _ in range(4)) - 2 + (distance if kind == "target" else 0)
                scores.write(f"{pair} {value:.6g}\n")
    return folder
