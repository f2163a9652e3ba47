"""What `conformance` tries on a method: a vowel, inputs at the edge of what can be given, and wrong requests.

Conventions: samples are int16, mono, shape (n,), where a worst case is not just about that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import Anonymizer, PseudoSpeaker, Samples, takes_targets
from anonymization.methods.target_pool import TargetPool, pool_of_samples

_FORMANTS_HZ = ((600.0, 90.0), (1300.0, 110.0), (2600.0, 160.0), (3500.0, 220.0))
_FULL_SCALE = 32767


def make_vowel(rate: int, duration_s: float = 1.5) -> Samples:
    """A voice about 130 Hz with vibrato, four resonances and breath, that swells and fades twice, at half scale."""
    rng = np.random.default_rng(11)
    time_s = np.arange(round(duration_s * rate)) / rate
    f0_hz = 130 * 2 ** (0.15 * np.sin(2 * np.pi * 1.7 * time_s))
    phase = 2 * np.pi * np.cumsum(f0_hz) / rate
    sound = 0.003 * rng.normal(size=time_s.size)
    for harmonic in range(1, int(0.45 * rate / f0_hz.max())):
        hz = harmonic * f0_hz
        strength = sum(1 / (1 + ((hz - centre_hz) / width_hz) ** 2) for centre_hz, width_hz in _FORMANTS_HZ)
        sound += strength / np.sqrt(harmonic) * np.cos(harmonic * phase)
    sound *= np.clip(1.1 - np.cos(4 * np.pi * time_s / duration_s), 0, None)
    vowel: Samples = (sound / np.abs(sound).max() * _FULL_SCALE / 2).astype(np.int16)
    return vowel


def make_targets(rate: int) -> TargetPool:
    """Two targets: the vowel played faster, as a smaller speaker would sound, and slower."""
    vowel = make_vowel(rate).astype(np.float64)
    sounds = {}
    for name, speed in (("higher", 1.3), ("lower", 0.8)):
        places = np.arange(0, vowel.size - 1, speed)
        sounds[name] = np.interp(places, np.arange(vowel.size), vowel).astype(np.int16)
    return pool_of_samples(sounds, rate, {"higher": "f", "lower": "m"})


def worst_cases(speech: Samples, rate: int) -> Iterator[tuple[str, npt.NDArray[Any], int]]:
    """Name, samples and rate of each case that must give a result or a sentence."""
    rng = np.random.default_rng(12)
    second = rate
    yield "no samples", np.zeros(0, np.int16), rate
    yield "one sample", np.array([123], np.int16), rate
    yield "two samples", np.array([123, -123], np.int16), rate
    yield "0.1 s", speech[: second // 10], rate
    yield "a second of digital silence", np.zeros(second, np.int16), rate
    yield "speech after digital silence", np.concatenate([np.zeros(second // 2, np.int16), speech]), rate
    yield "a constant", np.full(second, 5000, np.int16), rate
    yield "the lowest constant", np.full(second, -32768, np.int16), rate
    yield "a square wave at full scale", np.where(np.arange(second) % 160 < 80, 32767, -32768).astype(np.int16), rate
    yield "noise at full scale", rng.integers(-32768, 32768, second).astype(np.int16), rate
    yield "noise of one step", rng.integers(-1, 2, second).astype(np.int16), rate
    yield "one pulse", np.concatenate([np.zeros(second // 2), [32767], np.zeros(second // 2)]).astype(np.int16), rate
    yield "a tone at half the rate", np.tile(np.array([20_000, -20_000], np.int16), second // 2), rate
    yield "speech at 8 kHz", speech[::2].copy(), 8_000
    yield "speech at 48 kHz", np.repeat(speech, 3), 48_000
    yield "a rate of zero", speech, 0
    yield "two channels", np.stack([speech, speech], axis=1), rate
    yield "floating point", speech / 32768, rate


def wrong_voices(method: Anonymizer, voice: PseudoSpeaker) -> Iterator[tuple[str, PseudoSpeaker]]:
    """Name and voice of each one that must be refused."""
    for parameter in method.parameters:
        outside = {
            "below its range": parameter.low - parameter.extent,
            "above its range": parameter.high + parameter.extent,
        }
        outside |= {"that is no number": float("nan"), "without end": float("inf")}
        if parameter.gap:
            outside["within its gap"] = sum(parameter.gap) / 2
        for what, value in outside.items():
            changed = {**voice.parameters, parameter.name: value}
            yield f"{parameter.name} {what}", PseudoSpeaker(voice.key, changed)
        rest = {name: value for name, value in voice.parameters.items() if name != parameter.name}
        yield f"a voice without {parameter.name}", PseudoSpeaker(voice.key, rest)
    if takes_targets(method):
        yield "a voice without a target", PseudoSpeaker(voice.key, voice.parameters)
        yield "a target that is not there", PseudoSpeaker(voice.key, voice.parameters, "no-such-target")
    yield "a parameter too many", PseudoSpeaker(voice.key, {**voice.parameters, "no-such-parameter": 1.0}, voice.target)


def wrong_options(method: Anonymizer) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and options of each request that must be refused."""
    yield "an option that it does not have", {"no-such-option": 1.0}
    for option in method.options:
        if option.choices:
            yield f"{option.name} of no choice", {option.name: "no-such-choice"}
        elif isinstance(option.default, bool):
            yield f"{option.name} neither true nor false", {option.name: 0.5}
        elif not isinstance(option.default, str):
            yield f"{option.name} that is no number", {option.name: float("nan")}
