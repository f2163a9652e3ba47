"""Anonymisation runs: which method, with which recipe and seed, made the files of a submission."""

from __future__ import annotations

from django.db import models

from portal.challenges.models import DataSet
from portal.jobs.models import Job
from portal.submissions.models import Submission


class AnonymizationRun(models.Model):
    """One method over one data set. The same run gives the same files again, bit by bit."""

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="anonymization_runs")
    data_set = models.ForeignKey(DataSet, on_delete=models.PROTECT, related_name="+")
    method = models.CharField(max_length=60)
    recipe_version = models.CharField(max_length=40)
    code_version = models.CharField(max_length=60)
    seed = models.PositiveBigIntegerField()
    job = models.OneToOneField(Job, null=True, on_delete=models.PROTECT, related_name="anonymization_run")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["data_set__name"]
        constraints = [
            models.UniqueConstraint(fields=["submission", "data_set"], name="anonymization_run_once_in_data_set")
        ]

    def __str__(self) -> str:
        return f"{self.method} on {self.data_set}"
