"""What the steps of a new challenge show: its speech, the shipped recipes, then all that follows from them."""

from __future__ import annotations

from typing import Any

from portal.corpora.selectors import find_import
from portal.editions.forms import shipped_recipes
from portal.editions.new_challenge.forms import ChallengeForm, StartForm, rule_choices
from portal.editions.pages import make_rules


def start_page(user: Any, form: StartForm) -> dict[str, Any]:
    """What is offered next to the first step: the import that brings the speech, and the shipped recipes as files."""
    wanted = str(form["corpus"].value() or "")
    known = form.fields["corpus"].queryset  # type: ignore[attr-defined]
    job = None if known.filter(name=wanted).exists() else find_import(wanted, user)
    return {"recipes": shipped_recipes(), "import_job": job, "has_corpora": known.exists()}


def new_page(form: ChallengeForm) -> dict[str, Any]:
    """The steps after the first one, with the rules of the recipe as it is now."""
    recipe = form.shown_recipe() if form.has_recipe else None
    track = str(form["track"].value() or "") if "track" in form.fields else ""
    rules = None
    if recipe is not None and (track in recipe.tracks or (not track and len(recipe.tracks) == 1)):
        rules = make_rules(recipe, track)
    return {"form": form, "rules": rules, "sections": list(form.sections()), "chosen_rules": dict(rule_choices())}
