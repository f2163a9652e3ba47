"""Original and anonymised audio side by side: two folders of any layout, or two Kaldi directories.

Utterances are matched by id: the base name of a WAV or FLAC file, or the key of ``wav.scp``. Nothing is guessed: an
utterance that one side lacks, or that a side holds twice, is a problem of the report and no pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from common.problems import Problem, ProblemList
from evaluation.formats.kaldi import read_wav_scp

ENDINGS = {".wav", ".flac"}


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
    from the directory itself, then as a file name anywhere below it. Codes: those of ``wav.scp``, ``no-audio`` (a side
    without utterances), ``repeated-utterance``, ``missing-utterance``, ``extra-utterance``, ``missing-file``.
    """
    problems = ProblemList()
    first, second = _utterances(original, problems), _utterances(anonymised, problems)
    remedy = "Anonymise every utterance, and keep its name."
    for utterance in sorted(first.keys() - second.keys()) if second else ():
        problems.add(Problem("missing-utterance", str(anonymised), f"the utterance {utterance}", "none", remedy))
    for utterance in sorted(second.keys() - first.keys()) if first else ():
        found = f"{utterance}, which {original} lacks"
        problems.add(Problem("extra-utterance", str(anonymised), "utterances of the originals", found, remedy))
    both = sorted(first.keys() & second.keys())
    return AudioPairs(tuple(AudioPair(name, first[name], second[name]) for name in both), problems.report())


def list_utterances(folder: Path) -> tuple[dict[str, Path], tuple[Problem, ...]]:
    """The utterances of one folder or Kaldi directory with their files, in its order, and what was wrong."""
    problems = ProblemList()
    return _utterances(folder, problems), problems.report()


def _utterances(folder: Path, problems: ProblemList) -> dict[str, Path]:
    found = _listed(folder, problems) if (folder / "wav.scp").is_file() else _lying(folder, problems)
    if not found:
        expected, remedy = "WAV or FLAC files, or wav.scp", "Name the folder that holds the audio."
        what = "none" if folder.is_dir() else "a file" if folder.exists() else "no such folder"
        problems.add(Problem("no-audio", str(folder), expected, what, remedy))
    return found


def _lying(folder: Path, problems: ProblemList) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in ENDINGS or path.is_dir():
            continue
        if not path.is_file():
            remedy = "Put the file there, or remove the link; it was left out."
            problems.add(Problem("missing-file", str(path), "a file", "a link to nothing, a pipe or a device", remedy))
            continue
        if path.stem in found:
            shown = f"{path.stem} also as {path.relative_to(folder)}"
            remedy = "Keep one file of each utterance; the first one was used."
            first = str(found[path.stem])
            problems.add(Problem("repeated-utterance", first, "one file of each utterance", shown, remedy))
        found.setdefault(path.stem, path)
    return found


def _listed(folder: Path, problems: ProblemList) -> dict[str, Path]:
    parsed = read_wav_scp(folder / "wav.scp", str(folder / "wav.scp"))
    problems.keep(parsed.problems)
    below: dict[str, Path] = {}
    found: dict[str, Path] = {}
    for (utterance, written), line in zip(parsed.content.items(), parsed.lines, strict=True):
        path = next((each for each in (Path(written), folder / written) if each.is_file()), None)
        if path is None:
            below = below or {each.name: each for each in sorted(folder.rglob("*"), reverse=True) if each.is_file()}
            path = below.get(Path(written).name)
        if path is None:
            expected = f"the audio of {utterance}"
            remedy = "Run from the directory that the paths start from, or correct them."
            name = str(folder / "wav.scp")
            problems.add(Problem("missing-file", name, expected, f"no file “{written}”", remedy, line=line))
        else:
            found[utterance] = path
    return found
