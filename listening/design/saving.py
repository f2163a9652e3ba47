"""Requests and designs as files: candidates as CSV, a design with its request as JSON.

The CSV has a header and the columns key, system, speaker, sex, class, source, enrolment; `system` is empty for
originals, `class` is target, nontarget, or empty where no voices are compared. The JSON holds everything that a
certificate is computed from.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, cast

from listening.design.plan import Candidate, Design, DesignError, DesignRequest, Extension, Sex

COLUMNS = ("key", "system", "speaker", "sex", "class", "source", "enrolment")
_CLASSES: dict[str, bool | None] = {"target": True, "nontarget": False, "": None}
_RELAXATIONS = ("sources_may_repeat", "enrolments_may_repeat", "sexes_as_in_pool")


def read_candidates(lines: Iterable[str], name: str) -> tuple[Candidate, ...]:
    """Candidates of a CSV.

    Args:
        lines: of the file.
        name: of the file, for what is said about it.

    Raises:
        DesignError: columns are missing, or lines have unknown values; one sentence for each line.
    """
    reader = csv.DictReader(lines)
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise DesignError(
            [f"{name}, line 1: expected the columns {', '.join(COLUMNS)}, found no {', '.join(missing)}."]
        )
    found, problems = [], []
    for row in reader:
        values = {column: (row[column] or "").strip() for column in COLUMNS}
        sex, of_class = values["sex"].lower(), values["class"].lower()
        place = f"{name}, line {reader.line_num}"
        empty = [column for column in ("key", "speaker", "source") if not values[column]]
        if empty:
            problems.append(f"{place}: expected a {' and a '.join(empty)}, found none.")
        if sex not in ("f", "m"):
            problems.append(f"{place}: expected sex f or m, found {values['sex']!r}.")
        if of_class not in _CLASSES:
            problems.append(f"{place}: expected class target, nontarget or nothing, found {values['class']!r}.")
        else:
            found.append(
                Candidate(
                    values["key"], values["system"], values["speaker"], cast("Sex", sex), _CLASSES[of_class],
                    values["source"], values["enrolment"],
                )
            )  # fmt: skip
    if problems:
        raise DesignError(problems)
    return tuple(found)


def write_design(request: DesignRequest, design: Design) -> str:
    """A design with its request as JSON text."""
    return json.dumps({"request": asdict(request), "design": asdict(design)}, indent=1)


def read_design(text: str, name: str) -> tuple[DesignRequest, Design]:
    """What `write_design` wrote.

    Raises:
        DesignError: it is no such file.
    """
    try:
        saved = json.loads(text)
        request, design = saved["request"], saved["design"]
        return _request(request), _design(design)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise DesignError([f"{name}: expected a saved design with its request, found {what}."]) from None


def _request(values: Mapping[str, Any]) -> DesignRequest:
    return DesignRequest(
        evaluators=int(values["evaluators"]),
        trials=int(values["trials"]),
        originals=int(values["originals"]),
        systems=tuple(str(system) for system in values["systems"]),
        candidates=tuple(Candidate(**candidate) for candidate in values["candidates"]),
        seed=int(values["seed"]),
        **{name: bool(values[name]) for name in _RELAXATIONS},
    )


def _design(values: Mapping[str, Any]) -> Design:
    return Design(
        version=str(values["version"]),
        seed=int(values["seed"]),
        blocks=tuple(tuple(str(key) for key in block) for block in values["blocks"]),
        extensions=tuple(Extension(int(one["blocks"]), int(one["seed"])) for one in values["extensions"]),
    )
