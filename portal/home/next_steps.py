"""What comes next: for an organizer, in each of their editions; for a member, with each of their teams.

Nothing here asks the database for more than the rows it is given; `select_organized` counts what a step needs.
`templates/home/next_step.txt` says each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, CharField, Exists, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils.http import urlencode

from listening.app.models import Block, Condition, Study
from listening.app.studies.rules import LAUNCHED, RESULTS_TAKEN_BACK
from portal.challenges.models import Edition
from portal.challenges.rules import Phase, describe_phase, registration_phase, submission_phase
from portal.core.counting import count_rows
from portal.core.mail import sends_mail
from portal.core.models import AuditEvent
from portal.corpora.selectors import CorpusSummary
from portal.editions.pages import NextStep
from portal.jobs.models import Job
from portal.submissions.models import SharedPart, Submission, System, Upload
from portal.submissions.pages import UNDER_WAY, address_of_page
from portal.submissions.rules import is_on_leaderboard
from portal.submissions.selectors import ACCEPTED, STANDING, STOPPED, with_stopped
from portal.teams.models import DataAcceptance, Invitation, Team
from portal.teams.rules import describe_end

WORKED_ON = UNDER_WAY | {Submission.State.REFUSED}
EVALUATED_SOON = UNDER_WAY | {Submission.State.ACCEPTED}
BEFORE_LAUNCH = (Study.State.DRAFT, Study.State.PREPARING, Study.State.PREPARED)
OF_THE_NEWEST_STUDY = ("name", "title", "state", "results_published_at", "archived_at", "blocks_all", "blocks_finished")
# Badges of a listening test; it waits for its organizer in the other states.
STUDY_BADGES = {
    Study.State.PREPARING: "running",
    Study.State.OPEN: "running",
    Study.State.PAUSED: "running",
    Study.State.CLOSED: "succeeded",
}


# An organizer's editions ----------------------------------------------------------------------------


@dataclass(frozen=True)
class PathStep:
    """A part of the way of an edition; `templates/home/_path.html` says what is to be known about it.

    `state` as badges have it: ``succeeded`` where it is done, ``running`` where nobody has to do anything, else
    ``waiting``.
    """

    title: str
    state: str
    url: str


@dataclass(frozen=True)
class EditionPath:
    """An edition from its corpus to its published leaderboard, and what comes next in it."""

    edition: Edition
    steps: tuple[PathStep, ...]
    next: NextStep | None


def select_organized(user: Any) -> QuerySet[Edition]:
    """Return the editions that one organises, newest first, with what the steps of each need counted."""
    teams, baselines = Team.objects.all(), Submission.objects.filter(system__team=None)
    under_way = Submission.objects.filter(state__in=UNDER_WAY).exclude(STOPPED)
    soon = baselines.filter(state__in=EVALUATED_SOON).exclude(STOPPED)
    at_work = soon.filter(system__edition=OuterRef("pk")).order_by("-pk").values("system__name")[:1]
    evaluated = baselines.filter(state__in=STANDING, evaluated_at__isnull=False)
    counted = Q(archived_at=None) | Q(results_published_at__isnull=False)
    studies = Study.objects.filter(counted, is_simulated=False, edition=OuterRef("pk"))
    offered = SharedPart.objects.filter(
        released_at=None, submission__state__in=STANDING, submission__system__archived_at=None
    )
    first = offered.filter(submission__system__edition=OuterRef("pk")).order_by("offered_at", "pk")
    accepted = System.objects.filter(
        Exists(Submission.objects.filter(system=OuterRef("pk"), state__in=ACCEPTED)), archived_at=None
    ).exclude(team=None)
    heard = Condition.objects.filter(submission__system=OuterRef("pk"), study__is_simulated=False)
    is_closed = Q(state=Study.State.CLOSED)  # a step that is finished: a draft beside it does not turn it back
    order = Case(
        When(state__in=LAUNCHED, then=0), When(is_closed, archived_at=None, then=1), When(is_closed, then=2), default=3
    )
    by_need = studies.order_by(order, "-pk")
    by_need = by_need.annotate(
        blocks_all=count_rows(Block.objects.all(), "study"),
        blocks_finished=count_rows(Block.objects.filter(is_finished=True), "study"),
    )
    outdated = studies.filter(published_analysis__erased_at__isnull=False).order_by("-pk")
    told = AuditEvent.objects.filter(
        action=RESULTS_TAKEN_BACK, subject_type="listening.study", subject_id=Cast(OuterRef("pk"), CharField())
    )
    taken_back = studies.filter(Exists(told), archived_at=None, results_published_at=None).order_by("-pk")
    drafts = studies.filter(state__in=BEFORE_LAUNCH, archived_at=None).order_by("-pk")
    newest = {f"study_{name}": Subquery(by_need.values(name)[:1]) for name in OF_THE_NEWEST_STUDY}
    return (
        user.organized_editions.filter(archived_at=None)
        .select_related("corpus")
        .annotate(
            waiting=count_rows(teams.filter(state=Team.State.WAITING), "edition"),
            approved=count_rows(teams.filter(state=Team.State.APPROVED), "edition"),
            under_way=count_rows(under_way, "system__edition"),
            baselines=count_rows(evaluated, "system__edition"),
            baselines_under_way=count_rows(soon, "system__edition"),
            baseline_at_work=Subquery(at_work),
            accepted=count_rows(accepted, "edition"),
            not_heard=count_rows(accepted.exclude(Exists(heard)), "edition"),
            offered=count_rows(offered, "submission__system__edition"),
            offered_system=Subquery(first.values("submission__system__name")[:1]),
            offered_version=Subquery(first.values("submission__version")[:1]),
            outdated_study=Subquery(outdated.values("name")[:1]),
            outdated_title=Subquery(outdated.values("title")[:1]),
            taken_back_study=Subquery(taken_back.values("name")[:1]),
            taken_back_title=Subquery(taken_back.values("title")[:1]),
            draft_study=Subquery(drafts.values("name")[:1]),
            draft_title=Subquery(drafts.values("title")[:1]),
            draft_state=Subquery(drafts.values("state")[:1]),
            **newest,
        )
        .order_by("-created_at", "-pk")
    )


def edition_path(edition: Any, now: datetime) -> EditionPath:
    """Return the way of an edition that `select_organized` gave."""
    corpus = edition.corpus
    edit = reverse("editions:edit", args=[edition.name])
    steps = (
        _step("Corpus", corpus is not None, corpus.get_absolute_url() if corpus else edit),
        _step("Challenge", edition.is_listed, edit),
        _baseline_step(edition, edit),
        _step("Teams", edition.approved > 0, reverse("editions:teams", args=[edition.name])),
        _listening_step(edition),
        _published_step(edition),
    )
    return EditionPath(edition, steps, _next_in(edition, {step.title: step for step in steps}, now))


def outline_path(*, has_corpus: bool) -> tuple[PathStep, ...]:
    """Return the steps of a challenge for an organizer who has none yet; only the first two lead somewhere."""
    return (
        _step("Corpus", has_corpus, reverse("corpora:list" if has_corpus else "corpora:import")),
        _step("Challenge", False, reverse("editions:new") if has_corpus else ""),
        *(_step(title, False, "") for title in ("Baseline", "Teams", "Listening test", "Published")),
    )


def _step(title: str, is_done: bool, url: str) -> PathStep:
    return PathStep(title, "succeeded" if is_done else "waiting", url)


def _baseline_step(edition: Any, edit: str) -> PathStep:
    """Done once a baseline of the edition has its numbers: others stand on no leaderboard of it."""
    start = edit
    if edition.corpus is not None:
        start = f"{reverse('systems:new', args=[edition.corpus.name])}?{urlencode({'edition': edition.name})}"
    if edition.baselines_under_way and not edition.baselines:
        return PathStep("Baseline", "running", reverse("systems:detail", args=[edition.baseline_at_work]))
    return _step("Baseline", edition.baselines > 0, start)


def _listening_step(edition: Any) -> PathStep:
    """Return the step of the newest listening test under way, else of the newest closed one, else of any."""
    if edition.study_state is None:
        return _step("Listening test", False, f"{reverse('studies:new')}?{urlencode({'edition': edition.name})}")
    state = "waiting" if _is_answered(edition) else STUDY_BADGES.get(edition.study_state, "waiting")
    return PathStep("Listening test", state, reverse("studies:detail", args=[edition.study_name]))


def _is_answered(edition: Any) -> bool:
    """Return whether its newest listening test is under way and every block of it is finished."""
    return edition.study_state in LAUNCHED and 0 < edition.study_blocks_all == edition.study_blocks_finished


def _published_step(edition: Any) -> PathStep:
    """Done once the leaderboard and the results of a closed listening test are published."""
    board = reverse("leaderboard:detail", args=[edition.name])
    if edition.published_at is None:
        return _step("Published", False, board)
    if edition.study_state == Study.State.CLOSED and edition.study_results_published_at is None:
        return _step("Published", False, reverse("studies:results", args=[edition.study_name]))
    return _step("Published", True, board)


def _next_in(edition: Any, steps: dict[str, PathStep], now: datetime) -> NextStep | None:
    """Return what its organizer does next: first what somebody waits for, then the first step that is not done."""
    facts = {"edition": edition}
    if edition.waiting:
        return NextStep("approve", steps["Teams"].url, facts)
    if edition.offered:
        system = reverse("systems:detail", args=[edition.offered_system])
        return NextStep("release", f"{system}?version={edition.offered_version}#samples", facts)
    if edition.outdated_study is not None:
        return NextStep("analyse-again", reverse("studies:results", args=[edition.outdated_study]), facts)
    if edition.taken_back_study is not None:
        return NextStep("taken-back", reverse("studies:detail", args=[edition.taken_back_study]), facts)
    kinds = {
        "Corpus": "choose-corpus",
        "Challenge": "list",
        "Baseline": "run-baseline",
        "Teams": "wait-for-teams",
        "Listening test": _kind_of_test_step(edition.study_state),
        "Published": "publish-leaderboard" if edition.published_at is None else "publish-results",
    }
    is_published = steps["Published"].state == "succeeded"
    for step in steps.values():
        if is_published and step.title in ("Baseline", "Teams"):
            continue  # nobody waits for them any more
        if step.title == "Published" and edition.published_at is None and edition.under_way:
            return None  # nobody has to publish it while a system is still being evaluated
        if step.state == "waiting":
            if step.title == "Listening test" and _is_too_early(edition, now):
                return NextStep("wait-for-submissions", reverse("submissions:list", args=[edition.name]), facts)
            return NextStep(kinds[step.title], step.url, {**facts, "study": edition.study_title})
    if edition.study_state in LAUNCHED and edition.study_blocks_all:
        return NextStep("invite-evaluators", steps["Listening test"].url, facts)
    if is_published and steps["Listening test"].state == "succeeded":
        if edition.draft_study is None:
            return NextStep("all-published", steps["Published"].url, facts, is_due=False)
        draft = reverse("studies:detail", args=[edition.draft_study])
        return NextStep(_kind_of_test_step(edition.draft_state), draft, {"study": edition.draft_title})
    return None


def _is_too_early(edition: Any, now: datetime) -> bool:
    """Return whether a listening test would be of baselines alone, while teams may still submit."""
    return edition.study_state is None and not edition.accepted and submission_phase(edition, now) is not Phase.CLOSED


def _kind_of_test_step(state: str | None) -> str:
    """Return what comes next with a listening test that waits for its organizer; None where there is none yet."""
    if state is None:
        return "plan-test"
    if state in LAUNCHED:
        return "close-test"
    return "launch-test" if state == Study.State.PREPARED else "prepare-test"


# A member's teams -----------------------------------------------------------------------------------


def team_steps(
    teams: Iterable[Team],
    newest: dict[int, Submission],
    with_data: set[int],
    uploads: Iterable[Upload],
    now: datetime,
) -> Iterator[NextStep]:
    """Yield what comes next for each team, what was refused first.

    Args:
        newest: the newest submission of each team that has one, by the key of the team.
        with_data: keys of the teams for which their reader accepted the licence of the data.
        uploads: those that were begun.
    """
    begun = {one.team_id: one for one in uploads if one.state == Upload.State.RECEIVING}
    refused = {key for key, submission in newest.items() if submission.state == Submission.State.REFUSED}
    for team in sorted(teams, key=lambda one: one.pk not in refused):
        yield _team_step(team, newest.get(team.pk), team.pk in with_data, begun.get(team.pk), now)


def _team_step(team: Team, newest: Submission | None, has_data: bool, begun: Upload | None, now: datetime) -> NextStep:
    edition, page = team.edition, team.get_absolute_url()
    facts: dict[str, Any] = {"who": f"{team.label or team}, {edition}", "team": team, "submission": newest}
    if edition.archived_at is not None:
        return NextStep("archived", edition.get_absolute_url(), facts)
    if team.state == Team.State.WAITING:
        return NextStep("wait-for-approval", page, facts)
    if team.state != Team.State.APPROVED:
        return NextStep("team-ended", page, {**facts, "explanation": describe_end(team, now)})
    can_submit = submission_phase(edition, now) in {Phase.OPEN, Phase.LATE}
    if begun is not None and can_submit and (newest is None or newest.state not in UNDER_WAY):
        return NextStep("finish-upload", address_of_page(begun), {**facts, "upload": begun})
    has_ranks = not can_submit if newest is None else not (can_submit and newest.state in WORKED_ON)
    if edition.published_at is not None and has_ranks:
        board = reverse("leaderboard:detail", args=[edition.name])
        facts["is_on_leaderboard"] = newest is not None and is_on_leaderboard(
            published_at=edition.published_at,
            frozen_at=edition.as_published().frozen_at,
            evaluated_at=newest.evaluated_at,
            is_held=newest.is_held,
        )
        return NextStep("leaderboard-published", board, facts)
    if newest is None:
        return _submit_step(edition, facts, has_data, now)
    if newest.is_stopped:  # type: ignore[attr-defined]
        return NextStep("stopped", newest.get_absolute_url(), facts)
    url = newest.get_absolute_url()
    if newest.state == Submission.State.EVALUATED:
        url = f"{newest.system.get_absolute_url()}?version={newest.version}"
    return NextStep(newest.state, url, facts)


def _submit_step(edition: Edition, facts: Mapping[str, Any], has_data: bool, now: datetime) -> NextStep:
    phase = submission_phase(edition, now)
    if phase is Phase.BEFORE:
        coming = describe_phase(edition, "submissions", now)
        return NextStep("submissions-open-later", edition.get_absolute_url(), {**facts, "phase": coming})
    if phase is Phase.CLOSED:
        return NextStep("submissions-closed", reverse("submissions:list", args=[edition.name]), facts)
    if edition.shares_data and edition.corpus_id is not None and not has_data:
        return NextStep("get-data", reverse("editions:data", args=[edition.name]), facts)
    return NextStep("submit", reverse("submissions:new", args=[edition.name]), facts)


def teams_with_data(user: Any, teams: Iterable[Team]) -> set[int]:
    """Keys of the teams for which this person accepted the licence of the data."""
    return set(DataAcceptance.objects.filter(user=user, team__in=list(teams)).values_list("team_id", flat=True))


def newest_submissions(teams: Iterable[Team]) -> dict[int, Submission]:
    """Return the newest submission of each team that has one, by the key of the team; none that is withdrawn, nor one
    that was refused before a later version of its system, or as the same archive as an earlier one."""
    states = Submission.State
    later = Submission.objects.filter(system=OuterRef("system"), version__gt=OuterRef("version"))
    repeated = Submission.objects.filter(pk=OuterRef("pk"), report_summary__0__code="same-archive")
    of_one = Submission.objects.filter(system__team=OuterRef("pk")).exclude(state=states.WITHDRAWN)
    of_one = of_one.exclude(Exists(later) | Exists(repeated), state=states.REFUSED)
    keys = Team.objects.filter(pk__in=[team.pk for team in teams]).annotate(
        newest=Subquery(of_one.order_by("-created_at", "-pk").values("pk")[:1])
    )
    submissions = with_stopped(Submission.objects.filter(pk__in=keys.values("newest")))
    found = submissions.select_related("system__team", "system__edition")
    return {one.system.team_id: one for one in found if one.system.team_id is not None}


def invitation_steps(invitations: Iterable[Invitation]) -> Iterator[NextStep]:
    """Return a step for each invitation of a member: only the mail holds the link that lets them join."""
    return (NextStep("join", "", {"invitation": invitation}) for invitation in invitations)


def registration_steps(editions: Iterable[Edition], now: datetime) -> Iterator[NextStep]:
    """Yield where a member without a team can register one."""
    for edition in editions:
        if registration_phase(edition, now) is Phase.OPEN:
            yield NextStep("register", reverse("editions:register", args=[edition.name]), {"edition": edition})


# An organizer's corpora -----------------------------------------------------------------------------


def next_steps(corpora: list[CorpusSummary], editions: list[Edition], own_tests: list[Study]) -> Iterator[NextStep]:
    """Yield what is missing besides the steps of an organizer's `editions`, which say when a baseline has to be run.

    Who has `own_tests`, listening tests of their own recordings, needs no corpus.
    """
    in_editions = {edition.corpus_id for edition in editions}
    if not corpora and not own_tests:
        yield NextStep("import-corpus", reverse("corpora:import"))
        yield NextStep("own-test", reverse("studies:own"))
    elif corpora and not editions:
        yield NextStep("new-challenge", reverse("editions:new"))
    anonymised = set(System.objects.filter(corpus__in=[one.corpus for one in corpora]).values_list("corpus", flat=True))
    for summary in corpora:
        corpus = summary.corpus
        if not summary.with_audio:
            folder = {"folder": corpus.source} if corpus.source.startswith("/") else {}  # else the name of an archive
            wanted = urlencode({"name": corpus.name, **folder, "layout": corpus.layout})
            yield NextStep("add-audio", f"{reverse('corpora:import')}?{wanted}", {"corpus": corpus})
        elif corpus.pk not in anonymised | in_editions:
            yield NextStep("run-anonymiser", reverse("systems:new", args=[corpus.name]), {"corpus": corpus})


def look_at_failures(failed: list[Job]) -> NextStep:
    """Return where to read why jobs failed.

    Args:
        failed: at least one, newest first.
    """
    if len(failed) == 1:
        return NextStep("job-failed", failed[0].get_absolute_url(), {"job": failed[0]})
    return NextStep("jobs-failed", f"{reverse('jobs:list')}?state=failed", {"count": len(failed)})


# The operator ---------------------------------------------------------------------------------------


def waiting_people_step(count: int) -> Iterator[NextStep]:
    """Yield who waits for the operator to be let in."""
    if count:
        yield NextStep("people-wait", f"{reverse('people:list')}?show=waiting", {"count": count})


def operator_steps(*, has_organizer: bool) -> Iterator[NextStep]:
    """Yield what an operator of a young portal does."""
    if not has_organizer:
        yield NextStep("invite-organizer", reverse("people:invite"))
    if not sends_mail():
        yield NextStep("set-up-mail", f"{reverse('docs:page', args=['operator'])}#accounts-and-mail")
