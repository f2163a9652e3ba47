"""Trains attackers on the anonymised or the original training data of a submission: creates the runs and their jobs.

A run has one recipe and several seeds, which its job (`evaluation.app.attacker_training.handlers`) trains one after
another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from django.db import transaction

from anonymization.app.models import AnonymizationRun
from anonymization.app.networks import find_run_method
from anonymization.app.services import start_anonymization
from anonymization.app.voice_assignment import TargetRequest, find_targets
from common.errors import NotPossible
from common.seeds import find_wrong_seeds
from evaluation.app.attacker_training.selectors import Material, list_material
from evaluation.app.attacks.services import start_attack
from evaluation.app.attacks.stored_attackers import list_scorings, list_seeds, speech_of_training
from evaluation.app.models import EvaluationRun
from evaluation.app.runs.kinds import TRAINING
from evaluation.app.runs.one_at_a_time import find_under_way
from evaluation.app.runs.services import GONE, start_run
from evaluation.attackers.training.recipe import TRAINING_ENGINE, TrainingRecipe, find_missing_libraries
from evaluation.attackers.training.train import find_back_end_problem
from evaluation.formats.results import Speech
from portal.challenges.models import DataSet, Utterance
from portal.jobs.models import Job
from portal.jobs.workers import lacking
from portal.submissions.models import Submission
from speech.encoders.contract import Device

ANY_DEVICE = "any"  # the graphics card of the worker that takes the job, where it has one, else its processors
MOST_SEEDS = 10
NAMED = 3


# Starting ------------------------------------------------------------------------------------------


@transaction.atomic
def start_training(
    *,
    submission: Submission,
    data_sets: Iterable[DataSet],
    recipe: TrainingRecipe,
    seeds: Sequence[int],
    variant: str = "none",
    device: Device = "cpu",
    trained_on: Speech = Speech.ANONYMISED,
    after: Job | None = None,
    by: Any = None,
) -> EvaluationRun:
    """Return a run that trains an attacker for each seed on what the submission has of these training sets, and its
    job.

    Args:
        trained_on: anonymised speech for a semi-informed attacker, original speech for that of the other attacks.
        variant: name of the variant of the target classifier that the recipe was made with, for people.
        device: where it is trained; on a graphics card it waits for a worker that has one.
        after: a job that has to succeed before, such as the one that makes the files; what they are is then asked by
            the job itself.

    Raises:
        NotPossible: a sentence that says what is missing.
    """
    chosen, wanted = list(data_sets), list(seeds)
    is_made_first = after is not None
    problem = find_problem(submission, chosen, recipe, wanted, is_made_first=is_made_first, trained_on=trained_on)
    if problem:
        raise NotPossible(problem)
    parameters = {"recipe": json.loads(recipe.to_json()), "variant": variant, "seeds": wanted}
    parameters |= {"data_sets": [data_set.name for data_set in chosen], "device": device}
    if trained_on is Speech.ORIGINAL:
        parameters["trained_on"] = str(trained_on)
    run = TRAINING.make_run(submission, recipe=recipe.name[:40], parameters=parameters)
    _require_another(run)
    return start_run(
        run,
        job=TRAINING.job,
        title=f"Train an attacker on {'original speech' if trained_on is Speech.ORIGINAL else submission.system}",
        needs=TRAINING_ENGINE,
        card=device == "cuda",
        after=after,
        by=by,
        recipe=recipe.name,
        seeds=wanted,
    )


@transaction.atomic
def train_and_attack(
    *,
    submission: Submission,
    data_sets: Iterable[DataSet],
    with_attack: bool = True,
    with_originals: bool = False,
    by: Any = None,
    **settings: Any,
) -> EvaluationRun:
    """Return the whole way: anonymise the training sets that have no files yet, train on them, attack with each seed.

    Only what the portal's own method made can be completed; a team submits its training data itself.

    Args:
        with_originals: train and attack by the same recipe on the original speech of these sets first.
        settings: recipe, seeds, variant and device, as `start_training` takes them.

    Raises:
        NotPossible: a sentence that says what is missing.
        MethodError: as `start_anonymization`.
    """
    chosen = list(data_sets)
    for trained_on in (Speech.ORIGINAL, Speech.ANONYMISED) if with_originals else (Speech.ANONYMISED,):
        after = _made_first(submission, chosen, by) if trained_on is Speech.ANONYMISED else None
        wanted = settings | {"trained_on": trained_on}
        run = start_training(submission=submission, data_sets=chosen, after=after, by=by, **wanted)
        if with_attack:
            for seed in list_seeds(run):
                for preset in list_scorings(run):
                    options = {"preset": preset}
                    start_attack(submission=submission, trained=run, seed=seed, options=options, after=run.job, by=by)
    return run


def _made_first(submission: Submission, data_sets: Sequence[DataSet], by: Any) -> Job | None:
    """Return the last of the jobs that make what is missing of these sets, one after another; None where nothing is."""
    pending = [one for one in list_material(submission) if one.data_set in data_sets and not one.is_complete]
    like = submission.anonymization_runs.order_by("pk").first()
    jobs: list[Job] = []
    for one in pending:
        if one.made_by is not None:
            jobs += [one.made_by.job] if one.made_by.job is not None and not one.made_by.job.has_ended else []
        elif like is not None:
            jobs += [run.job for run in _anonymize_like(like, one.data_set, by) if run.job is not None]
    for before, job in pairwise(jobs):
        if job.after_id is None and job.started_at is None:  # a job is asked again whether it is its turn when taken
            job.after = before
            job.save(update_fields=["after"])
    return jobs[-1] if jobs else None


def _anonymize_like(like: AnonymizationRun, data_set: DataSet, by: Any) -> list[AnonymizationRun]:
    """Begin to anonymise a training set as another set of the same submission was."""
    find_run_method(like)  # raises where its network is gone
    targets = TargetRequest(like.target_set, like.target_selection) if like.target_set is not None else None
    return start_anonymization(
        submission=like.submission,
        data_sets=[data_set],
        method=like.method,
        seed=like.seed,
        level=AnonymizationRun.Level.UTTERANCE,
        options=like.options,
        by=by,
        targets=targets,
        network=like.network,
    )


def _require_another(run: EvaluationRun) -> None:
    """That nobody pressed the button twice.

    Raises:
        NotPossible: the very same training is under way.
    """
    for other in find_under_way(run):
        is_same = {name: other.parameters.get(name) for name in run.parameters} == run.parameters
        if is_same and speech_of_training(other.parameters) is speech_of_training(run.parameters):
            sentence = f"The same training is under way already as training {other.pk}."
            raise NotPossible(f"{sentence} Cancel it first, or change a setting.", under_way=other)


# What speaks against it ----------------------------------------------------------------------------


def find_problem(
    submission: Submission,
    data_sets: Sequence[DataSet],
    recipe: TrainingRecipe,
    seeds: Sequence[int],
    *,
    is_made_first: bool = False,
    trained_on: Speech = Speech.ANONYMISED,
) -> str:
    """Return why no attacker can be trained so, a sentence; empty where one can.

    Args:
        is_made_first: the files are made by a job before; what they will be is then not asked.
        trained_on: the speech of these sets.
    """
    if missing := explain_no_training():
        return missing
    if submission.state in GONE:
        return f"{submission} is {submission.get_state_display().lower()}; there is no speech to train on."
    if problem := find_wrong_seeds(seeds, MOST_SEEDS):
        return problem
    material = {one.data_set: one for one in list_material(submission)}
    if not data_sets or any(data_set not in material for data_set in data_sets):
        known = ", ".join(data_set.name for data_set in material) or "none"
        return f"Choose at least one training set of the corpus to train on; it has these: {known}."
    if trained_on is Speech.ORIGINAL:
        return _find_problem_of_originals(data_sets, recipe)
    if is_made_first:
        return ""
    chosen = [material[data_set] for data_set in data_sets]
    files = submission.files.filter(data_set__in=data_sets).order_by()
    speakers = files.values_list("utterance__speaker__name", flat=True) if recipe.back_end == "plda" else ()
    return (
        _find_problem_of_material(chosen)
        or _find_problem_of_targets(submission, chosen, recipe)
        or find_back_end_problem(list(speakers), recipe)
    )


def _find_problem_of_originals(data_sets: Sequence[DataSet], recipe: TrainingRecipe) -> str:
    if recipe.target_head != "none":
        return "Original speech has no target voice to classify: choose no target classifier."
    utterances = Utterance.objects.filter(data_sets__in=data_sets).order_by()
    if silent := utterances.filter(audio="").count():
        return (
            f"{silent:,} utterances of {', '.join(one.name for one in data_sets)} have no original audio. Import the "
            "corpus again with its audio."
        )
    return find_back_end_problem(list(utterances.values_list("speaker__name", flat=True)), recipe)


def _find_problem_of_material(chosen: Sequence[Material]) -> str:
    with_files = [one for one in chosen if one.files]
    if not with_files:
        names = ", ".join(one.data_set.name for one in chosen)
        return (
            f"The submission has no anonymised file of {names}. A team submits it in its archive; for a system of the "
            "portal's own methods, anonymise it first."
        )
    if len(with_files) == 1:
        return with_files[0].problem
    return ""


def _find_problem_of_targets(submission: Submission, chosen: Sequence[Material], recipe: TrainingRecipe) -> str:
    if recipe.target_head == "none":
        return ""
    for one in chosen:
        if one.target_problem:
            return one.target_problem
        known = find_targets(submission, one.data_set)
        names = set(submission.files.filter(data_set=one.data_set).values_list("utterance__name", flat=True))
        if unknown := sorted(names - set(known)):
            return (
                f"The target of {len(unknown)} of {len(names)} utterances of {one.data_set} is not known "
                f"({', '.join(unknown[:NAMED])}{', …' if len(unknown) > NAMED else ''}), so there is nothing that a "
                "target classifier could learn. Train without it, or submit targets.csv with the archive."
            )
    return ""


def explain_no_training() -> str:
    """Return why neither this machine nor a worker can train anything, a sentence; empty where one can."""
    return lacking({TRAINING_ENGINE: find_missing_libraries()})[TRAINING_ENGINE]
