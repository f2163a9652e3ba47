"""Which voice an utterance gets: a pure map from seed, role, split and speaker to parameters.

The official program seeds from a string hash that differs between processes; here the same names
give the same voice for ever. Enrolment and trial differ because the role is hashed; data sets that
share role and split, such as VCTK common and different, agree because the data set is not. A plan
draws the voices of all speakers of a split together, so that no two come closer than a stated
distance: that of two voices is the largest difference of a parameter, as a part of its extent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import (
    MOST_PARAMETERS,
    Anonymizer,
    MethodError,
    Parameter,
    PseudoSpeaker,
    VoiceRequest,
    plans_voices,
)

Role = Literal["enrolment", "trial", "training"]
Level = Literal["speaker", "utterance"]
Place = tuple[Role, str, str, str]  # role, split, speaker, utterance (empty at speaker level)

_WORD_BYTES = hashlib.sha256().digest_size // MOST_PARAMETERS
# One draw in two is free at the stated distance, so that this many failing has a chance of 1e-300.
_MAX_DRAWS = 1000


@dataclass(frozen=True)
class VoicePlan:
    """The voices of the speakers of one role and split. distance: what any two of them differ by at least, 0 to 1."""

    seed: int
    role: Role
    split: str
    distance: float
    voices: Mapping[str, PseudoSpeaker]


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which voice an utterance got, or all utterances of a speaker (`utterance` empty, level "speaker").

    line: where it stands in the file that it was read from; no part of what it says.
    """

    role: Role
    split: str
    level: Level
    speaker: str
    utterance: str
    voice: PseudoSpeaker
    line: int | None = field(default=None, compare=False)

    @property
    def place(self) -> Place:
        """Return what the voice is for."""
        return self.role, self.split, self.speaker, self.utterance if self.level == "utterance" else ""


def usual_level(role: Role) -> Level:
    """Training data is anonymised at utterance level, all else at speaker level (protocol of 2022)."""
    return "utterance" if role == "training" else "speaker"


def pseudo_speaker_key(*, seed: int, role: Role, split: str, speaker: str, utterance: str = "") -> str:
    """Return SHA-256 in hexadecimal of `seed|role|split|speaker`, at utterance level of
    `seed|role|split|speaker|utterance`.

    A `|` or a backslash within a name is escaped by a backslash, so no two namings give one text.

    Args:
        utterance: empty at speaker level, which training data does not have.

    Raises MethodError where the seed is no whole number, the role is unknown or a name is empty.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise MethodError(f"A seed is a whole number; found {seed!r}.")
    if role not in get_args(Role):
        raise MethodError(f'The role of a data set must be one of {", ".join(get_args(Role))}; found "{role}".')
    for what, name in {"split": split, "speaker": speaker}.items():
        if not name:
            raise MethodError(f"A pseudo-speaker needs the name of the {what}; found none.")
    if role == "training" and not utterance:
        raise MethodError("A pseudo-speaker of training data needs the name of the utterance; found none.")
    names = [split, speaker, *([utterance] if utterance else [])]
    escaped = (name.replace("\\", "\\\\").replace("|", "\\|") for name in names)
    text = "|".join((f"{seed:d}", role, *escaped))
    # File names may hold bytes that are no UTF-8; Python passes them on as lone surrogates.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def draw_pseudo_speaker(key: str, parameters: Sequence[Parameter]) -> PseudoSpeaker:
    """Return the voice of a key: parameter i from the i-th 64-bit word of the key, top 53 bits, over 2^53.

    Raises MethodError for more than four parameters, the words of a key.
    """
    if len(parameters) > MOST_PARAMETERS:
        raise MethodError(f"A key yields at most {MOST_PARAMETERS} parameters; found {len(parameters)}.")
    digest = bytes.fromhex(key)
    values = {}
    for i, parameter in enumerate(parameters):
        word = int.from_bytes(digest[i * _WORD_BYTES : (i + 1) * _WORD_BYTES], "big")
        values[parameter.name] = parameter.at((word >> 11) / 2**53)
    return PseudoSpeaker(key, values)


def draw_voice(method: Anonymizer, request: VoiceRequest) -> PseudoSpeaker:
    """Return the voice that one request alone gets of a method without targets: planned by it, or drawn from the
    key."""
    if plans_voices(method):
        return plan_requests(method, [request])[0]
    return draw_pseudo_speaker(request.key, method.parameters)


def plan_requests(method: Anonymizer, requests: Sequence[VoiceRequest]) -> list[PseudoSpeaker]:
    """Return the voices that a method plans, one for each request. Raises MethodError where it plans fewer, or none."""
    voices = list(method.plan_voices(requests)) if plans_voices(method) else []
    if len(voices) != len(requests):
        raise MethodError(f"{method.name} planned {len(voices)} voices for {len(requests)} speakers or utterances.")
    return voices


def validate_parameters(parameters: Sequence[Parameter]) -> None:
    """Raise MethodError unless voices can be drawn from them: at most four, of different names, each with a range."""
    if len(parameters) > MOST_PARAMETERS:
        raise MethodError(f"A key yields at most {MOST_PARAMETERS} parameters; found {len(parameters)}.")
    if len({parameter.name for parameter in parameters}) < len(parameters):
        raise MethodError(f"Parameters have different names; found {', '.join(each.name for each in parameters)}.")
    for parameter in parameters:
        bounds = (parameter.low, *(parameter.gap or ()), parameter.high)
        if not np.isfinite(bounds).all() or sorted(bounds) != list(bounds) or not 0 < parameter.extent < np.inf:
            raise MethodError(
                f"{parameter.name} must be able to vary, within finite bounds and around a gap within them; "
                f"found {', '.join(f'{bound:g}' for bound in bounds)}."
            )


def guaranteed_distance(n_speakers: int, n_parameters: int) -> float:
    """Return what any two voices of so many speakers differ by at least: half of every draw stays free at this
    distance.

    The voices nearer than d to another are a box of sides 2d of the unit cube of p parameters (a gap only moves voices
    apart). A draw avoids at most n of them: those of the n - 1 other speakers and, for enrolment, the own one for
    trials. With (2d)^p = 1 / (2n), as here at d = ½ (1 / (2n))^(1/p), they fill one half at most. So a draw fails at
    most every other time, and the first draw of three speakers in four is kept at least, on average.
    """
    if n_parameters == 0:
        return 0.0
    return float(0.5 * (1 / (2 * max(1, n_speakers))) ** (1 / n_parameters))


def plan_voices(
    parameters: Sequence[Parameter], *, seed: int, role: Role, split: str, speakers: Collection[str]
) -> VoicePlan:
    """Return one voice for each speaker, so that any two differ, and each from the same speaker's voice of the other
    role.

    Speakers draw in the order of their keys, again from SHA-256 of `key|attempt` where a voice is too close: most have
    the voice of their first draw, independent of other speakers.

    Args:
        speakers: all speakers of the split, whatever data sets they are in: another population may give other voices.

    Raises MethodError as `pseudo_speaker_key` and `validate_parameters`.
    """
    validate_parameters(parameters)
    keys = {name: pseudo_speaker_key(seed=seed, role=role, split=split, speaker=name) for name in set(speakers)}
    distance = guaranteed_distance(len(keys), len(parameters))
    trials: Mapping[str, PseudoSpeaker] = {}
    if role == "enrolment":  # trial voices are drawn first, and enrolment keeps its distance to them
        trials = plan_voices(parameters, seed=seed, role="trial", split=split, speakers=speakers).voices
    taken = np.empty((len(keys) + 1, len(parameters)))
    voices: dict[str, PseudoSpeaker] = {}
    for speaker in sorted(keys, key=keys.__getitem__):
        n_taken = len(voices)
        if speaker in trials:
            taken[n_taken] = _values(trials[speaker], parameters)
        avoided = taken[: n_taken + (speaker in trials)]
        voices[speaker] = _draw_apart(keys[speaker], parameters, avoided, distance)
        taken[n_taken] = _values(voices[speaker], parameters)
    return VoicePlan(seed, role, split, distance, voices)


def voice_distance(one: PseudoSpeaker, other: PseudoSpeaker, parameters: Sequence[Parameter]) -> float:
    """Largest difference of a parameter, as a part of its extent; 0 without parameters."""
    differences = (abs(one.parameters[each.name] - other.parameters[each.name]) / each.extent for each in parameters)
    return max(differences, default=0.0)


def _draw_apart(
    key: str, parameters: Sequence[Parameter], avoided: npt.NDArray[np.float64], distance: float
) -> PseudoSpeaker:
    """Return the first voice of the key that keeps the distance. avoided: shape (voices, parameters)."""
    extents = np.array([parameter.extent for parameter in parameters])
    for attempt in range(_MAX_DRAWS):
        drawn_from = hashlib.sha256(f"{key}|{attempt}".encode()).hexdigest() if attempt else key
        voice = draw_pseudo_speaker(drawn_from, parameters)
        if not parameters or not avoided.size:
            return voice
        # The same arithmetic as `voice_distance`, for all at once.
        differences = np.abs(avoided - _values(voice, parameters)) / extents
        if differences.max(axis=1).min() >= distance:
            return voice
    raise MethodError(f"No voice is left that differs by {distance:g} from {len(avoided)} others.")


def _values(voice: PseudoSpeaker, parameters: Sequence[Parameter]) -> list[float]:
    return [voice.parameters[parameter.name] for parameter in parameters]
