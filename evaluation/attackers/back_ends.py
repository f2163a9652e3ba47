"""From speaker vectors to scores: centring, LDA, length normalisation, cosine and PLDA.

**Back ends** (`BackEnd`) turn models and test vectors into factors whose products are the scores, so that any list of
trials is scored by matrix products.

**Two-covariance PLDA** (`TwoCovariancePlda`): a speaker's mean varies with one covariance, their utterances around it
with another, x = y + e with y ~ N(μ, B) per speaker and e ~ N(0, W) per utterance. It is fitted by expectation
maximisation from moment estimates, and scored with the number of enrolment utterances, as Kaldi does.

Conventions: vectors are (n, d) float64; scores grow with likeness: cosines from -1 to 1, or of PLDA natural-log
likelihood ratios, not calibrated.

Sources of PLDA: N. Brümmer, E. de Villiers, Odyssey 2010; Kaldi ``ivector/plda.cc``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats, unit_vectors
from common.errors import InputError

Counts = NDArray[np.int64]

_SINGULAR = 1e-10  # smallest to largest eigenvalue of a covariance that is not singular


@dataclass(frozen=True, eq=False)
class SpeakerStatistics:
    """All that PLDA and LDA need of labelled vectors.

    Attributes:
        counts: utterances of each speaker, shape (s,).
        means: of each speaker, shape (s, d).
        scatter: summed squares around the speakers' means, shape (d, d).
    """

    counts: Counts
    means: Floats
    scatter: Floats

    @property
    def dimension(self) -> int:
        return int(self.means.shape[1])


@dataclass(frozen=True, eq=False)
class TwoCovariancePlda:
    """A fitted model.

    Attributes:
        mean: μ, shape (d,).
        between: B, shape (d, d), may be singular.
        within: W, shape (d, d), positive definite.
    """

    mean: Floats
    between: Floats
    within: Floats

    @classmethod
    def fit(
        cls, vectors: Floats, speakers: Sequence[str], *, iterations: int = 10, loading: float = 0.0
    ) -> TwoCovariancePlda:
        """Fit by expectation maximisation.

        Args:
            vectors: shape (n, d), finite.
            speakers: of each vector.
            iterations: 0 keeps the moment estimates, which are the solution where all have as many utterances.
            loading: added to the diagonals of the variation within speakers (before the first iteration) and of the
                covariance between them (after the last), in parts of their mean; needed where there are fewer
                utterances than dimensions.

        Raises:
            InputError: one speaker, one utterance each, or a singular covariance within speakers.
        """
        statistics = speaker_statistics(vectors, speakers)
        statistics = replace(statistics, scatter=_loaded(statistics.scatter, loading))
        mean, between, within = _moments(statistics)
        _require_regular(within, statistics)
        for _ in range(iterations):
            mean, between, within = _expect_and_maximise(statistics, mean, between, within)
        return cls(mean, _loaded(between, loading), within)

    def diagonalised(self) -> tuple[Floats, Floats]:
        """Return a (d, d) and ψ (d,), descending, with A W Aᵀ = I and A B Aᵀ = diag(ψ)."""
        root = _inverse_root(self.within)
        values, directions = np.linalg.eigh(root @ self.between @ root)
        return directions.T[::-1] @ root, np.maximum(values[::-1], 0.0)

    def model_factors(self, models: Floats, counts: Counts, *, normalise: bool = False) -> Floats:
        """Return one row per model, shape (m, 2 d + 1): its product with a row of `test_factors` is the score.

        Args:
            models: mean of the enrolment vectors of each model, shape (m, d).
            counts: enrolment utterances of each model, shape (m,).
            normalise: scale each side to the length that its distribution lets expect (Kaldi's
                ``--normalize-length``).
        """
        transform, spread = self.diagonalised()
        utterances = counts[:, None].astype(np.float64)
        moved = (models - self.mean) @ transform.T
        if normalise:
            moved = _expected_length(moved, spread + 1 / utterances)
        # Of a test vector u given the model: N(n ψ / (n ψ + 1) m, 1 + ψ / (n ψ + 1)); else N(0, 1 + ψ).
        shrunk = utterances * spread / (utterances * spread + 1) * moved
        given, alone = 1 + spread / (utterances * spread + 1), 1 + spread
        constants = 0.5 * np.sum(np.log(alone / given) - shrunk**2 / given, axis=1, keepdims=True)
        return np.hstack([0.5 * (1 / alone - 1 / given), shrunk / given, constants])

    def test_factors(self, tests: Floats, *, normalise: bool = False) -> Floats:
        """Return one row per test vector, shape (t, 2 d + 1); `tests` has shape (t, d)."""
        transform, spread = self.diagonalised()
        moved = (tests - self.mean) @ transform.T
        if normalise:
            moved = _expected_length(moved, spread + 1.0)
        return np.hstack([moved**2, moved, np.ones((len(moved), 1))])

    def score(self, models: Floats, counts: Counts, tests: Floats, *, normalise: bool = False) -> Floats:
        """Return log likelihood ratios of every model and every test vector, shape (m, t)."""
        scores: Floats = (
            self.model_factors(models, counts, normalise=normalise) @ self.test_factors(tests, normalise=normalise).T
        )
        return scores


def speaker_statistics(vectors: Floats, speakers: Sequence[str]) -> SpeakerStatistics:
    """Counts, means and scatter of labelled vectors.

    Raises:
        InputError: no such vectors, one speaker, or one utterance of each.
    """
    vectors = np.asarray(vectors, np.float64)
    if vectors.ndim != 2 or len(vectors) != len(speakers):
        raise InputError(
            f"Expected a vector and a speaker of each utterance, found vectors of shape {vectors.shape} and "
            f"{len(speakers)} speakers."
        )
    if not np.isfinite(vectors).all():
        broken = int(np.count_nonzero(~np.isfinite(vectors).all(axis=1)))
        raise InputError(f"Expected finite training vectors, found {broken} of {len(vectors)} that are not.")
    names, codes, counts = np.unique(np.asarray(speakers, str), return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise InputError(
            f"A back end learns how speakers differ: expected training vectors of two speakers, found {len(names)}."
        )
    if counts.max() < 2:
        raise InputError(
            "A back end learns how a speaker's utterances vary: expected two utterances of some training speaker, "
            f"found one of each of the {len(names)}."
        )
    order = np.argsort(codes, kind="stable")
    sums = np.add.reduceat(vectors[order], np.concatenate([[0], counts.cumsum()[:-1]]), axis=0)
    means = sums / counts[:, None]
    residuals = vectors - means[codes]
    return SpeakerStatistics(counts.astype(np.int64), means, residuals.T @ residuals)


def _moments(statistics: SpeakerStatistics) -> tuple[Floats, Floats, Floats]:
    """μ, B and W by moments: maximum likelihood where all speakers have as many utterances."""
    counts, speakers = statistics.counts, len(statistics.counts)
    mean: Floats = statistics.means.mean(axis=0)
    within = statistics.scatter / (counts.sum() - speakers)
    deviations = statistics.means - mean
    between = deviations.T @ deviations / speakers - within * np.mean(1 / counts)
    values, directions = np.linalg.eigh(between)
    # Exact zeros would stay zeros for ever; a thousandth of the variance within lets the data decide.
    least = 1e-3 * float(np.trace(within)) / len(within)
    return mean, (directions * np.maximum(values, least)) @ directions.T, within


def _expect_and_maximise(
    statistics: SpeakerStatistics, mean: Floats, between: Floats, within: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return one iteration; speakers with as many utterances share the posterior covariance."""
    expected = np.empty_like(statistics.means)
    speaker_covariance, utterance_covariance = np.zeros_like(between), np.zeros_like(within)
    for count in np.unique(statistics.counts):
        rows = statistics.counts == count
        # y | x ~ N(μ + K (m - μ), B - K B) with K = B (B + W / n)⁻¹, which needs no inverse of B.
        gain = np.linalg.solve(between + within / count, between).T
        covariance = between - gain @ between
        expected[rows] = mean + (statistics.means[rows] - mean) @ gain.T
        speaker_covariance += np.count_nonzero(rows) * covariance
        utterance_covariance += np.count_nonzero(rows) * count * covariance
    centre = expected.mean(axis=0)
    moved, left = expected - centre, statistics.means - expected
    new_between = (speaker_covariance + moved.T @ moved) / len(expected)
    errors = statistics.scatter + utterance_covariance + (left * statistics.counts[:, None]).T @ left
    new_within = errors / statistics.counts.sum()
    return centre, _symmetric(new_between), _symmetric(new_within)


def _expected_length(vectors: Floats, variances: Floats) -> Floats:
    lengths = np.sqrt(np.mean(vectors**2 / variances, axis=1, keepdims=True))
    if not lengths.all():
        raise InputError("Expected vectors that differ from the mean of the training, found one that equals it.")
    scaled: Floats = vectors / lengths
    return scaled


def _loaded(covariance: Floats, loading: float) -> Floats:
    size = len(covariance)
    return covariance + loading * float(np.trace(covariance)) / size * np.eye(size)


def _require_regular(within: Floats, statistics: SpeakerStatistics) -> None:
    values = np.linalg.eigvalsh(within)
    if values[0] <= _SINGULAR * max(float(values[-1]), 0.0):
        raise InputError(
            f"The covariance within speakers is singular: {statistics.counts.sum()} utterances of "
            f"{len(statistics.counts)} speakers do not span {statistics.dimension} dimensions. Take more utterances, "
            "fewer dimensions (LDA), or diagonal loading above 0."
        )


def _inverse_root(covariance: Floats) -> Floats:
    values, directions = np.linalg.eigh(covariance)
    return np.asarray((directions / np.sqrt(values)) @ directions.T, np.float64)


def _symmetric(matrix: Floats) -> Floats:
    return (matrix + matrix.T) / 2


class BackEnd(Protocol):
    """What `evaluation.attackers.trial_scores` asks of a way to compare vectors."""

    def prepare(self, vectors: Floats) -> Floats:
        """Return what happens to every vector before those of a model are averaged; shape (n, d) to (n, d)."""

    def model_factors(self, models: Floats, counts: Counts) -> Floats:
        """Of averaged models, shape (m, d), with their numbers of utterances, shape (m,); shape (m, k)."""

    def test_factors(self, tests: Floats) -> Floats:
        """Of prepared test vectors, shape (t, d); shape (t, k). Row times row is the score."""


@dataclass(frozen=True, eq=False)
class Cosine:
    """Cosine of model and test vector.

    Attributes:
        centre: taken off every vector first, shape (d,): the mean of the training vectors (SpAnE); None for nothing
            (2024).
    """

    centre: Floats | None = None

    def prepare(self, vectors: Floats) -> Floats:
        if self.centre is None:
            return vectors
        if self.centre.shape != vectors.shape[1:]:
            raise InputError(
                f"Expected vectors of {self.centre.size} dimensions, as in training, found {vectors.shape[1]}."
            )
        return vectors - self.centre

    def model_factors(self, models: Floats, counts: Counts) -> Floats:  # noqa: ARG002 (a cosine does not count)
        return unit_vectors(models, "models")

    def test_factors(self, tests: Floats) -> Floats:
        return unit_vectors(tests, "trial vectors")


@dataclass(frozen=True, eq=False)
class Lda:
    """A projection on the directions in which speakers differ most against their own variation.

    Attributes:
        mean: taken off first, shape (d,).
        projection: shape (k, d), best direction first; the variation within speakers becomes unit.
    """

    mean: Floats
    projection: Floats

    @classmethod
    def fit(cls, vectors: Floats, speakers: Sequence[str], dimensions: int, *, loading: float = 0.0) -> Lda:
        """Fit on labelled vectors, shape (n, d).

        Args:
            dimensions: at most; never more than d or than speakers less one.
            loading: added to the diagonal of the covariance within speakers, in parts of its mean variance.

        Raises:
            InputError: no positive number of dimensions, one speaker, one utterance each, or a singular
                covariance within speakers.
        """
        statistics = speaker_statistics(vectors, speakers)
        if dimensions < 1:
            raise InputError(f"Expected LDA to one dimension or more, found {dimensions}.")
        size, total = statistics.dimension, int(statistics.counts.sum())
        within = _loaded(statistics.scatter / total, loading)
        spread, axes = np.linalg.eigh(within)
        if spread[0] <= 1e-10 * spread[-1]:
            raise InputError(
                f"LDA finds no variation within speakers in some of the {size} dimensions: {total} utterances of "
                f"{len(statistics.counts)} speakers are too few. Take more utterances or diagonal loading above 0."
            )
        whitening = axes / np.sqrt(spread)
        mean = np.asarray(vectors, np.float64).mean(axis=0)
        deviations = (statistics.means - mean) @ whitening * np.sqrt(statistics.counts / total)[:, None]
        _, best = np.linalg.eigh(deviations.T @ deviations)
        kept = min(dimensions, size, len(statistics.counts) - 1)
        return cls(mean, (whitening @ best[:, ::-1][:, :kept]).T)

    def project(self, vectors: Floats) -> Floats:
        """Shape (n, d) to (n, k)."""
        return np.asarray((vectors - self.mean) @ self.projection.T, np.float64)


@dataclass(frozen=True, eq=False)
class Plda:
    """The 2022 chain: centring, LDA, length normalisation, two-covariance PLDA that knows the number of utterances.

    Attributes:
        lda: centres and projects.
        plda: fitted on the projected vectors of normalised length.
        normalise: PLDA's own normalisation of lengths as well, as Kaldi's scoring does.
    """

    lda: Lda
    plda: TwoCovariancePlda
    normalise: bool = True

    @classmethod
    def fit(
        cls,
        vectors: Floats,
        speakers: Sequence[str],
        *,
        lda_dimensions: int = 200,
        loading: float = 0.0,
        iterations: int = 10,
    ) -> Plda:
        """Fit all parts on the vectors of the training corpus, shape (n, d).

        Raises:
            InputError: one speaker, one utterance each, or too few utterances for the dimensions.
        """
        vectors = np.asarray(vectors, np.float64)
        lda = Lda.fit(vectors, speakers, lda_dimensions, loading=loading)
        projected = _expanded(lda.project(vectors))
        return cls(lda, TwoCovariancePlda.fit(projected, speakers, iterations=iterations, loading=loading))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return all that is fitted, by name, to be kept in a file."""
        return {
            "lda_mean": self.lda.mean,
            "lda_projection": self.lda.projection,
            "plda_mean": self.plda.mean,
            "plda_between": self.plda.between,
            "plda_within": self.plda.within,
            "normalise": np.array(self.normalise),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Plda:
        """From what `arrays` gave.

        Raises:
            KeyError: an array is missing.
        """
        mean, projection, *fitted = (
            np.asarray(arrays[name], np.float64)
            for name in ("lda_mean", "lda_projection", "plda_mean", "plda_between", "plda_within")
        )
        return cls(Lda(mean, projection), TwoCovariancePlda(*fitted), bool(arrays["normalise"]))

    def prepare(self, vectors: Floats) -> Floats:
        if vectors.shape[1] != self.lda.mean.size:
            raise InputError(
                f"Expected vectors of {self.lda.mean.size} dimensions, as in training, found {vectors.shape[1]}."
            )
        return vectors

    def model_factors(self, models: Floats, counts: Counts) -> Floats:
        return self.plda.model_factors(_expanded(self.lda.project(models)), counts, normalise=self.normalise)

    def test_factors(self, tests: Floats) -> Floats:
        return self.plda.test_factors(_expanded(self.lda.project(tests)), normalise=self.normalise)


def _expanded(vectors: Floats) -> Floats:
    """Return length √k, as Kaldi's ``ivector-normalize-length``: unit variance in the mean."""
    expanded: Floats = unit_vectors(vectors, "projected vectors") * np.sqrt(vectors.shape[1])
    return expanded
