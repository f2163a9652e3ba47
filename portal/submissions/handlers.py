"""The check of an archive as a job: reads it once, keeps what is sound, writes rows and report, and tells the team.

Everything is staged first (`staging`), so that an archive that is refused as a whole leaves no file behind. A job that
is interrupted reads the archive again and finds what it had staged; rows are written in one transaction at the end.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from common import text_files
from common.child_process import (
    MOST_DEATHS,
    Child,
    ChildEnded,
    ChildLimits,
    How,
    run_in_child,
    try_until_third_death,
)
from common.problems import Problem, Severity
from common.progress import sparse_progress
from evaluation.metrics import naturalness
from evaluation.metrics.audio_checks import MAX_FLATTENED_SHARE, UPPER_BAND, damage_signs, find_damage
from portal.challenges.models import DataSet, Edition, Utterance
from portal.challenges.selectors import expected_sets
from portal.core import upload_files
from portal.core.clock import read_clock
from portal.core.storage import load_audio, store_bytes
from portal.intake.check import MOST_THREADS, ArchiveCheck, FoundDocument, FoundSpeech
from portal.intake.contents import Content, classify
from portal.intake.expectation import ExpectedSubmission
from portal.intake.problem_codes import describe
from portal.intake.report import IntakeReport
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import ACTIVE_STATES, Actor, Job, JobState, Queue
from portal.jobs.runner import JobContext, JobReleased
from portal.jobs.services import send
from portal.submissions.inheritance import Inheritance, find_inheritance
from portal.submissions.leftovers import tidy_machine
from portal.submissions.models import Submission, SubmittedDocument, SubmittedFile, Upload
from portal.submissions.notifications import counts_in_words, tell_checked
from portal.submissions.requirements import describe_requirements, write_trials
from portal.submissions.resumable_uploads import UNCOUNTED, hash_upload, upload_path
from portal.submissions.services import CHECKABLE, accept_submission, carry_offers, change_state
from portal.submissions.staging import Staging, copy_documents
from portal.teams.services import freeze_members

AWAIT_EVERY_S = 2.0
BATCH = 500
ENCODERS, ENCODED_AT_ONCE = 4, 16
MEGABYTE = 10**6
# What the check of an archive may use. Speech takes a hundredth of the processor time; recordings of 50 s at 48 kHz
# need up to 192 MiB, and packed text grows tenfold before it is a table.
CPU_S, CPU_S_PER_MEGABYTE = 10.0, 1.0
MEMORY_BYTES, MEMORY_PER_BYTE, MOST_MEMORY_BYTES = 192 << 20, 48, 1 << 30
SLOWEST, SLOWEST_START_S = 10, 60.0  # by the clock: on a busy machine, with a slow disk
ENDED = {
    How.CPU: "cannot-be-read/cpu",
    How.MEMORY: "cannot-be-read/memory",
    How.TIME: "cannot-be-read/time",
    How.DIED: "cannot-be-read/died",
}
_TOLD_OF_SPEECH = ("audio", "received_as", "samples", "rate_hz", "converted_from")
_TOLD_OF_DOCUMENTS = ("path", "kind", "key", "bytes")
Row = TypeVar("Row", SubmittedFile, SubmittedDocument)


@job_kind("intake", title="Check of a submission", queue=Queue.INTAKE, comes_first=True)
def run_intake(context: JobContext) -> dict[str, Any]:
    """Run the body of the job; return how the check ended."""
    tidy_machine()
    submission = load_submission(context.parameters["submission"])
    staging = Staging(submission)
    if submission.state not in CHECKABLE:  # an earlier attempt came to its end, or the team withdrew it
        _clean_up(submission, staging)
        return {"outcome": submission.state}
    try:
        legacy = _begin(context, submission)
        report, staged = _check(context, submission, staging, legacy)
        _keep(context, submission, report, staged, legacy)
    except CancelledError:
        submission.refresh_from_db(fields=["state"])
        if submission.state == Submission.State.WITHDRAWN:
            _clean_up(submission, staging)
        raise
    finally:
        if submission.upload is not None:
            upload_files.drop_copy(submission.upload.pk)
    _clean_up(submission, staging)
    return {
        "outcome": submission.state,
        "errors": submission.errors,
        "warnings": submission.warnings,
        "notes": submission.notes,
        "files": len(staged.speech),
        "documents": len(staged.documents),
    }


def load_submission(pk: int) -> Submission:
    rows = Submission.objects.select_related("system__edition__corpus", "system__team", "upload", "inherits")
    return rows.get(pk=pk)


def _begin(context: JobContext, submission: Submission) -> Inheritance:
    """Settle for this attempt what the earlier versions hand down of what the archive does not hold."""
    _give_way(context, submission)
    if submission.state == Submission.State.RECEIVED:
        _await_earlier(context, submission)
        change_state(submission=submission, state=Submission.State.CHECKING)
    legacy = find_inheritance(submission.system, before=submission.version)
    submission.inherits = legacy.newest
    submission.save(update_fields=["inherits"])
    return legacy


def _give_way(context: JobContext, submission: Submission) -> None:
    """Let an archive of a team of which none is read be read first, while one of this team is: however many a team
    sends, and however long each takes, nobody else waits for more than the one that is being read.
    """
    checks = Job.objects.filter(kind=context.job.kind)
    reading = checks.filter(state=JobState.RUNNING)
    if not reading.filter(
        submission__system__team=submission.system.team_id, started_at__lt=context.job.started_at
    ).exists():
        return
    teams = set(reading.values_list("submission__system__team", flat=True))
    others = checks.filter(state=JobState.WAITING).exclude(submission__system__team__in=teams - {None})
    if None in teams:  # baselines, which all are of the organizers
        others = others.exclude(submission__system__team=None)
    if (first := others.order_by("waiting_since").first()) is not None:
        send(first)
        raise JobReleased("Another team's archive waits, which comes first while one of this team is read.")


def _await_earlier(context: JobContext, submission: Submission) -> None:
    """Let the earlier versions be read first, for they may hand files down: the worker waits for those that another
    reads just now, and takes one that waits for a worker, such as after a restart, before this one.
    """
    earlier = Job.objects.filter(submission__system=submission.system_id, submission__version__lt=submission.version)
    while under_way := list(earlier.filter(state__in=ACTIVE_STATES).order_by("submission__version")):
        if waiting := [job for job in under_way if job.state == JobState.WAITING]:
            send(waiting[0])
            raise JobReleased("An earlier version of the system waits for its check, which comes first.")
        context.progress("Waiting for the check of an earlier version", 0, 0)
        _give_way(context, submission)
        time.sleep(AWAIT_EVERY_S)


# Reading the archive -------------------------------------------------------------------------------
class StagedFiles:
    """What was staged of an archive: by data set and utterance, and by path. Speech is encoded in threads."""

    def __init__(self, staging: Staging) -> None:
        self.staging = staging
        self.speech: dict[tuple[str, str], SubmittedFile] = {}
        self.documents: dict[str, SubmittedDocument] = {}
        self._pool = ThreadPoolExecutor(max(1, min(ENCODERS, os.cpu_count() or 1)), thread_name_prefix="keep-speech")
        self._encoding: deque[tuple[Future[str], list[SubmittedFile]]] = deque()

    def __enter__(self) -> StagedFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def keep_speech(self, found: FoundSpeech) -> None:
        speech = found.speech
        key = self._pool.submit(self.staging.keep_speech, speech.samples, speech.rate_hz, speech.pcm_sha256)
        facts = {"samples": speech.samples.size, "rate_hz": speech.rate_hz, "converted_from": speech.converted_from}
        rows = {(name, found.utterance): SubmittedFile(received_as=found.path, **facts) for name in found.data_sets}
        self.speech |= rows
        self._encoding.append((key, list(rows.values())))
        self.wait(ENCODED_AT_ONCE)

    def keep_document(self, found: FoundDocument) -> None:
        with found.place.open("rb") as stream:
            key, size = self.staging.keep_document(stream)
        kinds = SubmittedDocument.Kind
        kind = kinds(found.content.value) if found.content.value in kinds.values else kinds.OTHER
        self.documents[found.path] = SubmittedDocument(path=found.path, kind=kind, key=key, bytes=size)

    def told(self) -> dict[str, Any]:
        """Return what was staged, as JSON can hold it."""
        speech = [[*place, *(getattr(row, name) for name in _TOLD_OF_SPEECH)] for place, row in self.speech.items()]
        documents = [[getattr(row, name) for name in _TOLD_OF_DOCUMENTS] for row in self.documents.values()]
        return {"speech": speech, "documents": documents, "staged": self.staging.staged()}

    @classmethod
    def from_told(cls, staging: Staging, told: Mapping[str, Any]) -> StagedFiles:
        """Return what another process has staged in the same folder, as `told` says."""
        found = cls(staging)
        staging.adopt(told["staged"])
        for data_set, utterance, *values in told["speech"]:
            speech = SubmittedFile(**dict(zip(_TOLD_OF_SPEECH, values, strict=True)))
            found.speech[data_set, utterance] = speech
        for values in told["documents"]:
            document = SubmittedDocument(**dict(zip(_TOLD_OF_DOCUMENTS, values, strict=True)))
            found.documents[document.path] = document
        return found

    def wait(self, most: int = 0) -> None:
        """Wait until at most so many recordings are still being encoded."""
        while len(self._encoding) > most:
            key, rows = self._encoding.popleft()
            for row in rows:
                row.audio = key.result()


def _check(
    context: JobContext, submission: Submission, staging: Staging, inheritance: Inheritance
) -> tuple[IntakeReport, StagedFiles]:
    """Read the archive from end to end; what was found, and what is worth keeping."""
    upload, edition = submission.upload, submission.system.edition
    if upload is None or edition is None or not _is_fetched(upload):
        raise JobFailure(
            f"The archive of {submission} is not among the portal's files.",
            actor=Actor.OPERATOR,
            remedy="Restore the folder of uploads from a backup and run the check again, or ask for a new upload.",
        )
    if not hash_upload(upload, _in_megabytes(context, "Hashing the archive (MB)")):
        hashes = {"claimed": upload.claimed_sha256, "found": upload.sha256}
        return _refused(upload.file_name, edition, "wrong-checksum", **hashes), StagedFiles(staging)
    if (twin := _find_twin(submission, upload.sha256)) is not None:
        return _refused(upload.file_name, edition, "same-archive", twin=twin), StagedFiles(staging)
    expected = describe_requirements(edition, context.progress)

    def read(deaths: int) -> tuple[IntakeReport, StagedFiles]:
        return read_apart(context, submission, edition, expected, inheritance, is_careful=deaths > 0)

    def tell(ended: ChildEnded) -> None:
        context.note(f"The process that reads the archive was ended at {ended.where(upload.file_name)}: {ended.how}.")

    try:
        return try_until_third_death(read, tell)
    except ChildEnded as ended:
        said = {"places": ended.where(upload.file_name), "deaths": MOST_DEATHS}
        return _refused(upload.file_name, edition, ENDED[ended.how], **said), StagedFiles(staging)


def _is_fetched(upload: Upload) -> bool:
    """Return whether the archive is on this machine now."""
    try:
        upload_files.fetch(upload.pk)
    except FileNotFoundError:
        return False
    return True


def _refused(file_name: str, edition: Edition, kind: str, **values: Any) -> IntakeReport:
    """Return the report on an archive that is not read: not the one that its sender meant, or a version already."""
    findings = (describe(kind, file_name, **values),)
    return IntakeReport(archive=file_name, edition=edition.name, findings=findings, is_refused=True)


def _find_twin(submission: Submission, sha256: str) -> Submission | None:
    """Return the newest version of the system that was accepted with the same bytes, and stands."""
    earlier = submission.system.submissions.filter(version__lt=submission.version, upload__sha256=sha256)
    return earlier.exclude(state__in=UNCOUNTED).order_by("-version").first()


# Reading in a process of its own -------------------------------------------------------------------
def read_apart(
    context: JobContext,
    submission: Submission,
    edition: Edition,
    expected: ExpectedSubmission,
    inheritance: Inheritance,
    *,
    is_careful: bool = False,
) -> tuple[IntakeReport, StagedFiles]:
    """Read the archive in a process of its own, which a hostile one may hang or crash.

    Args:
        is_careful: with one thread, so that it is known at which file the process ends.

    Raises:
        ChildEnded: as `run_in_child`.
    """
    upload, staging = submission.upload, Staging(submission)
    assert upload is not None  # noqa: S101 - `_check` has looked

    def work(child: Child) -> dict[str, Any]:
        text_files.on_reading = lambda path: child.look_at(_name_in_archive(path, staging.documents))
        check = ArchiveCheck(
            upload.file_name,
            expected,
            staging.documents,
            sparse_progress(child.say),
            child.look_at,
            threads=1 if is_careful else MOST_THREADS,
        )
        with StagedFiles(staging) as staged, closing(check.read(upload_path(upload))) as sound:
            for found in sound:
                if isinstance(found, FoundSpeech):
                    staged.keep_speech(found)
                else:
                    staged.keep_document(found)
            staged.wait()
        child.look_at("")
        beside = [] if check.refusal else inheritance.documents_beside(check.paths)
        copy_documents(beside, staging.documents)
        paths = [one.path for one in beside]
        has_scores = any(classify(path) is Content.SCORES for path in (*check.paths, *paths))
        trials = {name: Path(path) for name, path in child.ask().items()} if has_scores else {}
        report = check.report(inheritance.by_data_set(), paths, trials)
        return {"report": report.to_json(), "reused": staging.reused, **staged.told()}

    with tempfile.TemporaryDirectory(prefix="trials-") as folder:
        told = run_in_child(
            work,
            child_limits(upload.size + inheritance.count_document_bytes()),
            check=context.check,
            hear=context.progress,
            answer=lambda: {name: str(path) for name, path in write_trials(edition, Path(folder)).items()},
        )
    if told["reused"]:
        context.note(f"{told['reused']} recordings of an earlier attempt were reused.")
    return IntakeReport.from_json(told["report"]), StagedFiles.from_told(staging, told)


def child_limits(archive_bytes: int) -> ChildLimits:
    """Return what the check of an archive of this size may use: it grows with the size, as an honest one does.

    Args:
        archive_bytes: with those of the documents that it inherits, which are read beside it.
    """
    cpu_s = CPU_S + CPU_S_PER_MEGABYTE * archive_bytes / MEGABYTE
    memory_bytes = min(MEMORY_BYTES + MEMORY_PER_BYTE * archive_bytes, MOST_MEMORY_BYTES)
    return ChildLimits(cpu_s, memory_bytes, SLOWEST * cpu_s + SLOWEST_START_S)


def _name_in_archive(path: Path, documents: Path) -> str:
    return str(path.relative_to(documents)) if path.is_relative_to(documents) else path.name


# Keeping what came of it ---------------------------------------------------------------------------
def _keep(
    context: JobContext, submission: Submission, report: IntakeReport, staged: StagedFiles, legacy: Inheritance
) -> None:
    """Move what is sound to the portal's files, then write rows, report and state in one transaction."""
    if not _is_standing(submission):  # withdrawn while its archive was read
        return
    files, documents = [], []
    if not report.is_refused:
        old_files = list(legacy.files({*staged.speech}, frozenset(report.faulty)))
        old_documents = legacy.documents_beside(staged.documents)
        report = legacy.noted(report, [one.name for one in _sets(submission)], old_files, old_documents)
        files = [*_new_files(submission, report, staged), *(_inherited(one, submission) for one in old_files)]
        documents = [*_new_documents(submission, staged), *(_inherited(one, submission) for one in old_documents)]
        if twin := _find_equal_speech(submission, files):
            note = describe("same-speech", str(submission.system), twin=str(twin))
            report = replace(report, findings=(note, *report.findings))
    keys = {row.audio for row in files} | {row.key for row in documents}
    staged.staging.promote(keys, lambda done, total: context.progress("Keeping the files", done, total))
    report = replace(report, findings=(*report.findings, *_listen(context, files)))
    submission.report = store_bytes(report.to_json().encode(), ".json")
    submission.report_summary = report.summary()
    for severity in Severity:
        setattr(submission, f"{severity}s", report.count(severity))
    context.check()
    _settle(submission, files, documents)


def _listen(context: JobContext, files: list[SubmittedFile]) -> list[Problem]:
    """Return warnings of samples of data sets: recordings that are damaged, or sound broken to a network, while their
    originals are and do not."""
    by_set: dict[int, list[SubmittedFile]] = {}
    for row in files:
        if not row.is_inherited:
            by_set.setdefault(row.data_set_id, []).append(row)
    rows_of = Utterance.objects.filter(data_sets__in=by_set).select_related("speaker").distinct()
    originals = {one.pk: one for one in rows_of}
    chosen: list[tuple[SubmittedFile, bool]] = []
    for rows in by_set.values():
        speakers = [originals[row.utterance_id].speaker.name for row in rows]
        heard = set(naturalness.choose_sample(speakers, naturalness.SAMPLE_AT_INTAKE))
        chosen += [(rows[place], place in heard) for place in naturalness.choose_sample(speakers, naturalness.SAMPLE)]
    names = dict(DataSet.objects.filter(pk__in=by_set).values_list("pk", "name"))
    found = []
    can_predict = not naturalness.missing()
    for done, (row, is_heard) in enumerate(chosen):
        context.progress("Listening to a sample", done, len(chosen))
        audio, key = load_audio(row.audio), originals[row.utterance_id].audio
        original = load_audio(key) if key else None
        said = list(_damage_warnings(row.received_as, audio, original))
        if is_heard and can_predict:
            said += _broken_warnings(row.received_as, audio, original)
        found += [one.within(names[row.data_set_id]) for one in said]
    return found


_Audio = tuple[NDArray[np.int16], int]


def _damage_warnings(file: str, audio: _Audio, original: _Audio | None) -> Iterator[Problem]:
    samples, rate_hz = audio
    is_comparable = original is not None and original[1] == rate_hz
    before = original[0] if original is not None and is_comparable else None
    damage = find_damage(samples, rate_hz, before)
    signs = damage_signs(damage, None if before is None else find_damage(before, rate_hz))
    if "flattened" in signs:
        yield describe("flattened", file, share=damage.flattened_share, limit=MAX_FLATTENED_SHARE)
    if "gaps" in signs:
        yield describe("gaps", file, gap_ms=1000 * damage.gap_s)
    if "narrow-band" in signs:
        yield describe("narrow-band", file, low_khz=UPPER_BAND[0] * rate_hz / 2000)


def _broken_warnings(file: str, audio: _Audio, original: _Audio | None) -> Iterator[Problem]:
    opinion = naturalness.predict_naturalness(*audio)
    if naturalness.sounds_broken(opinion, None) and naturalness.sounds_broken(
        opinion, naturalness.predict_naturalness(*original) if original else None
    ):
        yield describe("sounds-broken", file, found=opinion, limit=naturalness.NOISE_BELOW)


def _find_equal_speech(submission: Submission, files: list[SubmittedFile]) -> Submission | None:
    """Return a submission of another system of the same team that was accepted with the very same recordings."""
    team = submission.system.team
    if team is None or not files:
        return None
    ours = {(row.data_set_id, row.utterance_id, row.audio) for row in files}
    data_set, utterance, audio = next(iter(ours))
    others = Submission.objects.filter(
        system__team=team, files__data_set=data_set, files__utterance=utterance, files__audio=audio
    ).exclude(system=submission.system)
    for other in others.exclude(state__in=[Submission.State.REFUSED, Submission.State.WITHDRAWN]).order_by("pk"):
        if ours == set(other.files.order_by().values_list("data_set", "utterance", "audio")):
            return other
    return None


def _is_standing(submission: Submission, *, lock: bool = False) -> bool:
    """Return whether nobody has withdrawn or settled the submission meanwhile; its state is then what the row says."""
    rows = Submission.objects.select_for_update() if lock else Submission.objects.all()
    submission.state = rows.values_list("state", flat=True).get(pk=submission.pk)
    return submission.state in CHECKABLE


@transaction.atomic
def _settle(submission: Submission, files: list[SubmittedFile], documents: list[SubmittedDocument]) -> None:
    """Accept or refuse, once: of two attempts, or of one and a withdrawal, the first stands."""
    if not _is_standing(submission, lock=True):
        return
    SubmittedFile.objects.bulk_create(files, batch_size=BATCH)
    SubmittedDocument.objects.bulk_create(documents, batch_size=BATCH)
    submission.save(update_fields=["report", "report_summary", "errors", "warnings", "notes"])
    if submission.errors:
        change_state(submission=submission, state=Submission.State.REFUSED, note=counts_in_words(submission))
    else:
        accept_submission(submission=submission, note=counts_in_words(submission))
        carry_offers(submission=submission)
        if submission.system.team is not None:
            freeze_members(team=submission.system.team, now=read_clock())
    tell_checked(submission, Submission.State.REFUSED if submission.errors else Submission.State.ACCEPTED)


def _sets(submission: Submission) -> list[DataSet]:
    edition = submission.system.edition
    return expected_sets(edition) if edition else []


def _new_files(submission: Submission, report: IntakeReport, staged: StagedFiles) -> list[SubmittedFile]:
    """Return the rows of the speech of this archive.

    An utterance whose new file is faulty gets none, not even an old one: a corrected archive has to bring it.
    """
    corpus = submission.system.edition.corpus if submission.system.edition else None
    faulty = frozenset(report.faulty)
    rows = {place: row for place, row in staged.speech.items() if place[1] not in faulty}
    if rows:
        sets = dict(DataSet.objects.filter(corpus=corpus).values_list("name", "pk"))
        utterances = dict(Utterance.objects.filter(corpus=corpus).values_list("name", "pk"))
        for (data_set, name), row in rows.items():
            row.submission, row.data_set_id, row.utterance_id = submission, sets[data_set], utterances[name]
    return list(rows.values())


def _new_documents(submission: Submission, staged: StagedFiles) -> list[SubmittedDocument]:
    """Return the rows of the documents of this archive."""
    for one in staged.documents.values():
        one.submission = submission
    return list(staged.documents.values())


def _inherited(row: Row, submission: Submission) -> Row:
    """Return the row of an earlier version as one of this submission."""
    row.pk, row.submission, row.is_inherited = None, submission, True
    row._state.adding = True
    return row


def _clean_up(submission: Submission, staging: Staging) -> None:
    """Free what nothing needs once the check has ended."""
    staging.discard()
    if submission.upload is not None:
        upload_files.remove(submission.upload.pk)


def _in_megabytes(context: JobContext, stage: str) -> Any:
    """Return what takes progress in bytes as the job counts it: a job's counters end at two thousand million."""
    return lambda done, total: context.progress(stage, done // MEGABYTE, total // MEGABYTE)
