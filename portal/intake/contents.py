"""What a file of a submission is, told by its path alone, in any folder layout (protocol 1.2, 1.3 and 4).

Also told by paths alone: which documents of earlier versions stay beside those of an archive. Conventions: a path has
forward slashes and is relative to the archive. Names are compared as the official scripts write them; only the endings
of audio and ``.pdf`` may be in any case. ``targets.csv`` tells the target speaker of each utterance, where a
system has some. Hypotheses have no official place: they are the files of a folder ``hypotheses``
(``hypotheses/<data set>`` with or without ``_anon`` and ``.txt``), and any ``<data set>.hyp.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TypeVar

from anonymization.methods.voices.files import TARGETS_FILE
from common.file_names import is_dropping
from common.folders import AUDIO_SUFFIXES
from evaluation.objective_results.results.forms import ResultForm, find_form

SIMILARITY_FOLDER = "similarity_matrices_DeID_Gvd"
RESULTS_PART = "results"
_RESULTS = {"results.txt", "results_summary.txt", "config.info", "DeIDentification", "gain_of_voice_distinctiveness"}
_DETECTION = {"EER", "Cllr", "linkability_log", "zebra"}
_SIMILARITY = re.compile(r"similarity_matrix_.+\.npy\Z")
_PUBLISHED = re.compile(r"(?:RESULTS|results_summary|results\.anon|results\.orig|result_for_rank)_.+\Z")
# Of what is mostly meant as speech: lossy audio, too, which is refused under a name that tells it.
_AUDIO_START = re.compile(
    rb"(?:RIFF|RF64|BW64)....WAVE|FORM....AIF[FC]|fLaC[\0\x80]|OggS\0|ID3[\2-\4]|NIST_1A\n|\xff[\xfb\xf3]", re.DOTALL
)
T = TypeVar("T")


class Content(StrEnum):
    """Kinds of files of a submission.

    `DROPPING`: what operating systems leave behind. `OTHER`: whatever the portal has no use for.
    """

    SPEECH = "speech"
    RESULTS = "results"
    SCORES = "scores"
    HYPOTHESES = "hypotheses"
    SIMILARITY = "similarity"
    DESCRIPTION = "description"
    TARGETS = "targets"
    DROPPING = "dropping"
    OTHER = "other"


RESULT_KINDS = (Content.SCORES, Content.RESULTS, Content.HYPOTHESES, Content.SIMILARITY)  # by which a team reports


def classify(path: str) -> Content:
    """Return what the file at a path is.

    >>> classify("myteam/exp/results-2022-07-01-10-00-00/ASV-a_enrolls-a_trials_f/scores")
    <Content.SCORES: 'scores'>
    """
    *folders, name = path.split("/")
    parent = folders[-1] if folders else ""
    is_in_detection = any(folder.startswith("ASV-") for folder in folders)
    if is_dropping(path):
        return Content.DROPPING
    if name.lower().endswith(AUDIO_SUFFIXES):
        return Content.SPEECH
    if name.lower().endswith(".pdf"):
        return Content.OTHER if is_in_detection else Content.DESCRIPTION
    if name == TARGETS_FILE:
        return Content.TARGETS
    if name.endswith(".hyp.txt") or parent == "hypotheses":
        return Content.HYPOTHESES
    if parent.startswith("ASV-"):
        return Content.SCORES if name == "scores" else Content.RESULTS if name in _DETECTION else Content.OTHER
    if _SIMILARITY.match(name):
        return Content.SIMILARITY
    is_result = name in _RESULTS or name.startswith("ASR-") or _PUBLISHED.match(name)
    return Content.RESULTS if is_result and not is_in_detection else Content.OTHER


def recognise(head: bytes) -> Content | None:
    """Return what a file is by its first bytes; None for what the portal has no use for."""
    if head.startswith(b"%PDF-"):
        return Content.DESCRIPTION
    if _AUDIO_START.match(head):
        return Content.SPEECH
    form = find_form(head)
    if form is None:
        return None
    return Content.SCORES if form is ResultForm.SCORES else Content.RESULTS


def results_directory(path: str) -> str | None:
    """Return the results directory that a file belongs to, as ``myteam/exp/results-2022-07-01-10-00-00``.

    It is the folder above ``ASV-*``, above the folder of similarity matrices, or that of a plain file. The empty text
    is the archive itself; None is a file that belongs to no results directory, published results among them.
    """
    content = classify(path)
    *folders, name = path.split("/")
    if content not in (Content.RESULTS, Content.SCORES, Content.SIMILARITY) or _PUBLISHED.match(name):
        return None
    for depth, folder in enumerate(folders):
        if folder.startswith("ASV-") or folder == SIMILARITY_FOLDER:
            return "/".join(folders[:depth])
    return None if content is Content.SIMILARITY else "/".join(folders)


def results_directories(paths: Iterable[str]) -> tuple[str, ...]:
    """Return every results directory among the files of a submission, sorted."""
    return tuple(sorted({folder for path in paths if (folder := results_directory(path)) is not None}))


def part_of(path: str) -> str:
    """Return what a document belongs to: results with their scores, the description, or itself."""
    content = classify(path)
    if content in (Content.RESULTS, Content.SCORES, Content.SIMILARITY):
        return RESULTS_PART
    return str(content) if content is Content.DESCRIPTION else path


def select_offered(
    sound: Iterable[T], newest: Iterable[T], sent: Collection[str], *, path: Callable[[T], str]
) -> list[T]:
    """Return what an archive with the paths `sent` may inherit: what is sound, or what it completes.

    An archive that brings something of a part, such as one of two results directories, means the newest form of that
    part, sound or not.
    """
    brought = {part_of(one) for one in sent}
    untouched = [one for one in sound if part_of(path(one)) not in brought]
    return [*untouched, *(one for one in newest if part_of(path(one)) in brought)]


def select_staying(old: Iterable[str], sent: Iterable[str]) -> list[str]:
    """Return the paths of old documents that stay although an archive with the paths `sent` has come.

    A file stays unless one of its path was sent. A results directory that was sent again replaces the old one as a
    whole, and one of another stamp replaces all old ones, because a submission has one set of results. A system
    description replaces the old one whatever its name.
    """
    paths, old = set(sent), list(old)
    above = {parent for path in paths for parent in _parents(path)}
    directories = {_name(found) for path in paths if (found := results_directory(path)) is not None}
    stamps = {_stamp(name) for name in directories}
    is_described = any(classify(path) is Content.DESCRIPTION for path in paths)
    replaced = {
        folder
        for one in old
        if (folder := results_directory(one)) is not None
        and directories
        and (_name(folder) in directories or _stamp(_name(folder)) not in stamps)
    }
    return [
        one
        for one in old
        if one not in paths | above  # a name is a file or a folder, not both
        and not paths.intersection(_parents(one))
        and not _lies_in(one, replaced)
        and not (is_described and classify(one) is Content.DESCRIPTION)
    ]


def _lies_in(path: str, directories: set[str]) -> bool:
    """Return whether a file belongs to one of the directories, or lies somewhere below it."""
    if results_directory(path) in directories:
        return True
    return any(parent in directories for parent in _parents(path))


def _parents(path: str) -> list[str]:
    return [str(parent) for parent in PurePosixPath(path).parents][:-1]


def _name(directory: str) -> str:
    return directory.rpartition("/")[2]


def _stamp(name: str) -> str:
    return name.removesuffix(".orig")
