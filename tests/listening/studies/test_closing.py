"""Closing a study: who is still listening is shown, waited for or ended, and nobody else holds the analysis up."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Session, Study
from listening.app.withdrawal.services import withdraw
from tests.listening.factories import make_study
from tests.listening.session_factories import make_finished_session
from tests.listening.visits import PLAIN, Visit, text_of, to_trials
from tests.pages import read_page
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db


@pytest.fixture
def organizer():
    return make_organizer()


@pytest.fixture
def study(organizer):
    return make_study(organizer=organizer, screening=PLAIN, evaluators=4)


def ask(study, organizer, method="get", **data):
    client = Client()
    client.force_login(organizer)
    return getattr(client, method)(reverse("studies:close", args=[study.name]), data)


def answer_one(session):
    session.answers.create(trial=session.block.trials.first(), task="naturalness", rating=5, received_at=timezone.now())


def test_criterion_33_page_shows_who_is_listening_and_offers_to_wait_or_to_close(study, organizer):
    listening, waiting = to_trials(study).session, Visit(study).session
    answer_one(listening)
    told = text_of(ask(study, organizer))
    for words in ("1 evaluator is still listening", "1 has not begun the trials", f"Session {listening.pk}"):
        assert words in told
    assert f"Session {waiting.pk}" not in told
    assert ("Close and let them finish" in told, "Close and end their sessions" in told) == (True, True)
    assert f"{listening.block.lease_expires_at:%Y-%m-%d %H:%M}" in told
    study.refresh_from_db()
    assert study.state == "open"


def test_page_of_a_study_to_which_nobody_listens_asks_for_nothing_more(study, organizer):
    told = text_of(ask(study, organizer))
    assert ("Nobody is listening." in told, "let them finish" in told) == (True, False)
    assert ask(study, organizer, "post").status_code == 302
    assert "It is closed already." in text_of(ask(study, organizer))
    again = ask(study, organizer, "post")
    assert (again.status_code, "cannot be closed" in text_of(again)) == (409, True)


def test_criterion_33_who_listens_is_waited_for_and_nobody_else(study, organizer):
    listening, waiting, consented = to_trials(study), Visit(study), Visit(study)
    consented.consent()
    ask(study, organizer, "post", sessions="finish")
    assert [one.session.state for one in (listening, waiting, consented)] == ["active", "expired", "expired"]
    assert "The study was closed" in consented.text()
    assert study.sessions.get(token=listening.token).block.holder is not None
    client = Client()
    client.force_login(organizer)
    told = read_page(client.get(study.get_absolute_url()))
    assert "1 evaluator can still finish; the answers are analysed after the last of them has ended." in told
    Session.objects.update(state="finished")
    told = read_page(client.get(study.get_absolute_url()))
    assert ("can still finish" in told, "Its answers are analysed automatically: look at its" in told) == (False, True)


def test_criterion_33_sessions_are_ended_with_the_study_and_its_analysis_starts(
    study, organizer, django_capture_on_commit_callbacks
):
    listening = to_trials(study)
    answer_one(listening.session)
    with django_capture_on_commit_callbacks(execute=True):
        ask(study, organizer, "post", sessions="end")
    session = listening.session
    assert (session.state, session.completion_code[:5], session.answers.count()) == ("expired", "PART-", 1)
    assert ("The study was closed" in listening.text(), session.completion_code in listening.text()) == (True, True)
    assert study.analyses.count() == 1


def test_nobody_begins_in_a_study_that_was_closed_a_moment_ago(study, monkeypatch):
    """A request that read an open study and then waited for its row finds it closed."""
    from listening.app.sessions import services

    monkeypatch.setattr(services, "find_session", lambda one, _: type(one).objects.update(state="closed") and None)
    refused = Visit(study).joined
    assert (refused.status_code, study.sessions.count()) == (403, 0)


def test_closed_study_says_how_many_blocks_were_finished_then_after_a_withdrawal(study, organizer):
    session = make_finished_session(study)
    Study.objects.filter(pk=study.pk).update(state="closed", closed_at=timezone.now())
    withdraw(session, timezone.now())
    client = Client()
    client.force_login(organizer)
    assert "with 1 of 4 blocks finished" in read_page(client.get(study.get_absolute_url()))
    assert "1 of 4" in read_page(client.get(reverse("studies:list")))


def test_block_of_who_withdraws_from_an_open_study_is_offered_again(study):
    session = make_finished_session(study)
    withdraw(session, timezone.now())
    assert study.blocks.filter(is_finished=True).count() == 0
