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
        word_errors: of a recogniser that the method does not use, as a share of the words.
        ignorant, lazy_informed: EER by encoder; the attacker enrols with original or with anonymised speech.
        rho_f0: mean pitch correlation with the originals.
        gvd_db: gain of voice distinctiveness.
        work_per_second: processor time for a second of speech.
    """

    version: str
    word_errors: float
    ignorant: Mapping[str, float]
    lazy_informed: Mapping[str, float]
    rho_f0: float
    gvd_db: float
    work_per_second: float


@dataclass(frozen=True)
class Measurements:
    """Of all methods, and on what. word_errors, unprotected: of the original speech."""

    date: str
    speech: str
    recognizer: str
    encoders: tuple[str, ...]
    word_errors: float
    unprotected: Mapping[str, float]
    methods: Mapping[str, Measured]


@cache
def read_measurements() -> Measurements:
    """All that is kept."""
    found: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Measurements(
        **{name: found[name] for name in ("date", "speech", "recognizer")},
        encoders=tuple(found["encoders"]),
        **found["original"],
        methods={name: Measured(**numbers) for name, numbers in found["methods"].items()},
    )


def find_measured(method: Anonymizer) -> Measured | None:
    """The numbers of a method in its version; None where nobody measured it."""
    found = read_measurements().methods.get(method.name)
    return found if found is not None and found.version == method.version else None
