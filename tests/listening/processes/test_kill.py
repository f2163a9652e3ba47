"""What was acknowledged is there, whatever dies: the web process by ``kill -9``, the database connection by its server.

Evaluators answer over real HTTP without a pause and keep what the portal acknowledged; what got no reply, or a server
error, is sent again as their browser does.
"""

import threading
import time
from collections import Counter

import pytest
import requests
from django.db import connection

from tests.listening.answering import hear, payload
from tests.listening.factories import make_session, make_study
from tests.portal.processes.programs import wait_until
from tests.portal.processes.uploading import WebServer

EVALUATORS, TRIALS, TASKS = 6, 40, ["verifiability", "naturalness", "intelligibility"]
PATIENCE_S = 120


class Evaluator(threading.Thread):
    """Answers every trial in order; `acknowledged` has the rating of each that the portal said is saved."""

    def __init__(self, server, session, number):
        super().__init__(daemon=True)
        self.address = f"{server.address}/listen/{session.token}/answers"
        self.session, self.number = session, number
        self.acknowledged, self.repeated, self.refused = {}, 0, []
        self.stop = threading.Event()

    def rating(self, position):
        return 1 + (position + self.number) % 10

    def run(self):
        for position in range(1, TRIALS + 1):
            body = payload(position, self.rating(position), is_late=True)
            while not self.stop.is_set() and not self.send(position, body):
                self.repeated += 1
                time.sleep(0.02)

    def send(self, position, body):
        try:
            reply = requests.post(self.address, json=body, timeout=10)
        except requests.RequestException:
            return False
        if reply.status_code == 200:
            self.acknowledged[position] = reply.json()["answers"]["naturalness"]
        elif reply.status_code < 500:
            self.refused.append((position, reply.status_code, reply.text))
            self.stop.set()
        return reply.status_code < 500


@pytest.fixture
def evaluators(portal):
    study = make_study(evaluators=EVALUATORS, trials=TRIALS)
    sessions = [make_session(study) for _ in range(EVALUATORS)]
    for session in sessions:
        hear(session)
    server = WebServer(portal)
    people = [Evaluator(server, session, number) for number, session in enumerate(sessions)]
    yield server, people
    for person in people:
        person.stop.set()
    for person in people:
        person.join(PATIENCE_S)


def acknowledged(people):
    return sum(len(person.acknowledged) for person in people)


def require_all_kept(people):
    """Every acknowledged answer is stored with its value; none is there twice or belongs to somebody else."""
    for person in people:
        told = dict(person.acknowledged)  # first: while people go on, more is kept than was told a moment ago
        kept = Counter(person.session.answers.values_list("trial__position", "task", "rating"))
        assert {(position, task, rating) for position, rating in told.items() for task in TASKS} <= set(kept)
        assert set(kept.values()) <= {1}
        assert all(rating == person.rating(position) for position, _, rating in kept)


def require_all_finished(people):
    for person in people:
        person.join(PATIENCE_S)
        assert not person.is_alive(), f"{len(person.acknowledged)} acknowledged"
        assert person.refused == []
        assert sorted(person.acknowledged) == list(range(1, TRIALS + 1))
        person.session.refresh_from_db()
        assert (person.session.state, person.session.answers.count()) == ("finished", 3 * TRIALS)
    require_all_kept(people)


def disturb_at(people, shares, action):
    """Do it each time such a share of all answers is acknowledged; nothing acknowledged is ever missing."""
    for share in shares:
        due = share * EVALUATORS * TRIALS
        wait_until(lambda due=due: acknowledged(people) >= due, f"{due} answers", seconds=PATIENCE_S)
        action()
        require_all_kept(people)


def test_answers_that_were_acknowledged_survive_kills_of_the_web_process(evaluators):
    server, people = evaluators

    def kill():
        server.kill()
        server.start()

    for person in people:
        person.start()
    disturb_at(people, (0.2, 0.5, 0.8), kill)
    require_all_finished(people)
    assert sum(person.repeated for person in people) > 0, "the kills hit nobody"


@pytest.mark.postgres
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no connections that could be cut")
def test_answers_that_were_acknowledged_survive_the_loss_of_database_connections(evaluators):
    _, people = evaluators
    cuts = []

    def cut():
        ours = "pid <> pg_backend_pid() and datname = current_database()"
        with connection.cursor() as cursor:
            cursor.execute(f"select count(pg_terminate_backend(pid)) from pg_stat_activity where {ours}")
            cuts.append(cursor.fetchone()[0])

    for person in people:
        person.start()
    disturb_at(people, (0.2, 0.4, 0.6, 0.8), cut)
    require_all_finished(people)
    assert min(cuts) > 0
