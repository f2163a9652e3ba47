"""What ``attack`` attacks: enrolment and trial sets as Kaldi directories list them, and the recipe that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import CommandError
from common.problems import Problem, find_first_error
from evaluation.cli.arguments import require_entries
from evaluation.formats.kaldi import read_spk2gender, read_utt2spk
from evaluation.formats.results import AttackModel
from evaluation.formats.scores import TrialTable, read_trial_table
from evaluation.objective_results.attack import list_pairs
from evaluation.protocols.recipes import DataSet, Recipe, Track


@dataclass(frozen=True)
class Lists:
    """A data set as its directory lists it: utterance → speaker, speaker → gender, and of a trial set its trials."""

    name: str
    speakers: Mapping[str, str]
    gender: str = "all"
    trials: TrialTable | None = None
    genders: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def read_enrolment(folder: Path) -> Lists:
    name = folder.resolve().name
    parsed = read_utt2spk(folder / "utt2spk", f"{name}/utt2spk")
    if not (folder / "utt2spk").is_file():
        raise CommandError(f"{folder}: expected utt2spk with the speaker of each enrolment utterance, found none.")
    speakers = require_entries(parsed)
    return Lists(name, speakers, genders=_genders(folder), problems=parsed.problems)


def read_test(path: Path) -> Lists:
    """Return a Kaldi directory, or a trials file beside its utt2spk."""
    folder, file = (path, path / "trials") if path.is_dir() else (path.parent, path)
    name = folder.resolve().name if file.name == "trials" else file.stem
    if not file.is_file():
        raise CommandError(f"{path}: expected a trials file or a directory with one, found none.")
    if not (folder / "utt2spk").is_file():
        raise CommandError(f"{folder}: expected utt2spk with the speaker of each trial utterance, found no such file.")
    table = read_trial_table(file, f"{name}/trials")
    parsed = read_utt2spk(folder / "utt2spk", f"{name}/utt2spk")
    if not len(table.pairs):
        raise CommandError(find_first_error(table.problems).sentence())
    tested = {utterance for _, utterance in list_pairs(table)}
    speakers = {one: speaker for one, speaker in require_entries(parsed).items() if one in tested}
    if lost := sorted(tested - set(speakers)):
        raise CommandError(f"{folder / 'utt2spk'}: expected every trial utterance, found none for {lost[0]}.")
    known = _genders(folder)
    return Lists(name, speakers, _gender(known, set(speakers.values())), table, known, parsed.problems)


def find_unknown_models(enrolment: Lists, tests: Sequence[Lists]) -> list[Problem]:
    """Return models of trials that nobody is enrolled for.

    Raises:
        CommandError: of a trial set no model at all is known.
    """
    enrolled = set(enrolment.speakers.values())
    problems = []
    for one in tests:
        models = {model for model, _ in list_pairs(one.trials)} if one.trials else set()
        if unknown := sorted(models - enrolled):
            expected = f"models that are speakers of {enrolment.name}/utt2spk"
            found = f"{len(unknown)} of {len(models)} that are not, such as {unknown[0]}"
            remedy = "Enrol them, or correct the trials; their trials have no score."
            problems.append(Problem("unknown-model", f"{one.name}/trials", expected, found, remedy))
            if len(unknown) == len(models):
                raise CommandError(problems[-1].sentence())
    return problems


def _genders(folder: Path) -> dict[str, str]:
    """Return speaker → gender where the directory says it."""
    path = folder / "spk2gender"
    return read_spk2gender(path, str(path)).content if path.is_file() else {}


def _gender(known: Mapping[str, str], speakers: set[str]) -> str:
    genders = {known.get(speaker, "") for speaker in speakers}
    if "" in genders:
        return "all"
    return genders.pop() if len(genders) == 1 else "mixed"


def make_recipe(enrolment: Lists, *tests: Lists) -> Recipe:
    """These lists as an edition without averages."""
    sets = {enrolment.name: DataSet(enrolment.name, "enrolment", "", "all")}
    for one in tests:
        targets = None if one.trials is None else int(one.trials.targets.sum())
        sets[one.name] = DataSet(one.name, "trial", "", one.gender, enrolment=enrolment.name, targets=targets)
    models = tuple(str(attack) for attack in AttackModel)
    return Recipe("files", "Files", "_anon", (), models, (), sets, (), {"main": Track("main", ())})
