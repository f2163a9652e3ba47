"""Analyses of a study: what was computed from which inputs. One that is made is never changed."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from listening.models.studies import Study
from portal.jobs.models import Job


class Analysis(models.Model):
    """What the listeners of a study said, computed once.

    `chosen`: its settings. `basis`: SHA-256 of what tells inputs apart without reading the ratings; the analysis no
    longer fits its study when that changes. `fingerprint`: SHA-256 of the inputs, the settings and the version of the
    analysis; equal ones are not computed again. Keys of stored files: `inputs`, a zip; `results`, of
    `Results.as_json`; `figures` by their names, such as ``raw/det-naturalness-light.svg``. They fill up while the job
    runs; the analysis is there once it has `finished_at`. The one with the latest counts: one that is taken again gets
    a new one.
    `erased_at`: since when it holds no answer of single people any more, because one of them withdrew: its inputs and
    the tables and figures about listeners and utterances are gone; `leftovers`: keys of files still to be deleted.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="analyses")
    basis = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64, blank=True)
    chosen = models.JSONField("settings", default=dict, blank=True)
    inputs = models.CharField(max_length=120, blank=True)
    results = models.CharField(max_length=120, blank=True)
    figures = models.JSONField(default=dict, blank=True)
    job = models.OneToOneField(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="analysis")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    erased_at = models.DateTimeField(null=True, blank=True)
    leftovers = models.JSONField(default=list, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        verbose_name_plural = "analyses"

    def __str__(self) -> str:
        return f"analysis {self.pk} of {self.study}"

    @property
    def is_ready(self) -> bool:
        return self.finished_at is not None
