"""Transcripts as the challenge scores them (VoicePrivacy 2022 data preparation)."""

from __future__ import annotations

_SPACES_FOR_MARKS = str.maketrans(",!?.", "    ")


def normalise_transcript(text: str) -> str:
    """``, ! ? .`` become spaces, runs of spaces become one, letters become capitals; nothing else.

    >>> normalise_transcript("Well, isn't it?")
    "WELL ISN'T IT"
    """
    return " ".join(text.translate(_SPACES_FOR_MARKS).split()).upper()
