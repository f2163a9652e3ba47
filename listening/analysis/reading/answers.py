"""Answers of any laboratory from CSV files: of this tool, of webMUSHRA, of the P.808 toolkit, of listen-and-rate.

Columns are found by their usual names and those of these tools, or as the reader is told. A recording is a
line, or a comparison is, with the columns ``condition_a`` and ``condition_b``. Three things are done for other tools:

- a file name becomes condition and item (`AnswerOptions.pattern`);
- answers of the P.808 toolkit as they come from the crowd platform, with a column for each clip of a page, become
  lines; trapping and gold clips and rejected assignments are left out;
- comparisons with a reference that is no column (CCR of the P.808 toolkit) get it as the condition of A.

Where no position is known, comparisons of a session stand in the order of their lines. What a reader of the results has
to know becomes a remark of the study.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from common.csv_rows import to_number
from common.errors import ProblemsError
from common.wording import counted
from listening.analysis.reading.answer_values import (
    KINDS,
    NUMERIC_KINDS,
    PAIRED_KINDS,
    RIGHT,
    WRONG,
    find_question_problem,
    is_allowed,
    say_allowed,
)
from listening.analysis.reading.inputs import Answers, Inputs, StudyFacts
from listening.analysis.reading.ratings import NO_RATING, make_slug
from listening.analysis.reading.text_tables import (
    Source,
    TextTable,
    list_names,
    list_words,
    map_cells,
    plain_header,
    quote,
    read_text,
    split_table,
)
from listening.analysis.tables import DICTIONARY

if TYPE_CHECKING:
    from pandas import DataFrame

USUAL_PATTERN = r"(?:.*/)?(?P<condition>[^/]+)/(?P<item>[^/]+?)(?:\.\w+)?"
_NAMES = list_names("answers")
_NO_ANSWER = (*NO_RATING, "unknown")
_CLIP = re.compile(r"answer\.(q\d+)_url")


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Attributes:
    kind: of the questions, one of `KINDS`.
    columns: names in the file by ours, where they are not among the usual ones.
    pattern: regular expression for whole file names with the groups ``condition`` and ``item``; without ``item`` the
        item is what is left of the name.
    reference: the condition that is the hidden reference (MUSHRA), or that others were compared with (CCR).
    anchor: the condition that is the 7 kHz anchor (MUSHRA).
    scale: lowest and highest answer; the usual ones of the kind where it is not given.
    leave_out: listeners whose answers do not count, by choice.
    study, title: what to call it; made of the name of the file where empty.
    """

    kind: str
    columns: Mapping[str, str] = field(default_factory=dict)
    pattern: str = USUAL_PATTERN
    reference: str = ""
    anchor: str = ""
    scale: tuple[float, float] | None = None
    leave_out: tuple[str, ...] = ()
    study: str = ""
    title: str = ""

    def about(self) -> dict[str, Any]:
        """Return what the design of a study says about a question."""
        known = {"kind": self.kind, "reference": self.reference, "anchor": self.anchor}
        return {name: value for name, value in known.items() if value} | (
            {"scale": list(self.scale)} if self.scale else {}
        )


def read_answers(files: Sequence[tuple[str, Source]], options: AnswerOptions) -> Inputs:
    """Read the answers of one or more files, ready to be analysed.

    Args:
        files: names, for what is said about them, and contents; tools that write a file for each session have many.

    Raises:
        ProblemsError: a file cannot be read, or lines of it; one sentence for each.
    """
    import pandas as pd

    if problem := find_question_problem(options.about()):
        raise ProblemsError(f"Expected {problem}, found {options.kind!r}.")
    problems: list[str] = []
    frames: list[DataFrame] = []
    remarks: list[str] = []
    for name, source in files:
        try:
            frame, said = _read_file(name, source, options)
        except ProblemsError as error:
            problems += error.problems
        else:
            frames.append(frame)
            remarks += said
    if problems:
        raise ProblemsError(problems)
    frame = pd.concat(frames, ignore_index=True)
    if unknown := sorted({*options.leave_out} - {*frame["listener"]}):
        raise ProblemsError(f"Expected listeners to leave out who answered, found “{unknown[0]}”. Correct the name.")
    frame.loc[frame["listener"].isin(options.leave_out), "excluded"] = "left out by choice"
    answers = Answers.make(frame)
    stem = Path(files[0][0]).name.removesuffix(".gz").removesuffix(".csv") or "answers"
    questions = {str(question): options.about() for question in sorted(frame["question"].unique())}
    design = {"read_from": Path(files[0][0]).name, "questions": questions, "remarks": list(dict.fromkeys(remarks))}
    title = options.title or stem
    study = options.study or make_slug(title)
    return Inputs(StudyFacts(study, title, "answers", tuple(questions), {}, design=design), answers=answers)


def _read_file(name: str, source: Source, options: AnswerOptions) -> tuple[DataFrame, list[str]]:
    """Return the answers of a file in the columns of `Answers`, and remarks."""

    def is_known(header: str) -> bool:
        return _find_name(header, options) is not None or _CLIP.fullmatch(header.strip().lower()) is not None

    table = split_table(read_text(source, name), name, is_known)
    frame, remarks = _with_usual_names(table, options), list[str]()
    if any(_CLIP.fullmatch(column) for column in frame.columns):
        frame, remarks = _clips_of_pages(frame, table)
    frame, said = _drop_unanswered(frame, table)
    for step in (_name_recordings, _fill, _in_slots, _with_values):
        frame = step(frame, table, options)
        table.problems.raise_any()
    return frame, remarks + said


def _find_name(header: str, options: AnswerOptions) -> str | None:
    """Return our name of a column: as the reader was told, else by its usual names; None where it has none."""
    written = header.strip().lower()
    for ours, theirs in options.columns.items():
        if theirs.lower() == written:
            return ours
    name = _NAMES.get(plain_header(header))
    return None if name in options.columns else name


def _with_usual_names(table: TextTable, options: AnswerOptions) -> DataFrame:
    """Return the columns that are known by our names, with the line of each row; those of clips in small letters."""
    from pandas import DataFrame

    def name_of(header: str) -> str | None:
        is_of_page = header.lower().startswith(("answer.q", "input.", "assignmentstatus"))
        return _find_name(header, options) or (header.lower() if is_of_page else None)

    found = table.find_columns(name_of, "Say which: {name}={header}.")
    for ours, header in options.columns.items():
        if ours not in DICTIONARY["answers"]:
            table.problems.add(f"a column among {', '.join(DICTIONARY['answers'])}", quote(ours), "Correct its name.")
        elif ours not in found:
            table.problems.add(f"a column {quote(header)}", _list_columns(table), "Name one of these.", line=1)
    table.problems.raise_any()
    frame = DataFrame({name: table.columns[header] for name, header in found.items()})
    return frame.assign(line=list(table.lines))


def _list_columns(table: TextTable) -> str:
    return ", ".join(map(quote, list(table.columns)[:20]))


def _clips_of_pages(frame: DataFrame, table: TextTable) -> tuple[DataFrame, list[str]]:
    """Return a row for each clip of a page of the P.808 toolkit; several scales of a clip are several questions."""
    import pandas as pd

    remarks = []
    if "assignmentstatus" in frame:
        is_rejected = frame["assignmentstatus"].str.lower() == "rejected"
        if is_rejected.any():
            remarks.append(f"{counted(int(is_rejected.sum()), 'rejected assignment')} left out.")
        frame = frame[~is_rejected]
    controls = [name for name in frame if name == "input.tp" or re.match(r"input\.gold_(clips|url)", name)]
    parts, left_out = [], 0
    for column in filter(_CLIP.fullmatch, frame.columns):
        clip = column.removesuffix("_url")
        shown = frame[frame[column] != ""]
        is_control = pd.Series(False, shown.index)
        for control in controls:
            is_control |= (shown[control] != "") & (shown[control] == shown[column])
        left_out += int(is_control.sum())
        shown = shown[~is_control]
        scales = [name for name in frame.columns if re.fullmatch(rf"{re.escape(clip)}(?:_(?!url|order)[a-z]+)?", name)]
        order = shown[f"{clip}_order"] if f"{clip}_order" in shown else pd.Series("", shown.index)
        for scale in scales:
            question = scale.removeprefix(clip).removeprefix("_") or "answer"
            part = pd.DataFrame(
                {"file": shown[column], "value": shown[scale], "question": question, "line": shown["line"]}
            )
            part["first_heard"] = order.map({"rp": "A", "pr": "B"}).fillna("")
            parts.append(part.join(shown[[name for name in ("listener", "session") if name in shown]]))
    if not parts:
        table.problems.add("answers to clips", "none", "Take the file of answers of the crowd platform.")
        table.problems.raise_any()
    if left_out:
        remarks.append(f"{counted(left_out, 'answer')} about trapping and gold clips left out.")
    return pd.concat(parts, ignore_index=True), remarks


def _drop_unanswered(frame: DataFrame, table: TextTable) -> tuple[DataFrame, list[str]]:
    """Return the rows with an answer, and a remark on the others."""
    if "value" not in frame:
        expected = "a column with the answers (value)"
        table.problems.add(expected, _list_columns(table), "Say which: value=NAME.", line=1)
        table.problems.raise_any()
    is_answered = ~frame["value"].str.lower().isin(_NO_ANSWER)
    if not is_answered.any():
        raise ProblemsError(f"{table.problems.name}: expected answers, found none in any line. Fill their column.")
    missing = int((~is_answered).sum())
    return frame[is_answered], [f"{counted(missing, 'line')} without an answer left out."] if missing else []


def _name_recordings(frame: DataFrame, table: TextTable, options: AnswerOptions) -> DataFrame:
    """Return the answers with condition and item, of file names where they are no columns."""
    named = {"condition", "item"} - set(frame.columns)
    if not named or "file" not in frame or "condition_a" in frame:
        return frame
    try:
        pattern = re.compile(options.pattern, re.IGNORECASE)
    except re.error as error:
        raise ProblemsError(f"Expected a regular expression as pattern, found “{error}”.") from None
    if "condition" not in pattern.groupindex:
        raise ProblemsError("Expected a group (?P<condition>…) in the pattern, found none. Add it.")
    matches = map_cells(frame["file"], pattern.fullmatch)
    wrong = [
        (line, quote(file))
        for line, file, match in zip(frame["line"], frame["file"], matches, strict=True)
        if not match
    ]
    table.problems.add_lines("a file name that the pattern fits", wrong, "Give a pattern with the group condition.")
    table.problems.raise_any()

    def name_item(match: re.Match[str]) -> str:
        if "item" in pattern.groupindex:
            return match["item"]
        start, end = match.span("condition")
        return Path(match.string[:start] + match.string[end:]).stem

    parts = {"condition": [match["condition"] for match in matches if match]}
    parts["item"] = [name_item(match) for match in matches if match]
    return frame.assign(**{name: parts[name] for name in named})


def _fill(frame: DataFrame, table: TextTable, options: AnswerOptions) -> DataFrame:
    """Return all columns of answers, with what is plain where there are none; what cannot be plain is reported."""
    frame = frame.copy()
    if "listener" not in frame:
        frame["listener"] = frame.get("session", "")
    if "session" not in frame:
        frame["session"] = frame["listener"]
    frame["session"] = frame["session"].where(frame["session"] != "", frame["listener"])
    plain = {"question": "answer", "slot": "", "truth": "", "excluded": "", "item": "", "first_heard": ""}
    frame = frame.assign(**{name: value for name, value in plain.items() if name not in frame})
    is_wide = "condition_a" in frame and options.kind in PAIRED_KINDS
    needed = ["listener", "item", *(("condition_a", "condition_b") if is_wide else ("condition",))]
    for name in needed:
        if name not in frame or (frame[name] == "").all():
            remedy = f"Say which: {name}=NAME."
            table.problems.add(f"a column for {name}", _list_columns(table), remedy, line=1)
        else:
            empty = frame.loc[frame[name] == "", "line"]
            table.problems.add_lines(f"a {name}", [(int(line), "nothing") for line in empty], "Fill the cell.")
    for name in ("order", "position"):
        cells = frame[name].to_numpy(str) if name in frame else np.full(len(frame), "0")
        numbers = np.array([int(cell) if re.fullmatch(r"\d{1,9}", cell) else 0 if cell == "" else -1 for cell in cells])
        wrong = [
            (int(line), quote(cell)) for line, cell, no in zip(frame["line"], cells, numbers, strict=True) if no < 0
        ]
        table.problems.add_lines(f"{name} as a whole number from 1", wrong, "Correct the cell, or leave it empty.")
        frame[name] = np.maximum(numbers, 0)
    return frame


def _in_slots(frame: DataFrame, table: TextTable, options: AnswerOptions) -> DataFrame:
    """Return a row for each recording of a comparison."""
    import pandas as pd

    if options.kind not in PAIRED_KINDS:
        return frame
    if "condition_a" not in frame and (frame["slot"] == "").all():
        if not options.reference:
            expected = "the columns condition_a and condition_b, or slot"
            remedy = "Name them, or the condition that all were compared with (--reference)."
            table.problems.add(expected, _list_columns(table), remedy, line=1)
            return frame
        frame = frame.assign(condition_a=options.reference, condition_b=frame["condition"])
    if "condition_a" not in frame:
        frame["slot"] = frame["slot"].str.upper()
        return frame
    if not frame["position"].any():  # without positions, lines are numbered
        frame = frame.assign(position=frame.groupby(["listener", "session", "question"]).cumcount() + 1)
    is_known = frame["first_heard"] != ""
    sides = [
        frame.assign(
            slot=slot,
            condition=frame[f"condition_{slot.lower()}"],
            order=np.where(is_known, np.where(frame["first_heard"] == slot, 1, 2), 0),
        )
        for slot in ("A", "B")
    ]
    return pd.concat(sides, ignore_index=True)


def _with_values(frame: DataFrame, table: TextTable, options: AnswerOptions) -> DataFrame:
    """Return the answers as the kind takes them; others are reported."""
    words = list_words(DICTIONARY["answers"]["value"]["words"].get(options.kind, {}))
    about = options.about()

    def parse(cell: str) -> str:
        return to_number(cell, table.delimiter) if options.kind in NUMERIC_KINDS else words.get(cell.lower(), cell)

    values = map_cells(frame["value"], parse)
    rows = zip(frame["line"], frame["value"], values, strict=True)
    wrong = {int(line): quote(cell) for line, cell, value in rows if not is_allowed(value, about)}
    table.problems.add_lines(
        say_allowed(about), sorted(wrong.items()), f"Correct it, or the kind ({', '.join(KINDS)})."
    )
    frame = frame.assign(value=values)
    if options.kind == "abx":
        is_told = frame["value"].isin((RIGHT, WRONG))
        frame["truth"] = np.where(is_told, RIGHT, frame["truth"].str.upper())
        lacking = frame.loc[~frame["truth"].isin(("A", "B", RIGHT)), "line"].unique()
        remedy = "Add the column truth, or write right and wrong."
        table.problems.add_lines("which of A and B was X", [(int(line), "nothing") for line in lacking], remedy)
    return frame
