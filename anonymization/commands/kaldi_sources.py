"""Kaldi data directories as sources: utterances by ``wav.scp``, speakers by ``utt2spk``, roles by lists and names.

Audio is sought where ``wav.scp`` says, from the working directory and from the data directory and the folders above
it, then below the data directory by the end of its path. Commands (``… |``) are refused, never run.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath

from anonymization.commands.progress import counted
from anonymization.commands.sources import DataSet, Reading, Source, Utterance, speaker_by_prefix, split_of
from anonymization.methods.pseudo_speakers import Role
from evaluation.commands.terminal import CommandError
from evaluation.formats import kaldi
from evaluation.formats.problems import Problem, Severity
from portal.challenges.readers.folders import audio_files

_LONGEST_NAME_BYTES = 200
_FOLDERS_ABOVE = 4
_RIVALS_SHOWN = 2


def find_directories(folder: Path) -> list[Path]:
    """The data directories: `folder` itself, or those in it, or those in its ``data``; none where it is a plain one."""
    for places in ([folder], _inside(folder), _inside(folder / "data")):
        if found := [place for place in places if (place / "wav.scp").is_file()]:
            return found
    return []


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def read_directories(folder: Path, directories: list[Path], reading: Reading) -> Source:
    """The utterances of all data directories; each becomes a data directory of the output folder.

    Raises:
        CommandError: a directory with ``segments``, or one whose speakers or roles cannot be told.
    """
    source = Source()
    for directory in directories:
        name = directory.name if directory.name not in ("", "..") else directory.resolve().name
        output = "" if directory == folder else f"{name}{reading.suffix}"
        source.data_sets.append(DataSet(name, directory, output, is_kaldi=True))
        _read_directory(source.data_sets[-1], reading, source)
    _tell_what_lies_beside(directories, source)
    return source


def _tell_what_lies_beside(directories: Sequence[Path], source: Source) -> None:
    """Audio beside data directories that none of them names is left, which nobody should find out later."""
    if not source.data_sets[0].output:  # it was named itself
        return
    found = {
        place: files
        for place in _inside(directories[0].parent)
        if place not in directories and (files := list(audio_files(place)))
    }
    named = {each.audio.resolve() for each in source.utterances} if found else set()
    for place in found:
        if files := [file for file in found[place] if (place / file).resolve() not in named]:
            source.problems.add(
                Problem(
                    "left-beside",
                    str(place),
                    "a data directory, as there are others beside it",
                    f"a folder without wav.scp that holds {counted(len(files), 'recording')}, such as {files[0]}",
                    "It was left out: anonymise it by a call of its own.",
                    Severity.WARNING,
                )
            )


def _read_directory(data_set: DataSet, reading: Reading, source: Source) -> None:
    folder = data_set.folder
    if (folder / "segments").is_file():
        raise CommandError(
            f"{folder / 'segments'}: expected a data directory with a file for each utterance, found one cut into "
            f"segments. Write the segments to files first (Kaldi: extract-segments)."
        )
    paths = kaldi.read_wav_scp(folder / "wav.scp", str(folder / "wav.scp"))
    source.problems.keep(paths.problems)
    speakers = _speakers(folder, paths.content, reading, source)
    roles = _Roles(data_set, reading, source)
    split = reading.split or split_of(data_set.name)
    located = _Finder(folder).find_all(paths.content.values())
    _remark_found_by_name(data_set, located, source)
    prefix = f"{data_set.output}/" if data_set.output else ""
    for (name, written), line in zip(paths.content.items(), paths.lines, strict=True):
        audio = located[written].audio
        if fault := _fault(name, written, located[written], speakers.get(name, "")):
            expected, found, remedy = fault
            source.problems.add(
                Problem("left-out", str(folder / "wav.scp"), expected, found, f"{remedy} It was left out.", line=line)
            )
        elif audio:
            output = f"{prefix}wav/{name}.{reading.container}"
            role = roles.of(name)
            source.utterances.append(Utterance(name, speakers[name], role, split, audio, output, data_set.name))
    roles.remark(split)
    for name in sorted(speakers.keys() - paths.content.keys())[: 0 if _has_refused(paths.problems) else None]:
        source.problems.add(
            Problem("no-audio", str(folder / "utt2spk"), f"a line for {name} in wav.scp", "none", "Add its audio.")
        )


def _has_refused(problems: tuple[Problem, ...]) -> bool:
    """Whether lines of wav.scp were refused, which is why their utterances are missing there."""
    return any(problem.line is not None for problem in problems)


def _fault(name: str, written: str, located: _Located, speaker: str) -> tuple[str, str, str] | None:
    """What keeps an utterance from being anonymised, as expected, found and remedy."""
    if "/" in name or name.startswith(".") or len(name.encode()) > _LONGEST_NAME_BYTES:
        return "an utterance id that can be the name of a file", f"“{name}”", "Rename the utterance."
    if located.rivals:
        return f"the audio of {name}", f"several that “{written}” may mean: {located.rivals}", "Correct the path."
    if located.audio is None:
        return f"the audio of {name}", f"no file “{written}”", "Correct the path or start from where it is relative to."
    if not speaker:
        return f"a line for {name} in utt2spk", "none", "Add its speaker."
    return None


def _remark_found_by_name(data_set: DataSet, located: Mapping[str, _Located], source: Source) -> None:
    by_name = [(written, each.audio) for written, each in located.items() if each.audio and each.agreement]
    if by_name:
        written, audio = by_name[0]
        source.remarks.append(
            f"{data_set.name}: {counted(len(by_name), 'recording')} not where wav.scp says, found by name, "
            f"such as {audio.relative_to(data_set.folder)} for {written}."
        )


def _speakers(folder: Path, names: Mapping[str, str], reading: Reading, source: Source) -> Mapping[str, str]:
    if reading.speaker_from == "prefix":
        found = {name: speaker_by_prefix(name) for name in names}
        source.remarks.append(f"{folder.name}: speakers are what stands before the first - or _ of the utterance id.")
        return found
    if reading.speaker_from or not (folder / "utt2spk").is_file():
        instead = "--speaker-from folder" if reading.speaker_from else "none"
        raise CommandError(
            f"{folder}: expected utt2spk beside wav.scp, found {instead}. A Kaldi directory says there who speaks; "
            f"--speaker-from prefix reads it off the ids."
        )
    parsed = kaldi.read_utt2spk(folder / "utt2spk", str(folder / "utt2spk"))
    source.problems.keep(parsed.problems)
    return parsed.content


class _Roles:
    """The role of each utterance: as said, by the lists ``enrolls…`` and ``trials…``, or by the directory's name."""

    def __init__(self, data_set: DataSet, reading: Reading, source: Source) -> None:
        self._name, self._source, self._said = data_set.name, source, reading.role
        self._enrolled: set[str] = set()
        self._others, self._how = _role_of(data_set.name)
        lists = _lists(data_set.folder)
        if reading.role:
            self._others, self._how = reading.role, "as said"
        elif any(path.name.startswith("trials") for path in lists):
            self._others, self._how = "trial", "as it has trials"
            for path in lists:
                if path.name.startswith("enrolls"):
                    parsed = kaldi.read_enrolls(path, str(path))
                    source.problems.keep(parsed.problems)
                    self._enrolled.update(parsed.content)
                    self._how = "but for the utterances of enrolls, which are enrolment"
            self._refuse_both(lists)
        elif lists:
            self._others, self._how = "enrolment", "as it has enrolls"

    def of(self, name: str) -> Role:
        return "enrolment" if name in self._enrolled else self._others

    def remark(self, split: str) -> None:
        self._source.remarks.append(f"{self._name}: role {self._others} ({self._how}), split {split}.")

    def _refuse_both(self, lists: list[Path]) -> None:
        for path in lists if self._enrolled else ():
            if path.name.startswith("trials"):
                for trial in kaldi.read_trials(path, str(path)).content:
                    if trial.utterance in self._enrolled:
                        raise CommandError(
                            f"{path}: expected trials of utterances that are not enrolled, found {trial.utterance}, "
                            f"which needs a voice for each role. Write the two sets to directories of their own."
                        )


def _lists(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and path.name.startswith(("enrolls", "trials")) and "." not in path.name
    )


def _role_of(name: str) -> tuple[Role, str]:
    lower = name.lower()
    if "enrol" in lower:
        return "enrolment", "by its name"
    if "trial" in lower:
        return "trial", "by its name"
    if split_of(name) == "train":
        return "training", "by its name"
    return "trial", "as its name says none; --role would set it"


@dataclass(frozen=True, slots=True)
class _Located:
    """Where the audio of a path is.

    agreement: how many last parts of the path it shares, where it was found by them; 0 where it lies as written.
    rivals: what else the path may mean, for people; the audio is then none.
    """

    audio: Path | None
    agreement: int = 0
    rivals: str = ""


class _Finder:
    """Finds the audio of one data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._roots = [Path(), folder, *folder.resolve().parents[:_FOLDERS_ABOVE]]
        self._best = 0
        self._below: dict[str, list[Path]] | None = None

    def find_all(self, paths: Iterable[str]) -> dict[str, _Located]:
        """Where each path leads; a file found by name belongs to the one path that agrees most with it."""
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
                if (self._roots[place] / written).is_file():
                    self._best = place
                    return _Located(self._roots[place] / written)
            except (OSError, ValueError):  # a name that no file can have
                return _Located(None)
        return self._find_by_name(PurePosixPath(written))

    def _find_by_name(self, written: PurePosixPath) -> _Located:
        if self._below is None:
            self._below = defaultdict(list)
            for path in sorted(self._folder.rglob("*")):
                if path.is_file():
                    self._below[path.name].append(path)
        ranks = {path: _agreement(path, written) for path in self._below.get(written.name, ())}
        best = [path for path, rank in ranks.items() if rank == max(ranks.values())]
        if len(best) > 1:
            shown = " and ".join(self._shown(path) for path in best[:_RIVALS_SHOWN])
            return _Located(None, rivals=shown + (" and others" if len(best) > _RIVALS_SHOWN else ""))
        return _Located(best[0], ranks[best[0]]) if best else _Located(None)

    def _shown(self, path: Path) -> str:
        return os.path.relpath(path, self._folder.resolve() if path.is_absolute() else self._folder)


def _agreement(path: Path, written: PurePosixPath) -> int:
    """How many last parts two paths have in common."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path.parts[::-1], written.parts[::-1], strict=False))
    )
