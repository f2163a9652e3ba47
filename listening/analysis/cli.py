"""The commands of ``python -m listening.analysis``: analyse ratings, make an analysis again, say what columns mean.

Exit code 0: done; 1: ``reproduce`` found tables that differ, or a bundle that was changed; 2: bad usage or input that
cannot be analysed, each fault in one sentence on standard error; 130: interrupted. Results go to standard output.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from evaluation.commands.running import Parser, run_command
from evaluation.commands.terminal import FINE, PROBLEMS, CommandError, say, say_wrapped, warn
from evaluation.figures.style import ImageFormat
from listening.analysis.analyse import analyse
from listening.analysis.bundle import FIGURES, RESULTS, TABLES, bundle, read_inputs, result_files, write_inputs
from listening.analysis.data_dictionary import inputs_words, ratings_words, tables_words
from listening.analysis.errors import AnalysisInputError
from listening.analysis.input_checks import GREATEST_RATING
from listening.analysis.inputs import RATED, Inputs
from listening.analysis.reading import read_objective, read_ratings
from listening.analysis.reproducing import differing_figures, reproduce
from listening.analysis.settings import Settings, settings_from
from listening.analysis.tables import Results
from listening.analysis.terminal_summary import say_summary

PROGRAM = "python -m listening.analysis"
BUNDLE = "bundle.zip"
_OWN_NAMES = (RESULTS, BUNDLE, TABLES.rstrip("/"), FIGURES.rstrip("/"))
FORMATS: tuple[ImageFormat, ...] = ("svg", "pdf", "png")
_EPILOGUE = (
    "Exit code: 0 done, 1 tables differ or the bundle was changed (reproduce), 2 bad usage or unreadable input, "
    "130 interrupted."
)
_BAR_WIDTH = 30
_SCALE = re.compile(r"(?:(?P<task>[a-z]+)[=:])?(?P<low>-?\d+(?:\.\d+)?)(?:-|\.\.)(?P<high>-?\d+(?:\.\d+)?)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and never raises for what a person typed or sent."""
    return run_command(lambda: _parser().parse_args(arguments))


def _parser() -> Parser:
    parser = Parser(prog=PROGRAM, description=__doc__.split("\n")[0], epilog=_EPILOGUE, allow_abbrev=False)
    commands = parser.add_subparsers(metavar="command", required=True)
    run = commands.add_parser("run", help="analyse a CSV of ratings, or a zip of inputs", epilog=_EPILOGUE)
    run.add_argument("ratings", type=Path, help="CSV (or .csv.gz) of ratings, see describe ratings; or a zip of inputs")
    run.add_argument("out", type=Path, help="folder for tables, figures and the bundle; made if it is not there")
    run.add_argument("--original", metavar="NAME", help="which system is unprotected speech; usually original (or ref)")
    run.add_argument(
        "--scale", action="append", metavar="[TASK=]LOW-HIGH", help="scale of a task or of all; else found in the data"
    )
    run.add_argument("--unconverted", default="team34", metavar="NAME", help="in the form of 2020: unconverted speech")
    run.add_argument("--objective", type=Path, metavar="CSV", help="measures by system and utterance, see describe")
    run.add_argument("--title", default="", help="of the study")
    _add_settings(run)
    run.set_defaults(run=_run)
    again = commands.add_parser("reproduce", help="analyse a bundle again and compare every table", epilog=_EPILOGUE)
    again.add_argument("bundle", type=Path, help="zip that run or the portal made")
    again.add_argument("out", type=Path, help="folder for tables and figures; made if it is not there")
    again.set_defaults(run=_reproduce)
    for command in (run, again):
        command.add_argument("--scores", choices=("raw", "normalised"), default="normalised", help="shown in the end")
        command.add_argument("--no-figures", action="store_true", help="tables only")
        command.add_argument(
            "--formats", default=",".join(FORMATS), help=f"of the figures, by commas: {', '.join(FORMATS)}"
        )
    describe = commands.add_parser("describe", help="say what columns and tables mean", epilog=_EPILOGUE)
    describe.add_argument("names", nargs="*", metavar="NAME", help="ratings, inputs, or tables; else everything")
    describe.set_defaults(run=_describe)
    return parser


def _add_settings(command: argparse.ArgumentParser) -> None:
    usual = Settings().as_data()
    for one in fields(Settings):
        value = usual[one.name]
        option = "--" + one.name.replace("_", "-")
        command.add_argument(option, type=type(value), help=f"usually {value}", default=None)


def _run(options: argparse.Namespace) -> int:
    formats = _formats(options)
    _check_folder(options.out, options.ratings)
    try:
        inputs, settings = _inputs(options)
        with _Progress() as progress:
            results = analyse(inputs, settings, progress)
    except AnalysisInputError as error:
        raise CommandError("\n".join(error.problems)) from None
    files = result_files(results)
    figures = _drawn(results, formats)
    try:
        _write(options.out, {**files, **{f"{FIGURES}{name}": content for name, content in figures.items()}})
        with (options.out / BUNDLE).open("wb") as file:
            file.writelines(bundle(write_inputs(inputs, settings), results, figures))
    except OSError as error:
        raise CommandError(f"{options.out}: cannot be written, “{error.strerror}”. Name another folder.") from None
    say_summary(results, options.scores)
    say()
    say(f"{len(files) - 1} tables, {len(figures)} files of figures and {BUNDLE} are in {options.out}")
    return FINE


def _reproduce(options: argparse.Namespace) -> int:
    formats = _formats(options)
    _check_folder(options.out, options.bundle)
    try:
        with _Progress() as progress:
            found = reproduce(options.bundle, options.bundle.name, progress)
        figures = _drawn(found.results, formats)
        others = differing_figures(options.bundle, options.bundle.name, figures)
    except AnalysisInputError as error:
        raise CommandError("\n".join(error.problems)) from None
    files = result_files(found.results)
    try:
        _write(options.out, {**files, **{f"{FIGURES}{name}": content for name, content in figures.items()}})
    except OSError as error:
        raise CommandError(f"{options.out}: cannot be written, “{error.strerror}”. Name another folder.") from None
    say_summary(found.results, options.scores)
    say()
    for sentence in (*found.damaged, *found.differing):
        warn(sentence)
    if not found.equal and not found.differing:
        say("There are no tables in it to compare with; those made now are in the folder.")
    else:
        say(f"{found.equal} tables are the same byte for byte, {len(found.differing)} differ.")
    if others:
        named = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        say_wrapped(
            f"{len(others)} of {len(figures)} files of figures have other bytes, which another version of matplotlib "
            f"or of its fonts explains where the tables are the same: {named}."
        )
    elif figures:
        say(f"{len(figures)} files of figures are the same as far as the bundle has them.")
    return PROBLEMS if found.damaged or found.differing else FINE


def _describe(options: argparse.Namespace) -> int:
    own = {"ratings": ratings_words, "inputs": inputs_words}
    if not options.names:
        say("COLUMNS OF A CSV OF RATINGS\n\n" + ratings_words())
        say("\n\nINPUTS IN A BUNDLE\n\n" + inputs_words())
        say("\n\nTABLES\n\n" + tables_words())
        return FINE
    for name in options.names:
        try:
            say(own[name]() if name in own else tables_words([name]))
        except KeyError:
            raise CommandError(
                f"Expected ratings, inputs or the name of a table, found {name!r}; {PROGRAM} describe lists all."
            ) from None
    return FINE


def _inputs(options: argparse.Namespace) -> tuple[Inputs, Settings]:
    """What to analyse, and the settings: those of a zip of inputs, changed by what was typed.

    Raises:
        AnalysisInputError: a file or a setting cannot be used.
    """
    typed = {one.name: getattr(options, one.name) for one in fields(Settings)}
    typed = {name: value for name, value in typed.items() if value is not None}
    path: Path = options.ratings
    if zipped := _is_zip(path):
        inputs, settings = read_inputs(path)
    else:
        scale = _scale(options.scale or [])
        inputs = read_ratings(
            path, path.name, original=options.original, scale=scale, unconverted=options.unconverted,
            title=options.title,
        )  # fmt: skip
        settings = Settings()
    if zipped and (options.original or options.scale):
        raise CommandError("--original and --scale belong to a CSV of ratings; a zip of inputs has its own.")
    if options.objective is not None:
        inputs = replace(inputs, objective=read_objective(options.objective, options.objective.name))
    return inputs, settings_from({**settings.as_data(), **typed})


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\3\4"
    except OSError:
        return False  # said by whoever reads it


def _scale(given: Sequence[str]) -> Mapping[str, tuple[float, float]] | None:
    """The scale of each task.

    Raises:
        CommandError: a text is no scale.
    """
    ends: dict[str, tuple[float, float]] = {}
    for text in given:
        found = _SCALE.fullmatch(text)
        if found is None or float(found["low"]) >= float(found["high"]) or found["task"] not in (None, *RATED):
            raise CommandError(f"--scale: expected such as 1-10 or naturalness=1-5, found {text!r}.")
        low, high = float(found["low"]), float(found["high"])
        if max(abs(low), abs(high)) > GREATEST_RATING:
            raise CommandError(f"--scale: expected ratings within ±{GREATEST_RATING:,}, found {text[:60]!r}.")
        for task in RATED if found["task"] is None else (found["task"],):
            ends[task] = (low, high)
    return ends or None


def _formats(options: argparse.Namespace) -> tuple[ImageFormat, ...]:
    if options.no_figures:
        return ()
    chosen = [one.strip() for one in options.formats.split(",")]
    if unknown := [one for one in chosen if one not in FORMATS]:
        raise CommandError(f"--formats: expected some of {', '.join(FORMATS)}, found {unknown[0]!r}.")
    return tuple(one for one in FORMATS if one in chosen)


def _drawn(results: Results, formats: Sequence[ImageFormat]) -> dict[str, bytes]:
    """Every figure in these formats, by the name of its file."""
    if not formats:
        return {}
    from listening.analysis.figures import draw_files, figures_of

    with _Progress() as progress:
        return dict(draw_files(figures_of(results), formats, progress))


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
    if others or (found and RESULTS not in found):
        shown = f"“{others[0]}”" if others else "other files"
        raise CommandError(f"{out}: expected a new folder or one with earlier results alone, found {shown} in it.")


def _write(out: Path, files: Mapping[str, bytes]) -> None:
    for folder in (TABLES, FIGURES):
        shutil.rmtree(out / folder, ignore_errors=True)
    for name, content in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class _Progress:
    """A bar on standard error, where that is a terminal."""

    def __enter__(self) -> _Progress:
        self._is_shown = sys.stderr.isatty()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._is_shown:
            filled = _BAR_WIDTH * done // max(total, 1)
            sys.stderr.write(f"\r\x1b[K{'█' * filled}{'░' * (_BAR_WIDTH - filled)} {done}/{total} {stage}")
            sys.stderr.flush()
