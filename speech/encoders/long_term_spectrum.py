"""The simplest attacker: a speaker is known by the average and the spread of the spectrum of their speech.

It needs no training and no model file, so every machine can run it; neural attackers know speakers far better, and an
EER of this one says how well a voice hides from an untrained eavesdropper, no more. Conventions: samples are int16,
shape (n,); scores grow with likeness, from −1 to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from common.arrays import Floats, Samples
from common.errors import InputError
from speech.encoders.contract import Device, EncoderEngine, SpeakerEncoder, Vectors, check_utterances
from speech.model_files.catalogue import read_engine

BANDS = 40
DIMENSION = 2 * BANDS
LOWEST_RATE_HZ = 16_000
LOWEST_HZ, HIGHEST_HZ = 60.0, 7600.0
WINDOW_S, HOP_S = 0.025, 0.010
QUIETEST_DB = 40.0  # frames further below the loudest one are pauses
_FLOOR = 1e-10


def speaker_vector(samples: Samples, rate_hz: int) -> Floats:
    """Return mean and standard deviation of the log mel spectrum over the frames that hold speech, shape (80,).

    The mean over the bands is taken off each frame, so that level does not count.

    Args:
        samples: int16, shape (n,), one window (25 ms) or longer.

    Raises:
        InputError: fewer samples than one window, or a rate below 16 kHz.

    Source: long-term average spectrum as in T. Kinnunen, V. Hautamäki, P. Fränti, ICSLP 2006; here on mel bands.
    """
    window, hop = round(WINDOW_S * rate_hz), round(HOP_S * rate_hz)
    if samples.size < window or rate_hz < LOWEST_RATE_HZ:
        raise InputError(
            f"Expected at least {window} samples at {LOWEST_RATE_HZ} Hz or more, found {samples.size} at {rate_hz} Hz."
        )
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64) / 32768, window)[::hop]
    power = np.abs(np.fft.rfft(frames * np.hanning(window), axis=1)) ** 2
    energy_db = 10 * np.log10(power.sum(axis=1) + _FLOOR)
    spoken = power[energy_db > energy_db.max() - QUIETEST_DB]
    logs = np.log(spoken @ _mel_bands(rate_hz, window).T + _FLOOR)
    logs -= logs.mean(axis=1, keepdims=True)
    return np.concatenate([logs.mean(axis=0), logs.std(axis=0)])


class LongTermSpectrum:
    """`speaker_vector` as an encoder; its vectors want every dimension centred and scaled before they are compared."""

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """As `speech.encoders.contract.SpeakerEncoder`; any rate from 16 kHz up."""
        if rate_hz < LOWEST_RATE_HZ:
            raise InputError(f"Expected speech at {LOWEST_RATE_HZ} Hz or more, found {rate_hz} Hz.")
        check_utterances(utterances, rate_hz, shortest_samples=round(WINDOW_S * rate_hz), wanted_hz=None)
        vectors = [speaker_vector(samples, rate_hz) for samples in utterances]
        return np.array(vectors, np.float32).reshape(len(vectors), DIMENSION)


def score_trials(
    enrolment: Mapping[str, Sequence[Floats]], tests: Mapping[str, Floats], trials: Iterable[tuple[str, str]]
) -> list[tuple[str, str, float]]:
    """Score each trial by the cosine of the model (mean of its enrolment vectors) and the test vector.

    Every dimension is first centred and scaled by all enrolment vectors.

    Args:
        enrolment: the vectors of each model, each shape (d,).
        tests: the vector of each trial utterance, shape (d,).
        trials: pairs of model and trial utterance.

    Returns:
        Model, utterance and score from −1 to 1, in the order of the trials.

    Raises:
        InputError: a trial names a model or an utterance without a vector, or there are fewer than two enrolment
            vectors to scale by.
    """
    enrolled = [vector for vectors in enrolment.values() for vector in vectors]
    if len(enrolled) < 2:
        raise InputError(
            f"Expected two enrolled vectors or more, by which all are centred and scaled, found {len(enrolled)}."
        )
    every = np.stack(enrolled)
    centre, scale = every.mean(axis=0), every.std(axis=0) + _FLOOR
    models = {name: _direction((np.mean(vectors, axis=0) - centre) / scale) for name, vectors in enrolment.items()}
    sides = {name: _direction((vector - centre) / scale) for name, vector in tests.items()}
    pairs = list(trials)
    unknown = sorted({model for model, _ in pairs} - set(models)) + sorted({test for _, test in pairs} - set(sides))
    if unknown:
        raise InputError(f"Expected a vector of each model and utterance, found none of {', '.join(unknown)}.")
    return [(model, test, float(models[model] @ sides[test])) for model, test in pairs]


def _direction(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def _mel_bands(rate_hz: int, window: int) -> Floats:
    """Return triangles of equal width on the mel scale, shape (bands, window // 2 + 1)."""
    hertz = np.fft.rfftfreq(window, 1 / rate_hz)
    edges = _hertz(np.linspace(_mel(LOWEST_HZ), _mel(HIGHEST_HZ), BANDS + 2))
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (hertz - low) / (middle - low), (high - hertz) / (high - middle)
    bands = np.maximum(0.0, np.minimum(rising, falling))
    # The lowest triangles may be narrower than the spacing of the spectrum: each keeps its nearest line.
    nearest = np.abs(hertz - middle).argmin(axis=1)
    empty = bands.sum(axis=1) == 0
    bands[empty, nearest[empty]] = 1.0
    return bands


def _mel(hertz: float) -> float:
    return float(2595 * np.log10(1 + hertz / 700))


def _hertz(mel: Floats) -> Floats:
    return 700 * (10 ** (mel / 2595) - 1)


def _load(device: Device) -> SpeakerEncoder:
    if device == "cuda":
        raise InputError("The long-term spectrum cannot run on a graphics card. Choose the device “cpu”.")
    return LongTermSpectrum()


ENGINE = read_engine(EncoderEngine, __file__, "long-term-spectrum", load=_load, dimension=DIMENSION)
