"""What the x-vector network of the 2022 challenge hears: 30 cepstral coefficients of the frames that hold speech.

Kaldi's mel-frequency cepstral coefficients from 20 to 7600 Hz, the first replaced by the energy of the frame, the mean
of the 3 s around each frame taken off, frames below an energy threshold dropped. Needs no torch. Conventions: samples
int16 at 16 kHz, shape (n,); features float32, shape (frames, 30), a frame every 10 ms. Source: VoicePrivacy 2022 recipe
(``conf/mfcc.conf``, ``conf/vad.conf``); Kaldi ``feature-mfcc.cc``, ``voice-activity-detection.cc``,
``sliding-window-cmn``.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from common.errors import MetricInputError
from speech.features.mel import FilterbankOptions, Floats, log_mel_filterbank

Samples = npt.NDArray[np.int16]

COEFFICIENTS = 30
OPTIONS = FilterbankOptions(bands=COEFFICIENTS, lowest_hz=20.0, highest_hz=7600.0)
LIFTER = 22.0
MEAN_FRAMES = 300  # 3 s
ENERGY_THRESHOLD, ENERGY_MEAN_SCALE = 5.5, 0.5
CONTEXT_FRAMES, LOUD_SHARE = 2, 0.12


def xvector_features(samples: Samples) -> Floats:
    """Features of the frames that hold speech, shape (voiced frames, 30).

    Raises:
        MetricInputError: under 25 ms of samples, or no frame that holds speech.
    """
    cepstra = cepstral_coefficients(samples)
    voiced = voiced_frames(cepstra[:, 0])
    if not voiced.any():
        raise MetricInputError(f"Expected speech, found none in {len(cepstra)} frames. Leave this utterance out.")
    return without_local_mean(cepstra)[voiced]


def cepstral_coefficients(samples: Samples) -> Floats:
    """Liftered cepstra of log mel energies, shape ((n + 80) // 160, 30); frames at the ends are mirrored.

    The first is not the cepstrum's but the natural log of the frame's energy, samples at the scale of int16: the
    recipe leaves Kaldi's ``--use-energy`` and ``--raw-energy`` as they are, true.

    Raises:
        MetricInputError: fewer samples than one frame.
    """
    frame, hop = OPTIONS.frame_samples, OPTIONS.hop_samples
    if samples.size < frame:
        raise MetricInputError(f"Expected at least {frame} samples for one frame, found {samples.size}.")
    before = frame // 2 - hop // 2
    frames = (samples.size + hop // 2) // hop
    behind = max(0, (frames - 1) * hop + frame - before - samples.size)
    padded = np.pad(samples, (before, behind), mode="symmetric")
    energies = log_mel_filterbank(padded, OPTIONS)[:frames]
    cepstra = np.asarray(energies @ _cosines(), np.float32)
    cepstra[:, 0] = _log_energies(padded, frames)
    return cepstra


def without_local_mean(features: Floats, window: int = MEAN_FRAMES) -> Floats:
    """Features less their mean in a window around each frame, as long at the ends as in the middle.

    Args:
        features: shape (frames, coefficients).
        window: frames.
    """
    count = len(features)
    size = min(window, count)
    starts = np.clip(np.arange(count) - window // 2, 0, count - size)
    sums = np.concatenate([np.zeros((1, features.shape[1])), np.cumsum(features, axis=0, dtype=np.float64)])
    means = (sums[starts + size] - sums[starts]) / size
    return np.asarray(features - means, np.float32)


def voiced_frames(log_energies: Floats) -> npt.NDArray[np.bool_]:
    """Whether enough frames around each are louder than the threshold, shape (frames,).

    Args:
        log_energies: as the first of `cepstral_coefficients`, shape (frames,).
    """
    threshold = ENERGY_THRESHOLD + ENERGY_MEAN_SCALE * float(log_energies.mean(dtype=np.float64))
    loud = np.concatenate([[0], np.cumsum(log_energies > threshold)])
    places = np.arange(log_energies.size)
    first = np.maximum(places - CONTEXT_FRAMES, 0)
    behind = np.minimum(places + CONTEXT_FRAMES + 1, log_energies.size)
    shares = (loud[behind] - loud[first]) / (behind - first)
    return np.asarray(shares >= LOUD_SHARE, np.bool_)


def _log_energies(samples: Samples, frames: int) -> Floats:
    """Natural log of the summed squares of each frame around its mean, shape (frames,)."""
    frame, values = OPTIONS.frame_samples, samples.astype(np.int64)
    starts = np.arange(frames) * OPTIONS.hop_samples
    # Sums of integers are exact, however long the recording.
    sums, squares = (np.append(0, np.cumsum(power)) for power in (values, values**2))
    summed = (sums[starts + frame] - sums[starts]).astype(np.float64)
    energies = squares[starts + frame] - squares[starts] - summed**2 / frame
    return np.asarray(np.log(np.maximum(energies, np.finfo(np.float32).eps)), np.float32)


@cache
def _cosines() -> Floats:
    """Discrete cosine transform (orthonormal) times lifter, shape (bands, coefficients)."""
    bands, order = np.arange(COEFFICIENTS) + 0.5, np.arange(COEFFICIENTS)
    transform = np.sqrt(2 / COEFFICIENTS) * np.cos(np.pi / COEFFICIENTS * np.outer(bands, order))
    transform[:, 0] = np.sqrt(1 / COEFFICIENTS)
    lifter = 1 + 0.5 * LIFTER * np.sin(np.pi * order / LIFTER)
    return np.asarray(transform * lifter, np.float32)
