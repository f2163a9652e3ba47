"""What listeners said, on the pages of a leaderboard, a system and an edition: what stands there, and for whom."""

import csv
import io
import re
from dataclasses import replace

import pytest
from django.test import Client
from django.utils import timezone

from evaluation.app.models import MetricValue
from listening.analysis.tables import make_table
from listening.app.models import Study
from portal.core.storage import store_bytes
from portal.leaderboard import figures as leaderboard_figures
from portal.leaderboard.listeners import Heard, compare_with_objective
from portal.leaderboard.selectors import build_leaderboard
from portal.submissions.models import Submission, System
from tests.listening.analysis.examples import made_up_results
from tests.listening.results.published import make_heard_study
from tests.portal.factories import make_organizer, make_team, make_team_system
from tests.portal.leaderboards import keep_scores, make_leaderboard, put_on_leaderboard

pytestmark = pytest.mark.django_db


def published_leaderboard():
    return make_leaderboard(organizers=[make_organizer()], published_at=timezone.now(), is_listed=True)


@pytest.fixture
def edition(once):
    return once(published_leaderboard)


@pytest.fixture
def organizer(edition):
    return edition.organizers.get()


@pytest.fixture
def submissions(edition):
    """Of every system that stands in a ranking, and of the one that stands in none."""
    return list(Submission.objects.filter(system__edition=edition).select_related("system").order_by("system__label"))


def client_of(user):
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def page_of(user, edition, path="leaderboard/", **query):
    return client_of(user).get(f"/editions/{edition.name}/{path}", query)


def panel_of(response):
    return response.context["listeners"]


def cells(row):
    return {one.quantity.key: one for one in row.numbers}


# What stands there ---------------------------------------------------------------------------------


def test_leaderboard_shows_numbers_of_listeners_beside_computed_ones(edition, submissions):
    study = make_heard_study(edition, submissions)
    [shown] = panel_of(page_of(None, edition))["studies"]
    assert (shown.study, shown.is_preview) == (study, False)
    results = made_up_results(systems=[one.system.label for one in submissions], is_simulated=False)
    detection = {row["system"]: row for row in results.table("normalised", "detection").records(task="verifiability")}
    summary = results.table("normalised", "summary").records(task="naturalness", kind="all")
    natural = {row["system"]: row for row in summary}
    entries = {entry.label: entry for entry in build_leaderboard(edition).entries}
    for row in shown.comparison.rows:
        found, heard = cells(row), "original" if row.label == "Original speech" else row.label
        assert found["verifiability_eer"].value == pytest.approx(100 * detection[heard]["eer"])
        assert found["verifiability_eer"].low == pytest.approx(100 * detection[heard]["eer_low"])
        assert found["verifiability_eer"].group == detection[heard]["group"]
        assert found["naturalness"].value == natural[heard]["mean"]
        entry = entries["Original" if heard == "original" else heard]
        assert found["eer"].value == entry.privacy.value
        assert found["wer"].value == entry.utilities["wer"].value


def test_lead_says_that_listeners_found_the_first_system_the_worst(edition, submissions):
    make_heard_study(edition, submissions)
    response = page_of(None, edition)
    rows = [row for row in panel_of(response)["studies"][0].comparison.rows if row.key]
    worst = min(rows, key=lambda row: cells(row)["naturalness"].value)
    told = panel_of(response)["lowest"][worst.key]
    assert (told["label"], told["count"], "Naturalness" in told["questions"]) == (worst.label, len(rows), True)
    [leader] = response.context["leaders"]
    said = f"{worst.label} has the lowest mean in" in response.content.decode()
    assert said is (leader == worst.key)


def test_every_study_of_an_edition_has_its_table_by_its_form(edition, submissions):
    made = [make_heard_study(edition, submissions, form=form) for form in Study.Form.values]
    studies = [one for one in made if one.form != "answers"]  # of choices no number is like a computed one
    shown = panel_of(page_of(None, edition))["studies"]
    assert [one.study for one in shown] == studies
    keys = {one.study.form: [quantity.key for quantity in one.comparison.quantities] for one in shown}
    assert keys["linkability"] == ["eer", "linkability_eer"]
    assert keys["transcription"] == ["wer", "recogniser_wer", "listeners_wer", "keyword_accuracy", "pitch_correlation"]
    assert [one.is_scored for one in shown] == [True, True, False]


def test_anchor_of_linking_are_pairs_of_originals(edition, submissions):
    make_heard_study(edition, submissions, form="linkability")
    [shown] = panel_of(page_of(None, edition))["studies"]
    results = made_up_results(systems=[one.system.label for one in submissions], is_simulated=False)
    table = results.table("normalised", "pair_detection")
    [anchor] = table.records(pairs="original-original", system="all")
    [linked] = table.records(pairs="original-anonymised", system="T01-p1")
    found = {row.label: cells(row)["linkability_eer"].value for row in shown.comparison.rows}
    assert found["Original speech"] == pytest.approx(100 * anchor["eer"])
    assert found["T01-p1"] == pytest.approx(100 * linked["eer"])


def test_system_that_is_shown_by_a_later_version_than_was_heard_says_so(edition, submissions):
    study = make_heard_study(edition, submissions)
    system = System.objects.get(label="T01-p1")
    pages = [f"/studies/{study.name}/results/", f"/studies/{study.name}/results/systems/T01-p1/"]
    words = f"T01-p1: version 1 of {system.title} was heard, an earlier version of it than the one on the leaderboard."
    read = [" ".join(Client().get(path).content.decode().split()) for path in pages]
    assert [text.count("was heard, an earlier version") for text in read] == [0, 0]
    put_on_leaderboard(system, eer=23.0, wer=8.0)
    rows = panel_of(page_of(None, edition))["studies"][0].comparison.rows
    assert {row.label: row.note for row in rows if row.note} == {"T01-p1": "An earlier version of it was heard."}
    read = [" ".join(Client().get(path).content.decode().split()) for path in pages]
    assert [text.count(words) for text in read] == [1, 1]


def test_withdrawn_version_is_neither_listed_nor_linked(edition, submissions):
    study = make_heard_study(edition, submissions)
    heard = next(one for one in submissions if one.system.label == "T01-p1")
    heard.state = "withdrawn"
    heard.save()
    put_on_leaderboard(heard.system, eer=23.0, wer=8.0)
    results = made_up_results(systems=[one.system.label for one in submissions if one != heard])
    study.analyses.update(results=store_bytes(results.as_json().encode(), ".json"))
    rows = panel_of(page_of(None, edition))["studies"][0].comparison.rows
    assert "T01-p1" not in {row.label for row in rows}
    assert not panel_of(Client().get(f"/systems/{heard.system.name}/"))


def results_of(submissions, *, eer, high):
    """Results in which listeners have this equal error rate on unprotected speech."""
    results = made_up_results(systems=[one.system.label for one in submissions], is_simulated=False)
    changed = {}
    for path, found in results.tables.items():
        rows = found.records()
        if found.name == "detection":
            heard = {"eer": eer, "eer_low": eer - 0.1, "eer_high": high}
            rows = [row | heard if row["system"] == "original" else row for row in rows]
        changed[path] = make_table(found.name, rows)
    return replace(results, tables=changed)


@pytest.mark.parametrize(
    ("eer", "high", "said"),
    [
        (0.5, 0.6, "Listeners erred in 50 % on unprotected speech too: their EERs may mean privacy or"),
        (0.08, 0.12, "Listeners erred in 8 % on unprotected speech: the further an EER is above"),
    ],
)
def test_rates_near_chance_are_privacy_only_where_listeners_could_do_the_task(edition, submissions, eer, high, said):
    make_heard_study(edition, submissions, results=results_of(submissions, eer=eer, high=high))
    leaderboard = page_of(None, edition).content.decode()
    for page in (leaderboard, Client().get(f"/systems/{submissions[1].system.name}/").content.decode()):
        assert (said in page, said in unfolded(page)) == (True, "the further" not in said)


def unfolded(page):
    """What a reader of a page sees who opens nothing."""
    return re.sub(r"<details.*?</details>", "", page, flags=re.DOTALL)


def test_frozen_leaderboard_knows_no_later_version(edition, submissions):
    make_heard_study(edition, submissions)
    edition.frozen_at = timezone.now()
    edition.save()
    put_on_leaderboard(System.objects.get(label="T01-p1"), eer=23.0, wer=8.0)
    rows = panel_of(page_of(None, edition))["studies"][0].comparison.rows
    assert [row.note for row in rows if row.note] == []


def test_listeners_and_attacker_share_the_axes_of_one_figure(edition, submissions, monkeypatch):
    monkeypatch.setattr(leaderboard_figures, "draws_in_pages", True)
    heard = submissions[1]
    make_heard_study(edition, [heard])
    address = f"/systems/{heard.system.name}/"
    assert panel_of(Client().get(address))["figure"] is None  # no scores of the attacker
    name = next(one.name for one in edition.recipe.sets("trial") if one.split == "test")
    keep_scores(heard, name, [0.1, 0.4, 0.9], [0.0, 0.2, 0.5])
    page = Client().get(address)
    drawn = panel_of(page)["figure"]["drawn"]["wide"]
    assert f"semi-informed attacker on {name}: EER 33.3 %" in drawn
    assert "Listeners: EER" in drawn
    file = Client().get(f"{address}det.svg?scores=normalised")
    assert (file.status_code, b"semi-informed attacker" in file.content) == (200, True)
    MetricValue.objects.filter(
        run__submission=heard, metric="eer", data_set=name
    ).delete()  # its number is withheld, so its curve is
    assert panel_of(Client().get(address))["figure"] is None


def test_study_of_which_no_system_stands_on_the_leaderboard_is_left_out(edition):
    other = make_leaderboard(name="other")
    make_heard_study(edition, list(Submission.objects.filter(system__edition=other).select_related("system")[:1]))
    assert not panel_of(page_of(None, edition))


def test_empty_cells_stay_empty_where_nothing_was_rated(submissions, edition):
    leaderboard = build_leaderboard(edition)
    entry = next(entry for entry in leaderboard.entries if entry.label == "T01-p1")
    results = made_up_results(systems=["T01-p1"], tasks=("naturalness",))
    beside = compare_with_objective(results, "raw", leaderboard.averages, [Heard("T01-p1", entry)])
    assert [one.key for one in beside.quantities] == ["eer", "wer", "naturalness", "pitch_correlation"]
    [original, _] = beside.rows
    assert cells(original)["eer"].texts == ("", "")


# For whom ------------------------------------------------------------------------------------------


def test_unpublished_results_are_a_preview_for_organizers_and_nothing_for_others(edition, organizer, submissions):
    study = make_heard_study(edition, submissions, is_published=False, title="Not to be told")
    member = submissions[1].system.team.memberships.first().user
    addresses = ("leaderboard/", "leaderboard/leaderboard.json", "leaderboard/listeners.csv", "")
    for user in (None, member, make_organizer()):
        for path in addresses:
            text = page_of(user, edition, path).content.decode()
            assert study.title not in text, path
            assert "verifiability_eer" not in text, path
        page = client_of(user).get(f"/systems/{submissions[1].system.name}/").content.decode()
        assert study.title not in page
    page = page_of(organizer, edition)
    assert panel_of(page)["studies"][0].is_preview is True
    assert "preview, not published" in page.content.decode()
    assert page_of(organizer, edition, "leaderboard/leaderboard.json").json()["listeners"][0]["is_preview"] is True


# Files ---------------------------------------------------------------------------------------------


def test_csv_has_a_row_for_each_number(edition, submissions):
    study = make_heard_study(edition, submissions)
    response = page_of(None, edition, "leaderboard/listeners.csv", scores="raw")
    assert response["Content-Disposition"].endswith(f'"{edition.name}-listeners-raw.csv"')
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    shown = panel_of(page_of(None, edition, scores="raw"))["studies"][0].comparison
    assert len(rows) == sum(one.value is not None for row in shown.rows for one in row.numbers)
    assert {row["study"] for row in rows} == {study.name}
    assert {row["scores"] for row in rows if row["by"] == "listeners"} == {"raw"}
    assert {row["scores"] for row in rows if row["by"] == "objective"} == {""}
    [rate] = [row for row in rows if row["label"] == "T01-p1" and row["measure"] == "verifiability_eer"]
    expected = next(cells(row)["verifiability_eer"] for row in shown.rows if row.label == "T01-p1")
    assert (float(rate["value"]), rate["group"], rate["unit"]) == (expected.value, expected.group, "%")
    attacks = {row["label"]: row["attack_model"] for row in rows if row["measure"] == "eer"}
    assert attacks["T01-p1"] == edition.recipe.track.ranking.attack_model
    assert {row["attack_model"] for row in rows if row["measure"] != "eer"} == {""}


def test_json_of_the_leaderboard_holds_the_table(edition, submissions):
    study = make_heard_study(edition, submissions)
    [found] = page_of(None, edition, "leaderboard/leaderboard.json").json()["listeners"]
    assert (found["study"], found["scores"], found["is_preview"]) == (study.name, "normalised", False)
    [system] = [one for one in found["systems"] if one["label"] == "T01-p1"]
    assert system["numbers"]["eer"]["value"] == 22.5
    assert system["numbers"]["eer"]["attack_model"] == edition.recipe.track.ranking.attack_model
    of_listeners = system["numbers"]["verifiability_eer"]
    assert (of_listeners["by"], of_listeners["attack_model"]) == ("listeners", None)


# Cost ----------------------------------------------------------------------------------------------


def test_organizers_leaderboard_of_many_systems_with_three_studies_costs_the_same_queries_however_many(
    edition, organizer, django_assert_num_queries
):
    for number in range(4):
        team = make_team(edition)
        for label in ("p1", "c1"):
            put_on_leaderboard(make_team_system(team, label), eer=10 + number, wer=6 + number * 0.2)
    submissions = list(Submission.objects.filter(system__edition=edition).select_related("system"))
    for is_published in (True, True, False):
        make_heard_study(edition, submissions, is_published=is_published)
    client, address = client_of(organizer), f"/editions/{edition.name}/leaderboard/"
    client.get(address)
    with django_assert_num_queries(17):
        client.get(address)
