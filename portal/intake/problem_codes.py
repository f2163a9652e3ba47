"""What is said of each kind of problem in archives and corpora: the tables of ``problem_codes.toml``, filled in.

A kind is the code of its problems, followed by a slash and a word where several sentences belong to one code. Unless
its table names another severity it is an error.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from common.problems import Problem, Severity

_SENTENCES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def describe(
    kind: str,
    file: str,
    /,
    *,
    line: int | None = None,
    count: int = 1,
    severity: Severity | None = None,
    **values: Any,
) -> Problem:
    """Return a problem of a kind.

    Args:
        file, line, count: as in `Problem`.
        severity: in place of that of the kind.
        values: what its sentences name, beside `count`.
    """
    code, expected, found, remedy = fill(kind, **values, count=count)
    given = severity or Severity(_SENTENCES[kind].get("severity", Severity.ERROR))
    return Problem(code, file, expected, found, remedy, given, line, count)


def fill(kind: str, /, **values: Any) -> tuple[str, str, str, str]:
    """Code, what was expected, what was found, and what to do."""
    said = _SENTENCES[kind]
    expected, found, remedy = (said[part].format(**values) for part in ("expected", "found", "remedy"))
    return kind.partition("/")[0], expected, found, remedy
