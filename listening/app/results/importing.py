"""Ratings that were collected elsewhere become a closed study, with every page of results.

The file is read by `listening.analysis.reading.ratings`; its listeners and sessions become people and sessions of the
study, so that rules can leave them out, and are called by keys in what is stored and published. The names of the file
are kept beside them for the organizers alone. A system that is called like one of the edition is taken for it: its
objective numbers are then listed next to its ratings. A large file is read by a job, which forgets the file when it
ends.
"""

from __future__ import annotations

import base64
import gzip
import io
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, BinaryIO

import numpy as np
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone

from common.child_process import Child, ChildEnded, ChildLimits, run_in_child
from common.errors import ProblemsError
from common.progress import ignore_progress
from listening.analysis.bundle import read_inputs, write_inputs
from listening.analysis.reading.inputs import ORIGINAL, Inputs, Ratings, Settings
from listening.analysis.reading.ratings import ReadOptions, read_ratings
from listening.app.models import Analysis, Participant, Session, Study
from listening.app.results.inputs import listener_key, session_key
from listening.app.results.services import start_analysis
from listening.app.sessions.platforms import person_keys
from listening.app.studies.services import ask_questions, check_names
from portal.challenges.models import Edition
from portal.core import audit
from portal.core.storage import read_stored, store_bytes
from portal.jobs.models import ACTIVE_STATES, Job
from portal.jobs.services import create_job
from portal.submissions.models import Submission

MEGABYTE = 10**6
LARGEST_FILE, LARGEST_TEXT = 50 * MEGABYTE, 150 * MEGABYTE
READ_AT_ONCE = 2 * MEGABYTE  # of text, in about a second; more is a job
IMPORT_JOB = "import-ratings"
GONE = "The file of this import is not kept any more. Import it again."
EVERY = "all"
MOST_SYSTEMS = 150  # every two are compared: more make an analysis of hours and pages that nobody can open
MOST_LISTENERS = 20_000  # each becomes a person and a session of the study
ROWS_AT_ONCE = 2000
ENDINGS = (".csv", ".csv.gz")
LONGEST_TOKEN = 120
GZIP = b"\x1f\x8b"
PIECE = 1 << 20
# What reading a file may use: 36 MB of text took 14 to 17 s and 22 times its size.
CPU_S, CPU_S_PER_MEGABYTE = 10.0, 2.0
MEMORY_BYTES, MEMORY_PER_BYTE, MOST_MEMORY_BYTES = 192 << 20, 48, 3 << 30
SLOWEST = 5  # by the clock


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import made. `matched`: systems of the file that are systems of the edition."""

    study: Study
    analysis: Analysis
    ratings: int
    matched: tuple[str, ...]


def import_study(
    *,
    edition: Edition,
    by: Any,
    name: str,
    title: str,
    file: BinaryIO,
    file_name: str,
    original: str = "",
    attribution: str = "",
    is_simulated: bool = False,
    check: Callable[[], None] = ignore_progress,
) -> Imported:
    """Return a closed study of the ratings in a file, whose analysis is started.

    Args:
        file: CSV, plain or gzipped, in one of the forms that `listening.analysis.reading.ratings` knows.
        original: what unprotected speech is called in the file; found out where empty.
        attribution: whose ratings these are and under which licence, as results state it.
        check: called while the file is read; what it raises ends the import.

    Raises:
        ProblemsError: what is wrong with the file, a sentence for each problem.
        ValidationError: the name or the title is taken.
    """
    found = _read_apart(file, file_name, ReadOptions(original or None, study=name, title=title), check)
    ratings = _ratings(found, file_name)
    with transaction.atomic():
        study = _make_study(edition, by, found, name=name, title=title, is_simulated=is_simulated)
        facts = replace(
            found.study,
            name=name,
            title=title,
            is_simulated=is_simulated,
            attribution=attribution or found.study.attribution,
        )
        inputs = replace(found, study=facts, ratings=_with_keys(study, ratings, timezone.now()))
        study.imported = store_bytes(write_inputs(inputs, Settings()), ".zip")
        study.save(update_fields=["imported"])
        matched = _match_systems(study, ratings)
        audit.record("study.imported", study, actor=by, file=file_name[:200], ratings=len(ratings), matched=matched)
        analysis = start_analysis(study, by)
    return Imported(study, analysis, len(ratings), tuple(matched))


def start_import(
    *, edition: Edition, by: Any, name: str, title: str, file: BinaryIO, file_name: str, **told: Any
) -> Imported | Job:
    """Run `import_study` at once, or return the job that does it where the file is large.

    Raises:
        ProblemsError: the file is too large, or what is wrong with a small one.
        ValidationError: the name or the title is taken.
    """
    if check_size(file, file_name) <= READ_AT_ONCE:
        return import_study(edition=edition, by=by, name=name, title=title, file=file, file_name=file_name, **told)
    check_names(Study(name=name, title=title), by)
    key = store_bytes(file.read(), ".csv.gz" if file_name.lower().endswith(".gz") else ".csv")
    given = {"study": name, "title": title, "file": file_name[:200], "content": key}
    return create_job(
        kind=IMPORT_JOB,
        title=f"Import ratings as {title}"[:200],
        parameters=given | told,
        by=by,
        edition=edition.name,
    )


def finish_import(job: Job, check: Callable[[], None]) -> Imported:
    """Return what the job of a large file makes.

    Raises:
        ProblemsError: as of `import_study`, or the file is not kept any more.
        ValidationError: the name was taken meanwhile.
    """
    told = dict(job.parameters)
    name, file_name, key = told.pop("study"), told.pop("file"), told.pop("content")
    edition = Edition.objects.filter(name=job.edition).first()
    content = read_stored(key)
    if edition is None or content is None:
        raise ProblemsError(GONE)
    file = io.BytesIO(content)
    return import_study(
        edition=edition, by=job.created_by, name=name, file=file, file_name=file_name, check=check, **told
    )


def forget_import(job: Job) -> None:
    """Delete the file of an import that has ended, unless another import reads the same."""
    key = job.parameters["content"]
    active = Job.objects.filter(kind=IMPORT_JOB, state__in=ACTIVE_STATES, parameters__content=key)
    if not active.exclude(pk=job.pk).exists():
        transaction.on_commit(lambda: default_storage.delete(key))


def _read_apart(file: BinaryIO, file_name: str, options: ReadOptions, check: Callable[[], None]) -> Inputs:
    """Read the ratings in a process of its own, within limits: a hostile file may hang or fill its reader.

    Raises:
        ProblemsError: something is wrong with the file, or that process was ended.
    """
    text_bytes = check_size(file, file_name)
    content = file.read()

    def work(_: Child) -> dict[str, Any]:
        try:
            found = read_ratings(io.BytesIO(content), file_name, options)
            _ratings(found, file_name)
        except ProblemsError as error:
            return {"problems": error.problems}
        return {"inputs": base64.b64encode(write_inputs(found, Settings())).decode()}

    try:
        told = run_in_child(work, child_limits(text_bytes), check=check)  # once: somebody waits for the answer
    except ChildEnded as ended:
        raise ProblemsError(
            f"{file_name}: the process that read it was stopped: {ended.how}. Correct the file, or import parts as "
            "studies of their own."
        ) from None
    if "problems" in told:
        raise ProblemsError(told["problems"])
    return read_inputs(base64.b64decode(told["inputs"]))[0]


def child_limits(text_bytes: int) -> ChildLimits:
    """Return what reading so many bytes of text, unzipped, may use: about four times what an honest file needs."""
    cpu_s = CPU_S + CPU_S_PER_MEGABYTE * text_bytes / MEGABYTE
    memory_bytes = min(MEMORY_BYTES + MEMORY_PER_BYTE * text_bytes, MOST_MEMORY_BYTES)
    return ChildLimits(cpu_s, memory_bytes, SLOWEST * cpu_s)


def check_size(file: BinaryIO, file_name: str) -> int:
    """Refuse what is too large, unzipped or once it is; the file stands at its beginning again.

    Returns:
        Bytes of its text, unzipped.

    Raises:
        ProblemsError: it is.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    text, is_zipped = 0, file.read(len(GZIP)) == GZIP
    file.seek(0)
    if is_zipped and size <= LARGEST_FILE:
        with suppress(OSError, EOFError, zlib.error), gzip.open(file) as unzipped:  # the reader says what is wrong
            while text <= LARGEST_TEXT and (piece := unzipped.read(PIECE)):
                text += len(piece)
    file.seek(0)
    if size > LARGEST_FILE or text > LARGEST_TEXT:
        raise ProblemsError(
            f"{file_name}: expected at most {LARGEST_FILE // MEGABYTE} MB, or {LARGEST_TEXT // MEGABYTE} MB once "
            "unzipped, found more. Leave out columns that are not read, or import parts as studies of their own."
        )
    return max(size, text)


def _ratings(found: Inputs, file_name: str) -> Ratings:
    ratings = found.ratings
    if ratings is None or not len(ratings):
        raise ProblemsError(f"{file_name}: expected ratings, found none.")
    systems, people = np.unique(ratings.system), np.unique(ratings.listener).size
    wrong = ""
    if EVERY in systems:
        wrong = f"names of systems, found “{EVERY}”, by which results mean every system. Rename it."
    elif len(systems) > MOST_SYSTEMS:
        wrong = (
            f"at most {MOST_SYSTEMS} systems, found {len(systems):,} different names among the systems. "
            "Check that the right column is called system, or import parts as studies of their own."
        )
    elif people > MOST_LISTENERS:
        wrong = (
            f"at most {MOST_LISTENERS:,} listeners, found {people:,} different names among them. Check that the column "
            "called listener names the person, not the rating, or import parts as studies of their own."
        )
    if wrong:
        raise ProblemsError(f"{file_name}: expected {wrong}")
    return ratings


def _make_study(edition: Edition, by: Any, found: Inputs, *, name: str, title: str, is_simulated: bool) -> Study:
    """Return the row of the study: closed, never launched, without a design."""
    study = Study(
        name=name,
        title=title,
        edition=edition,
        state=Study.State.CLOSED,
        closed_at=timezone.now(),
        is_simulated=is_simulated,
        languages=["en"],
        practice_trials=0,
        gold_trials=0,
        created_by=by,
    )
    check_names(study, by)
    study.save()
    ask_questions(study, found.study.questions)
    return study


def _with_keys(study: Study, ratings: Ratings, now: datetime) -> Ratings:
    """Return the ratings with keys in place of listeners and sessions, for which people and sessions are made."""
    pairs = list(zip(ratings.listener.tolist(), ratings.session.tolist(), strict=True))
    finished = dict(zip(pairs, ratings.is_finished.tolist(), strict=True))
    people = {
        token: Participant(study=study, person_key=person_keys(study, token)[0], platform_id=token[:LONGEST_TOKEN])
        for token in dict.fromkeys(listener for listener, _ in pairs)
    }
    Participant.objects.bulk_create(people.values(), batch_size=ROWS_AT_ONCE)
    sessions = {
        (listener, session): Session(
            study=study,
            participant=people[listener],
            state=Session.State.FINISHED if is_finished else Session.State.EXPIRED,
            step=Session.Step.END,
            is_simulated=study.is_simulated,
            platform_data={"session": session[:LONGEST_TOKEN]},
            flagged_at=now,
            ended_at=now,
        )
        for (listener, session), is_finished in finished.items()
    }
    Session.objects.bulk_create(sessions.values(), batch_size=ROWS_AT_ONCE)
    keys = {
        pair: (listener_key(study, people[pair[0]].person_key), session_key(study, one.pk))
        for pair, one in sessions.items()
    }
    listeners, visits = zip(*(keys[pair] for pair in pairs), strict=True)
    return replace(ratings, listener=np.array(listeners, np.str_), session=np.array(visits, np.str_))


def _match_systems(study: Study, ratings: Ratings) -> list[str]:
    """Take systems that are called like systems of the edition for these, with their newest evaluated submission."""
    names = {str(name).lower(): str(name) for name in np.unique(ratings.system) if name != ORIGINAL and len(name) <= 40}
    found = Submission.objects.filter(system__edition=study.edition, state=Submission.State.EVALUATED)
    newest = {one.system_id: one for one in found.select_related("system").order_by("version")}
    matched: dict[str, Submission] = {}
    for submission in newest.values():
        system = submission.system
        code = names.get(system.label.lower()) or names.get(system.name.lower())
        if code is not None:
            matched.setdefault(code, submission)
    for code, submission in sorted(matched.items()):
        study.conditions.create(submission=submission, code=code)
    return sorted(matched)
