"""Own recordings that are compared, all the way: an archive, evaluators' pages and answers, published results."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Study
from listening.app.results.services import close_study, start_analysis
from tests.listening.answering import answer, hear
from tests.listening.factories import make_session
from tests.listening.own_factories import recordings, run_jobs, send_recordings
from tests.listening.results.answered import analysed
from tests.listening.session_factories import play_trials
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db
QUALITY = {"": 5, "coder": 4, "codec": 3, "anchor-7k": 2, "anchor-3.5k": 1}
EXAMPLES = {
    "ccr": lambda heard: max(-3, min(3, QUALITY[heard["b"]] - QUALITY[heard["a"]])),
    "mos": lambda heard: QUALITY[heard["a"]],
    "ab": lambda heard: 1 if QUALITY[heard["a"]] > QUALITY[heard["b"]] else 2,
    "abx": lambda heard: 1 if heard["x"] == heard["a"] else 2,
    "mushra": lambda heard: {slot: 20 * QUALITY[code] for slot, code in heard.items() if slot != "r"},
}


def make_open(client, preset):
    files = recordings(conditions=("clean", "codec", "coder"), items=("a", "b", "c"), seconds=1, rate_hz=24000)
    send_recordings(client, files, preset=preset, original="clean", loudness="bs1770")
    run_jobs()
    study = Study.objects.get()
    assert client.post(reverse("studies:launch", args=[study.name])).status_code == 302
    return Study.objects.get()


def answer_whole_block(session, key, rule):
    """Answer every trial by real requests; nothing that is served or acknowledged names a condition."""
    client = Client()
    hear(session)
    play_trials(session, session.block.trials.all())
    page = client.get(f"/listen/{session.token}/trials")
    served = page.content.decode() + str(client.get(f"/listen/{session.token}/state").json())
    for trial in session.block.trials.order_by("position"):
        heard = dict(trial.presentation.samples.values_list("slot", "stimulus__condition__code"))
        status, reply = answer(client, session, trial.position, rule(heard), tasks=[key], is_late=True)
        assert status == 200, reply
        served += str(reply)
    return served


def answer_and_publish(organizer, client, reader, study, answer):
    """Let three evaluators answer, none of whom is told a condition; the codes that the reader's results are about."""
    key, codes = study.asked[0].key, set(study.conditions.exclude(code="").values_list("code", flat=True))
    for _ in range(3):
        served = answer_whole_block(make_session(study), key, answer)
        assert not [code for code in codes if code in served]
    study.refresh_from_db()
    close_study(study=study, by=organizer, now=timezone.now())
    analysis = analysed(start_analysis(Study.objects.get(), organizer))
    published = client.post(reverse("studies:publish-results", args=[study.name]), {"analysis": analysis.pk})
    assert published.status_code == 302
    page = reader.get(reverse("studies:results", args=[study.name]))
    assert page.status_code == 200
    assert all(code in page.content.decode() for code in codes)
    [section] = page.context["page"]["answered"]
    assert (section["name"], bool(section["figures"])) == (key, True)
    table = reader.get(f"/api/studies/{study.name}/results/common/estimates").json()
    assert {row[0] for row in table["rows"]} == {key}
    conditions = {row[2] for row in table["rows"]} - {None, ""}
    assert conditions <= codes | {study.original_name}
    return codes


@pytest.mark.usefixtures("plain_figures_of_studies")
@pytest.mark.parametrize("preset", EXAMPLES)
def test_archive_becomes_published_results(preset):
    organizer, client, stranger = make_organizer(), Client(), Client()
    client.force_login(organizer)
    study = make_open(client, preset)
    answer_and_publish(organizer, client, stranger, study, EXAMPLES[preset])
