"""Predicted naturalness: DNSMOS P.835 and P.808, networks that guess what a listening test would say.

Both hear windows of 9.01 s, one a second; a shorter recording is repeated until it fills one, as the published code
does. The P.835 network takes samples, the P.808 network a log mel spectrum of 120 bands. Conventions: samples are
int16, mono, shape (n,), at 16 kHz; opinions from 1 (bad) to 5 (excellent), higher is better, means over the windows.

Sources: C. K. A. Reddy, V. Gopal, R. Cutler, "DNSMOS P.835", ICASSP 2022, and "DNSMOS", ICASSP 2021 (P.808); numbers
equal those of the package speechmos 0.0.1.1 (``speechmos/dnsmos.py``), whose librosa features are rewritten here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Samples
from common.errors import InputError
from common.packages import missing_packages
from speech.audio.files import is_silent
from speech.features.mel import slaney_triangles
from speech.model_files.devices import Device, open_session
from speech.model_files.store import find, is_here, missing_sentence

TITLE = "DNSMOS"
WEIGHTS = ("dnsmos-p835", "dnsmos-p808")
WORTH = (
    "Predicted by a network trained on listening tests of noisy and denoised speech, not of anonymised speech: it "
    "detects noise and artefacts, does not replace listeners, and takes no account of the words or the speaker."
)
LABELS = {
    "signal": "Predicted quality of the speech (DNSMOS P.835 SIG)",
    "background": "Predicted quality of the background (DNSMOS P.835 BAK)",
    "overall": "Predicted overall quality (DNSMOS P.835 OVRL)",
    "p808": "Predicted overall quality (DNSMOS P.808)",
}
RATE_HZ = 16_000
WINDOW_S = 9.01
WINDOW = 144_160  # samples
SHORTEST_S = 0.1  # repeated until it fills a window, less is a buzz and no speech
_AT_ONCE = 8
_BANDS, _FFT, _HOP = 120, 321, 160
# From the network's outputs to opinions: fitted by the authors, highest power first.
_SIGNAL = (-0.08397278, 1.22083953, 0.0052439)
_BACKGROUND = (-0.13166888, 1.60915514, -0.39604546)
_OVERALL = (-0.06766283, 1.11546468, 0.04602535)


@dataclass(frozen=True, slots=True)
class PredictedNaturalness:
    """Predicted mean opinions of a recording, from 1 to 5; the keys of `LABELS` and the number of windows."""

    signal: float
    background: float
    overall: float
    p808: float
    windows: int


class Dnsmos:
    """Both networks in memory. One instance serves one thread."""

    def __init__(self, p835: Path, p808: Path, device: Device = "cpu", threads: int = 1) -> None:
        self._p835, self._p808 = (open_session(path, device, threads=threads) for path in (p835, p808))

    def predict(self, samples: Samples, rate_hz: int = RATE_HZ) -> PredictedNaturalness:
        """Return what listeners would perhaps say of a recording; memory does not grow with its length.

        Args:
            samples: int16, shape (n,).

        Raises:
            InputError: another rate than 16 kHz, less than 0.1 s, or digital silence: nothing can be said of it.
        """
        _require_speech(samples, rate_hz)
        raw: list[NDArray[np.float32]] = []
        noise: list[NDArray[np.float32]] = []
        for windows in _windows(samples):
            raw.append(_run(self._p835, windows))
            noise.append(self._hear_p808(windows))
        signal, background, overall = np.concatenate(raw).astype(np.float64).T
        return PredictedNaturalness(
            signal=float(np.polyval(_SIGNAL, signal).mean()),
            background=float(np.polyval(_BACKGROUND, background).mean()),
            overall=float(np.polyval(_OVERALL, overall).mean()),
            p808=float(np.concatenate(noise).mean(dtype=np.float64)),
            windows=signal.size,
        )

    def predict_p808(self, samples: Samples, rate_hz: int = RATE_HZ) -> float:
        """Return the opinion of the P.808 network alone, in a fifth of the time; takes and raises what `predict`
        does."""
        _require_speech(samples, rate_hz)
        opinions = [self._hear_p808(windows) for windows in _windows(samples)]
        return float(np.concatenate(opinions).mean(dtype=np.float64))

    def _hear_p808(self, windows: NDArray[np.float32]) -> NDArray[np.float32]:
        return _run(self._p808, np.stack([_log_mel(window[:-_HOP]) for window in windows]))


def missing() -> str:
    """Return why nothing can be predicted here, as one sentence; empty where it can."""
    if sentence := missing_packages(TITLE, "onnxruntime"):
        return sentence
    return next((missing_sentence(name) for name in WEIGHTS if not is_here(name)), "")


def load_dnsmos(device: Device = "cpu", threads: int = 1) -> Dnsmos:
    """Return the predictor, its files verified.

    Raises:
        InputError: a package, file or graphics card is missing, or a file is not the published one.
    """
    if sentence := missing():
        raise InputError(sentence)
    return Dnsmos(find("dnsmos-p835"), find("dnsmos-p808"), device, threads)


def _require_speech(samples: Samples, rate_hz: int) -> None:
    if rate_hz != RATE_HZ:
        raise InputError(f"{TITLE} was trained on speech at {RATE_HZ} Hz, found {rate_hz} Hz. Resample first.")
    if samples.size < SHORTEST_S * RATE_HZ:
        raise InputError(f"{TITLE} needs {SHORTEST_S:g} s of speech or more, found {samples.size / RATE_HZ:.3g} s.")
    if is_silent(samples):
        raise InputError(f"{TITLE} needs speech, found {samples.size} samples of silence.")


def _windows(samples: Samples) -> Iterator[NDArray[np.float32]]:
    """Yield the windows of a recording, full scale 1.0, some at a time, shape (k, `WINDOW`)."""
    while samples.size < WINDOW:
        samples = np.concatenate([samples, samples])
    # As published: a window whose end, start plus 9.01 s, is rounded down to a sample less is left out, and so is one
    # that would begin within the last second.
    starts = range(int(samples.size // RATE_HZ - WINDOW_S) + 1)
    inside = [start * RATE_HZ for start in starts if int((start + WINDOW_S) * RATE_HZ) - start * RATE_HZ == WINDOW]
    inside = [start for start in inside if start + WINDOW <= samples.size]
    for first in range(0, len(inside), _AT_ONCE):
        batch = [samples[start : start + WINDOW] for start in inside[first : first + _AT_ONCE]]
        yield np.stack(batch).astype(np.float32) / np.float32(32768)


def _log_mel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return power on mel bands below its maximum, from 80 dB below at −1 to 1, shape (frames, 120).

    As librosa's ``melspectrogram`` and ``power_to_db`` give it: centred frames, zeros outside, periodic Hann window.
    """
    padded = np.pad(samples.astype(np.float64), _FFT // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, _FFT)[::_HOP]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_FFT) / _FFT)
    power = np.abs(np.fft.rfft(frames * window, axis=1)) ** 2 @ slaney_triangles(_FFT, _BANDS).T
    level_db = 10 * np.log10(np.maximum(power, 1e-10))
    level_db -= 10 * np.log10(max(float(power.max()), 1e-10))
    return np.asarray((np.maximum(level_db, -80.0) + 40) / 40, np.float32)


def _run(session: Any, features: NDArray[np.float32]) -> NDArray[np.float32]:
    outcome = session.run(None, {session.get_inputs()[0].name: features})[0]
    return np.asarray(outcome, dtype=np.float32)
