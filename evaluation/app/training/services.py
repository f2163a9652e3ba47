"""Trains semi-informed attackers on the anonymised training data of a submission: creates the runs and their jobs.

A run has one recipe and several seeds, which its job (`evaluation.training_work`) trains one after another. What came
of a seed lies in the storage under `seed_folder`: while it is trained the state after its newest epoch, then the
attacker itself, which `load_encoder` brings back.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import tempfile
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.files.storage import default_storage
from django.db import transaction

from anonymization.models import AnonymizationRun
from anonymization.services import start_anonymization
from anonymization.targets import targets_of
from evaluation.attackers.contract import Device, SpeakerEncoder
from evaluation.attackers.training.recipe import TrainingRecipe
from evaluation.metrics.errors import MetricInputError
from evaluation.models import EvaluationRun
from evaluation.selectors_training import Material, material_of, seeds_of, trained_seeds
from evaluation.services_speech import GONE, UNDER_WAY
from portal.challenges.models import DataSet
from portal.core import audit
from portal.core.version import code_version
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job
from portal.jobs.services import NotPossible, create_job
from portal.submissions.models import Submission, SubmittedFile

if TYPE_CHECKING:
    from evaluation.attackers.training.trained import TrainedAttacker


KIND, KIND_GPU = "train-attacker", "train-attacker-gpu"
# Raised whenever the same recipe, seed and speech give another attacker.
METHOD_VERSION = "1"
# What a finished attacker consists of.
ENCODER_FILES = ("model.safetensors", "recipe.json", "values.csv")
MODEL_FILE = ENCODER_FILES[0]
MOST_SEEDS = 10
LARGEST_SEED = 2**31 - 1
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
    after: Job | None = None,
    by: Any = None,
) -> EvaluationRun:
    """A run that trains an attacker for each seed on what the submission has of these training sets, and its job.

    Args:
        variant: name of the variant of the target classifier that the recipe was made with, for people.
        device: where it is trained; on a graphics card it waits for a worker that has one.
        after: a job that has to succeed before, such as the one that makes the files; what they are is then asked by
            the job itself.

    Raises:
        NotPossible: a sentence that says what is missing.
    """
    chosen, wanted = list(data_sets), list(seeds)
    if refusal := refusal_of(submission, chosen, recipe, wanted, is_made_first=after is not None):
        raise NotPossible(refusal)
    parameters = {
        "recipe": json.loads(recipe.to_json()),
        "variant": variant,
        "seeds": wanted,
        "data_sets": [data_set.name for data_set in chosen],
        "device": device,
    }
    _require_another(submission, parameters)
    run = EvaluationRun.objects.create(
        submission=submission,
        kind=EvaluationRun.Kind.TRAINING,
        recipe=recipe.name[:40],
        recipe_version=METHOD_VERSION,
        code_version=code_version(),
        parameters=parameters,
    )
    run.job = create_job(
        kind=KIND_GPU if device == "cuda" else KIND,
        title=f"Train an attacker on {submission.system}",
        parameters={"run": run.pk},
        edition=submission.system.edition_name,
        by=by,
        after=after,
    )
    run.save(update_fields=["job"])
    audit.record("evaluation.started", run, actor=by, recipe=recipe.name, seeds=wanted)
    return run


@transaction.atomic
def start_chain(
    *,
    submission: Submission,
    data_sets: Iterable[DataSet],
    recipe: TrainingRecipe,
    seeds: Sequence[int],
    variant: str = "none",
    device: Device = "cpu",
    with_attack: bool = True,
    by: Any = None,
) -> EvaluationRun:
    """The whole way: anonymise the training sets that have no files yet, train on them, attack with each seed.

    Only what the portal's own method made can be completed; a team hands in its training data itself.

    Raises:
        NotPossible: a sentence that says what is missing.
        MethodError: as `start_anonymization`.
    """
    chosen = list(data_sets)
    after = _made_first(submission, chosen, by)
    run = start_training(
        submission=submission, data_sets=chosen, recipe=recipe, seeds=seeds, variant=variant, device=device,
        after=after, by=by,
    )  # fmt: skip
    if with_attack:
        from evaluation.services_attack import start_attack

        for seed in seeds_of(run):
            start_attack(submission=submission, trained=run, seed=seed, after=run.job, by=by)
    return run


def _made_first(submission: Submission, data_sets: Sequence[DataSet], by: Any) -> Job | None:
    """The last of the jobs that make what is missing of these sets, one after another; None where nothing is."""
    pending = [one for one in material_of(submission) if one.data_set in data_sets and not one.is_complete]
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
    targets: dict[str, Any] = {}
    if like.target_set is not None:
        from anonymization.targets import TargetRequest

        targets = {"targets": TargetRequest(like.target_set, like.target_selection)}
    return start_anonymization(
        submission=like.submission,
        data_sets=[data_set],
        method=like.method,
        seed=like.seed,
        level=AnonymizationRun.Level.UTTERANCE,
        options=like.options,
        by=by,
        **targets,
    )


def _require_another(submission: Submission, parameters: dict[str, Any]) -> None:
    """That nobody pressed the button twice; of two at once the second sees the run of the first.

    Raises:
        NotPossible: the very same training is under way.
    """
    Submission.objects.select_for_update().filter(pk=submission.pk).first()
    under_way = EvaluationRun.objects.filter(
        submission=submission, kind=EvaluationRun.Kind.TRAINING, job__state__in=UNDER_WAY
    )
    for run in under_way:
        if {name: run.parameters.get(name) for name in parameters} == parameters:
            raise NotPossible(
                f"The same training is under way already as training {run.pk}. Cancel it first, or change something."
            )


# What speaks against it ----------------------------------------------------------------------------


def refusal_of(
    submission: Submission,
    data_sets: Sequence[DataSet],
    recipe: TrainingRecipe,
    seeds: Sequence[int],
    *,
    is_made_first: bool = False,
) -> str:
    """Why no attacker can be trained so, a sentence; empty where one can.

    Args:
        is_made_first: the files are made by a job before; what they will be is then not asked.
    """
    if missing := missing_here():
        return missing
    if submission.state in GONE:
        return f"{submission} is {submission.get_state_display().lower()}; there is no speech to train on."
    if refusal := _refused_seeds(seeds):
        return refusal
    material = {one.data_set: one for one in material_of(submission)}
    if not data_sets or any(data_set not in material for data_set in data_sets):
        known = ", ".join(data_set.name for data_set in material) or "none"
        return f"Choose at least one training set of the corpus to train on; it has these: {known}."
    if is_made_first:
        return ""
    chosen = [material[data_set] for data_set in data_sets]
    return _refused_material(chosen) or _refused_targets(submission, chosen, recipe)


def _refused_seeds(seeds: Sequence[int]) -> str:
    is_wrong = not 1 <= len(seeds) <= MOST_SEEDS or any(not 0 <= seed <= LARGEST_SEED for seed in seeds)
    if is_wrong or len(set(seeds)) < len(seeds):
        found = ", ".join(map(str, seeds)) or "none"
        return f"Give 1 to {MOST_SEEDS} different seeds from 0 to {LARGEST_SEED}; found {found}."
    return ""


def _refused_material(chosen: Sequence[Material]) -> str:
    with_files = [one for one in chosen if one.files]
    if not with_files:
        names = ", ".join(one.data_set.name for one in chosen)
        return (
            f"The submission has no anonymised file of {names}. A team hands it in with its archive; for a system of "
            "the portal's own methods, let it be anonymised first."
        )
    if len(with_files) == 1:
        return with_files[0].refusal
    return ""


def _refused_targets(submission: Submission, chosen: Sequence[Material], recipe: TrainingRecipe) -> str:
    if recipe.target_head == "none":
        return ""
    for one in chosen:
        if one.problem:
            return one.problem
        known = targets_of(submission, one.data_set)
        names = set(submission.files.filter(data_set=one.data_set).values_list("utterance__name", flat=True))
        if unknown := sorted(names - set(known)):
            return (
                f"The target of {len(unknown)} of {len(names)} utterances of {one.data_set} is not known "
                f"({', '.join(unknown[:NAMED])}{', …' if len(unknown) > NAMED else ''}), so there is nothing that a "
                "target classifier could learn. Train without it, or hand in targets.csv with the archive."
            )
    return ""


def missing_here() -> str:
    """What this machine lacks to train anything, a sentence; empty where it lacks nothing."""
    missing = [name for name in ("torch", "safetensors") if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return (
        f"Training an attacker needs {' and '.join(missing)}, which this portal cannot find: install its extra parts "
        "“gpu” and “engines”, or torch and safetensors by themselves."
    )


def require_same_speech(run: EvaluationRun) -> None:
    """That a training goes on with what it began with, as its job sees it.

    Raises:
        JobFailure: utterances were erased, added or replaced since its first epoch.
    """
    files = SubmittedFile.objects.filter(
        submission=run.submission_id,
        data_set__corpus=run.submission.system.corpus_id,
        data_set__name__in=run.parameters["data_sets"],
    ).order_by("data_set__name", "utterance__name")
    rows = files.values_list("data_set__name", "utterance__name", "utterance__speaker__name", "audio")
    speech = hashlib.sha256(json.dumps(list(rows)).encode()).hexdigest()
    if not run.epochs.exists():
        run.parameters["speech"] = speech
        run.save(update_fields=["parameters"])
    elif run.parameters.get("speech", speech) != speech:
        raise JobFailure(
            "The training data is another than when this training began: utterances were erased, added or replaced. "
            "What was learnt of both would fit neither.",
            actor=Actor.ORGANIZER,
            remedy="Start another training.",
        )


# What is kept --------------------------------------------------------------------------------------


def seed_folder(run: EvaluationRun, seed: int) -> str:
    """Where everything of a seed lies in the storage."""
    return f"derived/attackers/{run.pk}/seed-{seed}"


def checkpoint_key(run: EvaluationRun, seed: int, epoch: int) -> str:
    """Where the state after an epoch lies while the seed is being trained."""
    return f"{seed_folder(run, seed)}/epoch-{epoch}.pt"


def encoder_key(run: EvaluationRun, seed: int, name: str = MODEL_FILE) -> str:
    """Where a file of the finished attacker lies."""
    return f"{seed_folder(run, seed)}/{name}"


def engine_key(run: EvaluationRun, seed: int) -> str:
    """Under which the vectors of this attacker are kept."""
    return f"trained-{run.pk}-s{seed}"


def load_attacker(run: EvaluationRun, seed: int, device: Device = "cpu") -> TrainedAttacker:
    """The attacker of a seed, with what it was trained on and what it reached.

    Raises:
        MetricInputError: the seed is not trained, its files are gone or damaged, or torch is missing.
    """
    from evaluation.attackers.training.trained import load_trained

    if seed not in trained_seeds(run):
        raise MetricInputError(f"Training {run.pk} has no finished attacker with seed {seed}; let its job end first.")
    with tempfile.TemporaryDirectory(prefix="attacker-") as place:
        folder = Path(place)
        for name in ENCODER_FILES:
            try:
                with default_storage.open(encoder_key(run, seed, name)) as stored:
                    (folder / name).write_bytes(stored.read())
            except FileNotFoundError as error:
                raise MetricInputError(
                    f"{encoder_key(run, seed, name)} is missing in the portal's files: bring it back from a backup, "
                    "or train anew."
                ) from error
        return load_trained(folder, device)


def load_encoder(run: EvaluationRun, seed: int, device: Device = "cpu") -> SpeakerEncoder:
    """The encoder of a seed, to attack with: centred where its recipe asks for it.

    Raises:
        MetricInputError: as `load_attacker`.
    """
    from evaluation.attackers.training.trained import attacking_encoder

    return attacking_encoder(load_attacker(run, seed, device))
