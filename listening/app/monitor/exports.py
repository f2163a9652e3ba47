"""A raw study as files: its tables, what each of their columns means, one as CSV or all as one JSON or as an archive.

Nothing is left out but previews, tokens, withdrawal codes and the names of people on their platform (only `payments`
has those). While a study is open, results are locked: `Blinds` leaves out systems and puts codes in the place of items.
The data dictionary (export_dictionary.toml) goes with every archive. A table is sent as it is read; the whole is read
from one state of the database and written to a temporary file, so tables agree with each other and nothing large is
held in memory. Texts that a spreadsheet would run are neutralised.
"""

from __future__ import annotations

import io
import json
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

from django.db.models import Case, Count, Model, Q, QuerySet, Value, When
from django.http import FileResponse, Http404, HttpResponse, StreamingHttpResponse
from django.utils import timezone
from django.utils.crypto import salted_hmac

from common.tables import csv_lines
from listening.app import models
from listening.app.models import Study
from listening.app.monitor.selectors import standing_exclusion
from listening.app.studies.rules import LAUNCHED
from listening.questions import Kind
from portal.core.one_state import read_one_state
from portal.core.version import code_version

CHUNK = 2000
DICTIONARY_COLUMNS = ("table", "column", "meaning")
_DICTIONARY = tomllib.loads(Path(__file__).with_name("export_dictionary.toml").read_text(encoding="utf-8"))
ABOUT: Mapping[str, str] = {name: table["about"] for name, table in _DICTIONARY["tables"].items()}
MEANING: Mapping[str, Mapping[str, str]] = {
    name: {column: meaning.format(**_DICTIONARY["shared"]) for column, meaning in table["columns"].items()}
    for name, table in _DICTIONARY["tables"].items()
}
LOCK_NOTICE, HOW_TO_READ = (_DICTIONARY["notices"][name] for name in ("lock", "how_to_read"))
Row = tuple[Any, ...]
Rows = Callable[[Study], Iterator[Row]]


def dictionary_rows() -> Iterator[tuple[str, str, str]]:
    """Yield head and rows of ``dictionary.csv``: every column of every table of the archive, and of `payments`."""
    yield DICTIONARY_COLUMNS
    for table, columns in MEANING.items():
        for column, meaning in columns.items():
            yield table, column, meaning


def read_me(title: str, *, is_locked: bool, is_simulated: bool) -> str:
    """Return the text that goes with the archive."""
    tables = "\n".join(f"  tables/{name}.csv  {about}" for name, about in ABOUT.items() if name != "payments")
    parts = [
        title,
        "SIMULATED: a program answered, no person." if is_simulated else "",
        LOCK_NOTICE if is_locked else "",
        HOW_TO_READ,
        f"Tables:\n{tables}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def is_locked(study: Study) -> bool:
    """Return whether ratings by system are hidden from everybody: somebody may still look for evaluators or tune."""
    return study.state in LAUNCHED


class Blinds:
    """What is told of systems and items: their names, or while results are locked no system, and codes of items.

    Not even a code of a system for each block: an item that stands in several blocks would join those codes.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.are_down = is_locked(study)

    def item(self, key: str) -> str:
        if not self.are_down:
            return key
        digest = salted_hmac("listening.export", f"{self.study.pk} {key}", algorithm="sha256").hexdigest()
        return f"locked-{digest[:10]}"

    def system(self, code: str | None) -> str | None:
        return None if self.are_down else code or self.study.original_name

    def unless_down(self, value: Any) -> Any:
        return None if self.are_down else value


# Tables --------------------------------------------------------------------------------------------


def _rows(name: str, study: Study) -> Iterator[Row]:
    """Yield the rows of a table, which shows of systems and items what `Blinds` leaves of them."""
    blinds, columns, fields = Blinds(study), MEANING[name], _DICTIONARY["tables"][name].get("fields", {})
    hidden: dict[str, Callable[[Any], Any]] = {"item": blinds.item, "system": blinds.system}
    hidden |= dict.fromkeys(("duration_s", "facts"), blinds.unless_down)
    found = READ[name](study).values_list(*(fields.get(column, column) for column in columns))
    told = (
        tuple(hidden[column](value) if column in hidden else value for column, value in zip(columns, row, strict=True))
        for row in found.iterator(CHUNK)
    )
    # By item and slot, because the order of their making would tell their systems.
    yield from sorted(told, key=lambda row: row[:2]) if name in ("items", "samples") else told


def _named(table: str, source: Any, told: Mapping[str, Any]) -> Row:
    """Return a row of what is told under the names of the columns, else of what an object holds under them."""
    return tuple(told[name] if name in told else getattr(source, name) for name in MEANING[table])


def _study_rows(study: Study) -> Iterator[Row]:
    blinds, certificate = Blinds(study), study.certificate
    told = {
        "exported_at": timezone.now(),
        "is_locked": blinds.are_down,
        "edition": study.edition.name if study.edition else None,
        "tasks": study.asked_keys,
        "pay_per_hour": str(study.pay_per_hour),
        "data_sets": list(study.data_sets.order_by("name").values_list("name", flat=True)),
        "seed": blinds.unless_down(study.seed),
        "design_version": [part.get("version") for part in certificate.get("parts", [])],
        "design_fingerprint": certificate.get("fingerprint"),
        "certificate": blinds.unless_down(certificate or None),
        "portal_version": code_version(),
    }
    yield _named("study", study, told)


def _system_rows(study: Study) -> Iterator[Row]:
    for one in study.systems.select_related("submission__system"):
        submission = one.submission
        yield one.code, str(submission or ""), submission.system.title if submission else one.get_kind_display()


def _flag_rows(study: Study) -> Iterator[Row]:
    for session, kind, data, at in _done(models.Flag)(study).values_list("session", "kind", "data", "at"):
        yield session, kind, data.get("holds", True), {k: v for k, v in data.items() if k != "holds"}, at


def _rule_rows(study: Study) -> Iterator[Row]:
    for rule in study.exclusion_rules.select_related("created_by", "revoked_by"):
        people = {name: str(getattr(rule, name) or "") for name in ("created_by", "revoked_by")}
        yield _named("rules", rule, people | {"rule": rule.pk, "session": rule.session_id})


def _slider_rows(study: Study) -> Iterator[Row]:
    """Yield a row for each recording that was rated beside others."""
    blinds, samples = Blinds(study), dict[int, dict[str, str]]()
    heard = models.PresentationSample.objects.filter(presentation__study=study).order_by()
    for presentation, slot, code in heard.values_list("presentation", "slot", "stimulus__condition__code"):
        samples.setdefault(presentation, {})[slot] = code
    answers = (
        _done(models.Answer)(study).exclude(data__ratings=None).annotate(is_excluded=standing_exclusion("session"))
    )
    for answer in answers.select_related("session__participant", "trial__block", "trial__presentation").iterator(CHUNK):
        trial = answer.trial
        values = {"session": answer.session_id, "person": answer.session.participant.person_key}
        values |= {"block": trial.block.number, "position": trial.position, "item": blinds.item(trial.presentation.key)}
        for slot, rating in answer.data["ratings"].items():
            system = blinds.system(samples[trial.presentation_id][slot])
            yield _named("sliders", answer, values | {"slot": slot, "system": system, "rating": rating})


def _label_of_choice(study: Study) -> Case:
    """Return the English words of the label that was chosen; empty for answers that are no choice."""
    labels = [
        When(task=question.key, rating=number, then=Value(label))
        for question in study.asked
        if question.kind == Kind.CHOICE
        for number, label in question.labels("en").items()
    ]
    return Case(*labels, default=Value(""))


def _sessions(study: Study) -> QuerySet[Any]:
    return study.sessions.filter(is_preview=False).annotate(is_excluded=standing_exclusion()).order_by("pk")


def _done(model: type[Model]) -> Callable[[Study], QuerySet[Any]]:
    """Return what was done in the sessions of the study that count, in the order in which it came."""
    return lambda study: model._default_manager.filter(session__study=study, session__is_preview=False).order_by("pk")


READ: Mapping[str, Callable[[Study], QuerySet[Any]]] = {
    "questions": lambda study: study.questions.order_by("position"),
    "texts": lambda study: study.texts.order_by("kind", "language", "version"),
    "blocks": lambda study: study.blocks.order_by("number"),
    "items": lambda study: study.presentations.order_by(),
    "samples": lambda study: models.PresentationSample.objects.filter(presentation__study=study).order_by(),
    "trials": lambda study: models.Trial.objects.filter(block__study=study).order_by("block__number", "position"),
    "participants": lambda study: (
        study.participants.annotate(seen=Count("sessions", filter=Q(sessions__is_preview=False)))
        .filter(seen__gt=0)
        .order_by("pk")
    ),
    "sessions": _sessions,
    "answers": lambda study: _done(models.Answer)(study).annotate(
        is_excluded=standing_exclusion("session"), label=_label_of_choice(study)
    ),
    "plays": _done(models.Play),
    "serves": _done(models.Serve),
    "events": _done(models.SessionEvent),
    "screening": _done(models.ScreeningResult),
    "exclusions": lambda study: (
        models.Exclusion.objects.filter(rule__study=study).annotate(is_standing=Q(rule__revoked_at=None)).order_by("pk")
    ),
    "payments": _sessions,
}
_OWN: Mapping[str, Rows] = {
    "study": _study_rows,
    "systems": _system_rows,
    "sliders": _slider_rows,
    "flags": _flag_rows,
    "rules": _rule_rows,
}
ROWS: Mapping[str, Rows] = {name: _OWN.get(name) or partial(_rows, name) for name in MEANING}
# Those of the whole; the one with names of people is asked for explicitly.
PAYMENTS = "payments"
TABLES = tuple(name for name in ROWS if name != PAYMENTS)


# Responses -----------------------------------------------------------------------------------------


def csv_response(study: Study, name: str) -> HttpResponse:
    """Return one table as CSV, such as that of the names of people on their platform with their codes (`PAYMENTS`).

    Raises:
        Http404: there is no table of this name.
    """
    if name not in ROWS:
        raise Http404
    response = StreamingHttpResponse(_csv_lines(study, name), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{file_stem(study)}-{name}.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return cast("HttpResponse", response)


def file_response(study: Study, now: datetime, extension: str) -> HttpResponse:
    """Return everything as one file.

    Args:
        extension: ``json`` for an object with `notice`, `dictionary` and `tables`, each a list of objects; ``zip`` for
            an archive of CSV files with README.txt and dictionary.csv.
    """
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the response closes it
    with read_one_state():
        _write_zip(file, study, now) if extension == "zip" else _write_json(file, study)
    file.seek(0)
    name = f"{file_stem(study)}-{now.astimezone(UTC):%Y%m%d-%H%M}.{extension}"
    response = FileResponse(file, as_attachment=True, filename=name, content_type=f"application/{extension}")
    response["X-Content-Type-Options"] = "nosniff"
    return cast("HttpResponse", response)


def file_stem(study: Study) -> str:
    """Return how names of files begin, which says that answers are simulated or results locked."""
    marks = [study.name, "simulated" if study.is_simulated else "", "locked" if is_locked(study) else ""]
    return "-".join(filter(None, marks))


def notices(study: Study) -> list[str]:
    """Return what everybody has to know who reads the file."""
    told = ["Simulated: a program answered, no person."] if study.is_simulated else []
    return [*told, LOCK_NOTICE] if is_locked(study) else told


# Files ---------------------------------------------------------------------------------------------


def _write_json(file: IO[bytes], study: Study) -> None:
    meaning = {name: MEANING[name] for name in TABLES}
    about = {name: ABOUT[name] for name in TABLES}
    head = {"notice": notices(study), "about": about, "dictionary": meaning}
    text = io.TextIOWrapper(file, "utf-8")
    text.write(f'{json.dumps(head, ensure_ascii=False)[:-1]}, "tables": {{')
    for number, name in enumerate(TABLES):
        text.write(f"{', ' if number else ''}\n{json.dumps(name)}: [")
        for place, row in enumerate(ROWS[name](study)):
            value = dict(zip(MEANING[name], row, strict=True))
            text.write(f"{',' if place else ''}\n{json.dumps(value, ensure_ascii=False, default=_plain)}")
        text.write("]")
    text.write("}}\n")
    text.detach()


def _write_zip(file: IO[bytes], study: Study, now: datetime) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        text = read_me(study.title, is_locked=is_locked(study), is_simulated=study.is_simulated)
        _add(archive, "README.txt", [text], now)
        of_archive = (row for row in dictionary_rows() if row[0] != PAYMENTS)
        _add(archive, "dictionary.csv", csv_lines(of_archive), now)
        for name in TABLES:
            _add(archive, f"tables/{name}.csv", _csv_lines(study, name), now)


def _add(archive: zipfile.ZipFile, name: str, lines: Iterable[str], now: datetime) -> None:
    entry = zipfile.ZipInfo(name, now.astimezone(UTC).timetuple()[:6])
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    with archive.open(entry, "w", force_zip64=True) as member:
        for line in lines:
            member.write(line.encode())


# Cells ---------------------------------------------------------------------------------------------


def _csv_lines(study: Study, name: str) -> Iterator[str]:
    return csv_lines(map(_cell, line) for line in chain([MEANING[name]], ROWS[name](study)))


def _cell(value: Any) -> Any:
    """Return a value as it stands in CSV: nothing for None, true and false as in JSON, lists and objects as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return _plain(value) if isinstance(value, datetime) else value


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)
