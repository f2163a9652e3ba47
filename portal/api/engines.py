"""The portal's attacks and recognisers: what there is, runs on a submission, and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.permissions import IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.app.attacks import services as attacks
from evaluation.app.attacks.selectors import judge_attacks, list_attacks
from evaluation.app.models import EvaluationRun
from evaluation.app.recognition import services as recognitions
from evaluation.app.recognition.selectors import list_recognitions
from evaluation.app.recognizer_training import services as retrainings
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
from portal.api.access import HasScope
from portal.api.base import ApiViewSet, StrictSerializer
from portal.api.submissions import JobSerializer
from portal.api.systems import MissingSerializer, NumberSerializer, OfSystemViewSet
from portal.jobs.models import JobState
from portal.jobs.services import NotPossible
from portal.jobs.workers import lacking
from portal.submissions.selectors import managed_submission_for, submission_for
from portal.systems.attacks.pages import estimator_for
from portal.systems.exports import number_as_dict, reliability_as_list

MOST_SETS = 200


class EngineTextSerializer(serializers.Serializer[Any]):
    """What attacks or recognises; `key`: name and version, under which its work is kept."""

    name = serializers.CharField()
    key = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    licence = serializers.CharField(help_text="Licence of its weights.")
    source = serializers.CharField()  # type: ignore[assignment]


class EngineSerializer(EngineTextSerializer):
    """An attacker or recogniser of this portal; `missing`: why it cannot run here, empty where it can."""

    kind = serializers.ChoiceField([EvaluationRun.Kind.ATTACK.value, EvaluationRun.Kind.RECOGNITION.value])
    is_default = serializers.BooleanField()
    missing = serializers.CharField()


class EngineOfRunSerializer(EngineTextSerializer):
    """What attacked or recognised in a run."""

    training = serializers.CharField(help_text="The speech that it was trained on: original or anonymised.")


class RunSerializer(serializers.Serializer[Any]):
    """A run of an attacker or recogniser and its jobs, first to last; its state is that of the last."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    engine = EngineOfRunSerializer()
    state = serializers.ChoiceField(JobState.choices)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    jobs = JobSerializer(many=True)


class StartRecognitionSerializer(StrictSerializer):
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


class ReliabilitySerializer(serializers.Serializer[Any]):
    """Whether a trained attacker is strong enough on a data set for its EER to show privacy."""

    data_set = serializers.CharField()
    word = serializers.ChoiceField([RELIABLE, NOT_RELIABLE])
    reasons = serializers.ListField(child=serializers.CharField(), help_text="Why it is not reliable.")
    unknown = serializers.ListField(child=serializers.CharField(), help_text="What was not measured.")


class RunNumbersSerializer(serializers.Serializer[Any]):
    """The newest finished run of an engine."""

    run = serializers.IntegerField()
    engine = EngineOfRunSerializer()
    finished_at = serializers.DateTimeField(allow_null=True)


class AttackNumbersSerializer(RunNumbersSerializer):
    """What an attacker found: its newest finished run."""

    numbers = NumberSerializer(many=True)
    reliability = ReliabilitySerializer(many=True, help_text="Of a trained attacker; else empty.")
    missing = MissingSerializer(many=True, required=False, help_text="Only for its team and organizers.")


class WordRowSerializer(serializers.Serializer[Any]):
    """Word errors of a data set; rates and limits in per cent."""

    data_set = serializers.CharField()
    gender = serializers.CharField()
    speech = serializers.CharField()
    utterances = serializers.IntegerField()
    speakers = serializers.IntegerField()
    words = serializers.IntegerField()
    insertions = serializers.IntegerField()
    deletions = serializers.IntegerField()
    substitutions = serializers.IntegerField()
    error_rate = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    honest = serializers.FloatField(allow_null=True, help_text="Missing hypotheses count as deleted.")
    clipped = serializers.FloatField(allow_null=True, help_text="No utterance has more errors than words.")


class WordDifferenceSerializer(serializers.Serializer[Any]):
    """Word error rate of anonymised less that of original speech, in points, by paired resamples of speakers."""

    data_set = serializers.CharField()
    gender = serializers.CharField()
    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()


class RecognitionNumbersSerializer(RunNumbersSerializer):
    """What a recogniser understood: its newest finished run."""

    rule = serializers.CharField(help_text="How texts were made comparable.")
    rows = WordRowSerializer(many=True)
    differences = WordDifferenceSerializer(many=True)
    averages = NumberSerializer(many=True)
    notes = serializers.ListField(child=serializers.CharField())


class PhoneNumbersSerializer(RunNumbersSerializer):
    """What retrained recognisers understood: the newest finished run.

    Of each number ``training`` and ``speech`` say what its recogniser was trained on and what it heard.
    """

    numbers = NumberSerializer(many=True)
    regained = serializers.DictField(
        child=serializers.FloatField(allow_null=True),
        help_text="By data set the share of the damage that training again takes back, in per cent.",
    )


class EngineViewSet(ListModelMixin, ApiViewSet):
    """Every attacker and recogniser of the portal, and why it cannot run here, if it cannot."""

    permission_classes = [IsAuthenticatedOrReadOnly, HasScope]
    serializer_class = EngineSerializer

    def get_queryset(self) -> Any:
        known = [(kind, engine) for kind in ENGINE_KINDS for engine in kind.engines.engines().values()]
        lacks = lacking({engine.name: kind.engines.explain_missing(engine) for kind, engine in known})
        return [
            {name: getattr(engine, name) for name in ("name", "key", "title", "description", "licence", "source")}
            | {
                "kind": kind.kind.value,
                "missing": lacks[engine.name],
                "is_default": engine.name == kind.engines.DEFAULT,
            }
            for kind, engine in known
        ]


class RunViewSet(ListModelMixin, ApiViewSet):
    """Attacks, recognitions or retrainings of a submission, the newest first, with how far each is; for its team."""

    serializer_class = RunSerializer
    kind: RunKind

    def get_queryset(self) -> Any:
        return list_runs(submission_for(self.request.user, self.kwargs["pk"]), self.kind.kind)

    def get_serializer(self, chosen: Any, **options: Any) -> Any:
        """Return a serializer of runs with their jobs, which are read at once."""
        found = chosen if options.get("many") else [chosen]
        chains = list_job_chains(found)
        rows = [_describe_run(run, chains.get(run.pk, [])) for run in found]
        return super().get_serializer(rows if options.get("many") else rows[0], **options)

    def answer(self, run: EvaluationRun, status: int = 200) -> Response:
        return Response(self.get_serializer(run).data, status=status)

    def cancel(self, request: Request, pk: int, run: int) -> Response:
        """End an attack, recognition or retraining with all its jobs, by the organizers; what was finished is kept."""
        return self._change(pk, run, runs.cancel_run)

    def resume(self, request: Request, pk: int, run: int) -> Response:
        """Continue an attack, recognition or retraining that failed or was cancelled, by the organizers."""
        return self._change(pk, run, runs.continue_run)

    def _change(self, pk: int, run: int, service: Callable[..., None]) -> Response:
        known = EvaluationRun.objects.filter(kind__in=[kind.kind for kind in CHAINED_KINDS])
        chosen = get_object_or_404(known, submission=managed_submission_for(self.request.user, pk), pk=run)
        service(chosen, by=self.request.user)
        chosen.refresh_from_db()
        return self.answer(chosen)


class AttackViewSet(RunViewSet):
    """The portal's own attacks on a submission, the newest first, with how far each is; for its team and organizers."""

    kind = ATTACK
    bodies = {"create": StartAttackSerializer}

    def create(self, request: Request, pk: int) -> Response:
        """Attack a submission of an edition that you organise: speaker vectors, scores, and all that follows."""
        submission = managed_submission_for(request.user, pk)
        body = self.read_body()
        options, number = {"preset": body.pop("preset", "")}, body.pop("trained", None)
        trainings = EvaluationRun.objects.filter(kind=TRAINING.kind, submission__system=submission.system_id)
        training = trainings.filter(pk=number).first()
        if number and training is None:
            raise NotPossible(f"The system has no training run {number}.")
        run = attacks.start_attack(submission=submission, trained=training, options=options, by=request.user, **body)
        return self.answer(run, 201)


class RecognitionViewSet(RunViewSet):
    """The portal's own recognition of a submission, the newest first, with how far each is; for its team."""

    kind = RECOGNITION
    bodies = {"create": StartRecognitionSerializer}

    def create(self, request: Request, pk: int) -> Response:
        """Recognise the speech of a submission of an edition that you organise, and the original speech beside it."""
        submission = managed_submission_for(request.user, pk)
        run = recognitions.start_recognition(submission=submission, by=request.user, **self.read_body())
        return self.answer(run, 201)


class RetrainingViewSet(RunViewSet):
    """Trainings of phone recognisers on a submission, the newest first, with how far each is; for its team."""

    kind = RETRAINED

    def create(self, request: Request, pk: int) -> Response:
        """Train a phone recogniser on the training speech of a submission, and one on its originals; English only."""
        submission = managed_submission_for(request.user, pk)
        return self.answer(retrainings.start_retraining(submission=submission, by=request.user), 201)


class AttackNumbersViewSet(OfSystemViewSet):
    """The numbers of each portal attack on a system, identified like those of its submitted scores."""

    serializer_class = AttackNumbersSerializer

    def get_queryset(self) -> Any:
        view = self.read_view()
        chosen = list_attacks(view.submission, view.as_of)
        verdicts = judge_attacks(chosen, estimator_for(view))
        return [
            _of_run(attack)
            | {"numbers": _numbers(attack.numbers.values())}
            | {"reliability": reliability_as_list(verdicts.get(attack.run.pk, {}))}
            | ({"missing": [asdict(each) for each in attack.missing]} if view.is_own else {})
            for attack in chosen
        ]


class RecognitionNumbersViewSet(OfSystemViewSet):
    """The word errors of each portal recogniser on a system's speech and on the originals."""

    serializer_class = RecognitionNumbersSerializer

    def get_queryset(self) -> Any:
        view = self.read_view()
        return [
            _of_run(values)
            | {"rule": values.rule, "rows": values.rows, "differences": values.differences, "notes": values.notes}
            | {"averages": _numbers(values.averages)}
            for values in list_recognitions(view.submission, view.as_of)
        ]


class PhoneNumbersViewSet(OfSystemViewSet):
    """The phone errors of recognisers that the portal trained on originals and on a system's speech."""

    serializer_class = PhoneNumbersSerializer

    def get_queryset(self) -> Any:
        view = self.read_view()
        return [
            _of_run(values) | {"numbers": _numbers(values.numbers.values()), "regained": values.regained}
            for values in list_retrained(view.submission, view.as_of)
        ]


def _describe_run(run: EvaluationRun, jobs: list[Any]) -> dict[str, Any]:
    return {
        "id": run.pk,
        "kind": run.kind,
        "engine": describe_engine(run),
        "state": run.job.state if run.job else "waiting",
        "created_at": run.created_at,
        "finished_at": run.job.finished_at if run.job else None,
        "jobs": jobs,
    }


def _of_run(values: Any) -> dict[str, Any]:
    return {"run": values.run.pk, "engine": values.engine, "finished_at": values.finished_at}


def _numbers(numbers: Iterable[Number]) -> list[dict[str, Any]]:
    return [number_as_dict(number, with_reported=False) for number in numbers]
