"""Pages of evaluators but for the trials: joining, the steps, the end, another language, and withdrawal.

A session's address is its credential: no view here needs a cookie (only a bare own link remembers its session in
one), so that all of this works in a platform's frame, and no form needs a token against forgery, which would need one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.validators import slug_re
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.cache import patch_cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from rest_framework.throttling import BaseThrottle

from listening import texts
from listening.models import Session, Study
from listening.people import joining, screening, steps, withdrawals
from listening.people.platforms import ArrivalError, allow_platform, read_arrival
from listening.people.step_forms import ConsentForm, HeadphoneForm, LanguageForm, SoundForm, WithdrawalForm
from listening.people.step_pages import frame_of, language_for, languages_of, page_of, preview_page, questions_form
from listening.studies.plans import parse_platform
from listening.trials.sessions import session_for

View = Callable[..., HttpResponse]
Step = Session.Step
REMEMBERED_S = 60 * 60 * 24 * 14


def session_view(view: View) -> View:
    """A view of the session in the address, in its language, framed by its platform alone."""

    @csrf_exempt
    @wraps(view)
    def guarded(request: HttpRequest, token: str, **where: Any) -> HttpResponse:
        session = session_for(token)
        with translation.override(session.language):
            response = view(request, session, **where)
        return _finished(response, session.study, may_submit=session.state != Session.State.ACTIVE)

    return guarded


def _finished(response: HttpResponse, study: Study, *, may_submit: bool = False) -> HttpResponse:
    patch_cache_control(response, private=True, no_store=True)
    return allow_platform(response, study, may_submit=may_submit)


# Joining ------------------------------------------------------------------------------------------


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, key: str) -> HttpResponse:
    """The address that evaluators are given; it leads into the session of whoever comes."""
    study = joining.study_of_link(key)
    language = language_for(request, study.languages)
    with translation.override(language):
        response = _join(request, study, language)
    return _finished(response, study)


def _join(request: HttpRequest, study: Study, language: str) -> HttpResponse:
    plan = parse_platform(study)
    shown = {"languages": languages_of(study.languages, language, request.GET)}
    try:
        arrival = read_arrival(plan, request.GET)
        if arrival.is_preview:
            return render(request, "listening/preview.html", shown | preview_page(study, language))
        if study.platform == Study.Platform.OWN:
            known = joining.session_of(study, arrival) if arrival.person else _remembered(request, study)
            if known is not None:
                return redirect(known)
        if study.platform == Study.Platform.OWN and request.method != "POST":
            # Only a tap makes a session: programs that look at links make none.
            return render(request, "listening/welcome.html", shown | {"study_state": study.state})
        agent = request.headers.get("User-Agent", "")
        session = joining.join(study, plan, arrival, language=language, agent=agent, now=timezone.now())
    except (ArrivalError, joining.NotOpenError) as reason:
        status = 400 if isinstance(reason, ArrivalError) else 403
        return render(request, "listening/no_entry.html", shown | {"reason": str(reason)}, status=status)
    response = redirect(session)
    if not arrival.person:
        _remember(request, response, study, session)
    return response


def _cookie(study: Study) -> str:
    return f"listening-{study.pk}"


def _remembered(request: HttpRequest, study: Study) -> Session | None:
    """The newest session of whoever began one in this browser by a bare link, unless it was withdrawn."""
    token = request.COOKIES.get(_cookie(study), "")
    if not slug_re.fullmatch(token):  # what no session could be called, the database is not asked for
        return None
    mine = study.sessions.filter(participant__sessions__token=token, is_preview=False)
    return mine.exclude(state=Session.State.WITHDRAWN).order_by("-pk").first()


def _remember(request: HttpRequest, response: HttpResponse, study: Study, session: Session) -> None:
    response.set_cookie(
        _cookie(study), session.token, max_age=REMEMBERED_S, httponly=True, samesite="Lax", secure=request.is_secure()
    )


# Steps --------------------------------------------------------------------------------------------


@require_safe
@session_view
def session_page(request: HttpRequest, session: Session) -> HttpResponse:
    """Where the session stands: the same address from consent to code."""
    return render(request, *page_of(session))


@require_POST
@session_view
def language(request: HttpRequest, session: Session) -> HttpResponse:
    form = LanguageForm(request.POST)
    if form.is_valid():
        steps.change_language(session.token, form.cleaned_data["language"])
    return redirect(session)


@require_POST
@session_view
def step(request: HttpRequest, session: Session, step: str) -> HttpResponse:
    """What was filled in at a step; a step that is over or not yet reached changes nothing."""
    take = {
        "consent": _take_consent,
        "questions": _take_questions,
        "sound": _take_sound,
        "headphones": _take_headphones,
        "role-play": _take_role_play,
        "again": _take_again,
    }.get(step)
    is_here = session.state == Session.State.ACTIVE and session.step == step
    if take is None or not (is_here or step == "again"):
        return redirect(session)
    return take(request, session)


def _wrong(request: HttpRequest, session: Session, form: Form | None = None, **shown: Any) -> HttpResponse:
    return render(request, *page_of(session, form, **shown), status=422)


def _take_consent(request: HttpRequest, session: Session) -> HttpResponse:
    form = ConsentForm(request.POST)
    if not form.is_valid():
        return _wrong(request, session, form)
    try:
        steps.give_consent(session.token, timezone.now())
    except steps.NoPlaceError:
        return render(request, *page_of(session, no_place=True), status=409)
    return redirect(session)


def _take_questions(request: HttpRequest, session: Session) -> HttpResponse:
    form = questions_form(session, request.POST)
    if not form.is_valid():
        return _wrong(request, session, form)
    steps.answer_questions(session.token, form.answers, timezone.now())
    return redirect(session)


def _take_sound(request: HttpRequest, session: Session) -> HttpResponse:
    form = SoundForm(request.POST)
    if not form.is_valid():
        return _wrong(request, session, form)
    told = {name: request.POST.get(name, "") for name in steps.DEVICE_FIELDS}
    steps.answer_sound_test(session.token, form.cleaned_data["attempt"], form.given, told, timezone.now())
    return redirect(session)


def _take_headphones(request: HttpRequest, session: Session) -> HttpResponse:
    form = HeadphoneForm(request.POST)
    if not form.is_valid():
        return _wrong(request, session, form)
    kind, attempt = request.POST.get("kind", ""), form.cleaned_data["attempt"]
    steps.answer_headphone_check(session.token, kind, attempt, form.given, timezone.now())
    return redirect(session)


def _take_role_play(request: HttpRequest, session: Session) -> HttpResponse:  # noqa: ARG001
    steps.begin_trials(session.token, timezone.now())
    return redirect(session)


def _take_again(request: HttpRequest, session: Session) -> HttpResponse:
    """Begin anew after the block went to somebody else."""
    try:
        return redirect(joining.start_again(session))
    except joining.NotOpenError as reason:
        return render(request, "listening/no_entry.html", frame_of(session) | {"reason": str(reason)}, status=403)


@require_safe
@session_view
def sound(request: HttpRequest, session: Session, sound: str) -> HttpResponse:  # noqa: ARG001
    """A sound of the test that is open."""
    response = HttpResponse(screening.sound_of(session, sound), content_type="audio/wav")
    response["X-Content-Type-Options"] = "nosniff"
    return response


# Withdrawal ---------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@session_view
def withdraw(request: HttpRequest, session: Session) -> HttpResponse:
    """Ask once more, then delete."""
    if request.method == "POST" and session.state != Session.State.WITHDRAWN:
        withdrawals.withdraw(session, timezone.now())
    if session.state == Session.State.WITHDRAWN:
        return redirect(session)
    return render(request, "listening/withdraw.html", frame_of(session) | {"steps_total": 0})


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def withdraw_by_code(request: HttpRequest) -> HttpResponse:
    """Delete the answers of a session that has ended, by the code that was shown at its end."""
    language = language_for(request, texts.LANGUAGES)
    with translation.override(language):
        form = WithdrawalForm(request.POST if request.method == "POST" else None)
        shown = {"languages": languages_of(texts.LANGUAGES, language, request.GET), "form": form}
        status = 422 if form.is_bound else 200
        if form.is_valid():
            try:
                found = withdrawals.withdraw_by_code(form.cleaned_data["code"], _visitor(request), timezone.now())
                status = 200 if found else 422
                shown |= {"is_deleted": bool(found), "is_unknown": not found}
            except withdrawals.TooManyGuessesError:
                status = 429
                shown |= {"is_too_often": True}
        response = render(request, "listening/withdraw_by_code.html", shown, status=status)
    patch_cache_control(response, private=True, no_store=True)
    return response


def _visitor(request: HttpRequest) -> str:
    """The visitor's address; behind our own proxy the one that it added."""
    return str(BaseThrottle().get_ident(request))  # type: ignore[arg-type]
