"""``naturalness``: what a network predicts that listeners would say of some speech."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from evaluation.commands.terminal import (
    FINE,
    PROBLEMS,
    CommandError,
    problem_rows,
    report_problems,
    say,
    say_json,
    say_table,
    say_wrapped,
    warn,
    with_progress,
)
from evaluation.formats.audio import AudioError, read_pcm16, resample
from evaluation.formats.audio_pairs import list_utterances
from evaluation.formats.csv_cells import harmless_cell
from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.summary import Summary, summarise
from evaluation.predictors.dnsmos import LABELS, RATE_HZ, WORTH, PredictedNaturalness, load_dnsmos

DESCRIPTION = (
    "Predicted naturalness (DNSMOS P.835 and P.808, from 1 to 5) of the utterances of a folder or Kaldi directory. "
    + WORTH
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("audio", type=Path, metavar="AUDIO_DIR", help="folder of audio, or Kaldi directory")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where it runs (default cpu)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the predictions of each utterance")


def run(options: argparse.Namespace) -> int:
    """Predict for every utterance; the exit code."""
    files, problems = list_utterances(options.audio)
    if not files:
        raise CommandError(problems[0].sentence())
    failures: list[str] = []
    predicted = dict(_predicted(files, options.device, failures))
    if not predicted:
        raise CommandError(failures[0])
    if options.csv:
        _write(options.csv, predicted)
    summaries = {key: summarise([getattr(one, key) for one in predicted.values()]) for key in LABELS}
    if options.json:
        say_json({
            "is_predicted": True,
            "worth": WORTH,
            "summaries": {key: asdict(summary) for key, summary in summaries.items()},
            "utterances": {name: asdict(one) for name, one in predicted.items()},
            "failed": failures,
            "problems": problem_rows(problems),
        })  # fmt: skip
    else:
        _say(summaries)
    for sentence in failures:
        warn(f"error: {sentence}")
    code = report_problems(problems)
    return PROBLEMS if failures else code or FINE


def _predicted(
    files: Mapping[str, Path], device: str, failures: list[str]
) -> Iterator[tuple[str, PredictedNaturalness]]:
    """The predictions of each file; the sentences of files without one go to `failures`."""
    predictor = load_dnsmos("cuda" if device == "cuda" else "cpu")
    for utterance, path in with_progress(files.items(), len(files), "utterances"):
        try:
            samples, rate = read_pcm16(path)
            at_rate = samples if rate == RATE_HZ else resample(samples, rate, RATE_HZ)
            yield utterance, predictor.predict(at_rate)
        except AudioError as error:
            failures.append(error.problem(str(path)).sentence())
        except MetricInputError as error:
            failures.append(f"{path}: {error}")


def _say(summaries: Mapping[str, Summary]) -> None:
    rows = [[LABELS[key], f"{one.mean:.2f}", f"{one.std:.2f}", str(one.n)] for key, one in summaries.items()]
    say_table(["", "mean", "std", "n"], rows)
    say()
    say_wrapped(WORTH)


def _write(path: Path, predicted: Mapping[str, PredictedNaturalness]) -> None:
    header = ["utterance", *(f"predicted_{key}" for key in LABELS), "windows"]
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            for name, one in predicted.items():
                writer.writerow([harmless_cell(name), *(getattr(one, key) for key in LABELS), one.windows])
    except OSError as error:
        raise CommandError(f"{path}: expected a file that can be written, found “{error.strerror}”.") from error
