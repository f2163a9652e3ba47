"""Systems, their numbers, and the measures of their utterances."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.selectors import measures_of
from portal.api.base import WITH_CSV, ApiView
from portal.api.serializers.systems import (
    FileQuerySerializer,
    FullSystemSerializer,
    MeasureSerializer,
    SystemSearchSerializer,
    SystemSerializer,
    ValuesSerializer,
    VersionQuerySerializer,
)
from portal.core.exports import csv_response
from portal.results.exports import VALUE_COLUMNS, value_rows
from portal.results.objective_exports import objective_as_dict, objective_rows
from portal.results.shown import View, view_of
from portal.results.utterances import run_of
from portal.submissions.selectors import system_for, systems_for
from portal.submissions.visibility import Part

FILTERS = {"edition": "edition__name", "team": "team"}


class SystemList(ApiView):
    is_open = True

    @extend_schema(
        parameters=[SystemSearchSerializer], responses=SystemSerializer(many=True), operation_id="list_systems"
    )
    def get(self, request: Request) -> Response:
        """The systems whose numbers you may see: your own, those that you organise, and those on public boards."""
        wanted = {FILTERS[name]: value for name, value in self.query(SystemSearchSerializer).items()}
        found = systems_for(request.user, Part.NUMBERS).filter(**wanted).order_by("name")
        return self.paginated(found, SystemSerializer)


class SystemDetail(ApiView):
    is_open = True

    @extend_schema(responses=FullSystemSerializer, operation_id="show_system")
    def get(self, request: Request, name: str) -> Response:
        """One system and, for its own, its versions."""
        view = _view(request, name, Part.NUMBERS)
        system: Any = view.system
        system.shown_version, system.is_own, system.versions = view.submission.version, view.is_own, view.versions
        return Response(FullSystemSerializer(system).data)


class Values(ApiView):
    is_open = True
    renderer_classes = WITH_CSV

    @extend_schema(
        parameters=[VersionQuerySerializer],
        responses={(200, "application/json"): ValuesSerializer, (200, "text/csv"): OpenApiTypes.STR},
        operation_id="show_values",
    )
    def get(self, request: Request, name: str) -> HttpResponse:
        """Every number of a system, for its own with the claims beside; as CSV by `format=csv` or `Accept`."""
        self.query(VersionQuerySerializer)
        view = _view(request, name, Part.NUMBERS)
        if not self.wants_csv:
            return Response(_values(view))
        rows = objective_rows(view) if view.system.edition else value_rows(view.system, view.submission)
        return csv_response(f"{name}-values.csv", rows)


class Files(ApiView):
    @extend_schema(
        parameters=[FileQuerySerializer], responses=MeasureSerializer(many=True), operation_id="list_file_measures"
    )
    def get(self, request: Request, name: str) -> Response:
        """What was measured on each utterance of a data set; for the system's team and the organizers."""
        wanted = self.query(FileQuerySerializer)
        run = run_of(_view(request, name, Part.SPEECH), wanted["data_set"])
        return self.paginated(measures_of(run).order_by("file__utterance__name", "pk"), MeasureSerializer)


def _view(request: Request, name: str, part: Part) -> View:
    """A system of which the asker may see a part, and the version that they meet."""
    view = view_of(request, system_for(request.user, name, part))
    if str(view.submission.version) != request.query_params.get("version", str(view.submission.version)):
        raise Http404
    return view


def _values(view: View) -> dict[str, Any]:
    system, submission = view.system, view.submission
    rows = islice(value_rows(system, submission), 1, None)
    speech = [dict(zip(VALUE_COLUMNS, row, strict=True)) for row in rows]
    if system.edition:
        return objective_as_dict(view) | {"speech": speech}
    start = {"system": system.name, "label": str(system), "edition": None, "version": submission.version}
    return start | {"measured_at": None, "numbers": [], "speech": speech}
