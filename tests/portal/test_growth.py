"""Pages of a challenge that has grown: none needs more than 20 queries, nor work that grows with all there is.

The addresses are those that the portal has. What a page costs is counted, not timed: queries, rows that come from the
database, and steps of SQLite. `benchmarks.pages` measures seconds.
"""

from dataclasses import dataclass

import pytest
from django.db import connection, transaction

from tests.portal.large_challenge import ROLES, WHOLE, LargeChallenge, Size, clients, count_queries

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="counts the steps of SQLite"),
]

QUERIES, ROWS, STEPS = 20, 40_000, 15_000_000
STEPS_AT_ONCE = 1000
# Every file of two submissions is compared; of this page the queries are bounded.
COMPARED = ("submissions:diff",)


@dataclass
class Cost:
    """What one request took."""

    queries: int = 0
    rows: int = 0
    steps: int = 0

    def is_bounded(self, *, looks_at_all):
        is_small = self.rows <= ROWS and self.steps <= STEPS
        return self.queries <= QUERIES and (is_small or looks_at_all)


def measure(client, address):
    """The answer to a request and what it took."""
    cost, database = Cost(), connection.connection

    def step():
        cost.steps += STEPS_AT_ONCE

    def row(_, values):
        cost.rows += 1
        return values

    database.set_progress_handler(step, STEPS_AT_ONCE)
    database.row_factory = row
    try:
        with count_queries() as counted:
            answer = client.get(address)
            if answer.streaming:
                b"".join(answer.streaming_content)
    finally:
        database.set_progress_handler(None, 0)
        database.row_factory = None
    cost.queries = counted()
    return answer, cost


@pytest.fixture(scope="module")
def grown(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), transaction.atomic():
        yield LargeChallenge(Size(sets=16))
        transaction.set_rollback(True)


def dear(grown):
    """What each page took that took too much, by its name and who asked; the names of those that answered."""
    found, answered = {}, set()
    addresses = grown.addresses(grown.study)
    for role, client in clients(grown, ROLES):
        for name, address in addresses.items():
            if name in WHOLE:
                continue
            answer, cost = measure(client, address)
            assert answer.status_code < 500 or name == "ready", name
            if answer.status_code in {200, 286}:
                answered.add(name)
            if not cost.is_bounded(looks_at_all=name in COMPARED):
                found[f"{name} of the {role}"] = cost
    return found, answered


@pytest.mark.slow  # every page for every role; each list and page has tests of its queries
def test_pages_of_a_grown_challenge_are_bounded(grown):
    found, answered = dear(grown)
    assert found == {}
    assert len(answered) > 100
