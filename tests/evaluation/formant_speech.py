"""Voices that a spectrum tells apart, made in a moment."""

from functools import cache

import numpy as np

RATE_HZ = 16000


@cache
def voice(speaker, sentence, *, seconds=0.6):
    """Speech of one of these speakers: each has formants of their own, each sentence a pitch of its own."""
    time = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    hertz = 110 + 7 * sentence
    own = [500 + 170 * speaker, 1500 + 230 * ((3 * speaker) % 7), 2600 + 150 * ((5 * speaker) % 8)]
    parts = []
    for n in range(1, 50):
        strength = sum(np.exp(-(((n * hertz - formant) / 180) ** 2)) for formant in own) + 0.01
        parts.append(strength * np.sin(2 * np.pi * n * hertz * time))
    made = (2500 * np.sum(parts, axis=0) * np.sin(np.pi * time / seconds)).astype(np.int16)
    made.setflags(write=False)
    return made
