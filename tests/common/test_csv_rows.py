"""Tables as spreadsheets write them: commas, semicolons or tabs."""

from __future__ import annotations

import pytest

from common.csv_rows import read_csv, to_number
from common.errors import InputError

COLUMNS = {"key", "sex", "size"}


@pytest.mark.parametrize(("delimiter", "mark", "end"), [(",", "", "\n"), (";", "\ufeff", "\r\n"), ("\t", "", "\n")])
def test_rows_are_the_same_whatever_separates_their_cells(delimiter, mark, end):
    rows = [["key", "sex"], ["a;b,c\td", "f"], ["", ""], ["c", "m"]]
    lines = [delimiter.join(f'"{cell}"' if len(cell) > 4 else cell for cell in row) for row in rows]
    table = read_csv(mark + end.join(["", *lines, ""]), COLUMNS.__contains__)
    assert table.delimiter == delimiter
    assert list(table.rows()) == [(2, rows[0]), (3, rows[1]), (5, rows[3])]


@pytest.mark.parametrize("blank", [" ", ";;"])
def test_blank_lines_above_the_header_hide_nothing(blank):
    table = read_csv(f"{blank}\nkey;sex\na;f\n", COLUMNS.__contains__)
    assert list(table.rows())[-1] == (3, ["a", "f"])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("key;size\na;0,5\n", "0.5"),
        ("key;size\na;1,234.5\n", "1,234.5"),
        ("key;size\na;1,234,567\n", "1,234,567"),
        ("key\tsize\na\t16,25\n", "16.25"),
        ("key\tsize\na\t16,000\n", "16,000"),
        ('key,size\na,"0,5"\n', "0,5"),
    ],
)
def test_decimal_commas_are_taken_where_no_comma_separates_cells(text, number):
    table = read_csv(text, COLUMNS.__contains__)
    [_, (_, cells)] = table.rows()
    assert to_number(cells[1], table.delimiter) == number


def test_quotes_that_do_not_close_are_told_with_their_line():
    with pytest.raises(InputError) as raised:
        list(read_csv('key;sex\na;f\n"b;m\n', COLUMNS.__contains__).rows())
    assert raised.value.line == 3


@pytest.mark.parametrize(("stated", "end"), [("sep=;", "\n"), ('"sep=;"', "\r\n")])
def test_first_line_for_excel_says_what_separates_cells(stated, end):
    table = read_csv(end.join([stated, "key;note", "a;1,5", ""]), {"key"}.__contains__)
    assert (table.delimiter, list(table.rows())) == (";", [(2, ["key", "note"]), (3, ["a", "1,5"])])
