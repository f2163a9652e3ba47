"""Which rows of an edition leave the portal, without its people, and how they become rows of another portal.

What goes with an edition is what would be deleted with it (`portal.core.removal`), so that no table is forgotten; then
its corpora with their lists, and its jobs. Accounts stay, and with them memberships, invitations, acceptances of terms
and every "by whom"; names and addresses of contact persons; of evaluators the IDs, addresses, devices and codes.
Rows keep their old numbers in the folder. The other portal gives new ones, in the same order, and writes these wherever
a row, a JSON field, the name of an engine or the name of a file holds an old one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from secrets import token_hex
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.migrations.state import ProjectState
from django.db.models import CASCADE, DateField, ForeignKey, Model, Q

from anonymization.app.models import AnonymizationRun
from common.errors import CommandError
from common.progress import Progress
from evaluation.app.derived_data.receivers import FOLDERS
from evaluation.app.models import EvaluationRun, MetricValue, UtteranceMeasure
from listening.app.models import Analysis, Participant, ScreeningResult, Session, SessionEvent, Stimulus, Study
from portal.challenges.models import Corpus, DataFile, DataSet, Edition, Speaker, TrialList, Utterance
from portal.core.removal import Rows, find_owned, find_rows, find_rows_of
from portal.jobs.models import Job
from portal.jobs.selectors import MAILS, REMOVAL
from portal.operations.backup.database import ROWS_AT_ONCE, as_json
from portal.submissions.models import SharedPart, Submission, SubmittedFile, Upload
from portal.teams.models import DataAcceptance, Invitation, Membership, Team

OF_CORPUS = (Corpus, Speaker, Utterance, DataSet, TrialList)
LEFT_OUT = (Membership, Invitation, DataAcceptance, SessionEvent)
# Fields that nobody else is to read; in the other portal they have their default.
WITHHELD: dict[type[Model], tuple[str, ...]] = {
    Team: ("contact", "contact_email"),
    Study: ("link_key", "responsible", "contact", "platform_settings"),
    Participant: ("person_key", "platform_id"),
    Session: ("token", "withdrawal_code", "completion_code", "platform_data", "device", "network", "tab"),
    ScreeningResult: ("secret",),
    Upload: ("corpus_import",),
    Job: ("worker", "claim", "sent_at", "times_sent"),
}
# Fields with the names of recordings, left empty in a folder without audio.
AUDIO: dict[type[Model], tuple[str, ...]] = {
    Utterance: ("audio",),
    SubmittedFile: ("audio",),
    Stimulus: ("file",),
    UtteranceMeasure: ("f0_original", "f0_anonymised"),
}
# Numbers of rows in JSON fields; `run` of a job may be of another kind.
NUMBERS: dict[type[Model], dict[str, type[Model]]] = {
    Job: {"run": EvaluationRun, "submission": Submission, "study": Study, "analysis": Analysis, "edition": Edition},
    EvaluationRun: {"of": EvaluationRun, "trained": EvaluationRun, "parts": EvaluationRun},
}
NEW_KEYS: dict[type[Model], tuple[str, Callable[[], Any]]] = {Participant: ("person_key", lambda: token_hex(32))}
TRAINED = re.compile(r"(\btrained-|\(training )(\d{1,18})\b")
OF_RUN = re.compile(rf"({'|'.join(FOLDERS)})/(\d{{1,18}})/")
Numbers = dict[str, dict[Any, Any]]


# Out ----------------------------------------------------------------------------------------------


def carried_rows(edition: Edition, *, with_audio: bool) -> Rows:
    """The rows that go with an edition into another portal, those first on which others rest."""
    found = find_rows(edition)
    named = Q(edition=edition.name) | Q(pk__in=find_owned(found)[Job].values("pk"))
    jobs = Job.objects.filter(named).exclude(kind__in=(*MAILS, REMOVAL))
    rows: Rows = {}
    for model, some in find_rows_of(Corpus.objects.filter(pk__in=_list_corpora(edition, found))).items():
        if model in OF_CORPUS:
            rows[model] = some
    rows[Job] = jobs
    rows |= {model: some for model, some in found.items() if model not in LEFT_OUT}
    if Upload in rows:
        rows[Upload] = rows[Upload].filter(submission__isnull=False)
    if Session in rows:
        rows[Session] = rows[Session].filter(is_preview=False)
    if Participant in rows:
        rows[Participant] = rows[Participant].filter(pk__in=rows[Session].values("participant"))
    if not with_audio and SharedPart in rows:
        rows[SharedPart] = rows[SharedPart].filter(file=None)
    if not with_audio and DataFile in rows:
        rows[DataFile] = rows[DataFile].exclude(kind=DataFile.Kind.SPEECH)
    return rows


def _list_corpora(edition: Edition, rows: Rows) -> set[int]:
    """The corpora of an edition, and those from which its systems have the voices of target speakers."""
    found = {edition.corpus_id}
    for model, some in rows.items():
        for field in _foreign_keys(model):
            if field.related_model is DataSet:
                found.update(some.order_by().values_list(f"{field.name}__corpus", flat=True).distinct())
            elif field.related_model is Corpus:
                found.update(some.order_by().values_list(field.attname, flat=True).distinct())
    return {one for one in found if one is not None}


def _foreign_keys(model: type[Model]) -> list[ForeignKey[Any, Any]]:
    return [field for field in model._meta.concrete_fields if isinstance(field, ForeignKey)]


def write_rows(file: Any, rows: Rows, *, with_audio: bool, progress: Progress) -> dict[str, int]:
    """Write rows as JSON lines: for each table its name and columns, then its rows; how many of each.

    Raises:
        CommandError: a row rests on one that does not go with the edition.
    """
    total = sum(some.count() for some in rows.values())
    counts: dict[str, int] = {}
    known = {model: set(some.order_by().values_list("pk", flat=True)) for model, some in rows.items()}
    for model, some in rows.items():
        fields = list(_written(model))
        file.write(_line({"table": model._meta.label, "columns": [field.attname for field in fields]}))
        empty = () if with_audio else AUDIO.get(model, ())
        count = 0
        values = some.order_by("pk").values_list(*(field.attname for field in fields))
        for row in values.iterator(chunk_size=ROWS_AT_ONCE):
            kept = _keep(model, fields, row, known, empty)
            if kept is not None:
                file.write(_line(kept))
                count += 1
            else:
                known[model].discard(row[0])
        counts[model._meta.label] = count
        progress("rows", sum(counts.values()), total)
        for field in model._meta.local_many_to_many:
            if field.related_model in known:
                name = f"{model._meta.label}.{field.name}"
                counts[name] = _write_pairs(file, name, field, known[model])
    return counts


def _write_pairs(file: Any, name: str, field: Any, ours: set[Any]) -> int:
    through, count = field.remote_field.through, 0
    file.write(_line({"table": name, "columns": ["from", "to"]}))
    pairs = through._default_manager.order_by("pk").values_list(field.m2m_column_name(), field.m2m_reverse_name())
    for one, other in pairs.iterator(chunk_size=ROWS_AT_ONCE):
        if one in ours:
            file.write(_line([one, other]))
            count += 1
    return count


def _written(model: type[Model]) -> Iterator[Any]:
    """The fields that leave the portal, the number first."""
    people = get_user_model()
    yield model._meta.pk
    for field in model._meta.concrete_fields:
        is_person = isinstance(field, ForeignKey) and field.related_model is people
        if field is not model._meta.pk and not is_person and field.name not in WITHHELD.get(model, ()):
            yield field


def _keep(
    model: type[Model], fields: list[Any], row: tuple[Any, ...], known: Mapping[Any, set[Any]], empty: Iterable[str]
) -> list[Any] | None:
    """A row as it is written; None where it rests on a row that is left out, such as an organizer's preview."""
    kept = list(row)
    for place, (field, value) in enumerate(zip(fields, row, strict=True)):
        if field.name in empty:
            kept[place] = ""
        if not isinstance(field, ForeignKey) or value is None or value in known.get(field.related_model, ()):
            continue
        if field.remote_field.on_delete is CASCADE:
            return None
        if field.null:
            kept[place] = None
        else:
            words = model._meta.verbose_name
            raise CommandError(
                f"The {words} {row[0]} rests on a {field.related_model._meta.verbose_name} that is not of this "
                "edition, so that the edition cannot leave without it."
            )
    return kept


def _line(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, default=as_json) + "\n"


# In -----------------------------------------------------------------------------------------------


class RowReader:
    """Adds the rows of an exported edition to the database; `numbers`: by table the new number of each old one.

    Args:
        corpora: the numbers of rows of corpora that are here already, by table; they are not added.
    """

    def __init__(self, corpora: Numbers) -> None:
        # Models of their own, so that the times that a row was made and changed at can stay as they are given.
        state = ProjectState.from_apps(apps)
        self.models = {model._meta.label: model for model in state.apps.get_models()}
        for field in (field for model in self.models.values() for field in model._meta.concrete_fields):
            if isinstance(field, DateField):
                field.auto_now = field.auto_now_add = False
        self.numbers: Numbers = {label: dict(known) for label, known in corpora.items()}
        self._later: list[tuple[type[Model], str, Any, str, Any]] = []
        self._pairs: list[tuple[str, str, list[list[Any]]]] = []

    def read(self, lines: Iterable[str], total: int, progress: Progress) -> dict[str, int]:
        """Add all rows; how many of each table were read.

        Raises:
            CommandError: a table or a column is unknown here.
            ValueError: a row is damaged.
        """
        counts: dict[str, int] = {}
        source, label = iter(lines), ""
        columns: list[str] = []
        rows: list[list[Any]] = []
        while chunk := list(islice(source, ROWS_AT_ONCE)):
            for content in map(json.loads, chunk):
                if isinstance(content, list):
                    rows.append(content)
                    counts[label] += 1
                else:
                    self._add(label, columns, rows)
                    rows, label, columns = [], content["table"], content["columns"]
                    counts[label] = 0
            self._add(label, columns, rows)
            rows = []
            progress("rows", sum(counts.values()), total)
        for table, many, some in self._pairs:
            self._add_pairs(table, many, some)
        self._fill_later()
        self._renumber()
        return counts

    def _add(self, label: str, columns: list[str], rows: list[list[Any]]) -> None:
        if not rows:
            return
        name, _, many = label.partition(".")[2].partition(".")
        table = f"{label.partition('.')[0]}.{name}"
        if table not in self.models:
            raise CommandError(f"The folder has the table {table}, which this portal does not know. Upgrade it first.")
        if many:
            self._pairs.append((table, many, rows))
            return
        model = self.models[table]
        known = {field.attname: field for field in model._meta.concrete_fields}
        if unknown := sorted(set(columns) - known.keys()):
            raise CommandError(
                f"The folder has {', '.join(unknown)} in the table {table}, which this portal does not know. "
                "Upgrade it first."
            )
        fields = [known[column] for column in columns]
        numbers = self.numbers.setdefault(table, {})
        wanted = [row for row in rows if row[0] not in numbers]
        made = [self._make(model, fields, row) for row in wanted]
        model._base_manager.bulk_create([one for one, _ in made], batch_size=ROWS_AT_ONCE)
        for row, (one, later) in zip(wanted, made, strict=True):
            numbers[row[0]] = one.pk
            self._later += [(model, field, one.pk, target, old) for field, target, old in later]

    def _make(self, model: type[Model], fields: list[Any], row: list[Any]) -> tuple[Any, list[tuple[str, str, Any]]]:
        values: dict[str, Any] = {}
        later = []
        for field, value in zip(fields[1:], row[1:], strict=True):
            if isinstance(field, ForeignKey) and value is not None:
                target = field.related_model._meta.label
                if value in self.numbers.get(target, {}):
                    values[field.attname] = self.numbers[target][value]
                elif field.null:
                    later.append((field.attname, target, value))
                else:
                    raise ValueError(f"the {target} {value} is missing")
            else:
                values[field.attname] = self._renamed(model._meta.label, field.name, field.to_python(value))
        for ours, (name, make) in NEW_KEYS.items():
            if ours._meta.label == model._meta.label:
                values[name] = make()
        return model(**values), later

    def _renamed(self, label: str, name: str, value: Any) -> Any:
        """A value with new numbers of runs in names of engines and of files."""
        if label == MetricValue._meta.label and name == "estimator":
            return self._rename_engines(value)
        return rename_key(value, self.numbers) if isinstance(value, str) and value.startswith("derived/") else value

    def _rename_engines(self, text: str) -> str:
        runs = self.numbers.get(EvaluationRun._meta.label, {})
        return TRAINED.sub(lambda found: f"{found[1]}{runs.get(int(found[2]), found[2])}", text)

    def _add_pairs(self, table: str, many: str, rows: list[list[Any]]) -> None:
        model = self.models[table]
        field: Any = model._meta.get_field(many)
        ours, theirs = self.numbers.get(table, {}), self.numbers.get(field.related_model._meta.label, {})
        through = field.remote_field.through
        ids = field.m2m_column_name(), field.m2m_reverse_name()
        pairs = (through(**dict(zip(ids, (ours[one], theirs[other]), strict=True))) for one, other in rows)
        through._base_manager.bulk_create(pairs, batch_size=ROWS_AT_ONCE, ignore_conflicts=True)

    def _fill_later(self) -> None:
        for model, field, pk, target, old in self._later:
            if (number := self.numbers.get(target, {}).get(old)) is not None:
                model._base_manager.filter(pk=pk).update(**{field: number})

    def _renumber(self) -> None:
        """Write new numbers into the JSON fields of what was added, and into names of engines."""
        of_anonymizations = {run.job_id for run in self._new(AnonymizationRun)}
        for run in self._new(EvaluationRun):
            parameters = json.loads(self._rename_engines(json.dumps(run.parameters)))
            run.engine, run.parameters = self._rename_engines(run.engine), self._numbered(EvaluationRun, parameters)
            run.save(update_fields=["engine", "parameters"])
        teams = self.numbers.get(Team._meta.label, {})
        for job in self._new(Job):
            more: dict[str, type[Model]] = {"run": AnonymizationRun} if job.pk in of_anonymizations else {}
            job.parameters = self._numbered(Job, job.parameters, **more)
            job.team = teams.get(job.team, 0)
            job.engine, job.title = self._rename_engines(job.engine), self._rename_engines(job.title)
            job.save(update_fields=["parameters", "team", "engine", "title"])

    def _new(self, model: type[Model]) -> Iterator[Any]:
        """What was added to a table."""
        keys = list(self.numbers.get(model._meta.label, {}).values())
        for start in range(0, len(keys), ROWS_AT_ONCE):
            yield from model._base_manager.filter(pk__in=keys[start : start + ROWS_AT_ONCE])

    def _numbered(self, model: type[Model], parameters: dict[str, Any], **more: type[Model]) -> dict[str, Any]:
        changed = dict(parameters)
        for name, target in (NUMBERS[model] | more).items():
            numbers = self.numbers.get(target._meta.label, {})
            old = changed.get(name)
            if isinstance(old, list):
                changed[name] = [numbers[one] for one in old if one in numbers]
            elif old is not None:
                changed[name] = numbers.get(old)
        return changed


def rename_key(key: str, numbers: Numbers) -> str:
    """The name of a stored file with the new number of the run in whose folder it lies."""
    found = OF_RUN.match(key)
    if found is None:
        return key
    new = numbers.get(EvaluationRun._meta.label, {}).get(int(found[2]))
    return key if new is None else f"{found[1]}/{new}/{key[found.end() :]}"
