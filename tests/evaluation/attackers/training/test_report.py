"""The report over seeds and the probe of a training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from common.errors import InputError
from evaluation.attackers.training.report import COLUMNS, spread, table_cells
from evaluation.attackers.training.train import fresh_probe, other_sources
from evaluation.attackers.training.trained_attacker import (
    EpochRecord,
    FinalValues,
    ProbeResult,
    epochs_csv,
    epochs_of_csv,
)

FINAL = FinalValues(
    source_error=0.8,
    target_error=0.9,
    source_chance=0.99,
    target_chance=0.95,
    target_chance_known_gender=0.9,
    training_segments=100,
    held_out_segments=10,
    n_sources=100,
    n_targets=20,
    seconds=5.0,
    target_probe=ProbeResult(0.5, 0.95, 100, 10, 20, "segment"),
    target_probe_other_sources=None,
    source_probe=ProbeResult(0.1, 0.99, 100, 10, 100, "segment"),
)


def record(epoch: int, error: float | None) -> EpochRecord:
    return EpochRecord(epoch, 1.5, {"source_error": error, "target_error": None, "loss": 2.0})


def test_probe_finds_what_is_there_and_nothing_more():
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, 600)
    directions = random.normal(size=(4, 6))
    there = (directions[labels] + 0.3 * random.normal(size=(600, 6))).astype(np.float32)
    absent = random.normal(size=(600, 6)).astype(np.float32)
    found = fresh_probe(there[:400], labels[:400], there[400:], labels[400:], classes=4, split="segment")
    assert found.error < 0.1
    assert (found.chance, found.n_train, found.n_test) == (0.75, 400, 200)
    nothing = fresh_probe(absent[:400], labels[:400], absent[400:], labels[400:], classes=4, split="segment")
    assert nothing.error > 0.6


def test_probe_refuses_what_it_cannot_fit():
    vectors, labels = np.ones((3, 2), dtype=np.float32), np.zeros(3, dtype=np.int64)
    with pytest.raises(InputError, match="found 3 and 0"):
        fresh_probe(vectors, labels, vectors[:0], labels[:0], classes=2, split="segment")
    with pytest.raises(InputError, match="finite"):
        fresh_probe(vectors * np.nan, labels, vectors, labels, classes=2, split="segment")


def test_other_sources_are_on_one_side_each():
    sources = np.repeat(np.arange(10), 3)
    apart = other_sources(sources, 1)
    assert set(sources[apart]).isdisjoint(sources[~apart])
    assert apart.sum() == 6
    assert other_sources(np.array([0, 1]), 1).sum() == 1
    with pytest.raises(InputError, match="at least 2 sources"):
        other_sources(np.array([4, 4]), 1)


def test_spread_is_mean_and_sample_deviation():
    assert spread([None, None]) is None
    assert spread([0.5, None]).deviation is None
    three = spread([0.1, 0.2, 0.3])
    assert (three.mean, three.deviation) == (pytest.approx(0.2), pytest.approx(0.1))
    assert (str(three), str(spread([0.5]))) == ("20.0 ± 10.0", "50.0")


def test_table_shows_every_column_and_what_is_missing():
    cells = table_cells([replace(FINAL, source_error=error) for error in (0.7, 0.9)])
    found = dict(zip((key for key, _ in COLUMNS), cells, strict=True))
    assert found["source_error"] == "80.0 ± 14.1"
    assert (found["target_probe"], found["target_chance"]) == ("50.0 ± 0.0", "95.0 ± 0.0")
    assert found["target_probe_other_sources"] == "–"


def test_epochs_read_back_the_same():
    records = (record(1, 0.1 + 0.2), record(2, None))
    again = epochs_of_csv(epochs_csv(records), "values.csv")
    assert [one.values["source_error"] for one in again] == [0.1 + 0.2, None]
    assert [(one.epoch, one.seconds) for one in again] == [(1, 1.5), (2, 1.5)]
