"""Original and anonymised audio side by side: two folders of any layout, or two Kaldi directories.

Utterances are matched by id: the base name of a WAV or FLAC file, or the key of ``wav.scp``. Nothing is guessed: an
utterance that one side lacks, or that a side holds twice, is a problem of the report and no pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.file_names import find_spelling, fold_names, is_dropping, name_other_capitals, plain_name
from common.folders import AUDIO_SUFFIXES
from common.problems import Problem, ProblemList, Severity
from evaluation.formats.kaldi import read_wav_scp


@dataclass(frozen=True, slots=True)
class AudioPair:
    """One utterance and its anonymised version."""

    utterance: str
    original: Path
    anonymised: Path


@dataclass(frozen=True, slots=True)
class AudioPairs:
    """The utterances that both sides have, sorted, and what was wrong."""

    pairs: tuple[AudioPair, ...]
    problems: tuple[Problem, ...]


def match_audio(original: Path, anonymised: Path) -> AudioPairs:
    """Pair the utterances of two folders.

    A folder with ``wav.scp`` is a Kaldi directory: relative paths in it are sought from the working directory, then
    from the directory itself, then as a file name anywhere below it. A folder that holds Kaldi directories whose audio
    is no file for each utterance has no utterances. Codes: those of ``wav.scp``, ``no-audio`` (a side without
    utterances), ``repeated-utterance``, ``missing-utterance``, ``extra-utterance``, ``missing-file``.
    """
    problems = ProblemList()
    (first, told_of_first), (second, told_of_second) = (_utterances(one, problems) for one in (original, anonymised))
    remedy = "Anonymise every utterance, and keep its name."
    folded = fold_names(second.keys() - first.keys())
    for utterance in sorted(first.keys() - second.keys() - told_of_second) if second else ():
        found = f"none{name_other_capitals(utterance, folded)}"
        problems.add(Problem("missing-utterance", str(anonymised), f"the utterance {utterance}", found, remedy))
    for utterance in sorted(second.keys() - first.keys() - told_of_first) if first else ():
        found = f"{utterance}, which {original} lacks"
        problems.add(Problem("extra-utterance", str(anonymised), "utterances of the originals", found, remedy))
    both = sorted(first.keys() & second.keys())
    return AudioPairs(tuple(AudioPair(name, first[name], second[name]) for name in both), problems.report())


def list_utterances(folder: Path) -> tuple[dict[str, Path], tuple[Problem, ...]]:
    """Return the utterances of one folder or Kaldi directory with their files, in its order, and what was wrong."""
    problems = ProblemList()
    return _utterances(folder, problems)[0], problems.report()


def _utterances(folder: Path, problems: ProblemList) -> tuple[dict[str, Path], set[str]]:
    """Return the files by utterance, and the utterances without one of which the problems tell."""
    if (folder / "wav.scp").is_file():
        return _listed(folder, problems)
    if refused := list(_refused_below(folder)):
        problems.keep(refused)
        return {}, set()
    found = _lying(folder, problems)
    if not found:
        expected, remedy = "WAV or FLAC files, or wav.scp", "Name the folder that holds the audio."
        what = "none" if folder.is_dir() else "a file" if folder.exists() else "no such folder"
        problems.add(Problem("no-audio", str(folder), expected, what, remedy))
    return found, set()


def _refused_below(folder: Path) -> Iterator[Problem]:
    """Yield what makes the files of Kaldi directories below the folder no utterances: segments, and commands."""
    lists = {path.with_name("wav.scp") for name in ("wav.scp", "segments") for path in folder.rglob(name)}
    for path in sorted(path for path in lists if not is_dropping(path.relative_to(folder).as_posix())):
        found = read_wav_scp(path, str(path)).problems
        yield from (problem for problem in found if problem.code in ("segments-refused", "pipe-refused"))


def _lying(folder: Path, problems: ProblemList) -> dict[str, Path]:
    found: dict[str, Path] = {}
    droppings: list[str] = []
    for path in sorted(folder.rglob("*")):
        shown = path.relative_to(folder).as_posix()
        if is_dropping(shown):
            droppings += [] if path.is_dir() else [shown]
            continue
        if not path.name.lower().endswith(AUDIO_SUFFIXES) or path.is_dir():
            continue
        if not path.is_file():
            remedy = "Put the file there, or remove the link; it was left out."
            problems.add(Problem("missing-file", str(path), "a file", "a link to nothing, a pipe or a device", remedy))
            continue
        utterance = plain_name(path.stem)
        if utterance in found:
            remedy = "Keep one file of each utterance; the first one was used."
            first, again = str(found[utterance]), f"{utterance} also as {shown}"
            problems.add(Problem("repeated-utterance", first, "one file of each utterance", again, remedy))
        found.setdefault(utterance, path)
    if droppings:
        problems.add(describe_droppings(str(folder), droppings))
    return found


def describe_droppings(place: str, droppings: Sequence[str]) -> Problem:
    """Return the one note on all that operating systems left behind in a folder."""
    left = f"{len(droppings):,} that an operating system or a program left behind, such as {droppings[0]}"
    remedy = "Nothing needs to be done; they were ignored."
    return Problem("droppings", place, "only files that are needed", left, remedy, Severity.NOTE)


def _listed(folder: Path, problems: ProblemList) -> tuple[dict[str, Path], set[str]]:
    parsed = read_wav_scp(folder / "wav.scp", str(folder / "wav.scp"))
    problems.keep(parsed.problems)
    below: dict[str, Path] = {}
    folded: dict[str, str] = {}
    found, told = dict[str, Path](), set(parsed.refused)
    for (utterance, written), line in zip(parsed.content.items(), parsed.lines, strict=True):
        path = next((each for each in map(find_spelling, (Path(written), folder / written)) if each.is_file()), None)
        if path is None and not below:
            files = sorted(folder.rglob("*"), reverse=True)
            below = {plain_name(each.name): each for each in files if each.is_file()}
            folded = fold_names(below)
        if path is None:
            path = below.get(plain_name(Path(written).name))
        if path is None:
            expected = f"the audio of {utterance}"
            remedy = "Run from the directory that the paths start from, or correct them."
            name = str(folder / "wav.scp")
            found_instead = f"no file “{written}”{name_other_capitals(Path(written).name, folded)}"
            problems.add(Problem("missing-file", name, expected, found_instead, remedy, line=line))
            told.add(utterance)
        else:
            found[utterance] = path
    return found, told
