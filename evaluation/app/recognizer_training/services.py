"""Starts the training of phone recognisers on the training speech of a submission, and the recognition by them."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction

from common.errors import InputError
from evaluation.app.attacker_training.selectors import list_training_sets
from evaluation.app.models import EvaluationRun
from evaluation.app.runs.context import EvaluationContext
from evaluation.app.runs.kinds import PHONE_TRAINING, PHONES_TEXT, RETRAINED
from evaluation.app.runs.one_at_a_time import require_no_other
from evaluation.app.runs.services import GONE, start_run
from evaluation.formats.results import Speech
from evaluation.recognizer_training.frames import missing
from portal.challenges.models import Utterance
from portal.jobs.models import Job
from portal.jobs.services import NotPossible
from portal.jobs.workers import lacking
from portal.submissions.models import Submission, SubmittedFile
from speech.recognizers.phone_recipe import FEWEST, PhoneRecipe

SEED = 1


@transaction.atomic
def start_retraining(
    *,
    submission: Submission,
    recipe: PhoneRecipe | None = None,
    seed: int = SEED,
    after: Job | None = None,
    by: Any = None,
) -> EvaluationRun:
    """Train a phone recogniser on originals and one on anonymised speech, and compare what they understand; its run.

    Args:
        after: the job that the chain follows.

    Raises:
        NotPossible: a sentence that says what is missing, or the same is under way.
    """
    if problem := find_problem(submission):
        raise NotPossible(problem)
    try:
        wanted = json.loads((recipe or PhoneRecipe()).changed().to_json())
    except InputError as error:
        raise NotPossible(str(error)) from error
    sets = {
        "training_sets": [one.name for one in list_training_sets(submission)],
        "data_sets": list_test_sets(EvaluationContext(submission)),
    }
    parameters = {"engine_key": PHONES_TEXT.key, "recipe": wanted, "seed": seed} | sets
    run = RETRAINED.make_run(submission, engine=PHONES_TEXT.name, recipe="retrained", parameters=parameters)
    require_no_other(run, PHONES_TEXT.title)
    system = submission.system
    return start_run(
        run,
        job=RETRAINED.job,
        title=f"Recognition by retrained recognisers · {system}",
        earlier_jobs=[
            (PHONE_TRAINING, f"Phone recogniser of {speech} speech · {system}", {"speech": str(speech)})
            for speech in Speech
        ],
        needs=PHONES_TEXT.name,
        last_needs=PHONES_TEXT.name,
        after=after,
        by=by,
        engine=run.engine,
    )


# Whether it can be ---------------------------------------------------------------------------------


def list_test_sets(evaluation: EvaluationContext) -> list[str]:
    """Return the data sets that are recognised: the parts of the recognition sets, or all with transcripts where none
    is."""
    parts = {part.name for one in evaluation.recipe.sets("recognition") for part in evaluation.find_parts(one)}
    ready = [one.name for one in evaluation.spoken_sets() if not one.problem]
    return [name for name in ready if name in parts] or ready


def find_problem(submission: Submission) -> str:
    """Return why no recogniser can be trained on a submission, a sentence; empty where one can."""
    if sentence := lacking({PHONES_TEXT.name: missing()})[PHONES_TEXT.name]:
        return sentence
    if submission.state in GONE:
        return f"{submission} is {submission.get_state_display().lower()}; there is no speech to train on."
    sets = list_training_sets(submission)
    if not sets:
        return "The corpus has no training set. Import one with its transcripts, such as train-clean-360."
    names = ", ".join(one.name for one in sets)
    spoken = Utterance.objects.filter(data_sets__in=sets).exclude(audio="").exclude(transcript="")
    files = SubmittedFile.objects.filter(submission=submission, data_set__in=sets, utterance__in=spoken).order_by()
    if not spoken.exists():
        return f"{names} has no utterance with original audio and transcript. Import the corpus again with both."
    if (found := files.count()) < FEWEST:
        return (
            f"The submission has {found} anonymised utterances of {names} with transcripts; a recogniser learns from "
            f"{FEWEST} or more. A team submits them in its archive; a system of the portal’s own methods can be "
            "anonymised further."
        )
    if not list_test_sets(EvaluationContext(submission)):
        return (
            "The submission holds no speech of an enrolment or trial set with transcripts, so nothing can be counted."
        )
    return ""
