"""``vp attack``: the portal's own attack on files: speaker vectors, scores of all trials, EERs with intervals, G_VD."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from typer import Option

from common import terminal
from common.errors import CommandError
from common.lock import lock_folder
from common.parameters import AsJson
from common.problems import Problem, Severity, find_first_error, has_errors
from evaluation.attackers.back_ends import BackEnd
from evaluation.attackers.training.trained_attacker import (
    attacking_encoder,
    is_finished,
    load_trained,
    read_back_end,
    read_description,
)
from evaluation.attackers.traits import MEAN_F0, TRAITS, WORDS, MeanF0, score_words
from evaluation.attackers.trial_scores import PRESETS
from evaluation.cli import arguments
from evaluation.cli.arguments import require_entries
from evaluation.cli.attack_lists import Lists, find_unknown_models, make_recipe, read_enrolment, read_test
from evaluation.cli.attack_report import attack_content, print_numbers
from evaluation.formats.audio_pairs import list_utterances
from evaluation.formats.equal_scores import describe_open_eer
from evaluation.formats.kaldi import read_text
from evaluation.formats.results import AttackModel, Speech
from evaluation.metrics.detection import kaldi_eer
from evaluation.objective_results.attack import (
    average_models,
    choose_scorer,
    list_pairs,
    results_folder,
    run_attack,
)
from evaluation.objective_results.attack_strength import UNHEARD, AttackStrength, Reliability, judge_attack
from evaluation.objective_results.compute import Objective
from evaluation.objective_results.sources import Attacker, Scorer, Sources, Vectors
from evaluation.objective_results.vector_files import extract_vectors, read_vectors
from speech.encoders import registry
from speech.encoders.contract import Device, EncoderEngine, SpeakerEncoder
from speech.model_files.devices import load_where_it_can

TRAINED = "trained"
READY = "ready-vectors"
LOCK = ".attack.lock"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for; the fields are parameters of `attack`."""

    enrolment: Path
    trials: Sequence[Path]
    out: Path
    original: Path | None
    anonymised: Path | None
    vectors: tuple[Path, Path] | None
    engine: str
    trained: Path | None
    trained_on: Literal["anonymised", "original"] | None
    system: str
    preset: str
    device: Device


def attack(
    enrolment: Annotated[Path, Option(metavar="DIR", help="Kaldi directory with utt2spk.")],
    trials: Annotated[
        list[Path],
        Option(
            metavar="DIR|FILE",
            help="Kaldi directory with trials and utt2spk, or a file of trials beside its utt2spk; may be repeated.",
        ),
    ],
    out: Annotated[Path, Option(metavar="DIR", help="Folder for scores, matrices and vectors.")],
    original: Annotated[Path | None, Option(metavar="DIR", help="Original audio of all these utterances.")] = None,
    anonymised: Annotated[
        Path | None, Option(metavar="DIR", help="The same, anonymised, under the same names.")
    ] = None,
    vectors: Annotated[
        tuple[Path, Path] | None,
        Option(
            metavar="ORIGINAL.npz ANONYMISED.npz",
            help="Vectors computed before (arrays ids and vectors), instead of audio.",
        ),
    ] = None,
    engine: Annotated[
        str, Option(metavar="NAME", help=f"What hears speakers: {', '.join([*registry.engines(), *TRAITS])}.")
    ] = registry.DEFAULT,
    trained: Annotated[
        Path | None, Option(metavar="DIR", help="Result of vp train-attacker, instead of --engine.")
    ] = None,
    trained_on: Annotated[
        Literal["anonymised", "original"] | None,
        Option(
            help="The speech that it was trained on: anonymised for the semi-informed attack (as usual), original for "
            "the others."
        ),
    ] = None,
    system: Annotated[
        str,
        Option(
            metavar="NAME",
            help="Name of the anonymiser that is attacked, to be compared with what train-attacker --system was told.",
        ),
    ] = "",
    preset: Annotated[
        str,
        Option(
            metavar="NAME",
            help=f"How vectors are compared: {', '.join(PRESETS)}. By default 2024; 2022 if the trained attacker has "
            "PLDA.",
        ),
    ] = "",
    device: arguments.Device = "cpu",
    as_json: AsJson = False,
) -> int:
    """Attack anonymised speech: extract speaker vectors, score every trial, and measure.

    It does so as unprotected, ignorant and lazy-informed attackers do; with an attacker trained on anonymised speech,
    as a semi-informed one. Kaldi score files and similarity matrices are written in the layout of the challenge.
    Vectors are kept in OUT. The engines mean-f0 and words measure how much the mean F0 or the words alone disclose.
    Words are read from the file text in each directory, or from text files given by --original and --anonymised.

        vp attack --enrolment data/enrolls --trials data/trials_f --trials data/trials_m \\
            --original original --anonymised anonymised --out attack
    """
    asked = _Asked(
        enrolment, trials, out, original, anonymised, vectors, engine, trained, trained_on, system, preset, device
    )
    _check_options(asked)
    lists = read_enrolment(enrolment)
    tests = [read_test(path) for path in asked.trials]
    names = [one.name for one in (lists, *tests)]
    if len(set(names)) != len(names):
        raise CommandError(f"--trials: expected directories of different names, found {', '.join(names)}.")
    training = _training(asked)
    every = [lists, *tests]
    unknown = find_unknown_models(lists, tests)
    if asked.engine == WORDS:
        name, (attacker, problems) = WORDS, _word_attacker(asked, every)
        unusable: list[Problem] = []
        with lock_folder(asked.out, LOCK):
            objective = _objective(asked, attacker, every)
    else:
        name, key, load = _encoder(asked)
        score = choose_scorer(name, asked.preset, _back_end(asked))
        audio, problems = _audio(asked, training)
        with lock_folder(asked.out, LOCK):
            known, unusable = _vectors(asked, key, load, audio, every)
            objective = _objective(asked, _voice_attacker(asked, name, training, known, every, score), every)
    of_lists = [problem for one in every for problem in one.problems]
    problems = [*of_lists, *unknown, *problems, *unusable, *objective.problems]
    folder = asked.out / results_folder(name, training)
    verdicts, rivals = dict[str, Reliability](), _Rivals()
    if trained and training is Speech.ANONYMISED:
        with lock_folder(out, LOCK):
            rivals = _attack_by_rivals(asked, trained, every, audio)
        verdicts = _judge(asked, trained, objective, tests, rivals)
    if as_json:
        terminal.print_json(attack_content(name, folder, objective, problems) | _strength_content(verdicts, rivals))
    else:
        print_numbers(objective, tests, training)
        _print_strength(verdicts, rivals)
        terminal.print_text(f"\nScore files and matrices: {folder}")
    code = terminal.print_problems(problems)
    return code if objective.numbers or has_errors(problems) else terminal.PROBLEMS


def _objective(asked: _Asked, attacker: Attacker, every: Sequence[Lists]) -> Objective:
    """Return the numbers of the attack; its files are in OUT."""
    lists = {one.name: one for one in every}
    recipe = make_recipe(*every)
    sources = Sources(
        recipe,
        recipe.track,
        read_trials=lambda one: lists[one.name].trials,
        find_speakers=lambda one: lists[one.name].speakers,
    )
    return run_attack(asked.out, attacker, sources)


def _voice_attacker(
    asked: _Asked,
    name: str,
    training: Speech,
    vectors: Mapping[Speech, Vectors],
    every: Sequence[Lists],
    score: Scorer,
) -> Attacker:
    lists = {one.name: one for one in every}
    return Attacker(
        name=name,
        training=training,
        vectors=lambda one, speech: _of(vectors[speech], lists[one].speakers),
        speakers=lambda one: lists[one].speakers,
        score=score,
        trials=make_recipe(*every).sets("trial"),
        genders=lambda one: lists[one].genders,
        knows_voices=name not in TRAITS,
        back_end=_back_end(asked),
    )


def _word_attacker(asked: _Asked, every: Sequence[Lists]) -> tuple[Attacker, list[Problem]]:
    """Return who knows what was said alone; without words of the anonymised speech, of the originals only."""
    lists, texts = {one.name: one for one in every}, list[str]()
    places: dict[Speech, dict[str, np.ndarray[Any, np.dtype[np.float32]]]] = {}
    problems: list[Problem] = []
    wanted = {utterance for one in every for utterance in one.speakers}
    folders = [asked.enrolment, *(path if path.is_dir() else path.parent for path in asked.trials)]
    for form, given in ((Speech.ORIGINAL, asked.original), (Speech.ANONYMISED, asked.anonymised)):
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
        trials=make_recipe(*every).sets("trial"),
        attacks=() if places[Speech.ANONYMISED] else (AttackModel.UNPROTECTED,),
        knows_voices=False,
    )
    return attacker, problems


def _check_options(asked: _Asked) -> None:
    if asked.preset and asked.preset not in PRESETS:
        raise CommandError(f"--preset: expected one of {', '.join(PRESETS)}, found “{asked.preset}”.")
    if asked.engine in TRAITS and (asked.vectors or asked.trained or asked.preset):
        raise CommandError(f"{asked.engine} is a trait: it takes no --vectors, --trained or --preset.")
    if asked.system and not asked.trained:
        raise CommandError("--system is compared with that of a trained attacker: expected --trained, found none.")
    if asked.trained_on and not asked.trained:
        raise CommandError("--trained-on says what an attacker learnt from: expected --trained, found none.")
    if asked.vectors and (asked.original or asked.anonymised):
        raise CommandError("Expected audio or --vectors, found both.")
    is_semi_informed = _training(asked) is Speech.ANONYMISED
    needed = [] if asked.vectors else ["anonymised"] + ([] if is_semi_informed else ["original"])
    for side in needed if asked.engine != WORDS else []:
        if getattr(asked, side) is None:
            raise CommandError(f"Expected --{side} with the {side} audio (or --vectors), found none.")


# Vectors -------------------------------------------------------------------------------------------


def _encoder(asked: _Asked) -> tuple[str, str, Callable[[], SpeakerEncoder]]:
    """Name of the attacker, the key of its vectors, and what loads it; nothing is loaded before it is needed."""
    device: Device = asked.device
    if asked.vectors:
        return READY, READY, lambda: registry.load(asked.engine, device)
    if asked.trained:
        trained: Path = asked.trained
        return f"{TRAINED}-{trained.resolve().name}", _trained_key(trained), partial(_load_trained, trained, device)
    if asked.engine == MEAN_F0:
        return MEAN_F0, f"{MEAN_F0}@1", MeanF0
    engine = registry.find_engine(asked.engine)
    if sentence := registry.explain_missing(engine):
        raise CommandError(sentence)
    return engine.name, engine.key, lambda: registry.load(engine.name, device)


def _trained_key(trained: Path) -> str:
    """Return the key of its vectors; another training in a folder of the same name has others."""
    return f"{TRAINED}-{trained.resolve().name}@{read_description(trained).model_sha256[:12]}"


def _load_trained(trained: Path, device: Device) -> SpeakerEncoder:
    return attacking_encoder(load_trained(trained, device))


def _training(asked: _Asked) -> Speech:
    """Return the speech that the attacker learnt from."""
    usual = Speech.ANONYMISED if asked.trained else Speech.ORIGINAL
    return Speech(asked.trained_on) if asked.trained_on else usual


def _back_end(asked: _Asked) -> BackEnd | None:
    """The fitted back end of a trained attacker, unless another way of comparing is named."""
    return _fitted_of(asked.trained, asked.preset) if asked.trained else None


def _fitted_of(trained: Path, preset: str) -> BackEnd | None:
    return read_back_end(trained) if not preset or PRESETS[preset].back_end == "plda" else None


def _audio(asked: _Asked, training: Speech) -> tuple[dict[Speech, dict[str, Path]], list[Problem]]:
    """Return the recordings of each form that the attack needs, and what is wrong with their folders; before any
    work."""
    forms = dict(zip((Speech.ORIGINAL, Speech.ANONYMISED), (asked.original, asked.anonymised), strict=True))
    found: dict[Speech, dict[str, Path]] = {}
    problems: list[Problem] = []
    for form, folder in forms.items():
        if folder is None or (form is Speech.ORIGINAL and training is Speech.ANONYMISED):
            continue
        found[form], folder_problems = list_utterances(folder)
        if not found[form]:
            raise CommandError(find_first_error(folder_problems).sentence())
        problems += folder_problems
    return found, problems


def _vectors(
    asked: _Asked,
    key: str,
    load: Callable[[], SpeakerEncoder],
    audio: Mapping[Speech, Mapping[str, Path]],
    lists: Sequence[Lists],
) -> tuple[dict[Speech, Vectors], list[Problem]]:
    if asked.vectors:
        forms = (Speech.ORIGINAL, Speech.ANONYMISED)
        return {form: read_vectors(path) for form, path in zip(forms, asked.vectors, strict=True)}, []
    once = cache(load)
    wanted = sorted({utterance for one in lists for utterance in one.speakers})
    found: dict[Speech, Vectors] = {Speech.ORIGINAL: {}}
    problems: list[Problem] = []
    for form, files in audio.items():
        shown: Iterable[str] = terminal.track_progress(wanted, len(wanted), f"{form} utterances")
        found[form], unusable = extract_vectors(files, shown, once, asked.out / f"vectors-{form}-{key}.npz")
        problems += unusable
    return found, problems


def _of(vectors: Vectors, utterances: Mapping[str, str]) -> Vectors:
    return {name: vectors[name] for name in utterances if name in vectors}


# Whether it is strong enough --------------------------------------------------------------------------


@dataclass
class _Rivals:
    """EERs in per cent of what a trained attacker is held against, by trial set.

    Attributes:
        frozen: the lowest of the shipped encoder; seeds: of each other seed of the same training.
        cosine: of an attacker with PLDA, by the cosine of the same vectors.
        why_not: why one of them could not be tried, in sentences.
    """

    frozen: dict[str, float] = field(default_factory=dict)
    seeds: dict[str, list[float]] = field(default_factory=dict)
    cosine: dict[str, float] = field(default_factory=dict)
    why_not: list[str] = field(default_factory=list)

    def sentence(self, data_set: str) -> str:
        """Return what the attack was held against on a trial set; empty where against nothing."""
        known = {"the shipped encoder": self.frozen, "the cosine of the same vectors": self.cosine}
        said = [f"{what} {eers[data_set]:.1f} %" for what, eers in known.items() if data_set in eers]
        said += [f"another seed {eer:.1f} %" for eer in self.seeds.get(data_set, [])]
        return f"EERs to compare with: {', '.join(said)}." if said else ""


def _attack_by_rivals(
    asked: _Asked, trained: Path, every: Sequence[Lists], audio: Mapping[Speech, Mapping[str, Path]]
) -> _Rivals:
    """Attack the same trials by the shipped encoder and by the other seeds that lie beside the trained attacker.

    The shipped encoder is lazy-informed and, with the original audio, ignorant as well.
    """
    rivals = _Rivals()
    if asked.vectors:
        rivals.why_not.append("The shipped encoder and other seeds need the audio, and --vectors replaces it.")
        return rivals
    if _back_end(asked) is not None:
        load = partial(_load_trained, trained, asked.device)
        vectors, _ = _vectors(asked, _trained_key(trained), load, audio, every)
        own = vectors[Speech.ANONYMISED]
        rivals.cosine = dict(_eers(every, own, own, choose_scorer(TRAINED)))
    engine = registry.find_engine(registry.DEFAULT)
    if missing := registry.explain_missing(engine):
        rivals.why_not.append(f"The shipped encoder cannot be tried: {missing}")
    else:
        originals = {Speech.ORIGINAL: list_utterances(asked.original)[0]} if asked.original else {}
        load = partial(_load_shipped, engine, asked.device)
        vectors, _ = _vectors(asked, engine.key, load, {**audio, **originals}, every)
        for enrolled in vectors:
            for name, eer in _eers(every, vectors[enrolled], vectors[Speech.ANONYMISED], choose_scorer(engine.name)):
                rivals.frozen[name] = min(eer, rivals.frozen.get(name, eer))
    others = _list_other_seeds(trained)
    if not others:
        rivals.why_not.append(f"No other seed of this training lies beside {trained}: train it with several.")
    for folder in others:
        load = partial(_load_trained, folder, asked.device)
        vectors, _ = _vectors(asked, _trained_key(folder), load, audio, every)
        score = choose_scorer(TRAINED, asked.preset, _fitted_of(folder, asked.preset))
        for name, eer in _eers(every, vectors[Speech.ANONYMISED], vectors[Speech.ANONYMISED], score):
            rivals.seeds.setdefault(name, []).append(eer)
    return rivals


def _load_shipped(engine: EncoderEngine, device: Device) -> SpeakerEncoder:
    """On the processor where the card that was asked for is of no use to it; the trained attacker has its own."""
    load = partial(registry.load, engine.name)
    return load_where_it_can(load, engine.packages, engine.title) if device == "cuda" else load(device)


def _eers(every: Sequence[Lists], enrolment: Vectors, heard: Vectors, score: Scorer) -> Iterator[tuple[str, float]]:
    """Name and EER (Kaldi), in per cent, of each trial set of which targets and nontargets can be scored apart."""
    enrolled, *tests = every
    for one in tests:
        assert one.trials is not None  # noqa: S101 - `read_test` reads them
        models = average_models(enrolment, enrolled.speakers, {model for model, _ in list_pairs(one.trials)})
        rows = zip(list_pairs(one.trials), one.trials.targets.tolist(), strict=True)
        scored = [(pair, target) for pair, target in rows if pair[0] in models and pair[1] in heard]
        targets = np.array([target for _, target in scored], bool)
        if targets.any() and not targets.all():
            scores = score(models, heard, [pair for pair, _ in scored])
            target, nontarget = scores[targets], scores[~targets]
            if not describe_open_eer(target, nontarget):
                yield one.name, 100 * kaldi_eer(target, nontarget)


def _list_other_seeds(trained: Path) -> list[Path]:
    """Return the finished seeds of the same training beside the one that attacks."""
    own = read_description(trained)
    found = []
    for folder in sorted(trained.resolve().parent.glob("seed-*")):
        if folder == trained.resolve() or not is_finished(folder):
            continue
        other = read_description(folder)
        if (other.recipe, other.sources, other.system) == (own.recipe, own.sources, own.system):
            found.append(folder)
    return found


def _judge(
    asked: _Asked, trained: Path, objective: Objective, tests: Sequence[Lists], rivals: _Rivals
) -> dict[str, Reliability]:
    """Return what is known against the trained attacker, by trial set."""
    description = read_description(trained)
    own, system = description.final.own_eer, description.system
    if description.final.own_eer_open:
        rivals.why_not.append(f"The EER on its own training speakers is unknown: {description.final.own_eer_open}.")
    unheard = 100.0 * (asked.system != system) if asked.system and system else None
    found = {
        (one.identity.data_set, one.identity.metric, one.identity.estimator): one.value
        for one in objective.numbers.values()
        if one.identity.attack_model is AttackModel.SEMI_INFORMED
    }
    return {
        one.name: judge_attack(
            AttackStrength(
                found[one.name, "eer", "kaldi"],
                frozen_eer=rivals.frozen.get(one.name),
                seed_eers=[found[one.name, "eer", "kaldi"], *rivals.seeds.get(one.name, [])],
                own_eer=None if own is None else 100 * own,
                inverted_targets=found.get((one.name, "inverted_targets", "")),
                unheard_voices=unheard,
            )
        )
        for one in tests
        if (one.name, "eer", "kaldi") in found
    }


def _print_strength(verdicts: Mapping[str, Reliability], rivals: _Rivals) -> None:
    for data_set, verdict in verdicts.items():
        word = "nothing found against it" if verdict.is_reliable else verdict.word
        terminal.print_text()
        terminal.print_paragraph(
            f"Is the attack on {data_set} strong enough? {' '.join((f'{word}.', *verdict.reasons))}"
        )
        if compared := rivals.sentence(data_set):
            terminal.print_paragraph(compared)
        if verdict.unknown:
            terminal.print_paragraph(f"Not checked: {'; '.join(verdict.unknown)}.")
    for sentence in rivals.why_not if verdicts else ():
        terminal.print_paragraph(sentence)
    if any(UNHEARD in verdict.unknown for verdict in verdicts.values()):
        terminal.print_paragraph(
            "On speech of another system an attacker looks weak and says nothing: name the system with --system here "
            "and in train-attacker, and that is checked, too."
        )


def _strength_content(verdicts: Mapping[str, Reliability], rivals: _Rivals) -> dict[str, object]:
    rows = [
        {"data_set": name, "is_reliable": one.is_reliable, "reasons": one.reasons, "not_checked": one.unknown}
        | {"frozen_eer": rivals.frozen.get(name), "cosine_eer": rivals.cosine.get(name)}
        | {"other_seed_eers": rivals.seeds.get(name, [])}
        for name, one in verdicts.items()
    ]
    return {"strength": rows, "why_not_checked": rivals.why_not} if rows else {}
