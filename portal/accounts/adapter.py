"""How the log-in library (django-allauth) behaves and speaks in this portal; the settings say which parts are on."""

from __future__ import annotations

import logging
from smtplib import SMTPException
from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.utils import get_next_redirect_url, passthrough_next_redirect_url
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.internal import ratelimit
from allauth.mfa.adapter import DefaultMFAAdapter
from django.contrib import messages
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from portal.accounts.login_rate_limit import count_attempt, remember_browser
from portal.accounts.rules import Voucher
from portal.accounts.services import (
    belongs_to_another,
    confirm_invited,
    note_link_request,
    vouch_for_address,
    voucher_for,
)
from portal.core.clock import read_clock
from portal.core.mail import sends_mail
from portal.core.network_addresses import plain_address

# A person who signs up once more waits for a password, too.
WITH_LINK_TO_PASSWORD = {"account/email/password_reset_key", "account/email/account_already_exists"}
WITH_LINK = WITH_LINK_TO_PASSWORD | {f"account/email/email_confirmation{when}" for when in ("", "_signup")}
log = logging.getLogger(__name__)
WRONG = "No account has this e-mail address with this password. Passwords are case-sensitive."
TOO_MANY = "Too many failed attempts. Wait five minutes, then try again; a new password can be chosen at any time."


class AccountAdapter(DefaultAccountAdapter):
    """Log-in by e-mail and password."""

    error_messages: ClassVar[dict[str, Any]] = DefaultAccountAdapter.error_messages | {
        "account_inactive": "This account is closed. Ask the organizer of your challenge.",
        "duplicate_email": "This is the address of your account already.",
        "email_password_mismatch": WRONG,
        "enter_current_password": "This is not your current password.",
        "incorrect_code": "This code is wrong or has expired.",
        "incorrect_password": "This is not your password.",
        "invalid_password_reset": "This link is not valid any more.",
        "too_many_login_attempts": TOO_MANY,
        "rate_limited": TOO_MANY,
    }

    def save_user(self, request: HttpRequest, user: Any, form: Any, commit: bool = True) -> Any:
        user.name = form.cleaned_data["name"]
        return super().save_user(request, user, form, commit)

    def pre_login(self, request: HttpRequest, user: Any, **details: Any) -> HttpResponse | None:
        if user.is_active:
            vouch_for_address(user)
            confirm_invited(request, user)
        return super().pre_login(request, user, **details)

    def is_email_verified(self, request: HttpRequest, email: str) -> bool:
        """Return whether an address is shown to be one's own when its account is made: by the link of an invitation."""
        return voucher_for(request, email) is not None

    def find_voucher(self, link: str) -> Voucher | None:  # noqa: ARG002
        """Return what vouches for an address by the link that led here; teams have such links."""
        return None

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the network address by which attempts are counted."""
        return plain_address(super().get_client_ip(request))

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Slow guesses down: those of an address and those on an account, never those in the owner's own browser."""
        self._login_failed_rl_usage = ratelimit.RateLimitUsage(usage=[])
        for used in count_attempt(request, credentials.get("email", "")):
            if used is None:
                raise self.validation_error("too_many_login_attempts")
            self._login_failed_rl_usage.usage += used.usage

    def post_login(self, request: HttpRequest, user: Any, **details: Any) -> HttpResponse:
        """The browser is known from now on as one in which this account was logged in."""
        response: HttpResponse = super().post_login(request, user, **details)
        remember_browser(request, response, user)
        return response

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        """The link remembers where its reader was going, for the mail may be opened in another browser."""
        address = super().get_email_confirmation_url(request, emailconfirmation)
        wanted = get_next_redirect_url(request, REDIRECT_FIELD_NAME) if request else None
        return f"{address}?{urlencode({REDIRECT_FIELD_NAME: wanted})}" if wanted else address

    def respond_email_verification_sent(self, request: HttpRequest, user: Any) -> HttpResponse:  # noqa: ARG002
        """This page, too, remembers where its reader was going: from here they ask for another mail."""
        page = reverse("account_email_verification_sent")
        return redirect(passthrough_next_redirect_url(request, page, REDIRECT_FIELD_NAME))

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:  # noqa: ARG002
        return reverse("accounts:profile")

    def send_confirmation_mail(self, request: HttpRequest, emailconfirmation: Any, signup: bool) -> None:
        """Ask the owner of an address to confirm it; where it is another account's, tell its owner that instead."""
        address = emailconfirmation.email_address
        if belongs_to_another(address.email, address.user):
            self.send_account_already_exists_mail(address.email)
        else:
            super().send_confirmation_mail(request, emailconfirmation, signup)

    @transaction.atomic
    def confirm_email(self, request: HttpRequest, email_address: Any) -> bool:
        if belongs_to_another(email_address.email, email_address.user):
            told = {"email": email_address.email}
            self.add_message(request, messages.ERROR, "account/messages/email_confirmation_failed.txt", told)
            return False
        return super().confirm_email(request, email_address)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail that somebody waits for; where it cannot be sent a page says so, and operators see who waits."""
        if template_prefix in WITH_LINK_TO_PASSWORD and not sends_mail():
            note_link_request(email, read_clock(), context.get("user"))
        try:
            super().send_mail(template_prefix, email, context)
        except (OSError, SMTPException) as error:
            if template_prefix in WITH_LINK:
                note_link_request(email, read_clock(), context.get("user"))
            log.exception("The mail %s could not be sent.", template_prefix)
            raise ImmediateHttpResponse(render(self.request, "account/mail_failed.html", status=503)) from error

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """Tell somebody what has changed in their account; the change stands even if that mail cannot be sent."""
        try:
            super().send_notification_mail(*args, **kwargs)
        except ImmediateHttpResponse:
            log.warning("The owner of an account was not notified of a change.")


class SecondFactorAdapter(DefaultMFAAdapter):
    """The second factor: codes of an app on a phone, and printed recovery codes."""

    error_messages: ClassVar[dict[str, Any]] = DefaultMFAAdapter.error_messages | {
        "add_email_blocked": "Switch the second factor off before you change your address.",
        "incorrect_code": "This code is wrong or has expired: an app shows a new one every 30 seconds.",
        "unverified_email": "Confirm your new e-mail address first, or cancel its change.",
    }
