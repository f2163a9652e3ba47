"""Pages of a running study for its organizers: monitor, sessions, exclusions and the export of the raw study."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from listening.app.models import ExclusionRule, Flag, Session, Study
from listening.app.monitor import exports, selectors, services
from listening.app.monitor.forms import RuleForm
from listening.app.studies.pages import BADGES, language_name
from listening.app.studies.rules import LAUNCHED, places_for_one_network
from listening.app.studies.views import study_page, study_post
from portal.core import audit
from portal.core.clock import read_clock
from portal.jobs.services import NotPossible

PAGE_SIZE = 10
LOG_SIZE = 50
MOST_DIGITS = 18  # of the number of a row


@require_safe
@study_page
def monitor(request: HttpRequest, study: Study, template: str) -> HttpResponse:
    """Return how a study goes, renewed every few seconds by its live part; no rating is shown."""
    now = read_clock()
    lines = selectors.list_lines(study, now)
    show = request.GET.get("show", "")
    _, is_shown = selectors.SHOWS.get(show, ("", lambda _: True))
    page = Paginator([line for line in lines if is_shown(line)], PAGE_SIZE).get_page(request.GET.get("page"))
    selectors.with_flags(list(page))
    found = selectors.build_monitor(study, lines, now)
    context = vars(found) | {
        "study": study,
        "badge": BADGES[Study.State(study.state)],
        "compared": "condition" if study.is_crossed else "system",
        "now": now,
        "is_live": study.state != Study.State.CLOSED or found.counts.active > 0,
        "clip_kinds": selectors.KINDS.values(),
        "may_begin": places_for_one_network(study, found.blocks.total),
        "page": page,
        "show": show if show in selectors.SHOWS else "",
        "shows": [(name, label) for name, (label, _) in selectors.SHOWS.items()],
    }
    return render(request, template, context)


@require_safe
@study_page
def session_detail(request: HttpRequest, study: Study, session: int) -> HttpResponse:
    """Return one session: its steps, times, flags, screening and playbacks; no rating and no system."""
    only = _find_session(study, session).pk
    [line] = selectors.with_flags(selectors.list_lines(study, read_clock(), only=only))
    shown = line.session
    context = {
        "study": study,
        "session": shown,
        "line": line,
        "language": language_name(shown.language),
        "trials": selectors.list_plays(shown),
        "screening": shown.screening_results.all(),
        "events": list(shown.events.order_by("-pk")[:LOG_SIZE])[::-1],
        "exclusions": shown.exclusions.select_related("rule").filter(rule__revoked_at=None),
        "can_exclude": shown.state not in (Session.State.ACTIVE, Session.State.WITHDRAWN),
    }
    return render(request, "listening/monitor/session.html", context)


def _find_session(study: Study, pk: int) -> Session:
    return get_object_or_404(study.sessions.select_related("study", "block", "participant"), pk=pk, is_preview=False)


@study_page
def exclusion_list(request: HttpRequest, study: Study) -> HttpResponse:
    """Return the rules of a study; with ``?flag=…`` or ``?session=…`` what another would do, and a post makes it."""
    chosen = _chosen_rule(study, request.GET)
    form = RuleForm(request.POST if request.method == "POST" else None, instance=chosen)
    if request.method == "POST":
        if chosen is None:
            raise Http404
        if form.is_valid() and (made := form.make(request.user)) is not None:
            messages.success(request, f"The rule is in force; it leaves out {made.exclusions.count()} of the sessions.")
            return redirect("studies:exclusions", study.name)
    context = {
        "study": study,
        "chosen": chosen,
        "effect": services.preview_effect(study, flag=chosen.flag, session=chosen.session) if chosen else None,
        "form": form,
        "rules": services.list_rules(study),
        "flags": Flag.Kind.choices,
        "log": [
            (event, event.data["before"]["systems"].items(), event.data["after"]["systems"].items())
            for event in services.list_log(study)[:LOG_SIZE]
        ],
        "is_open": study.state in LAUNCHED,
    }
    return render(request, "listening/monitor/exclusions.html", context, status=422 if form.errors else 200)


def _chosen_rule(study: Study, query: QueryDict) -> ExclusionRule | None:
    """Return the rule that the address asks for, not stored, by a flag or a session; Http404 for an unknown one."""
    flag, number = query.get("flag", ""), query.get("session", "")
    if flag and flag not in Flag.Kind.values:
        raise Http404
    if not flag and not number:
        return None
    pk = int(number) if number.isdecimal() and len(number) <= MOST_DIGITS else 0
    return ExclusionRule(study=study, flag=flag, session=None if flag else _find_session(study, pk))


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
    context = {
        "study": study,
        "tables": [(name, exports.ABOUT[name]) for name in exports.TABLES],
        "is_locked": exports.is_locked(study),
        "lock_notice": exports.LOCK_NOTICE,
        "about_payments": exports.ABOUT[exports.PAYMENTS],
        "has_platform": study.participants.exclude(platform_id="").exists(),
    }
    return render(request, "listening/monitor/export.html", context)


@study_page
def export_csv(request: HttpRequest, study: Study, table: str) -> HttpResponse:
    """Send one table. The one with names of people has to be asked for by a post, and that it was is written down."""
    allowed = ["POST"] if table == exports.PAYMENTS else ["GET", "HEAD"]
    if request.method not in allowed:
        return HttpResponseNotAllowed(allowed)
    if table == exports.PAYMENTS:
        audit.record("study.payments_exported", study, actor=request.user)
    return exports.csv_response(study, table)


@require_safe
@study_page
def export_all(request: HttpRequest, study: Study, extension: str) -> HttpResponse:  # noqa: ARG001
    """Return the whole study as one file, JSON or zip."""
    return exports.file_response(study, timezone.now(), extension)
