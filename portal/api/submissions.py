"""Submissions: their state, their report, and what may be done with them."""

from __future__ import annotations

from django.db.models import Q
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.response import Response

from portal.api.access import Scope, require_scope
from portal.api.base import WITH_CSV, ApiView, BytesRenderer, Computed, Shape, Who, operation
from portal.challenges.selectors import edition_for
from portal.core.downloads import csv_response
from portal.jobs.models import Actor, JobState
from portal.submissions import diff, services
from portal.submissions.models import Submission, SubmittedDocument, Upload
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
FILTERS = {"edition": "system__edition__name", "team": "system__team", "system": "system__name", "state": "state"}


class SubmissionSerializer(Shape):
    """A submission in short: one version of a system's files."""

    id = serializers.IntegerField()
    edition = Computed(
        serializers.SlugField(allow_null=True),
        lambda submission, _: submission.system.edition and submission.system.edition.name,
    )
    team = serializers.IntegerField(source="system.team_id", allow_null=True, help_text="Null for baselines.")
    system = serializers.SlugField(source="system.name")
    label = serializers.CharField(source="system.__str__", help_text="Such as T11-p1.")  # type: ignore[assignment]
    version = serializers.IntegerField()
    state = serializers.ChoiceField(Submission.State.choices)
    is_late = serializers.BooleanField()
    errors = serializers.IntegerField(help_text="Errors found in the archive.")  # type: ignore[assignment]
    warnings = notes = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    evaluated_at = serializers.DateTimeField(allow_null=True)


class SearchSerializer(Shape):
    """Which submissions."""

    edition = serializers.SlugField(required=False, help_text="To this edition only.")
    team = serializers.IntegerField(required=False, min_value=1, max_value=2**31, help_text="Of this team only.")
    system = serializers.SlugField(required=False, help_text="Of this system only, by name.")
    state = serializers.ChoiceField(Submission.State.choices, required=False)


class EventSerializer(Shape):
    """A step of the timeline."""

    at = serializers.DateTimeField()
    state = serializers.ChoiceField(Submission.State.choices)
    note = serializers.CharField()


class CauseSerializer(Shape):
    """A kind of problem in a data set; without a data set in the submission as a whole."""

    data_set = code = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    title = serializers.CharField()
    count = serializers.IntegerField()
    remedy = serializers.CharField()
    examples = serializers.ListField(child=serializers.CharField())


class DataSetFilesSerializer(Shape):
    """How many recordings of a data set there are."""

    name = serializers.CharField()
    files = serializers.IntegerField()
    new = serializers.IntegerField(help_text="Files from this archive.")
    inherited = serializers.IntegerField(help_text="Files from an earlier version.")
    converted = serializers.IntegerField(help_text="Files converted to 16-bit mono at the rate of the challenge.")


class DocumentSerializer(Shape):
    """A file that is not speech."""

    id = serializers.IntegerField(help_text="By which it is downloaded.")
    path = serializers.CharField()
    kind = serializers.ChoiceField(SubmittedDocument.Kind.choices)
    bytes = serializers.IntegerField()
    is_inherited = serializers.BooleanField()


class JobSerializer(Shape):
    """A piece of work on the submission."""

    id = serializers.UUIDField()
    kind = title = serializers.CharField()
    state = serializers.ChoiceField(JobState.choices)
    stage = serializers.CharField()
    done = total = serializers.IntegerField()
    failure = serializers.CharField()
    failure_actor = serializers.ChoiceField(Actor.choices, help_text="Who has to act.")
    failure_remedy = serializers.CharField()


class ArchiveSerializer(Shape):
    """The archive as received."""

    file_name = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()


class FullSubmissionSerializer(SubmissionSerializer):
    """A submission with its timeline, its report in short, and what was made of it."""

    is_under_way = serializers.BooleanField(help_text="Whether work on it is still under way.")
    inherits = serializers.IntegerField(source="inherits_id", allow_null=True)
    archive = ArchiveSerializer(source="upload", allow_null=True)
    timeline = EventSerializer(source="events.all", many=True)
    report_summary = CauseSerializer(many=True)
    data_sets = DataSetFilesSerializer(many=True)
    documents = DocumentSerializer(source="documents.all", many=True)
    jobs = JobSerializer(many=True)


class NoteSerializer(Shape):
    """The reason."""

    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000)


class DifferenceSerializer(Shape):
    """A file that is not the same in both."""

    name = serializers.CharField()
    change = serializers.ChoiceField([change.value for change in diff.Change if change is not diff.Change.UNCHANGED])


class PartSerializer(Shape):
    """A data set, or the documents."""

    name = serializers.CharField()
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="How many files changed in each way.")
    differences = DifferenceSerializer(many=True)


class DiffSerializer(Shape):
    """What differs between two submissions."""

    before = serializers.IntegerField(help_text="The older one.")
    after = serializers.IntegerField()
    totals = serializers.DictField(child=serializers.IntegerField(), help_text="How many files changed in each way.")
    parts = PartSerializer(many=True)


class UploadSerializer(Shape):
    """An archive on its way in."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(Upload.State.choices)
    refusal = serializers.CharField(help_text="Why it did not become a submission.")
    team = serializers.IntegerField(source="team_id", allow_null=True, help_text="Null for baselines.")
    system = serializers.SlugField(source="system.name", default=None, allow_null=True)
    system_kind = system_title = serializers.CharField(help_text="Of a new system.")
    file_name = serializers.CharField()
    sha256 = serializers.CharField(source="claimed_sha256", help_text="As its sender says; empty where it did not.")
    size = serializers.IntegerField()
    offset = serializers.IntegerField(help_text="Bytes that are on disk.")
    created_at = expires_at = serializers.DateTimeField()


class ContentSerializer(Shape):
    """Which uploads."""

    sha256 = serializers.RegexField(
        "^[0-9a-f]{64}$", required=False, help_text="Of this content only; then those that are submissions, too."
    )


class CountsSerializer(Shape):
    """What an archive held."""

    files = speech = expected = received = inherited = missing = converted = serializers.IntegerField()
    documents = inherited_documents = serializers.IntegerField()


class FindingSerializer(Shape):
    """One problem."""

    data_set = code = file = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    expected = found = remedy = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    count = serializers.IntegerField()


class ReportSerializer(Shape):
    """Everything found in an archive."""

    archive = edition = serializers.CharField()
    has_errors = serializers.BooleanField()
    is_refused = serializers.BooleanField(help_text="Unsafe or damaged, so that it was not read to its end.")
    errors = warnings = notes = serializers.IntegerField()  # type: ignore[assignment]
    counts = CountsSerializer()
    faulty = serializers.ListField(child=serializers.CharField())
    summary = CauseSerializer(many=True)
    findings = FindingSerializer(many=True)


def shown(submission: Submission) -> Response:
    """Return a submission with all that its page shows."""
    progress = summarize_progress(submission)
    submission.jobs, submission.is_under_way = progress.jobs, progress.is_active  # type: ignore[attr-defined]
    submission.data_sets = data_set_rows(submission)  # type: ignore[attr-defined]
    return Response(FullSubmissionSerializer(submission).data)


@operation(SubmissionSerializer(many=True), asks=SearchSerializer, who=Who.ACCOUNT)
def list_submissions(api: ApiView) -> Response:
    """The submissions of your teams and of the editions that you organise, the newest first."""
    wanted = {FILTERS[name]: value for name, value in api.query(SearchSerializer).items()}
    return api.paginated(
        submissions_for(api.user).filter(**wanted).order_by("-created_at", "-pk"), SubmissionSerializer
    )


@operation(FullSubmissionSerializer, who=Who.TEAM)
def show_submission(api: ApiView, pk: int) -> Response:
    """One submission: state, timeline, the report in short, files, and how far the work on it is."""
    return shown(submission_for(api.user, pk))


@operation(ReportSerializer, kinds=WITH_CSV, who=Who.TEAM)
def show_report(api: ApiView, pk: int) -> HttpResponse:
    """Everything that was found in the archive; as CSV by `format=csv` or `Accept`."""
    submission = submission_for(api.user, pk)
    report = load_report(submission)
    if api.wants_csv:
        return csv_response(f"{file_stem(submission)}-report.csv", report.csv_rows())
    return HttpResponse(report.to_json(), content_type="application/json")


@operation(OpenApiTypes.BINARY, kinds=[BytesRenderer], who=Who.TEAM)
def download_document(api: ApiView, pk: int, document: int) -> HttpResponse:
    """A document as it was sent, for its team and the organizers."""
    return send_document(document_for(api.user, pk, document))


@operation(DiffSerializer, kinds=WITH_CSV, who=Who.TEAM)
def compare_submissions(api: ApiView, pk: int, other: int) -> HttpResponse:
    """Which files differ between two submissions, the older one first; the CSV has the files that do not, too."""
    both = submission_for(api.user, pk), submission_for(api.user, other)
    before, after = sorted(both, key=lambda one: (one.created_at, one.pk))
    sections = diff.compare_submissions(before, after)
    if api.wants_csv:
        return csv_response(f"{file_stem(before)}-to-{file_stem(after)}.csv", diff.difference_rows(sections))
    parts = [
        {"name": section.title, "counts": section.counts, "differences": section.of(*diff.DIFFERENT)}
        for section in sections
    ]
    found = {"before": before.pk, "after": after.pk, "totals": diff.totals(sections), "parts": parts}
    return Response(DiffSerializer(found).data)


@operation(UploadSerializer(many=True), asks=ContentSerializer, who=Who.ACCOUNT)
def list_uploads(api: ApiView, edition: str) -> Response:
    """Uploads that are not submissions yet: those of your team, and all of an edition that you organise."""
    chosen = edition_for(api.user, edition)
    found, wanted = uploads_for(api.user).filter(edition=chosen), api.query(ContentSerializer)
    unfinished = Q(state__in=UNFINISHED, expires_at__gt=timezone.now())
    if sha256 := wanted.get("sha256"):
        standing = Q(submission__isnull=False) & ~Q(submission__state__in=UNCOUNTED)
        found = found.filter(unfinished | standing, claimed_sha256=sha256)
    else:
        found = found.filter(unfinished)
    return api.paginated(found.order_by("-created_at", "pk"), UploadSerializer)


@operation(
    FullSubmissionSerializer,
    takes=NoteSerializer,
    scopes=(Scope.SUBMIT, Scope.ORGANIZE),
    who=Who.TEAM,
    example={"note": "The wrong file was packed."},
)
def withdraw_submission(api: ApiView, pk: int) -> Response:
    """Withdraw a submission permanently: one of your team, or (scope “organize”) of an edition that you organise."""
    submission = submission_for(api.user, pk)
    relation = relation_to(api.user, submission.system)
    require_scope(api.request, Scope.ORGANIZE if relation is Relation.ORGANIZER else Scope.SUBMIT)
    note = api.body(NoteSerializer)["note"].strip()
    services.withdraw(submission=submission, by=api.user, relation=relation, note=note)
    return shown(submission_for(api.user, pk))


@operation(FullSubmissionSerializer)
def evaluate_submission(api: ApiView, pk: int) -> Response:
    """Compute the numbers of an accepted submission again."""
    services.evaluate_again(submission=managed_submission_for(api.user, pk), by=api.user)
    return shown(submission_for(api.user, pk))


@operation(FullSubmissionSerializer)
def check_submission(api: ApiView, pk: int) -> Response:
    """Continue a check that failed or was cancelled."""
    services.check_again(submission=managed_submission_for(api.user, pk), by=api.user)
    return shown(submission_for(api.user, pk))
