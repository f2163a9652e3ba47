"""The portal's own attackers and recognisers: what there is, runs on a submission, and their numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.attackers import registry as attackers
from evaluation.models import EvaluationRun
from evaluation.objective.values import Number
from evaluation.recognizers import registry as recognizers
from evaluation.selectors_attack import attacks_of, engine_text, runs_of
from evaluation.selectors_recognition import recognitions_of
from evaluation.services_attack import start_attack
from evaluation.services_recognition import start_recognition
from evaluation.services_speech import cancel_run, chains_of, continue_run
from portal.api.access import Scope
from portal.api.base import ApiView
from portal.api.serializers.engines import (
    AttackNumbersSerializer,
    EngineSerializer,
    RecognitionNumbersSerializer,
    RunSerializer,
    StartAttackSerializer,
    StartRecognitionSerializer,
)
from portal.api.serializers.systems import VersionQuerySerializer
from portal.jobs.services import NotPossible
from portal.results.objective_exports import number_as_dict
from portal.results.shown import View, view_of
from portal.submissions.models import Submission
from portal.submissions.selectors import managed_submission_for, submission_for, system_for
from portal.submissions.visibility import Part

ATTACK, RECOGNITION = EvaluationRun.Kind.ATTACK, EvaluationRun.Kind.RECOGNITION


class EngineList(ApiView):
    is_open = True

    @extend_schema(responses=EngineSerializer(many=True), operation_id="list_engines")
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """Every attacker and recogniser that the portal knows, and what keeps it from running here."""
        found = []
        for kind, registry in ((ATTACK, attackers), (RECOGNITION, recognizers)):
            for engine in registry.engines().values():
                known = {name: getattr(engine, name) for name in ("name", "key", "title", "description", "licence")}
                here = {"missing": registry.missing_of(engine), "is_default": engine.name == registry.DEFAULT}
                found.append({"kind": kind.value, "source": engine.source} | known | here)
        return self.paginated(found, EngineSerializer)


class _Runs(ApiView):
    """Runs of one kind on a submission: its team and the organizers read them, organizers start them."""

    scopes = {"POST": (Scope.ORGANIZE,)}
    kind = ATTACK

    def listed(self, submission: Submission) -> Response:
        runs = runs_of(submission, self.kind)
        chains = chains_of(runs)
        return self.paginated([_run(run, chains) for run in runs], RunSerializer)

    def started(self, run: EvaluationRun) -> Response:
        return Response(RunSerializer(_run(run, chains_of([run]))).data, status=status.HTTP_201_CREATED)


class Attacks(_Runs):
    @extend_schema(responses=RunSerializer(many=True), operation_id="list_attacks")
    def get(self, request: Request, pk: int) -> Response:
        """The portal's own attacks on a submission, the newest first, with how far each is."""
        return self.listed(submission_for(request.user, pk))

    @extend_schema(
        request=StartAttackSerializer, responses={201: RunSerializer}, operation_id="start_attack"
    )  # fmt: skip
    def post(self, request: Request, pk: int) -> Response:
        """Attack a submission of an edition that you organise: speaker vectors, scores, and all that follows."""
        submission = managed_submission_for(request.user, pk)
        wishes = self.body(StartAttackSerializer)
        preset = wishes.pop("preset", "")
        trained = wishes.pop("trained", None)
        run = start_attack(
            submission=submission, trained=_training(submission, trained) if trained else None,
            options={"preset": preset}, by=request.user, **wishes,
        )  # fmt: skip
        return self.started(run)


class Recognitions(_Runs):
    kind = RECOGNITION

    @extend_schema(responses=RunSerializer(many=True), operation_id="list_recognitions")
    def get(self, request: Request, pk: int) -> Response:
        """The portal's own recognition of a submission, the newest first, with how far each is."""
        return self.listed(submission_for(request.user, pk))

    @extend_schema(
        request=StartRecognitionSerializer, responses={201: RunSerializer}, operation_id="start_recognition"
    )  # fmt: skip
    def post(self, request: Request, pk: int) -> Response:
        """Recognise the speech of a submission of an edition that you organise, and the original speech beside it."""
        submission = managed_submission_for(request.user, pk)
        wishes = self.body(StartRecognitionSerializer)
        return self.started(start_recognition(submission=submission, by=request.user, **wishes))


class _RunDeed(ApiView):
    """What the organizer does with a run; the answer is the run as it then is."""

    scopes = {"POST": (Scope.ORGANIZE,)}

    def do(self, pk: int, run: int, service: Callable[..., None]) -> Response:
        submission = managed_submission_for(self.request.user, pk)
        chosen = EvaluationRun.objects.filter(submission=submission, kind__in=(ATTACK, RECOGNITION), pk=run).first()
        if chosen is None:
            raise Http404
        service(chosen, by=self.request.user)
        chosen.refresh_from_db()
        return Response(RunSerializer(_run(chosen, chains_of([chosen]))).data)


class CancelRun(_RunDeed):
    @extend_schema(request=None, responses=RunSerializer, operation_id="cancel_run")
    def post(self, request: Request, pk: int, run: int) -> Response:  # noqa: ARG002
        """End an attack or recognition with all its jobs; what was finished is kept."""
        return self.do(pk, run, cancel_run)


class ContinueRun(_RunDeed):
    @extend_schema(request=None, responses=RunSerializer, operation_id="continue_run")
    def post(self, request: Request, pk: int, run: int) -> Response:  # noqa: ARG002
        """Let an attack or recognition that failed or was cancelled go on where it stopped."""
        return self.do(pk, run, continue_run)


class SystemAttacks(ApiView):
    is_open = True

    @extend_schema(
        parameters=[VersionQuerySerializer], responses=AttackNumbersSerializer(many=True),
        operation_id="show_attacks",
    )  # fmt: skip
    def get(self, request: Request, name: str) -> Response:
        """The numbers of each own attacker of a system, by the same identities as those of its own scores."""
        self.query(VersionQuerySerializer)
        view = _view(request, name)
        found = [
            _of_run(one.run, one.engine, one.finished_at)
            | {"numbers": _numbers(one.numbers.values())}
            | ({"missing": [asdict(each) for each in one.missing]} if view.is_own else {})
            for one in attacks_of(view.submission, _as_of(view))
        ]
        return self.paginated(found, AttackNumbersSerializer)


class SystemRecognitions(ApiView):
    is_open = True

    @extend_schema(
        parameters=[VersionQuerySerializer], responses=RecognitionNumbersSerializer(many=True),
        operation_id="show_recognitions",
    )  # fmt: skip
    def get(self, request: Request, name: str) -> Response:
        """The word errors of each own recogniser of a system, of its speech and of the originals."""
        self.query(VersionQuerySerializer)
        view = _view(request, name)
        found = [
            _of_run(one.run, one.engine, one.finished_at)
            | {
                "rule": one.rule,
                "rows": [asdict(row) for row in one.rows],
                "differences": [asdict(row) for row in one.differences],
                "averages": _numbers(one.averages),
                "notes": one.notes,
            }
            for one in recognitions_of(view.submission, _as_of(view))
        ]
        return self.paginated(found, RecognitionNumbersSerializer)


def _view(request: Request, name: str) -> View:
    """A system whose numbers the asker may see, and the version that they meet."""
    view = view_of(request, system_for(request.user, name, Part.NUMBERS))
    if str(view.submission.version) != request.query_params.get("version", str(view.submission.version)):
        raise Http404
    return view


def _as_of(view: View) -> datetime | None:
    """A public page of a frozen board shows what was there at its time, as with objective numbers."""
    edition = view.system.edition
    return edition.frozen_at if edition and not view.is_own else None


def _training(submission: Submission, pk: int) -> EvaluationRun:
    found = EvaluationRun.objects.filter(
        kind=EvaluationRun.Kind.TRAINING, submission__system=submission.system_id, pk=pk
    ).first()
    if found is None:
        raise NotPossible(f"The system has no training run {pk}.")
    return found


def _run(run: EvaluationRun, chains: dict[int, list[Any]]) -> dict[str, Any]:
    job = run.job
    return {
        "id": run.pk,
        "kind": run.kind,
        "engine": asdict(engine_text(run)),
        "state": job.state if job else "waiting",
        "created_at": run.created_at,
        "finished_at": job.finished_at if job else None,
        "jobs": chains.get(run.pk, []),
    }


def _of_run(run: EvaluationRun, engine: Any, finished_at: datetime | None) -> dict[str, Any]:
    return {"run": run.pk, "engine": asdict(engine), "finished_at": finished_at}


def _numbers(numbers: Any) -> list[dict[str, Any]]:
    found: list[Number] = list(numbers)
    return [number_as_dict(one, with_claims=False) for one in found]
