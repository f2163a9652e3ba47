"""What every part of the portal needs: who did what, which processes are alive, which files are to be deleted."""

from django.conf import settings
from django.db import models


class AuditEvent(models.Model):
    """One thing that a person or a process did; written in the transaction of the action and never changed."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    action = models.CharField(max_length=60)
    subject_type = models.CharField(max_length=60)
    subject_id = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["subject_type", "subject_id"])]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"


class Heartbeat(models.Model):
    """Last heartbeat of a process that runs beside the web server; `details` is what that kind tells of itself."""

    name = models.CharField(max_length=200, unique=True)
    kind = models.CharField(max_length=20, blank=True)
    at = models.DateTimeField()
    details = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%H:%M:%S}"


class UnneededFile(models.Model):
    """A stored file that a deleted row named; it is deleted as well where no other row names it.

    Written in the transaction that deletes the row, so that no crash forgets a file.
    """

    key = models.CharField(max_length=200, unique=True)

    def __str__(self) -> str:
        return self.key


class CachedValue(models.Model):
    """A row of Django's cache, in which throttles are counted; only its database backend reads and writes here."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "core_cache"

    def __str__(self) -> str:
        return self.cache_key
