"""Whether a voice is a woman's or a man's, where nobody says it: by its median F0."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from anonymization.methods.audio_conversion import convert_audio
from anonymization.methods.contract import Recording
from common.errors import InputError
from speech.pitch.estimators import STEP_S, track_f0_praat

_GENDER_HZ = 165.0  # above this median it is taken for a woman's, if so much of it is voiced:
_HEARD_S, _VOICED_S = 10.0, 1.0


def guess_gender(recordings: Iterable[Recording]) -> str:
    """f or m by the median F0 of the first seconds of speech; empty where too little of them is voiced.

    A recording that cannot be read is passed over: the run names it where its utterance is due.
    """
    voiced: list[float] = []
    for recording in recordings:
        try:
            given = convert_audio(*recording())
        except (OSError, ValueError):
            continue
        with suppress(InputError):  # too short for a contour
            track = track_f0_praat(given.samples[: round(_HEARD_S * given.rate_hz)], given.rate_hz)
            voiced += [float(hz) for hz in track.hz if hz > 0]
        if len(voiced) * STEP_S >= _HEARD_S / 2:
            break
    if len(voiced) * STEP_S < _VOICED_S:
        return ""
    return "f" if float(np.median(voiced)) > _GENDER_HZ else "m"
