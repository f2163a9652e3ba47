"""Listening tests: those of an edition with results, their tables, and new ones that a file describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import prefetch_related_objects
from django.http import HttpResponse
from django.urls import reverse
from rest_framework import exceptions, serializers
from rest_framework.parsers import MultiPartParser
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
from portal.api.access import require_organizer
from portal.api.base import WITH_CSV, ApiView, Computed, Shape, Who, operation
from portal.challenges.selectors import edition_for
from portal.core.downloads import as_download


class StudySerializer(Shape):
    """A listening study with results."""

    name = serializers.SlugField(source="study.name", help_text="Its name in addresses.")
    title = serializers.CharField(source="study.title")
    form = serializers.ChoiceField(Study.Form.choices, source="study.form")
    tasks = serializers.ListField(child=serializers.CharField(), source="study.asked_keys")
    is_simulated = serializers.BooleanField(
        source="study.is_simulated", help_text="Its answers come from a program; nobody listened."
    )
    is_published = serializers.BooleanField(help_text="False: only the edition's organizers see this analysis.")
    published_at = serializers.DateTimeField(source="study.results_published_at", allow_null=True)
    closed_at = serializers.DateTimeField(source="study.closed_at", allow_null=True)


class ColumnSerializer(Shape):
    """A column of a table."""

    name = serializers.CharField(source="key")
    title = serializers.CharField(source="heading")
    meaning = serializers.CharField(source="description")


class NewStudySerializer(Shape):
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


class AnnouncedArchiveSerializer(Shape):
    """Recordings that are sent afterwards in parts, and the test that is made of them."""

    test = serializers.CharField(
        max_length=LARGEST_TEST_FILE, trim_whitespace=False, help_text="The file of the test, in TOML."
    )
    file_name = serializers.CharField(max_length=255, help_text="Of the archive, such as recordings.zip.")
    size = serializers.IntegerField(min_value=0, max_value=10**18, help_text="Of the archive, in bytes.")
    sha256 = serializers.RegexField("^[0-9a-f]{64}$", help_text="Of the archive, by which it is known again.")


class RecordingsUploadSerializer(Shape):
    """Where the bytes of an archive go, by tus."""

    address = Computed(
        serializers.URLField(),
        lambda upload, context: absolute_of(reverse("uploads:detail", args=[upload.pk]), context),
    )
    offset = serializers.IntegerField(help_text="How many of its bytes are here.")


class MadeStudySerializer(Shape):
    """A listening test that was made."""

    name = serializers.SlugField()
    title = serializers.CharField()
    address = Computed(serializers.URLField(), lambda study, context: absolute_of(study.get_absolute_url(), context))
    state = serializers.ChoiceField(Study.State.choices)
    evaluators = serializers.IntegerField()
    trials = serializers.IntegerField(source="trials_per_evaluator", help_text="Of each evaluator.")
    warnings = serializers.ListField(
        child=serializers.CharField(),
        source="recordings.warnings",
        default=[],
        help_text="To look at before the launch.",
    )


def absolute_of(address: str, context: Mapping[str, Any]) -> str:
    """Return an address with that of the portal."""
    return str(context["request"].build_absolute_uri(address))


def _columns(table: DataTable, _: Any) -> Any:
    known = {column.key: column for column in CONTENTS[table.name].columns}
    return ColumnSerializer([known[name] for name in table.columns if name in known], many=True).data


class TableSerializer(Shape):
    """A table: its columns, and rows of as many cells; rates are shares in [0, 1], empty cells null."""

    name = serializers.CharField()
    title = Computed(serializers.CharField(), lambda table, _: CONTENTS[table.name].title)
    note = Computed(serializers.CharField(), lambda table, _: CONTENTS[table.name].note, help_text="How to read it.")
    columns = Computed(ColumnSerializer(many=True), _columns)
    rows = serializers.ListField(child=serializers.ListField())


class PlainTableSerializer(Shape):
    """A table without words about its columns."""

    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField())


class ResultsSerializer(Shape):
    """Everything that an analysis found."""

    study = serializers.DictField(help_text="Name, title, form, tasks, scale, labels of systems, design.")
    settings = serializers.DictField(help_text="Settings of the analysis, its seed among them.")
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Listeners, sessions, ratings.")
    remarks = serializers.ListField(child=serializers.CharField(), help_text="Notes for readers.")
    versions = serializers.DictField(child=serializers.CharField(), help_text="Of the analysis and its libraries.")
    tables = serializers.DictField(child=PlainTableSerializer(), help_text="By `scores/name`, such as `raw/summary`.")


@operation(StudySerializer(many=True), who=Who.EVERYBODY)
def list_studies(api: ApiView, edition: str) -> Response:
    """The listening studies with results: published ones, and of editions that you organise all that are closed."""
    shown = list_shown_analyses(api.user, edition_for(api.user, edition))
    prefetch_related_objects([one.study for one in shown], "questions")
    return api.paginated(shown, StudySerializer)


@operation(
    MadeStudySerializer,
    takes=NewStudySerializer,
    status=201,
    who=Who.ORGANIZER,
    parsers=[MultiPartParser],
    example={"test": 'title = "My test"', "archive": "RECORDINGS.zip"},
)
def create_study(api: ApiView) -> Response:
    """Make a listening test of your own recordings, or of systems of your edition; it is designed and prepared."""
    require_organizer(api.user)
    given = api.body(NewStudySerializer)
    try:
        chosen = read_test_file(given["test"]).choose()
    except ProblemsError as error:
        raise exceptions.ValidationError({"test": error.problems}) from None
    try:
        study = make_test(chosen=chosen, archive=given.get("archive"), by=api.user)
    except ProblemsError as error:
        raise exceptions.ValidationError({"archive" if "archive" in given else "test": error.problems}) from None
    study.refresh_from_db()
    return Response(MadeStudySerializer(study, context={"request": api.request}).data, status=201)


@operation(
    RecordingsUploadSerializer,
    takes=AnnouncedArchiveSerializer,
    status=201,
    who=Who.ORGANIZER,
    example={
        "test": 'title = "My test"',
        "file_name": "recordings.zip",
        "size": 1000,
        "sha256": "0123456789abcdef" * 4,
    },
)
def begin_study_upload(api: ApiView) -> Response:
    """Begin to send own recordings in parts, by tus; once all are here, a job makes the test, as the upload tells."""
    require_organizer(api.user)
    given = api.body(AnnouncedArchiveSerializer)
    try:
        test = read_test_file(given.pop("test"))
    except ProblemsError as error:
        raise exceptions.ValidationError({"test": error.problems}) from None
    try:
        upload = begin_upload(test=test, **given, by=api.user)
    except ProblemsError as error:
        raise exceptions.ValidationError({"file_name": error.problems}) from None
    return Response(RecordingsUploadSerializer(upload, context={"request": api.request}).data, status=201)


@operation(ResultsSerializer, who=Who.EVERYBODY)
def show_results(api: ApiView, study: str) -> HttpResponse:
    """Every table of a study that you may see. Tables of single utterances hold those of your own systems."""
    shown = visible_results(shown_analysis_for(api.user, study))
    return HttpResponse(shown.as_json(), content_type="application/json")


@operation(TableSerializer, kinds=WITH_CSV, who=Who.EVERYBODY)
def show_table_of_results(api: ApiView, study: str, scores: str, table: str) -> HttpResponse:
    """One of these tables: `scores` is `raw`, `normalised` or `common`. As CSV by `format=csv` or `Accept`."""
    found = shown_analysis_for(api.user, study).table(scores, table)
    if api.wants_csv:
        response = HttpResponse(found.csv(), content_type="text/csv; charset=utf-8")
        return as_download(response, f"{study}-{scores}-{table}.csv")
    return Response(TableSerializer(found).data)
