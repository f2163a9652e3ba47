"""The only door to trainings of semi-informed attackers for pages and for attacks: runs, epochs, what they measured.

Conventions: error rates are shares; seeds stand in the order in which they are trained.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, QuerySet, Sum
from django.http import Http404

from anonymization.models import AnonymizationRun
from anonymization.targets import targets_of
from evaluation.attackers.training.presets import VARIANTS
from evaluation.attackers.training.recipe import TrainingRecipe
from evaluation.attackers.training.report import Spread, spread
from evaluation.models import EvaluationRun, TrainingEpoch
from portal.challenges.models import DataSet, Role, Utterance
from portal.submissions.models import Submission, SubmittedFile

# Under this name the values of the last epoch of a seed hold what was measured once it was trained: the fields of
# `evaluation.attackers.training.trained.FinalValues`. The other names are those of `EpochRecord.values`.
REPORT = "report"
# And under this one, how many steps of the optimiser the epoch had.
STEPS_OF = "steps"


# Runs ----------------------------------------------------------------------------------------------


def trainings_of(submission: Submission) -> list[EvaluationRun]:
    """All trainings on a submission, the newest first."""
    runs = EvaluationRun.objects.filter(submission=submission, kind=EvaluationRun.Kind.TRAINING)
    return list(runs.select_related("job").order_by("-pk"))


def training_for(submission: Submission, pk: int) -> EvaluationRun:
    """A training on a submission, or "not found"."""
    runs = EvaluationRun.objects.filter(submission=submission, kind=EvaluationRun.Kind.TRAINING)
    run = runs.select_related("job").filter(pk=pk).first()
    if run is None:
        raise Http404
    run.submission = submission
    return run


def seeds_of(run: EvaluationRun) -> list[int]:
    """The seeds that a training was asked for."""
    return [int(seed) for seed in run.parameters["seeds"]]


def epochs_of(runs: Iterable[EvaluationRun]) -> dict[int, dict[int, list[TrainingEpoch]]]:
    """The epochs of these runs by run and seed, in their order: one query."""
    found: dict[int, dict[int, list[TrainingEpoch]]] = {run.pk: {} for run in runs}
    for epoch in TrainingEpoch.objects.filter(run__in=list(found)).order_by("run", "seed", "epoch"):
        found[epoch.run_id].setdefault(epoch.seed, []).append(epoch)
    return found


def trained_seeds(run: EvaluationRun) -> list[int]:
    """The seeds of a run whose attacker is ready to be used."""
    rows = TrainingEpoch.objects.filter(run=run, values__has_key=REPORT)
    known = set(rows.values_list("seed", flat=True))
    return [seed for seed in seeds_of(run) if seed in known]


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
        """Mean and deviation of a measure, by the name that it has in `SeedReport`."""
        return spread([getattr(one, name) for one in self.seeds])

    @property
    def first(self) -> SeedReport | None:
        return next(iter(self.seeds), None)

    @property
    def is_anti_prediction(self) -> bool:
        """Whether the target classifier errs more often than a guess would.

        Whoever errs more than by chance knows the target and says another: nothing was removed.
        """
        error, first = self.spread("target_error"), self.first
        chance = first.target_chance if first else None
        return error is not None and chance is not None and error.mean > chance

    @property
    def probe_finds_more(self) -> bool:
        """Whether a fresh probe finds more targets than the classifier that was trained with the recogniser."""
        probe, error = self.spread("target_probe"), self.spread("target_error")
        return probe is not None and error is not None and probe.mean < error.mean


def report_of(by_seed: Mapping[int, Sequence[TrainingEpoch]]) -> TrainingReport:
    """The report of a run from its epochs, those of seeds that have ended."""
    found = []
    for seed, epochs in by_seed.items():
        report = next((epoch.values[REPORT] for epoch in reversed(epochs) if REPORT in epoch.values), None)
        if report is not None:
            found.append(_seed_report(seed, report))
    return TrainingReport(found)


def _seed_report(seed: int, values: Mapping[str, Any]) -> SeedReport:
    return SeedReport(
        seed=seed,
        source_error=values["source_error"],
        target_error=values["target_error"],
        target_probe=(values["target_probe"] or {}).get("error"),
        target_probe_other_sources=(values["target_probe_other_sources"] or {}).get("error"),
        source_probe=(values["source_probe"] or {}).get("error"),
        source_chance=values["source_chance"],
        target_chance=values["target_chance"],
        target_chance_known_gender=values["target_chance_known_gender"],
        held_out=values["held_out_segments"],
        sources=values["n_sources"],
        targets=values["n_targets"],
    )


def recipe_of(run: EvaluationRun) -> TrainingRecipe:
    """The recipe of a training."""
    return TrainingRecipe.from_json(json.dumps(run.parameters["recipe"]))


def training_title(run: EvaluationRun) -> str:
    """Such as ``ECAPA-TDNN of training 12 (small, stabilised target classifier)``."""
    variant = VARIANTS[run.parameters["variant"]].title
    return f"{recipe_of(run).network_title} of training {run.pk} ({run.recipe}, {variant[:1].lower()}{variant[1:]})"


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
        problem: why the targets that came with an archive cannot be used; empty where they can or none came.
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
    problem: str

    @property
    def is_complete(self) -> bool:
        return self.utterances > 0 and self.files >= self.utterances

    @property
    def warning(self) -> str:
        """What makes an attacker trained on it another than that of a challenge, a sentence; else empty."""
        return told_of_tested(self.tested)

    @property
    def refusal(self) -> str:
        """Why no attacker can be trained on it, a sentence; empty where one can."""
        if not self.files:
            return f"{self.data_set} has no anonymised file in this submission."
        if self.files == 1:
            return f"{self.data_set} has one anonymised utterance; training and measuring need different ones."
        if self.speakers < 2:
            return f"{self.data_set} has one speaker; whoever learns to tell speakers apart needs two at least."
        return ""


def training_sets_of(submission: Submission) -> list[DataSet]:
    """The data sets of the corpus that are there to train on, by name."""
    corpus = submission.system.corpus
    return list(corpus.data_sets.filter(role=Role.TRAINING).order_by("name")) if corpus else []


def material_of(submission: Submission) -> list[Material]:
    """What of each training set a submission has; some queries for each of these sets, which are few."""
    runs = {run.data_set_id: run for run in submission.anonymization_runs.select_related("job", "data_set")}
    return [_material(submission, data_set, runs.get(data_set.pk)) for data_set in training_sets_of(submission)]


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
        tested=_tested(DataSet.objects.filter(pk=data_set.pk)),
        seconds=made["seconds"] or 0.0,
        corpus_seconds=whole["seconds"] or 0.0,
        targets=len(set(targets.values())),
        made_by=made_by,
        problem=problem,
    )


def tested_speakers(run: EvaluationRun) -> int:
    """How many speakers that a training learns are enrolled or tried, too."""
    corpus = run.submission.system.corpus_id
    return _tested(DataSet.objects.filter(corpus=corpus, name__in=run.parameters["data_sets"]))


def told_of_tested(count: int) -> str:
    """What it means that so many speakers of the training data are enrolled or tried, a sentence; empty for none."""
    if not count:
        return ""
    who = "One speaker of the training data is" if count == 1 else f"{count} speakers of the training data are"
    return (
        f"{who} enrolled or tried, too. An attacker that has learnt the very people it is to find tells more of them "
        "than one that knows the anonymiser alone; its EER is not that of a semi-informed attacker."
    )


def _tested(data_sets: QuerySet[DataSet]) -> int:
    tested = DataSet.objects.filter(corpus__in=data_sets.values("corpus"), role__in=(Role.ENROLMENT, Role.TRIAL))
    heard = Utterance.objects.filter(data_sets__in=tested).order_by().values("speaker")
    learnt = Utterance.objects.filter(data_sets__in=data_sets, speaker__in=heard)
    return learnt.order_by().values("speaker").distinct().count()


def _targets(submission: Submission, data_set: DataSet) -> tuple[dict[str, str], str]:
    try:
        return targets_of(submission, data_set), ""
    except ValueError as error:  # the sentence about a file that came with the archive
        return {}, str(error)
