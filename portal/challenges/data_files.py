"""The files of an edition that teams download: made once by a job, streamed ever after.

Of each data set that the edition asks for: its recordings as a zip, its lists as a Kaldi directory, its trials, and its
utterances with their lengths. The zip of recordings is not stored; its list is, and gives the same bytes always
(`common.stored_zip`). What labels teams get follows from who evaluates (`gives_transcripts`).
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, cast

from django.core.files.storage import default_storage
from django.db import transaction

from common.progress import Progress
from common.stored_zip import CHUNK_BYTES, ZipMember, count_bytes, stored_zip
from common.tables import csv_lines
from portal.challenges.models import DataFile, DataSet, Edition, Role, TrialList, Utterance
from portal.challenges.selectors import expected_sets, find_trials
from portal.core.storage import store_bytes

Kind = DataFile.Kind


@dataclass(frozen=True)
class Made:
    """A file that was made, and not yet written to the database."""

    data_set: DataSet
    kind: Kind
    name: str
    bytes: int
    sha256: str
    key: str


def gives_transcripts(edition: Edition, data_set: DataSet) -> bool:
    """Return whether teams get the words of a data set: where they evaluate themselves, and of what the portal does not
    test.

    Speakers and trials they get of every set: anonymisation by speaker needs to know who speaks.
    """
    is_tested = data_set.role != Role.TRAINING and data_set.split not in {"dev", "train"}
    return edition.recipe.evaluation.by_teams or not is_tested


def make_data_files(edition: Edition, progress: Progress) -> list[Made]:
    """Make the files of an edition; what was made before of the same recordings is not read again.

    Args:
        progress: is told stage, how many recordings were read, and how many there are.
    """
    sets = expected_sets(edition)
    total = Utterance.objects.filter(data_sets__in=sets).exclude(audio="").count()
    made: list[Made] = []
    done = 0
    for data_set in sets:
        rows = list(data_set.utterances.select_related("speaker").order_by("name"))
        heard = [one for one in rows if one.audio]
        if heard:
            made.append(_speech(data_set, heard, partial(_tell, progress, done, total)))
            done += len(heard)
        trials = _trials(data_set, sets)
        made.append(_kaldi(edition, data_set, rows, trials))
        for name, text in trials.items():
            made.append(_plain(data_set, Kind.TRIALS, f"{data_set.name}-{name}.txt", text.encode()))
        made.append(_plain(data_set, Kind.EXPECTED, f"{data_set.name}-expected.csv", _expected(rows)))
    return made


def _tell(progress: Progress, before: int, total: int, read: int) -> None:
    progress("Reading the recordings", before + read, total)


@transaction.atomic
def keep_data_files(edition: Edition, made: list[Made]) -> None:
    """Put the files in the place of those that there were."""
    edition.data_files.all().delete()
    DataFile.objects.bulk_create(
        DataFile(
            edition=edition,
            data_set=one.data_set,
            kind=one.kind,
            name=one.name,
            bytes=one.bytes,
            sha256=one.sha256,
            key=one.key,
        )
        for one in made
    )


def read_data_file(file: DataFile, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` up to `stop`, in pieces; memory does not grow with the file."""
    if file.kind == Kind.SPEECH:
        yield from stored_zip(lambda: _lines(file.key), _open, start, stop)
        return
    with default_storage.open(file.key) as stream:
        stream.seek(start)
        while start < stop and (piece := stream.read(min(CHUNK_BYTES, stop - start))):
            start += len(piece)
            yield piece


def list_members(files: Iterable[DataFile]) -> Iterator[str]:
    """Yield the members of one archive with all recordings and lists of an edition, unpacked, as `ZipMember` lines."""
    for file in files:
        if file.kind == Kind.SPEECH:
            yield from _lines(file.key)
        elif file.kind == Kind.KALDI:  # it holds the trials, too
            with default_storage.open(file.key) as stream, zipfile.ZipFile(stream) as archive:
                for item in archive.infolist():
                    yield ZipMember(item.filename, f"{file.key}!{item.filename}", item.file_size, item.CRC).line()


def read_everything(files: Iterable[DataFile], start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes of the archive of `list_members` from `start` up to `stop`, in pieces."""
    return stored_zip(lambda: list_members(files), _open_member, start, stop)


def _open_member(key: str) -> BinaryIO:
    key, _, item = key.partition("!")
    if not item:
        return _open(key)
    with default_storage.open(key) as stream, zipfile.ZipFile(stream) as archive:
        return io.BytesIO(archive.read(item))


def _speech(data_set: DataSet, rows: list[Utterance], progress: Callable[[int], None]) -> Made:
    lines = []
    for number, row in enumerate(rows):
        progress(number)
        lines.append(_member(data_set, row).line())
    key = store_bytes("".join(lines).encode(), ".members")
    if (known := DataFile.objects.filter(kind=Kind.SPEECH, key=key).first()) is not None:
        return Made(data_set, Kind.SPEECH, f"{data_set.name}.zip", known.bytes, known.sha256, key)
    digest = hashlib.sha256()
    for piece in stored_zip(lambda: lines, _open):
        digest.update(piece)
        progress(len(rows))
    return Made(data_set, Kind.SPEECH, f"{data_set.name}.zip", count_bytes(lambda: lines), digest.hexdigest(), key)


def _member(data_set: DataSet, row: Utterance) -> ZipMember:
    """Return a recording as a member of its archive; its checksum is of the file as it is stored."""
    crc32 = size = 0
    with _open(row.audio) as stream:
        while piece := stream.read(CHUNK_BYTES):
            crc32, size = zlib.crc32(piece, crc32), size + len(piece)
    return ZipMember(_path(data_set, row), row.audio, size, crc32)


def _path(data_set: DataSet, row: Utterance) -> str:
    return f"{data_set.name}/wav/{row.name}{row.audio[row.audio.rfind('.') :]}"


def _kaldi(edition: Edition, data_set: DataSet, rows: list[Utterance], trials: dict[str, str]) -> Made:
    """Return the lists of a data set; paths in ``wav.scp`` begin with the name of the set, as in the archive of its
    speech."""
    genders = sorted({(row.speaker.name, row.speaker.gender) for row in rows})
    lists = {
        "wav.scp": [(row.name, _path(data_set, row)) for row in rows if row.audio],
        "utt2spk": [(row.name, row.speaker.name) for row in rows],
        "spk2gender": genders,
    }
    if gives_transcripts(edition, data_set) and any(row.transcript for row in rows):
        lists["text"] = [(row.name, row.transcript) for row in rows]
    texts = {name: "".join(f"{' '.join(pair).rstrip()}\n" for pair in pairs) for name, pairs in lists.items()}
    if data_set.role == Role.ENROLMENT:
        texts["enrolls"] = "".join(f"{row.name}\n" for row in rows)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (texts | trials).items():
            archive.writestr(zipfile.ZipInfo(f"{data_set.name}/{name}"), text, zipfile.ZIP_DEFLATED)
    return _plain(data_set, Kind.KALDI, f"{data_set.name}-kaldi.zip", content.getvalue())


def _trials(data_set: DataSet, sets: list[DataSet]) -> dict[str, str]:
    """Return the trial lists of a trial set by the name of their file: ``trials``, or one for each enrolment set."""
    lists = list(TrialList.objects.filter(trial_set=data_set, enrolment_set__in=sets).select_related("enrolment_set"))
    texts = {}
    for one in lists:
        name = "trials" if len(lists) == 1 else f"trials-{one.enrolment_set.name}"
        texts[name] = find_trials(data_set.corpus, data_set.name, one.enrolment_set.name) or ""
    return texts


def _expected(rows: list[Utterance]) -> bytes:
    lines = (("utterance", "samples", "rate_hz"), *((row.name, row.samples, row.rate_hz) for row in rows))
    return "".join(csv_lines(lines)).encode()


def _plain(data_set: DataSet, kind: Kind, name: str, content: bytes) -> Made:
    key = store_bytes(content, f".{name.rpartition('.')[2]}")
    return Made(data_set, kind, name, len(content), hashlib.sha256(content).hexdigest(), key)


def _lines(key: str) -> Iterator[str]:
    with default_storage.open(key) as stream:
        for line in stream:
            yield line.decode()


def _open(key: str) -> BinaryIO:
    return cast("BinaryIO", default_storage.open(key))
