"""The pages of trained attackers: a system's trainings, the form that starts one, its live page and its files."""

from __future__ import annotations

from typing import cast

from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from evaluation.selectors_training import training_for
from portal.accounts.access import member_page
from portal.core.exports import csv_response
from portal.results import training_exports, training_pages
from portal.results.training_forms import TrainingForm
from portal.submissions.selectors import system_for

HTMX_STOP_POLLING = 286


@require_safe
@member_page
def training_list(request: HttpRequest, name: str) -> HttpResponse:
    system = system_for(request.user, name)
    return render(request, "systems/trainings.html", training_pages.list_page(request, system))


@member_page
def new_training(request: HttpRequest, name: str) -> HttpResponse:
    """Train an attacker on a system; for its organizers."""
    view = training_pages.organized_view(request, system_for(request.user, name))
    form = TrainingForm(request.POST if request.method == "POST" else None, submission=view.submission, by=request.user)
    run = form.start() if form.is_valid() else None
    if run is not None:
        return redirect("systems:training", name, run.pk)
    context = {"form": form, "system": view.system, "submission": view.submission, "version_query": view.query}
    return render(request, "systems/training_new.html", context, status=422 if form.errors else 200)


@require_safe
@member_page
def training_detail(request: HttpRequest, name: str, training: int) -> HttpResponse:
    system = system_for(request.user, name)
    return render(request, "systems/training.html", training_pages.training_page(request, system, training))


@require_safe
@member_page
def training_live(request: HttpRequest, name: str, training: int) -> HttpResponse:
    """The part of `training_detail` that renews itself; at the end of the job the whole page is loaded anew."""
    view = training_pages.own_view(request, system_for(request.user, name))
    run = training_for(view.submission, training)
    if run.job is None or run.job.has_ended:
        return HttpResponse(status=HTMX_STOP_POLLING, headers={"HX-Refresh": "true"})
    context = training_pages.live_part(run) | {"system": view.system, "version_query": view.query}
    return render(request, "systems/_training_live.html", context)


@require_safe
@member_page
def training_csv(request: HttpRequest, name: str, training: int) -> HttpResponse:
    view = training_pages.own_view(request, system_for(request.user, name))
    run = training_for(view.submission, training)
    return csv_response(f"{name}-training-{run.pk}.csv", training_exports.epoch_rows(run))


@require_safe
@member_page
def training_json(request: HttpRequest, name: str, training: int) -> JsonResponse:
    view = training_pages.own_view(request, system_for(request.user, name))
    run = training_for(view.submission, training)
    return JsonResponse(training_exports.as_dict(run, view.system), json_dumps_params={"indent": 1})


@require_safe
@member_page
def training_attacker(request: HttpRequest, name: str, training: int, seed: int) -> HttpResponse:
    """What one seed learnt, as a zip; for the organizers of the system."""
    view = training_pages.organized_view(request, system_for(request.user, name))
    run = training_for(view.submission, training)
    archive = training_exports.attacker_archive(run, seed)
    response = FileResponse(archive, as_attachment=True, filename=f"{name}-attacker-{run.pk}-seed-{seed}.zip")
    return cast("HttpResponse", response)
