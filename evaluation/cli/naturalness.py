"""``vp naturalness``: what a network predicts that listeners would say of some speech."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from common import terminal
from common.errors import CommandError, InputError
from common.parameters import AsJson
from common.problems import find_first_error
from evaluation.cli.arguments import Device, finish, write_csv
from evaluation.formats.audio_pairs import list_utterances
from evaluation.metrics.averages import Summary, summarise
from speech.audio.files import AudioError, read_pcm16, resample
from speech.predictors.dnsmos import LABELS, RATE_HZ, WORTH, PredictedNaturalness, load_dnsmos


def naturalness(
    audio: Annotated[Path, Argument(metavar="AUDIO_DIR", help="Folder of audio, or Kaldi directory.")],
    device: Device = "cpu",
    csv: Annotated[Path | None, Option(metavar="FILE", help="Write the predictions of each utterance.")] = None,
    as_json: AsJson = False,
) -> int:
    """Predict the naturalness of a folder of speech: DNSMOS P.835 and P.808, from 1 to 5.

    A network predicts it; ratings of listeners are another thing.

        vp naturalness anonymised --csv naturalness.csv
    """
    files, problems = list_utterances(audio)
    if not files:
        raise CommandError(find_first_error(problems).sentence())
    failures: list[str] = []
    predicted = dict(_predicted(files, device, failures))
    if not predicted:
        raise CommandError(failures[0])
    if csv:
        header = ["utterance", *(f"predicted_{key}" for key in LABELS), "windows"]
        rows = [[name, *(getattr(one, key) for key in LABELS), one.windows] for name, one in predicted.items()]
        write_csv(csv, [header, *rows])
    summaries = {key: summarise([getattr(one, key) for one in predicted.values()]) for key in LABELS}
    if as_json:
        terminal.print_json(
            {
                "is_predicted": True,
                "worth": WORTH,
                "summaries": {key: asdict(summary) for key, summary in summaries.items()},
                "utterances": {name: asdict(one) for name, one in predicted.items()},
                "failed": failures,
                "problems": terminal.problem_rows(problems),
            }
        )
    else:
        _print_all(summaries)
    return finish(failures, problems)


def _predicted(
    files: Mapping[str, Path], device: Literal["cpu", "cuda"], failures: list[str]
) -> Iterator[tuple[str, PredictedNaturalness]]:
    """Yield the predictions of each file; the sentences of files without one go to `failures`."""
    predictor = load_dnsmos(device)
    for utterance, path in terminal.track_progress(files.items(), len(files), "utterances"):
        try:
            samples, rate = read_pcm16(path)
            at_rate = samples if rate == RATE_HZ else resample(samples, rate, RATE_HZ)
            yield utterance, predictor.predict(at_rate)
        except AudioError as error:
            failures.append(error.problem(str(path)).sentence())
        except InputError as error:
            failures.append(f"{path}: {error}")


def _print_all(summaries: Mapping[str, Summary]) -> None:
    rows = [[LABELS[key], f"{one.mean:.2f}", f"{one.std:.2f}", str(one.n)] for key, one in summaries.items()]
    terminal.print_table(["", "mean", "std", "n"], rows)
    terminal.print_text()
    terminal.print_paragraph(WORTH)
