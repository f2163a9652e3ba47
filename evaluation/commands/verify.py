"""``verify``: a result held against its edition: every number, every fault, averages recomputed, conditions met."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from evaluation.commands.inputs import add_recipe_argument, recipe_at, recipe_of, results_at
from evaluation.commands.recompute import Recomputation, recompute
from evaluation.commands.tables import attack, claim_row, column, say_claims, test_of, written
from evaluation.commands.terminal import (
    FINE,
    NONE,
    heading,
    problem_lines,
    problem_rows,
    say,
    say_json,
    say_table,
)
from evaluation.formats.claims import AttackModel, Claim, ClaimIdentity, Speech
from evaluation.formats.problems import Severity
from evaluation.formats.recomputation import RecomputedNumber
from evaluation.formats.result_file import is_member
from evaluation.formats.result_lines import AVERAGE_DECIMALS
from evaluation.formats.results import SystemResults, track_average
from evaluation.metrics.averages import AverageError, Condition, GateResult, Policy, conditions, gate, weighted_average
from evaluation.metrics.catalogue import find_metric
from evaluation.metrics.errors import MetricInputError
from evaluation.protocols.recipes import Average, Gate, Recipe, Track, shipped_editions

DESCRIPTION = (
    "Check the results of a challenge: a result file, a results directory, a submission, a folder of published files, "
    "or FOLDER/SYSTEM for one of these. Every number, every fault by kind, averages recomputed, conditions met; with "
    "--data also every EER, C_llr, linkability and ZEBRA value from the score files of a submission."
)


@dataclass(frozen=True, slots=True)
class RecomputedAverage:
    """An average as claimed and as it follows from the numbers of its data sets; None where there is none."""

    track: str
    metric: str
    estimator: str
    split: str
    speech: str
    claimed: float | None
    written: str
    recomputed: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Standing:
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("results", type=Path, metavar="RESULTS", help="file, directory, submission, or FOLDER/SYSTEM")
    against = parser.add_mutually_exclusive_group()
    against.add_argument(
        "--edition", choices=shipped_editions(), help="whose recipe to hold it against (default: by the files)"
    )
    add_recipe_argument(against)
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="recompute from the score files with the trials of these data directories",
    )
    parser.add_argument("--brief", action="store_true", help="without the tables of all numbers")


def run(options: argparse.Namespace) -> int:
    """Report on every system; the exit code."""
    own = recipe_at(options.recipe)
    found = results_at(options.results, options.edition, own)
    recomputed = [recompute(system, options.data, own) for system in found] if options.data else [None] * len(found)
    systems = [_with_problems(*each) for each in zip(found, recomputed, strict=True)]
    if options.json:
        say_json({"systems": [_content(*each, own) for each in zip(systems, recomputed, strict=True)]})
    else:
        for number, each in enumerate(zip(systems, recomputed, strict=True)):
            if number:
                say("\n")
            _say_system(*each, own, brief=options.brief)
    faults = any(problem.severity is Severity.ERROR for system in systems for problem in system.problems)
    undecided = any(average.reason for system in systems for average in averages_of(system, own))
    return FINE + int(faults or undecided)


def averages_of(system: SystemResults, own: Recipe | None = None) -> tuple[RecomputedAverage, ...]:
    """Each average of the tracks that the system has numbers of; those of original speech where it claims them.

    Args:
        own: the recipe that the results were held against, where it is not that of their edition.
    """
    recipe = recipe_of(system, own)
    found: list[RecomputedAverage] = []
    for track in _tracks(system, recipe):
        for average in track.averages:
            found += _originals(system.claims, track, average)
            found += [_recomputed(system.claims, recipe, track, average, split) for split in average.weights]
    return tuple(found)


def standing_of(system: SystemResults, own: Recipe | None = None) -> tuple[Standing, ...]:
    """Conditions and gates of each ranked track, from recomputed averages; `own` as in `averages_of`."""
    recipe = recipe_of(system, own)
    return tuple(_standing(system, recipe, track) for track in _tracks(system, recipe) if track.ranking)


def _with_problems(system: SystemResults, recomputed: Recomputation | None) -> SystemResults:
    return system if recomputed is None else replace(system, problems=(*system.problems, *recomputed.problems))


def _tracks(system: SystemResults, recipe: Recipe) -> list[Track]:
    named = {claim.identity.data_set for claim in system.claims}
    return [
        track
        for track in recipe.tracks.values()
        if any(name in named for average in track.averages for split in average.weights.values() for name in split)
    ]


def _recomputed(
    claims: Sequence[Claim], recipe: Recipe, track: Track, average: Average, split: str
) -> RecomputedAverage:  # fmt: skip
    claim = next((one for one in claims if _is_claimed(one.identity, average, split)), None)
    claimed, written = (claim.value, claim.written) if claim else (None, "")
    try:
        value, reason = track_average(claims, recipe, average.metric, split, track=track.name).value, ""
    except AverageError as error:
        value, reason = None, str(error)
    test = track.name, average.metric, average.estimator, split, str(Speech.ANONYMISED)
    return RecomputedAverage(*test, claimed, written, value, reason)


def _originals(claims: Sequence[Claim], track: Track, average: Average) -> Iterator[RecomputedAverage]:
    """The claimed averages of original speech and the evaluator trained on it."""
    for split, weights in average.weights.items():
        for claim in claims:
            identity = claim.identity
            if (identity.data_set, identity.metric) != (f"average_{split}", average.metric):
                continue
            if not identity.training is identity.speech is Speech.ORIGINAL:
                continue
            members = [one for one in claims if one.identity.data_set in weights and is_member(one.identity, identity)]
            try:
                value, reason = weighted_average([(m.identity.data_set, m.value) for m in members], weights).value, ""
            except AverageError as error:
                value, reason = None, str(error)
            test = track.name, average.metric, average.estimator, split, str(identity.speech)
            yield RecomputedAverage(*test, claim.value, claim.written, value, reason)


def _is_claimed(identity: ClaimIdentity, average: Average, split: str) -> bool:
    if identity.data_set != f"average_{split}" or identity.metric != average.metric:
        return False
    if average.metric == "eer":
        return identity.attack_model is AttackModel.SEMI_INFORMED
    return average.metric != "wer" or identity.training == identity.speech == "anonymised"


def _standing(system: SystemResults, recipe: Recipe, track: Track) -> Standing:
    ranking = track.ranking
    assert ranking is not None  # noqa: S101
    met: tuple[Condition, ...] = ()
    gates: list[GateResult] = []
    notes = [] if ranking.minimum_eers else ["The minimum EERs are set by the organizer."]
    model = AttackModel(ranking.attack_model)
    try:
        privacy = ranking.privacy.metric
        average = track_average(
            system.claims, recipe, privacy, ranking.split, track=track.name, attack_model=model
        ).value
        policy: Policy = "interval" if ranking.policy == "interval" else "cumulative"
        met = conditions(
            average, ranking.minimum_eers, policy=policy, inclusive=ranking.inclusive, note_within=ranking.note_within
        )
        for one in ranking.gates:
            gates += _gate(system.claims, one)
    except MetricInputError as error:
        notes.append(f"Not decided: {error}")
    return Standing(track.name, ranking.attack_model, met, tuple(gates), " ".join(notes))


def _gate(claims: Sequence[Claim], one: Gate) -> tuple[GateResult, ...]:
    wanted = one.metric, one.estimator
    values = {
        claim.identity.data_set: claim.value
        for claim in claims
        if (claim.identity.metric, claim.identity.estimator) == wanted
    }
    return gate(values, one.groups, one.minimum, inclusive=one.inclusive)


def _say_system(system: SystemResults, recomputed: Recomputation | None, own: Recipe | None, *, brief: bool) -> None:
    recipe = recipe_of(system, own)
    files = ", ".join(f"{file.name}" for file in system.files)
    say(f"{system.system}: {recipe.title}, {len(system.claims)} numbers")
    say(f"Read: {files or 'single files of the results directory'}")
    if not brief:
        say_claims(system.claims)
    if recomputed is not None:
        _say_recomputed(recomputed, brief=brief)
    say("\nAverages\n")
    averages = averages_of(system, own)
    if averages:
        header = ["track", "split", "speech", "metric", "claimed", "recomputed"]
        say_table(header, [_average_row(one) for one in averages], indent="  ")
    else:
        say("  none in this edition")
    for reason in dict.fromkeys(one.reason for one in averages if one.reason):
        say(f"  {reason}")
    for standing in standing_of(system, own):
        _say_standing(standing, several=len(recipe.tracks) > 1)
    say("\nProblems\n")
    lines = list(problem_lines(system.problems)) or ["none"]
    for line in lines:
        say(f"  {line}")


def _say_recomputed(recomputed: Recomputation, *, brief: bool) -> None:
    """Claimed and recomputed side by side: all numbers, or in brief those that differ; alike in two places is once."""
    say("\nFrom the score files\n")
    same = sum(one.agrees for one in recomputed.numbers)
    say(f"  {len(recomputed.files)} score files; {same} of {len(recomputed.numbers)} claimed numbers agree.")
    rows = dict.fromkeys(_recomputed_row(one) for one in recomputed.numbers if not (brief and one.agrees))
    if rows:
        say()
        say_table(["data set", "test", "metric", "claimed", "recomputed", ""], list(rows), indent="  ")


def _recomputed_row(one: RecomputedNumber) -> tuple[str, ...]:
    identity = one.claim.identity
    values = written(one.claim), one.written, "" if one.agrees else "differs"
    return identity.data_set, attack(test_of(identity)), column(identity), *values


def _average_row(one: RecomputedAverage) -> list[str]:
    metric = find_metric(one.metric, one.estimator)
    value = NONE if one.recomputed is None else f"{one.recomputed:.{max(metric.decimals, AVERAGE_DECIMALS)}f}"
    return [one.track, one.split, one.speech, heading(metric), one.written or NONE, value]


def _say_standing(standing: Standing, *, several: bool) -> None:
    where = f" of {standing.track}" if several else ""
    say(f"\nConditions{where} ({standing.attack_model} attacker)\n")
    for one in standing.conditions:
        span = f"EER from {one.minimum:g} %" + (f" to below {one.upper:g} %" if one.upper is not None else "")
        note = "; close to the limit" if one.near_limit else ""
        say(f"  {span}: {'met' if one.met else 'not met'}{note}")
    for result in standing.gates:
        verdict = "passed" if result.passed else "not passed"
        say(f"  {' and '.join(result.group)}: {result.value:.4f} against {result.minimum:g}, {verdict}")
    if standing.note:
        say(f"  {standing.note}")


def _content(system: SystemResults, recomputed: Recomputation | None, own: Recipe | None) -> dict[str, object]:
    content: dict[str, object] = {
        "system": system.system,
        "edition": system.edition,
        "files": [file.name for file in system.files],
        "claims": [claim_row(claim) for claim in system.claims],
        "averages": [asdict(one) for one in averages_of(system, own)],
        "standing": [asdict(one) for one in standing_of(system, own)],
        "problems": problem_rows(system.problems),
    }
    if recomputed is not None:
        content["scores"] = list(recomputed.files)
        content["recomputed"] = [_recomputed_content(one) for one in recomputed.numbers]
    return content


def _recomputed_content(one: RecomputedNumber) -> dict[str, object]:
    found = {"scores": one.scores, "recomputed": one.value, "recomputed_written": one.written, "agrees": one.agrees}
    return claim_row(one.claim) | found
