"""What an anonymiser did to one instant of an utterance, as numbers to draw and sentences to read.

For any two recordings: spectra, envelopes, resonances, F0 and waveform of the frame; for the methods of a known family
(`explain_families`) also what they do inside. Conventions as in `explain_spectrum`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonymization.methods.contract import Anonymizer, Options, PseudoSpeaker, Samples
from anonymization.methods.errors import MethodError
from anonymization.methods.explain_families import Inside, PitchMarks, Poles, WarpMap, look_inside
from anonymization.methods.explain_spectrum import (
    FRAME_S,
    Floats,
    Side,
    find_f0,
    frame_at,
    frequencies,
    look_at,
    pair_resonances,
)

STEP_S = 0.01
_LOWEST_RATE_HZ = 2000
_MAX_CANDIDATES = 200
_CLEARLY_VOICED = 0.9
# Resonances of a sentence: the lowest make the vowel, and all are in the numbers.
_SAID = 4
# Smaller changes are within what estimating from one frame leaves open.
_SAME_F0, _SAME_LEVEL_DB = 0.01, 0.5


@dataclass(frozen=True)
class Explanation:
    """One instant of an utterance before and after.

    title: of the method; empty for files made elsewhere. at_s: the instant, the middle of the frame.
    frequencies_hz: shape (bins,), of the spectra and envelopes of both sides.
    moves: pairs of resonances in Hz, before and after, rising.
    poles, warp, marks: what the method did inside; None where its family does not say.
    sentences: what happened there, in words and numbers.
    """

    title: str
    at_s: float
    rate_hz: int
    frequencies_hz: Floats
    original: Side
    anonymised: Side
    moves: tuple[tuple[float, float], ...]
    poles: Poles | None
    warp: WarpMap | None
    marks: PitchMarks | None
    sentences: tuple[str, ...]


def explain(
    method: Anonymizer | None,
    samples: Samples,
    output: Samples,
    rate: int,
    voice: PseudoSpeaker | None = None,
    options: Options | None = None,
    at_s: float | None = None,
    f0_hz: tuple[float, float] | None = None,
    *,
    with_marks: bool = True,
) -> Explanation:
    """What happened at an instant.

    Args:
        method: None for a recording made elsewhere, which gets the general picture.
        samples, output: original and anonymised, int16, shape (n,), mono, `rate` in Hz; their lengths may differ.
        voice, options: what the method was run with; None as `method`.
        at_s: seconds from the start of both, up to the end of the shorter; None for the `best_instant`.
        f0_hz: of original and anonymised there where it was measured before, 0 where unvoiced; None estimates both.
        with_marks: whether methods that work by pitch marks show them, for which a compiled kernel is loaded.

    Raises:
        MethodError: samples, rate or instant that are not as above; says expected and found.
    """
    latest_s = last_instant(samples, output, rate)
    if at_s is None:
        at_s = best_instant(samples[: min(samples.size, output.size)], rate)
    if not 0 <= at_s <= latest_s:
        limits = f"between 0 and {latest_s:.2f} s, where both recordings are"
        raise MethodError(f"The instant must lie {limits}; found {at_s:g} s.")
    inside = Inside()
    if method is not None and voice is not None:
        inside = look_inside(method, samples, output, rate, voice, options or {}, at_s, with_marks=with_marks)
    original, anonymised = _look_at_both(samples, output, rate, at_s, f0_hz)
    moves = pair_resonances(original.peaks_hz.tolist(), anonymised.peaks_hz.tolist(), inside.expected)
    return Explanation(
        title=method.title if method else "",
        at_s=at_s,
        rate_hz=rate,
        frequencies_hz=frequencies(rate),
        original=original,
        anonymised=anonymised,
        moves=moves,
        poles=inside.poles,
        warp=inside.warp,
        marks=inside.marks,
        sentences=(*inside.sentences, _what_happened(original, anonymised, moves, at_s)),
    )


def _look_at_both(
    samples: Samples, output: Samples, rate: int, at_s: float, f0_hz: tuple[float, float] | None
) -> tuple[Side, Side]:
    original, anonymised = look_at(samples, rate, at_s), look_at(output, rate, at_s)
    if f0_hz is None:
        return original, anonymised
    return replace(original, f0_hz=f0_hz[0]), replace(anonymised, f0_hz=f0_hz[1])


def last_instant(samples: Samples, output: Samples, rate: int) -> float:
    """The end of the shorter recording in seconds.

    Raises:
        MethodError: a recording that is not int16 mono, an empty one, or a rate under 2000 Hz.
    """
    if rate < _LOWEST_RATE_HZ:
        raise MethodError(f"An explanation needs a rate of at least {_LOWEST_RATE_HZ} Hz; found {rate} Hz.")
    for name, recording in (("original", samples), ("anonymised", output)):
        if not isinstance(recording, np.ndarray) or recording.dtype != np.int16 or recording.ndim != 1:
            found = f"{getattr(recording, 'dtype', type(recording).__name__)} {getattr(recording, 'shape', '')}"
            raise MethodError(f"The {name} recording must be int16 samples of shape (n,); found {found.strip()}.")
        if not recording.size:
            raise MethodError(f"The {name} recording is empty: no instant of it can be explained.")
    return min(samples.size, output.size) / rate


def best_instant(samples: Samples, rate: int) -> float:
    """The middle of the loudest frame that is clearly voiced, in seconds, a multiple of 0.01.

    The most voiced of the loudest frames where none is clearly so; the loudest where none is voiced at all.

    samples: int16, shape (n,), n > 0.
    """
    hop, half = STEP_S * rate, round(FRAME_S * rate / 2)
    middles = np.round(np.arange(math.ceil(samples.size / hop)) * hop).astype(int)
    energy = np.concatenate([[0.0], np.cumsum(np.square(samples, dtype=np.float64))])
    loudness = energy[np.minimum(middles + half, samples.size)] - energy[np.maximum(middles - half, 0)]
    order = np.argsort(-loudness, kind="stable")[:_MAX_CANDIDATES].tolist()
    best, most = int(order[0]), 0.0
    for index in order:
        _, periodicity = find_f0(frame_at(samples, rate, index * STEP_S), rate)
        if periodicity > most:
            best, most = index, periodicity
        if most >= _CLEARLY_VOICED:
            break
    return float(round(best * STEP_S, 2))


def _what_happened(
    original: Side, anonymised: Side, moves: Sequence[tuple[float, float]], at_s: float
) -> str:  # fmt: skip
    if original.is_silent and anonymised.is_silent:
        return f"At {at_s:.2f} s both recordings are silent: nothing is there to move."
    if original.is_silent or anonymised.is_silent:
        silent, other = ("original", "anonymised") if original.is_silent else ("anonymised", "original")
        return f"At {at_s:.2f} s the {silent} recording is silent and the {other} one is not."
    parts = [_resonances_in_words(moves), _f0_in_words(original.f0_hz, anonymised.f0_hz)]
    if abs(louder := anonymised.level_dbfs - original.level_dbfs) >= _SAME_LEVEL_DB:
        parts.append(f"it is {abs(louder):.1f} dB {'louder' if louder > 0 else 'softer'}")
    return f"At {at_s:.2f} s {'; '.join(parts)}."


def _resonances_in_words(moves: Sequence[tuple[float, float]]) -> str:
    if not moves:
        return "no resonance of the original is found again in the anonymised voice"
    said = moves[:_SAID]
    before, after = (_listed(f"{hertz:.0f}" for hertz in side) for side in zip(*said, strict=True))
    if len(said) == 1:
        return f"the resonance at {before} Hz is at {after} Hz in the anonymised voice"
    return f"the resonances at {before} Hz are at {after} Hz in the anonymised voice"


def _f0_in_words(before_hz: float, after_hz: float) -> str:
    if not before_hz and not after_hz:
        return "neither voice has an F0 there"
    if not before_hz:
        return f"the original has no F0 there, the anonymised voice has one of {after_hz:.0f} Hz"
    if not after_hz:
        return f"the original has an F0 of {before_hz:.0f} Hz, the anonymised voice has none there"
    if abs(after_hz / before_hz - 1) < _SAME_F0:
        return f"F0 stays at {before_hz:.0f} Hz"
    semitones = 12 * np.log2(after_hz / before_hz)
    return f"F0 goes from {before_hz:.0f} to {after_hz:.0f} Hz ({semitones:+.1f} semitones)"


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
