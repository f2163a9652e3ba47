"""Pages of what listeners said: of a study, of each system, of its listeners; downloads; analysing and publishing."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from listening.analysis.errors import AnalysisInputError
from listening.analysis.rating_columns import COLUMNS, NEEDED
from listening.results import result_downloads
from listening.results.import_forms import ImportForm
from listening.results.publishing import publish_results, unpublish_results
from listening.results.result_doings import doings, publication
from listening.results.result_forms import AnalyseForm
from listening.results.result_shown import context_of, listeners_context, study_context, system_context
from listening.results.result_visibility import Part
from listening.results.screening_flags import screen_out
from listening.results.selectors import Shown, shown_analysis_for
from portal.accounts.access import member_page, open_page
from portal.jobs.services import NotPossible

REFUSED = 409
UNUSABLE = 422


@require_safe
@open_page
def results(request: HttpRequest, study: str) -> HttpResponse:
    """What listeners said in a study; for its organizers also what they may do with it."""
    shown = shown_analysis_for(request.user, study)
    if request.headers.get("HX-Request"):
        return _progress(request, shown)
    return render(request, "results/study.html", study_context(shown, request.GET) | doings(shown))


@require_safe
@open_page
def system_results(request: HttpRequest, study: str, system: str) -> HttpResponse:
    """What listeners said of one system; its team and organizers also meet its utterances."""
    shown = shown_analysis_for(request.user, study)
    return render(request, "results/system.html", system_context(shown, system, request))


@require_safe
@member_page
def listeners(request: HttpRequest, study: str) -> HttpResponse:
    """Each listener, and whom screening rules would leave out: for organizers alone."""
    shown = shown_analysis_for(request.user, study, Part.LISTENERS)
    return render(request, "results/listeners.html", listeners_context(shown, request.GET))


def _progress(request: HttpRequest, shown: Shown) -> HttpResponse:
    """The part that renews itself while a study is analysed; the page comes anew once that has ended."""
    context = context_of(shown, request.GET) | doings(shown) | {"page": shown.analysis}
    response = render(request, "results/_analysis.html", context)
    if not context.get("is_busy"):
        response["HX-Refresh"] = "true"
    return response


# Downloads -----------------------------------------------------------------------------------------


@require_safe
@open_page
def table_csv(request: HttpRequest, study: str, scores: str, table: str) -> HttpResponse:
    return result_downloads.table_file(shown_analysis_for(request.user, study), scores, table)


@require_safe
@open_page
def results_json(request: HttpRequest, study: str) -> HttpResponse:
    return result_downloads.results_file(shown_analysis_for(request.user, study))


@require_safe
@open_page
def figure(request: HttpRequest, study: str, scores: str, figure: str, extension: str) -> HttpResponse:
    shown = shown_analysis_for(request.user, study)
    return result_downloads.figure_file(shown, scores, figure, extension, request.GET.get("theme", "light"))


@require_safe
@member_page
def bundle(request: HttpRequest, study: str) -> HttpResponse:
    return result_downloads.bundle_file(shown_analysis_for(request.user, study, Part.BUNDLE))


# What organizers do --------------------------------------------------------------------------------


@member_page
def analyse(request: HttpRequest, study: str) -> HttpResponse:
    """The settings of an analysis; a post starts it."""
    shown = shown_analysis_for(request.user, study, Part.BUNDLE)
    form = AnalyseForm(request.POST if request.method == "POST" else None, study=shown.study, analysis=shown.analysis)
    if form.is_valid() and form.save(request.user) is not None:
        return redirect("studies:results", study)
    context = {"study": shown.study, "form": form, "is_organizer": True}
    return render(request, "results/analyse.html", context, status=UNUSABLE if form.errors else 200)


@member_page
def publish(request: HttpRequest, study: str) -> HttpResponse:
    """Say who would see what, then publish the newest analysis."""
    shown = shown_analysis_for(request.user, study, Part.BUNDLE)
    if request.method == "POST":
        newest = shown.analysis.pk if shown.analysis is not None else 0
        seen = newest if request.POST.get("analysis") == str(newest) else 0  # the page named what it was about
        try:
            publish_results(study=shown.study, by=request.user, now=timezone.now(), seen=seen)
        except NotPossible as reason:
            context = publication(shown, refusal=str(reason))
            return render(request, "results/publish.html", context, status=REFUSED)
        messages.success(request, "The results are published, and the teams that were heard get a notice.")
        return redirect("studies:results", study)
    return render(request, "results/publish.html", publication(shown))


@member_page
def unpublish(request: HttpRequest, study: str) -> HttpResponse:
    """Ask, then hide the results from all but the organizers."""
    shown = shown_analysis_for(request.user, study, Part.BUNDLE)
    if request.method == "POST":
        try:
            unpublish_results(study=shown.study, by=request.user)
        except NotPossible as reason:
            messages.error(request, str(reason))
        else:
            messages.success(request, "The results are hidden from all but the organizers.")
        return redirect("studies:results", study)
    return render(request, "results/publish.html", publication(shown, is_taking_back=True))


@member_page
@require_POST
def screen(request: HttpRequest, study: str) -> HttpResponse:
    """Leave out the listeners that a screening rule catches."""
    shown = shown_analysis_for(request.user, study, Part.LISTENERS)
    given = {name: request.POST.get(name, "").strip() for name in ("rule", "reason")}
    try:
        rule, _ = screen_out(study=shown.study, by=request.user, **given)
    except (NotPossible, AnalysisInputError) as reason:  # settings of an earlier analysis may have become unknown
        messages.error(request, str(reason))
        return redirect("studies:results-listeners", study)
    messages.success(request, f"The rule stands; it leaves out {rule.exclusions.count()} of the sessions.")
    return redirect("studies:results", study)


@member_page
def import_ratings(request: HttpRequest) -> HttpResponse:
    """A study of ratings that were collected elsewhere."""
    given = (request.POST, request.FILES) if request.method == "POST" else (None, None)
    form = ImportForm(*given, user=request.user)
    made = form.save() if form.is_valid() else None
    if made is not None:
        messages.success(request, f"{made.ratings:,} ratings are imported, and their analysis is on its way.")
        return redirect("studies:results", made.study.name)
    context = {"form": form, "columns": COLUMNS, "needed": NEEDED}
    return render(request, "results/import.html", context, status=UNUSABLE if form.errors else 200)
