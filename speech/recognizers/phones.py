"""The phones of an English text, by the dictionary and rules of misaki in the package hibari-tts.

One symbol is one phone: diphthongs and affricates have a symbol of their own (A, I, O, W, Y, ʤ, ʧ). Stress and marks
are left out; the flap counts as t, reduced vowels as ə and ɪ: 40 phones are left.

Source: hexgrad, misaki (Apache-2.0, github.com/hexgrad/misaki), in the form that hibari-tts ships.
"""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import Any

from common.errors import InputError
from common.packages import missing_packages

TITLE = "The phones of a text"
_STRESS = "ˈˌ"
_FOLDED = str.maketrans({"T": "t", "ᵊ": "ə", "ɐ": "ə", "ᵻ": "ɪ"})
_TURN = Lock()  # the dictionary keeps notes of a sentence


def missing() -> str:
    """Return why no phones can be found here, as one sentence; empty where they can."""
    return missing_packages(TITLE, "hibari")


def spell_phones(text: str) -> str:
    """Return the phones of a text, separated by spaces; empty where nothing of it can be pronounced.

    Args:
        text: in English, in capitals or not.

    Raises:
        InputError: the package is missing.

    >>> spell_phones("THE CAT, twice")
    'ð ə k æ t t w I s'
    """
    words = " ".join(text.lower().split())
    with _TURN:
        spoken = str(_dictionary()(words)) if words else ""
    return " ".join(sign for sign in spoken.translate(_FOLDED) if sign.isalpha() and sign not in _STRESS)


@lru_cache(maxsize=1)
def _dictionary() -> Any:
    if sentence := missing():
        raise InputError(sentence)
    from hibari.g2p import G2P

    return G2P()
