"""Fundamental frequency (F0) of an utterance, and which estimator found it.

The estimator of the challenge is Praat's autocorrelation method with the settings of the official
2022 script; WORLD's DIO (with StoneMask) and Harvest, and YAAPT, can be chosen instead by name. A
contour carries its estimator and frame times, so that it can be stored and drawn.

Conventions: frequencies in Hz, 0 is an unvoiced frame; times in seconds from the start of the file;
samples are mono, int16 or floating point in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.packages import missing_packages
from speech.audio.files import to_unit_scale
from speech.pitch import yaapt
from speech.vocoders.world_library import load_world, missing_world

FLOOR_HZ = 75.0
CEILING_HZ = 500.0
STEP_S = 0.01
# Praat analyses windows of three periods of the floor: 40 ms, 640 samples at 16 kHz.
WINDOW_MS = 40


@dataclass(frozen=True, slots=True)
class F0Track:
    """An F0 contour on a regular time grid.

    Attributes:
        hz: shape (frames,), float64; 0 where unvoiced.
        start_s: centre of the first frame.
        step_s: distance between frame centres.
        estimator: program, versions, method and range, such as
            ``praat 6.1.38 (parselmouth 0.4.7) to-pitch-ac 75-500 Hz`` or
            ``world (pyworld 0.3.5) harvest 75-500 Hz``.
    """

    hz: NDArray[np.float64]
    start_s: float
    step_s: float
    estimator: str

    @property
    def times_s(self) -> NDArray[np.float64]:
        """Centres of the frames, shape (frames,)."""
        return self.start_s + self.step_s * np.arange(self.hz.size, dtype=np.float64)


def track_f0(samples: NDArray[np.generic], rate: int, estimator: str = "praat") -> F0Track:
    """Return F0 contour by the estimator of that name; 10 ms steps, 75 to 500 Hz.

    Args:
        samples: shape (samples,), int16, or floating point in [-1, 1].
        rate: samples per second.
        estimator: a key of `ESTIMATORS`: ``praat`` (the challenge's), ``dio`` (WORLD's DIO refined
            by StoneMask), ``harvest`` (WORLD's Harvest) or ``yaapt``.

    Silence and noise give a contour of zeros (Harvest may take noise for a voiced frame or two;
    YAAPT may take noise between voices, or alone, for voiced).
    Contours of different estimators have different frame counts and start times: compare only
    contours of the same one.

    Raises:
        InputError: an unknown estimator, one whose package is not installed, not mono,
            another type, not finite, a rate that is not positive (WORLD, YAAPT: below 1000 Hz), or
            shorter than 40 ms (640 samples at 16 kHz).

    Example:
        >>> tone = 0.5 * np.cos(2 * np.pi * 120 * np.arange(16000) / 16000)
        >>> round(float(np.median(track_f0(tone, 16000).hz)))
        120
    """
    if estimator not in ESTIMATORS:
        raise InputError(f"F0 estimators are {', '.join(ESTIMATORS)}; found “{estimator}”. Name one of these.")
    return ESTIMATORS[estimator].track(samples, rate)


def track_f0_praat(samples: NDArray[np.generic], rate: int) -> F0Track:
    """Return F0 contour by Praat's "To Pitch": step 10 ms, floor 75 Hz, ceiling 500 Hz, else its defaults.

    Source: Boersma (1993), "Accurate short-term analysis of the fundamental frequency and the
    harmonics-to-noise ratio of a sampled sound"; settings of ``pitch_correlation.py`` of the
    VoicePrivacy 2022 recipe.

    Args:
        samples: shape (samples,), int16, or floating point in [-1, 1].
        rate: samples per second.

    Raises:
        InputError: not mono, another type, not finite, or shorter than 40 ms (640 samples
            at 16 kHz).
    """
    signal = to_unit_scale(samples)
    _validate(signal, rate, "Praat")
    import parselmouth

    pitch = parselmouth.Sound(signal, sampling_frequency=float(rate)).to_pitch(
        time_step=STEP_S, pitch_floor=FLOOR_HZ, pitch_ceiling=CEILING_HZ
    )
    hz = np.array(pitch.selected_array["frequency"], dtype=np.float64)
    return F0Track(hz, float(pitch.x1), float(pitch.dx), praat_estimator())


def track_f0_dio(samples: NDArray[np.generic], rate: int) -> F0Track:
    """Return F0 contour by WORLD's DIO, refined by StoneMask; arguments and errors as `track_f0`.

    Source: Morise, Kawahara, Katayose (2009), "Fast and reliable F0 estimation method based on the
    period extraction of vocal fold vibration of singing voice and speech".
    """
    world, signal = _world(samples, rate)
    coarse, times_s = world.dio(signal, rate, **_WORLD_OPTIONS)
    return F0Track(world.stonemask(signal, coarse, times_s, rate), 0.0, STEP_S, _world_name("dio+stonemask"))


def track_f0_harvest(samples: NDArray[np.generic], rate: int) -> F0Track:
    """Return F0 contour by WORLD's Harvest; arguments and errors as `track_f0`.

    Source: Morise (2017), "Harvest: a high-performance fundamental frequency estimator from speech
    signals".
    """
    world, signal = _world(samples, rate)
    hz, _ = world.harvest(signal, rate, **_WORLD_OPTIONS)
    return F0Track(hz, 0.0, STEP_S, _world_name("harvest"))


def track_f0_yaapt(samples: NDArray[np.generic], rate: int) -> F0Track:
    """Return F0 contour by YAAPT, the tracker of the challenge's baselines B1 and ASR-BN; as `track_f0`.

    Other rates are resampled to 16 kHz. What is voiced depends on the mean energy of the utterance.

    Source: Zahorian, Hu (2008), "A spectral/temporal method for robust fundamental frequency
    tracking", JASA 123(6); see `yaapt`.
    """
    signal = to_unit_scale(samples)
    _validate(signal, rate, "YAAPT")
    _validate_rate(rate, "YAAPT")
    if sentence := missing_packages("F0 by YAAPT", yaapt.PACKAGE):
        raise InputError(sentence)
    if rate != yaapt.RATE_HZ:
        import soxr

        signal = soxr.resample(signal, rate, yaapt.RATE_HZ, quality="VHQ")
    name = f"yaapt ({yaapt.PACKAGE} {version(yaapt.PACKAGE)}) {FLOOR_HZ:g}-{CEILING_HZ:g} Hz"
    return F0Track(yaapt.track_contour(signal, FLOOR_HZ, CEILING_HZ), 0.0, yaapt.STEP / yaapt.RATE_HZ, name)


@dataclass(frozen=True, slots=True)
class Estimator:
    """An F0 estimator as commands name and describe it; `track` takes samples and rate as `track_f0` does."""

    name: str
    title: str
    track: Callable[[NDArray[np.generic], int], F0Track]


# A new estimator is added here and nowhere else; the first one is the challenge's.
ESTIMATORS = {
    estimator.name: estimator
    for estimator in (
        Estimator("praat", "Praat's autocorrelation, the challenge's (praat-parselmouth)", track_f0_praat),
        Estimator("dio", "WORLD's DIO, refined by StoneMask (pyworld)", track_f0_dio),
        Estimator("harvest", "WORLD's Harvest (pyworld)", track_f0_harvest),
        Estimator("yaapt", "YAAPT, that of baselines B1 and ASR-BN (amfm-decompy)", track_f0_yaapt),
    )
}


def f0_praat(samples: NDArray[np.generic], rate: int) -> NDArray[np.float64]:
    """Return the contour alone of `track_f0_praat`: shape (frames,), Hz, 0 where unvoiced."""
    return track_f0_praat(samples, rate).hz


def praat_estimator() -> str:
    """Name of the Praat estimator with the versions that are installed."""
    import parselmouth

    return (
        f"praat {parselmouth.PRAAT_VERSION} (parselmouth {parselmouth.__version__}) "
        f"to-pitch-ac {FLOOR_HZ:g}-{CEILING_HZ:g} Hz"
    )


_WORLD_OPTIONS: dict[str, Any] = {"f0_floor": FLOOR_HZ, "f0_ceil": CEILING_HZ, "frame_period": 1000 * STEP_S}
_LOWEST_RATE = int(2 * CEILING_HZ)


def _world_name(method: str) -> str:
    return f"world (pyworld {version('pyworld')}) {method} {FLOOR_HZ:g}-{CEILING_HZ:g} Hz"


def _world(samples: NDArray[np.generic], rate: int) -> tuple[ModuleType, NDArray[np.float64]]:
    """WORLD, and the samples as it takes them."""
    signal = to_unit_scale(samples)
    _validate(signal, rate, "WORLD")
    _validate_rate(rate, "WORLD")
    if sentence := missing_world("F0 by WORLD"):
        raise InputError(sentence)
    return load_world(), np.ascontiguousarray(signal)


def _validate_rate(rate: int, program: str) -> None:
    if rate < _LOWEST_RATE:
        raise InputError(f"F0 by {program} needs a rate of at least {_LOWEST_RATE} Hz, found {rate}.")


def _validate(signal: NDArray[np.float64], rate: int, program: str) -> None:
    if rate <= 0:
        raise InputError(f"F0 needs a positive sampling rate, found {rate}.")
    shortest = -(-rate * WINDOW_MS // 1000)
    if signal.size < shortest:
        raise InputError(
            f"F0 by {program} needs at least {shortest} samples ({WINDOW_MS} ms at {rate} Hz), "
            f"found {signal.size}. Leave this utterance out or give a longer one."
        )
    if not np.isfinite(signal).all():
        count = int(np.count_nonzero(~np.isfinite(signal)))
        raise InputError(
            f"F0 needs finite samples, found {count} of {signal.size} that are NaN or infinite. Write the file again."
        )
