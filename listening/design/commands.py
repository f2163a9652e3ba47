"""Commands of ``vp study``: ``plan`` makes a design of a CSV of trials, ``check`` checks one.

Candidates are read from CSV, a design with its request is kept as JSON. The CSV has a header and the columns key,
system, speaker, sex, class, source, enrolment; `system` is empty for originals, `class` is target or nontarget. The
JSON holds everything that a certificate is computed from.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Option

from common.csv_rows import read_csv
from common.errors import CommandError, InputError, ProblemsError
from common.parameters import AsJson
from common.terminal import FINE, PROBLEMS, print_text
from listening.design.allocation import allocate
from listening.design.certificate import Certificate, certify
from listening.design.requirements import Candidate, Design, DesignRequest, Extension, Sex

COLUMNS = ("key", "system", "speaker", "sex", "class", "source", "enrolment")
_CLASSES = {"target": True, "nontarget": False}
_RELAXATIONS = ("sources_may_repeat", "enrolments_may_repeat", "sexes_as_in_pool")


def read_candidates(text: str, name: str) -> tuple[Candidate, ...]:
    """Read the candidates of a table.

    Args:
        text: of the file.
        name: of the file, for what is said about it.

    Raises:
        ProblemsError: columns are missing, or lines have unknown values; one sentence for each line.
    """
    try:
        rows = list(read_csv(text, COLUMNS.__contains__).rows())
    except InputError as error:
        raise ProblemsError(f"{name}, line {error.line}: expected a table (CSV), found “{error}”.") from None
    header = [cell.strip() for cell in rows[0][1]] if rows else []
    if missing := [column for column in COLUMNS if column not in header]:
        found_columns = ", ".join(header) or "none"
        raise ProblemsError(
            f"{name}, line 1: expected the columns {', '.join(COLUMNS)}, between commas, semicolons or tabs, found "
            f"{found_columns}: no {', '.join(missing)}."
        )
    found, problems = [], []
    for line, cells in rows[1:]:
        place = f"{name}, line {line}"
        if len(cells) != len(header):
            problems.append(f"{place}: expected {len(header)} cells as in the header, found {len(cells)}.")
            continue
        row = dict(zip(header, cells, strict=True))
        values = {column: row[column].strip() for column in COLUMNS}
        sex, of_class = values["sex"].lower(), values["class"].lower()
        empty = [column for column in ("key", "speaker", "source", "enrolment") if not values[column]]
        if empty:
            problems.append(f"{place}: expected a value as {' and as '.join(empty)}, found none.")
        if sex not in ("f", "m"):
            problems.append(f"{place}: expected sex f or m, found {values['sex']!r}.")
        if of_class not in _CLASSES:
            problems.append(f"{place}: expected class target or nontarget, found {values['class']!r}.")
        else:
            names = {name: values[name] for name in ("key", "system", "speaker", "source", "enrolment")}
            found.append(Candidate(**names, sex=cast("Sex", sex), is_target=_CLASSES[of_class]))
    if problems:
        raise ProblemsError(problems)
    return tuple(found)


def write_design(request: DesignRequest, design: Design) -> str:
    """Return a design with its request as JSON text."""
    return json.dumps({"request": asdict(request), "design": asdict(design)}, indent=1)


def read_design(text: str, name: str) -> tuple[DesignRequest, Design]:
    """Return what `write_design` wrote.

    Raises:
        ProblemsError: it is no such file.
    """
    try:
        saved = json.loads(text)
        values, design = saved["request"], saved["design"]
        request = _request(values, values["systems"], [Candidate(**one) for one in values["candidates"]])
        blocks = tuple(tuple(map(str, block)) for block in design["blocks"])
        extensions = tuple(Extension(int(one["blocks"]), int(one["seed"])) for one in design["extensions"])
        return request, Design(str(design["version"]), int(design["seed"]), blocks, extensions)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ProblemsError(f"{name}: expected a saved design with its request, found {what}.") from None


def _request(values: Mapping[str, Any], systems: Iterable[Any], candidates: Sequence[Candidate]) -> DesignRequest:
    """Return a request from its numbers and relaxed rules by name."""
    numbers: dict[str, Any] = {name: int(values[name]) for name in ("evaluators", "trials", "originals", "seed")}
    relaxed = {name: bool(values[name]) for name in _RELAXATIONS}
    return DesignRequest(systems=tuple(map(str, systems)), candidates=tuple(candidates), **numbers, **relaxed)


def plan_design(
    candidates: Annotated[Path, Argument(metavar="CANDIDATES", help=f"CSV with the columns {', '.join(COLUMNS)}.")],
    evaluators: Annotated[int, Option(metavar="N", help="Number of evaluators.")] = 52,
    trials: Annotated[int, Option(metavar="N", help="Trials of each evaluator.")] = 52,
    originals: Annotated[int, Option(metavar="N", help="Trials of original speech among them.")] = 26,
    seed: Annotated[int, Option(metavar="N", help="Seed of the design.")] = 2022,
    sources_may_repeat: Annotated[
        bool,
        Option("--sources-may-repeat", help="Allow a trial utterance more than once in a session."),
    ] = False,
    enrolments_may_repeat: Annotated[
        bool,
        Option("--enrolments-may-repeat", help="Allow an enrolment utterance more than once in a session."),
    ] = False,
    sexes_as_in_pool: Annotated[
        bool,
        Option("--sexes-as-in-pool", help="Women and men as often as in the CSV, not half and half."),
    ] = False,
    out: Annotated[Path | None, Option(metavar="FILE", help="Write the design here, for “vp study check”.")] = None,
    as_json: AsJson = False,
) -> int:
    """Make a design of a listening test from a CSV of trials and print its certificate.

    The exit code is 1 where the certificate does not pass.

        vp study plan trials.csv --evaluators 6 --trials 12 --originals 6 --out design.json
    """
    found = read_candidates(_read(candidates), str(candidates))
    request = DesignRequest(
        systems=tuple(sorted({candidate.system for candidate in found} - {""})),
        candidates=found,
        evaluators=evaluators,
        trials=trials,
        originals=originals,
        seed=seed,
        sources_may_repeat=sources_may_repeat,
        enrolments_may_repeat=enrolments_may_repeat,
        sexes_as_in_pool=sexes_as_in_pool,
    )
    design = allocate(request)
    if out is not None:
        try:
            out.write_text(write_design(request, design), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{out}: expected a file that can be written, found “{error.strerror}”.") from None
    return _show(certify(request, design), as_json=as_json)


def check_design(
    design: Annotated[Path, Argument(metavar="DESIGN", help="File that “vp study plan --out” wrote.")],
    as_json: AsJson = False,
) -> int:
    """Check a saved design again and print its certificate.

    The exit code is 1 where the certificate does not pass.

        vp study check design.json
    """
    request, saved = read_design(_read(design), str(design))
    return _show(certify(request, saved), as_json=as_json)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandError(f"{path}: expected a readable file, found “{error.strerror}”.") from None
    except UnicodeDecodeError as error:
        found = "UTF-16" if error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "other bytes"
        raise CommandError(f"{path}: expected UTF-8 text, found {found}. Save it as UTF-8.") from None


def _show(certificate: Certificate, *, as_json: bool) -> int:
    if as_json:
        print_text(json.dumps(certificate.as_json(), indent=1))
    else:
        print_text(f"Balance certificate: {'passes' if certificate.passes else 'DOES NOT PASS'}")
        print_text(f"SHA-256 {certificate.sha256}, seed {certificate.seed}, version {certificate.design_version}")
        print_text(", ".join(f"{value} {name}" for name, value in certificate.numbers.items()))
        for sentence in certificate.relaxed:
            print_text(f"relaxed  {sentence}")
        for check in certificate.checks:
            print_text(f"{'ok      ' if check.passed else 'NOT MET '} {check.sentence}")
    return FINE if certificate.passes else PROBLEMS
