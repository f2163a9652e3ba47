"""``vp train-attacker``: the semi-informed attacker's recogniser, trained on anonymised speech by several seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from common import terminal
from common.atomic_write import write_atomically
from common.errors import CommandError
from common.lock import lock_folder
from common.parameters import AsJson
from evaluation.attackers.training import trained_attacker
from evaluation.attackers.training.corpus import TrainingUtterance, read_corpus, require_sound
from evaluation.attackers.training.recipe import PRESETS, SEEDS, VARIANTS, TrainingRecipe, find_preset, with_variant
from evaluation.attackers.training.report import COLUMNS, spread_over_seeds, table_cells
from evaluation.attackers.training.train import train
from evaluation.attackers.training.trained_attacker import FinalValues
from evaluation.cli.arguments import Changes
from speech.encoders.contract import Device

RECIPE = "training.json"
LARGEST_SEED = 2**63 - 1  # of torch


def train_attacker(
    out: Annotated[Path, Argument(metavar="OUT", help="Folder for the results, one folder in it for each seed.")],
    data: Annotated[
        Path,
        Option(
            metavar="DIR|CSV",
            help="Anonymised speech: a folder SPEAKER/…/UTTERANCE.flac, or a CSV file with the columns path and "
            "source, and if known utterance_id, target, gender, original.",
        ),
    ],
    system: Annotated[
        str,
        Option(
            metavar="NAME",
            help="Name of the anonymiser that made this speech; vp attack --trained … --system NAME then knows whether "
            "it attacks the same one.",
        ),
    ] = "",
    preset: Annotated[
        str,
        Option(
            metavar="NAME",
            help=f"Recipe: {', '.join(PRESETS)}; spane, vpc24 and small train ECAPA-TDNN, the others an x-vector "
            "network.",
        ),
    ] = "small",
    variant: Annotated[
        str,
        Option(
            metavar="NAME",
            help=f"Target classifier: {', '.join(VARIANTS)}; measured only measures; literal and stabilised train "
            "against it.",
        ),
    ] = "none",
    targets: Annotated[
        Path | None, Option(metavar="CSV", help="Target of each utterance: columns utterance_id and target.")
    ] = None,
    changes: Changes = None,
    seeds: Annotated[
        list[int] | None,
        Option(
            "--seed",
            min=0,
            max=LARGEST_SEED,
            metavar="S",
            help=f"Seed of one training; repeat it for more. By default {', '.join(map(str, SEEDS))}.",
        ),
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Continue the training in OUT.")] = False,
    device: Annotated[Literal["auto", "cpu", "cuda"], Option(help="Where it runs; auto: cuda if present.")] = "auto",
    processes: Annotated[int, Option(min=1, metavar="N", help="Seeds trained at a time, with one thread each.")] = 1,
    as_json: AsJson = False,
) -> int:
    """Train ECAPA-TDNN, or an x-vector network, on anonymised speech, as a semi-informed attacker would.

    There is a folder for each seed, with the weights, the recipe and the values of every epoch as CSV. After each epoch
    the state is kept, so a stopped training continues with --resume.

        vp train-attacker trained --data training.csv --preset small --seed 1 --seed 2
    """
    recipe = _recipe(preset, variant, changes or ())
    chosen = _device(device)
    utterances = read_corpus(data, targets)
    require_sound(utterances, targets=recipe.target_head != "none")
    folders = {seed: out / f"seed-{seed}" for seed in dict.fromkeys(seeds or SEEDS)}
    if not resume:
        _require_fresh(folders.values())
    _write_recipe(out, recipe)
    if processes > 1 and len(folders) > 1:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            started = [
                pool.submit(_train_apart, data, targets, recipe.to_json(), seed, folder, chosen, system)
                for seed, folder in folders.items()
            ]
            for one in started:
                one.result()
    else:
        for seed, folder in folders.items():
            _train_one(utterances, recipe, seed, folder, chosen, system, bar=True)
    trainings = {seed: trained_attacker.read_description(folder).final for seed, folder in folders.items()}
    if as_json:
        terminal.print_json(_content(recipe, trainings, folders.values()))
    else:
        _print_report(trainings, folders.values())
    return terminal.FINE


def _recipe(name: str, variant: str, changes: Sequence[str]) -> TrainingRecipe:
    for option, given, known in (("preset", name, PRESETS), ("variant", variant, VARIANTS)):
        if given not in known:
            raise CommandError(f"--{option}: expected one of {', '.join(known)}, found “{given}”.")
    preset = find_preset(name)
    values = dict(_change(one, preset) for one in changes)
    # The number of epochs first: the variant's own epochs follow from it.
    recipe = preset.changed(**{name: value for name, value in values.items() if name == "epochs"})
    return with_variant(recipe, variant).changed(**values)


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
