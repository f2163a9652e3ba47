"""The detection metrics as the protocol words them, trial by trial and without care for speed: to hold ours against."""

from __future__ import annotations

import math

import numpy as np


def kaldi_eer(target: list[float], nontarget: list[float]) -> tuple[float, float]:
    """Rate and threshold (protocol 2.1)."""
    t, n = np.sort(np.asarray(target, np.float32)), np.sort(np.asarray(nontarget, np.float32))
    k = 0
    while k < t.size - 1:
        j = max(0, n.size - 1 - n.size * k // t.size)
        if n[j] < t[k]:
            break
        k += 1
    return k / t.size, float(t[k])


def speechbrain_eer(target: list[float], nontarget: list[float]) -> tuple[float, float]:
    """Rate and threshold (protocol 2.5)."""
    t, n = np.asarray(target, np.float32), np.asarray(nontarget, np.float32)
    scores = np.unique(np.concatenate([t, n]))
    thresholds = np.sort(np.concatenate([scores, (scores[:-1] + scores[1:]) / 2]))
    rates = [(float(np.mean(n > theta)), float(np.mean(t <= theta))) for theta in thresholds]
    best = min(range(len(rates)), key=lambda i: abs(rates[i][0] - rates[i][1]))
    return sum(rates[best]) / 2, float(thresholds[best])


def pools(labels: list[int]) -> list[list[int]]:
    """[targets, trials] of each pool of adjacent violators, compared as fractions."""
    stack: list[list[int]] = []
    for label in labels:
        stack.append([label, 1])
        while len(stack) > 1 and stack[-2][0] * stack[-1][1] >= stack[-1][0] * stack[-2][1]:
            targets, trials = stack.pop()
            stack[-1][0] += targets
            stack[-1][1] += trials
    return stack


def sorted_labels(target: list[float], nontarget: list[float], targets_first: bool = False) -> list[int]:
    pairs = [(score, 1) for score in target] + [(score, 0) for score in nontarget]
    return [label for _, label in sorted(pairs, key=lambda pair: (pair[0], -pair[1] if targets_first else pair[1]))]


def llrs(labels: list[int], laplace: bool = False) -> np.ndarray:
    """The LLR of each sorted trial (protocol 2.2)."""
    n = len(labels)
    prior = math.log(sum(labels) / (n - sum(labels)))
    values = []
    for targets, trials in pools([1, 0, *labels, 1, 0] if laplace else labels):
        others = trials - targets
        llr = math.inf if others == 0 else -math.inf if targets == 0 else math.log(targets / others) - prior
        values += [llr] * trials
    if laplace:
        values = values[2:-2]
    return np.array(values) + np.arange(n) * 1e-6 / n


def cllr(target: np.ndarray, nontarget: np.ndarray) -> float:
    """As the official code forms it: inf where a sigmoid underflows."""
    with np.errstate(over="ignore", divide="ignore"):
        costs = -np.log2(1 / (1 + np.exp(-target))), -np.log2(1 / (1 + np.exp(nontarget)))
    return float(0.5 * (costs[0].mean() + costs[1].mean()))


def min_cllr(target: list[float], nontarget: list[float]) -> float:
    labels = np.array(sorted_labels(target, nontarget))
    values = llrs(labels.tolist())
    return cllr(values[labels == 1], values[labels == 0])


def rocch_eer(target: list[float], nontarget: list[float]) -> float:
    x0, y0, best = 1.0, 0.0, 0.0
    misses, passed = 0, 0
    for targets, trials in pools(sorted_labels(target, nontarget)):
        misses, passed = misses + targets, passed + trials - targets
        x1, y1 = (len(nontarget) - passed) / len(nontarget), misses / len(target)
        if x1 != x0 and y1 != y0:
            best = max(best, (x0 * y1 - x1 * y0) / ((y1 - y0) + (x0 - x1)))
        x0, y0 = x1, y1
    return best


def linkability(target: list[float], nontarget: list[float]) -> float:
    """Protocol 2.3, by densities; NaN where all scores are equal."""
    bins = min(len(target) // 10, 100)
    if bins == 0:
        return 0.0
    scores = np.concatenate([target, nontarget])
    edges = np.linspace(scores.min(), scores.max(), bins + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        y1, y2 = (np.histogram(side, bins=edges, density=True)[0] for side in (target, nontarget))
        ratio = y1 / y2
        linked = np.where(ratio > 1, 2 * ratio / (1 + ratio) - 1, 0.0)
    linked[(y2 == 0) & (y1 > 0)] = 1.0
    linked[(y2 == 0) & (y1 == 0)] = 0.0
    return float(np.trapezoid(linked * y1, (edges[:-1] + edges[1:]) / 2))


def zebra_population(target: list[float], nontarget: list[float]) -> float:
    """Protocol 2.4, trial by trial."""
    labels = np.array(sorted_labels(target, nontarget, targets_first=True))
    values = llrs(labels.tolist())

    def disclosure(a: np.ndarray) -> float:
        b = np.expm1(a)
        with np.errstate(divide="ignore", invalid="ignore"):
            g = np.where(np.isinf(a), 0.0, np.where(np.abs(a) <= 1e-6, -0.5, (a - b) / b**2))
        return 0.25 + 0.5 * float(g.mean())

    return (disclosure(values[labels == 1]) + disclosure(-values[labels == 0])) / math.log(2)


def zebra_individual(target: list[float], nontarget: list[float]) -> float:
    return float(np.abs(llrs(sorted_labels(target, nontarget), laplace=True)).max()) / math.log(10)
