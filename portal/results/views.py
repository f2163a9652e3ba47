"""The home page, the operator's page, and the pages of systems and their results."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from evaluation.selectors import measure_of
from portal.accounts.access import member_page, open_page, operator_page, organizer_page
from portal.challenges.selectors import corpus_for
from portal.core.exports import csv_response
from portal.core.health import check_all
from portal.core.version import code_version
from portal.jobs.selectors import queue_states
from portal.results import exports, objective_exports, objective_pages, pages, utterances
from portal.results.forms import BaselineForm
from portal.results.home import home_page, visitor_page
from portal.results.recognition_pages import own_sections
from portal.results.shown import edition_system_for, view_of
from portal.submissions.selectors import file_for, system_for
from portal.submissions.visibility import Part

HTMX_STOP_POLLING = 286


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What matters to this visitor: an organizer's work, the operator's queues, or what the portal is."""
    if not request.user.is_authenticated:
        return render(request, "home/visitor.html", visitor_page(request.user))
    return render(request, "home/member.html", home_page(request.user))


@require_safe
@operator_page
def operations(request: HttpRequest) -> HttpResponse:
    """Queues with the age of their oldest waiting job, and the health of each part."""
    context = {"queues": queue_states(), "checks": check_all(), "version": code_version()}
    return render(request, "operations.html", context)


@require_safe
@member_page
def system_list(request: HttpRequest) -> HttpResponse:
    return render(request, "systems/list.html", pages.list_page(request))


@organizer_page
def new_baseline(request: HttpRequest, corpus: str) -> HttpResponse:
    """Run an anonymiser over data sets of a corpus."""
    chosen = corpus_for(request.user, corpus)
    form = BaselineForm(request.POST if request.method == "POST" else None, corpus=chosen, by=request.user)
    if "try" in request.POST:
        form.start_trial()
        return redirect("systems:new", corpus)
    system = form.start() if form.is_valid() else None
    if system is not None:
        return redirect(system)
    return render(request, "systems/new.html", {"form": form, "corpus": chosen}, status=422 if form.errors else 200)


@require_safe
@open_page
def system_detail(request: HttpRequest, name: str) -> HttpResponse:
    """The numbers of a system; in an edition those of its submission, and what a visitor may see beside them."""
    view = view_of(request, system_for(request.user, name, Part.NUMBERS))
    if view.system.edition is None:
        context = pages.system_page(request, view.system)
        return render(request, "systems/detail.html", context | own_sections(view, None))
    context = objective_pages.edition_system_page(request, view)
    return render(request, "systems/evaluated.html", context | own_sections(view, context["values"]))


@require_safe
@member_page
def system_progress(request: HttpRequest, name: str) -> HttpResponse:
    """The live part of `system_detail`; once all jobs have ended, htmx stops asking and loads the whole page anew."""
    system = system_for(request.user, name)
    progress = pages.progress_of(system)
    if progress.is_active:
        return render(request, "systems/_progress.html", {"system": system, "progress": progress})
    return HttpResponse(status=HTMX_STOP_POLLING, headers={"HX-Refresh": "true"})


@require_safe
@member_page
def measure_list(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    """Every utterance of a data set with its measures, in the order asked for."""
    view = view_of(request, system_for(request.user, name))
    return render(request, "systems/data_set.html", utterances.data_set_page(request, view, data_set))


@require_safe
@member_page
def compare(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """Original and anonymised utterance side by side, to listen and to look at."""
    file = file_for(request.user, name, pk)
    return render(request, "systems/compare.html", utterances.compare_page(request, file))


@require_safe
@member_page
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
@open_page
def values_csv(request: HttpRequest, name: str) -> HttpResponse:
    """What was measured on the audio of each data set."""
    system = system_for(request.user, name, Part.NUMBERS)
    submission = view_of(request, system).submission
    return csv_response(f"{system.name}-values.csv", exports.value_rows(system, submission))


@require_safe
@open_page
def objective_csv(request: HttpRequest, name: str) -> HttpResponse:
    view = view_of(request, edition_system_for(request.user, name))
    return csv_response(f"{name}-objective.csv", objective_exports.objective_rows(view))


@require_safe
@open_page
def objective_json(request: HttpRequest, name: str) -> JsonResponse:
    view = view_of(request, edition_system_for(request.user, name))
    return JsonResponse(objective_exports.objective_as_dict(view), json_dumps_params={"indent": 1})


@require_safe
@open_page
def objective_latex(request: HttpRequest, name: str) -> HttpResponse:
    view = view_of(request, edition_system_for(request.user, name))
    text = objective_exports.objective_as_latex(view)
    headers = {"Content-Disposition": f'attachment; filename="{name}-objective.tex"'}
    return HttpResponse(text, content_type="application/x-tex; charset=utf-8", headers=headers)


@require_safe
@member_page
def measures_csv(request: HttpRequest, name: str, data_set: str) -> HttpResponse:
    view = view_of(request, system_for(request.user, name))
    rows = exports.measure_rows(utterances.run_of(view, data_set))
    return csv_response(f"{name}-{data_set}-measures.csv", rows)
