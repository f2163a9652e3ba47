"""Which voice an utterance gets: a pure map from seed, role, split and speaker to parameters.

The official program seeds from a string hash that differs between processes; here the same names
give the same voice for ever. Enrolment and trial differ because the role is hashed; data sets that
share role and split, such as VCTK common and different, agree because the data set is not.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from anonymization.methods.errors import MethodError

Role = Literal["enrolment", "trial", "training"]

_WORD_BYTES = 8
_MAX_PARAMETERS = hashlib.sha256().digest_size // _WORD_BYTES


@dataclass(frozen=True)
class Parameter:
    """One number that makes a voice, drawn uniformly from [low, high); unit "" for none."""

    name: str
    unit: str
    low: float
    high: float
    meaning: str


@dataclass(frozen=True)
class PseudoSpeaker:
    """A voice. key: SHA-256 in hexadecimal of what it was drawn from, equal for equal voices."""

    key: str
    parameters: Mapping[str, float]


def pseudo_speaker_key(*, seed: int, role: Role, split: str, speaker: str, utterance: str) -> str:
    """SHA-256 in hexadecimal of `seed|role|split|speaker`.

    Training data is anonymised at utterance level, by `seed|role|split|speaker|utterance`. A `|` or
    a backslash within a name is escaped by a backslash, so no two namings give one text.

    Raises MethodError where the role is unknown or a name that is used is empty.
    """
    if role not in get_args(Role):
        raise MethodError(f'The role of a data set must be one of {", ".join(get_args(Role))}; found "{role}".')
    names = {"split": split, "speaker": speaker}
    if role == "training":
        names["utterance"] = utterance
    for what, name in names.items():
        if not name:
            raise MethodError(f"A pseudo-speaker needs the name of the {what}; found none.")
    escaped = (name.replace("\\", "\\\\").replace("|", "\\|") for name in names.values())
    text = "|".join((f"{seed:d}", role, *escaped))
    return hashlib.sha256(text.encode()).hexdigest()


def draw_pseudo_speaker(key: str, parameters: Sequence[Parameter]) -> PseudoSpeaker:
    """The voice of a key: parameter i from the i-th 64-bit word of the key, top 53 bits, over 2^53.

    Raises MethodError for more than four parameters, the words of a key.
    """
    if len(parameters) > _MAX_PARAMETERS:
        raise MethodError(f"A key yields at most {_MAX_PARAMETERS} parameters; found {len(parameters)}.")
    digest = bytes.fromhex(key)
    values = {}
    for i, parameter in enumerate(parameters):
        word = int.from_bytes(digest[i * _WORD_BYTES : (i + 1) * _WORD_BYTES], "big")
        uniform = (word >> 11) / 2**53
        values[parameter.name] = parameter.low + (parameter.high - parameter.low) * uniform
    return PseudoSpeaker(key, values)
