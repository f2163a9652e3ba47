"""What an anonymiser did to one instant of an utterance, as numbers to draw and sentences to read.

For any two recordings: spectra, envelopes, resonances, F0 and waveform of the frame; for methods that say so
(`Method.inspect`) also what they do inside.

Conventions: levels in dB, where 0 dB is a sine of full scale; frequencies in Hz; F0 is 0 where a frame is unvoiced. The
frame is 40 ms long, three periods of the lowest F0, centred on the instant; what lies outside of the recording is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from anonymization.methods.contract import (
    FRAME_S,
    Anonymizer,
    Inside,
    Instant,
    MarksInFrame,
    Method,
    MethodError,
    Options,
    Poles,
    PseudoSpeaker,
    WarpMap,
    complete_options,
)
from anonymization.methods.mcadams.numba_engine import fit_polynomial
from common.arrays import Floats, Samples

STEP_S = 0.01
_LOWEST_RATE_HZ = 2000
_MAX_CANDIDATES = 200
_CLEARLY_VOICED = 0.9
# Resonances of a sentence: the lowest make the vowel, and all are in the numbers.
_SAID = 4
# Smaller changes are within what estimating from one frame leaves open.
_SAME_F0, _SAME_LEVEL_DB = 0.01, 0.5

LOWEST_F0_HZ, HIGHEST_F0_HZ = 75.0, 500.0
FLOOR_DB = -120.0
HIGHEST_RESONANCE_HZ = 7500.0
# A frame below this is silence: the resonances of rounding noise are nobody's.
SILENCE_DBFS = -65.0

_FULL_SCALE = 32768
_BINS_HZ = 10.0
_PRE_EMPHASIS = 0.97
_LOWEST_RESONANCE_HZ = 120.0
_WIDEST_HZ = 700.0
_VOICED_CORRELATION = 0.5
# Per octave below the highest candidate: a period is preferred to its double, which correlates as well.
_OCTAVE_COST = 0.05
# A resonance that went further than this from where it is expected, in octaves, is another one.
_FARTHEST_OCTAVES = 0.4
_TINY = 1e-30


@dataclass(frozen=True)
class Side:
    """One voice at the instant.

    f0_hz: 0 where unvoiced. level_dbfs: of the frame, root mean square, at least -120.
    spectrum_db, envelope_db: shape (bins,), at `Explanation.frequencies_hz`; the envelope is that of an all-pole model,
        raised so that it lies over nine tenths of the spectrum.
    peaks_hz, peaks_db: shape (peaks,), the resonances, rising, and their height on the envelope; none in silence.
    wave: shape (frame samples,), full scale ±1, the frame itself without a window.
    """

    f0_hz: float
    level_dbfs: float
    spectrum_db: Floats
    envelope_db: Floats
    peaks_hz: Floats
    peaks_db: Floats
    wave: Floats

    @property
    def is_silent(self) -> bool:
        return self.level_dbfs < SILENCE_DBFS


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
    marks: MarksInFrame | None
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
        at_s: seconds from the start of both, up to the end of the shorter; None for the `find_best_instant`.
        f0_hz: of original and anonymised there where it was measured before, 0 where unvoiced; None estimates both.
        with_marks: whether methods that work by pitch marks show them, for which a compiled kernel is loaded.

    Raises:
        MethodError: samples, rate or instant that are not as above; says expected and found.
    """
    latest_s = find_last_instant(samples, output, rate)
    if at_s is None:
        at_s = find_best_instant(samples[: min(samples.size, output.size)], rate)
    if not 0 <= at_s <= latest_s:
        limits = f"between 0 and {latest_s:.2f} s, where both recordings are"
        raise MethodError(f"The instant must be {limits}; found {at_s:g} s.")
    inside = Inside()
    if isinstance(method, Method) and method.inspect is not None and voice is not None:
        # The numbers of a run of an earlier version of the method may have had other names.
        with suppress(MethodError, KeyError):
            complete = complete_options(method, options)
            inside = method.inspect(Instant(samples, output, rate, voice.parameters, complete, at_s, with_marks))
    original, anonymised = look_at(samples, rate, at_s), look_at(output, rate, at_s)
    if f0_hz is not None:
        original, anonymised = replace(original, f0_hz=f0_hz[0]), replace(anonymised, f0_hz=f0_hz[1])
    before, after = original.peaks_hz.tolist(), anonymised.peaks_hz.tolist()
    expected = inside.expected
    if not inside.sentences:  # nothing tells where the method moves them to
        factor = find_common_factor(before, after)
        expected = lambda hertz: hertz * factor  # noqa: E731
    moves = pair_resonances(before, after, expected)
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
        sentences=(*inside.sentences, _describe_change(original, anonymised, moves, at_s)),
    )


def find_last_instant(samples: Samples, output: Samples, rate: int) -> float:
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


def find_best_instant(samples: Samples, rate: int) -> float:
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
        _, periodicity = find_f0(cut_frame(samples, rate, index * STEP_S), rate)
        if periodicity > most:
            best, most = index, periodicity
        if most >= _CLEARLY_VOICED:
            break
    return float(round(best * STEP_S, 2))


def _describe_change(original: Side, anonymised: Side, moves: Sequence[tuple[float, float]], at_s: float) -> str:
    if original.is_silent and anonymised.is_silent:
        return f"At {at_s:.2f} s both recordings are silent: there is nothing to explain."
    if original.is_silent or anonymised.is_silent:
        silent, other = ("original", "anonymised") if original.is_silent else ("anonymised", "original")
        return f"At {at_s:.2f} s the {silent} recording is silent and the {other} one is not."
    parts = [_describe_resonances(moves), _describe_f0(original.f0_hz, anonymised.f0_hz)]
    if abs(louder := anonymised.level_dbfs - original.level_dbfs) >= _SAME_LEVEL_DB:
        parts.append(f"it is {abs(louder):.1f} dB {'louder' if louder > 0 else 'softer'}")
    return f"At {at_s:.2f} s {'; '.join(parts)}."


def _describe_resonances(moves: Sequence[tuple[float, float]]) -> str:
    if not moves:
        return "no resonance of the original is found in the anonymised voice"
    said = moves[:_SAID]
    before, after = (_listed(f"{hertz:.0f}" for hertz in side) for side in zip(*said, strict=True))
    if len(said) == 1:
        return f"the resonance at {before} Hz is at {after} Hz in the anonymised voice"
    return f"the resonances at {before} Hz are at {after} Hz in the anonymised voice"


def _describe_f0(before_hz: float, after_hz: float) -> str:
    if not before_hz and not after_hz:
        return "neither voice has an F0 there"
    if not before_hz:
        return f"the original has no F0 there, the anonymised voice has one of {after_hz:.0f} Hz"
    if not after_hz:
        return f"the original has an F0 of {before_hz:.0f} Hz, the anonymised voice has none there"
    if abs(after_hz / before_hz - 1) < _SAME_F0:
        return f"F0 stays at {before_hz:.0f} Hz"
    semitones = 12 * np.log2(after_hz / before_hz)
    change = f"{semitones:+.1f}".replace("-", "−")
    return f"F0 goes from {before_hz:.0f} to {after_hz:.0f} Hz ({change} semitones)"


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


# Spectrum, resonances and F0 of one voice at the instant ---------------------------------------------


def look_at(samples: Samples, rate: int, at_s: float) -> Side:
    """What there is to see of a voice at an instant.

    samples: int16, shape (n,), `rate` in Hz. at_s: seconds from the start.
    """
    wave = cut_frame(samples, rate, at_s) / _FULL_SCALE
    level = 10 * math.log10(float(np.mean(wave * wave)) + 10 ** (FLOOR_DB / 10))
    window = np.hanning(wave.size)
    size = transform_size(rate)
    spectrum = np.abs(np.fft.rfft(wave * window, size)) / (window.sum() / 2)
    spectrum_db = 20 * np.log10(np.maximum(spectrum, 10 ** (FLOOR_DB / 20)))
    if level < SILENCE_DBFS:
        nothing = np.zeros(0)
        return Side(0.0, level, spectrum_db, np.full(spectrum_db.size, FLOOR_DB), nothing, nothing, wave)
    polynomial = _all_pole_model(wave, window, rate)
    envelope_db = _envelope(polynomial, size)
    envelope_db += np.percentile(spectrum_db - envelope_db, 90)
    peaks_hz = _resonances(polynomial, rate)
    return Side(
        f0_hz=find_f0(wave, rate)[0],
        level_dbfs=level,
        spectrum_db=spectrum_db,
        envelope_db=np.maximum(envelope_db, FLOOR_DB),
        peaks_hz=peaks_hz,
        peaks_db=np.interp(peaks_hz, frequencies(rate), envelope_db),
        wave=wave,
    )


def cut_frame(samples: Samples, rate: int, at_s: float) -> Floats:
    """The samples within 20 ms of the instant, shape (frame samples,), zero outside of the recording."""
    half = round(FRAME_S * rate / 2)
    first = round(at_s * rate) - half
    frame = np.zeros(2 * half)
    start, stop = max(0, first), min(samples.size, first + 2 * half)
    if start < stop:
        frame[start - first : stop - first] = samples[start:stop]
    return frame


def transform_size(rate: int) -> int:
    """Points of the Fourier transform: bins of 10 Hz or narrower, and no fewer than the frame."""
    return 1 << math.ceil(math.log2(max(rate / _BINS_HZ, FRAME_S * rate)))


def frequencies(rate: int) -> Floats:
    """Of the bins of a spectrum, in Hz."""
    return np.fft.rfftfreq(transform_size(rate), 1 / rate).astype(np.float64)


def find_f0(wave: Floats, rate: int) -> tuple[float, float]:
    """F0 of a frame, 0 where unvoiced, and how periodic it is, 0 to 1, by its autocorrelation over that of its window.

    wave: shape (n,), at least three periods of the lowest F0. Source: Boersma (1993), "Accurate short-term analysis of
    the fundamental frequency and the harmonics-to-noise ratio of a sampled sound", equations 8 to 10 and 24.
    """
    window = np.hanning(wave.size)
    correlation = _autocorrelation((wave - wave.mean()) * window)
    if correlation[0] < _TINY:
        return 0.0, 0.0
    first, last = int(rate / HIGHEST_F0_HZ), min(math.ceil(rate / LOWEST_F0_HZ), wave.size // 2)
    lags = np.arange(last + 2)
    of_window = _autocorrelation(window)[lags]
    normal = correlation[lags] / correlation[0] * of_window[0] / np.maximum(of_window, _TINY)
    inner = np.arange(max(first, 1), last + 1)
    tops = inner[(normal[inner] >= normal[inner - 1]) & (normal[inner] > normal[inner + 1])]
    tops = tops[normal[tops] >= _VOICED_CORRELATION]
    if not tops.size:
        return 0.0, 0.0
    best = int(tops[np.argmax(normal[tops] - _OCTAVE_COST * np.log2(tops / first))])
    f0 = rate / (best + _find_top_offset(normal, best))
    if not LOWEST_F0_HZ <= f0 <= HIGHEST_F0_HZ:
        return 0.0, 0.0
    return float(f0), min(1.0, float(normal[best]))


def pair_resonances(
    before_hz: Sequence[float], after_hz: Sequence[float], expected: Callable[[Floats], Floats] | None = None
) -> tuple[tuple[float, float], ...]:
    """Resonances of the original with what they became, rising; each once, and none crosses another.

    As many as can be, so that all moved least; none lies further than 0.4 octaves from where it is expected.

    expected: where a method moves frequencies to, in Hz, rising as they do; None expects them to stay.
    """
    before, after = np.asarray(before_hz, float), np.asarray(after_hz, float)
    if not before.size or not after.size:
        return ()
    aimed = expected(before) if expected else before
    away = np.abs(np.log2(np.maximum(aimed, 1.0)[:, None] / after[None, :]))
    # Dynamic programming over prefixes; leaving two alone costs as much as the farthest way to pair them.
    rows, columns = away.shape
    cost = np.zeros((rows + 1, columns + 1))
    cost[:, 0] = _FARTHEST_OCTAVES / 2 * np.arange(rows + 1)
    cost[0, :] = _FARTHEST_OCTAVES / 2 * np.arange(columns + 1)
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            alone = _FARTHEST_OCTAVES / 2 + min(cost[i - 1, j], cost[i, j - 1])
            cost[i, j] = min(alone, cost[i - 1, j - 1] + away[i - 1, j - 1])
    pairs = []
    i, j = rows, columns
    while i and j:
        if cost[i, j] == cost[i - 1, j - 1] + away[i - 1, j - 1]:
            pairs.append((float(before[i - 1]), float(after[j - 1])))
            i, j = i - 1, j - 1
        elif cost[i, j] == _FARTHEST_OCTAVES / 2 + cost[i - 1, j]:
            i -= 1
        else:
            j -= 1
    return tuple(reversed(pairs))


def find_common_factor(before_hz: Sequence[float], after_hz: Sequence[float]) -> float:
    """By how much all resonances moved together, at most 0.4 octaves: 1, or the ratio of two of them that fits best.

    A ratio fits by how near each resonance of either voice comes to one of the other; what has none near counts alike.
    """
    before, after = np.log2(np.asarray(before_hz, float)), np.log2(np.asarray(after_hz, float))
    if not before.size or not after.size:
        return 1.0
    moved = (after[None, :] - before[:, None]).ravel()
    tried = np.concatenate([[0.0], sorted(moved[np.abs(moved) <= _FARTHEST_OCTAVES], key=abs)])
    away = np.abs(before[None, :, None] + tried[:, None, None] - after[None, None, :])
    cost = sum(np.minimum(away.min(axis), _FARTHEST_OCTAVES / 2).sum(axis=1) for axis in (1, 2))
    return float(2 ** tried[int(np.argmin(cost))])


def _all_pole_model(wave: Floats, window: Floats, rate: int) -> Floats:
    """Prediction polynomial of the pre-emphasised frame: a pole pair for each kHz, as a vocal tract of 17 cm has."""
    raised = np.append(wave[0], wave[1:] - _PRE_EMPHASIS * wave[:-1])
    return fit_polynomial(raised * window, 2 * round(rate / 2000))


def _envelope(polynomial: Floats, size: int) -> Floats:
    """Of the frame as it was before the pre-emphasis, in dB, shape (bins,), at no particular level."""
    response = np.abs(np.fft.rfft(polynomial, size) * np.fft.rfft([1.0, -_PRE_EMPHASIS], size))
    return -20 * np.log10(np.maximum(response, _TINY))


def _resonances(polynomial: Floats, rate: int) -> Floats:
    """Frequencies of the poles that are narrow enough to be heard as resonances, rising."""
    poles = np.roots(polynomial)
    poles = poles[(poles.imag > 0) & (np.abs(poles) > 0)]
    hertz = np.angle(poles) * rate / (2 * np.pi)
    width_hz = -np.log(np.abs(poles)) * rate / np.pi
    highest = min(HIGHEST_RESONANCE_HZ, 0.47 * rate)
    return np.sort(hertz[(width_hz < _WIDEST_HZ) & (hertz > _LOWEST_RESONANCE_HZ) & (hertz < highest)])


def _find_top_offset(values: Floats, top: int) -> float:
    """Where between its neighbours a maximum lies, -0.5 to 0.5, by the parabola through the three."""
    left, middle, right = values[top - 1 : top + 2]
    bend = left - 2 * middle + right
    return float(0.5 * (left - right) / bend) if bend < 0 else 0.0


def _autocorrelation(frame: Floats) -> Floats:
    power = np.abs(np.fft.rfft(frame, 2 * frame.size)) ** 2
    return np.fft.irfft(power)[: frame.size]
