"""A recogniser that was trained here, as an engine like any other.

Its folder holds the weights, what they are, and the values of its epochs; a folder that lacks one of them, or whose
weights are not those that were written with the rest, is refused. Conventions as in `evaluation.attackers.contract`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evaluation.attackers.contract import Device, Engine, Samples, SpeakerEncoder, Vectors
from evaluation.attackers.devices import require_torch_device
from evaluation.attackers.ecapa_voxceleb import LogMelEncoder
from evaluation.attackers.training.files import DESCRIPTION, MODEL, VALUES
from evaluation.attackers.training.networks import build_encoder
from evaluation.attackers.training.recipe import Network, TrainingRecipe
from evaluation.attackers.training.values import EpochRecord, FinalValues, epochs_csv, epochs_of_csv
from evaluation.formats.whole_files import write_whole
from evaluation.metrics.errors import MetricInputError

if TYPE_CHECKING:
    from torch import nn

    from evaluation.attackers.networks.ecapa import EcapaTdnn
    from evaluation.attackers.networks.xvector import XvectorTdnn

FORMAT = 1
_SOURCES: dict[Network, str] = {
    "ecapa-tdnn": "B. Desplanques, J. Thienpondt, K. Demuynck, Interspeech 2020",
    "x-vector": "D. Snyder et al., ICASSP 2018; SpeechBrain",
}


@dataclass(frozen=True)
class Description:
    """What a folder says about its weights.

    Attributes:
        recipe, seed: how they came about.
        sources, targets: whom the recogniser told apart; no targets without a target classifier.
        training_mean: mean vector of the training segments, shape (d,).
        final: what the training measured at its end.
        kept_epoch: whose weights these are.
        key: of recipe, seed and corpus, as `fitting.training_key` makes it.
        model_sha256: of the file of weights.
    """

    recipe: TrainingRecipe
    seed: int
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    training_mean: npt.NDArray[np.float32]
    final: FinalValues
    kept_epoch: int
    key: str
    model_sha256: str


class TrainedAttacker:
    """Weights, description and epochs; embeds utterances."""

    def __init__(
        self, encoder: EcapaTdnn | XvectorTdnn, description: Description, epochs: tuple[EpochRecord, ...],
        folder: Path, device: Device,
    ) -> None:  # fmt: skip
        self.description, self.epochs, self.folder, self.device = description, epochs, folder, device
        self._encoder = LogMelEncoder(encoder, device)

    @property
    def recipe(self) -> TrainingRecipe:
        return self.description.recipe

    @property
    def seed(self) -> int:
        return self.description.seed

    @property
    def sources(self) -> tuple[str, ...]:
        return self.description.sources

    @property
    def targets(self) -> tuple[str, ...]:
        return self.description.targets

    @property
    def training_mean(self) -> npt.NDArray[np.float32]:
        """Mean vector of the training segments, shape (d,): the recipe says whether it is taken off before scoring."""
        return self.description.training_mean

    @property
    def summary(self) -> FinalValues:
        return self.description.final

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """Vectors, not normalised and not centred, float32, shape (n, d).

        Raises:
            MetricInputError: another rate than 16 kHz, an utterance below 0.1 s or silent throughout; names its
                position.
        """
        return self._encoder.embed(utterances, rate_hz)

    def engine(self) -> Engine:
        """As the registry describes its engines; loading reads the folder anew, and centres as the recipe says."""
        recipe, final = self.recipe, self.summary
        return Engine(
            name=f"trained-{recipe.name}-s{self.seed}",
            version=self.description.model_sha256[:12],
            title=f"Trained {recipe.network_title}, {recipe.name}, seed {self.seed}",
            description=(
                f"{recipe.network_title} of width {recipe.width}, trained from random weights on "
                f"{final.training_segments} segments of {final.n_sources} speakers in {recipe.epochs} epochs."
            ),
            dimension=recipe.embedding,
            weights=(),
            packages=("torch", "safetensors"),
            source=f"{_SOURCES[recipe.network]}; trained here",
            licence="that of the training speech",
            load=lambda device: attacking_encoder(load_trained(self.folder, device)),
        )


class CentredEncoder:
    """An encoder whose vectors have the mean vector of its training taken off, shape (d,)."""

    def __init__(self, encoder: SpeakerEncoder, mean: Vectors) -> None:
        self._encoder, self._mean = encoder, mean

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """As `evaluation.attackers.contract.SpeakerEncoder`."""
        return np.asarray(self._encoder.embed(utterances, rate_hz) - self._mean, np.float32)


def attacking_encoder(attacker: TrainedAttacker) -> SpeakerEncoder:
    """What an attack takes its vectors from: centred by the mean of the training where the recipe asks for it."""
    return CentredEncoder(attacker, attacker.training_mean) if attacker.recipe.centre else attacker


def save_trained(
    folder: Path, encoder: nn.Module, epochs: Sequence[EpochRecord], **described: Any
) -> None:  # fmt: skip
    """Write a finished training; the description comes last and makes the folder whole.

    Args:
        described: what `Description` holds, but the digest of the weights.
    """
    from evaluation.attackers.checkpoints import save_checkpoint

    folder.mkdir(parents=True, exist_ok=True)
    recipe: TrainingRecipe = described["recipe"]
    save_checkpoint(folder / MODEL, encoder, {"architecture": recipe.network, "recipe": recipe.name})
    write_whole(folder / VALUES, epochs_csv(epochs).encode())
    final: FinalValues = described["final"]
    content = {
        "format": FORMAT,
        "seed": described["seed"],
        "kept_epoch": described["kept_epoch"],
        "key": described["key"],
        "model_sha256": hashlib.sha256((folder / MODEL).read_bytes()).hexdigest(),
        "recipe": json.loads(recipe.to_json()),
        "final": asdict(final),
        "sources": list(described["sources"]),
        "targets": list(described["targets"]),
        "training_mean": [float(one) for one in described["training_mean"]],
    }
    write_whole(folder / DESCRIPTION, json.dumps(content, ensure_ascii=False, indent=1).encode())


def is_finished(folder: Path) -> bool:
    """Whether a training has ended in this folder."""
    return (folder / DESCRIPTION).is_file()


def read_description(folder: Path) -> Description:
    """What a folder says about its weights, without loading them.

    Raises:
        MetricInputError: missing, damaged, or of another version.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        raise MetricInputError(
            f"{folder}: expected a trained recogniser with {MODEL}, {DESCRIPTION} and {VALUES}, found no "
            f"{DESCRIPTION}. Train it to its end, or name another folder."
        )
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        if given["format"] != FORMAT:
            raise MetricInputError(f"{path}: expected format {FORMAT}, found {given['format']}. Train it again.")
        return Description(
            recipe=TrainingRecipe.from_json(json.dumps(given["recipe"])),
            seed=int(given["seed"]),
            sources=tuple(given["sources"]),
            targets=tuple(given["targets"]),
            training_mean=np.array(given["training_mean"], dtype=np.float32),
            final=FinalValues.from_mapping(given["final"]),
            kept_epoch=int(given["kept_epoch"]),
            key=str(given["key"]),
            model_sha256=str(given["model_sha256"]),
        )
    except MetricInputError:
        raise
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise MetricInputError(
            f"{path}: expected the description of a trained recogniser, found a damaged file. Copy or train it again."
        ) from error


def load_trained(folder: Path, device: Device = "cpu") -> TrainedAttacker:
    """The recogniser of a folder.

    Raises:
        MetricInputError: a file is missing or damaged, the weights are not those of the description, or torch is not
            installed; says which and what to do.
    """
    require_torch(device)
    from evaluation.attackers.checkpoints import load_state

    description = read_description(folder)
    for name in (MODEL, VALUES):
        if not (folder / name).is_file():
            raise MetricInputError(f"{folder}: expected {name} beside {DESCRIPTION}, found none. Copy it again.")
    if hashlib.sha256((folder / MODEL).read_bytes()).hexdigest() != description.model_sha256:
        raise MetricInputError(
            f"{folder / MODEL}: expected the weights that {DESCRIPTION} names by their SHA-256, found other bytes. "
            "Copy or train them again."
        )
    epochs = epochs_of_csv((folder / VALUES).read_text(encoding="utf-8"), str(folder / VALUES))
    encoder = build_encoder(description.recipe)
    load_state(folder / MODEL, encoder)
    return TrainedAttacker(encoder, description, epochs, folder, device)


def require_torch(device: Device) -> None:
    """Refuse where the libraries or the device are missing.

    Raises:
        MetricInputError: torch or safetensors is not installed, or there is no graphics card.
    """
    try:
        import safetensors  # noqa: F401 (only whether they are there)
        import torch  # noqa: F401
    except ImportError as error:
        raise MetricInputError(
            f"Expected the package {error.name} for training, found none. Install torch and safetensors."
        ) from error
    require_torch_device(device)
