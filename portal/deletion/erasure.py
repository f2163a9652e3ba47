"""Erases one utterance, one speaker or one evaluator with everything that was made of them, and says what went.

Everything that cannot be without a recording goes with it (`portal.deletion.rows`), and what rests on it otherwise: the
trials of listening tests that play it with their answers, the analyses of these tests, files to download that list it.
Of files that hold more than it (score files, transcripts, reports, results of attacks) the lines that name it go;
numbers over many recordings stay. In rows that only tell of it (the audit log, jobs) `ERASED` takes the place of
its name. A name is found where no letter, digit, ``-`` or ``_`` is next to it; a speaker whose name is a number only
at the beginning of a line, next to a comma, semicolon, tab or quote, and as a folder; in sentences not next to commas.
"""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from django.core.cache import cache
from django.core.files.storage import default_storage
from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.db.models import Model, Q, QuerySet

from anonymization.app.models import AnonymizationRun, NetworkTraining
from anonymization.app.network_training.selectors import VOICES_FILE
from anonymization.app.networks import forget_speaker
from common.errors import NotPossible
from evaluation.app.models import EvaluationRun
from listening.app.models import (
    Analysis,
    Item,
    Participant,
    Presentation,
    Session,
    Stimulus,
    Study,
    Trial,
    read_withdrawal_code,
)
from listening.app.studies.designing import clear_design
from listening.app.withdrawal.services import withdraw
from portal.challenges.job_pages.selectors import MAILS
from portal.challenges.models import Corpus, DataFile, Speaker, TrialList, Utterance
from portal.core import audit
from portal.core.models import AuditEvent
from portal.core.storage import read_stored, replace_named, store_bytes
from portal.deletion.derived_data import FOLDERS
from portal.deletion.files import delete_unheld_files, list_files, list_folder, note_files
from portal.deletion.rows import Rows, count_named, find_rows
from portal.deletion.services import delete_rows
from portal.jobs.models import ACTIVE_STATES, Job, JobEvent
from portal.submissions.models import Submission, SubmissionEvent, SubmittedDocument, SubmittedFile, System, Upload
from portal.submissions.resumable_uploads import UNFINISHED
from portal.teams.models import Team

ERASED = "[erased]"
FIGURES = ".svg", ".png", ".pdf"
ZIP = b"PK\x03\x04"
PIECE = 500
LONG = 12  # characters from which on a code, or a name with a digit, is nobody else's
OF_JOBS = "title", "parameters", "stage", "result", "problems", "failure", "failure_remedy"
# Rows of the submissions with its speech that stay.
OF_SUBMISSIONS: dict[type[Model], tuple[str, ...]] = {
    AnonymizationRun: ("voices", "options", "report", "target_recordings", "targets"),
    EvaluationRun: ("parameters",),
    SubmissionEvent: ("note",),
    SubmittedDocument: ("path",),
}


@dataclass
class Erasure:
    """What is, or was, erased.

    Attributes:
        rows: by kind of row how many.
        files: SHA-256 of the recordings, those that other recordings share left out.
        rewritten: stored files of which lines went.
        unsearched: documents that cannot be read as text, such as PDFs, and archives that are no submission yet; each
            may still hold it.
    """

    what: str
    name: str
    rows: dict[str, int] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    rewritten: int = 0
    mentions: int = 0
    unsearched: list[str] = field(default_factory=list)

    def add(self, counts: Mapping[str, int]) -> None:
        for words, count in counts.items():
            if count:
                self.rows[words] = self.rows.get(words, 0) + count


# What there is ------------------------------------------------------------------------------------


def find_speech(*, corpus: str, utterance: str = "", speaker: str = "") -> Utterance | Speaker:
    """Return the utterance or speaker of this name.

    Raises:
        NotPossible: there is none; the sentence names what there is.
    """
    found = Corpus.objects.filter(name=corpus).first()
    if found is None:
        known = ", ".join(Corpus.objects.order_by("name").values_list("name", flat=True)) or "none"
        raise NotPossible(f"There is no corpus “{corpus}”; there are: {known}.")
    rows: QuerySet[Any] = found.utterances.all() if utterance else found.speakers.all()
    thing: Utterance | Speaker | None = rows.filter(name=utterance or speaker).first()
    if thing is None:
        word = "utterance" if utterance else "speaker"
        first = ", ".join(rows.order_by("name").values_list("name", flat=True)[:5])
        raise NotPossible(f"The corpus {corpus} has no {word} “{utterance or speaker}”; its first ones: {first}.")
    return thing


def _utterances(thing: Utterance | Speaker) -> QuerySet[Utterance]:
    return thing.utterances.all() if isinstance(thing, Speaker) else Utterance.objects.filter(pk=thing.pk)


def _heard(thing: Utterance | Speaker) -> QuerySet[Study]:
    stimuli = Stimulus.objects.filter(item__utterance__in=_utterances(thing))
    return Study.objects.filter(pk__in=stimuli.values("study")).order_by("name")


def _submissions(corpus: Corpus) -> QuerySet[Submission]:
    return Submission.objects.filter(Q(system__corpus=corpus) | Q(system__edition__corpus=corpus))


def _resting(thing: Utterance | Speaker) -> list[Rows]:
    """Return all rows that go, in the order in which they can be deleted: those that protect others before these."""
    utterances = _utterances(thing)
    items = Item.objects.filter(utterance__in=utterances)
    stimuli = Stimulus.objects.filter(item__in=items)
    presentations = Presentation.objects.filter(samples__stimulus__in=stimuli).distinct()
    trials = Trial.objects.filter(presentation__in=presentations)
    held = [
        Analysis.objects.filter(study__in=_heard(thing)),
        DataFile.objects.filter(data_set__utterances__in=utterances).distinct(),
        *(trials, presentations, stimuli, items),
        SubmittedFile.objects.filter(utterance__in=utterances),
        _trainings(thing),
        type(thing)._default_manager.filter(pk=thing.pk),
    ]
    return [find_rows(_fixed(rows)) for rows in held]


def _trainings(thing: Utterance | Speaker) -> QuerySet[NetworkTraining]:
    """Return the trainings of networks that keep the voice of this speaker, and those for a decoder of them."""
    found: list[int] = []
    if isinstance(thing, Speaker):
        names = set(_utterances(thing).values_list("data_sets__name", flat=True))
        rows = thing.corpus.network_trainings.filter(seeds__files__has_key=VOICES_FILE).distinct()
        found = [pk for pk, learnt in rows.values_list("pk", "data_sets") if names & set(learnt)]
        found += NetworkTraining.objects.filter(decoder__training__in=found).values_list("pk", flat=True)
    return NetworkTraining.objects.filter(pk__in=found)


def _fixed(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the same rows by their keys."""
    return rows.model._default_manager.filter(pk__in=list(rows.values_list("pk", flat=True)))


def _refuse(thing: Utterance | Speaker) -> None:
    """Raises `NotPossible` where work on it is under way."""
    if going := _heard(thing).filter(state__in=[Study.State.OPEN, Study.State.PAUSED, Study.State.PREPARING]).first():
        raise NotPossible(f"The listening test “{going}” plays it and is not closed. Close it, then erase again.")
    corpus = thing.corpus
    if study := Study.objects.filter(edition__corpus=corpus).exclude(imported="").first():
        raise NotPossible(
            f"The ratings of the listening test “{study}” were imported as a file, which may name it. Delete that test "
            "on the page Manage, erase again, and import a file without these ratings."
        )
    under_way = _jobs(corpus).filter(state__in=ACTIVE_STATES).exclude(kind__in=MAILS)
    if job := under_way.first():
        raise NotPossible(f"The job “{job}” works on the corpus {corpus}. Wait until it has ended, or cancel it.")
    learnt = _trainings(thing)
    reading = Q(anonymization_run__network__training__in=learnt) | Q(network_seed__training__in=learnt)
    if job := Job.objects.filter(reading).filter(state__in=ACTIVE_STATES).first():
        raise NotPossible(f"The job “{job}” works with a network that learnt from it. Wait for its end, or cancel it.")


def _jobs(corpus: Corpus) -> QuerySet[Job]:
    editions = list(corpus.editions.values_list("name", flat=True))
    return Job.objects.filter(Q(corpus=corpus.name) | Q(edition__in=editions))


def preview_speech(thing: Utterance | Speaker) -> Erasure:
    """Return what `erase_speech` would delete; nothing changes.

    Raises:
        NotPossible: work on it is under way.
    """
    _refuse(thing)
    erasure = _begin(thing)
    for rows in _resting(thing):
        erasure.add(count_named(rows))
    return erasure


def _begin(thing: Utterance | Speaker) -> Erasure:
    word = "speaker" if isinstance(thing, Speaker) else "utterance"
    return Erasure(word, f"{thing.corpus}/{thing}", unsearched=_list_uploads(thing.corpus))


def _list_uploads(corpus: Corpus) -> list[str]:
    """Return what came of archives of submissions to its editions, and of corpora, that nothing was made of yet."""
    found = Upload.objects.filter(Q(edition__corpus=corpus) | Q(edition=None), state__in=UNFINISHED, offset__gt=0)
    return [f"upload {one.pk}, kept until {one.expires_at:%Y-%m-%d}" for one in found.order_by("created_at")]


# Erasing ------------------------------------------------------------------------------------------


def erase_speech(thing: Utterance | Speaker, *, by: Any = None) -> Erasure:
    """Erase an utterance or a speaker at once.

    Raises:
        NotPossible: work on it is under way.
    """
    erasure = _begin(thing)
    with transaction.atomic():
        _refuse(thing)
        corpus = thing.corpus
        names = [*_utterances(thing).values_list("name", flat=True)]
        for study in _heard(thing).filter(state__in=[Study.State.DRAFT, Study.State.PREPARED]):
            clear_design(study)
            study.save()
        all_rows = _resting(thing)
        keys = {key for rows in all_rows for key in list_files(rows)}
        _heard(thing).exclude(published_analysis=None).update(published_analysis=None, results_published_at=None)
        forget_speaker(thing.name, _trainings(thing))
        AnonymizationRun.objects.filter(network__training__in=_trainings(thing)).update(network=None)
        for rows in all_rows:
            erasure.add(count_named(rows))
            delete_rows(rows)
        speakers = [thing.name] if isinstance(thing, Speaker) else []
        pattern = _pattern(names, speakers, keys)
        keys |= _rewrite_lists(corpus, pattern, erasure)
        submissions = list(_submissions(corpus).values_list("pk", flat=True))
        keys |= _rewrite_documents(submissions, pattern, erasure)
        for model, fields in OF_SUBMISSIONS.items():
            _rewrite(model._default_manager.filter(submission__in=submissions), fields, pattern, erasure, drops=True)
        studies = Study.objects.filter(edition__corpus=corpus)
        _rewrite(studies, ("certificate", "stimuli"), pattern, erasure, drops=True)
        in_sentences = _pattern(names, speakers, keys, is_sentence=True)
        _rewrite_log(_list_events(corpus, submissions), _jobs(corpus), in_sentences, erasure)
        note_files(keys)
        audit.record("speech.erased", corpus, actor=by, what=erasure.what, rows=erasure.rows)
    _rewrite_derived(submissions, pattern, erasure)
    cache.clear()
    settled = delete_unheld_files(keys, time.time() + 1)
    gone = [key for key in settled if key.startswith("content/") and not default_storage.exists(key)]
    erasure.files = sorted(key.rpartition("/")[2].partition(".")[0] for key in gone)
    return erasure


def _pattern(
    utterances: Iterable[str], speakers: Iterable[str], keys: Iterable[str], *, is_sentence: bool = False
) -> re.Pattern[str]:
    """Return what names the erased: their names and the keys of their files; in a sentence a number is seldom a
    speaker."""
    edge = "0-9A-Za-z_-"
    words = [re.escape(one) for one in sorted({*utterances, *keys}, key=len, reverse=True)]
    parts = [rf"(?<![{edge}])(?:{'|'.join(words)})(?![{edge}])"] if words else []
    for name in speakers:
        if name.isdecimal() and is_sentence:
            parts.append(rf"(?:\A|(?<=[/\"'“])){name}(?=[/\"'”]|\Z)")
        elif name.isdecimal():
            parts.append(rf"(?:^|(?<=[/\"',;\t])){name}(?=[/\"',;\s]|$)")
        else:
            parts.append(rf"(?<![{edge}]){re.escape(name)}(?![{edge}])")
    return re.compile("|".join(parts), re.MULTILINE)


def _without_lines(content: bytes, pattern: re.Pattern[str]) -> bytes | None:
    """Return a text without the lines that name the erased, a zip without those of its members; None if it names none.

    Raises:
        UnicodeDecodeError: it is neither a text nor a zip.
    """
    if content.startswith(ZIP):
        return _without_lines_of_zip(content, pattern)
    text = content.decode()
    if not pattern.search(text):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return "".join(line for line in text.splitlines(keepends=True) if not pattern.search(line)).encode()
    return json.dumps(_without(value, pattern), ensure_ascii=False).encode()


def _without_lines_of_zip(content: bytes, pattern: re.Pattern[str]) -> bytes | None:
    packed, changed = io.BytesIO(), False
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for member in source.infolist():
            if pattern.search(member.filename):
                changed = True
                continue
            old, new = source.read(member), None
            with suppress(UnicodeDecodeError):
                new = _without_lines(old, pattern)
            changed = changed or new is not None
            target.writestr(member, old if new is None else new, zipfile.ZIP_DEFLATED)
    return packed.getvalue() if changed else None


def _without(value: Any, pattern: re.Pattern[str]) -> Any:
    """JSON without the items that name the erased; where a text holds more, their name is replaced."""
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if not pattern.search(key)}
        return {key: _without(one, pattern) for key, one in kept.items()}
    if isinstance(value, list):
        return [_without(one, pattern) for one in value if not (isinstance(one, str) and pattern.search(one))]
    return pattern.sub(ERASED, value) if isinstance(value, str) else value


def _rewrite_lists(corpus: Corpus, pattern: re.Pattern[str], erasure: Erasure) -> set[str]:
    """Trial lists that were given, and how many comparisons all of them hold."""
    old = set()
    for trials in TrialList.objects.filter(trial_set__corpus=corpus).exclude(file=""):
        content = read_stored(trials.file)
        if content is None or (kept := _without_lines(content, pattern)) is None:
            continue
        rows = [line.split() for line in kept.decode().splitlines()]
        targets = sum(row[-1:] == ["target"] for row in rows)
        old.add(trials.file)
        trials.file = store_bytes(kept, ".trials")
        trials.model_count = len({row[0] for row in rows if row})
        trials.target_count, trials.nontarget_count = targets, len(rows) - targets
        trials.save()
        erasure.rewritten += 1
    for trials in TrialList.objects.filter(trial_set__corpus=corpus, file=""):
        _count_product(trials)
    return old


def _count_product(trials: TrialList) -> None:
    enrolled = set(trials.enrolment_set.utterances.values_list("speaker_id", "speaker__gender"))
    tested = list(trials.trial_set.utterances.values_list("speaker_id", "speaker__gender"))
    genders = {gender for _, gender in tested}
    trials.model_count = sum(gender in genders for _, gender in enrolled)
    trials.target_count = sum(one in enrolled for one in tested)
    compared = sum(sum(other == gender for _, other in enrolled) for _, gender in tested)
    trials.nontarget_count = compared - trials.target_count
    trials.save()


def _rewrite_documents(submissions: list[int], pattern: re.Pattern[str], erasure: Erasure) -> set[str]:
    """Score files, transcripts and other texts of teams, and the reports of the checks."""
    old = set()
    for document in SubmittedDocument.objects.filter(submission__in=submissions).iterator():
        content = read_stored(document.key) or b""
        try:
            kept = _without_lines(content, pattern)
        except UnicodeDecodeError:
            erasure.unsearched.append(f"{document.path} of submission {document.submission_id}")
            continue
        if kept is not None:
            old.add(document.key)
            document.key = store_bytes(kept, f".{document.key.rpartition('.')[2]}")
            document.bytes = len(kept)
            document.save(update_fields=["key", "bytes"])
            erasure.rewritten += 1
    for submission in Submission.objects.filter(pk__in=submissions).iterator():
        report = read_stored(submission.report) if submission.report else None
        if report is not None and (kept := _without_lines(report, pattern)) is not None:
            old.add(submission.report)
            submission.report = store_bytes(kept, ".json")
            erasure.rewritten += 1
        submission.report_summary = _without(submission.report_summary, pattern)
        submission.save(update_fields=["report", "report_summary"])
    return old


def _rewrite_log(
    events: Iterable[QuerySet[AuditEvent]], jobs: QuerySet[Job], pattern: re.Pattern[str], erasure: Erasure
) -> None:
    """The audit log and jobs, which tell of many things; a job that has not ended is left to its worker."""
    for rows in events:
        _rewrite(rows, ("subject", "data"), pattern, erasure, drops=False)
    _rewrite(jobs.exclude(state__in=ACTIVE_STATES), OF_JOBS, pattern, erasure, drops=False)
    _rewrite(JobEvent.objects.filter(job__in=jobs), ("text",), pattern, erasure, drops=False)


def _list_events(corpus: Corpus, submissions: list[int]) -> Iterator[QuerySet[AuditEvent]]:
    """Return the audit log of what works with a corpus, and of deleted rows, of which nothing says whose they were."""
    editions = corpus.editions.all()
    all_rows: list[QuerySet[Any]] = [
        Corpus.objects.filter(pk=corpus.pk),
        editions,
        *(model._default_manager.filter(edition__in=editions) for model in (Study, Team, Upload)),
        System.objects.filter(Q(corpus=corpus) | Q(edition__in=editions)),
        Submission.objects.filter(pk__in=submissions),
        *(model._default_manager.filter(submission__in=submissions) for model in (AnonymizationRun, EvaluationRun)),
        _jobs(corpus),
    ]
    for rows in all_rows:
        events = AuditEvent.objects.filter(subject_type=rows.model._meta.label_lower)
        others = rows.model._default_manager.exclude(pk__in=rows.values("pk")).values_list("pk", flat=True)
        named = set(events.order_by().values_list("subject_id", flat=True).distinct())
        keys = sorted(named - set(map(str, others)))
        for start in range(0, len(keys), PIECE):
            yield events.filter(subject_id__in=keys[start : start + PIECE])


def _rewrite(
    rows: QuerySet[Any], fields: tuple[str, ...], pattern: re.Pattern[str], erasure: Erasure, *, drops: bool
) -> None:
    """Take the names out of these fields; `drops`: an item that names the erased goes, not its name alone."""
    changed = []
    for row in rows.only("pk", *fields).iterator(chunk_size=PIECE):
        before = {name: getattr(row, name) for name in fields}
        after = {name: _without(one, pattern) if drops else _renamed(one, pattern) for name, one in before.items()}
        if after != before:
            for name, one in after.items():
                setattr(row, name, one)
            changed.append(row)
    rows.model._default_manager.bulk_update(changed, fields, batch_size=PIECE)
    erasure.mentions += len(changed)


def _renamed(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        return {pattern.sub(ERASED, key): _renamed(one, pattern) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, pattern) for one in value]
    return pattern.sub(ERASED, value) if isinstance(value, str) else value


def _rewrite_derived(submissions: list[int], pattern: re.Pattern[str], erasure: Erasure) -> None:
    """Rewrite what runs keep in folders of their own: scores, archives of results, words, and matrices of voices."""
    for run in EvaluationRun.objects.filter(submission__in=submissions).select_related("job"):
        keys = [key for folder in FOLDERS for key in list_folder(f"{folder}/{run.pk}") if not key.endswith(FIGURES)]
        for key in keys:
            content = read_stored(key) or b""
            if key.endswith(".npz"):
                if _names_speakers(content, pattern):
                    _delete_matrices(run, key)
                    erasure.rewritten += 1
                continue
            with suppress(UnicodeDecodeError):
                if (kept := _without_lines(content, pattern)) is not None:
                    replace_named(key, kept)
                    erasure.rewritten += 1


def _names_speakers(content: bytes, pattern: re.Pattern[str]) -> bool:
    with np.load(io.BytesIO(content)) as packed:
        texts = [packed[name] for name in packed.files if packed[name].dtype.kind in "US"]
    return any(pattern.search(str(one)) for column in texts for one in column.ravel())


def _delete_matrices(run: EvaluationRun, key: str) -> None:
    """Matrices of voices, one line of which is the speaker's, and their figures, which name all speakers."""
    name = key.rpartition("/")[2].removesuffix(".npz")
    default_storage.delete(key)
    for figure in list_folder(f"derived/figures/{run.pk}"):
        if figure.rpartition("/")[2].startswith(f"{name}-"):
            default_storage.delete(figure)
    if run.job is not None:
        voices = run.job.result.get("voices", {})
        voices.pop(name.removeprefix("similarity-"), None)
        run.job.save(update_fields=["result"])


# Evaluators ---------------------------------------------------------------------------------------


def find_participant(*, study: str, person: str) -> Participant:
    """Return an evaluator by the name that the platform gives them, by a withdrawal code, or by the token of their
    address.

    Raises:
        NotPossible: there is no such study or evaluator.
    """
    found = Study.objects.filter(name=study).first()
    if found is None:
        known = ", ".join(Study.objects.order_by("name").values_list("name", flat=True)) or "none"
        raise NotPossible(f"There is no listening test “{study}”; there are: {known}.")
    codes = Session.objects.filter(Q(withdrawal_code=read_withdrawal_code(person)) | Q(token=person), study=found)
    rows = found.participants.filter(Q(platform_id=person) | Q(pk__in=codes.values("participant")))
    participant = rows.first()
    if participant is None:
        raise NotPossible(
            f"Nobody in the listening test {study} has this ID on the platform, this withdrawal code or this address."
        )
    return participant


def preview_participant(participant: Participant) -> Erasure:
    """Return what `erase_participant` would delete; nothing changes.

    Raises:
        NotPossible: the ratings were imported, so that a file holds them.
    """
    if participant.study.imported:
        raise NotPossible(
            f"The ratings of the listening test “{participant.study}” were imported as a file, which keeps those of "
            "this evaluator. Delete that test on the page Manage, and import a file without them."
        )
    erasure = Erasure("participant", str(participant.study))
    erasure.add(count_named(find_rows(Participant.objects.filter(pk=participant.pk))))
    return erasure


def erase_participant(participant: Participant, now: datetime, *, by: Any = None) -> Erasure:
    """Withdraw an evaluator (`listening.app.withdrawal`) and delete their sessions and their name wherever it was kept.

    Long names and codes are replaced everywhere; a short one, such as “7”, only in the audit log of the study.

    Raises:
        NotPossible: the ratings were imported, so that a file holds them.
    """
    erasure = preview_participant(participant)
    sessions = list(participant.sessions.all())
    name, for_all = participant.platform_id, json.dumps(participant.study.platform_settings)
    secrets = {name, participant.person_key}
    secrets |= {value for one in sessions for value in (one.token, one.withdrawal_code)}
    secrets |= {one.completion_code for one in sessions if one.completion_code not in for_all}
    study = participant.study
    for session in sessions:
        if session.state != Session.State.WITHDRAWN:
            withdraw(session, now)
    with transaction.atomic():
        long = {one for one in secrets if len(one) >= LONG and (one != name or re.search(r"\d", one))}
        _rewrite_log([AuditEvent.objects.all()], Job.objects.all(), _pattern(long, [], []), erasure)
        if short := secrets - long - {""}:
            own = AuditEvent.objects.filter(subject_type=study._meta.label_lower, subject_id=str(study.pk))
            numbers = {one for one in short if one.isdecimal()}
            pattern = _pattern(short - numbers, numbers, [], is_sentence=True)
            _rewrite(own, ("subject", "data"), pattern, erasure, drops=False)
        participant.delete()
        audit.record("participant.erased", study, actor=by, rows=erasure.rows)
    cache.clear()
    return erasure


# Receipts -----------------------------------------------------------------------------------------


def sign(erasure: Erasure, at: datetime) -> dict[str, Any]:
    """Return the receipt, which only a portal with the same secret key can have signed."""
    told = {"erased": erasure.what, "name": erasure.name, "at": at.isoformat(timespec="seconds")}
    receipt: dict[str, Any] = told | {"rows": erasure.rows, "files": erasure.files}
    receipt |= {"files_rewritten": erasure.rewritten, "rows_rewritten": erasure.mentions}
    receipt["not_searched"] = erasure.unsearched
    return receipt | {"signature": _signer().signature(_plain(receipt))}


def check(receipt: Mapping[str, Any]) -> bool:
    """Return whether a receipt is as it was signed."""
    told = {name: value for name, value in receipt.items() if name != "signature"}
    try:
        _signer().unsign(f"{_plain(told)}:{receipt.get('signature')}")
    except BadSignature:
        return False
    return True


def _plain(receipt: Mapping[str, Any]) -> str:
    return json.dumps(receipt, sort_keys=True, ensure_ascii=False)


def _signer() -> Signer:
    return Signer(salt="portal.erasure")
