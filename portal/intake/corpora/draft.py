"""A corpus as it was read: plain data, not yet in any database, and the checks of it that need no audio.

A layout's reader only finds rows; what holds for any corpus is checked here, once: one speaker and one gender each, one
file per utterance, names that can be file names, transcripts. Every reader ends in a `CorpusDraft`. A draft with an
error among its problems must not be imported; its other parts are then as complete as the files allowed, for the
report. Conventions: durations in seconds; genders ``f`` and ``m``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

from common.problems import Problem, ProblemList, has_errors
from evaluation.formats.kaldi import KaldiTrial
from evaluation.metrics.word_errors import normalise_transcript
from portal.intake.problem_codes import describe

Gender = Literal["f", "m"]
Role = Literal["enrolment", "trial", "training"]
Origin = Literal["given", "same-gender-product"]
GENDERS: Mapping[str, Gender] = {"f": "f", "female": "f", "m": "m", "male": "m"}
_NAME = re.compile(r"\w[\w.+=@-]{0,119}")


class Layout(StrEnum):
    """How the files of a corpus are arranged."""

    LIBRISPEECH = "librispeech"
    KALDI = "kaldi"
    MANIFEST = "manifest"


@dataclass(frozen=True, slots=True)
class DraftSpeaker:
    name: str
    gender: Gender


@dataclass(frozen=True, slots=True)
class DraftUtterance:
    """One recording.

    Attributes:
        name: the utterance's identifier, unique in the draft.
        speaker: name of its speaker.
        transcript: normalised (`normalise_transcript`); empty where there is none.
        audio: the file to open; None where it is missing or the draft was read without audio.
        duration_s: what a listing states; None where none does (the audio was not opened).
        file: the audio as its owner knows it, for reports.
    """

    name: str
    speaker: str
    transcript: str
    audio: Path | None
    duration_s: float | None
    file: str = ""


@dataclass(frozen=True, slots=True)
class DraftDataSet:
    """Utterances used together; `split`, read off the name, is dev, test, train or empty."""

    name: str
    role: Role
    split: str
    utterances: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DraftTrialList:
    """The comparisons of one trial set with one enrolment set.

    Attributes:
        name: ``<enrolment set>-<trial set>``.
        origin: ``given`` in a file, or every model against every utterance of its gender.
        target_count, nontarget_count: number of pairs of the same speaker, and of different ones.
        trials: the given pairs in file order; None for a product.
    """

    name: str
    enrolment_set: str
    trial_set: str
    origin: Origin
    target_count: int
    nontarget_count: int
    trials: tuple[KaldiTrial, ...] | None


@dataclass(frozen=True, slots=True)
class CorpusDraft:
    """Everything read from one folder.

    Attributes:
        layout: the layout it was read as; None where none fits.
        synthetic: whether any of the speech is made by a machine.
        licence: as stated by the owner, several joined by ``; ``; empty where nothing was found.
        problems: all problems, grouped by cause.
    """

    layout: Layout | None
    speakers: tuple[DraftSpeaker, ...]
    utterances: tuple[DraftUtterance, ...]
    data_sets: tuple[DraftDataSet, ...]
    trial_lists: tuple[DraftTrialList, ...]
    synthetic: bool
    licence: str
    problems: tuple[Problem, ...]

    @property
    def is_usable(self) -> bool:
        return bool(self.utterances) and not has_errors(self.problems)

    def told(self) -> dict[str, Any]:
        """Return the whole draft as JSON can hold it; `from_told` makes it again."""
        plain = {one: getattr(self, one) for one in ("layout", "synthetic", "licence")}
        rows = {one: [_values(row) for row in getattr(self, one)] for one in _PARTS}
        return plain | rows | {"problems": [asdict(one) for one in self.problems]}

    @classmethod
    def from_told(cls, told: Mapping[str, Any]) -> CorpusDraft:
        """Return the draft of which `told` came."""
        return cls(
            layout=told["layout"] and Layout(told["layout"]),
            speakers=tuple(DraftSpeaker(*row) for row in told["speakers"]),
            utterances=tuple(
                DraftUtterance(name, speaker, transcript, None if audio is None else Path(audio), *stated)
                for name, speaker, transcript, audio, *stated in told["utterances"]
            ),
            data_sets=tuple(
                DraftDataSet(name, role, split, tuple(names)) for name, role, split, names in told["data_sets"]
            ),
            trial_lists=tuple(
                replace(DraftTrialList(*row), trials=row[-1] and tuple(KaldiTrial(*one) for one in row[-1]))
                for row in told["trial_lists"]
            ),
            synthetic=told["synthetic"],
            licence=told["licence"],
            problems=tuple(Problem(**row) for row in told["problems"]),
        )


_PARTS = ("speakers", "utterances", "data_sets", "trial_lists")


def _values(row: Any) -> list[Any]:
    values = [getattr(row, one.name) for one in fields(row)]
    return [str(one) if isinstance(one, Path) else one for one in values]


def empty_draft(layout: Layout | None, problems: tuple[Problem, ...]) -> CorpusDraft:
    """Return a draft of a folder that could not be read at all."""
    return CorpusDraft(layout, (), (), (), (), synthetic=False, licence="", problems=problems)


class FilePlace(NamedTuple):
    """Where something was read: a file and, where lines mean something, a line from 1."""

    file: str
    line: int | None = None

    def problem(self, kind: str, /, **values: Any) -> Problem:
        """Return a problem at this place, as `portal.intake.problem_codes` describes it."""
        return describe(kind, self.file, line=self.line, **values)

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}, line {self.line}"


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One utterance as the listings state it, nothing checked yet.

    Attributes:
        gender, transcript: as written.
        audio: the file found for it; None where none was found.
        file: the audio as its owner knows it.
        place, gender_place, transcript_place: where the row, the gender and the transcript stand.
        told: what of gender, transcript and audio a problem names as the cause already; its absence is no further one.
    """

    utterance: str
    speaker: str
    gender: str
    transcript: str
    audio: Path | None
    file: str
    place: FilePlace
    gender_place: FilePlace
    transcript_place: FilePlace
    duration_s: float | None = None
    told: frozenset[str] = frozenset()


def check_rows(
    rows: Iterable[SourceRow],
    problems: ProblemList,
    *,
    without_audio: bool = False,
    audio_remedy: str = "Add the file, or remove the entry.",
    audio_place: str = "",
    name_unlike: Callable[[str], str] | None = None,
) -> tuple[tuple[DraftSpeaker, ...], tuple[DraftUtterance, ...]]:
    """Check all rows and turn them into speakers and utterances, both in order of their names.

    A second row of an utterance, a row without one and a speaker without a usable gender are reported and left out.

    Args:
        name_unlike: the end of a sentence on a missing file, where another one's name differs in capitals only.
    """
    seen: dict[str, SourceRow] = {}
    files: dict[Path, SourceRow] = {}
    of_speaker: dict[str, list[SourceRow]] = defaultdict(list)
    for row in rows:
        if row.utterance in seen:
            earlier = seen[row.utterance].place
            problems.add(row.place.problem("duplicate-utterance", utterance=row.utterance, first=earlier))
            continue
        if row.utterance:
            seen[row.utterance] = row
        check_name("utterance", row.utterance, row.place, problems)
        check_name("speaker", row.speaker, row.place, problems)
        if row.speaker:
            of_speaker[row.speaker].append(row)
        _check_transcript(row, problems)
        if row.audio is not None:
            if (first := files.setdefault(row.audio, row)) is not row:
                both = {"first": first.utterance, "second": row.utterance}
                problems.add(row.place.problem("file-listed-twice", path=row.file, **both))
        elif not without_audio and "audio" not in row.told:
            unlike = name_unlike(row.file) if name_unlike and row.file else ""
            found = f"no file {row.file}{audio_place}{unlike}" if row.file else "no path of a file"
            missing = {"utterance": row.utterance, "found": found, "remedy": audio_remedy}
            problems.add(row.place.problem("missing-file/audio", **missing))
    genders = {name: _gender(name, of_speaker[name], problems) for name in sorted(of_speaker)}
    speakers = tuple(DraftSpeaker(name, gender) for name, gender in genders.items() if gender)
    return speakers, tuple(_utterance(seen[name]) for name in sorted(seen))


def _utterance(row: SourceRow) -> DraftUtterance:
    transcript = normalise_transcript(row.transcript)
    return DraftUtterance(row.utterance, row.speaker, transcript, row.audio, row.duration_s, row.file)


def check_name(kind: str, name: str, place: FilePlace, problems: ProblemList) -> None:
    """Names become names of files and parts of addresses."""
    if not name:
        problems.add(place.problem(f"no-{kind}"))
    elif not _NAME.fullmatch(name):
        problems.add(place.problem("bad-name/row", kind=kind, name=_short(name)))


def _gender(speaker: str, rows: list[SourceRow], problems: ProblemList) -> Gender | None:
    """Return the gender that most places give, the first of as many; every other place is the one that is wrong."""
    places: dict[Gender, dict[FilePlace, str]] = {}
    for row in rows:
        gender = GENDERS.get(row.gender.lower())
        if gender:
            places.setdefault(gender, {})[row.gender_place] = row.gender
        elif row.gender:
            problems.add(row.gender_place.problem("unknown-gender", speaker=speaker, gender=row.gender))
        elif "gender" not in row.told:
            problems.add(row.gender_place.problem("no-gender", speaker=speaker))
    if not places:
        return None
    right = max(places, key=lambda gender: len(places[gender]))
    like, written = next(iter(places[right].items()))
    more = f" and {len(places[right]) - 1} more" if len(places[right]) > 1 else ""
    stated = {"speaker": speaker, "right": written, "place": like, "more": more}
    for gender, wrong in places.items():
        for place, other in wrong.items() if gender != right else ():
            problems.add(place.problem("contradicting-gender/places", found=other, **stated))
    return right


def _check_transcript(row: SourceRow, problems: ProblemList) -> None:
    if "transcript" in row.told:
        return
    if not row.transcript.strip():
        problems.add(row.transcript_place.problem("no-transcript", utterance=row.utterance))
    elif normalise_transcript(row.transcript) != row.transcript:
        transcript = _short(row.transcript)
        problems.add(row.transcript_place.problem("transcript-not-normalised", transcript=transcript))


def note_stray_files(stray: Iterable[str], listing: FilePlace, problems: ProblemList) -> None:
    """One note on audio that lies in the folder but is in no listing."""
    names = list(stray)
    if names:
        problems.add(listing.problem("not-listed", number=len(names), names=", ".join(names[:3])))


def _short(text: str) -> str:
    return text if len(text) <= 50 else text[:49] + "…"
