"""What of a portal changes from run to run and is therefore left out of what is frozen, and how the rest is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Set
from typing import Any

# Addresses that differ only in what stands here are one; the first of them is read. Teams and submissions keep theirs.
ADDRESS_PARTS = {
    r"(?<=/)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=/|$)": "<id>",
    r"(?<=/)d\d\d-\d{4}(?=/|$)": "<utterance>",
    r"(?<!/teams/)(?<!/submissions/)(?<=/)\d+(?=/|$)": "<number>",
    r"(?<=/listen/join/)[\w-]+(?=/|$)": "<key>",
    r"(?<=/listen/)(?!join/|withdraw/)[\w-]+(?=/|$)": "<session>",
    r"\.(?:svg|pdf|png)$": ".<picture>",
}
# Parts of texts that differ from run to run.
TEXT_PARTS = {
    r"http://127\.0\.0\.1:\d+": "<portal>",
    r"/media/[\w:.=-]+": "/media/<signed>",
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b": "<id>",
    r"\b[0-9a-f]{64}\b": "<hash>",
    r"\bbytes: \d+": "bytes: <size>",
    r"\b\d+\.\d+\.\d+\+[0-9a-f]{7,40}(?:\.changed)?": "<version>",
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00| UTC)?)?": "<time>",
}
# Fields of answers that differ from run to run, or with the machine.
FIELDS = {
    r"/api/systems/.*/files.*": {"file"},  # its key, in the order in which workers wrote them
    # Keys of documents follow the order of jobs, and the size of an archive the date in a document; progress of jobs.
    r"/api/submissions/\d+/": {"id", "size", "done", "stage"},
    r"/api/submissions/\d+/\w+": {"done", "stage"},
    r"/(?:api/)?studies/.*/results(?:\.json)?": {"numpy", "scipy"},  # the versions that are installed
    r"/api/engines/": {"missing"},  # why it does not run here
}
# Lists in the order in which jobs did something: here they are sorted.
SORTED = r".*/audit(?:\.csv)?"
# Files of which only the columns and the number of rows are kept.
COUNTED = {
    r"/systems/.*\.csv": "the numbers stand in the API's answers on the system",
    r"/systems/.*/numbers\.json": "the same",
    r"/studies/.*/results/tables/.*": "the numbers stand in the results of the study",
    r"/studies/.*/export[/.].*": "every answer; the results follow from them",
    r"/published-results/published\.csv": "the numbers stand in published.json",
}
# Files of the repository, and the state of the machine.
NOT_KEPT = ("/docs/", "/health/")
TABLE, SAME = "table of", "same as"
SHARED_FROM = 300  # characters
LONGEST_ROW = 600


def plain_address(address: str) -> str:
    """Return an address without what differs from run to run."""
    return _replaced(address, ADDRESS_PARTS)


def plain(content: Any, left_out: Set[str] = frozenset()) -> Any:
    """Return what was read without what differs from run to run, and without these fields."""
    if isinstance(content, str):
        return _replaced(content, TEXT_PARTS)
    if isinstance(content, dict):
        return {key: plain(value, left_out) for key, value in content.items() if key not in left_out}
    if isinstance(content, list):
        return [plain(value, left_out) for value in content]
    return content


def _replaced(text: str, parts: Mapping[str, str]) -> str:
    for pattern, word in parts.items():
        text = re.sub(pattern, word, text)
    return text


def plain_answer(address: str, content: Any) -> Any:
    """Return what an address answers without what differs from run to run; of some files, how much it is."""
    if any(re.fullmatch(pattern, address) for pattern in COUNTED):
        return _measured(content)
    left_out = set[str]().union(*(keys for pattern, keys in FIELDS.items() if re.fullmatch(pattern, address)))
    found = plain(content, left_out)
    return _sorted(found) if re.fullmatch(SORTED, address) else found


def _sorted(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _sorted(value) for key, value in content.items()}
    return sorted(content, key=json.dumps) if isinstance(content, list) else content


def _measured(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _measured(value) for key, value in content.items()}
    if isinstance(content, list):
        columns = list(content[0]) if content and isinstance(content[0], dict) else []
        return {"columns": columns, "rows": len(content)}
    return type(content).__name__


def pack(content: Any) -> Any:
    """Write each list of things with the same fields as a table: what is the same in all of them stands there once."""
    if isinstance(content, dict):
        return {key: pack(value) for key, value in content.items()}
    if not isinstance(content, list):
        return content
    if len(content) < 2 or not all(isinstance(one, dict) and one.keys() == content[0].keys() for one in content):
        return [pack(one) for one in content]
    columns = list(content[0])
    same = [key for key in columns if all(_is_same(one[key], content[0][key]) for one in content)]
    differing = [key for key in columns if key not in same]
    return {
        TABLE: columns,
        "same": {key: pack(content[0][key]) for key in same},
        "rows": [[pack(one[key]) for key in differing] for one in content],
    }


def unpack(content: Any) -> Any:
    """Return what was packed."""
    if isinstance(content, list):
        return [unpack(one) for one in content]
    if not isinstance(content, dict):
        return content
    if TABLE not in content:
        return {key: unpack(value) for key, value in content.items()}
    same = unpack(content["same"])
    differing = [key for key in content[TABLE] if key not in same]
    rows = [same | dict(zip(differing, unpack(row), strict=True)) for row in content["rows"]]
    return [{key: row[key] for key in content[TABLE]} for row in rows]


def _is_same(first: Any, second: Any) -> bool:
    """Return whether two values are the same number, text or nothing; lists and things stay in their rows."""
    return type(first) is type(second) and first == second and not isinstance(first, list | dict)


def share(content: dict[str, Any]) -> dict[str, Any]:
    """Write what stands in several places once; elsewhere stands where that is."""
    places: dict[str, list[str | int]] = {}

    def shared(part: Any, place: list[str | int]) -> Any:
        if not isinstance(part, dict | list):
            return part
        text = json.dumps(part, ensure_ascii=False)
        if len(text) >= SHARED_FROM:
            if text in places:
                return {SAME: places[text]}
            places[text] = place
        if isinstance(part, dict):
            return {key: shared(one, [*place, key]) for key, one in part.items()}
        return [shared(one, [*place, number]) for number, one in enumerate(part)]

    return {key: shared(one, [key]) for key, one in content.items()}


def unshare(content: dict[str, Any]) -> dict[str, Any]:
    """Return what was shared."""

    def unshared(part: Any) -> Any:
        if isinstance(part, list):
            return [unshared(one) for one in part]
        if not isinstance(part, dict):
            return part
        if SAME not in part:
            return {key: unshared(one) for key, one in part.items()}
        there: Any = content
        for step in part[SAME]:
            there = there[step]
        return unshared(there)

    return {key: unshared(one) for key, one in content.items()}


def write_json(content: Any, width: int = 160) -> str:
    """Return JSON that people can read: what is short, and each row of a table, stands on one line."""
    return "".join(_lines(content, "", width)) + "\n"


def _lines(content: Any, indent: str, width: int) -> Iterator[str]:
    short = json.dumps(content, ensure_ascii=False)
    is_row = isinstance(content, list) and not any(isinstance(one, list | dict) and one for one in content)
    if not isinstance(content, dict | list) or len(indent) + len(short) <= (LONGEST_ROW if is_row else width):
        yield short
        return
    inner = f"{indent} "
    is_dict = isinstance(content, dict)
    yield "{" if is_dict else "["
    for number, one in enumerate(content):
        key = f"{json.dumps(one, ensure_ascii=False)}: " if is_dict else ""
        yield f"{',' if number else ''}\n{inner}{key}"
        yield from _lines(content[one] if is_dict else one, inner, width)
    yield f"\n{indent}{'}' if is_dict else ']'}"
