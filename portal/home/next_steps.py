"""What comes next: for an organizer, in each of their editions; for a member, with each of their teams.

Nothing here asks the database for more than the rows it is given; `select_organized` counts what a step needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Case, CharField, Exists, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils.http import urlencode

from common.memory import format_size
from listening.app.models import Block, Condition, Study
from listening.app.studies.rules import HIDDEN_WITH_LEADERBOARD, LAUNCHED, RESULTS_TAKEN_BACK, TOO_FEW_LEFT
from portal.challenges.models import Edition
from portal.challenges.rules import NOT_LISTED, Phase, moment, phase_in_words, registration_phase, submission_phase
from portal.core.counting import count_rows
from portal.core.mail import if_mailed
from portal.core.models import AuditEvent
from portal.corpora.selectors import CorpusSummary
from portal.editions.pages import GET_DATA, NextStep
from portal.jobs.models import Job
from portal.submissions.models import SharedPart, Submission, System, Upload
from portal.submissions.pages import UNDER_WAY, address_of_page
from portal.submissions.rules import is_on_leaderboard
from portal.submissions.selectors import ACCEPTED, STANDING, STOPPED, with_stopped
from portal.teams.models import DataAcceptance, Invitation, Team
from portal.teams.rules import describe_end

_MAILED = "You get a mail when it is done."
_CHECKED = ("is being checked", _MAILED, "See its progress")
# What became of a team's newest submission, what to do, and the button that leads there.
OF_A_SUBMISSION: dict[str, tuple[str, str, str]] = {
    Submission.State.RECEIVED: _CHECKED,
    Submission.State.CHECKING: _CHECKED,
    Submission.State.REFUSED: (
        "was refused",
        "The report names each and says how to correct it; a refused archive costs nothing, so submit again.",
        "Read the report",
    ),
    Submission.State.ACCEPTED: ("is accepted", "Its numbers are computed next.", "See the submission"),
    Submission.State.EVALUATING: ("is being evaluated", _MAILED, "See its progress"),
    Submission.State.EVALUATED: ("is evaluated", "Every number is on one page.", "See the results"),
    Submission.State.FAILED: (
        "could not be evaluated",
        "The organizer sees why and can start the evaluation again.",
        "See the submission",
    ),
}
_OF_A_STOPPED = ("was not checked to its end", "The organizer can start its check again.", "See the submission")
WORKED_ON = UNDER_WAY | {Submission.State.REFUSED}
EVALUATED_SOON = UNDER_WAY | {Submission.State.ACCEPTED}
BEFORE_LAUNCH = (Study.State.DRAFT, Study.State.PREPARING, Study.State.PREPARED)
OF_THE_NEWEST_STUDY = ("name", "title", "state", "results_published_at", "archived_at", "blocks_all", "blocks_finished")
# Of a listening test in a state: its badge, and what is said beside it.
OF_A_STUDY: dict[str, tuple[str, str]] = {
    Study.State.DRAFT: ("waiting", "draft"),
    Study.State.PREPARING: ("running", "stimuli are being made"),
    Study.State.PREPARED: ("waiting", "ready to launch"),
    Study.State.OPEN: ("running", "under way"),
    Study.State.PAUSED: ("running", "paused"),
    Study.State.CLOSED: ("succeeded", ""),
}


# An organizer's editions ----------------------------------------------------------------------------


@dataclass(frozen=True)
class PathStep:
    """A part of the way of an edition.

    `state` as badges have it: ``succeeded`` where it is done, ``running`` where nobody has to do anything, else
    ``waiting``.
    """

    title: str
    state: str
    note: str
    url: str


@dataclass(frozen=True)
class EditionPath:
    """An edition from its corpus to its published leaderboard, and what comes next in it."""

    edition: Edition
    steps: tuple[PathStep, ...]
    next: NextStep | None


def select_organized(user: Any) -> QuerySet[Edition]:
    """The editions that one organises, newest first, with what the steps of each need counted."""
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
    """The way of an edition that `select_organized` gave."""
    name, corpus = edition.name, edition.corpus
    edit = reverse("editions:edit", args=[name])
    board = reverse("leaderboard:detail", args=[name])
    steps = (
        _step("Corpus", corpus is not None, str(corpus or ""), corpus.get_absolute_url() if corpus else edit),
        _step("Challenge", edition.is_listed, "" if edition.is_listed else "not listed", edit),
        _baseline_step(edition, edit),
        _step("Teams", edition.approved > 0, _teams_note(edition), reverse("editions:teams", args=[name])),
        _listening_step(edition),
        _published_step(edition, board),
    )
    return EditionPath(edition, steps, _next_in(edition, {step.title: step for step in steps}, now))


def outline_path(*, has_corpus: bool) -> tuple[PathStep, ...]:
    """The steps of a challenge for an organizer who has none yet; only the first two lead somewhere."""
    return (
        _step("Corpus", has_corpus, "", reverse("corpora:list" if has_corpus else "corpora:import")),
        _step("Challenge", False, "", reverse("editions:new") if has_corpus else ""),
        *(_step(title, False, "", "") for title in ("Baseline", "Teams", "Listening test", "Published")),
    )


def _step(title: str, is_done: bool, note: str, url: str) -> PathStep:
    return PathStep(title, "succeeded" if is_done else "waiting", note, url)


def _teams_note(edition: Any) -> str:
    return ", ".join(
        f"{count} {word}" for count, word in ((edition.approved, "approved"), (edition.waiting, "waiting")) if count
    )


def _baseline_step(edition: Any, edit: str) -> PathStep:
    """Done once a baseline of the edition has its numbers: others stand on no leaderboard of it."""
    start = edit
    if edition.corpus is not None:
        start = f"{reverse('systems:new', args=[edition.corpus.name])}?{urlencode({'edition': edition.name})}"
    if edition.baselines_under_way and not edition.baselines:
        at_work = reverse("systems:detail", args=[edition.baseline_at_work])
        return PathStep("Baseline", "running", "being evaluated", at_work)
    return _step("Baseline", edition.baselines > 0, "", start)


def _listening_step(edition: Any) -> PathStep:
    """Return the step of the newest listening test under way, else of the newest closed one, else of any."""
    if edition.study_state is None:
        return _step("Listening test", False, "", f"{reverse('studies:new')}?{urlencode({'edition': edition.name})}")
    state, note = OF_A_STUDY[edition.study_state]
    if edition.study_state in LAUNCHED and 0 < edition.study_blocks_all == edition.study_blocks_finished:
        state, note = "waiting", "to be closed: every block is finished"
    if edition.study_state in (Study.State.DRAFT, Study.State.PREPARED) and edition.not_heard:
        systems = "1 accepted system is" if edition.not_heard == 1 else f"{edition.not_heard} accepted systems are"
        note += f"; {systems} in no listening test"
    if edition.study_archived_at is not None:
        note = "archived"
    if edition.study_results_published_at is not None and edition.published_at is None:
        note = f"its results are {HIDDEN_WITH_LEADERBOARD}"
    return PathStep("Listening test", state, note, reverse("studies:detail", args=[edition.study_name]))


def _published_step(edition: Any, board: str) -> PathStep:
    """Done once the leaderboard and the results of a closed listening test are published."""
    if edition.published_at is None:
        count = edition.under_way
        note = f"not before {count} submission{' is' if count == 1 else 's are'} evaluated" if count else ""
        return _step("Published", False, note, board)
    if _lacks_results(edition):
        results = reverse("studies:results", args=[edition.study_name])
        return _step("Published", False, "results of the listening test are not", results)
    return _step("Published", True, "", board)


def _lacks_results(edition: Any) -> bool:
    """Whether its newest listening test is closed and its results are not published."""
    return edition.study_state == Study.State.CLOSED and edition.study_results_published_at is None


def _listing_words(edition: Edition) -> str:
    """What to decide before an edition is listed: whether it is, and whether its teams download the speech."""
    text = f"Now {NOT_LISTED}, and teams register by your link only. Tick “Listed” when everything is right."
    if edition.corpus is None:
        return text
    may = "can" if edition.shares_data else "cannot"
    return f"{text} Approved teams {may} download the speech of the corpus; the same page decides it."


def _waiting_words(edition: Any) -> str:
    text = "They register on the page of the edition; you approve them."
    if edition.corpus is None:
        return text
    then = (
        "They can then download the speech."
        if edition.shares_data
        else "The portal gives them no speech: “Edit” decides it."
    )
    return f"{text} {then}"


def _next_in(edition: Any, steps: dict[str, PathStep], now: datetime) -> NextStep | None:
    """What its organizer does next: first what somebody waits for, then the first step that is not done."""
    if edition.waiting:
        title = "1 team waits for approval" if edition.waiting == 1 else f"{edition.waiting} teams wait for approval"
        return NextStep(title, "A team cannot submit before you approve it.", "Look at the teams", steps["Teams"].url)
    if edition.offered:
        what = (
            "1 sample or description waits"
            if edition.offered == 1
            else f"{edition.offered} samples or descriptions wait"
        )
        system = reverse("systems:detail", args=[edition.offered_system])
        text = "Nobody else hears or reads what a team offers before you release it."
        return NextStep(
            f"{what} for release", text, "See what is offered", f"{system}?version={edition.offered_version}#samples"
        )
    if edition.outdated_study is not None:
        text = "Somebody withdrew their answers after its results were published."
        results = reverse("studies:results", args=[edition.outdated_study])
        return NextStep(f"Analyse {edition.outdated_title} again", text, "See the results", results)
    if edition.taken_back_study is not None:
        test = reverse("studies:detail", args=[edition.taken_back_study])
        return NextStep(f"Results of {edition.taken_back_title} were taken back", TOO_FEW_LEFT, "See the test", test)
    words = {
        "Corpus": ("Choose its corpus", "The speech that teams anonymise.", "Edit the edition"),
        "Challenge": ("List it", _listing_words(edition), "Edit the edition"),
        "Baseline": ("Run a baseline", "Teams are compared with it on the leaderboard.", "Run a baseline"),
        "Teams": ("Wait for teams", _waiting_words(edition), "Invite teams"),
        "Listening test": _listening_words(edition),
        "Published": ("Publish the leaderboard", "Until then only organizers see it.", "See the leaderboard"),
    }
    if edition.published_at is not None:
        title = f"Publish the results of {edition.study_title}"
        words["Published"] = (title, "Until then only organizers see them.", "See the results")
    is_published = steps["Published"].state == "succeeded"
    for step in steps.values():
        if is_published and step.title in ("Baseline", "Teams"):
            continue  # nobody waits for them any more
        if step.title == "Published" and edition.published_at is None and edition.under_way:
            return None  # nobody has to publish it while a system is still being evaluated
        if step.state == "waiting":
            if step.title == "Listening test" and _is_too_early(edition, now):
                text = "A listening test is planned once a team’s submission is accepted or submissions are closed."
                submissions = reverse("submissions:list", args=[edition.name])
                return NextStep("Wait for submissions", text, "See the submissions", submissions)
            title, text, action = words[step.title]
            return NextStep(title, text, action, step.url)
    if edition.study_state in LAUNCHED and edition.study_blocks_all:
        title = (
            f"{edition.study_title}: {edition.study_blocks_finished} of {edition.study_blocks_all} blocks are finished"
        )
        text = "Invite evaluators for the others, or close it as it is; its analysis follows."
        return NextStep(title, text, "See the test", steps["Listening test"].url)
    if is_published and steps["Listening test"].state == "succeeded" and edition.draft_study is not None:
        words_of_draft = _words_of_draft(edition.draft_state, edition.draft_title)
        return NextStep(*words_of_draft, reverse("studies:detail", args=[edition.draft_study]))
    if is_published and steps["Listening test"].state == "succeeded":
        text = "Look at the results. Its page has Copy, for the next edition, and “Archive or delete”."
        return NextStep("Everything is published", text, "See the leaderboard", steps["Published"].url, is_due=False)
    return None


def _is_too_early(edition: Any, now: datetime) -> bool:
    """Whether a listening test would be of baselines alone, while teams may still submit."""
    return edition.study_state is None and not edition.accepted and submission_phase(edition, now) is not Phase.CLOSED


def _listening_words(edition: Any) -> tuple[str, str, str]:
    """Title, text and button of what comes next with a listening test that waits for its organizer."""
    if edition.study_state is None:
        return "Plan a listening test", "People rate what computed numbers cannot measure.", "New listening test"
    if edition.study_state in LAUNCHED:
        return (
            f"Close {edition.study_title}",
            "Every block is finished; its analysis follows.",
            "See the test",
        )
    return _words_of_draft(edition.study_state, edition.study_title)


def _words_of_draft(state: str, title: str) -> tuple[str, str, str]:
    """Return title, text and button of the next step with a listening test that was not launched."""
    if state == Study.State.PREPARED:
        return (
            f"Launch {title}",
            "Its stimuli are prepared; after the launch evaluators take its link.",
            "See the test",
        )
    return f"Prepare {title}", "Make its design and its stimuli, then launch it.", "See the test"


# A member's teams -----------------------------------------------------------------------------------


def team_steps(
    teams: Iterable[Team],
    newest: dict[int, Submission],
    with_data: set[int],
    uploads: Iterable[Upload],
    now: datetime,
) -> Iterator[NextStep]:
    """What comes next for each team, what was refused first.

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
    who = f"{team.label or team}, {edition}"
    if edition.archived_at is not None:
        text = "It takes no teams and no submissions. Your results stay."
        return NextStep(f"{who}: the edition is archived", text, "See the edition", edition.get_absolute_url())
    if team.state == Team.State.WAITING:
        text = f"The organizer looks at your registration{if_mailed('; you get a mail')}. Its owner can invite members."
        return NextStep(f"{who}: wait for approval", text, "See the team", page)
    if team.state != Team.State.APPROVED:
        text = describe_end(team, now)
        return NextStep(f"{who}: {team.get_state_display().lower()}", text, "See the team", page)
    can_submit = submission_phase(edition, now) in {Phase.OPEN, Phase.LATE}
    if begun is not None and can_submit and (newest is None or newest.state not in UNDER_WAY):
        arrived = f"{format_size(begun.offset)} of {format_size(begun.size)} have arrived."
        text = f"{arrived} Choose the same file again, or repeat vp submit: the upload continues there."
        return NextStep(f"{who}: finish the upload of {begun.file_name}", text, "Continue", address_of_page(begun))
    has_ranks = not can_submit if newest is None else not (can_submit and newest.state in WORKED_ON)
    if edition.published_at is not None and has_ranks:
        board = reverse("leaderboard:detail", args=[edition.name])
        text = _place_on_leaderboard(edition, newest)
        return NextStep(f"{who}: the leaderboard is published", text, "See the leaderboard", board)
    if newest is None:
        return _submit_step(edition, who, has_data, now)
    what, text, action = _OF_A_STOPPED if newest.is_stopped else OF_A_SUBMISSION[newest.state]  # type: ignore[attr-defined]
    if newest.state == Submission.State.REFUSED:
        text = f"{newest.errors} error{'' if newest.errors == 1 else 's'}. {text}"
    text = if_mailed(text, "Look here again later.") if text == _MAILED else text
    url = newest.get_absolute_url()
    if newest.state == Submission.State.EVALUATED:
        url = f"{newest.system.get_absolute_url()}?version={newest.version}"
    return NextStep(f"{who}: {newest} {what}", text, action, url)


def _place_on_leaderboard(edition: Edition, newest: Submission | None) -> str:
    if newest is None:
        return "Your team has no system on it."
    of_leaderboard = {"published_at": edition.published_at, "frozen_at": edition.as_published().frozen_at}
    if newest.evaluated_at is None:
        what = _OF_A_STOPPED[0] if newest.is_stopped else OF_A_SUBMISSION[newest.state][0]  # type: ignore[attr-defined]
        return f"{newest} is not on it: it {what}."
    if newest.is_held:
        return f"{newest} is not on it until the organizer releases its numbers."
    if not is_on_leaderboard(evaluated_at=newest.evaluated_at, is_held=False, **of_leaderboard):
        return f"{newest} is not on it: the leaderboard is as of an earlier time."
    return "See your ranks."


def _submit_step(edition: Edition, who: str, has_data: bool, now: datetime) -> NextStep:
    phase = submission_phase(edition, now)
    words = phase_in_words(edition, "submissions", now)
    if phase is Phase.BEFORE:
        return NextStep(
            f"{who}: wait for submissions to open",
            f"Submissions: {words}.",
            "See the edition",
            edition.get_absolute_url(),
        )
    if phase is Phase.CLOSED:
        submissions = reverse("submissions:list", args=[edition.name])
        return NextStep(f"{who}: submissions are closed", "Your results stay here.", "Your submissions", submissions)
    if edition.shares_data and edition.corpus_id is not None and not has_data:
        return NextStep(f"{who}: get the data", GET_DATA, "Get the data", reverse("editions:data", args=[edition.name]))
    text = "Anonymise the speech, pack what the page asks for, and submit it."
    submit = reverse("submissions:new", args=[edition.name])
    return NextStep(f"{who}: submit your system", text, "Submit an archive", submit)


def teams_with_data(user: Any, teams: Iterable[Team]) -> set[int]:
    """Keys of the teams for which this person accepted the licence of the data."""
    return set(DataAcceptance.objects.filter(user=user, team__in=list(teams)).values_list("team_id", flat=True))


def newest_submissions(teams: Iterable[Team]) -> dict[int, Submission]:
    """The newest submission of each team that has one, by the key of the team; none that is withdrawn, nor one that was
    refused before a later version of its system, or as the same archive as an earlier one."""
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
    """Where a member is invited: only the mail holds the link that lets them join."""
    for one in invitations:
        inviter = one.invited_by or "the team"
        text = if_mailed(
            f"Open the link in the mail to {one.email} of {moment(one.created_at)}; it works until "
            f"{moment(one.expires_at)}. Is it lost? Ask {inviter} to send the invitation again.",
            f"Open the link that {inviter} gives you; it works until {moment(one.expires_at)}. Is it lost? Ask for a "
            "new one.",
        )
        yield NextStep(f"Join the team {one.team} in {one.team.edition}", text, "", "")


def registration_steps(editions: Iterable[Edition], now: datetime) -> Iterator[NextStep]:
    """Where a member without a team can register one."""
    for edition in editions:
        if registration_phase(edition, now) is Phase.OPEN:
            text = "Register a team, then invite its members. The organizer approves it."
            register = reverse("editions:register", args=[edition.name])
            yield NextStep(f"Take part in {edition}", text, "Register a team", register)


# An organizer's corpora -----------------------------------------------------------------------------


def next_steps(corpora: list[CorpusSummary], editions: list[Edition], own_tests: list[Study]) -> Iterator[NextStep]:
    """What is missing besides the steps of an organizer's `editions`, which say when a baseline has to be run.

    Who has `own_tests`, listening tests of their own recordings, needs no corpus.
    """
    in_editions = {edition.corpus_id for edition in editions}
    if not corpora and not own_tests:
        text = (
            "A challenge starts with original speech: a folder on the server with recordings, speakers and "
            "transcripts. The import checks every file and reports everything at once."
        )
        yield NextStep("Import your first corpus", text, "Import a corpus", reverse("corpora:import"))
        text = "Needs no challenge: an archive with a folder of recordings for each condition is enough."
        yield NextStep("Or make a listening test", text, "Test your own recordings", reverse("studies:own"))
    elif corpora and not editions:
        text = "Choose its corpus, who evaluates, the limits and the dates. You see the rules before they are public."
        yield NextStep("Set up your first challenge", text, "New challenge", reverse("editions:new"))
    anonymised = set(System.objects.filter(corpus__in=[one.corpus for one in corpora]).values_list("corpus", flat=True))
    for summary in corpora:
        if not summary.with_audio:
            yield _add_audio(summary)
        elif summary.corpus.pk not in anonymised | in_editions:
            yield _run_an_anonymiser(summary)


def look_at_failures(failed: list[Job]) -> NextStep:
    """Where to read why jobs failed.

    Args:
        failed: at least one, newest first.
    """
    newest = failed[0]
    if len(failed) == 1:
        return NextStep(f"“{newest.title}” failed", newest.failure, "See the job", newest.get_absolute_url())
    text = "Each says what went wrong, who must act and what to do."
    return NextStep(f"{len(failed)} jobs failed", text, "See the failed jobs", f"{reverse('jobs:list')}?state=failed")


def _add_audio(summary: CorpusSummary) -> NextStep:
    corpus = summary.corpus
    folder = {"folder": corpus.source} if corpus.source.startswith("/") else {}  # else the name of an archive
    wanted = urlencode({"name": corpus.name, **folder, "layout": corpus.layout})
    text = "Only its lists are here. Import it again under the same name, with the folder of its recordings."
    address = f"{reverse('corpora:import')}?{wanted}"
    return NextStep(f"Add the audio of {corpus.name}", text, "Import the audio", address)


def _run_an_anonymiser(summary: CorpusSummary) -> NextStep:
    name = summary.corpus.name
    text = "You have no system on it yet; the measures of one are computed automatically."
    return NextStep(f"Anonymise {name}", text, "Run an anonymiser", reverse("systems:new", args=[name]))


# The operator ---------------------------------------------------------------------------------------


def waiting_people_step(count: int) -> Iterator[NextStep]:
    """Yield who waits for the operator to be let in."""
    if count:
        title = "Somebody waits" if count == 1 else f"{count} people wait"
        text = "For their address to be confirmed, or for a link for a new password, which no mail brings."
        yield NextStep(f"{title} for you", text, "Show who waits", f"{reverse('people:list')}?show=waiting")


def operator_steps(*, has_organizer: bool) -> Iterator[NextStep]:
    """What an operator of a young portal does."""
    if not has_organizer:
        text = "Nobody can import a corpus or set up a challenge yet. The role can also be given to an account."
        yield NextStep("Invite an organizer", text, "Invite somebody", reverse("people:invite"))
    if not settings.MAIL_SERVER:
        text = (
            "Set PORTAL_MAIL_URL and PORTAL_MAIL_FROM. Until then you pass on the links of invitations yourself, and "
            "“People” shows who waits for a link."
        )
        yield NextStep(
            "Set up a mail server",
            text,
            "How to set it up",
            f"{reverse('docs:page', args=['operator'])}#accounts-and-mail",
        )
