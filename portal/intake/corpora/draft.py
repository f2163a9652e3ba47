"""From rows of listings to speakers and utterances, with every check that needs no audio.

A layout's reader only finds rows; what holds for any corpus is checked here, once: one speaker and
one gender each, one file per utterance, names that can be file names, transcripts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem, Severity
from evaluation.formats.transcripts import normalise_transcript
from portal.challenges.readers.draft import DraftSpeaker, DraftUtterance, Gender

GENDERS: Mapping[str, Gender] = {"f": "f", "female": "f", "m": "m", "male": "m"}
_NAME = re.compile(r"\w[\w.+=@-]{0,119}")


class Place(NamedTuple):
    """Where something was read: a file and, where lines mean something, a line from 1."""

    file: str
    line: int | None = None

    def problem(
        self,
        code: str,
        expected: str,
        found: str,
        remedy: str,
        severity: Severity = Severity.ERROR,
    ) -> Problem:
        """A fault at this place."""
        return Problem(code, self.file, expected, found, remedy, severity, self.line)

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
    place: Place
    gender_place: Place
    transcript_place: Place
    duration_s: float | None = None
    told: frozenset[str] = frozenset()


@dataclass(slots=True)
class SpeakerList:
    """What a file of speakers states: gender and place of each, and of whom a fault of the file was told.

    Attributes:
        is_read: whether the file could be read at all.
    """

    is_read: bool
    genders: dict[str, tuple[str, Place]] = field(default_factory=dict)
    faulty: set[str] = field(default_factory=set)

    def told(self, speaker: str) -> frozenset[str]:
        """`SourceRow.told` of the speaker's rows."""
        return frozenset() if self.is_read and speaker not in self.faulty else frozenset({"gender"})


def check_rows(
    rows: Iterable[SourceRow],
    problems: ProblemList,
    *,
    without_audio: bool = False,
    audio_remedy: str = "Add the file, or remove the entry.",
) -> tuple[tuple[DraftSpeaker, ...], tuple[DraftUtterance, ...]]:
    """Check all rows and turn them into speakers and utterances, both in order of their names.

    A second row of an utterance, a row without one and a speaker without a usable gender are reported and left out.
    """
    seen: dict[str, SourceRow] = {}
    files: dict[Path, SourceRow] = {}
    of_speaker: dict[str, list[SourceRow]] = defaultdict(list)
    for row in rows:
        if row.utterance in seen:
            problems.add(_repeated(row, seen[row.utterance]))
            continue
        if row.utterance:
            seen[row.utterance] = row
        check_name("utterance", row.utterance, row.place, problems)
        check_name("speaker", row.speaker, row.place, problems)
        if row.speaker:
            of_speaker[row.speaker].append(row)
        _check_transcript(row, problems)
        if row.audio is not None:
            _check_file(row, files.setdefault(row.audio, row), problems)
        elif not without_audio and "audio" not in row.told:
            problems.add(_missing(row, audio_remedy))
    genders = {name: _gender(name, of_speaker[name], problems) for name in sorted(of_speaker)}
    speakers = tuple(DraftSpeaker(name, gender) for name, gender in genders.items() if gender)
    return speakers, tuple(_utterance(seen[name]) for name in sorted(seen))


def _utterance(row: SourceRow) -> DraftUtterance:
    transcript = normalise_transcript(row.transcript)
    return DraftUtterance(row.utterance, row.speaker, transcript, row.audio, row.duration_s, row.file)


def _repeated(row: SourceRow, first: SourceRow) -> Problem:
    return row.place.problem(
        "duplicate-utterance",
        "each utterance once",
        f"{row.utterance} again (first in {first.place})",
        "Give it another identifier, or remove it.",
    )


def _missing(row: SourceRow, remedy: str) -> Problem:
    found = f"no file {row.file}" if row.file else "no path of a file"
    return row.place.problem("missing-file", f"the audio of {row.utterance}", found, remedy)


def check_name(kind: str, name: str, place: Place, problems: ProblemList) -> None:
    """Names become names of files and parts of addresses."""
    if not name:
        expected = f"the name of the {kind}"
        problems.add(place.problem(f"no-{kind}", expected, "none", "Fill in the name."))
    elif not _NAME.fullmatch(name):
        expected = f"a {kind} name of at most 120 letters, digits and . _ - + = @"
        problems.add(place.problem("bad-name", expected, f"“{_short(name)}”", "Rename it everywhere."))


def _gender(speaker: str, rows: list[SourceRow], problems: ProblemList) -> Gender | None:
    """The gender that most places give, the first of as many; every other place is the one at fault."""
    expected = f"f or m as gender of speaker {speaker}"
    places: dict[Gender, dict[Place, str]] = {}
    for row in rows:
        gender = GENDERS.get(row.gender.lower())
        if gender:
            places.setdefault(gender, {})[row.gender_place] = row.gender
        elif row.gender:
            problems.add(row.gender_place.problem("unknown-gender", expected, f"“{row.gender}”", "Correct the gender."))
        elif "gender" not in row.told:
            problems.add(row.gender_place.problem("no-gender", expected, "none", "Add the speaker's gender."))
    if not places:
        return None
    right = max(places, key=lambda gender: len(places[gender]))
    like, written = next(iter(places[right].items()))
    for gender, wrong in places.items():
        for place, other in wrong.items() if gender != right else ():
            found = f"“{other}”, but “{written}” in {like}{_and_more(len(places[right]) - 1)}"
            remedy = "Correct one of the two."
            problems.add(place.problem("contradicting-gender", f"one gender for speaker {speaker}", found, remedy))
    return right


def _and_more(count: int) -> str:
    return f" and {count} more" if count else ""


def _check_transcript(row: SourceRow, problems: ProblemList) -> None:
    if "transcript" in row.told:
        return
    if not row.transcript.strip():
        problems.add(
            row.transcript_place.problem(
                "no-transcript",
                f"a transcript of {row.utterance}",
                "none",
                "Word errors cannot be counted for it; add the transcript if there is one.",
                Severity.WARNING,
            )
        )
    elif normalise_transcript(row.transcript) != row.transcript:
        problems.add(
            row.transcript_place.problem(
                "transcript-not-normalised",
                "capitals, single spaces and no , ! ? .",
                f"“{_short(row.transcript)}”",
                "It was normalised as in the challenge; nothing to do.",
                Severity.NOTE,
            )
        )


def _check_file(row: SourceRow, first: SourceRow, problems: ProblemList) -> None:
    if first is not row:
        found = f"{row.file} for {first.utterance} and {row.utterance}"
        remedy = "Correct the path of one of them."
        problems.add(row.place.problem("file-listed-twice", "one utterance per file", found, remedy))


def note_stray_files(stray: Iterable[str], listing: Place, problems: ProblemList) -> None:
    """One note on audio that lies in the folder but is in no listing."""
    names = list(stray)
    if names:
        problems.add(
            listing.problem(
                "not-listed",
                "every audio file of the folder",
                f"{len(names)} not listed, such as {', '.join(names[:3])}",
                "They are left out; list them if they belong to the corpus.",
                Severity.NOTE,
            )
        )


def _short(text: str) -> str:
    return text if len(text) <= 50 else text[:49] + "…"
