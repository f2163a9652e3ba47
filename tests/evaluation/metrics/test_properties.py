"""One table of all metrics: what leaves each of them as it is, and what does not.

A row names a metric, what it takes, and its change under each transformation: a number is how much it may change at
most (0 is nothing at all), `CHANGES` means that it does for the example of its kind. A transformation that a row leaves
out means nothing for it, or has no bound: Kaldi's and SpeechBrain's EER read one side of the crossing, and D_sys looks
at targets only, so swapping the labels moves them by as much as the scores are coarse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.metrics.averages import summarise
from evaluation.metrics.calibration import calibrated_llrs, cllr, min_cllr, rocch_eer
from evaluation.metrics.catalogue import DETECTION_METRICS
from evaluation.metrics.detection import auc, detection_metrics, kaldi_eer, speechbrain_eer
from evaluation.metrics.linkability import linkability
from evaluation.metrics.pitch import pitch_correlation
from evaluation.metrics.speaker_traits import EMOTIONS, emotion_scores
from evaluation.metrics.voice_similarity import similarity_matrix
from evaluation.metrics.word_errors import WordErrorCounts, count_word_errors
from evaluation.metrics.zebra import zebra
from tests.evaluation.score_sets import score_lists

CHANGES = math.inf
# The official ramp over the sorted trials: it depends on their number and direction.
RAMP = 1.1e-6
ROUNDING = 1e-12

Sample = Any
Transformation = Callable[[Sample, np.random.Generator], Sample]


@dataclass(frozen=True)
class Kind:
    """What a metric takes: how to draw it, one example, and its transformations by name."""

    strategy: st.SearchStrategy[Sample]
    example: Sample
    transformations: Mapping[str, Transformation]


def each(change: Callable[[np.ndarray], np.ndarray]) -> Transformation:
    """The same change of both sides of a score set."""
    return lambda sample, _: tuple(change(side) for side in sample)


def relabel_emotions(sample: Sample, random: np.random.Generator) -> Sample:
    names = dict(zip(EMOTIONS, random.permutation(EMOTIONS).tolist(), strict=True))
    return [(names[reference], names[found], speaker) for reference, found, speaker in sample]


def shuffled(sample: Sample, random: np.random.Generator) -> Sample:
    return [sample[i] for i in random.permutation(len(sample))]


def reorder_pairs(sample: Sample, random: np.random.Generator) -> Sample:
    """Speakers, and utterances within them: official lists keep the utterances of a speaker together."""
    scores, speakers = sample
    order = np.array(
        [i for name in random.permutation(list("abc")) for i in random.permutation(6) if speakers[i] == name]
    )
    return scores[np.ix_(order, order)], [speakers[i] for i in order]


def symmetric(triangle: list[float]) -> np.ndarray:
    scores = np.zeros((6, 6))
    scores[np.triu_indices(6, 1)] = triangle
    return scores + scores.T


def bend(scores: np.ndarray) -> np.ndarray:
    """Strictly monotone, and exact for eighths in single precision."""
    return scores**3 + scores


hertz = st.sampled_from([0.0, 100.0, 110.0, 150.0, 220.0])
spoken = st.lists(st.sampled_from("ABC"), min_size=1, max_size=6).map(" ".join)

KINDS = {
    "scores": Kind(
        st.tuples(score_lists().map(np.array), score_lists().map(np.array)),
        (np.linspace(-1.0, 3.0, 300) ** 3 / 9, np.linspace(-3.0, 1.0, 700)),
        {
            "order": lambda sample, random: tuple(random.permutation(side) for side in sample),
            "swap": lambda sample, _: (-sample[1], -sample[0]),
            "monotone": each(bend),
            "duplication": each(lambda side: np.tile(side, 3)),
            "scale": each(lambda side: 4 * side),
        },
    ),
    "transcripts": Kind(
        st.lists(st.tuples(spoken, spoken), min_size=1, max_size=6),
        [("A B C", "A C"), ("A", "B A B")],
        {
            "order": shuffled,
            "duplication": lambda sample, _: sample * 2,
            "relabel": lambda sample, _: [
                tuple(text.translate(str.maketrans("ABC", "CAB")) for text in pair) for pair in sample
            ],
            "swap": lambda sample, _: [pair[::-1] for pair in sample],
        },
    ),
    "emotions": Kind(
        st.lists(
            st.tuples(st.sampled_from(EMOTIONS), st.sampled_from(EMOTIONS), st.sampled_from("xyz")),
            min_size=1,
            max_size=20,
        ),
        [*[("sad", "hap", "x")] * 2, ("sad", "sad", "x"), *[("hap", "hap", "x")] * 2],
        {
            "order": shuffled,
            "duplication": lambda sample, _: sample * 2,
            "relabel": relabel_emotions,
            "swap": lambda sample, _: [(found, reference, speaker) for reference, found, speaker in sample],
        },
    ),
    "pairs": Kind(
        st.lists(st.integers(-16, 16).map(lambda k: k / 8), min_size=15, max_size=15).map(
            lambda triangle: (symmetric(triangle), list("aabbcc"))
        ),
        (symmetric([2, 0, 1, 0, 0, 0, 1, 0, 0, 2, 1, 0, 0, 1, 1.5]), list("aabbcc")),
        {
            "order": reorder_pairs,
            "monotone": lambda sample, _: (bend(sample[0]), sample[1]),
            "scale": lambda sample, _: (4 * sample[0], sample[1]),
        },
    ),
    "contours": Kind(
        st.lists(st.tuples(hertz, hertz), min_size=2, max_size=30).map(lambda frames: tuple(np.array(frames).T)),
        (np.array([0.0, 100.0, 110.0, 150.0, 220.0, 0.0]), np.array([100.0, 110.0, 0.0, 100.0, 220.0, 220.0])),
        {
            "monotone": each(lambda contour: contour**2 / 200),
            "scale": each(lambda contour: 2 * contour),
        },
    ),
    "values": Kind(
        st.lists(st.integers(-100, 100).map(lambda k: k / 10), min_size=1, max_size=30),
        [0.1, 0.5, 0.9],
        {
            "order": shuffled,
            "duplication": lambda sample, _: sample * 2,
            "scale": lambda sample, _: [4 * value for value in sample],
        },
    ),
}


def word_errors(sample: Sample) -> WordErrorCounts:
    references, hypotheses = ({f"u{i}": text for i, text in enumerate(side)} for side in zip(*sample, strict=True))
    return count_word_errors(references, hypotheses).honest


def unweighted_recall(sample: Sample) -> float:
    names = [f"u{i}" for i in range(len(sample))]
    columns = (dict(zip(names, column, strict=True)) for column in zip(*sample, strict=True))
    return emotion_scores(*columns).uar_score


def one_target(sample: Sample) -> float:
    return 1 / len(sample[0])


@dataclass(frozen=True)
class Row:
    kind: str
    measure: Callable[[Sample], float]
    changes: Mapping[str, float | Callable[[Sample], float]]


# Read from the order of the scores alone.
RANKED: dict[str, float | Callable[[Sample], float]] = {"order": 0, "monotone": 0, "scale": 0}

TABLE = {
    "kaldi_eer": Row("scores", lambda s: kaldi_eer(*s), RANKED | {"duplication": one_target}),
    "rocch_eer": Row("scores", lambda s: rocch_eer(*s), RANKED | {"swap": ROUNDING, "duplication": ROUNDING}),
    "speechbrain_eer": Row("scores", lambda s: speechbrain_eer(*s), RANKED | {"duplication": 0}),
    "cllr": Row(
        "scores",
        lambda s: cllr(*s),
        {"order": ROUNDING, "swap": ROUNDING, "duplication": ROUNDING, "monotone": CHANGES, "scale": CHANGES},
    ),
    "min_cllr": Row("scores", lambda s: min_cllr(*s), RANKED | {"swap": RAMP, "duplication": RAMP}),
    "laplace_llr": Row(
        "scores", lambda s: float(calibrated_llrs(*s, laplace=True).target.mean()), RANKED | {"order": ROUNDING}
    ),
    "linkability": Row(
        "scores", lambda s: linkability(*s), {"order": 0, "scale": 0, "monotone": CHANGES, "duplication": CHANGES}
    ),
    "zebra_population": Row("scores", lambda s: zebra(*s).population_bit, RANKED | {"swap": RAMP, "duplication": RAMP}),
    "zebra_individual": Row(
        "scores", lambda s: zebra(*s).individual_log10, RANKED | {"swap": RAMP, "duplication": CHANGES}
    ),
    "auc": Row("scores", lambda s: auc(*s), RANKED | {"swap": ROUNDING, "duplication": ROUNDING}),
    "min_dcf_01": Row(
        "scores", lambda s: detection_metrics(*s).min_dcf_01, RANKED | {"duplication": ROUNDING, "swap": CHANGES}
    ),
    "min_dcf_001": Row(
        "scores", lambda s: detection_metrics(*s).min_dcf_001, RANKED | {"duplication": ROUNDING, "swap": CHANGES}
    ),
    "word_error_rate": Row(
        "transcripts",
        lambda s: word_errors(s).error_rate or 0.0,
        {"order": 0, "duplication": 0, "relabel": 0, "swap": CHANGES},
    ),
    "word_errors": Row(
        "transcripts", lambda s: word_errors(s).errors, {"order": 0, "relabel": 0, "swap": 0, "duplication": CHANGES}
    ),
    "unweighted_average_recall": Row(
        "emotions",
        unweighted_recall,
        {"order": ROUNDING, "duplication": ROUNDING, "relabel": ROUNDING, "swap": CHANGES},
    ),
    "diagonal_dominance": Row(
        "pairs",
        lambda s: similarity_matrix(*s).diagonal_dominance,
        {"order": RAMP, "monotone": 0, "scale": 0},
    ),
    "diagonal_dominance_of_the_plan": Row(
        "pairs",
        lambda s: similarity_matrix(*s, form="plan").diagonal_dominance,
        {"order": ROUNDING, "monotone": CHANGES, "scale": CHANGES},
    ),
    "pitch_correlation": Row("contours", lambda s: pitch_correlation(*s).rho, {"scale": ROUNDING, "monotone": CHANGES}),
    "mean": Row("values", lambda s: summarise(s).mean, {"order": ROUNDING, "duplication": ROUNDING, "scale": CHANGES}),
    "std": Row("values", lambda s: summarise(s).std, {"order": ROUNDING, "duplication": ROUNDING, "scale": CHANGES}),
}

BOUNDED = [(name, what) for name, row in TABLE.items() for what, limit in row.changes.items() if limit is not CHANGES]
CHANGED = [(name, what) for name, row in TABLE.items() for what, limit in row.changes.items() if limit is CHANGES]


def test_table_holds_every_detection_metric_of_the_catalogue():
    assert DETECTION_METRICS.keys() <= TABLE.keys()
    example = KINDS["scores"].example
    measured = {name: detection_metrics(*example).values()[name] for name in DETECTION_METRICS}
    in_percent = {name: 100 if name.endswith("eer") else 1 for name in DETECTION_METRICS}
    expected = {name: in_percent[name] * TABLE[name].measure(example) for name in DETECTION_METRICS}
    assert measured == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("name", "what"), BOUNDED)
@settings(max_examples=6)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_metric_stays_under_what_leaves_it(name, what, data, seed):
    row = TABLE[name]
    sample = data.draw(KINDS[row.kind].strategy)
    transformed = KINDS[row.kind].transformations[what](sample, np.random.default_rng(seed))
    limit = row.changes[what]
    before, after = row.measure(sample), row.measure(transformed)
    assert abs(after - before) <= (limit(sample) if callable(limit) else limit)


@pytest.mark.parametrize(("name", "what"), CHANGED)
def test_metric_changes_under_what_changes_it(name, what):
    row, kind = TABLE[name], KINDS[TABLE[name].kind]
    transformed = kind.transformations[what](kind.example, np.random.default_rng(0))
    assert abs(row.measure(transformed) - row.measure(kind.example)) > 1e-3
