"""The jobs on studies: making the stimuli, and making a large design.

Every recording that a study presents becomes a file of one form for all. The files are made one by one and each is kept
at once, so an interrupted job goes on where it was.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Count, Q, Sum

from common.errors import NotPossible, ProblemsError
from common.problems import Problem
from listening.app.models import Stimulus, Study
from listening.app.studies.designing import CHANGED, make_design
from listening.app.studies.rules import LAUNCHED
from listening.app.studies.services import DESIGN_JOB, PREPARATION_JOB, settle_preparation
from listening.stimuli.anchors import make_anchor
from listening.stimuli.making import BITS, LEVEL_DBOV, LOUDNESS_LUFS, Loudness, make_stimulus
from portal.core.storage import load_channels, store_bytes
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext
from speech.audio.files import AudioError

MAKING = "Making the stimuli"
LEVELS = {
    Loudness.SPEECH: {"level_dbov": LEVEL_DBOV},
    Loudness.PROGRAMME: {"loudness_lufs": LOUDNESS_LUFS},
    Loudness.AS_IT_IS: {},
}
STAGES = {
    "allocation": "Assigning recordings to evaluators",
    "ordering": "Ordering the trials",
    "shuffling": "Drawing the orders at random",
    "writing": "Writing the design",
}
REMEDY = "Change the plan of the study where a sentence above says so, then make the design again."


@job_kind(DESIGN_JOB, title="Design of a listening test", queue=Queue.CPU, comes_first=True)
def design(context: JobContext) -> dict[str, Any]:
    """Make the design of a study; the same however often it runs."""
    study = Study.objects.filter(job=context.job).first()
    if study is None:
        raise JobFailure(CHANGED, actor=Actor.ORGANIZER, remedy=REMEDY)

    def tell(done: int, total: int, what: str) -> None:
        context.progress(STAGES[what], done, total)

    try:
        certificate = make_design(study, context.job.created_by, progress=tell)
    except (ProblemsError, NotPossible) as error:
        raise JobFailure(str(error), actor=Actor.ORGANIZER, remedy=REMEDY) from None
    return {name: certificate[name] for name in ("seed", "waves", "fingerprint")}


@job_kind(
    PREPARATION_JOB, title="Stimuli of a listening test", queue=Queue.CPU, comes_first=True, on_end=settle_preparation
)
def prepare(context: JobContext) -> dict[str, Any]:
    """Make every file that is missing.

    The first recording goes alone: when it fails, the others are not tried.
    """
    study = _resume(context)
    _make_missing(context, study)
    study.stimuli = _common_facts(study)
    study.save(update_fields=["stimuli"])
    return study.stimuli


def _resume(context: JobContext) -> Study:
    """Return the study of the job. A job that had failed and runs again finds it a draft."""
    with transaction.atomic():
        study = Study.objects.select_for_update().filter(job=context.job).first()
        if study is None or study.state == Study.State.CLOSED or not study.is_designed:
            raise JobFailure(
                "The study has changed since this job was started.",
                actor=Actor.ORGANIZER,
                remedy="Start the preparation from the page of the study.",
            )
        if study.state not in LAUNCHED:
            study.state = Study.State.PREPARING
            study.save(update_fields=["state"])
    return study


def _make_missing(context: JobContext, study: Study) -> None:
    rows = list(study.stimulus_files.select_related("condition", "item").order_by("pk"))
    missing = [row for row in rows if not row.file]
    kept = len(rows) - len(missing)
    if kept and missing:
        context.note(f"{kept} of {len(rows)} stimuli are there already; continuing.")
    problems = []
    for done, stimulus in enumerate(missing, start=kept):
        context.progress(MAKING, done, len(rows))
        try:
            _make_one(stimulus)
        except AudioError as error:
            problems.append(_problem(stimulus, error))
            if done == 0:
                break
    if problems:
        raise _failure(problems, len(rows), is_first=bool(missing and not kept and len(problems) == 1))
    context.progress(MAKING, len(rows), len(rows))


def _make_one(stimulus: Stimulus) -> None:
    """Make and keep one file."""
    if not stimulus.source:
        remedy = "Import the corpus again with its audio, or choose another submission."
        raise AudioError("missing-file", "a recording", "none: it is only listed", remedy)
    samples, rate_hz = load_channels(stimulus.source)
    if low_pass_hz := stimulus.condition.low_pass_hz:
        samples = make_anchor(samples, rate_hz, low_pass_hz)
    made = make_stimulus(samples, rate_hz, stimulus.study.sound)
    Stimulus.objects.filter(pk=stimulus.pk).update(
        file=store_bytes(made.content, ".wav"), bytes=len(made.content), duration_s=made.speech_s, facts=made.facts
    )


def _common_facts(study: Study) -> dict[str, Any]:
    """Return what all files of the study have in common, and how many needed which care."""
    care = {name: Count("pk", filter=Q(**{f"facts__is_{name}": True})) for name in ("guarded", "faded")}
    sums = study.stimulus_files.aggregate(files=Count("pk"), bytes=Sum("bytes"), speech_s=Sum("duration_s"), **care)
    return sums | {
        "speech_s": round(sums["speech_s"] or 0, 1),
        "format": "WAV",
        "rate_hz": study.rate_hz,
        "channels": study.channels,
        "bits": BITS,
        **LEVELS[study.sound.loudness],
        "grid_s": study.sound.grid_samples / study.rate_hz,
        "kbit_per_s": study.sound.kbit_per_s,
    }


def _problem(stimulus: Stimulus, error: AudioError) -> Problem:
    heard_as = f"as {stimulus.condition.code} has it" if stimulus.condition.code else "the original"
    file = f"{stimulus.item.name} ({heard_as})"
    return Problem(error.code, file, error.expected, error.found, error.remedy)


def _failure(problems: list[Problem], total: int, *, is_first: bool) -> JobFailure:
    untried = ", the first one among them, so the others were not tried" if is_first else ""
    return JobFailure(
        f"{len(problems)} of {total} recordings cannot be made into stimuli{untried}. {problems[0].sentence()}",
        actor=Actor.ORGANIZER,
        remedy="The report names each with its reason. Fix it or make a design without it, then prepare again.",
        problems=problems,
    )
