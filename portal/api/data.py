"""What teams of an edition are given, and what their archives are held against: data, requirements, expected files."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.response import Response

from portal.api.access import Scope
from portal.api.base import ApiView, BytesRenderer, Computed, CsvRenderer, Shape, Who, operation
from portal.challenges.models import Edition
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

TEXT, FLAG = serializers.CharField(), serializers.BooleanField()


class InheritedSerializer(Shape):
    """What a further version of a system inherits unless its archive holds it."""

    system = serializers.CharField()
    version = serializers.IntegerField(help_text="The newest version that something is inherited from; 0 if none.")
    speech = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))
    documents = serializers.ListField(
        child=serializers.CharField(), help_text="Paths of the newest documents without errors."
    )
    newest_documents = serializers.ListField(
        child=serializers.CharField(), help_text="Paths of that version's documents, which an archive may complete."
    )


class ExpectedSerializer(Shape):
    """What `vp verify` compares an archive with."""

    format = serializers.CharField()
    version = serializers.IntegerField()
    edition = serializers.CharField()
    audio_required = scores_required = description_required = serializers.BooleanField()
    limits = serializers.DictField()
    recipe = serializers.CharField(help_text="TOML.")
    data_sets = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))
    utterances = serializers.DictField(
        child=serializers.ListField(), help_text="By name: samples, rate in Hz, SHA-256 of the original's samples."
    )
    trial_counts = serializers.DictField(child=serializers.ListField(child=serializers.IntegerField()))
    word_counts = serializers.DictField(child=serializers.IntegerField())
    needed_to_rank = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="By number that the ranking needs: the kinds of files, one of which is enough.",
    )
    inherited = InheritedSerializer(required=False, help_text="Present if a system is named.")


@operation(
    ExpectedSerializer,
    asks=OpenApiParameter(
        "system", str, description="Name or label of one of your systems: what its next version would inherit."
    ),
    who=Who.TAKING_PART,
)
def show_expected(api: ApiView, edition: str) -> HttpResponse:
    """What an archive is checked against, as `vp verify` reads it; for members of approved teams and organizers."""
    chosen = edition_for(api.user, edition)
    _require_taking_part(api.user, chosen)
    wanted = api.request.query_params.get("system", "")
    system = corrected_system_for(api.user, chosen, wanted) if wanted else None
    name = f"{system.name if system else chosen.name}-expected.json"
    text = describe_requirements(chosen, system=system).to_json()
    return as_download(HttpResponse(text, content_type="application/json"), name)


class AskedSetSerializer(Shape):
    """A data set whose speech is required: a file for each utterance."""

    name = directory = role = split = serializers.CharField()
    utterances = serializers.IntegerField()
    required = Computed(  # type: ignore[assignment]
        FLAG, lambda one, _: one.is_required, help_text="Whether an archive without it is refused."
    )
    expected = Computed(
        TEXT,
        lambda one, context: reverse("api:expected-set", args=[context["edition"], one.name]),
        help_text="Address of its utterances with their lengths (CSV), for members of approved teams.",
    )


class ResultsAskedSerializer(Shape):
    """Whether teams report results."""

    required = Computed(  # type: ignore[assignment]
        FLAG, lambda one, _: one.results_required, help_text="Whether an archive without score files is refused."
    )
    kinds = Computed(
        serializers.ListField(child=serializers.CharField()),
        lambda one, _: list(one.result_kinds),
        help_text="Kinds of files that are read; none where the portal alone evaluates.",
    )


class RequirementsSerializer(Shape):
    """What an archive must hold, as the page “Submit” says it."""

    edition = serializers.CharField()
    suffix = serializers.CharField(help_text="What names of folders of anonymised speech end with.")
    evaluated_by = serializers.ChoiceField(["teams", "portal", "both"])
    data_sets = AskedSetSerializer(many=True)
    audio_required = description_required = FLAG
    results = ResultsAskedSerializer(source="*")
    rate_hz = largest_archive_bytes = serializers.IntegerField()
    format = Computed(TEXT, lambda *_: SPEECH_FORMAT, help_text="Format of the speech.")
    archive_endings = Computed(
        serializers.ListField(child=serializers.CharField()), lambda *_: list(ARCHIVE_ENDINGS), help_text="Of archives."
    )
    expected = Computed(
        TEXT,
        lambda one, _: reverse("api:expected", args=[one.edition]),
        help_text="Address of everything that an archive is checked against, for members of approved teams.",
    )


@operation(RequirementsSerializer, who=Who.EVERYBODY)
def show_requirements(api: ApiView, edition: str) -> Response:
    """What an archive of an edition must hold: data sets, files, results, description."""
    chosen = edition_for(api.user, edition)
    return Response(RequirementsSerializer(list_requirements(chosen), context={"edition": chosen.name}).data)


@operation(OpenApiTypes.STR, kinds=[CsvRenderer], who=Who.TAKING_PART)
def list_expected_utterances(api: ApiView, edition: str, data_set: str) -> HttpResponse:
    """The utterances of a data set with their lengths, as CSV; for members of approved teams and organizers."""
    chosen = edition_for(api.user, edition)
    _require_taking_part(api.user, chosen)
    return csv_response(f"{data_set}-expected.csv", list_expected(expected_set_for(chosen, data_set)))


class DataFileSerializer(Shape):
    """A file for teams; downloads take byte ranges."""

    name = serializers.CharField()
    data_set = Computed(TEXT, lambda file, _: file.data_set.name)
    kind = serializers.ChoiceField(["speech", "kaldi", "trials", "expected"])
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    url = Computed(TEXT, lambda file, context: reverse("api:data-file", args=[context["edition"], file.name]))


class DataSerializer(Shape):
    """The data of an edition: its terms, and once they are accepted its files."""

    edition = terms = serializers.CharField()
    archived_at = serializers.DateTimeField(allow_null=True, help_text="Since then it takes no submissions.")
    is_shared = serializers.BooleanField(help_text="If false, the organizer says how teams get the recordings.")
    accepted_at = serializers.DateTimeField(allow_null=True, help_text="When you accepted the terms as they are.")
    is_open = serializers.BooleanField(
        help_text="Whether you may download: you accepted the terms, or organise the edition."
    )
    page = serializers.CharField(help_text="Address of the page on which the terms are accepted.")
    is_under_way = serializers.BooleanField(help_text="Whether the files are being made at the moment.")
    files = DataFileSerializer(many=True)


class AcceptSerializer(Shape):
    """The terms that were read."""

    terms = serializers.CharField(max_length=20_000, help_text="The text of the terms, as the portal gave it.")


def _data(api: ApiView, edition: Edition) -> Response:
    _require_taking_part(api.user, edition)
    access = data_access(api.user, edition)
    found = {
        "edition": edition.name,
        "archived_at": edition.archived_at,
        "is_shared": access.may_accept,
        "terms": access.terms,
        "accepted_at": access.acceptance and access.acceptance.accepted_at,
        "is_open": access.is_open,
        "page": api.request.build_absolute_uri(reverse("editions:data", args=[edition.name])),
        "is_under_way": makes_data_files(edition),
        "files": data_files_for(api.user, edition),
    }
    return Response(DataSerializer(found, context={"edition": edition.name}).data)


@operation(DataSerializer, who=Who.TAKING_PART)
def show_data(api: ApiView, edition: str) -> Response:
    """The files for teams: for members of approved teams that accepted their terms, and for organizers."""
    return _data(api, edition_for(api.user, edition))


@operation(
    DataSerializer,
    takes=AcceptSerializer,
    scopes=(Scope.SUBMIT, Scope.ORGANIZE),
    who=Who.TAKING_PART,
    example={"terms": "TERMS"},
)
def accept_data(api: ApiView, edition: str) -> Response:
    """Accept the terms of the data, as they were given; text, time, person and team are kept."""
    chosen = edition_for(api.user, edition)
    _require_taking_part(api.user, chosen)
    teams.accept_data(edition=chosen, by=api.user, now=timezone.now(), text=api.body(AcceptSerializer)["terms"])
    return _data(api, chosen)


@operation(OpenApiTypes.BINARY, kinds=[BytesRenderer], who=Who.TAKING_PART)
def download_data(api: ApiView, edition: str, file: str) -> HttpResponse:
    """A file for teams, whole or the byte range asked for; SHA-256 as `ETag`."""
    files = data_files_for(api.user, edition_for(api.user, edition))
    return send_data_file(api.request, get_object_or_404(files, name=file.replace("\0", "")))


def _require_taking_part(user: Any, edition: Edition) -> None:
    """Require taking part: names and hashes of the originals are for those who were given the corpus."""
    team = team_of(user, edition)
    takes_part = team is not None and team.state == Team.State.APPROVED
    if not takes_part and not edition.organizers.filter(pk=user.pk).exists():
        raise Http404
