"""Every anonymiser on real speech: how fast, how well it keeps the intonation, how well it hides from attackers.

Run as ``python -m benchmarks.anonymizers [--methods NAME …] [--utterances N] [--wespeaker FILE]``; with ``--parts
comparison``, ``semi-informed`` and ``acceptance`` it writes the table that pages and documents show. The speech is that
of ``../shared/speech`` (LibriSpeech and VCTK; where it is absent the benchmark says so and ends). Voices are drawn by
`plan_voices`, one for each speaker and role. Budget: the mean ρF0 of `mcadams-2022`, weighted as in the recipe of 2022
(LibriSpeech and VCTK alike), lies in the published ranges, and that of the pitch shifters above it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import Anonymizer, PseudoSpeaker, plans_voices, takes_targets
from anonymization.methods.measured import FILE
from anonymization.methods.registry import get_method, methods
from anonymization.methods.voices.pseudo_speakers import plan_voices
from benchmarks._attackers import Attacker, Rates, attackers
from benchmarks._comparison import compare
from benchmarks._speech import CORPORA, RATE_HZ, SPEECH, Speech, Utterance, read_speech
from common.arrays import Samples

# Of the sets of 2022 by gender, to two decimals.
PUBLISHED = {"F": (0.61, 0.70), "M": (0.53, 0.66)}
YARDSTICK_S = 10
TIMED_S = 60
PARTS = ("pitch", "attackers", "speed", "comparison", "semi-informed", "acceptance")
ATTACKS = ("ignorant", "lazy-informed", "own voices")


# Speed


def audio_per_second(
    run: Callable[[Sequence[Samples]], object], sounds: Sequence[Samples], clock: Callable[[], float]
) -> float:
    start = clock()
    run(sounds)
    return sum(samples.size for samples in sounds) / RATE_HZ / (clock() - start)


def one_voice(method: Anonymizer) -> PseudoSpeaker:
    """A voice that changes something: the first of five that lie apart."""
    plan = plan_voices(method.parameters, seed=0, role="trial", split="bench", speakers=[str(i) for i in range(5)])
    return plan.voices["0"]


def _anonymize_in_process(name: str, samples: Samples) -> int:
    method = get_method(name)
    return method.anonymize(samples, RATE_HZ, one_voice(method)).size


@dataclass(frozen=True)
class Speed:
    """Seconds of audio in a second of processor time (one thread) or of the clock (two).

    plain, plain_clock: the yardstick, B2 frame by frame with `numpy.roots` on one thread, by either.
    """

    plain: float
    plain_clock: float
    one_thread: float
    two_threads: float
    two_processes: float

    @property
    def ratio(self) -> float:
        """On one thread."""
        return self.one_thread / self.plain

    @property
    def ratio_on_two(self) -> float:
        """On two cores, in the better way."""
        return max(self.two_threads, self.two_processes) / self.plain_clock


def measure_speed(method: Anonymizer, speech: Speech, rounds: int) -> Speed:
    """The best of some rounds, in which method and yardstick take turns, as others may use the machine."""
    from tests.anonymization.plain_mcadams import plain_mcadams

    voice, utterances, few = one_voice(method), timed(speech, TIMED_S), timed(speech, YARDSTICK_S)

    def plain(sounds: Sequence[Samples]) -> None:
        for samples in sounds:
            plain_mcadams(samples, 0.7)

    def single(sounds: Sequence[Samples]) -> None:
        for samples in sounds:
            method.anonymize(samples, RATE_HZ, voice)

    def shared(sounds: Sequence[Samples]) -> None:
        for samples in sounds:
            method.anonymize(samples, RATE_HZ, voice, threads=2)

    def parted(sounds: Sequence[Samples]) -> None:
        list(pool.map(_anonymize_in_process, [method.name] * len(sounds), sounds))

    single(utterances[:1])  # compiles or loads outside of the measurement
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        parted(utterances)
        work = {
            "plain": (plain, few, time.process_time),
            "plain_clock": (plain, few, time.perf_counter),
            "one_thread": (single, utterances, time.process_time),
            "two_threads": (shared, utterances, time.perf_counter),
            "two_processes": (parted, utterances, time.perf_counter),
        }
        best = dict.fromkeys(work, 0.0)
        for _ in range(rounds):
            for name, (run, sounds, clock) in work.items():
                best[name] = max(best[name], audio_per_second(run, sounds, clock))
    return Speed(**best)


def timed(speech: Speech, seconds: float) -> list[Samples]:
    """Utterances of about that length in all, from across the speakers."""
    order = np.random.default_rng(0).permutation(len(speech.utterances))
    chosen: list[Samples] = []
    for index in order:
        if sum(samples.size for samples in chosen) >= seconds * RATE_HZ:
            break
        chosen.append(speech.utterances[index].samples)
    return chosen


# Intonation


def anonymised(
    method: Anonymizer, speech: Speech, utterances: Sequence[Utterance], role: str, seed: int
) -> list[Samples]:
    """The utterances in the voices that their speakers have in a role."""
    plan = plan_voices(method.parameters, seed=seed, role=role, split="bench", speakers=speech.by_speaker)  # type: ignore[arg-type]
    return [method.anonymize(each.samples, RATE_HZ, plan.voices[each.speaker], threads=2) for each in utterances]


@dataclass(frozen=True)
class Rho:
    """Mean of the means of the corpora, mean of their standard deviations over utterances, and the means."""

    mean: float
    deviation: float
    by_corpus: tuple[float, ...]

    @classmethod
    def of(cls, corpora: Sequence[Sequence[float]]) -> Rho:
        means = tuple(fmean(values) for values in corpora)
        return cls(fmean(means), fmean(pstdev(values) for values in corpora), means)


class Contours:
    """F0 of the originals, found once."""

    def __init__(self) -> None:
        self._found: dict[str, npt.NDArray[np.float64]] = {}

    def of(self, utterance: Utterance) -> npt.NDArray[np.float64]:
        from speech.pitch.estimators import f0_praat

        if utterance.name not in self._found:
            self._found[utterance.name] = f0_praat(utterance.samples, RATE_HZ)
        return self._found[utterance.name]


def in_turns(speech: Speech, count: int) -> list[tuple[int, Utterance]]:
    """So many utterances of each gender and corpus, speaker by speaker, each with the number of the turn.

    A speaker's next turn takes their next utterance, and another plan of voices: ρF0 depends on the voice most.
    """
    groups: dict[tuple[str, str], list[list[Utterance]]] = defaultdict(list)
    for own in speech.by_speaker.values():
        groups[own[0].gender, own[0].corpus].append(own)
    turns = []
    for speakers in groups.values():
        for number in range(count):
            turn, own = number // len(speakers), speakers[number % len(speakers)]
            turns.append((turn, own[turn % len(own)]))
    return turns


def measure_pitch_correlation(method: Anonymizer, speech: Speech, count: int, contours: Contours) -> dict[str, Rho]:
    """ρF0 in the official form by gender."""
    from evaluation.metrics.pitch import pitch_correlation
    from speech.pitch.estimators import f0_praat

    by_turn: dict[int, list[Utterance]] = defaultdict(list)
    for turn, utterance in in_turns(speech, count):
        by_turn[turn].append(utterance)
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn, chosen in by_turn.items():
        for utterance, output in zip(chosen, anonymised(method, speech, chosen, "trial", turn), strict=True):
            rho = pitch_correlation(contours.of(utterance), f0_praat(output, RATE_HZ)).rho
            found[utterance.gender, utterance.corpus].append(rho)
    return {gender: Rho.of([found[gender, corpus] for corpus in CORPORA]) for gender in PUBLISHED}


def measure_rates(method: Anonymizer, speech: Speech, seeds: int, known: Sequence[Attacker]) -> list[Rates]:
    """What each attacker finds out."""
    enrolment, trials = speech.side("enrolment"), speech.side("trial")
    outputs = [
        (
            anonymised(method, speech, enrolment, "enrolment", seed),
            anonymised(method, speech, trials, "trial", seed),
        )
        for seed in range(seeds)
    ]
    return [attacker.attack(speech, outputs) for attacker in known]


# Tables


def missed_budgets(rhos: dict[str, dict[str, Rho]]) -> list[str]:
    """Sentences; `rhos` by method and gender."""
    missed = []
    for gender, (low, high) in PUBLISHED.items():
        if "mcadams-2022" not in rhos:
            continue
        b2 = rhos["mcadams-2022"][gender].mean
        if not low <= round(b2, 2) <= high:
            missed.append(f"mcadams-2022, {gender}: ρF0 {b2:.3f} lies outside of {low} to {high}.")
        missed += [
            f"{name}, {gender}: ρF0 {found[gender].mean:.3f} is not above that of mcadams-2022, {b2:.3f}."
            for name, found in rhos.items()
            if name.startswith("pitch-shift") and found[gender].mean <= b2
        ]
    return missed


def print_speed(chosen: Sequence[Anonymizer], speech: Speech, rounds: int) -> None:
    print(f"\nseconds of audio per second, on {TIMED_S} s, best of {rounds}; ratios to B2 frame by frame, one thread\n")
    print_heading("method", "one thread, processor time", "ratio", "two threads", "two processes", "ratio")
    for method in chosen:
        speed = measure_speed(method, speech, rounds)
        single, pair = f"{speed.one_thread:.0f}", (f"{speed.two_threads:.0f}", f"{speed.two_processes:.0f}")
        print_row(f"`{method.name}`", single, f"{speed.ratio:.1f}", *pair, f"{speed.ratio_on_two:.1f}")


def print_pitch(chosen: Sequence[Anonymizer], speech: Speech, count: int) -> int:
    """The number of missed budgets."""
    print(f"\nρF0, {count} utterances of each gender and corpus: mean ± deviation over utterances\n")
    print_heading("method", "F", "M", *(f"{gender}, {corpus}" for gender in PUBLISHED for corpus in CORPORA))
    contours, rhos = Contours(), {}
    for method in chosen:
        rhos[method.name] = found = measure_pitch_correlation(method, speech, count, contours)
        means = [mean for rho in found.values() for mean in rho.by_corpus]
        both = (f"{rho.mean:.3f} ± {rho.deviation:.3f}" for rho in found.values())
        print_row(f"`{method.name}`", *both, *(f"{mean:.3f}" for mean in means))
    missed = missed_budgets(rhos)
    print("\n" + ("\n".join(missed) if missed else "within the budget"))
    return len(missed)


def print_attacks(chosen: Sequence[Anonymizer], speech: Speech, seeds: int, model: Path | None) -> None:
    trials = speech.side("trial")
    spoken = len({trial.speaker for trial in trials})
    print(f"\nEER by attacker, {seeds} plans of voices of {spoken} speakers, {len(trials)} trial utterances\n")
    known = attackers(speech, model)
    print_heading("method", *(f"{each.name}: {kind}" for each in known for kind in ATTACKS))
    print_row("original speech", *map(percentages, (each.unprotected(speech) for each in known)))
    for method in chosen:
        print_row(f"`{method.name}`", *map(percentages, measure_rates(method, speech, seeds, known)))


def percentages(rates: Rates) -> str:
    return " | ".join(f"{rate:.1%}" for rate in astuple(rates))


def print_heading(*cells: str) -> None:
    print_row(*cells)
    print("| --- |" + " ---: |" * (len(cells) - 1))


def print_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Every anonymiser on real speech.")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="of the registry; all where none is named")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS[:3], help="what to measure")
    parser.add_argument("--utterances", type=int, default=4, help="of each speaker at most, 4 at least (default 4)")
    parser.add_argument("--pitch", type=int, default=40, help="utterances of each gender and corpus (default 40)")
    parser.add_argument("--attack-seeds", type=int, default=1, help="plans of voices for attackers (default 1)")
    parser.add_argument("--rounds", type=int, default=3, help="speed is the best of so many")
    parser.add_argument("--wespeaker", type=Path, metavar="FILE", help="ONNX model of WeSpeaker as a second attacker")
    parser.add_argument("--speakers", type=int, default=8, help="of the comparison (default 8)")
    parser.add_argument("--sweep", default="", metavar="OPTION=A,B,…", help="print the comparison for these values")
    parser.add_argument(
        "--per-speaker", type=int, help="utterances of each in the comparison (default 4, for acceptance 8)"
    )
    parser.add_argument("--out", type=Path, default=FILE, metavar="FILE", help="where it is kept")
    return parser.parse_args()


def main() -> int:
    """The number of missed budgets."""
    options = parse()
    if not (SPEECH / "utterances.csv").is_file():
        print(f"skipped: the real speech of {SPEECH} is not here")
        return 0
    if kept := [part for part in ("comparison", "semi-informed", "acceptance") if part in options.parts]:
        name, _, values = options.sweep.partition("=")
        sweep = (name, [float(value) for value in values.split(",")]) if name else None
        able = [get_method(name) for name in options.methods] if options.methods else methods()
        able = [one for one in able if not one.missing()]
        for part in kept:
            whole = not options.methods
            compare(able, options.speakers, options.per_speaker, sweep, part, options.out, is_whole=whole)
        return 0
    speech = read_speech(max(4, options.utterances))
    print(f"{len(speech.utterances)} utterances of {len(speech.by_speaker)} speakers, {speech.duration_s / 60:.1f} min")
    chosen = []
    for method in [get_method(name) for name in options.methods] if options.methods else methods():
        if missing := method.missing():
            print(f"not run: {method.name}. {missing}")
        elif takes_targets(method):
            print(f"not run: {method.name}, whose voices are those of targets: see --parts comparison")
        elif plans_voices(method):
            print(f"not run: {method.name}, whose voices are mixtures: see docs/methods.md")
        else:
            chosen.append(method)
    missed = print_pitch(chosen, speech, options.pitch) if "pitch" in options.parts else 0
    if "attackers" in options.parts:
        print_attacks(chosen, speech, options.attack_seeds, options.wespeaker)
    if "speed" in options.parts:
        print_speed(chosen, speech, options.rounds)
    return missed


if __name__ == "__main__":
    sys.exit(main())
