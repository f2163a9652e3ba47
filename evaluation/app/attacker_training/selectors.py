"""Reads trainings of semi-informed attackers for pages: runs, epochs, what they measured, and what one would cost.

Conventions: error rates are shares; seeds stand in the order in which they are trained; a step is one update of the
recogniser; speech and times in seconds. How long a training takes is told by what trainings of its size took here, else
by measurements of another machine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from django.db.models import Count, F, Sum
from django.http import Http404

from anonymization.app.models import AnonymizationRun
from anonymization.app.voice_assignment import find_targets
from evaluation.app.attacks.stored_attackers import REPORT
from evaluation.app.models import EvaluationRun, TrainingEpoch
from evaluation.app.runs.kinds import TRAINING
from evaluation.attackers.training.recipe import Network, TrainingRecipe
from evaluation.attackers.training.report import Spread, spread
from portal.challenges.models import DataSet, Role
from portal.challenges.selectors import count_speakers_tested
from portal.submissions.models import Submission, SubmittedFile
from speech.encoders.contract import Device

# Under this name the values of an epoch hold how many steps of the optimiser it had.
STEPS_OF = "steps"
EPOCHS_THAT_TELL = 40
# Seconds of work for a second of speech in one step (forward, backward, Adam) by network and width, measured on two
# cores with 32 pieces of 3 s; between them the cost grows by a power of the width. Those of the x-vector follow from
# ECAPA-TDNN's of the same width by the shares that both took on one core, 0.35 and 0.43.
ELSEWHERE: dict[Network, dict[int, float]] = {
    "ecapa-tdnn": {64: 0.09 / 96, 128: 0.17 / 96, 256: 0.50 / 96, 512: 1.7 / 96, 1024: 7.7 / 96},
    "x-vector": {256: 0.35 * 0.50 / 96, 512: 0.43 * 1.7 / 96},
}
# About so much is held out.
LEARNED_SHARE = 0.9


PROBES = ("target_probe", "target_probe_other_sources", "source_probe")

# Runs ----------------------------------------------------------------------------------------------


def find_training(submission: Submission, pk: int) -> EvaluationRun:
    """Return a training on a submission, or "not found"."""
    runs = EvaluationRun.objects.filter(submission=submission, kind=TRAINING.kind)
    run = runs.select_related("job").filter(pk=pk).first()
    if run is None:
        raise Http404
    run.submission = submission
    return run


def list_epochs(runs: Iterable[EvaluationRun]) -> dict[int, dict[int, list[TrainingEpoch]]]:
    """The epochs of these runs by run and seed, in their order: one query."""
    found: dict[int, dict[int, list[TrainingEpoch]]] = {run.pk: {} for run in runs}
    for epoch in TrainingEpoch.objects.filter(run__in=list(found)).order_by("run", "seed", "epoch"):
        found[epoch.run_id].setdefault(epoch.seed, []).append(epoch)
    return found


# What was measured ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeedReport:
    """What the attacker of one seed reached on held-out segments, shares; None where it was not measured.

    Attributes:
        source_error: VER_S; target_error: VER_T, of the classifier that was trained with the recogniser.
        target_probe, source_probe: errors of classifiers that were trained afterwards on the finished vectors;
            target_probe_other_sources: the same where it was trained on other speakers than it is tested on.
        target_chance_known_gender: of a guess among the targets of the gender, where targets have one.
    """

    seed: int
    source_error: float | None
    target_error: float | None
    target_probe: float | None
    target_probe_other_sources: float | None
    source_probe: float | None
    source_chance: float
    target_chance: float | None
    target_chance_known_gender: float | None
    held_out: int
    sources: int
    targets: int


@dataclass(frozen=True)
class TrainingReport:
    """What the seeds of a training that have ended measured; spreads over seeds, with the deviation of a sample."""

    seeds: list[SeedReport]

    def spread(self, name: str) -> Spread | None:
        """Return mean and deviation of a measure, by the name that it has in `SeedReport`."""
        return spread([getattr(one, name) for one in self.seeds])

    @property
    def first(self) -> SeedReport | None:
        return next(iter(self.seeds), None)

    @property
    def is_anti_prediction(self) -> bool:
        """Return whether the target classifier errs more often than a guess would.

        A classifier that errs more than by chance knows the target and names another: nothing was removed.
        """
        error, first = self.spread("target_error"), self.first
        chance = first.target_chance if first else None
        return error is not None and chance is not None and error.mean > chance

    @property
    def probe_finds_more(self) -> bool:
        """Return whether a fresh probe finds more targets than the classifier that was trained with the recogniser."""
        probe, error = self.spread("target_probe"), self.spread("target_error")
        return probe is not None and error is not None and probe.mean < error.mean


def make_report(by_seed: Mapping[int, Sequence[TrainingEpoch]]) -> TrainingReport:
    """Return the report of a run from its epochs, those of seeds that have ended."""
    found = []
    for seed, epochs in by_seed.items():
        report = next((epoch.values[REPORT] for epoch in reversed(epochs) if REPORT in epoch.values), None)
        if report is not None:
            found.append(_seed_report(seed, report))
    return TrainingReport(found)


def _seed_report(seed: int, values: Mapping[str, Any]) -> SeedReport:
    same = {one.name: values[one.name] for one in fields(SeedReport) if one.name in values}
    errors = {name: (values[name] or {}).get("error") for name in PROBES}
    counts = {"held_out": "held_out_segments", "sources": "n_sources", "targets": "n_targets"}
    return SeedReport(seed, **same | errors | {name: values[key] for name, key in counts.items()})


def read_recipe_of_run(run: EvaluationRun) -> TrainingRecipe:
    """Return the recipe of a training."""
    return TrainingRecipe.from_json(json.dumps(run.parameters["recipe"]))


# What a submission can be trained on ---------------------------------------------------------------


@dataclass(frozen=True)
class Material:
    """A training set as a submission has it.

    Attributes:
        utterances: of the corpus.
        files: of them that the submission anonymised.
        speakers: of those files.
        tested: how many speakers of the set are enrolled or tried, too, which no attacker of a challenge knows.
        seconds: of speech in those files; corpus_seconds: in the corpus.
        targets: how many targets were used; 0 where nobody knows whose voices they have.
        made_by: the portal's own run that makes it, where one does.
        target_problem: why the targets that came with an archive cannot be used; empty where they can or none came.
    """

    data_set: DataSet
    utterances: int
    files: int
    speakers: int
    tested: int
    seconds: float
    corpus_seconds: float
    targets: int
    made_by: AnonymizationRun | None
    target_problem: str

    @property
    def is_complete(self) -> bool:
        return self.utterances > 0 and self.files >= self.utterances

    @property
    def warning(self) -> str:
        """Return what makes an attacker trained on it another than that of a challenge, a sentence; else empty."""
        return warn_of_tested(self.tested)

    @property
    def problem(self) -> str:
        """Return why no attacker can be trained on it, a sentence; empty where one can."""
        if not self.files:
            return f"{self.data_set} has no anonymised file in this submission."
        if self.files == 1:
            return f"{self.data_set} has one anonymised utterance; training and measuring need different ones."
        if self.speakers < 2:
            return f"{self.data_set} has one speaker; training needs at least two."
        return ""


def list_training_sets(submission: Submission) -> list[DataSet]:
    """Return the data sets of the corpus that are there to train on, by name."""
    corpus = submission.system.corpus
    return list(corpus.data_sets.filter(role=Role.TRAINING).order_by("name")) if corpus else []


def list_material(submission: Submission) -> list[Material]:
    """Return what of each training set a submission has; some queries for each of these sets, which are few."""
    runs = {run.data_set_id: run for run in submission.anonymization_runs.select_related("job", "data_set")}
    return [_material(submission, data_set, runs.get(data_set.pk)) for data_set in list_training_sets(submission)]


def _material(submission: Submission, data_set: DataSet, made_by: AnonymizationRun | None) -> Material:
    files = SubmittedFile.objects.filter(submission=submission, data_set=data_set).order_by()
    made = files.aggregate(
        n=Count("pk"),
        speakers=Count("utterance__speaker", distinct=True),
        seconds=Sum(F("samples") * 1.0 / F("rate_hz")),
    )
    whole = data_set.utterances.order_by().aggregate(n=Count("pk"), seconds=Sum("duration_s"))
    targets, problem = _targets(submission, data_set)
    return Material(
        data_set=data_set,
        utterances=whole["n"],
        files=made["n"],
        speakers=made["speakers"],
        tested=count_speakers_tested(DataSet.objects.filter(pk=data_set.pk)),
        seconds=made["seconds"] or 0.0,
        corpus_seconds=whole["seconds"] or 0.0,
        targets=len(set(targets.values())),
        made_by=made_by,
        target_problem=problem,
    )


def count_tested_speakers(run: EvaluationRun) -> int:
    """Return how many speakers that a training learns are enrolled or tried, too."""
    corpus = run.submission.system.corpus_id
    return count_speakers_tested(DataSet.objects.filter(corpus=corpus, name__in=run.parameters["data_sets"]))


def warn_of_tested(count: int) -> str:
    """Return what it means that so many speakers of the training data are enrolled or tried, a sentence; empty for
    none."""
    if not count:
        return ""
    who = "One speaker of the training data is" if count == 1 else f"{count} speakers of the training data are"
    return (
        f"{who} also in enrolment or trial data. An attacker trained on the speakers that it is to recognise is "
        "stronger than one that knows only the anonymiser; its EER is not that of a semi-informed attacker."
    )


def _targets(submission: Submission, data_set: DataSet) -> tuple[dict[str, str], str]:
    try:
        return find_targets(submission, data_set), ""
    except ValueError as error:  # the sentence about a file that came with the archive
        return {}, str(error)


# What it costs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainingCost:
    """What a training costs. seconds: None where nothing tells; is_from_here: whether trainings of this portal tell."""

    steps: int
    seconds: float | None
    is_from_here: bool


def estimate_cost(recipe: TrainingRecipe, speech_s: float, *, seeds: int, device: Device) -> TrainingCost:
    """Return what it costs to train on so much speech; the number of its pieces is that of whole lengths."""
    steps = seeds * recipe.epochs * count_steps_per_epoch(recipe, speech_s)
    step_s = _step_here(recipe, device)
    if step_s is not None:
        return TrainingCost(steps, steps * step_s, is_from_here=True)
    if device == "cuda":
        return TrainingCost(steps, None, is_from_here=False)
    step_s = _cost_elsewhere(recipe) * min(recipe.batch, _learned_pieces(recipe, speech_s)) * recipe.crop_s
    return TrainingCost(steps, steps * step_s, is_from_here=False)


def count_steps_per_epoch(recipe: TrainingRecipe, speech_s: float) -> int:
    """About how many steps an epoch has, one at least."""
    return max(1, _learned_pieces(recipe, speech_s) // recipe.batch)


def _learned_pieces(recipe: TrainingRecipe, speech_s: float) -> int:
    return max(1, int(LEARNED_SHARE * speech_s / recipe.segment_s))


def _step_here(recipe: TrainingRecipe, device: Device) -> float | None:
    """Return seconds of a step as the newest epochs of trainings of the same size took."""
    size = {f"run__parameters__recipe__{name}": getattr(recipe, name) for name in ("width", "batch", "crop_s")}
    # What a recipe does not name, it does not store.
    named = json.loads(recipe.to_json()).get("network")
    of_network = {"network": named} if named else {"network__isnull": True}
    size |= {f"run__parameters__recipe__{name}": value for name, value in of_network.items()}
    epochs = TrainingEpoch.objects.filter(
        run__kind=TRAINING.kind,
        run__parameters__device=device,
        run__parameters__recipe__adversary_steps=recipe.adversary_steps,
        **size,
    )
    rows = epochs.order_by("-pk").values_list("seconds", f"values__{STEPS_OF}")[:EPOCHS_THAT_TELL]
    known = [(seconds, steps) for seconds, steps in rows if steps]
    return sum(seconds for seconds, _ in known) / sum(steps for _, steps in known) if known else None


def _cost_elsewhere(recipe: TrainingRecipe) -> float:
    """Work for a second of speech at a width, along straight lines between the measured ones in logarithms."""
    costs, width = ELSEWHERE[recipe.network], recipe.width
    known = sorted(costs)
    upper = next((one for one in known[1:] if one >= width), known[-1])
    lower = known[known.index(upper) - 1]
    power = math.log(costs[upper] / costs[lower]) / math.log(upper / lower)
    return costs[lower] * (width / lower) ** power
