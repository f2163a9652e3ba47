"""A raw study as files: one table as CSV, or all of them as one JSON or as an archive with its data dictionary.

A table is sent as it is read; the whole is read from one state of the database and written to a temporary file, so
tables agree with each other and nothing large is held in memory. Texts that a spreadsheet would run are neutralised.
Public: `table_response`, `json_response`, `zip_response`, `payments_response`.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, Any, cast

from django.db import connection, transaction
from django.http import FileResponse, Http404, HttpResponse, StreamingHttpResponse

from listening.models import Study
from listening.monitor.export_dictionary import ABOUT, LOCK_NOTICE, MEANING, dictionary_rows, read_me
from listening.monitor.export_tables import PAYMENTS, TABLES, Table, is_locked
from portal.core.exports import csv_lines


def table_response(study: Study, name: str) -> HttpResponse:
    """One table as CSV.

    Raises:
        Http404: there is no table of this name; the one with names of people is asked for otherwise.
    """
    if name not in TABLES:
        raise Http404
    return _csv_response(study, name, TABLES[name])


def payments_response(study: Study) -> HttpResponse:
    """The names of people on their platform with their codes, as CSV."""
    return _csv_response(study, "payments", PAYMENTS)


def json_response(study: Study, now: datetime) -> HttpResponse:
    """Everything as one JSON object: `notice`, `dictionary` and `tables`, each a list of objects."""
    return _file_response(study, now, "json", "application/json", _write_json)


def zip_response(study: Study, now: datetime) -> HttpResponse:
    """Everything as an archive of CSV files with README.txt and dictionary.csv."""
    return _file_response(study, now, "zip", "application/zip", _write_zip)


def file_stem(study: Study) -> str:
    """Beginning of the names of files; that answers are simulated or results locked stands in it."""
    marks = [study.name, "simulated" if study.is_simulated else "", "locked" if is_locked(study) else ""]
    return "-".join(filter(None, marks))


def notices(study: Study) -> list[str]:
    """What everybody has to know who reads the file."""
    told = ["Simulated: a program answered, no person."] if study.is_simulated else []
    return [*told, LOCK_NOTICE] if is_locked(study) else told


# Files ---------------------------------------------------------------------------------------------


def _csv_response(study: Study, name: str, table: Table) -> HttpResponse:
    lines = csv_lines(_csv_rows(study, table))
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{file_stem(study)}-{name}.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return cast("HttpResponse", response)


def _file_response(study: Study, now: datetime, extension: str, content_type: str, write: Any) -> HttpResponse:
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the response closes it
    with one_state():
        write(file, study, now)
    file.seek(0)
    name = f"{file_stem(study)}-{now.astimezone(UTC):%Y%m%d-%H%M}.{extension}"
    response = FileResponse(file, as_attachment=True, filename=name, content_type=content_type)
    response["X-Content-Type-Options"] = "nosniff"
    return cast("HttpResponse", response)


def _write_json(file: IO[bytes], study: Study, now: datetime) -> None:  # noqa: ARG001
    meaning = {name: MEANING[name] for name in TABLES}
    about = {name: ABOUT[name] for name in TABLES}
    head = {"notice": notices(study), "about": about, "dictionary": meaning}
    text = io.TextIOWrapper(file, "utf-8")
    text.write(f'{json.dumps(head, ensure_ascii=False)[:-1]}, "tables": {{')
    for number, (name, table) in enumerate(TABLES.items()):
        text.write(f"{', ' if number else ''}\n{json.dumps(name)}: [")
        for place, row in enumerate(table.rows(study)):
            value = dict(zip(table.columns, row, strict=True))
            text.write(f"{',' if place else ''}\n{json.dumps(value, ensure_ascii=False, default=_plain)}")
        text.write("]")
    text.write("}}\n")
    text.detach()


def _write_zip(file: IO[bytes], study: Study, now: datetime) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        text = read_me(study.title, is_locked=is_locked(study), is_simulated=study.is_simulated)
        _add(archive, "README.txt", [text], now)
        of_archive = (row for row in dictionary_rows() if row[0] != "payments")
        _add(archive, "dictionary.csv", csv_lines(of_archive), now)
        for name, table in TABLES.items():
            _add(archive, f"tables/{name}.csv", csv_lines(_csv_rows(study, table)), now)


def _add(archive: zipfile.ZipFile, name: str, lines: Iterable[str], now: datetime) -> None:
    entry = zipfile.ZipInfo(name, now.astimezone(UTC).timetuple()[:6])
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    with archive.open(entry, "w", force_zip64=True) as member:
        for line in lines:
            member.write(line.encode())


# Cells ---------------------------------------------------------------------------------------------


def _csv_rows(study: Study, table: Table) -> Iterator[Iterable[Any]]:
    yield table.columns
    for row in table.rows(study):
        yield [_cell(value) for value in row]


def _cell(value: Any) -> Any:
    """As it stands in CSV: nothing for None, true and false as in JSON, lists and objects as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return _plain(value) if isinstance(value, datetime) else value


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


@contextmanager
def one_state() -> Iterator[None]:
    """Read one state of the database, while evaluators go on writing: no lock is taken."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        # Django's own transactions take the lock of writers at once.
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
    else:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
