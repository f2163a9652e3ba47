"""Whole results: a folder as a participant hands it in, the published files of several systems, or one file.

Files are sorted by system and read by their form, which their content tells (`forms`); names tell the system, and that
files belong together. Then what they say twice is held against each other. Layout:
protocol 1.2; a stamp with ``.orig`` holds the models trained on original speech, the same stamp without it the
retrained ones.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from common.errors import ProblemsError
from common.file_names import fold_names, is_dropping, name_other_capitals, plain_name
from common.problems import Problem, ProblemList, Severity
from evaluation.formats.results import AttackModel, NumberIdentity, ReportedNumber, Speech
from evaluation.metrics.averages import WeightedAverage, weighted_average
from evaluation.objective_results.results.expected import ExpectedLine, ResultFile, ResultKind
from evaluation.objective_results.results.forms import ResultForm, read_form
from evaluation.objective_results.results.rank_files import RankFile, missing_results, read_rank_file
from evaluation.objective_results.results.results_2022 import read_result_file, read_single_file, single_files
from evaluation.objective_results.results.score_files import TrialLookup, check_score_file
from evaluation.protocols.recipes import Recipe, load_recipe

_PUBLISHED = re.compile(
    r"(?:RESULTS(?:_summary)?|results_summary|results\.anon|results\.orig|result_for_rank)_(?P<system>.+)\Z"
)
# Names that teams give: the system follows a word of results; parts of one system end in the speech that they are of.
_NAMED = re.compile(r"results?[_.-]+(?P<system>[^_.\n-].*)\Z", re.IGNORECASE)
_PART = re.compile(r"(?P<system>|.*[_.-])(?:anon|orig)\Z", re.IGNORECASE)
_TEXT_ENDING = re.compile(r"\.(?:txt|log|out)\Z", re.IGNORECASE)
_STAMP = re.compile(r"results-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\Z")


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """Where the scores of one verification test lie, and what was tested.

    Attributes:
        name: the file as its owner knows it.
    """

    path: Path
    name: str
    data_set: str
    training: Speech
    enrolment: Speech
    speech: Speech

    @property
    def speeches(self) -> tuple[Speech, Speech, Speech]:
        """Of training, enrolment and trials, as a number has them."""
        return self.training, self.enrolment, self.speech


@dataclass(frozen=True, slots=True)
class SystemResults:
    """Everything that was read of one system.

    Attributes:
        system: from the names of the files; the name of the folder where these say nothing.
        edition: such as ``2022``.
        files: the result files that were read.
        reported_numbers: every number once, the first place where it stands.
        repeated: the numbers of the other places where they stand.
        scores: the score files of a 2022 submission.
        problems: of all files, and where they contradict each other.
    """

    system: str
    edition: str
    files: tuple[ResultFile | RankFile, ...]
    reported_numbers: tuple[ReportedNumber, ...]
    repeated: tuple[ReportedNumber, ...]
    scores: tuple[ScoreFile, ...]
    problems: tuple[Problem, ...]


def read_results(
    path: Path, *, edition: str | None = None, recipe: Recipe | None = None, trials: TrialLookup = lambda _: None
) -> tuple[SystemResults, ...]:
    """Read a result file, a results directory, the folder of a submission, or a folder of published files.

    Args:
        path: of any of these.
        edition: whose recipe the files are held against; without one, each file tells.
        recipe: an organizer's own, in place of an edition's.
        trials: the organizer's list of a trial set; None where it is not known, then scores are only counted.

    Problems besides those of the files: ``contradicting-results`` (one number, two values), ``missing-directory``
    (``.orig`` or its partner), ``missing-file``, ``missing-summary`` (a warning: of the published files of 2022, the
    one that ranks), ``unexpected-name``, ``unexpected-summary`` (a note: no official script writes a summary into
    ``.orig``), those of `check_score_file`, and ``no-results`` for a folder without a result file. What may not be
    entered below the folder is passed over.

    Raises:
        ProblemsError: no such edition, or one that has no files of this kind.
    """
    recipe = recipe or (load_recipe(edition) if edition else None)
    if path.is_file():
        return (_system(path.name, [_read_file(path, path.name, recipe)], [], [], []),)
    if _is_results_directory(path):
        stamp = path.name.removesuffix(".orig")
        both = (path.parent / stamp, path.parent / f"{stamp}.orig")
        return (_read_submission(path.parent, [one for one in both if one.is_dir()], recipe, trials),)
    if folders := [one for one in _listed(path) if _is_results_directory(one)]:
        by_stamp: dict[str, list[Path]] = {}
        for folder in folders:
            by_stamp.setdefault(folder.name.removesuffix(".orig"), []).append(folder)
        return tuple(_read_submission(path, group, recipe, trials) for group in by_stamp.values())
    places = sorted(os.walk(path))
    if deeper := sorted({folder.parent for place, _, _ in places if _is_results_directory(folder := Path(place))}):
        return tuple(system for one in deeper for system in read_results(one, recipe=recipe, trials=trials))
    files = sorted(Path(place) / name for place, _, names in places for name in names)
    if systems := _published(path, files, recipe):
        return systems
    remedy = "Name a results directory, a submission, or a folder of published result files."
    problem = Problem("no-results", path.name, "result files", "none", remedy)
    return (SystemResults(path.name, "", (), (), (), (), (problem,)),)


def read_published(
    folder: Path, *, edition: str | None = None, recipe: Recipe | None = None
) -> tuple[SystemResults, ...]:
    """Return the systems whose published files lie in a folder itself, none where it holds none or cannot be read.

    Raises:
        ProblemsError: as `read_results`.
    """
    return _published(folder, _listed(folder), recipe or (load_recipe(edition) if edition else None))


def track_average(
    reported_numbers: Iterable[ReportedNumber],
    recipe: Recipe,
    metric: str,
    split: str,
    *,
    track: str | None = None,
    attack_model: AttackModel = AttackModel.SEMI_INFORMED,
    training: Speech | None = None,
) -> WeightedAverage:
    """Return the weighted average that an edition ranks by, from reported_numbers: anonymised speech, EER of one attack
    model.

    Args:
        training: the speech that the evaluator was trained on. Without it, as the editions average: EERs of the
            semi-informed attacker by the retrained model, of any other by the original one (a whole result of 2022 has
            the unprotected and the ignorant test of both); WERs by the recognizer retrained on anonymised speech in
            2022 and by the original one in 2024 and 2026. Metrics without an evaluator take no notice.

    Raises:
        InputError: data sets that are missing or given more than once.
        ProblemsError: the track has no average of the metric.
    """
    chosen = recipe.tracks[track] if track else recipe.track
    average = chosen.average(metric)
    weights = average.weights[split]
    is_retrained = attack_model is AttackModel.SEMI_INFORMED if metric == "eer" else recipe.results is not None
    evaluator = training or (Speech.ANONYMISED if is_retrained else Speech.ORIGINAL)

    def belongs(identity: NumberIdentity) -> bool:
        if (identity.metric, identity.estimator) != (metric, average.estimator) or identity.data_set not in weights:
            return False
        if metric in ("eer", "wer") and identity.training is not evaluator:
            return False
        return identity.attack_model is attack_model if metric == "eer" else identity.speech is Speech.ANONYMISED

    return weighted_average([(c.identity.data_set, c.value) for c in reported_numbers if belongs(c.identity)], weights)


def _is_results_directory(path: Path) -> bool:
    if os.path.isfile(path / "results.txt"):  # noqa: PTH113 (Path.is_file raises in a folder that may not be entered)
        return True
    return any(one.name.startswith(("ASV-", "ASR-")) for one in _listed(path))


def _listed(folder: Path) -> list[Path]:
    """Return what lies in a folder; nothing where it is none or cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _read_file(path: Path, name: str, recipe: Recipe | None) -> ResultFile | RankFile:
    form = read_form(path)
    is_ranked = path.name.startswith("result_for_rank") if form is None else form is ResultForm.SECTIONS
    if not is_ranked:
        return read_result_file(path, recipe=recipe, name=name)
    if recipe and recipe.results:
        raise ProblemsError(f"{name}: {recipe.title} has no such result file. Name 2024 or 2026 as edition.")
    return read_rank_file(path, recipe=recipe, name=name)


def _published(path: Path, files: Iterable[Path], recipe: Recipe | None) -> tuple[SystemResults, ...]:
    systems: dict[str, list[ResultFile | RankFile]] = {}
    for file in files:
        name = plain_name(file.relative_to(path).as_posix())
        if (system := _system_of(file)) and not is_dropping(name):
            key = f"{name.rpartition('/')[0]}/{system}".lstrip("/")
            systems.setdefault(key, []).append(_read_file(file, name, recipe))
    return tuple(_system(name, read, [], [], _no_summary(name, read), recipe) for name, read in systems.items())


def _system_of(file: Path) -> str:
    """Return the system that a file in a folder of results tells of, by its name; empty for a file without results."""
    if not os.path.isfile(file):  # noqa: PTH113 (Path.is_file may raise)
        return ""
    name = plain_name(file.name)
    if found := _PUBLISHED.match(name):
        return found["system"]
    if read_form(file) not in (ResultForm.SECTIONS, ResultForm.LINES):
        return ""
    stem = _TEXT_ENDING.sub("", name)
    named = _NAMED.match(stem)
    system = named["system"] if named else stem
    part = _PART.match(system)
    return part["system"].strip("_.-") or plain_name(file.resolve().parent.name) if part else system


def _no_summary(system: str, files: Sequence[ResultFile | RankFile]) -> list[Problem]:
    kinds = {file.kind for file in files if isinstance(file, ResultFile) and file.edition == "2022"}
    if not kinds or ResultKind.SUMMARY in kinds:
        return []
    remedy = "Add it: it states the averages that rank and the WERs of the original recognizer."
    expected = f"RESULTS_summary_{system.rpartition('/')[2]} beside it"
    return [Problem("missing-summary", files[0].name, expected, "none", remedy, Severity.WARNING)]


def _read_submission(root: Path, folders: Sequence[Path], recipe: Recipe | None, trials: TrialLookup) -> SystemResults:
    problems: list[Problem] = []
    files: list[ResultFile | RankFile] = []
    for folder in sorted(folders, key=lambda one: one.name.endswith(".orig")):
        found = [one for one in (folder / "results_summary.txt", folder / "results.txt") if one.is_file()]
        if folder.name.endswith(".orig") and (folder / "results_summary.txt").is_file():
            name = f"{folder.name}/results_summary.txt"
            remedy = "No official script writes it; it was read like any summary."
            problems.append(
                Problem("unexpected-summary", name, "results.txt alone", "a summary", remedy, Severity.NOTE)
            )
        files += [_read_file(one, one.relative_to(root).as_posix(), recipe) for one in found]
        if not _STAMP.match(folder.name.removesuffix(".orig")):
            expected, remedy = "results-<YYYY-MM-DD-HH-MM-SS>", "Keep the name that the recipe gave."
            problems.append(Problem("unexpected-name", folder.name, expected, folder.name, remedy, Severity.WARNING))
    recipe = recipe or load_recipe(files[0].edition if files else "2022")
    parts = _Parts(root, recipe, trials)
    for folder in folders:
        parts.read(folder)
    problems += [*parts.problems, *(_partners(folders) if _retrains(recipe) else ())]
    stamp = folders[0].name.removesuffix(".orig")
    read = _system(stamp, files, parts.reported_numbers, parts.scores, problems)
    return replace(read, edition=recipe.edition)


def _retrains(recipe: Recipe) -> bool:
    """Return whether results come in two directories, of the original and of the retrained models, as in 2022."""
    return recipe.results is not None and bool(recipe.results.trial_set)


def _partners(folders: Sequence[Path]) -> Iterator[Problem]:
    names = {folder.name for folder in folders}
    stamp = folders[0].name.removesuffix(".orig")
    for wanted in (stamp, f"{stamp}.orig"):
        if wanted not in names:
            remedy = "Submit both results directories: of the retrained and of the original models."
            yield Problem("missing-directory", wanted, f"the directory “{wanted}”", "none", remedy)


@dataclass
class _Parts:
    """What is read of the single files of results directories, each beside its ``results.txt``."""

    root: Path
    recipe: Recipe
    trials: TrialLookup
    reported_numbers: list[ReportedNumber] = field(default_factory=list)
    scores: list[ScoreFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def read(self, folder: Path) -> None:
        retrained = _retrains(self.recipe) and not folder.name.endswith(".orig")
        report = ProblemList()
        wanted_files = ["config.info", "results.txt"] if _retrains(self.recipe) else ["results.txt"]
        for name in [*wanted_files, *(["results_summary.txt"] if retrained else [])]:
            if not (folder / name).is_file():
                report.add(self._no_file(folder / name))
        tests: dict[str, ExpectedLine] = {}
        for file in single_files(self.recipe, ResultKind.RETRAINED if retrained else ResultKind.ORIGINAL):
            path = folder / file.path
            if file.test.startswith("ASV-"):
                tests.setdefault(file.test, file.lines[0])
            if path.is_file():
                shown = path.relative_to(self.root).as_posix()
                self.reported_numbers += read_single_file(path, file, report, shown)
            else:
                report.add(self._no_file(path))
        for test, line in tests.items():
            self._find_scores(folder / test / "scores", line.identities[0], report)
        self.problems += report.report()

    def _find_scores(self, path: Path, identity: NumberIdentity, report: ProblemList) -> None:
        if not path.is_file():
            report.add(self._no_file(path))
            return
        assert identity.training is not None  # noqa: S101
        assert identity.enrolment is not None  # noqa: S101
        shown, speeches = path.relative_to(self.root).as_posix(), (identity.training, identity.enrolment)
        self.scores.append(ScoreFile(path, shown, identity.data_set, *speeches, identity.speech))
        data_set = self.recipe.data_sets[identity.data_set]
        report.keep(check_score_file(path, shown, data_set, self.trials(data_set)))

    def _no_file(self, path: Path) -> Problem:
        shown = path.relative_to(self.root).as_posix()
        there = fold_names(plain_name(one.name) for one in _listed(path.parent))
        found = f"none{name_other_capitals(path.name, there)}"
        return Problem("missing-file", shown, "the file", found, "Submit the whole results directory.")


def _system(
    name: str,
    files: Sequence[ResultFile | RankFile],
    parts: Sequence[ReportedNumber],
    scores: Sequence[ScoreFile],
    problems: Sequence[Problem],
    recipe: Recipe | None = None,
) -> SystemResults:
    reported_numbers: dict[NumberIdentity, ReportedNumber] = {}
    repeated: list[ReportedNumber] = [reported for file in files for reported in file.repeated]
    report = ProblemList()
    parts_of_one = [file for file in files if isinstance(file, RankFile)]
    for problem in (problem for file in files for problem in file.problems):
        if len(parts_of_one) < 2 or problem.code != "missing-result":  # what one file lacks may stand in another
            report.add(problem)
    if len(parts_of_one) > 1:
        together = [reported for file in parts_of_one for reported in file.reported_numbers]
        whole = recipe or load_recipe(parts_of_one[0].edition)
        report.keep(missing_results(parts_of_one[0].name, together, whole))
    report.keep(problems)
    for reported in (*(reported for file in files for reported in file.reported_numbers), *parts):
        known = reported_numbers.setdefault(reported.identity, reported)
        if known is reported:
            continue
        repeated.append(reported)
        both = known.value, reported.value
        are_equal = both[0] == both[1] or all(map(math.isnan, both))  # that they are none, the file's own report says
        if not are_equal or known.counts != reported.counts:
            report.add(_contradiction(known, reported))
    edition = files[0].edition if files else ""
    found = tuple(reported_numbers.values()), tuple(repeated), tuple(scores)
    return SystemResults(name, edition, tuple(files), *found, report.report())


def _contradiction(known: ReportedNumber, reported: ReportedNumber) -> Problem:
    counts: Callable[[ReportedNumber], str] = lambda one: f" ({one.counts.errors} errors)" if one.counts else ""  # noqa: E731
    identity = reported.identity
    expected = f"{known.written}{counts(known)} as in {known.file}, line {known.line}, for {identity.metric}"
    remedy = "Submit the files of one run."
    found = f"“{reported.written}”{counts(reported)}"
    return Problem(
        "contradicting-results", reported.file, f"{expected} of {identity.data_set}", found, remedy, line=reported.line
    )
