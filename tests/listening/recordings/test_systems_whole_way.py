"""Systems of an edition that are compared, all the way: its page, evaluators' pages and answers, published results."""

from collections import Counter

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Study
from listening.app.results.inputs import collect_inputs
from listening.app.results.services import close_study, start_analysis
from portal.submissions.models import Submission, System
from tests.listening.edition_factories import TOLD, make_edition_with_speech
from tests.listening.factories import make_session
from tests.listening.own_factories import run_jobs
from tests.listening.recordings.test_whole_way import answer_and_publish, answer_whole_block
from tests.listening.results.answered import analysed
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db
QUALITY = {"": 5, "T01-p1": 4, "T02-p1": 2, "anchor-3.5k": 1}
EXAMPLES = {
    "mos": lambda heard: QUALITY[heard["a"]],
    "dcr": lambda heard: QUALITY[heard["a"]],
    "ccr": lambda heard: max(-3, min(3, QUALITY[heard["b"]] - QUALITY[heard["a"]])),
    "ab": lambda heard: 1 if QUALITY[heard["a"]] > QUALITY[heard["b"]] else 2,
    "emotion": lambda _: 3,
    "abx": lambda heard: 1 if heard["x"] == heard["a"] else 2,
    "mushra": lambda heard: {slot: 20 * QUALITY[code] for slot, code in heard.items() if slot != "r"},
}


def make_test_of(client, edition, preset, **more):
    """Make a test on the page to which the edition's page leads, and launch it once its stimuli are made."""
    page = client.get(f"/studies/new/?edition={edition.name}")
    systems = [one.pk for one in page.context["form"]["systems"].initial]
    form = {"edition": edition.pk, "title": "Compared", "preset": preset, "size": "small", "systems": systems, **TOLD}
    made = client.post(f"/studies/new/?edition={edition.name}", form | more)
    assert made.status_code == 302, made.context["form"].errors
    run_jobs()
    study = Study.objects.get()
    assert client.post(reverse("studies:launch", args=[study.name])).status_code == 302
    return Study.objects.get()


@pytest.mark.usefixtures("figures_of_pages")
@pytest.mark.parametrize("preset", EXAMPLES)
def test_systems_of_an_edition_become_published_results(preset):
    organizer, client = make_organizer(), Client()
    client.force_login(organizer)
    edition = make_edition_with_speech(
        organizer=organizer, with_audio=True, speakers=4, utterances=4, published_at=timezone.now()
    )
    study = make_test_of(client, edition, preset)
    codes = answer_and_publish(organizer, client, client, study, EXAMPLES[preset])
    assert codes == {"T01-p1", "T02-p1"} | ({"anchor-3.5k"} if preset == "mushra" else set())
    page = client.get(f"/systems/{System.objects.get(label='T01-p1').name}/")
    rows = [
        (row.label, row.numbers[-1].value)
        for shown in page.context["listeners"].get("studies", ())
        for row in shown.comparison.rows
    ]
    of_means = {"mos": (5, 4), "dcr": (5, 4), "mushra": (100, 80)}
    assert rows == list(zip(("Original speech", "T01-p1"), of_means.get(preset, ()), strict=False))


@pytest.mark.usefixtures("figures_of_pages")
@pytest.mark.parametrize("preset", ["ab", "abx", "mushra"])
def test_nothing_is_said_of_a_system_that_was_withdrawn(preset):
    organizer, client = make_organizer(), Client()
    client.force_login(organizer)
    edition = make_edition_with_speech(organizer=organizer, with_audio=True, speakers=4, utterances=4)
    study = make_test_of(client, edition, preset)
    for _ in range(3):
        answer_whole_block(make_session(study), study.asked[0].key, EXAMPLES[preset])
    Submission.objects.filter(system__label="T02-p1").update(state=Submission.State.WITHDRAWN)
    close_study(study=study, by=organizer, now=timezone.now())
    analysed(start_analysis(Study.objects.get(), organizer))
    inputs = collect_inputs(Study.objects.get())
    assert "T02-p1" not in set(inputs.answers.condition)
    rows = Counter(zip(inputs.answers.session, inputs.answers.position, strict=True))
    assert set(rows.values()) == {3 if preset == "mushra" else 2}  # hidden reference, system and anchor; A and B
    assert "T02-p1" not in client.get(f"/api/studies/{study.name}/results").content.decode()
