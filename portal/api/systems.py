"""Systems, their numbers, and the measures of their utterances."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.http import Http404, HttpResponse
from rest_framework import serializers
from rest_framework.response import Response

from evaluation.app.audio_measures.selectors import select_measures
from portal.api.base import WITH_CSV, ApiView, Computed, Shape, Who, operation
from portal.core.downloads import csv_response
from portal.submissions.models import Submission, System
from portal.submissions.rules import SystemPart
from portal.submissions.selectors import listed_systems_for, system_for
from portal.systems.exports import VALUE_COLUMNS, objective_as_dict, objective_rows, value_rows
from portal.systems.selectors import View, make_view
from portal.systems.utterances.pages import find_run

FILTERS = {"edition": "edition__name", "team": "team"}


class SystemSerializer(Shape):
    """A system. Its numbers are public once its leaderboard is; the rest stays with its team and the organizers."""

    name = serializers.SlugField(help_text="Its name in addresses.")
    label = serializers.CharField(source="__str__", help_text="Such as T11-p1.")  # type: ignore[assignment]
    title = serializers.CharField()
    edition = Computed(serializers.SlugField(allow_null=True), lambda system, _: system.edition and system.edition.name)
    team = Computed(
        serializers.CharField(allow_null=True, help_text="Its name."),
        lambda system, _: system.team and system.team.name,
    )
    kind = serializers.ChoiceField([*System.Kind.choices, ("", "a baseline")])
    is_baseline = serializers.BooleanField()


class VersionSerializer(Shape):
    """A submission of the system."""

    submission = serializers.IntegerField(source="pk")
    version = serializers.IntegerField()
    state = serializers.ChoiceField(Submission.State.choices)
    created_at = serializers.DateTimeField()
    evaluated_at = serializers.DateTimeField(allow_null=True)


class FullSystemSerializer(SystemSerializer):
    """A system with its versions, which only its team and organizers see."""

    shown_version = serializers.IntegerField(help_text="Whose numbers are given if no version is asked for.")
    is_own = serializers.BooleanField()
    versions = VersionSerializer(many=True)


class SystemSearchSerializer(Shape):
    """Which systems."""

    edition = serializers.SlugField(required=False, help_text="Of this edition only.")
    team = serializers.IntegerField(required=False, min_value=1, max_value=2**31, help_text="Of this team only.")


class VersionQuerySerializer(Shape):
    """Which version."""

    version = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31,
        help_text="For its team and organizers; others get the one on the leaderboard.",
    )


class NumberSerializer(Shape):
    """One number with all that identifies it; reported values are shown only to its team and organizers."""

    data_set = gender = metric = estimator = attack_model = training = enrolment = speech = unit = better = (
        serializers.CharField()
    )
    value = serializers.FloatField()
    spread = low = high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField(allow_null=True)
    basis = serializers.CharField(help_text="From what the value was computed, in words.")
    note = serializers.CharField(help_text="What limits it, such as few target trials; else empty.")
    category = serializers.CharField(help_text="The letter of a ZEBRA category, whose value is 0 to 6; else empty.")
    is_recomputed = serializers.BooleanField()
    reported = serializers.FloatField(required=False, allow_null=True)
    reported_category = serializers.CharField(required=False, help_text="The letter that is reported; else empty.")
    reported_in = serializers.CharField(required=False, help_text="File and line of the reported number.")
    agrees = serializers.BooleanField(
        required=False, allow_null=True, help_text="At the printed precision; null where nothing is reported."
    )


class MissingSerializer(Shape):
    """A number that the recipe requires and that could not be computed."""

    what = reason = serializers.CharField()
    is_ranked = serializers.BooleanField(help_text="Whether the leaderboard needs it.")


class SpeechNumberSerializer(Shape):
    """What was measured on the audio of a data set."""

    system = serializers.CharField()
    version = serializers.IntegerField()
    data_set = role = gender = metric = estimator = unit = better = serializers.CharField()
    value = serializers.FloatField()
    spread = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    recipe = code = serializers.CharField()


class ValuesSerializer(Shape):
    """Every number of a system."""

    system = label = serializers.CharField()  # type: ignore[assignment]
    edition = serializers.CharField(allow_null=True)
    version = serializers.IntegerField()
    state = serializers.CharField(help_text="Of this version, in words.")
    summary = serializers.ListField(child=serializers.CharField(), help_text="Privacy, utility and rank in sentences.")
    measured_at = serializers.DateTimeField(allow_null=True)
    computed_by = serializers.CharField(help_text="The portal's engines with their versions; else empty.")
    not_ranked = serializers.ListField(
        child=serializers.CharField(),
        help_text="Why the leaderboard cannot rank it, such as trials that are not covered.",
    )
    numbers = NumberSerializer(many=True)
    speech = SpeechNumberSerializer(many=True)
    missing = MissingSerializer(many=True, required=False, help_text="Only for its team and organizers.")


class FileQuerySerializer(VersionQuerySerializer):
    """Of which data set."""

    data_set = serializers.SlugField(help_text="As the corpus names it.")


class MeasureSerializer(Shape):
    """What was measured on one utterance."""

    file = serializers.IntegerField(source="file_id")
    utterance = serializers.CharField(source="file.utterance.name")
    speaker = serializers.CharField(source="file.utterance.speaker.name")
    gender = serializers.CharField(source="file.utterance.speaker.get_gender_display")
    pitch_correlation = serializers.FloatField(allow_null=True)
    pitch_correlation_voiced = serializers.FloatField(source="voiced_pitch_correlation", allow_null=True)
    pitch_correlation_realigned = serializers.FloatField(source="realigned_pitch_correlation", allow_null=True)
    pitch_correlation_unrelated = serializers.FloatField(source="unrelated_pitch_correlation", allow_null=True)
    predicted_naturalness = predicted_original = serializers.FloatField(allow_null=True)
    lag_frames = serializers.IntegerField(allow_null=True)
    duration_difference_ms = serializers.FloatField()
    level_change_db = peak_dbfs = serializers.FloatField(allow_null=True)
    faults = serializers.ListField(child=serializers.CharField())


@operation(SystemSerializer(many=True), asks=SystemSearchSerializer, who=Who.EVERYBODY)
def list_systems(api: ApiView) -> Response:
    """The systems whose numbers you may see: your own, those that you organise, and those on public leaderboards."""
    wanted = {FILTERS[name]: value for name, value in api.query(SystemSearchSerializer).items()}
    return api.paginated(
        listed_systems_for(api.user, SystemPart.NUMBERS).filter(**wanted).order_by("name"), SystemSerializer
    )


@operation(FullSystemSerializer, who=Who.EVERYBODY)
def show_system(api: ApiView, name: str) -> Response:
    """One system; its team and organizers also see its versions."""
    view = _view(api, name, SystemPart.NUMBERS)
    system: Any = view.system
    system.shown_version, system.is_own, system.versions = view.submission.version, view.is_own, view.versions
    return Response(FullSystemSerializer(system).data)


@operation(ValuesSerializer, asks=VersionQuerySerializer, kinds=WITH_CSV, who=Who.EVERYBODY)
def show_values(api: ApiView, name: str) -> HttpResponse:
    """Every number of a system; its team and organizers also see reported ones. As CSV by `format=csv` or `Accept`."""
    view = system_view(api, name)
    if not api.wants_csv:
        return Response(_values(view))
    rows = objective_rows(view) if view.system.edition else value_rows(view.system, view.submission)
    return csv_response(f"{name}-values.csv", rows)


@operation(MeasureSerializer(many=True), asks=FileQuerySerializer, who=Who.TEAM)
def list_file_measures(api: ApiView, name: str) -> Response:
    """What was measured on each utterance of a data set; for the system's team and the organizers."""
    wanted = api.query(FileQuerySerializer)
    run = find_run(_view(api, name, SystemPart.SPEECH), wanted["data_set"])
    return api.paginated(select_measures(run).order_by("file__utterance__name", "pk"), MeasureSerializer)


def system_view(api: ApiView, name: str) -> View:
    """Return a system whose numbers the asker may see, and the version that they ask for."""
    api.query(VersionQuerySerializer)
    return _view(api, name, SystemPart.NUMBERS)


def _view(api: ApiView, name: str, part: SystemPart) -> View:
    """Return a system of which the asker may see a part, and the version that they meet."""
    view = make_view(api.request, system_for(api.user, name, part))
    if str(view.submission.version) != api.request.query_params.get("version", str(view.submission.version)):
        raise Http404
    return view


def _values(view: View) -> dict[str, Any]:
    system, submission = view.system, view.submission
    rows = islice(value_rows(system, submission), 1, None)
    speech = [dict(zip(VALUE_COLUMNS, row, strict=True)) for row in rows]
    if system.edition:
        return objective_as_dict(view) | {"speech": speech}
    start: dict[str, Any] = {"system": system.name, "label": str(system), "edition": None}
    start["version"] = submission.version
    start |= {"state": submission.get_state_display().lower(), "summary": []}
    return start | {"measured_at": None, "computed_by": "", "not_ranked": [], "numbers": [], "speech": speech}
