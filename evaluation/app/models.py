"""Evaluation runs and their numbers: one row for each utterance, one for each published value."""

from __future__ import annotations

from django.db import models

from evaluation.objective_results.values import BASES, Basis
from portal.challenges.models import DataSet
from portal.jobs.models import Job
from portal.submissions.models import Submission, SubmittedFile


class EvaluationRun(models.Model):
    """One recipe of measures over a submission; never changed, only followed by another run.

    `data_set` is the one that was measured, empty for a run over the whole submission: scores, results and averages.
    `engine`: name of the attacker or recogniser that computed, empty where none did. `parameters`: its options.
    """

    class Kind(models.TextChoices):
        MEASURES = "measures", "measures of a data set"
        OBJECTIVE = "objective", "objective numbers of a submission"
        ATTACK = "attack", "the portal's own attack"
        RECOGNITION = "recognition", "the portal's own speech recognition"
        TRAINING = "training", "training of a semi-informed attacker"
        RETRAINED = "retrained", "recognition by a retrained recogniser"

    kind = models.CharField(max_length=12, choices=Kind.choices)
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="evaluation_runs")
    data_set = models.ForeignKey(DataSet, null=True, blank=True, on_delete=models.RESTRICT, related_name="+")
    recipe = models.CharField(max_length=40)
    recipe_version = models.CharField(max_length=40)
    code_version = models.CharField(max_length=60)
    engine = models.CharField(max_length=80, blank=True)
    parameters = models.JSONField(default=dict, blank=True)
    job = models.OneToOneField(Job, null=True, on_delete=models.PROTECT, related_name="evaluation_run")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.recipe} of {self.submission} on {self.data_set or 'everything'}"

    @property
    def measured_set(self) -> DataSet:
        """Return the data set of a run over one.

        Raises:
            ValueError: the run is over the whole submission.
        """
        if self.data_set is None:
            raise ValueError(f"{self} is a run over no single data set.")
        return self.data_set


class UtteranceMeasure(models.Model):
    """What was measured on one anonymised utterance against its original.

    `unrelated_pitch_correlation`: of the original with the anonymised form of another utterance, realigned.
    `predicted_naturalness`: of a sample only. Levels in dB, durations in ms; `faults` are codes of
    `evaluation.metrics.audio_checks`.
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="measures")
    file = models.ForeignKey(SubmittedFile, on_delete=models.CASCADE, related_name="measures")
    pitch_correlation = models.FloatField(null=True)
    voiced_pitch_correlation = models.FloatField(null=True)
    realigned_pitch_correlation = models.FloatField(null=True)
    unrelated_pitch_correlation = models.FloatField(null=True)
    predicted_naturalness = models.FloatField(null=True)
    predicted_original = models.FloatField(null=True)
    lag_frames = models.IntegerField(null=True)
    duration_difference_ms = models.FloatField()
    level_change_db = models.FloatField(null=True)
    peak_dbfs = models.FloatField(null=True)
    faults = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "file"], name="measure_once_in_run")]
        indexes = [models.Index(fields=["run", "pitch_correlation"])]

    def __str__(self) -> str:
        return f"{self.file} in {self.run}"


class MetricValue(models.Model):
    """One number with all that identifies it; `metric` is a name of `evaluation.metrics.catalogue`.

    `data_set` is a name of the recipe or corpus, or ``average_test`` and so on. `training`, `enrolment` and `speech`
    say which speech the evaluator was trained on, enrolled with and tested on (`evaluation.formats.results`);
    `attack_model` follows from them. `basis` says what `value` rests on. `reported` is the number that the team's
    files state, as written in `reported_text`, found at `reported_in`; `agrees` whether it is the recomputed number in
    print.
    """

    class Gender(models.TextChoices):
        ALL = "", "all"
        FEMALE = "f", "female"
        MALE = "m", "male"
        MIXED = "x", "mixed"

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="values")
    data_set = models.CharField(max_length=80, blank=True)
    metric = models.CharField(max_length=60)
    estimator = models.CharField(max_length=120)
    gender = models.CharField(max_length=1, choices=Gender.choices, blank=True)
    attack_model = models.CharField(max_length=30, blank=True)
    training = models.CharField(max_length=10, blank=True)
    enrolment = models.CharField(max_length=10, blank=True)
    speech = models.CharField(max_length=10, blank=True)
    basis = models.CharField(max_length=12, choices=[*BASES.items()], default=Basis.AUDIO)
    value = models.FloatField()
    spread = models.FloatField(
        null=True, help_text="Standard deviation; of the population over utterances, of a sample over seeds."
    )
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    n = models.PositiveIntegerField()
    reported = models.FloatField(null=True, db_column="claimed")
    reported_text = models.CharField(max_length=60, blank=True, db_column="claimed_text")
    reported_in = models.CharField(max_length=400, blank=True, db_column="claimed_in")
    agrees = models.BooleanField(null=True)

    class Meta:
        ordering = ["data_set", "metric", "gender"]
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "run",
                    "data_set",
                    "metric",
                    "estimator",
                    "gender",
                    "attack_model",
                    "training",
                    "enrolment",
                    "speech",
                ],
                name="number_has_one_identity",
            )
        ]

    def __str__(self) -> str:
        return f"{self.metric} {self.value:.4g}"


class ScoreSet(models.Model):
    """The scores of one verification test, kept sorted for DET curves and further numbers.

    `key`: a stored npz with `targets` and `nontargets`, float64, ascending, and what of them is known by speaker and
    by rank (`evaluation.app.runs.services.make_score_set`).
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="score_sets")
    data_set = models.CharField(max_length=80)
    gender = models.CharField(max_length=1, choices=MetricValue.Gender.choices, blank=True)
    attack_model = models.CharField(max_length=30)
    training = models.CharField(max_length=10)
    enrolment = models.CharField(max_length=10)
    speech = models.CharField(max_length=10)
    target_count = models.PositiveIntegerField()
    nontarget_count = models.PositiveIntegerField()
    key = models.CharField(max_length=200)

    class Meta:
        ordering = ["data_set", "attack_model", "training"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "data_set", "training", "enrolment", "speech"], name="score_set_once_in_run"
            )
        ]

    def __str__(self) -> str:
        return f"{self.attack_model} scores of {self.data_set}"


class SpeakerVector(models.Model):
    """What an encoder made of one stored recording, kept by content: equal audio has one vector.

    `audio`: key of the stored file; `engine`: name and version of the encoder; `vector`: little-endian float32.
    """

    audio = models.CharField(max_length=120)
    engine = models.CharField(max_length=120)
    vector = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["engine", "audio"], name="vector_once_for_audio")]

    def __str__(self) -> str:
        return f"{self.engine} of {self.audio}"


class Hypothesis(models.Model):
    """What a recogniser understood of one stored recording, kept by content. Columns as in `SpeakerVector`."""

    audio = models.CharField(max_length=120)
    engine = models.CharField(max_length=120)
    text = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["engine", "audio"], name="hypothesis_once_for_audio")]
        verbose_name_plural = "hypotheses"

    def __str__(self) -> str:
        return f"{self.engine} of {self.audio}"


class TrainingEpoch(models.Model):
    """What one epoch of a training run measured; `seed` distinguishes the repetitions of a run.

    `values`: by name of the measure, as the live curves show them. The newest checkpoint of a seed lies at
    `evaluation.app.attacks.stored_attackers.checkpoint_key`.
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="epochs")
    seed = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    values = models.JSONField(default=dict)
    seconds = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["seed", "epoch"]
        constraints = [models.UniqueConstraint(fields=["run", "seed", "epoch"], name="epoch_once_in_run")]

    def __str__(self) -> str:
        return f"Epoch {self.epoch} of seed {self.seed} in {self.run}"
