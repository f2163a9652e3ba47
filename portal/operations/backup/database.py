"""The database as one file that any database of the portal can be filled from: SQLite or PostgreSQL, older or equal.

A gzip of JSON lines: for each table its name and columns, then its rows; at the end how many rows each table has. It is
read in one transaction that sees the database as it was at one moment and that nobody waits for. The rows are those of
the models, with the migrations that were applied: `load` brings an empty database to the same ones and fills it;
`upgrade` applies those that came since.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Model

from common.errors import CommandError
from common.progress import Progress
from portal.core.one_state import read_one_state

ROWS_AT_ONCE = 1000
# Made by Django itself with every database.
OF_DJANGO = ("django_content_type", "auth_permission")


def list_migrations() -> list[list[str]]:
    """The last migration of each app that is applied; they are numbered."""
    applied = MigrationRecorder(connection).applied_migrations()
    return [list(node) for node in dict(sorted(applied)).items()]


def dump(path: Path, progress: Progress) -> dict[str, int]:
    """Write the database to a new file; the number of rows of each table."""
    counts: dict[str, int] = {}
    models = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as file, read_one_state():
        total, done = sum(model._base_manager.count() for model in models), 0
        for model in models:
            columns = [field.attname for field in model._meta.concrete_fields]
            file.write(json.dumps({"table": model._meta.db_table, "columns": columns}) + "\n")
            rows = model._base_manager.order_by("pk").values_list(*columns)
            for count, row in enumerate(rows.iterator(chunk_size=ROWS_AT_ONCE), 1):
                file.write(json.dumps(row, ensure_ascii=False, default=as_json) + "\n")
                counts[model._meta.db_table] = count
                if count % ROWS_AT_ONCE == 0:
                    progress("rows of the database", done + count, total)
            done += counts.setdefault(model._meta.db_table, 0)
        progress("rows of the database", done, total)
        file.write(json.dumps({"rows": counts}) + "\n")
    return counts


def as_json(value: Any) -> Any:
    """What JSON cannot hold, as the field of it reads it again."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise TypeError(f"A backup cannot hold {type(value).__name__}.")


def find_content() -> str:
    """What the database holds beside what Django itself puts into every one, in words; empty where there is nothing."""
    try:
        tables = set(connection.introspection.table_names())
    except DatabaseError as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise CommandError(f"The database does not answer ({reason}). Start it or fix PORTAL_DATABASE_URL.") from error
    for model in apps.get_models(include_auto_created=True):
        table = model._meta.db_table
        if table in tables and table not in OF_DJANGO:
            with connection.cursor() as cursor:  # its columns may be those of another version
                cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608
                if count := cursor.fetchone()[0]:
                    return f"{count:,} rows in the table {table}"
    return ""


def load(path: Path, migrations: list[list[str]], counts: Mapping[str, int], progress: Progress) -> None:
    """Fill an empty database: all of it or, where anything goes wrong, nothing.

    Args:
        migrations: the last one of each app at the time of the backup.
        counts: how many rows each table must have at the end.

    Raises:
        CommandError: the file is damaged, or of a newer portal.
    """
    executor = MigrationExecutor(connection)
    targets = [(app, name) for app, name in migrations]
    if unknown := [f"{app}.{name}" for app, name in targets if (app, name) not in executor.loader.graph.nodes]:
        raise CommandError(
            f"The backup was made by a newer portal: this one does not have the migrations {', '.join(unknown)}. "
            "Install the version named in its summary.json, restore, and then upgrade."
        )
    executor.migrate(targets)
    models = executor.loader.project_state(targets).apps.get_models(include_auto_created=True)
    by_table = {model._meta.db_table: model for model in models}
    try:
        with transaction.atomic(), gzip.open(path, "rt", encoding="utf-8") as file:
            for table in OF_DJANGO:
                if table in by_table:
                    by_table[table]._base_manager.all().delete()
            found = _fill(file, by_table, sum(counts.values()), progress)
            if found != counts:
                raise CommandError(f"{path}: expected {sum(counts.values()):,} rows, found {sum(found.values()):,}.")
            _go_on_counting(list(by_table.values()))
    except (EOFError, OSError, ValueError, KeyError) as error:
        raise CommandError(
            f"{path}: expected the rows of a database, found “{error}”. Verify the backup, and restore another one."
        ) from error
    ContentType.objects.clear_cache()


def upgrade() -> None:
    """Apply the migrations that came since the backup that filled the database.

    Raises:
        CommandError: one of them failed.
    """
    try:
        call_command("migrate", verbosity=0)
    except Exception as error:  # a migration can fail in any way
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CommandError(
            f"All rows and files are restored, but a migration of this version failed ({reason}). Fix the cause and "
            f"run {settings.PROGRAM} migrate; do not restore again."
        ) from error


def _fill(file: Any, by_table: Mapping[str, type[Model]], total: int, progress: Progress) -> dict[str, int]:
    counts: dict[str, int] = {}
    model: Any = None
    fields: list[Any] = []
    rows: list[Any] = []

    def store() -> None:
        if rows:
            model._base_manager.bulk_create(rows, batch_size=ROWS_AT_ONCE)
            rows.clear()
            progress("rows of the database", sum(counts.values()), total)

    while lines := list(islice(file, ROWS_AT_ONCE)):
        for line in lines:
            content = json.loads(line)
            if isinstance(content, list):
                values = {field.attname: field.to_python(one) for field, one in zip(fields, content, strict=True)}
                rows.append(model(**values))
                counts[model._meta.db_table] += 1
            elif "table" in content:
                store()
                model = by_table[content["table"]]
                known = {field.attname: field for field in model._meta.concrete_fields}
                fields = [known[name] for name in content["columns"]]
                for field in fields:  # a row keeps the times that it was made and changed at
                    field.auto_now = field.auto_now_add = False
                counts[content["table"]] = 0
            elif content != {"rows": counts}:
                raise ValueError("another number of rows")
        store()
    return counts


def _go_on_counting(models: list[type[Model]]) -> None:
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)
