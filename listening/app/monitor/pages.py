"""What the organizer's pages of a running study show: monitor, one session, exclusions, export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, QueryDict
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.text import capfirst

from common.tables import Cell, Column, Table, number_columns
from listening.app.models import ExclusionRule, Flag, Presentation, Session, Study
from listening.app.monitor import selectors, services
from listening.app.monitor.exports import ABOUT, LOCK_NOTICE, PAYMENTS, TABLES, is_locked, notices
from listening.app.monitor.selectors import SessionLine
from listening.app.studies.forms import or_errors
from listening.app.studies.pages import BADGES as STUDY_BADGES
from listening.app.studies.pages import language_name, plain_table
from listening.app.studies.rules import LAUNCHED, places_for_one_network
from portal.core.labels import duration, moment_cell
from portal.core.models import AuditEvent

State = Session.State
PAGE_SIZE = 10
LOG_SIZE = 50
MOST_CLIPS = 20
PLAYED = (
    *(Column("trial", "Trial"), Column("purpose", "Purpose"), Column("answered", "Answered (UTC)")),
    *number_columns("Time taken", "Sent whole", "Plays", "To the end"),
    Column("notes", "Notes", kind="text"),
)
# What the list of sessions shows, and which lines these are; who is flagged is asked of the database.
SHOWS: Mapping[str, tuple[str, Callable[[SessionLine], bool]]] = {
    "active": ("under way", lambda line: line.session.state == State.ACTIVE),
    "stalled": ("stalled", lambda line: line.is_stalled),
    "finished": ("finished", lambda line: line.session.state == State.FINISHED),
    "left": ("ended early", lambda line: line.session.state in selectors.LEFT),
    "flagged": ("flagged", lambda _: True),
    "excluded": ("left out", lambda line: line.is_excluded),
}
REFUSALS = {
    "network": "too many came from one network address",
    "study": "very many began within ten minutes",
    "full": "all places were taken",
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
    """Return the whole monitor; its live part uses the same data."""
    lines = selectors.list_lines(study, now)
    show = request.GET.get("show", "")
    shown = Paginator(_shown(study, lines, show), PAGE_SIZE).get_page(request.GET.get("page"))
    found = selectors.build_monitor(study, lines, now)
    may_begin = places_for_one_network(study, found.blocks.total)
    return {
        "study": study,
        "badge": STUDY_BADGES[Study.State(study.state)],
        "now": now,
        "monitor": found,
        "coverage_table": _coverage_table(study, found.coverage),
        "stages_table": _stages_table(found),
        "flags_table": _flags_table(study, found),
        "clips_table": _clips_table(found),
        "has_unplayable": any(one.counts[-1] for one in found.clips),
        "sessions_table": _sessions_table(request, study, list(shown), found.trials),
        "clips_left_out": max(0, len(found.clips) - MOST_CLIPS),
        "stats": _stats(found),
        "refusals": list_refusals(study),
        "may_begin": may_begin,
        "share": min(found.blocks.total, may_begin),
        "page": shown,
        "show": show if show in SHOWS else "",
        "shows": [(name, label) for name, (label, _) in SHOWS.items()],
        "is_live": study.state != Study.State.CLOSED or found.counts.active > 0,
        "query": _query(request),
    }


def list_refusals(study: Study) -> list[str]:
    """Return how many times people were turned away, why, and when that was last; empty where nobody was."""
    return [
        f"{told['count']} time{'s' if told['count'] > 1 else ''} because {REFUSALS[kind]}, last on "
        f"{datetime.fromisoformat(told['last_at']):%Y-%m-%d %H:%M} UTC"
        for kind, told in study.refusals.items()
        if kind in REFUSALS
    ]


def _name_compared(study: Study) -> str:
    return "condition" if study.is_crossed else "system"


def _coverage_table(study: Study, coverage: Any) -> Table:
    """Return usable answers of each system or condition against what is planned."""
    called = _name_compared(study)
    classes = ("Same speaker", "Different speakers") if coverage.has_classes else ()
    columns = [Column("system", called.capitalize()), Column("usable", "Usable of planned")]
    columns += number_columns(*classes, "Under way", "In sessions that ended early")

    def usable(cell: Any) -> Cell:
        return Cell(f"{cell.usable:,} of {cell.planned:,}" if cell else "–")

    rows = []
    for row in coverage.rows:
        meter = format_html(
            '<span>{} of {} <meter class="quantity" min="0" max="100" value="{}" aria-label="{}"></meter></span>',
            f"{row.total.usable:,}",
            f"{row.total.planned:,}",
            str(row.total.percent),
            f"{row.name}: {row.total.percent} %",
        )
        of_classes = (usable(row.same), usable(row.different)) if classes else ()
        ends = (Cell(f"{count:,}") for count in (row.total.under_way, row.total.partial))
        rows.append((Cell(row.name), Cell(drawing=meter), *of_classes, *ends))
    return plain_table(f"Usable answers of each {called} against what is planned", columns, rows, styles="stack")


def _stages_table(found: Any) -> Table:
    columns = [Column("page", "Page"), *number_columns("Came", "Now", "Stopped")]
    rows = [tuple(map(Cell, (one.name, *map(str, (one.reached, one.here, one.left))))) for one in found.stages]
    return plain_table("Sessions that came to each page, are there now, and stopped there", columns, rows, styles="")


def _flags_table(study: Study, found: Any) -> Table:
    """Return sessions with each flag, and the way to leave them out; links keep their focus by their id."""
    address = reverse("studies:exclusions", args=[study.name])
    link = '<a id="leave-out-{0}" href="{1}?flag={0}">Leave out…<span class="visually-hidden"> {2}</span></a>'
    columns = [Column("flag", "Flag"), *number_columns("Sessions")]
    if is_flagged := any(one.sessions for one in found.flags):
        columns.append(Column("act", "What can be done", kind="num"))
    rows = []
    for one in found.flags:
        acts = Cell(drawing=format_html(link, one.kind, address, one.label) if one.sessions else "")
        rows.append((Cell(capfirst(one.label)), Cell(str(one.sessions)), *((acts,) if is_flagged else ())))
    return plain_table("Sessions with each flag", columns, rows, styles="")


def _clips_table(found: Any) -> Table:
    columns = [Column("recording", "Recording"), *number_columns(*map(str, selectors.KINDS.values()), "Evaluators")]
    rows = [
        tuple(
            map(
                Cell,
                (
                    f"{one.stimulus} ({one.name})" if one.name else str(one.stimulus),
                    *map(str, (*one.counts, one.sessions)),
                ),
            )
        )
        for one in found.clips[:MOST_CLIPS]
    ]
    return plain_table("Recordings by what evaluators say is wrong with them", columns, rows)


def _sessions_table(request: HttpRequest, study: Study, lines: list[SessionLine], trials: int) -> Table:
    """Return a page of the sessions; links keep their focus by their id."""
    columns = [
        Column("session", "Session"),
        Column("state", "State"),
        Column("page", "Page"),
        *number_columns("Answered"),
        Column("block", "Block", kind="text"),
    ]
    columns += [Column("seen", "Last contact (UTC)"), Column("flags", "Flags", kind="text")]
    rows = []
    for line in selectors.with_flags(lines):
        session = line.session
        link = format_html(
            '<span><a id="session-{}" href="{}">Session {}</a>{}</span>',
            str(session.pk),
            reverse("studies:session", args=[study.name, session.pk]),
            str(session.pk),
            format_html(' <span class="ribbon">{}</span>', "simulated") if session.is_simulated else "",
        )
        state = (
            Cell("stalled", badge="waiting")
            if line.is_stalled
            else Cell(session.get_state_display().lower(), badge=badge_of(session))
        )
        flags = format_html_join(
            ", ",
            "{}",
            ((one["label"] if one["holds"] else format_html("<s>{}</s>", one["label"]),) for one in line.flags),
        )
        rows.append(
            (
                Cell(drawing=link),
                replace(state, aside="left out" if line.is_excluded else ""),
                Cell(line.step_label),
                Cell(f"{line.answered} of {trials}"),
                _block_cell(request, line),
                moment_cell(session.last_seen_at or session.started_at, "%Y-%m-%d %H:%M:%S"),
                Cell(drawing=format_html("<span>{}</span>", flags)) if line.flags else Cell("–"),
            )
        )
    return plain_table("Each session of the study", columns, rows, styles="strip dense")


def _block_cell(request: HttpRequest, line: SessionLine) -> Cell:
    """Return the block of a session, until when it is kept for its evaluator, and the button that frees it before."""
    session, until = line.session, line.place_until
    if session.block is None or until is None:
        return Cell(str(session.block.number) if session.block else "–")
    kept = f"kept until {until:%Y-%m-%d %H:%M} UTC"
    if not line.is_stalled:
        return Cell(str(session.block.number), aside=kept)
    button = render_to_string("components/action.html", ask_to_free(line), request)
    drawing = format_html('<span>{} <span class="soft">{}</span></span>{}', session.block.number, kept, button)
    return Cell(drawing=drawing)


def ask_to_free(line: SessionLine) -> dict[str, str]:
    """Return the button that ends a stalled session and so frees its place, with its question."""
    session = line.session
    answers = f"{line.answered} answered trial{' is' if line.answered == 1 else 's are'} kept as partial"
    label, question = (
        "Free this place",
        f"Free the place of session {session.pk}? The session ends, its {answers}, and ",
    )
    question += "its block is offered again."
    if session.study.state == Study.State.CLOSED:  # nobody else gets the block
        label, question = "End this session", f"End session {session.pk}? Its {answers}."
    address = reverse("studies:free-place", args=[session.study.name, session.pk])
    button = {"url": address, "label": label, "kind": "quiet small", "button_id": f"free-{session.pk}"}
    return button | {"confirm": question}


def badge_of(session: Session) -> str:
    return BADGES[State(session.state)]


def session_page(session: Session, now: datetime) -> dict[str, Any]:
    """Return one session: its steps, times, flags, screening and playbacks; no rating and no system."""
    line = selectors.find_line(session, now)
    session = line.session
    return {
        "study": session.study,
        "session": session,
        "language": language_name(session.language),
        "line": line,
        "badge": badge_of(session),
        "times": _list_times(session),
        "trials": _plays_table(session),
        "screening": session.screening_results.all(),
        "events": list(session.events.order_by("-pk")[:LOG_SIZE])[::-1],
        "exclusions": session.exclusions.select_related("rule").filter(rule__revoked_at=None),
        "free": ask_to_free(line) if line.is_stalled and line.place_until else None,
        "can_exclude": session.state not in (State.ACTIVE, State.WITHDRAWN),
    }


class RuleForm(forms.Form):
    """The reason of a rule whose effect was shown; what it leaves out stands in the address."""

    reason = forms.CharField(
        max_length=services.LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="It is shown with every result that depends on this, and in the export.",
    )
    offers_block_again = forms.BooleanField(
        required=False,
        initial=True,
        label="Offer the blocks of these sessions again",
        help_text="Another evaluator then hears the whole block. While the study is closed, nobody does.",
    )

    def save(self, study: Study, by: Any, rule: dict[str, Any]) -> ExclusionRule | None:
        """Return the rule that is made; None with what stands in the way as an error of the form."""
        return or_errors(self, services.create_rule, study=study, by=by, **rule, **self.cleaned_data)


def _plays_table(session: Session) -> Table | None:
    """Return the trials of a session in their order; None without a block."""
    rows = [
        (
            Cell(str(one["position"])),
            Cell("control" if one["purpose"] == Presentation.Purpose.GOLD else one["purpose"]),
            moment_cell(one["answered_at"], "%H:%M:%S") if one["answered_at"] else Cell("–"),
            Cell(duration(one["spent_s"])),
            *(Cell("–" if session.is_simulated else str(one[name])) for name in ("served", "plays", "whole_plays")),
            Cell(one["remarks"] or "–"),
        )
        for one in selectors.list_plays(session)
    ]
    return plain_table("Trials of this session in their order", PLAYED, rows, styles="strip") if rows else None


def exclusions_page(
    request: HttpRequest, study: Study, chosen: dict[str, Any] | None, form: RuleForm
) -> dict[str, Any]:
    """Return the rules there are, what was done, and what the chosen one would do."""
    effect = services.preview_effect(study, **chosen) if chosen else None
    rules = list(services.list_rules(study))
    return {
        "study": study,
        "chosen": chosen,
        "chosen_label": _label(chosen) if chosen else "",
        "effect": effect,
        "changes": _changes_table(study, effect) if effect else None,
        "form": form,
        "rules": _rules_table(request, study, rules) if rules else None,
        "flags": Flag.Kind.choices,
        "labels": dict(Flag.Kind.choices),
        "log": [_log_entry(event) for event in list_log(study)[:LOG_SIZE]],
        "is_open": study.state in LAUNCHED,
    }


def _changes_table(study: Study, effect: Any) -> Table:
    """Return usable answers of each system or condition before and after a rule; what changes is marked."""
    columns = [Column("system", _name_compared(study).capitalize()), *number_columns("Planned", "Before", "After")]
    rows = [
        (
            *map(Cell, (name, f"{planned:,}", f"{before:,}")),
            Cell(f"{after:,}", marks=("changes",) if after != before else ()),
        )
        for name, planned, before, after in effect.changes
    ]
    return plain_table("Usable answers before and after", columns, rows, styles="stack", is_caption_hidden=False)


def _rules_table(request: HttpRequest, study: Study, rules: Iterable[Any]) -> Table:
    """Return the rules of a study, each with the button that revokes it."""
    columns = [Column("what", "Leaves out"), Column("reason", "Reason", kind="text")]
    columns += [*number_columns("Sessions"), Column("made", "Made (UTC)"), Column("state", "State", kind="text")]
    rows = []
    for rule in rules:
        what = Cell(capfirst(rule.get_flag_display()))
        if rule.session_id:
            address = reverse("studies:session", args=[study.name, rule.session_id])
            what = Cell(f"Session {rule.session_id}", link=address)
        if rule.revoked_at:
            by = f"revoked by {rule.revoked_by}" if rule.revoked_by else "revoked"
            state = replace(moment_cell(rule.revoked_at, "%Y-%m-%d %H:%M"), aside=by)
        else:
            asked = {
                "url": reverse("studies:revoke", args=[study.name, rule.pk]),
                "label": "Revoke",
                "kind": "quiet small",
                "confirm": "Revoke this rule? Its sessions count again.",
            }
            state = Cell(drawing=render_to_string("components/action.html", asked, request))
        made = replace(
            moment_cell(rule.created_at, "%Y-%m-%d %H:%M"), aside=f"by {rule.created_by}" if rule.created_by else ""
        )
        rows.append((what, Cell(rule.reason), Cell(f"{rule.caught:,}"), made, state))
    return plain_table("Rules that leave sessions out", columns, rows, styles="stack")


def chosen_rule(study: Study, query: QueryDict) -> dict[str, Any] | None:
    """Return what the address asks to leave out: a flag or a session; None for nothing.

    Raises:
        Http404: there is no such flag or session.
    """
    flag, number = query.get("flag", ""), query.get("session", "")
    if flag:
        if flag not in Flag.Kind.values:
            raise Http404
        return {"flag": flag}
    if number:
        return {"session": find_session(study, int(number) if number.isdecimal() and len(number) < 19 else 0)}
    return None


def find_session(study: Study, pk: int) -> Session:
    """Return a session of the study that counts.

    Raises:
        Http404: there is none of this number.
    """
    return get_object_or_404(study.sessions.select_related("study", "block", "participant"), pk=pk, is_preview=False)


def list_log(study: Study) -> QuerySet[AuditEvent]:
    """Return what was left out and counted again, newest first."""
    events = AuditEvent.objects.filter(subject_type="listening.study", subject_id=str(study.pk))
    return events.filter(action__in=services.ACTIONS).select_related("actor").order_by("-at", "-pk")


def export_page(study: Study) -> dict[str, Any]:
    links = {name: reverse("studies:export-csv", args=[study.name, name]) for name in TABLES}
    columns = Column("table", "Table"), Column("about", "What it holds", kind="text")
    rows = ((Cell(f"{name}.csv", link=link), Cell(ABOUT[name])) for name, link in links.items())
    return {
        "study": study,
        "tables": plain_table("Tables of the export", columns, rows, styles="stack"),
        "is_locked": is_locked(study),
        "is_imported": bool(study.imported),
        "lock_notice": LOCK_NOTICE,
        "notices": notices(study),
        "about_payments": ABOUT[PAYMENTS],
        "has_platform": study.participants.exclude(platform_id="").exists(),
    }


def _shown(study: Study, lines: list[SessionLine], show: str) -> list[SessionLine]:
    if show == "flagged":
        flagged = set(Flag.objects.filter(session__study=study, data__holds=True).values_list("session", flat=True))
        return [line for line in lines if line.session.pk in flagged]
    return [line for line in lines if show not in SHOWS or SHOWS[show][1](line)]


def _query(request: HttpRequest) -> str:
    """Return the part of the address that the live part repeats."""
    return urlencode({name: value for name in ("show", "page") if (value := request.GET.get(name))})


def _stats(found: Any) -> list[dict[str, Any]]:
    counts, times = found.counts, found.times
    per_trial = f"{duration(times.trial_s)} a trial" if times.trial_s is not None else ""
    return [
        {"label": "Started", "value": counts.starts},
        {"label": "Under way", "value": counts.active, "note": "stalled ones among them" if counts.stalled else ""},
        {"label": "Stalled", "value": counts.stalled, "note": "no contact for 2 min"},
        {"label": "Finished", "value": counts.finished},
        {"label": "Timed out", "value": counts.expired},
        {"label": "Withdrawn", "value": counts.withdrawn},
        {"label": "Screened out", "value": counts.screened_out},
        {"label": "Ended by control trials", "value": counts.failed_attention},
        {"label": "Technical error", "value": counts.technical},
        {"label": "Left out", "value": counts.excluded, "note": "by a rule in force"},
        {"label": "Median time", "value": duration(times.session_s), "note": per_trial},
    ]


def _list_times(session: Session) -> list[tuple[str, datetime | None]]:
    return [
        ("Started", session.started_at),
        ("Consent", session.consented_at),
        ("First trial", session.trials_started_at),
        ("Last contact", session.last_seen_at),
        ("End", session.ended_at),
    ]


def _label(chosen: dict[str, Any]) -> str:
    if "flag" in chosen:
        return f"Sessions flagged: {Flag.Kind(chosen['flag']).label}"
    return f"Session {chosen['session'].pk}"


def _log_entry(event: AuditEvent) -> dict[str, Any]:
    """Return an event of the log with what changed: usable answers of each system before and after."""
    before, after = event.data.get("before", {}), event.data.get("after", {})
    systems = before.get("systems", {})
    return {
        "event": event,
        "is_back": event.action == services.REVOKED,
        "before": before.get("answers", 0),
        "after": after.get("answers", 0),
        "systems": [(name, count, after.get("systems", {}).get(name, 0)) for name, count in sorted(systems.items())],
    }
