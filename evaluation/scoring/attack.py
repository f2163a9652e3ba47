"""The portal's own attacks in numbers: vectors of utterances become score files, and these the usual numbers.

What an attack leaves is a results directory as a team would hand it in (protocol 1.2): ``ASV-*/scores`` as Kaldi writes
them and the similarity matrices, so that own and uploaded scores are measured by the same code, and anybody can check
the numbers with other tools. Conventions: vectors are float32, shape (d,); a score grows with likeness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.formats.claims import AttackModel, ClaimIdentity, Gender, Speech
from evaluation.formats.problems import Problem, Severity
from evaluation.formats.recomputation import MeasuredTest
from evaluation.formats.results import ScoreFile, SystemResults
from evaluation.formats.scores import TrialTable, write_scores
from evaluation.formats.single_files import SIMILARITY_FOLDER
from evaluation.metrics.bootstrap import Replicates
from evaluation.metrics.bootstrap_similarity import bootstrap_de_identification, bootstrap_gain_of_distinctiveness
from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.voice_similarity import (
    SimilarityMatrix,
    VoiceDistinctiveness,
    voice_distinctiveness_of_embeddings,
)
from evaluation.objective.averages import add_averages
from evaluation.objective.compute import Objective
from evaluation.objective.detection import add_detection
from evaluation.objective.similarity import PAIRS
from evaluation.objective.sources import Sources, Work
from evaluation.objective.values import ATTACKS, Basis, Missing, number_words
from evaluation.objective.voice_extras import add_extras
from evaluation.protocols.recipes import DataSet, Recipe

Vector = NDArray[np.float32]
Vectors = Mapping[str, Vector]  # of some utterances, by name
VectorSource = Callable[[str, Speech], Vectors]  # of a data set in one form
Scorer = Callable[[Mapping[str, NDArray[np.float32]], Vectors, Sequence[tuple[str, str]]], NDArray[np.floating]]
Progress = Callable[[str, int, int], None]
ESTIMATOR = "official"


def _unknown(_: str) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Voices:
    """What an attack says about the voices of one trial set, and about whom."""

    data_set: str
    found: VoiceDistinctiveness


@dataclass(frozen=True)
class Attacker:
    """Who attacks, with what.

    Attributes:
        name: as in the folder of its scores.
        training: the speech that it was trained on; what it may call itself follows from it.
        vectors: of each data set, original and anonymised.
        speakers: utterance → speaker of a data set.
        score: scores of pairs of model and utterance; a model is the vectors of its utterances, shape (n, d).
        trials: the trial sets that it attacks.
        genders: speaker → ``f`` or ``m`` of a data set; empty where they are not known.
    """

    name: str
    training: Speech
    vectors: VectorSource
    speakers: Callable[[str], Mapping[str, str]]
    score: Scorer
    trials: Sequence[DataSet]
    genders: Callable[[str], Mapping[str, str]] = _unknown


def attacks_of_training(training: Speech) -> tuple[AttackModel, ...]:
    """What an attacker does who was trained on this speech: the rungs of the ladder, the weakest first."""
    if training is Speech.ANONYMISED:
        return (AttackModel.SEMI_INFORMED,)
    return (AttackModel.UNPROTECTED, AttackModel.IGNORANT, AttackModel.LAZY_INFORMED)


def results_folder(attacker: str, training: Speech) -> str:
    """Name of the results directory, which says what the models were trained on as the official scripts do."""
    return f"results-{attacker}{'' if training is Speech.ANONYMISED else '.orig'}"


def run_attack(
    folder: Path, attacker: Attacker, sources: Sources, *, kept: Callable[[MeasuredTest], None],
    drawn: Callable[[Voices], None], progress: Progress,
) -> Objective:  # fmt: skip
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
    add_detection(work)
    if attacker.training is Speech.ORIGINAL:
        for done, one in enumerate(attacker.trials):
            progress("Comparing the voices", done, len(attacker.trials))
            _add_voices(work, place, one, attacker, drawn)
        add_extras(work, attacker)
    progress("Averaging", 0, 0)
    add_averages(work)
    return Objective(work.numbers, work.replicates, tuple(_missing(work)), work.problems.report())


def _score_files(place: Path, attacker: Attacker, sources: Sources, progress: Progress) -> Iterator[ScoreFile]:
    attacks = attacks_of_training(attacker.training)
    total = len(attacker.trials) * len(attacks)
    for number, data_set in enumerate(attacker.trials):
        trials = sources.trials(data_set)
        if trials is None:  # said by the measurement
            continue
        pairs = pairs_of(trials)
        for rung, attack in enumerate(attacks):
            progress("Scoring the trials", number * len(attacks) + rung, total)
            training, enrolment, speech = ATTACKS[attack]
            name = test_folder(sources.recipe, data_set, enrolment, speech)
            models = models_of(
                attacker.vectors(data_set.enrolment, enrolment), attacker.speakers(data_set.enrolment),
                {model for model, _ in pairs},
            )  # fmt: skip
            path = place / name / "scores"
            score_trials_into(path, models, attacker.vectors(data_set.name, speech), pairs, attacker.score)
            shown = path.relative_to(place).as_posix()
            yield ScoreFile(path, shown, data_set.name, training, enrolment, speech)
    progress("Scoring the trials", total, total)


def pairs_of(trials: TrialTable) -> list[tuple[str, str]]:
    """Model and utterance of each trial, in the order of the list."""
    found = []
    for pair in trials.pairs.tolist():
        model, utterance = pair.decode().split(" ", 1)
        found.append((model, utterance))
    return found


def test_folder(recipe: Recipe, data_set: DataSet, enrolment: Speech, speech: Speech) -> str:
    """Name of the folder of a verification test, such as ``ASV-libri_dev_enrolls-libri_dev_trials_f_anon``."""
    suffix = {Speech.ORIGINAL: "", Speech.ANONYMISED: recipe.anonymised_suffix or "_anon"}
    return f"ASV-{data_set.enrolment}{suffix[enrolment]}-{data_set.name}{suffix[speech]}"


def models_of(vectors: Vectors, speakers: Mapping[str, str], wanted: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """The enrolment vectors of each wanted speaker who has any, shape (utterances, d), by name of the utterance."""
    utterances: dict[str, list[str]] = {name: [] for name in sorted(wanted)}
    for utterance in sorted(vectors):
        if speakers.get(utterance) in utterances:
            utterances[speakers[utterance]].append(utterance)
    return {name: np.stack([vectors[one] for one in members]) for name, members in utterances.items() if members}


def score_trials_into(
    path: Path, models: Mapping[str, NDArray[np.float32]], tests: Vectors, pairs: Sequence[tuple[str, str]],
    score: Scorer,
) -> None:  # fmt: skip
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
    work: Work, place: Path, data_set: DataSet, attacker: Attacker, drawn: Callable[[Voices], None]
) -> None:
    """G_VD and De-Identification of a trial set by the cosines of its vectors."""
    gender = Gender(data_set.gender)
    gain = ClaimIdentity(data_set.name, gender, "gain_of_voice_distinctiveness", ESTIMATOR)
    lost = ClaimIdentity(data_set.name, gender, "de_identification", ESTIMATOR)
    original = attacker.vectors(data_set.name, Speech.ORIGINAL)
    anonymised = attacker.vectors(data_set.name, Speech.ANONYMISED)
    speakers = attacker.speakers(data_set.name)
    both = sorted(original.keys() & anonymised.keys() & speakers.keys())
    absent = len(original.keys() | anonymised.keys()) - len(both)
    if absent:
        work.reasons[gain] = f"{absent} utterances of {data_set.name} have no vector of both forms"
    try:
        found = voices_of([original[one] for one in both], [anonymised[one] for one in both],
                          [speakers[one] for one in both])  # fmt: skip
    except MetricInputError as error:
        work.problems.add(_no_voices(data_set, str(error)))
        return
    write_matrices(place / SIMILARITY_FOLDER / data_set.name, found)
    drawn(Voices(data_set.name, found))
    size = len(found.oo.speakers)
    if math.isfinite(found.gain_db):
        replicates = _resampled(work, bootstrap_gain_of_distinctiveness, found.oo, found.pp)
        work.add(gain, found.gain_db, Basis.SIMILARITY, size, replicates=replicates)
    else:
        work.reasons[gain] = "nothing tells the anonymised voices apart, so the gain is minus infinity"
    if found.op is not None and found.de_identification_score is not None:
        replicates = _resampled(work, bootstrap_de_identification, found.oo, found.op)
        work.add(lost, found.de_identification_score, Basis.SIMILARITY, size, replicates=replicates)


def voices_of(
    original: Sequence[Vector], anonymised: Sequence[Vector], speakers: Sequence[str]
) -> VoiceDistinctiveness:
    """Similarity matrices of the same utterances, original and anonymised, compared by cosine.

    Raises:
        MetricInputError: fewer than two speakers, none with two utterances, or one voice for everybody.
    """
    if not len(speakers):
        raise MetricInputError("Expected utterances with a vector of both forms, found none.")
    for form, vectors in (("original", np.stack(original)), ("anonymised", np.stack(anonymised))):
        # The official calibration orders equal scores by the truth, so one voice for all would count as fully distinct.
        if (vectors == vectors[0]).all():
            raise MetricInputError(f"Expected {form} utterances that differ, found one vector for all {len(vectors)}.")
    return voice_distinctiveness_of_embeddings(np.stack(original), np.stack(anonymised), speakers)


def write_matrices(folder: Path, voices: VoiceDistinctiveness) -> None:
    """Save the matrices as the official script names them."""
    folder.mkdir(parents=True, exist_ok=True)
    for pair, matrix in zip(PAIRS, (voices.oo, voices.op, voices.pp), strict=True):
        if matrix is not None:
            np.save(folder / f"similarity_matrix_{pair}.npy", matrix.values, allow_pickle=False)


def _resampled(
    work: Work, measure: Callable[..., Replicates], original: SimilarityMatrix, other: SimilarityMatrix
) -> Replicates | None:
    """The measure with other speakers; None of fewer than two."""
    draws = work.draws(original.speakers)
    return None if draws is None else measure(original.values, other.values, original.speakers, draws)


def _no_voices(data_set: DataSet, found: str) -> Problem:
    remedy = "Its voice distinctiveness is left out; every other number stands."
    expected, why = "voices that can be compared", f"none: {found[:1].lower()}{found[1:].rstrip('.')}"
    return Problem("no-voice-distinctiveness", data_set.name, expected, why, remedy, Severity.WARNING)


def _missing(work: Work) -> Iterator[Missing]:
    """What could not be done completely, each test once."""
    said: set[tuple[str, str]] = set()
    for identity, reason in work.reasons.items():
        test = identity.data_set, identity.attack_model or identity.metric
        if test not in said:
            said.add(test)
            yield Missing(number_words(identity), reason, is_ranked=False)
