"""The portal's attacks and recognisers: what there is, runs on a submission, and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.response import Response

from evaluation.app.attacks import services as attacks
from evaluation.app.attacks.selectors import judge_attacks
from evaluation.app.attacks.selectors import list_attacks as find_attacks
from evaluation.app.models import EvaluationRun
from evaluation.app.recognition import services as recognitions
from evaluation.app.recognition.selectors import list_recognitions as find_recognitions
from evaluation.app.recognizer_training import services as retrained
from evaluation.app.recognizer_training.selectors import list_retrained
from evaluation.app.runs import services as runs
from evaluation.app.runs.kinds import (
    ATTACK,
    CHAINED_KINDS,
    ENGINE_KINDS,
    RECOGNITION,
    RETRAINED,
    TRAINING,
    RunKind,
    describe_engine,
)
from evaluation.app.runs.selectors import list_job_chains, list_runs
from evaluation.objective_results.attack_strength import NOT_RELIABLE, RELIABLE
from evaluation.objective_results.values import Number
from portal.api.base import ApiView, Shape, Who, operation
from portal.api.submissions import JobSerializer
from portal.api.systems import MissingSerializer, NumberSerializer, VersionQuerySerializer, system_view
from portal.jobs.models import JobState
from portal.jobs.services import NotPossible
from portal.jobs.workers import lacking
from portal.submissions.models import Submission
from portal.submissions.selectors import managed_submission_for, submission_for
from portal.systems.attacks.pages import estimator_for
from portal.systems.exports import number_as_dict, reliability_as_list

MOST_SETS = 200


class EngineSerializer(Shape):
    """An attacker or recogniser of this portal."""

    kind = serializers.ChoiceField([EvaluationRun.Kind.ATTACK.value, EvaluationRun.Kind.RECOGNITION.value])
    name = serializers.CharField()
    key = serializers.CharField(help_text="Name and version, under which its work is kept.")
    title = description = serializers.CharField()
    licence = serializers.CharField(help_text="Licence of its weights.")
    source = serializers.CharField()  # type: ignore[assignment]
    is_default = serializers.BooleanField()
    missing = serializers.CharField(help_text="Why it cannot run here; empty where it can.")


class EngineNameSerializer(Shape):
    """What attacked or recognised in a run."""

    name = key = title = description = licence = source = serializers.CharField()  # type: ignore[assignment]
    training = serializers.CharField(help_text="The speech that it was trained on: original or anonymised.")


class RunSerializer(Shape):
    """A run of an attacker or recogniser and its jobs, first to last."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    engine = EngineNameSerializer()
    state = serializers.ChoiceField(
        JobState.choices, help_text="Of its last job; “cancelled” also if an earlier failed."
    )
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    jobs = JobSerializer(many=True)


class StartRecognitionSerializer(Shape):
    """Which recogniser, on which data sets."""

    engine = serializers.CharField(required=False, max_length=80, help_text="Its name; the default if missing.")
    data_sets = serializers.ListField(
        child=serializers.CharField(max_length=80),
        required=False,
        max_length=MOST_SETS,
        allow_empty=False,
        help_text="Names of data sets; all possible ones if missing.",
    )


class StartAttackSerializer(StartRecognitionSerializer):
    """Which attacker, on which trial sets."""

    trained = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31,
        help_text="A training run of this system, in place of an engine; semi-informed if on anonymised speech.",
    )
    seed = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1, help_text="A seed of that run.")
    preset = serializers.CharField(required=False, max_length=40, help_text="How vectors are compared, such as 2024.")


class ReliabilitySerializer(Shape):
    """Whether a trained attacker is strong enough on a data set for its EER to show privacy."""

    data_set = serializers.CharField()
    word = serializers.ChoiceField([RELIABLE, NOT_RELIABLE])
    reasons = serializers.ListField(child=serializers.CharField(), help_text="Why it is not reliable.")
    unknown = serializers.ListField(child=serializers.CharField(), help_text="What was not measured.")


class AttackNumbersSerializer(Shape):
    """What an attacker found: its newest finished run."""

    run = serializers.IntegerField()
    engine = EngineNameSerializer()
    finished_at = serializers.DateTimeField(allow_null=True)
    numbers = NumberSerializer(many=True)
    reliability = ReliabilitySerializer(many=True, help_text="Of a trained attacker; else empty.")
    missing = MissingSerializer(many=True, required=False, help_text="Only for its team and organizers.")


class WordRowSerializer(Shape):
    """Word errors of a data set; rates and limits in per cent."""

    data_set = gender = speech = serializers.CharField()
    utterances = speakers = words = insertions = deletions = substitutions = serializers.IntegerField()
    error_rate = serializers.FloatField()
    low = high = serializers.FloatField(allow_null=True)
    honest = serializers.FloatField(allow_null=True, help_text="Missing hypotheses count as deleted.")
    clipped = serializers.FloatField(allow_null=True, help_text="No utterance has more errors than words.")


class WordDifferenceSerializer(Shape):
    """Word error rate of anonymised less that of original speech, in points, by paired resamples of speakers."""

    data_set = gender = serializers.CharField()
    value = low = high = serializers.FloatField()


class RecognitionNumbersSerializer(Shape):
    """What a recogniser understood: its newest finished run."""

    run = serializers.IntegerField()
    engine = EngineNameSerializer()
    finished_at = serializers.DateTimeField(allow_null=True)
    rule = serializers.CharField(help_text="How texts were made comparable.")
    rows = WordRowSerializer(many=True)
    differences = WordDifferenceSerializer(many=True)
    averages = NumberSerializer(many=True)
    notes = serializers.ListField(child=serializers.CharField())


class PhoneNumbersSerializer(Shape):
    """What retrained recognisers understood: the newest finished run.

    Of each number ``training`` and ``speech`` say what its recogniser was trained on and what it heard.
    """

    run = serializers.IntegerField()
    engine = EngineNameSerializer()
    finished_at = serializers.DateTimeField(allow_null=True)
    numbers = NumberSerializer(many=True)
    regained = serializers.DictField(
        child=serializers.FloatField(allow_null=True),
        help_text="By data set the share of the damage that training again takes back, in per cent.",
    )


@operation(EngineSerializer(many=True), who=Who.EVERYBODY)
def list_engines(api: ApiView) -> Response:
    """Every attacker and recogniser of the portal, and why it cannot run here, if it cannot."""
    known = [(one, engine) for one in ENGINE_KINDS for engine in one.engines.engines().values()]
    lacks = lacking({engine.name: one.engines.explain_missing(engine) for one, engine in known})
    found = [
        {name: getattr(engine, name) for name in ("name", "key", "title", "description", "licence", "source")}
        | {
            "kind": one.kind.value,
            "missing": lacks[engine.name],
            "is_default": engine.name == one.engines.DEFAULT,
        }
        for one, engine in known
    ]
    return api.paginated(found, EngineSerializer)


def _list_runs(api: ApiView, pk: int, kind: RunKind) -> Response:
    found = list_runs(submission_for(api.user, pk), kind.kind)
    chains = list_job_chains(found)
    return api.paginated([_run(run, chains) for run in found], RunSerializer)


def _shown(run: EvaluationRun, status: int = 200) -> Response:
    return Response(RunSerializer(_run(run, list_job_chains([run]))).data, status=status)


@operation(RunSerializer(many=True), who=Who.TEAM)
def list_attacks(api: ApiView, pk: int) -> Response:
    """The portal's own attacks on a submission, the newest first, with how far each is."""
    return _list_runs(api, pk, ATTACK)


@operation(RunSerializer, takes=StartAttackSerializer, status=201, example={"engine": "wespeaker-resnet34"})
def start_attack(api: ApiView, pk: int) -> Response:
    """Attack a submission of an edition that you organise: speaker vectors, scores, and all that follows."""
    submission = managed_submission_for(api.user, pk)
    wishes = api.body(StartAttackSerializer)
    options = {"preset": wishes.pop("preset", "")}
    trained = wishes.pop("trained", None)
    training = _training(submission, trained) if trained else None
    run = attacks.start_attack(submission=submission, trained=training, options=options, by=api.user, **wishes)
    return _shown(run, 201)


@operation(RunSerializer(many=True), who=Who.TEAM)
def list_recognitions(api: ApiView, pk: int) -> Response:
    """The portal's own recognition of a submission, the newest first, with how far each is."""
    return _list_runs(api, pk, RECOGNITION)


@operation(RunSerializer, takes=StartRecognitionSerializer, status=201, example={"engine": "moonshine-tiny"})
def start_recognition(api: ApiView, pk: int) -> Response:
    """Recognise the speech of a submission of an edition that you organise, and the original speech beside it."""
    submission = managed_submission_for(api.user, pk)
    wishes = api.body(StartRecognitionSerializer)
    return _shown(recognitions.start_recognition(submission=submission, by=api.user, **wishes), 201)


@operation(RunSerializer(many=True), who=Who.TEAM)
def list_retrainings(api: ApiView, pk: int) -> Response:
    """Trainings of phone recognisers on a submission, the newest first, with how far each is."""
    return _list_runs(api, pk, RETRAINED)


@operation(RunSerializer, status=201)
def start_retraining(api: ApiView, pk: int) -> Response:
    """Train a phone recogniser on the training speech of a submission, and one on its originals; English only."""
    return _shown(retrained.start_retraining(submission=managed_submission_for(api.user, pk), by=api.user), 201)


def _changed(api: ApiView, pk: int, run: int, service: Callable[..., None]) -> Response:
    """Do what the organizer does with a run; the answer is the run as it then is."""
    found = EvaluationRun.objects.filter(submission=managed_submission_for(api.user, pk))
    chosen = get_object_or_404(found, kind__in=[one.kind for one in CHAINED_KINDS], pk=run)
    service(chosen, by=api.user)
    chosen.refresh_from_db()
    return _shown(chosen)


@operation(RunSerializer)
def cancel_run(api: ApiView, pk: int, run: int) -> Response:
    """End an attack, recognition or retraining with all its jobs; what was finished is kept."""
    return _changed(api, pk, run, runs.cancel_run)


@operation(RunSerializer)
def continue_run(api: ApiView, pk: int, run: int) -> Response:
    """Continue an attack, recognition or retraining that failed or was cancelled."""
    return _changed(api, pk, run, runs.continue_run)


@operation(AttackNumbersSerializer(many=True), asks=VersionQuerySerializer, who=Who.EVERYBODY)
def show_attacks(api: ApiView, name: str) -> Response:
    """The numbers of each portal attack on a system, identified like those of its submitted scores."""
    view = system_view(api, name)
    attacks_found = find_attacks(view.submission, view.as_of)
    verdicts = judge_attacks(attacks_found, estimator_for(view))
    found = [
        _of_run(one)
        | {"numbers": _numbers(one.numbers.values())}
        | {"reliability": reliability_as_list(verdicts.get(one.run.pk, {}))}
        | ({"missing": [asdict(each) for each in one.missing]} if view.is_own else {})
        for one in attacks_found
    ]
    return api.paginated(found, AttackNumbersSerializer)


@operation(RecognitionNumbersSerializer(many=True), asks=VersionQuerySerializer, who=Who.EVERYBODY)
def show_recognitions(api: ApiView, name: str) -> Response:
    """The word errors of each portal recogniser on a system's speech and on the originals."""
    view = system_view(api, name)
    found = [
        _of_run(one)
        | {"rule": one.rule, "rows": one.rows, "differences": one.differences, "notes": one.notes}
        | {"averages": _numbers(one.averages)}
        for one in find_recognitions(view.submission, view.as_of)
    ]
    return api.paginated(found, RecognitionNumbersSerializer)


@operation(PhoneNumbersSerializer(many=True), asks=VersionQuerySerializer, who=Who.EVERYBODY)
def show_retrained(api: ApiView, name: str) -> Response:
    """The phone errors of recognisers that the portal trained on originals and on a system's speech."""
    view = system_view(api, name)
    found = [
        _of_run(one) | {"numbers": _numbers(one.numbers.values()), "regained": one.regained}
        for one in list_retrained(view.submission, view.as_of)
    ]
    return api.paginated(found, PhoneNumbersSerializer)


def _training(submission: Submission, pk: int) -> EvaluationRun:
    found = EvaluationRun.objects.filter(kind=TRAINING.kind, submission__system=submission.system_id, pk=pk).first()
    if found is None:
        raise NotPossible(f"The system has no training run {pk}.")
    return found


def _run(run: EvaluationRun, chains: dict[int, list[Any]]) -> dict[str, Any]:
    job = run.job
    return {
        "id": run.pk,
        "kind": run.kind,
        "engine": describe_engine(run),
        "state": job.state if job else "waiting",
        "created_at": run.created_at,
        "finished_at": job.finished_at if job else None,
        "jobs": chains.get(run.pk, []),
    }


def _of_run(found: Any) -> dict[str, Any]:
    return {"run": found.run.pk, "engine": found.engine, "finished_at": found.finished_at}


def _numbers(found: Iterable[Number]) -> list[dict[str, Any]]:
    return [number_as_dict(one, with_reported=False) for one in found]
