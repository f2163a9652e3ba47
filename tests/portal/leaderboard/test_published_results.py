"""The page of published results: what is chosen, and what is said before comparing."""

import csv
import io

import pytest
from django.http import QueryDict
from django.utils import timezone

from evaluation.protocols.published import load_published
from portal.challenges.models import Edition
from portal.leaderboard.published_results.pages import draw_plane, make_table, published_page, read_choice
from tests.portal.factories import make_edition, make_submission, make_team, make_team_system
from tests.portal.objective_runs import make_objective_run, ranked_numbers

pytestmark = pytest.mark.django_db
ADDRESS = "/published-results/"


def choose(query=""):
    return read_choice(QueryDict(query))


def names(choice):
    return [row.cells[0].text for row in make_table(choice).rows]


@pytest.fixture
def edition():
    """A leaderboard by the recipe of 2022, with one system."""
    made = make_edition(published_at=timezone.now())
    Edition.objects.filter(pk=made.pk).update(is_listed=True)
    submission = make_submission(make_team_system(make_team(made)), state="evaluated", evaluated_at=timezone.now())
    make_objective_run(submission, ranked_numbers(made, eer=21.5, wer=7.25))
    return made


def test_page_shows_published_systems_with_their_sources_and_no_rank(client):
    page = client.get(ADDRESS).content.decode()
    assert "it was not measured here." in page
    for words in (
        "B1.a",
        "11.8",
        "8.3",
        "T04-p1",
        "Panariello et al.",
        "T18-p1, Pitch correlation ρF0: the sources differ: 0.70 and 0.81.",
    ):
        assert words in page
    assert names(choose()) == list(dict.fromkeys(one.system for one in load_published("2022")))


def test_splits_and_sets_are_filtered():
    choice = choose("edition=2022&split=dev&set=vctk_dev_trials_f")
    table = make_table(choice)
    row = next(row for row in table.rows if row.cells[0].text == "B1.a")
    cells = {column.key: cell for column, cell in zip(table.columns, row.cells, strict=True)}
    assert (cells["kaldi_eer"].text, cells["wer"].text) == ("12.46", "11.54")
    point = next(one for one in draw_plane(choice).points if one.name == "B1.a")
    assert (point.eer, point.utility, point.kind) == (12.46, 11.54, "published")


def test_number_that_was_not_printed_is_a_dash(client):
    page = client.get(f"{ADDRESS}?edition=2026-track1").content.decode()
    row = page.partition(">B4<")[2].partition("</tr>")[0]
    assert ("14.3" in row, "–" in row, "–: not printed." in page) == (True, True, True)


def test_files_hold_the_printed_numbers_of_the_choice(client):
    query = "edition=2024&split=test"
    wanted = [one for one in load_published("2024") if "_test" in one.data_set]
    rows = list(csv.DictReader(io.StringIO(client.get(f"{ADDRESS}published.csv?{query}").content.decode())))
    assert sorted((row["data_set"], row["value"], row["source"]) for row in rows) == sorted(
        (one.data_set, one.value, one.source) for one in wanted
    )
    assert client.get(f"{ADDRESS}published.json?{query}").json() == {"numbers": rows}
    latex = client.get(f"{ADDRESS}published.tex?{query}").content.decode()
    assert "B3 & 27.322 & 4.352 & 37.570 & " in latex


def test_attack_model_is_a_filter_of_page_figures_and_files(client):
    """B2 of 2022 on one set: 38.32 % for an attacker who enrols originals, 7.117 % for one trained on its speech."""
    query = "edition=2022&set=libri_test_trials_f"
    for attack, eer in (("ignorant", "38.32"), ("semi-informed", "7.117")):
        choice = choose(f"{query}&attack={attack}")
        table = make_table(choice)
        row = next(row for row in table.rows if row.cells[0].text == "B2")
        cells = {column.key: cell for column, cell in zip(table.columns, row.cells, strict=True)}
        assert cells["kaldi_eer"].text == eer
        further = published_page(choice)["further"]
        assert {"C_llr", "min C_llr", "Linkability D_sys"} <= set(further)
        point = next(one for one in draw_plane(choice).points if one.name == "B2")
        assert point.eer == float(eer)
        assert f"attack={attack}" in choice.query
        rows = client.get(f"{ADDRESS}published.json?{query}&attack={attack}").json()["numbers"]
        assert {row["attack_model"] for row in rows if row["system"] == "B2"} == {"", attack}
    page = client.get(f"{ADDRESS}?edition=2022&attack=ignorant").content.decode()
    assert "Ignorant attacks: the attacker enrols speakers with original speech." in page
    assert "the challenge printed no averages; these are by the weights of its other averages" in page
    assert names(choose("edition=2022&attack=unprotected")) == ["Original"]
    assert choose("edition=2020&attack=semi-informed&set=libri_test_trials_f").attack == "lazy-informed"
    assert client.get(f"{ADDRESS}?edition=2020&attack=unprotected").status_code == 200
