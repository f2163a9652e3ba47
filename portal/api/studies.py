"""Listening tests: those of an edition with results, their tables, and new ones that a file describes."""

from __future__ import annotations

from typing import Any

from django.db.models import prefetch_related_objects
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import exceptions, serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.parsers import MultiPartParser
from rest_framework.permissions import IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response

from common.errors import ProblemsError
from common.tables import DataTable
from listening.analysis.tables import CONTENTS
from listening.app.models import Study
from listening.app.recordings.files import LARGEST_TEST_FILE, read_test_file
from listening.app.recordings.services import make_test
from listening.app.recordings.uploads import begin_upload
from listening.app.results.context import visible_results
from listening.app.results.selectors import list_shown_analyses, shown_analysis_for
from portal.api.access import HasScope, IsOrganizer
from portal.api.base import WITH_CSV, ApiViewSet, StrictSerializer, shape
from portal.challenges.selectors import edition_for
from portal.core.downloads import as_download
from portal.submissions.models import Upload


class StudySerializer(serializers.Serializer[Any]):
    """A listening study with results; `is_simulated`: its answers come from a program, nobody listened."""

    name = serializers.SlugField(source="study.name", help_text="Its name in addresses.")
    title = serializers.CharField(source="study.title")
    form = serializers.ChoiceField(Study.Form.choices, source="study.form")
    tasks = serializers.ListField(child=serializers.CharField(), source="study.asked_keys")
    is_simulated = serializers.BooleanField(source="study.is_simulated")
    is_published = serializers.BooleanField(help_text="False: only the edition's organizers see this analysis.")
    published_at = serializers.DateTimeField(source="study.results_published_at", allow_null=True)
    closed_at = serializers.DateTimeField(source="study.closed_at", allow_null=True)


class NewStudySerializer(StrictSerializer):
    """A listening test of recordings of one's own or of the systems of an edition, as a form of several parts."""

    test = serializers.CharField(
        max_length=LARGEST_TEST_FILE,
        trim_whitespace=False,
        help_text="The file of the test, in TOML; only its title is needed.",
    )
    archive = serializers.FileField(
        required=False,
        help_text="An archive with a folder for each condition, CONDITION/ITEM.wav; none if the file names an edition.",
    )


class AnnouncedArchiveSerializer(StrictSerializer):
    """Recordings that are sent afterwards in parts, and the test that is made of them."""

    test = serializers.CharField(
        max_length=LARGEST_TEST_FILE, trim_whitespace=False, help_text="The file of the test, in TOML."
    )
    file_name = serializers.CharField(max_length=255, help_text="Of the archive, such as recordings.zip.")
    size = serializers.IntegerField(min_value=0, max_value=10**18, help_text="Of the archive, in bytes.")
    sha256 = serializers.RegexField("^[0-9a-f]{64}$", help_text="Of the archive, by which it is known again.")


class RecordingsUploadSerializer(serializers.ModelSerializer[Upload]):
    """Where the bytes of an archive go, by tus; `offset` of them are here."""

    address = serializers.HyperlinkedIdentityField(view_name="uploads:detail")

    class Meta:
        model = Upload
        fields = ("address", "offset")


class MadeStudySerializer(serializers.ModelSerializer[Study]):
    """A listening test that was made; `warnings` are to be looked at before the launch."""

    address = serializers.SerializerMethodField()
    evaluators = serializers.IntegerField()
    trials = serializers.IntegerField(source="trials_per_evaluator", help_text="Of each evaluator.")
    warnings = serializers.ListField(child=serializers.CharField(), source="recordings.warnings", default=[])

    class Meta:
        model = Study
        fields = ("name", "title", "address", "state", "evaluators", "trials", "warnings")

    def get_address(self, study: Study) -> str:
        return str(self.context["request"].build_absolute_uri(study.get_absolute_url()))


class ColumnSerializer(serializers.Serializer[Any]):
    """A column of a table."""

    name = serializers.CharField(source="key")
    title = serializers.CharField(source="heading")
    meaning = serializers.CharField(source="description")


class TableSerializer(serializers.Serializer[Any]):
    """A table with a note on how to read it, its columns, and rows of as many cells.

    Rates are shares in [0, 1], empty cells null.
    """

    name = serializers.CharField()
    title = serializers.SerializerMethodField()
    note = serializers.SerializerMethodField()
    columns = serializers.SerializerMethodField()
    rows = serializers.ListField(child=serializers.ListField())

    def get_title(self, table: DataTable) -> str:
        return CONTENTS[table.name].title

    def get_note(self, table: DataTable) -> str:
        return CONTENTS[table.name].note

    @extend_schema_field(ColumnSerializer(many=True))
    def get_columns(self, table: DataTable) -> Any:
        known = {column.key: column for column in CONTENTS[table.name].columns}
        return ColumnSerializer([known[name] for name in table.columns if name in known], many=True).data


class EditionStudyViewSet(ListModelMixin, ApiViewSet):
    """The listening studies with results: published ones, and of editions that you organise all that are closed."""

    permission_classes = [IsAuthenticatedOrReadOnly, HasScope]
    serializer_class = StudySerializer

    def get_queryset(self) -> Any:
        user = self.request.user
        shown = list_shown_analyses(user, edition_for(user, self.kwargs["edition"]))
        prefetch_related_objects([analysis.study for analysis in shown], "questions")
        return shown


class StudyViewSet(ApiViewSet):
    """Listening tests of your own recordings, or of systems of your edition."""

    permission_classes = [HasScope, IsOrganizer]
    serializer_class = MadeStudySerializer
    answers = {"begin_upload": RecordingsUploadSerializer}
    bodies = {"create": NewStudySerializer, "begin_upload": AnnouncedArchiveSerializer}

    def get_parsers(self) -> Any:
        return [MultiPartParser()] if self.action_map.get("post") == "create" else super().get_parsers()

    def create(self, request: Request) -> Response:
        """Make a listening test of your own recordings, or of systems of your edition; it is designed and prepared."""
        body = self.read_body()
        try:
            chosen = read_test_file(body["test"]).choose()
        except ProblemsError as error:
            raise exceptions.ValidationError({"test": error.problems}) from None
        try:
            study = make_test(chosen=chosen, archive=body.get("archive"), by=request.user)
        except ProblemsError as error:
            raise exceptions.ValidationError({"archive" if "archive" in body else "test": error.problems}) from None
        study.refresh_from_db()
        return Response(self.get_serializer(study).data, status=201)

    @extend_schema(responses={201: RecordingsUploadSerializer})
    def begin_upload(self, request: Request) -> Response:
        """Begin to send own recordings in parts, by tus; once all are here, a job makes the test."""
        body = self.read_body()
        try:
            test = read_test_file(body.pop("test"))
        except ProblemsError as error:
            raise exceptions.ValidationError({"test": error.problems}) from None
        try:
            upload = begin_upload(test=test, **body, by=request.user)
        except ProblemsError as error:
            raise exceptions.ValidationError({"file_name": error.problems}) from None
        return Response(self.get_serializer(upload).data, status=201)


class StudyResultsViewSet(ApiViewSet):
    """Every table of a study that you may see. Tables of single utterances hold those of your own systems."""

    permission_classes = [IsAuthenticatedOrReadOnly, HasScope]
    answers = {"retrieve": shape("StudyResults"), "table": TableSerializer}
    formats = {"table": WITH_CSV}

    def retrieve(self, request: Request, study: str) -> HttpResponse:
        shown = visible_results(shown_analysis_for(request.user, study))
        return HttpResponse(shown.as_json(), content_type="application/json")

    @extend_schema(operation_id="studies_results_table")
    def table(self, request: Request, study: str, scores: str, table: str) -> HttpResponse:
        """Show one of these tables: `scores` is `raw`, `normalised` or `common`. As CSV by `format=csv` or `Accept`."""
        chosen = shown_analysis_for(request.user, study).table(scores, table)
        if self.wants_csv:
            response = HttpResponse(chosen.csv(), content_type="text/csv; charset=utf-8")
            return as_download(response, f"{study}-{scores}-{table}.csv")
        return Response(self.get_serializer(chosen).data)
