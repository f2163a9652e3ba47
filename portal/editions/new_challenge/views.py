"""Pages on which a challenge is made in steps."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.accounts.access import organizer_page
from portal.core.fields import show_form
from portal.corpora.selectors import find_import
from portal.editions.forms import shipped_recipes
from portal.editions.new_challenge.forms import ChallengeForm, StartForm, rule_choices
from portal.editions.pages import make_rules
from portal.editions.views import go_on, warn_of_past_deadline


@organizer_page
def new_edition(request: HttpRequest) -> HttpResponse:
    """Show first speech and rules, then everything else; both stand in the address, so that a reload shows the
    same."""
    if request.method == "POST":
        return _take_challenge(request)
    start = StartForm(request.GET if "protocol" in request.GET else None, user=request.user, **_wish(request))
    if not start.is_valid():
        return show_form(request, "editions/new_challenge/start.html", start, **_start_page(request.user, start))
    form = ChallengeForm(user=request.user, start=start.cleaned_data)
    return render(request, "editions/new_challenge/new.html", _new_page(form))


def _take_challenge(request: HttpRequest) -> HttpResponse:
    """Make the edition, or show its rules."""
    form = ChallengeForm(request.POST, request.FILES, user=request.user)
    is_valid = form.is_valid()
    if "preview" in request.POST:
        form.forgive_title()
        return render(request, "editions/new_challenge/new.html", _new_page(form))
    made = form.save() if is_valid else None
    if made is not None:
        warn_of_past_deadline(request, made)
        return go_on(request, made, f"The challenge {made} was created.")
    return render(request, "editions/new_challenge/new.html", _new_page(form), status=422)


def _wish(request: HttpRequest) -> dict[str, str]:
    """Return the corpus that an address asks for, such as after its import."""
    return {"corpus": request.GET.get("corpus", "").replace("\0", "")}


def _start_page(user: Any, form: StartForm) -> dict[str, Any]:
    """Return what is offered next to the first step: the import that brings the speech, and the shipped recipes as
    files."""
    wanted = str(form["corpus"].value() or "")
    known = form.fields["corpus"].queryset  # type: ignore[attr-defined]
    is_known = known.filter(name=wanted).exists()
    job = None if is_known else find_import(wanted, user)
    unknown = "" if is_known or job or form.is_bound else wanted
    return {"recipes": shipped_recipes(), "import_job": job, "has_corpora": known.exists(), "unknown": unknown}


def _new_page(form: ChallengeForm) -> dict[str, Any]:
    """Return the steps after the first one, with the rules of the recipe as it is now."""
    recipe = form.shown_recipe() if form.has_recipe and not form.has_wrong_rules else None
    track = str(form["track"].value() or "") if "track" in form.fields else ""
    rules = None
    if recipe is not None and (track in recipe.tracks or (not track and len(recipe.tracks) == 1)):
        rules = make_rules(recipe, track)
    return {"form": form, "rules": rules, "chosen_rules": dict(rule_choices())}
