"""Starts attacks of the portal evaluation on a submission, by a built-in encoder or by one that the portal trained."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from common.errors import InputError
from evaluation.app.attacks.stored_attackers import attack_parameters, has_back_end, name_attacker
from evaluation.app.models import EvaluationRun
from evaluation.app.runs.context import EvaluationContext
from evaluation.app.runs.kinds import ATTACK, describe_engine
from evaluation.app.runs.services import choose_sets, find_engine, start_engine_run
from evaluation.formats.results import Speech
from evaluation.objective_results.attack import choose_scorer, is_usual_preset, require_preset
from portal.jobs.models import Job
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission


def start_attack(
    *,
    submission: Submission,
    engine: str = ATTACK.engines.DEFAULT,
    trained: EvaluationRun | None = None,
    seed: int | None = None,
    data_sets: Collection[str] | None = None,
    options: Mapping[str, Any] | None = None,
    after: Job | None = None,
    by: Any = None,
) -> EvaluationRun:
    """Return an attack on a submission as a chain of jobs; its run.

    Args:
        engine: name in the registry; unprotected, ignorant and lazy-informed.
        trained: a training run, with its `seed`, in place of an engine; semi-informed where it was trained on
            anonymised speech.
        data_sets: names of trial sets; all that can be attacked where none is named.
        options: `preset`, how vectors are scored (`evaluation.objective_results.attack`).
        after: the job that the chain follows.

    Raises:
        NotPossible: nothing can be attacked, something is missing, or the same attack is under way.
    """
    run = ATTACK.make_run(submission, recipe="attack")
    preset = dict(options or {}).get("preset", "")
    if trained is not None:
        if preset:
            _require_preset(preset, trained)
        run.engine = name_attacker(trained, seed or 0, preset)
        run.parameters = attack_parameters(trained, seed or 0, preset)
    else:
        chosen = find_engine(ATTACK, engine)
        run.engine = chosen.name
        _require_preset(preset, engine=run.engine)
        run.parameters = {"engine_key": chosen.key, "preset": "" if is_usual_preset(run.engine, preset) else preset}
    text = describe_engine(run)
    states = EvaluationContext(submission).trial_sets(with_originals=text.training is Speech.ORIGINAL)
    tests = choose_sets(ATTACK, states, data_sets)
    run.parameters["trial_sets"] = [one.name for one in tests]
    names = list(dict.fromkeys(name for one in tests for name in (one.enrolled, one.name)))
    return start_engine_run(ATTACK, run, engine_title=text.title, data_sets=names, after=after, by=by)


def _require_preset(preset: str, trained: EvaluationRun | None = None, engine: str = "") -> None:
    try:
        if trained is not None:
            require_preset(preset, has_back_end(trained))
        else:
            choose_scorer(engine, preset)
    except InputError as error:
        raise NotPossible(str(error)) from error
