"""Numbers of speaker verification and of voices, from a submission's files and the organizer's trials.

**Verification** (`add_detection`): every metric of each test, from its scores.

**Voices** (`add_similarity`): De-Identification and G_VD from similarity matrices, the last step of protocol 2.7.
``similarity_matrices_DeID_Gvd/<trials>/similarity_matrix_{osp_osp,osp_psp,psp_psp}.npy`` hold the similarity of every
speaker to every speaker: original with original, original with anonymised, anonymised with anonymised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common import text_files
from common.errors import InputError
from common.problems import Problem, ProblemList, Severity
from evaluation.formats.results import KINDS, Gender, NumberIdentity, ReportedNumber
from evaluation.formats.scores import TrialTable
from evaluation.metrics.bootstrap import (
    DETECTION_MEASURES,
    Replicates,
    SpeakerDraws,
    bootstrap_de_identification,
    bootstrap_detection,
    bootstrap_gain_of_distinctiveness,
    weighted_sum,
)
from evaluation.metrics.exposure import EXPOSED_BELOW, FALSE_ALARM_RATES, bootstrap_exposure
from evaluation.metrics.voice_similarity import LEAST_SPEAKERS, diagonal_dominance
from evaluation.objective_results.recomputation import (
    MeasuredTest,
    TestKey,
    agrees,
    detection_value,
    measure_tests,
    test_key,
)
from evaluation.objective_results.results.folders import ScoreFile
from evaluation.objective_results.results.results_2022 import SIMILARITY_FOLDER
from evaluation.objective_results.sources import Sources, Work
from evaluation.objective_results.values import MEASURES, Basis
from evaluation.protocols.recipes import DataSet, Recipe

# Of the measures those with intervals over speakers.
WITH_INTERVAL = {("eer", "kaldi"): "kaldi_eer", ("eer", "rocch"): "rocch_eer", ("min_cllr", "pav"): "min_cllr"}
PRINTED = {(number.metric, number.estimator) for kind in KINDS.values() for number in kind.numbers}
_NO_LINES = np.zeros(0, np.int64)


def add_detection(work: Work, *, in_part: bool = False) -> None:
    """Every metric of each verification test whose scores and trials are at hand, with intervals over speakers.

    Args:
        in_part: whether a test whose scores do not cover the organizer's trials is measured as far as they do. Of what
            a team hands in it is not: who leaves trials out moves the number.
    """
    sources, files = work.sources, work.system.scores
    if not files:
        return
    measured: set[TestKey] = set()
    listed: set[str] = set()
    trials = partial(_trials, work, listed)
    shown = _with_progress(work, files)
    for test in measure_tests(work.system, sources.recipe.data_sets, trials, work.problems, shown):
        measured.add(test_key(test.file))
        open_eer = test.joined.open_eer
        reason = f"{test.file.name}: {open_eer}" if open_eer else _incomplete(test)
        if reason:
            work.reasons |= dict.fromkeys(_identities(work, test.file), reason)
        if not reason or (in_part and not open_eer):
            _add_test(work, test)
            work.kept(test)
    for file in files:
        if file.data_set in listed and test_key(file) not in measured:
            work.reasons |= dict.fromkeys(
                _identities(work, file), _uncovered(file, "there are no scores of both target and nontarget trials")
            )


def _with_progress(work: Work, files: tuple[ScoreFile, ...]) -> Iterator[ScoreFile]:
    for done, file in enumerate(files):
        work.progress("Measuring the scores", done, len(files))
        yield file
    work.progress("Measuring the scores", len(files), len(files))


def _trials(work: Work, listed: set[str], data_set: DataSet) -> TrialTable:
    """Return the organizer's list; empty, with a note, where there is none. `listed` takes the names of those that
    are."""
    table = work.sources.read_trials(data_set)
    if table is not None:
        listed.add(data_set.name)
        return table
    remedy = "The organizer has to import the lists of this corpus; until then its numbers are only reported."
    expected = f"the organizer's trials of {data_set.name}"
    work.problems.add(Problem("no-trials", data_set.name, expected, "none", remedy, Severity.WARNING))
    nothing = np.zeros(0, "S1")
    return TrialTable(data_set.name, nothing, np.zeros(0, bool), _NO_LINES, ())


def _add_test(work: Work, test: MeasuredTest) -> None:
    data_set = work.recipe.data_sets[test.file.data_set]
    drawn = _draw(work, test, data_set)
    replicates = _replicates(work, test, drawn)
    trials = test.metrics.n_target + test.metrics.n_nontarget
    for identity in _identities(work, test.file):
        named = identity.metric, identity.estimator
        work.add(
            identity,
            detection_value(test.metrics, identity),
            Basis.SCORES,
            trials,
            replicates=replicates.get(named),
            # In print for what the 2022 scripts print; SpeechBrain's EER in the decimals that the reported number has.
            agree=agrees if named in PRINTED else in_its_decimals,
            source=(test.file.name, "unlike-scores"),
        )
    _add_exposure(work, test, drawn)


def _add_exposure(work: Work, test: MeasuredTest, drawn: _Drawn | None) -> None:
    """Privacy beyond the EER; what the trials cannot tell is left out."""
    exposure, gender = test.exposure, Gender(work.recipe.data_sets[test.file.data_set].gender)
    found = bootstrap_exposure(test.trials, drawn.speakers, drawn.draws, exposure) if drawn else {}
    sizes = dict.fromkeys(FALSE_ALARM_RATES, exposure.n_target)
    if exposure.ranks is not None:
        ranked = int(exposure.ranks.counts.sum())
        sizes |= dict.fromkeys(("rank_disclosure", "rank_disclosure_shuffled", "rank_disclosure_worst"), ranked)
    sizes |= dict.fromkeys(("worst_speaker_eer", "mean_speaker_eer", *EXPOSED_BELOW), len(exposure.speakers))
    trials = exposure.n_target + exposure.n_nontarget
    for key, value in exposure.values().items():
        identity = NumberIdentity(test.file.data_set, gender, key, "", *test.file.speeches)
        work.add(identity, value, Basis.SCORES, sizes.get(key, trials), replicates=found.get(key))


def _identities(work: Work, file: ScoreFile) -> list[NumberIdentity]:
    """Return every number of a test."""
    gender = Gender(work.recipe.data_sets[file.data_set].gender)
    return [NumberIdentity(file.data_set, gender, *one, *file.speeches) for one in MEASURES]


def in_its_decimals(reported: ReportedNumber, value: float) -> bool:
    """Return whether a reported number is a value rounded to as many decimals as it is written with."""
    decimals = len(reported.written.partition(".")[2])
    return bool(abs(reported.value - value) <= 0.5 / 10**decimals + 1e-9)


def _incomplete(test: MeasuredTest) -> str:
    """Return why the scores of a test give no number; empty where they do."""
    joined = test.joined
    if joined.complete:
        return ""
    counted = {
        "without a score": joined.missing,
        "without a finite score": joined.not_finite,
        "scored but not in the list": joined.extra,
        "scored more than once": joined.repeated,
    }
    found = ", ".join(f"{count} trials {what}" for what, count in counted.items() if count)
    return _uncovered(test.file, found or "problems in the file")


def _uncovered(file: ScoreFile, found: str) -> str:
    return f"{file.name} does not cover the organizer's trials: {found}"


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The speaker of each trial utterance, and the resamples of all speakers of a test."""

    speakers: list[str]
    draws: SpeakerDraws


def _draw(work: Work, test: MeasuredTest, data_set: DataSet) -> _Drawn | None:
    """None where a speaker of the trial utterances is not known, or there are fewer than two."""
    known, trials = work.sources.find_speakers(data_set), test.trials
    if not known or any(name not in known for name in trials.utterances):
        return None
    speakers = [known[name] for name in trials.utterances]
    draws = work.draws([*speakers, *trials.models])
    return None if draws is None else _Drawn([speakers[place] for place in trials.utterance.tolist()], draws)


def _replicates(work: Work, test: MeasuredTest, drawn: _Drawn | None) -> dict[tuple[str, str], Replicates]:
    """Resampled measures in the units of the numbers."""
    if drawn is None:
        return {}
    models = test.joined.models.astype(np.str_)
    wanted = dict(WITH_INTERVAL) | _ranked_estimator(work.sources)
    found = bootstrap_detection(
        test.joined.scores, test.joined.targets, models, drawn.speakers, drawn.draws, measures=tuple(wanted.values())
    )
    return {key: _in_unit(key[0], found[measure]) for key, measure in wanted.items()}


def _ranked_estimator(sources: Sources) -> dict[tuple[str, str], str]:
    """Return the estimator that the edition averages its EERs by."""
    named = {average.estimator for average in sources.track.averages if average.metric == "eer"}
    return {("eer", one): f"{one}_eer" for one in sorted(named) if f"{one}_eer" in DETECTION_MEASURES}


def _in_unit(metric: str, replicates: Replicates) -> Replicates:
    if metric != "eer":
        return replicates
    return replace(weighted_sum([(100.0, replicates)]), estimate=100 * replicates.estimate)


MOST_SPEAKERS = 2000
PAIRS = ("osp_osp", "osp_psp", "psp_psp")
_REMEDY = "Submit the matrices as the official script saved them."


RESAMPLED_VOICES: Mapping[str, Callable[..., Replicates]] = {
    "gain_of_voice_distinctiveness": bootstrap_gain_of_distinctiveness,
    "de_identification": bootstrap_de_identification,
}


def add_similarity(work: Work) -> None:
    """G_VD and De-Identification of each trial set whose matrices are there.

    The rows of a matrix are the speakers in the order in which the sorted utterances name them, as the official script
    saves them; so the resamples of speakers are paired over matrices and trial sets.
    """
    for data_set, place in similarity_sets(work.folder, work.recipe):
        name, spoken = place.relative_to(work.folder).as_posix(), work.sources.find_speakers(data_set)
        speakers = list(dict.fromkeys(spoken[one] for one in sorted(spoken)))
        measured, problems = measure_similarity(place, name, len(speakers) or None)
        work.problems.keep(problems)
        for metric in ("de_identification", "gain_of_voice_distinctiveness"):
            identity = NumberIdentity(data_set.name, Gender(data_set.gender), metric, "official")
            if partial := work.sources.partial_voices.get(data_set.name):
                work.reasons[identity] = partial
                continue
            if measured is not None and measured.speakers < LEAST_SPEAKERS:
                work.reasons[identity] = explain_few_speakers(data_set.name, measured.speakers)
                continue
            if measured is None:
                work.reasons[identity] = f"the similarity matrices of {data_set.name} cannot be used"
                continue
            source = f"{name}/{_file_of(PAIRS[-1])}", "unlike-matrices"
            found = resample_voices(work, metric, measured.matrices, speakers)
            numbers = measured.values[metric], Basis.SIMILARITY, measured.speakers
            work.add(identity, *numbers, replicates=found, source=source)


def explain_few_speakers(name: str, speakers: int) -> str:
    """Return why a trial set gives no G_VD and no De-Identification."""
    return f"{name} has {speakers} speakers; it takes {LEAST_SPEAKERS} to say how voices differ"


def similarity_sets(folder: Path, recipe: Recipe) -> Iterator[tuple[DataSet, Path]]:
    """Where the matrices of each trial set lie, of those of which there is any."""
    for parent in sorted(folder.rglob(SIMILARITY_FOLDER)):
        for data_set in recipe.sets("trial"):
            if any((parent / data_set.name / _file_of(pair)).is_file() for pair in PAIRS):
                yield data_set, parent / data_set.name


@dataclass(frozen=True, slots=True)
class MeasuredVoices:
    """What the matrices of a trial set give.

    Attributes:
        values: by metric.
        speakers: how many were compared.
        matrices: M_oo, M_op and M_pp, each of shape (speakers, speakers).
    """

    values: Mapping[str, float]
    speakers: int
    matrices: tuple[NDArray[np.float64], ...]


def resample_voices(
    work: Work, metric: str, matrices: Sequence[NDArray[np.float64] | None], speakers: Sequence[str]
) -> Replicates | None:
    """Return a metric of `RESAMPLED_VOICES` with other speakers; None of fewer than two, or where they are not known.

    Args:
        matrices: M_oo, M_op and M_pp.
        speakers: of their rows.
    """
    original, mixed, anonymised = matrices
    other = mixed if metric == "de_identification" else anonymised
    draws = work.draws(speakers)
    if draws is None or original is None or other is None or len(original) != len(speakers):
        return None
    return RESAMPLED_VOICES[metric](original, other, speakers, draws)


def measure_similarity(
    place: Path, name: str, speakers: int | None = None
) -> tuple[MeasuredVoices | None, tuple[Problem, ...]]:
    """Return the numbers of the three matrices in a folder, or what is wrong with them.

    Args:
        name: of the folder, as its owner knows it.
        speakers: how many the trial set has, where that is known.
    """
    matrices, problems = [], ProblemList()
    for pair in PAIRS:
        file = f"{name}/{_file_of(pair)}"
        try:
            matrices.append(read_matrix(place / _file_of(pair), file))
        except InputError as error:
            expected, found = str(error).removeprefix(f"{file}: expected ").partition(", found ")[::2]
            problems.add(Problem("unusable-matrix", file, expected, found.rstrip("."), _REMEDY))
    sizes = [len(matrix) for matrix in matrices]
    alone = {tuple(np.flatnonzero(np.isnan(np.diag(matrix)))) for matrix in matrices}
    if matrices and ({*sizes} != {speakers or sizes[0]} or len(alone) > 1):
        expected = "three matrices of the same speakers" + (f", {speakers} as in the trial set" if speakers else "")
        found = f"{', '.join(map(str, sizes))} rows" + (", each with other speakers alone" if len(alone) > 1 else "")
        problems.add(Problem("unusable-matrix", f"{name}/{_file_of(PAIRS[-1])}", expected, found, _REMEDY))
    if report := problems.report():
        return None, report
    oo, op, pp = (diagonal_dominance(matrix) for matrix in matrices)
    if not (oo > 0 and pp > 0):
        found = "voices that cannot be distinguished"
        file = f"{name}/{_file_of(PAIRS[-1])}"
        return None, (Problem("unusable-matrix", file, "a diagonal that stands out", found, _REMEDY),)
    values = {"de_identification": 1 - op / oo, "gain_of_voice_distinctiveness": 10 * math.log10(pp / oo)}
    return MeasuredVoices(values, sizes[0], tuple(matrices)), ()


def _file_of(pair: str) -> str:
    return f"similarity_matrix_{pair}.npy"


def read_matrix(path: Path, name: str) -> NDArray[np.float64]:
    """Return a square matrix of similarities from an ``.npy`` file; its header is held against its size before it is
    read.

    They lie in [0, 1] (protocol 2.7); NaN may stand on the diagonal alone, for a speaker with one utterance.

    Raises:
        InputError: no such file; says what it is instead.
    """
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, kind = read(file)
            is_square = len(shape) == 2 and shape[0] == shape[1] and 2 <= shape[0] <= MOST_SPEAKERS
            if kind.kind != "f" or not is_square:
                raise InputError(f"{name}: expected a square matrix of real numbers, found {kind} of shape {shape}.")
            if path.stat().st_size - file.tell() != math.prod(shape) * kind.itemsize:
                raise InputError(f"{name}: expected {math.prod(shape)} numbers, found another size.")
        text_files.on_reading(path)
        matrix: NDArray[np.float64] = np.load(path, allow_pickle=False).astype(np.float64)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: expected a file of numpy (.npy), found: {error}.") from error
    is_similarity = (matrix >= 0) & (matrix <= 1)
    np.fill_diagonal(is_similarity, is_similarity.diagonal() | np.isnan(matrix.diagonal()))
    if not is_similarity.all():
        row, column = np.argwhere(~is_similarity)[0]
        found = f"{matrix[row, column]:g} in row {row + 1}, column {column + 1}, and {np.sum(~is_similarity) - 1} more"
        raise InputError(f"{name}: expected similarities from 0 to 1, found {found}.")
    return matrix
