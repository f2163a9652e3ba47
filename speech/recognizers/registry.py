"""The recognisers that there are, what each lacks on this machine, and how one is loaded.

Asking costs no import of a model; `load` does. A recogniser that lacks something never gives words of its own making:
it says in one sentence what is missing.
"""

from __future__ import annotations

from common.errors import InputError
from common.packages import missing_packages
from speech.model_files.store import is_here, missing_sentence
from speech.recognizers import moonshine, torchaudio_ctc, whisper
from speech.recognizers.contract import Device, Recognizer, RecognizerEngine

DEFAULT = moonshine.ENGINE.name
_ENGINES = {engine.name: engine for engine in (moonshine.ENGINE, whisper.ENGINE, torchaudio_ctc.ENGINE)}
# What only the recogniser itself knows to look for.
_OWN_NEEDS = {moonshine.ENGINE.name: moonshine.missing, torchaudio_ctc.ENGINE.name: torchaudio_ctc.missing}


def engines() -> dict[str, RecognizerEngine]:
    """Return every recogniser by its name, the default first."""
    return dict(_ENGINES)


def find_engine(name: str) -> RecognizerEngine:
    """Return the recogniser of a name.

    Raises:
        InputError: there is none; names those that there are.
    """
    if name not in _ENGINES:
        raise InputError(f"Expected a recogniser among {', '.join(_ENGINES)}, found “{name}”.")
    return _ENGINES[name]


def explain_missing(engine: RecognizerEngine) -> str:
    """Return why a recogniser cannot run here, as one sentence that says what to do; empty where it can."""
    if own := _OWN_NEEDS.get(engine.name):
        return own()
    if sentence := missing_packages(engine.title, *engine.packages):
        return sentence
    return next((missing_sentence(name) for name in engine.weights if not is_here(name)), "")


def load(name: str, device: Device = "cpu") -> Recognizer:
    """Return a recogniser, ready to work.

    Raises:
        InputError: no such recogniser, or it lacks something here.
    """
    engine = find_engine(name)
    if sentence := explain_missing(engine):
        raise InputError(sentence)
    return engine.load(device)
