"""What the pages of submissions show: the list of an edition, a submission with its report, two compared, an upload."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from shlex import quote
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Count, F, Q, QuerySet, Sum, Window
from django.db.models.functions import RowNumber
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from common.errors import InputError, ProblemsError
from evaluation.protocols.ranking.policy import SEVERAL_IN_WORDS, make_policy
from portal.challenges.models import Edition, Role
from portal.challenges.rules import Phase, publishes_at_once, submission_phase
from portal.core.confirmation import ask_first
from portal.corpora.forms import UploadForm
from portal.intake.archives.limits import ARCHIVE_ENDINGS, ARCHIVE_FORMATS
from portal.intake.report import describe_kept
from portal.jobs.models import Job, JobState
from portal.jobs.rules import can_run_again
from portal.jobs.selectors import JobsProgress, with_estimates
from portal.submissions.diff import Change, ComparedSection, compare_submissions, totals
from portal.submissions.models import Submission, SubmittedDocument, System, Upload
from portal.submissions.requirements import ArchiveRequirements, list_requirements
from portal.submissions.resumable_uploads import (
    list_failed_tests,
    submission_problem,
    unfinished_imports,
    unfinished_uploads,
    used_submissions,
)
from portal.submissions.rules import LARGEST_CORPUS_BYTES, LARGEST_RECORDINGS_BYTES, Relation
from portal.submissions.selectors import (
    ACCEPTED,
    IS_STOPPED,
    count_mismatches,
    edition_submissions_for,
    explain_hold,
    list_jobs,
    relation_to,
    with_stopped,
)
from portal.submissions.services import EVALUABLE, evaluation_problem, withdrawal_problem
from portal.teams.models import Membership, Team
from portal.teams.selectors import list_open_invitations, team_of, teams_for

PAGE_SIZE = 50
SHOWN_OF_A_CHANGE = 50
SHOWN_OF_A_KIND = 500
UNDER_WAY = {Submission.State.RECEIVED, Submission.State.CHECKING, Submission.State.EVALUATING}
_ARCHIVES = {  # of the script that uploads one
    "endings": ",".join(ARCHIVE_ENDINGS),
    "formats": ARCHIVE_FORMATS,
    "no_upload": "00000000-0000-0000-0000-000000000000",
}
STATES = [*Submission.State.choices, ("stopped", "stopped")]


# The list of an edition ----------------------------------------------------------------------------
def list_page(request: HttpRequest, edition: Edition) -> dict[str, Any]:
    search = _search(request)
    is_organizer = edition.organizers.filter(pk=request.user.pk).exists()
    found = _found(edition_submissions_for(request.user, edition), search)
    page = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    unlike = count_mismatches(page.object_list)
    for one in page.object_list:
        one.mismatches = unlike.get(one.pk, 0)  # type: ignore[attr-defined]
    return {
        "is_organizer": is_organizer,
        "refusal": "" if is_organizer else _refusal(request.user, edition),
        "edition": edition,
        "page": page,
        "search": search,
        "is_filtered": any(search.values()),
        "states": STATES,
        "teams": edition.teams.exclude(number=None) if is_organizer else [],
        "any_active": any(one.state in UNDER_WAY and not one.is_stopped for one in page),  # type: ignore[attr-defined]
    }


def _refusal(user: Any, edition: Edition) -> str:
    """Return why this person cannot submit to the edition now, for their team."""
    team = team_of(user, edition)
    return submission_problem(edition, team, by=user, now=timezone.now())


def _search(request: HttpRequest) -> dict[str, str]:
    found = {key: request.GET.get(key, "") for key in ("state", "team", "late")}
    known = {
        "state": found["state"] in dict(STATES),
        "team": found["team"].isascii() and found["team"].isdigit() and len(found["team"]) < 10,
        "late": found["late"] == "yes",
    }
    return {key: value if known[key] else "" for key, value in found.items()}


def _found(submissions: QuerySet[Submission], search: dict[str, str]) -> QuerySet[Submission]:
    if search["state"] == "stopped":
        submissions = submissions.filter(IS_STOPPED)
    elif search["state"]:
        submissions = submissions.filter(~IS_STOPPED, state=search["state"])
    if search["team"]:
        submissions = submissions.filter(system__team=int(search["team"]))
    return submissions.filter(is_late=True) if search["late"] else submissions


# A submission --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SubmissionProgress(JobsProgress):
    """How far the work on a submission is."""

    @property
    def check(self) -> Job | None:
        """Return the job that reads the archive, until it has succeeded."""
        return next((job for job in self.jobs if job.kind == "intake" and job.state != JobState.SUCCEEDED), None)

    @property
    def parts(self) -> list[Job]:
        """Return the jobs of the work under way: anonymisation by the portal until all succeeded, then evaluation."""
        making = [job for job in self.jobs if job.kind.startswith("anonymize")]
        if any(job.state != JobState.SUCCEEDED for job in making):
            return making
        return [job for job in self.jobs if job.kind != "intake" and job not in making]

    @property
    def work(self) -> str:
        """Return what these jobs do: anonymisation or evaluation."""
        return "anonymisation" if any(job.kind.startswith("anonymize") for job in self.parts) else "evaluation"

    @property
    def failed(self) -> list[Job]:
        """Return what failed of the newest evaluation: what failed in one before is past."""
        evaluations = [job.created_at for job in self.jobs if job.kind == "objective"]
        since = evaluations[-2] if len(evaluations) > 1 else None
        return [job for job in super().failed if since is None or job.created_at > since]

    @property
    def mismatches(self) -> int:
        """Return how many numbers are reported otherwise than the files give, by the newest finished evaluation."""
        found = [job for job in self.jobs if job.kind == "objective" and job.state == JobState.SUCCEEDED]
        return found[-1].result.get("disagreements", 0) if found else 0


def summarize_progress(submission: Submission) -> SubmissionProgress:
    return SubmissionProgress(jobs=with_estimates(list_jobs(submission)))


class ReportSection(NamedTuple):
    """What was found in one data set; without a name what concerns the submission as a whole."""

    data_set: str
    causes: list[dict[str, Any]]


def report_sections(submission: Submission) -> list[ReportSection]:
    """Return the stored summary of the report, data set by data set in its order."""
    sections = groupby(submission.report_summary, key=itemgetter("data_set"))
    return [ReportSection(name, list(causes)) for name, causes in sections]


def detail_page(request: HttpRequest, submission: Submission) -> dict[str, Any]:
    relation = relation_to(request.user, submission.system)
    is_organizer = relation is Relation.ORGANIZER
    progress = summarize_progress(submission)
    versions = list(with_stopped(submission.system.submissions.exclude(pk=submission.pk)))
    files, groups = data_set_rows(submission), document_groups(submission)
    is_repeated = any(cause["code"] == "same-archive" for cause in submission.report_summary)
    accepted = [one for one in versions if one.version > submission.version and one.state in ACCEPTED]
    can_evaluate = is_organizer and bool(submission.system.edition) and submission.state in EVALUABLE
    cannot_evaluate = evaluation_problem(submission) if can_evaluate else ""
    return {
        "submission": submission,
        "later": max(accepted, key=lambda one: one.version, default=None),
        "system": submission.system,
        "edition": submission.system.edition,
        "is_on_behalf": _is_on_behalf(submission),
        "is_organizer": is_organizer,
        "events": submission.events.select_related("actor"),
        "progress": progress,
        "hold": explain_hold(submission) if progress.is_active else "",
        "can_check": is_organizer and progress.check is not None and can_run_again(progress.check),
        "can_release": is_organizer and submission.is_held and submission.state == Submission.State.EVALUATED,
        "can_evaluate": can_evaluate and not cannot_evaluate,
        "cannot_evaluate": cannot_evaluate,
        "withdrawal_problem": withdrawal_problem(submission, relation),
        "report": report_sections(submission),
        "kept": "" if is_repeated else describe_kept(files or groups),
        "data_sets": files,
        "recordings": {name: sum(row[name] for row in files) for name in ("new", "inherited")},
        "has_inherited": submission.inherits is not None
        and (any(row["inherited"] for row in files) or submission.documents.filter(is_inherited=True).exists()),
        "document_groups": groups,
        "versions": versions,
    }


def ask_to_withdraw(request: HttpRequest, submission: Submission, relation: Relation) -> HttpResponse:
    """Return the page that asks before a submission is withdrawn."""
    later = submission.system.submissions.filter(version__gt=submission.version).order_by("version")
    facts = [("Title", submission.system.title), ("State", submission.get_state_display().capitalize())]
    facts += [("Later versions", ", ".join(f"version {one.version}" for one in later))] if later else []
    return ask_first(
        request,
        "submissions/withdraw.html",
        f"Withdraw {submission}?",
        action="Withdraw",
        trail=[(str(page), page.get_absolute_url()) for page in (submission.system, submission)],
        problem=withdrawal_problem(submission, relation),
        submission=submission,
        facts_title="The submission",
        facts=facts,
    )


def _is_on_behalf(submission: Submission) -> bool:
    """Return whether the archive was sent by somebody who does not belong to its team."""
    upload, team = submission.upload, submission.system.team
    if upload is None or team is None:
        return False
    return not team.memberships.filter(user=upload.created_by_id).exists()


def data_set_rows(submission: Submission) -> list[dict[str, Any]]:
    """Return how many files each data set has, how many were inherited, how many converted."""
    counted = (
        submission.files.order_by("data_set__name")
        .values("data_set__name")
        .annotate(
            files=Count("pk"),
            inherited=Count("pk", filter=Q(is_inherited=True)),
            converted=Count("pk", filter=~Q(converted_from="")),
        )
    )
    return [{**row, "name": row["data_set__name"], "new": row["files"] - row["inherited"]} for row in counted]


@dataclass(frozen=True)
class DocumentGroup:
    """The documents of one kind: how many there are, and the first of them by path."""

    kind: str
    count: int
    bytes: int
    shown: list[SubmittedDocument]

    @property
    def more(self) -> int:
        return self.count - len(self.shown)


def document_groups(submission: Submission) -> list[DocumentGroup]:
    """Return the documents by kind, in the order of the kinds."""
    documents = submission.documents.order_by("path")
    counted = documents.order_by("kind").values_list("kind").annotate(Count("pk"), Sum("bytes"))
    counts = {kind: (count, size) for kind, count, size in counted}
    place = Window(RowNumber(), partition_by=F("kind"), order_by="path")
    shown: dict[str, list[SubmittedDocument]] = {}
    for document in documents.annotate(place=place).filter(place__lte=SHOWN_OF_A_KIND):
        shown.setdefault(document.kind, []).append(document)
    kinds = SubmittedDocument.Kind
    return [DocumentGroup(str(kind.label), *counts[kind], shown[kind]) for kind in kinds if kind in shown]


# Two submissions -----------------------------------------------------------------------------------
def diff_page(before: Submission, after: Submission) -> dict[str, Any]:
    """Put the older one first, whichever was named first in the address."""
    before, after = sorted((before, after), key=lambda one: (one.created_at, one.pk))
    sections = compare_submissions(before, after)
    return {
        "before": before,
        "after": after,
        "is_one_system": before.system_id == after.system_id,
        "totals": totals(sections).items(),
        "sections": [_diff_section(section) for section in sections],
    }


def _diff_section(section: ComparedSection) -> dict[str, Any]:
    changes = [
        {
            "change": change,
            "count": count,
            "shown": section.of(change, most=SHOWN_OF_A_CHANGE),
            "more": max(0, count - SHOWN_OF_A_CHANGE),
        }
        for change, count in section.counts.items()
        if count and change is not Change.UNCHANGED
    ]
    told = ", ".join(f"{count:,} {change}" for change, count in section.counts.items() if count)
    return {
        "title": section.title,
        "counts": section.counts,
        "told": told,
        "changes": changes,
        "of_documents": section.is_documents,
    }


@dataclass(frozen=True)
class Asked:
    """What an archive of an edition must hold, as its page shows it; `tree` is an example of a complete one."""

    requirements: ArchiveRequirements
    tree: str


def ask(edition: Edition) -> Asked | None:
    """Return what is asked; None where the recipe of the edition cannot be read."""
    try:
        requirements = list_requirements(edition)
    except ProblemsError:
        return None
    return Asked(requirements, example_tree(requirements))


def example_tree(requirements: ArchiveRequirements) -> str:
    """Return the folders and files of a complete archive."""
    entries = [(f"{one.directory}/", [f"UTTERANCE.wav  ({one.utterances:,} files)"]) for one in requirements.data_sets]
    if requirements.result_kinds:
        heard = [one for one in requirements.data_sets if one.role == Role.ENROLMENT]
        tests = [one for one in requirements.data_sets if one.role == Role.TRIAL]
        suffix = requirements.suffix
        names = (heard[0].name, tests[0].name) if heard and tests else ("ENROLMENT", "TRIAL")
        scores = f"ASV-{names[0]}{suffix}-{names[1]}{suffix}/scores"
        files = ["results.txt", "results_summary.txt", scores, "…  (one such folder for each test)"]
        entries.append(("results-2026-01-31-12-00-00/", files))
        entries.append(("hypotheses/", [f"RECOGNITION_SET{suffix}.txt  (where words were recognised)"]))
    entries.append((f"description.pdf  ({'required' if requirements.description_required else 'optional'})", []))
    lines = ["archive.zip"]
    for number, (name, inside) in enumerate(entries, start=1):
        is_last = number == len(entries)
        lines.append(f"{'└── ' if is_last else '├── '}{name}")
        for place, file in enumerate(inside, start=1):
            lines.append(f"{'    ' if is_last else '│   '}{'└── ' if place == len(inside) else '├── '}{file}")
    return "\n".join(lines)


def upload_page(request: HttpRequest, edition: Edition) -> dict[str, Any]:
    """Offer a member their team; an organizer chooses one, or none for a baseline."""
    user = request.user
    is_organizer = edition.organizers.filter(pk=user.pk).exists()
    team = _chosen_team(request, edition)
    context = {"edition": edition, "team": team, "is_organizer": is_organizer, "asked": ask(edition)}
    if team is None and not is_organizer:
        return context | {"is_stranger": True}
    now = timezone.now()
    systems = (
        System.objects.filter(edition=edition, team=team).order_by("-kind", "label").prefetch_related("submissions")
    )
    wanted = next((one for one in systems if one.name == request.GET.get("system")), None)
    return context | {
        "teams": teams_for(user).filter(edition=edition, state=Team.State.APPROVED) if is_organizer else [],
        "refusal": submission_problem(edition, team, by=user, now=now),
        "is_late": team is not None and submission_phase(edition, now) in {Phase.LATE, Phase.CLOSED},
        "systems": [(system, _versions(system)) for system in systems],
        "wanted": wanted.name if wanted else "",
        "terminal": _terminal(request, edition, team, wanted or next(iter(systems), None)),
        "uploads": unfinished_uploads(edition, team),
        "is_public_at_once": publishes_at_once(edition),
        "ranked_systems": _ranked_systems(edition),
        "used": used_submissions(team) if team is not None else None,
        "ending_invitations": _ending_invitations(team, is_organizer=is_organizer, now=now, by=user),
        **_ARCHIVES,
    }


def _ending_invitations(team: Team | None, *, is_organizer: bool, now: datetime, by: Any) -> list[str]:
    """Return the open invitations that the first accepted submission revokes: addresses for who steers the team."""
    if team is None or team.members_frozen_at is not None:
        return []
    found = list(list_open_invitations(team, now).values_list("email", flat=True))
    steers = is_organizer or not found or team.memberships.filter(user=by, role=Membership.Role.OWNER).exists()
    return found if steers else [f"{len(found)} of the team"]


def _ranked_systems(edition: Edition) -> str:
    """Return which systems of a team are ranked, as a sentence; empty where nothing is."""
    try:
        policy = make_policy(edition.recipe, edition.track, edition.leaderboard_policy)
    except InputError:
        return ""
    return SEVERAL_IN_WORDS[policy.several_systems] if policy.minimum_eers else ""


def upload_corpus_page(request: HttpRequest) -> dict[str, Any]:
    """Tell an organizer what the archive of a corpus shall become, and their unfinished ones."""
    return {
        "form": UploadForm(initial=request.GET.dict()),
        "uploads": unfinished_imports(request.user).exclude(imported_as__has_key="test"),
        "largest": LARGEST_CORPUS_BYTES,
        **_ARCHIVES,
    }


def upload_of_tests(user: Any) -> dict[str, Any]:
    """Return for an organizer what the page needs that uploads own recordings, and theirs that made no test yet."""
    uploads = [*unfinished_imports(user).filter(imported_as__has_key="test"), *list_failed_tests(user)]
    return {"uploads": uploads, "largest": LARGEST_RECORDINGS_BYTES, **_ARCHIVES}


def _terminal(request: HttpRequest, edition: Edition, team: Team | None, system: System | None) -> dict[str, Any]:
    """Return the lines for a shell: a further version of the system that is offered first, or else a new one.

    `expected`: where the file for `vp verify` without a connection lies; empty while the team is not approved.
    """
    is_named = team is not None and "team" in request.GET and team != team_of(request.user, edition)
    sender = f" --team {team.label}" if team is not None and is_named else ""
    archive = f"{edition.name}/{edition.name}.zip --edition {edition.name}"
    new = " --title NAME" if team is None else " --kind primary" if system else ""
    verified = f" --system {quote(str(system))}" if system else ""
    lines = [
        f"vp pack {edition.name}{' --add DESCRIPTION.pdf' if edition.description_required else ''}{verified}",
        f"vp submit {archive}{sender}{verified or new}",
    ]
    is_told = team is None or team.state == Team.State.APPROVED
    query = f"?{urlencode({'system': system.name})}" if system else ""
    return {
        "lines": lines,
        "system": system,
        "another": f"vp submit {archive}{sender}{new}" if system else "",
        "expected": f"{reverse('api:expected', args=[edition.name])}{query}" if is_told else "",
    }


def address_of_page(upload: Upload) -> str:
    """Return the page on which an unfinished upload stands."""
    if upload.edition is None:
        return reverse("studies:own" if "test" in upload.imported_as else "submissions:upload-corpus")
    address = reverse("submissions:new", args=[upload.edition.name])
    return f"{address}?{urlencode({'team': upload.team_id})}" if upload.team_id else f"{address}?team=none"


def _chosen_team(request: HttpRequest, edition: Edition) -> Team | None:
    wanted = request.GET.get("team", "")
    if wanted == "none":
        return None
    if not wanted:
        return team_of(request.user, edition)
    teams = teams_for(request.user).filter(edition=edition)
    found = teams.filter(pk=int(wanted)).first() if re.fullmatch(r"[0-9]{1,9}", wanted) else None
    if found is None:
        raise Http404
    return found


def _versions(system: System) -> str:
    count = len(system.submissions.all())
    return "nothing submitted yet" if not count else f"{count} version{'' if count == 1 else 's'} so far"
