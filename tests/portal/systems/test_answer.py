"""The sentences that open the page of a system."""

import pytest
from django.utils import timezone

from portal.submissions.models import System
from tests.portal.factories import make_edition, make_team, make_team_system
from tests.portal.leaderboards import make_leaderboard, put_on_leaderboard

pytestmark = pytest.mark.django_db


def page_of(client, label):
    system = System.objects.get(label=label)
    return client.get(f"/systems/{system.name}/")


def test_page_says_how_private_how_useful_and_how_it_ranks(client):
    make_leaderboard(published_at=timezone.now())
    answer = page_of(client, "T01-p1").context["answer"]
    assert answer == [
        "The semi-informed attacker has an equal error rate of 22.5 % (95 % interval 22.1 to 22.9); "
        "50 % would be no better than a guess. Semi-informed attacks: the attacker anonymises its enrolment speech "
        "with the same system, and was trained on speech anonymised with it.",
        "WER is 8.3 % (7.9 to 8.7) (lower is better).",
        "It meets 2 of 4 conditions and is ranked 1 of 1 at ≥ 20 %. "
        "No rank at ≥ 15 %: Of this team T01-c1 is ranked, which has the lower WER.",
    ]


def test_page_says_why_a_system_has_no_rank_and_what_is_missing(client):
    edition = make_edition(published_at=timezone.now())
    lost = ("EER (Kaldi) of vctk_test_trials_f, semi-informed", "no scores", True)
    put_on_leaderboard(make_team_system(make_team(edition), "p1"), eer=20, wer=8, missing=[lost])
    private, _, rank = page_of(client, "T01-p1").context["answer"]
    assert private == "Its privacy is not known: the average EER (Kaldi) is missing."
    assert rank.startswith("It has no rank: There is no average EER (Kaldi)")
