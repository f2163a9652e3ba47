"""Pages of what listeners said: of a study, each system, its listeners; downloads; analysing, publishing."""

from __future__ import annotations

from urllib.parse import quote

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from common.errors import NotPossible, ProblemsError
from listening.analysis.tables import DICTIONARY
from listening.app.models import Study
from listening.app.results import context, selectors, services
from listening.app.results.forms import AnalyseForm, RatingsImportForm
from listening.app.results.pages import organizer_actions, publication
from listening.app.results.rules import ResultsPart
from listening.app.studies.pages import close_page
from listening.app.studies.rules import closing_problems
from listening.app.studies.views import study_page
from portal.accounts.access import member_page, open_page
from portal.core.clock import read_clock
from portal.core.downloads import as_download
from portal.core.mail import if_mailed
from portal.jobs.models import Job

REFUSED = 409
UNUSABLE = 422


@require_safe
@open_page
def results(request: HttpRequest, study: str) -> HttpResponse:
    """Return what listeners said in a study; for its organizers also what they may do with it."""
    shown = _shown(request, study)
    if request.headers.get("HX-Request"):
        return _progress(request, shown)
    told = context.study_context(shown, request.GET) | organizer_actions(shown)
    return render(request, "listening/results/study.html", told)


@require_safe
@open_page
def system_results(request: HttpRequest, study: str, system: str) -> HttpResponse:
    """Return what listeners said of one system; its team and organizers also meet its utterances."""
    shown = _shown(request, study)
    return render(request, "listening/results/system.html", context.system_context(shown, system, request))


@require_safe
@member_page
def listeners(request: HttpRequest, study: str) -> HttpResponse:
    """Return each listener, and whom screening rules would leave out: for organizers alone."""
    shown = selectors.shown_analysis_for(request.user, study, ResultsPart.LISTENERS)
    return render(request, "listening/results/listeners.html", context.listeners_context(shown, request.GET))


def _shown(request: HttpRequest, study: str) -> selectors.Shown:
    """Return the results for this person, or "not found"; of published ones now hidden the next page says so."""
    try:
        return selectors.shown_analysis_for(request.user, study)
    except Http404:
        if hidden := selectors.find_hidden(study):
            messages.info(
                request, f"The results of “{hidden}” are not public at present: only its organizers see them."
            )
        raise


def _progress(request: HttpRequest, shown: selectors.Shown) -> HttpResponse:
    """Return the part that renews itself while a study is analysed; the page comes again once that has ended."""
    told = context.page_context(shown, request.GET) | organizer_actions(shown) | {"page": shown.analysis}
    response = render(request, "listening/results/_analysis.html", told)
    if not told.get("is_busy"):
        response["HX-Refresh"] = "true"
    return response


# Downloads -----------------------------------------------------------------------------------------


@require_safe
@open_page
def table_csv(request: HttpRequest, study: str, scores: str, table: str) -> HttpResponse:
    """Return a table with every digit, as far as this person may see it."""
    text = selectors.shown_analysis_for(request.user, study).table(scores, table).csv()
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    return as_download(response, f"{study}-{scores}-{table}.csv")


@require_safe
@open_page
def results_json(request: HttpRequest, study: str) -> HttpResponse:
    """Return everything that this person may see."""
    text = context.visible_results(selectors.shown_analysis_for(request.user, study)).as_json()
    return as_download(HttpResponse(text, content_type="application/json; charset=utf-8"), f"{study}-results.json")


@require_safe
@open_page
def results_latex(request: HttpRequest, study: str) -> HttpResponse:
    return context.latex_file(selectors.shown_analysis_for(request.user, study), request.GET)


@require_safe
@open_page
def figure(request: HttpRequest, study: str, scores: str, figure: str, extension: str) -> HttpResponse:
    shown = selectors.shown_analysis_for(request.user, study)
    return context.figure_file(shown, scores, figure, extension, request.GET.get("theme", "light"))


@require_safe
@member_page
def bundle(request: HttpRequest, study: str) -> HttpResponse:
    return context.bundle_file(selectors.shown_analysis_for(request.user, study, ResultsPart.BUNDLE))


# What organizers do --------------------------------------------------------------------------------


@member_page
def analyse(request: HttpRequest, study: str) -> HttpResponse:
    """Return the settings of an analysis; a post starts it."""
    shown = selectors.shown_analysis_for(request.user, study, ResultsPart.BUNDLE)
    form = AnalyseForm(request.POST if request.method == "POST" else None, study=shown.study, analysis=shown.analysis)
    if form.is_valid() and form.save(request.user) is not None:
        return redirect("studies:results", study)
    told = {"study": shown.study, "form": form, "is_organizer": True}
    return render(request, "listening/results/analyse.html", told, status=UNUSABLE if form.errors else 200)


@member_page
def publish(request: HttpRequest, study: str) -> HttpResponse:
    """Say who would see what, then publish the newest analysis."""
    shown = selectors.shown_analysis_for(request.user, study, ResultsPart.BUNDLE)
    if request.method == "POST":
        newest = shown.analysis.pk if shown.analysis is not None else 0
        seen = newest if request.POST.get("analysis") == str(newest) else 0  # the page named what it was about
        try:
            services.publish_results(study=shown.study, by=request.user, now=timezone.now(), seen=seen)
        except NotPossible as reason:
            told = publication(shown, refusal=str(reason))
            return render(request, "listening/results/publish.html", told, status=REFUSED)
        told_to = if_mailed(", and the teams that were heard are notified") if shown.study.edition else ""
        messages.success(request, f"The results are published{told_to}.")
        return redirect("studies:results", study)
    return render(request, "listening/results/publish.html", publication(shown))


@member_page
def unpublish(request: HttpRequest, study: str) -> HttpResponse:
    """Ask, then hide the results from all but the organizers."""
    shown = selectors.shown_analysis_for(request.user, study, ResultsPart.BUNDLE)
    if request.method == "POST":
        try:
            services.unpublish_results(study=shown.study, by=request.user)
        except NotPossible as reason:
            messages.error(request, str(reason))
        else:
            messages.success(request, "The results are hidden from all but the organizers.")
        return redirect("studies:results", study)
    return render(request, "listening/results/publish.html", publication(shown, is_taking_back=True))


@member_page
@require_POST
def screen(request: HttpRequest, study: str) -> HttpResponse:
    """Leave out the listeners that a screening rule catches."""
    shown = selectors.shown_analysis_for(request.user, study, ResultsPart.LISTENERS)
    given = {name: request.POST.get(name, "").strip() for name in ("rule", "reason")}
    try:
        rule, _ = services.screen_out(study=shown.study, by=request.user, **given)
    except (NotPossible, ProblemsError) as reason:  # settings of an earlier analysis may have become unknown
        messages.error(request, str(reason))
        query = urlencode({"rule": given["rule"]})
        return redirect(f"{reverse('studies:results-listeners', args=[study])}?{query}#reason-{quote(given['rule'])}")
    messages.success(request, f"The rule now applies; it leaves out {rule.exclusions.count()} of the sessions.")
    return redirect("studies:results", study)


@member_page
def import_ratings(request: HttpRequest) -> HttpResponse:
    """Return a study of ratings that were collected elsewhere."""
    given = (request.POST, request.FILES) if request.method == "POST" else (None, None)
    form = RatingsImportForm(*given, user=request.user)
    made = form.save() if form.is_valid() else None
    if isinstance(made, Job):
        return redirect(made)
    if made is not None:
        messages.success(request, f"{made.ratings:,} ratings are imported, and their analysis has started.")
        return redirect("studies:results", made.study.name)
    told = {"form": form, "columns": DICTIONARY["ratings"]}
    if not form.fields["edition"].queryset.exists():  # type: ignore[attr-defined]
        told["no_edition"] = "Imported ratings belong to an edition that you organise. Create one first."
    return render(request, "listening/results/import.html", told, status=UNUSABLE if form.errors else 200)


@study_page
def close(request: HttpRequest, study: Study) -> HttpResponse:
    """Return who is still listening; a post closes the study, with their sessions or without."""
    problems = closing_problems(study)
    if request.method == "POST":
        try:
            ends = request.POST.get("sessions") == "end"
            services.close_study(study=study, by=request.user, now=read_clock(), ends_sessions=ends)
            return redirect(study)
        except NotPossible as reason:
            problems = [str(reason)]
    context = close_page(study) | {"problems": problems}
    status = REFUSED if problems and request.method == "POST" else 200
    return render(request, "listening/studies/close.html", context, status=status)
