"""What people change in their own account: name, notifications, and whose e-mail address is whose.

Address, password and second factor are changed by django-allauth. A person who signs up gets a row of `EmailAddress`
with their account and must follow the link that is mailed there. An account without such a row was made by an operator,
a command or the demo: its maker vouches for its address.
"""

from __future__ import annotations

from collections.abc import Collection

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from django.db import transaction
from django.http import HttpRequest

from portal.accounts.models import User
from portal.accounts.rules import DECLINABLE
from portal.core import audit


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
