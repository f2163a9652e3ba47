"""Everything that changes a corpus: starting its import, writing what came in, renaming it, sharing it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from common.errors import NotPossible
from common.problems import Problem
from evaluation.formats.kaldi import write_trials
from portal.challenges.models import Corpus, DataSet, Speaker, TrialList, Utterance
from portal.challenges.services import DEMO, prepare_data_files
from portal.core import audit
from portal.core.storage import store_bytes
from portal.corpora.selectors import may_import
from portal.intake.corpora.draft import CorpusDraft, DraftTrialList, DraftUtterance
from portal.jobs.kinds import JobFailure
from portal.jobs.models import ACTIVE_STATES, Actor, Job
from portal.jobs.services import create_job

DEMO_CORPUS = (settings.FILES_DIR / "demo").resolve()  # from which it is imported; others may be named so, too
RESERVED_CORPORA = frozenset({"import", "upload"})
BATCH = 500  # rows
GAINED = ("speakers", "utterances", "audio_files", "data_sets", "trial_lists")


@dataclass(frozen=True)
class ImportOptions:
    """How a folder is read; a layout or folder of audio files that is empty is found out."""

    layout: str = ""
    audio_root: str = ""
    without_audio: bool = False
    resample: bool = False
    is_synthetic: bool = False
    is_shared: bool = False
    licence: str = ""


def import_problem(name: str, by: Any) -> str:
    """Return why a corpus of this name cannot be imported now, as a sentence; empty where it can."""
    if name in RESERVED_CORPORA:
        return f"A corpus cannot be called {name}, because a page has that address; choose another name."
    alike = list(Corpus.objects.filter(name__iexact=name).values_list("name", flat=True))
    if alike and name not in alike:
        return f"There is a corpus {alike[0]}. Type its name as it is to continue it, or choose another name."
    if not may_import(name, by):
        return f"The name {name} is taken by another organizer's corpus; choose another name."
    under_way = Job.objects.filter(kind="import-corpus", state__in=ACTIVE_STATES)
    if any(job.parameters["name"] == name for job in under_way):
        return f"An import of the corpus {name} is under way already; see the list of jobs."
    return ""


@transaction.atomic
def start_import(
    *,
    folder: str,
    name: str,
    upload: str = "",
    sha256: str = "",
    by: Any = None,
    run_here: bool = False,
    **options: Any,
) -> Job:
    """Create the job that imports the corpus `name` from a folder on this server; `run_here` as in `create_job`.

    Args:
        folder: where the corpus is from; of an archive its name.
        upload: the file among the uploads that is that archive, to be unpacked first; `sha256`: what it must hash to.
        options: of `ImportOptions`.

    Raises:
        NotPossible: an import of this corpus is under way, it is another organizer's, or the name is that of a page.
    """
    parameters: dict[str, Any] = {"folder": folder, "name": name} | asdict(ImportOptions(**options))
    if upload:
        parameters |= {"upload": upload, "sha256": sha256}
    if sentence := import_problem(name, by):
        same = Job.objects.filter(kind="import-corpus", state__in=ACTIVE_STATES, parameters=parameters).first()
        raise NotPossible(sentence, under_way=same if may_import(name, by) else None)
    title = f"Import of the corpus {name}"
    return create_job(kind="import-corpus", title=title, parameters=parameters, by=by, corpus=name, run_here=run_here)


def start_demo_import(*, by: Any) -> Job:
    """Import the demo corpus that comes with the portal, for all organizers.

    Raises:
        NotPossible: as of `start_import`.
    """
    return start_import(folder=str(DEMO_CORPUS), name=DEMO, is_shared=True, by=by)


@transaction.atomic
def change_corpus(*, corpus: Corpus, by: Any, name: str, **stated: str) -> Corpus:
    """Give a corpus another short name; its jobs follow. `stated`: its licence and link, where these change, too.

    Raises:
        NotPossible: the name is taken, or an import of the corpus is under way.
    """
    corpus = Corpus.objects.select_for_update(of=("self",)).get(pk=corpus.pk)
    before, unlike = corpus.name, {field: getattr(corpus, field) for field in stated}
    if stated and unlike != stated:
        for field, value in stated.items():
            setattr(corpus, field, value)
        corpus.save(update_fields=[*stated, "updated_at"])
        audit.record("corpus.changed", corpus, actor=by, changes=audit.changes(unlike, stated))
    if name == before:
        return corpus
    if name in RESERVED_CORPORA or Corpus.objects.filter(name__iexact=name).exclude(pk=corpus.pk).exists():
        raise NotPossible(f"The name {name} is taken; choose another name.")
    jobs = Job.objects.filter(corpus=before)
    if jobs.filter(kind="import-corpus", state__in=ACTIVE_STATES).exists():
        raise NotPossible("An import of this corpus is under way. Rename it once that has ended.")
    corpus.name = name
    corpus.save(update_fields=["name", "updated_at"])
    for job in Job.objects.filter(kind="import-corpus", parameters__name=before):
        job.parameters["name"] = name
        job.save(update_fields=["parameters"])
    jobs.update(corpus=name)
    audit.record("corpus.renamed", corpus, actor=by, changes=audit.changes({"name": before}, {"name": name}))
    return corpus


@transaction.atomic
def share_corpus(*, corpus: Corpus, is_shared: bool, by: Any) -> Corpus:
    """Let all organizers see and hear a corpus, or again only its owner and the organizers of its editions.

    Raises:
        NotPossible: it is another's.
    """
    if corpus.created_by_id != by.pk:
        raise NotPossible("Only the owner of a corpus decides who sees it; the operator can name another owner.")
    corpus.is_shared = is_shared
    corpus.save(update_fields=["is_shared", "updated_at"])
    audit.record("corpus.shared" if is_shared else "corpus.unshared", corpus, actor=by)
    return corpus


# What an import writes ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeptAudio:
    """Where the audio of an utterance is stored and what it is; `converted_from` is empty for an exact copy."""

    key: str
    samples: int
    rate_hz: int
    converted_from: str = ""


def save_corpus(
    draft: CorpusDraft,
    kept: Mapping[str, KeptAudio],
    *,
    name: str,
    source: str,
    is_synthetic: bool,
    is_shared: bool,
    by: Any,
) -> dict[str, int] | list[Problem]:
    """Add the draft to the corpus `name`; returns how many of each thing are new, or all contradictions.

    Raises:
        JobFailure: somebody else has made a corpus of this name meanwhile.
    """
    with transaction.atomic():
        if not may_import(name, by):
            raise JobFailure(
                f"The name {name} was taken meanwhile by another organizer's corpus. Nothing was changed.",
                actor=Actor.ORGANIZER,
                remedy="Start the import again under another name.",
            )
        defaults: dict[str, Any] = {"layout": draft.layout or "", "source": source, "licence": draft.licence}
        defaults |= {"is_synthetic": is_synthetic, "created_by": by, "is_shared": is_shared}
        corpus, _ = Corpus.objects.get_or_create(name=name, defaults=defaults)
        # Two imports of one corpus write one after the other.
        corpus = Corpus.objects.select_for_update().get(pk=corpus.pk)
        writer = _Writer(corpus, draft, kept)
        contradictions = writer.contradictions()
        if contradictions:
            transaction.set_rollback(True)
            return contradictions
        gained = writer.write()
        if draft.licence and not corpus.licence:
            corpus.licence = draft.licence
            corpus.save(update_fields=["licence", "updated_at"])
        audit.record("corpus.imported", corpus, actor=by, source=source, **gained)
        for edition in corpus.editions.filter(shares_data=True) if any(gained.values()) else ():
            prepare_data_files(edition=edition, by=by)
        return gained


class _Writer:
    """One draft against what its corpus holds already."""

    def __init__(self, corpus: Corpus, draft: CorpusDraft, kept: Mapping[str, KeptAudio]) -> None:
        self.corpus = corpus
        self.draft = draft
        self.kept = kept
        self.speakers = {speaker.name: speaker for speaker in corpus.speakers.all()}
        self.utterances = {utterance.name: utterance for utterance in corpus.utterances.select_related("speaker")}
        self.data_sets = {data_set.name: data_set for data_set in corpus.data_sets.all()}

    def contradictions(self) -> list[Problem]:
        """Return everything in which the draft says otherwise than the corpus."""
        found = [
            _contradiction("gender", f"speaker {new.name}", speaker.gender, new.gender)
            for new in self.draft.speakers
            if (speaker := self.speakers.get(new.name)) and speaker.gender != new.gender
        ]
        for new in self.draft.utterances:
            if utterance := self.utterances.get(new.name):
                found += self._utterance_contradictions(new, utterance)
        for data_set in self.draft.data_sets:
            if known := self.data_sets.get(data_set.name):
                members = set(known.utterances.values_list("name", flat=True))
                if (known.role, members) != (data_set.role, set(data_set.utterances)):
                    was, now = (_describe(known.role, members), _describe(data_set.role, data_set.utterances))
                    found.append(_contradiction("data-set", f"data set {data_set.name}", was, now))
        return found

    def _utterance_contradictions(self, new: DraftUtterance, old: Utterance) -> list[Problem]:
        audio = self.kept.get(new.name)
        pairs = [
            ("speaker", old.speaker.name, new.speaker),
            ("transcript", old.transcript, new.transcript),
            ("audio", _recording(old.audio), _recording(audio.key if audio and old.audio else old.audio)),
        ]
        place = f"utterance {new.name}"
        return [_contradiction(what, f"{place}, {what}", was, now) for what, was, now in pairs if was != now]

    def write(self) -> dict[str, int]:
        """Add what is missing; how many of each thing were, by the names of `GAINED`."""
        writers = [self._write_speakers, self._write_utterances, self._attach_audio]
        writers += [self._write_data_sets, self._write_trial_lists]
        return {what: write() for what, write in zip(GAINED, writers, strict=True)}

    def _write_speakers(self) -> int:
        new = [
            Speaker(corpus=self.corpus, name=speaker.name, gender=speaker.gender)
            for speaker in self.draft.speakers
            if speaker.name not in self.speakers
        ]
        Speaker.objects.bulk_create(new, batch_size=BATCH)
        self.speakers = {speaker.name: speaker for speaker in self.corpus.speakers.all()}
        self.speakers_by_key = {speaker.pk: speaker for speaker in self.speakers.values()}
        return len(new)

    def _write_utterances(self) -> int:
        new = [
            Utterance(
                corpus=self.corpus,
                speaker=self.speakers[utterance.speaker],
                name=utterance.name,
                transcript=utterance.transcript,
                duration_s=utterance.duration_s,
            )
            for utterance in self.draft.utterances
            if utterance.name not in self.utterances
        ]
        Utterance.objects.bulk_create(new, batch_size=BATCH)
        self.utterances = {utterance.name: utterance for utterance in self.corpus.utterances.all()}
        return len(new)

    def _attach_audio(self) -> int:
        fields = ["audio", "samples", "rate_hz", "duration_s", "converted_from"]
        gaining = [self.utterances[name] for name in self.kept if not self.utterances[name].audio]
        for utterance in gaining:
            kept = self.kept[utterance.name]
            values = (kept.key, kept.samples, kept.rate_hz, kept.samples / kept.rate_hz, kept.converted_from)
            for field, value in zip(fields, values, strict=True):
                setattr(utterance, field, value)
        Utterance.objects.bulk_update(gaining, fields, batch_size=BATCH)
        return len(gaining)

    def _write_data_sets(self) -> int:
        new = [data_set for data_set in self.draft.data_sets if data_set.name not in self.data_sets]
        members = DataSet.utterances.through
        for draft in new:
            data_set = DataSet.objects.create(corpus=self.corpus, name=draft.name, role=draft.role, split=draft.split)
            rows = [members(dataset_id=data_set.pk, utterance_id=self.utterances[name].pk) for name in draft.utterances]
            members.objects.bulk_create(rows, batch_size=BATCH)
        self.data_sets = {data_set.name: data_set for data_set in self.corpus.data_sets.all()}
        return len(new)

    def _write_trial_lists(self) -> int:
        gained = 0
        for draft in self.draft.trial_lists:
            sets = {name: self.data_sets[getattr(draft, name)] for name in ("trial_set", "enrolment_set")}
            _, is_new = TrialList.objects.get_or_create(**sets, defaults=self._trial_list_values(draft))
            gained += is_new
        return gained

    def _members(self, data_set: str) -> tuple[str, ...]:
        return next(draft.utterances for draft in self.draft.data_sets if draft.name == data_set)

    def _speaker_of(self, utterance: str) -> Speaker:
        return self.speakers_by_key[self.utterances[utterance].speaker_id]

    def _trial_list_values(self, draft: DraftTrialList) -> dict[str, Any]:
        if draft.trials is not None:
            models = {trial.model for trial in draft.trials}
        else:
            genders = {self._speaker_of(name).gender for name in self._members(draft.trial_set)}
            enrolled = {self._speaker_of(name) for name in self._members(draft.enrolment_set)}
            models = {speaker.name for speaker in enrolled if speaker.gender in genders}
        counts = {"target_count": draft.target_count, "nontarget_count": draft.nontarget_count}
        return {"origin": draft.origin, "model_count": len(models), "file": _store_trials(draft), **counts}


def _store_trials(draft: DraftTrialList) -> str:
    if draft.trials is None:
        return ""
    text = io.StringIO()
    write_trials(draft.trials, text)
    return store_bytes(text.getvalue().encode(), ".trials")


def _recording(key: str) -> str:
    """Return a stored file as a reader may compare it: by the beginning of its hash."""
    return f"SHA-256 {Path(key).stem[:16]}…" if key else "no audio"


def _describe(role: str, names: Iterable[str]) -> str:
    return f"{role}, {len(set(names))} utterances"


def _contradiction(kind: str, what: str, was: str, now: str) -> Problem:
    return Problem(
        code=f"corpus-has-other-{kind}",
        file=what,
        expected=f"“{was}”, as the corpus has it",
        found=f"“{now}”",
        remedy="A corpus does not change, because results depend on it: import this as a corpus of another name.",
    )
