"""The migrations make the database that the models describe; all other tests make it from the models themselves.

That no migration is lacking is a check of `make lint`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.db import connection

MIGRATE = """
from django.core.management import call_command
call_command("migrate", verbosity=0)
"""
LIST_TABLES = """
from django.db import connection
with connection.cursor() as cursor:
    look = connection.introspection
    for table in sorted(look.table_names(cursor)):
        found = look.get_constraints(cursor, table).values()
        columns = [one.name for one in look.get_table_description(cursor, table)]
        print(table, sorted(columns), sum(one["check"] for one in found), sum(one["unique"] for one in found))
"""


@contextmanager
def empty_database(tmp_path):
    """The address of a database without tables, of the kind that this test run uses."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.sqlite3'}"
        return
    known, name = connection.settings_dict, f"empty_{uuid.uuid4().hex}"
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}"')
    try:
        yield f"postgresql://{known['USER']}@{known['HOST'] or '127.0.0.1'}:{known['PORT'] or 5432}/{name}"
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def manage(*arguments: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_migrations_make_the_tables_of_the_models(tmp_path, capsys):
    with empty_database(tmp_path) as address:
        at = {"PORTAL_DATABASE_URL": address, "PORTAL_DATA_DIR": str(tmp_path)}
        migrated = manage("shell", "--verbosity", "0", "--command", MIGRATE + LIST_TABLES, **at).splitlines()
    exec(LIST_TABLES, {})
    assert migrated == capsys.readouterr().out.splitlines()
