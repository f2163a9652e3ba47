"""TOML as strangers write it, held against limits first: to parse it may take far longer than to read it.

A key of 20,000 parts, as an example, takes `tomllib` the square of its length; a scan of the text takes its length.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from common.errors import ProblemsError
from common.problems import STEERING

LARGEST_TOML_BYTES = 1 << 18
MOST_ENTRIES = 20_000  # keys, items of lists and tables
MOST_PARTS = 8  # of a key such as data_sets.vctk_dev.role
MOST_LEVELS = 16  # of lists and tables in one another
LONGEST_TEXT = 200  # characters of a text or name that pages print in a line
_PLACE_CHARACTERS = 80
_SIGN = re.compile(r'"""|' r"'''" r"|[\"'#\n.=,\[\]{}]")
# What stands between each kind of quotation marks, and the end of a comment.
_REST = {
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*+"{3,5}+', re.DOTALL),
    "'''": re.compile(r"(?:[^']|'(?!''))*+'{3,5}+"),
    '"': re.compile(r'(?:[^"\\\n]|\\.)*+"'),
    "'": re.compile(r"[^'\n]*+'"),
    "#": re.compile(r"[^\n]*+"),
}


def parse_toml(text: str, file: str) -> dict[str, Any]:
    """Return the tables of a TOML text that its owner knows as `file`.

    Raises:
        ProblemsError: it is no TOML, or passes a limit; says where, what was expected and what was found.
    """
    if (size := len(text.encode("utf-8", "replace"))) > LARGEST_TOML_BYTES:
        raise ProblemsError(f"{file}: expected at most {LARGEST_TOML_BYTES >> 10} KiB of text, found {size:,} bytes.")
    if problems := _find_problems(text, file):
        raise ProblemsError(problems)
    try:
        return tomllib.loads(text)
    except ValueError as error:
        found = f": {error}" if isinstance(error, tomllib.TOMLDecodeError) else " a number of thousands of digits"
        raise ProblemsError(f"{file}: expected a readable TOML file, found{found}.") from error


def find_unprintable(value: Any, place: str) -> Iterator[str]:
    """Yield a sentence for each text or name below `place` that no page can print: too long, or with what steers a
    page."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _text_problems(name, f"a name in {place}")
            yield from find_unprintable(inner, f"{place}.{STEERING.sub('?', name[:_PLACE_CHARACTERS])}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from find_unprintable(inner, f"{place}[{number}]")
    elif isinstance(value, str):
        yield from _text_problems(value, place)


def _text_problems(text: str, place: str) -> Iterator[str]:
    if len(text) > LONGEST_TEXT:
        yield f"{place}: expected at most {LONGEST_TEXT} characters, found {len(text):,}."
    if sign := STEERING.search(text):
        kind = "a line without control characters and signs of direction"
        yield f"{place}: expected {kind}, found U+{ord(sign[0]):04X} at character {sign.start() + 1}."


def _find_problems(text: str, file: str) -> list[str]:
    """Return a sentence for each limit that the text passes, with the line where it first does."""
    limits = {"entries": MOST_ENTRIES, "parts of a key": MOST_PARTS, "levels": MOST_LEVELS}
    counts = {"entries": 0, "parts of a key": 1, "levels": 0}
    most, lines = dict(counts), dict.fromkeys(counts, 0)
    line = 1
    found = _SIGN.search(text)
    while found:
        sign, end = found[0], found.end()
        if sign in _REST:
            rest = _REST[sign].match(text, end)
            if rest is None:  # where the parser will stop
                break
            line += text.count("\n", end, rest.end())
            end = rest.end()
        else:
            counts["parts of a key"] = counts["parts of a key"] + 1 if sign == "." else 1
            counts["entries"] += sign in "=,["
            counts["levels"] = max(0, counts["levels"] + (sign in "[{") - (sign in "]}"))
            for name, count in counts.items():
                if count > most[name]:
                    most[name] = count
                    lines[name] = lines[name] or (line if count > limits[name] else 0)
            line += sign == "\n"
        found = _SIGN.search(text, end)
    return [
        f"{file}, line {lines[name]}: expected at most {limit:,} {name}, found {most[name]:,}."
        for name, limit in limits.items()
        if most[name] > limit
    ]
