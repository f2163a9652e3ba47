"""The encoders of speakers that this portal knows, and what keeps one from running here.

Reading the registry imports no model and no heavy library; `load` does. An engine whose package or weights are missing
stays in the list and says so: no number ever comes from random weights.
"""

from __future__ import annotations

from common.errors import InputError
from common.packages import missing_packages
from speech.encoders import ecapa_voxceleb, ge2e, long_term_spectrum, wespeaker
from speech.encoders.contract import Device, EncoderEngine, SpeakerEncoder
from speech.model_files.store import is_here, missing_sentence

DEFAULT = "wespeaker-resnet34"
_ENGINES = (wespeaker.ENGINE, ecapa_voxceleb.ENGINE, ge2e.ENGINE, long_term_spectrum.ENGINE)


def engines() -> dict[str, EncoderEngine]:
    """Return every encoder by its name, the default first."""
    return {engine.name: engine for engine in _ENGINES}


def find_engine(name: str) -> EncoderEngine:
    """Return the encoder of a name.

    Raises:
        InputError: no encoder has this name.
    """
    known = engines()
    if name not in known:
        raise InputError(f"Expected the name of an encoder of speakers ({', '.join(known)}), found “{name}”.")
    return known[name]


def explain_missing(engine: EncoderEngine) -> str:
    """Return what keeps an encoder from running here, in one sentence; empty where nothing does."""
    if sentence := missing_packages(engine.title, *engine.packages):
        return sentence
    return next((missing_sentence(name) for name in engine.weights if not is_here(name)), "")


def load(name: str, device: Device = "cpu") -> SpeakerEncoder:
    """Return the encoder, ready to work.

    Raises:
        InputError: no encoder has this name, a package, its weights or the graphics card is missing, or its
            file is not the published one.
    """
    engine = find_engine(name)
    if sentence := explain_missing(engine):
        raise InputError(sentence)
    return engine.load(device)
