"""Submissions: their state, their report, and what may be done with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.access import Scope, require_scope
from portal.api.base import WITH_CSV, ApiView, BytesRenderer
from portal.api.serializers.submissions import (
    DiffSerializer,
    FullSubmissionSerializer,
    NoteSerializer,
    ReportSerializer,
    SearchSerializer,
    SubmissionSerializer,
    UploadSerializer,
)
from portal.challenges.selectors import edition_for
from portal.core.exports import csv_response
from portal.submissions import services
from portal.submissions.diff import Change, compare_submissions, difference_rows, totals
from portal.submissions.models import Submission
from portal.submissions.pages import data_set_rows, progress_of
from portal.submissions.selectors import (
    document_for,
    managed_submission_for,
    relation_to,
    report_of,
    submission_for,
    submissions_for,
    uploads_for,
)
from portal.submissions.uploads import UNFINISHED
from portal.submissions.views import download_of, file_stem
from portal.submissions.visibility import Relation

FILTERS = {"edition": "system__edition__name", "team": "system__team", "system": "system__name", "state": "state"}


def shown(submission: Submission) -> Response:
    """A submission with all that its page shows."""
    progress = progress_of(submission)
    submission.jobs, submission.is_under_way = progress.jobs, progress.is_active  # type: ignore[attr-defined]
    submission.data_sets = data_set_rows(submission)  # type: ignore[attr-defined]
    return Response(FullSubmissionSerializer(submission).data)


class SubmissionList(ApiView):
    @extend_schema(
        parameters=[SearchSerializer], responses=SubmissionSerializer(many=True), operation_id="list_submissions"
    )
    def get(self, request: Request) -> Response:
        """The submissions of your teams and of the editions that you organise, the newest first."""
        search = self.query(SearchSerializer)
        wanted = {FILTERS[name]: value for name, value in search.items()}
        found = submissions_for(request.user).filter(**wanted).order_by("-created_at", "-pk")
        return self.paginated(found, SubmissionSerializer)


class SubmissionDetail(ApiView):
    @extend_schema(responses=FullSubmissionSerializer, operation_id="show_submission")
    def get(self, request: Request, pk: int) -> Response:
        """One submission: state, timeline, the report in short, files, and how far the work on it is."""
        return shown(submission_for(request.user, pk))


class Report(ApiView):
    renderer_classes = WITH_CSV

    @extend_schema(
        responses={(200, "application/json"): ReportSerializer, (200, "text/csv"): OpenApiTypes.STR},
        operation_id="show_report",
    )
    def get(self, request: Request, pk: int) -> HttpResponse:
        """Everything that was found in the archive; as CSV by `format=csv` or `Accept`."""
        submission = submission_for(request.user, pk)
        report = report_of(submission)
        if self.wants_csv:
            return csv_response(f"{file_stem(submission)}-report.csv", report.csv_rows())
        return HttpResponse(report.to_json(), content_type="application/json")


class Document(ApiView):
    renderer_classes = [BytesRenderer]

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY}, operation_id="download_document")
    def get(self, request: Request, pk: int, document: int) -> HttpResponse:
        """A document as it was sent, for its team and the organizers."""
        return download_of(document_for(request.user, pk, document))


class Diff(ApiView):
    renderer_classes = WITH_CSV

    @extend_schema(
        responses={(200, "application/json"): DiffSerializer, (200, "text/csv"): OpenApiTypes.STR},
        operation_id="compare_submissions",
    )
    def get(self, request: Request, pk: int, other: int) -> HttpResponse:
        """Which files differ between two submissions, the older one first; the CSV has the files that do not, too."""
        both = submission_for(request.user, pk), submission_for(request.user, other)
        before, after = sorted(both, key=lambda one: (one.created_at, one.pk))
        sections = compare_submissions(before, after)
        if self.wants_csv:
            return csv_response(f"{file_stem(before)}-to-{file_stem(after)}.csv", difference_rows(sections))
        parts = [
            {
                "name": section.title,
                "counts": _counts(section.counts),
                "differences": [one for one in section.differences if one.change is not Change.UNCHANGED],
            }
            for section in sections
        ]
        found = {"before": before.pk, "after": after.pk, "totals": _counts(totals(sections)), "parts": parts}
        return Response(DiffSerializer(found).data)


def _counts(counts: dict[Change, int]) -> dict[str, int]:
    return {change.value: count for change, count in counts.items()}


class EditionUploads(ApiView):
    @extend_schema(responses=UploadSerializer(many=True), operation_id="list_uploads")
    def get(self, request: Request, edition: str) -> Response:
        """What was begun to be sent and is no submission yet: of your team, or of an edition that you organise all."""
        chosen = edition_for(request.user, edition)
        found = uploads_for(request.user).filter(edition=chosen, state__in=UNFINISHED, expires_at__gt=timezone.now())
        return self.paginated(found.order_by("-created_at", "pk"), UploadSerializer)


class Withdraw(ApiView):
    scopes = {"POST": (Scope.SUBMIT, Scope.ORGANIZE)}

    @extend_schema(request=NoteSerializer, responses=FullSubmissionSerializer, operation_id="withdraw_submission")
    def post(self, request: Request, pk: int) -> Response:
        """Take a submission back for good: one of your team, or (scope “organize”) of an edition that you organise."""
        submission = submission_for(request.user, pk)
        relation = relation_to(request.user, submission.system)
        require_scope(request, Scope.ORGANIZE if relation is Relation.ORGANIZER else Scope.SUBMIT)
        note = self.body(NoteSerializer)["note"].strip()
        services.withdraw(submission=submission, by=request.user, relation=relation, note=note)
        return shown(submission_for(request.user, pk))


class ManagedDeed(ApiView):
    """What the organizer does with a submission; the answer is the submission as it then is."""

    scopes = {"POST": (Scope.ORGANIZE,)}

    def do(self, pk: int, service: Callable[..., Any]) -> Response:
        user = self.request.user
        service(submission=managed_submission_for(user, pk), by=user)
        return shown(submission_for(user, pk))


class Evaluate(ManagedDeed):
    @extend_schema(request=None, responses=FullSubmissionSerializer, operation_id="evaluate_submission")
    def post(self, request: Request, pk: int) -> Response:  # noqa: ARG002
        """Compute the numbers of an accepted submission anew."""
        return self.do(pk, services.evaluate_again)


class Check(ManagedDeed):
    @extend_schema(request=None, responses=FullSubmissionSerializer, operation_id="check_submission")
    def post(self, request: Request, pk: int) -> Response:  # noqa: ARG002
        """Let a check go on that failed or was cancelled."""
        return self.do(pk, services.check_again)
