"""The home page, the operator's page, and the pages of systems and their results."""

from __future__ import annotations

import csv
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from evaluation.selectors import measure_of, measures_of
from portal.accounts.access import operator_page, organizer_page
from portal.challenges.selectors import corpora_for, corpus_for, summaries
from portal.core.health import check_all
from portal.core.media import signed_address
from portal.core.version import code_version
from portal.jobs.selectors import jobs_for, queue_states
from portal.results import pages
from portal.results.forms import BaselineForm
from portal.results.services import start_baseline
from portal.submissions.selectors import file_for, system_for, systems_for

PAGE_SIZE = 50


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What matters to this visitor: an organizer's work, the operator's queues, or what the portal is."""
    if not request.user.is_authenticated:
        return render(request, "home/visitor.html")
    context: dict[str, Any] = {"jobs": jobs_for(request.user)[:5]}
    if request.user.is_organizer:
        context |= {
            "summaries": summaries(corpora_for(request.user)),
            "systems": systems_for(request.user)[:10],
        }
    if request.user.is_staff:
        context["queues"] = queue_states()
    return render(request, "home/member.html", context)


@require_safe
@operator_page
def operations(request: HttpRequest) -> HttpResponse:
    """Queues with the age of their oldest waiting job, and the health of each part."""
    context = {"queues": queue_states(), "checks": check_all(), "version": code_version()}
    return render(request, "operations.html", context)


@require_safe
@organizer_page
def system_list(request: HttpRequest) -> HttpResponse:
    page = Paginator(pages.system_rows(request.user), PAGE_SIZE).get_page(request.GET.get("page"))
    return render(
        request, "systems/list.html", {"page": page, "corpora": corpora_for(request.user)}
    )


@organizer_page
def new_baseline(request: HttpRequest, corpus: str) -> HttpResponse:
    """Run an anonymiser over data sets of a corpus."""
    chosen = corpus_for(request.user, corpus)
    form = BaselineForm(request.POST or None, corpus=chosen)
    if request.method == "POST" and form.is_valid():
        system = start_baseline(corpus=chosen, by=request.user, **form.cleaned_data)
        messages.success(request, "The system is being made. This page shows how far it is.")
        return redirect(system)
    context = {"form": form, "corpus": chosen}
    return render(request, "systems/new.html", context, status=422 if form.errors else 200)


@require_safe
@organizer_page
def system_detail(request: HttpRequest, name: str) -> HttpResponse:
    system = system_for(request.user, name)
    return render(request, "systems/detail.html", pages.system_page(request, system))


@require_safe
@organizer_page
def measure_list(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    """Every utterance of a data set with its measures, in the order asked for."""
    system = system_for(request.user, name)
    run = pages.run_of(system, data_set)
    order = request.GET.get("order", "")
    order = order if order in pages.MEASURE_ORDERS else "lowest"
    measures = measures_of(run).order_by(pages.MEASURE_ORDERS[order][1], "pk")
    page = Paginator(measures, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"system": system, "corpus": system.corpus, "run": run, "page": page, "order": order}
    context["orders"] = [(key, text) for key, (text, _) in pages.MEASURE_ORDERS.items()]
    return render(request, "systems/data_set.html", context)


@require_safe
@organizer_page
def compare(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """Original and anonymised utterance side by side, to listen and to look at."""
    file = file_for(request.user, name, pk)
    context = {
        "file": file,
        "system": file.submission.system,
        "corpus": file.submission.system.corpus,
        "measure": measure_of(file),
        "original": signed_address(request, file.utterance.audio),
        "anonymised": signed_address(request, file.audio),
        "pseudo_speaker": pages.pseudo_speaker_of_file(file),
    }
    return render(request, "systems/compare.html", context)


@require_safe
@organizer_page
def f0_contours(request: HttpRequest, name: str, pk: int) -> JsonResponse:
    """The F0 contours of original and anonymised utterance: start_s, step_s and hz, 0 where unvoiced."""
    measure = measure_of(file_for(request.user, name, pk))
    if measure is None or not measure.f0_original:
        raise Http404
    return JsonResponse(pages.f0_as_json(measure))


@require_safe
@organizer_page
def values_csv(request: HttpRequest, name: str) -> HttpResponse:
    system = system_for(request.user, name)
    return _csv(f"{system.name}-values.csv", pages.value_rows(system))


@require_safe
@organizer_page
def measures_csv(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    system = system_for(request.user, name)
    return _csv(
        f"{system.name}-{data_set}-measures.csv", pages.measure_rows(pages.run_of(system, data_set))
    )


def _csv(filename: str, rows: Any) -> HttpResponse:
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    csv.writer(response).writerows(rows)
    return response
