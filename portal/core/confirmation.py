"""Pages that ask before something is done, without script.

`ask_first` makes one for a view that also says why something is not possible. `AskFirst` makes one for each form with
two hidden fields ``ask``: the question, and the label of its button. With script a dialog asks instead and removes the
two fields (`static/portal/app.js`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

ASK, TOKEN = "ask", "csrfmiddlewaretoken"
FORM = "application/x-www-form-urlencoded"


class AskFirst:
    """Shows the question of a form as a page, whose form sends the same without it. It follows the check of CSRF."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        """Return the question; None for all that asks none."""
        asked = request.POST.getlist(ASK) if request.method == "POST" and request.content_type == FORM else []
        if len(asked) != 2:
            return None
        came_from = request.headers.get("Referer", "")
        is_here = url_has_allowed_host_and_scheme(came_from, {request.get_host()}, require_https=request.is_secure())
        sent = [(name, value) for name, values in request.POST.lists() if name not in (ASK, TOKEN) for value in values]
        page = {"question": asked[0], "action": asked[1], "kind": "danger", "sent": sent}
        return render(request, "confirm.html", page | {"back": came_from if is_here else "/"})


def ask_first(
    request: HttpRequest,
    template: str,
    question: str,
    *,
    action: str,
    trail: Sequence[tuple[str, str]],
    problem: str = "",
    **context: Any,
) -> HttpResponse:
    """Return the page that asks before something is done, or says why it cannot be; its button posts to the same
    address.

    Args:
        template: extends ``confirm.html`` and says what comes of it, by `context`.
        trail: names and addresses of the pages above; “Go back” leads to the last one.
    """
    context |= {"question": question, "problems": [problem] if problem else [], "action": action}
    context |= {"kind": "danger", "trail": trail, "back": trail[-1][1]}
    return render(request, template, context)
