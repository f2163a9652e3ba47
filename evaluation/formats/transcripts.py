"""Transcripts as the challenge scores them (VoicePrivacy 2022 data preparation).

Texts are normalised once, when data are prepared; scoring compares words as they stand.
"""

from __future__ import annotations

import re

_SPACES_FOR_MARKS = str.maketrans(",!?.", "    ")
# The separators of Kaldi's token reader; other Unicode spaces are part of a word there.
_WORD = re.compile(r"[^ \t\n\r\f\v]+")


def normalise_transcript(text: str) -> str:
    """``, ! ? .`` become spaces, runs of spaces become one, letters become capitals; nothing else.

    >>> normalise_transcript("Well, isn't it?")
    "WELL ISN'T IT"
    """
    return " ".join(text.translate(_SPACES_FOR_MARKS).split()).upper()


def split_words(text: str) -> list[str]:
    """The words of a transcript as Kaldi splits them: at spaces, tabs and line ends, case kept.

    >>> split_words(" THE  CAT ")
    ['THE', 'CAT']
    """
    return _WORD.findall(text)
