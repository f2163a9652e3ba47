"""Cells of tables that a spreadsheet opens: no text that somebody typed is run there as a formula."""

from __future__ import annotations

import re
from typing import Any

_RUNS = ("=", "+", "-", "@", "\t", "\r")
_SIGNED_NUMBER = re.compile(r"[-+](?:\d++\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z", re.ASCII)


def harmless_cell(cell: Any) -> Any:
    """Return the cell as it is written; a text that a spreadsheet would run gets an apostrophe before it.

    A text that starts with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return is run, unless it is a number such
    as ``-1.633``. Anything but text is left as it is.

    Example:
        >>> harmless_cell("=1+1"), harmless_cell("-1.633"), harmless_cell(-1.633)
        ("'=1+1", '-1.633', -1.633)
    """
    if not isinstance(cell, str) or not cell.startswith(_RUNS) or _SIGNED_NUMBER.match(cell):
        return cell
    return f"'{cell}"


def mark_text(text: str) -> str:
    """Return a text for a file that is read again: harmless, and marked as well where it starts with an apostrophe
    itself."""
    return f"'{text}" if text.startswith("'") or harmless_cell(text) != text else text


def unmark_text(cell: str) -> str:
    """Return the text that `mark_text` was given."""
    return cell.removeprefix("'")
