"""A CSV manifest: one line per utterance, audio named relative to the manifest's folder.

Required columns: utterance_id, speaker, gender, transcript, path. Optional: corpus, data_set, role
(enrolment, trial or training), duration_s, licence, synthetic (yes or no). Other columns are
ignored with a note. Where a corpus gives no roles its utterances are split (`split_into_sets`).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from common.csv_rows import CsvText, read_csv, to_number
from common.errors import InputError
from common.file_names import is_dropping, plain_name
from common.folders import audio_files, is_file
from common.problems import ProblemList
from common.text_files import read_text_file
from portal.intake.corpora.data_sets import data_set, finish_draft, split_into_sets
from portal.intake.corpora.draft import (
    CorpusDraft,
    DraftDataSet,
    DraftUtterance,
    FilePlace,
    Gender,
    Layout,
    Role,
    SourceRow,
    check_rows,
    empty_draft,
    note_stray_files,
)

REQUIRED = ("utterance_id", "speaker", "gender", "transcript", "path")
OPTIONAL = ("corpus", "data_set", "role", "duration_s", "licence", "synthetic")
SHAPE = f"a manifest (utterances.csv with the columns {', '.join(REQUIRED)})"
USUAL_NAMES = ("utterances.csv", "manifest.csv")
_WORDS: Mapping[Role, str] = {
    "enrolment": "enrolment enrollment enrolls enroll",
    "trial": "trial trials",
    "training": "training train",
}
_MARKS: Mapping[str, Role] = {"_enrol": "enrolment", "_trial": "trial", "_train": "training"}
_ROLES = {word: role for role, words in _WORDS.items() for word in words.split()}
_TRUTHS = {"": False, "no": False, "false": False, "0": False, "yes": True, "true": True, "1": True}

Line = tuple[FilePlace, Mapping[str, str]]


def find_manifest(folder: Path) -> Path | None:
    """``utterances.csv``, else ``manifest.csv``, else the only CSV file of the folder."""
    for name in USUAL_NAMES:
        if (folder / name).is_file():
            return folder / name
    others = sorted(path for path in folder.glob("*.csv") if is_file(path) and not is_dropping(path.name))
    return others[0] if len(others) == 1 else None


def read_manifest(folder: Path, *, enrolment_share: float) -> CorpusDraft:
    """Read the manifest of `folder` without opening any audio."""
    path = find_manifest(folder)
    if path is None:
        problem = FilePlace(".").problem("no-manifest", shape=SHAPE)
        return empty_draft(Layout.MANIFEST, (problem,))
    problems = ProblemList()
    lines = _read_lines(path, problems)
    audio = {plain_name(file): file for file in audio_files(folder)} if lines else {}
    rows = [_row(folder, audio, line, problems) for line in lines]
    if lines:
        note_stray_files(sorted(audio.keys() - {row.file for row in rows}), FilePlace(path.name), problems)
    checked = check_rows(rows, problems)
    genders = {speaker.name: speaker.gender for speaker in checked[0]}
    data_sets = _data_sets(_corpus_name(folder), lines, checked[1], genders, enrolment_share, problems)
    licences = sorted({licence for _, line in lines if (licence := line["licence"])})
    synthetic = [_is_synthetic(place, line["synthetic"], problems) for place, line in lines]
    return finish_draft(
        Layout.MANIFEST,
        checked,
        data_sets,
        listing=FilePlace(path.name),
        licence="; ".join(licences),
        problems=problems,
        synthetic=any(synthetic),
    )


def _read_lines(path: Path, problems: ProblemList) -> list[Line]:
    """Return the data lines with every known column (empty where it is not given), stripped."""
    text, text_problems = read_text_file(path)
    problems.keep(text_problems)
    lines: list[Line] = []
    header: list[str] | None = None
    table = read_csv(text, lambda name: name.lower() in {*REQUIRED, *OPTIONAL})
    for place, fields in _records(path.name, table, problems):
        if header is None:
            header = [field.strip().lower() for field in fields]
            if not _check_header(place, header, problems):
                return []
        elif len(fields) != len(header):
            problems.add(place.problem("malformed-line/fields", expected=len(header), found=len(fields)))
        else:
            values = dict.fromkeys(OPTIONAL, "")
            values.update(zip(header, (field.strip() for field in fields), strict=True))
            values["duration_s"] = to_number(values["duration_s"], table.delimiter)
            lines.append((place, values))
    if not lines and not text_problems:
        problems.add(FilePlace(path.name).problem("empty-file"))
    return lines


def _records(name: str, table: CsvText, problems: ProblemList) -> Iterator[tuple[FilePlace, list[str]]]:
    """Yield the table's rows, each with the line it begins in; blank lines are left out."""
    try:
        for line, fields in table.rows():
            yield FilePlace(name, line), fields
    except InputError as error:
        problems.add(FilePlace(name, error.line).problem("malformed-line/csv", error=error))


def _check_header(place: FilePlace, header: Sequence[str], problems: ProblemList) -> bool:
    missing = [column for column in REQUIRED if column not in header]
    twice = sorted({column for column in header if header.count(column) > 1})
    if missing:
        columns = {"columns": ", ".join(REQUIRED), "header": ", ".join(header)[:80]}
        problems.add(place.problem("missing-column", missing=", ".join(missing), **columns))
    if twice:
        problems.add(place.problem("repeated-column", columns=", ".join(twice)))
    unknown = [column for column in header if column not in (*REQUIRED, *OPTIONAL)]
    if unknown:
        known = ", ".join((*REQUIRED, *OPTIONAL))
        problems.add(place.problem("unknown-column", columns=known, unknown=", ".join(unknown)))
    return not missing and not twice


def _row(folder: Path, audio: Mapping[str, str], line: Line, problems: ProblemList) -> SourceRow:
    place, values = line
    stated = values["path"]
    found: Path | None = None
    told: frozenset[str] = frozenset()
    if stated and _leaves_folder(stated):
        problems.add(place.problem("path-outside", path=stated))
        told = frozenset({"audio"})
    elif stated in audio:
        found = folder / audio[stated]
    elif stated and is_file(folder / stated):
        found = folder / stated
    named = (values["utterance_id"], values["speaker"], values["gender"], values["transcript"])
    duration_s = _duration(place, values["duration_s"], problems)
    return SourceRow(*named, found, stated, place, place, place, duration_s, told)


def _leaves_folder(stated: str) -> bool:
    path = PurePosixPath(stated)
    is_of_windows = "\\" in stated or bool(PureWindowsPath(stated).drive)
    return is_of_windows or "://" in stated or path.is_absolute() or ".." in path.parts


def _duration(place: FilePlace, written: str, problems: ProblemList) -> float | None:
    if not written:
        return None
    try:
        seconds = float(written)
    except ValueError:
        seconds = math.nan
    if math.isfinite(seconds) and seconds > 0:
        return seconds
    problems.add(place.problem("wrong-duration", written=written))
    return None


def _is_synthetic(place: FilePlace, written: str, problems: ProblemList) -> bool:
    if written.lower() not in _TRUTHS:
        problems.add(place.problem("unknown-word", written=written))
        return True
    return _TRUTHS[written.lower()]


def _corpus_name(folder: Path) -> str:
    """Return the folder's name, fit to begin the names of data sets."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", folder.resolve().name).strip("-")[:60] or "corpus"


def _data_sets(
    folder_name: str,
    lines: Sequence[Line],
    utterances: Sequence[DraftUtterance],
    genders: Mapping[str, Gender],
    enrolment_share: float,
    problems: ProblemList,
) -> list[DraftDataSet]:
    by_name = {each.name: each for each in utterances}
    members: dict[str, dict[str, Line]] = defaultdict(dict)
    for line in lines:
        values = line[1]
        if values["utterance_id"]:
            members[values["corpus"] or folder_name].setdefault(values["utterance_id"], line)
    sets: list[DraftDataSet] = []
    roles: dict[str, tuple[Role, FilePlace]] = {}
    for corpus in sorted(members):
        given = [line for line in members[corpus].values() if line[1]["role"] or line[1]["data_set"]]
        if given:
            sets += _given_sets(corpus, list(members[corpus].values()), genders, roles, problems)
        else:
            here = [by_name[name] for name in sorted(members[corpus])]
            sets += split_into_sets(corpus, here, genders, enrolment_share=enrolment_share)
    return _one_of_each_name(sets, roles, problems)


def _one_of_each_name(
    sets: Sequence[DraftDataSet], roles: Mapping[str, tuple[Role, FilePlace]], problems: ProblemList
) -> list[DraftDataSet]:
    """A data set may have utterances of several corpora."""
    merged: dict[str, DraftDataSet] = {}
    for each in sets:
        before = merged.setdefault(each.name, each)
        if before.role != each.role:  # one was split off, the other has its role from the manifest
            both = {"data_set": each.name, "role": each.role, "other": before.role}
            problems.add(roles[each.name][1].problem("contradicting-role/split", **both))
        elif before is not each:
            merged[each.name] = data_set(each.name, each.role, {*before.utterances, *each.utterances})
    return list(merged.values())


def _given_sets(
    corpus: str,
    lines: Sequence[Line],
    genders: Mapping[str, Gender],
    roles: dict[str, tuple[Role, FilePlace]],
    problems: ProblemList,
) -> list[DraftDataSet]:
    """Sets from the columns data_set and role; one of the two is enough, if it is always given.

    A row without a usable role, and one whose speaker has no usable gender, is in no set.

    Args:
        roles: of the data sets that other corpora gave, with where; those of this corpus are added.
    """
    names: dict[str, list[str]] = defaultdict(list)
    for place, values in lines:
        role = _role(place, values, problems)
        gender = genders.get(values["speaker"])
        if role is None or gender is None:
            continue
        name = values["data_set"] or _usual_name(corpus, role, gender)
        first_role, first_place = roles.setdefault(name, (role, place))
        if role != first_role:
            both = {"data_set": name, "role": role, "other": first_role, "place": first_place}
            problems.add(place.problem("contradicting-role/line", **both))
        names[name].append(values["utterance_id"])
    return [data_set(name, roles[name][0], names[name]) for name in sorted(names)]


def _role(place: FilePlace, values: Mapping[str, str], problems: ProblemList) -> Role | None:
    written = values["role"].lower()
    guessed = (role for mark, role in _MARKS.items() if mark in values["data_set"].lower())
    role = _ROLES.get(written) if written else next(guessed, None)
    if role is None:
        problems.add(place.problem("unknown-role", found=f"“{values['role']}”" if written else "none"))
    return role


def _usual_name(corpus: str, role: Role, gender: Gender) -> str:
    endings = {"enrolment": "enrolls", "training": "train"}
    return f"{corpus}_{endings.get(role) or f'trials_{gender}'}"
