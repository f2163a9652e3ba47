"""The commands of ``python -m listening.analysis``: analyse ratings, make an analysis again, say what columns mean.

Exit code 0: done; 1: ``reproduce`` found tables that differ, or a bundle that was changed; 2: bad usage or input that
cannot be analysed, each problem in one sentence on standard error; 130: interrupted. Results go to standard output.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from common.errors import CommandError, ProblemsError
from common.terminal import (
    FINE,
    NONE,
    PROBLEMS,
    Parser,
    ProgressBar,
    print_message,
    print_paragraph,
    print_table,
    print_text,
    run_command,
)
from listening.analysis import bundle
from listening.analysis.analyse import analyse
from listening.analysis.figures import list_figures
from listening.analysis.reading.answer_values import KINDS
from listening.analysis.reading.answers import USUAL_PATTERN, AnswerOptions, read_answers
from listening.analysis.reading.input_files import GREATEST_RATING
from listening.analysis.reading.inputs import Inputs, Scale, Settings, parse_settings
from listening.analysis.reading.ratings import RATED, ReadOptions, read_objective, read_ratings
from listening.analysis.tables import (
    CONTENTS,
    DICTIONARY,
    Results,
    describe_columns,
    describe_inputs,
    describe_tables,
)

# Tables that are printed where they have rows, and which of their columns.
_PRINTED = {
    "normalised/summary": "task system kind n mean mean_low mean_high group",
    "normalised/detection": "task system eer eer_low eer_high group",
    "normalised/pair_detection": "pairs system eer eer_low eer_high auc",
    "common/transcription": "system n wer wer_low wer_high recogniser_wer",
    "common/estimates": "question measure condition against n value value_low value_high adjusted letters",
}


def say_summary(results: Results) -> None:
    """Print facts, notes and the main numbers, as the tables have them."""
    counts = results.counts
    said = [
        f"{counts[name]:,} {name}"
        for name in ("ratings", "placements", "transcripts", "answers", "sessions", "listeners")
        if name in counts
    ]
    print_text(f"{results.study['title']}: {', '.join(said)}")
    if results.study["is_simulated"]:
        print_text("SIMULATED: no person has listened.")
    for note in results.remarks:
        print_paragraph(f"- {note}")
    for path, names in _PRINTED.items():
        scores, table = path.split("/")
        if rows := results.records(scores, table):
            print_text(f"\n{CONTENTS[table].title}{', normalised' if scores == 'normalised' else ''}")
            print_table(names.split(), [[_cell(row[name]) for name in names.split()] for row in rows])
    caught = results.records("common", "screening", is_caught=1) if results.table("common", "estimates") else []
    if named := dict.fromkeys(str(row["listener"]) for row in caught):
        print_paragraph(f"Listeners whom post-screening names: {', '.join(named)}.")


def _cell(value: Any) -> str:
    if value in (None, ""):
        return NONE
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


PROGRAM = "python -m listening.analysis"
BUNDLE = "bundle.zip"
_OWN_NAMES = (bundle.RESULTS, BUNDLE, bundle.TABLES.rstrip("/"), bundle.FIGURES.rstrip("/"))
_EPILOGUE = (
    "Exit code: 0 done, 1 tables differ or the bundle was changed (reproduce), 2 bad usage or unreadable input, "
    "130 interrupted."
)
_SCALE = re.compile(r"(?:(?P<task>[a-z]+)[=:])?(?P<low>-?\d+(?:\.\d+)?)(?:-|\.\.)(?P<high>-?\d+(?:\.\d+)?)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and never raises for what a person typed or sent."""
    return run_command(lambda: _parser().run(arguments))


def _parser() -> Parser:
    parser = Parser(
        prog=PROGRAM, description="Analyse the answers of listening tests.", epilog=_EPILOGUE, allow_abbrev=False
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    run = commands.add_parser("run", help="analyse a CSV of ratings, or a zip of inputs", epilog=_EPILOGUE)
    run.add_argument(
        "ratings",
        type=Path,
        help="CSV (or .csv.gz) of ratings (columns: “describe ratings”), or a zip of inputs with its own settings; "
        "with --kind a CSV of answers, or a folder of them (columns: “describe answers”)",
    )
    run.add_argument("out", type=Path, help="folder for tables, figures and the bundle; made if it is not there")
    run.add_argument("--original", metavar="NAME", help="name of unprotected speech (default original, or ref)")
    run.add_argument(
        "--scale",
        action="append",
        metavar="[TASK=]LOW-HIGH",
        help="scale of one task or of all (default: lowest and highest rating)",
    )
    run.add_argument("--kind", choices=KINDS, help="kind of the questions, where the file holds answers of any kind")
    run.add_argument(
        "--column", action="append", metavar="NAME=COLUMN", help="column of answers that has another name in the file"
    )
    run.add_argument(
        "--pattern",
        default=USUAL_PATTERN,
        metavar="REGEX",
        help="condition and item in file names, as groups of these names (default: CONDITION/ITEM.wav)",
    )
    run.add_argument("--reference", default="", metavar="CONDITION", help="hidden reference, or what CCR compared with")
    run.add_argument("--anchor", default="", metavar="CONDITION", help="7 kHz anchor of a MUSHRA test")
    run.add_argument("--leave-out", action="append", metavar="LISTENER", help="whose answers do not count, by choice")
    run.add_argument("--objective", type=Path, metavar="CSV", help="objective measures (columns: “describe inputs”)")
    _add_settings(run)
    run.set_defaults(run=_run)
    again = commands.add_parser("reproduce", help="analyse a bundle again and compare every table", epilog=_EPILOGUE)
    again.add_argument("bundle", type=Path, help="zip that run or the portal made")
    again.add_argument("out", type=Path, help="folder for tables and figures; made if it is not there")
    again.set_defaults(run=_reproduce)
    for command in (run, again):
        command.add_argument("--no-figures", action="store_true", help="tables only")
    describe = commands.add_parser("describe", help="explain columns and tables", epilog=_EPILOGUE)
    describe.add_argument(
        "names", nargs="*", metavar="NAME", help="ratings, answers, inputs, or names of tables (default: everything)"
    )
    describe.set_defaults(run=_describe)
    return parser


def _add_settings(command: argparse.ArgumentParser) -> None:
    usual = Settings().as_data()
    for name, about in DICTIONARY["settings"].items():
        words = f"{about['title']}. {about['help']} {' or '.join(about.get('choices', ()))} (default {usual[name]})"
        option = f"--{name.replace('_', '-')}"
        command.add_argument(option, type=type(usual[name]), metavar="VALUE", help=words.replace("%", "%%"))


def _run(options: argparse.Namespace) -> int:
    _check_folder(options.out, options.ratings)
    try:
        inputs, settings = _inputs(options)
        with ProgressBar() as bar:
            results = analyse(inputs, settings, bar.show)
    except ProblemsError as error:
        raise CommandError("\n".join(error.problems)) from None
    figures = {} if options.no_figures else _draw(results)
    made = bundle.write_bundle(bundle.write_inputs(inputs, settings), results, figures)
    _write(options.out, results, figures, made)
    say_summary(results)
    print_text(f"\n{len(results.tables)} tables, {len(figures)} files of figures and {BUNDLE} are in {options.out}")
    return FINE


def _reproduce(options: argparse.Namespace) -> int:
    _check_folder(options.out, options.bundle)
    try:
        with ProgressBar() as bar:
            found = bundle.reproduce(options.bundle, options.bundle.name, bar.show)
        figures = {} if options.no_figures else _draw(found.results)
        held = {name: found.held.get(f"{bundle.FIGURES}{name}", content) for name, content in figures.items()}
        others = [name for name, content in figures.items() if held[name] != content]
    except ProblemsError as error:
        raise CommandError("\n".join(error.problems)) from None
    _write(options.out, found.results, figures)
    say_summary(found.results)
    print_text()
    for sentence in (*found.damaged, *found.differing):
        print_message(sentence)
    if not found.equal and not found.differing:
        print_text("The bundle has no tables to compare with; those made now are in the folder.")
    else:
        print_text(f"{found.equal} tables are the same byte for byte, {len(found.differing)} differ.")
    if others:
        named = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        print_paragraph(
            f"{len(others)} of {len(figures)} files of figures have other bytes, which another version of matplotlib "
            f"or of its fonts explains where the tables are the same: {named}."
        )
    elif figures:
        print_text(f"{len(figures)} files of figures were made; none differs from a file in the bundle.")
    return PROBLEMS if found.damaged or found.differing else FINE


def _describe(options: argparse.Namespace) -> int:
    own = {"ratings": describe_columns("ratings"), "answers": describe_columns("answers"), "inputs": describe_inputs()}
    if not options.names:
        heads = ("COLUMNS OF A CSV OF RATINGS", "COLUMNS OF A CSV OF ANSWERS", "INPUTS IN A BUNDLE", "TABLES")
        print_text("\n\n\n".join(map("\n\n".join, zip(heads, (*own.values(), describe_tables()), strict=True))))
    for name in options.names:
        try:
            print_text(own[name] if name in own else describe_tables([name]))
        except KeyError:
            raise CommandError(
                f"Expected ratings, answers, inputs or a table, found {name!r}; {PROGRAM} describe lists all."
            ) from None
    return FINE


def _inputs(options: argparse.Namespace) -> tuple[Inputs, Settings]:
    """Return what to analyse, and the settings: those of a zip of inputs, changed by what was typed.

    Raises:
        ProblemsError: a file or a setting cannot be used.
    """
    typed = {one.name: getattr(options, one.name) for one in fields(Settings)}
    typed = {name: value for name, value in typed.items() if value is not None}
    path: Path = options.ratings
    zipped = _is_zip(path)
    if options.kind:
        inputs, settings = _answers(options), Settings()
    elif zipped:
        inputs, settings = bundle.read_inputs(path)
    else:
        scale = _scale(options.scale or [])
        inputs = read_ratings(path, path.name, ReadOptions(options.original, scale))
        settings = Settings()
    if zipped and (options.original or options.scale):
        raise CommandError("--original and --scale belong to a CSV of ratings; a zip of inputs has its own.")
    if options.objective is not None:
        inputs = replace(inputs, objective=read_objective(options.objective, options.objective.name))
    return inputs, parse_settings({**settings.as_data(), **typed})


def _answers(options: argparse.Namespace) -> Inputs:
    """Return the answers in a CSV file, or in all of a folder.

    Raises:
        CommandError: an option is no name of a column.
        ProblemsError: a file cannot be used.
    """
    path: Path = options.ratings
    files = sorted(one for one in path.iterdir() if one.name.endswith((".csv", ".csv.gz"))) if path.is_dir() else [path]
    if not files:
        raise CommandError(f"{path}: expected CSV files, found none. Name another folder.")
    columns = dict(one.partition("=")[::2] for one in options.column or [])
    if wrong := [name for name, column in columns.items() if not column]:
        raise CommandError(f"--column: expected NAME=COLUMN, found {wrong[0]!r}.")
    scale = _scale(options.scale or [])
    told = AnswerOptions(
        options.kind,
        columns,
        options.pattern,
        options.reference,
        options.anchor,
        next(iter(scale.values())) if scale else None,
        tuple(options.leave_out or ()),
        title=path.name if path.is_dir() else "",
    )
    return read_answers([(one.name, one) for one in files], told)


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\3\4"
    except OSError:
        return False  # the reader of the file reports it


def _scale(given: Sequence[str]) -> Scale | None:
    """Return the scale of each task.

    Raises:
        CommandError: a text is no scale.
    """
    ends: dict[str, tuple[float, float]] = {}
    for text in given:
        found = _SCALE.fullmatch(text)
        if found is None or float(found["low"]) >= float(found["high"]) or found["task"] not in (None, *RATED):
            raise CommandError(f"--scale: expected a scale such as 1-10 or naturalness=1-5, found {text!r}.")
        low, high = float(found["low"]), float(found["high"])
        if max(abs(low), abs(high)) > GREATEST_RATING:
            raise CommandError(f"--scale: expected ratings within ±{GREATEST_RATING:,}, found {text[:60]!r}.")
        for task in RATED if found["task"] is None else (found["task"],):
            ends[task] = (low, high)
    return ends or None


def _draw(results: Results) -> dict[str, bytes]:
    """Return every figure by the names of its files."""
    figures, files = list_figures(results), dict[str, bytes]()
    with ProgressBar() as bar:
        for done, figure in enumerate(figures):
            bar.show(f"figure {figure.scores}/{figure.name}", done, len(figures))
            files |= figure.draw(figure.files)
    return files


def _check_folder(out: Path, read: Path) -> None:
    """Say before the work whether the results have a place; a folder of earlier results is replaced.

    Args:
        read: what is analysed, which must not be replaced.

    Raises:
        CommandError: something else is there.
    """
    if out.exists() and not out.is_dir():
        raise CommandError(f"{out}: expected a folder, found a file. Name another folder.")
    if out.is_dir() and read.exists() and read.resolve().parent == out.resolve():
        raise CommandError(f"{out}: expected another folder than that of {read.name}, which stays as it is.")
    found = sorted(one.name for one in out.iterdir()) if out.is_dir() else []
    others = [name for name in found if name not in _OWN_NAMES]
    if others or (found and bundle.RESULTS not in found):
        shown = f"“{others[0]}”" if others else "other files"
        raise CommandError(f"{out}: expected a new folder or one with earlier results alone, found {shown} in it.")


def _write(out: Path, results: Results, figures: Mapping[str, bytes], pieces: Iterable[bytes] = ()) -> None:
    """Write tables, figures and, where there is one, the bundle into the folder.

    Raises:
        CommandError: something cannot be written.
    """
    try:
        for folder in (bundle.TABLES, bundle.FIGURES):
            shutil.rmtree(out / folder, ignore_errors=True)
        drawn = {f"{bundle.FIGURES}{name}": content for name, content in figures.items()}
        for name, content in (bundle.write_results(results) | drawn).items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if pieces:
            with (out / BUNDLE).open("wb") as file:
                file.writelines(pieces)
    except OSError as error:
        raise CommandError(f"{out}: cannot be written, “{error.strerror}”. Name another folder.") from None
