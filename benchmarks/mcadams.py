"""Throughput of B2 and its ratio to a plain frame-by-frame implementation in the same run, on every engine there is.

Run as `python -m benchmarks.mcadams [--seconds N] [--threads N] [--rounds N] [--profile]`. Real speech is read
from `../shared/speech` or else the demo corpus; without either the sound is synthetic, and the
output says so. `--profile` tells what the compiled engine spends its time on.
Budget: on two cores at least 20 times the plain implementation.
"""

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
# As a script, too: the folder of the script holds a `coverage` that numba would take for the package.
sys.path = [str(ROOT), *(folder for folder in sys.path if Path(folder).resolve() != ROOT / "benchmarks")]

from anonymization.methods.mcadams import numba_engine, torch_engine  # noqa: E402
from anonymization.methods.mcadams.method import mcadams, mcadams_batch  # noqa: E402
from anonymization.methods.mcadams.parameters import FULL_SCALE, OFFSET, RATE_HZ, McAdamsParameters  # noqa: E402
from common.arrays import Samples  # noqa: E402
from tests.anonymization.plain_mcadams import plain_mcadams  # noqa: E402

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


def elapsed_on_torch_s(utterances: Sequence[Samples], threads: int) -> float:
    """Seconds for all utterances as one batch."""
    parameters = [McAdamsParameters(ALPHA, engine="torch")] * len(utterances)
    start = time.perf_counter()
    mcadams_batch(utterances, RATE_HZ, parameters, threads=threads)
    return time.perf_counter() - start


def cpu_s(work: Callable[[], object], rounds: int) -> float:
    """Least processor time of this thread; other programs of the machine do not count."""
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def print_profile(utterances: Sequence[Samples], rounds: int) -> None:
    """Share of each stage in the processor time of one thread."""

    parameters = McAdamsParameters(ALPHA)
    window, hop, order = parameters.analysis_window(), parameters.hop_samples, parameters.order
    signals = [samples / FULL_SCALE + OFFSET for samples in utterances if samples.size >= window.size + hop]
    fitted = [numba_engine.fit_polynomials(signal, window, hop, order, OFFSET) for signal in signals]
    poles = [numba_engine.find_roots(polynomials)[0] for polynomials in fitted]

    def fit() -> None:
        for signal in signals:
            numba_engine.fit_polynomials(signal, window, hop, order, OFFSET)

    def find() -> None:
        for polynomials in fitted:
            numba_engine.find_roots(polynomials)

    def filter_again() -> None:
        for signal, polynomials, roots in zip(signals, fitted, poles, strict=True):
            numba_engine.resynthesize(signal, window, hop, polynomials, roots, ALPHA, OFFSET)

    def bend() -> None:
        for samples in utterances:
            numba_engine.bend_poles(samples, parameters, 1)

    def everything() -> None:
        for samples in utterances:
            mcadams(samples, RATE_HZ, parameters)

    stages = {
        "prediction (Burg)": cpu_s(fit, rounds),
        "roots (Aberth)": cpu_s(find, rounds),
        "turned poles, filter, overlap-add": cpu_s(filter_again, rounds),
    }
    bent_s, whole_s = cpu_s(bend, rounds), cpu_s(everything, rounds)
    stages["conversion of samples, blocks"] = max(0.0, bent_s - sum(stages.values()))
    stages["level and quantisation"] = max(0.0, whole_s - bent_s)
    n_frames = sum(len(polynomials) for polynomials in fitted)
    print(f"profile of the compiled engine, one thread, processor time: {whole_s / n_frames * 1e6:.1f} µs a frame")
    for stage, seconds in stages.items():
        print(f"{stage:>34}: {seconds / whole_s:5.1%}, {seconds / n_frames * 1e6:4.1f} µs a frame")


def print_torch(utterances: Sequence[Samples], threads: int, rounds: int, plain_s: float) -> None:
    """Its figure where torch is installed, on a graphics card where there is one, and a sentence where not."""
    if importlib.util.find_spec("torch") is None:
        print("torch is not installed here: its engine was not measured")
        return
    device = torch_engine.find_device()
    # On a processor it takes its time, and a few seconds of audio tell as much.
    heard = utterances if device == "cuda" else utterances[:2]
    elapsed_on_torch_s(heard[:1], threads)
    seconds = min(elapsed_on_torch_s(heard, threads) for _ in range(rounds))
    row, audio_per_s = f"torch on {device}, {threads} threads", duration_s(heard) / seconds
    ratio = audio_per_s * plain_s / duration_s(utterances)
    print(f"{row:>34}: {audio_per_s:6.0f} s of audio per s, ratio {ratio:5.1f}")
    if device == "cpu":
        print("no GPU at hand: torch was measured on the processor, where the compiled engine is the one to use")


def main() -> int:
    """1 where the budget is missed, else 0."""
    parser = argparse.ArgumentParser(description="Throughput of B2.")
    parser.add_argument("--seconds", type=float, default=60, help="audio to anonymise")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="the best of so many counts")
    parser.add_argument("--profile", action="store_true", help="also tell the shares of the stages")
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

    at_once = f"mcadams, {threads} utterances at once"
    rows = {
        "plain, one core": (plain, 1),
        "mcadams, one core": (single, 1),
        f"mcadams, {threads} threads per utterance": (shared, 1),
        at_once: (single, threads),
    }
    best_s = dict.fromkeys(rows, float("inf"))
    for _ in range(arguments.rounds):
        for row, (method, workers) in rows.items():
            best_s[row] = min(best_s[row], elapsed_s(method, utterances, workers))
    plain_s = best_s["plain, one core"]
    for row, seconds in best_s.items():
        print(f"{row:>34}: {audio_s / seconds:6.0f} s of audio per s, ratio {plain_s / seconds:5.1f}")
    print_torch(utterances, threads, arguments.rounds, plain_s)
    worst = max(int(np.abs(single(samples).astype(int) - plain(samples)).max(initial=0)) for samples in utterances)
    print(f"largest difference from the plain implementation: {worst} of int16")
    if arguments.profile:
        print_profile(utterances, max(arguments.rounds, 5))
    ratio = plain_s / best_s[at_once]
    print(f"budget: ratio at least {BUDGET} on two cores; measured {ratio:.1f}")
    return int(ratio < BUDGET)


if __name__ == "__main__":
    sys.exit(main())
