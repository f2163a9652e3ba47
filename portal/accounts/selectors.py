"""What people find in their own account."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.db.models import QuerySet
from django.http import Http404

from portal.accounts.models import AccessToken, User
from portal.accounts.tokens import is_good


@dataclass(frozen=True)
class AccountSummary:
    """How an account is secured."""

    pending_address: str
    second_factor_since: datetime | None
    recovery_codes_left: int
    good_tokens: int


def tokens_for(user: User) -> QuerySet[AccessToken]:
    """One's tokens that were not revoked, newest first."""
    return AccessToken.objects.filter(user=user, revoked_at=None).select_related("user")


def token_for(user: User, pk: int) -> AccessToken:
    token = tokens_for(user).filter(pk=pk).first()
    if token is None:
        raise Http404
    return token


def summary_for(user: User, now: datetime) -> AccountSummary:
    pending = EmailAddress.objects.get_new(user)
    factors = {factor.type: factor for factor in Authenticator.objects.filter(user=user)}
    app, codes = factors.get(Authenticator.Type.TOTP), factors.get(Authenticator.Type.RECOVERY_CODES)
    return AccountSummary(
        pending_address=pending.email if pending else "",
        second_factor_since=app.created_at if app else None,
        recovery_codes_left=len(codes.wrap().get_unused_codes()) if codes else 0,
        good_tokens=sum(is_good(token, now) for token in tokens_for(user)),
    )
