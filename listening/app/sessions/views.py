"""Pages of evaluators: joining, the steps, the end, another language; and the requests of the page of the trials.

A session's address is its credential: no view here needs a cookie (only a bare own link remembers its session in one),
so that all of this works in a platform's frame, and no form needs a token against forgery, which would need one. What
is refused of a trial is told in JSON with the status of the refusal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.validators import slug_re
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict, UnreadablePostError
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.cache import patch_cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe
from rest_framework.throttling import BaseThrottle

from common.errors import InputError, NotPossible, ProblemsError, Refused
from listening import texts
from listening.app.models import Session, Study
from listening.app.sessions import answers, pages, pre_screening, services
from listening.app.sessions.block_leases import is_complete
from listening.app.sessions.forms import LanguageForm
from listening.app.sessions.media import clip_for, send
from listening.app.sessions.payloads import MOST_BYTES_OF_BOARD
from listening.app.sessions.platforms import allow_platform, network_key, read_arrival
from listening.app.sessions.selectors import describe_state, session_for
from listening.app.studies.interface_words import speak
from listening.app.studies.selectors import expected_effort
from listening.app.studies.settings import parse_platform
from portal.core.clock import read_clock
from portal.core.network_addresses import plain_address
from portal.core.signed_urls import ranged_response, secured

View = Callable[..., HttpResponse]
Step = Session.Step
REMEMBERED_S = 60 * 60 * 24 * 14


def session_view(view: View) -> View:
    """Return a view of the session in the address, in its language, framed by its platform alone."""

    @csrf_exempt
    @wraps(view)
    def guarded(request: HttpRequest, token: str, **where: Any) -> HttpResponse:
        session = session_for(token)
        with speak(session.study, session.language):
            response = view(request, session, **where)
        return finish_response(response, session.study, may_submit=session.state != Session.State.ACTIVE)

    return guarded


def not_found(request: HttpRequest, status: int) -> HttpResponse:
    """Show the page of an evaluators' address that is none, in the language of its session if it has one."""
    token = request.path.split("/")[2]
    session = Session.objects.filter(token=token).select_related("study").first() if slug_re.fullmatch(token) else None
    if session is None:
        language = pages.choose_language(request, texts.LANGUAGES)
        shown: dict[str, Any] = {"languages": pages.list_languages(texts.LANGUAGES, language, request.GET)}
    else:
        language, shown = session.language, pages.session_frame(session) | {"steps_total": 0}
    with speak(None if session is None else session.study, language):
        response = render(request, "listening/sessions/not_found.html", shown, status=status)
    patch_cache_control(response, private=True, no_store=True)
    return response


def under_maintenance(request: HttpRequest, again_s: int) -> HttpResponse:
    """Show evaluators that there is maintenance, in the language of their browser; the page loads itself again.

    It asks nothing of the database, which may be away.
    """
    language = pages.choose_language(request, texts.LANGUAGES)
    shown = {"languages": pages.list_languages(texts.LANGUAGES, language, request.GET)}
    with speak(None, language):
        response = render(request, "listening/sessions/under_maintenance.html", shown, status=503)
    response["Refresh"] = str(again_s)
    return response


def finish_response(response: HttpResponse, study: Study, *, may_submit: bool = False) -> HttpResponse:
    if "Cache-Control" not in response:
        patch_cache_control(response, private=True, no_store=True)
    return allow_platform(response, study, may_submit=may_submit)


def visitor_address(request: HttpRequest) -> str:
    """Return the network address that a request comes from, behind our own proxy, too."""
    return plain_address(str(BaseThrottle().get_ident(request) or ""))  # type: ignore[arg-type]


# Joining ------------------------------------------------------------------------------------------


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, key: str) -> HttpResponse:
    """Return the address that evaluators are given; it leads each of them into their session."""
    study = get_object_or_404(Study, link_key=key, launched_at__isnull=False)
    language = pages.choose_language(request, study.languages)
    if request.method == "HEAD":  # programs that look at links make no session
        return finish_response(HttpResponse(), study)
    with speak(study, language):
        response = _join(request, study, language)
    return finish_response(response, study)


def _join(request: HttpRequest, study: Study, language: str) -> HttpResponse:
    plan = parse_platform(study)
    shown: dict[str, Any] = {"languages": pages.list_languages(study.languages, language, request.GET)}
    try:
        arrival = read_arrival(plan, request.GET)
        if arrival.is_preview:
            return render(request, "listening/sessions/preview.html", shown | pages.preview_page(study, language))
        if study.platform == Study.Platform.OWN:
            known = services.find_session(study, arrival) if arrival.person else _remembered(request, study)
            if known is not None:
                return redirect(known)
        if study.platform == Study.Platform.OWN and request.method != "POST":
            # Only a tap makes a session: programs that look at links make none.
            shown |= {"study": study, "is_complete": is_complete(study), "facts": expected_effort(study)}
            return render(request, "listening/sessions/welcome.html", shown)
        told = {"agent": request.headers.get("User-Agent", ""), "network": _network(request, study)}
        session = services.join(study, plan, arrival, language=language, now=read_clock(), **told)
    except (InputError, NotPossible) as reason:
        return _no_entry(request, study, reason, shown)
    response = redirect(session)
    if not arrival.person:
        _remember(request, response, study, session)
    return response


def _no_entry(
    request: HttpRequest, study: Study, reason: InputError | NotPossible, shown: dict[str, Any]
) -> HttpResponse:
    """Say why somebody cannot begin, and what to do on the platform."""
    code = reason.code if isinstance(reason, NotPossible) else "incomplete"
    status = {"incomplete": 400, "network": 429, "study": 429}.get(code, 403)
    if code in {"network", "study"}:
        services.note_refusal(study, code, read_clock())
    shown |= {"reason": str(reason), "study": study, "is_over": code == services.OVER}
    shown["is_incomplete"] = code == "incomplete"
    return render(request, "listening/sessions/no_entry.html", shown, status=status)


def _network(request: HttpRequest, study: Study) -> str:
    return network_key(study, visitor_address(request))


def _cookie(study: Study) -> str:
    return f"listening-{study.pk}"


def _remembered(request: HttpRequest, study: Study) -> Session | None:
    """Return the newest session that was begun in this browser by a bare link, unless it was withdrawn."""
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
    """Return where the session stands: the same address from consent to code."""
    return render(request, *pages.current_page(session))


def sending_view(view: View) -> View:
    """Make a view of the session that takes a form; its address, left over or loaded again, leads to its page."""

    @require_http_methods(["GET", "HEAD", "POST"])
    @session_view
    @wraps(view)
    def sent(request: HttpRequest, session: Session, **where: Any) -> HttpResponse:
        return view(request, session, **where) if request.method == "POST" else redirect(session)

    return sent


@sending_view
def language(request: HttpRequest, session: Session) -> HttpResponse:
    given = request.POST.dict()
    chosen = request.POST.getlist("language")[:1]  # a question may have this name, too; the button comes first
    form = LanguageForm(given | {"language": "".join(chosen)})
    if form.is_valid():
        session = services.change_language(session.token, form.cleaned_data["language"])
    if session.state == Session.State.ACTIVE and session.step in pages.KEEP_ANSWERS and given.keys() - {"language"}:
        with speak(session.study, session.language):  # what was chosen so far stays
            filled = pages.form_of_step(session)
            filled.initial = given
            return render(request, *pages.current_page(session, filled, **_told_before(request)))
    if form.cleaned_data.get("is_withdrawing"):
        return redirect("listen:withdraw", session.token)
    return redirect(session)


@sending_view
def step(request: HttpRequest, session: Session, step: str) -> HttpResponse:
    """Take what was filled in at a step; a step that is over or not yet reached changes nothing."""
    if step == "again":
        return _start_again(request, session)
    if session.state != Session.State.ACTIVE or session.step != step:
        return redirect(session)
    form = pages.form_of_step(session, request.POST)
    if session.step == Step.HEADPHONES and request.POST.get("kind") != form.kind:  # of a check that is over
        return redirect(session)
    if form is not None and not form.is_valid():
        return render(request, *pages.current_page(session, form, **_told_before(request)), status=422)
    try:
        _take(session, form, request.POST)
    except NotPossible as reason:
        if reason.code not in {"state", "complete"}:
            services.note_refusal(session.study, reason.code, read_clock())
        return render(request, *pages.current_page(session, no_place=reason.code), status=409)
    return redirect(session)


def _told_before(request: HttpRequest) -> dict[str, Any]:
    """Return what a page that comes back keeps besides its answers: sounds heard to their end, the browser's audio."""
    return {"given": request.POST, "heard": request.POST.getlist("heard")}


def _take(session: Session, form: Any, given: QueryDict) -> None:
    """Store what a valid form of the session's step says."""
    token, now = session.token, read_clock()
    match session.step:
        case Step.CONSENT:
            services.give_consent(token, now)
        case Step.QUESTIONS:
            services.answer_questions(token, form.answers, now)
        case Step.SOUND | Step.HEADPHONES:
            services.answer_check(token, form.kind, form.cleaned_data["attempt"], form.given, given, now)
        case Step.ROLE_PLAY:
            services.begin_trials(token, now)


def _start_again(request: HttpRequest, session: Session) -> HttpResponse:
    """Begin again after the block went to somebody else."""
    try:
        return redirect(services.start_again(session, _network(request, session.study), read_clock()))
    except NotPossible as reason:
        return _no_entry(request, session.study, reason, pages.session_frame(session))


@require_safe
@session_view
def sound(request: HttpRequest, session: Session, sound: str) -> HttpResponse:  # noqa: ARG001
    """Return a sound of the test that is open; a page that comes back for it need not fetch it again."""
    response = HttpResponse(pre_screening.make_sound(session, sound), content_type="audio/wav")
    response["X-Content-Type-Options"] = "nosniff"
    patch_cache_control(response, private=True, max_age=KEPT_S)
    return response


@require_safe
@session_view
def offline(request: HttpRequest, session: Session) -> HttpResponse:  # noqa: ARG001
    """Return the script by which a browser has the page of the trials again without a connection."""
    return render(request, "listening/sessions/offline.js", content_type="text/javascript")


@require_GET
def state(request: HttpRequest, token: str) -> JsonResponse:  # noqa: ARG001
    """Return where the session stands, and its next trials."""
    session = session_for(token)
    if session.state != Session.State.ACTIVE:
        return _told(answers.ended(session))
    return _json(describe_state(session, read_clock()))


def _receiver(receive: Callable[[str, bytes], dict[str, Any]]) -> View:
    """Return a view of what the page of the trials sends: its answer, or the refusal."""

    @csrf_exempt
    @require_POST
    def received(request: HttpRequest, token: str) -> JsonResponse:
        try:
            return _json(receive(token, _body(request)))
        except ProblemsError as error:
            return _json({"problem": "invalid", "sentences": error.problems}, 422)
        except Refused as refused:
            return _told(refused)

    return received


save = _receiver(answers.receive_answers)
alive = _receiver(lambda token, body: answers.receive_alive(token, body, read_clock()))
take_over = _receiver(lambda token, body: answers.receive_take_over(token, body, read_clock()))
report = _receiver(lambda token, body: answers.receive_report(token, body, read_clock()))


def _body(request: HttpRequest) -> bytes:
    """Return what was sent; what is announced as far too long is not read at all."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > MOST_BYTES_OF_BOARD:
        return b" " * (MOST_BYTES_OF_BOARD + 1)
    try:
        return request.body
    except UnreadablePostError:
        return b""  # nobody hears the answer


def _told(refused: Refused) -> JsonResponse:
    response = _json({"sentence": str(refused)} | refused.more, refused.status)
    if "retry_after_s" in refused.more:
        response["Retry-After"] = str(math.ceil(refused.more["retry_after_s"]))
    return response


def _json(body: dict[str, Any], status: int = 200) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "private, no-store"})


KEPT_S = 3600


@require_safe
def clip(request: HttpRequest, token: str, clip: str) -> HttpResponseBase:
    """Return the sound of a slot of a trial, whole or the byte range asked for."""
    try:
        found = clip_for(token, clip)
    except Refused as refused:
        headers = {"Cache-Control": "private, no-store"}
        return HttpResponse(
            str(refused), status=refused.status, content_type="text/plain; charset=utf-8", headers=headers
        )
    response = ranged_response(request, found.size, "audio/wav", lambda start, stop: send(found, start, stop))
    return secured(response, KEPT_S)
