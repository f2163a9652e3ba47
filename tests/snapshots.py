"""The database of a test run as it was at some moment, kept in memory and brought back in a few milliseconds.

After a test that commits, the empty database comes back; `once` brings back rows that took long to make, which needs
SQLite: elsewhere they are made for each test. Keys go on where they were: what lies in files and caches under the key
of an earlier test is no other test's.
"""

import sqlite3
from contextlib import closing

import pytest
from django.apps import apps
from django.db import connection
from django.test import TransactionTestCase


class Snapshot:
    """All tables as they are now."""

    def __init__(self):
        connection.ensure_connection()
        self.kept = sqlite3.connect(":memory:", check_same_thread=False)
        connection.connection.backup(self.kept)

    def bring_back(self):
        with connection.cursor() as cursor:
            cursor.execute("SELECT name, seq FROM sqlite_sequence")
            reached = cursor.fetchall()
            self.kept.backup(connection.connection)
            cursor.execute("SELECT name FROM sqlite_sequence")
            named = {name for (name,) in cursor.fetchall()}
            new = [(seq, name) for name, seq in reached if name not in named]
            old = [(seq, name) for name, seq in reached if name in named]
            cursor.executemany("UPDATE sqlite_sequence SET seq = max(seq, %s) WHERE name = %s", old)
            cursor.executemany("INSERT INTO sqlite_sequence (seq, name) VALUES (%s, %s)", new)


_empty = []  # the snapshot of the empty database, where it is of SQLite
_empty_tables: list[str] = []  # quoted


def empty_by_snapshot():
    """From now on tests that commit leave the database as it is now."""
    with connection.cursor() as cursor:
        _empty_tables[:] = map(connection.ops.quote_name, connection.introspection.table_names(cursor))
    filled = find_filled_tables()
    _empty_tables[:] = [table for table in _empty_tables if table not in filled]
    if connection.vendor == "sqlite":
        empty = Snapshot()
        _empty.append(empty)
        TransactionTestCase._fixture_teardown = lambda _: empty.bring_back()
    elif connection.vendor == "postgresql":
        empty_by_deleting()


def empty_database():
    """Leave the database as after a test that commits."""
    TransactionTestCase()._fixture_teardown()


def find_filled_tables():
    """The tables with rows, of those that are empty before a test; none before the first test with a database."""
    if not _empty_tables:
        return []
    with connection.cursor() as cursor:
        looks = (f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in _empty_tables)
        cursor.execute(" UNION ALL ".join(looks))
        return [table for (table,) in cursor.fetchall()]


def write_empty_database(file):
    """A file of SQLite as the first start of a portal leaves it, which would take the longest; elsewhere nothing."""
    for empty in _empty:
        with closing(sqlite3.connect(file)) as copy:
            empty.kept.backup(copy)


def empty_by_deleting():
    """On PostgreSQL rows are deleted from the tables that are empty now: emptying files of eighty tables takes seconds.

    Only who may leave foreign keys unchecked can do so; for others Django empties the tables.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT usesuper FROM pg_user WHERE usename = current_user")
        if cursor.fetchone() != (True,):
            return
    deletions = [f"DELETE FROM {table}" for table in _empty_tables]
    statements = ["SET session_replication_role = replica", *deletions, "SET session_replication_role = DEFAULT"]

    def delete(_):
        with connection.cursor() as cursor:
            cursor.execute("; ".join(statements))

    TransactionTestCase._fixture_teardown = delete


_made = {}  # by function and arguments the snapshot, and the model and the key of the row that was given back


@pytest.fixture
def once(transactional_db):
    """`once(make, *arguments)`: the row that the function gives back, with all that it made for the first test.

    It comes before everything else that a test makes.
    """

    def once(make, *arguments):
        if connection.vendor != "sqlite":
            return make(*arguments)
        key = (make, arguments)
        assert not apps.get_model("accounts", "User").objects.exists(), "once comes before what a test makes"
        if key in _made:
            snapshot, model, number = _made[key]
            snapshot.bring_back()
            return model.objects.get(pk=number)
        row = make(*arguments)
        _made[key] = Snapshot(), type(row), row.pk
        return row

    return once
