"""``vp retrain-recognizer``: phone errors in anonymised speech by a recogniser trained on it, and by another."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from common import terminal
from common.atomic_write import write_atomically
from common.errors import CommandError
from common.lock import lock_folder
from common.parameters import AsJson
from evaluation.attackers.training.corpus import TrainingUtterance, read_corpus
from evaluation.cli.arguments import Changes, Device, read_changes, require_entries
from evaluation.formats.kaldi import read_text
from evaluation.formats.results import Speech
from evaluation.metrics.bootstrap import Interval
from evaluation.objective_results.phones import PhoneComparison, compare_phones
from evaluation.recognizer_training import frames
from speech.recognizers.phone_recipe import PhoneRecipe

_WORDS = {
    "ceiling": ("originals", "originals"),
    "retrained": ("anonymised speech", "anonymised speech"),
    "frozen": ("originals", "anonymised speech"),
}


def retrain_recognizer(
    out: Annotated[Path, Argument(metavar="OUT", help="Folder for frames, weights, phones and the comparison.")],
    training: Annotated[
        tuple[Path, Path],
        Option(
            metavar="ORIGINALS ANONYMISED",
            help="To learn from: a folder SPEAKER/…/UTTERANCE.flac, or a CSV file with the columns path, speaker and "
            "utterance_id, of each.",
        ),
    ],
    test: Annotated[tuple[Path, Path], Option(metavar="ORIGINALS ANONYMISED", help="To recognise, alike.")],
    text: Annotated[list[Path], Option(metavar="FILE", help="Transcripts of all of it (Kaldi text); may be repeated.")],
    seed: Annotated[int, Option(min=0, metavar="S", help="Of all that chance decides.")] = 1,
    changes: Changes = None,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> int:
    """Train one phone recogniser on original and one on anonymised speech, and count the phone errors of both.

    The comparison tells how much of the damage that a recogniser sees is gone once it knows the anonymised speech.
    English only. OUT keeps all of it; the same command continues what was stopped.

        vp retrain-recognizer out --training originals/train anonymised/train \\
            --test originals/test anonymised/test --text text
    """
    if sentence := frames.missing():
        raise CommandError(sentence)
    recipe = PhoneRecipe().changed(**read_changes(changes))
    texts: dict[str, str] = {}
    for path in text:
        entries: dict[str, str] = require_entries(read_text(path, str(path)))
        texts |= entries
    speech = {
        (part, kind): _with_texts(read_corpus(path), texts, path)
        for part, paths in (("training", training), ("test", test))
        for kind, path in zip(Speech, paths, strict=True)
    }
    with lock_folder(out, ".lock"), terminal.ProgressBar(lines="quarters") as bar:
        heard, references = _work(out, seed, device, recipe, speech, texts, bar.show)
    speakers = {one.identifier: one.source for one in speech["test", Speech.ORIGINAL]}
    found = compare_phones(references, heard, speakers)
    _write(out, references, heard)
    if as_json:
        terminal.print_json(_content(recipe, found))
    else:
        _print(found)
    return terminal.FINE


def _work(
    out: Path,
    seed: int,
    device: Literal["cpu", "cuda"],
    recipe: PhoneRecipe,
    speech: Mapping[tuple[str, Speech], Sequence[TrainingUtterance]],
    texts: Mapping[str, str],
    show: Callable[[str, int, int], None],
) -> tuple[dict[tuple[Speech, Speech], dict[str, str]], dict[str, str]]:
    """Return what each recogniser heard, and the phones of the test utterances."""
    from evaluation.recognizer_training.training import train_phones
    from speech.recognizers.phone_network import PhoneNetwork, save

    def read(part: str, kind: Speech) -> list[frames.SpokenText]:
        stage = partial(show, f"frames, {part}, {kind}")
        return frames.read_spoken_texts(speech[part, kind], texts, out / "frames", recipe, stage, device)

    networks: dict[Speech, PhoneNetwork] = {}
    for kind in Speech:
        material, stage = read("training", kind), partial(show, f"training, {kind}")
        state = out / f"{kind}.pt"
        fitted = train_phones(material, recipe, seed, state, stage, device)
        networks[kind] = fitted.network
        save(fitted.network, out / f"{kind}.safetensors")
    heard: dict[tuple[Speech, Speech], dict[str, str]] = {}
    references: dict[str, str] = {}
    for kind in Speech:
        tested = read("test", kind)
        references |= {one.name: one.phones for one in tested}
        for training in Speech:
            phones = networks[training].recognise([one.frames for one in tested])
            heard[training, kind] = dict(zip((one.name for one in tested), phones, strict=True))
    return heard, references


def _with_texts(
    utterances: Sequence[TrainingUtterance], texts: Mapping[str, str], path: Path
) -> Sequence[TrainingUtterance]:
    known = [one for one in utterances if texts.get(one.identifier)]
    if not known:
        raise CommandError(
            f"{path}: expected utterances that --text has transcripts of, found none among {len(utterances)}, such as "
            f"{utterances[0].identifier}. Name the files of transcripts as their utterances are named."
        )
    return known


def _write(out: Path, references: Mapping[str, str], heard: Mapping[tuple[Speech, Speech], Mapping[str, str]]) -> None:
    """The phones of every utterance, as a table."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["utterance_id", "transcript", *(f"{training}_on_{kind}" for training, kind in heard)])
    for name, phones in references.items():
        writer.writerow([name, phones, *(texts.get(name, "") for texts in heard.values())])
    write_atomically(out / "phones.csv", table.getvalue().encode())


def _print(found: PhoneComparison) -> None:
    rows = [
        [
            row.name,
            *_WORDS[row.name],
            f"{100 * row.error_rate:.1f}",
            _limits(row.interval),
            str(row.counts.reference_words),
        ]
        for row in found.rows
    ]
    header = ["recogniser", "trained on", "tested on", "phone error rate, %", "95 % interval", "phones"]
    terminal.print_table(header, rows, numbers_from=3)
    if found.retraining is not None and found.damage is not None:
        terminal.print_text(
            f"\nFrozen less ceiling: {_points(found.damage)}. Retrained less frozen: {_points(found.retraining)}."
        )
    if found.regained is not None:
        terminal.print_text(f"Training again takes back {100 * found.regained:.0f} % of the damage.")
    terminal.print_text("These are errors of phones: they are no word error rate and are not compared with one.")


def _limits(interval: Interval | None) -> str:
    return f"{100 * interval.lower:.1f} to {100 * interval.upper:.1f}" if interval else terminal.NONE


def _points(change: Interval) -> str:
    return f"{100 * change.estimate:+.1f} points ({100 * change.lower:+.1f} to {100 * change.upper:+.1f})"


def _content(recipe: PhoneRecipe, found: PhoneComparison) -> dict[str, object]:
    rows = []
    for row in found.rows:
        limits = (row.interval.lower, row.interval.upper) if row.interval else (None, None)
        rows.append(
            {
                "recogniser": row.name,
                "training": str(row.training),
                "speech": str(row.speech),
                "phone_error_rate": row.error_rate,
                "low": limits[0],
                "high": limits[1],
                "phones": row.counts.reference_words,
                "errors": row.counts.errors,
            }
        )
    changes = {
        name: asdict(one) if one else None for name, one in (("damage", found.damage), ("retraining", found.retraining))
    }
    return {
        "recipe": asdict(recipe),
        "rows": rows,
        **changes,
        "regained": found.regained,
        "utterances": found.utterances,
    }
