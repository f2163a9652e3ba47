"""Whole results: a folder as a participant hands it in, the published files of several systems, or one file.

Files are sorted by system and read by their format; then what they say twice is held against each other. Layout:
protocol 1.2; a stamp with ``.orig`` holds the models trained on original speech, the same stamp without it the
retrained ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.formats.claims import AttackModel, Claim, ClaimIdentity, Speech
from evaluation.formats.expected_results import ExpectedLine, ResultKind, expected_lines
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem, Severity
from evaluation.formats.rank_files import RankFile, read_rank_file
from evaluation.formats.result_file import ResultFile
from evaluation.formats.result_lines import Entry, parse_value
from evaluation.formats.results_2022 import entry_claims, read_result_file
from evaluation.formats.text_files import read_text_file
from evaluation.metrics.averages import WeightedAverage, weighted_average
from evaluation.protocols.recipes import Recipe, RecipeError, load_recipe

SIMILARITY_FOLDER = "similarity_matrices_DeID_Gvd"
_DETECTION_FILES = {"EER": ("eer",), "Cllr": ("cllr", "rocch"), "linkability_log": ("linkability",),
                    "zebra": ("population", "individual")}  # fmt: skip
_DISTINCTIVENESS_FILES = {"DeIDentification": "de_identification", "gain_of_voice_distinctiveness": "gain"}
_PUBLISHED = re.compile(
    r"(?:RESULTS(?:_summary)?|results_summary|results\.anon|results\.orig|result_for_rank)_(?P<system>.+)\Z"
)
_STAMP = re.compile(r"results-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\Z")
_MIN_DCF = re.compile(r"minDCF\(p-target=[\d.]+\): *\S*\Z")


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """Where the scores of one verification test lie, and what was tested."""

    path: Path
    data_set: str
    training: Speech
    enrolment: Speech
    speech: Speech


@dataclass(frozen=True, slots=True)
class SystemResults:
    """Everything that was read of one system.

    Attributes:
        system: from the names of the files; the name of the folder where these say nothing.
        edition: such as ``2022``.
        files: the result files that were read.
        claims: every number once, the first place where it stands.
        scores: the score files of a 2022 submission.
        problems: of all files, and where they contradict each other.
    """

    system: str
    edition: str
    files: tuple[ResultFile | RankFile, ...]
    claims: tuple[Claim, ...]
    scores: tuple[ScoreFile, ...]
    problems: tuple[Problem, ...]

    def claim(self, identity: ClaimIdentity) -> Claim | None:
        """The claim of one number, or None."""
        return next((one for one in self.claims if one.identity == identity), None)


def read_results(path: Path, *, edition: str | None = None) -> tuple[SystemResults, ...]:
    """Read a result file, a results directory, the folder of a submission, or a folder of published files.

    Args:
        path: of any of these.
        edition: whose recipe the files are held against; without one, each file tells.

    Faults besides those of the files: ``contradicting-results`` (one number, two values), ``missing-directory``
    (``.orig`` or its partner), ``missing-file``, ``unexpected-name``, ``unexpected-summary`` (a note: no official
    script writes a summary into ``.orig``), ``wrong-score-count``, and ``no-results`` for a folder
    without a result file.

    Raises:
        RecipeError: no such edition, or one that has no files of this kind.
    """
    recipe = load_recipe(edition) if edition else None
    if path.is_file():
        return (_system(path.name, [_read_file(path, path.name, recipe)], [], [], []),)
    if _is_results_directory(path):
        stamp = path.name.removesuffix(".orig")
        both = (path.parent / stamp, path.parent / f"{stamp}.orig")
        return (_read_submission(path.parent, [one for one in both if one.is_dir()], recipe),)
    folders = (
        [one for one in sorted(path.iterdir()) if one.is_dir() and _is_results_directory(one)] if path.is_dir() else []
    )
    if folders:
        by_stamp: dict[str, list[Path]] = {}
        for folder in folders:
            by_stamp.setdefault(folder.name.removesuffix(".orig"), []).append(folder)
        return tuple(_read_submission(path, group, recipe) for group in by_stamp.values())
    return _read_published(path, recipe)


def track_average(
    claims: Iterable[Claim], recipe: Recipe, metric: str, split: str, *, track: str | None = None,
    attack_model: AttackModel = AttackModel.SEMI_INFORMED,
) -> WeightedAverage:  # fmt: skip
    """The weighted average that an edition ranks by, from claims: anonymised speech, EER of one attack model.

    WERs are those of the recognizer retrained on anonymised speech in 2022 and of the original one in 2024 and 2026.

    Raises:
        AverageError: data sets that are missing or given more than once.
        RecipeError: the track has no average of the metric.
    """
    chosen = recipe.tracks[track] if track else recipe.track
    average = chosen.average(metric)
    weights = average.weights[split]
    recognizer = Speech.ANONYMISED if recipe.results else Speech.ORIGINAL

    def belongs(identity: ClaimIdentity) -> bool:
        if (identity.metric, identity.estimator) != (metric, average.estimator) or identity.data_set not in weights:
            return False
        if metric == "eer":
            return identity.attack_model is attack_model
        return identity.speech is Speech.ANONYMISED and (metric != "wer" or identity.training is recognizer)

    return weighted_average([(c.identity.data_set, c.value) for c in claims if belongs(c.identity)], weights)


def _is_results_directory(path: Path) -> bool:
    if not path.is_dir():
        return False
    return (path / "results.txt").is_file() or any(path.glob("ASV-*")) or any(path.glob("ASR-*"))


def _read_file(path: Path, name: str, recipe: Recipe | None) -> ResultFile | RankFile:
    if not path.name.startswith("result_for_rank"):
        return read_result_file(path, recipe=recipe, name=name)
    if recipe and recipe.results:
        raise RecipeError(f"{name}: {recipe.title} has no such result file. Name 2024 or 2026 as edition.")
    return read_rank_file(path, recipe=recipe, name=name)


def _read_published(path: Path, recipe: Recipe | None) -> tuple[SystemResults, ...]:
    systems: dict[str, list[ResultFile | RankFile]] = {}
    names = sorted(path.rglob("*")) if path.is_dir() else []
    for file in names:
        if file.is_file() and (found := _PUBLISHED.match(file.name)):
            name = file.relative_to(path).as_posix()
            key = f"{name.rpartition('/')[0]}/{found['system']}".lstrip("/")
            systems.setdefault(key, []).append(_read_file(file, name, recipe))
    if not systems:
        remedy = "Name a results directory, a submission, or a folder of published result files."
        problem = Problem("no-results", path.name, "result files", "none", remedy)
        return (SystemResults(path.name, "", (), (), (), (problem,)),)
    return tuple(_system(name, files, [], [], []) for name, files in systems.items())


def _read_submission(root: Path, folders: Sequence[Path], recipe: Recipe | None) -> SystemResults:
    problems: list[Problem] = []
    files: list[ResultFile | RankFile] = []
    claims: list[Claim] = []
    scores: list[ScoreFile] = []
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
    for folder in folders:
        kind = ResultKind.ORIGINAL
        if recipe.edition == "2022" and not folder.name.endswith(".orig"):
            kind = ResultKind.RETRAINED
        _read_parts(root, folder, recipe, kind, claims, scores, problems)
    if recipe.edition == "2022":
        problems += _partners(folders)
    return _system(folders[0].name.removesuffix(".orig"), files, claims, scores, problems)


def _partners(folders: Sequence[Path]) -> Iterator[Problem]:
    names = {folder.name for folder in folders}
    stamp = folders[0].name.removesuffix(".orig")
    for wanted in (stamp, f"{stamp}.orig"):
        if wanted not in names:
            remedy = "Hand in both results directories: of the retrained and of the original models."
            yield Problem("missing-directory", wanted, f"the directory “{wanted}”", "none", remedy)


def _read_parts(
    root: Path, folder: Path, recipe: Recipe, kind: ResultKind,
    claims: list[Claim], scores: list[ScoreFile], problems: list[Problem],
) -> None:  # fmt: skip
    """The single files of a results directory, each beside ``results.txt``."""
    lines: dict[str, list[ExpectedLine]] = {}
    for line in expected_lines(recipe, kind):
        lines.setdefault(line.name, []).append(line)
    report = ProblemList()
    wanted_files = ["results.txt"] if recipe.edition == "2020" else ["config.info", "results.txt"]
    for name in [*wanted_files, *(["results_summary.txt"] if kind is ResultKind.RETRAINED else [])]:
        if not (folder / name).is_file():
            report.add(_no_file(root, folder / name))
    for name, expected in lines.items():
        if name.startswith("ASV-"):
            for file, kinds in _DETECTION_FILES.items():
                wanted = [line for line in expected if line.kind in kinds]
                if wanted:
                    claims += _read_part(root, folder / name / file, name, wanted, report)
            _score_file(root, folder / name / "scores", recipe, expected[0], scores, report)
        elif name.startswith("ASR-"):
            claims += _read_part(root, folder / name, name, expected, report)
        else:
            for file, wanted_kind in _DISTINCTIVENESS_FILES.items():
                wanted = [line for line in expected if line.kind == wanted_kind]
                claims += _read_part(root, folder / SIMILARITY_FOLDER / name / file, name, wanted, report)
    problems += report.report()


def _read_part(
    root: Path, path: Path, name: str, expected: Sequence[ExpectedLine], report: ProblemList
) -> Iterator[Claim]:
    if not path.is_file():
        report.add(_no_file(root, path))
        return
    shown = path.relative_to(root).as_posix()
    text, faults = read_text_file(path, shown)
    report.keep(faults)
    slots = {line.slot: line for line in expected}
    label_left = path.name == "zebra"  # one line of this file is a label
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or (path.name == "EER" and _MIN_DCF.match(stripped)):
            continue
        entry: Entry | None = parse_value(stripped, number, name, inline=False)
        if entry and entry.slot in slots:
            yield from entry_claims(entry, slots.pop(entry.slot), shown)
        elif label_left and entry is None:
            label_left = False
        else:
            remedy = "Restore the file as the official script wrote it."
            report.add(Problem("unknown-line", shown, "a result of this file", f"“{stripped}”", remedy, line=number))
    for slot in slots:
        remedy = "Run that part of the evaluation."
        report.add(Problem("missing-result", shown, " ".join(slot).strip(), "nothing", remedy))


def _score_file(
    root: Path, path: Path, recipe: Recipe, line: ExpectedLine, scores: list[ScoreFile], report: ProblemList
) -> None:
    identity = line.identities[0]
    if not path.is_file():
        report.add(_no_file(root, path))
        return
    assert identity.training is not None  # noqa: S101
    assert identity.enrolment is not None  # noqa: S101
    scores.append(ScoreFile(path, identity.data_set, identity.training, identity.enrolment, identity.speech))
    wanted, found = recipe.data_sets[identity.data_set].trials, path.read_bytes().count(b"\n")
    if wanted is not None and found != wanted:
        remedy = "Kaldi drops a trial silently where a speaker vector is missing: score all of them."
        shown = path.relative_to(root).as_posix()
        report.add(Problem("wrong-score-count", shown, f"{wanted} lines", f"{found}", remedy))


def _no_file(root: Path, path: Path) -> Problem:
    shown = path.relative_to(root).as_posix()
    return Problem("missing-file", shown, "the file", "none", "Hand in the whole results directory.")


def _system(
    name: str, files: Sequence[ResultFile | RankFile], parts: Sequence[Claim], scores: Sequence[ScoreFile],
    problems: Sequence[Problem],
) -> SystemResults:  # fmt: skip
    claims: dict[ClaimIdentity, Claim] = {}
    report = ProblemList()
    for problem in (problem for file in files for problem in file.problems):
        report.add(problem)
    report.keep(problems)
    for claim in (*(claim for file in files for claim in file.claims), *parts):
        known = claims.setdefault(claim.identity, claim)
        if known.value != claim.value or known.counts != claim.counts:
            report.add(_contradiction(known, claim))
    edition = files[0].edition if files else "2022"
    return SystemResults(name, edition, tuple(files), tuple(claims.values()), tuple(scores), report.report())


def _contradiction(known: Claim, claim: Claim) -> Problem:
    counts: Callable[[Claim], str] = lambda one: f" ({one.counts.errors} errors)" if one.counts else ""  # noqa: E731
    identity = claim.identity
    expected = f"{known.written}{counts(known)} as in {known.file}, line {known.line}, for {identity.metric}"
    remedy = "Hand in the files of one run."
    found = f"“{claim.written}”{counts(claim)}"
    return Problem(
        "contradicting-results", claim.file, f"{expected} of {identity.data_set}", found, remedy, line=claim.line
    )
