"""Numbers that a team reports, and the lines of result files of 2020 and 2022 in which they stand.

**Reported numbers** (`ReportedNumber`) say what was measured, the value as written, and where it was read. Every format
of results is read into them, so that one number has one identity wherever it stands, and a recomputed number can be put
beside it.

**Lines** (`KINDS`) are one table that both reads and writes them. Each kind of line has a template as the official
scripts print it; its numbers are metrics with a printed form of their own.

Conventions: data sets are named as their Kaldi directories, without the suffix of anonymised speech
(``vctk_dev_trials_f_common``); averages over the sets of a split are ``average_dev`` and so on. Of lines: EERs and WERs
in per cent; ZEBRA population in bit, individual in powers of ten.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Speech(StrEnum):
    ORIGINAL = "original"
    ANONYMISED = "anonymised"


class Gender(StrEnum):
    FEMALE = "f"
    MALE = "m"
    MIXED = "mixed"  # trials between speakers of any gender
    ALL = "all"  # both together


class AttackModel(StrEnum):
    UNPROTECTED = "unprotected"
    IGNORANT = "ignorant"
    LAZY_INFORMED = "lazy-informed"
    SEMI_INFORMED = "semi-informed"


# What each attacker knows, to stand behind a colon.
ATTACKS_EXPLAINED = {
    AttackModel.UNPROTECTED: "nothing is anonymised",
    AttackModel.IGNORANT: "the attacker enrols speakers with original speech",
    AttackModel.LAZY_INFORMED: "the attacker anonymises its enrolment speech with the same system",
    AttackModel.SEMI_INFORMED: "the attacker anonymises its enrolment speech with the same system, and was trained on "
    "speech anonymised with it",
}


def explain_attack(attack: str) -> str:
    """Such as ``Ignorant attacks: the attacker enrols speakers with original speech.``"""
    return f"{attack.capitalize()} attacks: {ATTACKS_EXPLAINED[AttackModel(attack)]}."


@dataclass(frozen=True, slots=True)
class NumberIdentity:
    """What a number measures.

    Attributes:
        training: the speech that the evaluator was trained on; None where there is none (pitch).
        enrolment: the speech of the enrolled speakers; None outside of speaker verification.
        speech: the speech under test.
        metric: such as ``eer``.
        estimator: how, such as ``kaldi``; empty where there is one way only.
    """

    data_set: str
    gender: Gender
    metric: str
    estimator: str = ""
    training: Speech | None = None
    enrolment: Speech | None = None
    speech: Speech = Speech.ANONYMISED

    @property
    def attack_model(self) -> AttackModel | None:
        """Protocol 1.2; None for metrics without an attacker and for anonymised enrolment of original trials."""
        match (self.training, self.enrolment, self.speech):
            case (_, Speech.ORIGINAL, Speech.ORIGINAL):
                return AttackModel.UNPROTECTED
            case (_, Speech.ORIGINAL, Speech.ANONYMISED):
                return AttackModel.IGNORANT
            case (Speech.ORIGINAL, Speech.ANONYMISED, Speech.ANONYMISED):
                return AttackModel.LAZY_INFORMED
            case (Speech.ANONYMISED, Speech.ANONYMISED, Speech.ANONYMISED):
                return AttackModel.SEMI_INFORMED
        return None


@dataclass(frozen=True, slots=True)
class WordCounts:
    """The counts behind a word error rate."""

    errors: int
    words: int
    insertions: int
    deletions: int
    substitutions: int


@dataclass(frozen=True, slots=True)
class ReportedNumber:
    """One reported number.

    Attributes:
        value: as a number; a ZEBRA category counts 0 for “0” and 1 to 6 for A to F.
        unit: ``%``, ``bit``, ``dB`` or empty.
        written: the value as it stands in the file.
        file: the file as its owner knows it.
        line: line number, from 1.
        counts: of a word error rate.
        decoding: path of the decoding that a word error rate names.
        partial: whether some utterance had no hypothesis and was left out.
    """

    identity: NumberIdentity
    value: float
    unit: str
    written: str
    file: str
    line: int
    counts: WordCounts | None = None
    decoding: str = ""
    partial: bool = False


NUMBER = r"[-+]?(?:(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?|nan|inf)"
CATEGORIES = "0ABCDEF"  # of ZEBRA, from perfect privacy to the worst


def print_zebra(value: float) -> str:
    """Return a ZEBRA value as the official script prints it (protocol 1.2)."""
    if value == 0:
        return "0"
    return f"{value:.3f}" if abs(value) > 5e-4 else f"{value:.0e}"


@dataclass(frozen=True, slots=True)
class LineNumber:
    """One number of a line: its metric, estimator, unit, printed form, and the range that it must lie in."""

    metric: str
    estimator: str
    unit: str
    show: Callable[[float], str]
    lowest: float = float("-inf")
    highest: float = float("inf")


def _fixed(decimals: int) -> Callable[[float], str]:
    return lambda value: f"{value:.{decimals}f}"


@dataclass(frozen=True, slots=True)
class LineKind:
    """A kind of line: ``{}`` in the template stands for each number, in order."""

    key: str
    template: str
    numbers: tuple[LineNumber, ...]

    @property
    def pattern(self) -> re.Pattern[str]:
        return _PATTERNS[self.key]


_KINDS = (
    LineKind("eer", "EER: {}%", (LineNumber("eer", "kaldi", "%", lambda value: f"{value:.4g}", 0, 100),)),
    LineKind(
        "cllr",
        "Cllr (min/act): {}/{}",
        (LineNumber("min_cllr", "pav", "bit", _fixed(3), 0), LineNumber("cllr", "", "bit", _fixed(3), 0)),
    ),
    LineKind("rocch", "ROCCH-EER: {}%", (LineNumber("eer", "rocch", "%", _fixed(3), 0, 50),)),
    LineKind("linkability", "linkability: {}", (LineNumber("linkability", "", "", _fixed(6), 0, 1),)),
    LineKind("population", "Population: {} bit", (LineNumber("zebra_population", "", "bit", print_zebra, 0, 0.722),)),
    LineKind(
        "individual",
        "Individual: {} ({})",
        (
            LineNumber("zebra_individual", "", "log10", print_zebra, 0),
            LineNumber("zebra_category", "", "", lambda value: CATEGORIES[int(value)], 0, 6),
        ),
    ),
    LineKind(
        "pitch",
        "Pitch_correlation: mean={} std={}",
        (
            LineNumber("pitch_correlation", "praat", "", _fixed(4), -1, 1),
            LineNumber("pitch_correlation_std", "praat", "", _fixed(4), 0, 1),
        ),
    ),
    LineKind("de_identification", "De-Identification : {}", (LineNumber("de_identification", "official", "", repr),)),
    LineKind(
        "gain",
        "Gain of voice distinctiveness : {}",
        (LineNumber("gain_of_voice_distinctiveness", "official", "dB", repr),),
    ),
)
KINDS = {kind.key: kind for kind in _KINDS}
AVERAGE_DECIMALS = 3

_HEADER = re.compile(r"(?P<name>(?:ASV-|ASR-|(?=\S+_trials_\S))\S+)\Z")
_AVERAGE = re.compile(rf"(?P<label>(?:Weighted a|A)verage [^:]+): (?P<value>{NUMBER})\Z")
_NAMED = re.compile(r"(?P<name>\S+) {1,2}(?P<value>\S.*)\Z")
_COUNT = r"\d{1,15}"
_WER = re.compile(
    rf"%WER (?P<wer>{NUMBER}) \[ (?P<errors>{_COUNT}) / (?P<words>{_COUNT}), (?P<ins>{_COUNT}) ins, "
    rf"(?P<dels>{_COUNT}) del, (?P<subs>{_COUNT}) sub \](?P<partial> \[PARTIAL\])?(?: (?P<path>\S+))?\Z"
)
_MODEL = re.compile(r"_(?P<model>tgsmall|tglarge)(?:/|\Z)")
_SETTINGS = re.compile(r"/wer_(?P<weight>\d{1,9})_(?P<penalty>[\d.]+)\Z")


def _compile(kind: LineKind) -> re.Pattern[str]:
    parts = [re.escape(part) for part in kind.template.split("{}")]
    groups = [f"([{CATEGORIES}])" if number.metric == "zebra_category" else f"({NUMBER})" for number in kind.numbers]
    pattern = parts[0] + "".join(group + part for group, part in zip(groups, parts[1:], strict=True))
    return re.compile(pattern + r"\Z")


_PATTERNS = {kind.key: _compile(kind) for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Recognition:
    """What a ``%WER`` line says beside the rate."""

    counts: WordCounts
    partial: bool
    path: str

    @property
    def language_model(self) -> str:
        """``tgsmall``, ``tglarge``, or empty where the path names none."""
        found = _MODEL.search(self.path)
        return found["model"] if found else ""

    @property
    def settings(self) -> tuple[int, str] | None:
        """Language model weight and word insertion penalty; None where the path does not end in them."""
        found = _SETTINGS.search(self.path)
        return (int(found["weight"]), found["penalty"]) if found else None


@dataclass(frozen=True, slots=True)
class ResultEntry:
    """One line that was understood.

    Attributes:
        name: of the block that it belongs to; the label of an average.
        kind: a key of `KINDS`, ``wer`` or ``average``.
        values: its numbers as written.
        line: line number, from 1.
        inline: whether the name stands in the same line.
    """

    name: str
    kind: str
    values: tuple[str, ...]
    line: int
    inline: bool
    recognition: Recognition | None = None

    @property
    def slot(self) -> tuple[str, str, str]:
        """Return what may stand in a file once: block, kind of line, language model."""
        return self.name, self.kind, self.recognition.language_model if self.recognition else ""


def header_name(line: str) -> str | None:
    """Return the name of the block that a line opens, or None where it opens none."""
    found = None if line[:1].isspace() else _HEADER.match(line.rstrip())
    return found["name"] if found else None


def parse_line(line: str, number: int, block: str | None) -> ResultEntry | None:
    """Return one line with numbers, or None where it is of no known kind; `block` is the name of the open block."""
    text = line.strip()
    if found := _AVERAGE.match(text):
        return ResultEntry(found["label"], "average", (found["value"],), number, inline=True)
    if block and (entry := parse_value(text, number, block, inline=False)):
        return entry
    named = None if line[:1].isspace() else _NAMED.match(text)
    return parse_value(named["value"], number, named["name"], inline=True) if named else None


def parse_value(text: str, number: int, name: str, *, inline: bool) -> ResultEntry | None:
    """Return the value part of a line, such as ``EER: 8.665%``."""
    for kind in _KINDS:
        if found := kind.pattern.match(text):
            return ResultEntry(name, kind.key, found.groups(), number, inline)
    if wer := _WER.match(text):
        counts = WordCounts(*(int(wer[group]) for group in ("errors", "words", "ins", "dels", "subs")))
        recognition = Recognition(counts, wer["partial"] is not None, wer["path"] or "")
        return ResultEntry(name, "wer", (wer["wer"],), number, inline, recognition)
    return None
