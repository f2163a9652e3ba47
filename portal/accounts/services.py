"""What people change in their own account: name, notifications, and whose e-mail address is whose.

Address, password and second factor are changed by django-allauth. A person who signs up gets a row of `EmailAddress`
with their account and must follow the link that is mailed there, unless they come by the link of an invitation, which
vouches for their address; an operator can confirm it, too. The audit log keeps who did.
An account without such a row was made by an operator, a command or the demo: its maker vouches for its address.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from allauth.account.utils import get_next_redirect_url
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest

from portal.accounts.models import User
from portal.accounts.rules import DECLINABLE, Voucher
from portal.accounts.selectors import MAIL
from portal.core import audit
from portal.core.mail import sends_mail


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
    """Return whether another account goes by this address, verified or not."""
    others = User.objects.exclude(pk=user.pk)
    return others.filter(email__iexact=email).exists()


def invited_by(request: HttpRequest) -> Voucher | None:
    """Return the invitation whose link led here, if any.

    Sign-up and log-in hold the link as the page to go on to. It is secret, so whoever comes by it got it.
    """
    link = get_next_redirect_url(request)
    return None if link is None else get_adapter().find_voucher(link)


def voucher_for(request: HttpRequest, email: str) -> Voucher | None:
    """Return the invitation whose link led here, where it vouches for this address."""
    found = invited_by(request)
    return found if found and found.covers(email) else None


def confirm_invited(request: HttpRequest, user: User) -> None:
    """Confirm the address of somebody who logs in by the link of an invitation to it."""
    address = EmailAddress.objects.filter(user=user, email__iexact=user.email, verified=False).first()
    if address is not None and (voucher := voucher_for(request, user.email)):
        get_adapter().confirm_email(request, address)
        record_voucher(user, voucher)


def record_voucher(user: User, voucher: Voucher) -> None:
    """Keep who vouched for an address, and whether the link went there by mail."""
    facts = {"address": user.email, "shown_by": MAIL if sends_mail() else voucher.kind, "key": voucher.key}
    audit.record("account.address-confirmed", user, actor=voucher.by, **facts)


@transaction.atomic
def note_link_request(email: str, now: datetime, user: User | None = None) -> None:
    """Keep that somebody waits for a link that could not be mailed; the page “People” shows it to operators.

    Args:
        email: where the mail goes, which is the address of `user` or that which is to replace it.
    """
    whose = Q(email__iexact=email) if user is None else Q(pk=user.pk)
    User.objects.filter(whose, is_active=True).update(waits_for_link_since=now)


def forget_link_request(user: User) -> None:
    """Drop it: the person is in, or needs none."""
    User.objects.filter(pk=user.pk, waits_for_link_since__isnull=False).update(waits_for_link_since=None)
