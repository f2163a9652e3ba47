"""A CSV manifest: one line per utterance, audio named relative to the manifest's folder.

Required columns: utterance_id, speaker, gender, transcript, path. Optional: corpus, data_set, role
(enrolment, trial or training), duration_s, licence, synthetic (yes or no). Other columns are
ignored with a note. Where a corpus gives no roles its utterances are split (`split_into_sets`).
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Severity
from evaluation.formats.text_files import read_text_file
from portal.challenges.readers.data_sets import data_set, finish_draft, split_into_sets
from portal.challenges.readers.draft import (
    CorpusDraft,
    DraftDataSet,
    DraftUtterance,
    Gender,
    Layout,
    Role,
    empty_draft,
)
from portal.challenges.readers.folders import audio_files, is_file
from portal.challenges.readers.rows import (
    Place,
    SourceRow,
    check_rows,
    note_stray_files,
)

REQUIRED = ("utterance_id", "speaker", "gender", "transcript", "path")
OPTIONAL = ("corpus", "data_set", "role", "duration_s", "licence", "synthetic")
SHAPE = f"a manifest (utterances.csv with the columns {', '.join(REQUIRED)})"
USUAL_NAMES = ("utterances.csv", "manifest.csv")
_ROLES: Mapping[str, Role] = {
    "enrolment": "enrolment",
    "enrollment": "enrolment",
    "enrolls": "enrolment",
    "enroll": "enrolment",
    "trial": "trial",
    "trials": "trial",
    "training": "training",
    "train": "training",
}
_TRUTHS = {"": False, "no": False, "false": False, "0": False, "yes": True, "true": True, "1": True}

Line = tuple[Place, Mapping[str, str]]


def find_manifest(folder: Path) -> Path | None:
    """``utterances.csv``, else ``manifest.csv``, else the only CSV file of the folder."""
    for name in USUAL_NAMES:
        if (folder / name).is_file():
            return folder / name
    others = sorted(filter(is_file, folder.glob("*.csv")))
    return others[0] if len(others) == 1 else None


def read_manifest(folder: Path, *, enrolment_share: float) -> CorpusDraft:
    """Read the manifest of `folder` without opening any audio."""
    path = find_manifest(folder)
    if path is None:
        problem = Place(".").problem("no-manifest", SHAPE, "none", "Add the file.")
        return empty_draft(Layout.MANIFEST, (problem,))
    problems = ProblemList()
    lines = _read_lines(path, problems)
    audio = set(audio_files(folder)) if lines else set()
    rows = [_row(folder, audio, line, problems) for line in lines]
    if lines:
        note_stray_files(sorted(audio - {row.file for row in rows}), Place(path.name), problems)
    checked = check_rows(rows, problems)
    genders = {speaker.name: speaker.gender for speaker in checked[0]}
    data_sets = _data_sets(_corpus_name(folder), lines, checked[1], genders, enrolment_share, problems)
    licences = sorted({licence for _, line in lines if (licence := line["licence"])})
    synthetic = [_is_synthetic(place, line["synthetic"], problems) for place, line in lines]
    return finish_draft(
        Layout.MANIFEST,
        checked,
        data_sets,
        listing=Place(path.name),
        licence="; ".join(licences),
        problems=problems,
        synthetic=any(synthetic),
    )


def _read_lines(path: Path, problems: ProblemList) -> list[Line]:
    """The data lines with every known column (empty where it is not given), stripped."""
    text, faults = read_text_file(path)
    problems.keep(faults)
    lines: list[Line] = []
    header: list[str] | None = None
    for place, fields in _records(path.name, text, problems):
        if header is None:
            header = [field.strip().lower() for field in fields]
            if not _check_header(place, header, problems):
                return []
        elif len(fields) != len(header):
            expected, found = f"{len(header)} fields as in the heading", f"{len(fields)}"
            remedy = "Put a transcript that holds a comma into quotes."
            problems.add(place.problem("malformed-line", expected, found, remedy))
        else:
            values = dict.fromkeys(OPTIONAL, "")
            values.update(zip(header, (field.strip() for field in fields), strict=True))
            lines.append((place, values))
    if not lines and not faults:
        expected, remedy = "at least one utterance", "Fill the file."
        problems.add(Place(path.name).problem("empty-file", expected, "none", remedy))
    return lines


def _records(name: str, text: str, problems: ProblemList) -> Iterator[tuple[Place, list[str]]]:
    """The CSV's records, each with the line it begins in; blank lines are left out."""
    reader = csv.reader(io.StringIO(text), strict=True)
    begin = 1
    try:
        for fields in reader:
            if any(fields):
                yield Place(name, begin), fields
            begin = reader.line_num + 1
    except csv.Error as error:
        expected, remedy = "comma-separated values", "Close every quoted field."
        problems.add(Place(name, begin).problem("malformed-line", expected, f"{error}", remedy))


def _check_header(place: Place, header: Sequence[str], problems: ProblemList) -> bool:
    missing = [column for column in REQUIRED if column not in header]
    twice = sorted({column for column in header if header.count(column) > 1})
    if missing:
        expected = f"the columns {', '.join(REQUIRED)}"
        found = f"no {', '.join(missing)} among “{', '.join(header)[:80]}”"
        remedy = "Add the columns; fields are separated by commas."
        problems.add(place.problem("missing-column", expected, found, remedy))
    if twice:
        found = f"{', '.join(twice)} twice"
        remedy = "Remove one."
        problems.add(place.problem("repeated-column", "each column once", found, remedy))
    unknown = [column for column in header if column not in (*REQUIRED, *OPTIONAL)]
    if unknown:
        expected = f"only the columns {', '.join((*REQUIRED, *OPTIONAL))}"
        found = f"also {', '.join(unknown)}"
        remedy = "They were ignored; nothing to do."
        problems.add(place.problem("unknown-column", expected, found, remedy, Severity.NOTE))
    return not missing and not twice


def _row(folder: Path, audio: set[str], line: Line, problems: ProblemList) -> SourceRow:
    place, values = line
    stated = values["path"]
    found: Path | None = None
    told: frozenset[str] = frozenset()
    if stated and _leaves_folder(stated):
        expected = "a path below the manifest's folder"
        remedy = "Write it relative to that folder, with forward slashes."
        problems.add(place.problem("path-outside", expected, f"“{stated}”", remedy))
        told = frozenset({"audio"})
    elif stated in audio or (stated and is_file(folder / stated)):
        found = folder / stated
    return SourceRow(
        values["utterance_id"],
        values["speaker"],
        values["gender"],
        values["transcript"],
        found,
        stated,
        place,
        place,
        place,
        _duration(place, values["duration_s"], problems),
        told,
    )


def _leaves_folder(stated: str) -> bool:
    path = PurePosixPath(stated)
    return (
        path.is_absolute()
        or ".." in path.parts
        or "\\" in stated
        or "://" in stated
        or bool(PureWindowsPath(stated).drive)
    )


def _duration(place: Place, written: str, problems: ProblemList) -> float | None:
    if not written:
        return None
    try:
        seconds = float(written)
    except ValueError:
        seconds = math.nan
    if math.isfinite(seconds) and seconds > 0:
        return seconds
    remedy = "Correct the duration, or leave it empty."
    problems.add(place.problem("wrong-duration", "seconds above 0", f"“{written}”", remedy))
    return None


def _is_synthetic(place: Place, written: str, problems: ProblemList) -> bool:
    if written.lower() not in _TRUTHS:
        expected = "yes or no in the column synthetic"
        problems.add(place.problem("unknown-word", expected, f"“{written}”", "Write yes or no."))
        return True
    return _TRUTHS[written.lower()]


def _corpus_name(folder: Path) -> str:
    """The folder's name, fit to begin the names of data sets."""
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
    roles: dict[str, tuple[Role, Place]] = {}
    for corpus in sorted(members):
        given = [line for line in members[corpus].values() if line[1]["role"] or line[1]["data_set"]]
        if given:
            sets += _given_sets(corpus, list(members[corpus].values()), genders, roles, problems)
        else:
            here = [by_name[name] for name in sorted(members[corpus])]
            sets += split_into_sets(corpus, here, genders, enrolment_share=enrolment_share)
    return _one_of_each_name(sets, roles, problems)


def _one_of_each_name(
    sets: Sequence[DraftDataSet], roles: Mapping[str, tuple[Role, Place]], problems: ProblemList
) -> list[DraftDataSet]:
    """A data set may have utterances of several corpora."""
    merged: dict[str, DraftDataSet] = {}
    for each in sets:
        before = merged.setdefault(each.name, each)
        if before.role != each.role:  # one was split off, the other has its role from the manifest
            expected = f"one role for data set {each.name}"
            remedy = "Give the data set another name."
            place = roles[each.name][1]
            problems.add(place.problem("contradicting-role", expected, f"{each.role} and {before.role}", remedy))
        elif before is not each:
            merged[each.name] = data_set(each.name, each.role, {*before.utterances, *each.utterances})
    return list(merged.values())


def _given_sets(
    corpus: str,
    lines: Sequence[Line],
    genders: Mapping[str, Gender],
    roles: dict[str, tuple[Role, Place]],
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
            expected = f"one role for data set {name}"
            found = f"{role} after {first_role} in {first_place}"
            problems.add(place.problem("contradicting-role", expected, found, "Correct one of the two."))
        names[name].append(values["utterance_id"])
    return [data_set(name, roles[name][0], names[name]) for name in sorted(names)]


def _role(place: Place, values: Mapping[str, str], problems: ProblemList) -> Role | None:
    written = values["role"].lower()
    if written in _ROLES:
        return _ROLES[written]
    guesses = {"_enrol": "enrolment", "_trial": "trial", "_train": "training"}
    if not written:
        for mark, role in guesses.items():
            if mark in values["data_set"].lower():
                return _ROLES[role]
    expected = "the role enrolment, trial or training"
    found = f"“{values['role']}”" if written else "none"
    remedy = "Fill in the column role for every utterance of this corpus."
    problems.add(place.problem("unknown-role", expected, found, remedy))
    return None


def _usual_name(corpus: str, role: Role, gender: Gender) -> str:
    endings = {"enrolment": "enrolls", "training": "train"}
    return f"{corpus}_{endings.get(role) or f'trials_{gender}'}"
