"""Data sets and trial lists of a corpus: those of files, those made where no file gives them, and the checks of both.

Names follow the challenge: ``<corpus>_enrolls``, ``<corpus>_trials_f``, ``<corpus>_trials_m``,
``<corpus>_trials_f_common``, ``<corpus>_train``. A trial set belongs to the enrolment set whose name is the same up to
``_enrolls`` or ``_trials``.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.problems import ProblemList
from evaluation.formats.kaldi import KaldiTrial, Parsed
from portal.intake.corpora.draft import (
    CorpusDraft,
    DraftDataSet,
    DraftSpeaker,
    DraftTrialList,
    DraftUtterance,
    FilePlace,
    Gender,
    Layout,
    Origin,
    Role,
)

FEWEST_TO_ENROL = 4
# Errors that leave a row its identifier, speaker, gender and role.
_BESIDE_SETS = {"missing-file", "path-outside", "file-listed-twice", "wrong-duration", "unknown-word"}
_SET_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")  # it becomes part of addresses


def data_set(name: str, role: Role, utterances: Iterable[str]) -> DraftDataSet:
    """Return a data set with its utterances in order and the split read off its name."""
    words = re.split(r"[^a-z]+", name.lower())
    split = next((split for split in ("dev", "test", "train") if split in words), "")
    return DraftDataSet(name, role, split, tuple(sorted(utterances)))


def split_into_sets(
    corpus: str,
    utterances: Sequence[DraftUtterance],
    genders: Mapping[str, Gender],
    *,
    enrolment_share: float,
) -> list[DraftDataSet]:
    """Return enrolment and trial sets of a corpus that states none, without speakers whose gender is not known.

    Of every speaker with at least 4 utterances, `enrolment_share` (rounded, at least one, never
    all) is enrolment: those with the smallest SHA-256 of their identifier, so that the choice is
    the same on every machine and spread over recording sessions. All others are trials, by gender;
    speakers with fewer utterances are in trials without being enrolled, as in the challenge. A
    corpus in which every speaker has fewer is one training set.
    """
    by_speaker: dict[str, list[str]] = defaultdict(list)
    for utterance in utterances:
        if utterance.speaker in genders:
            by_speaker[utterance.speaker].append(utterance.name)
    enrolled = {
        name
        for names in by_speaker.values()
        if len(names) >= FEWEST_TO_ENROL
        for name in _chosen(names, enrolment_share)
    }
    if not enrolled:
        return training_sets(corpus, utterances)
    sets = [data_set(f"{corpus}_enrolls", "enrolment", enrolled)]
    for gender in ("f", "m"):
        names = [
            utterance.name
            for utterance in utterances
            if genders.get(utterance.speaker) == gender and utterance.name not in enrolled
        ]
        if names:
            sets.append(data_set(f"{corpus}_trials_{gender}", "trial", names))
    return sets


def training_sets(corpus: str, utterances: Sequence[DraftUtterance]) -> list[DraftDataSet]:
    """Return all utterances as the training set ``<corpus>_train``; nothing where there are none."""
    names = [utterance.name for utterance in utterances]
    return [data_set(f"{corpus}_train", "training", names)] if names else []


def _chosen(names: Sequence[str], share: float) -> list[str]:
    count = min(max(round(share * len(names)), 1), len(names) - 1)
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:count]


def find_enrolment_set(trial_set: str, enrolment_sets: Collection[str]) -> str | None:
    """Return the enrolment set that a trial set is compared with.

    Names decide where they follow the challenge; another name goes with the only enrolment set.
    """
    prefix, follows, _ = trial_set.partition("_trial")
    fitting = [name for name in enrolment_sets if name.partition("_enrol")[0] == prefix]
    if follows and all("_enrol" in name for name in enrolment_sets):
        return fitting[0] if len(fitting) == 1 else None
    return next(iter(enrolment_sets)) if len(enrolment_sets) == 1 else None


@dataclass(frozen=True, slots=True)
class _TrialLists:
    """Makes and checks the trial lists of a corpus; what is wrong is added to `problems`.

    Attributes:
        speakers: speaker of every utterance.
        genders: gender of every speaker; those without one take no part in products.
        listing: what to name where no other file states a data set.
    """

    speakers: Mapping[str, str]
    genders: Mapping[str, Gender]
    listing: FilePlace
    problems: ProblemList

    def product(self, enrolment: DraftDataSet, trial: DraftDataSet) -> DraftTrialList:
        """Return every enrolled speaker against every trial utterance of the same gender, counted only."""
        models = {self.speakers[name] for name in enrolment.utterances}
        models_of_gender = Counter(self.genders[model] for model in models if model in self.genders)
        trial_speakers = [self.speakers[name] for name in trial.utterances if self.speakers[name] in self.genders]
        pairs = sum(models_of_gender[self.genders[speaker]] for speaker in trial_speakers)
        targets = sum(speaker in models for speaker in trial_speakers)
        return _trial_list(enrolment, trial, "same-gender-product", targets, pairs - targets, None)

    def given(
        self, enrolment: DraftDataSet, trial: DraftDataSet, parsed: Parsed[tuple[KaldiTrial, ...]], file: str
    ) -> DraftTrialList:
        """Return a trial list from a file, its trials checked against speakers, genders and both sets.

        A model or utterance that is not known is one problem, however many lines name it.
        """
        models = {self.speakers[name] for name in enrolment.utterances}
        utterances = frozenset(trial.utterances)
        unknown_models: dict[str, list[int]] = defaultdict(list)
        unknown_utterances: dict[str, list[int]] = defaultdict(list)
        crossed: dict[str, list[int]] = defaultdict(list)
        for each, line in zip(parsed.content, parsed.lines, strict=True):
            if each.model not in models:
                unknown_models[each.model].append(line)
            if each.utterance not in utterances:
                unknown_utterances[each.utterance].append(line)
                continue
            speaker = self.speakers[each.utterance]
            if each.target is not (speaker == each.model):
                right, stated = ("nontarget", "target") if each.target else ("target", "nontarget")
                named = each._asdict() | {"speaker": speaker, "right": right, "stated": stated}
                self.problems.add(FilePlace(file, line).problem("contradicting-target", **named))
            elif each.model in models and self.genders.get(each.model) != self.genders.get(speaker):
                crossed[f"{each.model} against {speaker}"].append(line)
        for kind, tally in (("unknown-model", unknown_models), ("unknown-utterance/trials", unknown_utterances)):
            for name, lines in tally.items():
                told = f"{len(lines)} line{'s' if len(lines) > 1 else ''}"
                here = FilePlace(file, lines[0])
                self.problems.add(here.problem(kind, enrolment_set=enrolment.name, name=name, lines=told))
        if crossed:
            pair, lines = next(iter(crossed.items()))
            number = sum(map(len, crossed.values()))
            self.problems.add(FilePlace(file, lines[0]).problem("mixed-gender-trials", number=number, pair=pair))
        targets = sum(each.target for each in parsed.content)
        return _trial_list(enrolment, trial, "given", targets, len(parsed.content) - targets, parsed.content)

    def check(self, data_sets: Iterable[DraftDataSet], lists: Iterable[DraftTrialList]) -> None:
        """What deserves a look in data sets and trial lists of any origin."""
        sets = {each.name: each for each in data_sets}
        for name in sets:
            if not _SET_NAME.fullmatch(name):
                self._tell("bad-name/data-set", name=name[:80])
        for each in lists:
            enrolment, trial = sets[each.enrolment_set], sets[each.trial_set]
            for count, kind in ((each.target_count, "target"), (each.nontarget_count, "nontarget")):
                if not count:
                    self._tell("one-sided-trials", trials=each.name, kind=kind)
            names = {"enrolment": enrolment.name, "trial": trial.name}
            if both := sorted(set(enrolment.utterances) & set(trial.utterances)):
                self._tell("enrolled-trial", number=len(both), first=both[0], **names)
            models = {self.speakers[name] for name in enrolment.utterances}
            if unenrolled := sorted({self.speakers[name] for name in trial.utterances} - models):
                self._tell("not-enrolled", number=len(unenrolled), first=unenrolled[0], **names)

    def _tell(self, kind: str, /, **values: Any) -> None:
        self.problems.add(self.listing.problem(kind, **values))


def _trial_list(enrolment: DraftDataSet, trial: DraftDataSet, origin: Origin, *counted: Any) -> DraftTrialList:
    return DraftTrialList(f"{enrolment.name}-{trial.name}", enrolment.name, trial.name, origin, *counted)


def finish_draft(
    layout: Layout,
    checked: tuple[tuple[DraftSpeaker, ...], tuple[DraftUtterance, ...]],
    data_sets: Sequence[DraftDataSet],
    *,
    listing: FilePlace,
    licence: str,
    problems: ProblemList,
    synthetic: bool = False,
    given: Mapping[str, tuple[FilePlace, Parsed[tuple[KaldiTrial, ...]] | None]] | None = None,
) -> CorpusDraft:
    """Return the draft of a corpus with its trial lists.

    Where a row did not come into its set, its problem explains what the sets lack, and no products are made.

    Args:
        given: of each trial set the file that defines it, and its trials where a file has some; products else. None
            for a layout that states no trials.
    """
    speakers, utterances = checked
    genders = {each.name: each.gender for each in speakers}
    maker = _TrialLists({each.name: each.speaker for each in utterances}, genders, listing, problems)
    enrolment = {each.name: each for each in data_sets if each.role == "enrolment"}
    is_sound = problems.error_codes() <= _BESIDE_SETS and all(each.speaker in genders for each in utterances)
    lists: list[DraftTrialList] = []
    for trial in (each for each in data_sets if each.role == "trial" and (is_sound or given is not None)):
        place, trials = given[trial.name] if given is not None else (listing, None)
        name = find_enrolment_set(trial.name, enrolment)
        if name is None:
            if is_sound:
                found = ", ".join(enrolment) or "no enrolment set"
                wanted = {"trial_set": trial.name, "prefix": trial.name.partition("_trial")[0]}
                problems.add(place.problem("no-enrolment-set", found=found, **wanted))
        elif trials is None:
            lists.append(maker.product(enrolment[name], trial))
        else:
            lists.append(maker.given(enrolment[name], trial, trials, place.file))
    maker.check(data_sets, lists if is_sound else ())
    return CorpusDraft(
        layout, speakers, utterances, tuple(data_sets), tuple(lists), synthetic, licence, problems.report()
    )
