"""The check of an archive as a job: reads it once, keeps what is sound, writes rows and report, and tells the team.

Everything is staged first (`staging`), so that an archive that is refused as a whole leaves no file behind. A job that
is interrupted reads the archive again and finds what it had staged; rows are written in one transaction at the end.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, TypeVar

from django.db import transaction

from evaluation.formats.problems import Problem, Severity
from portal.accounts.notice_kinds import NoticeKind
from portal.challenges.models import DataSet, Edition, Utterance
from portal.core.storage import store_bytes
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job, State
from portal.jobs.runner import JobCancelled, JobContext, JobReleased
from portal.jobs.services import send
from portal.submissions.documents import lay_out
from portal.submissions.expected import expected_of, expected_sets
from portal.submissions.inheritance import Legacy, legacy_of
from portal.submissions.intake.check import check_archive
from portal.submissions.intake.contents import Content
from portal.submissions.intake.report import WHOLE_SUBMISSION, Finding, IntakeReport
from portal.submissions.intake.speech import InspectedSpeech
from portal.submissions.models import Submission, SubmittedDocument, SubmittedFile
from portal.submissions.services import CHECKABLE, change_state
from portal.submissions.signals import submission_accepted
from portal.submissions.staging import Staging
from portal.submissions.uploads import UNCOUNTED, hash_upload, remove_upload_file, upload_path
from portal.teams.notices import notify_organizers, notify_team

AWAIT_EVERY_S = 2.0
BATCH = 500
ENCODERS, ENCODED_AT_ONCE = 4, 16
MEGABYTE = 10**6
EXAMPLES_IN_MAIL = 10

Row = TypeVar("Row", SubmittedFile, SubmittedDocument)


def run_intake(context: JobContext) -> dict[str, Any]:
    """Body of the job; returns how the check ended."""
    submission = submission_of(context.parameters["submission"])
    staging = Staging(submission)
    if submission.state not in CHECKABLE:  # an earlier attempt came to its end, or the team withdrew it
        _clean_up(submission, staging)
        return {"outcome": submission.state}
    try:
        legacy = _begin(context, submission)
        report, keeper = _check(context, submission, staging, legacy)
        _keep(context, submission, report, keeper, legacy)
    except JobCancelled:
        submission.refresh_from_db(fields=["state"])
        if submission.state == Submission.State.WITHDRAWN:
            _clean_up(submission, staging)
        raise
    _clean_up(submission, staging)
    return {
        "outcome": submission.state,
        "errors": submission.errors,
        "warnings": submission.warnings,
        "notes": submission.notes,
        "files": len(keeper.speech),
        "documents": len(keeper.documents),
    }


def submission_of(pk: int) -> Submission:
    rows = Submission.objects.select_related("system__edition__corpus", "system__team", "upload", "inherits")
    return rows.get(pk=pk)


def _begin(context: JobContext, submission: Submission) -> Legacy:
    """Settle for this attempt what the earlier versions hand down of what the archive does not hold."""
    if submission.state == Submission.State.RECEIVED:
        _await_earlier(context, submission)
        change_state(submission=submission, state=Submission.State.CHECKING)
    legacy = legacy_of(submission.system, before=submission.version)
    submission.inherits = legacy.newest
    submission.save(update_fields=["inherits"])
    return legacy


def _await_earlier(context: JobContext, submission: Submission) -> None:
    """Let the earlier versions be read first, for they may hand files down: the worker waits for those that another
    reads just now, and takes one that waits for a worker, such as after a restart, before this one.
    """
    earlier = Job.objects.filter(submission__system=submission.system_id, submission__version__lt=submission.version)
    while under_way := list(earlier.filter(state__in=[State.WAITING, State.RUNNING]).order_by("submission__version")):
        if waiting := [job for job in under_way if job.state == State.WAITING]:
            send(waiting[0])
            raise JobReleased("An earlier version of the system waits for its check, which comes first.")
        context.progress("Waiting for the check of an earlier version", 0, 0)
        time.sleep(AWAIT_EVERY_S)


# Reading the archive -------------------------------------------------------------------------------


class StagingKeeper:
    """Stages what the check hands out; by data set and utterance, and by path. Speech is encoded in threads."""

    def __init__(self, staging: Staging) -> None:
        self.staging = staging
        self.speech: dict[tuple[str, str], SubmittedFile] = {}
        self.documents: dict[str, SubmittedDocument] = {}
        self._pool = ThreadPoolExecutor(max(1, min(ENCODERS, os.cpu_count() or 1)), thread_name_prefix="keep-speech")
        self._encoding: deque[tuple[Future[str], list[SubmittedFile]]] = deque()

    def __enter__(self) -> StagingKeeper:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def keep_speech(self, utterance: str, data_sets: Sequence[str], speech: InspectedSpeech, path: str) -> None:
        key = self._pool.submit(self.staging.keep_speech, speech.samples, speech.rate_hz, speech.pcm_sha256)
        rows = [
            SubmittedFile(
                samples=speech.samples.size,
                rate_hz=speech.rate_hz,
                received_as=path,
                converted_from=speech.converted_from,
            )
            for _ in data_sets
        ]
        self.speech |= {(data_set, utterance): row for data_set, row in zip(data_sets, rows, strict=True)}
        self._encoding.append((key, rows))
        self._wait(ENCODED_AT_ONCE)

    def finish(self) -> None:
        """Wait until everything that was handed in is staged."""
        self._wait(0)

    def _wait(self, most: int) -> None:
        while len(self._encoding) > most:
            key, rows = self._encoding.popleft()
            for row in rows:
                row.audio = key.result()

    def keep_document(self, path: str, content: Content, stream: BinaryIO) -> None:
        key, size = self.staging.keep_document(stream)
        kinds = SubmittedDocument.Kind
        kind = kinds(content.value) if content.value in kinds.values else kinds.OTHER
        self.documents[path] = SubmittedDocument(path=path, kind=kind, key=key, bytes=size)


def _check(
    context: JobContext, submission: Submission, staging: Staging, legacy: Legacy
) -> tuple[IntakeReport, StagingKeeper]:
    """Read the archive from end to end; what was found, and what is worth keeping."""
    upload, edition = submission.upload, submission.system.edition
    if upload is None or edition is None or not upload_path(upload).exists():
        raise JobFailure(
            f"The archive of {submission} is not among the portal's files.",
            actor=Actor.OPERATOR,
            remedy="Bring the folder of uploads back from a backup and run the check again, or ask for a new upload.",
        )
    if not hash_upload(upload, _in_megabytes(context, "Hashing the archive (MB)")):
        return _altered(upload.file_name, edition, upload.claimed_sha256, upload.sha256), StagingKeeper(staging)
    if (twin := _twin_of(submission, upload.sha256)) is not None:
        return _same_archive(upload.file_name, edition, twin), StagingKeeper(staging)
    expected = expected_of(edition, context.progress)
    with StagingKeeper(staging) as keeper:
        report = check_archive(
            upload_path(upload),
            name=upload.file_name,
            expected=expected,
            keeper=keeper,
            documents=staging.documents,
            inherited=legacy.by_data_set(),
            hand_down=lambda paths: _lay_out_inherited(legacy, paths, staging),
            progress=context.progress,
        )
        keeper.finish()
    if staging.reused:
        context.note(f"{staging.reused} recordings that an earlier attempt had kept were found again.")
    return report, keeper


def _lay_out_inherited(legacy: Legacy, sent: Sequence[str], staging: Staging) -> list[str]:
    """Put what stays of earlier documents beside those that were sent; the paths of it."""
    stays = legacy.documents_beside(sent)
    lay_out(stays, staging.documents)
    return [one.path for one in stays]


def _altered(file_name: str, edition: Edition, claimed: str, found: str) -> IntakeReport:
    """The report on an archive that is not the one that its sender meant."""
    remedy = "Something altered the file on its way, or another file was sent: upload it again."
    problem = Problem("wrong-checksum", file_name, f"the SHA-256 {claimed}", found, remedy)
    finding = Finding(WHOLE_SUBMISSION, problem)
    return IntakeReport(archive=file_name, edition=edition.name, findings=(finding,), is_refused=True)


def _twin_of(submission: Submission, sha256: str) -> Submission | None:
    """The newest version of the system that was accepted with the same bytes, and stands."""
    earlier = submission.system.submissions.filter(version__lt=submission.version, upload__sha256=sha256)
    return earlier.exclude(state__in=UNCOUNTED).order_by("-version").first()


def _same_archive(file_name: str, edition: Edition, twin: Submission) -> IntakeReport:
    """The report on an archive that is a version already; refused, it does not count."""
    remedy = (
        "Nothing was read, and this submission does not count. Send what changed; to go back to that version, withdraw "
        "the later ones."
    )
    found = f"the very bytes of {twin}, which was accepted"
    problem = Problem("same-archive", file_name, "an archive that is not a version of this system yet", found, remedy)
    finding = Finding(WHOLE_SUBMISSION, problem)
    return IntakeReport(archive=file_name, edition=edition.name, findings=(finding,), is_refused=True)


# Keeping what came of it ---------------------------------------------------------------------------


def _keep(
    context: JobContext, submission: Submission, report: IntakeReport, keeper: StagingKeeper, legacy: Legacy
) -> None:
    """Move what is sound to the portal's files, then write rows, report and state in one transaction."""
    if not _is_standing(submission):  # withdrawn while its archive was read
        return
    files, documents = [], []
    if not report.is_refused:
        old_files = list(legacy.files({*keeper.speech}, frozenset(report.faulty)))
        old_documents = legacy.documents_beside(keeper.documents)
        report = legacy.noted(report, [one.name for one in _sets(submission)], old_files, old_documents)
        files = [*_new_files(submission, report, keeper), *(_inherited(one, submission) for one in old_files)]
        documents = [*_new_documents(submission, keeper), *(_inherited(one, submission) for one in old_documents)]
    keys = {row.audio for row in files} | {row.key for row in documents}
    keeper.staging.promote(keys, lambda done, total: context.progress("Keeping the files", done, total))
    submission.report = store_bytes(report.to_json().encode(), ".json")
    submission.report_summary = report.summary()
    for severity in Severity:
        setattr(submission, f"{severity}s", report.count(severity))
    context.check()
    _settle(submission, files, documents)


def _is_standing(submission: Submission, *, lock: bool = False) -> bool:
    """Whether nobody has withdrawn or settled the submission meanwhile; its state is then what the row says."""
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
    state = Submission.State.REFUSED if submission.errors else Submission.State.ACCEPTED
    change_state(submission=submission, state=state, note=counts_in_words(submission))
    if state == Submission.State.ACCEPTED:
        submission_accepted.send(sender=Submission, submission=submission)
    _tell_team(submission, state)


def _sets(submission: Submission) -> list[DataSet]:
    edition = submission.system.edition
    return expected_sets(edition) if edition else []


def _new_files(submission: Submission, report: IntakeReport, keeper: StagingKeeper) -> list[SubmittedFile]:
    """Rows of the speech of this archive.

    An utterance whose new file is faulty gets none, not even an old one: a corrected archive has to bring it.
    """
    corpus = submission.system.edition.corpus if submission.system.edition else None
    faulty = frozenset(report.faulty)
    rows = {place: row for place, row in keeper.speech.items() if place[1] not in faulty}
    if rows:
        sets = dict(DataSet.objects.filter(corpus=corpus).values_list("name", "pk"))
        utterances = dict(Utterance.objects.filter(corpus=corpus).values_list("name", "pk"))
        for (data_set, name), row in rows.items():
            row.submission, row.data_set_id, row.utterance_id = submission, sets[data_set], utterances[name]
    return list(rows.values())


def _new_documents(submission: Submission, keeper: StagingKeeper) -> list[SubmittedDocument]:
    """Rows of the documents of this archive."""
    for one in keeper.documents.values():
        one.submission = submission
    return list(keeper.documents.values())


def _inherited(row: Row, submission: Submission) -> Row:
    """The row of an earlier version as one of this submission."""
    row.pk, row.submission, row.is_inherited = None, submission, True
    row._state.adding = True
    return row


def _clean_up(submission: Submission, staging: Staging) -> None:
    """Free what nothing needs once the check has ended."""
    staging.discard()
    if submission.upload is not None:
        remove_upload_file(submission.upload)


def _in_megabytes(context: JobContext, stage: str) -> Any:
    """Progress in bytes as the job counts it: a job's counters end at two thousand million."""
    return lambda done, total: context.progress(stage, done // MEGABYTE, total // MEGABYTE)


# Telling the team ----------------------------------------------------------------------------------


def counts_in_words(submission: Submission) -> str:
    """Such as ``2 errors, 1 warning, 14 notes.``"""
    counts = (("error", submission.errors), ("warning", submission.warnings), ("note", submission.notes))
    told = [f"{count:,} {word}{'' if count == 1 else 's'}" for word, count in counts if count]
    return f"{', '.join(told) or 'Nothing to remark'}."


def _tell_team(submission: Submission, state: Submission.State) -> None:
    team = submission.system.team
    if team is None:
        return
    is_refused = state == Submission.State.REFUSED
    if is_refused:
        subject = f"{submission} was refused"
        first = f"The archive of {submission} was checked and refused: {counts_in_words(submission)}"
    else:
        subject = f"{submission} was accepted"
        found = counts_in_words(submission)
        first = f"The archive of {submission} was checked and accepted: {found} Its evaluation begins."
    notify_team(
        team=team,
        kind=NoticeKind.REFUSED if is_refused else NoticeKind.VALIDATED,
        subject=subject,
        lines=[first, *_grave_causes(submission), "The whole report:"],
        url=submission.get_absolute_url(),
    )
    notify_organizers(
        team=team,
        kind=NoticeKind.CHECKED,
        subject=subject,
        lines=[f"{first} It comes from the team “{team}”."],
        url=submission.get_absolute_url(),
    )


def _grave_causes(submission: Submission) -> list[str]:
    """The first causes of refusal as lines of a mail."""
    causes = [cause for cause in submission.report_summary if cause["severity"] == Severity.ERROR]
    lines = [
        f"- {cause['data_set'] + ': ' if cause['data_set'] else ''}{cause['title']} ({cause['count']:,})"
        for cause in causes[:EXAMPLES_IN_MAIL]
    ]
    if len(causes) > EXAMPLES_IN_MAIL:
        lines.append(f"- and {len(causes) - EXAMPLES_IN_MAIL} more")
    return ["\n".join(lines)] if lines else []
