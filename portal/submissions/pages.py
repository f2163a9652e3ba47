"""What the pages of submissions show: the list of an edition, one submission with its report, two side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, F, Q, QuerySet, Sum, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest
from django.utils import timezone

from portal.challenges.models import Edition
from portal.jobs.models import Job, State
from portal.jobs.rules import can_run_again
from portal.jobs.selectors import with_estimates
from portal.submissions.diff import Change, Section, compare_submissions, totals
from portal.submissions.models import Submission, SubmittedDocument
from portal.submissions.selectors import jobs_of, relation_to, submissions_of, unlike_claims
from portal.submissions.services import EVALUABLE, withdrawal_refused
from portal.submissions.uploads import submission_refusal
from portal.submissions.visibility import Relation
from portal.teams.selectors import team_of

PAGE_SIZE = 50
SHOWN_OF_A_CHANGE = 50
SHOWN_OF_A_KIND = 500
UNDER_WAY = {Submission.State.RECEIVED, Submission.State.CHECKING, Submission.State.EVALUATING}


# The list of an edition ----------------------------------------------------------------------------


def list_page(request: HttpRequest, edition: Edition) -> dict[str, Any]:
    search = _search(request)
    is_organizer = edition.organizers.filter(pk=request.user.pk).exists()
    found = _found(submissions_of(request.user, edition), search)
    page = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    unlike = unlike_claims(page.object_list)
    for one in page.object_list:
        one.unlike_claims = unlike.get(one.pk, 0)  # type: ignore[attr-defined]
    return {
        "is_organizer": is_organizer,
        "refusal": "" if is_organizer else _refusal(request.user, edition),
        "edition": edition,
        "page": page,
        "search": search,
        "is_filtered": any(search.values()),
        "states": Submission.State.choices,
        "teams": edition.teams.exclude(number=None) if is_organizer else [],
        "any_active": any(one.state in UNDER_WAY for one in page),
    }


def _refusal(user: Any, edition: Edition) -> str:
    """Why this person cannot submit to the edition now, for their team."""
    team = team_of(user, edition)
    return submission_refusal(edition, team, by=user, now=timezone.now())


def _search(request: HttpRequest) -> dict[str, str]:
    found = {key: request.GET.get(key, "") for key in ("state", "team", "late")}
    known = {
        "state": found["state"] in Submission.State.values,
        "team": found["team"].isascii() and found["team"].isdigit() and len(found["team"]) < 10,
        "late": found["late"] == "yes",
    }
    return {key: value if known[key] else "" for key, value in found.items()}


def _found(submissions: QuerySet[Submission], search: dict[str, str]) -> QuerySet[Submission]:
    if search["state"]:
        submissions = submissions.filter(state=search["state"])
    if search["team"]:
        submissions = submissions.filter(system__team=int(search["team"]))
    return submissions.filter(is_late=True) if search["late"] else submissions


# A submission --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Progress:
    """How far the work on a submission is."""

    jobs: list[Job]

    @property
    def is_active(self) -> bool:
        return any(not job.has_ended for job in self.jobs)

    @property
    def check(self) -> Job | None:
        """The job that reads the archive, until it has succeeded."""
        return next((job for job in self.jobs if job.kind == "intake" and job.state != State.SUCCEEDED), None)

    @property
    def parts(self) -> list[Job]:
        """The jobs of the work under way: anonymisation by the portal until all of it succeeded, then evaluation."""
        making = [job for job in self.jobs if job.kind.startswith("anonymize")]
        if any(job.state != State.SUCCEEDED for job in making):
            return making
        return [job for job in self.jobs if job.kind != "intake" and job not in making]

    @property
    def work(self) -> str:
        """What these jobs do: anonymisation or evaluation."""
        return "anonymisation" if any(job.kind.startswith("anonymize") for job in self.parts) else "evaluation"

    @property
    def ended(self) -> int:
        return sum(job.has_ended for job in self.parts)

    @property
    def running(self) -> list[Job]:
        return [job for job in self.parts if job.state == State.RUNNING]

    @property
    def failed(self) -> list[Job]:
        return [job for job in self.parts if job.state == State.FAILED]

    @property
    def unlike_claims(self) -> int:
        """How many numbers are claimed otherwise than the files give, as the newest finished evaluation says."""
        found = [job for job in self.jobs if job.kind == "objective" and job.state == State.SUCCEEDED]
        return found[-1].result.get("disagreements", 0) if found else 0


def progress_of(submission: Submission) -> Progress:
    return Progress(with_estimates(jobs_of(submission)))


@dataclass(frozen=True)
class ReportSection:
    """What was found in one data set; without a name what concerns the submission as a whole."""

    data_set: str
    causes: list[dict[str, Any]]


def report_sections(submission: Submission) -> list[ReportSection]:
    """The stored summary of the report, data set by data set in its order."""
    sections: dict[str, list[dict[str, Any]]] = {}
    for cause in submission.report_summary:
        sections.setdefault(cause["data_set"], []).append(cause)
    return [ReportSection(name, causes) for name, causes in sections.items()]


def detail_page(request: HttpRequest, submission: Submission) -> dict[str, Any]:
    relation = relation_to(request.user, submission.system)
    is_organizer = relation is Relation.ORGANIZER
    progress = progress_of(submission)
    return {
        "submission": submission,
        "system": submission.system,
        "edition": submission.system.edition,
        "is_on_behalf": _is_on_behalf(submission),
        "is_organizer": is_organizer,
        "events": submission.events.select_related("actor"),
        "progress": progress,
        "can_check": is_organizer and progress.check is not None and can_run_again(progress.check),
        "can_evaluate": is_organizer and bool(submission.system.edition) and submission.state in EVALUABLE,
        "withdrawal_refused": withdrawal_refused(submission, relation),
        "report": report_sections(submission),
        "data_sets": data_set_rows(submission),
        "document_groups": document_groups(submission),
        "versions": submission.system.submissions.exclude(pk=submission.pk),
    }


def _is_on_behalf(submission: Submission) -> bool:
    """Whether the archive was sent by somebody who does not belong to its team."""
    upload, team = submission.upload, submission.system.team
    if upload is None or team is None:
        return False
    return not team.memberships.filter(user=upload.created_by_id).exists()


def data_set_rows(submission: Submission) -> list[dict[str, Any]]:
    """Of each data set: how many files there are, how many were inherited, how many converted."""
    counted = submission.files.order_by("data_set__name").values("data_set__name").annotate(
        files=Count("pk"),
        inherited=Count("pk", filter=Q(is_inherited=True)),
        converted=Count("pk", filter=~Q(converted_from="")),
    )  # fmt: skip
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
    """The documents by kind, in the order of the kinds."""
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
    """The older one first, whichever was named first in the address."""
    before, after = sorted((before, after), key=lambda one: (one.created_at, one.pk))
    sections = compare_submissions(before, after)
    return {
        "before": before,
        "after": after,
        "is_one_system": before.system_id == after.system_id,
        "totals": totals(sections).items(),
        "sections": [_diff_section(section) for section in sections],
    }


def _diff_section(section: Section) -> dict[str, Any]:
    changes = [
        {
            "change": change,
            "count": count,
            "shown": section.of(change)[:SHOWN_OF_A_CHANGE],
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
