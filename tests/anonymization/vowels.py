"""Vowels of known F0 and formants: a train of pulses through resonators in cascade (Klatt 1980)."""

import numpy as np
from scipy.signal import lfilter

RATE_HZ = 16_000
WIDTHS_HZ = (80, 100, 120, 150)


def vowel(f0_hz, formants_hz, seconds=0.5, peak=8000, rate_hz=RATE_HZ):
    """Int16, shape (n,)."""
    phase = np.cumsum(np.full(int(rate_hz * seconds), f0_hz / rate_hz))
    pulses = np.append(0.0, np.diff(np.floor(phase)))
    sound = lfilter([1.0], [1.0, -0.96], pulses)
    for hertz, width_hz in zip(formants_hz, WIDTHS_HZ, strict=True):
        radius = np.exp(-np.pi * width_hz / rate_hz)
        sound = lfilter([1.0], [1.0, -2 * radius * np.cos(2 * np.pi * hertz / rate_hz), radius**2], sound)
    return (sound / np.abs(sound).max() * peak).astype(np.int16)
