"""Import of a corpus: read its lists, examine and keep its audio, then write everything in one transaction.

Nothing is written to the database before all checks have passed, and a failed import reports every fault at once. What
was examined and kept stands in a journal beside the job, so an interrupted import continues where it was. Importing the
same folder again changes nothing; importing a larger version of it adds what is new; what contradicts is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from evaluation.formats.audio import (
    AudioError,
    AudioFacts,
    inspect_audio,
    read_pcm16,
    resample,
)
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem, Severity, count_faults, has_errors
from portal.challenges.readers.audio_checks import check_duplicates, check_utterance_audio
from portal.challenges.readers.corpus import read_corpus
from portal.challenges.readers.draft import CorpusDraft, DraftUtterance, Layout
from portal.challenges.saving import KeptAudio, save_corpus
from portal.core.audio import keep_audio
from portal.core.storage import store_bytes
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job, State
from portal.jobs.runner import JobContext
from portal.jobs.services import NotPossible, create_job

RATE_HZ = 16_000


@transaction.atomic
def start_import(
    *,
    folder: str,
    name: str,
    layout: str = "",
    audio_root: str = "",
    without_audio: bool = False,
    resample: bool = False,
    is_synthetic: bool = False,
    by: Any = None,
    run_here: bool = False,
) -> Job:
    """Create the job that imports the corpus `name` from a folder on this server; `run_here` as in `create_job`.

    Raises:
        NotPossible: an import of this corpus is under way, or the name is that of a page.
    """
    if name == "import":
        raise NotPossible("A corpus cannot be called import, because a page has that address; choose another name.")
    under_way = Job.objects.filter(kind="import-corpus", state__in=[State.WAITING, State.RUNNING])
    if any(job.parameters["name"] == name for job in under_way):
        raise NotPossible(f"An import of the corpus {name} is under way already; see the list of jobs.")
    parameters = {
        "folder": folder,
        "name": name,
        "layout": layout,
        "audio_root": audio_root,
        "without_audio": without_audio,
        "resample": resample,
        "is_synthetic": is_synthetic,
    }
    title = f"Import of the corpus {name}"
    return create_job(kind="import-corpus", title=title, parameters=parameters, by=by, run_here=run_here)


def run_import(context: JobContext) -> dict[str, Any]:
    """Body of the import job; returns how many of each thing the corpus gained."""
    wanted = context.parameters
    context.progress("Reading the lists", 0, 1)
    draft = read_corpus(
        Path(wanted["folder"]),
        Layout(wanted["layout"]) if wanted["layout"] else None,
        audio_root=Path(wanted["audio_root"]) if wanted["audio_root"] else None,
        without_audio=wanted["without_audio"],
    )
    journal = Journal(settings.DATA_DIR / "journals" / f"{context.job.pk}.jsonl")
    report = ProblemList()
    report.keep(draft.problems)
    facts = _examine(context, draft, journal, report)
    report.keep(check_duplicates({name: fact.sha256 for name, fact in facts.items()}))
    problems = report.report()
    if has_errors(problems) or not draft.utterances:
        raise _refused(problems)
    kept = _keep(context, draft, facts, journal)
    context.progress("Writing the corpus", 0, 1)
    gained = save_corpus(
        draft,
        kept,
        name=wanted["name"],
        source=wanted["folder"],
        is_synthetic=wanted["is_synthetic"] or draft.synthetic,
        by=context.job.created_by,
    )
    if isinstance(gained, list):
        report.keep(gained)
        raise _refused(report.report())
    context.progress("Writing the corpus", 1, 1)
    journal.forget()
    context.problems += problems
    return {"corpus": wanted["name"], "gained": gained}


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


def _examine(context: JobContext, draft: CorpusDraft, journal: Journal, report: ProblemList) -> dict[str, AudioFacts]:
    """Decode every file once; facts by utterance, and all that is wrong into the report."""
    facts: dict[str, AudioFacts] = {}
    for utterance, audio in _counted(context, "Examining audio", draft.utterances):
        try:
            known = _facts(audio, journal)
        except AudioError as error:
            report.add(error.problem(utterance.file or str(audio)))
            continue
        facts[utterance.name] = known
        report.keep(
            check_utterance_audio(utterance, known, expected_rate=RATE_HZ, resample=context.parameters["resample"])
        )
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
    context: JobContext, draft: CorpusDraft, facts: dict[str, AudioFacts], journal: Journal
) -> dict[str, KeptAudio]:
    """Store every file, converted where it must be; what is stored, by utterance."""
    kept: dict[str, KeptAudio] = {}
    for utterance, audio in _counted(context, "Keeping audio", draft.utterances):
        fact = facts[utterance.name]
        key = f"kept {utterance.name} {fact.sha256}"
        if key not in journal.entries:
            journal.add(key, asdict(_store(audio, fact)))
        kept[utterance.name] = KeptAudio(**journal.entries[key])
    return kept


def _store(audio: Path, facts: AudioFacts) -> KeptAudio:
    if facts.rate_hz == RATE_HZ and facts.encoding == "PCM_16":
        content = audio.read_bytes()
        if hashlib.sha256(content).hexdigest() != facts.sha256:
            raise JobFailure(
                f"The file {audio.name} changed while the corpus was imported. Nothing was changed.",
                actor=Actor.ORGANIZER,
                remedy="Start the import again once nobody writes to the folder.",
            )
        key = store_bytes(content, f".{facts.format.lower()}")
        return KeptAudio(key=key, samples=facts.samples, rate_hz=RATE_HZ)
    samples = resample(*read_pcm16(audio), RATE_HZ)
    was = f"{facts.rate_hz} Hz, {facts.encoding}, {facts.format}"
    return KeptAudio(keep_audio(samples, RATE_HZ), samples.size, RATE_HZ, was)


def _counted(
    context: JobContext, stage: str, utterances: Iterable[DraftUtterance]
) -> Iterator[tuple[DraftUtterance, Path]]:
    """The utterances that have audio, telling the job's progress one by one."""
    with_audio = [(utterance, utterance.audio) for utterance in utterances if utterance.audio]
    for done, (utterance, audio) in enumerate(with_audio):
        context.progress(stage, done, len(with_audio))
        yield utterance, audio
    if with_audio:
        context.progress(stage, len(with_audio), len(with_audio))


def _refused(problems: Sequence[Problem]) -> JobFailure:
    errors = count_faults(problems, Severity.ERROR)
    causes = len({problem.code for problem in problems if problem.severity is Severity.ERROR})
    return JobFailure(
        f"The corpus was not imported: {errors:,} error{'s' if errors != 1 else ''} "
        f"of {causes} kind{'s' if causes != 1 else ''} {'were' if errors != 1 else 'was'} found. Nothing was changed.",
        actor=Actor.ORGANIZER,
        remedy="Mend what the report lists and start the import again.",
        problems=problems,
    )
