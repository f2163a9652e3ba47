"""A Kaldi data directory against the data set that a recipe describes: counts, ids, trials and ``wav.scp``.

VCTK trials are a sample, so trials are checked by count and by the hash of the list where it is known, never as a
product. Hashes: first 16 hexadecimal digits of the SHA-256 over the bytewise sorted lines, each followed by a line end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path

from evaluation.formats import kaldi
from evaluation.formats.problems import Problem
from evaluation.protocols.recipes import DataSet

_OFFICIAL = "Use the official lists of this data set."


def list_hash(lines: Iterable[str]) -> str:
    """The hash by which recipes name a list of ids or trials."""
    text = "".join(f"{line}\n" for line in sorted(lines, key=str.encode))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_data_directory(folder: Path, data_set: DataSet) -> tuple[Problem, ...]:
    """Every way in which a directory differs from its data set; what the recipe leaves open is not checked.

    Faults: those of the Kaldi readers, ``wrong-count``, ``wrong-ids``, ``wrong-trials`` and ``incomplete-wav-scp`` (a
    list that lacks utterances, as the official B2 leaves it when resumed; an empty one is ``empty-file``).
    """
    problems: list[Problem] = []
    speakers = kaldi.read_utt2spk(folder / "utt2spk", f"{folder.name}/utt2spk")
    problems += speakers.problems
    file = f"{folder.name}/utt2spk"
    problems += _count(file, "utterances", data_set.utterances, len(speakers.content))
    problems += _count(file, "speakers", data_set.speakers, len(set(speakers.content.values())))
    if data_set.id_hash and list_hash(speakers.content) != data_set.id_hash:
        expected = f"the utterances of {data_set.name}, hash {data_set.id_hash}"
        found = f"hash {list_hash(speakers.content)}"
        problems.append(Problem("wrong-ids", file, expected, found, _OFFICIAL))
    if data_set.role == "trial":
        problems += _trials(folder, data_set, speakers.content)
    if (folder / "wav.scp").exists():
        problems += _wav_scp(folder, speakers.content)
    return tuple(problems)


def _count(file: str, what: str, expected: int | None, found: int) -> list[Problem]:
    if expected in (None, found):
        return []
    return [Problem("wrong-count", file, f"{expected} {what}", str(found), _OFFICIAL)]


def _trials(folder: Path, data_set: DataSet, utterances: Collection[str]) -> list[Problem]:
    file = f"{folder.name}/trials"
    parsed = kaldi.read_trials(folder / "trials", file)
    targets = sum(trial.target for trial in parsed.content)
    problems = list(parsed.problems)
    problems += _count(file, "model speakers", data_set.models, len({trial.model for trial in parsed.content}))
    problems += _count(file, "target trials", data_set.targets, targets)
    problems += _count(file, "nontarget trials", data_set.nontargets, len(parsed.content) - targets)
    for trial, line in zip(parsed.content, parsed.lines, strict=True):
        if trial.utterance not in utterances:
            expected, found = f"an utterance of {folder.name}/utt2spk", f"“{trial.utterance}”"
            problems.append(Problem("unknown-utterance", file, expected, found, _OFFICIAL, line=line))
            break
    if data_set.trials_hash:
        found = list_hash(
            f"{one.model} {one.utterance} {'target' if one.target else 'nontarget'}" for one in parsed.content
        )
        if found != data_set.trials_hash:
            expected = f"the trials of {data_set.name}, hash {data_set.trials_hash}"
            problems.append(Problem("wrong-trials", file, expected, f"hash {found}", _OFFICIAL))
    return problems


def _wav_scp(folder: Path, utterances: Collection[str]) -> list[Problem]:
    file = f"{folder.name}/wav.scp"
    parsed = kaldi.read_wav_scp(folder / "wav.scp", file)
    problems = list(parsed.problems)
    missing = [one for one in utterances if one not in parsed.content]
    piped = any(problem.code == "pipe-refused" for problem in problems)
    if missing and parsed.content and not piped:
        expected = f"a line for each of {len(utterances)} utterances"
        found = f"none for {len(missing)}, such as “{missing[0]}”"
        remedy = "Write it again from the files: the official B2 leaves out what a resumed run finds done."
        problems.append(Problem("incomplete-wav-scp", file, expected, found, remedy))
    return problems
