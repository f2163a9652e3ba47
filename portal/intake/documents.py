"""The files of an archive that are not speech: written to a folder, read as results, and missed where required.

Result and score files are read by `evaluation.objective_results.results.folders` with the recipe of the edition.
Numbers that stand in ``results.txt`` are not missed once more as files of their own.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from anonymization.methods.voices.files import read_targets
from common.errors import ProblemsError
from common.problems import Problem, Severity
from evaluation.formats.results import NumberIdentity
from evaluation.formats.scores import TrialTable, read_trial_table
from evaluation.objective_results.detection import measure_similarity, similarity_sets
from evaluation.objective_results.results.folders import SystemResults, read_results
from evaluation.objective_results.results.score_files import TrialLookup
from evaluation.objective_results.word_errors import hypothesis_files, read_hypotheses
from evaluation.protocols.recipes import Recipe
from portal.intake.contents import RESULT_KINDS, Content, classify, recognise, results_directories
from portal.intake.expectation import ExpectedSubmission
from portal.intake.pdf_files import find_pdf_fault
from portal.intake.problem_codes import describe

MOST_SYSTEMS = 20  # are read; one is right, and of thousands nobody wants every problem
_FILES_OF_A_SYSTEM = 4  # published ones
_NEEDED = ("results.txt", "results_summary.txt")
# The names by which files are known that may come under others.
_KNOWN_BY = {
    Content.RESULTS: "results as results-<stamp>/results.txt, or under a published name: RESULTS_summary_<system>",
    Content.SCORES: "scores as results-<stamp>/ASV-<enrolment set>-<trial set>/scores",
    Content.DESCRIPTION: "a description whose name ends in .pdf",
    Content.SPEECH: "a WAV or FLAC file whose name ends in .wav or .flac",
}
_FOR_A_RANK = {
    Content.SCORES: ("scores", "score files (ASV-…/scores)"),
    Content.SPEECH: ("recordings", "anonymised speech"),
    Content.SIMILARITY: ("similarity matrices", "the similarity matrices of the results directories"),
}


def write_document(folder: Path, path: str, stream: BinaryIO) -> Path:
    """Put a file under `folder` at its path in the archive, which `read_archive` has made safe."""
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    return place


def read_submitted_results(
    folder: Path, paths: Iterable[str], recipe: Recipe, trials: TrialLookup = lambda _: None
) -> tuple[SystemResults, ...]:
    """Return the results among the files of an archive, each named by its path in the archive.

    Args:
        folder: where `write_document` put them.
        paths: of the files, as in the archive.
        trials: the organizer's list of a trial set; None where it is not known.

    Returns:
        One for each system found, so one or none in a sound submission. Results directories in one folder with the
        same stamp belong together; published files (``RESULTS_summary_…``) are looked at where there are none.
    """
    paths = tuple(paths)
    parents = sorted({one.rpartition("/")[0] for one in results_directories(paths) if one})
    if parents:
        return tuple(
            _named(each, parent)
            for parent in parents
            for each in read_results(folder / parent, recipe=recipe, trials=trials)
        )
    if not any(classify(path) is Content.RESULTS for path in paths):
        return ()
    return tuple(each for each in read_results(folder, recipe=recipe) if each.files)


def result_problems(
    folder: Path, paths: Collection[str], expected: ExpectedSubmission, trials: Mapping[str, Path]
) -> Iterator[Problem]:
    """Whatever is wrong with result and score files, hypotheses and matrices; each is read as it is measured.

    Nothing is said of an archive without any. What is named by `paths` but is not in the folder is with the portal
    already: it is neither read nor missed.

    Args:
        trials: files with the organizer's trials, by trial set; without them scores are only counted.
    """
    recipe = expected.recipe()
    yield from _hypothesis_problems(folder, recipe, expected)
    for _, place in similarity_sets(folder, recipe):
        yield from measure_similarity(place, place.relative_to(folder).as_posix())[1]
    if "" in results_directories(paths):
        yield describe("misplaced-results", "results.txt")
        return
    if (count := _systems_at_least(paths)) > MOST_SYSTEMS:
        yield describe("several-results", "the archive", found=f"{count:,}, too many to be read")
        return
    elsewhere = [path for path in paths if not (folder / path).is_file()]
    here = [path for path in paths if path not in elsewhere]
    try:
        systems = read_submitted_results(folder, here, recipe, _trial_lookup(trials))
    except ProblemsError as error:  # files of another edition
        yield describe("foreign-results", "the archive", edition=recipe.title, found=str(error).partition(":")[0])
        return
    if len(systems) > 1:
        names = ", ".join(one.system for one in systems[:5])
        yield describe("several-results", "the archive", found=f"{len(systems)}: {names}")
    has_scores = any(one.scores for one in systems) or any(classify(one) is Content.SCORES for one in elsewhere)
    for system in systems:
        is_read = {file.name for file in system.files}
        for problem in system.problems:
            if _lies_elsewhere(problem, elsewhere):
                continue
            if (weighed := _weighed(problem, is_read, expected, has_scores)) is not None:
                yield weighed


def _trial_lookup(trials: Mapping[str, Path]) -> TrialLookup:
    """Reads each list once."""

    @cache
    def read(name: str) -> TrialTable:
        return read_trial_table(trials[name], f"the organizer's trials of {name}")

    return lambda data_set: read(data_set.name) if data_set.name in trials else None


def _hypothesis_problems(folder: Path, recipe: Recipe, expected: ExpectedSubmission) -> Iterator[Problem]:
    first: dict[NumberIdentity, str] = {}
    for file in hypothesis_files(folder, recipe):
        if (other := first.setdefault(file.identity, file.name)) != file.name:
            yield describe("several-hypotheses", file.name, other=other)
        data_set = recipe.data_sets[file.identity.data_set]
        parts = recipe.list_parts(data_set, expected.data_sets)
        utterances = dict.fromkeys(chain.from_iterable(expected.data_sets[name] for name in parts))
        is_whole = data_set.utterances in (None, len(utterances))  # of a part of the set nothing is known of the rest
        yield from read_hypotheses(file.path, file.name, utterances if is_whole else ()).problems


def missing_parts(contents: Collection[Content], expected: ExpectedSubmission) -> Iterator[Problem]:
    """Yield what neither the archive nor an earlier submission holds, though it is required or a rank needs it.

    Missing speech is an error elsewhere; here it is what no rank can be had without.
    """
    yield from _missing_for_a_rank(contents, expected)
    if expected.scores_required and Content.SCORES not in contents:
        yield describe("missing-scores", "the archive")
    if expected.description_required and Content.DESCRIPTION not in contents:
        yield describe("missing-description", "the archive")


def _missing_for_a_rank(contents: Collection[Content], expected: ExpectedSubmission) -> Iterator[Problem]:
    """Yield a warning for each kind of files that is not required, but without which the system cannot be ranked."""
    required = {Content.SCORES: expected.scores_required, Content.SPEECH: expected.audio_required}
    lacking: dict[Content, list[str]] = {}
    for label, kinds in expected.needed_to_rank.items():
        first = Content(kinds[0])
        if contents and not required.get(first) and not any(Content(kind) in contents for kind in kinds):
            lacking.setdefault(first, []).append(label)
    for content, labels in lacking.items():
        words, wanted = _FOR_A_RANK[content]
        yield describe("cannot-be-ranked", "the archive", words=words, wanted=wanted, numbers=" and ".join(labels))


def description_problem(path: str, document: Path) -> Problem | None:
    """Return whether what is called PDF is one that others may be given."""
    found = find_pdf_fault(document)
    return describe("not-a-pdf", path, found=found) if found else None


def unused_by_name(path: str, head: bytes, expected: ExpectedSubmission) -> Problem | None:
    """Return the warning of a file that would be of use by its content, and is not because its name does not tell so.

    Args:
        head: its first bytes.
    """
    content = recognise(head)
    if content is None or (content is Content.SPEECH and not expected.data_sets):
        return None
    if content in RESULT_KINDS and not expected.takes_results:
        return None
    wanted = _KNOWN_BY[content]
    if content is Content.RESULTS and expected.recipe().results is None:
        wanted = "results under the name result_for_rank_<suffix>"
    return describe("unused-by-name", path, wanted=wanted, content=content)


def target_problems(path: str, document: Path) -> Iterator[Problem]:
    """Yield what is wrong with a file of targets; nothing rests on it but the attacker that is told of targets."""
    for problem in read_targets(document, path).problems:
        yield replace(problem, severity=Severity.WARNING)


def _systems_at_least(paths: Collection[str]) -> int:
    """Return how many systems these files tell of at least, by their paths alone."""
    directories = {one.removesuffix(".orig") for one in results_directories(paths)}
    if directories:
        return len(directories)
    return sum(classify(path) is Content.RESULTS for path in paths) // _FILES_OF_A_SYSTEM


def _lies_elsewhere(problem: Problem, elsewhere: Iterable[str]) -> bool:
    """Return whether a file or directory is missed that the portal holds."""
    if problem.code not in ("missing-file", "missing-directory"):
        return False
    return any(path == problem.file or path.startswith(f"{problem.file}/") for path in elsewhere)


def _weighed(
    problem: Problem, is_read: Collection[str], expected: ExpectedSubmission, has_scores: bool
) -> Problem | None:
    """A missing file is as grave as what it alone could tell; all score files at once are missed elsewhere."""
    folder, _, name = problem.file.rpartition("/")
    if problem.code != "missing-file" or name in _NEEDED:
        return problem
    if name == "scores":
        if not has_scores:
            return None
        return problem if expected.scores_required else replace(problem, severity=Severity.WARNING)
    results = {read.rpartition("/")[0] for read in is_read}
    if any(folder == one or folder.startswith(f"{one}/") for one in results):
        remedy = "Its numbers were taken from results.txt. Submit the whole results directory."
        return replace(problem, severity=Severity.WARNING, remedy=remedy)
    return problem


def _named(system: SystemResults, parent: str) -> SystemResults:
    """Return the same with every file named from the top of the archive."""
    if not parent:
        return system

    def name(file: str) -> str:
        return f"{parent}/{file}"

    return replace(
        system,
        reported_numbers=tuple(replace(one, file=name(one.file)) for one in system.reported_numbers),
        repeated=tuple(replace(one, file=name(one.file)) for one in system.repeated),
        files=tuple(replace(one, name=name(one.name)) for one in system.files),
        scores=tuple(replace(one, name=name(one.name)) for one in system.scores),
        problems=tuple(replace(one, file=name(one.file)) for one in system.problems),
    )
