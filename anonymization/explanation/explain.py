"""Spectrum, envelope, resonances and F0 of a voice at one instant, and which resonances of two voices belong together.

Conventions: levels in dB, where 0 dB is a sine of full scale; frequencies in Hz; F0 is 0 where a frame is unvoiced. The
frame is 40 ms long, three periods of the lowest F0, centred on the instant; what lies outside of the recording is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FRAME_S = 0.04
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


def look_at(samples: npt.NDArray[np.int16], rate: int, at_s: float) -> Side:
    """What there is to see of a voice at an instant.

    samples: int16, shape (n,), `rate` in Hz. at_s: seconds from the start.
    """
    wave = frame_at(samples, rate, at_s) / _FULL_SCALE
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


def frame_at(samples: npt.NDArray[np.int16], rate: int, at_s: float) -> Floats:
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


def burg(frame: Floats, order: int) -> Floats:
    """The prediction polynomial of Burg's method (1975), shape (order + 1,), first coefficient 1.

    frame: shape (n,), n > order + 1.
    """
    forward, backward = frame[1:].copy(), frame[:-1].copy()
    coefficients = np.zeros(order + 1)
    coefficients[0] = 1.0
    for step in range(order):
        energy = forward @ forward + backward @ backward
        reflection = -2 * (forward @ backward) / (energy + _TINY)
        coefficients[1 : step + 2] += reflection * coefficients[step::-1].copy()
        forward, backward = (forward + reflection * backward)[1:], (backward + reflection * forward)[:-1]
    return coefficients


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
    f0 = rate / (best + _offset_of_top(normal, best))
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


def _all_pole_model(wave: Floats, window: Floats, rate: int) -> Floats:
    """Prediction polynomial of the pre-emphasised frame: a pole pair for each kHz, as a vocal tract of 17 cm has."""
    raised = np.append(wave[0], wave[1:] - _PRE_EMPHASIS * wave[:-1])
    return burg(raised * window, 2 * round(rate / 2000))


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


def _offset_of_top(values: Floats, top: int) -> float:
    """Where between its neighbours a maximum lies, -0.5 to 0.5, by the parabola through the three."""
    left, middle, right = values[top - 1 : top + 2]
    bend = left - 2 * middle + right
    return float(0.5 * (left - right) / bend) if bend < 0 else 0.0


def _autocorrelation(frame: Floats) -> Floats:
    power = np.abs(np.fft.rfft(frame, 2 * frame.size)) ** 2
    return np.fft.irfft(power)[: frame.size]
