"""Numbers of speaker verification from the scores of a submission and the organizer's trials.

De-Identification and G_VD from the similarity matrices that a team hands in: the last step of protocol 2.7.

``similarity_matrices_DeID_Gvd/<trials>/similarity_matrix_{osp_osp,osp_psp,psp_psp}.npy`` hold the similarity of every
speaker to every speaker, original with original, original with anonymised, anonymised with anonymised.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.errors import MetricInputError
from common.problems import Problem, Severity
from evaluation.formats.results import KINDS, Gender, NumberIdentity, ReportedNumber
from evaluation.formats.scores import TrialTable
from evaluation.metrics.bootstrap import DETECTION_MEASURES, Replicates, bootstrap_detection, weighted_sum
from evaluation.metrics.voice_similarity import diagonal_dominance
from evaluation.protocols.recipes import DataSet
from evaluation.scoring.recomputation import MeasuredTest, agrees, detection_value, measure_tests
from evaluation.scoring.results.folders import ScoreFile
from evaluation.scoring.results.results_2022 import SIMILARITY_FOLDER
from evaluation.scoring.sources import Sources, Work
from evaluation.scoring.values import MEASURES, Basis

# Of the measures those with intervals over speakers.
WITH_INTERVAL = {("eer", "kaldi"): "kaldi_eer", ("eer", "rocch"): "rocch_eer", ("min_cllr", "pav"): "min_cllr"}
PRINTED = {(number.metric, number.estimator) for kind in KINDS.values() for number in kind.numbers}
_NO_LINES = np.zeros(0, np.int64)


def add_detection(work: Work) -> None:
    """Every metric of each verification test whose scores and trials are at hand, with intervals over speakers."""
    sources, files = work.sources, work.system.scores
    if not files:
        return
    trials = partial(_trials, work)
    shown = _with_progress(work, files)
    for test in measure_tests(work.system, sources.recipe.data_sets, trials, work.problems, shown):
        _add_test(work, test)
        work.kept(test)


def _with_progress(work: Work, files: tuple[ScoreFile, ...]) -> Iterator[ScoreFile]:
    for done, file in enumerate(files):
        work.progress("Measuring the scores", done, len(files))
        yield file
    work.progress("Measuring the scores", len(files), len(files))


def _trials(work: Work, data_set: DataSet) -> TrialTable:
    """The organizer's list; empty, with a note, where there is none."""
    table = work.sources.read_trials(data_set)
    if table is not None:
        return table
    remedy = "The organizer has to import the lists of this corpus; until then its numbers are only reported."
    expected = f"the organizer's trials of {data_set.name}"
    work.problems.add(Problem("no-trials", data_set.name, expected, "none", remedy, Severity.WARNING))
    nothing = np.zeros(0, "S1")
    return TrialTable(data_set.name, nothing, np.zeros(0, bool), _NO_LINES, ())


def _add_test(work: Work, test: MeasuredTest) -> None:
    data_set = work.recipe.data_sets[test.file.data_set]
    replicates = _replicates(work, test, data_set)
    trials = test.metrics.n_target + test.metrics.n_nontarget
    for metric, estimator in MEASURES:
        identity = NumberIdentity(data_set.name, Gender(data_set.gender), metric, estimator, *test.file.speeches)
        work.add(
            identity,
            detection_value(test.metrics, identity),
            Basis.SCORES,
            trials,
            replicates=replicates.get((metric, estimator)),
            # In print for what the 2022 scripts print; SpeechBrain's EER in the decimals that the reported number has.
            agree=agrees if (metric, estimator) in PRINTED else in_its_decimals,
            source=(test.file.name, "unlike-scores"),
        )
        if not test.joined.complete:
            work.reasons[identity] = _incomplete(test)


def in_its_decimals(reported: ReportedNumber, value: float) -> bool:
    """Whether a reported number is a value rounded to as many decimals as it is written with."""
    decimals = len(reported.written.partition(".")[2])
    return bool(abs(reported.value - value) <= 0.5 / 10**decimals + 1e-9)


def _incomplete(test: MeasuredTest) -> str:
    joined = test.joined
    counted = {
        "without a score": joined.missing,
        "without a finite score": joined.not_finite,
        "scored but not in the list": joined.extra,
        "scored more than once": joined.repeated,
    }
    found = ", ".join(f"{count} trials {what}" for what, count in counted.items() if count)
    return f"{test.file.name} does not cover the organizer's trials: {found or 'problems in the file'}"


def _replicates(work: Work, test: MeasuredTest, data_set: DataSet) -> dict[tuple[str, str], Replicates]:
    """Resampled measures in the units of the numbers; none where a speaker of the trial utterances is not known."""
    speakers = work.sources.find_speakers(data_set)
    utterances = [name.decode() for name in test.joined.utterances.tolist()]
    if not speakers or any(name not in speakers for name in set(utterances)):
        return {}
    trial_speakers = np.array([speakers[name] for name in utterances], dtype=np.str_)
    models = test.joined.models.astype(np.str_)
    draws = work.draws([*np.unique(trial_speakers).tolist(), *np.unique(models).tolist()])
    if draws is None:
        return {}
    wanted = dict(WITH_INTERVAL) | _ranked_estimator(work.sources)
    found = bootstrap_detection(
        test.joined.scores, test.joined.targets, models, trial_speakers, draws, measures=tuple(wanted.values())
    )
    return {key: _in_unit(key[0], found[measure]) for key, measure in wanted.items()}


def _ranked_estimator(sources: Sources) -> dict[tuple[str, str], str]:
    """The estimator that the edition averages its EERs by."""
    named = {average.estimator for average in sources.track.averages if average.metric == "eer"}
    return {("eer", one): f"{one}_eer" for one in sorted(named) if f"{one}_eer" in DETECTION_MEASURES}


def _in_unit(metric: str, replicates: Replicates) -> Replicates:
    if metric != "eer":
        return replicates
    return replace(weighted_sum([(100.0, replicates)]), estimate=100 * replicates.estimate)


MOST_SPEAKERS = 2000
PAIRS = ("osp_osp", "osp_psp", "psp_psp")
_REMEDY = "Submit the matrices as the official script saved them."


def add_similarity(work: Work) -> None:
    """G_VD and De-Identification of each trial set whose matrices are there."""
    for folder in sorted(work.folder.rglob(SIMILARITY_FOLDER)):
        for data_set in work.recipe.sets("trial"):
            paths = [folder / data_set.name / f"similarity_matrix_{pair}.npy" for pair in PAIRS]
            if all(path.is_file() for path in paths):
                _add_set(work, data_set, paths)


def _add_set(work: Work, data_set: DataSet, paths: list[Path]) -> None:
    names = [path.relative_to(work.folder).as_posix() for path in paths]
    try:
        matrices = [read_matrix(path, name) for path, name in zip(paths, names, strict=True)]
        oo, op, pp = (diagonal_dominance(matrix) for matrix in matrices)
    except MetricInputError as error:
        work.problems.add(
            Problem("unusable-matrix", names[0].rpartition("/")[0], "three usable matrices", str(error), _REMEDY)
        )
        return
    if not (oo > 0 and pp > 0):
        found = "voices that nothing tells apart"
        work.problems.add(Problem("unusable-matrix", names[0], "a diagonal that stands out", found, _REMEDY))
        return
    values = {"de_identification": 1 - op / oo, "gain_of_voice_distinctiveness": 10 * math.log10(pp / oo)}
    for metric, value in values.items():
        identity = NumberIdentity(data_set.name, Gender(data_set.gender), metric, "official")
        work.add(identity, value, Basis.SIMILARITY, len(matrices[0]), source=(names[-1], "unlike-matrices"))


def read_matrix(path: Path, name: str) -> NDArray[np.float64]:
    """A square matrix of finite numbers from an ``.npy`` file; its header is held against its size before it is read.

    Raises:
        MetricInputError: no such file; says what it is instead.
    """
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, kind = read(file)
            is_square = len(shape) == 2 and shape[0] == shape[1] and 2 <= shape[0] <= MOST_SPEAKERS
            if kind.kind != "f" or not is_square:
                raise MetricInputError(
                    f"{name}: expected a square matrix of real numbers, found {kind} of shape {shape}."
                )
            if path.stat().st_size - file.tell() != math.prod(shape) * kind.itemsize:
                raise MetricInputError(f"{name}: expected {math.prod(shape)} numbers, found another size.")
        matrix: NDArray[np.float64] = np.load(path, allow_pickle=False).astype(np.float64)
    except (OSError, ValueError) as error:
        if isinstance(error, MetricInputError):
            raise
        raise MetricInputError(f"{name}: expected a file of numpy (.npy), found: {error}.") from error
    if not np.isfinite(matrix[~np.eye(len(matrix), dtype=bool)]).all():
        raise MetricInputError(f"{name}: expected finite similarities of different speakers, found others.")
    return matrix
