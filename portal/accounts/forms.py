"""The forms of accounts: those of the log-in library in the words of this portal, and our own."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

from allauth.account import forms as account
from allauth.account.adapter import get_adapter
from allauth.account.utils import passthrough_next_redirect_url
from allauth.core import context
from allauth.mfa.base import forms as second_factor
from allauth.mfa.totp import forms as app_codes
from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import reverse

from common.errors import NotPossible
from portal.accounts.models import AccessToken, User
from portal.accounts.people import invite_person
from portal.accounts.rules import DECLINABLE, TO_ORGANIZERS
from portal.accounts.services import invited_by, vouch_for_address, voucher_for
from portal.core.fields import LineField
from portal.core.mail import sends_mail

PASSWORD_RULE = "At least 8 characters; not one that many people use, not too similar to your name or address."  # noqa: S105
NAME_LENGTH = 120
EMAIL_LENGTH = 254


class Worded:
    """Labels, help and complaints in the words of this portal; no placeholders, for they vanish when one types."""

    labels: dict[str, str] = {
        "name": "Name",
        "login": "E-mail address",
        "email": "E-mail address",
        "password": "Password",
        "oldpassword": "Current password",
        "password1": "New password",
        "password2": "New password again",
        "code": "Code",
    }
    helps: dict[str, str] = {"password1": PASSWORD_RULE}
    mailed: dict[str, str] = {}  # in place of `helps` where the portal sends mail
    missing: dict[str, str] = {
        "name": "Enter your name.",
        "login": "Enter the e-mail address of your account.",
        "email": "Enter an e-mail address.",
        "password": "Enter your password.",
        "oldpassword": "Enter your current password.",
        "password1": "Choose a password.",
        "password2": "Enter the new password a second time.",
        "code": "Enter a code.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():  # type: ignore[attr-defined]
            field.widget.attrs.pop("placeholder", None)
            field.label = self.labels.get(name, field.label)
            field.help_text = (sends_mail() and self.mailed.get(name)) or self.helps.get(name, "")
            field.error_messages["required"] = self.missing.get(name, field.error_messages["required"])
            if name == "code":
                field.widget.attrs["inputmode"] = "numeric"


def _check_password(form: Any) -> None:
    """Add what is wrong with the password of a new account, of its name and address among it."""
    given = form.cleaned_data
    if password := given.get("password1"):
        try:
            get_adapter().clean_password(password, user=User(name=given.get("name", ""), email=given.get("email", "")))
        except forms.ValidationError as error:
            form.add_error("password1", error)


class LogInForm(Worded, account.LoginForm):
    """E-mail address and password."""


class SignUpForm(Worded, account.SignupForm):
    """A new account."""

    labels = Worded.labels | {"password1": "Password"}
    helps = Worded.helps | {
        "name": "As the members of your team and the organizer will see it.",
        "email": "It is your log-in name.",
    }
    mailed = {"email": "A link is mailed there; it also is your log-in name."}
    name = LineField(max_length=NAME_LENGTH, widget=forms.TextInput(attrs={"autocomplete": "name"}))
    field_order = ("name", "email", "password1")

    def clean_email(self) -> Any:
        """Return the address; that of the invitation whose link led here, where there is one."""
        email = super().clean_email()
        invited = invited_by(context.request)
        if invited and not invited.covers(email):
            raise forms.ValidationError(
                f"The invitation is for {invited.email}. Sign up with that address, or ask the team to invite this one."
            )
        return email

    def clean(self) -> Any:
        cleaned = super().clean()  # the library knows no names
        if not self.has_error("password1"):
            _check_password(self)
        return cleaned

    def try_save(self, request: HttpRequest) -> Any:
        if self.account_already_exists:  # then the answer shall take as long as a new account does
            User().set_password(self.cleaned_data["password1"])
            if voucher_for(request, self.cleaned_data["email"]):
                messages.info(request, "This address has an account already. Log in with it.")
                return None, redirect(passthrough_next_redirect_url(request, reverse("account_login"), "next"))
        return super().try_save(request)

    @transaction.atomic
    def save(self, request: HttpRequest) -> Any:
        """Return the account together with its address that is yet to be confirmed, or neither."""
        return super().save(request)


class FirstAccountForm(Worded, forms.Form):
    """The account of the person who is operator and organizer."""

    labels = Worded.labels | {"password1": "Password"}
    helps = {
        "name": "As teams and other organizers will see it.",
        "email": "It is your log-in name.",
        "password1": PASSWORD_RULE,
    }
    name = LineField(max_length=NAME_LENGTH, widget=forms.TextInput(attrs={"autocomplete": "name"}))
    email = forms.EmailField(max_length=EMAIL_LENGTH, widget=forms.EmailInput(attrs={"autocomplete": "email"}))
    password1 = forms.CharField(strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}))

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        if User.objects.filter(email__iexact=email).exists():
            raise forms.ValidationError("This address has an account: log in with it, then open this page again.")
        return email

    def clean(self) -> None:
        _check_password(self)

    def account_fields(self) -> dict[str, str]:
        """Return the values of the account of a valid form."""
        kept = self.cleaned_data
        return {"name": kept["name"], "email": kept["email"], "password": kept["password1"]}


class ChangeAddressForm(Worded, account.AddEmailForm):
    labels = Worded.labels | {"email": "New e-mail address"}
    helps = {"email": "The operator of this portal confirms it. Until then, the current address stays."}
    mailed = {"email": "A link is mailed there. Until you have opened it, the current address stays."}


class ChangePasswordForm(Worded, account.ChangePasswordForm):
    pass


class SetPasswordForm(Worded, account.SetPasswordForm):
    pass


class NewPasswordForm(Worded, account.ResetPasswordKeyForm):
    pass


class ForgottenPasswordForm(Worded, account.ResetPasswordForm):
    """Where to mail the link by which a new password is chosen."""

    def clean_email(self) -> str:
        email = super().clean_email()
        for user in self.users:
            vouch_for_address(user)
        return email


class ConfirmPasswordForm(Worded, account.ReauthenticateForm):
    pass


class CodeForm(Worded, second_factor.AuthenticateForm):
    helps = {"code": "Six digits of your app, or one of your recovery codes."}


class ConfirmCodeForm(Worded, second_factor.ReauthenticateForm):
    helps = CodeForm.helps


class FirstCodeForm(Worded, app_codes.ActivateTOTPForm):
    labels = Worded.labels | {"code": "Code that the app shows"}


class NameForm(forms.Form):
    name = LineField(
        label="Name",
        max_length=NAME_LENGTH,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
        error_messages={"required": "Enter your name.", "max_length": f"Use at most {NAME_LENGTH} characters."},
    )


class RolesForm(forms.Form):
    """What a person may do besides belonging to teams."""

    roles = forms.MultipleChoiceField(
        label="Roles",
        help_text="Without a role a person is a member: they register teams and join those that invite them.",
        choices=(
            ("organizer", "Organizer: imports corpora, runs challenges and listening tests"),
            ("operator", "Operator: runs the portal and manages its people and jobs"),
        ),
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )

    def chosen_roles(self) -> dict[str, bool]:
        """Return the roles of a valid form, as `portal.accounts.people` takes them."""
        roles = self.cleaned_data["roles"]
        return {"is_organizer": "organizer" in roles, "is_operator": "operator" in roles}


class InvitePersonForm(RolesForm):
    """Somebody who gets an account."""

    name = LineField(label="Name", max_length=NAME_LENGTH, required=False, help_text="They can change it.")
    email = forms.EmailField(
        label="E-mail address",
        max_length=EMAIL_LENGTH,
        error_messages={"required": "Enter an e-mail address."},
    )
    field_order = ("email", "name", "roles")

    def invite(self, *, by: User) -> User | None:
        """Return the invited person of a valid form; None where that is not possible, which the form then says."""
        given = self.cleaned_data
        try:
            return invite_person(by=by, email=given["email"], name=given["name"], **self.chosen_roles())
        except NotPossible as reason:
            self.add_error("email", str(reason))
            return None


class TokenForm(forms.Form):
    """A new access token: what it is for, what it may do and for how long."""

    name = LineField(
        label="Name",
        help_text="What the token is for, such as “vp on my laptop”.",
        max_length=80,
        error_messages={"required": "Name the token."},
    )
    scopes = forms.MultipleChoiceField(
        label="The program may",
        choices=AccessToken.Scope.choices,
        initial=[AccessToken.Scope.READ, AccessToken.Scope.SUBMIT],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one thing that the token may do."},
    )
    days = forms.TypedChoiceField(
        label="Valid for",
        choices=(("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("0", "until you revoke it")),
        initial="90",
        coerce=int,
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = dict(AccessToken.Scope.choices)
        if not (user.is_organizer or user.organized_editions.exists()):  # who organises nothing may still own a team
            del offered[AccessToken.Scope.ORGANIZE]
            if user.memberships.filter(role="owner").exists():
                offered[AccessToken.Scope.ORGANIZE] = "manage who belongs to your teams"
        choices = [(scope, f"{scope}: {words}") for scope, words in offered.items()]
        cast("forms.MultipleChoiceField", self.fields["scopes"]).choices = choices

    def expires_at(self, now: datetime) -> datetime | None:
        """Return when the token of a valid form ends."""
        days = self.cleaned_data["days"]
        return now + timedelta(days=days) if days else None


class NotificationsForm(forms.Form):
    """Which mails about the work of one's teams and editions one wants."""

    wanted = forms.MultipleChoiceField(label="Mail me when", widget=forms.CheckboxSelectMultiple, required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        organizes = user.is_organizer or user.organized_editions.exists()
        self.offered = [kind for kind in DECLINABLE if organizes or kind not in TO_ORGANIZERS]
        field = cast("forms.MultipleChoiceField", self.fields["wanted"])
        field.choices = [(kind.value, kind.label) for kind in self.offered]
        self.initial["wanted"] = [kind.value for kind in self.offered if kind not in user.unwanted_notifications]
