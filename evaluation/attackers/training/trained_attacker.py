"""A recogniser that was trained here, as an engine like any other, and the values that its training measured.

Its folder holds the weights, what they are, and the values of its epochs; a folder that lacks one of them, or whose
weights are not those that were written with the rest, is refused. `CHECKPOINT` is everything that a training needs to
go on, and is gone when it has ended. Error rates are shares of held-out segments that the classifier takes for another
speaker, without the margin; beside each stands what guessing would give. Conventions: epochs are counted from 1; None
where a number does not exist; others as in `speech.encoders.contract`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from common.arrays import Samples
from common.atomic_write import write_atomically
from common.errors import InputError
from evaluation.attackers.back_ends import Plda
from evaluation.attackers.training.corpus import Segments
from evaluation.attackers.training.recipe import TrainingRecipe, find_missing_libraries
from speech.encoders.contract import Device, SpeakerEncoder, Vectors
from speech.encoders.ecapa_voxceleb import LogMelEncoder
from speech.model_files.checkpoints import load_state, save_checkpoint
from speech.model_files.devices import require_torch_device

if TYPE_CHECKING:
    from torch import nn

    from speech.encoders.networks import EcapaTdnn, XvectorTdnn

CHECKPOINT = "checkpoint.pt"
MODEL = "model.safetensors"
BACK_END = "back_end.npz"  # where the recipe has one that is fitted
DESCRIPTION = "recipe.json"
VALUES = "values.csv"


Value = float | None

MEASURES = (
    "loss",
    "source_loss",
    "target_loss",
    "source_error",
    "target_error",
    "source_chance",
    "target_chance",
    "target_chance_known_gender",
    "learning_rate",
    "target_weight",
)


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of a training.

    Attributes:
        epoch: from 1.
        seconds: it took, validation included.
        values: by the names in `MEASURES`.
    """

    epoch: int
    seconds: float
    values: Mapping[str, Value]


@dataclass(frozen=True)
class TrainingEstimate:
    """How long a training will take, judged by its first steps.

    Attributes:
        seconds_per_step: of the steps so far.
        steps_left: of the recogniser.
        seconds_left: for these, validation included.
    """

    seconds_per_step: float
    steps_left: int
    seconds_left: float


@dataclass(frozen=True)
class ProbeResult:
    """How often a fresh linear classifier of frozen vectors is wrong on vectors that it has not seen.

    Attributes:
        error: share of the test vectors.
        chance: error of guessing among the classes.
        n_train, n_test: vectors.
        classes: number of speakers that the network classifies.
        split: what it was tested on: ``segment``, held-out segments of the same sources; ``training segment``, segments
            that the recogniser has learnt from, where none is held out; ``source``, other sources in training.
    """

    error: float
    chance: float
    n_train: int
    n_test: int
    classes: int
    split: str


@dataclass(frozen=True)
class FinalValues:
    """A training that has ended.

    Attributes:
        source_error, target_error: validation errors (VER_S, VER_T) of the weights that were kept.
        source_chance, target_chance, target_chance_known_gender: errors of guessing, as in `chance_levels`.
        training_segments, held_out_segments, n_sources, n_targets: counts.
        seconds: of all epochs.
        target_probe: error of a fresh probe on targets, other segments.
        target_probe_other_sources: the same where the test sources are others than those it was fitted on.
        source_probe: error of a fresh probe on sources.
        unused_utterances: none of whose pieces is as long and as loud as the recipe wants; they taught nothing.
        own_eer: equal error rate on held-out segments of the training sources, each against the mean of a source's
            training segments by cosine, a share; None where none is held out.
        own_eer_open: what equal scores leave open of that rate, which is None then; else empty.
    """

    source_error: Value
    target_error: Value
    source_chance: float
    target_chance: Value
    target_chance_known_gender: Value
    training_segments: int
    held_out_segments: int
    n_sources: int
    n_targets: int
    seconds: float
    target_probe: ProbeResult | None
    target_probe_other_sources: ProbeResult | None
    source_probe: ProbeResult | None
    unused_utterances: int = 0
    own_eer: Value = None
    own_eer_open: str = ""

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> FinalValues:
        """From what `dataclasses.asdict` gave.

        Raises:
            KeyError, TypeError: other content.
        """
        values = {
            field.name: given[field.name] for field in fields(cls) if field.name in given or field.default is MISSING
        }
        for name in ("target_probe", "target_probe_other_sources", "source_probe"):
            values[name] = None if values[name] is None else ProbeResult(**values[name])
        return cls(**values)


def chance_levels(segments: Segments, *, with_targets: bool = True) -> dict[str, Any]:
    """Return errors of guessing on the held-out rows; on all rows where none is held out.

    Args:
        with_targets: whether a target classifier guesses too.

    Returns:
        ``source_chance`` among all sources; ``target_chance`` among all targets, None where they are unknown;
        ``target_chance_known_gender`` among the targets that sources of the same gender get, which is what a recogniser
        that only hears the gender can reach, None where targets or genders are unknown.
    """
    target, known_gender = None, None
    if with_targets and segments.targets:
        target = 1 - 1 / len(segments.targets)
        genders = np.unique(segments.gender)
        if genders.size and "" not in genders:
            seen = {str(one): len(np.unique(segments.target[segments.gender == one])) for one in genders}
            rows = segments.validation_rows if segments.held_out.any() else segments.training_rows
            known_gender = float(np.mean([1 - 1 / seen[str(one)] for one in segments.gender[rows]]))
    source = 1 - 1 / len(segments.sources)
    return {"source_chance": source, "target_chance": target, "target_chance_known_gender": known_gender}


def epochs_csv(records: Sequence[EpochRecord]) -> str:
    """Return a line for each epoch; numbers read back the same, an empty cell is a number that does not exist."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["epoch", "seconds", *MEASURES])
    for one in records:
        cells = [one.values.get(name) for name in MEASURES]
        writer.writerow([one.epoch, repr(one.seconds), *("" if cell is None else repr(cell) for cell in cells)])
    return text.getvalue()


def epochs_of_csv(text: str, name: str) -> tuple[EpochRecord, ...]:
    """Return the epochs of `epochs_csv`.

    Raises:
        InputError: other content; names the file.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(text)))
        return tuple(
            EpochRecord(
                int(row["epoch"]),
                float(row["seconds"]),
                {each: float(row[each]) if row[each] else None for each in MEASURES},
            )
            for row in rows
        )
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise InputError(f"{name}: expected the values of the epochs of a training, found other text.") from error


FORMAT = 1


@dataclass(frozen=True)
class AttackerDescription:
    """What a folder says about its weights.

    Attributes:
        recipe, seed: how they came about.
        sources, targets: whom the recogniser distinguished; no targets without a target classifier.
        training_mean: mean vector of the training segments, shape (d,).
        final: what the training measured at its end.
        kept_epoch: whose weights these are.
        key: of recipe, seed and corpus, as `epochs.training_key` makes it.
        model_sha256: of the file of weights; `save_trained` sets it.
        back_end_sha256: of the file of the back end; empty where the recipe compares by cosine.
        system: name of the anonymiser on whose speech it was trained; empty where it was not given.
    """

    recipe: TrainingRecipe
    seed: int
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    training_mean: npt.NDArray[np.float32]
    final: FinalValues
    kept_epoch: int
    key: str
    model_sha256: str = ""
    back_end_sha256: str = ""
    system: str = ""


class TrainedAttacker:
    """Weights, description and epochs; embeds utterances."""

    def __init__(
        self,
        encoder: EcapaTdnn | XvectorTdnn,
        description: AttackerDescription,
        epochs: tuple[EpochRecord, ...],
        folder: Path,
        device: Device,
    ) -> None:
        self.description, self.epochs, self.folder, self.device = description, epochs, folder, device
        self._encoder = LogMelEncoder(encoder, device)

    @property
    def recipe(self) -> TrainingRecipe:
        return self.description.recipe

    @property
    def seed(self) -> int:
        return self.description.seed

    @property
    def training_mean(self) -> npt.NDArray[np.float32]:
        """Return mean vector of the training segments, shape (d,): the recipe says whether it is taken off before
        scoring."""
        return self.description.training_mean

    @property
    def summary(self) -> FinalValues:
        return self.description.final

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """Return vectors, not normalised and not centred, float32, shape (n, d).

        Raises:
            InputError: another rate than 16 kHz, an utterance below 0.1 s or silent throughout; names its
                position.
        """
        return self._encoder.embed(utterances, rate_hz)


class CentredEncoder:
    """An encoder whose vectors have the mean vector of its training taken off, shape (d,)."""

    def __init__(self, encoder: SpeakerEncoder, mean: Vectors) -> None:
        self._encoder, self._mean = encoder, mean

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """As `speech.encoders.contract.SpeakerEncoder`."""
        return np.asarray(self._encoder.embed(utterances, rate_hz) - self._mean, np.float32)


def attacking_encoder(attacker: TrainedAttacker) -> SpeakerEncoder:
    """Return what an attack takes its vectors from: centred by the mean of the training where the recipe asks for
    it."""
    return CentredEncoder(attacker, attacker.training_mean) if attacker.recipe.centre else attacker


def save_trained(
    folder: Path,
    encoder: nn.Module,
    epochs: Sequence[EpochRecord],
    description: AttackerDescription,
    back_end: Plda | None = None,
) -> None:
    """Write a finished training; the description comes last and makes the folder whole."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = description.recipe
    save_checkpoint(folder / MODEL, encoder, {"architecture": recipe.network, "recipe": recipe.name})
    write_atomically(folder / VALUES, epochs_csv(epochs).encode())
    if back_end is not None:
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, **back_end.arrays())
        write_atomically(folder / BACK_END, packed.getvalue())
    content = asdict(description) | {
        "format": FORMAT,
        "recipe": json.loads(recipe.to_json()),
        "training_mean": description.training_mean.tolist(),
        "model_sha256": hashlib.sha256((folder / MODEL).read_bytes()).hexdigest(),
        "back_end_sha256": "" if back_end is None else hashlib.sha256((folder / BACK_END).read_bytes()).hexdigest(),
    }
    write_atomically(folder / DESCRIPTION, json.dumps(content, ensure_ascii=False, indent=1).encode())


def is_finished(folder: Path) -> bool:
    """Return whether a training has ended in this folder."""
    return (folder / DESCRIPTION).is_file()


def read_description(folder: Path) -> AttackerDescription:
    """Return what a folder says about its weights, without loading them.

    Raises:
        InputError: missing, damaged, or of another version.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        raise InputError(
            f"{folder}: expected a trained recogniser with {MODEL}, {DESCRIPTION} and {VALUES}, found no "
            f"{DESCRIPTION}. Train it to its end, or name another folder."
        )
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        if given["format"] != FORMAT:
            raise InputError(f"{path}: expected format {FORMAT}, found {given['format']}. Train it again.")
        values: dict[str, Any] = {
            "recipe": TrainingRecipe.from_json(json.dumps(given["recipe"])),
            "sources": tuple(given["sources"]),
            "targets": tuple(given["targets"]),
            "training_mean": np.array(given["training_mean"], dtype=np.float32),
            "final": FinalValues.from_mapping(given["final"]),
            "back_end_sha256": given.get("back_end_sha256", ""),
            "system": str(given.get("system", "")),
        }
        return AttackerDescription(
            **values, **{name: given[name] for name in ("seed", "kept_epoch", "key", "model_sha256")}
        )
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InputError(
            f"{path}: expected the description of a trained recogniser, found a damaged file. Copy or train it again."
        ) from error


def load_trained(folder: Path, device: Device = "cpu") -> TrainedAttacker:
    """Return the recogniser of a folder.

    Raises:
        InputError: a file is missing or damaged, the weights are not those of the description, or torch is not
            installed; says which and what to do.
    """
    require_torch(device)
    from evaluation.attackers.training.heads import build_encoder

    description = read_description(folder)
    for name in (MODEL, VALUES):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: expected {name} beside {DESCRIPTION}, found none. Copy it again.")
    _require_bytes(folder / MODEL, "weights", description.model_sha256)
    epochs = epochs_of_csv((folder / VALUES).read_text(encoding="utf-8"), str(folder / VALUES))
    encoder = build_encoder(description.recipe)
    load_state(folder / MODEL, encoder)
    return TrainedAttacker(encoder, description, epochs, folder, device)


def read_back_end(folder: Path) -> Plda | None:
    """Return what compares the vectors of a folder's recogniser, without loading it; None where it is the cosine.

    Raises:
        InputError: missing, or not the one of the description.
    """
    description = read_description(folder)
    if not description.back_end_sha256:
        return None
    path = folder / BACK_END
    if not path.is_file():
        raise InputError(f"{folder}: expected {BACK_END} beside {DESCRIPTION}, found none. Copy it again.")
    _require_bytes(path, "back end", description.back_end_sha256)
    with np.load(path, allow_pickle=False) as arrays:
        return Plda.from_arrays(arrays)


def _require_bytes(path: Path, what: str, sha256: str) -> None:
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise InputError(
            f"{path}: expected the {what} that {DESCRIPTION} names by SHA-256, found other bytes. Copy or train again."
        )


def require_torch(device: Device) -> None:
    """Refuse where the libraries or the device are missing.

    Raises:
        InputError: torch or safetensors is not installed, or there is no graphics card.
    """
    if sentence := find_missing_libraries():
        raise InputError(sentence)
    require_torch_device(device)
