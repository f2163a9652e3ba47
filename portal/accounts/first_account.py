"""The first account: a portal without an operator prints one address when it starts, where it is made.

The secret of that address is 32 characters of the URL alphabet (192 random bits). Only its SHA-256 is kept, in the one
row of `FirstAccountToken`. It serves once, ends with the next one, and opens nothing once there is an operator.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from django.core.cache import cache
from django.db import transaction
from django.urls import reverse

from portal.accounts.models import FirstAccountToken, User
from portal.accounts.selectors import operators
from portal.accounts.services import vouch_for_address
from portal.core import audit
from portal.core.mail import absolute

RANDOM_BYTES = 24
REMEMBERED_S = 600
_USED = "first-account-"
ROLES = {"is_organizer": True, "is_staff": True, "is_superuser": True}


@transaction.atomic
def renew_first_address() -> str:
    """Return a new address for the first account, which ends the one before; "" where the portal has an operator."""
    FirstAccountToken.objects.all().delete()
    if operators().exists():
        return ""
    secret = secrets.token_urlsafe(RANDOM_BYTES)
    FirstAccountToken.objects.create(secret_hash=_hash(secret))
    return absolute(reverse("first-account", args=[secret]))


def is_first_secret(secret: str) -> bool:
    """Return whether the first account can be made with this secret."""
    token = FirstAccountToken.objects.first()
    return token is not None and _opens(token, secret) and not operators().exists()


@transaction.atomic
def make_first_account(*, secret: str, email: str, name: str, password: str) -> User:
    """Return the account of the person who is operator and organizer; the address ends.

    Raises:
        LookupError: the secret opens nothing, or not any more.
    """
    _use_up(secret)
    user = User.objects.create_user(email, password, name=name, **ROLES)
    vouch_for_address(user)
    audit.record("account.first-made", user, actor=user)
    return user


@transaction.atomic
def take_first_account(*, secret: str, user: User) -> User:
    """Make a person who has an account already the operator and organizer; the address ends.

    Raises:
        LookupError: the secret opens nothing, or not any more.
    """
    _use_up(secret)
    for field, value in ROLES.items():
        setattr(user, field, value)
    user.save(update_fields=list(ROLES))
    audit.record("account.first-made", user, actor=user)
    return user


def _use_up(secret: str) -> None:
    """Of two who come at once with the same secret the second waits here and finds nothing."""
    token = FirstAccountToken.objects.select_for_update().first()
    if token is None or not _opens(token, secret) or operators().exists():
        raise LookupError("This address is not valid any more.")
    token.delete()
    cache.set(_USED + _hash(secret), True, REMEMBERED_S)


def was_just_used(secret: str) -> bool:
    """Return whether the first account was made with this secret in the last minutes, such as by the first of two
    clicks."""
    return bool(cache.get(_USED + _hash(secret)))


def _opens(token: Any, secret: str) -> bool:
    return secrets.compare_digest(token.secret_hash, _hash(secret))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
