"""Submissions as the API takes and gives them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.jobs.models import Actor, Job
from portal.jobs.models import State as JobState
from portal.submissions.diff import Change
from portal.submissions.models import Submission, SubmissionEvent, SubmittedDocument, Upload

SEVERITIES = ("error", "warning", "note")


class SubmissionSerializer(serializers.Serializer[Submission]):
    """A submission in short: one version of a system's files."""

    id = serializers.IntegerField()
    edition = serializers.SerializerMethodField()
    team = serializers.IntegerField(source="system.team_id", allow_null=True, help_text="Null for baselines.")
    system = serializers.SlugField(source="system.name")
    label = serializers.CharField(source="system.__str__", help_text="Such as T11-p1.")  # type: ignore[assignment]
    version = serializers.IntegerField()
    state = serializers.ChoiceField(Submission.State.choices)
    is_late = serializers.BooleanField()
    errors = serializers.IntegerField(help_text="Found in the archive.")  # type: ignore[assignment]
    warnings = serializers.IntegerField()
    notes = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    evaluated_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(serializers.SlugField(allow_null=True))
    def get_edition(self, submission: Submission) -> str | None:
        return submission.system.edition.name if submission.system.edition else None


class SearchSerializer(serializers.Serializer[Any]):
    """Which submissions."""

    edition = serializers.SlugField(required=False, help_text="To this edition.")
    team = serializers.IntegerField(required=False, min_value=1, max_value=2**31, help_text="Of this team.")
    system = serializers.SlugField(required=False, help_text="Of this system, by name.")
    state = serializers.ChoiceField(Submission.State.choices, required=False)


class EventSerializer(serializers.Serializer[SubmissionEvent]):
    """A step of the timeline."""

    at = serializers.DateTimeField()
    state = serializers.ChoiceField(Submission.State.choices)
    note = serializers.CharField()


class CauseSerializer(serializers.Serializer[Any]):
    """A kind of fault in a data set; without a data set in the submission as a whole."""

    data_set = serializers.CharField()
    code = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    title = serializers.CharField()
    count = serializers.IntegerField()
    remedy = serializers.CharField()
    examples = serializers.ListField(child=serializers.CharField())


class DataSetFilesSerializer(serializers.Serializer[Any]):
    """How many recordings of a data set there are."""

    name = serializers.CharField()
    files = serializers.IntegerField()
    new = serializers.IntegerField(help_text="Out of this archive.")
    inherited = serializers.IntegerField(help_text="Out of an earlier version.")
    converted = serializers.IntegerField(help_text="That were made 16-bit mono at the rate of the challenge.")


class DocumentSerializer(serializers.Serializer[SubmittedDocument]):
    """A file that is not speech."""

    id = serializers.IntegerField(help_text="By which it is downloaded.")
    path = serializers.CharField()
    kind = serializers.ChoiceField(SubmittedDocument.Kind.choices)
    bytes = serializers.IntegerField()
    is_inherited = serializers.BooleanField()


class JobSerializer(serializers.Serializer[Job]):
    """A piece of work on the submission."""

    id = serializers.UUIDField()
    kind = serializers.CharField()
    title = serializers.CharField()
    state = serializers.ChoiceField(JobState.choices)
    stage = serializers.CharField()
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    failure = serializers.CharField()
    failure_actor = serializers.ChoiceField(Actor.choices, help_text="Who has to act.")
    failure_remedy = serializers.CharField()


class ArchiveSerializer(serializers.Serializer[Any]):
    """The archive as it came."""

    file_name = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()


class FullSubmissionSerializer(SubmissionSerializer):
    """A submission with its timeline, its report in short, and what was made of it."""

    is_under_way = serializers.BooleanField(help_text="Whether anything is still being done with it.")
    inherits = serializers.IntegerField(source="inherits_id", allow_null=True)
    archive = ArchiveSerializer(source="upload", allow_null=True)
    timeline = EventSerializer(source="events.all", many=True)
    report_summary = CauseSerializer(many=True)
    data_sets = DataSetFilesSerializer(many=True)
    documents = DocumentSerializer(source="documents.all", many=True)
    jobs = JobSerializer(many=True)


class NoteSerializer(serializers.Serializer[Any]):
    """A word about why."""

    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000)


class DifferenceSerializer(serializers.Serializer[Any]):
    """A file that is not the same in both."""

    name = serializers.CharField()
    change = serializers.ChoiceField([change.value for change in Change if change is not Change.UNCHANGED])


class PartSerializer(serializers.Serializer[Any]):
    """A data set, or the documents."""

    name = serializers.CharField()
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="How many files of each change.")
    differences = DifferenceSerializer(many=True)


class DiffSerializer(serializers.Serializer[Any]):
    """What differs between two submissions."""

    before = serializers.IntegerField(help_text="The older one.")
    after = serializers.IntegerField()
    totals = serializers.DictField(child=serializers.IntegerField(), help_text="How many files of each change.")
    parts = PartSerializer(many=True)


class UploadSerializer(serializers.Serializer[Upload]):
    """An archive on its way in."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(Upload.State.choices)
    refusal = serializers.CharField(help_text="Why no submission was made of it.")
    team = serializers.IntegerField(source="team_id", allow_null=True, help_text="Null for baselines.")
    system = serializers.SlugField(source="system.name", default=None, allow_null=True)
    file_name = serializers.CharField()
    size = serializers.IntegerField()
    offset = serializers.IntegerField(help_text="Bytes that are on disk.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class CountsSerializer(serializers.Serializer[Any]):
    """What an archive held."""

    files = serializers.IntegerField()
    speech = serializers.IntegerField()
    expected = serializers.IntegerField()
    received = serializers.IntegerField()
    inherited = serializers.IntegerField()
    missing = serializers.IntegerField()
    converted = serializers.IntegerField()
    documents = serializers.IntegerField()


class FindingSerializer(serializers.Serializer[Any]):
    """One fault."""

    data_set = serializers.CharField()
    code = serializers.CharField()
    file = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    expected = serializers.CharField()
    found = serializers.CharField()
    remedy = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    count = serializers.IntegerField()


class ReportSerializer(serializers.Serializer[Any]):
    """Everything found in an archive."""

    archive = serializers.CharField()
    edition = serializers.CharField()
    has_errors = serializers.BooleanField()
    is_refused = serializers.BooleanField(help_text="Unsafe or damaged, so that it was not read to its end.")
    errors = serializers.IntegerField()  # type: ignore[assignment]
    warnings = serializers.IntegerField()
    notes = serializers.IntegerField()
    counts = CountsSerializer()
    faulty = serializers.ListField(child=serializers.CharField())
    summary = CauseSerializer(many=True)
    findings = FindingSerializer(many=True)
