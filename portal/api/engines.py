"""The portal's attacks and recognisers: what there is, runs on a submission, and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.permissions import IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.app.attacks import services as attacks
from evaluation.app.attacks.selectors import list_attacks
from evaluation.app.models import EvaluationRun
from evaluation.app.objective_results.selectors import judge_attacks
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
from evaluation.objective_results.values import Number
from portal.api.access import HasScope
from portal.api.base import ApiViewSet, StrictSerializer, shape
from portal.api.submissions import JobSerializer
from portal.api.systems import OfSystemViewSet
from portal.jobs.models import JobState
from portal.jobs.services import NotPossible
from portal.jobs.workers import lacking
from portal.submissions.selectors import managed_submission_for, submission_for
from portal.systems.attacks.pages import estimator_for
from portal.systems.exports import number_as_dict, reliability_as_list

MOST_SETS = 200


class RunSerializer(serializers.Serializer[Any]):
    """A run of an attacker or recogniser and its jobs, first to last; its state is that of the last."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    engine = serializers.SerializerMethodField()
    state = serializers.ChoiceField(JobState.choices)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    jobs = JobSerializer(many=True)

    @extend_schema_field(shape("EngineOfRun"))
    def get_engine(self, run: dict[str, Any]) -> Any:
        return asdict(run["engine"])


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


class EngineViewSet(ApiViewSet):
    """Every attacker and recogniser of the portal, and why it cannot run here, if it cannot."""

    permission_classes = [IsAuthenticatedOrReadOnly, HasScope]
    answers = {"list": shape("Engine")}

    def list(self, request: Request) -> Response:
        known = [(kind, engine) for kind in ENGINE_KINDS for engine in kind.engines.engines().values()]
        lacks = lacking({engine.name: kind.engines.explain_missing(engine) for kind, engine in known})
        rows = [
            {name: getattr(engine, name) for name in ("name", "key", "title", "description", "licence", "source")}
            | {
                "kind": kind.kind.value,
                "missing": lacks[engine.name],
                "is_default": engine.name == kind.engines.DEFAULT,
            }
            for kind, engine in known
        ]
        return self.answer_page(rows)


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

    answers = {"list": shape("AttackNumbers")}

    def list(self, request: Request, name: str) -> Response:
        view = self.read_view()
        chosen = list_attacks(view.submission, view.as_of)
        verdicts = judge_attacks({one.run: one.numbers for one in chosen}, estimator_for(view))
        rows = [
            _of_run(attack)
            | {"numbers": _numbers(attack.numbers.values())}
            | {"reliability": reliability_as_list(verdicts.get(attack.run.pk, {}))}
            | ({"missing": [asdict(each) for each in attack.missing]} if view.is_own else {})
            for attack in chosen
        ]
        return self.answer_page(rows)


class RecognitionNumbersViewSet(OfSystemViewSet):
    """The word errors of each portal recogniser on a system's speech and on the originals."""

    answers = {"list": shape("RecognitionNumbers")}

    def list(self, request: Request, name: str) -> Response:
        view = self.read_view()
        rows = [
            _of_run(values)
            | {"rule": values.rule, "rows": [asdict(row) for row in values.rows], "notes": values.notes}
            | {"differences": [asdict(difference) for difference in values.differences]}
            | {"averages": _numbers(values.averages)}
            for values in list_recognitions(view.submission, view.as_of)
        ]
        return self.answer_page(rows)


class PhoneNumbersViewSet(OfSystemViewSet):
    """The phone errors of recognisers that the portal trained on originals and on a system's speech."""

    answers = {"list": shape("PhoneNumbers")}

    def list(self, request: Request, name: str) -> Response:
        view = self.read_view()
        rows = [
            _of_run(values) | {"numbers": _numbers(values.numbers.values()), "regained": values.regained}
            for values in list_retrained(view.submission, view.as_of)
        ]
        return self.answer_page(rows)


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
    return {"run": values.run.pk, "engine": asdict(values.engine), "finished_at": values.finished_at}


def _numbers(numbers: Iterable[Number]) -> list[dict[str, Any]]:
    unreported = {"reported": None, "agrees": None}  # as where a team reports none
    return [number_as_dict(number, with_reported=False) | unreported for number in numbers]
