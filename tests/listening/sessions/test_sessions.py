"""Where a session stands, which tab writes, broken sound, and how it ends."""

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from listening.app.models import Session, Study
from listening.app.sessions import block_leases as sessions
from tests.listening.answering import TAB, answer, answer_all, hear, payload, post, stored, without_cache
from tests.listening.factories import make_session, make_study

pytestmark = pytest.mark.django_db
TASKS = ["verifiability", "naturalness", "intelligibility"]


def make_answering():
    return make_session(make_study())


@pytest.fixture
def session(once):
    return without_cache(once(make_answering))


def state(client, session):
    reply = client.get(f"/listen/{session.token}/state")
    return reply.status_code, reply.json()


def report(client, session, position, slot="a", *, tab=TAB):
    body = {"tab": tab, "position": position, "slot": slot, "what": "MEDIA_ERR_DECODE"}
    return post(client, session, "report", body)


def make_gold(session, positions, expected):
    """Turn these trials into control trials of which everybody hears the same."""
    for position in positions:
        item = session.block.trials.get(position=position).presentation
        item.purpose, item.expected = "gold", expected
        item.save()


def test_state_tells_where_the_session_stands(client, session):
    status, told = state(client, session)
    assert status == 200
    lease = told.pop("lease_ends_in_s")
    assert 44 * 60 < lease <= 45 * 60
    first = told["trials"][0]
    assert [sample["slot"] for sample in first.pop("samples")] == ["a", "b"]
    place = {"n": 1, "total": 4}
    assert first == {
        "position": 1,
        "place": place,
        "is_practice": False,
        "tasks": TASKS,
        "answered": {},
        "usual_s": 13.8,
    }
    assert [trial["position"] for trial in told.pop("trials")] == [1, 2, 3]
    assert told == {
        "state": "active",
        "step": "trials",
        "form": "rating",
        "pages": "together",
        "tasks": TASKS,
        "plays_at_most": None,
        "total": 4,
        "done": 0,
        "next": 1,
        "effort": {"left_s": 4 * 13.8, "paces": []},
    }


def test_criterion_06_reload_resumes_at_the_first_unanswered_trial_with_the_same_addresses(client, session):
    hear(session)
    _, before = state(client, session)
    answer(client, session, 1)
    _, after = state(client, session)
    assert (after["next"], after["done"]) == (2, 1)
    assert after["trials"][:2] == before["trials"][1:]
    (status, again), (_, later) = state(client, session), state(client, session)
    assert status == 200
    assert again | {"lease_ends_in_s": later["lease_ends_in_s"]} == later


def test_criterion_06_second_tab_takes_over_and_the_first_is_frozen(client, session):
    hear(session)
    assert answer(client, session, 1, is_late=True)[0] == 200
    assert post(client, session, "take-over", {"tab": "second"})[1]["next"] == 2
    for what, body in (("answers", payload(2)), ("alive", {"tab": TAB}), ("report", None)):
        body = body or {"tab": TAB, "position": 2, "slot": "a", "what": ""}
        status, reply = post(client, session, what, body)
        assert (status, reply["problem"]) == (409, "other-tab")
        assert reply["sentence"].startswith("This session goes on in another tab")
    assert answer(client, session, 2, tab="second", is_late=True)[0] == 200
    assert stored(session) == [(position, task, 7) for position in (1, 2) for task in TASKS]
    assert post(client, session, "take-over", {"tab": TAB})[0] == 200
    assert answer(client, session, 3, is_late=True)[0] == 200
    assert session.events.filter(kind="taken-over").count() == 2


def test_nothing_is_delivered_before_the_trials_begin(client, session):
    hear(session)
    Session.objects.filter(pk=session.pk).update(step="role-play")
    status, told = state(client, session)
    assert (status, told["step"], told["trials"], told["next"]) == (200, "role-play", [], None)
    assert answer(client, session)[0] == 409
    assert stored(session) == []


def test_sign_of_life_is_noted_with_what_it_tells(client, session):
    event = {"kind": "visibility", "ms": 5, "data": {"to": "hidden"}}
    status, reply = post(client, session, "alive", {"tab": TAB, "events": [event]})
    assert (status, list(reply)) == (200, ["lease_ends_in_s"])
    session.refresh_from_db()
    assert timezone.now() - session.last_seen_at < timedelta(seconds=10)
    assert session.events.get(is_told=True).data == {"ms": 5, "to": "hidden"}


def test_session_keeps_a_bounded_number_of_told_events(client, session, monkeypatch):
    monkeypatch.setattr("listening.app.sessions.answers.MOST_EVENTS_OF_SESSION", 25)
    events = [{"kind": "moved", "ms": 0, "data": {}}] * 10
    for _ in range(4):
        assert post(client, session, "alive", {"tab": TAB, "events": events})[0] == 200
    assert session.events.filter(is_told=True).count() == 25


def test_criterion_04_trial_with_broken_sound_moves_to_the_end_once_and_is_then_given_up(client, session):
    hear(session)
    status, reply = report(client, session, 1)
    assert (status, reply["skipped"], reply["next"], reply["done"]) == (200, True, 2, 0)
    assert [trial["position"] for trial in reply["ahead"]] == [2, 3, 4]
    for position in (2, 3, 4):
        assert answer(client, session, position, is_late=True)[0] == 200
    assert state(client, session)[1]["next"] == 1
    status, reply = report(client, session, 1)
    assert (status, reply["next"], reply["done"], reply["address"]) == (200, None, 4, f"/listen/{session.token}/")
    session.refresh_from_db()
    assert (session.state, session.skips, bool(session.completion_code)) == ("finished", [1, 1], True)
    noted = session.events.filter(kind="clip-broken").values_list("data", flat=True)
    assert list(noted) == [{"position": 1, "slot": "a", "what": "MEDIA_ERR_DECODE"}] * 2


def test_criterion_04_moved_trial_can_be_answered_when_its_sound_is_back(client, session):
    hear(session)
    report(client, session, 1)
    for position in (2, 3, 4, 1):
        assert answer(client, session, position, is_late=True)[0] == 200
    session.refresh_from_db()
    assert (session.state, session.answers.count()) == ("finished", 12)


def test_trials_are_counted_without_those_for_practice(client, session):
    item = session.block.trials.get(position=1).presentation
    item.purpose = "practice"
    item.save()
    hear(session)
    places = [(trial["is_practice"], trial["place"]) for trial in state(client, session)[1]["trials"]]
    assert places == [(True, {"n": 1, "total": 1}), (False, {"n": 1, "total": 3}), (False, {"n": 2, "total": 3})]
    _, reply = report(client, session, 1)
    assert [trial["place"]["n"] for trial in reply["ahead"]] == [1, 2, 3]


def test_practice_trial_that_is_skipped_does_not_come_after_the_others(client, session):
    item = session.block.trials.get(position=1).presentation
    item.purpose = "practice"
    item.save()
    hear(session)
    status, reply = report(client, session, 1)
    assert (status, reply["next"], reply["done"]) == (200, 2, 1)
    for position in (2, 3, 4):
        assert answer(client, session, position, is_late=True)[0] == 200
    session.refresh_from_db()
    assert (session.state, session.skips) == ("finished", [1])


def test_who_calls_everything_broken_does_not_finish(client):
    session = make_session(make_study(trials=6))
    for position in [*range(1, 7), 1, 2, 3]:
        assert report(client, session, position)[0] == 200
    session.refresh_from_db()
    assert (session.state, session.block.holder, session.block.is_finished) == ("technical", None, False)


def test_session_that_does_not_finish_frees_its_block_whole(session):
    sessions.end_session(session, Session.State.TECHNICAL, timezone.now())
    block = session.study.blocks.get(pk=session.block_id)
    assert (block.holder, block.is_finished, block.lease_expires_at) == (None, False, None)
    assert session.block == block, "what it listened to stays known"


def test_end_is_final_but_for_withdrawal(client, session):
    answer_all(client, session)
    session.refresh_from_db()
    ended_at = session.ended_at
    sessions.end_session(session, Session.State.TECHNICAL, timezone.now())
    session.refresh_from_db()
    assert (session.state, session.ended_at) == ("finished", ended_at)
    sessions.end_session(session, Session.State.WITHDRAWN, timezone.now())
    session.refresh_from_db()
    assert (session.state, session.ended_at) == ("withdrawn", ended_at)
    assert (session.block.holder, session.block.is_finished) == (None, False)


@pytest.mark.parametrize(
    ("gold_gate", "missed", "end"),
    [
        ("gate", 1, "finished"),
        ("gate", 2, "failed-attention"),
        ("flag", 2, "finished"),
    ],
)
def test_attention_is_judged_at_the_end_and_only_where_the_study_gates_on_it(client, gold_gate, missed, end):
    session = make_session(make_study(screening={"gold_gate": gold_gate}))
    make_gold(session, [1, 2][:missed], {"naturalness": [1, 2]})
    make_gold(session, [1, 2][missed:], {"naturalness": [6, 8]})
    answer_all(client, session, 7)
    session.refresh_from_db()
    assert (session.state, session.block.is_finished) == (end, end == "finished")


def test_criterion_14_no_reply_tells_a_control_trial_or_that_it_was_missed(client):
    """Two sessions that differ in nothing but the control trials that one of them misses."""
    replies = {}
    for kind in ("scored", "gold"):
        session = make_session(make_study(screening={"gold_gate": "gate"}))
        if kind == "gold":
            make_gold(session, [1, 2, 3], {task: [1, 1] for task in TASKS})
        hear(session)
        told = [state(client, session)] + [answer(client, session, place, is_late=True) for place in (1, 2, 3, 4)]
        session.refresh_from_db()
        assert session.state == {"scored": "finished", "gold": "failed-attention"}[kind]
        text = json.dumps(told).replace(session.token, "token")
        for trial in session.block.trials.all():
            for slot in "ab":
                from listening.app.sessions.clip_urls import clip_names

                text = text.replace(clip_names(session, trial, slot)[0], f"{trial.position}{slot}")
        replies[kind] = re.sub(r'"lease_ends_in_s": \d+', '"lease_ends_in_s": some', text)
    assert replies["scored"] == replies["gold"]


def test_criterion_12_no_reply_names_what_is_heard(client, session):
    """Systems, speakers, keys and classes of the study are in none of them, by name or by primary key."""
    hear(session)
    texts = [json.dumps(state(client, session)[1])]
    texts += [json.dumps(answer(client, session, place, is_late=True)[1]) for place in (1, 2, 3, 4)]
    secret = set(session.study.presentations.values_list("key", flat=True))
    secret |= set(session.study.systems.values_list("code", flat=True))
    secret |= set(session.study.stimulus_files.values_list("file", flat=True))
    secret |= set(session.study.stimulus_files.values_list("source", flat=True))
    secret |= set(session.study.stimulus_files.values_list("item__name", flat=True))
    assert len(secret) > 10
    assert [word for word in secret for text in texts if word in text] == []
    names = {name for text in texts for name in _names(json.loads(text))}
    assert not names & {"system", "purpose", "item", "expected", "is_target", "class", "speaker", "pk", "id", "source"}


def _names(told):
    if isinstance(told, dict):
        return set(told) | {name for value in told.values() for name in _names(value)}
    return {name for value in told for name in _names(value)} if isinstance(told, list) else set()


def test_preview_works_without_a_lease_and_counts_nowhere(client):
    study = make_study()
    session = make_session(study, is_preview=True)
    reply = answer_all(client, session)
    session.refresh_from_db()
    assert (reply["next"], session.state, session.completion_code) == (None, "finished", "")
    assert list(study.blocks.values_list("holder", "is_finished", "offers")) == [(None, False, 0)] * 2
    assert state(client, make_session(study, is_preview=True))[1]["lease_ends_in_s"] is None


def test_session_that_has_begun_goes_on_in_a_study_that_takes_nobody_new(client, session):
    Study.objects.filter(pk=session.study_id).update(state=Study.State.CLOSED)
    assert answer_all(client, session)["next"] is None
    session.refresh_from_db()
    assert session.state == "finished"


def test_requests_of_the_trial_page_need_and_set_no_cookie(client, session):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    hear(session)
    reply = strict.post(f"/listen/{session.token}/answers", json.dumps(payload()), content_type="application/json")
    assert reply.status_code == 200
    assert (list(reply.cookies), reply["Cache-Control"]) == ([], "private, no-store")
    assert "Cookie" not in reply.get("Vary", "")
