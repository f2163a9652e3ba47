"""What was measured of the built-in methods on real speech, as `benchmarks.anonymizers` wrote it.

All methods were measured on the same utterances with the same recogniser and encoders, so that they can be compared.
Conventions: error rates and EERs are shares from 0 to 1; G_VD in dB; work in seconds of processor time for a second of
speech. A number of another version of a method is not given.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from anonymization.methods.contract import Anonymizer

FILE = Path(__file__).with_name("measured.toml")


@dataclass(frozen=True)
class Measured:
    """Of one method.

    Attributes:
        word_errors: by recogniser, as a share of the words.
        ignorant, lazy_informed: EER by encoder; the attacker enrols with original or with anonymised speech.
        semi_informed: EER of an attacker that was trained on speech that this method anonymised; None where none was.
        rho_f0: mean pitch correlation with the originals.
        gvd_db: gain of voice distinctiveness.
        naturalness: mean predicted opinion (DNSMOS P.808), 1 to 5.
        work_per_second: processor time for a second of speech.
        to_given_vector: mean cosine of the vector of a voice and of what was spoken in it, the drift of the synthesis;
            None where voices have no vector.
    """

    version: str
    word_errors: Mapping[str, float]
    ignorant: Mapping[str, float]
    lazy_informed: Mapping[str, float]
    rho_f0: float
    gvd_db: float
    naturalness: float
    work_per_second: float
    semi_informed: float | None = None
    to_given_vector: float | None = None


@dataclass(frozen=True)
class Measurements:
    """Of all methods, and on what.

    Attributes:
        recognizers, encoders: engines; no method uses the first of each.
        trained: what the semi-informed attacker is and was trained on.
        word_errors, unprotected, semi_informed, naturalness: of the original speech; the last EER is that of an
            attacker that was trained on original speech.
    """

    date: str
    speech: str
    trained: str
    recognizers: tuple[str, ...]
    encoders: tuple[str, ...]
    word_errors: Mapping[str, float]
    unprotected: Mapping[str, float]
    semi_informed: float
    naturalness: float
    methods: Mapping[str, Measured]


@cache
def read_measurements() -> Measurements:
    """All that is kept."""
    found: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Measurements(
        **{name: found[name] for name in ("date", "speech", "trained")},
        recognizers=tuple(found["recognizers"]),
        encoders=tuple(found["encoders"]),
        **found["original"],
        methods={name: Measured(**numbers) for name, numbers in found["methods"].items()},
    )


def find_measured(method: Anonymizer) -> Measured | None:
    """The numbers of a method in its version; None where nobody measured it."""
    found = read_measurements().methods.get(method.name)
    return found if found is not None and found.version == method.version else None
