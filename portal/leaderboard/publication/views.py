"""Pages on which organizers publish a leaderboard, take it back, and freeze it as of a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from portal.accounts.access import member_page
from portal.challenges.models import Edition
from portal.challenges.selectors import managed_edition_for
from portal.core.clock import read_clock
from portal.core.fields import posted, show_form
from portal.core.mail import if_mailed
from portal.leaderboard import services
from portal.leaderboard.publication import pages
from portal.leaderboard.publication.forms import FreezeForm
from portal.leaderboard.views import act_and_show


@member_page
def publish(request: HttpRequest, edition: str) -> HttpResponse:
    """Ask, then publish, also once more; of a published leaderboard, ask whether to take it back."""
    managed = managed_edition_for(request.user, edition)
    if request.method == "POST":
        publish_it = partial(services.publish_leaderboard, edition=managed, now=read_clock(), by=request.user)
        action = partial(publish_it, releases="releases" in request.POST)
        return act_and_show(
            request, managed, action, f"The leaderboard is published{if_mailed(', and its teams are notified')}."
        )
    return render(request, "leaderboard/publication/publish.html", pages.publish_page(managed))


@member_page
def publish_again(request: HttpRequest, edition: str) -> HttpResponse:
    """Show the leaderboard by the changed recipe, before everybody sees it."""
    managed = managed_edition_for(request.user, edition)
    return render(request, "leaderboard/publication/again.html", pages.again_page(managed, request.GET.dict()))


@member_page
def freeze(request: HttpRequest, edition: str) -> HttpResponse:
    """Ask as of when, show what the leaderboard would hold, then freeze."""
    managed = managed_edition_for(request.user, edition)
    form = FreezeForm(posted(request), now=read_clock())
    is_chosen = form.is_valid()
    if is_chosen and form.cleaned_data["confirmed"]:
        return act_and_show(
            request, managed, partial(form.freeze, edition=managed, by=request.user), "The leaderboard is frozen."
        )
    page = pages.freeze_page(managed, form.chosen if is_chosen else None)
    return show_form(request, "leaderboard/publication/freeze.html", form, **page)


def _taking_back(service: Callable[..., Edition], success: str) -> Callable[..., HttpResponse]:
    @member_page
    @require_POST
    def take_back(request: HttpRequest, edition: str) -> HttpResponse:
        managed = managed_edition_for(request.user, edition)
        return act_and_show(request, managed, partial(service, edition=managed, by=request.user), success)

    return take_back


unpublish = _taking_back(services.unpublish_leaderboard, "The leaderboard is hidden from all but its organizers.")
unfreeze = _taking_back(services.unfreeze_leaderboard, "The leaderboard follows every evaluation again.")
