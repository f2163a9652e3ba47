"""The files that the methods of this folder read: weights that ship, each with its SHA-256, the voices of the pool, and
networks of trainings in their place. Each is verified, and loaded once in a process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import MethodError
from speech.conversion import recognizer_map
from speech.conversion.shape import (
    DecoderShape,
    GeneratorShape,
    JointHifiGanShape,
    RegressorShape,
    SoftUnitsShape,
    SourceFilterShape,
    WorldDecoderShape,
)

if TYPE_CHECKING:
    from speech.conversion.content_decoder import ContentDecoder, Converter
    from speech.conversion.f0_regressor import Regressor
    from speech.conversion.joint_generator import JointSynthesizer
    from speech.conversion.source_filter import SourceFilterVocoder
    from speech.conversion.world_decoder import WorldConverter
    from speech.vocoders.hifigan import HifiGan

# Vector of length 1, shape (256,), mean and spread of the natural logarithm of F0.
Speaker = tuple[npt.NDArray[np.float32], float, float]
_KEPT = 4  # networks of a kind in memory: what ships, and some that were trained by others

WEIGHTS = Path(__file__).with_name("weights.safetensors")
VOICES = Path(__file__).with_name("voices.safetensors")
REGRESSOR = Path(__file__).with_name("f0_regressor") / "weights.safetensors"
JOINT_GENERATOR = Path(__file__).with_name("joint_generator") / "weights.safetensors"
SOFT_UNITS_DECODER = Path(__file__).with_name("soft_units_decoder") / "weights.safetensors"
SOURCE_FILTER = Path(__file__).with_name("source_filter") / "weights.safetensors"
JOINT_HIFIGAN = Path(__file__).with_name("joint_hifigan") / "weights.safetensors"
WORLD_DECODER = Path(__file__).with_name("world_decoder") / "weights.safetensors"
RECOGNIZER_MAP = Path(__file__).with_name("recognizer_map") / "weights.safetensors"
SHA256 = {
    WEIGHTS: "fe7cc8065db0c1176f39009392033a7e94d67705816c42cf8f7fb5f545dbf42a",
    VOICES: "b4a042244be456a72d1e4804b6c562f50f07eba38a8c6fbfa1dbf6f8a642bf7f",
    REGRESSOR: "caaa03b7679ff77fba803339bef63d1cfba314d5959f2fe93d4c54999fe43dff",
    JOINT_GENERATOR: "2825b5f84cc0a150a1a4be78131e0e0438725f341cfdadef45269516f3bfef49",
    SOFT_UNITS_DECODER: "d7b07e9d6b4b71299ddd65c81909899a9437e63dde9b4b2ec213df8ea4a175a2",
    SOURCE_FILTER: "7ca3cf070757db1d194f6f7d1990b61538607594c5267187114fab84e914e7e0",
    JOINT_HIFIGAN: "093872f5702fa91e5c9eeb1aad99aa87d5ac7342b5c6bb5c9eb9cfd75be2b742",
    WORLD_DECODER: "b03fc36fe30102d794087c152f31913fc6258dfbc994d57017ac4ea7e999d0ac",
    RECOGNIZER_MAP: "b527418f9089e43c332a1ca5676a4f0caaa0e57c34d14d3d278b42de1eaa91cb",
}


Shape = DecoderShape | RegressorShape | GeneratorShape | JointHifiGanShape | SourceFilterShape | WorldDecoderShape
# Of the networks with steps, by the recipe that trains them.
SHAPES: Mapping[str, type[Shape]] = {
    "content-decoder": DecoderShape,
    "soft-units-decoder": SoftUnitsShape,
    "f0-regressor": RegressorShape,
    "joint-nsf-hifigan": GeneratorShape,
    "joint-hifigan": JointHifiGanShape,
    "hn-sinc-nsf": SourceFilterShape,
    "world-decoder": WorldDecoderShape,
}


class NetworkFile(NamedTuple):
    """A file that a method reads.

    sha256: of what it must hold; is_shipped: with this version, not trained anew; shape: of a network with steps.
    """

    path: Path
    sha256: str
    is_shipped: bool = True
    shape: Shape | None = None

    def verify(self) -> Path:
        """Return its path. Raises MethodError where it holds something else, or is not there."""
        if self.is_shipped:
            return verify_file(self.path, self.sha256)
        try:
            found = hashlib.sha256(self.path.read_bytes()).hexdigest()
        except (OSError, ValueError) as error:
            raise MethodError(f"{self.path} cannot be read ({error}). Put it back, or train again.") from error
        if found != self.sha256:
            raise MethodError(f"{self.path} is not the file that its card names. Put that back, or train again.")
        return self.path


@dataclass(frozen=True)
class Networks:
    """What a method reads. voices: the pool, of the training of the decoder."""

    decoder: NetworkFile
    voices: NetworkFile
    regressor: NetworkFile
    generator: NetworkFile
    soft_units_decoder: NetworkFile
    source_filter: NetworkFile
    joint_hifigan: NetworkFile
    world_decoder: NetworkFile
    recognizer_map: NetworkFile


_SHIPPED_SHAPES: Mapping[Path, Shape] = {
    WEIGHTS: DecoderShape(),
    REGRESSOR: RegressorShape(),
    JOINT_GENERATOR: GeneratorShape(),
    SOFT_UNITS_DECODER: SoftUnitsShape(),
    SOURCE_FILTER: SourceFilterShape(),
    JOINT_HIFIGAN: JointHifiGanShape(),
    WORLD_DECODER: WorldDecoderShape(),
}
SHIPPED = Networks(*(NetworkFile(path, sha256, shape=_SHIPPED_SHAPES.get(path)) for path, sha256 in SHA256.items()))


@dataclass(frozen=True, eq=False)
class SpeakerPool:
    """The speakers that voices are made of. vectors: shape (speakers, 256); f0: mean and spread of its logarithm."""

    names: tuple[str, ...]
    genders: tuple[str, ...]
    vectors: npt.NDArray[np.float32]
    f0: npt.NDArray[np.float32]

    def voice(self, mixture: Mapping[str, float]) -> Speaker:
        """Return vector of length 1, mean and spread of the logarithm of F0 of a mixture of its speakers.

        Raises:
            MethodError: nobody of it, or somebody else.
        """
        place = {name: number for number, name in enumerate(self.names)}
        if not mixture or (strangers := sorted(set(mixture) - set(place))):
            found = strangers[0] if mixture else "none"
            raise MethodError(f"A voice is a mixture of the {len(self.names)} speakers of the pool; found {found}.")
        rows = [place[name] for name in mixture]
        shares = np.array(list(mixture.values())) / sum(mixture.values())
        vector = shares @ self.vectors[rows]
        mean, spread = shares @ self.f0[rows]
        return (vector / np.linalg.norm(vector)).astype(np.float32), float(mean), float(spread)

    def mean_like(self, vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Of the mean vectors of its genders, each of length 1, that which is nearest to a vector."""
        genders = np.array(self.genders)
        means = np.stack([self.vectors[genders == gender].mean(axis=0) for gender in sorted(set(self.genders))])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        found: npt.NDArray[np.float32] = means[np.argmax(means @ vector)]
        return found


@lru_cache(maxsize=_KEPT)
def read_pool(file: NetworkFile = SHIPPED.voices) -> SpeakerPool:
    """Return the speakers of a file, by default of that which ships, verified."""
    from safetensors import safe_open

    with safe_open(file.verify(), framework="np") as opened:
        texts = opened.metadata()
        vectors, f0 = opened.get_tensor("vectors"), opened.get_tensor("f0")
    names, genders = (tuple(texts[key].split(" ")) for key in ("names", "genders"))
    return SpeakerPool(names, genders, vectors.astype(np.float32), f0)


def verify_file(path: Path, sha256: str) -> Path:
    """Return the path of a file that ships. Raises MethodError where it holds something else."""
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise MethodError(f"{path.name} is not the file that ships with this version. Install the package again.")
    return path


def load_decoder(file: NetworkFile = SHIPPED.decoder) -> ContentDecoder:
    """Return a decoder, of a bottleneck or of soft units, by default the one of the former that ships, its file
    verified."""
    from speech.conversion import content_decoder

    return content_decoder.load_network(file.verify(), cast("DecoderShape | None", file.shape))


@lru_cache(maxsize=_KEPT)
def load_converter(file: NetworkFile) -> Converter:
    from speech.conversion.content_decoder import Converter

    return Converter(load_decoder(file))


@lru_cache(maxsize=_KEPT)
def load_regressor(file: NetworkFile) -> Regressor:
    from speech.conversion import f0_regressor

    return f0_regressor.load(file.verify(), shape=cast("RegressorShape | None", file.shape))


@lru_cache(maxsize=_KEPT)
def load_generator(file: NetworkFile) -> JointSynthesizer:
    from speech.conversion import joint_generator

    return joint_generator.load(file.verify(), shape=cast("GeneratorShape | None", file.shape))


@lru_cache(maxsize=_KEPT)
def load_hifigan(decoder: NetworkFile, joint: NetworkFile) -> tuple[Converter, HifiGan]:
    from speech.conversion.joint_generator import load_hifigan

    return load_hifigan(joint.verify(), load_decoder(decoder), cast("JointHifiGanShape | None", joint.shape))


@lru_cache(maxsize=_KEPT)
def load_source_filter(file: NetworkFile) -> SourceFilterVocoder:
    from speech.conversion import source_filter

    return source_filter.load(file.verify(), shape=cast("SourceFilterShape | None", file.shape))


@lru_cache(maxsize=_KEPT)
def load_world_decoder(file: NetworkFile) -> WorldConverter:
    from speech.conversion import world_decoder

    return world_decoder.load(file.verify(), shape=cast("WorldDecoderShape | None", file.shape))


@lru_cache(maxsize=_KEPT)
def load_map(file: NetworkFile) -> recognizer_map.RecognizerMap:
    return recognizer_map.load(file.verify())
