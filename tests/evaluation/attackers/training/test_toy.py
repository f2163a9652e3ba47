"""A selection that gives every source one target misleads the plain recogniser; the stabilised adversary repairs some.

The seed is fixed. Over seeds 1 to 3 the plain recogniser's EER was 27 to 34 %, the stabilised one's 16 to 24 %, always
lower by 10 points or more, so the limits below leave room for another processor's rounding.

The strength of the targets was chosen so that the plain recogniser does learn the assignment: with weaker ones its
target error was 17 %, above the limit below. What the toy shows holds for that regime, not for every strength.
"""

from __future__ import annotations

import pytest

from tests.evaluation.attackers.training.toys import Outcome, train_in_world

pytestmark = pytest.mark.slow  # three trainings of 40 epochs

SEED = 2


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {variant: train_in_world(variant, SEED) for variant in ("measured", "literal", "stabilised")}


def test_plain_recogniser_learns_the_assignment_of_targets(outcomes):
    final = outcomes["measured"].final
    assert final.target_error < 0.1
    assert final.target_probe.error < 0.1
    assert final.target_chance == 1 - 1 / 8


def test_stabilised_adversary_hides_targets_and_costs_no_eer(outcomes):
    plain, stabilised = outcomes["measured"], outcomes["stabilised"]
    assert stabilised.final.target_error > 0.3
    assert stabilised.final.target_probe.error >= plain.final.target_probe.error
    assert stabilised.eer <= plain.eer + 0.02


def test_literal_adversary_misleads_its_classifier_and_hides_nothing(outcomes):
    # The caveat that every report must show: an error above that of guessing, while a fresh probe finds the targets.
    final = outcomes["literal"].final
    assert final.target_error > final.target_chance
    assert final.target_probe.error < 0.1
