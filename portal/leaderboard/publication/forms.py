"""The form of the time as of which a leaderboard is frozen."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from django import forms

from portal.challenges.models import Edition
from portal.leaderboard.services import FUTURE, freeze_leaderboard


class FreezeForm(forms.Form):
    """As of when a leaderboard is frozen, by `now`; empty for now. It is confirmed after a look at the outcome."""

    at = forms.DateTimeField(
        label="As of (UTC)",
        required=False,
        help_text="Empty: as of now.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    confirmed = forms.BooleanField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now = now
        self.fields["at"].widget.attrs["max"] = f"{now:%Y-%m-%dT%H:%M}"

    def clean_at(self) -> datetime | None:
        """Return a time that is still to come is an error here, where it was typed."""
        at = cast("datetime | None", self.cleaned_data["at"])
        if at is not None and at > self.now:
            raise forms.ValidationError(f"{FUTURE} It is {self.now:%Y-%m-%d %H:%M} UTC.")
        return at

    @property
    def chosen(self) -> datetime:
        """Return the time of a valid form."""
        return cast("datetime", self.cleaned_data["at"] or self.now)

    def freeze(self, *, edition: Edition, by: Any) -> Edition:
        """Freeze the leaderboard as a valid form says."""
        return freeze_leaderboard(edition=edition, at=self.chosen, now=self.now, by=by)
