"""A fresh linear probe: what frozen vectors still tell about a speaker, whatever the classifier they were trained with.

A classifier that was trained against the recogniser may be wrong although the information is there; a new one that is
fitted afterwards is not misled. It is fitted on some vectors and tested on others: of other segments, or of other
sources. Conventions: vectors have shape (n, d), labels shape (n,); errors are shares.

Source: G. Alain, Y. Bengio, "Understanding intermediate layers using linear classifier probes", 2016; the need for it
here: Y. Elazar, Y. Goldberg, "Adversarial removal of demographic attributes from text data", EMNLP 2018.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluation.attackers.training.values import ProbeResult
from evaluation.metrics.errors import MetricInputError

Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
TEST_SHARE = 0.2
_MOST_ITERATIONS = 150
_PENALTY = 1e-4  # of the squared weights, per vector
_TINY = 1e-6


def fresh_probe(
    train: Vectors, train_labels: Labels, test: Vectors, test_labels: Labels, *, classes: int, split: str
) -> ProbeResult:
    """Fit a linear classifier on some vectors and count its errors on others.

    Args:
        train, test: shape (n, d); length and spread are taken off first, as the cosine does not see them.
        train_labels, test_labels: shape (n,), from 0 to `classes` − 1.
        classes: how many there are, whether or not each occurs.
        split: what tells the two sets apart, for the report.

    Raises:
        MetricInputError: no vector on one side, or vectors that are not finite.
    """
    if not len(train) or not len(test):
        raise MetricInputError(f"Expected vectors to fit and to test, found {len(train)} and {len(test)}.")
    if not (np.isfinite(train).all() and np.isfinite(test).all()):
        raise MetricInputError("Expected vectors of finite numbers for a probe, found others.")
    guesses = _fitted_guesses(_directions(train), train_labels, _directions(test), classes)
    error = float((guesses != test_labels).mean())
    return ProbeResult(error, 1 - 1 / classes, len(train), len(test), classes, split)


def other_sources(sources: Labels, seed: int, share: float = TEST_SHARE) -> npt.NDArray[np.bool_]:
    """Which rows to test on, so that no source is on both sides, shape (n,).

    Args:
        sources: source of each row.
        share: of the sources; at least one, and at least one is left.

    Raises:
        MetricInputError: fewer than two sources.
    """
    names = np.unique(sources)
    if names.size < 2:
        raise MetricInputError(f"Expected at least 2 sources to hold some out, found {names.size}.")
    count = min(names.size - 1, max(1, round(share * names.size)))
    chosen = np.random.default_rng([seed, names.size]).permutation(names)[:count]
    return np.isin(sources, chosen)


def _directions(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, _TINY), dtype=np.float32)


def _fitted_guesses(train: Vectors, labels: Labels, test: Vectors, classes: int) -> Labels:
    """Multinomial logistic regression by L-BFGS on standardised columns."""
    import torch

    centre, spread = train.mean(axis=0), train.std(axis=0) + _TINY
    inputs = torch.from_numpy((train - centre) / spread)
    wanted = torch.from_numpy(labels)
    weights = torch.zeros(classes, train.shape[1], requires_grad=True)
    offsets = torch.zeros(classes, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weights, offsets], max_iter=_MOST_ITERATIONS, history_size=10, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(inputs @ weights.T + offsets, wanted)
        loss = loss + _PENALTY * weights.square().sum()
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        return float(loss.detach())

    optimiser.step(closure)  # type: ignore[no-untyped-call, unused-ignore]
    with torch.no_grad():
        scores = torch.from_numpy((test - centre) / spread) @ weights.T + offsets
    return scores.argmax(dim=1).numpy()
