"""Data sets and trial lists where no file gives them, and the checks of both.

Names follow the challenge: ``<corpus>_enrolls``, ``<corpus>_trials_f``, ``<corpus>_trials_m``,
``<corpus>_trials_f_common``, ``<corpus>_train``. A trial set belongs to the enrolment set whose
name is the same up to ``_enrolls`` or ``_trials``.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem, Severity
from portal.challenges.readers.draft import (
    CorpusDraft,
    DraftDataSet,
    DraftSpeaker,
    DraftTrialList,
    DraftUtterance,
    Gender,
    Layout,
    Role,
)
from portal.challenges.readers.rows import Place

FEWEST_TO_ENROL = 4
# Errors that leave a row its identifier, speaker, gender and role.
_BESIDE_SETS = {"missing-file", "path-outside", "file-listed-twice", "wrong-duration", "unknown-word"}
_SET_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")  # it becomes part of addresses


def data_set(name: str, role: Role, utterances: Iterable[str]) -> DraftDataSet:
    """A data set with its utterances in order and the split read off its name."""
    words = re.split(r"[^a-z]+", name.lower())
    split = next((split for split in ("dev", "test", "train") if split in words), "")
    return DraftDataSet(name, role, split, tuple(sorted(utterances)))


def split_into_sets(
    corpus: str,
    utterances: Sequence[DraftUtterance],
    genders: Mapping[str, Gender],
    *,
    enrolment_share: float,
    common: Collection[str] = (),
) -> list[DraftDataSet]:
    """Enrolment and trial sets of a corpus that states none, without speakers whose gender is not known.

    Of every speaker with at least 4 utterances, `enrolment_share` (rounded, at least one, never
    all) is enrolment: those with the smallest SHA-256 of their identifier, so that the choice is
    the same on every machine and spread over recording sessions. All others are trials, by gender;
    speakers with fewer utterances are in trials without being enrolled, as in the challenge. A
    corpus in which every speaker has fewer is one training set.

    Args:
        common: utterances that are trials in any case, kept apart as ``…_common`` (VCTK's
            sentences that everyone reads); they do not count for the share.
    """
    by_speaker: dict[str, list[str]] = defaultdict(list)
    for utterance in utterances:
        if utterance.name not in common and utterance.speaker in genders:
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
    for ending, is_common in (("", False), ("_common", True)):
        for gender in ("f", "m"):
            names = [
                utterance.name
                for utterance in utterances
                if genders.get(utterance.speaker) == gender
                and utterance.name not in enrolled
                and (utterance.name in common) is is_common
            ]
            if names:
                sets.append(data_set(f"{corpus}_trials_{gender}{ending}", "trial", names))
    return sets


def training_sets(corpus: str, utterances: Sequence[DraftUtterance]) -> list[DraftDataSet]:
    """All utterances as the training set ``<corpus>_train``; nothing where there are none."""
    names = [utterance.name for utterance in utterances]
    return [data_set(f"{corpus}_train", "training", names)] if names else []


def _chosen(names: Sequence[str], share: float) -> list[str]:
    count = min(max(round(share * len(names)), 1), len(names) - 1)
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:count]


def enrolment_set_of(trial_set: str, enrolment_sets: Collection[str]) -> str | None:
    """The enrolment set that a trial set is compared with.

    Names decide where they follow the challenge; another name goes with the only enrolment set.
    """
    prefix, follows, _ = trial_set.partition("_trial")
    fitting = [name for name in enrolment_sets if name.partition("_enrol")[0] == prefix]
    if follows and all("_enrol" in name for name in enrolment_sets):
        return fitting[0] if len(fitting) == 1 else None
    return next(iter(enrolment_sets)) if len(enrolment_sets) == 1 else None


def product_trial_list(
    enrolment: DraftDataSet,
    trial: DraftDataSet,
    speakers: Mapping[str, str],
    genders: Mapping[str, Gender],
) -> DraftTrialList:
    """Every enrolled speaker against every trial utterance of the same gender, counted only.

    Args:
        speakers: speaker of every utterance.
        genders: gender of every speaker; those without one take no part.
    """
    models = {speakers[name] for name in enrolment.utterances}
    models_of_gender = Counter(genders[model] for model in models if model in genders)
    trial_speakers = [speakers[name] for name in trial.utterances if speakers[name] in genders]
    pairs = sum(models_of_gender[genders[speaker]] for speaker in trial_speakers)
    targets = sum(speaker in models for speaker in trial_speakers)
    return DraftTrialList(
        f"{enrolment.name}-{trial.name}",
        enrolment.name,
        trial.name,
        "same-gender-product",
        targets,
        pairs - targets,
        None,
    )


def product_trial_lists(
    data_sets: Sequence[DraftDataSet],
    speakers: Mapping[str, str],
    genders: Mapping[str, Gender],
    listing: Place,
    problems: ProblemList,
) -> list[DraftTrialList]:
    """One product per trial set; a trial set without an enrolment set is an error."""
    enrolment = {each.name: each for each in data_sets if each.role == "enrolment"}
    lists = []
    for trial in (each for each in data_sets if each.role == "trial"):
        name = enrolment_set_of(trial.name, enrolment)
        if name is None:
            problems.add(no_enrolment_set(trial.name, enrolment, listing))
        else:
            lists.append(product_trial_list(enrolment[name], trial, speakers, genders))
    return lists


def no_enrolment_set(trial_set: str, enrolment_sets: Iterable[str], listing: Place) -> Problem:
    found = ", ".join(enrolment_sets) or "no enrolment set"
    prefix = trial_set.partition("_trial")[0]
    return listing.problem(
        "no-enrolment-set",
        f"an enrolment set for {trial_set}, such as {prefix}_enrolls",
        found,
        "Add the enrolment set, or rename one so that the names agree.",
    )


def rows_are_sound(genders: Mapping[str, Gender], utterances: Iterable[DraftUtterance], problems: ProblemList) -> bool:
    """Whether every row came into its set; where one did not, its fault explains what the sets lack."""
    return problems.error_codes() <= _BESIDE_SETS and all(each.speaker in genders for each in utterances)


def check_data_sets(
    data_sets: Iterable[DraftDataSet],
    lists: Iterable[DraftTrialList],
    speakers: Mapping[str, str],
    listing: Place,
    problems: ProblemList,
) -> None:
    """What deserves a look in data sets and trial lists of any origin."""
    sets = {each.name: each for each in data_sets}
    for name in sets:
        if not _SET_NAME.fullmatch(name):
            expected = "a data set name of at most 80 letters a to z, digits, - and _"
            problems.add(listing.problem("bad-name", expected, f"“{name[:80]}”", "Rename the data set."))
    for each in lists:
        enrolment, trial = sets[each.enrolment_set], sets[each.trial_set]
        for count, kind in ((each.target_count, "target"), (each.nontarget_count, "nontarget")):
            if not count:
                found = f"no {kind} trial"
                remedy = "No equal error rate exists for it; more speakers or sessions are needed."
                expected = f"target and nontarget trials in {each.name}"
                problems.add(listing.problem("one-sided-trials", expected, found, remedy, Severity.WARNING))
        both = sorted(set(enrolment.utterances) & set(trial.utterances))
        if both:
            expected = f"no utterance in both {enrolment.name} and {trial.name}"
            found = f"{len(both)}, such as {both[0]}"
            remedy = "A recording compared with itself is no trial; take it out of one."
            problems.add(listing.problem("enrolled-trial", expected, found, remedy, Severity.WARNING))
        models = {speakers[name] for name in enrolment.utterances}
        unenrolled = sorted({speakers[name] for name in trial.utterances} - models)
        if unenrolled:
            expected = f"speakers of {trial.name} that are enrolled in {enrolment.name}"
            found = f"{len(unenrolled)} that are not, such as {unenrolled[0]}"
            remedy = "They take part as nontargets only, as in the challenge."
            problems.add(listing.problem("not-enrolled", expected, found, remedy, Severity.NOTE))


def finish_draft(
    layout: Layout,
    checked: tuple[tuple[DraftSpeaker, ...], tuple[DraftUtterance, ...]],
    data_sets: Sequence[DraftDataSet],
    *,
    listing: Place,
    licence: str,
    problems: ProblemList,
    synthetic: bool = False,
) -> CorpusDraft:
    """The draft of a corpus whose trial lists are products; where `rows_are_sound` says no, none are made."""
    speakers, utterances = checked
    speaker_of = {each.name: each.speaker for each in utterances}
    genders = {each.name: each.gender for each in speakers}
    lists: list[DraftTrialList] = []
    if rows_are_sound(genders, utterances, problems):
        lists = product_trial_lists(data_sets, speaker_of, genders, listing, problems)
    check_data_sets(data_sets, lists, speaker_of, listing, problems)
    return CorpusDraft(
        layout,
        speakers,
        utterances,
        tuple(data_sets),
        tuple(lists),
        synthetic,
        licence,
        problems.report(),
    )
