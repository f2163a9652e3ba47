"""Teams that take part in an edition: who they are, who belongs to them, and who is invited."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.urls import reverse
from django_countries.fields import CountryField

from portal.challenges.models import Edition
from portal.jobs.models import Job


class Team(models.Model):
    """A participant of one edition, with the fields that the evaluation plan asks for (2022, section 9.2).

    `number` is given at approval and makes the label under which the team's systems are known, such as ``T11``.
    `members_frozen_at`: the time of the first accepted submission; members then neither join nor leave without an
    organizer.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "waiting for approval"
        APPROVED = "approved"
        DECLINED = "declined"
        WITHDRAWN = "withdrawn"

    edition = models.ForeignKey(Edition, on_delete=models.CASCADE, related_name="teams")
    name = models.CharField("name of the team", max_length=80)
    number = models.PositiveIntegerField(null=True, blank=True)
    contact = models.CharField("contact person", max_length=120)
    contact_email = models.EmailField("e-mail address of the contact person")
    affiliation = models.CharField(max_length=200)
    country = CountryField()
    is_academic = models.BooleanField("academic")
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    state_note = models.TextField(blank=True, help_text="What the organizer wrote to the team when deciding.")
    created_at = models.DateTimeField(auto_now_add=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    asked_again_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, blank=True, help_text="When its owner last asked the organizer to decide anew."
    )
    members_frozen_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, blank=True
    )
    archived_at = models.DateTimeField(null=True, blank=True, help_text="Since then in no list and no choice.")

    class Meta:
        ordering = ["number", "name"]
        constraints = [
            models.UniqueConstraint(fields=["edition", "number"], name="team_number_once_in_edition"),
            models.UniqueConstraint("edition", models.functions.Lower("name"), name="team_name_once_in_edition"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("teams:detail", args=[self.pk])

    @property
    def label(self) -> str:
        """``T11``; empty before the team was approved."""
        return f"T{self.number:02d}" if self.number else ""


class Membership(models.Model):
    """A person in a team. One owner at a time, who invites, removes and hands over."""

    class Role(models.TextChoices):
        OWNER = "owner"
        MEMBER = "member"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=6, choices=Role.choices, default=Role.MEMBER)
    joined_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-role", "joined_at"]  # the owner first
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="member_once_in_team"),
            models.UniqueConstraint(fields=["team"], condition=models.Q(role="owner"), name="one_owner_in_team"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"


class Invitation(models.Model):
    """A link that lets its reader join a team; only the hash of its secret is kept.

    `address` is that link where it was just made and no mail brings it: its inviter is shown it once.
    """

    address = ""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    secret_hash = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.email} to {self.team}"


class SentNotification(models.Model):
    """That a member was mailed by a job: written before the mail leaves, so that no attempt mails anybody twice.

    `sent_at` stays empty where the process ended in between; whether that mail left is not known.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="sent_notifications")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "teams_sentnotice"
        constraints = [models.UniqueConstraint(fields=["job", "user"], name="notice_once_to_person")]

    def __str__(self) -> str:
        return f"{self.job} to {self.user}"


class DataAcceptance(models.Model):
    """That a person accepted the terms of an edition's data: which words, when, and for which team.

    Organizers accept for no team. Other words have to be accepted again; what was accepted before stays.
    """

    edition = models.ForeignKey(Edition, on_delete=models.CASCADE, related_name="data_acceptances")
    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE, related_name="data_acceptances")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    text = models.TextField()
    accepted_at = models.DateTimeField()

    class Meta:
        ordering = ["-accepted_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.user} for {self.team or self.edition}"
