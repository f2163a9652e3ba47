"""The forms of a team: its fields as the evaluation plan asks for them, an invitation, the organizer's decision."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from django import forms
from django_countries import countries

from common.errors import NotPossible
from portal.challenges.models import Edition
from portal.core.fields import LineField
from portal.teams import rules, services
from portal.teams.models import Invitation, Team

ACADEMIC = (("yes", "academic: university or public research"), ("no", "not academic: company, person, other"))


class TeamForm(forms.Form):
    """Registration of a team, and its fields afterwards."""

    name = LineField(label="Name of the team", max_length=80, error_messages={"required": "Give the team a name."})
    contact = LineField(
        label="Contact person", max_length=120, error_messages={"required": "Name the person to ask about the team."}
    )
    contact_email = forms.EmailField(
        label="E-mail address of the contact person",
        error_messages={"required": "Give the address at which the contact person is reached."},
    )
    affiliation = LineField(
        label="Affiliation",
        help_text="University, institute or company.",
        max_length=200,
        error_messages={"required": "Name the university, institute or company."},
    )
    country = forms.ChoiceField(label="Country", error_messages={"required": "Choose the country of the affiliation."})
    is_academic = forms.ChoiceField(
        label="Kind of team",
        choices=ACADEMIC,
        widget=forms.RadioSelect,
        error_messages={"required": "Say whether the team is academic."},
    )

    def __init__(self, data: Any = None, *, edition: Edition, team: Team | None = None, contact: Any = None) -> None:
        self.edition, self.team = edition, team
        held: dict[str, Any] = {} if contact is None else {"contact": contact.name, "contact_email": contact.email}
        if team is not None:
            held = {name: getattr(team, name) for name in services.FIELDS}
            held |= {"country": str(team.country), "is_academic": "yes" if team.is_academic else "no"}
        super().__init__(data, initial=held)
        cast("forms.ChoiceField", self.fields["country"]).choices = [("", "choose"), *countries]
        if team is not None and (sentence := rules.renaming_problem(team)):
            self.fields["name"].disabled = True
            self.fields["name"].help_text = sentence

    def clean_name(self) -> str:
        """Told together with all other errors; the services ask again."""
        name: str = self.cleaned_data["name"]
        if sentence := services.naming_problem(self.edition, name, besides=self.team):
            raise forms.ValidationError(sentence)
        return name

    def clean_is_academic(self) -> bool:
        return self.cleaned_data["is_academic"] == "yes"

    def register(self, **given: Any) -> Team | None:
        """Return the new team of a valid form, by `services.register_team`; None with an error where it is not
        possible."""
        return self._or_error(services.register_team, **given, **self.cleaned_data)

    def save(self, *, by: Any) -> Team | None:
        """Return the changed team of a valid form; None with an error of the form where it is not possible."""
        return self._or_error(services.change_team, team=self.team, by=by, **self.cleaned_data)

    def _or_error(self, service: Any, **arguments: Any) -> Team | None:
        try:
            return cast("Team", service(**arguments))
        except NotPossible as reason:
            self.add_error("name" if isinstance(reason, services.NotPossible) else None, str(reason))
            return None


class InvitationForm(forms.Form):
    """The address of a person who shall join."""

    email = forms.EmailField(
        label="E-mail address",
        help_text="The person joins with an account of this address.",
        error_messages={"required": "Give the address of the person."},
    )

    def send(self, *, team: Team, by: Any, now: datetime) -> Invitation | None:
        """Return the invitation of a valid form; None with an error of the form where it is not possible."""
        try:
            return services.invite_member(team=team, email=self.cleaned_data["email"], by=by, now=now)
        except NotPossible as reason:
            self.add_error("email", str(reason))
            return None


class DecisionForm(forms.Form):
    """Whether a team takes part, and what to write to it."""

    note = forms.CharField(
        label="Note to the team",
        help_text="Its members read it on the team's page, and in the mail where the portal sends any.",
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    decision = forms.ChoiceField(choices=(("approve", "approve"), ("decline", "decline")))

    def decide(self, *, team: Team, by: Any, now: datetime) -> Team:
        """Approve or decline.

        Raises:
            NotPossible: as the services say.
        """
        service = services.approve_team if self.cleaned_data["decision"] == "approve" else services.decline_team
        return service(team=team, by=by, now=now, note=self.cleaned_data["note"].strip())
