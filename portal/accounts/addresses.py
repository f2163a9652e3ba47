"""Whose e-mail address is whose, and who has shown that theirs is their own.

Whoever signs up gets a row of `EmailAddress` with their account and must follow the link that is mailed there. An
account without such a row was made by an operator, a command or the demo: whoever made it vouches for its address.
"""

from __future__ import annotations

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from django.db import transaction
from django.http import HttpRequest

from portal.accounts.models import User


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
