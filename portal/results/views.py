"""The home page, the operator's page, and the pages of systems and their results."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from evaluation.selectors import measure_of
from portal.accounts.access import operator_page, organizer_page
from portal.challenges.selectors import corpus_for
from portal.core.exports import csv_response
from portal.core.health import check_all
from portal.core.version import code_version
from portal.jobs.selectors import queue_states
from portal.results import exports, pages, utterances
from portal.results.forms import BaselineForm
from portal.results.home import home_page
from portal.submissions.selectors import file_for, system_for

HTMX_STOP_POLLING = 286


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What matters to this visitor: an organizer's work, the operator's queues, or what the portal is."""
    if not request.user.is_authenticated:
        return render(request, "home/visitor.html")
    return render(request, "home/member.html", home_page(request.user))


@require_safe
@operator_page
def operations(request: HttpRequest) -> HttpResponse:
    """Queues with the age of their oldest waiting job, and the health of each part."""
    context = {"queues": queue_states(), "checks": check_all(), "version": code_version()}
    return render(request, "operations.html", context)


@require_safe
@organizer_page
def system_list(request: HttpRequest) -> HttpResponse:
    return render(request, "systems/list.html", pages.list_page(request))


@organizer_page
def new_baseline(request: HttpRequest, corpus: str) -> HttpResponse:
    """Run an anonymiser over data sets of a corpus."""
    chosen = corpus_for(request.user, corpus)
    form = BaselineForm(request.POST if request.method == "POST" else None, corpus=chosen)
    system = form.start(by=request.user) if form.is_valid() else None
    if system is not None:
        return redirect(system)
    return render(request, "systems/new.html", {"form": form, "corpus": chosen}, status=422 if form.errors else 200)


@require_safe
@organizer_page
def system_detail(request: HttpRequest, name: str) -> HttpResponse:
    system = system_for(request.user, name)
    return render(request, "systems/detail.html", pages.system_page(request, system))


@require_safe
@organizer_page
def system_progress(request: HttpRequest, name: str) -> HttpResponse:
    """The live part of `system_detail`; once all jobs have ended, htmx stops asking and loads the whole page anew."""
    system = system_for(request.user, name)
    progress = pages.progress_of(system)
    if progress.is_active:
        return render(request, "systems/_progress.html", {"system": system, "progress": progress})
    return HttpResponse(status=HTMX_STOP_POLLING, headers={"HX-Refresh": "true"})


@require_safe
@organizer_page
def measure_list(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    """Every utterance of a data set with its measures, in the order asked for."""
    system = system_for(request.user, name)
    return render(request, "systems/data_set.html", utterances.data_set_page(request, system, data_set))


@require_safe
@organizer_page
def compare(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """Original and anonymised utterance side by side, to listen and to look at."""
    file = file_for(request.user, name, pk)
    return render(request, "systems/compare.html", utterances.compare_page(request, file))


@require_safe
@organizer_page
def f0_contours(request: HttpRequest, name: str, pk: int) -> JsonResponse:
    """The F0 contours of original and anonymised utterance, or of the one that `side` names."""
    measure = measure_of(file_for(request.user, name, pk))
    if measure is None or not measure.f0_original:
        raise Http404
    try:
        return JsonResponse(utterances.f0_as_json(measure, request.GET.get("side", "")))
    except FileNotFoundError as error:  # the page then shows the sound without it
        raise Http404 from error


@require_safe
@organizer_page
def values_csv(request: HttpRequest, name: str) -> HttpResponse:
    system = system_for(request.user, name)
    return csv_response(f"{system.name}-values.csv", exports.value_rows(system))


@require_safe
@organizer_page
def measures_csv(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    system = system_for(request.user, name)
    rows = exports.measure_rows(utterances.run_of(system, data_set))
    return csv_response(f"{system.name}-{data_set}-measures.csv", rows)
