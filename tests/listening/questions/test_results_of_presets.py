"""Answers to the questions of presets are analysed and shown by their own words and on their own scales."""

import pytest
from django.test import Client
from django.urls import reverse

from listening.app.results.inputs import collect_inputs
from listening.questions import load_preset
from tests.listening.results.answered import analysed, make_answered
from tests.pages import read_page

pytestmark = pytest.mark.django_db
SETTINGS = {"normalisation": "rank01/avg", "correction": "holm", "resamples": 200, "permutations": 200}
SETTINGS |= {"level": 0.95, "seed": 2022, "least_clusters": 10, "partial_trials": 20, "partial_of_each_kind": 8}
SAID = ("Own question", "How good does A sound?", "raw ratings, 1 to 5", "Mean score, higher is better.")


@pytest.mark.usefixtures("plain_figures_of_studies")
def test_results_of_a_preset_are_in_its_words_and_on_its_scale():
    questions = [one for preset in ("similarity", "own") for one in load_preset(preset).questions]
    study = make_answered(tasks=[one.key for one in questions])
    client = Client()
    client.force_login(study.edition.organizers.first())

    def address(name, *parts):
        return reverse(f"studies:{name}", args=[study.name, *parts])

    assert client.post(address("analyse"), SETTINGS).status_code == 302
    analysed(study.analyses.first())
    page = read_page(client.get(address("results"), {"scores": "raw"}))
    for words in SAID:
        assert words in page, words
    told = client.get(address("results-json")).json()
    assert [one["key"] for one in told["study"]["questions"]] == [one.key for one in questions]
    assert told["study"]["scale"] == {one.key: [1.0, one.points] for one in questions}
    for name in ("results-listeners", "results-bundle", "results-latex"):
        assert client.get(address(name)).status_code == 200, name
    system = study.systems.first().code
    assert questions[1].title in read_page(client.get(address("results-system", system), {"scores": "raw"}))


def test_only_a_question_that_compares_voices_hears_sample_b():
    ratings = collect_inputs(make_answered(evaluators=2, trials=4, tasks=["similarity", "quality"])).ratings
    of = {task: ratings.rows(ratings.task == task) for task in ("similarity", "quality")}
    assert set(of["similarity"].is_target.tolist()) <= {0, 1}
    assert set(of["quality"].is_target.tolist()) == {-1}
    assert set(of["quality"].enrolment.tolist()) == {""}
