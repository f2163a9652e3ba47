"""What comes at the same instant, each request in a thread with its own connection: only what may be remains."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from listening.app.models import Answer, Block, Session
from listening.app.sessions import block_leases as sessions
from listening.app.sessions import selectors
from listening.app.sessions.block_leases import assign_block, expire_leases
from tests.listening.answering import TAB, answer, hear, payload, post, stored
from tests.listening.factories import make_session, make_study

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]
TASKS = ["verifiability", "naturalness", "intelligibility"]
STARTS, BLOCKS = 200, 52


def at_once(actions, threads=None):
    """What each action gave; all begin together where there is a thread for each."""
    together = Barrier(threads or len(actions))

    def run(action):
        try:
            return action()
        finally:
            connection.close()

    def begin(_):
        together.wait()
        connection.close()

    with ThreadPoolExecutor(threads or len(actions)) as pool:
        list(pool.map(begin, range(threads or len(actions))))
        return list(pool.map(run, actions))


def send(session, what, body):
    return lambda: post(Client(), session, what, body)


def test_criterion_07_same_answer_five_times_is_one_row():
    session = make_session(make_study())
    hear(session)
    replies = at_once([send(session, "answers", payload())] * 5)
    assert [status for status, _ in replies] == [200] * 5
    assert all(reply == replies[0] for reply in replies)
    assert stored(session) == [(1, task, 7) for task in TASKS]


def test_criterion_07_different_answers_at_once_are_one_of_them_and_409_for_the_others():
    session = make_session(make_study())
    hear(session)
    replies = at_once([send(session, "answers", payload(1, rating)) for rating in (2, 4, 6, 8, 10)])
    assert Counter(status for status, _ in replies) == {200: 1, 409: 4}
    (kept,) = [reply["answers"]["naturalness"] for status, reply in replies if status == 200]
    assert stored(session) == [(1, task, kept) for task in TASKS]


def test_criterion_07_last_answer_five_times_ends_the_session_once():
    session = make_session(make_study())
    hear(session)
    for position in (1, 2, 3):
        answer(Client(), session, position, is_late=True)
    replies = at_once([send(session, "answers", payload(4, is_late=True))] * 5)
    assert [status for status, _ in replies] == [200] * 5
    assert all(reply == replies[0] for reply in replies)
    assert session.events.filter(kind="ended-finished").count() == 1
    session.refresh_from_db()
    assert (session.state, session.answers.count()) == ("finished", 12)


def test_criterion_16_two_hundred_starts_hand_out_each_of_52_blocks_once():
    study = make_study(evaluators=BLOCKS, trials=2)
    people = [study.participants.create(person_key=f"p{number}") for number in range(STARTS)]
    begun = [study.sessions.create(participant=person, consented_at=timezone.now()) for person in people]

    def start(session):
        block = assign_block(session, timezone.now())
        return block and block.number

    given = at_once([lambda session=session: start(session) for session in begun], threads=50)
    assert Counter(number for number in given if number) == dict.fromkeys(range(1, BLOCKS + 1), 1)
    assert given.count(None) == STARTS - BLOCKS
    assert list(study.blocks.values_list("offers", flat=True)) == [1] * BLOCKS
    held = {session.pk: number for session, number in zip(begun, given, strict=True) if number}
    assert dict(study.blocks.values_list("holder", "number")) == held
    assert dict(Session.objects.exclude(block=None).values_list("pk", "block__number")) == held


def test_criterion_16_consent_sent_ten_times_at_once_leases_one_block():
    study = make_study(evaluators=4)
    session = study.sessions.create(participant=study.participants.create(person_key="p"))
    given = at_once([lambda: assign_block(Session.objects.get(pk=session.pk), timezone.now()).number] * 10)
    assert set(given) == {1}
    assert list(study.blocks.values_list("offers", flat=True)) == [1, 0, 0, 0]


def test_criterion_18_overdue_block_goes_to_one_of_many_who_come_at_once():
    study = make_study(evaluators=1)
    lost = make_session(study)
    Block.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    people = [study.participants.create(person_key=f"q{number}") for number in range(6)]
    begun = [study.sessions.create(participant=person) for person in people]
    actions = [lambda one=one: assign_block(one, timezone.now()) for one in begun]
    given = at_once([*actions, lambda: expire_leases(timezone.now())])[:-1]
    assert sum(block is not None for block in given) <= 1
    now_holding = assign_block(begun[0], timezone.now()) if not any(given) else next(filter(None, given))
    assert study.blocks.get().holder_id == now_holding.holder_id
    lost.refresh_from_db()
    assert (lost.state, study.blocks.get().offers) == ("expired", 2)
    assert lost.events.filter(kind="ended-expired").count() == 1


def test_criterion_18_answer_and_loss_of_the_block_at_once_agree():
    """Either the answer was first and the session goes on, or the block was lost and nothing was taken."""
    study = make_study(evaluators=6)
    begun = [make_session(study) for _ in range(6)]
    for session in begun:
        hear(session)
    Block.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    actions = [send(session, "answers", payload()) for session in begun]
    ends = at_once([*actions, lambda: expire_leases(timezone.now())])
    for session, (status, _) in zip(begun, ends[:-1], strict=True):
        session.refresh_from_db()
        held = Block.objects.filter(holder=session).exists()
        assert (session.state, session.answers.count(), held) == {
            200: ("active", 3, True),
            410: ("expired", 0, False),
        }[status]


def test_people_who_answer_at_once_do_not_disturb_each_other():
    study = make_study(evaluators=8)
    begun = [make_session(study) for _ in range(8)]
    for session in begun:
        hear(session)

    def answer_everything(session):
        client = Client()
        sent = [answer(client, session, place, 1 + session.pk % 10, is_late=True) for place in (1, 2, 3, 4)]
        sent += [post(client, session, "alive", {"tab": TAB, "events": []})]
        return [status for status, _ in sent]

    assert at_once([lambda one=one: answer_everything(one) for one in begun]) == [[200] * 4 + [410]] * 8
    rows = Answer.objects.values_list("session", "trial__block__holder", "rating")
    assert Counter(rows) == {(one.pk, one.pk, 1 + one.pk % 10): 12 for one in begun}
    assert study.sessions.filter(state="finished").count() == 8


def test_end_from_two_sides_at_once_is_one_end():
    session = make_session(make_study())

    def end(state):
        from django.db import transaction

        with transaction.atomic():
            sessions.end_session(selectors.session_for(session.token, lock=True), state, timezone.now())

    at_once([lambda state=state: end(state) for state in ("technical", "expired", "screened-out")])
    session.refresh_from_db()
    assert [event.kind for event in session.events.all()] == [f"ended-{session.state}"]
    assert json.dumps(session.skips) == "[]"
