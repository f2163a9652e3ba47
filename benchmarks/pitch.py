"""What the pitch correlation costs beside the two F0 extractions it needs.

Run from the root of the repository: ``python -m benchmarks.pitch [FOLDER]``. The folder holds FLAC
or WAV files at any depth; without one, real speech from ``../shared/speech`` is taken, or else
synthetic voices. Prints (metric with extraction) / (two extractions alone), which must stay at or
below 1.3, for single utterances and for the same speech as files of ten minutes; and, without a budget,
the ratio with dynamic time warping.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.pitch import pitch_correlation, realigned_pitch_correlation
from speech.pitch.estimators import WINDOW_MS, f0_praat, praat_estimator

BUDGET = 1.3
RATE = 16000
PAIRS = 60
REPEATS = 5
LONG_S = 600
SPEECH = Path("../shared/speech")

Samples = NDArray[np.generic]
Pair = tuple[Samples, Samples]


def main(folder: Path | None) -> int:
    """Print the ratios; the exit status is 1 where one is above the budget."""
    pairs, source = load_pairs(folder)
    extract_both(pairs[0])  # imports Praat and compiles the warping outside of the measurement
    extract_and_realign(pairs[0])
    speech_s = sum(first.size + second.size for first, second in pairs) / RATE
    print(f"{len(pairs)} pairs of {source}, {speech_s:.0f} s; {praat_estimator()}")
    long_pairs = [(joined([first for first, _ in pairs]), joined([second for _, second in pairs]))]
    short = compare("utterances", pairs, extract_and_correlate, REPEATS)
    long = compare(f"a pair of {LONG_S // 60} minutes", long_pairs, extract_and_correlate, 3)
    print(f"budget {BUDGET}; without one:")
    compare("utterances, with warping", pairs, extract_and_realign, 2)
    return int(max(short, long) > BUDGET)


def compare(name: str, pairs: list[Pair], measure: Callable[[Pair], None], repeats: int) -> float:
    """The ratio of the measure to the extractions alone."""
    alone, whole = np.inf, np.inf
    for _ in range(repeats):  # in turns, so that a busy machine slows both
        alone = min(alone, seconds(extract_both, pairs))
        whole = min(whole, seconds(measure, pairs))
    print(f"{name}: two F0 extractions {alone:.3f} s, with pitch correlation {whole:.3f} s, ratio {whole / alone:.3f}")
    return whole / alone


def joined(utterances: list[Samples]) -> Samples:
    """The same speech again and again up to `LONG_S` seconds."""
    return np.resize(np.concatenate(utterances), LONG_S * RATE)


def load_pairs(folder: Path | None) -> tuple[list[Pair], str]:
    """Pairs of an utterance and a delayed, quieter copy, and where they come from."""
    root = folder or SPEECH
    paths = sorted(path for path in root.rglob("*") if path.suffix in {".flac", ".wav"})
    if folder is not None and not paths:
        sys.exit(f"{folder}: expected FLAC or WAV files, found none. Name another folder.")
    if paths:
        utterances = [read(path) for path in paths[:: max(1, len(paths) // PAIRS)][:PAIRS]]
        source = f"real speech ({root})"
    else:
        random = np.random.default_rng(1)
        utterances = [synthetic_voice(random) for _ in range(PAIRS)]
        source = "synthetic voices"
    pairs = [(one, np.roll(one, RATE // 20) // 2) for one in utterances]
    return [pair for pair in pairs if pair[0].size * 1000 >= WINDOW_MS * RATE], source


def read(path: Path) -> Samples:
    import soundfile

    samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
    if rate != RATE:
        sys.exit(f"{path}: expected {RATE} Hz, found {rate} Hz. Resample it first.")
    return np.ascontiguousarray(samples[:, 0])


def synthetic_voice(random: np.random.Generator) -> Samples:
    """Ten seconds of harmonics with a wandering F0 and pauses."""
    steps = random.normal(0, 1, 10 * RATE).cumsum() / 500
    phase = 2 * np.pi * np.cumsum(random.uniform(90, 220) * np.exp(0.2 * np.sin(steps))) / RATE
    voice = sum(np.cos(k * phase) / k for k in range(1, 8))
    pauses = np.repeat(random.random(50) < 0.6, RATE // 5)
    return np.asarray(4000 * voice * pauses).astype(np.int16)


def extract_both(pair: Pair) -> None:
    f0_praat(pair[0], RATE)
    f0_praat(pair[1], RATE)


def extract_and_correlate(pair: Pair) -> None:
    pitch_correlation(f0_praat(pair[0], RATE), f0_praat(pair[1], RATE))


def extract_and_realign(pair: Pair) -> None:
    first, second = f0_praat(pair[0], RATE), f0_praat(pair[1], RATE)
    pitch_correlation(first, second)
    realigned_pitch_correlation(first, second)


def seconds(work: Callable[[Pair], None], pairs: list[Pair]) -> float:
    start = perf_counter()
    for pair in pairs:
        work(pair)
    return perf_counter() - start


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
