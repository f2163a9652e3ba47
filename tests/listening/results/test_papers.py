"""Figures 6 and 8 of the results of 2022, and their correlations, on the page of published results."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from evaluation.figures.json_figures import draw_described
from evaluation.protocols.published import load_published_correlations
from listening.analysis.figures.papers import MOST_COLOURS, list_paper_figures
from listening.analysis.reading.inputs import ORIGINAL
from listening.app.results.papers import PaperDrawing
from portal.submissions.models import Submission
from tests.listening.analysis.examples import SYSTEMS, made_up_results
from tests.listening.results.published import make_heard_study
from tests.portal.factories import make_organizer, make_user
from tests.portal.leaderboards import make_leaderboard

pytestmark = pytest.mark.django_db
ADDRESS = "/published-results/"
PRINTED = {one.pair: one.pearson for one in load_published_correlations("2022")}


@pytest.fixture
def edition():
    return make_leaderboard(organizers=[make_organizer()], published_at=timezone.now(), is_listed=True)


@pytest.fixture
def submissions(edition):
    return list(Submission.objects.filter(system__edition=edition).select_related("system").order_by("system__label"))


def of_a_user():
    client = Client()
    client.force_login(make_user())
    return client


def panel_of(query):
    return next((one for one in Client().get(ADDRESS, query).context["panels"]), None)


def test_correlations_of_the_paper_stand_with_their_section():
    assert sorted(PRINTED.values()) == [0.05, 0.14, 0.58]
    assert {(one.systems, one.table) for one in load_published_correlations("2022")} == {(5, "Section VI-A")}
    assert load_published_correlations("2020") == ()


def test_study_of_the_edition_laid_over_is_drawn_beside_the_paper(edition, submissions):
    study = make_heard_study(edition, submissions)
    found = panel_of({"over": edition.name, "reference": submissions[1].system.label, "scores": "raw"})
    context = found.context
    assert context["study"] == study
    assert [one for _, one, is_chosen in context["references"] if is_chosen] == [submissions[1].system.label]
    assert [one["name"] for one in context["figures_6"]] == ["violin-naturalness", "violin-intelligibility"]
    assert f"Dashed line: mean of {submissions[1].system.label}." in context["figures_6"][0]["method"]
    assert [column.key for column in context["correlations"].columns] == ["pair", "printed", "here", "utterances"]
    # Every figure is a file, and other references have other files.
    answers = [Client().get(one["image"]) for one in (*context["figures_6"], *context["figures_8"])]
    assert {(one.status_code, one["Content-Type"]) for one in answers} == {(200, "image/svg+xml")}
    other = panel_of({"over": edition.name, "scores": "raw"}).context["figures_6"][0]["image"]
    assert Client().get(other).content != answers[0].content


def test_address_that_names_nothing_known_shows_the_usual_or_is_not_found(edition, submissions):
    study = make_heard_study(edition, submissions)
    context = panel_of({"over": edition.name, "reference": "nobody", "colour": "nobody"}).context
    assert [name for name, _, is_chosen in context["references"] if is_chosen] == [ORIGINAL]
    assert len(context["coloured"]) == min(5, len(submissions))
    folder = f"/studies/{study.name}/results/papers"
    for path in ("raw/nothing.svg", "raw/violin-naturalness.exe", "common/violin-naturalness.svg"):
        assert of_a_user().get(f"{folder}/{path}").status_code == 404
    assert of_a_user().get(f"{folder}/raw/violin-naturalness.svg", {"theme": "pink"}).status_code == 404


def test_utterances_have_the_colour_of_their_system_and_a_correlation_of_their_own():
    results = made_up_results()
    found = {one.name: one for one in list_paper_figures(results, "normalised", ORIGINAL, SYSTEMS[:1], PRINTED)}
    figure = found["colours-intelligibility-wer"]
    held = [
        row
        for row in results.records("normalised", "utterances")
        if row["system"] != ORIGINAL and row["intelligibility"] is not None and row["one_minus_wer"] is not None
    ]
    counted = {cloud.words: len(cloud.x) for cloud in figure.plot.clouds}
    of_first = sum(row["system"] == SYSTEMS[0] for row in held)
    assert sum(counted.values()) == len(held)
    assert of_first in counted.values()
    assert counted["other systems"] == len(held) - of_first
    assert "VoicePrivacy 2022: 0.14" in figure.plot.heading
    assert sum(row["utterances"] for row in figure.numbers.records()) == len(held)
    many = list_paper_figures(results, "normalised", ORIGINAL, [*SYSTEMS] * 9, PRINTED)
    assert all(len(one.plot.clouds) <= MOST_COLOURS + 1 for one in many if one.name.startswith("colours"))


def test_simulated_answers_are_called_so_inside_of_the_picture():
    figures = list_paper_figures(made_up_results(is_simulated=True), "raw", ORIGINAL, SYSTEMS, PRINTED)
    for figure in figures:
        assert "SIMULATED" in PaperDrawing(figure).description()
        assert re.match(rb"<\?xml|<svg", draw_described(PaperDrawing(figure).description()))
