"""Texts that a spreadsheet would run are marked; numbers and all other texts stay as they are."""

from __future__ import annotations

import pytest

from common.harmless_cells import harmless_cell, mark_text, unmark_text


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-1+1", "-", "@SUM(A1)", "\tx", "\r=1", "=1", "-1e", "+1 2", "-1\n"])
def test_formula_gets_an_apostrophe(text):
    assert harmless_cell(text) == f"'{text}"


@pytest.mark.parametrize("cell", ["-1.633", "+3", "-.5", "-2e-05", "plain", "a=b", "", " =1", -1.5, 3, None, True])
def test_numbers_and_plain_texts_stay(cell):
    assert harmless_cell(cell) is cell


@pytest.mark.parametrize("text", ["=1", "'=1", "'", "''x", "plain", "", "-1.633"])
def test_marked_text_is_harmless_and_read_back(text):
    marked = mark_text(text)
    assert unmark_text(marked) == text
    assert harmless_cell(marked) == marked
