"""The page of published results: what is chosen, and what is said before comparing."""

import csv
import io
from dataclasses import replace

import pytest
from django.http import QueryDict
from django.utils import timezone

from evaluation.protocols.published import load_published
from portal.challenges.models import Edition
from portal.core.templatetags.tables import table_body
from portal.leaderboard.published_results.pages import draw_plane, make_table, published_page, read_choice
from tests.portal.factories import (
    make_edition,
    make_submission,
    make_team,
    make_team_system,
    make_user,
)
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


def test_averages_are_rounded_on_the_page_and_whole_in_files():
    """What was printed of one data set keeps its digits."""
    choice = choose()

    def eer_of(table):
        place = next(place for place, column in enumerate(table.columns) if column.key == "kaldi_eer")
        return next(row.cells[place] for row in table.groups[0].rows if row.cells[0].text == "B1.a")

    shown = eer_of(make_table(choice))
    assert (shown.text, shown.title) == ("11.8", "11.809")
    assert eer_of(make_table(choice, is_file=True)).text == "11.809"
    figure = published_page(choice)["figure"]
    assert {"11.8"} == {row.cells[1].text for row in figure["numbers"].groups[0].rows if row.cells[0].text == "B1.a"}


def test_splits_and_sets_are_filtered():
    choice = choose("edition=2022&split=dev&set=vctk_dev_trials_f")
    table = make_table(choice)
    row = next(row for row in table.rows if row.cells[0].text == "B1.a")
    cells = {column.key: cell for column, cell in zip(table.columns, row.cells, strict=True)}
    assert (cells["kaldi_eer"].text, cells["wer"].text) == ("12.46", "11.54")
    point = next(one for one in draw_plane(choice).points if one.name == "B1.a")
    assert (point.eer, point.utility, point.kind) == (12.46, 11.54, "published")


def test_printed_error_rates_name_the_attack_of_their_source(monkeypatch):
    """Of unprotected speech it is another one than of systems; where no source says it, that is said."""
    table = make_table(choose())
    place = next(place for place, column in enumerate(table.columns) if column.key == "kaldi_eer")
    notes = {row.cells[0].text: row.cells[place].note for group in table.groups for row in group.rows}
    assert table.columns[place].note == "semi-informed"
    body = table_body(table)
    assert 'data-label="EER (Kaldi), %"' in body  # of unprotected speech
    assert 'data-label="EER (Kaldi), % (semi-informed)"' in body
    assert (notes["Original"], notes["B2"]) == ("unprotected", "")
    unstated = tuple(replace(one, attack_model="") for one in load_published("2022"))
    monkeypatch.setattr("evaluation.protocols.published_view.load_published", lambda _: unstated)
    assert make_table(choose()).columns[place].note == "attack model not stated"


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


def test_figure_is_a_file_of_three_kinds(client):
    response = client.get(f"{ADDRESS}figure.svg?edition=2022")
    assert (response.status_code, response["Content-Type"]) == (200, "image/svg+xml")
    assert b"B1.a" in response.content
    client.force_login(make_user())
    assert client.get(f"{ADDRESS}figure.exe").status_code == 404
    assert client.get(f"{ADDRESS}figure.svg?edition=2022&attack=unprotected").status_code == 404


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
