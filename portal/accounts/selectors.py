"""What people find in their own account."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Lower
from django.shortcuts import get_object_or_404

from portal.accounts.models import AccessToken, User
from portal.accounts.rules import is_good
from portal.core.mail import sends_mail


def operators() -> QuerySet[User]:
    """Who can log in and look after the portal; not who was invited to and has no password yet."""
    can_log_in = Q(is_active=True) & ~Q(password__startswith=UNUSABLE_PASSWORD_PREFIX)
    return User.objects.filter(can_log_in, is_staff=True)


# Whom the list of people shows on request, beside those who wait.
WAITING = "waiting"
KINDS = {
    "organizers": Q(is_organizer=True),
    "operators": Q(is_staff=True),
    "invited": Q(is_active=True, password__startswith=UNUSABLE_PASSWORD_PREFIX),
    "deactivated": Q(is_active=False),
}


def find_people(words: str = "", kind: str = "") -> QuerySet[User]:
    """Accounts by name, for an operator.

    Args:
        words: part of the name or of the address.
        kind: `WAITING` or one of `KINDS`; all people where it is another word.
    """
    named = Q(name__icontains=words) | Q(email__icontains=words)
    chosen = waiting() if kind == WAITING else User.objects.filter(KINDS.get(kind, Q()))
    return chosen.filter(named).order_by(Lower("name"), "email", "pk").prefetch_related("emailaddress_set")


def waiting() -> QuerySet[User]:
    """Who waits for a link that no mail brings: to confirm an address, or to choose a new password."""
    wait = Q(waits_for_link_since__isnull=False)
    if not sends_mail():
        wait |= Q(Exists(EmailAddress.objects.filter(user=OuterRef("pk"), verified=False)))
    return User.objects.filter(wait, is_active=True)


def unconfirmed_address_of(user: User) -> EmailAddress | None:
    """The address that this person has not confirmed: of a new account, or that which is to replace the present one."""
    return EmailAddress.objects.filter(user=user, verified=False).order_by("-pk").first()


def person_with(pk: int) -> User:
    return get_object_or_404(User, pk=pk)


def tokens_for(user: User) -> QuerySet[AccessToken]:
    """One's tokens that were not revoked, newest first."""
    return AccessToken.objects.filter(user=user, revoked_at=None).select_related("user")


def token_for(user: User, pk: int) -> AccessToken:
    return get_object_or_404(tokens_for(user), pk=pk)


def lacks_second_factor(user: Any) -> bool:
    """Whether somebody organises or operates here and logs in by a password alone."""
    if not user.is_authenticated or not (user.is_organizer or user.is_staff or user.organized_editions.exists()):
        return False
    return not Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists()


def summary_for(user: User, now: datetime) -> dict[str, Any]:
    """How an account is secured."""
    pending = EmailAddress.objects.get_new(user)
    factors = {factor.type: factor for factor in Authenticator.objects.filter(user=user)}
    app, codes = factors.get(Authenticator.Type.TOTP), factors.get(Authenticator.Type.RECOVERY_CODES)
    return {
        "pending_address": pending.email if pending else "",
        "second_factor_since": app.created_at if app else None,
        "recovery_codes_left": len(codes.wrap().get_unused_codes()) if codes else 0,
        "good_tokens": sum(is_good(token, now) for token in tokens_for(user)),
    }
