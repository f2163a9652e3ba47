"""Starts speech recognition of the portal evaluation on a submission."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from common.errors import InputError
from evaluation.app.models import EvaluationRun
from evaluation.app.runs.context import EvaluationContext
from evaluation.app.runs.kinds import RECOGNITION
from evaluation.app.runs.services import choose_sets, find_engine, start_engine_run
from portal.jobs.models import Job
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission
from speech.recognizers.contract import check_language


def start_recognition(
    *,
    submission: Submission,
    engine: str = RECOGNITION.engines.DEFAULT,
    data_sets: Collection[str] | None = None,
    after: Job | None = None,
    by: Any = None,
) -> EvaluationRun:
    """Return recognition of a submission's speech and of the originals as a chain of jobs; its run.

    Args:
        engine: name of a recogniser.
        data_sets: enrolment and trial sets; all of which the submission has speech where none is named.
        after: the job that the chain follows.

    Raises:
        NotPossible: there is nothing to recognise or to compare with, something is missing, or the same is under way.
    """
    chosen = find_engine(RECOGNITION, engine)
    evaluation = EvaluationContext(submission)
    names = [one.name for one in choose_sets(RECOGNITION, evaluation.spoken_sets(), data_sets)]
    languages = {evaluation.language_of(name) for name in names}
    try:
        for language in sorted(languages):
            check_language(language, chosen)
    except InputError as error:
        raise NotPossible(str(error)) from error
    parameters = {"engine_key": chosen.key, "rule": evaluation.text_rule.name, "data_sets": names}
    run = RECOGNITION.make_run(submission, engine=chosen.name, recipe="recognition", parameters=parameters)
    return start_engine_run(RECOGNITION, run, engine_title=chosen.title, data_sets=names, after=after, by=by)
