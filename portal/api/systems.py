"""Systems, their numbers, and the measures of their utterances."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.http import Http404, HttpResponse
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.permissions import IsAuthenticated, IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.app.audio_measures.selectors import select_measures
from evaluation.app.models import UtteranceMeasure
from portal.api.access import HasScope
from portal.api.base import WITH_CSV, ApiViewSet, shape
from portal.challenges.models import Edition
from portal.core.downloads import csv_response
from portal.submissions.models import Submission, System
from portal.submissions.rules import SystemPart
from portal.submissions.selectors import listed_systems_for, system_for
from portal.systems.exports import VALUE_COLUMNS, objective_as_dict, objective_rows, value_rows
from portal.systems.selectors import View, make_view
from portal.systems.utterances.pages import find_run
from portal.teams.models import Team


class SystemSerializer(serializers.ModelSerializer[System]):
    """A system. Its numbers are public once its leaderboard is; the rest stays with its team and the organizers."""

    label = serializers.CharField(source="__str__", help_text="Such as T11-p1.")  # type: ignore[assignment]
    edition = serializers.SlugRelatedField[Edition](slug_field="name", read_only=True, allow_null=True)
    team = serializers.SlugRelatedField[Team](slug_field="name", read_only=True, allow_null=True)

    class Meta:
        model = System
        fields = ("name", "label", "title", "edition", "team", "kind", "is_baseline")


class VersionSerializer(serializers.ModelSerializer[Submission]):
    """A submission of the system."""

    submission = serializers.IntegerField(source="pk")

    class Meta:
        model = Submission
        fields = ("submission", "version", "state", "created_at", "evaluated_at")


class FullSystemSerializer(SystemSerializer):
    """A system with its versions, which only its team and organizers see."""

    shown_version = serializers.IntegerField(help_text="Whose numbers are given if no version is asked for.")
    is_own = serializers.BooleanField()
    versions = VersionSerializer(many=True)

    class Meta:
        model = System
        fields = (*SystemSerializer.Meta.fields, "shown_version", "is_own", "versions")


class SystemSearchSerializer(serializers.Serializer[Any]):
    edition = serializers.SlugField(required=False, source="edition__name", help_text="Of this edition only.")
    team = serializers.IntegerField(required=False, min_value=1, max_value=2**31, help_text="Of this team only.")


class VersionQuerySerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31,
        help_text="For its team and organizers; others get the one on the leaderboard.",
    )


class FileQuerySerializer(VersionQuerySerializer):
    data_set = serializers.SlugField(help_text="As the corpus names it.")


class MeasureSerializer(serializers.ModelSerializer[UtteranceMeasure]):
    """What was measured on one utterance."""

    file = serializers.IntegerField(source="file_id")
    utterance = serializers.CharField(source="file.utterance.name")
    speaker = serializers.CharField(source="file.utterance.speaker.name")
    gender = serializers.CharField(source="file.utterance.speaker.get_gender_display")
    pitch_correlation_voiced = serializers.FloatField(source="voiced_pitch_correlation", allow_null=True)
    pitch_correlation_realigned = serializers.FloatField(source="realigned_pitch_correlation", allow_null=True)
    pitch_correlation_unrelated = serializers.FloatField(source="unrelated_pitch_correlation", allow_null=True)
    faults = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = UtteranceMeasure
        fields = (
            *("file", "utterance", "speaker", "gender", "pitch_correlation", "pitch_correlation_voiced"),
            *("pitch_correlation_realigned", "pitch_correlation_unrelated", "predicted_naturalness"),
            *("predicted_original", "lag_frames", "duration_difference_ms", "level_change_db", "peak_dbfs", "faults"),
        )


class OfSystemViewSet(ApiViewSet):
    """What is known of one system, in the version that the asker meets or asks for."""

    permission_classes = [IsAuthenticatedOrReadOnly, HasScope]
    queries = {"list": VersionQuerySerializer}

    def read_view(self, part: SystemPart = SystemPart.NUMBERS) -> View:
        """Return the system, of which the asker may see a part, and its version."""
        version = self.read_query().get("version")
        view = make_view(self.request, system_for(self.request.user, self.kwargs["name"], part))
        if version not in {None, view.submission.version}:
            raise Http404
        return view


class SystemViewSet(ListModelMixin, OfSystemViewSet):
    """The systems whose numbers you may see: your own, those that you organise, and those on public leaderboards."""

    serializer_class = FullSystemSerializer
    answers = {"list": SystemSerializer, "values": shape("Values")}
    queries = {
        "list": SystemSearchSerializer,
        "retrieve": VersionQuerySerializer,
        "values": VersionQuerySerializer,
    }
    formats = {"values": WITH_CSV}

    def get_queryset(self) -> Any:
        systems = listed_systems_for(self.request.user, SystemPart.NUMBERS)
        return systems.filter(**self.read_query()).order_by("name")

    def retrieve(self, request: Request, name: str) -> Response:
        """Show one system; its team and organizers also see its versions."""
        view = self.read_view()
        system: Any = view.system
        system.shown_version, system.is_own, system.versions = view.submission.version, view.is_own, view.versions
        return Response(self.get_serializer(system).data)

    def values(self, request: Request, name: str) -> HttpResponse:
        """Show every number of a system; its team and organizers also see reported ones. As CSV by `format=csv`."""
        view = self.read_view()
        system, submission = view.system, view.submission
        if self.wants_csv:
            rows = objective_rows(view) if system.edition else value_rows(system, submission)
            return csv_response(f"{name}-values.csv", rows)
        measured = islice(value_rows(system, submission), 1, None)
        speech = [dict(zip(VALUE_COLUMNS, row, strict=True)) for row in measured]
        if system.edition:
            return Response(objective_as_dict(view) | {"speech": speech})
        start: dict[str, Any] = {"system": system.name, "label": str(system), "edition": None}
        start |= {"version": submission.version, "state": submission.get_state_display().lower(), "summary": []}
        start |= {"measured_at": None, "computed_by": "", "not_ranked": [], "numbers": [], "speech": speech}
        return Response(start)


class UtteranceViewSet(ListModelMixin, OfSystemViewSet):
    """What was measured on each utterance of a data set; for the system's team and the organizers."""

    permission_classes = [IsAuthenticated, HasScope]
    serializer_class = MeasureSerializer
    queries = {"list": FileQuerySerializer}

    def get_queryset(self) -> Any:
        data_set = self.read_query()["data_set"]
        return select_measures(find_run(self.read_view(SystemPart.SPEECH), data_set)).order_by(
            "file__utterance__name", "pk"
        )
