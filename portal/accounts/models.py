"""People with an account, and the tokens by which their programs act for them. Evaluators need no account at all."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.db import models
from django.db.models.functions import Lower


class UserManager(DjangoUserManager["User"]):
    @classmethod
    def normalize_email(cls, email: str | None) -> str:
        """Addresses are kept in lower case, in which they are looked up."""
        return super().normalize_email(email).lower()

    def _create_user_object(self, username: str | None, email: str | None, password: str | None, **fields: Any) -> User:
        user = self.model(email=self.normalize_email(email or username or ""), **fields)
        user.set_password(password)
        return user

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:  # type: ignore[override]
        return super().create_user("", email, password, **fields)

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:  # type: ignore[override]
        return super().create_superuser("", email, password, **fields)

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email__iexact=username)


class User(AbstractUser):
    """An organizer (`is_organizer`), the operator (`is_staff`), or a member of a team."""

    username = None  # type: ignore[assignment]
    first_name = None  # type: ignore[assignment]
    last_name = None  # type: ignore[assignment]
    email = models.EmailField("e-mail address", unique=True)
    name = models.CharField(max_length=120, blank=True)
    is_organizer = models.BooleanField(
        default=False, help_text="May import corpora, run baselines and create editions."
    )
    unwanted_notifications = models.JSONField(
        default=list, blank=True, db_column="unwanted_notices", help_text="Kinds of mail that this person declined."
    )

    waits_for_link_since: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, blank=True, help_text="Since when this person waits for a link that could not be mailed."
    )

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_any_case")]

    def __str__(self) -> str:
        return self.name or self.email

    def get_full_name(self) -> str:
        return str(self)

    def get_short_name(self) -> str:
        return str(self)


class AccessToken(models.Model):
    """Lets a program act for its owner within some scopes; only the hash of its secret is kept.

    `start` is the beginning of the secret, by which its owner tells one from the other.
    """

    class Scope(models.TextChoices):
        READ = "read", "see what you may see"
        SUBMIT = "submit", "register a team, and submit archives for your teams or withdraw these submissions"
        ORGANIZE = "organize", "manage your editions and listening tests, and who belongs to your teams"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="access_tokens")
    name = models.CharField(max_length=80)
    start = models.CharField(max_length=12)
    secret_hash = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.start}…)"


class FirstAccountToken(models.Model):
    """The one address at which the first account can be made; only the hash of its secret is kept."""

    secret_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"made {self.created_at:%Y-%m-%d %H:%M}"
