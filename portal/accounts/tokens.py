"""Access tokens, by which programs act for a person: made, kept, recognised and ended.

The secret of a token is `vpp_` and 40 characters of the URL alphabet (240 random bits). Only its SHA-256 is kept, which
needs no salt and no slow hash at that length; it is found by that hash, so a comparison tells an attacker nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from portal.accounts.models import AccessToken, User
from portal.accounts.rules import is_good
from portal.core import audit

PREFIX = "vpp_"
RANDOM_BYTES = 30  # 40 characters
START_LENGTH = 10
USE_NOTED_EVERY = timedelta(minutes=1)


@transaction.atomic
def create_token(
    *, user: User, name: str, scopes: Sequence[str], expires_at: datetime | None
) -> tuple[AccessToken, str]:
    """Return a new token and its secret, which is shown only now and cannot be read again."""
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
    """Return the token of a secret with its user, if it is good now; its use is noted, at most once a minute."""
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
