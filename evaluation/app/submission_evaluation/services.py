"""Starts everything that the evaluation of an accepted submission consists of, as its recipe asks.

Where the portal evaluates, the jobs of one submission follow each other: measures of its audio, each attacker on all
trial sets, the recogniser, the training of a semi-informed attacker and its attack, and at last the objective numbers
that rest on them. What is missing on a machine is found by the job that needs it: it fails with a sentence, everything
behind it waits, and goes on when it is run again. No number is computed of a part of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from evaluation.app.attacker_training.services import ANY_DEVICE
from evaluation.app.attacks.stored_attackers import attack_parameters, list_scorings, name_attacker, speech_of_training
from evaluation.app.models import EvaluationRun
from evaluation.app.objective_results.selectors import ORIGINALS
from evaluation.app.objective_results.services import edition_of, start_missing_measures, start_objective
from evaluation.app.runs.context import EvaluationContext, SetState
from evaluation.app.runs.kinds import ATTACK, RECOGNITION, TRAINING, EngineRunKind, describe_engine
from evaluation.app.runs.services import start_chain, start_run
from evaluation.attackers.training.recipe import SEEDS, TRAINING_ENGINE, find_preset
from evaluation.formats.results import Speech
from portal.challenges.selectors import recipe_hash
from portal.jobs.models import Job, JobState
from portal.jobs.services import create_job, run_again
from portal.submissions.models import Submission

SEED = SEEDS[0]


@transaction.atomic
def start_evaluation(*, submission: Submission, by: Any = None) -> EvaluationRun:
    """Return the jobs that evaluate a submission, in their order; the run of its objective numbers."""
    evaluation = edition_of(submission).recipe.evaluation
    if not evaluation.by_portal:
        return start_objective(submission=submission, by=by)
    chain = _Chain(submission, by)
    attacks = [chain.attack(name) for name in evaluation.attackers]
    parts = attacks[:1]
    if evaluation.recognizer:
        parts.append(chain.recognize(evaluation.recognizer))
    if evaluation.training:
        parts.append(chain.train_and_attack(evaluation.training))
    return start_objective(submission=submission, parts=[one for one in parts if one], after=chain.last, by=by)


def start_originals(*, submission: Submission, by: Any = None) -> list[Job]:
    """Evaluate the original speech of the edition, once for a recipe: a job for each engine, because no worker has to
    have several. Of what is done, under way or not the portal's there is none.

    Args:
        submission: a baseline of the edition, whatever has been made of it.
    """
    edition = edition_of(submission)
    evaluation = edition.recipe.evaluation
    if not evaluation.by_portal:
        return []
    wanted = [(ATTACK, evaluation.attackers[0])]
    if any(one.metric == "wer" for one in EvaluationContext(submission).track.averages):
        wanted.append((RECOGNITION, evaluation.recognizer))
    parameters = {"submission": submission.pk, "recipe": recipe_hash(edition)}
    jobs = Job.objects.filter(kind=ORIGINALS, edition=edition.name, parameters__recipe=parameters["recipe"])
    going = jobs.exclude(state__in=[JobState.FAILED, JobState.CANCELLED]).values_list("parameters", flat=True)
    done = {part for one in going for part in list_parts(one)}
    created = []
    for kind, engine in wanted:
        if kind.job not in done:
            by_engine = f"{kind.title} {describe_engine(kind.make_run(submission, engine=engine)).title}"
            title, named = f"{by_engine} · original speech of {edition}"[:200], parameters | {"part": kind.job}
            created.append(
                create_job(kind=ORIGINALS, title=title, parameters=named, engine=engine, by=by, edition=edition.name)
            )
    return created


def list_parts(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a job evaluates the originals by: attack, recognition, or both where its version made one job."""
    return (parameters["part"],) if "part" in parameters else (ATTACK.job, RECOGNITION.job)


class _Chain:
    """The jobs of one submission, each after the other.

    Attributes:
        last: the job that the next one follows.
    """

    def __init__(self, submission: Submission, by: Any) -> None:
        self.submission, self.by = submission, by
        self.context = EvaluationContext(submission)
        self.last: Job | None = start_missing_measures(submission=submission, by=by)

    def attack(self, engine: str) -> EvaluationRun | None:
        """Return an attack on all trial sets that can be attacked; None where there is none."""
        run = ATTACK.make_run(self.submission, recipe="attack", engine=engine)
        run.parameters = {"engine_key": key_of_engine(ATTACK, engine)}
        return self._attack(run, self.context.trial_sets())

    def recognize(self, engine: str) -> EvaluationRun | None:
        """Return recognition of what the recognition sets of the recipe consist of; None where there is nothing."""
        wanted = {part.name for one in self.context.recipe.sets("recognition") for part in self.context.find_parts(one)}
        names = [one.name for one in self.context.spoken_sets() if one.name in wanted and not one.problem]
        run = RECOGNITION.make_run(self.submission, recipe="recognition", engine=engine)
        run.parameters = {"engine_key": key_of_engine(RECOGNITION, engine), "data_sets": names}
        run.parameters["rule"] = self.context.text_rule.name
        return self._add(RECOGNITION, run, names)

    def train_and_attack(self, preset: str) -> EvaluationRun | None:
        """Training of a semi-informed attacker on the training sets of the recipe, and its attack.

        One that compares by PLDA attacks by cosine as well, which no rank rests on.
        """
        trained = self._train(preset)
        attacks = []
        for scoring in list_scorings(trained):
            run = ATTACK.make_run(self.submission, recipe="attack", engine=name_attacker(trained, SEED, scoring))
            run.parameters = attack_parameters(trained, SEED, scoring)
            attacks.append(self._attack(run, self.context.trial_sets(with_originals=False)))
        return attacks[0]

    def _train(self, preset: str) -> EvaluationRun:
        """Return the newest training of this recipe, which goes on where it stopped; a new one where there is none."""
        names = [one.name for one in self.context.recipe.sets("training") if one.name in self.context.data_sets]
        settings = {"recipe": json.loads(find_preset(preset).to_json()), "variant": "none", "seeds": [SEED]}
        settings["data_sets"] = names
        before = EvaluationRun.objects.filter(
            submission=self.submission, kind=TRAINING.kind, recipe_version=TRAINING.version
        )
        for run in before.select_related("job__after").order_by("-pk"):
            is_same = {name: run.parameters.get(name) for name in settings} == settings
            is_same = is_same and speech_of_training(run.parameters) is Speech.ANONYMISED
            if run.job is None or not run.job.has_ended or not is_same:
                continue
            if run.job.state != JobState.SUCCEEDED:
                if run.parameters["device"] == "cuda":  # there may be no card any more: on what there is
                    run.parameters["device"] = ANY_DEVICE
                    run.save(update_fields=["parameters"])
                run.job.after, run.job.needs_card = self.last, False
                run.job.save(update_fields=["after", "needs_card"])
                self.last = run_again(run.job, by=self.by, with_followers=False)  # these are of an earlier chain
            return run
        run = TRAINING.make_run(self.submission, recipe=preset[:40], parameters=settings | {"device": ANY_DEVICE})
        start_run(
            run,
            job=TRAINING.job,
            title=f"Train an attacker on {self.submission.system}",
            needs=TRAINING_ENGINE,
            after=self.last,
            by=self.by,
            recipe=preset,
            seeds=[SEED],
        )
        self.last = run.job
        return run

    def _attack(self, run: EvaluationRun, states: Sequence[SetState]) -> EvaluationRun | None:
        tests = [one for one in states if not one.problem]
        run.parameters = {"preset": ""} | run.parameters | {"trial_sets": [one.name for one in tests]}
        return self._add(ATTACK, run, list(dict.fromkeys(name for one in tests for name in (one.enrolled, one.name))))

    def _add(self, kind: EngineRunKind, run: EvaluationRun, data_sets: Sequence[str]) -> EvaluationRun | None:
        if not data_sets:
            return None
        title = describe_engine(run).title
        start_chain(kind, run, engine_title=title, data_sets=data_sets, after=self.last, by=self.by)
        self.last = run.job
        return run


def key_of_engine(kind: EngineRunKind, name: str) -> str:
    """Name and version of an engine; the name alone of one that this portal has no more, which its job tells."""
    engine = kind.engines.engines().get(name)
    return name if engine is None else engine.key
