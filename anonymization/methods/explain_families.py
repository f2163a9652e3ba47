"""What the methods of a known family do inside, at one instant: poles, the map of frequencies, pitch marks.

`look_inside` finds the family by the name of the method in one table; a method of no family says nothing, and its
results are explained by what can be seen of any two recordings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from anonymization.methods.contract import Anonymizer, Options, PseudoSpeaker, Samples, complete_options
from anonymization.methods.errors import MethodError
from anonymization.methods.explain_spectrum import FRAME_S, Floats, burg
from anonymization.methods.mcadams_parameters import FULL_SCALE, OFFSET, McAdamsParameters
from anonymization.methods.world_voice import FrequencyWarp

_MAP_POINTS = 161
_PSOLA = "pitch-shift-psola"
# What is marked: enough on either side for the pitch to be followed.
_AROUND_S = 0.6


@dataclass(frozen=True)
class Poles:
    """The poles of one frame in the upper half of the z-plane, by rising angle before.

    alpha: exponent on the angles in radians. radii, angles_before, angles_after: shape (poles,), angles in radians.
    starts_s: the first sample of the frame; ends_s: behind its last.
    """

    alpha: float
    radii: Floats
    angles_before: Floats
    angles_after: Floats
    starts_s: float
    ends_s: float


@dataclass(frozen=True)
class WarpMap:
    """Where the method moves each frequency of the envelope to. from_hz, to_hz: shape (points,), rising."""

    from_hz: Floats
    to_hz: Floats


@dataclass(frozen=True)
class PitchMarks:
    """Pitch marks within the frame, in seconds from its middle. before_s, after_s: shapes (marks,), rising."""

    before_s: Floats
    after_s: Floats


@dataclass(frozen=True)
class Inside:
    """What a family says. expected: where frequencies in Hz are moved to, rising as they do."""

    expected: Callable[[Floats], Floats] | None = None
    poles: Poles | None = None
    warp: WarpMap | None = None
    marks: PitchMarks | None = None
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A method that was run on an utterance, and an instant of it; `options` are complete."""

    name: str
    samples: Samples
    output: Samples
    rate: int
    parameters: Mapping[str, float]
    options: Options
    at_s: float
    with_marks: bool


def look_inside(
    method: Anonymizer,
    samples: Samples,
    output: Samples,
    rate: int,
    voice: PseudoSpeaker,
    options: Options,
    at_s: float,
    *,
    with_marks: bool = True,
) -> Inside:
    """What the family of the method says; nothing for methods of no family, or a voice that is not of this method."""
    tell = next((tell for prefix, tell in FAMILIES.items() if method.name.startswith(prefix)), None)
    if tell is None:
        return Inside()
    try:
        complete = complete_options(method, options)
        return tell(Case(method.name, samples, output, rate, voice.parameters, complete, at_s, with_marks))
    except (MethodError, KeyError):  # a run of an earlier version of the method: its numbers may have had other names
        return Inside()


def _mcadams(case: Case) -> Inside:
    """The poles of the frame whose middle is nearest to the instant, as `mcadams` finds and turns them."""
    alpha = float(case.parameters["alpha"] if "alpha" in case.parameters else case.options["alpha"])
    settings = McAdamsParameters(
        alpha,
        first_frame=bool(case.options["first_frame"]),
        tail=bool(case.options["tail"]),
        keep_digital_silence=bool(case.options["keep_digital_silence"]),
    )
    to_hz = case.rate / (2 * math.pi)

    def expected(hertz: Floats) -> Floats:
        return np.minimum((hertz / to_hz) ** alpha, math.pi) * to_hz

    sentence = (
        f"The McAdams coefficient α = {alpha:.3g} turns each pole from its angle φ to φ^α: "
        f"{_directions(alpha, to_hz)}."
    )  # fmt: skip
    inside = Inside(expected=expected, sentences=(sentence,))
    frames = settings.frames(case.samples.size)
    if not frames:
        return inside
    hop, length = settings.hop_samples, settings.window_samples
    wanted = round((case.at_s * case.rate - length / 2) / hop)
    start = hop * min(max(wanted, frames.start), frames.stop - 1)
    frame = np.full(length, OFFSET)
    inner = case.samples[start : start + length]
    frame[: inner.size] += inner / FULL_SCALE
    if not inner.any() and settings.keep_digital_silence:
        return inside
    roots = np.roots(burg(frame * settings.analysis_window() + OFFSET, settings.order))
    upper = roots[roots.imag > 0].astype(np.complex128)
    upper = upper[np.argsort(np.angle(upper))]
    angles: Floats = np.angle(upper).astype(np.float64)
    turned: Floats = np.minimum(angles**alpha, math.pi)
    span = start / case.rate, (start + length) / case.rate
    return replace(inside, poles=Poles(alpha, np.abs(upper), angles, turned, *span))


def _directions(alpha: float, fixed_hz: float) -> str:
    if alpha == 1:
        return "nothing moves"
    below, above = ("up", "down") if alpha < 1 else ("down", "up")
    return f"resonances below {fixed_hz:.0f} Hz move {below}, those above it {above}"


def _world(case: Case) -> Inside:
    """The map of the envelope's frequencies; F0 is seen from outside."""
    factor = case.parameters["formant_factor"]
    to_hz = np.linspace(0, case.rate / 2, _MAP_POINTS)
    from_hz = FrequencyWarp(factor).source_hz(to_hz)
    sentence = (
        f"The envelope is stretched along frequency by {factor:.3g}, up to a knee at 6 kHz, and the utterance gets a "
        f"mean F0 of {case.parameters['f0_mean']:.0f} Hz with a spread of {case.parameters['f0_spread']:.1f} semitones."
    )
    return Inside(
        expected=lambda hertz: np.interp(hertz, from_hz, to_hz),
        warp=WarpMap(from_hz, to_hz),
        sentences=(sentence,),
    )


def _pitch_shift(case: Case) -> Inside:
    """A stretch of all frequencies, or of F0 alone where the formants are kept."""
    cents = case.parameters["shift"]
    ratio = 2.0 ** (cents / 1200)
    if case.options.get("formants", "moved") == "kept":
        return Inside(sentences=(f"F0 is multiplied by {ratio:.3g} ({cents:+.0f} cents) and the resonances are kept.",))
    to_hz = np.linspace(0, case.rate / 2 * min(1.0, ratio), _MAP_POINTS)
    sentence = f"F0 and all resonances are multiplied by {ratio:.3g} ({cents:+.0f} cents) and the duration is restored."
    return Inside(
        expected=lambda hertz: hertz * ratio, warp=WarpMap(to_hz / ratio, to_hz), sentences=(sentence,)
    )  # fmt: skip


def has_marks(method: Anonymizer) -> bool:
    """Whether the method works by pitch marks."""
    return method.name.startswith(_PSOLA)


def pieces_around(samples: Samples, output: Samples, rate: int, at_s: float) -> tuple[Samples, Samples, float]:
    """What `mark_both` needs of two recordings, and where the instant lies in it, in seconds."""
    start, stop = max(0, round((at_s - _AROUND_S) * rate)), round((at_s + _AROUND_S) * rate)
    return samples[start:stop], output[start:stop], at_s - start / rate


def mark_both(before: Samples, after: Samples, rate: int, at_s: float) -> PitchMarks:
    """The pitch marks within the frame, of two `pieces_around` it; loads a compiled kernel."""
    return PitchMarks(_marks_of(before, rate, at_s), _marks_of(after, rate, at_s))


def _marks_of(piece: Samples, rate: int, at_s: float) -> Floats:
    from anonymization.methods.pitch_marks import mark_pitch

    marks = mark_pitch(piece, rate)
    voiced = np.append(marks.is_voiced, False) | np.append(False, marks.is_voiced)
    times_s: Floats = marks.times[voiced] / rate - at_s
    return times_s[np.abs(times_s) < FRAME_S / 2]


def _psola(case: Case) -> Inside:
    """As `_pitch_shift`, with the pitch marks of both voices."""
    inside = _pitch_shift(case)
    if not case.with_marks:
        return inside
    before, after, at_s = pieces_around(case.samples, case.output, case.rate, case.at_s)
    marks = mark_both(before, after, case.rate, at_s)
    words = (
        f"In the {FRAME_S * 1000:.0f} ms shown the original has {marks.before_s.size} pitch marks, "
        f"the anonymised voice {marks.after_s.size}."
    )
    return replace(inside, marks=marks, sentences=(*inside.sentences, words))


# By the beginning of the name of a method, the first that fits.
FAMILIES: dict[str, Callable[[Case], Inside]] = {
    "mcadams-": _mcadams,
    _PSOLA: _psola,
    "pitch-shift-": _pitch_shift,
    "world-": _world,
}
