"""The encoder of an attack: a frozen engine of the registry, or one that the portal trained on anonymised speech."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaluation.attackers import registry
from evaluation.attackers.contract import Device, SpeakerEncoder
from evaluation.formats.claims import Speech
from evaluation.metrics.errors import MetricInputError
from evaluation.models import EvaluationRun

TRAINED = "trained-"


@dataclass(frozen=True)
class EngineText:
    """What an attacker or recogniser is, for people.

    Attributes:
        key: name and version, under which its work is kept.
        training: the speech that it was trained on.
    """

    name: str
    key: str
    title: str
    description: str = ""
    licence: str = ""
    source: str = ""
    training: Speech = Speech.ORIGINAL


@dataclass(frozen=True)
class Encoder:
    """An encoder that can be loaded where it is needed."""

    text: EngineText
    load: Callable[[], SpeakerEncoder]


def encoder_of(run: EvaluationRun) -> Encoder:
    """The encoder of an attack run.

    Raises:
        MetricInputError: this portal has no such engine, or another version of it, or something it needs is missing.
    """
    text = text_of(run)
    if text.training is Speech.ANONYMISED:
        return Encoder(text, lambda: _load_trained(run))
    engine = registry.find_engine(run.engine)
    if sentence := registry.missing_of(engine):
        raise MetricInputError(sentence)
    wanted = run.parameters.get("engine_key", engine.key)
    if wanted != engine.key:
        raise MetricInputError(
            f"This run was started with {wanted}; this portal has {engine.key}, whose vectors differ. Start it anew."
        )
    return Encoder(text, lambda: registry.load(engine.name, device_for(engine.packages)))


def text_of(run: EvaluationRun) -> EngineText:
    """What the attacker of a run is; one that this portal has no more stands by its name."""
    key = run.parameters.get("engine_key", run.engine)
    if "trained" in run.parameters:
        seed = run.parameters.get("seed", 0)
        return EngineText(
            run.engine, key, f"Trained attacker, run {run.parameters['trained']}, seed {seed}",
            "Trained by this portal on speech that the attacked system anonymised (semi-informed).",
            training=Speech.ANONYMISED,
        )  # fmt: skip
    engine = registry.engines().get(run.engine)
    if engine is None:
        return EngineText(run.engine, key, run.engine)
    return EngineText(engine.name, key, engine.title, engine.description, engine.licence, engine.source)


def device_for(packages: tuple[str, ...]) -> Device:
    """The graphics card where this worker has one that the engine's packages can use, else the processor."""
    if "torch" in packages:
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"
    if "onnxruntime" in packages:
        import onnxruntime

        return "cuda" if "CUDAExecutionProvider" in onnxruntime.get_available_providers() else "cpu"
    return "cpu"


def _load_trained(run: EvaluationRun) -> SpeakerEncoder:
    from evaluation.services_training import load_encoder  # it starts attacks itself

    trained = EvaluationRun.objects.get(pk=run.parameters["trained"])
    return load_encoder(trained, run.parameters["seed"], device_for(("torch",)))
