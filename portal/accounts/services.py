"""What people change in their own account: name, notifications, access tokens, and whose e-mail address is whose.

Address, password and second factor are changed by django-allauth. Whoever signs up gets a row of `EmailAddress` with
their account and must follow the link that is mailed there. An account without such a row was made by an operator, a
command or the demo: whoever made it vouches for its address.

The secret of a token is `vpp_` and 40 characters of the URL alphabet (240 random bits). Only its SHA-256 is kept, which
needs no salt and no slow hash at that length; it is found by that hash, so a comparison tells an attacker nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest

from portal.accounts.models import AccessToken, User
from portal.accounts.rules import DECLINABLE, is_good
from portal.core import audit

PREFIX = "vpp_"
RANDOM_BYTES = 30  # 40 characters
START_LENGTH = 10
USE_NOTED_EVERY = timedelta(minutes=1)


@transaction.atomic
def rename(*, user: User, name: str) -> User:
    """Change the name by which others see a person."""
    before, user.name = user.name, name
    user.save(update_fields=["name"])
    audit.record("account.renamed", user, actor=user, before=before)
    return user


@transaction.atomic
def choose_notifications(*, user: User, wanted: Collection[str], offered: Collection[str]) -> User:
    """Keep which of the mails that were offered a person declined; of the others the choice stays."""
    before = set(user.unwanted_notifications) - set(offered)
    declined = before | (set(offered) - set(wanted))
    user.unwanted_notifications = [kind.value for kind in DECLINABLE if kind.value in declined]
    user.save(update_fields=["unwanted_notifications"])
    audit.record("account.notifications-chosen", user, actor=user, declined=user.unwanted_notifications)
    return user


@transaction.atomic
def create_token(
    *, user: User, name: str, scopes: Sequence[str], expires_at: datetime | None
) -> tuple[AccessToken, str]:
    """A new token and its secret, which is known to nobody afterwards but to whoever keeps it now."""
    secret = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    token = AccessToken.objects.create(
        user=user,
        name=name,
        start=secret[:START_LENGTH],
        secret_hash=_hash(secret),
        scopes=sorted(scopes),
        expires_at=expires_at,
    )
    audit.record("token.created", token, actor=user, scopes=token.scopes)
    return token, secret


@transaction.atomic
def revoke_token(*, token: AccessToken, by: User, now: datetime) -> AccessToken:
    """End a token; one that has been revoked stays as it is."""
    revoked = AccessToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now)
    token.refresh_from_db()
    if revoked:
        audit.record("token.revoked", token, actor=by)
    return token


def user_of_token(secret: str, now: datetime) -> AccessToken | None:
    """The token of a secret with its user, if it is good now; its use is noted, at most once a minute."""
    found = AccessToken.objects.select_related("user").filter(secret_hash=_hash(secret)).first()
    if found is None or not is_good(found, now):
        return None
    if found.last_used_at is None or found.last_used_at <= now - USE_NOTED_EVERY:
        unnoted = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_NOTED_EVERY)
        AccessToken.objects.filter(unnoted, pk=found.pk).update(last_used_at=now)
        found.last_used_at = now
    return found


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@transaction.atomic
def vouch_for_address(user: User) -> None:
    """Take the address of an account that was not made by signing up as its own."""
    if EmailAddress.objects.filter(user=user).exists():
        return
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)


@transaction.atomic
def set_address(user: User) -> None:
    """Take the present address of an account, which an operator has set, as its only and its own."""
    EmailAddress.objects.filter(user=user).delete()
    vouch_for_address(user)


def belongs_to_another(email: str, user: User) -> bool:
    """Whether another account goes by this address, verified or not."""
    others = User.objects.exclude(pk=user.pk)
    return others.filter(email__iexact=email).exists()


def remember_invited(request: HttpRequest, email: str) -> None:
    """Take an address as shown to be one's own in this session: the secret link came from a mail to it.

    Who then signs up with it is in at once.
    """
    get_adapter().stash_verified_email(request, email.lower())


def forget_invited(request: HttpRequest, unless: str) -> None:
    """Drop the remembered address of an invitation where somebody signs up with another one."""
    if not get_adapter().is_email_verified(request, unless):
        get_adapter().unstash_verified_email(request)
