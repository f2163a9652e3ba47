"""The pages by which people stop and delete what they answered: from any page of their session, or by a code."""

from __future__ import annotations

from typing import Any

from allauth.core.internal import ratelimit
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from common.errors import NotPossible
from listening import texts
from listening.app.models import Session, Study
from listening.app.sessions.forms import WithdrawalForm
from listening.app.sessions.pages import choose_language, list_languages, session_frame
from listening.app.sessions.services import study_for_withdrawal
from listening.app.sessions.views import session_view, visitor_address
from listening.app.studies.interface_words import speak
from listening.app.studies.pages import ask_to_forget
from listening.app.studies.views import study_page
from listening.app.withdrawal import services
from portal.core.clock import read_clock

# Wrong codes from one address; a code has 31^16 values, so this only spares the server.
GUESSES: dict[str, Any] = {"app": "listening", "action": "withdraw", "config": {"withdraw": "20/h/key"}}


@require_http_methods(["GET", "HEAD", "POST"])
@session_view
def withdraw(request: HttpRequest, session: Session) -> HttpResponse:
    """Ask once more, then delete."""
    if request.method == "POST" and session.state != Session.State.WITHDRAWN:
        services.withdraw(session, read_clock())
    if session.state == Session.State.WITHDRAWN:
        return redirect(session)
    shown = session_frame(session) | {"steps_total": 0, "is_withdrawing": True}
    return render(request, "listening/sessions/withdraw.html", shown)


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def withdraw_by_code(request: HttpRequest) -> HttpResponse:
    """Delete the answers of a session that has ended, by the code that was shown at its end.

    With the key of a study's link (``?study=…``) it is said in the languages and words of that study.
    """
    study = study_for_withdrawal(request.GET.get("study", ""))
    offered = study.languages if study else texts.LANGUAGES
    language = choose_language(request, offered)
    with speak(study, language):
        form = WithdrawalForm(request.POST if request.method == "POST" else None)
        shown = {"languages": list_languages(offered, language, request.GET), "form": form}
        status = 422 if form.is_bound else 200
        if form.is_valid():
            guesses = ratelimit.consume(request, **GUESSES, key=visitor_address(request))
            if guesses is None:
                status = 429
                shown |= {"is_too_often": True}
            else:
                found = services.withdraw_by_code(form.cleaned_data["code"], read_clock())
                status = 200 if found else 422
                shown |= {"is_deleted": bool(found), "is_unknown": not found}
                if found:
                    guesses.rollback()
        response = render(request, "listening/sessions/withdraw_by_code.html", shown, status=status)
    patch_cache_control(response, private=True, no_store=True)
    return response


@study_page
def forget(request: HttpRequest, study: Study) -> HttpResponse:
    """Ask first; a post deletes what leads to the evaluators of a closed study."""
    if request.method != "POST":
        return render(request, "listening/studies/forget.html", ask_to_forget(study))
    try:
        services.forget_people(study=study, by=request.user)
        messages.success(request, "Personal data is deleted; answers and results stay.")
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect(study)
