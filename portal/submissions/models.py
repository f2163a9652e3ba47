"""Systems and what they delivered: a `Submission` is one version of a system's anonymised files."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse

from portal.challenges.models import Corpus, DataSet, Utterance


class System(models.Model):
    """A named anonymiser, such as ``b2-demo``; the organizer's own are baselines."""

    name = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    corpus = models.ForeignKey(Corpus, on_delete=models.PROTECT, related_name="systems")
    is_baseline = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("systems:detail", args=[self.name])


class Submission(models.Model):
    """One version of a system's files; it never changes once complete."""

    system = models.ForeignKey(System, on_delete=models.CASCADE, related_name="submissions")
    version = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-version"]
        constraints = [models.UniqueConstraint(fields=["system", "version"], name="submission_version_once")]

    def __str__(self) -> str:
        return f"{self.system} version {self.version}"


class SubmittedFile(models.Model):
    """The anonymised form of one utterance in one data set."""

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="files")
    data_set = models.ForeignKey(DataSet, on_delete=models.PROTECT, related_name="+")
    utterance = models.ForeignKey(Utterance, on_delete=models.PROTECT, related_name="submitted_files")
    audio = models.CharField(max_length=120)
    samples = models.PositiveIntegerField()
    rate_hz = models.PositiveIntegerField()

    class Meta:
        ordering = ["utterance__name"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "data_set", "utterance"],
                name="submitted_file_once_in_data_set",
            )
        ]

    def __str__(self) -> str:
        return f"{self.utterance} of {self.submission}"
