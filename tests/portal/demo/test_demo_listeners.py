"""The simulated listeners of the demo's closed studies: whole sessions, marked as simulated, that follow the model."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from listening.app.models import Answer, Block, Flag, Session
from listening.app.monitor.services import flag_sessions
from portal.demo import listeners
from tests.listening.factories import make_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    study = make_study(evaluators=6, trials=12, systems=2, is_simulated=True)
    study.presentations.filter(key="item-0").update(purpose="gold", expected={"verifiability": [9, 10]})
    return study


def test_every_block_is_answered_by_a_session_that_says_that_it_is_simulated(study):
    now = study.launched_at + timedelta(minutes=2)
    listeners.answer_study(study, now)
    sessions = list(study.sessions.order_by("pk"))
    assert [one.state for one in sessions] == [Session.State.FINISHED] * 6
    assert {one.is_simulated for one in sessions} == {True}
    assert {(one.is_finished, one.offers) for one in study.blocks.all()} == {(True, 1)}
    assert [block.holder for block in Block.objects.filter(study=study).order_by("number")] == sessions
    answered = Counter(Answer.objects.filter(session__study=study).values_list("session", "trial", "task"))
    assert len(answered) == 6 * 12 * 3
    assert max(one.ended_at for one in sessions) <= now
    assert min(one.started_at for one in sessions) >= study.launched_at
    assert all(one.started_at < one.ended_at == one.last_seen_at for one in sessions)


def test_ratings_are_whole_and_all_but_the_careless_one_get_control_trials_right(study):
    listeners.answer_study(study, timezone.now())
    careless = study.sessions.last()
    controls = Answer.objects.filter(session__study=study, trial__presentation__purpose="gold", task="verifiability")
    assert set(controls.exclude(session=careless).values_list("rating", flat=True)) <= {9, 10}
    flag_sessions(timezone.now())
    assert set(Flag.objects.filter(session__study=study).values_list("session", flat=True)) <= {careless.pk}
