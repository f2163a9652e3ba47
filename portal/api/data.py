"""What teams of an edition are given, and what their archives are held against: data, requirements, expected files."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.access import HasScope, Scope
from portal.api.base import ApiViewSet, BytesRenderer, CsvRenderer, StrictSerializer, shape
from portal.challenges.models import DataFile, DataSet, Edition
from portal.challenges.selectors import edition_for, makes_data_files
from portal.core.downloads import as_download, csv_response
from portal.editions.views import send_data_file
from portal.intake.archives.limits import ARCHIVE_ENDINGS
from portal.submissions.requirements import (
    SPEECH_FORMAT,
    describe_requirements,
    expected_set_for,
    list_expected,
    list_requirements,
)
from portal.submissions.selectors import corrected_system_for
from portal.teams import services as teams
from portal.teams.models import Team
from portal.teams.selectors import data_access, data_files_for, team_of


class ExpectedQuerySerializer(serializers.Serializer[Any]):
    system = serializers.CharField(
        default="",
        allow_blank=True,
        help_text="Name or label of one of your systems: what its next version would inherit.",
    )


class AskedSetSerializer(serializers.Serializer[Any]):
    """A data set whose speech is required: a file for each utterance.

    `expected`: address of its utterances with their lengths (CSV), for members of approved teams.
    """

    name = serializers.CharField()
    directory = serializers.CharField()
    role = serializers.CharField()
    split = serializers.CharField()
    utterances = serializers.IntegerField()
    required = serializers.BooleanField(  # type: ignore[assignment]
        source="is_required", help_text="Whether an archive without it is refused."
    )
    expected = serializers.SerializerMethodField()

    def get_expected(self, asked: Any) -> str:
        return reverse("api:expected-set", args=[self.context["view"].kwargs["edition"], asked.name])


class ResultsAskedSerializer(serializers.Serializer[Any]):
    """Which kinds of results teams report; none where the portal alone evaluates."""

    required = serializers.BooleanField(  # type: ignore[assignment]
        source="results_required", help_text="Whether an archive without score files is refused."
    )
    kinds = serializers.ListField(child=serializers.CharField(), source="result_kinds")


class RequirementsSerializer(serializers.Serializer[Any]):
    """What an archive must hold, as the page “Submit” says it.

    `expected`: address of everything that an archive is checked against, for members of approved teams.
    """

    edition = serializers.CharField()
    suffix = serializers.CharField(help_text="What names of folders of anonymised speech end with.")
    evaluated_by = serializers.ChoiceField(["teams", "portal", "both"])
    data_sets = AskedSetSerializer(many=True)
    audio_required = serializers.BooleanField()
    description_required = serializers.BooleanField()
    results = ResultsAskedSerializer(source="*")
    rate_hz = serializers.IntegerField()
    largest_archive_bytes = serializers.IntegerField()
    format = serializers.CharField(default=SPEECH_FORMAT, help_text="Of the speech.")
    archive_endings = serializers.ListField(child=serializers.CharField(), default=list(ARCHIVE_ENDINGS))
    expected = serializers.SerializerMethodField()

    def get_expected(self, requirements: Any) -> str:
        return reverse("api:expected", args=[requirements.edition])


class DataFileSerializer(serializers.ModelSerializer[DataFile]):
    """A file for teams; downloads take byte ranges."""

    data_set = serializers.SlugRelatedField[DataSet](slug_field="name", read_only=True)
    url = serializers.SerializerMethodField()

    class Meta:
        model = DataFile
        fields = ("name", "data_set", "kind", "bytes", "sha256", "url")

    def get_url(self, file: DataFile) -> str:
        return reverse("api:data-file", args=[self.context["view"].kwargs["edition"], file.name])


class DataSerializer(serializers.Serializer[Any]):
    """The data of an edition: its terms, and once they are accepted its files."""

    edition = serializers.CharField()
    terms = serializers.CharField()
    archived_at = serializers.DateTimeField(allow_null=True, help_text="Since then it takes no submissions.")
    is_shared = serializers.BooleanField(help_text="If false, the organizer says how teams get the recordings.")
    accepted_at = serializers.DateTimeField(allow_null=True, help_text="When you accepted the terms as they are.")
    is_open = serializers.BooleanField(
        help_text="Whether you may download: you accepted the terms, or organise the edition."
    )
    page = serializers.CharField(help_text="Address of the page on which the terms are accepted.")
    is_under_way = serializers.BooleanField(help_text="Whether the files are being made at the moment.")
    files = DataFileSerializer(many=True)


class AcceptSerializer(StrictSerializer):
    """The terms that were read."""

    terms = serializers.CharField(max_length=20_000, help_text="The text of the terms, as the portal gave it.")


class RequirementsViewSet(ApiViewSet):
    """What an archive of an edition must hold: data sets, files, results, description."""

    permission_classes = [IsAuthenticatedOrReadOnly, HasScope]
    serializer_class = RequirementsSerializer

    def retrieve(self, request: Request, edition: str) -> Response:
        return Response(self.get_serializer(list_requirements(edition_for(request.user, edition))).data)


class DataViewSet(ApiViewSet):
    """The files of an edition for members of approved teams that accepted their terms, and for its organizers."""

    serializer_class = DataSerializer
    answers = {"download": OpenApiTypes.BINARY, "expected": shape("Expected"), "expected_set": OpenApiTypes.STR}
    bodies = {"accept": AcceptSerializer}
    queries = {"expected": ExpectedQuerySerializer}
    formats = {"download": [BytesRenderer], "expected_set": [CsvRenderer]}
    scopes = {"accept": (Scope.SUBMIT, Scope.ORGANIZE)}

    def get_edition(self) -> Edition:
        """Return the edition if the asker takes part: names and hashes of originals are for those who were given them.

        Raises:
            Http404: they neither belong to an approved team nor organise it.
        """
        user = self.request.user
        edition = edition_for(user, self.kwargs["edition"])
        team = team_of(user, edition)
        takes_part = team is not None and team.state == Team.State.APPROVED
        if not takes_part and not edition.organizers.filter(pk=user.pk).exists():
            raise Http404
        return edition

    def retrieve(self, request: Request, edition: str) -> Response:
        chosen = self.get_edition()
        access = data_access(request.user, chosen)
        data = {
            "edition": chosen.name,
            "archived_at": chosen.archived_at,
            "is_shared": access.may_accept,
            "terms": access.terms,
            "accepted_at": access.acceptance and access.acceptance.accepted_at,
            "is_open": access.is_open,
            "page": request.build_absolute_uri(reverse("editions:data", args=[chosen.name])),
            "is_under_way": makes_data_files(chosen),
            "files": data_files_for(request.user, chosen),
        }
        return Response(self.get_serializer(data).data)

    def accept(self, request: Request, edition: str) -> Response:
        """Accept the terms of the data, as they were given; text, time, person and team are kept."""
        chosen = self.get_edition()
        teams.accept_data(edition=chosen, by=request.user, now=timezone.now(), text=self.read_body()["terms"])
        return self.retrieve(request, edition)

    @extend_schema(operation_id="editions_data_download")
    def download(self, request: Request, edition: str, file: str) -> HttpResponse:
        """Download a file for teams, whole or the byte range asked for; SHA-256 as `ETag`."""
        files = data_files_for(request.user, edition_for(request.user, edition))
        return send_data_file(request, get_object_or_404(files, name=file.replace("\0", "")))

    def expected(self, request: Request, edition: str) -> HttpResponse:
        """Show what an archive is checked against, as `vp verify` reads it; for approved teams and organizers."""
        chosen = self.get_edition()
        wanted = self.read_query()["system"]
        system = corrected_system_for(request.user, chosen, wanted) if wanted else None
        text = describe_requirements(chosen, system=system).to_json()
        response = HttpResponse(text, content_type="application/json")
        return as_download(response, f"{system.name if system else chosen.name}-expected.json")

    def expected_set(self, request: Request, edition: str, data_set: str) -> HttpResponse:
        """List the utterances of a data set with their lengths, as CSV; for approved teams and organizers."""
        rows = list_expected(expected_set_for(self.get_edition(), data_set))
        return csv_response(f"{data_set}-expected.csv", rows)
