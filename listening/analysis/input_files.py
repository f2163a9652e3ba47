"""The inputs of an analysis as files, exactly and always in the same bytes, and back with everything checked.

`study.json` and `settings.json` are JSON with sorted keys; each part of `Inputs` is a CSV file with one column for each
of its attributes. Numbers are written in the shortest form that reads back the same, unknown ones as empty cells, flags
as 1 and 0. A text that a spreadsheet would run as a formula, or that starts with an apostrophe, gets an apostrophe
before it, which reading takes away again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from evaluation.formats.csv_cells import harmless_cell
from listening.analysis.errors import AnalysisInputError
from listening.analysis.input_checks import CHECKS, study_from
from listening.analysis.inputs import Inputs, Objective, Placements, Ratings, Transcripts
from listening.analysis.settings import Settings, settings_from
from listening.analysis.text_tables import Faults, TextTable, found_at, mapped, number_in, read_text, split_table

STUDY, SETTINGS, EXCLUSIONS, TEXTS = "study.json", "settings.json", "exclusions.csv", "texts/"
PARTS: Mapping[str, type[Any]] = {
    "ratings.csv": Ratings,
    "placements.csv": Placements,
    "transcripts.csv": Transcripts,
    "objective.csv": Objective,
}
EXCLUSION_COLUMNS = ("rule", "session", "reason", "stands")
LONGEST_TEXT = 20_000
_QUOTED = re.compile(r'[,"\r\n]')

Part = TypeVar("Part")


def files_of(inputs: Inputs, settings: Settings) -> dict[str, bytes]:
    """Each file by its name, in the order in which they are kept."""
    files = {STUDY: _json(inputs.study.as_data()), SETTINGS: _json(settings.as_data())}
    for name, of in PARTS.items():
        part = getattr(inputs, name.removesuffix(".csv"))
        if part is not None:
            columns = {one.name: _written(getattr(part, one.name)) for one in fields(of)}
            files[name] = _csv(list(columns), zip(*columns.values(), strict=True))
    rows = (
        [_text(rule), _text(session), _text(reason), str(int(stands))]
        for rule, session, reason, stands in inputs.exclusions
    )
    files[EXCLUSIONS] = _csv(EXCLUSION_COLUMNS, rows)
    return files | {f"{TEXTS}{name}": inputs.texts[name].encode() for name in sorted(inputs.texts)}


def inputs_from(files: Mapping[str, bytes], place: str) -> tuple[Inputs, Settings]:
    """What `files_of` was made from.

    Args:
        place: what the files lie in, for what is said about them.

    Raises:
        AnalysisInputError: everything that is wrong with them.
    """
    problems: list[str] = []
    unknown = [name for name in files if name not in (STUDY, SETTINGS, EXCLUSIONS, *PARTS) and not _is_text_name(name)]
    problems += [f"{place}: found a file {name!r} that belongs to no inputs. Remove it." for name in sorted(unknown)]
    study, settings = None, Settings()
    try:
        study = study_from(_json_of(files, STUDY, place), f"{place}, {STUDY}")
    except AnalysisInputError as error:
        problems += error.problems
    try:
        settings = settings_from(_json_of(files, SETTINGS, place))
    except AnalysisInputError as error:
        problems += error.problems
    parts: dict[str, Any] = {}
    for name, of in PARTS.items():
        if name in files:
            try:
                parts[name.removesuffix(".csv")] = _part(
                    files[name], of, f"{place}, {name}", study.scale if study else {}
                )
            except AnalysisInputError as error:
                problems += error.problems
    try:
        exclusions = _exclusions(files.get(EXCLUSIONS, b""), f"{place}, {EXCLUSIONS}")
        texts = {
            name.removeprefix(TEXTS): read_text(content, f"{place}, {name}")
            for name, content in files.items()
            if _is_text_name(name)
        }
    except AnalysisInputError as error:
        problems += error.problems
    if problems or study is None:
        raise AnalysisInputError(problems)
    return Inputs(study, **parts, exclusions=exclusions, texts=texts), settings


def _is_text_name(name: str) -> bool:
    return name.startswith(TEXTS) and name.endswith(".md") and "/" not in name.removeprefix(TEXTS)


def _json(data: Any) -> bytes:
    return (json.dumps(data, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


def _json_of(files: Mapping[str, bytes], name: str, place: str) -> dict[str, Any]:
    if name not in files:
        raise AnalysisInputError(f"{place}: expected a file {name}, found none. Take the whole download.")
    try:
        data = json.loads(files[name], parse_constant=_finite, parse_float=_finite, parse_int=_whole)
        json.dumps(data, ensure_ascii=False).encode()  # halves of characters cannot be written
    except (ValueError, RecursionError) as error:
        raise AnalysisInputError(f"{place}, {name}: expected JSON, found “{error}”. Download it again.") from None
    if not isinstance(data, dict):
        raise AnalysisInputError(f"{place}, {name}: expected a JSON object, found another value. Download it again.")
    return data


def _finite(written: str) -> float:
    """Raises:
    ValueError: it is no finite number.
    """
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"the number {written[:30]}, which is not finite")
    return number


def _whole(written: str) -> int:
    """Raises:
    ValueError: no number of the analysis can hold it.
    """
    _finite(written)
    return int(written)


def _csv(header: Sequence[str], rows: Any) -> bytes:
    lines = [",".join(header)]
    lines += [",".join(map(_quoted, row)) for row in rows]
    return ("\n".join(lines) + "\n").encode()


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell


def _text(cell: str) -> str:
    return f"'{cell}" if cell.startswith("'") or harmless_cell(cell) != cell else cell


def _read_back(cell: str) -> str:
    return cell.removeprefix("'")


def _written(values: Any) -> list[str]:
    """A column as its cells."""
    if values.dtype.kind == "U":
        return mapped(values.tolist(), _text)
    if values.dtype.kind in "bi":
        return [str(int(value)) for value in values.tolist()]
    return ["" if math.isnan(value) else repr(value).removesuffix(".0") for value in values.tolist()]


def _part(content: bytes, of: type[Part], name: str, scale: Mapping[str, tuple[float, float]]) -> Part:
    """One part of the inputs.

    Raises:
        AnalysisInputError: its columns are others, or cells hold something else than their column.
    """
    kinds = {one.name: str(one.type) for one in fields(of)}  # type: ignore[arg-type]
    text = read_text(content, name)
    if text.strip() == ",".join(kinds):
        return of(*(_read_column([], kind) for kind in kinds.values()))
    table = split_table(text, name, lambda cell: cell in kinds, is_exact=True, longest_cell=LONGEST_TEXT)
    faults = Faults(name)
    if list(table.columns) != list(kinds):
        faults.add(f"the columns {', '.join(kinds)}", ", ".join(table.columns), "Take the file as it was made.", line=1)
    faults.raise_any()
    for column, kind in kinds.items():
        if kind != "Texts":
            _check_numbers(table, column, kind, faults)
    faults.raise_any()
    part = of(*(_read_column(table.columns[column], kind) for column, kind in kinds.items()))
    for check in CHECKS[of]:
        check(part, table, scale, faults)
    faults.raise_any()
    return part


def _check_numbers(table: TextTable, column: str, kind: str, faults: Faults) -> None:
    cells = table.columns[column]
    expected = {"Flags": "1 or 0", "Ints": "a whole number", "Floats": "a number or nothing"}[kind]

    def is_wrong(cell: str) -> bool:
        if kind == "Flags":
            return cell not in ("0", "1")
        if kind == "Ints":
            return not re.fullmatch(r"-?[0-9]{1,15}", cell)
        return cell != "" and number_in(cell) is None

    wrong = [row for row, bad in enumerate(mapped(cells, is_wrong)) if bad]
    faults.add_lines(f"{expected} in {column}", found_at(table, cells, wrong), "Take the file as it was made.")


def _read_column(cells: Sequence[str], kind: str) -> Any:
    if kind == "Texts":
        return np.array(mapped(cells, _read_back), np.str_)
    if kind == "Flags":
        return np.array([cell == "1" for cell in cells], np.bool_)
    if kind == "Ints":
        return np.array(mapped(cells, int), np.int64)
    return np.array(mapped(cells, lambda cell: float(cell) if cell else math.nan), np.float64)


def _exclusions(content: bytes, name: str) -> tuple[tuple[str, str, str, bool], ...]:
    text = read_text(content, name)
    if text.strip() in ("", ",".join(EXCLUSION_COLUMNS)):
        return ()
    table = split_table(text, name, lambda cell: cell in EXCLUSION_COLUMNS, is_exact=True, longest_cell=LONGEST_TEXT)
    faults = Faults(name)
    if tuple(table.columns) != EXCLUSION_COLUMNS:
        expected, found = f"the columns {', '.join(EXCLUSION_COLUMNS)}", ", ".join(table.columns)
        faults.add(expected, found, "Take the file as it was made.", line=1)
    faults.raise_any()
    _check_numbers(table, "stands", "Flags", faults)
    faults.raise_any()
    rule, session, reason, stands = (table.columns[column] for column in EXCLUSION_COLUMNS)
    return tuple(
        (_read_back(one), _read_back(of), _read_back(why), yes == "1")
        for one, of, why, yes in zip(rule, session, reason, stands, strict=True)
    )
