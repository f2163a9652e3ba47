"""Pages on which organizers change what a leaderboard computes and ranks by, and the recipe that it follows."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from evaluation.protocols.ranking.policy import policy_in_words
from portal.accounts.access import member_page, open_read
from portal.challenges.models import Edition
from portal.challenges.selectors import export_recipe, managed_edition_for
from portal.core.clock import read_clock
from portal.core.downloads import as_download
from portal.core.fields import posted, show_form
from portal.leaderboard import services
from portal.leaderboard.policy.forms import PolicyForm, RecipeForm
from portal.leaderboard.selectors import shown_edition_for
from portal.leaderboard.views import act_and_show


@member_page
def policy(request: HttpRequest, edition: str) -> HttpResponse:
    """Show what the leaderboard ranks by, as a form."""
    managed = managed_edition_for(request.user, edition)
    form = PolicyForm(posted(request), edition=managed)
    if form.is_valid():
        save = partial(services.change_policy, edition=managed, policy=form.chosen, now=read_clock(), by=request.user)
        return act_and_show(request, managed, save, f"The policy is changed.{_wait(managed)}")
    words = policy_in_words(managed.policy)
    return show_form(request, "leaderboard/policy/policy.html", form, edition=managed, words=words)


@member_page
def recipe(request: HttpRequest, edition: str) -> HttpResponse:
    """Show the whole recipe, as a form."""
    managed = managed_edition_for(request.user, edition)
    form = RecipeForm(posted(request), request.FILES or None, edition=managed)
    if form.is_valid() and form.save(now=read_clock(), by=request.user):
        said = f"The recipe is changed, and what was submitted is evaluated again.{_wait(managed)}"
        messages.success(request, said)
        return redirect("leaderboard:detail", managed.name)
    return show_form(request, "leaderboard/policy/recipe.html", form, edition=managed)


@open_read
def recipe_file(request: HttpRequest, edition: str) -> HttpResponse:
    """Send the recipe that the leaderboard follows, as a TOML file."""
    shown = shown_edition_for(request.user, edition).as_published()
    response = HttpResponse(export_recipe(shown), content_type="application/toml; charset=utf-8")
    return as_download(response, f"{edition}-leaderboard.toml")


def _wait(edition: Edition) -> str:
    return " The published leaderboard stays as it is until you publish it again." if edition.published_at else ""
