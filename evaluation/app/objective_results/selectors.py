"""Reads the objective numbers of submissions for pages and API: of each its newest finished run, nothing else.

Two queries whatever the number of submissions, three for all numbers. What a run could not compute, and why, stands in
its job's result.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import numpy as np
from django.core.files.storage import default_storage
from django.db.models import Q

from evaluation.app.models import EvaluationRun, ScoreSet
from evaluation.app.runs.kinds import ATTACK, OBJECTIVE, RETRAINED, by_engines, describe_engine
from evaluation.app.runs.selectors import list_finished, pick_newest_finished, read_numbers, select_finished
from evaluation.figures.exposure import ExposedTest
from evaluation.figures.style import ImageFormat, Theme
from evaluation.formats.results import AttackModel, NumberIdentity, Speech
from evaluation.metrics.calibration import compute_rocch_eer, pool_adjacent_violators, sort_scores
from evaluation.metrics.detection import (
    DetCurve,
    DetectionMetrics,
    compute_kaldi_eer,
    compute_speechbrain_eer,
    det_curve,
    detection_metrics,
    trace_det_curve,
)
from evaluation.objective_results.attack_strength import AttackStrength, Reliability, judge_attack
from evaluation.objective_results.track_averages import PHONES, average_rows, estimator_of, list_averages
from evaluation.objective_results.values import (
    ATTACKS,
    AVERAGE,
    MissingNumber,
    Number,
    ObjectiveValues,
    add_notes,
    list_averaged_sets,
    number_words,
    read_missing,
    required_numbers,
    select_complete,
)
from evaluation.protocols.ranking.entries import MeasuredValue
from portal.challenges.models import Edition
from portal.challenges.selectors import recipe_hash
from portal.jobs.models import Job, JobState
from portal.submissions.models import Submission

ORIGINALS = "originals"  # the kind of jobs that evaluate original speech
NOT_EVALUATED = "the submission has not been evaluated yet"
WITHDRAWN = "the submission was withdrawn before it was evaluated"
EVALUATED_AGAIN = "the recipe was changed, and the submission has not been evaluated again yet"


class ReadExtent(StrEnum):
    """How much of a submission's numbers to read."""

    RANKED = "ranked"  # averages, the sets whose attacks they rest on, and the data sets of gates and of languages
    SHOWN = "shown"  # the same, and the averages of retrained recognisers
    ALL = "all"


def read_objective_values(
    submissions: Iterable[Submission],
    *,
    extent: ReadExtent = ReadExtent.ALL,
    as_of: datetime | None = None,
    runs_at_hand: Iterable[EvaluationRun] | None = None,
) -> dict[int, ObjectiveValues]:
    """Return the numbers of every submission by primary key, with the verdicts on the portal's own attacks behind them.

    Numbers that rest on a part of their set are left out (`select_complete`). All are by the recipe that the edition
    at hand has; a submission that was not evaluated by it has none.

    Args:
        submissions: each with its system and edition at hand (`select_related("system__edition")`).
        extent: what a leaderboard ranks by, what it shows, or everything.
        as_of: what had been computed by then; None for now.
        runs_at_hand: every run of these submissions, the newest first, where they were read already.
    """
    given = {one.pk: one for one in submissions}
    editions = {one.system.edition_id: one.system.edition for one in given.values() if one.system.edition}
    kinds = (OBJECTIVE, ATTACK, *([RETRAINED] if extent is ReadExtent.SHOWN else []))
    at_hand = list_finished(given.values(), *kinds) if runs_at_hand is None else list(runs_at_hand)
    runs = _find_runs(given.values(), select_finished(OBJECTIVE, at_hand), as_of)
    attacks = [one for one in pick_newest_finished(ATTACK, at_hand, as_of) if one.submission_id in runs]
    attacks = [one for one in attacks if list_parts(runs[one.submission_id])]
    attacks = attacks if any("trained" in one.parameters for one in attacks) else []
    retrained = pick_newest_finished(RETRAINED, at_hand, as_of) if extent is ReadExtent.SHOWN else []
    wanted = Q() if extent is ReadExtent.ALL else _needed(editions.values())
    numbers = read_numbers(
        [*runs.values(), *attacks, *retrained],
        Q(run__in=runs.values()) & wanted
        | Q(run__in=attacks, metric__in=("eer", "inverted_targets"))
        | Q(run__in=retrained, metric=PHONES),
    )
    verdicts: dict[int, dict[str, Reliability]] = {}
    for key, chosen in editions.items():
        judged = {one: numbers.get(one.pk, {}) for one in attacks if given[one.submission_id].system.edition_id == key}
        verdicts |= judge_attacks(judged, estimator_of(chosen.recipe))
    rows = {one.submission_id: numbers.get(one.pk, {}).values() for one in retrained}
    score_sets: dict[int, list[ScoreSet]] = defaultdict(list)
    for score_set in ScoreSet.objects.filter(run__in=runs.values()) if extent is ReadExtent.ALL else ():
        score_sets[score_set.run_id].append(score_set)
    required = {pk: tuple(required_numbers(one.recipe, one.ranked_track)) for pk, one in editions.items()}
    found = {}
    for submission in given.values():
        run, edition = runs.get(submission.pk), submission.system.edition
        of_run = numbers.get(run.pk, {}) if run else {}
        missing = _missing(run, required.get(edition.pk, ()) if edition else (), _why_none(submission))
        parts = list_parts(run) if run else []
        found[submission.pk] = ObjectiveValues(
            submission=submission.pk,
            run=run.pk if run else None,
            measured_at=run.job.finished_at if run and run.job else None,
            numbers=_complete(of_run, missing, edition, score_sets[run.pk]) if edition and run else of_run,
            missing=missing,
            computed_by=by_engines(run.parameters.get("engines", {})) if run else "",
            rests_on=tuple(parts),
            verdicts=next((verdicts[one] for one in parts if one in verdicts), {}),
            score_sets=tuple(score_sets[run.pk]) if run else (),
            retrained=average_rows(rows.get(submission.pk, ()), edition.ranked_track, edition.policy.split)
            if edition
            else {},
        )
    return found


def judge_attacks(
    attacks: Mapping[EvaluationRun, Mapping[NumberIdentity, Number]], estimator: str
) -> dict[int, dict[str, Reliability]]:
    """Return whether each trained attacker is strong enough, by its run and the data set.

    Args:
        attacks: every attack on a submission with its numbers: those of frozen encoders and of other seeds are what a
            trained one is held against.
        estimator: of the equal error rates.
    """
    trainings = {run.parameters["trained"] for run in attacks if "trained" in run.parameters}
    heard = EvaluationRun.objects.filter(pk__in=trainings).values_list("pk", "submission__system")
    systems = dict(heard) if trainings else {}
    values = {run: ObjectiveValues(run.submission_id, run.pk, None, found) for run, found in attacks.items()}

    def read(run: EvaluationRun, metric: str, data_set: str, by: str, of: AttackModel) -> float | None:
        number = values[run].number(metric, by, data_set=data_set, attack_model=of)
        return number.value if number else None

    verdicts: dict[int, dict[str, Reliability]] = {}
    semi, weaker = AttackModel.SEMI_INFORMED, (AttackModel.IGNORANT, AttackModel.LAZY_INFORMED)
    for attack in attacks:
        if describe_engine(attack).training is not Speech.ANONYMISED:
            continue
        same = [one for one in attacks if one.submission_id == attack.submission_id]
        frozen = [one for one in same if describe_engine(one).training is Speech.ORIGINAL]
        trained = [one for one in same if describe_engine(one).training is Speech.ANONYMISED]
        seeds = [one for one in trained if _way_of(one) == _way_of(attack)]
        for data_set in dict.fromkeys(one.data_set for one in attacks[attack] if one.metric == "eer"):
            eer = read(attack, "eer", data_set, estimator, semi)
            if eer is None:
                continue
            others = [read(one, "eer", data_set, estimator, of) for one in frozen for of in weaker]
            of_seeds = [read(one, "eer", data_set, estimator, semi) for one in seeds]
            strength = AttackStrength(
                eer,
                min((one for one in others if one is not None), default=None),
                attack.job.result.get("own_eer") if attack.job else None,
                [one for one in of_seeds if one is not None],
                read(attack, "inverted_targets", data_set, "", semi),
                unheard_voices=100.0 * (systems.get(attack.parameters.get("trained")) != attack.submission.system_id),
            )
            verdicts.setdefault(attack.pk, {})[data_set] = judge_attack(strength)
    return verdicts


def _way_of(attack: EvaluationRun) -> tuple[Any, Any]:
    """Return the training behind an attack and how it compares: attacks that share both differ by their seed."""
    return attack.parameters.get("trained"), attack.parameters.get("scoring")


def _complete(
    numbers: Mapping[NumberIdentity, Number],
    missing: tuple[MissingNumber, ...],
    edition: Edition,
    score_sets: Iterable[ScoreSet],
) -> dict[NumberIdentity, Number]:
    complete = select_complete(numbers, missing, edition.recipe, edition.ranked_track)
    targets = {(one.data_set, one.attack_model): one.target_count for one in score_sets}
    return add_notes(complete, edition.recipe, targets=targets)


def recipe_number_of(job: Job | None) -> int:
    """Return the number of the recipe by which a finished job computed (`Edition.recipe_number`)."""
    return int(job.result.get("recipe_number", 1)) if job else 1


def _find_runs(
    submissions: Iterable[Submission], finished: Sequence[EvaluationRun], as_of: datetime | None
) -> dict[int, EvaluationRun]:
    """Return by submission the run that counts: the newest by the recipe at hand that had finished by a time.

    Of a recipe that was changed after that time it is the first one.
    """
    numbers = {one.pk: one.system.edition.recipe_number for one in submissions if one.system.edition}
    found: dict[int, EvaluationRun] = {}
    for run in reversed(finished):
        number = numbers.get(run.submission_id)
        if number is not None and recipe_number_of(run.job) != number:
            continue
        finished_at = run.job.finished_at if run.job else None
        is_in_time = as_of is None or (finished_at is not None and finished_at <= as_of)
        if is_in_time or ((number or 1) > 1 and run.submission_id not in found):
            found[run.submission_id] = run
    return found


def _why_none(submission: Submission) -> str:
    """Return why a submission has no numbers."""
    if submission.state == Submission.State.WITHDRAWN:
        return WITHDRAWN
    return EVALUATED_AGAIN if submission.evaluated_at else NOT_EVALUATED


def list_parts(run: EvaluationRun) -> list[int]:
    """The portal's own runs that an objective run rests on, by primary key."""
    return list(run.parameters.get("parts", []))


def _needed(editions: Iterable[Edition]) -> Q:
    """Averages, what judges the attacks behind the EER that ranks, every data set of a gate's metric, and of a track
    with several languages every data set."""
    wanted = Q(data_set__startswith=AVERAGE)
    for edition in editions:
        track = edition.ranked_track
        if len({*track.languages, *track.surprise_languages}) > 1:
            averaged = {one.metric for one in list_averages(track)}
            wanted |= Q(metric__in=averaged, data_set__in=list(edition.recipe.data_sets))
        ranking = track.ranking
        if ranking:
            sets = list_averaged_sets(track, ranking.privacy.metric, ranking.split)
            wanted |= Q(metric__in=[ranking.privacy.metric, "inverted_targets"], data_set__in=sets)
        for gate in ranking.gates if ranking else ():
            names = {name for group in gate.groups for name in group}
            wanted |= Q(metric=gate.metric, estimator=gate.estimator, data_set__in=names)
    return wanted


def _missing(
    run: EvaluationRun | None,
    required: Iterable[tuple[NumberIdentity, bool]],
    reason: str,
) -> tuple[MissingNumber, ...]:
    """Return what the run's job says to be missing; without a run all that is required."""
    if run is None:
        return tuple(MissingNumber(number_words(one), reason, is_ranked) for one, is_ranked in required)
    return read_missing(run.job.result.get("missing", ())) if run.job else ()


def read_originals(edition: Edition, as_of: datetime | None = None) -> dict[tuple[str, str, str], MeasuredValue]:
    """Return averages of the originals by this recipe, each from the newest job, by metric, estimator and data set.

    Args:
        as_of: what had been computed by then, unless the recipe was changed; None for now.
    """
    if not edition.recipe.evaluation.by_portal:
        return {}
    jobs = Job.objects.filter(
        kind=ORIGINALS, edition=edition.name, state=JobState.SUCCEEDED, parameters__recipe=recipe_hash(edition)
    )
    if as_of is not None and edition.recipe_number == 1:
        jobs = jobs.filter(finished_at__lte=as_of)
    return {
        (one["metric"], one["estimator"], one["data_set"]): MeasuredValue(one["value"], one["low"], one["high"])
        for result in jobs.order_by("finished_at").values_list("result", flat=True)
        for one in result["averages"]
    }


# DET curves ----------------------------------------------------------------------------------------


def det_key(run: int, data_set: str, theme: Theme = "light", image_format: ImageFormat = "svg") -> str:
    """Return where a figure lies."""
    return f"derived/figures/{run}/det-{data_set}-{theme}.{image_format}"


def group_curves(score_sets: Iterable[ScoreSet]) -> dict[str, dict[str, ScoreSet]]:
    """Return the tests that a figure shows, by data set and attack model, from unprotected to semi-informed.

    Unprotected and ignorant tests exist with both evaluators; shown is the original one, as in the averages.
    """
    wanted = {tuple(map(str, speeches)): attack for attack, speeches in ATTACKS.items()}
    found: dict[str, dict[AttackModel, ScoreSet]] = {}
    for one in score_sets:
        attack = wanted.get((one.training, one.enrolment, one.speech))
        if attack is not None:
            found.setdefault(one.data_set, {})[attack] = one
    return {
        data_set: {str(attack): tests[attack] for attack in ATTACKS if attack in tests}
        for data_set, tests in sorted(found.items())
    }


def find_known(
    values: ObjectiveValues, estimator: str, data_set: str, tests: Iterable[str]
) -> tuple[dict[str, Number], str]:
    """Return the equal error rates of the tests of a figure that have one, and what the figure is called in `det_key`.

    A test without a number rests on a part of its set: its curve is left out, and the others have their own figure.

    Args:
        tests: attack models, as `group_curves` gives them.
    """
    asked = list(tests)
    found = {
        attack: values.number("eer", estimator, data_set=data_set, attack_model=AttackModel(attack)) for attack in asked
    }
    known = {attack: number for attack, number in found.items() if number is not None}
    return known, data_set if len(known) == len(asked) else "-".join((data_set, *known))


def exposure_key(run: int, data_set: str, theme: Theme = "light", image_format: ImageFormat = "svg") -> str:
    """Return where the figure of what the EER hides lies."""
    return f"derived/figures/{run}/beyond-{data_set}-{theme}.{image_format}"


def read_exposed_test(score_set: ScoreSet) -> ExposedTest:
    """Return what is drawn of a test beside its DET curve."""
    with default_storage.open(score_set.key) as file, np.load(io.BytesIO(file.read())) as packed:
        curve = det_curve(packed["targets"], packed["nontargets"])
        chances = packed["rank_chances"] if "rank_chances" in packed else np.zeros(0)
        return ExposedTest(str(score_set.attack_model), curve, chances, packed["kaldi_eer"])


def read_det_curve(key: str, estimator: str) -> tuple[DetCurve, float]:
    """Return the DET curve of stored scores, for drawing, and its equal error rate by an estimator, a share.

    Raises:
        FileNotFoundError: the scores are not kept any more.
    """
    with default_storage.open(key) as file, np.load(io.BytesIO(file.read())) as packed:
        scores = sort_scores(packed["targets"], packed["nontargets"])
    if estimator == "rocch":
        eer = compute_rocch_eer(pool_adjacent_violators(scores.is_target))
    else:
        eer = (compute_speechbrain_eer if estimator == "speechbrain" else compute_kaldi_eer)(scores).rate
    return trace_det_curve(scores).corners(), eer


def measure_scores(score_set: ScoreSet) -> DetectionMetrics:
    """Return all detection metrics of stored scores, their DET curve among them."""
    with default_storage.open(score_set.key) as file, np.load(io.BytesIO(file.read())) as packed:
        return detection_metrics(packed["targets"], packed["nontargets"])
