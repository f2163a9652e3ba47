"""Recipes as published, their checks, and the schedules that follow from them."""

from __future__ import annotations

import json

import pytest

from common.errors import InputError
from evaluation.attackers.training.recipe import (
    PRESETS,
    TrainingRecipe,
    find_preset,
    learning_rate,
    target_weights,
    with_variant,
)

SPANE = PRESETS["spane"]


def adversarial(**values: object) -> TrainingRecipe:
    return SPANE.changed(target_head="literal", largest_weight=1.0, **values)


def test_linear_rate_falls_after_each_epoch_from_the_peak_to_the_base():
    recipe, per_epoch = PRESETS["x-vector"], 7
    rates = [learning_rate(recipe, step, 10 * per_epoch) for step in range(10 * per_epoch)]
    expected = [1e-3 - epoch * 1e-4 for epoch in range(10)]
    assert rates[::per_epoch] == pytest.approx(expected)
    assert rates[per_epoch - 1 :: per_epoch] == pytest.approx(expected)
    assert learning_rate(recipe.changed(epochs=1), 3, per_epoch) == 1e-3


def test_recipes_written_before_there_was_another_network_are_ecapa():
    # Keys of checkpoints are made of this text: those of trainings begun before must not change.
    assert "network" not in json.loads(SPANE.to_json())
    assert TrainingRecipe.from_json(SPANE.to_json()).network == "ecapa-tdnn"
    assert json.loads(PRESETS["x-vector"].to_json())["network"] == "x-vector"


def test_values_that_the_xvector_has_no_use_for_are_refused():
    with pytest.raises(InputError) as told:
        PRESETS["small"].changed(network="x-vector")
    for sentence in ("attention: expected 0", "margin: expected 0", "scale: expected 1"):
        assert sentence in str(told.value)
    with pytest.raises(InputError, match="network: expected one of ecapa-tdnn, x-vector, found 'resnet'"):
        SPANE.changed(network="resnet")
    with pytest.raises(InputError, match="attention: expected a number from 1 to 4096, found 0"):
        PRESETS["x-vector"].changed(network="ecapa-tdnn")


def test_recipe_survives_json():
    recipe = with_variant(find_preset("small"), "stabilised")
    assert TrainingRecipe.from_json(recipe.to_json()) == recipe


def test_variants_are_the_published_and_the_stabilised_one():
    literal, stabilised = with_variant(SPANE, "literal"), with_variant(SPANE, "stabilised")
    assert (literal.zero_epochs, literal.full_epochs, literal.largest_weight, literal.adversary_loss) == (
        6,
        1,
        1.0,
        "aam",
    )
    assert (stabilised.adversary_loss, stabilised.adversary_scale, stabilised.adversary_steps) == ("ce", 10.0, 3)
    assert (stabilised.adversary_lr_multiplier, stabilised.largest_weight) == (5.0, 0.3)
    assert with_variant(SPANE, "measured").largest_weight == 0
    assert with_variant(SPANE.changed(epochs=40), "literal").zero_epochs == 24


def test_all_problems_of_a_recipe_are_said_at_once():
    with pytest.raises(InputError) as told:
        SPANE.changed(width=100, epochs=0, crop_s=2.0)
    for name in ("width:", "epochs:", "crop_s:"):
        assert name in str(told.value)
    with pytest.raises(InputError, match="validation: expected one of tenth of each speaker"):
        SPANE.changed(validation="none")
    with pytest.raises(InputError, match=r"batch: expected a value of type int, found 2\.5"):
        SPANE.changed(batch=2.5)
    with pytest.raises(InputError, match="scale: expected a finite number, found nan"):
        SPANE.changed(scale=float("nan"))
    with pytest.raises(InputError, match="found last segment, which training would hear"):
        PRESETS["vpc24"].changed(validation="last segment")


def test_literal_head_has_one_optimiser():
    with pytest.raises(InputError, match="expected stabilised where adversary_steps"):
        adversarial(adversary_steps=3)


def test_other_json_is_refused():
    with pytest.raises(InputError, match="Expected a training recipe"):
        TrainingRecipe.from_json("[]")


def test_target_weights_are_those_of_the_paper():
    assert target_weights(adversarial(zero_epochs=6, full_epochs=1)) == (0, 0, 0, 0, 0, 0, 0.25, 0.5, 0.75, 1)


def test_cyclic_rate_never_peaks_in_the_published_training():
    assert learning_rate(SPANE, 0, 16_000) == 1e-6
    assert learning_rate(SPANE, 65_000, 16_000) == pytest.approx(1e-3)
    assert learning_rate(SPANE, 130_000, 16_000) == pytest.approx(1e-6)
    assert learning_rate(SPANE, 16_000, 16_000) == pytest.approx(2.467e-4, rel=1e-3)  # a quarter of the climb
    assert learning_rate(PRESETS["vpc24"], 16_250, 16_000) == pytest.approx(2.5e-3, rel=1e-5)


def test_warm_up_climbs_and_the_cosine_falls_to_the_base():
    rates = [learning_rate(PRESETS["small"], step, 200) for step in range(200)]
    assert rates[9] == max(rates) == 1e-3
    assert rates[:10] == sorted(rates[:10])
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert 0 < rates[-1] < 1e-6
