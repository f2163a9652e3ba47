"""What the organizer's pages of a running study show: monitor, one session, exclusions, export."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, QueryDict

from listening.models import Flag, Session, Study
from listening.monitor import exclusions, monitoring, reported_clips
from listening.monitor.export_dictionary import ABOUT, LOCK_NOTICE
from listening.monitor.export_tables import TABLES, is_locked
from listening.monitor.exports import notices
from listening.monitor.monitoring import Line
from listening.studies.study_pages import BADGES as STUDY_BADGES
from portal.core.models import AuditEvent
from portal.core.wording import duration

State = Session.State
PAGE_SIZE = 50
LOG_SIZE = 50
MOST_CLIPS = 20
SHOWS = {
    "active": "under way",
    "stalled": "stalled",
    "finished": "finished",
    "left": "ended early",
    "flagged": "flagged",
    "excluded": "left out",
}
# How the states of a session look like among the badges of the portal.
BADGES = {
    State.ACTIVE: "running",
    State.FINISHED: "succeeded",
    State.EXPIRED: "failed",
    State.TECHNICAL: "failed",
    State.FAILED_ATTENTION: "failed",
    State.SCREENED_OUT: "cancelled",
    State.WITHDRAWN: "cancelled",
}


def monitor_page(request: HttpRequest, study: Study, now: datetime) -> dict[str, Any]:
    """The whole of the monitor; its live part is made of the same."""
    lines = monitoring.lines_of(study, now)
    show = request.GET.get("show", "")
    shown = Paginator(_shown(study, lines, show), PAGE_SIZE).get_page(request.GET.get("page"))
    found = monitoring.monitor_of(study, lines, now)
    return {
        "study": study,
        "badge": STUDY_BADGES[Study.State(study.state)],
        "now": now,
        "monitor": found,
        "clip_kinds": reported_clips.KINDS.values(),
        "clips": found.clips[:MOST_CLIPS],
        "clips_left_out": max(0, len(found.clips) - MOST_CLIPS),
        "stats": _stats(found),
        "page": shown,
        "rows": rows_of(shown),
        "show": show if show in SHOWS else "",
        "shows": SHOWS.items(),
        "is_live": study.state != Study.State.CLOSED or found.counts.active > 0,
        "query": _query(request),
    }


def rows_of(shown: Page[Line] | list[Line]) -> list[dict[str, Any]]:
    """Lines with their flags and badge."""
    return [{"line": line, "badge": badge_of(line.session)} for line in monitoring.with_flags(list(shown))]


def badge_of(session: Session) -> str:
    return BADGES[State(session.state)]


def session_page(session: Session, now: datetime) -> dict[str, Any]:
    """One session: its steps, times, flags, screening and playbacks; no rating and no system."""
    line = monitoring.line_of(session, now)
    session = line.session
    return {
        "study": session.study,
        "session": session,
        "line": line,
        "badge": badge_of(session),
        "times": _times_of(session),
        "trials": monitoring.plays_of(session),
        "screening": session.screening_results.all(),
        "events": list(session.events.order_by("-pk")[:LOG_SIZE])[::-1],
        "exclusions": session.exclusions.select_related("rule").filter(rule__revoked_at=None),
        "can_exclude": session.state not in (State.ACTIVE, State.WITHDRAWN),
    }


class RuleForm(forms.Form):
    """The reason of a rule whose effect was shown; what it leaves out stands in the address."""

    reason = forms.CharField(
        max_length=exclusions.LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="It stands beside every result that rests on this, and in the export.",
    )
    offers_block_again = forms.BooleanField(
        required=False,
        initial=True,
        label="Offer the blocks of these sessions again",
        help_text="Another evaluator then hears the whole block. While the study is closed, nobody does.",
    )


def exclusions_page(study: Study, chosen: dict[str, Any] | None, form: RuleForm) -> dict[str, Any]:
    """The rules there are, what was done, and what the chosen one would do."""
    effect = exclusions.effect_of(study, **chosen) if chosen else None
    return {
        "study": study,
        "chosen": chosen,
        "chosen_label": _label(chosen) if chosen else "",
        "effect": effect,
        "form": form,
        "rules": exclusions.rules_of(study),
        "flags": Flag.Kind.choices,
        "labels": dict(Flag.Kind.choices),
        "log": [_deed(event) for event in log_of(study)[:LOG_SIZE]],
        "is_recruiting": study.state in (Study.State.OPEN, Study.State.PAUSED),
    }


def chosen_rule(study: Study, query: QueryDict) -> dict[str, Any] | None:
    """What the address asks to leave out: a flag or a session; None for nothing.

    Raises:
        Http404: there is no such flag or session.
    """
    flag, number = query.get("flag", ""), query.get("session", "")
    if flag:
        if flag not in Flag.Kind.values:
            raise Http404
        return {"flag": flag}
    if number:
        return {"session": session_of(study, int(number) if number.isdecimal() and len(number) < 19 else 0)}
    return None


def session_of(study: Study, pk: int) -> Session:
    """A session of the study that counts.

    Raises:
        Http404: there is none of this number.
    """
    found = study.sessions.select_related("study", "block", "participant").filter(pk=pk, is_preview=False).first()
    if found is None:
        raise Http404
    return found


def log_of(study: Study) -> QuerySet[AuditEvent]:
    """What was left out and counted again, newest first."""
    events = AuditEvent.objects.filter(subject_type="listening.study", subject_id=str(study.pk))
    return events.filter(action__in=exclusions.DEEDS).select_related("actor").order_by("-at", "-pk")


def export_page(study: Study) -> dict[str, Any]:
    return {
        "study": study,
        "tables": [(name, ABOUT[name]) for name in TABLES],
        "is_locked": is_locked(study),
        "is_imported": bool(study.imported),
        "lock_notice": LOCK_NOTICE,
        "notices": notices(study),
        "about_payments": ABOUT["payments"],
        "has_platform": study.participants.exclude(platform_id="").exists(),
    }


def _shown(study: Study, lines: list[Line], show: str) -> list[Line]:
    if show == "flagged":
        flagged = set(Flag.objects.filter(session__study=study, data__holds=True).values_list("session", flat=True))
        return [line for line in lines if line.session.pk in flagged]
    tests = {
        "active": lambda line: line.session.state == State.ACTIVE,
        "stalled": lambda line: line.is_stalled,
        "finished": lambda line: line.session.state == State.FINISHED,
        "left": lambda line: line.session.state in monitoring.LEFT,
        "excluded": lambda line: line.is_excluded,
    }
    return [line for line in lines if show not in tests or tests[show](line)]


def _query(request: HttpRequest) -> str:
    """The part of the address that the live part repeats."""
    kept = QueryDict(mutable=True)
    for name in ("show", "page"):
        if value := request.GET.get(name):
            kept[name] = value
    return kept.urlencode()


def _stats(found: monitoring.Monitor) -> list[dict[str, Any]]:
    counts, times = found.counts, found.times
    per_trial = f"{duration(times.trial_s)} a trial" if times.trial_s is not None else ""
    return [
        {"label": "Started", "value": counts.starts},
        {"label": "Under way", "value": counts.active, "note": "stalled ones among them"},
        {"label": "Stalled", "value": counts.stalled, "note": "no sign of life for 2 min"},
        {"label": "Finished", "value": counts.finished},
        {"label": "Lost their block", "value": counts.expired},
        {"label": "Withdrawn", "value": counts.withdrawn},
        {"label": "Screened out", "value": counts.screened_out},
        {"label": "Failed attention", "value": counts.failed_attention},
        {"label": "Technical fault", "value": counts.technical},
        {"label": "Left out", "value": counts.excluded, "note": "by a standing rule"},
        {"label": "Median time", "value": duration(times.session_s), "note": per_trial},
    ]


def _times_of(session: Session) -> list[tuple[str, datetime | None]]:
    return [
        ("Started", session.started_at),
        ("Consent", session.consented_at),
        ("First trial", session.trials_started_at),
        ("Last sign of life", session.last_seen_at),
        ("End", session.ended_at),
    ]


def _label(chosen: dict[str, Any]) -> str:
    if "flag" in chosen:
        return f"Sessions flagged: {Flag.Kind(chosen['flag']).label}"
    return f"Session {chosen['session'].pk}"


def _deed(event: AuditEvent) -> dict[str, Any]:
    """An event of the log with what changed: usable answers of each system before and after."""
    before, after = event.data.get("before", {}), event.data.get("after", {})
    systems = before.get("systems", {})
    return {
        "event": event,
        "is_back": event.action == exclusions.REVOKED,
        "before": before.get("answers", 0),
        "after": after.get("answers", 0),
        "systems": [(name, count, after.get("systems", {}).get(name, 0)) for name, count in sorted(systems.items())],
    }
