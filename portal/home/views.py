"""The home page: of a visitor, of a member, of the operator."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.accounts.access import open_read
from portal.home.pages import home_page, visitor_page


@open_read
def home(request: HttpRequest) -> HttpResponse:
    """Show what matters to this visitor: an organizer's work, the operator's queues, or what the portal is."""
    if not request.user.is_authenticated:
        return render(request, "home/visitor.html", visitor_page(request.user))
    return render(request, "home/member.html", home_page(request.user))
