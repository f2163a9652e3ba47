"""Tables for a paper: booktabs, within the text width of LaTeX's `article` (345 pt)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from string import ascii_lowercase

from common.tables import Cell, Column, Table

MOST_COLUMNS = 7
HEADING_LETTERS = 12  # in one line of a heading
PROSE_LETTERS = 20  # longer texts are broken into lines
TEXT_WIDTH_PT, GAP_PT, PROSE_PT = 345.0, 8.0, 75.0
SMALL_PT, SCRIPT_PT = 4.5, 3.4  # of a letter, about

_SPECIAL = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\u00a0": "~"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "ρ": r"$\rho$", "−": "$-$", "≥": r"$\geq$"}
    | {"–": "--", "’": "'", "“": "``", "”": "''"}
)


class _Column:
    """Hold how a column is set: its heading in short lines, its alignment and about how wide it is in pt."""

    def __init__(self, column: Column, cells: Sequence[Cell]) -> None:
        self.is_number = column.is_number
        lines = textwrap.wrap(column.label, HEADING_LETTERS, break_long_words=False)
        side = "r" if column.is_number or column.kind == "rank" else "l"
        broken = r"\\".join(map(latex_text, lines))
        self.heading = f"\\shortstack[{side}]{{{broken}}}" if len(lines) > 1 else broken
        longest = max((len(cell.text) for cell in cells), default=0)
        if longest > PROSE_LETTERS:
            self.alignment, self.width = f"p{{{PROSE_PT}pt}}", PROSE_PT
            return
        texts = [*lines, *(cell.text + "a" * bool(_notes_of(cell)) for cell in cells)]
        intervals = (SCRIPT_PT * (len(_shorten(cell.interval)) + 2) for cell in cells if cell.interval)
        self.alignment, self.width = side, max(chain((SMALL_PT * len(text) for text in texts), intervals), default=0.0)


def latex_text(text: str) -> str:
    """Return text in one line that LaTeX prints as it is."""
    return " ".join(text.split()).translate(_SPECIAL)


def latex_document(title: str, tables: Iterable[tuple[Table, str, str]]) -> str:
    """Return a file of tables, each with its caption and label, to be read by ``\\input``."""
    lines = [f"% {' '.join(title.split())}; needs \\usepackage{{booktabs}}"]
    for table, caption, label in tables:
        lines += ["", *latex_table(table, caption, label)]
    if len(lines) == 1:
        lines.append("% There is nothing to show.")
    return "\n".join(lines) + "\n"


def latex_table(table: Table, caption: str, label: str) -> list[str]:
    """Return the lines of a table of at most seven columns; what does not fit follows in further tables.

    The columns before the first number are repeated in each. Intervals stand beneath their numbers; marks and notes of
    cells are footnotes. A number that begins with an ASCII minus is set as mathematics, so that it gets a true one.

    Args:
        caption: in plain text.
        label: what the text refers to, such as ``tab:leaderboard``; further tables have ``-2``, ``-3`` behind it.
    """
    groups = [list(_with_head(group.head, [row.cells for row in group.rows])) for group in table.groups]
    columns = [
        _Column(column, [cells[place] for cells in chain(*groups)]) for place, column in enumerate(table.columns)
    ]
    lines: list[str] = []
    for number, places in enumerate(_split(columns), start=1):
        shown = [columns[place] for place in places]
        parts = [[[cells[place] for place in places] for cells in group] for group in groups]
        if number == 1:
            lines += ["", *_latex_part(shown, parts, caption, label)]
        else:
            words = f"{caption.strip().removesuffix('.')} (continued)."
            lines += ["", *_latex_part(shown, parts, words, f"{label}-{number}")]
    return lines[1:]


def _split(columns: Sequence[_Column]) -> Iterator[tuple[int, ...]]:
    """Yield the places of the columns of each table: the names, and as many others as fit."""
    names = tuple(range(next((place for place, one in enumerate(columns) if one.is_number), len(columns))))
    places = names
    for place in range(len(names), len(columns)):
        wider = (*places, place)
        if places != names and (
            len(wider) > MOST_COLUMNS or sum(columns[shown].width + GAP_PT for shown in wider) > TEXT_WIDTH_PT
        ):
            yield places
            wider = (*names, place)
        places = wider
    yield places


def _latex_part(
    columns: Sequence[_Column], groups: Iterable[Sequence[Sequence[Cell]]], caption: str, label: str
) -> Iterator[str]:
    said = chain.from_iterable(_notes_of(cell) for group in groups for line in group for cell in line)
    letters = chain(ascii_lowercase, map("".join, product(ascii_lowercase, repeat=2)))
    footnotes = dict(zip(dict.fromkeys(said), letters, strict=False))
    yield r"\begin{table}"
    yield r"  \centering\small\setlength{\tabcolsep}{4pt}"
    yield f"  \\caption{{{latex_text(caption)}}}"
    yield f"  \\label{{{label}}}"
    yield f"  \\begin{{tabular}}{{@{{}}{''.join(column.alignment for column in columns)}@{{}}}}"
    yield r"    \toprule"
    yield f"    {' & '.join(column.heading for column in columns)} \\\\"
    for group in groups:
        yield r"    \midrule"
        for line in group:
            cells = zip(line, columns, strict=True)
            yield f"    {' & '.join(_latex_cell(cell, footnotes, column.is_number) for cell, column in cells)} \\\\"
            if any(cell.interval for cell in line):
                yield f"    {' & '.join(map(_latex_interval, line))} \\\\"
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    if footnotes:
        written = " ".join(rf"\textsuperscript{{{letter}}}~{latex_text(text)}." for text, letter in footnotes.items())
        yield rf"  \par\smallskip\raggedright\footnotesize {written}"
    yield r"\end{table}"


def _with_head(head: Cell | None, rows: Sequence[Sequence[Cell]]) -> Iterator[Sequence[Cell]]:
    """Yield the cells of rows; the head of their group stands before those of the first."""
    for number, cells in enumerate(rows):
        yield cells if head is None else [head if number == 0 else Cell(), *cells]


def _notes_of(cell: Cell) -> list[str]:
    return [*cell.marks, *filter(None, [cell.note])]


def _latex_cell(cell: Cell, footnotes: Mapping[str, str], is_number: bool) -> str:
    if is_number and not cell.text:
        return "--"
    text = latex_text(cell.text)
    if is_number and text.startswith("-"):
        text = f"${text}$"
    letters = ",".join(footnotes[note] for note in _notes_of(cell))
    return rf"{text}\textsuperscript{{{letters}}}" if letters else text


def _latex_interval(cell: Cell) -> str:
    return rf"\scriptsize [{latex_text(_shorten(cell.interval))}]" if cell.interval else ""


def _shorten(interval: str) -> str:
    return interval.replace(" to ", ", ")
