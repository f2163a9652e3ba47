"""Answers of tests that compare recordings, by real requests: what is taken, what is stored, and when it may come."""

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

from listening.app.models import Session
from listening.app.sessions.answers import count_unheard
from listening.app.sessions.attention import MOST_PLAYS, is_unheard
from listening.app.studies.rules import slots_of_trial
from listening.questions import load_preset
from tests.listening.answering import answer, answer_all, hear
from tests.listening.comparing_factories import make_comparing_study
from tests.listening.factories import make_session, make_study
from tests.listening.form_factories import make_board_study, make_transcription_study
from tests.listening.visits import PLAIN, to_trials

pytestmark = pytest.mark.django_db
KEY = {
    "dcr": "degradation",
    "ccr": "comparison",
    "ab": "preference",
    "abx": "identity",
    "mushra": "basic-audio-quality",
}
SLIDERS = {"1": 80, "2": 0, "3": 100}


def partial_of(preset):
    return pytest.param(lambda: make_comparing_study(preset), id=preset)


def session_of(preset, **fields):
    session = make_session(make_comparing_study(preset, **fields))
    hear(session)
    return session


def give(client, session, preset, given, **more):
    return answer(client, session, tasks=[KEY[preset]], rating=given, **more)


def test_sliders_are_stored_by_slot_and_acknowledged_as_they_were_sent(client):
    session = session_of("mushra")
    status, reply = give(client, session, "mushra", SLIDERS)
    assert (status, reply["answers"]) == (200, {KEY["mushra"]: SLIDERS})
    row = session.answers.get()
    assert (row.rating, row.data) == (None, {"ratings": SLIDERS})


def test_same_sliders_again_are_acknowledged_again_and_others_are_refused(client):
    session = session_of("mushra")
    first = give(client, session, "mushra", SLIDERS)
    assert give(client, session, "mushra", dict(reversed(SLIDERS.items()))) == first
    status, reply = give(client, session, "mushra", SLIDERS | {"1": 79})
    assert (status, reply["problem"]) == (409, "locked")
    assert session.answers.count() == 1


@pytest.mark.parametrize(
    ("preset", "given", "sentence"),
    [
        ("dcr", 0, "The rating of degradation must be a whole number from 1 to 5."),
        ("ccr", -4, "The rating of comparison must be a whole number from -3 to 3."),
        ("ab", "A", "The rating of preference must be a whole number from 1 to 3."),
        ("abx", {"1": 2}, "The rating of identity must be a whole number from 1 to 2."),
        ("mushra", 80, "“basic-audio-quality” must rate each of these samples and no other: 1, 2, 3."),
        ("mushra", {"1": 1, "2": 2}, "“basic-audio-quality” must rate each of these samples and no other: 1, 2, 3."),
        (
            "mushra",
            SLIDERS | {"r": 100},
            "“basic-audio-quality” must rate each of these samples and no other: 1, 2, 3.",
        ),
        (
            "mushra",
            SLIDERS | {"1": 101, "3": -1},
            "The rating of basic-audio-quality for sample 1, 3 must be a whole number from 0 to 100.",
        ),
    ],
)
def test_what_is_no_answer_is_refused_with_a_sentence(client, preset, given, sentence):
    session = session_of(preset)
    status, reply = give(client, session, preset, given)
    assert (status, reply["sentences"]) == (422, [sentence])
    assert not session.answers.exists()


@pytest.mark.parametrize(("preset", "slots"), [("dcr", "ra"), ("ccr", "ab"), ("abx", "xab"), ("mushra", "r123")])
def test_samples_are_told_in_the_order_of_their_names_whatever_the_order_of_the_rows(client, preset, slots):
    session = session_of(preset)
    trials = client.get(f"/listen/{session.token}/state").json()["trials"]
    assert [[sample["slot"] for sample in trial["samples"]] for trial in trials] == [list(slots)] * 2
    assert "".join(slots_of_trial(session.study)) == slots


@pytest.mark.parametrize(("preset", "heard_s"), [("ccr", 10), ("mushra", 8)])
def test_answer_may_come_once_what_it_needs_can_have_been_heard(client, preset, heard_s):
    """Recordings of 5 s: both to their ends where they are played one by one, 2 s of each where one changes."""
    session = make_session(make_comparing_study(preset, seconds=5.0))
    given = SLIDERS if preset == "mushra" else 1
    hear(session, 1, seconds_ago=heard_s - 5.25)
    status, reply = give(client, session, preset, given)
    assert (status, reply["problem"]) == (425, "too-early")
    assert 3 < reply["retry_after_s"] <= 5
    hear(session, 1, seconds_ago=heard_s)
    assert give(client, session, preset, given)[0] == 200


def test_pieces_are_added_up_where_recordings_change_and_nowhere_else():
    seconds, pieces = {"a": 5.0, "b": 5.0}, [("a", 900, False), ("a", 1000, False), ("b", 1800, False)]
    assert not is_unheard(load_preset("abx").questions, seconds, pieces)
    assert is_unheard(load_preset("abx").questions, seconds, pieces[1:])
    assert is_unheard(load_preset("abx").questions, seconds, pieces[:2])
    assert is_unheard(load_preset("ccr").questions, seconds, pieces)
    assert not is_unheard(load_preset("ccr").questions, seconds, [("a", 5000, True), ("b", 5000, True)])
    assert not is_unheard(load_preset("abx").questions, seconds, [("a", 1, False)] * MOST_PLAYS)


def test_session_that_heard_a_part_of_each_is_a_heard_one(client):
    session = session_of("mushra", seconds=5.0)
    plays = [
        {"slot": slot, "started_ms": 0, "heard_ms": 2100, "is_whole": False, "remarks": []}
        for slot in ("r", "1", "2", "3")
    ]
    answer_all(client, session, SLIDERS, tasks=[KEY["mushra"]], plays=plays)
    session.refresh_from_db()
    assert (session.state, count_unheard(session)) == (Session.State.FINISHED, (0, 2))
    session.plays.filter(slot="3").update(heard_ms=900)
    assert count_unheard(session) == (2, 2)


@pytest.mark.parametrize("make", [make_study, make_board_study, make_transcription_study, partial_of("mushra")])
def test_scripts_of_a_page_of_trials_are_small(client, make):
    """All that a browser loads for it, as it lies in the folder."""
    page = client.get(make_session(make()).get_absolute_url()).content.decode()
    paths = set(re.findall(r'(?:href|src)="/static/([^"]+\.js)"', page))
    assert sum(Path(finders.find(path)).stat().st_size for path in paths) < 60_000
    imported = {
        name for path in paths for name in re.findall(r'from "\./(\w+\.js)"', Path(finders.find(path)).read_text())
    }
    assert imported <= {path.rpartition("/")[2] for path in paths}


def test_half_of_the_sessions_is_asked_about_the_background_first_and_all_about_the_whole_last(client):
    study = make_comparing_study("p835", evaluators=4, pages="separate", orders="swap-first-two", places_per_network=4)
    study.screening = PLAIN
    study.save()
    asked = []
    for _ in range(4):
        session = to_trials(study).session
        hear(session)
        first, second, last = client.get(f"/listen/{session.token}/state").json()["trials"][0]["tasks"]
        assert answer(client, session, tasks=[second], rating=3)[0] == 409
        assert [answer(client, session, tasks=[one], rating=3)[0] for one in (first, second, last)] == [200] * 3
        assert session.events.get(kind="question-order").data == {"tasks": [first, second, last]}
        asked.append((first, second, last))
    assert sorted(asked) == [("background", "signal", "overall")] * 2 + [("signal", "background", "overall")] * 2
