"""From an archive to published results, for each way of comparing: answers by real requests, analysed by the job."""

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Study
from listening.app.results.selectors import parsed_results
from listening.app.results.services import publish_results, start_analysis
from listening.app.studies.services import close_study
from listening.questions import load_preset
from tests.listening.answering import answer_all
from tests.listening.factories import make_session
from tests.listening.own_factories import pack, recordings
from tests.listening.recordings.test_own_tests import FORM, NEW, run_jobs
from tests.listening.results.answered import analysed
from tests.listening.session_factories import play_trials
from tests.portal.factories import make_organizer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("figures_of_pages")]


@pytest.fixture
def place():
    organizer, client = make_organizer(), Client()
    client.force_login(organizer)
    return SimpleNamespace(organizer=organizer, client=client)


@pytest.mark.parametrize(
    ("preset", "given", "measure"),
    [
        ("mos", 4, "mean"),
        ("dcr", 4, "mean"),
        ("ccr", 2, "mean rating"),
        ("ab", 1, "share of wins"),
        ("abx", 2, "share right"),
        ("emotion", 3, "share of answers"),
        ("mushra", {str(number): 20 * number for number in range(1, 5)}, "median"),
    ],
)
def test_archive_becomes_published_results_of_every_preset(place, preset, given, measure):
    files = recordings(rate_hz=24000)
    told = {"archive": pack(files), "keep_months": 12, "original": "clean"} | FORM | {"preset": preset}
    assert place.client.post(NEW, told).status_code == 302
    run_jobs()
    study = Study.objects.get()
    assert place.client.post(reverse("studies:launch", args=[study.name])).status_code == 302
    keys = [one.key for one in load_preset(preset).questions]
    for _ in range(2):
        session = make_session(study)
        play_trials(session, session.block.trials.all())
        answer_all(Client(), session, rating=given, tasks=keys)
    assert study.sessions.filter(state="finished").count() == 2
    study.refresh_from_db()
    close_study(study=study, by=place.organizer, now=timezone.now())
    analysis = analysed(start_analysis(Study.objects.get(), place.organizer))
    publish_results(study=study, by=place.organizer, now=timezone.now())
    page = Client().get(reverse("studies:results", args=[study.name]))
    sections = page.context["page"]["answered"]
    assert [section["name"] for section in sections] == keys
    assert all(section["figures"] for section in sections)
    told = Client().get(f"/api/studies/{study.name}/results/common/estimates").json()
    assert {row[[column["name"] for column in told["columns"]].index("question")] for row in told["rows"]} == set(keys)
    rows = parsed_results(analysis.results).records("common", "estimates", measure=measure)
    assert rows
    assert all(row["listeners"] <= 2 and row["n"] for row in rows)
