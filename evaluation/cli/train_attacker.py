"""``train-attacker``: train the semi-informed attacker's recogniser on anonymised speech, with one or several seeds."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from common import terminal
from common.atomic_write import write_atomically
from common.errors import CommandError
from common.lock import lock_folder
from evaluation.attackers.training import trained_attacker
from evaluation.attackers.training.corpus import TrainingUtterance, read_corpus, require_sound
from evaluation.attackers.training.recipe import PRESETS, SEEDS, VARIANTS, TrainingRecipe, find_preset, with_variant
from evaluation.attackers.training.report import COLUMNS, spread_over_seeds, table_cells
from evaluation.attackers.training.train import train
from evaluation.attackers.training.trained_attacker import FinalValues
from evaluation.cli.arguments import number_from
from speech.encoders.contract import Device

DESCRIPTION = (
    "Trains ECAPA-TDNN, or an x-vector network, on anonymised speech, as a semi-informed attacker would: a folder for "
    "each seed with the weights, the recipe and the values of every epoch as CSV. After each epoch the state "
    "is kept, so a stopped training continues with --resume."
)
RECIPE = "training.json"
LARGEST_SEED = 2**63 - 1  # of torch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the results, one folder in it for each seed")
    parser.add_argument(
        "--data",
        required=True,
        type=Path,
        metavar="DIR|CSV",
        help="anonymised speech: a folder SPEAKER/…/UTTERANCE.flac, or a CSV file with the columns path and source, "
        "and if known utterance_id, target, gender, original",
    )
    parser.add_argument(
        "--system",
        default="",
        metavar="NAME",
        help="name of the anonymiser that made this speech; attack --trained … --system NAME then knows whether it "
        "attacks the same one",
    )
    parser.add_argument(
        "--preset",
        default="small",
        choices=list(PRESETS),
        help="recipe (default small); spane, vpc24 and small train ECAPA-TDNN, the others an x-vector network",
    )
    parser.add_argument(
        "--variant",
        default="none",
        choices=list(VARIANTS),
        help="target classifier: measured only measures; literal and stabilised train against it (default none)",
    )
    parser.add_argument(
        "--targets", type=Path, metavar="CSV", help="target of each utterance: columns utterance_id and target"
    )
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="other values of the recipe, such as epochs=3 width=128",
    )
    parser.add_argument(
        "--seeds",
        type=number_from(0, f"a number from 0 to {LARGEST_SEED}", LARGEST_SEED),
        nargs="+",
        default=list(SEEDS),
        metavar="S",
        help="seeds; each is one training (default 1 2 3)",
    )
    parser.add_argument("--resume", action="store_true", help="continue the training in OUT")
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="where it runs (default auto: cuda if present)",
    )
    parser.add_argument(
        "--processes",
        type=number_from(1, "a number of processes of 1 or more"),
        default=1,
        metavar="N",
        help="seeds trained at a time, with one thread each (default 1)",
    )


def run(options: argparse.Namespace) -> int:
    """Train every seed, report; the exit code."""
    recipe = _recipe(options)
    device = _device(options.device)
    utterances = read_corpus(options.data, options.targets)
    require_sound(utterances, targets=recipe.target_head != "none")
    folders = {seed: options.out / f"seed-{seed}" for seed in dict.fromkeys(options.seeds)}
    if not options.resume:
        _require_fresh(folders.values())
    _write_recipe(options.out, recipe)
    if options.processes > 1 and len(folders) > 1:
        _train_side_by_side(options, recipe, device, folders)
    else:
        for seed, folder in folders.items():
            _train_one(utterances, recipe, seed, folder, device, options.system, bar=True)
    trainings = {seed: trained_attacker.read_description(folder).final for seed, folder in folders.items()}
    if options.json:
        terminal.print_json(_content(recipe, trainings, folders.values()))
    else:
        _print_report(trainings, folders.values())
    return terminal.FINE


def _recipe(options: argparse.Namespace) -> TrainingRecipe:
    preset = find_preset(options.preset)
    changes = dict(_change(one, preset) for one in options.set)
    # The number of epochs first: the variant's own epochs follow from it.
    recipe = preset.changed(**{name: value for name, value in changes.items() if name == "epochs"})
    return with_variant(recipe, options.variant).changed(**changes)


def _change(text: str, preset: TrainingRecipe) -> tuple[str, object]:
    name, _, value = text.partition("=")
    known = asdict(preset)
    if name not in known or not value:
        raise CommandError(f"--set: expected NAME=VALUE with a name among {', '.join(known)}, found “{text}”.")
    kind = type(known[name])
    if kind is bool:
        return name, {"yes": True, "no": False}.get(value, value)
    with suppress(ValueError):
        return name, kind(value)
    raise CommandError(f"--set: expected {name} as a number such as {known[name]}, found “{value}”.")


def _device(wanted: str) -> Device:
    trained_attacker.require_torch("cuda" if wanted == "cuda" else "cpu")
    if wanted != "auto":
        return "cuda" if wanted == "cuda" else "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _require_fresh(folders: Iterable[Path]) -> None:
    for folder in folders:
        if trained_attacker.is_finished(folder) or (folder / trained_attacker.CHECKPOINT).is_file():
            raise CommandError(
                f"{folder}: expected no training there yet, found one. Add --resume to go on with it, or name another "
                "folder."
            )


def _write_recipe(out: Path, recipe: TrainingRecipe) -> None:
    """Say in OUT what all its trainings are by.

    Raises:
        CommandError: they are by another recipe, or the folder cannot be written.
    """
    path, wanted = out / RECIPE, recipe.to_json()
    try:
        earlier = path.read_text(encoding="utf-8") if path.is_file() else wanted
        if earlier == wanted:
            out.mkdir(parents=True, exist_ok=True)
            write_atomically(path, wanted.encode())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        raise CommandError(f"{out}: expected a folder that can be written, found “{reason}”. Name another.") from error
    if earlier != wanted:
        raise CommandError(
            f"{path}: expected the recipe of this training, found another one. Name another folder, or give the "
            "preset, the variant and the values that it was begun with."
        )


def _train_side_by_side(
    options: argparse.Namespace, recipe: TrainingRecipe, device: Device, folders: dict[int, Path]
) -> None:
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        started = [
            pool.submit(
                _train_apart, options.data, options.targets, recipe.to_json(), seed, folder, device, options.system
            )
            for seed, folder in folders.items()
        ]
        for one in started:
            one.result()


def _train_apart(
    data: Path, targets: Path | None, recipe: str, seed: int, folder: Path, device: Device, system: str
) -> None:
    """In a process of its own, where two seeds would fight for the same cores with more than one thread."""
    import torch

    torch.set_num_threads(1)
    utterances = read_corpus(data, targets)
    _train_one(utterances, TrainingRecipe.from_json(recipe), seed, folder, device, system, bar=False)


def _train_one(
    utterances: Sequence[TrainingUtterance],
    recipe: TrainingRecipe,
    seed: int,
    folder: Path,
    device: Device,
    system: str,
    *,
    bar: bool,
) -> None:
    def show(stage: str, done: int, total: int) -> None:
        if bar and total:
            drawn.show(stage, done, total)

    def say_epoch(record: trained_attacker.EpochRecord) -> None:
        terminal.print_message(f"seed {seed}, epoch {record.epoch} of {recipe.epochs}: {_describe(record)}")

    def say_estimate(estimate: trained_attacker.TrainingEstimate) -> None:
        minutes = round(estimate.seconds_left / 60)
        left = f"about {minutes} min" if minutes else "less than a minute"
        terminal.print_message(f"seed {seed}: {left} for the rest of the training")

    with lock_folder(folder.parent, f".{folder.name}.lock"), terminal.ProgressBar() as drawn:
        train(
            utterances,
            recipe,
            seed,
            folder,
            show,
            on_epoch=say_epoch,
            on_estimate=say_estimate,
            device=device,
            system=system,
        )


def _describe(record: trained_attacker.EpochRecord) -> str:
    values = record.values
    parts = [f"loss {values['loss']:.3f}"]
    for name, key, chance in (("VER_S", "source_error", "source_chance"), ("VER_T", "target_error", "target_chance")):
        error, guess = values[key], values[chance]
        if error is not None and guess is not None:
            parts.append(f"{name} {100 * error:.1f} % (chance {100 * guess:.1f} %)")
    return f"{', '.join(parts)}; {record.seconds:.1f} s"


def _print_report(trainings: Mapping[int, FinalValues], folders: Iterable[Path]) -> None:
    every = list(trainings.values())
    header = ["seed", *(heading for _, heading in COLUMNS)]
    rows = [[str(seed), *table_cells([training])] for seed, training in trainings.items()]
    if len(rows) > 1:
        rows.append(["mean ± sample deviation", *table_cells(every)])
    terminal.print_table(header, rows, numbers_from=1)
    if spread_over_seeds(every, "target_error") is not None:
        terminal.print_text(
            "\nVER_T says how often the trained target classifier is wrong; where it was trained against the "
            "recogniser, only the fresh probe shows whether the vectors still contain the target."
        )
    if spread_over_seeds(every, "source_error") is None:
        terminal.print_text(
            f"\n{terminal.NONE}: nothing is held out by this recipe's rule, so no validation error exists, and the "
            "fresh probes were tested on segments that the recogniser has learnt from."
        )
    if unused := max(training.unused_utterances for training in every):
        terminal.print_text(
            f"\n{unused} utterances were not used: none of their segments is as long and as loud as the recipe "
            "requires (shortest_s, quietest_amplitude)."
        )
    for seed, training in trainings.items():
        if training.own_eer_open:
            terminal.print_text(
                f"\nSeed {seed}, held-out segments against their own speakers: {training.own_eer_open}."
            )
    terminal.print_text("\nTrained recognisers: " + ", ".join(str(folder) for folder in folders))


def _content(
    recipe: TrainingRecipe, trainings: Mapping[int, FinalValues], folders: Iterable[Path]
) -> dict[str, object]:
    spreads = {key: spread_over_seeds(list(trainings.values()), key) for key, _ in COLUMNS}
    return {
        "recipe": asdict(recipe),
        "seeds": [{"seed": seed} | asdict(training) for seed, training in trainings.items()],
        "over_seeds": {key: None if value is None else asdict(value) for key, value in spreads.items()},
        "folders": [str(folder) for folder in folders],
    }
