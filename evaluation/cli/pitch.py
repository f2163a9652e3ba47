"""``vp pitch``: the pitch correlation of each utterance of two folders, and of the set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, astuple, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from common import terminal
from common.cores import count_cores
from common.errors import CommandError, InputError
from common.parameters import AsJson
from common.problems import Problem, Severity
from evaluation.cli.arguments import finish, write_csv
from evaluation.formats.audio_pairs import AudioPair, match_audio
from evaluation.metrics.averages import Summary, summarise
from evaluation.metrics.catalogue import PITCH_METRICS, Metric, format_heading, format_value
from evaluation.metrics.pitch import BAND_S, FLOORS_OF_UNRELATED_SPEECH, compare_pitch
from speech.audio.files import AudioError, check_stated_rate, read_pcm16
from speech.pitch.estimators import ESTIMATORS


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


def pitch(
    original: Annotated[Path, Argument(metavar="ORIGINAL_DIR", help="Folder of audio, or Kaldi directory.")],
    anonymised: Annotated[Path, Argument(metavar="ANONYMISED_DIR", help="The same utterances, anonymised.")],
    estimator: Annotated[
        str, Option(metavar="NAME", help=f"F0 estimator: {', '.join(ESTIMATORS)}; praat is the official one.")
    ] = "praat",
    realign: Annotated[bool, Option("--realign", help="Also compute it after dynamic time warping (slower).")] = False,
    csv: Annotated[Path | None, Option(metavar="FILE", help="Write the numbers of each utterance.")] = None,
    jobs: Annotated[int, Option(min=0, metavar="N", help="Number of processes; 0: one for each core.")] = 1,
    as_json: AsJson = False,
) -> int:
    """Compute the pitch correlation of each utterance of two folders, and of the set.

    The folders hold WAV or FLAC files, matched by name in any layout, or are two Kaldi directories, matched by the ids
    of wav.scp.

        vp pitch original anonymised --csv pitch.csv
    """
    if estimator not in ESTIMATORS:
        raise CommandError(f"--estimator: expected one of {', '.join(ESTIMATORS)}, found “{estimator}”.")
    matched = match_audio(original, anonymised)
    if not matched.pairs:
        of_names = ("missing-utterance", "extra-utterance")
        if reasons := [one for one in matched.problems if one.severity is Severity.ERROR and one.code not in of_names]:
            raise CommandError(reasons[0].sentence())
        missing = [one.found for one in matched.problems if one.code == of_names[0]]
        unlike = next((found for found in missing if found != "none"), "none")
        raise CommandError(f"{original} and {anonymised}: expected the same utterances in both, found {unlike}.")
    rows: list[PitchRow] = []
    failures: list[str] = []
    for outcome in _measured(matched.pairs, partial(_measure, estimator=estimator, realign=realign), jobs):
        (rows if isinstance(outcome, PitchRow) else failures).append(outcome)  # type: ignore[arg-type]
    if not rows:
        raise CommandError(failures[0])
    if csv:
        write_csv(csv, [[field.name for field in fields(PitchRow)], *map(astuple, rows)])
    if as_json:
        terminal.print_json(_content(rows, failures, matched.problems))
    else:
        _print_summary(rows, realign=realign)
        if csv:
            terminal.print_text(f"Each utterance: {csv}")
    return finish(failures, matched.problems)


def _measured(
    pairs: Sequence[AudioPair], measure: Callable[[AudioPair], PitchRow | str], jobs: int
) -> Iterator[PitchRow | str]:
    """Outcomes in the order of the pairs: a row, or a sentence that says why there is none."""
    jobs = min(jobs or count_cores(), len(pairs))
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


def _print_summary(rows: Sequence[PitchRow], *, realign: bool) -> None:
    table = [
        [format_heading(metric), format_value(summary.mean, metric), format_value(summary.std, metric), str(summary.n)]
        for metric, summary in _summaries(rows).values()
    ]
    terminal.print_table(["", "mean", "std", "n"], table)
    terminal.print_text(f"\nF0 by {rows[0].estimator}. Unrelated utterances reach about 0.25 in the first row.")
    if realign:
        mean, std = FLOORS_OF_UNRELATED_SPEECH["slope-limited", BAND_S]
        terminal.print_text(
            f"Realigned within {BAND_S:g} s, slopes 1/2 to 2: unrelated speech reaches {mean:.2f} ± {std:.2f} there."
        )


def _content(rows: Sequence[PitchRow], failures: Sequence[str], problems: Sequence[Problem]) -> dict[str, object]:
    return {
        "estimator": rows[0].estimator,
        "summaries": {key: asdict(summary) for key, (_, summary) in _summaries(rows).items()},
        "utterances": [asdict(row) for row in rows],
        "failed": list(failures),
        "problems": terminal.problem_rows(problems),
    }
