"""A stand-in for Whisper's encoder that needs no model file: the log spectrum of each frame, and its place."""

from __future__ import annotations

import numpy as np

from speech.conversion.nearest_frames import FRAME_SAMPLES, WINDOW_FRAMES

WIDTH = 512


def make_positions(width=WIDTH):
    """Sines and cosines of periods from 6 frames to 60,000, as the published network has them."""
    rates = np.exp(-np.log(10_000) * np.arange(width // 2) / (width // 2 - 1))
    angles = np.arange(WINDOW_FRAMES)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


class SpectralEncoder:
    """`encode` and `positions` of `WhisperLayers`."""

    positions = make_positions()

    def encode(self, utterances, rate_hz, layers):  # noqa: ARG002 - as the encoder has it
        return [np.stack([self._layer(samples) for _ in layers]) for samples in utterances]

    def _layer(self, samples):
        frames = -(-samples.size // FRAME_SAMPLES)
        assert 1 <= frames <= WINDOW_FRAMES
        padded = np.pad(samples.astype(np.float64), (0, frames * FRAME_SAMPLES - samples.size))
        spectrum = np.abs(np.fft.rfft(padded.reshape(frames, FRAME_SAMPLES), axis=1))
        values = np.log(spectrum + 100)[:, np.arange(WIDTH) % spectrum.shape[1]]
        return (values + 0.1 * self.positions[:frames]).astype(np.float32)
