"""Tables for a paper: they fit its text width, and what TeX reads as commands stands as text."""

import re

import pytest
from matplotlib import get_data_path
from matplotlib.ft2font import FT2Font

from common.latex import MOST_COLUMNS, latex_document, latex_table, latex_text
from common.tables import Cell, Column, Group, Row, Table
from evaluation.metrics.catalogue import find_metric

TEXT_WIDTH = 345.0  # pt, of `article`
SMALL, SCRIPT, GAP = 9, 7, 4  # pt: sizes of letters, half the space between two columns
AVERAGES = (
    *(("eer", "kaldi"), ("wer", ""), ("uar", ""), ("pitch_correlation", "praat")),
    *(("gain_of_voice_distinctiveness", ""), ("eer", "rocch"), ("min_cllr", ""), ("linkability", "")),
)


def width_of(text: str, points: float) -> float:
    """Return the width in pt of a cell, set in Computer Modern."""
    font = FT2Font(f"{get_data_path()}/fonts/ttf/cmr10.ttf")
    font.set_size(1000, 72)
    plain = re.sub(r"\\shortstack\[.\]|\\textsuperscript|\\scriptsize |[{}$\\]", "", text.replace(r"\rho", "p"))
    font.set_text(plain)
    return font.get_width_height()[0] / 64 * points / 1000


def widths_of(latex: str) -> list[float]:
    """Return the width in pt of each table of a file."""
    widths = []
    for tabular in re.findall(r"\\begin\{tabular\}.*?\\toprule(.*?)\\bottomrule", latex, re.DOTALL):
        rows = [line[4:].removesuffix(r" \\").split(" & ") for line in tabular.splitlines() if " & " in line]
        columns = [
            max(
                width_of(line, SCRIPT if "scriptsize" in cell else SMALL)
                for cell in column
                for line in cell.split(r"\\")
            )
            for column in zip(*rows, strict=True)
        ]
        widths.append(sum(columns) + 2 * GAP * (len(columns) - 1))
    return widths


def table_of(averages, label="T11-contrastive-2"):
    columns = [Column("rank", "Rank", kind="rank"), Column("system", "System")]
    metrics = (find_metric(*average) for average in averages)
    columns += [Column(metric.key, metric.label, kind="num", unit=metric.unit) for metric in metrics]
    numbers = [Cell("-12.3", "-12.3 to 13.4", marks=("late",)) for _ in averages]
    return Table(tuple(columns), (Group((Row((Cell("not ranked"), Cell(label), *numbers)),)),), "Systems")


def test_tables_of_many_columns_go_on_in_further_ones_within_the_text_width():
    latex = latex_document("Leaderboard", [(table_of(AVERAGES), "Test set", "tab:test")])
    widths = widths_of(latex)
    assert len(widths) > 1
    assert max(widths) <= TEXT_WIDTH
    assert max(line.count(" & ") for line in latex.splitlines()) < MOST_COLUMNS
    assert sum(line.count(" & ") - 1 for line in latex.splitlines() if "T11" in line) == len(AVERAGES)
    assert re.findall(r"\\label\{(.*)\}", latex) == ["tab:test", "tab:test-2", "tab:test-3"]


def test_marks_of_cells_are_footnotes_said_once():
    [written] = [line for line in latex_table(table_of(AVERAGES[:3]), "Test", "tab:t") if "footnotesize" in line]
    assert written.endswith(r"\textsuperscript{a}~late.")


def test_texts_that_tex_would_read_are_escaped():
    assert latex_text("a\nb\\end{tabular} 5 % ρ") == r"a b\textbackslash{}end\{tabular\} 5 \% $\rho$"


@pytest.mark.parametrize("text", ["-1.5", "−1.5"])
def test_negative_numbers_have_a_true_minus(text):
    table = Table((Column("a", "A"), Column("b", "B", kind="num")), (Group((Row((Cell("x"), Cell(text))),)),), "T")
    assert any(line.strip() in (r"x & $-1.5$ \\", r"x & $-$1.5 \\") for line in latex_table(table, "T", "tab:t"))
