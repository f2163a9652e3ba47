"""The single files of a results directory, each with the numbers of one test: read into claims, and written.

``ASV-*/{EER,Cllr,linkability_log,zebra}``, ``ASR-*`` and ``similarity_matrices_DeID_Gvd/<trials>/{DeIDentification,
gain_of_voice_distinctiveness}``; formats: protocol 1.2. Conventions: a path is relative to the results directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from evaluation.formats.claims import Claim
from evaluation.formats.expected_results import ExpectedLine, ResultKind, expected_lines
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem
from evaluation.formats.result_lines import parse_value
from evaluation.formats.results_2022 import ResultWriteError, by_identity, entry_claims, line_value
from evaluation.formats.text_files import Source, read_text_file, source_name
from evaluation.protocols.recipes import Recipe

SIMILARITY_FOLDER = "similarity_matrices_DeID_Gvd"
_DETECTION_FILES = {"EER": ("eer",), "Cllr": ("cllr", "rocch"), "linkability_log": ("linkability",),
                    "zebra": ("population", "individual")}  # fmt: skip
_DISTINCTIVENESS_FILES = {"DeIDentification": ("de_identification",), "gain_of_voice_distinctiveness": ("gain",)}
_MIN_DCF = re.compile(r"minDCF\(p-target=[\d.]+\): *\S*\Z")
# What surrounds the lines; {} is one line each. The minDCF values may be empty, says the protocol.
_TEMPLATES = {
    "EER": "{}\nminDCF(p-target=0.01): \nminDCF(p-target=0.001): \n",
    "Cllr": "{}\n     {}\n\n",
    "linkability_log": "{}\n\n",
    "zebra": "\n<name>\n{}\n{}\n\n",
}


@dataclass(frozen=True, slots=True)
class SingleFile:
    """One file of a results directory.

    Attributes:
        path: such as ``ASV-libri_dev_enrolls-libri_dev_trials_f/EER``.
        test: name of the test, such as ``ASV-libri_dev_enrolls-libri_dev_trials_f``.
        lines: what it holds, in order.
    """

    path: str
    test: str
    lines: tuple[ExpectedLine, ...]


def single_files(recipe: Recipe, kind: ResultKind) -> tuple[SingleFile, ...]:
    """Every single file of the results directory of a kind of model.

    Raises:
        RecipeError: the edition has no such directory.
    """
    blocks: dict[str, list[ExpectedLine]] = {}
    for line in expected_lines(recipe, kind):
        blocks.setdefault(line.name, []).append(line)
    return tuple(file for name, lines in blocks.items() for file in _files_of(name, lines))


def read_single_file(source: Source, file: SingleFile, problems: ProblemList, name: str | None = None) -> list[Claim]:
    """The numbers of a single file; what is wrong with it is added to `problems`.

    Faults: those of the text itself, ``unknown-line`` and ``missing-result``. minDCF values are passed over.
    """
    name = name or source_name(source)
    text, faults = read_text_file(source, name)
    problems.keep(faults)
    slots = {line.slot: line for line in file.lines}
    label_left = file.path.endswith("/zebra")  # one line of this file is a label
    claims: list[Claim] = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or (file.path.endswith("/EER") and _MIN_DCF.match(stripped)):
            continue
        entry = parse_value(stripped, number, file.test, inline=False)
        if entry and entry.slot in slots:
            claims += entry_claims(entry, slots.pop(entry.slot), name)
        elif label_left and entry is None:
            label_left = False
        else:
            remedy = "Restore the file as the official script wrote it."
            problems.add(Problem("unknown-line", name, "a result of this file", f"“{stripped}”", remedy, line=number))
    for slot in slots:
        remedy = "Run that part of the evaluation."
        problems.add(Problem("missing-result", name, " ".join(slot).strip(), "nothing", remedy))
    return claims


def write_single_file(claims: Iterable[Claim], file: SingleFile, out: TextIO) -> None:
    """Write the numbers of one test as the official scripts would; the minDCF values of ``EER`` are left empty.

    Args:
        claims: with those of the file; others are passed over.

    Raises:
        ResultWriteError: claims that the file needs are missing or given twice with different values.
    """
    given = by_identity(claims)
    wanted = [identity for line in file.lines for identity in line.identities]
    if missing := [f"{one.estimator} {one.metric}".strip() for one in wanted if one not in given]:
        raise ResultWriteError(f"Expected every number of {file.path}; missing: {', '.join(missing)}.")
    values = [line_value(line, given) for line in file.lines]
    template = _TEMPLATES.get(file.path.rpartition("/")[2], "{}\n" * len(values))
    out.write(template.replace("<name>", file.test).format(*values))


def write_single_files(folder: Path, claims: Iterable[Claim], recipe: Recipe, kind: ResultKind) -> tuple[Path, ...]:
    """Write every single file of a results directory for which all numbers are given; the paths written.

    Raises:
        ResultWriteError: a number is given twice with different values.
        RecipeError: the edition has no such directory.
    """
    given = by_identity(claims)
    written = []
    for file in single_files(recipe, kind):
        if all(identity in given for line in file.lines for identity in line.identities):
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8", newline="\n") as out:
                write_single_file(given.values(), file, out)
            written.append(path)
    return tuple(written)


def _files_of(name: str, lines: Sequence[ExpectedLine]) -> Iterator[SingleFile]:
    if name.startswith("ASR-"):
        yield SingleFile(name, name, tuple(lines))
        return
    is_detection = name.startswith("ASV-")
    folder = name if is_detection else f"{SIMILARITY_FOLDER}/{name}"
    for file, kinds in (_DETECTION_FILES if is_detection else _DISTINCTIVENESS_FILES).items():
        if wanted := tuple(line for line in lines if line.kind in kinds):
            yield SingleFile(f"{folder}/{file}", name, wanted)
