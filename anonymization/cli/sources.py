"""What is to be anonymised: a plain folder of audio, a Kaldi data directory, or a folder of such directories.

Nothing is guessed silently: whatever was read off names (speakers, roles, splits) is a note. Of a Kaldi directory the
utterances are those of ``wav.scp``, the speakers those of ``utt2spk``, roles follow from lists and names. Its audio is
sought where ``wav.scp`` says, from the working directory and from the data directory and the folders above it, then
below the data directory by the end of its path. Commands (``… |``) are refused, never run. Conventions: paths in
`FileToAnonymize.output` are relative to the output folder, with forward slashes; audio is not opened here.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Literal

from anonymization.cli.records import RESERVED
from anonymization.methods.voices.pseudo_speakers import Place, Role
from common.errors import CommandError
from common.file_names import find_spelling, fold_names, is_dropping, name_other_capitals, plain_name
from common.folders import AUDIO_SUFFIXES, audio_files, find_droppings, is_file, list_folders
from common.problems import Problem, ProblemList, Severity, has_errors
from common.wording import counted
from evaluation.formats import kaldi
from evaluation.formats.audio_pairs import describe_droppings

SpeakerFrom = Literal["folder", "prefix"]
Container = Literal["wav", "flac"]
UNDIVIDED = "undivided"  # the split of what belongs to none, as in the portal
_SPLITS = ("dev", "test", "train")
_PREFIX = re.compile(r"([^-_]+)[-_].")
_LONGEST_NAME_BYTES = 200
_FOLDERS_ABOVE = 4
_RIVALS_SHOWN = 2


@dataclass(frozen=True, slots=True)
class FileToAnonymize:
    """One recording. name: unique in its data set; output: where its anonymised version goes; line: of `wav.scp`."""

    name: str
    speaker: str
    role: Role
    split: str
    audio: Path
    output: str
    data_set: str = ""

    @property
    def place(self) -> Place:
        """Return what a voice of this utterance alone is for."""
        return self.role, self.split, self.speaker, self.name


@dataclass(frozen=True, slots=True)
class SourceDataSet:
    """A plain folder (name empty) or a Kaldi data directory, and where it goes below the output folder."""

    name: str
    folder: Path
    output: str
    is_kaldi: bool


@dataclass(slots=True)
class SpeechSource:
    """Everything that was found. notes: what was inferred, a sentence each; problems: what cannot be done."""

    data_sets: list[SourceDataSet] = field(default_factory=list)
    utterances: list[FileToAnonymize] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: ProblemList = field(default_factory=ProblemList)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is to be read: what the person at the terminal said, None where it is to be inferred."""

    role: Role | None = None
    split: str | None = None
    speaker_from: SpeakerFrom | None = None
    container: Container = "wav"
    suffix: str = ""


def read_source(folder: Path, reading: Reading) -> SpeechSource:
    """Find what lies in a folder, which is Kaldi's where it or folders in it hold ``wav.scp``.

    Raises:
        CommandError: no such folder, nothing in it that can be anonymised, or two recordings for one output.
    """
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
        problems = [problem.sentence() for problem in source.problems.report() if has_errors([problem])]
        raise CommandError(
            f"{folder}: expected WAV or FLAC files or a Kaldi data directory, found nothing that can be anonymised. "
            f"{problems[0] if problems else 'Name the folder that holds the audio.'}"
        )
    return source


def infer_split(name: str) -> str:
    """Return the split that a name of a data set states, as the portal reads it; else ``undivided``."""
    words = re.split(r"[^a-z]+", name.lower())
    return next((split for split in _SPLITS if split in words), UNDIVIDED)


def read_prefix(name: str) -> str:
    """Return the part before the first ``-`` or ``_``, as in the challenge's ids; empty where there is none."""
    found = _PREFIX.match(name)
    return found[1] if found else ""


def read_folder(path: PurePosixPath) -> str:
    """Return the innermost folder whose name begins the file's (``1462/170142/1462-170142-0000``), else the innermost.

    Empty for a file that lies in no folder.
    """
    folders = path.parent.parts[::-1]
    named = (folder for folder in folders if path.stem.startswith((f"{folder}-", f"{folder}_")))
    return next(named, folders[0] if folders else "")


def _read_plain(folder: Path, reading: Reading) -> SpeechSource:
    files = [file for file in map(PurePosixPath, audio_files(folder)) if not _is_hidden(file)]
    source = SpeechSource([SourceDataSet("", folder, "", is_kaldi=False)])
    source.problems.keep(_list_left_aside(folder))
    speakers = _speakers(folder, files, reading, source)
    role, split = reading.role or "trial", reading.split or UNDIVIDED
    if files:
        source.notes.append(f"The role is {role}{_name_split(split, 'the split')}{_as_said(reading)}.")
    for file in files:
        if not speakers.get(file):
            continue
        plain = PurePosixPath(plain_name(str(file)))
        name, output = plain.with_suffix("").as_posix(), plain.with_suffix(f".{reading.container}").as_posix()
        source.utterances.append(FileToAnonymize(name, speakers[file], role, split, folder / file, output))
    return source


def _name_split(split: str, words: str) -> str:
    return "" if split == UNDIVIDED else f", {words} {split}"


def _is_hidden(file: PurePosixPath) -> bool:
    return any(part.startswith(".") for part in file.parts)


def _list_left_aside(folder: Path) -> Iterator[Problem]:
    """Yield what looks like audio, or may hold some, and is not taken: links to folders, hidden files, pipes, dead
    links."""
    if droppings := find_droppings(folder):
        yield describe_droppings(str(folder), droppings)
    inside = folder.resolve()
    for place, folders, files in os.walk(folder):
        hidden = _is_hidden(PurePosixPath(Path(place).relative_to(folder).as_posix()))
        for path in (Path(place, name) for name in sorted(folders)):
            if path.is_symlink():
                yield _linked_folder(path, path.resolve().is_relative_to(inside))
        for path in (Path(place, name) for name in sorted(files) if name.lower().endswith(AUDIO_SUFFIXES)):
            if is_dropping(path.relative_to(folder).as_posix()):
                continue
            if hidden or path.name.startswith("."):
                expected = "a name without a dot in front, of the file and its folders"
                remedy = "It was left out; rename it if it is speech."
                yield Problem("hidden", str(path), expected, "a hidden one", remedy, Severity.NOTE)
            elif not is_file(path):
                found = "a link that leads to no file" if path.is_symlink() else "a pipe or device"
                remedy = "It was left out: correct or remove it."
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
    folder: Path, files: list[PurePosixPath], reading: Reading, source: SpeechSource
) -> Mapping[PurePosixPath, str]:
    """Who speaks in each file, by ``utt2spk`` or by names; an unknown speaker is empty, and a problem."""
    if reading.speaker_from is None and (folder / "utt2spk").is_file():
        parsed = kaldi.read_utt2spk(folder / "utt2spk", str(folder / "utt2spk"))
        source.problems.keep(parsed.problems)
        source.notes.append(f"Speakers are those of utt2spk: {len(set(parsed.content.values())):,}.")
        found = {file: parsed.content.get(plain_name(file.stem), "") for file in files}
        expected = "a line for {} in utt2spk"
    else:
        rule, found = _speakers_by_names(folder, files, reading)
        expected = "a folder named after its speaker" if rule == "folder" else "a name such as speaker-text"
        if files:
            example, count = files[0], len(set(found.values()) - {""})
            how = "folders" if rule == "folder" else "the part of a name before its first - or _"
            source.notes.append(f"Speakers are read off {how}: {count:,}, such as {found[example]} of {example}.")
    for file in (file for file in files if not found[file]):
        wanted, remedy = expected.format(file.stem), "Name its speaker; the file was left out."
        source.problems.add(Problem("no-speaker", str(folder / file), wanted, "none", remedy))
    return found


def _speakers_by_names(
    folder: Path, files: list[PurePosixPath], reading: Reading
) -> tuple[SpeakerFrom, dict[PurePosixPath, str]]:
    """Return the rule that was said, or the first that tells all speakers, and what it tells."""
    plain = {file: PurePosixPath(plain_name(str(file))) for file in files}
    by_folder = {file: read_folder(plain[file]) for file in files}
    by_prefix = {file: read_prefix(plain[file].stem) for file in files}
    if reading.speaker_from == "folder" or (reading.speaker_from is None and all(by_folder.values())):
        return "folder", by_folder
    if reading.speaker_from == "prefix" or all(by_prefix.values()):
        return "prefix", by_prefix
    lone = next(file for file in files if not by_prefix[file])
    raise CommandError(
        f"{folder}: expected the speaker of every file, by utt2spk, a folder for each speaker, or names such as "
        f"speaker-text.wav; found {lone}. Add utt2spk, or name the rule: --speaker-from folder or prefix."
    )


def _leave_out_reserved(source: SpeechSource) -> None:
    """What would be written where the run keeps its records."""
    for utterance in [each for each in source.utterances if each.output.split("/")[0] in RESERVED]:
        expected, found = "a name that no record of the run has", f"“{utterance.output.split('/')[0]}”"
        remedy = "Rename the folder; the file was left out."
        source.problems.add(Problem("left-out", str(utterance.audio), expected, found, remedy))
        source.utterances.remove(utterance)


def _refuse_shared_outputs(source: SpeechSource) -> None:
    first: dict[str, FileToAnonymize] = {}
    for utterance in source.utterances:
        other = first.setdefault(utterance.output, utterance)
        if other is not utterance:
            raise CommandError(
                f"{utterance.audio}: expected a name of its own, found that {other.audio} would be written to "
                f"{utterance.output} too. Rename or remove one of the two."
            )


# Kaldi data directories ------------------------------------------------------------------------------


def find_directories(folder: Path) -> list[Path]:
    """Return the data directories: `folder` itself, or those in it, or those in its ``data``; none where it is a plain
    one."""
    for places in ([folder], list_folders(folder), list_folders(folder / "data")):
        if found := [place for place in places if (place / "wav.scp").is_file()]:
            return found
    return []


def read_directories(folder: Path, directories: list[Path], reading: Reading) -> SpeechSource:
    """Return the utterances of all data directories; each becomes a data directory of the output folder.

    Raises:
        CommandError: a directory with ``segments``, or one whose speakers or roles cannot be told.
    """
    source = SpeechSource()
    for directory in directories:
        name = directory.name if directory.name not in ("", "..") else directory.resolve().name
        output = "" if directory == folder else f"{name}{reading.suffix}"
        source.data_sets.append(SourceDataSet(name, directory, output, is_kaldi=True))
        _read_directory(source.data_sets[-1], reading, source)
    _tell_what_lies_beside(directories, source)
    return source


def _tell_what_lies_beside(directories: Sequence[Path], source: SpeechSource) -> None:
    """Report audio beside data directories that none of them names: it is left out."""
    if not source.data_sets[0].output:  # it was named itself
        return
    found = {
        place: files
        for place in list_folders(directories[0].parent)
        if place not in directories and (files := list(audio_files(place)))
    }
    named = {each.audio.resolve() for each in source.utterances} if found else set()
    for place in found:
        if files := [file for file in found[place] if (place / file).resolve() not in named]:
            expected = "a data directory, as there are others beside it"
            held = f"a folder without wav.scp that holds {counted(len(files), 'recording')}, such as {files[0]}"
            remedy = "It was left out: anonymise it by a call of its own."
            source.problems.add(Problem("left-beside", str(place), expected, held, remedy, Severity.WARNING))


def _read_directory(data_set: SourceDataSet, reading: Reading, source: SpeechSource) -> None:
    folder = data_set.folder
    paths = kaldi.read_wav_scp(folder / "wav.scp", str(folder / "wav.scp"))
    if segments := next((one for one in paths.problems if one.code == "segments-refused"), None):
        raise CommandError(segments.sentence())
    source.problems.keep(paths.problems)
    speakers = _kaldi_speakers(folder, paths.content, reading, source)
    enrolled, others, how = _read_roles(data_set, reading, source)
    split = reading.split or infer_split(data_set.name)
    located = _AudioFinder(folder).find_all(paths.content.values())
    _note_found_by_name(data_set, located, source)
    prefix = f"{data_set.output}/" if data_set.output else ""
    folded = fold_names(speakers)
    for (name, written), line in zip(paths.content.items(), paths.lines, strict=True):
        audio = located[written].audio
        if problem := _find_problem(name, written, located[written], speakers.get(name, ""), folded):
            expected, found, remedy = problem
            remedy = f"{remedy} It was left out."
            source.problems.add(Problem("left-out", str(folder / "wav.scp"), expected, found, remedy, line=line))
        elif audio:
            output = f"{prefix}wav/{name}.{reading.container}"
            role: Role = "enrolment" if name in enrolled else others
            source.utterances.append(FileToAnonymize(name, speakers[name], role, split, audio, output, data_set.name))
    source.notes.append(f"{data_set.name}: role {others} ({how}){_name_split(split, 'split')}.")
    for name in sorted(speakers.keys() - paths.content.keys() - paths.refused):
        expected = f"a line for {name} in wav.scp"
        source.problems.add(Problem("no-audio", str(folder / "utt2spk"), expected, "none", "Add its audio."))


def _find_problem(
    name: str, written: str, located: _Located, speaker: str, speakers: Mapping[str, str]
) -> tuple[str, str, str] | None:
    """Return why an utterance cannot be anonymised (expected, found, remedy); `speakers`: ids by `fold_names`."""
    if "/" in name or name.startswith(".") or len(name.encode()) > _LONGEST_NAME_BYTES:
        return "an utterance id that can be the name of a file", f"“{name}”", "Rename the utterance."
    if located.rivals:
        return f"the audio of {name}", f"several that “{written}” may mean: {located.rivals}", "Correct the path."
    if located.audio is None:
        found = f"no file “{written}”{located.unlike}"
        return f"the audio of {name}", found, "Correct the path or start from where it is relative to."
    if not speaker:
        return f"a line for {name} in utt2spk", f"none{name_other_capitals(name, speakers)}", "Add its speaker."
    return None


def _note_found_by_name(data_set: SourceDataSet, located: Mapping[str, _Located], source: SpeechSource) -> None:
    by_name = [(written, each.audio) for written, each in located.items() if each.audio and each.agreement]
    if by_name:
        written, audio = by_name[0]
        source.notes.append(
            f"{data_set.name}: {counted(len(by_name), 'recording')} not where wav.scp says, found by name, "
            f"such as {audio.relative_to(data_set.folder)} for {written}."
        )


def _kaldi_speakers(
    folder: Path, names: Mapping[str, str], reading: Reading, source: SpeechSource
) -> Mapping[str, str]:
    if reading.speaker_from == "prefix":
        found = {name: read_prefix(name) for name in names}
        source.notes.append(f"{folder.name}: speakers are the parts of utterance ids before the first - or _.")
        return found
    if reading.speaker_from or not (folder / "utt2spk").is_file():
        instead = "--speaker-from folder" if reading.speaker_from else "none"
        raise CommandError(
            f"{folder}: expected utt2spk beside wav.scp, found {instead}. A Kaldi directory names its speakers there; "
            f"--speaker-from prefix reads it off the ids."
        )
    parsed = kaldi.read_utt2spk(folder / "utt2spk", str(folder / "utt2spk"))
    source.problems.keep(parsed.problems)
    return parsed.content


def _read_roles(data_set: SourceDataSet, reading: Reading, source: SpeechSource) -> tuple[set[str], Role, str]:
    """Return the enrolled utterances, the role of all others, and how that is known.

    As said, by the lists ``enrolls…`` and ``trials…``, or by the directory's name.

    Raises:
        CommandError: an utterance that is both enrolled and tried.
    """
    lists = _lists(data_set.folder)
    trials = [path for path in lists if path.name.startswith("trials")]
    enrolled: set[str] = set()
    if reading.role:
        return enrolled, reading.role, "as given by --role"
    if not trials and lists:
        return enrolled, "enrolment", "as it has enrolls"
    if not trials:
        return enrolled, *_infer_role(data_set.name)
    for path in (path for path in lists if path not in trials):
        parsed = kaldi.read_enrolls(path, str(path))
        source.problems.keep(parsed.problems)
        enrolled.update(parsed.content)
    for path in trials if enrolled else ():
        for trial in kaldi.read_trials(path, str(path)).content:
            if trial.utterance in enrolled:
                raise CommandError(
                    f"{path}: expected trials of utterances that are not enrolled, found {trial.utterance}, "
                    f"which needs a voice for each role. Write the two sets to directories of their own."
                )
    only_trials = len(trials) == len(lists)
    how = "as it has trials" if only_trials else "except for the utterances of enrolls, which are enrolment"
    return enrolled, "trial", how


def _lists(folder: Path) -> list[Path]:
    named = (path for path in folder.iterdir() if path.name.startswith(("enrolls", "trials")))
    return sorted(path for path in named if path.is_file() and "." not in path.name)


def _infer_role(name: str) -> tuple[Role, str]:
    lower = name.lower()
    if "enrol" in lower:
        return "enrolment", "by its name"
    if "trial" in lower:
        return "trial", "by its name"
    if infer_split(name) == "train":
        return "training", "by its name"
    return "trial", "as its name states none; set it by --role"


@dataclass(frozen=True, slots=True)
class _Located:
    """Where the audio of a path is.

    agreement: how many last parts of the path it shares, where it was found by them; 0 where it lies as written.
    rivals: what else the path may mean, for people; the audio is then none.
    unlike: the end of a sentence on a file whose name differs in capitals only; the audio is then none.
    """

    audio: Path | None
    agreement: int = 0
    rivals: str = ""
    unlike: str = ""


class _AudioFinder:
    """Finds the audio of one data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._roots = [Path(), folder, *folder.resolve().parents[:_FOLDERS_ABOVE]]
        self._best = 0
        self._below: dict[str, list[Path]] | None = None
        self._folded: Mapping[str, str] = {}

    def find_all(self, paths: Iterable[str]) -> dict[str, _Located]:
        """Return where each path leads; a file found by name belongs to the one path that agrees most with it."""
        located = {written: self._find(written) for written in paths}
        claims: dict[Path, list[str]] = defaultdict(list)
        if any(each.agreement for each in located.values()):
            for written, each in located.items():
                if each.audio:
                    claims[each.audio.resolve()].append(written)
        for audio, claimants in claims.items():
            if len(claimants) == 1:
                continue
            # What lies as written is no guess; of guesses the better one wins, and of equal ones neither.
            sure = any(not located[written].agreement for written in claimants)
            best = max(located[written].agreement for written in claimants)
            winners = [written for written in claimants if located[written].agreement == best]
            for written in claimants:
                if located[written].agreement and (sure or written not in winners or len(winners) > 1):
                    other = next(each for each in claimants if each != written)
                    rivals = f"only {self._shown(audio)}, which “{other}” means as well"
                    located[written] = replace(located[written], audio=None, rivals=rivals)
        return located

    def _find(self, written: str) -> _Located:
        order = [self._best, *(place for place in range(len(self._roots)) if place != self._best)]
        for place in order:
            try:
                path = find_spelling(self._roots[place] / written)
                if path.is_file():
                    self._best = place
                    return _Located(path)
            except (OSError, ValueError):  # a name that no file can have
                return _Located(None)
        return self._find_by_name(PurePosixPath(written))

    def _find_by_name(self, written: PurePosixPath) -> _Located:
        if self._below is None:
            self._below = defaultdict(list)
            for path in sorted(self._folder.rglob("*")):
                if path.is_file():
                    self._below[plain_name(path.name)].append(path)
            self._folded = fold_names(self._below)
        ranks = {path: _agreement(path, written) for path in self._below.get(plain_name(written.name), ())}
        best = [path for path, rank in ranks.items() if rank == max(ranks.values())]
        if len(best) > 1:
            shown = " and ".join(self._shown(path) for path in best[:_RIVALS_SHOWN])
            return _Located(None, rivals=shown + (" and others" if len(best) > _RIVALS_SHOWN else ""))
        if not best:
            return _Located(None, unlike=name_other_capitals(written.name, self._folded))
        return _Located(best[0], ranks[best[0]])

    def _shown(self, path: Path) -> str:
        return os.path.relpath(path, self._folder.resolve() if path.is_absolute() else self._folder)


def _agreement(path: Path, written: PurePosixPath) -> int:
    """Return how many last parts two paths have in common."""
    pairs = zip(path.parts[::-1], written.parts[::-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
