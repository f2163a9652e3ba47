"""The pages of the portal's own attackers and recognisers: what they found, the forms that start them, their runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.contrib import messages
from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from evaluation.models import EvaluationRun
from evaluation.selectors_attack import attacks_of
from evaluation.services_speech import cancel_run, continue_run
from portal.accounts.access import member_page, open_page
from portal.core.exports import csv_response
from portal.jobs.services import NotPossible
from portal.results import attack_exports, attack_pages, recognition_pages
from portal.results.attack_forms import AttackForm, EngineForm, RecognitionForm
from portal.results.engine_runs import EngineRuns, is_organizer, organized_run, require_organizer
from portal.results.shown import View, view_of
from portal.submissions.selectors import system_for
from portal.submissions.visibility import Part

HTMX_STOP_POLLING = 286


# Attacks -------------------------------------------------------------------------------------------


@require_safe
@open_page
def attacks(request: HttpRequest, name: str) -> HttpResponse:
    """What the portal's own attackers reached against a system."""
    view = view_of(request, system_for(request.user, name, Part.NUMBERS))
    return render(request, "systems/attacks.html", attack_pages.attack_page(request, view))


@require_safe
@member_page
def attack_progress(request: HttpRequest, name: str) -> HttpResponse:
    return _progress(request, name, attack_pages.unfinished_attacks, "systems:attack-progress")


@member_page
def new_attack(request: HttpRequest, name: str) -> HttpResponse:
    """Let an attacker loose on a system."""
    return _new_run(request, name, AttackForm, "systems:attacks", "Attacks")


@require_safe
@open_page
def attacks_csv(request: HttpRequest, name: str) -> HttpResponse:
    view = view_of(request, system_for(request.user, name, Part.NUMBERS))
    return csv_response(f"{name}-attacks.csv", attack_exports.attack_rows(view))


@require_safe
@open_page
def attacks_json(request: HttpRequest, name: str) -> JsonResponse:
    view = view_of(request, system_for(request.user, name, Part.NUMBERS))
    return JsonResponse(attack_exports.attacks_as_dict(view), json_dumps_params={"indent": 1})


@require_safe
@member_page
def attack_scores(request: HttpRequest, name: str, run: int, score_set: int) -> HttpResponse:
    """The Kaldi score file of one test, for the system's own people: it names speakers and utterances."""
    view = view_of(request, system_for(request.user, name))
    for one in attacks_of(view.submission):
        for found in one.score_sets if one.run.pk == run else ():
            if found.pk == score_set:
                file_name = f"{name}-{one.engine.name}-{found.data_set}-{found.attack_model}-scores.txt"
                return _stored_file(one.scores_key(found), file_name)
    raise Http404


@require_safe
@member_page
def attack_archive(request: HttpRequest, name: str, run: int) -> HttpResponse:
    """The results directory of an attack in the official layout, for the system's own people."""
    view = view_of(request, system_for(request.user, name))
    for one in attacks_of(view.submission):
        if one.run.pk == run:
            return _stored_file(one.archive_key, f"{name}-{one.engine.name}-results.zip")
    raise Http404


# Recognition ---------------------------------------------------------------------------------------


@require_safe
@open_page
def recognition(request: HttpRequest, name: str) -> HttpResponse:
    """What the portal's own recognisers understood of a system."""
    view = view_of(request, system_for(request.user, name, Part.NUMBERS))
    return render(request, "systems/recognition.html", recognition_pages.recognition_page(request, view))


@require_safe
@member_page
def recognition_progress(request: HttpRequest, name: str) -> HttpResponse:
    return _progress(request, name, recognition_pages.unfinished_recognitions, "systems:recognition-progress")


@member_page
def new_recognition(request: HttpRequest, name: str) -> HttpResponse:
    """Let a recogniser listen to a system."""
    return _new_run(request, name, RecognitionForm, "systems:recognition", "Recognition")


@require_safe
@open_page
def recognition_csv(request: HttpRequest, name: str) -> HttpResponse:
    view = view_of(request, system_for(request.user, name, Part.NUMBERS))
    return csv_response(f"{name}-word-errors.csv", recognition_pages.rate_rows(view))


@require_safe
@member_page
def recognised_utterances_csv(request: HttpRequest, name: str) -> HttpResponse:
    """Every utterance with its errors and texts, for the system's own people."""
    view = view_of(request, system_for(request.user, name))
    return csv_response(f"{name}-utterances.csv", recognition_pages.utterance_rows(view))


# Runs ----------------------------------------------------------------------------------------------


@member_page
@require_POST
def cancel(request: HttpRequest, name: str, run: int) -> HttpResponse:
    return _act(request, name, run, cancel_run)


@member_page
@require_POST
def go_on(request: HttpRequest, name: str, run: int) -> HttpResponse:
    return _act(request, name, run, continue_run)


def _act(request: HttpRequest, name: str, run: int, service: Callable[[EvaluationRun, Any], None]) -> HttpResponse:
    """Change a run; its page then shows the state it has come to."""
    found = organized_run(request, system_for(request.user, name), run)
    try:
        service(found, request.user)
    except NotPossible as reason:
        messages.error(request, str(reason))
    is_attack = found.kind == EvaluationRun.Kind.ATTACK
    return redirect("systems:attacks" if is_attack else "systems:recognition", name)


def _new_run(
    request: HttpRequest, name: str, form_of: type[EngineForm], back: str, back_title: str
) -> HttpResponse:  # fmt: skip
    system = system_for(request.user, name)
    require_organizer(request, system)
    view = view_of(request, system)
    form = form_of(
        request.POST if request.method == "POST" else None, submission=view.submission, by=request.user
    )  # fmt: skip
    address = f"{reverse(back, args=[name])}{view.query}"
    if form.is_valid() and form.start() is not None:
        return redirect(address)
    context = {
        "form": form,
        "system": system,
        "corpus": system.corpus,
        "submission": view.submission,
        "version_query": view.query,
        "back": address,
        "back_title": back_title,
    }
    return render(request, "systems/engine_new.html", context, status=422 if form.errors else 200)


def _progress(
    request: HttpRequest, name: str, runs_of: Callable[[View], EngineRuns | None], address: str
) -> HttpResponse:  # fmt: skip
    """The live part of a page; once all runs have ended, htmx stops asking and loads the whole page anew."""
    system = system_for(request.user, name)
    view = view_of(request, system)
    runs = runs_of(view)
    if runs is None or not runs.active:
        return HttpResponse(status=HTMX_STOP_POLLING, headers={"HX-Refresh": "true"})
    context = {
        "runs": EngineRuns(runs.active, []),
        "system": system,
        "is_organizer": is_organizer(view),
        "version_query": view.query,
        "address": reverse(address, args=[name]),
    }
    return render(request, "systems/_engine_runs.html", context)


def _stored_file(key: str, file_name: str) -> HttpResponse:
    if not default_storage.exists(key):
        raise Http404
    return cast("HttpResponse", FileResponse(default_storage.open(key), as_attachment=True, filename=file_name))
