"""Transcriptions of one's own recordings: only where it is known what was said, and no words twice."""

from collections import Counter

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from common.errors import ProblemsError
from listening.app.models import Study
from listening.app.results.services import close_study, start_analysis
from listening.app.studies.designing import make_design
from listening.app.studies.services import change_questions
from listening.app.studies.sizes import choose_numbers
from listening.questions import load_preset
from tests.listening.design.test_crossed import make_request
from tests.listening.factories import make_session
from tests.listening.own_factories import make_own_draft, make_own_prepared, recordings, send_recordings
from tests.listening.results.answered import analysed
from tests.listening.session_factories import finish, play_trials
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db
TEXTS = "item,text\na,the quick brown fox\nb,a lazy dog\n"


def send(place, items):
    files = recordings() | {"items.csv": items}
    return send_recordings(place.client, files, preset="transcription", original="clean")


def test_sessions_hear_no_item_twice_and_all_items_where_they_are_few(place):
    assert send(place, TEXTS + "c,over there\n").status_code == 302
    study = Study.objects.get()
    assert (study.form, study.trials_per_evaluator, study.certificate["passes"]) == ("transcription", 3, True)
    for block in study.blocks.all():
        items = block.trials.values_list("presentation__samples__stimulus__item__name", flat=True)
        assert Counter(items) == dict.fromkeys("abc", 1)


def test_of_items_that_say_the_same_one_is_heard(place):
    assert send(place, TEXTS + "c,A lazy dog!\n").status_code == 302
    study = Study.objects.get()
    assert (study.trials_per_evaluator, study.certificate["passes"]) == (2, True)
    heard = set(study.presentations.values_list("samples__stimulus__item__transcript", flat=True))
    assert {one.lower().strip("!") for one in heard} == {"the quick brown fox", "a lazy dog"}


def test_items_without_text_are_named(place):
    reply = send(place, TEXTS)
    assert reply.context["form"].errors["archive"] == [
        "What is written is compared with the text of each item, which items.csv lacks for 1 item: c."
    ]
    assert not Study.objects.exists()


def test_written_text_is_not_asked_afterwards_where_texts_are_missing():
    study = make_own_draft(make_organizer())
    study.items.update(transcript="")
    with pytest.raises(ValidationError, match="lacks for 3 items: a, b, c"):
        change_questions(study=study, by=study.created_by, questions=load_preset("transcription").questions)


def test_design_in_which_words_come_twice_is_refused():
    study = make_own_draft(make_organizer(), preset="transcription", trials_per_evaluator=4)
    with pytest.raises(ProblemsError, match="the same item twice: 2 conditions of 3 recordings give at most 3 trials"):
        make_design(study, study.created_by)


def test_numbers_follow_from_the_items():
    assert choose_numbers(make_request(0, 0, 3, 20, has_items_once=True)) == (36, 20)
    assert choose_numbers(make_request(0, 0, 4, 100, has_items_once=True)) == (80, 60)


@pytest.mark.usefixtures("plain_figures_of_studies")
def test_words_that_were_written_give_word_errors_of_each_condition():
    study = make_own_prepared(
        make_organizer(),
        preset="transcription",
        conditions=("", "codec"),
        evaluators=12,
        trials_per_evaluator=3,
        recordings={"original": "clean"},
    )
    study.items.update(transcript="the quick brown fox")
    Study.objects.filter(pk=study.pk).update(state=Study.State.OPEN, launched_at=timezone.now())
    for _ in range(12):
        session = make_session(study)
        trials = list(session.block.trials.select_related("presentation__condition"))
        play_trials(session, trials)
        for trial in trials:
            text = "the quick fox" if trial.presentation.condition.code else "The quick brown fox."
            session.answers.create(trial=trial, task="transcription", text=text, received_at=timezone.now())
        finish(session)
    study.refresh_from_db()
    close_study(study=study, by=study.created_by, now=timezone.now())
    analysed(start_analysis(Study.objects.get(), study.created_by))
    client = Client()
    client.force_login(study.created_by)
    table = client.get(f"/api/studies/{study.name}/results/common/transcription").json()
    names = [one["name"] for one in table["columns"]]
    rates = {row[names.index("system")]: row[names.index("wer")] for row in table["rows"]}
    assert (rates["clean"], rates["codec"]) == (0, 0.25)
