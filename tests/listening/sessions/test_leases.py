"""Blocks go to one session at a time, are offered again whole, and are all finished in the end."""

import random
from datetime import timedelta

import pytest
from django.db import connection  # noqa: F401 - for a condition below
from django.utils import timezone

from listening.app import periodic_tasks
from listening.app.models import Answer, Block, Session, Study
from listening.app.sessions import block_leases as sessions
from listening.app.sessions.block_leases import (
    assign_block,
    expire_leases,
    extend_lease,
    extend_lease_of_open_page,
    is_extension_due,
)
from tests.listening.answering import TAB, answer, answer_all, hear, post
from tests.listening.factories import make_session, make_study

pytestmark = pytest.mark.django_db
NOW = timezone.now()
OVER = timedelta(minutes=46)


def begin(study, person=None, **fields):
    """A session of somebody, new unless named, that has just consented."""
    person = person or study.participants.create(person_key=f"p{study.participants.count()}")
    return study.sessions.create(participant=person, consented_at=NOW, **fields)


def to_trials(session, now):
    fields = {"step": "trials", "trials_started_at": now, "heard_until": now}
    Session.objects.filter(pk=session.pk).update(**fields)
    session.refresh_from_db()
    return session


def test_lost_blocks_come_first_then_the_waves():
    study = make_study(evaluators=3)
    study.blocks.filter(number=1).update(wave=1)
    study.blocks.filter(number=3).update(offers=1)
    assert [assign_block(begin(study), NOW).number for _ in range(3)] == [3, 2, 1]


def test_person_who_comes_back_gets_another_block_while_there_is_one():
    study = make_study(evaluators=2)
    first = begin(study)
    assert assign_block(first, NOW).number == 1
    sessions.end_session(first, Session.State.TECHNICAL, NOW)
    second = begin(study, first.participant)
    assert assign_block(second, NOW).number == 2
    sessions.end_session(second, Session.State.TECHNICAL, NOW)
    assert assign_block(begin(study, first.participant), NOW) is not None


def test_only_an_open_study_leases():
    study = make_study()
    session = begin(study)
    for study.state in set(Study.State) - {Study.State.OPEN}:
        study.save()
        assert assign_block(Session.objects.get(pk=session.pk), NOW) is None


def test_lease_may_be_extended_once_in_each_minute(client):
    minute = NOW.replace(second=0, microsecond=0)
    assert is_extension_due(None, minute)
    assert not is_extension_due(minute, minute + timedelta(seconds=59.9))
    assert is_extension_due(minute + timedelta(seconds=59.9), minute + timedelta(seconds=60))
    assert is_extension_due(minute, minute + timedelta(hours=1))
    session = make_session(make_study())
    hear(session)
    Block.objects.update(lease_expires_at=timezone.now() + timedelta(minutes=5))
    assert answer(client, session)[0] == 200
    assert Block.objects.get(holder=session).lease_expires_at > timezone.now() + timedelta(minutes=44)


@pytest.mark.postgres
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="processes that share SQLite share a clock")
@pytest.mark.parametrize("ahead", [timedelta(minutes=-10), timedelta(minutes=10)])
def test_lease_goes_by_the_clock_of_the_database_whatever_web_server_and_scheduler_say(client, monkeypatch, ahead):
    session, now = make_session(make_study(lease_minutes=5)), timezone.now()
    Block.objects.update(lease_expires_at=now + timedelta(minutes=2))
    with monkeypatch.context() as web_server:
        web_server.setattr(timezone, "now", lambda: now + ahead)
        assert post(client, session, "alive", {"tab": TAB})[0] == 200
    with monkeypatch.context() as scheduler:
        scheduler.setattr(timezone, "now", lambda: now - ahead)
        periodic_tasks.expire_leases()
    session.refresh_from_db()
    assert session.state == "active"


def test_lease_does_not_grow_in_a_closed_study():
    session = make_session(make_study(state="closed"))
    until = session.block.lease_expires_at
    extend_lease(session, until)
    assert Block.objects.get(holder=session).lease_expires_at == until


def test_page_that_lies_open_without_an_answer_keeps_its_block_for_two_leases():
    session = make_session(make_study())
    begun, until = session.heard_until, session.block.lease_expires_at
    extend_lease_of_open_page(session, begun + timedelta(minutes=89))
    assert Block.objects.get(holder=session).lease_expires_at == begun + timedelta(minutes=89 + 45)
    session.block.lease_expires_at = until
    session.block.save()
    extend_lease_of_open_page(session, begun + timedelta(minutes=90))
    assert Block.objects.get(holder=session).lease_expires_at == until


def test_criterion_18_lease_ends_at_its_time_and_not_before():
    session = make_session(make_study())
    until = session.block.lease_expires_at
    assert expire_leases(until - timedelta(seconds=1)) == 0
    assert expire_leases(until) == 1
    assert expire_leases(until) == 0
    session.refresh_from_db()
    assert (session.state, session.ended_at, session.completion_code) == ("expired", until, "")


@pytest.mark.postgres
def test_criterion_18_lost_block_is_offered_again_whole_and_who_returns_cannot_touch_it(client):
    study = make_study(evaluators=1)
    lost = make_session(study)
    hear(lost)
    assert answer(client, lost, 1, 3, is_late=True)[0] == 200
    Block.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    periodic_tasks.expire_leases()
    heir = begin(study)
    assert assign_block(heir, timezone.now()).number == 1
    to_trials(heir, timezone.now())
    assert client.get(f"/listen/{heir.token}/state").json()["next"] == 1

    status, reply = answer(client, lost, 2, is_late=True)
    assert (status, reply["problem"], reply["state"], reply["sentence"]) == (
        410,
        "ended",
        "expired",
        "This session is over.",
    )
    for what, body in (("alive", {"tab": TAB}), ("report", {"tab": TAB, "position": 2, "slot": "a", "what": ""})):
        assert post(client, lost, what, body)[0] == 410
    sessions.end_session(Session.objects.get(pk=lost.pk), Session.State.FINISHED, timezone.now())
    block = study.blocks.get()
    assert (block.holder, block.is_finished, block.offers) == (heir, False, 2)
    assert list(lost.answers.values_list("rating", flat=True)) == [3, 3, 3], "partial, but kept"

    assert answer_all(client, heir)["next"] is None
    block.refresh_from_db()
    assert (block.holder, block.is_finished) == (heir, True)
    assert (heir.answers.count(), lost.answers.count()) == (12, 3)


def test_answer_that_comes_before_the_periodic_task_keeps_the_block(client):
    session = make_session(make_study(evaluators=1))
    hear(session)
    Block.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert answer(client, session)[0] == 200
    assert expire_leases(timezone.now()) == 0
    session.refresh_from_db()
    assert session.state == "active"


def test_block_of_a_session_that_ended_elsewhere_is_freed():
    study = make_study(evaluators=1)
    session = begin(study)
    assign_block(session, NOW)
    Session.objects.filter(pk=session.pk).update(state="withdrawn")
    assert expire_leases(NOW + OVER) == 1
    session.refresh_from_db()
    assert (session.state, study.blocks.get().holder) == ("withdrawn", None)


def test_finished_block_never_expires(client):
    session = make_session(make_study(evaluators=1))
    answer_all(client, session)
    assert expire_leases(timezone.now() + timedelta(days=9)) == 0
    assert Block.objects.get().holder == session


@pytest.mark.parametrize("seed", [2020, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2022, 2024))])
def test_criterion_18_with_a_third_of_the_people_lost_every_trial_is_covered(seed):
    """Twelve blocks; who quits does so anywhere and is silent from then on. The clock is simulated, not the rows."""
    rng = random.Random(seed)
    study, now = make_study(evaluators=12, trials=4), NOW
    starts = quits = 0
    while study.blocks.filter(is_finished=False).exists():
        assert starts < 100
        now += timedelta(minutes=1)
        session = begin(study)
        if assign_block(session, now) is None:
            now += OVER
            continue
        starts += 1
        has_quit = rng.random() < 0.3
        quits += has_quit
        for trial in session.block.trials.all()[: rng.randrange(4) if has_quit else None]:
            session.answers.create(trial=trial, task="naturalness", rating=5, received_at=now)
        if not has_quit:
            sessions.end_session(session, Session.State.FINISHED, now)
    assert quits > 0
    finished = Answer.objects.filter(session__state="finished")
    covered = finished.values_list("trial_id", flat=True)
    assert sorted(covered) == sorted(trial.pk for block in study.blocks.all() for trial in block.trials.all())
    assert study.sessions.filter(state="finished").count() == 12
    assert sum(study.blocks.values_list("offers", flat=True)) == starts == 12 + quits
