"""The report over seeds, the probe and the figures of a training."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from evaluation.attackers.training.probe import fresh_probe, other_sources
from evaluation.attackers.training.published import PUBLISHED_TABLE_1
from evaluation.attackers.training.report import (
    COLUMNS,
    AttackTrials,
    ReportRow,
    SeedResult,
    attack_measures,
    curves,
    spread,
    sweep,
    table_cells,
)
from evaluation.attackers.training.values import EpochRecord, FinalValues, ProbeResult, epochs_csv, epochs_of_csv
from evaluation.figures.training import (
    Curve,
    describe_learning_curves,
    describe_sweep,
    draw_learning_curves,
    draw_sweep,
    learning_curve_numbers,
    sweep_numbers,
)
from evaluation.metrics.detection import kaldi_eer
from evaluation.metrics.errors import MetricInputError
from tests.evaluation.svg import assert_sound, texts, title_and_description

FINAL = FinalValues(
    source_error=0.8, target_error=0.9, source_chance=0.99, target_chance=0.95, target_chance_known_gender=0.9,
    training_segments=100, held_out_segments=10, n_sources=100, n_targets=20, seconds=5.0,
    target_probe=ProbeResult(0.5, 0.95, 100, 10, 20, "segment"), target_probe_other_sources=None,
    source_probe=ProbeResult(0.1, 0.99, 100, 10, 100, "segment"),
)  # fmt: skip


def record(epoch: int, error: float | None) -> EpochRecord:
    return EpochRecord(epoch, 1.5, {"source_error": error, "target_error": None, "loss": 2.0})


def row(*errors: float) -> ReportRow:
    results = [SeedResult(seed, replace(FINAL, source_error=error), None) for seed, error in enumerate(errors)]
    return ReportRow("kNN", "random", "baseline", tuple(results))


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
    with pytest.raises(MetricInputError, match="found 3 and 0"):
        fresh_probe(vectors, labels, vectors[:0], labels[:0], classes=2, split="segment")
    with pytest.raises(MetricInputError, match="finite"):
        fresh_probe(vectors * np.nan, labels, vectors, labels, classes=2, split="segment")


def test_other_sources_are_on_one_side_each():
    sources = np.repeat(np.arange(10), 3)
    apart = other_sources(sources, 1)
    assert set(sources[apart]).isdisjoint(sources[~apart])
    assert apart.sum() == 6
    assert other_sources(np.array([0, 1]), 1).sum() == 1
    with pytest.raises(MetricInputError, match="at least 2 sources"):
        other_sources(np.array([4, 4]), 1)


def test_attack_measures_are_those_of_the_trials():
    random = np.random.default_rng(1)
    names = np.array([f"s{one}" for one in range(8)])
    models, speakers = (each.ravel() for each in np.meshgrid(names, np.repeat(names, 4), indexing="ij"))
    scores = random.normal(size=models.size) + 1.5 * (models == speakers)
    genders = {str(name): "fm"[place % 2] for place, name in enumerate(names)}
    trials = AttackTrials(scores, models, speakers, genders)
    found = attack_measures(trials, random=np.random.default_rng(2), resamples=50)
    same = models == speakers
    assert found.eer == kaldi_eer(scores[same], scores[~same])
    assert found.eer_interval.lower <= found.eer <= found.eer_interval.upper
    within = np.array([genders[a] == genders[b] for a, b in zip(models, speakers, strict=True)])
    assert found.same_gender_eer == kaldi_eer(scores[same], scores[within & ~same])
    assert (found.n_target, found.n_nontarget) == (32, 224)
    without = attack_measures(replace(trials, genders={}), random=random, resamples=0)
    assert (without.same_gender_eer, without.eer_interval) == (None, None)
    with pytest.raises(MetricInputError, match="a model and a speaker for each score"):
        attack_measures(replace(trials, models=models[1:]), random=random)


def test_spread_is_mean_and_sample_deviation():
    assert spread([None, None]) is None
    assert spread([0.5, None]).deviation is None
    three = spread([0.1, 0.2, 0.3])
    assert (three.mean, three.deviation) == (pytest.approx(0.2), pytest.approx(0.1))
    assert (str(three), str(spread([0.5]))) == ("20.0 ± 10.0", "50.0")


def test_table_shows_every_column_and_what_is_missing():
    cells = table_cells(row(0.7, 0.9))
    assert set(cells) == {key for key, _ in COLUMNS}
    assert cells["source_error"] == "80.0 ± 14.1"
    assert (cells["target_probe"], cells["target_chance"]) == ("50.0 ± 0.0", "95.0 ± 0.0")
    assert (cells["eer"], cells["target_probe_other_sources"]) == ("–", "–")


def test_published_table_has_its_sixteen_rows():
    assert len(PUBLISHED_TABLE_1) == 16
    best = next(one for one in PUBLISHED_TABLE_1 if one.anonymizer == "ASR-BN" and one.selection == "same gender")
    assert (best.eer.mean, best.source_error.mean, best.target_error.mean) == (0.174, 0.86, 0.373)
    lowered = [
        plain.eer.mean > ours.eer.mean
        for plain, ours in zip(PUBLISHED_TABLE_1[::2], PUBLISHED_TABLE_1[1::2], strict=True)
        if plain.selection == "same gender"
    ]
    assert lowered == [True] * 4
    assert {round(one.target_chance, 3) for one in PUBLISHED_TABLE_1} == {0.99, 0.996}


def test_epochs_read_back_the_same():
    records = (record(1, 0.1 + 0.2), record(2, None))
    again = epochs_of_csv(epochs_csv(records), "values.csv")
    assert [one.values["source_error"] for one in again] == [0.1 + 0.2, None]
    assert [(one.epoch, one.seconds) for one in again] == [(1, 1.5), (2, 1.5)]


def test_curves_and_sweep_take_what_exists():
    points = curves({1: [record(1, 0.5), record(2, 0.3)], 2: [record(1, 0.7)]}, "source_error")
    assert [(one.epoch, one.spread.values) for one in points] == [(1, (0.5, 0.7)), (2, (0.3,))]
    assert curves({1: [record(1, None)]}, "source_error") == ()
    swept = sweep({10: row(0.4), 6: row(0.2, 0.3)})
    assert [(one.zero_epochs, one.spread.mean) for one in swept] == [(6, 0.25), (10, 0.4)]
    assert sweep({6: row(0.2)}, "eer") == ()


def learning_curves() -> list[Curve]:
    seeds = {seed: [record(epoch, 0.9 - 0.05 * epoch + 0.01 * seed) for epoch in range(1, 11)] for seed in (1, 2)}
    return [Curve("VER_S", curves(seeds, "source_error"), 0.99), Curve("VER_T", curves(seeds, "source_error"))]


def test_learning_curves_are_a_sound_figure():
    lines = learning_curves()
    assert_sound(partial(draw_learning_curves, lines))
    svg = draw_learning_curves(lines)
    assert title_and_description(svg) == ("Errors by epoch of training", describe_learning_curves(lines))
    assert "VER_S: 86.5 ± 0.7 % after epoch 1, 41.5 ± 0.7 % after epoch 10; guessing gives 99.0 %." in (
        describe_learning_curves(lines)
    )
    assert {"VER_S", "VER_T", "Epoch", "chance: guessing"} <= set(texts(svg))
    assert learning_curve_numbers(lines).rows[0][:2] == ("VER_S", 1)
    assert "chance: guessing" not in texts(draw_learning_curves(lines[1:]))


def test_sweep_is_a_sound_figure():
    series = {"random": sweep({10: row(0.4, 0.5), 6: row(0.2, 0.3)}), "same gender": sweep({6: row(0.1)})}
    assert_sound(partial(draw_sweep, series))
    assert "random: VER_S 25.0 ± 7.1 % at E = 6, 45.0 ± 7.1 % at E = 10; lowest at E = 6." in describe_sweep(series)
    assert [one[1] for one in sweep_numbers(series).rows] == [6, 10, 6]


def test_figures_refuse_what_they_cannot_draw():
    with pytest.raises(MetricInputError, match="1 to 4 lines"):
        draw_learning_curves([])
    with pytest.raises(MetricInputError, match="a label of its own"):
        draw_learning_curves([learning_curves()[0]] * 2)
    with pytest.raises(MetricInputError, match="none of x"):
        draw_sweep({"x": ()})
