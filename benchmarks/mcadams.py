"""Throughput of B2 and its ratio to a plain frame-by-frame implementation in the same run.

Run as `python benchmarks/mcadams.py [--seconds N] [--threads N] [--rounds N]`. Real speech is read
from `../shared/speech` or else the demo corpus; without either the sound is synthetic, and the
output says so.
Budget: on two cores at least 20 times the plain implementation.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from anonymization.methods.mcadams import RATE_HZ, McAdamsParameters, mcadams  # noqa: E402
from tests.anonymization.plain_mcadams import plain_mcadams  # noqa: E402

Samples = npt.NDArray[np.int16]

SOURCES = {
    "real speech": ROOT.parent / "shared/speech",
    "demo corpus, synthetic speech": ROOT / "demo/corpus",
}
ALPHA = 0.7
BUDGET = 20


def read_utterances(seconds: float) -> tuple[str, list[Samples]]:
    """What the sound is, and whole utterances of about that length in all, from across a corpus."""
    import soundfile

    for what, folder in SOURCES.items():
        files = sorted(folder.rglob("*.flac"))
        if not files:
            continue
        np.random.default_rng(0).shuffle(files)
        utterances: list[Samples] = []
        while files and duration_s(utterances) < seconds:
            samples, rate = soundfile.read(files.pop(), dtype="int16")
            if rate == RATE_HZ and samples.ndim == 1:
                utterances.append(samples)
        return f"{what} ({folder})", utterances
    return "noise shaped like speech (no corpus found)", make_noise(seconds)


def make_noise(seconds: float) -> list[Samples]:
    """Ten-second stretches of noise with a falling spectrum and a syllable-like envelope."""
    rng = np.random.default_rng(0)
    time_s = np.arange(10 * RATE_HZ) / RATE_HZ
    envelope = np.clip(np.sin(2 * np.pi * 2 * time_s) + 0.7, 0.01, None)
    slope = 1 / (1 + np.fft.rfftfreq(time_s.size, 1 / RATE_HZ) / 500)
    utterances = []
    for _ in range(max(1, round(seconds / 10))):
        noise = np.fft.irfft(np.fft.rfft(rng.normal(size=time_s.size)) * slope) * envelope
        utterances.append((noise / np.abs(noise).max() * 16_000).astype(np.int16))
    return utterances


def duration_s(utterances: Sequence[Samples]) -> float:
    return sum(samples.size for samples in utterances) / RATE_HZ


def elapsed_s(method: Callable[[Samples], Samples], utterances: Sequence[Samples], at_once: int = 1) -> float:
    """Seconds for all utterances, `at_once` of them in threads of their own."""
    start = time.perf_counter()
    if at_once == 1:
        for samples in utterances:
            method(samples)
    else:
        with ThreadPoolExecutor(at_once) as pool:
            for _ in pool.map(method, utterances):
                pass
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description="Throughput of B2.")
    parser.add_argument("--seconds", type=float, default=60, help="audio to anonymise")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="the best of so many counts")
    arguments = parser.parse_args()
    parameters, threads = McAdamsParameters(ALPHA), arguments.threads

    def plain(samples: Samples) -> Samples:
        return plain_mcadams(samples, ALPHA)

    def single(samples: Samples) -> Samples:
        return mcadams(samples, RATE_HZ, parameters)

    def shared(samples: Samples) -> Samples:
        return mcadams(samples, RATE_HZ, parameters, threads=threads)

    what, utterances = read_utterances(arguments.seconds)
    audio_s = duration_s(utterances)
    print(f"B2, alpha {ALPHA}, on {what}: {len(utterances)} utterances, {audio_s:.0f} s")
    print(f"first call, with compiling or loading: {elapsed_s(single, utterances[:1]):.2f} s")

    rows = {
        "plain, one core": (plain, 1),
        "mcadams, one core": (single, 1),
        f"mcadams, {threads} threads per utterance": (shared, 1),
        f"mcadams, {threads} utterances at once": (single, threads),
    }
    best_s = dict.fromkeys(rows, float("inf"))
    for _ in range(arguments.rounds):
        for row, (method, at_once) in rows.items():
            best_s[row] = min(best_s[row], elapsed_s(method, utterances, at_once))
    for row, seconds in best_s.items():
        ratio = best_s["plain, one core"] / seconds
        print(f"{row:>34}: {audio_s / seconds:6.0f} s of audio per s, ratio {ratio:5.1f}")
    worst = max(int(np.abs(single(samples).astype(int) - plain(samples)).max(initial=0)) for samples in utterances)
    print(f"largest difference from the plain implementation: {worst} of int16")
    print(f"budget: ratio at least {BUDGET} on two cores")


if __name__ == "__main__":
    main()
