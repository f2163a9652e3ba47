"""What has to be handed in for a rank, by the policy of the leaderboard."""

import pytest

from evaluation.protocols.ranking.policy import needed_to_rank
from evaluation.protocols.recipes import load_recipe


@pytest.mark.parametrize(
    ("edition", "track", "changes", "needed"),
    [
        ("2020", "", None, {}),
        ("2022", "", None, {"EER (Kaldi)": ("scores",), "Pitch correlation ρF0": ("speech",)}),
        (
            "2022",
            "",
            {"basis": "claims"},
            {"EER (Kaldi)": ("scores", "results"), "Pitch correlation ρF0": ("speech", "results")},
        ),
        ("2026", "track2", None, {"EER (SpeechBrain)": ("scores",)}),
        ("2020", "", {"minimum_eers": [20]}, {"EER (Kaldi)": ("scores",)}),
    ],
)
def test_needs_follow_the_policy(edition, track, changes, needed):
    assert needed_to_rank(load_recipe(edition), track, changes) == needed
