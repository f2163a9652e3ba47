"""From speaker vectors to scores: centring, LDA, length normalisation, cosine and PLDA.

A back end turns models and test vectors into factors whose products are the scores, so that any list of trials is
scored by matrix products. Conventions: vectors are (n, d) float64; scores grow with likeness: cosines from -1 to 1, or
natural-log likelihood ratios, not calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evaluation.attackers.plda import Counts, TwoCovariancePlda, speaker_statistics
from evaluation.metrics.arrays import unit_vectors
from evaluation.metrics.errors import MetricInputError

Floats = NDArray[np.float64]


class BackEnd(Protocol):
    """What `evaluation.attackers.scoring` asks of a way to compare vectors."""

    def prepare(self, vectors: Floats) -> Floats:
        """What happens to every vector before those of a model are averaged; shape (n, d) to (n, d)."""

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
            raise MetricInputError(
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
            MetricInputError: no positive number of dimensions, one speaker, one utterance each, or a singular
                covariance within speakers.
        """
        statistics = speaker_statistics(vectors, speakers)
        if dimensions < 1:
            raise MetricInputError(f"Expected LDA to one dimension or more, found {dimensions}.")
        size, total = statistics.dimension, int(statistics.counts.sum())
        within = statistics.scatter / total
        within = within + loading * float(np.trace(within)) / size * np.eye(size)
        spread, axes = np.linalg.eigh(within)
        if spread[0] <= 1e-10 * spread[-1]:
            raise MetricInputError(
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
            MetricInputError: one speaker, one utterance each, or too few utterances for the dimensions.
        """
        vectors = np.asarray(vectors, np.float64)
        lda = Lda.fit(vectors, speakers, lda_dimensions, loading=loading)
        projected = _expanded(lda.project(vectors))
        return cls(lda, TwoCovariancePlda.fit(projected, speakers, iterations=iterations, loading=loading))

    def prepare(self, vectors: Floats) -> Floats:
        if vectors.shape[1] != self.lda.mean.size:
            raise MetricInputError(
                f"Expected vectors of {self.lda.mean.size} dimensions, as in training, found {vectors.shape[1]}."
            )
        return vectors

    def model_factors(self, models: Floats, counts: Counts) -> Floats:
        return self.plda.model_factors(_expanded(self.lda.project(models)), counts, normalise=self.normalise)

    def test_factors(self, tests: Floats) -> Floats:
        return self.plda.test_factors(_expanded(self.lda.project(tests)), normalise=self.normalise)


def _expanded(vectors: Floats) -> Floats:
    """Length √k, as Kaldi's ``ivector-normalize-length``: unit variance in the mean."""
    expanded: Floats = unit_vectors(vectors, "projected vectors") * np.sqrt(vectors.shape[1])
    return expanded
