"""What a complete 2020 or 2022 result file holds, line by line, and such a file once it was read.

**Expected lines** (`expected_lines`) are as the recipe of the edition has them. Reading, checking and writing use the
same list: a line that it lacks is unexpected, one that the file lacks is missing.

**A file that was read** (`ResultFile`) holds every line that was understood, with its numbers; `is_member` says which
of these an average is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from common.errors import ProblemsError
from common.problems import Problem
from evaluation.formats.results import KINDS, Gender, NumberIdentity, ReportedNumber, ResultEntry, Speech
from evaluation.protocols.recipes import Average, DataSet, Recipe

SHORT = {Speech.ORIGINAL: "orig", Speech.ANONYMISED: "anon"}
_PAIRS = (
    (Speech.ORIGINAL, Speech.ORIGINAL),
    (Speech.ORIGINAL, Speech.ANONYMISED),
    (Speech.ANONYMISED, Speech.ANONYMISED),
)


class ResultKind(StrEnum):
    """Which of the three files: their models were trained on original or anonymised speech, or it sums up both."""

    ORIGINAL = "original"
    RETRAINED = "retrained"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class ExpectedLine:
    """One line: its block, kind, language model, whether the block's name stands in it, and what it measures."""

    name: str
    kind: str
    language_model: str
    inline: bool
    identities: tuple[NumberIdentity, ...]

    @property
    def slot(self) -> tuple[str, str, str]:
        return self.name, self.kind, self.language_model


def expected_lines(recipe: Recipe, kind: ResultKind) -> tuple[ExpectedLine, ...]:
    """Return every line in the order of the official scripts.

    Raises:
        ProblemsError: the edition has no such file.
    """
    if recipe.results is None or (kind is not ResultKind.ORIGINAL and not recipe.results.trial_set):
        raise ProblemsError(f"{recipe.title} has no result file of the kind “{kind}”.")
    if kind is ResultKind.SUMMARY:
        return tuple(_summary(recipe))
    training = Speech.ANONYMISED if kind is ResultKind.RETRAINED else Speech.ORIGINAL
    lines = [*_detection(recipe, training), *_recognition(recipe, training)]
    if kind is ResultKind.RETRAINED:
        lines += _trial_sets(recipe)
    return tuple(lines)


def detection_name(recipe: Recipe, trials: DataSet, enrolment: Speech, speech: Speech) -> str:
    """Name of the block and directory of a verification test, such as ``ASV-libri_dev_enrolls-libri_dev_trials_f``."""
    suffix = {Speech.ORIGINAL: "", Speech.ANONYMISED: recipe.anonymised_suffix or "_anon"}
    return f"ASV-{trials.enrolment}{suffix[enrolment]}-{trials.name}{suffix[speech]}"


def recognition_name(recipe: Recipe, data_set: DataSet, speech: Speech) -> str:
    """Name of the block and file of one recognition test, such as ``ASR-libri_dev_asr``."""
    return f"ASR-{data_set.name}{recipe.anonymised_suffix if speech is Speech.ANONYMISED else ''}"


def _detection(recipe: Recipe, training: Speech) -> Iterator[ExpectedLine]:
    assert recipe.results is not None  # noqa: S101
    tests = {
        detection_name(recipe, trials, enrolment, speech): (trials, enrolment, speech)
        for trials in recipe.sets("trial")
        for enrolment, speech in _PAIRS
    }
    for name in sorted(tests):
        for kind in recipe.results.detection:
            trials, *speeches = tests[name]
            yield _line(name, kind, trials, training, *speeches, inline=False)


def _line(name: str, kind: str, trials: DataSet, *speeches: Speech, inline: bool) -> ExpectedLine:
    numbers, gender = KINDS[kind].numbers, Gender(trials.gender)
    identities = (NumberIdentity(trials.name, gender, n.metric, n.estimator, *speeches) for n in numbers)
    return ExpectedLine(name, kind, "", inline, tuple(identities))


def _recognition(recipe: Recipe, training: Speech) -> Iterator[ExpectedLine]:
    assert recipe.results is not None  # noqa: S101
    tests = {
        recognition_name(recipe, one, speech): (one, speech) for one in recipe.sets("recognition") for speech in Speech
    }
    for name in sorted(tests):
        for model in recipe.results.recognition:
            yield _recognition_line(name, model, *tests[name], training, inline=False)


def _recognition_line(
    name: str, model: str, data_set: DataSet, speech: Speech, training: Speech, *, inline: bool
) -> ExpectedLine:
    identity = NumberIdentity(data_set.name, Gender.ALL, "wer", model, training, None, speech)
    return ExpectedLine(name, "wer", model, inline, (identity,))


def _trial_sets(recipe: Recipe) -> Iterator[ExpectedLine]:
    assert recipe.results is not None  # noqa: S101
    for kinds, inline in ((recipe.results.trial_set, True), (recipe.results.distinctiveness, False)):
        for trials in recipe.sets("trial"):
            for kind in kinds:
                yield _line(trials.name, kind, trials, inline=inline)


def _summary(recipe: Recipe) -> Iterator[ExpectedLine]:
    assert recipe.results is not None  # noqa: S101
    every = recipe.sets("trial")
    by_name = [one for split in ("dev", "test") for one in sorted(recipe.sets("trial", split), key=lambda s: s.name)]
    for speech, tests in zip(Speech, (every, by_name), strict=True):
        for trials in tests:
            name = detection_name(recipe, trials, speech, speech)
            yield _line(name, "eer", trials, speech, speech, speech, inline=True)
    for speech in Speech:
        for one in recipe.sets("recognition"):
            name = recognition_name(recipe, one, speech)
            yield _recognition_line(name, recipe.results.ranked_recognition, one, speech, speech, inline=True)
    for kind in ("pitch", "gain"):
        for trials in every:
            yield _line(trials.name, kind, trials, inline=True)
    for average in recipe.track.averages:
        yield from _averages(average)


def _averages(average: Average) -> Iterator[ExpectedLine]:
    speeches = tuple(Speech) if average.metric in ("eer", "wer") else (None,)
    for speech in speeches:
        for split in average.weights:
            identity = NumberIdentity(f"average_{split}", Gender.ALL, average.metric, average.estimator)
            if speech is not None:
                enrolment = speech if average.metric == "eer" else None
                identity = replace(identity, training=speech, enrolment=enrolment, speech=speech)
            label = f"{average.label} {split}" + ("" if speech is None else f" {SHORT[speech]}")
            yield ExpectedLine(label, "average", "", True, (identity,))


RETRAINED_MODEL, ORIGINAL_MODEL = "user_asr_eval_anon", "asr_eval"


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file that was read.

    Attributes:
        name: the file as its owner knows it.
        edition: such as ``2022``.
        entries: every line that was understood, in file order, repeated ones included.
        reported_numbers: the numbers of the expected lines, in file order; of a repeated line the first one.
        repeated: the numbers of the repetitions.
        lines: number of lines.
        problems: everything that could be seen from this file alone.
    """

    name: str
    edition: str
    kind: ResultKind
    entries: tuple[ResultEntry, ...]
    reported_numbers: tuple[ReportedNumber, ...]
    repeated: tuple[ReportedNumber, ...]
    lines: int
    problems: tuple[Problem, ...]


def path_training(path: str) -> Speech | None:
    """Return the speech that the recognizer of a decoding path was trained on; None where the path does not say."""
    if RETRAINED_MODEL in path.split("/"):
        return Speech.ANONYMISED
    return Speech.ORIGINAL if ORIGINAL_MODEL in path.split("/") else None


def is_member(identity: NumberIdentity, average: NumberIdentity) -> bool:
    """Return whether a number is of the kind that an average is over, whatever the data set."""
    alike = replace(identity, data_set=average.data_set, gender=average.gender)
    return alike == average and not identity.data_set.startswith("average_")
