"""Answers by real requests: once, whole, in order, not too early, and nothing that is not an answer."""

import json
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from listening.app.models import Session
from tests.listening.answering import (
    TAB,
    answer,
    hear,
    lengthen,
    payload,
    post,
    stored,
    without_cache,
)
from tests.listening.factories import make_session, make_study
from tests.listening.rated import RATED

pytestmark = pytest.mark.django_db
TASKS = ["verifiability", "naturalness", "intelligibility"]


def make_answering():
    return make_session(make_study())


@pytest.fixture
def session(once):
    return without_cache(once(make_answering))


def test_answer_is_acknowledged_with_what_comes_next(client, session):
    hear(session)
    status, reply = answer(client, session, 1, 7)
    assert status == 200
    assert (reply["saved"], reply["position"], reply["answers"]) == (True, 1, dict.fromkeys(TASKS, 7))
    assert (reply["next"], reply["done"]) == (2, 1)
    assert [trial["position"] for trial in reply["ahead"]] == [2, 3, 4]
    assert stored(session) == [(1, task, 7) for task in TASKS]
    row = session.answers.first()
    assert (row.client_ms, row.is_late) == (9000, False)


def test_criterion_07_same_answer_again_is_acknowledged_again_and_another_is_refused(client, session):
    hear(session)
    replies = [answer(client, session) for _ in range(5)]
    assert [status for status, _ in replies] == [200] * 5
    assert all(reply == replies[0] for reply in replies)
    status, reply = answer(client, session, 1, 8)
    assert (status, reply["problem"]) == (409, "locked")
    assert reply["sentence"] == "This trial was answered before, and answers cannot be changed."
    assert stored(session) == [(1, task, 7) for task in TASKS]


def test_criterion_06_trials_are_answered_in_their_order_only(client, session):
    hear(session)
    for position in (2, 4):
        status, reply = answer(client, session, position)
        assert (status, reply["problem"]) == (409, "out-of-order")
    assert stored(session) == []


def test_criterion_09_answer_before_the_pair_can_have_been_heard_is_refused(client, session):
    """Both clips last 30 s."""
    lengthen(session)
    hear(session, 1, seconds_ago=0)
    reply = client.post(f"/listen/{session.token}/answers", json.dumps(payload()), content_type="application/json")
    told = reply.json()
    assert (reply.status_code, told["problem"]) == (425, "too-early")
    assert 40 < told["retry_after_s"] <= 59.8
    assert int(reply["Retry-After"]) - 1 < told["retry_after_s"] <= int(reply["Retry-After"])
    hear(session, 1, seconds_ago=35)
    assert answer(client, session)[0] == 425, "a single clip is over by now, both are not"
    assert stored(session) == []
    hear(session, 1, seconds_ago=59.8)
    assert answer(client, session)[0] == 200


@pytest.mark.parametrize("claim", [{"is_late": True}, {"client_ms": 600000}, {"plays": "whole"}])
def test_criterion_09_what_the_browser_claims_does_not_open_the_gate(client, session, claim):
    if "plays" in claim:
        told = {"started_ms": 0, "heard_ms": 600, "is_whole": True, "remarks": []}
        claim = {"plays": [told | {"slot": "a"}, told | {"slot": "b"}]}
    lengthen(session)
    hear(session, 1, seconds_ago=0.2)
    assert answer(client, session, **claim)[0] == 425


@pytest.mark.parametrize("left_out", ["a", "b"])
def test_criterion_09_pair_needs_both_clips_whole(client, session, left_out):
    hear(session)
    session.serves.filter(trial__position=1, slot=left_out).update(complete_at=None)
    assert answer(client, session)[0] == 425
    session.serves.filter(trial__position=1, slot=left_out).delete()
    assert answer(client, session)[0] == 425


def test_single_utterance_needs_its_own_clip_alone(client):
    session = make_session(make_study(tasks=["naturalness"]))
    hear(session)
    session.serves.filter(slot="b").delete()
    assert answer(client, session, tasks=["naturalness"])[0] == 200


def test_answer_in_time_ends_its_trial_and_the_next_one_has_to_be_heard_from_then_on(client, session):
    lengthen(session)
    hear(session)
    assert answer(client, session, 1)[0] == 200
    assert answer(client, session, 2)[0] == 425
    session.refresh_from_db()
    assert timezone.now() - session.heard_until < timedelta(minutes=5)


@pytest.mark.postgres
def test_criterion_05_answers_given_without_a_connection_come_in_at_once_and_in_order(client, session):
    """They are late by the browser's word, and had their time by the server's clock."""
    hear(session)
    for position in (1, 2, 3):
        assert answer(client, session, position, is_late=True)[0] == 200
    assert stored(session) == [(position, task, 7) for position in (1, 2, 3) for task in TASKS]
    session.refresh_from_db()
    begun = session.serves.first().first_at
    assert session.heard_until == begun + timedelta(seconds=3 * 1.2)
    assert set(session.answers.values_list("is_late", flat=True)) == {True}


def test_criterion_09_late_answers_cannot_be_ahead_of_real_time(client, session):
    lengthen(session)
    hear(session, seconds_ago=150)
    assert [answer(client, session, position, is_late=True)[0] for position in (1, 2, 3)] == [200, 200, 425]


def test_separate_pages_take_one_task_after_the_other(client):
    session = make_session(make_study(pages="separate"))
    hear(session)
    status, reply = answer(client, session, 1, 3, tasks=["naturalness"])
    assert (status, reply["problem"]) == (409, "out-of-order")
    status, reply = answer(client, session, 1, 3, tasks=["verifiability"])
    assert (status, reply["next"], reply["done"]) == (200, 1, 0)
    assert reply["ahead"][0]["answered"] == {"verifiability": 3}
    assert answer(client, session, 1, 4, tasks=["verifiability"])[0] == 409
    assert answer(client, session, 1, 3, tasks=["verifiability"]) == (status, reply)
    assert answer(client, session, 1, 4, tasks=["naturalness"])[0] == 200, "A was heard with the first task"
    status, reply = answer(client, session, 1, 5, tasks=["intelligibility"])
    assert (status, reply["next"], reply["done"]) == (200, 2, 1)
    assert stored(session) == [(1, "verifiability", 3), (1, "naturalness", 4), (1, "intelligibility", 5)]
    status, reply = answer(client, session, 2, 5, tasks=["verifiability", "naturalness"])
    assert (status, len(reply["sentences"])) == (422, 1)


@pytest.mark.postgres
def test_plays_and_events_are_kept_as_claims(client, session):
    hear(session)
    play = {"slot": "a", "started_ms": 5, "heard_ms": 600, "is_whole": True, "remarks": ["seek", "muted", "seek"]}
    event = {"kind": "paused", "ms": 1200, "data": {"how": "key", "for_s": 2.5, "again": None}}
    assert answer(client, session, plays=[play], events=[event])[0] == 200
    kept = session.plays.get()
    assert (kept.trial.position, kept.slot, kept.started_ms, kept.heard_ms) == (1, "a", 5, 600)
    assert (kept.is_whole, kept.remarks) == (True, ["muted", "seek"])
    told = session.events.get(is_told=True)
    assert (told.kind, told.data["ms"], told.data["how"], told.data["position"]) == ("paused", 1200, "key", 1)


def test_claims_beyond_their_bounds_are_left_out_and_the_answer_is_kept(client, session):
    hear(session)
    play = {"slot": "a", "started_ms": 0, "heard_ms": 0, "is_whole": False, "remarks": []}
    events = [{"kind": "moved", "ms": number, "data": {}} for number in range(300)]
    status, reply = answer(client, session, plays=[play] * 300, events=events)
    assert status == 200, reply
    assert (session.plays.count(), session.events.filter(kind="moved").count()) == (200, 200)
    assert session.events.get(kind="events-left-out").data["count"] == 100


@pytest.mark.postgres
def test_answer_has_few_queries(client, session, monkeypatch):
    monkeypatch.setattr("listening.app.sessions.block_leases.is_extension_due", lambda *_: False)  # once a minute it is
    hear(session)
    play = {"slot": "a", "started_ms": 0, "heard_ms": 600, "is_whole": True, "remarks": []}
    assert answer(client, session, 1, is_late=True, plays=[play])[0] == 200
    with CaptureQueriesContext(connection) as queries:
        assert answer(client, session, 2, is_late=True, plays=[play])[0] == 200
    kinds = [query["sql"].split()[0] for query in queries if not re.search("SAVEPOINT|BEGIN|COMMIT", query["sql"])]
    clock = ["SELECT"] if connection.vendor == "postgresql" else []
    assert kinds == ["SELECT", *clock, "SELECT", "SELECT", "INSERT", "INSERT", "UPDATE"]


PLAY = {"slot": "a", "started_ms": 0, "heard_ms": 0, "is_whole": True, "remarks": []}
NOT_AN_ANSWER = {
    "nothing rated": {"answers": {}},
    "no answers": {"answers": None},
    "answers as a list": {"answers": [7, 7, 7]},
    "a task missing": {"answers": {"verifiability": 7, "naturalness": 7}},
    "unknown task": {"answers": dict.fromkeys([*TASKS, "beauty"], 7)},
    "zero": {"answers": dict.fromkeys(TASKS, 0)},
    "above the scale": {"answers": dict.fromkeys(TASKS, 11)},
    "negative": {"answers": dict.fromkeys(TASKS, -1)},
    "true": {"answers": dict.fromkeys(TASKS, True)},
    "text": {"answers": dict.fromkeys(TASKS, "7")},
    "fraction": {"answers": dict.fromkeys(TASKS, 7.0)},
    "null": {"answers": dict.fromkeys(TASKS, None)},
    "huge": {"answers": dict.fromkeys(TASKS, 10**400)},
    "list": {"answers": {task: [7] for task in TASKS}},
    "position as text": {"position": "1"},
    "position true": {"position": True},
    "position of nothing": {"position": 5},
    "position huge": {"position": 10**40},
    "no position": {"position": None},
    "tab missing": {"tab": None},
    "tab too long": {"tab": "t" * 41},
    "tab with spaces": {"tab": "a b"},
    "late as text": {"is_late": "no"},
    "time negative": {"client_ms": -1},
    "time as a fraction": {"client_ms": 0.5},
    "unknown key": {"rating": 7},
    "text in a rating": {"text": {"raw": "hello", "nothing": False}},
    "board in a rating": {"board": {}},
    "plays as text": {"plays": "all"},
    "play as text": {"plays": ["a"]},
    "play of another slot": {"plays": [PLAY | {"slot": "c"}]},
    "play with unknown key": {"plays": [PLAY | {"volume": 0}]},
    "play with unknown note": {"plays": [PLAY | {"remarks": ["<script>"]}]},
    "play with note of notes": {"plays": [PLAY | {"remarks": [["muted"]]}]},
    "play without end": {"plays": [PLAY | {"heard_ms": None}]},
    "play of eternity": {"plays": [PLAY | {"heard_ms": 2**31}]},
    "play half whole": {"plays": [PLAY | {"is_whole": 1}]},
    "event as text": {"events": ["paused"]},
    "event with a long kind": {"events": [{"kind": "k" * 31, "ms": 0}]},
    "event with nested data": {"events": [{"kind": "k", "ms": 0, "data": {"a": {"b": 1}}}]},
    "event with long text": {"events": [{"kind": "k", "ms": 0, "data": {"a": "x" * 201}}]},
    "event with many data": {"events": [{"kind": "k", "ms": 0, "data": dict.fromkeys("abcdefghi", 1)}]},
    "half a character": {"events": [{"kind": "k", "ms": 0, "data": {"a": "\ud800"}}]},
    "no character": {"events": [{"kind": "k", "ms": 0, "data": {"a": "\0"}}]},
}


def test_criterion_11_what_is_not_an_answer_is_refused(client, session):
    hear(session)
    found = {}
    for name, change in NOT_AN_ANSWER.items():
        status, reply = post(client, session, "answers", payload() | change)
        sentences = reply.get("sentences", [])
        is_told = bool(sentences) and all(isinstance(one, str) and len(one) < 300 for one in sentences)
        kept = stored(session), session.plays.count(), session.events.filter(is_told=True).count()
        found[name] = status, reply.get("problem"), is_told, kept
    assert found == dict.fromkeys(NOT_AN_ANSWER, (422, "invalid", True, ([], 0, 0)))


NOT_JSON = {
    "nothing": b"",
    "no JSON": b"verifiability=7",
    "a list": b"[]",
    "a number": b"7",
    "not a number": b'{"tab": "t", "position": 1, "answers": {"verifiability": NaN}}',
    "endless": b'{"tab": "t", "position": 1, "client_ms": Infinity}',
    "endless by size": b'{"tab": "t", "position": 1, "client_ms": 1e999}',
    "digits without end": b'{"position": ' + b"9" * 5000 + b"}",
    "another encoding": '{"tab": "t"}'.encode("utf-16"),
    "broken characters": b'{"tab": "\xff"}',
    "half a character in a name": b'{"\\ud800": 1}',
    "deeply nested": b'{"answers": ' + b"[" * 30000 + b"]" * 30000 + b"}",
    "deeply nested board": b'{"board": ' + b'{"a":' * 9000 + b"1" + b"}" * 9000 + b"}",
    "long": json.dumps(payload(events=[{"kind": "k", "ms": 0, "data": {}}] * 3000)).encode(),
    "very long": b'{"tab": "' + b"t" * (300 << 10) + b'"}',
}


@pytest.mark.parametrize("what", ["answers", "alive", "take-over", "report"])
def test_criterion_11_what_cannot_be_read_is_refused(client, session, what):
    hear(session)
    found = {}
    for name, body in NOT_JSON.items():
        status, reply = post(client, session, what, body)
        found[name] = status, reply.get("problem"), bool(reply.get("sentences")), stored(session)
    assert found == dict.fromkeys(NOT_JSON, (422, "invalid", True, []))


@pytest.mark.postgres
def test_transcription_is_kept_as_it_was_typed(client):
    session = make_session(make_study(tasks=["transcription"]))
    hear(session)
    body = {"tab": TAB, "position": 1, "text": {"raw": "Ça  va,\nrien? ", "nothing": False}, "client_ms": 5}
    status, reply = post(client, session, "answers", body)
    assert (status, reply["answers"]) == (200, {"transcription": {"raw": "Ça  va,\nrien? ", "nothing": False}})
    assert post(client, session, "answers", body) == (status, reply)
    other = body | {"text": {"raw": "ca va", "nothing": False}}
    assert post(client, session, "answers", other)[0] == 409
    row = session.answers.get()
    assert (row.task, row.text, row.rating) == ("transcription", "Ça  va,\nrien? ", None)
    for text in (None, "hello", {"raw": "", "nothing": False}, {"raw": "\x07", "nothing": False}):
        assert post(client, session, "answers", body | {"position": 2, "text": text})[0] == 422
    assert post(client, session, "answers", body | {"position": 2, "answers": {"naturalness": 7}})[0] == 422


def test_board_is_kept_once_every_sample_was_heard_and_placed(client):
    session = make_session(make_study(tasks=["linkability"]))
    hear(session)
    moves = [{"slot": slot, "ms": 9, "by": "tap", "from": None, "to": [0.2, 0.7]} for slot in "ab"]
    placed = {slot: {"at": [0.2, 0.7], "plays": 1} for slot in "ab"}
    body = {"tab": TAB, "position": 1, "board": {"speakers": 1, "samples": placed, "moves": moves}}
    session.serves.filter(slot="b", trial__position=1).update(complete_at=None)
    assert post(client, session, "answers", body)[0] == 425
    hear(session)
    status, reply = post(client, session, "answers", body)
    assert (status, reply["answers"]["linkability"]["speakers"]) == (200, 1)
    assert post(client, session, "answers", body) == (status, reply)
    assert session.answers.get().data["samples"]["a"]["at"] == [0.2, 0.7]
    status, reply = post(client, session, "answers", body | {"position": 2, "board": {"speakers": 1, "samples": {}}})
    assert (status, reply["problem"]) == (422, "invalid")
    assert len(reply["sentences"]) > 1


def test_criterion_22_refusals_are_told_in_the_language_of_the_session(client, session):
    Session.objects.filter(pk=session.pk).update(language="fr")
    lengthen(session)
    hear(session, 1, seconds_ago=0)
    assert answer(client, session)[1]["sentence"] == "Écoutez d'abord l'enregistrement en entier."
    missing = answer(client, session, tasks=["naturalness"])[1]
    assert missing["sentences"] == ["Répondez d'abord à toutes les questions de cette page."]


def test_nobody_is_found_by_another_token(client, session):
    for what in ("answers", "alive", "take-over", "report"):
        reply = client.post(f"/listen/{session.token}x/{what}", payload(), content_type="application/json")
        assert reply.status_code == 404
        assert client.get(f"/listen/{session.token}/{what}").status_code == 405
    assert client.get(f"/listen/{session.token}x/state").status_code == 404
    assert set(session.study.asked_keys) == set(RATED)
