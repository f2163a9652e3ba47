"""Writes a corpus draft to the database: one transaction that adds what is new and refuses what contradicts.

What a corpus holds never changes, because results rest on it; it only grows.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from evaluation.formats.kaldi import write_trials
from evaluation.formats.problems import Problem
from portal.challenges.models import Corpus, DataSet, Speaker, TrialList, Utterance
from portal.challenges.readers.draft import CorpusDraft, DraftTrialList, DraftUtterance
from portal.core import audit
from portal.core.storage import store_bytes

BATCH = 500
GAINED = ("speakers", "utterances", "audio_files", "data_sets", "trial_lists")


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
    by: Any,
) -> dict[str, int] | list[Problem]:
    """Add the draft to the corpus `name`; returns how many of each thing are new, or all contradictions."""
    with transaction.atomic():
        corpus, _ = Corpus.objects.get_or_create(
            name=name,
            defaults={
                "layout": draft.layout or "",
                "source": source,
                "licence": draft.licence[:200],
                "is_synthetic": is_synthetic,
                "created_by": by,
            },
        )
        # Two imports of one corpus write one after the other.
        corpus = Corpus.objects.select_for_update().get(pk=corpus.pk)
        writer = _Writer(corpus, draft, kept)
        contradictions = writer.contradictions()
        if contradictions:
            transaction.set_rollback(True)
            return contradictions
        gained = writer.write()
        audit.record("corpus.imported", corpus, actor=by, source=source, **gained)
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
        """Everything in which the draft says otherwise than the corpus."""
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
                    was, now = (
                        _describe(known.role, members),
                        _describe(data_set.role, data_set.utterances),
                    )
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
        writers = (
            self._write_speakers,
            self._write_utterances,
            self._attach_audio,
            self._write_data_sets,
            self._write_trial_lists,
        )
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
        gaining = [
            (self.utterances[name], audio) for name, audio in self.kept.items() if not self.utterances[name].audio
        ]
        for utterance, audio in gaining:
            utterance.audio = audio.key
            utterance.samples = audio.samples
            utterance.rate_hz = audio.rate_hz
            utterance.duration_s = audio.samples / audio.rate_hz
            utterance.converted_from = audio.converted_from
        fields = ["audio", "samples", "rate_hz", "duration_s", "converted_from"]
        Utterance.objects.bulk_update([utterance for utterance, _ in gaining], fields, batch_size=BATCH)
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
            _, is_new = TrialList.objects.get_or_create(
                trial_set=self.data_sets[draft.trial_set],
                enrolment_set=self.data_sets[draft.enrolment_set],
                defaults=self._trial_list_values(draft),
            )
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
        return {
            "origin": draft.origin,
            "model_count": len(models),
            "target_count": draft.target_count,
            "nontarget_count": draft.nontarget_count,
            "file": _store_trials(draft),
        }


def _store_trials(draft: DraftTrialList) -> str:
    if draft.trials is None:
        return ""
    text = io.StringIO()
    write_trials(draft.trials, text)
    return store_bytes(text.getvalue().encode(), ".trials")


def _recording(key: str) -> str:
    """A stored file as a reader may compare it: by the beginning of its hash."""
    return f"SHA-256 {Path(key).stem[:16]}…" if key else "no audio"


def _describe(role: str, names: Iterable[str]) -> str:
    return f"{role}, {len(set(names))} utterances"


def _contradiction(kind: str, what: str, was: str, now: str) -> Problem:
    return Problem(
        code=f"corpus-has-other-{kind}",
        file=what,
        expected=f"“{was}”, as the corpus has it",
        found=f"“{now}”",
        remedy="A corpus does not change, because results rest on it: import this as a corpus of another name.",
    )
