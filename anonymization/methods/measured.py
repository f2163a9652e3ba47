"""What was measured of the built-in methods on real speech; docs/anonymizer-methods.md says by which commands.

All methods were measured on the same utterances with the same recognisers and encoders, so that they can be compared.
Conventions: error rates and EERs are shares from 0 to 1; G_VD in dB; work in seconds of processor time for a second of
speech. A number of another version of a method is not given.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

from anonymization.methods.contract import Anonymizer
from common.rounding import fixed
from common.tables import Cell
from speech.encoders import registry as encoders
from speech.recognizers import registry as recognizers

FILE = Path(__file__).with_name("measured.toml")
# What has more word errors than so many times those of copies by the vocoder is not intelligible.
_MOST_WORD_ERRORS = 1.5
# The voice is reached where more than so large a part of the outputs are nearer to it than to another one.
_NEARER = 0.5
# What a method may fall short of, by its mark in tables.
SHORTFALLS = {
    "not intelligible": f"more than {_MOST_WORD_ERRORS:g} times the word errors of copies by HiFi-GAN, by the first "
    "recogniser",
    "voice not reached": "at most half of the outputs are nearer to the given voice than to the own, or than to "
    "another’s",
}
Value = float | None


@dataclass(frozen=True)
class MethodResults:
    """Of one method, of the original speech or of copies of it; None and no entry where nothing was measured.

    Attributes:
        word_errors: by recogniser, as a share of the words.
        ignorant, lazy_informed: EER by encoder; the attacker enrols with original or with anonymised speech.
        semi_informed: EER of an attacker that was trained on such speech.
        rho_f0: mean pitch correlation with the originals.
        gvd_db: gain of voice distinctiveness.
        naturalness: mean predicted opinion (DNSMOS P.808), 1 to 5.
        to_given_vector: mean cosine of the vector of a voice and of what was spoken in it, the drift of the synthesis.
        nearer_than_own, nearer_than_other: shares of the trials that are nearer to the voice that they were given than
            to recordings of their own speaker, and than to the voice of another trial.
        work_per_second: processor time for a second of speech.
    """

    version: str = ""
    word_errors: Mapping[str, float] = field(default_factory=dict)
    ignorant: Mapping[str, float] = field(default_factory=dict)
    lazy_informed: Mapping[str, float] = field(default_factory=dict)
    semi_informed: Value = None
    rho_f0: Value = None
    gvd_db: Value = None
    naturalness: Value = None
    to_given_vector: Value = None
    nearer_than_own: Value = None
    nearer_than_other: Value = None
    work_per_second: Value = None


@dataclass(frozen=True)
class Measure:
    """A number of the table: its name in `MethodResults`, the engine that gave it, title, unit and decimals.

    count: how many things it is a share of, for its interval; 0 where none is given.
    """

    name: str
    title: str
    unit: str = "%"
    digits: int = 1
    engine: str = ""
    count: int = 0

    @property
    def head(self) -> str:
        """Return title and unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def read(self, one: MethodResults | None) -> Value:
        """Return its value; None where it was not measured."""
        found = getattr(one, self.name, None)
        return cast("Value", found.get(self.engine) if self.engine and found is not None else found)

    def show(self, one: MethodResults | None) -> Cell:
        """Return the value as it is read, shares as percentages, those of a count with their interval."""
        value = self.read(one)
        if value is None:
            return Cell("–")
        limits = (fixed(100 * limit, self.digits) for limit in wilson_interval(value, self.count)) if self.count else ()
        return Cell(fixed(100 * value if self.unit == "%" else value, self.digits), interval=" to ".join(limits))


@dataclass(frozen=True)
class Measurements:
    """Of all methods, and on what.

    Attributes:
        speech: of all numbers but those of the given voice, which are of acceptance_speech.
        words: of the trials, of which word errors are a share.
        recognizers, encoders: engines; no method uses the first of each.
        trained: what the semi-informed attacker is and was trained on.
        original, copied: of the original speech, and of copies of it by the vocoder of most methods.
    """

    date: str
    speech: str
    acceptance_speech: str
    trained: str
    words: int
    recognizers: tuple[str, ...]
    encoders: tuple[str, ...]
    original: MethodResults
    copied: MethodResults
    methods: Mapping[str, MethodResults]

    def measures(self) -> Iterator[Measure]:
        """Yield all that was measured, in the order of tables."""
        for name in self.recognizers:
            title = f"Word errors, {recognizers.find_engine(name).title}"
            yield Measure("word_errors", title, engine=name, count=self.words)
        for name in self.encoders:
            for attack in ("ignorant", "lazy_informed"):
                title = f"EER {attack.replace('_', '-')}, {encoders.find_engine(name).title}"
                yield Measure(attack, title, engine=name)
        yield Measure("semi_informed", "EER semi-informed")
        yield Measure("rho_f0", "ρF0", "", 2)
        yield Measure("gvd_db", "G_VD", "dB")
        yield Measure("naturalness", "DNSMOS", "", 2)
        yield Measure("to_given_vector", "Cosine to the given vector", "", 2)
        yield Measure("nearer_than_own", "Nearer to the given voice than to the own")
        yield Measure("nearer_than_other", "Nearer to it than to another’s")
        yield Measure("work_per_second", "Work", "s", 3)

    def describe_speech(self) -> str:
        """Return what the numbers were measured on, as sentences."""
        return (
            f"{self.speech}; nearness to voices: {self.acceptance_speech}. Semi-informed attacker: {self.trained}. "
            f"Word errors are of {self.words} words; their 95 % intervals count each word by itself, those of other "
            "speakers and sentences are wider. "
        )

    def row(self, one: MethodResults) -> list[Cell]:
        """Return all its numbers, as they are read."""
        return [measure.show(one) for measure in self.measures()]

    @property
    def heads(self) -> list[str]:
        """Return what stands above them."""
        return [measure.head for measure in self.measures()]

    def is_intelligible(self, one: MethodResults) -> bool:
        """Return whether speech has at most 1.5 times the word errors of the copies, by the first recogniser."""
        name = self.recognizers[0]
        return one.word_errors[name] <= _MOST_WORD_ERRORS * self.copied.word_errors[name]

    def find_shortfalls(self, one: MethodResults) -> tuple[str, ...]:
        """Return what a method falls short of: marks of `SHORTFALLS`, in its order; none of what was not measured."""
        marks = {"not intelligible": self.is_intelligible(one), "voice not reached": reaches_voice(one) is not False}
        return tuple(mark for mark, is_met in marks.items() if not is_met)


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of so many independent things (Wilson, JASA 22, 1927), within 0 and 1."""
    z2 = 1.96**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = (max(share * (1 - share), 0.0) / count + z2 / (4 * count**2)) ** 0.5 * 1.96 / (1 + z2 / count)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def reaches_voice(one: MethodResults) -> bool | None:
    """Return whether more than half of the outputs are nearer to the given voice than to the own, and than to
    another's; None where that was not measured."""
    if one.nearer_than_own is None or one.nearer_than_other is None:
        return None
    return min(one.nearer_than_own, one.nearer_than_other) > _NEARER


@cache
def read_measurements() -> Measurements:
    """Return all that is kept."""
    found: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Measurements(
        **{name: found[name] for name in ("date", "speech", "acceptance_speech", "trained", "words")},
        recognizers=tuple(found["recognizers"]),
        encoders=tuple(found["encoders"]),
        original=MethodResults(**found["original"]),
        copied=MethodResults(**found["copied"]),
        methods={name: MethodResults(**numbers) for name, numbers in found["methods"].items()},
    )


def find_measured(method: Anonymizer) -> MethodResults | None:
    """Return the numbers of a method in its version; None where nobody measured it."""
    found = read_measurements().methods.get(method.name)
    return found if found is not None and found.version == method.version else None
