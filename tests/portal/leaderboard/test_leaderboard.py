"""The leaderboard of an edition: who sees it, what stands on it, and that a frozen one stays as it is."""

import csv
import io
import json

import pytest
from django.utils import timezone

from evaluation.app.models import EvaluationRun, MetricValue
from evaluation.protocols.published_view import list_tasks
from portal.challenges.models import Edition
from portal.challenges.selectors import export_recipe
from portal.leaderboard import figures as leaderboard_figures
from portal.leaderboard.exports import leaderboard_as_dict, leaderboard_as_latex
from portal.leaderboard.pages import draw_ahead
from portal.leaderboard.selectors import build_leaderboard, leaderboard_for
from portal.submissions.models import Submission, System
from tests.pages import read_page
from tests.portal.factories import (
    client_of,
    make_corpus,
    make_edition,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
    make_user,
)
from tests.portal.leaderboards import keep_scores, make_leaderboard, put_on_leaderboard
from tests.portal.objective_runs import make_objective_run, number, tones_edition

pytestmark = pytest.mark.django_db
ADDRESSES = (
    "",
    "leaderboard.csv",
    "leaderboard.json",
    "leaderboard.tex",
    "figures/tradeoff-wer.svg",
    "figures/pitch-correlation.png",
)


@pytest.fixture
def edition(organizer):
    return make_leaderboard(organizers=[organizer])


def publish(edition):
    Edition.objects.filter(pk=edition.pk).update(published_at=timezone.now())


def ranks(leaderboard):
    """Rank by label, for each condition."""
    return [[(row.entry.label, row.rank) for row in table.rows] for table in leaderboard.table.tables]


# Who sees it ---------------------------------------------------------------------------------------


def test_unpublished_leaderboard_is_for_its_organizers_only(client, organizer, edition, monkeypatch):
    monkeypatch.setattr(leaderboard_figures, "_keep", lambda *_, **__: b"<svg/>")
    others = (
        make_user(),
        make_organizer(),
        edition.teams.first().memberships.first().user,
        make_user(is_staff=True, is_superuser=True),
    )
    for path in ADDRESSES:
        address = f"/editions/{edition.name}/leaderboard/{path}"
        assert client_of(organizer).get(address).status_code == 200, path
        assert [client_of(user).get(address).status_code for user in others] == [404] * 4, path
        response = client.get(address)
        assert (response.status_code, response.url.startswith("/log-in/?next=/editions/")) == (302, True), path


def test_published_leaderboard_holds_no_report_and_no_claim_of_a_team(client, edition):
    system = System.objects.get(label="T01-p1")
    run = EvaluationRun.objects.get(submission__system=system)
    run.values.update(reported=77.125, reported_text="77.125", reported_in="exp/secret-folder/results.txt")
    submission = put_on_leaderboard(
        make_team_system(system.team, "c2"),
        eer=12,
        wer=8,
        missing=[("EER (Kaldi) of vctk_test_trials_f, semi-informed", "exp/secret-folder/scores holds no line", True)],
    )
    publish(edition)
    for path in ADDRESSES[:4]:
        content = client.get(f"/editions/{edition.name}/leaderboard/{path}").content.decode()
        assert "T01-p1" in content
        assert "77.125" not in content
        assert "secret-folder" not in content
    assert submission.system.label in client.get(f"/editions/{edition.name}/leaderboard/").content.decode()


# What stands on it ---------------------------------------------------------------------------------


def test_leaderboard_ranks_by_the_recipe(edition):
    leaderboard = build_leaderboard(edition)
    original = ("Original", None)
    assert ranks(leaderboard) == [
        [("T02-p1", None), ("T01-c1", 1), ("T01-p1", None), original, ("B2", None)],
        [("T02-p1", None), ("T01-p1", 1), original],
        [("T02-p1", None), original],
        [("T02-p1", None), original],
    ]
    assert [entry.label for entry in leaderboard.table.outside] == ["T03-p1", "Original"]


def test_original_stands_with_the_published_numbers_of_the_recipe(edition):
    [row] = [row for row in build_leaderboard(edition).table.tables[0].rows if row.entry.kind == "original"]
    assert (round(row.privacy.value, 3), row.utility.value) == (3.786, 8.485)


def test_original_has_no_published_numbers_where_the_portal_evaluates(edition):
    table = (
        '[evaluation]\nby = "portal"\nattackers = ["long-term-spectrum"]\nrecognizer = "whisper-base"\n\n[[metrics]]'
    )
    text = export_recipe(edition).replace("[[metrics]]", table, 1)
    edition.recipe_text = text.replace('attack_model = "semi-informed"', 'attack_model = "lazy-informed"')
    edition.__dict__.pop("recipe", None)
    assert edition.recipe.evaluation.by_portal
    assert any(one.original_value for one in edition.recipe.data_sets.values())
    assert "original" not in {entry.kind for entry in build_leaderboard(edition).entries}


def test_newest_evaluated_version_counts(edition):
    system = System.objects.get(label="T03-p1")
    put_on_leaderboard(system, eer=17.0, wer=7.1)
    assert ranks(build_leaderboard(edition))[0][0] == ("T03-p1", 1)
    system.submissions.create(version=3, state=Submission.State.EVALUATING)
    assert ranks(build_leaderboard(edition))[0][0] == ("T03-p1", 1)


def test_withdrawn_submission_leaves_the_leaderboard(edition):
    Submission.objects.filter(system__label="T01-c1").update(state=Submission.State.WITHDRAWN)
    assert ranks(build_leaderboard(edition))[0][1] == ("T01-p1", 1)


def test_submission_that_is_evaluated_again_stays_with_the_numbers_of_before(edition):
    Submission.objects.filter(system__label="T01-c1").update(state=Submission.State.EVALUATING)
    assert ranks(build_leaderboard(edition))[0][1] == ("T01-c1", 1)


def test_claimed_numbers_count_by_policy_only(edition):
    put_on_leaderboard(make_team_system(make_team(edition), "p1"), eer=16, wer=5, reported=True)
    assert [one.entry.label for one in build_leaderboard(edition).table.unrankable] == ["T04-p1"]
    edition.leaderboard_policy = {"basis": "claims"}
    assert ranks(build_leaderboard(edition))[0][0] == ("T04-p1", 1)


def test_recipe_that_cannot_be_read_leaves_no_leaderboard(organizer, edition):
    Edition.objects.filter(pk=edition.pk).update(recipe_text="not = [a recipe")
    assert client_of(organizer).get(f"/editions/{edition.name}/leaderboard/").status_code == 404


@pytest.mark.parametrize(("protocol", "track", "key"), [("2024", "", "2024"), ("2026", "track2", "2026-track2")])
def test_every_edition_has_a_leaderboard_page_with_its_published_results(client, protocol, track, key):
    edition = make_edition(protocol=protocol, track=track, published_at=timezone.now())
    submission = make_team_system(make_team(edition)).submissions.create(
        version=1, state=Submission.State.EVALUATED, evaluated_at=timezone.now()
    )
    make_objective_run(submission, [])
    response = client.get(f"/editions/{edition.name}/leaderboard/")
    assert response.status_code == 200
    assert "T01-p1" in response.content.decode()
    assert key in {one.key for one in list_tasks()}
    assert f'href="/published-results/?edition={key}"' in response.content.decode()
    for path in ("leaderboard.csv", "leaderboard.json", "leaderboard.tex"):
        assert client.get(f"/editions/{edition.name}/leaderboard/{path}").status_code == 200


# The page ------------------------------------------------------------------------------------------


def table_of(client, edition, query="", published="hide"):
    """The table of the page, its cells by the keys of its columns."""
    table = client.get(f"/editions/{edition.name}/leaderboard/?{query}&published={published}").context["table"]
    return [dict(zip((one.key for one in table.columns), row.cells, strict=True)) for row in table.rows]


def test_published_systems_stand_where_the_recipe_is_the_shipped_one_until_they_are_hidden(client, edition):
    publish(edition)
    Edition.objects.filter(pk=edition.pk).update(leaderboard_policy={"minimum_eers": [8, 10]})

    def shown(**query):
        return [(row["system"].text, row["rank"].text) for row in table_of(client, edition, **query)]

    published = [one for one in shown(published="") if one[1] == "published"]
    assert published == [("B1.b", "published"), ("B1.a", "published"), ("B2", "published")]
    assert [one for one in shown(published="") if one not in published] == shown()
    rows = {row["system"].text: row for row in table_of(client, edition, published="")}
    assert rows["B1.a"]["system"].note == "published, not measured here"
    assert (rows["B1.a"]["eer"].text, rows["B1.a"]["wer"].text) == ("11.8", "8.3")
    assert rows["B1.a"]["eer"].title == "11.809"
    points = leaderboard_figures.list_drawings(build_leaderboard(edition))["tradeoff-wer"].points
    assert not any(point.kind == "published" for point in points)


def test_published_system_whose_source_prints_no_utility_shows_a_dash_that_says_so(client):
    """The file of B4 of 2026 prints no UAR: by that it stands with those that meet no condition."""
    edition = make_edition(protocol="2026", track="track1", published_at=timezone.now())
    put_on_leaderboard(make_team_system(make_team(edition), "p1"), eer=30.0, wer=8.0)
    Edition.objects.filter(pk=edition.pk).update(leaderboard_policy={"minimum_eers": [10]})
    rows = {row["system"].text: row for row in table_of(client, edition, "by=uar", published="")}
    assert (rows["B4"]["uar"].text, rows["B4"]["uar"].note) == ("–", "not printed")
    assert (rows["B4"]["eer"].title, rows["B4"]["wer"].title) == ("14.333", "5.901")
    assert list(rows)[-1] == "B4"
    page = client.get(f"/editions/{edition.name}/leaderboard/").content.decode()
    assert "<b>B4</b>: UAR: not printed." in page


def test_numbers_have_the_digits_that_their_intervals_allow(client):
    edition = make_edition(published_at=timezone.now())
    put_on_leaderboard(make_team_system(make_team(edition), "p1"), eer=30.123, wer=8.25, interval=20)
    put_on_leaderboard(make_team_system(make_team(edition), "p1"), eer=30.123, wer=8.25, interval=0.12)
    rows = {row["system"].text: row for row in table_of(client, edition)}
    assert (rows["T01-p1"]["eer"].text, rows["T01-p1"]["eer"].interval) == ("30", "10 to 50")
    assert (rows["T02-p1"]["eer"].text, rows["T02-p1"]["eer"].interval) == ("30.12", "30.00 to 30.24")
    assert (rows["Original"]["eer"].text, rows["Original"]["eer"].interval) == ("3.8", "")


def test_page_says_ranks_intervals_groups_reasons_and_method(client, edition):
    publish(edition)
    page = read_page(client.get(f"/editions/{edition.name}/leaderboard/"))
    for words in (
        "EER of at least 15 %",
        "T01-c1 (Alder) leads with a WER of 7.8 % (7.4 to 8.2), the only ranked system.",
        "Systems that reach the condition are ranked by WER alone: a higher EER gives no better rank.",
        "Submitted after the deadline.",
        "Of this team T01-c1 is ranked, which has the lower WER.",
        "Reaches no condition: the lowest asks for 15 %.",
        "Only numbers that the portal recomputed are ranked.",
        "0.25 libri_test_trials_f",
        "semi-informed",
    ):
        assert words in page, words
    last = client.get(f"/editions/{edition.name}/leaderboard/?condition=30").content.decode()
    assert "No system is ranked here: each that reached the condition is listed with the reason." in last


def forty_systems(edition):
    for team in range(20):
        owner = make_team(edition)
        for label in ("p1", "c1"):
            put_on_leaderboard(
                make_team_system(owner, label), eer=10 + team + len(label), wer=6 + team * 0.2 + (label == "c1")
            )


def test_organizers_page_of_forty_systems_takes_fourteen_queries(organizer, django_assert_num_queries):
    edition = make_edition(organizers=[organizer])
    forty_systems(edition)
    client, address = client_of(organizer), f"/editions/{edition.name}/leaderboard/"
    client.get(address)
    with django_assert_num_queries(14):
        client.get(address)


# Figures -------------------------------------------------------------------------------------------


def test_det_curves_of_the_systems_that_meet_a_condition_are_in_sight(client, monkeypatch):
    monkeypatch.setattr(leaderboard_figures, "draws_in_pages", True)
    edition = make_edition(published_at=timezone.now())
    first, second = [one.name for one in edition.recipe.sets("trial") if one.split == "test"][:2]
    eers = {"T01-p1": 40, "T02-p1": 20, "T03-p1": 12}
    for eer in eers.values():
        submission = put_on_leaderboard(make_team_system(make_team(edition), "p1"), eer=eer, wer=8)
        for data_set in (first, second):
            keep_scores(submission, data_set, [0.1, 0.4, 0.9], [0.0, 0.2, eer / 100])
    minima = build_leaderboard(edition).policy.minimum_eers
    shown = {}
    for minimum in (minima[0], minima[-1]):
        context = client.get(f"/editions/{edition.name}/leaderboard/?condition={minimum:g}&set={second}").context
        assert second in context["det"]["title"]
        assert [one["text"] for one in context["det_links"] if one["is_current"]] == [second]
        shown[minimum] = {label for label in eers if f"{label} 33.3 %" in context["det"]["drawn"]["wide"]}
    assert shown == {minimum: {label for label, eer in eers.items() if eer >= minimum} for minimum in shown}
    assert shown[minima[0]] > shown[minima[-1]]
    picture = client.get(context["det"]["downloads"][0]["url"])
    assert (picture.status_code, picture["Content-Type"]) == (200, "image/svg+xml")


def test_det_curve_whose_number_is_withheld_or_whose_scores_are_erased_is_not_drawn(client, edition):
    publish(edition)
    submission = Submission.objects.get(system__label="T01-c1")
    data_set = next(one.name for one in edition.recipe.sets("trial") if one.split == "test")
    assert client.get(f"/editions/{edition.name}/leaderboard/").context["det"] is None
    keep_scores(submission, data_set, [0.1, 0.4, 0.9], [0.0, 0.2, 0.5])
    address = client.get(f"/editions/{edition.name}/leaderboard/").context["det"]["downloads"][0]["url"]
    assert client.get(address).status_code == 200
    MetricValue.objects.filter(run__submission=submission, metric="eer", data_set=data_set).delete()
    assert client.get(f"/editions/{edition.name}/leaderboard/").context["det"] is None
    assert client.get(address).status_code == 302  # not there: a visitor is asked to log in


def test_figures_are_drawn_ahead_once_for_new_numbers(edition, monkeypatch):
    drawn = []

    def draw(description):
        drawn.append(description)
        return b'<svg xmlns="http://www.w3.org/2000/svg"/>'

    monkeypatch.setattr(leaderboard_figures, "draws_in_pages", True)
    monkeypatch.setattr(leaderboard_figures, "_drawn", draw)
    monkeypatch.setattr("portal.leaderboard.pages._drawn_marks", {})
    draw_ahead()
    assert len(drawn) > 1
    drawn.clear()
    draw_ahead()
    assert not drawn


def test_figure_is_drawn_once_and_kept_by_what_it_shows(client, edition, monkeypatch):
    publish(edition)
    address = f"/editions/{edition.name}/leaderboard/figures/tradeoff-wer.svg"
    first = client.get(address)
    assert first.content.startswith(b"<?xml")
    assert b"T01-p1" in first.content
    monkeypatch.setattr(leaderboard_figures, "_drawn", lambda _: pytest.fail("drawn again"))
    assert client.get(address).content == first.content


def test_figure_file_of_synthetic_speech_says_so(client, edition):
    Edition.objects.filter(pk=edition.pk).update(corpus=make_corpus("made", is_synthetic=True))
    publish(edition)
    figure = client.get(f"/editions/{edition.name}/leaderboard/figures/tradeoff-wer.svg")
    assert b"SYNTHETIC SPEECH" in figure.content


def test_figure_is_a_harmless_document_of_its_kind(client, edition):
    publish(edition)
    for extension, kind in (("svg", "image/svg+xml"), ("pdf", "application/pdf"), ("png", "image/png")):
        response = client.get(f"/editions/{edition.name}/leaderboard/figures/gain-of-voice-distinctiveness.{extension}")
        assert response["Content-Type"] == kind
        assert "sandbox" in response["Content-Security-Policy"]


# Data ----------------------------------------------------------------------------------------------


def test_csv_holds_every_row_with_all_digits(client, edition):
    put_on_leaderboard(make_team_system(make_team(edition), "p1"), eer=16.123456789012, wer=7.6)
    publish(edition)
    response = client.get(f"/editions/{edition.name}/leaderboard/leaderboard.csv")
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    found = {(row["minimum_eer"], row["label"]): row for row in rows}
    assert found["15.0", "T04-p1"]["eer"] == "16.123456789012"
    assert found["15.0", "T04-p1"] | {"place": "ranked", "rank": "1", "ranked_by": "wer"} == found["15.0", "T04-p1"]
    assert found["15.0", "T02-p1"]["reasons"].startswith("Submitted after the deadline.")
    assert found["", "T03-p1"]["place"] == "outside"


def test_json_is_the_leaderboard_as_data(client, edition):
    publish(edition)
    found = client.get(f"/editions/{edition.name}/leaderboard/leaderboard.json").json()
    assert found == json.loads(json.dumps(leaderboard_as_dict(leaderboard_for(make_user(), edition.name))))
    first = found["rankings"][0]
    assert first["condition"]["text"] == "EER of at least 15 %"
    assert [(row["label"], row["place"], row["rank"]) for row in first["rows"]] == [
        ("T02-p1", "unranked", None),
        ("T01-c1", "ranked", 1),
        ("T01-p1", "unranked", None),
        ("Original", "reference", None),
        ("B2", "reference", None),
    ]
    assert first["rows"][1]["averages"]["wer"] == {"value": 7.75, "low": 7.35, "high": 8.15, "is_reported": False}
    assert found["policy"]["basis"] == "recomputed"


def test_latex_table_is_escaped(edition):
    edition.title = "A_B & 100 % {of} #1 \\today ρ"
    text = leaderboard_as_latex(build_leaderboard(edition))
    assert r"\caption{A\_B \& 100 \% \{of\} \#1 \textbackslash{}today $\rho$, test set: EER of at least 15 \%" in text
    assert r"EERs of semi-informed attacks; beneath numbers their 95 \% intervals." in text
    assert r"1 & T01-c1 & 16.3 & 7.8 & " in text
    assert r" &  & \scriptsize [15.9, 16.7] & \scriptsize [7.4, 8.2] & " in text
    assert rf"\label{{tab:{edition.name}-15-wer}}" in text
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 4
    assert text.startswith("% A_B & 100 % {of} #1")


# Original speech -----------------------------------------------------------------------------------


def test_original_speech_stays_with_the_numbers_that_are_known(client):
    edition = tones_edition(published_at=timezone.now())
    submission = make_submission(make_team_system(make_team(edition), "p1"))
    eer = number(edition, "eer", "kaldi", "average_test", 16.0)
    make_objective_run(submission, [eer, number(edition, "eer", "kaldi", "average_test", 5.125, attack="unprotected")])
    [original] = [entry for entry in build_leaderboard(edition).entries if entry.kind == "original"]
    assert (original.privacy and original.privacy.value, original.utilities) == (5.125, {})
    for path in ADDRESSES[:3]:
        assert "5.125" in client.get(f"/editions/{edition.name}/leaderboard/{path}").content.decode(), path
