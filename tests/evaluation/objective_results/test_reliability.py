"""When the equal error rate of a trained attacker means privacy, and when it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluation.objective_results.attack_strength import AttackStrength, judge_attack

GOOD = AttackStrength(
    20.0, frozen_eer=25.0, own_eer=4.0, seed_eers=(20.0, 22.0), inverted_targets=15.0, unheard_voices=0.0
)


def test_an_attack_that_nothing_speaks_against_is_reliable_and_names_what_is_unknown():
    verdict = judge_attack(GOOD)
    assert (verdict.word, verdict.reasons, verdict.unknown) == ("reliable", (), ())
    assert judge_attack(AttackStrength(20.0)).unknown == (
        "the attackers that were not trained",
        "its EER on its own training speakers",
        "a second seed",
        "the share of inverted targets",
        "whether it was trained on the voices that it attacks",
    )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"frozen_eer": 19.9}, "weaker than an attacker that was not trained on such speech: 20.0 % against 19.9 %"),
        ({"own_eer": 20.1}, "fails on the speakers that it was trained on: an EER of 20.1 %"),
        ({"seed_eers": (20.0, 25.1)}, "Its seeds differ by 5.1 points"),
        ({"unheard_voices": 51.0}, "It never heard the voices of 51 % of what it attacks"),
        ({"inverted_targets": 61.0}, "61 % of targets lie below the median nontarget"),
    ],
)
def test_each_limit_alone_makes_an_attack_not_reliable(changed, reason):
    verdict = judge_attack(replace(GOOD, **changed))
    assert verdict.word == "not reliable"
    [said] = verdict.reasons
    assert reason in said


def test_values_at_the_limits_are_reliable():
    at_limits = AttackStrength(20.0, frozen_eer=20.0, own_eer=20.0, seed_eers=(20.0, 25.0), inverted_targets=60.0)
    assert judge_attack(at_limits).is_reliable
