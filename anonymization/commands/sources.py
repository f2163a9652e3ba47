"""What is to be anonymised: a plain folder of audio, a Kaldi data directory, or a folder of such directories.

Nothing is guessed silently: whatever was read off names (speakers, roles, splits) is a remark. Conventions: paths in
`Utterance.output` are relative to the output folder, with forward slashes; audio is not opened here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from anonymization.commands.records import RESERVED
from anonymization.methods.pseudo_speakers import Role
from evaluation.commands.terminal import CommandError
from evaluation.formats.kaldi import read_utt2spk
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem, Severity, has_errors
from portal.challenges.readers.folders import AUDIO_SUFFIXES, audio_files, is_file

SpeakerFrom = Literal["folder", "prefix"]
Container = Literal["wav", "flac"]
UNDIVIDED = "undivided"  # the split of what belongs to none, as in the portal
_SPLITS = ("dev", "test", "train")
_PREFIX = re.compile(r"([^-_]+)[-_].")


@dataclass(frozen=True, slots=True)
class Utterance:
    """One recording. name: unique in its data set; output: where its anonymised version goes; line: of `wav.scp`."""

    name: str
    speaker: str
    role: Role
    split: str
    audio: Path
    output: str
    data_set: str = ""


@dataclass(frozen=True, slots=True)
class DataSet:
    """A plain folder (name empty) or a Kaldi data directory, and where it goes below the output folder."""

    name: str
    folder: Path
    output: str
    is_kaldi: bool


@dataclass(slots=True)
class Source:
    """Everything that was found. remarks: what was inferred, a sentence each; problems: what cannot be done."""

    data_sets: list[DataSet] = field(default_factory=list)
    utterances: list[Utterance] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    problems: ProblemList = field(default_factory=ProblemList)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is to be read: what the person at the terminal said, None where it is to be inferred."""

    role: Role | None = None
    split: str | None = None
    speaker_from: SpeakerFrom | None = None
    container: Container = "wav"
    suffix: str = ""


def read_source(folder: Path, reading: Reading) -> Source:
    """Find what lies in a folder, which is Kaldi's where it or folders in it hold ``wav.scp``.

    Raises:
        CommandError: no such folder, nothing in it that can be anonymised, or two recordings for one output.
    """
    from anonymization.commands.kaldi_sources import find_directories, read_directories

    if not os.path.isdir(folder):  # noqa: PTH112 (false where a folder above may not be entered; Path.is_dir raises)
        found = "a file" if os.path.isfile(folder) else "no such folder"  # noqa: PTH113
        raise CommandError(
            f"{folder}: expected a folder of WAV or FLAC files or a Kaldi data directory, found {found}."
        )
    try:
        directories = find_directories(folder)
        source = read_directories(folder, directories, reading) if directories else _read_plain(folder, reading)
    except OSError as error:
        raise CommandError(
            f"{error.filename or folder}: expected a readable folder, found “{error.strerror}”."
        ) from error
    _leave_out_reserved(source)
    _refuse_shared_outputs(source)
    if not source.utterances:
        faults = [problem.sentence() for problem in source.problems.report() if has_errors([problem])]
        raise CommandError(
            f"{folder}: expected WAV or FLAC files or a Kaldi data directory, found nothing that can be anonymised. "
            f"{faults[0] if faults else 'Name the folder that holds the audio.'}"
        )
    return source


def split_of(name: str) -> str:
    """The split that a name of a data set states, as the portal reads it; else ``undivided``."""
    words = re.split(r"[^a-z]+", name.lower())
    return next((split for split in _SPLITS if split in words), UNDIVIDED)


def speaker_by_prefix(name: str) -> str:
    """The part before the first ``-`` or ``_``, as in the challenge's ids; empty where there is none."""
    found = _PREFIX.match(name)
    return found[1] if found else ""


def speaker_by_folder(path: PurePosixPath) -> str:
    """The innermost folder whose name begins the file's (``1462/170142/1462-170142-0000``), else the innermost.

    Empty for a file that lies in no folder.
    """
    folders = path.parent.parts[::-1]
    named = (folder for folder in folders if path.stem.startswith((f"{folder}-", f"{folder}_")))
    return next(named, folders[0] if folders else "")


def _read_plain(folder: Path, reading: Reading) -> Source:
    files = [file for file in map(PurePosixPath, audio_files(folder)) if not _is_hidden(file)]
    source = Source([DataSet("", folder, "", is_kaldi=False)])
    source.problems.keep(_left_aside(folder))
    speakers = _speakers(folder, files, reading, source)
    role, split = reading.role or "trial", reading.split or UNDIVIDED
    if files:
        source.remarks.append(f"The role is {role}, the split {split}{_as_said(reading)}.")
    for file in files:
        if not speakers.get(file):
            continue
        name, output = file.with_suffix("").as_posix(), file.with_suffix(f".{reading.container}").as_posix()
        source.utterances.append(Utterance(name, speakers[file], role, split, folder / file, output))
    return source


def _is_hidden(file: PurePosixPath) -> bool:
    return any(part.startswith(".") for part in file.parts)


def _left_aside(folder: Path) -> Iterator[Problem]:
    """What looks like audio, or may hold some, and is not taken: links to folders, hidden files, pipes, dead links."""
    inside = folder.resolve()
    for place, folders, files in os.walk(folder):
        hidden = _is_hidden(PurePosixPath(Path(place).relative_to(folder).as_posix()))
        for path in (Path(place, name) for name in sorted(folders)):
            if path.is_symlink():
                yield _linked_folder(path, path.resolve().is_relative_to(inside))
        for path in (Path(place, name) for name in sorted(files) if name.lower().endswith(AUDIO_SUFFIXES)):
            if hidden or path.name.startswith("."):
                yield Problem(
                    "hidden", str(path), "a name without a dot in front, of the file and its folders",
                    "a hidden one", "It was left out; rename it if it is speech.", Severity.NOTE,
                )  # fmt: skip
            elif not is_file(path):
                found = "a link that leads to no file" if path.is_symlink() else "a pipe or device"
                remedy = "It was left out: mend or remove it."
                yield Problem("not-a-file", str(path), "a file of audio", found, remedy)


def _linked_folder(path: Path, is_inside: bool) -> Problem:
    expected, found = "a folder", f"a link to {path.readlink()}, which is not followed"
    if is_inside:
        return Problem("linked-folder", str(path), expected, found, "It leads into the same input.", Severity.NOTE)
    remedy = "Copy the folder, link its files, or anonymise it by a call of its own; else remove the link."
    return Problem("linked-folder", str(path), expected, found, remedy)


def _as_said(reading: Reading) -> str:
    missing = [f"--{what}" for what in ("role", "split") if getattr(reading, what) is None]
    return f" ({' and '.join(missing)} would set {'it' if len(missing) == 1 else 'them'})" if missing else ""


def _speakers(
    folder: Path, files: list[PurePosixPath], reading: Reading, source: Source
) -> Mapping[PurePosixPath, str]:
    if reading.speaker_from is None and (folder / "utt2spk").is_file():
        return _listed_speakers(folder, files, source)
    by_folder = {file: speaker_by_folder(file) for file in files}
    by_prefix = {file: speaker_by_prefix(file.stem) for file in files}
    rule: SpeakerFrom | None = reading.speaker_from
    if rule is None:
        rule = "folder" if all(by_folder.values()) else "prefix" if all(by_prefix.values()) else None
    if rule is None:
        lone = next(file for file in files if not by_prefix[file])
        raise CommandError(
            f"{folder}: expected to see who speaks, by a file utt2spk, a folder for each speaker, or names such as "
            f"speaker-text.wav; found {lone}. Add utt2spk, or name the rule: --speaker-from folder or prefix."
        )
    found = by_folder if rule == "folder" else by_prefix
    if files:
        example, count = files[0], len(set(found.values()) - {""})
        how = "folders" if rule == "folder" else "what stands before the first - or _ of a name"
        source.remarks.append(f"Speakers are read off {how}: {count:,}, such as {found[example]} of {example}.")
    for file in (file for file in files if not found[file]):
        expected = "a folder named after its speaker" if rule == "folder" else "a name such as speaker-text"
        source.problems.add(_no_speaker(str(folder / file), expected))
    return found


def _listed_speakers(folder: Path, files: list[PurePosixPath], source: Source) -> Mapping[PurePosixPath, str]:
    parsed = read_utt2spk(folder / "utt2spk", str(folder / "utt2spk"))
    source.problems.keep(parsed.problems)
    source.remarks.append(f"Speakers are those of utt2spk: {len(set(parsed.content.values())):,}.")
    found = {file: parsed.content.get(file.stem, "") for file in files}
    for file in (file for file in files if not found[file]):
        source.problems.add(_no_speaker(str(folder / file), f"a line for {file.stem} in utt2spk"))
    return found


def _no_speaker(file: str, expected: str) -> Problem:
    return Problem("no-speaker", file, expected, "none", "Say who speaks; the file was left out.")


def _leave_out_reserved(source: Source) -> None:
    """What would be written where the run keeps its records."""
    kept = []
    for utterance in source.utterances:
        first = PurePosixPath(utterance.output).parts[0]
        if first in RESERVED:
            expected, found = "a name that no record of the run has", f"“{first}”"
            remedy = "Rename the folder; the file was left out."
            source.problems.add(Problem("left-out", str(utterance.audio), expected, found, remedy))
        else:
            kept.append(utterance)
    source.utterances = kept


def _refuse_shared_outputs(source: Source) -> None:
    first: dict[str, Utterance] = {}
    for utterance in source.utterances:
        other = first.setdefault(utterance.output, utterance)
        if other is not utterance:
            raise CommandError(
                f"{utterance.audio}: expected a name of its own, found that {other.audio} would be written to "
                f"{utterance.output} too. Rename or remove one of the two."
            )
