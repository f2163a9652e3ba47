"""Choices about own recordings whose right label is known: in items.csv, from which recall and confusion follow."""

import pytest
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Study
from listening.app.results.inputs import collect_inputs
from listening.app.results.services import close_study, start_analysis
from tests.listening.own_factories import recordings, run_jobs, send_recordings
from tests.listening.results.answered import analysed
from tests.listening.session_factories import make_finished_session

pytestmark = pytest.mark.django_db
ANSWERS = {"a": "happy", "b": "sad", "c": "sad"}


def send(client, answers):
    table = "item,answer\n" + "".join(f"{item},{answer}\n" for item, answer in answers.items())
    return send_recordings(client, recordings() | {"items.csv": table}, preset="emotion")


@pytest.mark.usefixtures("plain_figures_of_studies")
def test_recall_and_confusion_stand_on_the_page_of_results(place):
    client = place.client
    send(client, ANSWERS)
    run_jobs()
    study = Study.objects.get()
    client.post(reverse("studies:launch", args=[study.name]))
    study.refresh_from_db()
    for _ in range(2):
        make_finished_session(study, lambda *_: 3)  # everything is called sad
    close_study(study=study, by=study.created_by, now=timezone.now())
    study = Study.objects.get()
    answers = collect_inputs(study).answers
    assert dict(zip(answers.item, answers.truth, strict=True)) == ANSWERS
    analysed(start_analysis(study, study.created_by))
    page = " ".join(client.get(reverse("studies:results", args=[study.name])).content.decode().split())
    assert "The unweighted average recall of the labels is 50.0" in page  # all of sad, none of happy
    confusion = client.get(reverse("studies:results-csv", args=[study.name, "common", "confusion"])).content.decode()
    assert confusion.splitlines()[1:] == [
        f"emotion,{condition},{truth},sad,{count},1.0"
        for condition in ("clean", "codec")
        for truth, count in (("happy", 2), ("sad", 4))
    ]


def test_label_that_cannot_be_chosen_is_refused_with_its_item(place):
    reply = send(place.client, ANSWERS | {"b": "melancholic"})
    assert reply.context["form"].errors["archive"] == [
        "items.csv: expected the right answer to b as one of neutral, happy, sad, angry, afraid, found melancholic."
    ]
