"""What listeners said: the studies of an edition with results, and their tables."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from listening.results.result_shown import visible_results
from listening.results.selectors import shown_analyses_of, shown_analysis_for
from portal.api.base import WITH_CSV, ApiView
from portal.api.serializers.studies import ResultsSerializer, StudySerializer, TableSerializer
from portal.challenges.selectors import edition_for


class EditionStudies(ApiView):
    is_open = True

    @extend_schema(responses=StudySerializer(many=True), operation_id="list_studies")
    def get(self, request: Request, edition: str) -> Response:
        """The listening studies with results: published ones, and of editions that you organise all that are closed."""
        return self.paginated(shown_analyses_of(request.user, edition_for(request.user, edition)), StudySerializer)


class StudyResults(ApiView):
    is_open = True

    @extend_schema(responses=ResultsSerializer, operation_id="show_results")
    def get(self, request: Request, study: str) -> HttpResponse:
        """Every table of a study that you may see. Tables of single utterances hold those of your own systems."""
        shown = visible_results(shown_analysis_for(request.user, study))
        return HttpResponse(shown.as_json(), content_type="application/json")


class StudyTable(ApiView):
    is_open = True
    renderer_classes = WITH_CSV

    @extend_schema(
        responses={(200, "application/json"): TableSerializer, (200, "text/csv"): OpenApiTypes.STR},
        operation_id="show_table_of_results",
    )
    def get(self, request: Request, study: str, scores: str, table: str) -> HttpResponse:
        """One of these tables: `scores` is `raw`, `normalised` or `common`. As CSV by `format=csv` or `Accept`."""
        found = shown_analysis_for(request.user, study).table(scores, table)
        if self.wants_csv:
            headers = {"Content-Disposition": f'attachment; filename="{study}-{scores}-{table}.csv"'}
            return HttpResponse(found.csv(), content_type="text/csv; charset=utf-8", headers=headers)
        return Response(TableSerializer(found).data)
