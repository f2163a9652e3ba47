"""Running a command as a person does, and the small folders that its tests hand it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import soundfile

ROOT = Path(__file__).resolve().parents[3]
DEMO = ROOT / "demo" / "corpus"
RATE_HZ = 16_000
B2 = ("--method", "mcadams-2022")


def start(*arguments: object, **how: object) -> subprocess.Popen[str]:
    """The program as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "portal.client", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def buzz(hz: float, duration_s: float = 0.4) -> np.ndarray:
    """A voice-like sound: a pulse train through two resonances; int16."""
    n = round(duration_s * RATE_HZ)
    pulses = np.diff(np.floor(np.arange(n + 1) * hz / RATE_HZ))
    time_s = np.arange(400) / RATE_HZ
    ring = np.exp(-200 * time_s) * (np.cos(2 * np.pi * 600 * time_s) + 0.5 * np.cos(2 * np.pi * 1700 * time_s))
    sound = np.convolve(pulses, ring)[:n]
    return np.round(9000 * sound / np.abs(sound).max()).astype(np.int16)


def write_speech(folder: Path, *names: str) -> Path:
    """A made-up recording under each name, none like another."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / name, buzz(100 + 7 * number), RATE_HZ)
    return folder


def write_kaldi(folder: Path, utterances: dict[str, str], *, lists: dict[str, str] | None = None) -> Path:
    """A data directory of demo speech (copied beside it), by utterance and speaker; gender f for all."""
    (folder / "wav").mkdir(parents=True)
    sources = sorted(DEMO.rglob("*.flac"))
    for number, name in enumerate(utterances):
        shutil.copy(sources[number], folder / "wav" / f"{name}.flac")
    names, speakers = sorted(utterances), sorted(set(utterances.values()))
    content = {
        "wav.scp": [f"{name} wav/{name}.flac" for name in names],
        "utt2spk": [f"{name} {utterances[name]}" for name in names],
        "spk2gender": [f"{speaker} f" for speaker in speakers],
        "text": [f"{name} SOME WORDS" for name in names],
    }
    for name, lines in content.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    for name, text in (lists or {}).items():
        (folder / name).write_text(text)
    return folder


def contents(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
