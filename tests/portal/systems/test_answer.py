"""The sentences that open the page of a system."""

import pytest
from django.test import Client
from django.utils import timezone

from evaluation.app.runs.context import track_of
from evaluation.objective_results.values import list_averaged_sets
from portal.leaderboard.exports import leaderboard_as_latex, leaderboard_rows
from portal.leaderboard.selectors import build_leaderboard
from portal.leaderboard.tables import answer as leaderboard_answer
from portal.submissions.models import System
from tests.pages import read_page
from tests.portal.factories import make_edition, make_organizer, make_submission, make_team, make_team_system
from tests.portal.leaderboards import make_leaderboard, put_on_leaderboard
from tests.portal.objective import make_objective_run, number, ranked_numbers

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


def test_page_names_another_attack_model_with_a_lower_eer(client):
    edition = make_edition(published_at=timezone.now())
    systems = [make_team_system(make_team(edition), "p1") for _ in range(2)]
    for system, eer in zip(systems, (9.0, 40.0), strict=True):
        put_on_leaderboard(system, eer=20.0, wer=8.0, ignorant=eer)
    lower, higher = (page_of(client, system.label).context["answer"][0] for system in systems)
    assert lower.endswith(" Ignorant attacks: the attacker enrols speakers with original speech.")
    assert (
        " The ignorant attacker reaches 9.0 % (8.0 to 10.0), which is lower: a system is only as private as the lowest "
        "EER. The rank rests on the semi-informed attacker all the same, by which the edition ranks every system."
    ) in lower
    assert "gnorant" not in higher
    board = build_leaderboard(edition)
    said = leaderboard_answer(board, next(one for one in board.table.tables if one.ranked))[0]
    assert "The ignorant attacker reaches a lower EER on T01-p1: 9.0 % (8.0 to 10.0), which misses this" in said
    assert "lower EER on T02-p1" not in said
    last = leaderboard_answer(board, board.table.tables[0])[-1]
    assert last.endswith(" Ignorant attacks: the attacker enrols speakers with original speech.")
    page = read_page(client.get(f"/editions/{edition.name}/leaderboard/"))
    assert "ignorant attack: 9.0 %" in page
    assert "The ignorant attack already gives a lower EER, 9.0 %, which misses the limits of 15 and 20 %;" in page
    assert "ignorant attack: 9.0 %" in read_page(client.get("/"))
    assert "T01-p1 (not reliable) (ignorant attack: 9.0 \\%)" in leaderboard_as_latex(board)
    last = next(row for row in leaderboard_rows(board) if row[7] == "T01-p1")[-1]
    assert "gives a lower EER, 9.0 %" in last


def test_page_says_why_a_system_has_no_rank_and_what_is_missing(client):
    edition = make_edition(published_at=timezone.now())
    lost = ("EER (Kaldi) of vctk_test_trials_f, semi-informed", "no scores", True)
    put_on_leaderboard(make_team_system(make_team(edition), "p1"), eer=20, wer=8, missing=[lost])
    private, _, rank = page_of(client, "T01-p1").context["answer"]
    assert private == "Its privacy is not known: the average EER (Kaldi) is missing."
    assert rank.startswith("It has no rank: There is no average EER (Kaldi)")


def test_unpublished_leaderboard_tells_no_rank(client):
    organizer = make_organizer()
    make_leaderboard(organizers=[organizer])
    own = Client()
    own.force_login(organizer)
    assert page_of(own, "T01-p1").context["answer"][2] == "It meets 2 of 4 conditions."


def test_average_that_lacks_a_data_set_says_which(client):
    edition = make_edition(published_at=timezone.now())
    system = make_team_system(make_team(edition), "p1")
    submission = make_submission(system, state="evaluated", evaluated_at=timezone.now())
    lazy = number(edition, "eer", "kaldi", "libri_test_trials_f", 12.0, attack="lazy-informed")
    make_objective_run(submission, [*ranked_numbers(edition, eer=20.0, wer=8.0), lazy])
    page = read_page(client.get(f"/systems/{system.name}/"))
    sets = list_averaged_sets(track_of(edition), "eer", "test")
    absent = [name for name in sets if name != "libri_test_trials_f"]
    assert f"no number of {', '.join(absent)}" in page
    assert page.count("no number of") == 1
