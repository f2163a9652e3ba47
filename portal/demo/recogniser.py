"""The recogniser of the demo's teams, which is simulated: it hears no speech, it makes errors in the transcripts.

A word is misheard with a probability that grows with what was done to the voice, (1 − α)² of McAdams coefficient α,
and differs between utterances, whose sentences are easy or hard for whatever system. So each utterance has a word
error rate that goes with its distortion, as a real recogniser's does; its numbers say nothing about real ones.
Public: `recognise`, `hypotheses`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

ERROR_OF_ORIGINAL = 0.02
ERROR_OF_DISTORTION = 0.7
LARGEST_ERROR = 0.9
SPREAD_OF_SENTENCES = 0.7  # standard deviation of the logarithm of how hard a sentence is
DELETED, INSERTED = 0.25, 0.15  # shares of the errors; the others are substitutions


def recognise(words: Sequence[str], error: float, vocabulary: Sequence[str], draws: np.random.Generator) -> list[str]:
    """The words with errors: each one is wrong with this probability, left out, followed by another or replaced."""
    heard: list[str] = []
    for word in words:
        kind = draws.random() if draws.random() < error else 1.0
        other = vocabulary[int(draws.integers(len(vocabulary)))]
        if kind >= 1.0:
            heard.append(word)
        elif kind < DELETED:
            continue
        elif kind < DELETED + INSERTED:
            heard += [word, other]
        else:
            heard.append(other)
    return heard


def hypotheses(transcripts: Mapping[str, str], alphas: Mapping[str, float], seed: int) -> bytes:
    """A Kaldi ``text`` of what is recognised.

    Args:
        transcripts: by utterance, words at spaces.
        alphas: McAdams coefficient of each utterance; 1 for original speech.
        seed: of the system; how hard a sentence is does not depend on it.
    """
    vocabulary = sorted({word for text in transcripts.values() for word in text.split()})
    lines = []
    for name in sorted(transcripts):
        hardness = np.exp(SPREAD_OF_SENTENCES * _draws(f"sentence {name}").standard_normal())
        error = (ERROR_OF_ORIGINAL + ERROR_OF_DISTORTION * (1 - alphas[name]) ** 2) * hardness
        chance = min(LARGEST_ERROR, float(error))
        heard = recognise(transcripts[name].split(), chance, vocabulary, _draws(f"{seed} {name}"))
        lines.append(" ".join([name, *heard]))
    return ("\n".join(lines) + "\n").encode()


def _draws(key: str) -> np.random.Generator:
    return np.random.default_rng(list(hashlib.sha256(f"recogniser {key}".encode()).digest()))
