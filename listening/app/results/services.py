"""From a closed study to published results: starting its analysis, leaving listeners out, publishing.

An analysis of equal inputs, settings and code is never computed twice. While a study is open it is refused, because
people who see results may stop at the ones they like. A study that is closed while somebody still listens is analysed
once the last one has ended.

Flags that only an analysis can find are listed with those of the monitor, so that the same reversible rules leave such
sessions out. They are final for a session that is left out: without it nobody looks at it again. New ones are caught by
no standing rule: leaving listeners out moves the means of the others, and rules that were applied automatically would
go on until hardly anybody is left.

Results are published after the leaderboard of their edition, on whose systems they are, and only as the study is now:
an analysis that no longer fits its inputs is computed again first. Only an evaluation of a system that has ended since
does not ask for that: no result of listeners follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import F, Q
from django.urls import reverse

from common.errors import NotPossible
from listening.analysis.reading.inputs import parse_settings
from listening.analysis.tables import Results
from listening.app.models import Analysis, ExclusionRule, Flag, Session, Study
from listening.app.monitor.selectors import standing_exclusion
from listening.app.monitor.services import create_rule, flag_sessions, keep_flags
from listening.app.results.inputs import compute_basis, count_people, has_answers, keys_of_sessions
from listening.app.results.rules import FEWEST_PEOPLE
from listening.app.results.selectors import (
    changes_since,
    current_analysis,
    is_being_analysed,
    outdating,
    parsed_results,
)
from listening.app.sessions.block_leases import end_sessions
from listening.app.studies.rules import LAUNCHED, RESULTS_TAKEN_BACK
from listening.app.studies.selectors import heard_submissions
from listening.app.studies.services import change_state
from portal.accounts.rules import NotificationKind
from portal.core import audit
from portal.core.clock import read_clock
from portal.core.mail import render_mail
from portal.jobs.models import Job
from portal.jobs.services import create_job
from portal.submissions.models import Submission
from portal.submissions.services import refuse_deleted
from portal.teams.models import Team
from portal.teams.notifications import notify_team

ANALYSIS_JOB = "analyse-study"
LOCKED = "Results are locked until the study is closed: seeing them early could bias when it is stopped."
NOTHING = "There is nothing to analyse: no session that counts has an answer."
BUSY = "The study is being analysed already. Wait for it, or cancel its job first."
WITHDREW_SINCE = "Somebody withdrew just now, so what was computed before is out of date. Analyse the study again."
# Rules of the analysis look at people, those of the monitor at sessions: what both look for has two flags.
FLAG_OF_RULE: Mapping[str, str] = {
    "disagrees": Flag.Kind.DISAGREES,
    "bridge-outlier": Flag.Kind.BRIDGE_OUTLIER,
    "vote-outliers": Flag.Kind.VOTE_OUTLIERS,
    "low-variance": Flag.Kind.EVEN_RATINGS,
    "gold-missed": Flag.Kind.CONTROLS_MISSED,
    "reference-low": Flag.Kind.REFERENCE_LOW,
    "anchor-high": Flag.Kind.ANCHOR_HIGH,
}
UNKNOWN = "No rule of that name can leave sessions out."
TOLD_ONCE_IN = timedelta(days=1)  # results that are taken back and published again are no news
ANOTHER = "There is a newer analysis than the one you looked at. Go back, look at its results, then publish them."
NOT_PUBLISHED = "The results are not published."


@transaction.atomic
def start_analysis(study: Study, by: Any, chosen: Mapping[str, Any] | None = None) -> Analysis:
    """Return the analysis of a study as it is now: the one there is, or a new one whose job is started.

    Args:
        chosen: settings that differ from the usual ones.

    Raises:
        ProblemsError: a setting is unknown or out of range.
        NotPossible: the study is not closed, nobody answered, it is being analysed, or somebody withdrew meanwhile.
    """
    settings = parse_settings(chosen or {}).as_data()
    study = Study.objects.select_for_update(of=("self",)).select_related("edition").get(pk=study.pk)
    _refuse(study)
    unseen = study.sessions.filter(Q(flagged_at=None) | Q(ended_at__gt=F("flagged_at")))
    flag_sessions(read_clock(), unseen.values_list("pk", flat=True))  # who ended just now may not count
    basis = compute_basis(study)
    alike = [one for one in study.analyses.filter(basis=basis, erased_at=None) if one.chosen == settings]
    if made := next((one for one in alike if one.is_ready), None):
        return _again(study, made, by)
    analysis = next(iter(alike), None) or study.analyses.create(basis=basis, chosen=settings, created_by=by)
    analysis.job = create_job(
        kind=ANALYSIS_JOB,
        title=f"What listeners said in {study}"[:200],
        parameters={"analysis": analysis.pk},
        by=by,
        edition=study.edition.name if study.edition else "",
    )
    analysis.save(update_fields=["job"])
    audit.record("study.analysis_started", study, actor=by, analysis=analysis.pk, settings=settings)
    return analysis


@transaction.atomic
def close_study(*, study: Study, by: Any, now: datetime, ends_sessions: bool = False) -> Study:
    """End a study permanently; its answers stay, and their analysis starts at once if nobody listens any more.

    Args:
        ends_sessions: of those who listen, too, who else have until the end of their lease. Who has no place yet gets
            none any more.

    Raises:
        NotPossible: it was never launched, or it is closed already.
    """
    study = change_state(study, LAUNCHED, Study.State.CLOSED, "closed", by)
    study.closed_at = now
    study.save(update_fields=["closed_at"])
    end_sessions(study=study, now=now, with_places=ends_sessions)
    # Closing must not fail should the analysis not start.
    transaction.on_commit(lambda: start_due_analysis(study), robust=True)
    return study


def start_due_analysis(study: Study) -> Analysis | None:
    """Analyse a closed study for the first time, once nobody listens to it any more; None where that is not due."""
    study = Study.objects.get(pk=study.pk)
    listening = study.sessions.filter(state=Session.State.ACTIVE, is_preview=False, held_block__isnull=False)
    if study.state != Study.State.CLOSED or study.analyses.exists() or listening.exists():
        return None
    with suppress(NotPossible):  # nobody answered
        return start_analysis(study, None)
    return None


def start_due_analyses() -> None:
    """Call `start_due_analysis` for every study that was never analysed."""
    for study in Study.objects.filter(state=Study.State.CLOSED, analyses=None):
        start_due_analysis(study)


def _refuse(study: Study) -> None:
    if study.state != Study.State.CLOSED:
        raise NotPossible(LOCKED)
    if is_being_analysed(study):
        raise NotPossible(BUSY)
    if not has_answers(study):
        raise NotPossible(NOTHING)
    refuse_deleted(heard_submissions(study).values())


def _again(study: Study, made: Analysis, by: Any) -> Analysis:
    """Return an analysis made before, as the newest one, with the flags that follow from it; nothing is computed.

    Nothing is copied either: a withdrawal at this moment finds everything that holds answers.
    """
    if current_analysis(study) == made:
        return made
    if not study.analyses.filter(pk=made.pk, erased_at=None).update(finished_at=read_clock()):
        raise NotPossible(WITHDREW_SINCE)
    made.refresh_from_db()
    flags = write_flags(study, parsed_results(made.results))
    audit.record("study.analysis_taken_again", study, actor=by, analysis=made.pk, flags=flags)
    return made


# Leaving listeners out -------------------------------------------------------------------------------


def write_flags(study: Study, results: Results) -> int:
    """Write down which sessions the screening rules of an analysis catch, and which no longer; how many it catches."""
    found = _caught(results)
    pks = keys_of_sessions(study)
    excluded = set(study.sessions.filter(standing_exclusion()).values_list("pk", flat=True))
    looked_at = {pks[key] for key, _ in found if key in pks} - excluded
    caught = {(pks[key], flag): data for (key, flag), data in found.items() if data and pks.get(key) in looked_at}
    kept = Flag.objects.filter(session__study=study, kind__in=Flag.FOUND_BY_ANALYSIS, session__in=looked_at)
    keep_flags(caught, kept)
    return len(caught)


@transaction.atomic
def screen_out(*, study: Study, by: Any, rule: str, reason: str) -> tuple[ExclusionRule, Analysis]:
    """Leave out, reversibly, whom a screening rule catches in the newest analysis, and start the next analysis.

    Args:
        rule: its name in the table ``screening``.

    Raises:
        NotPossible: there is no such rule, no reason is given, it stands already, or the study is being analysed.
    """
    if rule not in FLAG_OF_RULE:
        raise NotPossible(UNKNOWN)
    before = current_analysis(study)
    made = create_rule(study=study, by=by, reason=reason, flag=FLAG_OF_RULE[rule], offers_block_again=False)
    return made, start_analysis(study, by, before.chosen if before is not None else None)


def _caught(results: Results) -> dict[tuple[str, str], dict[str, Any]]:
    """Return by session and flag what the rule found; empty where it looked and did not catch."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in results.records("common", "screening"):
        flag = FLAG_OF_RULE.get(str(row["rule"]))
        if flag is None:
            continue
        data = {name: row[name] for name in ("rule", "task", "value", "limit") if row[name] is not None}
        for session in str(row["session"] or "").split():
            place = session, flag
            found[place] = data if row["is_caught"] else found.get(place, {})
    return found


# Publishing ------------------------------------------------------------------------------------------


@transaction.atomic
def publish_results(*, study: Study, by: Any, now: datetime, seen: int | None = None) -> Study:
    """Show the newest analysis to everybody, and tell the teams whose systems were heard.

    Args:
        seen: the analysis that `by` decided to publish; another one is then refused.

    Raises:
        NotPossible: names everything that stands in the way.
    """
    study = _locked(study)
    if problems := publication_problems(study):
        raise NotPossible(" ".join(problems))
    before, analysis = study.published_analysis_id, current_analysis(study)
    if seen is not None and (analysis is None or analysis.pk != seen):
        raise NotPossible(ANOTHER)
    study.published_analysis, study.results_published_at = analysis, now
    study.save(update_fields=["published_analysis", "results_published_at"])
    heard = study.systems.exclude(submission__state=Submission.State.WITHDRAWN).values("submission__system__team")
    teams = list(Team.objects.select_related("edition").filter(pk__in=heard).order_by("number", "name"))
    audit.record(
        "study.results_published",
        study,
        actor=by,
        analysis=study.published_analysis_id,
        before=before,
        is_simulated=study.is_simulated,
        teams=[str(team) for team in teams],
    )
    for team in teams:
        _tell(team, study, now, by)
    return study


@transaction.atomic
def unpublish_results(*, study: Study, by: Any) -> Study:
    """Hide the results from all but the organizers.

    Raises:
        NotPossible: they are not published.
    """
    study = _locked(study)
    if study.results_published_at is None:
        raise NotPossible(NOT_PUBLISHED)
    _take_back(study, "study.results_unpublished", by)
    return study


def take_back_of_few(study: Study) -> None:
    """Hide published results of which somebody withdrew where the people left are too few to protect each other.

    In the transaction of the withdrawal, which holds the row of the study.
    """
    if study.results_published_at is not None and count_people(study) < FEWEST_PEOPLE:
        _take_back(study, RESULTS_TAKEN_BACK, None)


def _take_back(study: Study, action: str, by: Any) -> None:
    since, analysis = study.results_published_at, study.published_analysis_id
    study.published_analysis, study.results_published_at = None, None
    study.save(update_fields=["published_analysis", "results_published_at"])
    audit.record(action, study, actor=by, analysis=analysis, published_at=since.isoformat() if since else None)


def publication_problems(study: Study) -> list[str]:
    """Return what keeps the newest analysis from being published, as sentences."""
    if study.state != Study.State.CLOSED:
        return ["The study is not closed, so its results are locked. Close it first."]
    problems, analysis = [], current_analysis(study)
    if is_being_analysed(study):
        problems.append("The study is being analysed. Wait for the new figures.")
    elif analysis is None:
        problems.append("There is no finished analysis. Analyse the study first.")
    elif changes := outdating(changes_since(analysis, study)):
        problems.append(f"The analysis no longer fits the study. {' '.join(changes)} Analyse it again first.")
    elif study.results_published_at is not None and study.published_analysis_id == analysis.pk:
        problems.append("These results are published already.")
    if study.waits_for_leaderboard:
        problems.append(f"The leaderboard of {study.edition} is not published yet. Publish it first.")
    return problems


def _locked(study: Study) -> Study:
    return Study.objects.select_for_update(of=("self",)).select_related("edition").get(pk=study.pk)


def _tell(team: Team, study: Study, now: datetime, by: Any) -> None:
    address = reverse("studies:results", args=[study.name])
    told = Job.objects.filter(kind="send-notice", created_at__gte=now - TOLD_ONCE_IN, parameters__team=team.pk)
    if told.filter(parameters__kind=str(NotificationKind.HEARD), parameters__url=address).exists():
        return
    notify_team(
        team=team,
        kind=NotificationKind.HEARD,
        mail=render_mail("listening/mail/published.txt", {"study": study}),
        url=address,
        besides=by,
    )


# Stored files ----------------------------------------------------------------------------------------


def delete_unused_files(keys: Iterable[str]) -> list[str]:
    """Delete stored files that no analysis uses and no study was imported from; those that are gone then.

    Equal files are stored once, so another analysis may hold the same.
    """
    wanted = set(keys)
    used: set[str] = set(Study.objects.filter(imported__in=wanted).values_list("imported", flat=True))
    rows = Analysis.objects.values_list("inputs", "results", "figures")
    for inputs, results, figures in rows.iterator() if wanted else ():
        used.update(wanted.intersection((inputs, results, *figures.values())))
    gone = sorted(wanted - used)
    for key in gone:
        default_storage.delete(key)
    return gone
