"""Writes an edition into one folder, and adds the edition of such a folder to another portal.

The folder has ``edition.json`` (what it is), ``rows.jsonl.gz`` (`portal.operations.backup.edition_rows`),
``files.jsonl`` and ``content/ab/<sha256>``, as backups have it; ``edition.json`` is written last. Nothing of a folder
is read before all of it was compared with its hashes. Rows come in one transaction: all of them or none.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction

from common.atomic_write import write_atomically
from common.errors import CommandError
from common.hashes import compute_sha256
from common.problems import Problem
from common.progress import Progress
from evaluation.app.derived_data.receivers import FOLDERS
from evaluation.app.models import EvaluationRun
from evaluation.app.recognition.selectors import words_key
from evaluation.app.runs.kinds import RECOGNITION
from evaluation.protocols.recipes import RecipeError
from listening.app.models import Analysis, Study
from listening.app.results.inputs import DIGEST_LENGTH, Changed, changed_parts, compute_basis
from portal.challenges.models import Corpus, DataSet, Edition, Speaker, TrialList, Utterance
from portal.core import audit
from portal.core.one_state import read_one_state
from portal.core.removal import Rows, list_files, list_folder
from portal.core.storage import portal_files, read_stored, replace_named
from portal.core.version import code_version
from portal.jobs.models import ACTIVE_STATES
from portal.operations.backup.edition_rows import AUDIO, Numbers, RowReader, carried_rows, rename_key, write_rows
from portal.operations.backup.folder import FILES, ContentFolder, Stored, copy_hashed, read_list, write_list
from portal.submissions.models import SubmittedFile, System

FORMAT = 1  # another one with each migration that changes what stored rows mean; new columns have their default
SUMMARY, ROWS = "edition.json", "rows.jsonl.gz"
STANDING = (Study.State.PREPARING, Study.State.OPEN, Study.State.PAUSED)
SHOWN = 5
AGAIN = "Export the edition again, or copy the folder again."


@dataclass
class Exported:
    """What went: `rows` by table; `problems` are files that the portal should have and has not."""

    rows: dict[str, int] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0
    problems: list[Problem] = field(default_factory=list)


# Export -------------------------------------------------------------------------------------------


def export_edition(name: str, place: Path, *, with_audio: bool, now: datetime, progress: Progress) -> Exported:
    """Write an edition into a new folder; with problems the folder stays incomplete, and no portal imports it.

    Raises:
        CommandError: there is no such edition, it is in use, or the folder is not empty.
    """
    edition = Edition.objects.filter(name=name).first()
    if edition is None:
        names = ", ".join(Edition.objects.order_by("name").values_list("name", flat=True)) or "none"
        raise CommandError(f"There is no edition {name}. Editions: {names}.")
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise CommandError(f"{place}: expected an empty folder or none, found other files. Name another.")
    folder, done = ContentFolder(place), Exported()
    with read_one_state():
        rows = carried_rows(edition, with_audio=with_audio)
        _require_rest(edition, rows)
        folder.content.mkdir(mode=0o700, parents=True)
        place.chmod(0o700)
        keys = sorted(set(_list_keys(rows, with_audio=with_audio)))
        with gzip.open(place / ROWS, "wt", encoding="utf-8", compresslevel=6) as file:
            done.rows = write_rows(file, rows, with_audio=with_audio, progress=progress)
        changes = {
            str(one.pk): list(changed_parts(one.basis, compute_basis(one.study)))
            for one in Analysis.objects.filter(study__edition=edition).select_related("study")
        }
    stored = []
    for count, key in enumerate(keys):
        progress("files", count, len(keys))
        try:
            with default_storage.open(key) as stream:
                sha256, size, _ = folder.keep(cast("BinaryIO", stream))
        except FileNotFoundError:
            remedy = "Run verify, and restore the file from a backup, or export without audio."
            done.problems.append(Problem("missing-file", f"files/{key}", "a file that a row names", "none", remedy))
            continue
        stored.append(Stored(key, sha256, size, 0))
    progress("files", len(keys), len(keys))
    done.files, done.bytes = len(stored), sum(one.size for one in stored)
    if done.problems:
        return done
    write_list(place / FILES, stored)
    summary = {
        "format": FORMAT,
        "edition": {"name": edition.name, "title": edition.title},
        "exported_at": now.astimezone(UTC).isoformat(timespec="seconds"),
        "version": code_version(),
        "with_audio": with_audio,
        "rows": {"sha256": compute_sha256(place / ROWS), "counts": done.rows},
        "files": {"sha256": compute_sha256(place / FILES), "count": done.files, "bytes": done.bytes},
        "changed_since_analysis": changes,
    }
    write_atomically(place / SUMMARY, json.dumps(summary, ensure_ascii=False, indent=2).encode())
    return done


def _require_rest(edition: Edition, rows: Rows) -> None:
    """That nobody works on it: half of a job or of a session means nothing in another portal."""
    if open_study := edition.studies.filter(state__in=STANDING).order_by("name").first():
        raise CommandError(f"The listening test {open_study.name} is {open_study.state}. Close it first.")
    active = next(one for model, one in rows.items() if model._meta.label == "jobs.Job")
    if count := active.filter(state__in=ACTIVE_STATES).count():
        words = "One job of the edition is" if count == 1 else f"{count:,} jobs of the edition are"
        raise CommandError(f"{words} waiting or running. Wait, or cancel.")


def _list_keys(rows: Rows, *, with_audio: bool) -> Iterator[str]:
    if with_audio:
        yield from list_files(rows)
    else:
        yield from list_files({model: some for model, some in rows.items() if model not in AUDIO})
    for pk in rows[EvaluationRun].values_list("pk", flat=True) if EvaluationRun in rows else ():
        for one in FOLDERS:
            yield from list_folder(f"{one}/{pk}")


# Import -------------------------------------------------------------------------------------------


def import_edition(place: Path, *, organizer: Any, progress: Progress) -> tuple[Edition | None, list[Problem]]:
    """Add the edition of a folder; where anything of the folder is missing or changed, only these problems.

    Args:
        organizer: the account that organizes it here.

    Raises:
        CommandError: it is no such folder, or names of it are taken here.
    """
    summary = _read_summary(place)
    folder = ContentFolder(place)
    if problems := _check_folder(folder, summary, progress):
        return None, problems
    stored = list(read_list(place / FILES, remedy=AGAIN))
    name, corpora = summary["edition"]["name"], _Corpora()
    with gzip.open(place / ROWS, "rt", encoding="utf-8") as lines:
        corpora.read(lines)
    _require_free_names(name, corpora.names)
    of_runs = [one for one in stored if rename_key(one.path, _ALL_RUNS) != one.path]
    ours = set(map(id, of_runs))
    for count, one in enumerate(stored):
        progress("files", count, len(stored))
        if id(one) not in ours:
            with folder.path_of(one.sha256).open("rb") as stream:
                portal_files.keep(one.path, File(stream))
    try:
        with transaction.atomic(), gzip.open(place / ROWS, "rt", encoding="utf-8") as lines:
            here = corpora.find_here()
            reader = RowReader(here)
            counts = summary["rows"]["counts"]
            if (found := reader.read(lines, sum(counts.values()), progress)) != counts:
                raise CommandError(f"{place / ROWS}: expected {counts}, found {found}. {AGAIN}")
            edition = Edition.objects.get(name=name)
            new = set(reader.numbers[Corpus._meta.label].values()) - set(here[Corpus._meta.label].values())
            Corpus.objects.filter(pk__in=new).update(created_by=organizer)
            _settle(edition, reader.numbers, summary, organizer)
            _store_files_of_runs(folder, of_runs, reader.numbers)
            audit.record("edition.imported", edition, actor=organizer, version=summary["version"])
    except (EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"{place / ROWS}: expected rows of an edition, found “{error}”. {AGAIN}") from error
    return edition, []


class _EveryRun(dict[Any, Any]):
    """Gives each run another number, which tells files of runs from others."""

    def get(self, key: Any, default: Any = None) -> Any:  # noqa: ARG002
        return -1


_ALL_RUNS: Numbers = {EvaluationRun._meta.label: _EveryRun()}


def _read_summary(place: Path) -> dict[str, Any]:
    file = place / SUMMARY
    try:
        summary: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        found = summary["format"]
        if found == FORMAT:
            _require_whole(summary)
    except FileNotFoundError as error:
        raise CommandError(
            f"{place}: expected the folder of an exported edition, found no {SUMMARY}. An export that did not end is "
            "repeated into a new folder."
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{file}: expected a description of an edition, found another content. {AGAIN}") from error
    if found != FORMAT:
        raise CommandError(
            f"{file}: expected format {FORMAT}, found {found!r} of portal version {summary.get('version', 'unknown')}. "
            "Import it with that version, or export it again with this one."
        )
    return summary


def _require_whole(summary: dict[str, Any]) -> None:
    if not isinstance(summary["edition"]["name"], str):
        raise TypeError
    for name in ("counts", "sha256"):
        summary["rows"][name]
    summary["files"]["sha256"], summary["version"], summary["changed_since_analysis"].items()


def _check_folder(folder: ContentFolder, summary: dict[str, Any], progress: Progress) -> list[Problem]:
    """Every file of the folder that is missing or not as it was exported."""
    problems: list[Problem] = []
    for name, part in ((ROWS, "rows"), (FILES, "files")):
        path = folder.place / name
        found = compute_sha256(path) if path.is_file() else "none"
        if found != summary[part]["sha256"]:
            problems.append(_changed(name, summary[part]["sha256"], found))
    if problems:
        return problems
    stored = list(read_list(folder.place / FILES, remedy=AGAIN))
    for count, one in enumerate(stored):
        progress("comparing files", count, len(stored))
        root, *parts = PurePosixPath(one.path).parts
        if root not in {"content", "derived"} or not parts or ".." in parts:
            problems.append(Problem("bad-name", one.path, "a name below content/ or derived/", "another", AGAIN))
            continue
        try:
            with folder.path_of(one.sha256).open("rb") as stream:
                sha256, size = copy_hashed(stream)
        except FileNotFoundError:
            problems.append(_changed(str(folder.path_of(one.sha256).relative_to(folder.place)), one.sha256, "none"))
            continue
        if (sha256, size) != (one.sha256, one.size):
            problems.append(_changed(str(folder.path_of(one.sha256).relative_to(folder.place)), one.sha256, sha256))
    progress("comparing files", len(stored), len(stored))
    return problems


def _changed(name: str, expected: str, found: str) -> Problem:
    code = "missing-file" if found == "none" else "changed-file"
    return Problem(code, name, f"content {expected}", found if found == "none" else f"content {found}", AGAIN)


def _require_free_names(name: str, names: dict[str, list[str]]) -> None:
    """That nothing here has a name of what comes."""
    if Edition.objects.filter(name=name).exists():
        raise CommandError(f"There is an edition {name} here already. Delete it, or give it another name, first.")
    for label, model, word in (("submissions.System", System, "system"), ("listening.Study", Study, "listening test")):
        taken = sorted(model._default_manager.filter(name__in=names[label]).values_list("name", flat=True))
        if taken:
            more = f" and {len(taken) - SHOWN:,} more" if len(taken) > SHOWN else ""
            raise CommandError(
                f"There is a {word} of this name here already: {', '.join(taken[:SHOWN])}{more}. Rename or delete it "
                "first."
            )


class _Corpora:
    """The corpora of a folder, compared with those of the same names here; `names`: of systems and listening tests."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {}
        self.names: dict[str, list[str]] = {"submissions.System": [], "listening.Study": []}

    def read(self, lines: Any) -> None:
        wanted = {model._meta.label for model in (Corpus, Speaker, Utterance, DataSet, TrialList)}
        wanted.add(f"{DataSet._meta.label}.utterances")
        label, columns = "", []
        for line in lines:
            if line.startswith("{"):
                content = json.loads(line)
                label, columns = content["table"], content["columns"]
            elif label in wanted:
                self.tables.setdefault(label, []).append(dict(zip(columns, json.loads(line), strict=True)))
            elif label in self.names:
                self.names[label].append(json.loads(line)[columns.index("name")])

    def _rows(self, model: Any) -> list[dict[str, Any]]:
        return self.tables.get(model._meta.label, [])

    def find_here(self) -> Numbers:
        """By table the numbers here of rows of the folder, of the corpora that are here already.

        Raises:
            CommandError: a corpus here has this name and other content.
        """
        numbers: Numbers = {model._meta.label: {} for model in (Corpus, Speaker, Utterance, DataSet, TrialList)}
        for row in self._rows(Corpus):
            if here := Corpus.objects.filter(name=row["name"]).first():
                numbers[Corpus._meta.label][row["id"]] = here.pk
                if differences := self._compare(row["id"], here, numbers):
                    more = f" and {len(differences) - SHOWN:,} more" if len(differences) > SHOWN else ""
                    raise CommandError(
                        f"The corpus {here.name} here is another one. It differs in: "
                        f"{', '.join(differences[:SHOWN])}{more}. Rename the corpus here first."
                    )
        return numbers

    def _compare(self, old: int, here: Corpus, numbers: Numbers) -> list[str]:
        """What the corpus here lacks, or has otherwise; fills `numbers`."""
        differences: list[str] = []

        def settle(model: Any, rows: Any, known: Any, key: Any, facts: Any, word: str) -> None:
            for row in rows:
                found = known.get(key(row))
                if found is None or not facts(row, found):
                    differences.append(f"{word} {key(row)}")
                else:
                    numbers[model._meta.label][row["id"]] = found.pk

        def of_corpus(model: Any) -> list[dict[str, Any]]:
            return [row for row in self._rows(model) if row["corpus_id"] == old]

        def by_name(row: Any) -> Any:
            return row["name"]

        speakers = {one.name: one for one in here.speakers.all()}
        settle(
            *(Speaker, of_corpus(Speaker), speakers, by_name, lambda row, one: row["gender"] == one.gender, "speaker")
        )
        utterances = {one.name: one for one in here.utterances.all()}
        people = numbers[Speaker._meta.label]

        def is_same(row: Any, one: Any) -> bool:
            is_heard_alike = not row["audio"] or not one.audio or row["audio"] == one.audio
            return (
                is_heard_alike
                and people.get(row["speaker_id"]) == one.speaker_id
                and row["transcript"] == one.transcript
            )

        settle(*(Utterance, of_corpus(Utterance), utterances, by_name, is_same, "utterance"))
        members: dict[int, set[int]] = {}
        for pair in self.tables.get(f"{DataSet._meta.label}.utterances", []):
            members.setdefault(pair["from"], set()).add(numbers[Utterance._meta.label].get(pair["to"], -1))
        sets = {one.name: one for one in here.data_sets.all()}

        def has_same(row: Any, one: Any) -> bool:
            of_set = set(one.utterances.order_by().values_list("pk", flat=True))
            return (row["role"], row["split"]) == (one.role, one.split) and members.get(row["id"], set()) == of_set

        settle(*(DataSet, of_corpus(DataSet), sets, by_name, has_same, "data set"))
        of_sets = numbers[DataSet._meta.label]
        lists = {
            (one.trial_set_id, one.enrolment_set_id): one for one in TrialList.objects.filter(trial_set__corpus=here)
        }
        ours = [row for row in self._rows(TrialList) if row["trial_set_id"] in of_sets]
        settle(
            TrialList,
            ours,
            lists,
            lambda row: (of_sets[row["trial_set_id"]], of_sets.get(row["enrolment_set_id"])),
            lambda row, one: (
                (row["target_count"], row["nontarget_count"], row["file"])
                == (one.target_count, one.nontarget_count, one.file)
            ),
            "trial list",
        )
        return differences


def _settle(edition: Edition, numbers: Numbers, summary: dict[str, Any], organizer: Any) -> None:
    """Give the edition its organizer, and let analyses know what has changed since, as they did before."""
    edition.organizers.add(organizer)
    try:
        edition.recipe  # noqa: B018
    except RecipeError as error:
        raise CommandError(f"The recipe of the edition cannot be read by this version: {error}") from error
    analyses = numbers.get(Analysis._meta.label, {})
    for old, changed in summary["changed_since_analysis"].items():
        analysis = Analysis.objects.select_related("study").get(pk=analyses[int(old)])
        now = compute_basis(analysis.study)
        starts = range(0, len(Changed) * DIGEST_LENGTH, DIGEST_LENGTH)
        parts = [
            (analysis.basis if part in changed else now)[start : start + DIGEST_LENGTH]
            for part, start in zip(Changed, starts, strict=True)
        ]
        Analysis.objects.filter(pk=analysis.pk).update(basis="".join(parts))


def _store_files_of_runs(folder: ContentFolder, of_runs: list[Stored], numbers: Numbers) -> None:
    """Put what runs keep in folders of their own where the new numbers of these say."""
    for one in of_runs:
        replace_named(rename_key(one.path, numbers), folder.path_of(one.sha256).read_bytes())
    files = numbers.get(SubmittedFile._meta.label, {})
    runs = numbers.get(EvaluationRun._meta.label, {})
    for run in EvaluationRun.objects.filter(pk__in=list(runs.values()), kind=RECOGNITION.kind):
        for name in run.parameters.get("data_sets", []):
            if (content := read_stored(words_key(run.pk, name))) is not None:
                rows = [row | {"file": files.get(row["file"])} for row in json.loads(content)]
                replace_named(words_key(run.pk, name), json.dumps(rows, ensure_ascii=False).encode())
