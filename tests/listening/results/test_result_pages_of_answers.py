"""Pages of results from answers to files: analysed by the job, shown, taken as files, screened."""

import io
import zipfile

import pytest
from django.test import Client
from django.urls import reverse

from listening.analysis.tables import Results
from listening.app.models import Session
from tests.listening.results.answered import CHOSEN, analysed, make_answered
from tests.pages import read_page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_analyses")]
SETTINGS = {
    "normalisation": "midrank",
    "correction": "bh",
    "level": 0.9,
    "seed": 7,
    "least_clusters": 10,
    "partial_trials": 20,
    "partial_of_each_kind": 8,
    **CHOSEN,
}


@pytest.fixture
def study():
    """With one task: pages do not depend on how many there are."""
    return make_answered(tasks=["naturalness"])


@pytest.fixture
def client(study):
    client = Client()
    client.force_login(study.edition.organizers.first())
    return client


def address(study, name="results", *parts):
    return reverse(f"studies:{name}", args=[study.name, *parts])


def page_of(response):
    assert response.status_code == 200
    return read_page(response)


def run_from_page(client, study):
    response = client.post(address(study, "analyse"), SETTINGS)
    assert response.status_code == 302
    return analysed(study.analyses.first())


def test_a_bundle_holds_inputs_tables_and_figures(client, study):
    run_from_page(client, study)
    response = client.get(address(study, "results-bundle"))
    assert response["Content-Disposition"] == f'attachment; filename="{study.name}-results.zip"'
    with zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content))) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        stored = Results.from_json(archive.read("results.json"))
        table = archive.read("tables/raw/summary.csv").decode()
    assert {"MANIFEST.sha256", "inputs/study.json"} <= names
    assert any(name.startswith("figures/raw/violin-naturalness") for name in names)
    assert stored == Results.from_json(client.get(address(study, "results-json")).content)
    assert table == client.get(address(study, "results-csv", "raw", "summary")).content.decode()


def test_a_rule_leaves_listeners_out_and_the_study_is_analysed_anew():
    study = make_answered(evaluators=14, trials=12, closed=False, tasks=["naturalness"])
    even = study.sessions.first()
    even.answers.update(rating=5)
    Session.objects.filter(pk=even.pk).update(state=Session.State.FINISHED)
    study.state = "closed"
    study.closed_at = even.ended_at
    study.save()
    client = Client()
    client.force_login(study.edition.organizers.first())
    run_from_page(client, study)
    page = page_of(client.get(address(study, "results-listeners")))
    assert 'name="rule" value="low-variance"' in page
    refused = client.post(address(study, "results-screen"), {"rule": "low-variance", "reason": " "}, follow=True)
    assert "notice error" in page_of(refused)
    assert '<details class="more" open><summary>Leave these listeners out</summary>' in page_of(refused)
    response = client.post(
        address(study, "results-screen"), {"rule": "low-variance", "reason": "One rating for everything."}, follow=True
    )
    page = page_of(response)
    assert "it leaves out 1 of the sessions" in page
    assert 'hx-trigger="every 2s"' in page
    analysed(study.analyses.first())
    page = page_of(client.get(address(study)))
    assert "1 listener: One rating for everything." in page
    assert "What leaving sessions out changes" in page
    assert "One rating for everything." in page_of(client.get(address(study, "exclusions")))
