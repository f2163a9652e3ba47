"""The page of published results: what is chosen, what is laid over, what is said before comparing."""

import csv
import io
from dataclasses import replace

import pytest
from django.http import QueryDict
from django.utils import timezone

from evaluation.protocols.published import load_published
from portal.challenges.models import Edition
from portal.challenges.selectors import export_recipe
from portal.core.templatetags.tables import table_body
from portal.leaderboard.figures import list_drawings
from portal.leaderboard.published_results.pages import (
    PLANE,
    list_published_drawings,
    make_further_table,
    make_table,
    published_page,
    read_choice,
)
from portal.leaderboard.selectors import build_leaderboard
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_submission,
    make_team,
    make_team_system,
    make_user,
    recipe_of,
)
from tests.portal.leaderboards import make_baseline
from tests.portal.objective import make_objective_run, ranked_numbers

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
    figure = next(one for one in published_page(choice)["figures"] if one["slug"] == "eer")
    assert {"11.8"} == {row.cells[1].text for row in figure["numbers"].groups[0].rows if row.cells[0].text == "B1.a"}


def test_captions_speak_of_systems_of_this_portal_only_where_they_are_shown(client, edition):
    for query, is_told in (("", False), (f"?over={edition.name}", True)):
        page = client.get(f"{ADDRESS}{query}").context
        captions = [page["table"].caption, *(one["caption"] for one in page["figures"])]
        assert {"ystems of this portal" in one for one in captions} == {is_told}


def test_what_an_address_names_and_is_not_there_is_as_if_it_were_not_named(client):
    plain = choose()
    assert choose("edition=1999&split=x&set=y&by=z&over=nothing&of=2022&system=nobody") == plain
    assert client.get(f"{ADDRESS}?edition=1999&set=%00").status_code == 200


def test_systems_sets_and_measures_are_filtered():
    choice = choose("edition=2022&split=dev&set=vctk_dev_trials_f&by=pitch_correlation&of=2022&system=B2&system=B1.a")
    assert names(choice) == ["B1.a", "B2"]
    table = make_table(choice)
    cells = {column.key: cell for column, cell in zip(table.columns, table.rows[0].cells, strict=True)}
    assert (cells["kaldi_eer"].text, cells["wer"].text) == ("12.46", "11.54")
    points = list_published_drawings(choice)[PLANE].points
    assert [one.name for one in points] == ["B1.a", "B2"]
    assert (points[0].eer, points[0].utility) == (12.46, 0.8385)


def test_names_of_another_task_do_not_hide_systems():
    assert names(choose("edition=2024&of=2022&system=B2")) == names(choose("edition=2024"))


def test_2020_has_no_averages_and_says_so(client):
    choice = choose("edition=2020")
    assert choice.data_set == "libri_test_trials_f"
    page = client.get(f"{ADDRESS}?edition=2020").content.decode()
    assert "printed no averages" in page
    assert "only baselines" in page


def test_systems_of_a_leaderboard_are_laid_over_with_what_differs(client, edition):
    choice, here = choose(f"over={edition.name}"), f"T01-p1 ({edition.name})"
    assert {here, f"Original ({edition.name})"} <= set(names(choice))
    originals = [one for one in list_published_drawings(choice)[PLANE].points if one.kind == "original"]
    assert [(one.name, one.link) for one in originals] == [
        ("Original", f"?{choice.query}#table"),
        (f"Original ({edition.name})", ""),
    ]
    point = next(one for one in list_published_drawings(choice)[PLANE].points if one.kind == "system")
    assert (point.name, point.eer, point.utility) == (here, 21.5, 7.25)
    on_leaderboard = list_drawings(build_leaderboard(edition)).values()
    assert point.place in {one.place for drawing in on_leaderboard for one in drawing.points if one.name == "T01-p1"}
    page = client.get(f"{ADDRESS}?over={edition.name}").content.decode()
    assert f"Evaluator: {edition}: the teams" in page
    assert "Data:" not in page
    other = client.get(f"{ADDRESS}?edition=2024&over={edition.name}").content.decode()
    assert f"Data: {edition} has other data sets, trials or weights than 2024." in other
    assert "Estimator: EER (Kaldi) here, EER (SpeechBrain) in print." in other
    assert "Attack model:" not in page
    earlier = client.get(f"{ADDRESS}?edition=2020&set=libri_test_trials_f").content.decode()
    assert "lazy-informed" in earlier
    one_set = client.get(f"{ADDRESS}?set=libri_test_trials_f&over={edition.name}").content.decode()
    assert "have averages of their own split only" in one_set
    assert "T01-p1" not in one_set


def test_attack_models_that_differ_are_named_before_comparing_and_at_the_column(client, edition):
    edition.recipe_text = export_recipe(edition).replace(
        'attack_model = "semi-informed"', 'attack_model = "lazy-informed"'
    )
    edition.save()
    page = client.get(f"{ADDRESS}?over={edition.name}").content.decode()
    assert (
        f"Attack model: lazy-informed (attacker not trained on anonymised speech) for {edition}; semi-informed "
        "(attacker trained on anonymised speech) in print."
    ) in page
    eer = next(column for column in make_table(choose(f"over={edition.name}")).columns if column.key == "kaldi_eer")
    assert eer.note == "semi-informed in print, lazy-informed here"


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


@pytest.mark.parametrize("hidden", [{"is_listed": False}, {"published_at": None}])
def test_leaderboard_that_not_everybody_may_see_is_neither_offered_nor_laid_over(client, edition, hidden):
    Edition.objects.filter(pk=edition.pk).update(title="Kept to its organizers", **hidden)
    page = client.get(f"{ADDRESS}?over={edition.name}").content.decode()
    assert "Kept to its organizers" not in page
    assert "T01-p1" not in page


def test_archived_leaderboard_is_laid_over_by_its_address_alone(client, edition):
    Edition.objects.filter(pk=edition.pk).update(title="Of last year", archived_at=timezone.now())
    assert "Of last year" not in client.get(ADDRESS).content.decode()
    assert "T01-p1" in client.get(f"{ADDRESS}?over={edition.name}").content.decode()


def test_baseline_of_another_evaluator_says_why_papers_print_other_numbers(client):
    corpus = make_corpus(speakers=4)
    text = recipe_of(corpus, "portal")
    made = make_edition(corpus, recipe_text=text, published_at=timezone.now())
    Edition.objects.filter(pk=made.pk).update(is_listed=True)
    system = make_baseline(made, eer=20.0, wer=47.0)
    said = f"Here everything was measured on the speech of {corpus} by the portal"
    for address in (f"/editions/{made.name}/leaderboard/", system.get_absolute_url(), f"{ADDRESS}?over={made.name}"):
        assert said in client.get(address).content.decode(), address


def test_baseline_of_the_challenge_itself_has_the_numbers_of_papers(client, edition):
    make_baseline(edition, eer=20.0, wer=8.0)
    page = client.get(f"/editions/{edition.name}/leaderboard/").content.decode()
    assert "Papers print other numbers" not in page


def test_files_hold_the_printed_numbers_of_the_choice(client):
    query = "edition=2024&split=test&of=2024&system=B3"
    wanted = [one for one in load_published("2024") if one.system == "B3" and "_test" in one.data_set]
    rows = list(csv.DictReader(io.StringIO(client.get(f"{ADDRESS}published.csv?{query}").content.decode())))
    assert [(row["data_set"], row["value"], row["source"]) for row in rows] == [
        (one.data_set, one.value, one.source) for one in wanted
    ]
    assert client.get(f"{ADDRESS}published.json?{query}").json() == {"numbers": rows}
    latex = client.get(f"{ADDRESS}published.tex?{query}").content.decode()
    assert "B3 & 27.322 & 4.352 & 37.570 & " in latex


def test_figures_are_files_and_others_are_not_found(client):
    response = client.get(f"{ADDRESS}figures/plane.svg?edition=2022")
    assert (response.status_code, response["Content-Type"]) == (200, "image/svg+xml")
    assert b"B1.a" in response.content
    client.force_login(make_user())
    assert client.get(f"{ADDRESS}figures/plane.exe").status_code == 404
    assert client.get(f"{ADDRESS}figures/nothing.svg").status_code == 404


def test_page_asks_the_database_little_however_many_leaderboards_there_are(client, edition, django_assert_num_queries):
    client.get(ADDRESS)
    with django_assert_num_queries(2):
        client.get(ADDRESS)
    for _ in range(2):
        Edition.objects.filter(pk=make_edition(published_at=timezone.now()).pk).update(is_listed=True)
    with django_assert_num_queries(2):
        client.get(ADDRESS)


def test_menu_and_leaderboard_lead_to_it(client, edition):
    assert 'href="/published-results/"' in client.get("/").content.decode()
    page = client.get(f"/editions/{edition.name}/leaderboard/").content.decode()
    assert f'href="/published-results/?edition=2022&amp;over={edition.name}"' in page


def test_attack_model_is_a_filter_of_page_figures_and_files(client):
    """B2 of 2022 on one set: 38.32 % for an attacker who enrols originals, 7.117 % for one trained on its speech."""
    query = "edition=2022&set=libri_test_trials_f&of=2022&system=B2&system=Original"
    for attack, eer in (("ignorant", "38.32"), ("semi-informed", "7.117")):
        choice = choose(f"{query}&attack={attack}")
        table = make_table(choice)
        cells = {column.key: cell for column, cell in zip(table.columns, table.rows[-1].cells, strict=True)}
        assert cells["kaldi_eer"].text == eer
        further = make_further_table(choice)
        assert further.caption.startswith(f"Attacks: {attack}; of original speech, unprotected. ")
        assert {"C_llr", "min C_llr", "Linkability D_sys"} <= {column.heading for column in further.columns}
        point = next(one for one in list_published_drawings(choice)[PLANE].points if one.name == "B2")
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


def test_recalls_of_emotions_stand_beside_their_mean(client):
    table = make_further_table(choose("edition=2024"))
    assert [row.cells[0].text for row in table.rows][:2] == ["B1", "Original"]
    cells = {
        column.heading: cell.text
        for column, cell in zip(
            table.columns, next(row.cells for row in table.rows if row.cells[0].text == "B2"), strict=True
        )
    }
    assert (cells["Recall of sad"], cells["Recall of neu"]) == ("32.8", "66.2")
