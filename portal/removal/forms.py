"""The forms by which a thing is renamed and deleted."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator, validate_slug

from portal.core.fields import NAME_LETTERS, LineField
from portal.core.removal import RemovableKind

LONGEST = {"title": 120, "name": 60, "licence": 200, "link": 400}
HELP = {
    "name": "Small letters, digits, hyphens and underscores. Part of addresses: links to the present one stop working.",
    "licence": "Such as CC BY 4.0. Teams that download the speech accept it; after a change they accept it again.",
    "link": "Where it was published. Teams see it with the licence.",
}
KEPT = " Its data sets keep the names that teams see."
OPTIONAL = {"licence", "link"}
VALIDATORS = {"name": validate_slug, "link": URLValidator(["http", "https"])}
INVALID = {
    "name": f"Use {NAME_LETTERS} only.",
    "link": "Give an address that begins with https:// or http://.",
}


class RenameForm(forms.Form):
    """Other names of a thing, as its kind has them."""

    def __init__(self, data: Any, *, kind: RemovableKind, thing: Any) -> None:
        super().__init__(data, initial={name: getattr(thing, name) for name in kind.names(thing)})
        for name, label in kind.names(thing).items():
            self.fields[name] = LineField(
                label=label,
                max_length=LONGEST[name],
                required=name not in OPTIONAL,
                validators=[VALIDATORS[name]] if name in VALIDATORS else [],
                help_text=HELP.get(name, "") + (KEPT if (kind.name, name) == ("corpora", "name") else ""),
                error_messages={
                    "required": f"Give a {label.lower()}.",
                    "invalid": INVALID.get(name, ""),
                },
            )


class DeletionForm(forms.Form):
    """The name of a thing typed once more, where much goes with it."""

    typed = forms.CharField(
        label="Type its name to delete it", error_messages={"required": "Type the name exactly as shown above."}
    )

    def __init__(self, data: Any, *, thing: Any) -> None:
        super().__init__(data)
        self.wanted = str(thing)
        self.fields["typed"].help_text = self.wanted

    def clean_typed(self) -> str:
        typed = " ".join(self.cleaned_data["typed"].split())
        if typed != " ".join(self.wanted.split()):
            raise ValidationError(f"Expected {self.wanted}, found {typed}.")
        return typed
