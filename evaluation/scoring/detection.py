"""Numbers of speaker verification from the scores of a submission and the organizer's trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from evaluation.formats.claims import Claim, ClaimIdentity, Gender
from evaluation.formats.problems import Problem, Severity
from evaluation.formats.recomputation import (
    MeasuredTest,
    RecomputedNumber,
    agrees,
    detection_value,
    measure_tests,
    unlike,
)
from evaluation.formats.result_lines import KINDS
from evaluation.formats.results import ScoreFile
from evaluation.formats.results_2022 import new_claim
from evaluation.formats.scores import TrialTable
from evaluation.metrics.bootstrap import DETECTION_MEASURES, Replicates, bootstrap_detection, weighted_sum
from evaluation.objective.sources import Sources, Work
from evaluation.objective.values import Basis
from evaluation.protocols.recipes import DataSet

# Metric and estimator as claims and recipes name them; the first three with intervals over speakers.
MEASURES = (
    ("eer", "kaldi"), ("eer", "rocch"), ("min_cllr", "pav"), ("eer", "speechbrain"), ("cllr", ""), ("linkability", ""),
    ("zebra_population", ""), ("zebra_individual", ""), ("zebra_category", ""), ("auc", ""), ("min_dcf_01", ""),
    ("min_dcf_001", ""),
)  # fmt: skip
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
    table = work.sources.trials(data_set)
    if table is not None:
        return table
    remedy = "The organizer has to import the lists of this corpus; until then its numbers stay claims."
    expected = f"the organizer's trials of {data_set.name}"
    work.problems.add(Problem("no-trials", data_set.name, expected, "none", remedy, Severity.WARNING))
    nothing = np.zeros(0, "S1")
    return TrialTable(data_set.name, nothing, np.zeros(0, bool), _NO_LINES, ())


def _add_test(work: Work, test: MeasuredTest) -> None:
    data_set = work.recipe.data_sets[test.file.data_set]
    replicates = _replicates(work, test, data_set)
    trials = test.metrics.n_target + test.metrics.n_nontarget
    for metric, estimator in MEASURES:
        identity = ClaimIdentity(
            data_set.name, Gender(data_set.gender), metric, estimator,
            test.file.training, test.file.enrolment, test.file.speech,
        )  # fmt: skip
        value = detection_value(test.metrics, identity)
        found = work.add(
            identity, value, Basis.SCORES, trials,
            replicates=replicates.get((metric, estimator)), agree=_agreement(identity),
        )  # fmt: skip
        for claim in found:
            written = new_claim(identity, value).written
            number = RecomputedNumber(claim, test.file.name, value, written)
            work.unlike[identity] = unlike(number, "unlike-scores")
        if not test.joined.complete:
            work.reasons[identity] = _incomplete(test)


def _agreement(identity: ClaimIdentity) -> Callable[[Claim, float], bool]:
    """In print for what the 2022 scripts print; SpeechBrain's EER in the decimals that the claim has."""
    if (identity.metric, identity.estimator) in PRINTED:
        return agrees
    return in_its_decimals


def in_its_decimals(claim: Claim, value: float) -> bool:
    """Whether a claim is a value rounded to as many decimals as it is written with."""
    decimals = len(claim.written.partition(".")[2])
    return bool(abs(claim.value - value) <= 0.5 / 10**decimals + 1e-9)


def _incomplete(test: MeasuredTest) -> str:
    joined = test.joined
    counted = {
        "without a score": joined.missing, "without a finite score": joined.not_finite,
        "scored but not in the list": joined.extra, "scored more than once": joined.repeated,
    }  # fmt: skip
    found = ", ".join(f"{count} trials {what}" for what, count in counted.items() if count)
    return f"{test.file.name} does not cover the organizer's trials: {found or 'faults in the file'}"


def _replicates(work: Work, test: MeasuredTest, data_set: DataSet) -> dict[tuple[str, str], Replicates]:
    """Resampled measures in the units of the numbers; none where a speaker of the trial utterances is not known."""
    speakers = work.sources.speakers(data_set)
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
