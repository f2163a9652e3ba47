"""A corpus as it was read: plain data, not yet in any database.

Every reader ends in a `CorpusDraft`. A draft with an error among its problems must not be imported;
its other parts are then as complete as the files allowed, for the report. Conventions: durations in
seconds; genders ``f`` and ``m``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal

from evaluation.formats.kaldi import Trial
from evaluation.formats.problems import Problem, has_errors

Gender = Literal["f", "m"]
Role = Literal["enrolment", "trial", "training"]
Origin = Literal["given", "same-gender-product"]


class Layout(StrEnum):
    """How the files of a corpus are arranged."""

    LIBRISPEECH = "librispeech"
    VCTK = "vctk"
    KALDI = "kaldi"
    MANIFEST = "manifest"


@dataclass(frozen=True, slots=True)
class DraftSpeaker:
    name: str
    gender: Gender


@dataclass(frozen=True, slots=True)
class DraftUtterance:
    """One recording.

    Attributes:
        name: the utterance's identifier, unique in the draft.
        speaker: name of its speaker.
        transcript: normalised (`normalise_transcript`); empty where there is none.
        audio: the file to open; None where it is missing or the draft was read without audio.
        duration_s: what a listing states; None where none does (the audio was not opened).
        file: the audio as its owner knows it, for reports.
    """

    name: str
    speaker: str
    transcript: str
    audio: Path | None
    duration_s: float | None
    file: str = ""


@dataclass(frozen=True, slots=True)
class DraftDataSet:
    """Utterances used together; `split`, read off the name, is dev, test, train or empty."""

    name: str
    role: Role
    split: str
    utterances: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DraftTrialList:
    """The comparisons of one trial set with one enrolment set.

    Attributes:
        name: ``<enrolment set>-<trial set>``.
        origin: ``given`` in a file, or every model against every utterance of its gender.
        target_count, nontarget_count: number of pairs of the same speaker, and of different ones.
        trials: the given pairs in file order; None for a product (`trial_pairs` makes them).
    """

    name: str
    enrolment_set: str
    trial_set: str
    origin: Origin
    target_count: int
    nontarget_count: int
    trials: tuple[Trial, ...] | None


@dataclass(frozen=True, slots=True)
class CorpusDraft:
    """Everything read from one folder.

    Attributes:
        layout: the layout it was read as; None where none fits.
        synthetic: whether any of the speech is made by a machine.
        licence: as stated by the owner, several joined by ``; ``; empty where nothing was found.
        problems: all faults, grouped by cause.
    """

    layout: Layout | None
    speakers: tuple[DraftSpeaker, ...]
    utterances: tuple[DraftUtterance, ...]
    data_sets: tuple[DraftDataSet, ...]
    trial_lists: tuple[DraftTrialList, ...]
    synthetic: bool
    licence: str
    problems: tuple[Problem, ...]

    @property
    def is_usable(self) -> bool:
        return bool(self.utterances) and not has_errors(self.problems)


def empty_draft(layout: Layout | None, problems: tuple[Problem, ...]) -> CorpusDraft:
    """A draft of a folder that could not be read at all."""
    return CorpusDraft(layout, (), (), (), (), synthetic=False, licence="", problems=problems)


def trial_pairs(draft: CorpusDraft, trial_list: DraftTrialList) -> Iterator[Trial]:
    """The trials of a list, one by one: as given, or the product model by model."""
    if trial_list.trials is not None:
        yield from trial_list.trials
        return
    gender_of = {speaker.name: speaker.gender for speaker in draft.speakers}
    speaker_of = {utterance.name: utterance.speaker for utterance in draft.utterances}
    sets = {data_set.name: data_set for data_set in draft.data_sets}
    models = sorted({speaker_of[name] for name in sets[trial_list.enrolment_set].utterances})
    trials = [(name, speaker_of[name]) for name in sets[trial_list.trial_set].utterances]
    for model in models:
        for name, speaker in trials:
            if gender_of[model] == gender_of[speaker]:
                yield Trial(model, name, model == speaker)
