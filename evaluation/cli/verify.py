"""``vp verify-results``: a result held against its edition: every number and problem, averages, conditions met.

With the trials of Kaldi data directories, reported numbers are listed next to those that follow from the score files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from common import terminal
from common.errors import CommandError, InputError
from common.parameters import AsJson, require_one
from common.problems import Problem, ProblemList, Severity, has_errors
from evaluation.cli import tables
from evaluation.formats.equal_scores import FEW_EER_TRIALS, note_few_trials
from evaluation.formats.results import AVERAGE_DECIMALS, AttackModel, NumberIdentity, ReportedNumber, Speech
from evaluation.formats.scores import TrialTable, read_trial_table
from evaluation.metrics.averages import WeightedAverage, weighted_average
from evaluation.metrics.catalogue import find_metric, format_heading
from evaluation.objective_results.recomputation import RecomputedNumber, measure_tests, unlike
from evaluation.objective_results.results.expected import is_member
from evaluation.objective_results.results.folders import SystemResults, track_average
from evaluation.protocols.ranking.policy import Policy
from evaluation.protocols.ranking.ranking import Condition, GateResult, check_gate, conditions
from evaluation.protocols.recipes import Average, DataSet, Gate, Ranking, Recipe, Track, shipped_editions


@dataclass(frozen=True, slots=True)
class RecomputedAverage:
    """An average as reported and as it follows from the numbers of its data sets; None where there is none."""

    track: str
    metric: str
    estimator: str
    split: str
    speech: str
    reported: float | None
    written: str
    recomputed: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class SystemStanding:
    """What a system may compete in.

    Attributes:
        attack_model: whose average EER counts.
        conditions: empty where the edition has none or the average is not defined.
        gates: minima on other metrics, by group of data sets.
        note: why something is not decided.
    """

    track: str
    attack_model: str
    conditions: tuple[Condition, ...]
    gates: tuple[GateResult, ...]
    note: str


def verify_results(
    results: Annotated[Path, Argument(metavar="RESULTS", help="File, directory, submission, or FOLDER/SYSTEM.")],
    edition: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help=f"Edition whose recipe to check against: {', '.join(shipped_editions())}; by default from the files.",
        ),
    ] = None,
    recipe: tables.RecipeFile = None,
    data: Annotated[
        Path | None,
        Option(metavar="DIR", help="Recompute from the score files with the trials of these data directories."),
    ] = None,
    brief: Annotated[bool, Option("--brief", help="Leave out the tables of all numbers.")] = False,
    as_json: AsJson = False,
) -> int:
    """Check the results of a challenge: every number, problem by kind, recomputed average and condition met.

    RESULTS is a result file, a results directory, a submission, a folder of published files, or FOLDER/SYSTEM for one
    of these. With --data, EER, C_llr, linkability and ZEBRA are also recomputed from the score files of a submission.
    To check a whole archive for an edition of a portal, use vp verify.

        vp verify-results results
        vp verify-results results --recipe autumn.toml --brief
    """
    require_one({"--edition": edition, "--recipe": recipe}, is_required=False)
    if edition not in (None, *shipped_editions()):
        raise CommandError(f"--edition: expected one of {', '.join(shipped_editions())}, found “{edition}”.")
    own = tables.recipe_at(recipe)
    systems = tables.results_at(results, edition, own)
    reports = [_verify(system, tables.recipe_of(system, own), data) for system in systems]
    if as_json:
        terminal.print_json({"systems": [_content(one) for one in reports]})
    else:
        for number, one in enumerate(reports):
            if number:
                terminal.print_text("\n")
            _print_report(one, brief=brief)
    faulty = any(has_errors(one.system.problems) or any(each.reason for each in one.averages) for one in reports)
    return terminal.PROBLEMS if faulty else terminal.FINE


@dataclass(frozen=True, slots=True)
class _Recomputation:
    """What the score files of a submission say.

    Attributes:
        files: score files that were measured.
        numbers: every reported number of them, in every place where it stands.
        faulty: score files with errors, of which no number is given: that of what is left would be another test's.
    """

    files: tuple[str, ...]
    numbers: tuple[RecomputedNumber, ...]
    faulty: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Report:
    """A system held against its recipe.

    Attributes:
        averages: of the tracks that the system has numbers of; those of original speech where it reports them.
        standing: of each ranked track, from recomputed averages.
    """

    system: SystemResults
    recipe: Recipe
    recomputed: _Recomputation | None
    averages: tuple[RecomputedAverage, ...]
    standing: tuple[SystemStanding, ...]


def _verify(system: SystemResults, recipe: Recipe, data: Path | None) -> _Report:
    """Hold a system against its recipe, and with the folder of trials each score file against the trials.

    Raises:
        CommandError: `data` is no folder.
    """
    recomputed = None
    if data is not None:
        recomputed, problems = _recompute(system, recipe, data)
        system = replace(system, problems=(*system.problems, *problems))
    named = {reported.identity.data_set for reported in system.reported_numbers}
    tracks = [
        track
        for track in recipe.tracks.values()
        if any(name in named for average in track.averages for split in average.weights.values() for name in split)
    ]
    averages: list[RecomputedAverage] = []
    numbers = system.reported_numbers
    for track in tracks:
        for average in track.averages:
            averages += _originals(numbers, track, average)
            averages += [_recomputed(numbers, recipe, track, average, split) for split in average.weights]
    standing = (_standing(system, recipe, track, track.ranking) for track in tracks if track.ranking)
    return _Report(system, recipe, recomputed, tuple(averages), tuple(standing))


def _recompute(system: SystemResults, recipe: Recipe, data: Path) -> tuple[_Recomputation, tuple[Problem, ...]]:
    """Measure every score file as `measure_tests` does.

    Told besides: ``unlike-scores`` in every place that does not agree, and ``few-trials``.
    """
    if not data.is_dir():
        raise CommandError(f"--data {data}: expected the folder of the Kaldi data directories, found none.")

    def trials(one: DataSet) -> TrialTable:
        path = data / one.name / "trials"
        return read_trial_table(path, str(path))

    problems = ProblemList()
    files = terminal.track_progress(system.scores, len(system.scores), "score files")
    tests = list(measure_tests(system, recipe.data_sets, trials, problems, files))
    whole = [test for test in tests if test.joined.complete]
    for test in whole:
        if few := note_few_trials(test.joined.target_scores.size, test.joined.nontarget_scores.size):
            expected, remedy = f"{FEW_EER_TRIALS} target and as many nontarget trials or more", "Rely on no EER of it."
            problems.add(Problem("few-trials", test.file.name, expected, few, remedy, Severity.WARNING))
    numbers = tuple(number for test in whole for number in test.numbers)
    problems.keep(unlike(one, "unlike-scores") for one in numbers if not one.agrees)
    faulty = tuple(test.file.name for test in tests if not test.joined.complete)
    return _Recomputation(tuple(test.file.name for test in whole), numbers, faulty), problems.report()


def _value_or_reason(find: Callable[[], WeightedAverage]) -> tuple[float | None, str]:
    try:
        return find().value, ""
    except InputError as error:
        return None, str(error)


def _recomputed(
    reported_numbers: Sequence[ReportedNumber], recipe: Recipe, track: Track, average: Average, split: str
) -> RecomputedAverage:
    found = next((one for one in reported_numbers if _is_reported(one.identity, average, split)), None)
    reported, written = (found.value, found.written) if found else (None, "")
    find = partial(track_average, reported_numbers, recipe, average.metric, split, track=track.name)
    recomputed, reason = _value_or_reason(find)
    test = track.name, average.metric, average.estimator, split, str(Speech.ANONYMISED)
    return RecomputedAverage(*test, reported, written, recomputed, reason)


def _originals(
    reported_numbers: Sequence[ReportedNumber], track: Track, average: Average
) -> Iterator[RecomputedAverage]:
    """Yield the reported averages of original speech and the evaluator trained on it."""
    for split, weights in average.weights.items():
        for reported in reported_numbers:
            identity = reported.identity
            is_average = (identity.data_set, identity.metric) == (f"average_{split}", average.metric)
            if not is_average or not identity.training is identity.speech is Speech.ORIGINAL:
                continue
            members = [
                (one.identity.data_set, one.value)
                for one in reported_numbers
                if one.identity.data_set in weights and is_member(one.identity, identity)
            ]
            found = _value_or_reason(partial(weighted_average, members, weights))
            test = track.name, average.metric, average.estimator, split, str(identity.speech)
            yield RecomputedAverage(*test, reported.value, reported.written, *found)


def _is_reported(identity: NumberIdentity, average: Average, split: str) -> bool:
    if identity.data_set != f"average_{split}" or identity.metric != average.metric:
        return False
    if average.metric == "eer":
        return identity.attack_model is AttackModel.SEMI_INFORMED
    return average.metric != "wer" or identity.training == identity.speech == "anonymised"


def _standing(system: SystemResults, recipe: Recipe, track: Track, ranking: Ranking) -> SystemStanding:
    met: tuple[Condition, ...] = ()
    gates: list[GateResult] = []
    notes = [] if ranking.minimum_eers else ["The minimum EERs are set by the organizer."]
    where: dict[str, Any] = {"track": track.name, "attack_model": AttackModel(ranking.attack_model)}
    limits: dict[str, Any] = {"inclusive": ranking.inclusive, "note_within": ranking.note_within}
    try:
        average = track_average(system.reported_numbers, recipe, ranking.privacy.metric, ranking.split, **where).value
        policy: Policy = "interval" if ranking.policy == "interval" else "cumulative"
        met = conditions(average, ranking.minimum_eers, policy=policy, **limits)
        for one in ranking.gates:
            gates += _gate(system.reported_numbers, one)
    except InputError as error:
        notes.append(f"Not decided: {error}")
    return SystemStanding(track.name, ranking.attack_model, met, tuple(gates), " ".join(notes))


def _gate(reported_numbers: Sequence[ReportedNumber], one: Gate) -> tuple[GateResult, ...]:
    wanted = one.metric, one.estimator
    values = {
        reported.identity.data_set: reported.value
        for reported in reported_numbers
        if (reported.identity.metric, reported.identity.estimator) == wanted
    }
    return check_gate(values, one.groups, one.minimum, inclusive=one.inclusive)


def _print_report(report: _Report, *, brief: bool) -> None:
    system = report.system
    files = ", ".join(file.name for file in system.files)
    terminal.print_text(f"{system.system}: {report.recipe.title}, {len(system.reported_numbers)} numbers")
    terminal.print_text(f"Read: {files or 'single files of the results directory'}")
    if not brief:
        tables.print_reported(system.reported_numbers)
    if report.recomputed is not None:
        _print_recomputed(report.recomputed, brief=brief)
    terminal.print_text("\nAverages\n")
    if report.averages:
        header = ["track", "split", "speech", "metric", "reported", "recomputed"]
        terminal.print_table(header, [_average_row(one) for one in report.averages], indent="  ")
    else:
        terminal.print_text("  none in this edition")
    for standing in report.standing:
        _print_standing(standing, several=len(report.recipe.tracks) > 1)
    terminal.print_text("\nProblems\n")
    reasons = list(dict.fromkeys(one.reason for one in report.averages if one.reason))
    for line in [*terminal.format_problems(system.problems), *reasons] or ["none"]:
        terminal.print_text(f"  {line}")


def _print_recomputed(recomputed: _Recomputation, *, brief: bool) -> None:
    """Reported and recomputed side by side: all numbers, or in brief those that differ; alike in two places is once."""
    terminal.print_text("\nFrom the score files\n")
    same = sum(one.agrees for one in recomputed.numbers)
    terminal.print_text(
        f"  {len(recomputed.files)} score files; {same} of {len(recomputed.numbers)} reported numbers agree."
    )
    for name in recomputed.faulty:
        terminal.print_text(f"  {name}: no numbers, because its scores have errors.")
    rows = dict.fromkeys(_recomputed_row(one) for one in recomputed.numbers if not (brief and one.agrees))
    if rows:
        terminal.print_text()
        terminal.print_table(["data set", "test", "metric", "reported", "recomputed", ""], list(rows), indent="  ")


def _recomputed_row(one: RecomputedNumber) -> tuple[str, ...]:
    identity = one.reported.identity
    values = tables.written(one.reported), one.written, "" if one.agrees else "differs"
    return identity.data_set, tables.attack(identity), tables.column(identity), *values


def _average_row(one: RecomputedAverage) -> list[str]:
    metric = find_metric(one.metric, one.estimator)
    value = terminal.NONE if one.recomputed is None else f"{one.recomputed:.{max(metric.decimals, AVERAGE_DECIMALS)}f}"
    return [one.track, one.split, one.speech, format_heading(metric), one.written or terminal.NONE, value]


def _print_standing(standing: SystemStanding, *, several: bool) -> None:
    where = f" of {standing.track}" if several else ""
    terminal.print_text(f"\nConditions{where} ({standing.attack_model} attacker)\n")
    for one in standing.conditions:
        span = f"EER from {one.minimum:g} %" + (f" to below {one.upper:g} %" if one.upper is not None else "")
        note = "; close to the limit" if one.near_limit else ""
        terminal.print_text(f"  {span}: {'met' if one.met else 'not met'}{note}")
    for result in standing.gates:
        verdict = "passed" if result.passed else "not passed"
        terminal.print_text(f"  {' and '.join(result.group)}: {result.value:.4f} against {result.minimum:g}, {verdict}")
    if standing.note:
        terminal.print_text(f"  {standing.note}")


def _content(report: _Report) -> dict[str, object]:
    system = report.system
    content: dict[str, object] = {
        "system": system.system,
        "edition": system.edition,
        "files": [file.name for file in system.files],
        "reported_numbers": [tables.reported_row(reported) for reported in system.reported_numbers],
        "averages": [asdict(one) for one in report.averages],
        "standing": [asdict(one) for one in report.standing],
        "problems": terminal.problem_rows(system.problems),
    }
    if report.recomputed is not None:
        content["scores"] = list(report.recomputed.files)
        content["without_numbers"] = list(report.recomputed.faulty)
        content["recomputed"] = [_recomputed_content(one) for one in report.recomputed.numbers]
    return content


def _recomputed_content(one: RecomputedNumber) -> dict[str, object]:
    found = {"scores": one.scores, "recomputed": one.value, "recomputed_written": one.written, "agrees": one.agrees}
    return tables.reported_row(one.reported) | found
