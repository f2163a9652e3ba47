"""Import of a corpus as a job: read its lists, examine and keep its audio, then write everything in one transaction.

A folder is read by a process of its own within limits, as archives are: an organizer passes on what others sent.
Nothing is written to the database before all checks have passed, and a failed import reports every error at once. What
was examined and kept stands in a journal beside the job, so an interrupted import continues where it was. What a corpus
holds never changes, because results rest on it; it only grows: importing the same folder again changes nothing,
importing a larger version of it adds what is new, and what contradicts is refused.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.http import urlencode

from common import text_files
from common.child_process import Child, ChildEnded, ChildLimits, run_in_child, try_until_third_death
from common.problems import Problem, ProblemList, Severity, count_problems, has_errors
from common.progress import sparse_progress
from portal.challenges.models import Corpus
from portal.core import upload_files
from portal.core.storage import SPARE_BYTES, keep_audio, refresh, store_bytes
from portal.corpora.services import ImportOptions, KeptAudio, save_corpus
from portal.intake.corpora.archives import find_corpus, unpack_corpus
from portal.intake.corpora.draft import CorpusDraft, DraftUtterance, Layout
from portal.intake.corpora.reading import check_duplicates, check_utterance_audio, read_corpus
from portal.intake.expectation import CHALLENGE_RATE_HZ
from portal.intake.problem_codes import describe
from portal.jobs.kinds import JobFailure, Obstacle, job_kind
from portal.jobs.models import Actor, Job, Queue
from portal.jobs.runner import JobContext
from speech.audio.files import AudioError, AudioFacts, inspect_audio, read_pcm16, resample

# What the process may use that reads the lists of an organizer's folder, however many utterances they name: those of
# 300,000 need less than an eighth of it.
LISTS = ChildLimits(cpu_s=900, memory_bytes=8 << 30, time_s=3600)
CPU_S, CPU_S_PER_MEGABYTE, MEMORY_BYTES = 30.0, 1.0, 1 << 30
SLOWEST, SLOWEST_START_S = 10, 60.0  # by the clock: on a busy machine, with a slow disk


def _find_obstacle(job: Job) -> Obstacle | None:
    """That its archive is gone; with the form that uploads it once more, filled in as it was sent."""
    upload = job.parameters.get("upload")
    if not upload or upload_files.is_there(upload):
        return None
    given = {name: job.parameters.get(name) for name in ("name", *(one.name for one in fields(ImportOptions)))}
    sent = {name: "on" if value is True else value for name, value in given.items() if value}
    address = f"{reverse('submissions:upload-corpus')}?{urlencode(sent)}"
    return Obstacle("What this job was to read is no longer here.", "Upload again", address)


@job_kind(
    "import-corpus", title="Import of a corpus", queue=Queue.INTAKE, comes_first=True, find_obstacle=_find_obstacle
)
def run_import(context: JobContext) -> dict[str, Any]:
    """Body of the import job; returns how many of each thing the corpus gained."""
    if "upload" not in context.parameters:
        return _import_folder(context, context.parameters)
    return _import_archive(context, context.parameters)


def _import_archive(context: JobContext, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Unpack an uploaded archive and import what it holds; it is kept for another attempt where nobody is to fix it."""
    name = wanted["folder"]
    try:
        archive = upload_files.fetch(wanted["upload"])
    except FileNotFoundError:
        raise JobFailure(
            f"The archive {name} is no longer here. Nothing was changed.",
            actor=Actor.ORGANIZER,
            remedy="Upload it again.",
        ) from None
    place = unpacking_folder(context.job.pk)
    try:
        shutil.rmtree(place, ignore_errors=True)  # of an attempt that was interrupted
        folder = place / wanted["name"]
        folder.mkdir(parents=True)
        unpacked = _unpack(context, archive, name, folder)
        try:
            problems = [Problem(**one) for one in unpacked["problems"]]
            if not unpacked["is_whole"]:
                raise _refused(problems)
            done = _import_folder(context, {**wanted, "folder": str(folder / unpacked["corpus"])}, name, problems)
        except JobFailure as failure:
            failure.problems = [_name_by_archive(one, str(folder), name) for one in failure.problems]
            raise
    except JobFailure as failure:
        if failure.actor == Actor.ORGANIZER:
            if failure.problems:
                failure.remedy = "Correct what the report lists, pack it and upload it again."
            upload_files.remove(wanted["upload"])
        raise
    finally:
        upload_files.drop_copy(wanted["upload"])
        shutil.rmtree(place, ignore_errors=True)
    upload_files.remove(wanted["upload"])
    return done


def unpacking_folder(job: Any = "") -> Path:
    """Return where the job with this key unpacks an archive; without one, where all do."""
    return Path(settings.DATA_DIR / "unpacking" / str(job))


def _unpack(context: JobContext, archive: Path, name: str, folder: Path) -> dict[str, Any]:
    """Return problems of an archive, and below which folder its corpus lies."""

    def work(child: Child) -> dict[str, Any]:
        told = sparse_progress(child.say)
        problems, is_whole = unpack_corpus(
            archive, name, folder, spare_bytes=SPARE_BYTES, progress=told, look_at=child.look_at
        )
        corpus = find_corpus(folder).relative_to(folder).as_posix()
        return {"problems": [asdict(one) for one in problems], "is_whole": is_whole, "corpus": corpus}

    cpu_s = CPU_S + CPU_S_PER_MEGABYTE * archive.stat().st_size / 10**6
    claimed = context.parameters["sha256"]
    with archive.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest() if claimed else ""
    if found != claimed:
        raise _refused([describe("wrong-checksum", name, claimed=claimed, found=found)])
    try:
        told: dict[str, Any] = _run_apart(
            context, work, ChildLimits(cpu_s, MEMORY_BYTES, SLOWEST * cpu_s + SLOWEST_START_S)
        )
    except ChildEnded as ended:
        places = ended.where(name)
        raise _refused([describe("cannot-be-read/corpus", places, places=places, how=str(ended.how))]) from None
    return told


def _name_by_archive(problem: Problem, folder: str, name: str) -> Problem:
    """Return the same without the path at which the archive was unpacked."""
    texts = {one: getattr(problem, one).replace(folder, name) for one in ("file", "expected", "found")}
    return replace(problem, **texts)


def _import_folder(
    context: JobContext, wanted: Mapping[str, Any], source: str = "", known: Sequence[Problem] = ()
) -> dict[str, Any]:
    """Import what lies in a folder.

    Args:
        source: where it is from, where that is not the folder.
        known: problems that were found before.
    """
    context.progress("Reading the lists", 0, 1)
    journal = Journal(settings.DATA_DIR / "journals" / f"{context.job.pk}.jsonl")
    report = ProblemList()
    try:
        draft = CorpusDraft.from_told(_run_apart(context, lambda child: _read_lists(wanted, child), LISTS))
        licence = wanted.get("licence") or draft.licence[:200]
        draft = replace(draft, licence=licence, problems=(*known, *draft.problems))
        report.keep(draft.problems)
        limits = _limits_of_audio(draft)
        told = _run_apart(context, lambda child: _examine_and_keep(wanted, draft, journal.file, child), limits)
    except ChildEnded as ended:
        places = ended.where(wanted["folder"])
        raise _refused([describe("cannot-be-read/corpus", places, places=places, how=str(ended.how))]) from None
    if told["changed"]:
        raise JobFailure(
            f"The file {told['changed']} changed while the corpus was imported. Nothing was changed.",
            actor=Actor.ORGANIZER,
            remedy="Start the import again once nobody writes to the folder.",
        )
    report.keep(Problem(**one) for one in told["problems"])
    problems = report.report()
    if has_errors(problems) or not draft.utterances:
        raise _refused(problems)
    kept = {name: KeptAudio(**one) for name, one in told["kept"].items()}
    context.progress("Writing the corpus", 0, 1)
    gained = save_corpus(
        draft,
        kept,
        name=wanted["name"],
        source=source or wanted["folder"],
        is_synthetic=wanted["is_synthetic"] or draft.synthetic,
        is_shared=wanted.get("is_shared", False),
        by=context.job.created_by,
    )
    if isinstance(gained, list):
        report.keep(gained)
        raise _refused(report.report())
    context.progress("Writing the corpus", 1, 1)
    journal.forget()
    context.problems += problems
    kept_licence = Corpus.objects.get(name=wanted["name"]).licence
    told = {"corpus": wanted["name"], "gained": gained}
    return told | ({"kept_licence": kept_licence} if draft.licence not in {"", kept_licence} else {})


class Journal:
    """Lines of JSON on disk, by key: what a long job has finished. A cut last line is ignored."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.entries: dict[str, Any] = {}
        if file.exists():
            for line in file.read_text().splitlines():
                try:
                    key, value = json.loads(line)
                except ValueError:
                    continue
                self.entries[key] = value

    def add(self, key: str, value: Any) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.entries[key] = value
        with self.file.open("a") as stream:
            stream.write(f"{json.dumps([key, value])}\n")

    def forget(self) -> None:
        self.file.unlink(missing_ok=True)


# Reading in a process of its own -------------------------------------------------------------------


def _run_apart(context: JobContext, work: Callable[[Child], dict[str, Any]], limits: ChildLimits) -> Any:
    """Return what the work returns from a process of its own, which a hostile folder may hang or crash.

    Raises:
        ChildEnded: it broke a limit, or died again and again.
    """
    return try_until_third_death(
        lambda _: run_in_child(work, limits, check=context.check, hear=context.progress),
        lambda ended: context.note(
            f"The process that reads the corpus was ended at {ended.where('an unknown file')}: {ended.how}."
        ),
    )


def _limits_of_audio(draft: CorpusDraft) -> ChildLimits:
    """Return what decoding may use: it grows with the bytes of the audio."""
    files = (one.audio for one in draft.utterances if one.audio)
    megabytes = sum(file.stat().st_size for file in files if file.exists()) / 10**6
    cpu_s = CPU_S + CPU_S_PER_MEGABYTE * megabytes
    return ChildLimits(cpu_s, MEMORY_BYTES, SLOWEST * cpu_s + SLOWEST_START_S)


def _read_lists(wanted: Mapping[str, Any], child: Child) -> dict[str, Any]:
    text_files.on_reading = lambda path: child.look_at(str(path))
    draft = read_corpus(
        Path(wanted["folder"]),
        Layout(wanted["layout"]) if wanted["layout"] else None,
        audio_root=Path(wanted["audio_root"]) if wanted["audio_root"] else None,
        without_audio=wanted["without_audio"],
    )
    return draft.told()


def _examine_and_keep(wanted: Mapping[str, Any], draft: CorpusDraft, file: Path, child: Child) -> dict[str, Any]:
    """Decode every file and, unless there are errors, store it; what is wrong, and what is stored by utterance."""
    journal, problems = Journal(file), ProblemList()
    facts = _examine(child, draft, journal, problems, resample=wanted["resample"])
    problems.keep(check_duplicates({name: fact.sha256 for name, fact in facts.items()}))
    found = problems.report()
    told: dict[str, Any] = {"problems": [asdict(one) for one in found], "kept": {}, "changed": ""}
    if not has_errors(found) and not has_errors(draft.problems):
        kept = list(_keep(child, draft, facts, journal))
        told["changed"] = next((name for name, one in kept if one is None), "")
        if not told["changed"]:
            told["kept"] = {name: asdict(one) for name, one in kept if one}
    return told


def _examine(
    child: Child, draft: CorpusDraft, journal: Journal, report: ProblemList, *, resample: bool
) -> dict[str, AudioFacts]:
    """Decode every file once; facts by utterance, and all that is wrong into the report."""
    facts: dict[str, AudioFacts] = {}
    for utterance, audio in _counted(child, "Examining audio", draft.utterances):
        try:
            known = _facts(audio, journal)
        except AudioError as error:
            report.add(error.problem(utterance.file or str(audio)))
            continue
        facts[utterance.name] = known
        report.keep(check_utterance_audio(utterance, known, resample=resample))
    return facts


def _facts(audio: Path, journal: Journal) -> AudioFacts:
    stat = audio.stat() if audio.exists() else None
    key = f"facts {audio} {stat.st_size} {stat.st_mtime_ns}" if stat else ""
    if key in journal.entries:
        return AudioFacts(**journal.entries[key])
    facts = inspect_audio(audio)
    journal.add(key, asdict(facts))
    return facts


def _keep(
    child: Child, draft: CorpusDraft, facts: dict[str, AudioFacts], journal: Journal
) -> Iterator[tuple[str, KeptAudio | None]]:
    """Store every file, converted where it must be; yield each utterance with what is stored of it.

    A file that is no longer what was examined ends it: its name is yielded with None.
    """
    for utterance, audio in _counted(child, "Keeping audio", draft.utterances):
        fact = facts[utterance.name]
        key = f"kept {utterance.name} {fact.sha256}"
        if key not in journal.entries or not refresh(journal.entries[key]["key"]):
            stored = _store(audio, fact)
            if stored is None:
                yield audio.name, None
                return
            journal.add(key, asdict(stored))
        yield utterance.name, KeptAudio(**journal.entries[key])


def _store(audio: Path, facts: AudioFacts) -> KeptAudio | None:
    """Store a file, or return None where it is no longer what was examined."""
    if facts.rate_hz == CHALLENGE_RATE_HZ and facts.encoding == "PCM_16" and facts.format in ("WAV", "FLAC"):
        content = audio.read_bytes()
        if hashlib.sha256(content).hexdigest() != facts.sha256:
            return None
        key = store_bytes(content, f".{facts.format.lower()}")
        return KeptAudio(key=key, samples=facts.samples, rate_hz=CHALLENGE_RATE_HZ)
    samples = resample(*read_pcm16(audio), CHALLENGE_RATE_HZ)
    was = f"{facts.rate_hz} Hz, {facts.encoding}, {facts.format}"
    return KeptAudio(keep_audio(samples, CHALLENGE_RATE_HZ), samples.size, CHALLENGE_RATE_HZ, was)


def _counted(child: Child, stage: str, utterances: Iterable[DraftUtterance]) -> Iterator[tuple[DraftUtterance, Path]]:
    """Yield the utterances that have audio, telling the job's progress and which file is looked at."""
    with_audio = [(utterance, utterance.audio) for utterance in utterances if utterance.audio]
    progress = sparse_progress(child.say)
    for done, (utterance, audio) in enumerate(with_audio):
        progress(stage, done, len(with_audio))
        child.look_at(utterance.file or str(audio))
        yield utterance, audio
    if with_audio:
        progress(stage, len(with_audio), len(with_audio))


def _refused(problems: Sequence[Problem]) -> JobFailure:
    errors = count_problems(problems, Severity.ERROR)
    causes = len({problem.code for problem in problems if problem.severity is Severity.ERROR})
    return JobFailure(
        f"The corpus was not imported: {errors:,} error{'s' if errors != 1 else ''} "
        f"of {causes} kind{'s' if causes != 1 else ''} {'were' if errors != 1 else 'was'} found. Nothing was changed.",
        actor=Actor.ORGANIZER,
        remedy="Fix what the report lists and start the import again.",
        problems=problems,
    )
