"""Lists of a challenge that has grown: none needs more than 20 queries, nor work that grows with all there is.

What a page costs is counted, not timed: queries, rows that come from the database, steps of SQLite, calls of functions.
"""

import cProfile
from dataclasses import dataclass

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.portal.factories import make_operator
from tests.portal.grown import GrownChallenge

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="counts the steps of SQLite"),
]

QUERIES, ROWS, STEPS, CALLS = 20, 6_000, 10_000_000, 600_000
STEPS_AT_ONCE = 1000
OF_TRANSACTIONS = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
LISTS = (
    "home",
    "systems:list",
    "submissions:list",
    "studies:list",
    "editions:list",
    "editions:teams",
    "corpora:list",
    "jobs:list",
)


@dataclass
class Cost:
    """What one request took."""

    queries: int = 0
    rows: int = 0
    steps: int = 0
    calls: int = 0

    @property
    def is_bounded(self):
        return self.queries <= QUERIES and self.rows <= ROWS and self.steps <= STEPS and self.calls <= CALLS


def measure(client, address):
    """The answer to a request and what it took."""
    cost, profile, database = Cost(), cProfile.Profile(builtins=False), connection.connection

    def step():
        cost.steps += STEPS_AT_ONCE

    def row(_, values):
        cost.rows += 1
        return values

    database.set_progress_handler(step, STEPS_AT_ONCE)
    database.row_factory = row
    try:
        with CaptureQueriesContext(connection) as queries:
            answer = profile.runcall(client.get, address)
            if answer.streaming:
                b"".join(answer.streaming_content)
            cost.queries = sum(not query["sql"].startswith(OF_TRANSACTIONS) for query in queries)
    finally:
        database.set_progress_handler(None, 0)
        database.row_factory = None
    cost.calls = sum(one.callcount for one in profile.getstats())
    return answer, cost


@pytest.fixture(scope="module")
def grown(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), transaction.atomic():
        yield GrownChallenge()
        transaction.set_rollback(True)


def clients(grown):
    people = {"visitor": None, "member": grown.owner, "organizer": grown.organizer, "operator": make_operator()}
    for role, person in people.items():
        client = Client()
        if person is not None:
            client.force_login(person)
        yield role, client


def test_lists_of_a_grown_challenge_are_bounded(grown):
    found = {}
    for role, client in clients(grown):
        addresses = grown.addresses(grown.study)
        for name in LISTS:
            answer, cost = measure(client, addresses[name])
            assert answer.status_code < 500
            if not cost.is_bounded:
                found[f"{name} of the {role}"] = cost
    assert found == {}
