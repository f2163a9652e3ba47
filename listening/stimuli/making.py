"""From a recording to the file that evaluators hear, in one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from listening.stimuli.errors import StimulusError
from listening.stimuli.flac import LARGEST_FRAME_BYTES, frame_bytes_needed, kbit_per_s, write_stimulus
from listening.stimuli.uniform import Samples, make_uniform


@dataclass(frozen=True, slots=True)
class StimulusFile:
    """`content`: the bytes. `facts`: plain numbers about how it was made, for the record."""

    content: bytes
    speech_s: float
    frame_bytes: int
    facts: dict[str, Any]


def make_stimulus(samples: Samples, rate_hz: int, frame_bytes: int) -> StimulusFile:
    """The recording as a stimulus of that many bytes for each frame, or of as many as it needs, if more.

    Args:
        samples: int16, shape (n,).
        rate_hz: of the recording.
        frame_bytes: what the other files of the study have.

    Raises:
        StimulusError: silent, too short, or nothing that 232 kbit/s can carry.
    """
    uniform = make_uniform(samples, rate_hz)
    needed = frame_bytes_needed(uniform.samples)
    if needed > LARGEST_FRAME_BYTES:
        largest, found = kbit_per_s(LARGEST_FRAME_BYTES), kbit_per_s(needed)
        remedy = "It is denser than noise: look at the recording, or leave it out."
        raise StimulusError("too-dense", f"at most {largest:g} kbit/s", f"{found:g} kbit/s", remedy)
    size = max(needed, frame_bytes)
    facts = {
        "padded_s": uniform.padded_s,
        "frame_bytes": size,
        "frame_bytes_needed": needed,
        "level_before_dbov": round(uniform.level_before_dbov, 2),
        "level_dbov": round(uniform.level_dbov, 2),
        "gain_db": round(uniform.gain_db, 2),
        "peak_dbov": round(uniform.peak_dbov, 2),
        "is_guarded": uniform.is_guarded,
        "is_faded": uniform.is_faded,
    }
    return StimulusFile(write_stimulus(uniform.samples, size), uniform.speech_s, size, facts)
