"""``attack``: the portal's own attack on files: speaker vectors, scores of all trials, EERs with intervals, G_VD."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from common import terminal
from common.errors import CommandError
from common.lock import lock_folder
from common.problems import Problem, Severity, has_errors
from evaluation.attackers.back_ends import BackEnd
from evaluation.attackers.training.trained import attacking_encoder, load_trained, read_back_end, read_description
from evaluation.attackers.traits import MEAN_F0, TRAITS, WORDS, MeanF0, score_words
from evaluation.attackers.trial_scores import PRESETS
from evaluation.cli.arguments import require_entries
from evaluation.formats.audio_pairs import list_utterances
from evaluation.formats.kaldi import read_spk2gender, read_text, read_utt2spk
from evaluation.formats.results import AttackModel, Gender, Speech
from evaluation.formats.scores import TrialTable, read_trial_table
from evaluation.metrics.catalogue import EXPOSURE_METRICS, EXTRA_METRICS, find_metric, format_heading, format_value
from evaluation.protocols.recipes import DataSet, Recipe, Track
from evaluation.scoring.attack import attacks_of_training, choose_scorer, list_pairs, results_folder, run_attack
from evaluation.scoring.compute import Objective
from evaluation.scoring.reliability import UNHEARD, AttackStrength, Reliability, judge_attack
from evaluation.scoring.sources import Attacker, Scorer, Sources, Vectors
from evaluation.scoring.values import Number
from evaluation.scoring.vector_files import extract_vectors, read_vectors
from evaluation.scoring.voice_extras import WORTH
from speech.encoders import registry
from speech.encoders.contract import Device, SpeakerEncoder

DESCRIPTION = (
    "Attack anonymised speech: extract speaker vectors and score every trial as unprotected, ignorant and "
    "lazy-informed attackers do (with an attacker trained on anonymised speech: semi-informed). Kaldi score files and "
    "similarity matrices are written in the layout of the challenge and measured. Vectors are kept in OUT. The engines "
    "mean-f0 and words measure how much the mean F0 or the words alone disclose. Words are read from the file text in "
    "each directory, or from text files given by --original and --anonymised."
)
TRAINED = "trained"
READY = "ready-vectors"
LOCK = ".attack.lock"
_SHOWN = (("eer", "kaldi"), ("eer", "rocch"), ("min_cllr", "pav"), ("linkability", ""))
_VOICES = ("gain_of_voice_distinctiveness", "de_identification")


@dataclass(frozen=True)
class _Lists:
    """A data set as its directory lists it: utterance → speaker, speaker → gender, and of a trial set its trials."""

    name: str
    speakers: Mapping[str, str]
    gender: str = "all"
    trials: TrialTable | None = None
    genders: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    known = ", ".join([*registry.engines(), *TRAITS])
    parser.add_argument("--enrolment", required=True, type=Path, metavar="DIR", help="Kaldi directory with utt2spk")
    parser.add_argument(
        "--trials",
        required=True,
        type=Path,
        nargs="+",
        metavar="DIR_OR_FILE",
        help="Kaldi directories with trials and utt2spk, or trials files beside their utt2spk",
    )
    parser.add_argument("--original", type=Path, metavar="DIR", help="original audio of all these utterances")
    parser.add_argument("--anonymised", type=Path, metavar="DIR", help="the same, anonymised, under the same names")
    parser.add_argument(
        "--vectors",
        type=Path,
        nargs=2,
        metavar=("ORIGINAL.npz", "ANONYMISED.npz"),
        help="vectors computed before (arrays ids and vectors), instead of audio",
    )
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="folder for scores, matrices and vectors"
    )
    parser.add_argument("--engine", default=registry.DEFAULT, metavar="NAME", help=f"{known} (default: the first)")
    parser.add_argument("--trained", type=Path, metavar="DIR", help="result of train-attacker, instead of --engine")
    parser.add_argument(
        "--trained-on",
        choices=[str(Speech.ANONYMISED), str(Speech.ORIGINAL)],
        help="the speech that it was trained on: anonymised for the semi-informed attack (default), original for the "
        "others",
    )
    parser.add_argument(
        "--system",
        default="",
        metavar="NAME",
        help="name of the anonymiser that is attacked, to be compared with what train-attacker --system was told",
    )
    parser.add_argument(
        "--preset",
        choices=list(PRESETS),
        default="",
        help="how vectors are compared (default 2024; 2022 if the trained attacker has PLDA)",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where the encoder runs (default cpu)")


def run(options: argparse.Namespace) -> int:
    """Extract, score, measure, report; the exit code."""
    _check_options(options)
    enrolment = _enrolment(options.enrolment)
    tests = [_test(path) for path in options.trials]
    names = [one.name for one in (enrolment, *tests)]
    if len(set(names)) != len(names):
        raise CommandError(f"--trials: expected directories of different names, found {', '.join(names)}.")
    training = _training(options)
    every = [enrolment, *tests]
    unknown = _unknown_models(enrolment, tests)
    if options.engine == WORDS:
        name, (attacker, problems) = WORDS, _word_attacker(options, every)
        unusable: list[Problem] = []
        with lock_folder(options.out, LOCK):
            objective = _objective(options, attacker, every)
    else:
        name, key, load = _encoder(options)
        score = choose_scorer(name, options.preset, _back_end(options))
        audio, problems = _audio(options, training)
        with lock_folder(options.out, LOCK):
            vectors, unusable = _vectors(options, key, load, audio, every)
            objective = _objective(options, _voice_attacker(options, name, training, vectors, every, score), every)
    lists = [problem for one in every for problem in one.problems]
    problems = [*lists, *unknown, *problems, *unusable, *objective.problems]
    folder = options.out / results_folder(name, training)
    verdicts = _judge(options, objective, tests) if options.trained and training is Speech.ANONYMISED else {}
    if options.json:
        terminal.print_json(_content(name, folder, objective, problems) | _strength_content(verdicts))
    else:
        _print_numbers(objective, tests, training)
        _print_strength(verdicts)
        terminal.print_text(f"\nScore files and matrices: {folder}")
    code = terminal.print_problems(problems)
    return code if objective.numbers or has_errors(problems) else terminal.PROBLEMS


def _objective(options: argparse.Namespace, attacker: Attacker, every: Sequence[_Lists]) -> Objective:
    """The numbers of the attack; its files are in OUT."""
    lists = {one.name: one for one in every}
    recipe = _recipe(*every)
    sources = Sources(
        recipe,
        recipe.track,
        read_trials=lambda one: lists[one.name].trials,
        find_speakers=lambda one: lists[one.name].speakers,
    )
    return run_attack(options.out, attacker, sources)


def _voice_attacker(
    options: argparse.Namespace,
    name: str,
    training: Speech,
    vectors: Mapping[Speech, Vectors],
    every: Sequence[_Lists],
    score: Scorer,
) -> Attacker:
    lists = {one.name: one for one in every}
    return Attacker(
        name=name,
        training=training,
        vectors=lambda one, speech: _of(vectors[speech], lists[one].speakers),
        speakers=lambda one: lists[one].speakers,
        score=score,
        trials=_recipe(*every).sets("trial"),
        genders=lambda one: lists[one].genders,
        knows_voices=name not in TRAITS,
        back_end=_back_end(options),
    )


def _word_attacker(options: argparse.Namespace, every: Sequence[_Lists]) -> tuple[Attacker, list[Problem]]:
    """Who knows what was said alone; without words of the anonymised speech, of the originals only."""
    lists, texts = {one.name: one for one in every}, list[str]()
    places: dict[Speech, dict[str, np.ndarray[Any, np.dtype[np.float32]]]] = {}
    problems: list[Problem] = []
    wanted = {utterance for one in every for utterance in one.speakers}
    folders = [options.enrolment, *(path if path.is_dir() else path.parent for path in options.trials)]
    for form, given in ((Speech.ORIGINAL, options.original), (Speech.ANONYMISED, options.anonymised)):
        places[form] = {}
        path = given / "text" if given and given.is_dir() else given  # a folder of recordings, as of other engines
        files = [folder / "text" for folder in folders if form is Speech.ORIGINAL]
        if path and (path.is_file() or path is given or not files):
            files = [path]
        said: dict[str, str] = {}
        for file in files:
            if not file.is_file():
                raise CommandError(
                    f"{file}: expected a text file (utterance and words in each line), found none. Name one by "
                    f"--{form}, or leave the option out."
                )
            parsed = read_text(file, str(file))
            words = require_entries(parsed)
            said |= words
            problems += parsed.problems
        if not files:
            continue
        if lost := sorted(wanted - set(said)):
            found = f"none for {len(lost)}, such as {lost[0]}"
            remedy = "Add them; the trials that need them have no score."
            named = "no-words", str(path or "text")
            problems.append(Problem(*named, "words of each utterance", found, remedy, Severity.WARNING))
        for utterance in sorted(wanted & set(said)):
            places[form][utterance] = np.array([len(texts)], np.float32)
            texts.append(said[utterance])

    def score(models: Mapping[str, Any], tests: Mapping[str, Any], pairs: Sequence[tuple[str, str]]) -> Any:
        enrolled = {name: [int(place) for place in rows[:, 0]] for name, rows in models.items()}
        return score_words(texts, enrolled, {name: int(row[0]) for name, row in tests.items()}, pairs)

    attacker = Attacker(
        name=WORDS,
        training=Speech.ORIGINAL,
        vectors=lambda one, speech: _of(places[speech], lists[one].speakers),
        speakers=lambda one: lists[one].speakers,
        score=score,
        trials=_recipe(*every).sets("trial"),
        attacks=() if places[Speech.ANONYMISED] else (AttackModel.UNPROTECTED,),
        knows_voices=False,
    )
    return attacker, problems


def _check_options(options: argparse.Namespace) -> None:
    if options.engine in TRAITS and (options.vectors or options.trained or options.preset):
        raise CommandError(f"{options.engine} is a trait: it takes no --vectors, --trained or --preset.")
    if options.system and not options.trained:
        raise CommandError("--system is compared with that of a trained attacker: expected --trained, found none.")
    if options.trained_on and not options.trained:
        raise CommandError("--trained-on says what an attacker learnt from: expected --trained, found none.")
    if options.vectors and (options.original or options.anonymised):
        raise CommandError("Expected audio or --vectors, found both.")
    is_semi_informed = _training(options) is Speech.ANONYMISED
    needed = [] if options.vectors else ["anonymised"] + ([] if is_semi_informed else ["original"])
    for side in needed if options.engine != WORDS else []:
        if getattr(options, side) is None:
            raise CommandError(f"Expected --{side} with the {side} audio (or --vectors), found none.")


# What is attacked ----------------------------------------------------------------------------------


def _enrolment(folder: Path) -> _Lists:
    name = folder.resolve().name
    parsed = read_utt2spk(folder / "utt2spk", f"{name}/utt2spk")
    if not (folder / "utt2spk").is_file():
        raise CommandError(f"{folder}: expected utt2spk with the speaker of each enrolment utterance, found none.")
    speakers = require_entries(parsed)
    return _Lists(name, speakers, genders=_genders(folder), problems=parsed.problems)


def _test(path: Path) -> _Lists:
    """A Kaldi directory, or a trials file beside its utt2spk."""
    folder, file = (path, path / "trials") if path.is_dir() else (path.parent, path)
    name = folder.resolve().name if file.name == "trials" else file.stem
    if not file.is_file():
        raise CommandError(f"{path}: expected a trials file or a directory with one, found none.")
    if not (folder / "utt2spk").is_file():
        raise CommandError(f"{folder}: expected utt2spk with the speaker of each trial utterance, found no such file.")
    table = read_trial_table(file, f"{name}/trials")
    parsed = read_utt2spk(folder / "utt2spk", f"{name}/utt2spk")
    if not len(table.pairs):
        raise CommandError(table.problems[0].sentence())
    tested = {utterance for _, utterance in list_pairs(table)}
    speakers = {one: speaker for one, speaker in require_entries(parsed).items() if one in tested}
    if lost := sorted(tested - set(speakers)):
        raise CommandError(f"{folder / 'utt2spk'}: expected every trial utterance, found none for {lost[0]}.")
    known = _genders(folder)
    return _Lists(name, speakers, _gender(known, set(speakers.values())), table, known, parsed.problems)


def _unknown_models(enrolment: _Lists, tests: Sequence[_Lists]) -> list[Problem]:
    """Models of trials that nobody is enrolled for.

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
    """Speaker → gender where the directory says it."""
    path = folder / "spk2gender"
    return read_spk2gender(path, str(path)).content if path.is_file() else {}


def _gender(known: Mapping[str, str], speakers: set[str]) -> str:
    genders = {known.get(speaker, "") for speaker in speakers}
    if "" in genders:
        return "all"
    return genders.pop() if len(genders) == 1 else "mixed"


def _recipe(enrolment: _Lists, *tests: _Lists) -> Recipe:
    """These lists as an edition without averages."""
    sets = {enrolment.name: DataSet(enrolment.name, "enrolment", "", "all")}
    for one in tests:
        sets[one.name] = DataSet(one.name, "trial", "", one.gender, enrolment=enrolment.name)
    models = tuple(str(attack) for attack in AttackModel)
    return Recipe("files", "Files", "_anon", (), models, (), sets, (), {"main": Track("main", ())})


# Vectors -------------------------------------------------------------------------------------------


def _encoder(options: argparse.Namespace) -> tuple[str, str, Callable[[], SpeakerEncoder]]:
    """Name of the attacker, the key of its vectors, and what loads it; nothing is loaded before it is needed."""
    device: Device = options.device
    if options.vectors:
        return READY, READY, lambda: registry.load(options.engine, device)
    if options.trained:
        trained: Path = options.trained
        name = f"{TRAINED}-{trained.resolve().name}"
        # Another training in a folder of the same name has other vectors.
        version = read_description(trained).model_sha256[:12]
        return name, f"{name}@{version}", lambda: attacking_encoder(load_trained(trained, device))
    if options.engine == MEAN_F0:
        return MEAN_F0, f"{MEAN_F0}@1", MeanF0
    engine = registry.find_engine(options.engine)
    if sentence := registry.explain_missing(engine):
        raise CommandError(sentence)
    return engine.name, engine.key, lambda: registry.load(engine.name, device)


def _training(options: argparse.Namespace) -> Speech:
    """The speech that the attacker learnt from."""
    usual = Speech.ANONYMISED if options.trained else Speech.ORIGINAL
    return Speech(options.trained_on) if options.trained_on else usual


def _back_end(options: argparse.Namespace) -> BackEnd | None:
    """The fitted back end of a trained attacker, unless another way of comparing is named."""
    wants = options.trained and (not options.preset or PRESETS[options.preset].back_end == "plda")
    return read_back_end(options.trained) if wants else None


def _audio(options: argparse.Namespace, training: Speech) -> tuple[dict[Speech, dict[str, Path]], list[Problem]]:
    """The recordings of each form that the attack needs, and what is wrong with their folders; before any work."""
    forms = dict(zip((Speech.ORIGINAL, Speech.ANONYMISED), (options.original, options.anonymised), strict=True))
    found: dict[Speech, dict[str, Path]] = {}
    problems: list[Problem] = []
    for form, folder in forms.items():
        if folder is None or (form is Speech.ORIGINAL and training is Speech.ANONYMISED):
            continue
        found[form], folder_problems = list_utterances(folder)
        if not found[form]:
            raise CommandError(folder_problems[0].sentence())
        problems += folder_problems
    return found, problems


def _vectors(
    options: argparse.Namespace,
    key: str,
    load: Callable[[], SpeakerEncoder],
    audio: Mapping[Speech, Mapping[str, Path]],
    lists: Sequence[_Lists],
) -> tuple[dict[Speech, Vectors], list[Problem]]:
    if options.vectors:
        forms = (Speech.ORIGINAL, Speech.ANONYMISED)
        return {form: read_vectors(path) for form, path in zip(forms, options.vectors, strict=True)}, []
    once = cache(load)
    wanted = sorted({utterance for one in lists for utterance in one.speakers})
    found: dict[Speech, Vectors] = {Speech.ORIGINAL: {}}
    problems: list[Problem] = []
    for form, files in audio.items():
        shown: Iterable[str] = terminal.track_progress(wanted, len(wanted), f"{form} utterances")
        found[form], unusable = extract_vectors(files, shown, once, options.out / f"vectors-{form}-{key}.npz")
        problems += unusable
    return found, problems


def _of(vectors: Vectors, utterances: Mapping[str, str]) -> Vectors:
    return {name: vectors[name] for name in utterances if name in vectors}


# Whether it is strong enough --------------------------------------------------------------------------


def _judge(options: argparse.Namespace, objective: Objective, tests: Sequence[_Lists]) -> dict[str, Reliability]:
    """What is known against the trained attacker, by trial set; seeds and frozen encoders are other runs."""
    description = read_description(options.trained)
    own, system = description.final.own_eer, description.system
    unheard = 100.0 * (options.system != system) if options.system and system else None
    found = {
        (one.identity.data_set, one.identity.metric, one.identity.estimator): one.value
        for one in objective.numbers.values()
        if one.identity.attack_model is AttackModel.SEMI_INFORMED
    }
    return {
        one.name: judge_attack(
            AttackStrength(
                found[one.name, "eer", "kaldi"],
                own_eer=None if own is None else 100 * own,
                inverted_targets=found.get((one.name, "inverted_targets", "")),
                unheard_voices=unheard,
            )
        )
        for one in tests
        if (one.name, "eer", "kaldi") in found
    }


def _print_strength(verdicts: Mapping[str, Reliability]) -> None:
    for data_set, verdict in verdicts.items():
        word = "nothing found against it" if verdict.is_reliable else verdict.word
        terminal.print_text()
        terminal.print_paragraph(
            f"Is the attack on {data_set} strong enough? {' '.join((f'{word}.', *verdict.reasons))}"
        )
        terminal.print_paragraph(f"Not checked here: {'; '.join(verdict.unknown)}.")
    if any(UNHEARD in verdict.unknown for verdict in verdicts.values()):
        terminal.print_paragraph(
            "On speech of another system an attacker looks weak and says nothing: name the system with --system here "
            "and in train-attacker, and that is checked, too."
        )


def _strength_content(verdicts: Mapping[str, Reliability]) -> dict[str, object]:
    rows = [
        {"data_set": name, "is_reliable": one.is_reliable, "reasons": one.reasons, "not_checked": one.unknown}
        for name, one in verdicts.items()
    ]
    return {"strength": rows} if rows else {}


# What is said --------------------------------------------------------------------------------------


def _print_numbers(objective: Objective, tests: Sequence[_Lists], training: Speech) -> None:
    rows, every = [], list(objective.numbers.values())
    header = ["trials", "attacker"]
    for metric in (find_metric(*key) for key in _SHOWN):
        header += [format_heading(metric), "95 % interval"] if metric.key == "kaldi_eer" else [format_heading(metric)]
    for one in tests:
        for attack in attacks_of_training(training):
            found = {
                (number.identity.metric, number.identity.estimator): number
                for number in every
                if number.identity.data_set == one.name and number.identity.attack_model is attack
            }
            if found:
                rows.append([one.name, str(attack), *_cells(found)])
    if not rows:
        return
    terminal.print_table(header, rows, numbers_from=2)
    _print_exposure(every, tests, training)
    _print_voices(every)
    _print_extras(every)


def _print_exposure(numbers: Sequence[Number], tests: Sequence[_Lists], training: Speech) -> None:
    """What the EER hides, a table for each trial set; intervals below the measures that have one."""
    by_test = {(one.identity.data_set, one.identity.attack_model, one.identity.metric): one for one in numbers}
    for test in tests:
        every = [(test.name, attack) for attack in attacks_of_training(training)]
        columns = [column for column in every if any((*column, key) in by_test for key in EXPOSURE_METRICS)]
        rows = []
        for key, metric in EXPOSURE_METRICS.items():
            found = [by_test.get((*column, key)) for column in columns]
            rows.append([format_heading(metric), *(format_value(one.value if one else None, metric) for one in found)])
            if any(one is not None and one.has_interval for one in found):
                rows.append(["  95 % interval", *(_limits(one) if one else terminal.NONE for one in found)])
        if columns:
            terminal.print_text()
            header = [f"{test.name}, beyond the EER", *(str(attack) for _, attack in columns)]
            terminal.print_table(header, rows, numbers_from=1)


def _cells(found: Mapping[tuple[str, str], Number]) -> list[str]:
    cells = []
    for key in _SHOWN:
        number = found[key]
        cells.append(format_value(number.value, number.metric))
        if key == ("eer", "kaldi"):
            cells.append(_limits(number))
    return cells


def _limits(number: Number) -> str:
    if number.low is None or number.high is None:
        return terminal.NONE
    return f"{format_value(number.low, number.metric)} to {format_value(number.high, number.metric)}"


def _print_voices(numbers: Sequence[Number]) -> None:
    voices = [number for number in numbers if number.identity.metric in _VOICES]
    if voices:
        terminal.print_text()
        rows = [
            [one.identity.data_set, format_heading(one.metric), format_value(one.value, one.metric), _limits(one)]
            for one in voices
        ]
        terminal.print_table(["trials", "voices", "value", "95 % interval"], rows, numbers_from=2)


def _print_extras(numbers: Sequence[Number]) -> None:
    """Gender preservation and the inversion attack, with what each is worth."""
    extras = [one for one in numbers if one.identity.metric in EXTRA_METRICS and one.identity.gender is Gender.ALL]
    if not extras:
        return
    rows = []
    for one in extras:
        form = ", originals" if one.identity.speech is Speech.ORIGINAL else ""
        rows.append([one.identity.data_set, format_heading(one.metric) + form, format_value(one.value, one.metric)])
    terminal.print_text()
    terminal.print_table(["speakers", "extras", "value"], rows, numbers_from=2)
    for metric, sentence in WORTH.items():
        terminal.print_text()
        terminal.print_paragraph(f"{EXTRA_METRICS[metric].label}: {sentence}")


def _content(name: str, folder: Path, objective: Objective, problems: Sequence[Problem]) -> dict[str, object]:
    tested = ("data_set", "gender", "metric", "estimator", "speech", "attack_model")
    numbers = [
        {name: getattr(one.identity, name) for name in tested}
        | {"value": one.value, "unit": one.metric.unit, "low": one.low, "high": one.high, "n": one.n}
        for one in objective.numbers.values()
    ]
    missing = [{"what": one.what, "reason": one.reason} for one in objective.missing]
    return {
        "attacker": name,
        "results": str(folder),
        "numbers": numbers,
        "missing": missing,
        "problems": terminal.problem_rows(problems),
    }
