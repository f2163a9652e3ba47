"""The form that lets a person in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm


class LogInForm(AuthenticationForm):
    """Django's own, in the words of this portal."""

    error_messages = {
        "invalid_login": "No account has this e-mail address with this password. Passwords tell capitals apart.",
        "inactive": "This account is closed. Ask the organizer of your challenge.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].error_messages["required"] = "Enter the e-mail address of your account."
        self.fields["password"].error_messages["required"] = "Enter your password."
