"""Ratings of any laboratory from a CSV file: columns by usual names, tolerant in values, strict in structure.

**Any file** (`read_ratings`). Needed are the columns ``listener, task, system, rating``; all others are
optional. What a reader of the results has to know (which scale was found, what was left out) becomes a note of the
study, which travels with its inputs. Objective measures come from a CSV file too (`read_objective`).

**The form of the Voice Conversion Challenge 2020** is told by its header (`is_vcc2020`). Its voices are converted, not
anonymised. Names are ``<system>-<target speaker>_<source speaker>_<sentence>``, or ``ref-<target speaker>_<sentence>``.
Utterances are the part after the system, which all systems share; the speaker is the source speaker, or the one of the
reference. It has two tasks:

- Naturalness: ``quality``, one sample; unprotected speech is ``ref``, natural speech of the target speakers.
- Verifiability: ``similarity``, a sample against a natural reference of the target speaker. A pair is a *target* where
  the voice that the sample claims is the voice of the reference, a *nontarget* where it is not. Converted speech always
  claims the speaker of its reference, so such systems have targets only: no DET curve of their own, but means. Natural
  speech has both: ``ref`` against another recording of the same speaker is a target of the originals; unconverted
  speech of the source speaker against the target speaker (``team34_…``) is natural too, claims nobody else's voice, and
  becomes a nontarget of the originals, where its name tells two different speakers. That makes the sanity anchor of
  listening.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common.arrays import Flags, Floats, Texts
from common.errors import ProblemsError
from listening.analysis.reading.input_files import GREATEST_POSITION, GREATEST_RATING, check_part
from listening.analysis.reading.inputs import (
    ORIGINAL,
    SCORED,
    Inputs,
    ObjectiveRows,
    Ratings,
    Scale,
    StudyFacts,
)
from listening.analysis.reading.text_tables import (
    Source,
    TextTable,
    list_names,
    list_words,
    map_cells,
    parse_number,
    plain_header,
    quote,
    read_text,
    split_table,
)
from listening.analysis.tables import DICTIONARY
from listening.questions import FEWEST_POINTS, FIRST_PRESET, MOST_POINTS, load_preset

NEEDED = tuple(name for name, one in DICTIONARY["ratings"].items() if one.get("is_needed"))
ASKED = {one.key: one for one in load_preset(FIRST_PRESET).questions}
RATED = tuple(ASKED)
YES, NO = ("1", "true", "yes", "y", "1.0"), ("0", "false", "no", "n", "0.0")
NO_RATING = ("", "na", "n/a", "nan", "none", "null", "-")
_NAMES = list_names("ratings")


def find_usual_name(header: str) -> str | None:
    """Return the column that a header means, whatever its case, blanks and hyphens; None where it means none."""
    return _NAMES.get(plain_header(header))


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Attributes:
    original: name of unprotected speech in the file; usually ``original``, or ``ref`` in the form of 2020.
    scale: lowest and highest rating, of each task or of all; found in the data where it is not given.
    study, title: what to call it; made of the name of the file where empty.
    """

    original: str | None = None
    scale: Scale | tuple[float, float] | None = None
    study: str = ""
    title: str = ""


def make_slug(text: str) -> str:
    """Return a name for addresses and files."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "study"


def parse_flags(table: TextTable, cells: Sequence[str], column: str) -> Flags:
    """Read cells of yes and no as bool; empty ones are True."""
    values = [cell.lower() for cell in cells]
    wrong = (value not in ("", *YES, *NO) for value in values)
    table.report(wrong, cells, f"{column} as 1 or 0", "Write 1 for yes and 0 for no.")
    return ~np.isin(values, NO)


def find_scale(task: Texts, rating: Floats, given: Scale | tuple[float, float] | None) -> tuple[Scale, list[str]]:
    """Find the lowest and highest rating of each task that occurs: as given, else as found, with a note for each."""
    ends: dict[str, tuple[float, float]] = {}
    notes = []
    for one in (one for one in RATED if (task == one).any()):
        named = given if given is None or isinstance(given, tuple) else given.get(one)
        if named is not None:
            ends[one] = (float(named[0]), float(named[1]))
            continue
        low, high = math.floor(rating[task == one].min()), math.ceil(rating[task == one].max())
        ends[one] = (float(low), float(max(high, low + 1)))
        notes.append(
            f"The scale of {one}, {low} to {max(high, low + 1)}, was found in the ratings; no other was given."
        )
    return ends, notes


def find_rated_lines(table: TextTable, ratings: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return rows that hold a rating, and a note on the others.

    Raises:
        ProblemsError: no row does.
    """
    rated = [row for row, cell in enumerate(ratings) if cell.lower() not in NO_RATING]
    if not rated:
        raise ProblemsError(f"{table.problems.name}: expected ratings, found none in any line. Fill their column.")
    missing = len(table) - len(rated)
    lines = f"{missing:,} line{'' if missing == 1 else 's'} of the file"
    return rated, [f"{lines} without a rating left out."] if missing else []


def drop_doubled_rows(ratings: Ratings) -> tuple[Ratings, list[str]]:
    """Return ratings without those that stand twice, and notes on these and on items that a listener rated again.

    A rating stands twice where all columns agree, the position in the session among them. Without positions a second
    rating of an item may be meant: all count.
    """
    columns = [np.unique(getattr(ratings, one.name), return_inverse=True)[1] for one in fields(ratings)]
    _, first = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)
    is_second = np.ones(len(ratings), np.bool_)
    is_second[first] = False
    is_second &= ratings.position > 0
    kept = ratings.rows(np.flatnonzero(~is_second))
    names = ("listener", "task", "item", "system", "enrolment")
    of_item = np.stack([np.unique(getattr(kept, name), return_inverse=True)[1] for name in names], axis=1)
    again = len(kept) - len(np.unique(of_item, axis=0))
    notes = []
    if doubled := int(is_second.sum()):
        notes.append(
            f"{doubled:,} row{' appears' if doubled == 1 else 's appear'} twice, the same in every column: each rating "
            "counts once."
        )
    if again:
        notes.append(
            f"{again:,} rating{' is' if again == 1 else 's are'} of an item that the listener had rated in the task "
            "before: all count. Remove rows that were doubled by mistake."
        )
    return kept, notes


def check_scale(table: TextTable, cells: Sequence[str], task: Texts, rating: Floats, scale: Scale) -> None:
    """Report ratings that the scale of their task does not have."""
    for one, (low, high) in scale.items():
        is_off = (task == one) & ((rating < low) | (rating > high))
        remedy = "Correct the rating, or give the scale that was used."
        table.report(is_off, cells, f"a rating of {one} from {low:g} to {high:g}", remedy)


def plain_inputs(table: TextTable, options: ReadOptions) -> Inputs:
    table = _with_usual_names(table)
    rated, notes = find_rated_lines(table, table.columns["rating"])
    table = table.take(rated)
    ratings, scale = _plain_ratings(table, options, notes)
    table.problems.raise_any()
    ratings, doubled = drop_doubled_rows(ratings)
    notes += doubled
    labels = {} if options.original in (None, ORIGINAL) else {ORIGINAL: str(options.original)}
    return Inputs(replace(make_facts(table, options, scale, "table", notes), labels=labels), ratings=ratings)


def make_facts(table: TextTable, options: ReadOptions, scale: Scale, form: str, notes: Sequence[str]) -> StudyFacts:
    """Make facts of a study of which nothing is known but a file of ratings in that form."""
    tasks = tuple(one for one in RATED if one in scale)
    design = {"read_from": Path(table.problems.name).name, "form": form, "remarks": list(notes)}
    # Those of a file may have any ends.
    points = {one: int(min(max(scale[one][1], FEWEST_POINTS), MOST_POINTS)) for one in tasks}
    questions = tuple(replace(ASKED[one], points=points[one]) for one in tasks)
    return StudyFacts(options.study, options.title, "rating", tasks, scale, design=design, questions=questions)


def _with_usual_names(table: TextTable) -> TextTable:
    """Return the columns by their usual names; those that the file has not are empty."""
    written = table.find_columns(find_usual_name, "Rename one of them.")
    if missing := [name for name in NEEDED if name not in written]:
        table.problems.add(
            f"the columns {', '.join(NEEDED)}",
            f"no {', no '.join(missing)} among {', '.join(map(quote, list(table.columns)[:20]))}",
            "Name them in the first line; further columns are optional.",
            line=1,
        )
    table.problems.raise_any()
    empty = [""] * len(table)
    return replace(
        table,
        columns={name: table.columns[written[name]] if name in written else empty for name in DICTIONARY["ratings"]},
    )


def _plain_ratings(table: TextTable, options: ReadOptions, notes: list[str]) -> tuple[Ratings, Scale]:
    cells = table.columns
    task = _known(table, "task", "a task", "Use naturalness, intelligibility or verifiability.")
    rating = np.array(table.read_numbers(cells["rating"]), np.float64)
    table.report(np.isnan(rating), cells["rating"], "a number as rating", "Write a number such as 4 or 3.5.")
    expected, remedy = f"a rating within ±{GREATEST_RATING:,}", "Correct the rating, or rescale all of them."
    table.report(np.abs(rating) > GREATEST_RATING, cells["rating"], expected, remedy)
    for name in ("listener", "system"):
        remedy = "Fill the cell; unprotected speech is named original."
        table.report((not cell for cell in cells[name]), cells[name], f"a {name}", remedy)
    table.problems.raise_any()  # what follows takes tasks, numbers and names for granted
    tasks = np.array(task, np.str_)
    scale, said = find_scale(tasks, rating, options.scale)
    notes += said
    check_scale(table, cells["rating"], tasks, rating, scale)
    system = _systems(table, options, notes)
    item, utterance = _presented(system, cells, notes)
    genders = list_words(DICTIONARY["ratings"]["gender"]["values"])
    columns = {
        "session": _or(cells["session"], cells["listener"]),
        "task": task,
        "system": system,
        "is_target": _known(table, "is_target", "target or nontarget", "Write 1, 0 or nothing."),
        "item": item,
        "utterance": utterance,
        "gender": map_cells(cells["gender"], lambda cell: genders.get(cell.lower(), "")),
        "rating": rating,
        "position": _positions(table),
        "purpose": _known(table, "purpose", "a purpose", "Use scored, practice, gold or bridge."),
        "is_finished": parse_flags(table, cells["finished"], "finished"),
        "excluded": _excluded(table),
    }
    return Ratings.make({**cells, **columns}), scale


def _known(table: TextTable, column: str, expected: str, remedy: str) -> list[str]:
    """Return the value of each cell by its small letters; a cell without one is reported and has that of the first.

    Blanks, hyphens and underscores count alike, and between the letters of a class not at all: non-target is nontarget.
    """
    cells, values = table.columns[column], list_words(DICTIONARY["ratings"][column]["values"])
    if column == "is_target":
        cells = map_cells(cells, lambda cell: re.sub(r"(?<=[A-Za-z])[-_ ](?=[A-Za-z])", "", cell))
    found = map_cells(cells, lambda cell: values.get(re.sub(r"[\s_\-]+(?=[^\d])", " ", cell.lower())))
    table.report((one is None for one in found), cells, expected, remedy)
    usual = next(iter(values.values()))
    return [usual if one is None else one for one in found]


def _or(cells: Sequence[str], others: Sequence[str]) -> list[str]:
    return [cell or other for cell, other in zip(cells, others, strict=True)]


def check_original(table: TextTable, options: ReadOptions) -> str:
    """Return the first systems of a file, told where the one that was named as the original is not among them."""
    names = sorted(set(table.columns["system"]))
    listed = ", ".join(names[:20])
    if options.original and options.original not in names:
        expected = f"a system named “{options.original}”"
        table.problems.add(expected, listed, "Say which of these is unprotected speech.")
    return listed


def _systems(table: TextTable, options: ReadOptions, notes: list[str]) -> list[str]:
    """Return names of systems, the original under its own."""
    names = set(table.columns["system"])
    called = options.original or ORIGINAL
    if called not in names:
        listed = check_original(table, options)
        notes.append(
            f"No system is named {called}, so nothing is compared with unprotected speech unless you say which is: "
            f"{listed}."
        )
    elif called != ORIGINAL and ORIGINAL in names:
        found = f"“{called}” and a system “{ORIGINAL}”"
        table.problems.add("one name for unprotected speech", found, "Rename one of them.")
    return map_cells(table.columns["system"], lambda cell: ORIGINAL if cell == called else cell)


def _presented(
    system: Sequence[str], columns: Mapping[str, Sequence[str]], notes: list[str]
) -> tuple[list[str], list[str]]:
    """Return the item and source utterance of each rating, one from the other where only one is there."""
    utterance, item = columns["utterance"], columns["item"]
    if not any(item) and not any(utterance):
        notes.append(
            "Neither items nor utterances are named, so every rating counts as one of its own: agreement between "
            "listeners and errors clustered by utterance cannot be computed."
        )
        numbered = [f"{one}/{number}" for number, one in enumerate(system, start=1)]
        return numbered, numbered
    if not any(utterance):
        notes.append("Source utterances are not named; items are used instead.")
    joined = [
        "/".join(part for part in parts if part) for parts in zip(system, utterance, columns["enrolment"], strict=True)
    ]
    return _or(item, joined), _or(utterance, item)


def _positions(table: TextTable) -> Any:
    cells = table.columns["position"]
    found = map_cells(cells, lambda cell: parse_number(cell) if cell else 0.0)
    numbers = np.nan_to_num(np.array(found, np.float64), nan=-1)
    is_wrong = (numbers < 0) | (numbers > GREATEST_POSITION) | (numbers != np.rint(numbers))
    table.report(is_wrong, cells, "a position from 1", "Write a whole number, or nothing.")
    return np.where(is_wrong, 0, numbers).astype(np.int64)


def _excluded(table: TextTable) -> Texts:
    """Return why each rating does not count: in words, or as a flag of either direction."""
    reasons = np.array(table.columns["excluded"], np.str_)
    lower = np.char.lower(reasons)
    if np.isin(lower, ("", *YES, *NO)).all():
        reasons = np.where(np.isin(lower, YES), "marked as excluded in the file", "")
    is_valid = parse_flags(table, table.columns["valid"], "valid")
    return np.where((reasons == "") & ~is_valid, "marked as not valid in the file", reasons).astype(np.str_)


# The form of 2020 ----------------------------------------------------------------------------------

_NEEDED_IN_2020 = ("task", "listener", "valid", "system", "sample", "reference", "score")
_TASKS_IN_2020 = {"quality": "naturalness", "similarity": "verifiability"}
_SCALE_IN_2020: Scale = {"naturalness": (1.0, 5.0), "verifiability": (1.0, 4.0)}
_NATURAL, _UNCONVERTED = "ref", "team34"  # systems whose samples are natural speech of target and source speakers
_CONVERTED = re.compile(r"(?:.*-)?(?P<target>[^_-]+)_(?P<source>[^_-]+)_[^_]+")
_OF_ONE = re.compile(r"(?:.*-)?(?P<target>[^_-]+)_[^_]+")
_GENDER = re.compile(r"[A-Z]{2}([FM])\d+\Z")
_ATTRIBUTION = (
    "Form of the listening test of the Voice Conversion Challenge 2020: Zhao, Huang, Tian, Yamagishi, Das, Kinnunen, "
    "Ling and Toda; its ratings are under CC BY 4.0, DOI 10.21437/VCC_BC.2020-14 and 10.21437/VCC_BC.2020-15."
)


class _Sample(NamedTuple):
    """What the name of a sample says: `claimed` voice, `speaker` who spoke; empty where it does not say."""

    utterance: str
    claimed: str
    speaker: str


def is_vcc2020(table: TextTable) -> bool:
    """Return whether the header is of this form; columns may be in any order, those about listeners missing."""
    return set(_NEEDED_IN_2020) <= set(table.columns)


def vcc2020_inputs(table: TextTable, options: ReadOptions) -> Inputs:
    """Return the ratings of a table for which `is_vcc2020` holds.

    Raises:
        ProblemsError: lines of it cannot be read; one sentence for each.
    """
    rated, left_out = find_rated_lines(table, table.columns["score"])
    table = table.take(rated)
    cells = table.columns
    called = options.original or _NATURAL
    task = map_cells(cells["task"], lambda cell: _TASKS_IN_2020.get(cell.lower()))
    score = map_cells(cells["score"], parse_number)
    for column, values, expected in (("task", task, "quality or similarity"), ("score", score, "a number as score")):
        table.report((one is None for one in values), cells[column], expected, "Correct the line.")
    for column in ("listener", "system", "sample"):
        table.report((not cell for cell in cells[column]), cells[column], f"a {column}", "Fill the cell.")
    references = zip(task, cells["reference"], strict=True)
    lacks = (one == "verifiability" and not cell for one, cell in references)
    table.report(lacks, cells["reference"], "a reference for similarity", "Fill the cell.")
    check_original(table, options)
    is_valid = parse_flags(table, cells["valid"], "valid")
    table.problems.raise_any()
    tasks, rating = np.array(task, np.str_), np.array(score, np.float64)
    given = options.scale
    ends = dict.fromkeys(RATED, given) if isinstance(given, tuple) else {**_SCALE_IN_2020, **(given or {})}
    scale = {one: ends[one] for one in RATED if (tasks == one).any()}
    check_scale(table, cells["score"], tasks, rating, scale)
    table.problems.raise_any()
    ratings, notes = _ratings_of_2020(table, tasks, rating, is_valid, called)
    ratings, doubled = drop_doubled_rows(ratings)
    facts = make_facts(table, options, scale, "Voice Conversion Challenge 2020", notes + doubled + left_out)
    facts = replace(facts, labels={ORIGINAL: f"natural speech ({called})"}, attribution=_ATTRIBUTION)
    return Inputs(facts, ratings=ratings)


def _ratings_of_2020(
    table: TextTable, task: Texts, rating: Floats, is_valid: np.ndarray, called: str
) -> tuple[Ratings, list[str]]:
    cells = table.columns
    samples = map_cells(cells["sample"], _read_sample)
    voices = [one.claimed for one in map_cells(cells["reference"], _read_sample)]
    is_pair = task == "verifiability"
    bare = map_cells(cells["system"], lambda cell: cell.split("_")[0] == _UNCONVERTED)
    tells_two = [bool(one.speaker) and one.speaker != one.claimed for one in samples]
    is_bare = np.array(bare, np.bool_) & is_pair & np.array(tells_two, np.bool_)
    is_original = np.array(map_cells(cells["system"], lambda cell: cell == called), np.bool_)
    claimed = np.where(is_bare, [one.speaker for one in samples], [one.claimed for one in samples])
    is_known = (claimed != "") & (np.array(voices, np.str_) != "") & is_pair
    enrolment = np.where(is_pair, np.array(cells["reference"], np.str_), "")
    joined = zip(cells["sample"], enrolment.tolist(), strict=True)
    speaker = [one.speaker for one in samples]
    columns = {
        "listener": cells["listener"],
        "session": cells["listener"],
        "task": task,
        "system": np.where(is_original | is_bare, ORIGINAL, np.array(cells["system"], np.str_)),
        "is_target": np.where(is_known, claimed == np.array(voices, np.str_), -1),
        "item": ["/".join(filter(None, names)) for names in joined],
        "utterance": [one.utterance for one in samples],
        "enrolment": enrolment,
        "speaker": speaker,
        "gender": map_cells(speaker, _gender_of),
        "rating": rating,
        "position": np.zeros(len(table)),
        "purpose": np.full(len(table), SCORED),
        "is_finished": np.ones(len(table)),
        "excluded": np.where(is_valid, "", "not counted by the organizers of the test (valid is 0)"),
    }
    made = Ratings.make(columns)
    return made, _notes_on_2020(made, is_bare, called, sum(not one.speaker for one in samples))


def _notes_on_2020(made: Ratings, is_bare: np.ndarray, called: str, unnamed: int) -> list[str]:
    said = [
        "Ratings of converted voices: quality is read as naturalness, similarity as verifiability. Original is natural "
        f"speech of the target speakers ({called})."
    ]
    is_pair = made.task == "verifiability"
    if is_bare.any():
        said.append(
            f"Verifiability: {is_bare.sum():,} ratings of unconverted source speech ({_UNCONVERTED}) against the "
            "target speaker are the nontargets of natural speech; for naturalness it is a system of its own."
        )
    elif is_pair.any():
        said.append(
            "Verifiability: no unconverted source speech is named, so natural speech has targets only and there is no "
            "reference."
        )
    is_other = is_pair & (made.system != ORIGINAL)
    if is_other.any() and not (made.is_target[is_other] == 0).any():
        said.append(
            "Verifiability: every converted sample claims the voice of its reference, so systems have targets only: "
            "means, but no DET curve or equal error rate."
        )
    if not (made.system == ORIGINAL).any():
        said.append(f"No system is named {called}, so nothing is compared with natural speech.")
    if unnamed:
        said.append(f"The names of {unnamed:,} samples do not name their speakers; their utterance is the whole name.")
    return said


def _read_sample(name: str) -> _Sample:
    if found := _CONVERTED.fullmatch(name):
        return _Sample(name[found.start("target") :], found["target"], found["source"])
    if found := _OF_ONE.fullmatch(name):
        return _Sample(name[found.start("target") :], found["target"], found["target"])
    return _Sample(name, "", "")


def _gender_of(speaker: str) -> str:
    """Return the third letter of speakers such as SEF1 or TGM1."""
    found = _GENDER.match(speaker)
    return found[1].lower() if found else ""


# Files ---------------------------------------------------------------------------------------------


def read_ratings(source: Source, name: str, options: ReadOptions | None = None) -> Inputs:
    """Read the ratings of a file, ready to be analysed.

    Args:
        source: a path, a binary stream or bytes, gzipped or not.
        name: of the file, for what is said about it, and for the study where the options give it no name.

    Raises:
        ProblemsError: the file cannot be read, or lines of it; one sentence for each.
    """
    stem = Path(name).name.removesuffix(".gz").removesuffix(".csv") or "ratings"
    options = options or ReadOptions()
    options = replace(options, study=options.study or make_slug(stem), title=options.title or stem)
    table = split_table(read_text(source, name), name, lambda cell: find_usual_name(cell) is not None)
    return vcc2020_inputs(table, options) if is_vcc2020(table) else plain_inputs(table, options)


def read_objective(source: Source, name: str) -> ObjectiveRows:
    """Return what was computed on each utterance of each system, from a CSV file.

    Needed are the columns ``system, utterance``; ``errors, words`` (of the recogniser) and ``pitch_correlation`` are
    unknown where they are missing or empty.

    Raises:
        ProblemsError: the file cannot be read, or lines of it; one sentence for each.
    """
    names = [one.name for one in fields(ObjectiveRows)]
    table = split_table(read_text(source, name), name, lambda cell: cell.lower() in names)
    cells = {header.lower(): column for header, column in table.columns.items()}
    if missing := [one for one in names[:2] if one not in cells]:
        found = f"no {', no '.join(missing)}"
        table.problems.add(f"the columns {', '.join(names)}", found, "Name them in the first line.", line=1)
    table.problems.raise_any()
    table = replace(table, columns={one: cells.get(one, [""] * len(table)) for one in names})
    values: dict[str, Any] = {one: table.columns[one] for one in names[:2]}
    for one in names[2:]:
        column = table.columns[one]
        values[one] = np.array(table.read_numbers(column), np.float64)
        is_wrong = np.isnan(values[one]) & ~np.isin(np.char.lower(np.array(column, np.str_)), NO_RATING)
        table.report(is_wrong, column, f"a number or nothing in {one}", "Correct the cell.")
    table.problems.raise_any()
    made = ObjectiveRows.make(values)
    check_part(made, table, {})
    table.problems.raise_any()
    return made
