"""What a file of a submission is, told by its path alone, in any folder layout (protocol 1.2, 1.3 and 4).

Conventions: a path has forward slashes and is relative to the archive. Names are compared as the official scripts write
them; only the endings ``.wav``, ``.flac`` and ``.pdf`` may be in any case. ``targets.csv`` tells the target speaker
of each utterance, where a system has some. Hypotheses have no official place: they
are the files of a folder ``hypotheses`` (``hypotheses/<data set>`` with or without ``_anon`` and ``.txt``), and any
``<data set>.hyp.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from anonymization.methods.target_files import FILE_NAME as FILE_OF_TARGETS
from portal.submissions.intake.names import is_dropping

SIMILARITY_FOLDER = "similarity_matrices_DeID_Gvd"
RESULTS_PART = "results"
_SPEECH = (".wav", ".flac")
_RESULTS = {"results.txt", "results_summary.txt", "config.info", "DeIDentification", "gain_of_voice_distinctiveness"}
_DETECTION = {"EER", "Cllr", "linkability_log", "zebra"}
_SIMILARITY = re.compile(r"similarity_matrix_.+\.npy\Z")
_PUBLISHED = re.compile(r"(?:RESULTS|results_summary|results\.anon|results\.orig|result_for_rank)_.+\Z")


class Content(StrEnum):
    """Kinds of files of a submission.

    `DROPPING`: what macOS and Windows leave behind. `OTHER`: whatever the portal has no use for.
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


def classify(path: str) -> Content:
    """What the file at a path is.

    >>> classify("myteam/exp/results-2022-07-01-10-00-00/ASV-a_enrolls-a_trials_f/scores")
    <Content.SCORES: 'scores'>
    """
    *folders, name = path.split("/")
    parent = folders[-1] if folders else ""
    is_in_detection = any(folder.startswith("ASV-") for folder in folders)
    if is_dropping(path):
        return Content.DROPPING
    if name.lower().endswith(_SPEECH):
        return Content.SPEECH
    if name.lower().endswith(".pdf"):
        return Content.OTHER if is_in_detection else Content.DESCRIPTION
    if name == FILE_OF_TARGETS:
        return Content.TARGETS
    if name.endswith(".hyp.txt") or parent == "hypotheses":
        return Content.HYPOTHESES
    if parent.startswith("ASV-"):
        return Content.SCORES if name == "scores" else Content.RESULTS if name in _DETECTION else Content.OTHER
    if _SIMILARITY.match(name):
        return Content.SIMILARITY
    is_result = name in _RESULTS or name.startswith("ASR-") or _PUBLISHED.match(name)
    return Content.RESULTS if is_result and not is_in_detection else Content.OTHER


def results_directory(path: str) -> str | None:
    """The results directory that a file belongs to, as ``myteam/exp/results-2022-07-01-10-00-00``.

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
    """Every results directory among the files of a submission, sorted."""
    return tuple(sorted({folder for path in paths if (folder := results_directory(path)) is not None}))


def part_of(path: str) -> str:
    """What a document belongs to: results with their scores, the description, or itself."""
    content = classify(path)
    if content in (Content.RESULTS, Content.SCORES, Content.SIMILARITY):
        return RESULTS_PART
    return str(content) if content is Content.DESCRIPTION else path
