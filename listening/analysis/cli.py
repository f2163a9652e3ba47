"""Commands of ``vp study``: analyse answers, make an analysis again, say what columns mean."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from common.errors import CommandError
from common.terminal import (
    FINE,
    NONE,
    PROBLEMS,
    ProgressBar,
    print_message,
    print_paragraph,
    print_table,
    print_text,
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


BUNDLE = "bundle.zip"
_OWN_NAMES = (bundle.RESULTS, BUNDLE, bundle.TABLES.rstrip("/"), bundle.FIGURES.rstrip("/"))
_SCALE = re.compile(r"(?:(?P<task>[a-z]+)[=:])?(?P<low>-?\d+(?:\.\d+)?)(?:-|\.\.)(?P<high>-?\d+(?:\.\d+)?)")


def _setting(name: str) -> Any:
    """Return the option of a setting of the analysis, described by the dictionary; by default that of a zip of inputs,
    or the usual one."""
    about = DICTIONARY["settings"][name]
    choices = f" {' or '.join(about['choices'])}." if "choices" in about else ""
    words = f"{about['title']}. {about['help']}{choices} By default {Settings().as_data()[name]}."
    return Option(metavar="VALUE", help=words)


Out = Annotated[Path, Argument(metavar="OUT", help="Folder for tables and figures; made if it is not there.")]
NoFigures = Annotated[bool, Option("--no-figures", help="Tables only.")]


def analyse_answers(
    ratings: Annotated[
        Path,
        Argument(
            metavar="RATINGS",
            help="CSV (or .csv.gz) of ratings (columns: “vp study describe ratings”), or a zip of inputs with its own "
            "settings; with --kind a CSV of answers, or a folder of them (columns: “vp study describe answers”).",
        ),
    ],
    out: Out,
    original: Annotated[
        str | None, Option(metavar="NAME", help="Name of unprotected speech, by default original, or ref.")
    ] = None,
    scale: Annotated[
        list[str] | None,
        Option(
            metavar="TASK=LOW-HIGH",
            help="Scale of one task, or without TASK= of all, by default lowest and highest rating; may be repeated.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        Option(
            metavar="KIND",
            help=f"Kind of the questions, where the file holds answers of any kind: {', '.join(KINDS)}.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=COLUMN",
            help="Column of answers that has another name in the file; may be repeated.",
        ),
    ] = None,
    pattern: Annotated[
        str,
        Option(
            metavar="REGEX",
            show_default=False,
            help="Condition and item in file names, as groups of these names, by default CONDITION/ITEM.wav.",
        ),
    ] = USUAL_PATTERN,
    reference: Annotated[str, Option(metavar="CONDITION", help="Hidden reference, or what CCR compared with.")] = "",
    anchor: Annotated[str, Option(metavar="CONDITION", help="7 kHz anchor of a MUSHRA test.")] = "",
    leave_out: Annotated[
        list[str] | None,
        Option(metavar="LISTENER", help="Whose answers do not count, by choice; may be repeated."),
    ] = None,
    objective: Annotated[
        Path | None, Option(metavar="CSV", help="Objective measures (columns: “vp study describe inputs”).")
    ] = None,
    normalisation: Annotated[str | None, _setting("normalisation")] = None,
    correction: Annotated[str | None, _setting("correction")] = None,
    resamples: Annotated[int | None, _setting("resamples")] = None,
    permutations: Annotated[int | None, _setting("permutations")] = None,
    level: Annotated[float | None, _setting("level")] = None,
    seed: Annotated[int | None, _setting("seed")] = None,
    least_clusters: Annotated[int | None, _setting("least_clusters")] = None,
    partial_trials: Annotated[int | None, _setting("partial_trials")] = None,
    partial_of_each_kind: Annotated[int | None, _setting("partial_of_each_kind")] = None,
    no_figures: NoFigures = False,
) -> int:
    """Analyse the answers of a listening test: tables, figures, and a bundle from which every number can be made again.

    vp study analyse ratings.csv results --scale 1-10
    vp study analyse mushra.csv sliders --kind mushra --reference reference
    """
    typed = {
        "normalisation": normalisation,
        "correction": correction,
        "resamples": resamples,
        "permutations": permutations,
        "level": level,
        "seed": seed,
        "least_clusters": least_clusters,
        "partial_trials": partial_trials,
        "partial_of_each_kind": partial_of_each_kind,
    }
    if kind not in (None, *KINDS):
        raise CommandError(f"--kind: expected one of {', '.join(KINDS)}, found “{kind}”.")
    _check_folder(out, ratings)
    settings, scales = Settings(), _scale(scale or [])
    if kind:
        columns = dict(text.partition("=")[::2] for text in column or ())
        if wrong := [name for name, its_column in columns.items() if not its_column]:
            raise CommandError(f"--column: expected NAME=COLUMN, found {wrong[0]!r}.")
        ends, left_out = next(iter((scales or {}).values()), None), tuple(leave_out or ())
        title = ratings.name if ratings.is_dir() else ""
        told = AnswerOptions(kind, columns, pattern, reference, anchor, ends, left_out, title=title)
        inputs = _read_answers(ratings, told)
    elif _is_zip(ratings):
        if original or scales:
            raise CommandError("--original and --scale belong to a CSV of ratings; a zip of inputs has its own.")
        inputs, settings = bundle.read_inputs(ratings)
    else:
        inputs = read_ratings(ratings, ratings.name, ReadOptions(original, scales))
    if objective is not None:
        inputs = replace(inputs, objective=read_objective(objective, objective.name))
    given = {name: value for name, value in typed.items() if value is not None}
    settings = parse_settings({**settings.as_data(), **given})
    with ProgressBar() as bar:
        results = analyse(inputs, settings, bar.show)
    figures = {} if no_figures else _draw(results)
    made = bundle.write_bundle(bundle.write_inputs(inputs, settings), results, figures)
    _write(out, results, figures, made)
    say_summary(results)
    print_text(f"\n{len(results.tables)} tables, {len(figures)} files of figures and {BUNDLE} are in {out}")
    return FINE


def reproduce_analysis(
    source: Annotated[Path, Argument(metavar="BUNDLE", help="Zip that vp study analyse or the portal made.")],
    out: Out,
    no_figures: NoFigures = False,
) -> int:
    """Analyse a bundle again and compare every table.

    The exit code is 1 where tables differ or the bundle was changed.

        vp study reproduce results/bundle.zip again
    """
    _check_folder(out, source)
    with ProgressBar() as bar:
        found = bundle.reproduce(source, source.name, bar.show)
    figures = {} if no_figures else _draw(found.results)
    held = {name: found.held.get(f"{bundle.FIGURES}{name}", content) for name, content in figures.items()}
    others = [name for name, content in figures.items() if held[name] != content]
    _write(out, found.results, figures)
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


def describe_tables_and_columns(
    names: Annotated[
        list[str] | None,
        Argument(metavar="NAME", help="ratings, answers, inputs, or names of tables, by default everything."),
    ] = None,
) -> int:
    """Explain the columns of files that are read, and the tables that are made.

    vp study describe ratings
    vp study describe summary detection
    """
    own = {"ratings": describe_columns("ratings"), "answers": describe_columns("answers"), "inputs": describe_inputs()}
    if not names:
        heads = ("COLUMNS OF A CSV OF RATINGS", "COLUMNS OF A CSV OF ANSWERS", "INPUTS IN A BUNDLE", "TABLES")
        print_text("\n\n\n".join(map("\n\n".join, zip(heads, (*own.values(), describe_tables()), strict=True))))
    for name in names or ():
        try:
            print_text(own[name] if name in own else describe_tables([name]))
        except KeyError:
            raise CommandError(
                f"Expected ratings, answers, inputs or a table, found {name!r}; vp study describe lists all."
            ) from None
    return FINE


def _read_answers(path: Path, told: AnswerOptions) -> Inputs:
    """Return the answers in a CSV file, or in all of a folder.

    Raises:
        CommandError: there is no such file.
        ProblemsError: a file cannot be used.
    """
    files = sorted(one for one in path.iterdir() if one.name.endswith((".csv", ".csv.gz"))) if path.is_dir() else [path]
    if not files:
        raise CommandError(f"{path}: expected CSV files, found none. Name another folder.")
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
