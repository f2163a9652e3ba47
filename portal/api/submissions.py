"""Submissions: their state, their report, and what may be done with them."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.access import Scope, require_scope
from portal.api.base import WITH_CSV, ApiViewSet, BytesRenderer, StrictSerializer, shape
from portal.challenges.models import Edition
from portal.challenges.selectors import edition_for
from portal.core.downloads import csv_response
from portal.jobs.models import Job
from portal.submissions import diff, services
from portal.submissions.models import Submission, SubmissionEvent, SubmittedDocument, System, Upload
from portal.submissions.pages import data_set_rows, summarize_progress
from portal.submissions.resumable_uploads import UNCOUNTED, UNFINISHED
from portal.submissions.rules import Relation
from portal.submissions.selectors import (
    document_for,
    load_report,
    managed_submission_for,
    relation_to,
    submission_for,
    submissions_for,
    uploads_for,
)
from portal.submissions.views import file_stem, send_document

SEVERITIES = ("error", "warning", "note")


class SubmissionSerializer(serializers.ModelSerializer[Submission]):
    """A submission in short: one version of a system's files."""

    edition = serializers.SlugRelatedField[Edition](
        source="system.edition", slug_field="name", read_only=True, allow_null=True
    )
    team = serializers.IntegerField(source="system.team_id", allow_null=True, help_text="Null for baselines.")
    system = serializers.SlugRelatedField[System](slug_field="name", read_only=True)
    label = serializers.CharField(source="system.__str__", help_text="Such as T11-p1.")  # type: ignore[assignment]

    class Meta:
        model = Submission
        fields = (
            *("id", "edition", "team", "system", "label", "version", "state", "is_late"),
            *("errors", "warnings", "notes", "created_at", "evaluated_at"),
        )


class SubmissionSearchSerializer(serializers.Serializer[Any]):
    edition = serializers.SlugField(required=False, source="system__edition__name", help_text="To this edition only.")
    team = serializers.IntegerField(
        required=False, source="system__team", min_value=1, max_value=2**31, help_text="Of this team only."
    )
    system = serializers.SlugField(required=False, source="system__name", help_text="Of this system only, by name.")
    state = serializers.ChoiceField(Submission.State.choices, required=False)


class EventSerializer(serializers.ModelSerializer[SubmissionEvent]):
    """A step of the timeline."""

    class Meta:
        model = SubmissionEvent
        fields = ("at", "state", "note")


class CauseSerializer(serializers.Serializer[Any]):
    """A kind of problem in a data set; without a data set in the submission as a whole."""

    data_set = serializers.CharField()
    code = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    title = serializers.CharField()
    count = serializers.IntegerField()
    remedy = serializers.CharField()
    examples = serializers.ListField(child=serializers.CharField())


class DataSetFilesSerializer(serializers.Serializer[Any]):
    """How many recordings of a data set there are: in all, from this archive, from an earlier version, converted."""

    name = serializers.CharField()
    files = serializers.IntegerField()
    new = serializers.IntegerField()
    inherited = serializers.IntegerField()
    converted = serializers.IntegerField(help_text="To 16-bit mono at the rate of the challenge.")


class DocumentSerializer(serializers.ModelSerializer[SubmittedDocument]):
    """A file that is not speech; it is downloaded by its `id`."""

    class Meta:
        model = SubmittedDocument
        fields = ("id", "path", "kind", "bytes", "is_inherited")


class JobSerializer(serializers.ModelSerializer[Job]):
    """A piece of work; where it failed, `failure_actor` has to act."""

    class Meta:
        model = Job
        fields = (
            *("id", "kind", "title", "state", "stage", "done", "total"),
            *("failure", "failure_actor", "failure_remedy"),
        )


class ArchiveSerializer(serializers.ModelSerializer[Upload]):
    """The archive as received."""

    class Meta:
        model = Upload
        fields = ("file_name", "size", "sha256")


class FullSubmissionSerializer(SubmissionSerializer):
    """A submission with its timeline, its report in short, and what was made of it."""

    is_under_way = serializers.BooleanField(help_text="Whether work on it is still under way.")
    inherits = serializers.IntegerField(source="inherits_id", allow_null=True)
    archive = ArchiveSerializer(source="upload", allow_null=True)
    timeline = EventSerializer(source="events", many=True)
    report_summary = CauseSerializer(many=True)
    data_sets = DataSetFilesSerializer(many=True)
    documents = DocumentSerializer(many=True)
    jobs = JobSerializer(many=True)

    class Meta:
        model = Submission
        fields = (
            *SubmissionSerializer.Meta.fields,
            *("is_under_way", "inherits", "archive", "timeline", "report_summary", "data_sets", "documents", "jobs"),
        )


class NoteSerializer(StrictSerializer):
    """The reason."""

    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000)


class UploadSerializer(serializers.ModelSerializer[Upload]):
    """An archive on its way in: of its `size` in bytes, `offset` are here. `refusal`: why it became no submission."""

    team = serializers.IntegerField(source="team_id", allow_null=True, help_text="Null for baselines.")
    system = serializers.SlugRelatedField[System](slug_field="name", read_only=True, allow_null=True)
    sha256 = serializers.CharField(source="claimed_sha256", help_text="As its sender says; empty where it did not.")

    class Meta:
        model = Upload
        fields = (
            *("id", "state", "refusal", "team", "system", "system_kind", "system_title"),
            *("file_name", "sha256", "size", "offset", "created_at", "expires_at"),
        )


class UploadSearchSerializer(serializers.Serializer[Any]):
    sha256 = serializers.RegexField(
        "^[0-9a-f]{64}$", required=False, help_text="Of this content only; then those that are submissions, too."
    )


class SubmissionViewSet(ListModelMixin, ApiViewSet):
    """The submissions of your teams and of the editions that you organise, the newest first."""

    serializer_class = FullSubmissionSerializer
    answers = {
        "list": SubmissionSerializer,
        "report": shape("Report"),
        "document": OpenApiTypes.BINARY,
        "compare": shape("Diff"),
    }
    bodies = {"withdraw": NoteSerializer}
    queries = {"list": SubmissionSearchSerializer}
    formats = {"report": WITH_CSV, "document": [BytesRenderer], "compare": WITH_CSV}
    scopes = {"withdraw": (Scope.SUBMIT, Scope.ORGANIZE)}

    def get_queryset(self) -> Any:
        return submissions_for(self.request.user).filter(**self.read_query()).order_by("-created_at", "-pk")

    def retrieve(self, request: Request, pk: int) -> Response:
        """Show one submission: state, timeline, the report in short, files, and how far the work on it is."""
        submission: Any = submission_for(request.user, pk)
        progress = summarize_progress(submission)
        submission.jobs, submission.is_under_way = progress.jobs, progress.is_active
        submission.data_sets = data_set_rows(submission)
        return Response(FullSubmissionSerializer(submission).data)

    def report(self, request: Request, pk: int) -> HttpResponse:
        """Show everything that was found in the archive; as CSV by `format=csv` or `Accept`."""
        submission = submission_for(request.user, pk)
        report = load_report(submission)
        if self.wants_csv:
            return csv_response(f"{file_stem(submission)}-report.csv", report.csv_rows())
        return HttpResponse(report.to_json(), content_type="application/json")

    def document(self, request: Request, pk: int, document: int) -> HttpResponse:
        """Download a document as it was sent, for its team and the organizers."""
        return send_document(document_for(request.user, pk, document))

    def compare(self, request: Request, pk: int, other: int) -> HttpResponse:
        """Show which files differ between two submissions, the older one first; the CSV has the equal ones, too."""
        both = submission_for(request.user, pk), submission_for(request.user, other)
        before, after = sorted(both, key=lambda submission: (submission.created_at, submission.pk))
        sections = diff.compare_submissions(before, after)
        if self.wants_csv:
            return csv_response(f"{file_stem(before)}-to-{file_stem(after)}.csv", diff.difference_rows(sections))
        parts = [
            {
                "name": section.title,
                "counts": section.counts,
                "differences": [{"name": one.name, "change": one.change} for one in section.of(*diff.DIFFERENT)],
            }
            for section in sections
        ]
        return Response({"before": before.pk, "after": after.pk, "totals": diff.totals(sections), "parts": parts})

    def withdraw(self, request: Request, pk: int) -> Response:
        """Withdraw a submission permanently, by its team or (scope “organize”) the organizers of its edition."""
        submission = submission_for(request.user, pk)
        relation = relation_to(request.user, submission.system)
        require_scope(request, Scope.ORGANIZE if relation is Relation.ORGANIZER else Scope.SUBMIT)
        note = self.read_body()["note"].strip()
        services.withdraw(submission=submission, by=request.user, relation=relation, note=note)
        return self.retrieve(request, pk)

    def evaluate(self, request: Request, pk: int) -> Response:
        """Compute the numbers of an accepted submission again, for the organizers of its edition."""
        services.evaluate_again(submission=managed_submission_for(request.user, pk), by=request.user)
        return self.retrieve(request, pk)

    def check(self, request: Request, pk: int) -> Response:
        """Continue a check that failed or was cancelled, for the organizers of its edition."""
        services.check_again(submission=managed_submission_for(request.user, pk), by=request.user)
        return self.retrieve(request, pk)


class EditionUploadViewSet(ListModelMixin, ApiViewSet):
    """Uploads that are not submissions yet: those of your team, and all of an edition that you organise."""

    serializer_class = UploadSerializer
    queries = {"list": UploadSearchSerializer}

    def get_queryset(self) -> Any:
        edition = edition_for(self.request.user, self.kwargs["edition"])
        sha256 = self.read_query().get("sha256")
        chosen = Q(state__in=UNFINISHED, expires_at__gt=timezone.now())
        if sha256:
            chosen |= Q(submission__isnull=False) & ~Q(submission__state__in=UNCOUNTED)
            chosen &= Q(claimed_sha256=sha256)
        return uploads_for(self.request.user).filter(chosen, edition=edition).order_by("-created_at", "pk")
