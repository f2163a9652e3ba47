"""The portal's own attacks in numbers: vectors of utterances become score files, and these the usual numbers.

**Results** (`run_attack`). What an attack leaves is a results directory as a team would hand it in (protocol 1.2):
``ASV-*/scores`` as Kaldi writes them and the similarity matrices, so that own and uploaded scores are measured by the
same code, and anybody can check the numbers with other tools.

**How vectors are compared** (`choose_scorer`). The long-term spectrum scales its vectors by those enrolled, and single
traits are no vectors of voices, so these are compared in their own way; an encoder whose training has fitted LDA and
PLDA by them; every other encoder by cosine as in 2024, unless another protocol is named
(`evaluation.attackers.trial_scores.PRESETS`).

Conventions: vectors are float32, shape (d,); a score grows with likeness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.problems import Problem, Severity
from common.progress import Progress, ignore_progress
from evaluation.attackers.back_ends import BackEnd
from evaluation.attackers.traits import MEAN_F0, TRAITS, score_mean_f0
from evaluation.attackers.trial_scores import PRESETS, ScoringOptions, fit_back_end, score_pairs, score_trials
from evaluation.formats.results import AttackModel, Gender, NumberIdentity, Speech
from evaluation.formats.scores import TrialTable, write_scores
from evaluation.metrics.voice_similarity import (
    LEAST_SPEAKERS,
    VoiceDistinctiveness,
    voice_distinctiveness,
    voice_distinctiveness_of_embeddings,
)
from evaluation.objective_results.compute import Objective, add_averages
from evaluation.objective_results.detection import PAIRS, add_detection, explain_few_speakers, resample_voices
from evaluation.objective_results.recomputation import MeasuredTest
from evaluation.objective_results.results.expected import detection_name
from evaluation.objective_results.results.folders import ScoreFile, SystemResults
from evaluation.objective_results.results.results_2022 import SIMILARITY_FOLDER
from evaluation.objective_results.sources import Attacker, Scorer, Sources, Vector, Vectors, Work
from evaluation.objective_results.values import ATTACKS, Basis, MissingNumber, add_notes, number_words
from evaluation.objective_results.voice_extras import add_extras
from evaluation.protocols.recipes import DataSet
from speech.encoders import long_term_spectrum

ESTIMATOR = "official"
NO_VECTORS = "have no vector of both forms"  # the end of the reason why voices of a part of a set are no measure of it


def attacks_of_training(training: Speech) -> tuple[AttackModel, ...]:
    """Return what an attacker does who was trained on this speech: the rungs of the ladder, the weakest first."""
    if training is Speech.ANONYMISED:
        return (AttackModel.SEMI_INFORMED,)
    return (AttackModel.UNPROTECTED, AttackModel.IGNORANT, AttackModel.LAZY_INFORMED)


def results_folder(attacker: str, training: Speech) -> str:
    """Name of the results directory, which says what the models were trained on as the official scripts do."""
    return f"results-{attacker}{'' if training is Speech.ANONYMISED else '.orig'}"


def run_attack(
    folder: Path,
    attacker: Attacker,
    sources: Sources,
    *,
    kept: Callable[[MeasuredTest], None] = ignore_progress,
    drawn: Callable[[str, VoiceDistinctiveness], None] = ignore_progress,
    progress: Progress = ignore_progress,
) -> Objective:
    """Score every trial, write the results directory into `folder`, and measure it as if a team had handed it in.

    Args:
        kept: takes each measured test.
        drawn: takes the voices of each trial set; nobody is heard of attackers trained on anonymised speech, because
            the official measure is that of the original evaluator (protocol 2.7).
        progress: is told stage, done, total.
    """
    place = folder / results_folder(attacker.name, attacker.training)
    files = tuple(_score_files(place, attacker, sources, progress))
    results = SystemResults(attacker.name, sources.recipe.edition, (), (), (), files, ())
    work = Work(folder, results, sources, kept, progress)
    add_detection(work, in_part=True)
    if attacker.training is Speech.ORIGINAL and attacker.knows_voices:
        for done, one in enumerate(attacker.trials):
            progress("Comparing the voices", done, len(attacker.trials))
            _add_voices(work, place, one, attacker, drawn)
        add_extras(work, attacker)
    progress("Averaging", 0, 0)
    add_averages(work)
    missing = tuple(_missing(work))
    numbers = add_notes(work.numbers, sources.recipe, missing)
    return Objective(numbers, work.replicates, missing, work.problems.report())


def _score_files(place: Path, attacker: Attacker, sources: Sources, progress: Progress) -> Iterator[ScoreFile]:
    attacks = attacker.attacks or attacks_of_training(attacker.training)
    total = len(attacker.trials) * len(attacks)
    for number, data_set in enumerate(attacker.trials):
        trials = sources.read_trials(data_set)
        if trials is None:  # said by the measurement
            continue
        pairs = list_pairs(trials)
        for rung, attack in enumerate(attacks):
            progress("Scoring the trials", number * len(attacks) + rung, total)
            training, enrolment, speech = ATTACKS[attack]
            name = detection_name(sources.recipe, data_set, enrolment, speech)
            models = average_models(
                attacker.vectors(data_set.enrolment, enrolment),
                attacker.speakers(data_set.enrolment),
                {model for model, _ in pairs},
            )
            path = place / name / "scores"
            score_trials_into(path, models, attacker.vectors(data_set.name, speech), pairs, attacker.score)
            shown = path.relative_to(place).as_posix()
            yield ScoreFile(path, shown, data_set.name, training, enrolment, speech)
    progress("Scoring the trials", total, total)


def list_pairs(trials: TrialTable) -> list[tuple[str, str]]:
    """Model and utterance of each trial, in the order of the list."""
    found = []
    for pair in trials.pairs.tolist():
        model, utterance = pair.decode().split(" ", 1)
        found.append((model, utterance))
    return found


def average_models(
    vectors: Vectors, speakers: Mapping[str, str], wanted: Iterable[str]
) -> dict[str, NDArray[np.float32]]:
    """Return the enrolment vectors of each wanted speaker who has any, shape (utterances, d), by name of the
    utterance."""
    utterances: dict[str, list[str]] = {name: [] for name in sorted(wanted)}
    for utterance in sorted(vectors):
        if speakers.get(utterance) in utterances:
            utterances[speakers[utterance]].append(utterance)
    return {name: np.stack([vectors[one] for one in members]) for name, members in utterances.items() if members}


def score_trials_into(
    path: Path,
    models: Mapping[str, NDArray[np.float32]],
    tests: Vectors,
    pairs: Sequence[tuple[str, str]],
    score: Scorer,
) -> None:
    """Write the scores of all trials that can be scored; the others have no line, as Kaldi leaves them out."""
    possible = [(model, utterance) for model, utterance in pairs if model in models and utterance in tests]
    path.parent.mkdir(parents=True, exist_ok=True)
    used = {utterance for _, utterance in possible}
    scores = score(models, {name: tests[name] for name in sorted(used)}, possible) if possible else np.zeros(0)
    rows = zip(possible, scores.tolist(), strict=True)
    with path.open("w", encoding="utf-8") as file:
        write_scores(((model, utterance, value) for (model, utterance), value in rows), file)


# Voices --------------------------------------------------------------------------------------------


def _add_voices(
    work: Work, place: Path, data_set: DataSet, attacker: Attacker, drawn: Callable[[str, VoiceDistinctiveness], None]
) -> None:
    """G_VD and De-Identification of a trial set by the scores of its vectors."""
    gender = Gender(data_set.gender)
    gain = NumberIdentity(data_set.name, gender, "gain_of_voice_distinctiveness", ESTIMATOR)
    lost = NumberIdentity(data_set.name, gender, "de_identification", ESTIMATOR)
    original = attacker.vectors(data_set.name, Speech.ORIGINAL)
    anonymised = attacker.vectors(data_set.name, Speech.ANONYMISED)
    speakers = attacker.speakers(data_set.name)
    both = sorted(original.keys() & anonymised.keys() & speakers.keys())
    absent = len(original.keys() | anonymised.keys()) - len(both)
    if absent:
        work.reasons[gain] = f"{absent} utterances of {data_set.name} {NO_VECTORS}"
    try:
        found = average_voices(
            [original[one] for one in both],
            [anonymised[one] for one in both],
            [speakers[one] for one in both],
            attacker.back_end,
        )
    except InputError as error:
        remedy = "Its voice distinctiveness is left out; all other numbers are kept."
        why = f"none: {str(error)[:1].lower()}{str(error)[1:].rstrip('.')}"
        named = "no-voice-distinctiveness", data_set.name
        work.problems.add(Problem(*named, "voices that can be compared", why, remedy, Severity.WARNING))
        return
    write_matrices(place / SIMILARITY_FOLDER / data_set.name, found)
    drawn(data_set.name, found)
    size = len(found.oo.speakers)
    if size < LEAST_SPEAKERS:
        work.reasons |= dict.fromkeys((gain, lost), explain_few_speakers(data_set.name, size))
        return
    matrices = [None if one is None else one.values for one in (found.oo, found.op, found.pp)]
    if math.isfinite(found.gain_db):
        replicates = resample_voices(work, gain.metric, matrices, found.oo.speakers)
        work.add(gain, found.gain_db, Basis.SIMILARITY, size, replicates=replicates)
    else:
        work.reasons[gain] = "the anonymised voices cannot be distinguished, so the gain is minus infinity"
    if found.op is not None and found.de_identification_score is not None:
        replicates = resample_voices(work, lost.metric, matrices, found.oo.speakers)
        work.add(lost, found.de_identification_score, Basis.SIMILARITY, size, replicates=replicates)


def average_voices(
    original: Sequence[Vector], anonymised: Sequence[Vector], speakers: Sequence[str], back_end: BackEnd | None = None
) -> VoiceDistinctiveness:
    """Return similarity matrices of the same utterances, original and anonymised.

    Args:
        back_end: that compares them, each utterance as a model of its own; by cosine where None.

    Raises:
        InputError: fewer than two speakers, none with two utterances, or one voice for everybody.
    """
    if not len(speakers):
        raise InputError("Expected utterances with a vector of both forms, found none.")
    for form, vectors in (("original", np.stack(original)), ("anonymised", np.stack(anonymised))):
        # The official calibration orders equal scores by the truth, so one voice for all would count as fully distinct.
        if (vectors == vectors[0]).all():
            raise InputError(f"Expected {form} utterances that differ, found one vector for all {len(vectors)}.")
    first, second = np.stack(original), np.stack(anonymised)
    if back_end is None:
        return voice_distinctiveness_of_embeddings(first, second, speakers)
    oo, op, pp = (score_pairs(*pair, back_end) for pair in ((first, first), (first, second), (second, second)))
    return voice_distinctiveness(oo, op, pp, speakers)


def write_matrices(folder: Path, voices: VoiceDistinctiveness) -> None:
    """Save the matrices as the official script names them."""
    folder.mkdir(parents=True, exist_ok=True)
    for pair, matrix in zip(PAIRS, (voices.oo, voices.op, voices.pp), strict=True):
        if matrix is not None:
            np.save(folder / f"similarity_matrix_{pair}.npy", matrix.values, allow_pickle=False)


def _missing(work: Work) -> Iterator[MissingNumber]:
    """Yield what could not be done completely, each test once."""
    said: set[tuple[str, str]] = set()
    for identity, reason in work.reasons.items():
        test = identity.data_set, identity.attack_model or identity.metric
        if test not in said:
            said.add(test)
            yield MissingNumber(number_words(identity), reason, is_ranked=False)


DEFAULT_PRESET = "2024"
FITTED_PRESET = "2022"  # of an encoder whose training has fitted PLDA


def choose_scorer(engine: str, preset: str = "", fitted: BackEnd | None = None) -> Scorer:
    """Return what gives the scores of trials for an encoder.

    Args:
        preset: a name of `PRESETS`; the usual way of the encoder where it is empty.
        fitted: the back end that the training of the encoder has left; cosine presets do not use it.

    Raises:
        InputError: no such preset, or one that needs a back end that the training did not leave.
    """
    if engine in TRAITS and preset:
        raise InputError(f"{engine} compares in its own way: expected no preset, found “{preset}”.")
    if not preset and engine in _OWN_WAYS:
        return _OWN_WAYS[engine]
    options = require_preset(preset or (DEFAULT_PRESET if fitted is None else FITTED_PRESET), fitted is not None)
    back_end = fitted if fitted is not None and options.back_end == "plda" else fit_back_end(options)

    def score(
        models: Mapping[str, NDArray[np.float32]], tests: Vectors, pairs: Sequence[tuple[str, str]]
    ) -> NDArray[np.float64]:
        return score_trials(models, tests, pairs, back_end, options)

    return score


def is_usual_preset(engine: str, preset: str) -> bool:
    """Return whether a preset names the way in which an encoder without a fitted back end compares anyway."""
    return not preset or (preset == DEFAULT_PRESET and engine not in _OWN_WAYS)


def require_preset(name: str, has_fitted: bool) -> ScoringOptions:
    """Return the way of comparing vectors of a name, where the encoder has all that it needs.

    Args:
        has_fitted: whether the training of the encoder leaves PLDA.

    Raises:
        InputError: as `choose_scorer`.
    """
    if name not in PRESETS:
        raise InputError(f"Expected a way of scoring among {', '.join(PRESETS)}, found “{name}”.")
    if not has_fitted or PRESETS[name].back_end != "plda":
        fit_back_end(PRESETS[name])
    return PRESETS[name]


def _by_spectrum(
    models: Mapping[str, NDArray[np.float32]], tests: Vectors, pairs: Sequence[tuple[str, str]]
) -> NDArray[np.float64]:
    enrolled = {name: [one.astype(np.float64) for one in vectors] for name, vectors in models.items()}
    heard = {name: vector.astype(np.float64) for name, vector in tests.items()}
    return np.array([score for _, _, score in long_term_spectrum.score_trials(enrolled, heard, pairs)])


_OWN_WAYS: Mapping[str, Scorer] = {long_term_spectrum.ENGINE.name: _by_spectrum, MEAN_F0: score_mean_f0}
