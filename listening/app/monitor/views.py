"""Pages of a running study for its organizers: monitor, sessions, exclusions and the export of the raw study."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from listening.app.models import Study
from listening.app.monitor import exports, pages, services
from listening.app.monitor.exports import PAYMENTS
from listening.app.monitor.pages import RuleForm
from listening.app.studies.views import study_page, study_post
from portal.core import audit
from portal.core.clock import read_clock
from portal.jobs.services import NotPossible


@require_safe
@study_page
def monitor(request: HttpRequest, study: Study) -> HttpResponse:
    """Return how a study goes, renewed every few seconds; no rating is shown."""
    return render(request, "listening/studies/monitor.html", pages.monitor_page(request, study, read_clock()))


@require_safe
@study_page
def live(request: HttpRequest, study: Study) -> HttpResponse:
    """Return the live part of `monitor`."""
    return render(request, "listening/studies/_monitor_live.html", pages.monitor_page(request, study, read_clock()))


@require_safe
@study_page
def session_detail(request: HttpRequest, study: Study, session: int) -> HttpResponse:
    shown = pages.session_page(pages.find_session(study, session), read_clock())
    return render(request, "listening/studies/session.html", shown)


@study_post
def free_place(request: HttpRequest, study: Study, session: int) -> HttpResponse:
    found = pages.find_session(study, session)
    try:
        services.free_place(session=found, by=request.user, now=read_clock())
        is_closed = study.state == Study.State.CLOSED
        messages.success(request, f"Session {found.pk} has ended{'' if is_closed else ', and its place is free'}.")
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("studies:monitor", study.name)


@study_page
def exclusion_list(request: HttpRequest, study: Study) -> HttpResponse:
    """Return the rules of a study; with ``?flag=…`` or ``?session=…`` what another would do, and a post makes it."""
    rule = pages.chosen_rule(study, request.GET)
    form = RuleForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and rule is None:
        raise Http404
    made = form.save(study, request.user, rule) if rule is not None and form.is_valid() else None
    if made is not None:
        messages.success(request, f"The rule is in force; it leaves out {made.exclusions.count()} of the sessions.")
        return redirect("studies:exclusions", study.name)
    context = pages.exclusions_page(request, study, rule, form)
    return render(request, "listening/studies/exclusions.html", context, status=422 if form.errors else 200)


@study_post
def revoke(request: HttpRequest, study: Study, rule: int) -> HttpResponse:
    found = get_object_or_404(study.exclusion_rules, pk=rule)
    try:
        back = services.revoke_rule(rule=found, by=request.user, now=timezone.now())
        messages.success(request, f"The rule is revoked; {len(back)} of the sessions count again.")
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("studies:exclusions", study.name)


@require_safe
@study_page
def export(request: HttpRequest, study: Study) -> HttpResponse:
    return render(request, "listening/studies/export.html", pages.export_page(study))


@study_page
def export_csv(request: HttpRequest, study: Study, table: str) -> HttpResponse:
    """One table. The one with names of people has to be asked for by a post, and that it was is written down."""
    allowed = ["POST"] if table == PAYMENTS else ["GET", "HEAD"]
    if request.method not in allowed:
        return HttpResponseNotAllowed(allowed)
    if table == PAYMENTS:
        audit.record("study.payments_exported", study, actor=request.user)
    return exports.csv_response(study, table)


@require_safe
@study_page
def export_all(request: HttpRequest, study: Study, extension: str) -> HttpResponse:  # noqa: ARG001
    """Return the whole study as one file, JSON or zip."""
    return exports.file_response(study, timezone.now(), extension)
