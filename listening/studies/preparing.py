"""Making the stimuli of a study: every recording that it presents becomes a file of one form for all.

`prepare_study` starts the job; the job makes the files one by one and keeps each at once, so an interrupted one goes on
where it was. All files of a study have the same number of bytes for each second: the usual number, or more where one
recording needs it, in which case those made before are made again. A study that is being prepared cannot be changed;
how the job ends settles it, in the same transaction.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db import transaction

from evaluation.formats.audio import AudioError
from evaluation.formats.problems import Problem
from listening.models import Stimulus, Study
from listening.stimuli.errors import StimulusError
from listening.stimuli.flac import BITS, CHANNELS, RATE_HZ, USUAL_FRAME_BYTES, kbit_per_s
from listening.stimuli.uniform import GRID_SAMPLES, LEVEL_DBOV
from portal.core import audit
from portal.core.audio import load_audio
from portal.core.storage import store_bytes
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job, State
from portal.jobs.runner import JobContext
from portal.jobs.services import NotPossible, create_job

KIND = "prepare-study"
LAUNCHED = (Study.State.OPEN, Study.State.PAUSED)
MAKING = "Making the stimuli"


@transaction.atomic
def prepare_study(study: Study, by: Any) -> Job:
    """Start making the stimulus files that are missing. A study that is open stays open meanwhile.

    Raises:
        NotPossible: there is no design yet, they are being made, or the study is closed.
    """
    study = Study.objects.select_for_update(of=("self",)).select_related("edition", "job").get(pk=study.pk)
    if study.job is not None and not study.job.has_ended:
        what = "The stimuli are" if study.job.kind == KIND else "The design is"
        raise NotPossible(f"{what} being made already.")
    if study.state == Study.State.CLOSED:
        raise NotPossible("The study is closed; nobody listens to it any more.")
    count = study.stimulus_files.count()
    if not study.is_designed or not count:
        raise NotPossible("There is no design yet, so nobody knows which recordings are heard. Make the design first.")
    study.job = create_job(
        kind=KIND,
        title=f"Make the {count} stimuli of {study}"[:200],
        parameters={"study": study.pk},
        by=by,
        edition=study.edition.name,
    )
    if study.state not in LAUNCHED:
        study.state = Study.State.PREPARING
    study.save(update_fields=["job", "state"])
    audit.record("study.preparing", study, actor=by, stimuli=count)
    return study.job


@transaction.atomic
def settle_preparation(job: Job) -> None:
    """Carry the study on in the transaction that ends its job: ready to launch, or a draft again."""
    study = Study.objects.select_for_update().filter(job=job, state=Study.State.PREPARING).first()
    if study is not None:
        is_made = job.state == State.SUCCEEDED
        study.state = Study.State.PREPARED if is_made else Study.State.DRAFT
        study.save(update_fields=["state"])
        audit.record("study.prepared" if is_made else "study.not_prepared", study, actor=None)


def run_preparation(context: JobContext) -> dict[str, Any]:
    """Body of the job: make every file that is missing, or that is smaller than the hungriest recording demands.

    The first recording goes alone: when it fails, the others are not tried.
    """
    study = _resume(context)
    frame_bytes = _known_frame_bytes(study)
    while True:
        needed = _make_missing(context, study, frame_bytes)
        if needed == frame_bytes:
            break
        frame_bytes = needed
        context.note(f"One recording needs {kbit_per_s(frame_bytes):g} kbit/s, so all files get that many.")
    study.stimuli = _common_facts(study, frame_bytes)
    study.save(update_fields=["stimuli"])
    return study.stimuli


def _resume(context: JobContext) -> Study:
    """The study of the job. A job that had failed and runs again finds it a draft."""
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


def _known_frame_bytes(study: Study) -> int:
    """The size of a frame that the files there are demand; of a launched study it never shrinks."""
    made = study.stimulus_files.exclude(file="").values_list("facts", flat=True)
    demanded = [facts.get("frame_bytes_needed", 0) for facts in made]
    kept = study.stimuli.get("frame_bytes", 0) if study.state in LAUNCHED else 0
    return max(USUAL_FRAME_BYTES, kept, *demanded)


def _make_missing(context: JobContext, study: Study, frame_bytes: int) -> int:
    """Make what has no file of that size; the size that the hungriest of them needs, at least `frame_bytes`."""
    rows = list(study.stimulus_files.select_related("utterance", "system").order_by("pk"))
    missing = [row for row in rows if not row.file or row.facts.get("frame_bytes") != frame_bytes]
    kept = len(rows) - len(missing)
    if kept and missing:
        context.note(f"{kept} of {len(rows)} stimuli are there already; continuing.")
    needed, problems = frame_bytes, []
    for done, stimulus in enumerate(missing, start=kept):
        context.progress(MAKING, done, len(rows))
        try:
            needed = max(needed, _make_one(stimulus, needed))
        except (AudioError, StimulusError) as error:
            problems.append(_problem(stimulus, error))
            if done == 0:
                break
    if problems:
        raise _failure(problems, len(rows), is_first=bool(missing and not kept and len(problems) == 1))
    context.progress(MAKING, len(rows), len(rows))
    return needed


def _make_one(stimulus: Stimulus, frame_bytes: int) -> int:
    """Make and keep one file; the bytes of each of its frames, more than `frame_bytes` only if it needs them."""
    from listening.stimuli.making import make_stimulus  # decodes and filters: not for the web server

    if not stimulus.source:
        remedy = "Import the corpus again with its audio, or choose another submission."
        raise AudioError("missing-file", "a recording", "none: it is only listed", remedy)
    made = make_stimulus(*load_audio(stimulus.source), frame_bytes)
    Stimulus.objects.filter(pk=stimulus.pk).update(
        file=store_bytes(made.content, ".flac"),
        bytes=len(made.content),
        duration_s=made.speech_s,
        facts=made.facts,
    )
    return made.frame_bytes


def _common_facts(study: Study, frame_bytes: int) -> dict[str, Any]:
    """What all files of the study have in common, and how many needed which care."""
    counts: Counter[str] = Counter()
    rows = study.stimulus_files.values_list("facts", "duration_s", "bytes")
    for facts, _, _ in rows:
        counts.update(name for name in ("is_guarded", "is_faded") if facts[name])
    return {
        "format": "FLAC",
        "rate_hz": RATE_HZ,
        "channels": CHANNELS,
        "bits": BITS,
        "level_dbov": LEVEL_DBOV,
        "grid_s": GRID_SAMPLES / RATE_HZ,
        "frame_bytes": frame_bytes,
        "kbit_per_s": kbit_per_s(frame_bytes),
        "files": len(rows),
        "speech_s": round(sum(duration for _, duration, _ in rows), 1),
        "bytes": sum(size for _, _, size in rows),
        "guarded": counts["is_guarded"],
        "faded": counts["is_faded"],
    }


def _problem(stimulus: Stimulus, error: AudioError | StimulusError) -> Problem:
    heard_as = f"as {stimulus.system.code} has it" if stimulus.system else "the original"
    file = f"{stimulus.utterance.name} ({heard_as})"
    return Problem(error.code, file, error.expected, error.found, error.remedy)


def _failure(problems: list[Problem], total: int, *, is_first: bool) -> JobFailure:
    untried = ", the first one among them, so the others were not tried" if is_first else ""
    return JobFailure(
        f"{len(problems)} of {total} recordings cannot be made into stimuli{untried}. {problems[0].sentence()}",
        actor=Actor.ORGANIZER,
        remedy="The report names each with its reason. Mend it or make a design without it, then prepare again.",
        problems=problems,
    )
