"""Pages of a running study for its organizers: monitor, sessions, exclusions and the export of the raw study."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from listening.monitor import exclusions, exports, monitor_pages
from listening.monitor.monitor_pages import RuleForm
from listening.studies.selectors import study_for
from portal.accounts.access import member_page
from portal.core import audit
from portal.jobs.services import NotPossible

PAYMENTS = "payments"


@require_safe
@member_page
def monitor(request: HttpRequest, study: str) -> HttpResponse:
    """How a study goes, renewed every few seconds; no rating is shown."""
    chosen = study_for(request.user, study)
    return render(request, "studies/monitor.html", monitor_pages.monitor_page(request, chosen, timezone.now()))


@require_safe
@member_page
def live(request: HttpRequest, study: str) -> HttpResponse:
    """The live part of `monitor`."""
    chosen = study_for(request.user, study)
    return render(request, "studies/_monitor_live.html", monitor_pages.monitor_page(request, chosen, timezone.now()))


@require_safe
@member_page
def session_detail(request: HttpRequest, study: str, session: int) -> HttpResponse:
    chosen = monitor_pages.session_of(study_for(request.user, study), session)
    return render(request, "studies/session.html", monitor_pages.session_page(chosen, timezone.now()))


@member_page
def exclusion_list(request: HttpRequest, study: str) -> HttpResponse:
    """The rules of a study; with ``?flag=…`` or ``?session=…`` what another would do, and a post makes it."""
    chosen = study_for(request.user, study)
    rule = monitor_pages.chosen_rule(chosen, request.GET)
    form = RuleForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and rule is None:
        raise Http404
    if rule is not None and form.is_valid():
        try:
            made = exclusions.create_rule(study=chosen, by=request.user, **rule, **form.cleaned_data)
        except NotPossible as reason:
            form.add_error(None, str(reason))
        else:
            messages.success(request, f"The rule stands; it leaves out {made.exclusions.count()} of the sessions.")
            return redirect("studies:exclusions", chosen.name)
    context = monitor_pages.exclusions_page(chosen, rule, form)
    return render(request, "studies/exclusions.html", context, status=422 if form.errors else 200)


@member_page
@require_POST
def revoke(request: HttpRequest, study: str, rule: int) -> HttpResponse:
    chosen = study_for(request.user, study)
    found = chosen.exclusion_rules.filter(pk=rule).first()
    if found is None:
        raise Http404
    try:
        back = exclusions.revoke_rule(rule=found, by=request.user, now=timezone.now())
    except NotPossible as reason:
        messages.error(request, str(reason))
    else:
        messages.success(request, f"The rule is revoked; {len(back)} of the sessions count again.")
    return redirect("studies:exclusions", chosen.name)


@require_safe
@member_page
def export(request: HttpRequest, study: str) -> HttpResponse:
    chosen = study_for(request.user, study)
    return render(request, "studies/export.html", monitor_pages.export_page(chosen))


@member_page
def export_csv(request: HttpRequest, study: str, table: str) -> HttpResponse:
    """One table. The one with names of people has to be asked for by a post, and that it was is written down."""
    chosen = study_for(request.user, study)
    if table == PAYMENTS:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        audit.record("study.payments_exported", chosen, actor=request.user)
        return exports.payments_response(chosen)
    if request.method not in {"GET", "HEAD"}:
        return HttpResponseNotAllowed(["GET", "HEAD"])
    return exports.table_response(chosen, table)


@require_safe
@member_page
def export_json(request: HttpRequest, study: str) -> HttpResponse:
    return exports.json_response(study_for(request.user, study), timezone.now())


@require_safe
@member_page
def export_zip(request: HttpRequest, study: str) -> HttpResponse:
    return exports.zip_response(study_for(request.user, study), timezone.now())
