"""What the log-in library changes in an account enters the audit log too."""

from __future__ import annotations

from typing import Any

from allauth.account import signals as account
from allauth.mfa import signals as second_factor
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver

from portal.accounts.models import User
from portal.accounts.services import forget_link_request, record_voucher, voucher_for
from portal.core import audit


@receiver(account.user_signed_up)
def _signed_up(user: User, request: Any, **_: Any) -> None:
    audit.record("account.signed-up", user, actor=user)
    if voucher := voucher_for(request, user.email):
        record_voucher(user, voucher)


@receiver(account.password_changed)
@receiver(account.password_set)
def _changed_password(user: User, **_: Any) -> None:
    audit.record("account.password-changed", user, actor=user)


@receiver(account.password_reset)
def _reset_password(user: User, **_: Any) -> None:
    forget_link_request(user)
    audit.record("account.password-reset", user)


@receiver(account.email_confirmed)
def _confirmed_address(email_address: Any, **_: Any) -> None:
    forget_link_request(email_address.user)


@receiver(user_logged_in)
def _logged_in(user: User, **_: Any) -> None:
    forget_link_request(user)


@receiver(account.email_changed)
def _changed_address(user: User, from_email_address: Any, to_email_address: Any, **_: Any) -> None:
    before = from_email_address.email if from_email_address else ""
    audit.record("account.address-changed", user, actor=user, before=before, after=to_email_address.email)


@receiver(second_factor.authenticator_added)
def _added_factor(user: User, authenticator: Any, **_: Any) -> None:
    audit.record("account.second-factor-added", user, actor=user, kind=authenticator.type)


@receiver(second_factor.authenticator_removed)
def _removed_factor(user: User, authenticator: Any, **_: Any) -> None:
    audit.record("account.second-factor-removed", user, actor=user, kind=authenticator.type)
