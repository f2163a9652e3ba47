"""Checks of trials that were given in a file, line by line but reported by cause."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.formats.kaldi import Parsed, Trial
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem, Severity
from portal.challenges.readers.draft import DraftDataSet, DraftTrialList, Gender
from portal.challenges.readers.rows import Place


class _Tally:
    """How often each name occurred in a fault, and in which line first."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.first_lines: dict[str, int] = {}

    def add(self, name: str, line: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
        self.first_lines.setdefault(name, line)


def given_trial_list(
    enrolment: DraftDataSet,
    trial: DraftDataSet,
    parsed: Parsed[tuple[Trial, ...]],
    speakers: Mapping[str, str],
    genders: Mapping[str, Gender],
    place: Place,
    problems: ProblemList,
) -> DraftTrialList:
    """A trial list from a file, its trials checked against speakers, genders and both sets.

    A model or utterance that is not known is one problem, however many lines name it.

    Args:
        speakers: speaker of every utterance of the corpus.
        genders: gender of every speaker.
        place: the file of the trials.
    """
    models = {speakers[name] for name in enrolment.utterances}
    utterances = frozenset(trial.utterances)
    unknown_models, unknown_utterances, crossed = _Tally(), _Tally(), _Tally()
    for each, line in zip(parsed.content, parsed.lines, strict=True):
        if each.model not in models:
            unknown_models.add(each.model, line)
        if each.utterance not in utterances:
            unknown_utterances.add(each.utterance, line)
            continue
        speaker = speakers[each.utterance]
        if each.target is not (speaker == each.model):
            problems.add(_contradiction(each, speaker, Place(place.file, line)))
        elif each.model in models and genders.get(each.model) != genders.get(speaker):
            crossed.add(f"{each.model} against {speaker}", line)
    _report(unknown_models, "unknown-model", f"a speaker of {enrolment.name}", place, problems)
    _report(unknown_utterances, "unknown-utterance", "an utterance of utt2spk", place, problems)
    _note_crossed(crossed, place, problems)
    targets = sum(each.target for each in parsed.content)
    return DraftTrialList(
        f"{enrolment.name}-{trial.name}",
        enrolment.name,
        trial.name,
        "given",
        targets,
        len(parsed.content) - targets,
        parsed.content,
    )


def _contradiction(trial: Trial, speaker: str, place: Place) -> Problem:
    right = "target" if speaker == trial.model else "nontarget"
    stated = "target" if trial.target else "nontarget"
    return place.problem(
        "contradicting-target",
        f"{right}, since utt2spk gives {trial.utterance} to {speaker}",
        f"{stated} for model {trial.model}",
        "Correct the trial or utt2spk.",
    )


def _note_crossed(crossed: _Tally, place: Place, problems: ProblemList) -> None:
    if crossed.counts:
        pair, line = next(iter(crossed.first_lines.items()))
        found = f"{sum(crossed.counts.values())} of two genders, first {pair}"
        remedy = "They were kept as given; nothing to do if that is meant."
        problems.add(
            Place(place.file, line).problem("mixed-gender-trials", "trials of one gender", found, remedy, Severity.NOTE)
        )


def _report(tally: _Tally, code: str, expected: str, place: Place, problems: ProblemList) -> None:
    for name, count in tally.counts.items():
        found = f"{name} in {count} line{'s' if count > 1 else ''}"
        remedy = "Add it there, or remove the trials that name it."
        line = tally.first_lines[name]
        problems.add(Place(place.file, line).problem(code, expected, found, remedy))
