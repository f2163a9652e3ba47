"""Pages on which organizers change the policy of a leaderboard: a draft, what it would change, and making it live."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from portal.accounts.access import member_page
from portal.challenges.selectors import managed_edition_for
from portal.core.fields import posted, show_form
from portal.leaderboard import services
from portal.leaderboard.policy import pages
from portal.leaderboard.policy.forms import PolicyForm
from portal.leaderboard.views import act_and_show


@member_page
def policy(request: HttpRequest, edition: str) -> HttpResponse:
    """The draft policy as a form, and what it would change."""
    managed = managed_edition_for(request.user, edition)
    form = PolicyForm(posted(request), edition=managed, shown=pages.edited_policy(managed))
    if form.is_valid():
        saved = services.save_draft_policy(edition=managed, policy=form.chosen, by=request.user)
        said = "The draft is saved; see below what it would change." if saved.draft_policy else "This policy is live."
        messages.success(request, said)
        return redirect("leaderboard:policy", managed.name)
    return show_form(request, "leaderboard/policy/policy.html", form, **pages.policy_page(managed))


@member_page
def live(request: HttpRequest, edition: str) -> HttpResponse:
    """Ask, then make the draft live."""
    managed = managed_edition_for(request.user, edition)
    if request.method == "POST":
        action = partial(services.make_policy_live, edition=managed, by=request.user)
        return act_and_show(request, managed, action, "The policy is live.")
    return render(request, "leaderboard/policy/live.html", pages.policy_page(managed))


@member_page
@require_POST
def discard(request: HttpRequest, edition: str) -> HttpResponse:
    managed = managed_edition_for(request.user, edition)
    services.discard_draft_policy(edition=managed, by=request.user)
    messages.success(request, "The draft was discarded.")
    return redirect("leaderboard:policy", managed.name)
