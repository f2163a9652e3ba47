"""The commands of the page about attackers and recognisers, run as they are written there beside such files."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "demo" / "corpus"
VP = ".venv/bin/vp "
ATTACK = (
    f"{VP}attack --enrolment data/enrolls --trials data/trials_f --trials data/trials_m --original original "
    "--anonymised anonymised --out attack"
)
RECOGNIZE = f"{VP}recognize data/trials_f --engine moonshine-tiny --text data/trials_f/text --out hypotheses.txt"
NATURALNESS = f"{VP}naturalness anonymised"
TRAIN = f"{VP}train-attacker trained --data training.csv --preset small --seed 1 --seed 2"
ENGINE_COMMANDS = (ATTACK, RECOGNIZE, TRAIN)
MODEL_COMMANDS = (f"{VP}models", NATURALNESS)
# So few steps that nothing is learnt: what is tried is the command, not the attacker.
SHORTER = " " + " ".join(
    f"--set {value}" for value in ("epochs=1", "width=8", "aggregated=24", "embedding=16", "attention=8", "batch=8")
)
SPEAKERS_A_GENDER, UTTERANCES = 2, 4


def run_engines(commands: tuple[str, ...], run: Callable[..., Any], folder: Path) -> None:
    """The commands, one after the other; skipped at last where the model of one is not on this machine."""
    write_files(folder)
    missing = []
    for line in commands:
        try:
            require(line)
        except pytest.skip.Exception as reason:
            missing.append(str(reason))
            continue
        where = write_few(folder) if line == NATURALNESS else folder
        assert run(line + (SHORTER if line == TRAIN else ""), where).said.strip(), line
        if line == ATTACK:
            assert list((folder / "attack").rglob("scores"))
    if missing:
        pytest.skip("; ".join(missing))


def require(line: str) -> None:
    from tests.evaluation.engines import require_engine, require_model_file, require_recognizer

    if line == ATTACK:
        require_engine("wespeaker-resnet34")
    elif line == RECOGNIZE:
        require_recognizer("moonshine-tiny")
    elif line == NATURALNESS:
        for name in ("dnsmos-p835", "dnsmos-p808"):
            require_model_file(name)
    elif line == TRAIN:
        pytest.importorskip("torch", reason="torch is not installed")


def write_files(folder: Path) -> None:
    """Data directories, original and “anonymised” audio (each speaker in the voice of another) of the demo corpus."""
    with next(CORPUS.glob("*.csv")).open(newline="") as file:
        rows = list(csv.DictReader(file))
    chosen: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        chosen.setdefault(row["speaker"], []).append(row)
    genders = {speaker: rows[0]["gender"].lower()[0] for speaker, rows in chosen.items()}
    speakers = [
        speaker for gender in "fm" for speaker in [one for one in chosen if genders[one] == gender][:SPEAKERS_A_GENDER]
    ]
    for kind in ("original", "anonymised"):
        (folder / kind).mkdir()
    for place, speaker in enumerate(speakers):
        other = chosen[speakers[(place + 1) % len(speakers)]]
        for row, stranger in zip(chosen[speaker][:UTTERANCES], other, strict=False):
            shutil.copy(CORPUS / row["path"], folder / "original" / Path(row["path"]).name)
            shutil.copy(CORPUS / stranger["path"], folder / "anonymised" / Path(row["path"]).name)
    kept = {speaker: chosen[speaker][:UTTERANCES] for speaker in speakers}
    half = UTTERANCES // 2
    write_data(folder / "data/enrolls", {one: rows[:half] for one, rows in kept.items()}, folder)
    for gender in "fm":
        of_gender = {one: rows[half:] for one, rows in kept.items() if genders[one] == gender}
        write_data(folder / f"data/trials_{gender}", of_gender, folder)
    with (folder / "training.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "source"])
        writer.writerows([CORPUS / row["path"], one] for one, rows in kept.items() for row in rows)


def write_few(folder: Path) -> Path:
    """A folder with two of the recordings: each takes half a second for its naturalness."""
    few = folder / "few"
    (few / "anonymised").mkdir(parents=True)
    for path in sorted((folder / "anonymised").iterdir())[:2]:
        shutil.copy(path, few / "anonymised")
    return few


def write_data(place: Path, rows: dict[str, list[dict[str, str]]], folder: Path) -> None:
    """A Kaldi directory; every speaker of it is tried against every utterance of it."""
    place.mkdir(parents=True)
    utterances = {Path(row["path"]).stem: (speaker, row) for speaker, ones in rows.items() for row in ones}
    lines = {
        "utt2spk": [f"{name} {speaker}" for name, (speaker, _) in utterances.items()],
        "spk2utt": [
            f"{speaker} " + " ".join(name for name, (one, _) in utterances.items() if one == speaker)
            for speaker in rows
        ],
        "spk2gender": [f"{speaker} {ones[0]['gender'].lower()[0]}" for speaker, ones in rows.items()],
        "wav.scp": [f"{name} {folder / 'original' / Path(row['path']).name}" for name, (_, row) in utterances.items()],
        "text": [f"{name} {row['transcript']}" for name, (_, row) in utterances.items()],
        "trials": [
            f"{speaker} {name} {'target' if speaker == one else 'nontarget'}"
            for speaker in rows
            for name, (one, _) in utterances.items()
        ],
    }
    for name, found in lines.items():
        (place / name).write_text("\n".join(sorted(found)) + "\n")
