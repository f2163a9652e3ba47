"""``pitch``: the pitch correlation of each utterance of two folders, and of the set."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, astuple, dataclass, fields
from functools import partial
from pathlib import Path

from common import terminal
from common.errors import CommandError, InputError
from common.problems import Problem, Severity
from evaluation.cli.arguments import finish, number_from, write_csv
from evaluation.formats.audio_pairs import AudioPair, match_audio
from evaluation.metrics.averages import Summary, summarise
from evaluation.metrics.catalogue import PITCH_METRICS, Metric, format_heading, format_value
from evaluation.metrics.pitch import BAND_S, FLOORS_OF_UNRELATED_SPEECH, compare_pitch
from speech.audio.files import AudioError, check_stated_rate, read_pcm16
from speech.pitch.estimators import ESTIMATORS

DESCRIPTION = (
    "Pitch correlation of the utterances of two folders (WAV or FLAC files, matched by name in any layout) or two "
    "Kaldi directories (matched by the ids of wav.scp)."
)


@dataclass(frozen=True, slots=True)
class PitchRow:
    """One utterance; None where a correlation is not defined or was not asked for."""

    utterance: str
    pitch_correlation: float
    pitch_correlation_voiced: float | None
    pitch_correlation_realigned: float | None
    lag_frames: int
    n_jointly_voiced: int
    duration_difference_ms: float
    estimator: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("original", type=Path, metavar="ORIGINAL_DIR", help="folder of audio, or Kaldi directory")
    parser.add_argument("anonymised", type=Path, metavar="ANONYMISED_DIR", help="the same utterances, anonymised")
    parser.add_argument(
        "--estimator", choices=tuple(ESTIMATORS), default="praat", help="F0 estimator (default praat, official)"
    )
    parser.add_argument("--realign", action="store_true", help="also compute it after dynamic time warping (slower)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the numbers of each utterance")
    parser.add_argument(
        "--jobs",
        type=number_from(0, "a number of processes"),
        default=1,
        metavar="N",
        help="number of processes (default 1; 0: one for each core)",
    )


def run(options: argparse.Namespace) -> int:
    """Measure every pair; the exit code."""
    matched = match_audio(options.original, options.anonymised)
    if not matched.pairs:
        of_names = ("missing-utterance", "extra-utterance")
        if reasons := [one for one in matched.problems if one.severity is Severity.ERROR and one.code not in of_names]:
            raise CommandError(reasons[0].sentence())
        missing = [one.found for one in matched.problems if one.code == of_names[0]]
        unlike = next((found for found in missing if found != "none"), "none")
        raise CommandError(
            f"{options.original} and {options.anonymised}: expected the same utterances in both, found {unlike}."
        )
    rows: list[PitchRow] = []
    failures: list[str] = []
    for outcome in _measured(matched.pairs, options):
        (rows if isinstance(outcome, PitchRow) else failures).append(outcome)  # type: ignore[arg-type]
    if not rows:
        raise CommandError(failures[0])
    if options.csv:
        write_csv(options.csv, [[field.name for field in fields(PitchRow)], *map(astuple, rows)])
    if options.json:
        terminal.print_json(_content(rows, failures, matched.problems))
    else:
        _print_summary(rows, options)
    return finish(failures, matched.problems)


def _measured(pairs: Sequence[AudioPair], options: argparse.Namespace) -> Iterator[PitchRow | str]:
    """Outcomes in the order of the pairs: a row, or a sentence that says why there is none."""
    measure = partial(_measure, estimator=options.estimator, realign=options.realign)
    jobs = min(options.jobs or len(os.sched_getaffinity(0)), len(pairs))
    if jobs == 1:
        yield from map(measure, terminal.track_progress(pairs, len(pairs), "utterances"))
        return
    with ProcessPoolExecutor(jobs) as pool:
        chunk = max(1, min(20, len(pairs) // (4 * jobs)))
        yield from terminal.track_progress(pool.map(measure, pairs, chunksize=chunk), len(pairs), "utterances")


def _measure(pair: AudioPair, *, estimator: str, realign: bool) -> PitchRow | str:
    place = pair.original
    try:
        original, rate = read_pcm16(pair.original)
        place = pair.anonymised
        anonymised, other_rate = read_pcm16(pair.anonymised)
        check_stated_rate(anonymised.size, other_rate, original=original.size, original_hz=rate)
    except AudioError as error:
        return error.problem(str(place)).sentence()
    try:
        compared = compare_pitch(
            original, anonymised, rate, rate_anonymised=other_rate, estimator=estimator, realign=realign
        )
    except InputError as error:
        return f"{pair.utterance}: {error}"
    found = compared.correlation
    return PitchRow(
        utterance=pair.utterance,
        pitch_correlation=found.rho,
        pitch_correlation_voiced=found.rho_voiced,
        pitch_correlation_realigned=compared.realigned.rho_voiced if compared.realigned else None,
        lag_frames=found.lag_frames,
        n_jointly_voiced=found.n_jointly_voiced,
        duration_difference_ms=1000 * (anonymised.size / other_rate - original.size / rate),
        estimator=compared.estimator,
    )


def _summaries(rows: Sequence[PitchRow]) -> dict[str, tuple[Metric, Summary]]:
    """Return mean, deviation and number of the utterances for which each correlation is defined."""
    keys = [field.name for field in fields(PitchRow) if field.name in PITCH_METRICS]
    values = {key: [getattr(row, key) for row in rows] for key in keys}
    defined = {key: [value for value in column if value is not None] for key, column in values.items()}
    return {key: (PITCH_METRICS[key], summarise(column)) for key, column in defined.items() if column}


def _print_summary(rows: Sequence[PitchRow], options: argparse.Namespace) -> None:
    table = [
        [format_heading(metric), format_value(summary.mean, metric), format_value(summary.std, metric), str(summary.n)]
        for metric, summary in _summaries(rows).values()
    ]
    terminal.print_table(["", "mean", "std", "n"], table)
    terminal.print_text(f"\nF0 by {rows[0].estimator}. Unrelated utterances reach about 0.25 in the first row.")
    if options.realign:
        mean, std = FLOORS_OF_UNRELATED_SPEECH["slope-limited", BAND_S]
        terminal.print_text(
            f"Realigned within {BAND_S:g} s, slopes 1/2 to 2: unrelated speech reaches {mean:.2f} ± {std:.2f} there."
        )
    if options.csv:
        terminal.print_text(f"Each utterance: {options.csv}")


def _content(rows: Sequence[PitchRow], failures: Sequence[str], problems: Sequence[Problem]) -> dict[str, object]:
    return {
        "estimator": rows[0].estimator,
        "summaries": {key: asdict(summary) for key, (_, summary) in _summaries(rows).items()},
        "utterances": [asdict(row) for row in rows],
        "failed": list(failures),
        "problems": terminal.problem_rows(problems),
    }
