"""Evaluation runs and their numbers: one row for each utterance, one for each published value."""

from __future__ import annotations

from django.db import models

from portal.challenges.models import DataSet
from portal.jobs.models import Job
from portal.submissions.models import Submission, SubmittedFile


class EvaluationRun(models.Model):
    """One recipe of measures over one data set of one submission; never changed, only followed by another run."""

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="evaluation_runs")
    data_set = models.ForeignKey(DataSet, on_delete=models.PROTECT, related_name="+")
    recipe = models.CharField(max_length=40)
    recipe_version = models.CharField(max_length=40)
    code_version = models.CharField(max_length=60)
    job = models.OneToOneField(Job, null=True, on_delete=models.PROTECT, related_name="evaluation_run")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.recipe} of {self.submission} on {self.data_set}"


class UtteranceMeasure(models.Model):
    """What was measured on one anonymised utterance against its original.

    `f0_original`, `f0_anonymised`: keys of stored contours. Levels in dB, durations in ms; `faults` are codes of
    `evaluation.metrics.audio_checks`.
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="measures")
    file = models.ForeignKey(SubmittedFile, on_delete=models.CASCADE, related_name="measures")
    pitch_correlation = models.FloatField(null=True)
    voiced_pitch_correlation = models.FloatField(null=True)
    lag_frames = models.IntegerField(null=True)
    duration_difference_ms = models.FloatField()
    level_change_db = models.FloatField(null=True)
    peak_dbfs = models.FloatField(null=True)
    faults = models.JSONField(default=list)
    f0_original = models.CharField(max_length=200, blank=True)
    f0_anonymised = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "file"], name="measure_once_in_run")]
        indexes = [models.Index(fields=["run", "pitch_correlation"])]

    def __str__(self) -> str:
        return f"{self.file} in {self.run}"


class MetricValue(models.Model):
    """One number with all that identifies it; `metric` is a name of `evaluation.metrics.catalogue`."""

    class Gender(models.TextChoices):
        ALL = "", "all"
        FEMALE = "f", "female"
        MALE = "m", "male"

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="values")
    metric = models.CharField(max_length=60)
    estimator = models.CharField(max_length=120)
    gender = models.CharField(max_length=1, choices=Gender.choices, blank=True)
    attack_model = models.CharField(max_length=30, blank=True)
    value = models.FloatField()
    spread = models.FloatField(null=True, help_text="Population standard deviation over utterances.")
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    n = models.PositiveIntegerField()

    class Meta:
        ordering = ["metric", "gender"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "metric", "estimator", "gender", "attack_model"],
                name="number_has_one_identity",
            )
        ]

    def __str__(self) -> str:
        return f"{self.metric} {self.value:.4g}"
