"""``voices``: who gets which voice, before or without anonymising; and whether the voices of a file are in order."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from anonymization.commands.arguments import add_method, add_reading, method_of, reading_of, seed
from anonymization.commands.assigning import Voices
from anonymization.commands.records import write_whole
from anonymization.commands.sources import Source, read_source
from anonymization.commands.targeting import add_targets, plan_voices_of, rows_of_targets, targeting_of
from anonymization.methods.checks import VoiceReport, check_voices
from anonymization.methods.contract import Anonymizer, takes_targets
from anonymization.methods.target_checks import check_voices_of_method
from anonymization.methods.target_files import targets_as_csv
from anonymization.methods.voice_files import read_voices, write_voices
from evaluation.commands.terminal import CommandError, problem_rows, report_problems, say, say_json

DESCRIPTION = (
    "The voices that run would give to a folder, as CSV on standard output or in a file; with --check, whether a file "
    "of voices fulfils rule (d) of the task: one voice for a speaker, others for others and for enrolment."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("source", type=Path, nargs="?", metavar="IN", help="as for run; not needed with --check")
    add_method(parser)
    parser.add_argument("--seed", type=seed, help="what the voices are drawn from")
    add_targets(parser)
    add_reading(parser)
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="write them there")
    parser.add_argument("--check", type=Path, metavar="FILE.csv", help="look at the voices of a file instead")
    parser.add_argument(
        "--distance",
        type=float,
        default=0.0,
        metavar="D",
        help="that any two must keep, for --check, 0 to 1 (default 0)",
    )


def run(options: argparse.Namespace) -> int:
    """Write or check voices; the exit code."""
    method = method_of(options.method)
    if options.check:
        return _check(method, options)
    if options.source is None:
        raise CommandError("voices: expected a folder whose speakers get voices, or --check FILE.csv; found neither.")
    if options.seed is None:
        raise CommandError("--seed: expected a whole number, from which the voices are drawn; found none.")
    targeting = targeting_of(method, options)
    source = read_source(options.source, reading_of(options))
    voices = plan_voices_of(method, source, targeting, seed=options.seed, level=options.level)
    report = check_voices_of_method(method, voices.assignments, distance=voices.distance)
    if options.out:
        _write(options.out, method, source, voices)
    if options.json:
        say_json(_content(report) | {"inferred": source.remarks, "assignments": _rows(voices)})
    elif options.out:
        for remark in source.remarks:
            say(remark)
        say(report.sentence())
        say(f"Written: {options.out}")
    else:
        _write(None, method, source, voices)
    return report_problems([*source.problems.report(), *report.problems])


def _write(path: Path | None, method: Anonymizer, source: Source, voices: Voices) -> None:
    """The voices, or for a method with targets the target of each utterance; without a path to standard output."""
    if not takes_targets(method):
        names = [parameter.name for parameter in method.parameters]
        write_voices(path or sys.stdout, voices.assignments, names)
        return
    text = targets_as_csv(rows_of_targets(source.utterances, source.data_sets, voices))
    if path is None:
        sys.stdout.write(text)
    else:
        write_whole(path, text)


def _check(method: Anonymizer, options: argparse.Namespace) -> int:
    if not 0 <= options.distance <= 1:
        raise CommandError(f"--distance: expected a number from 0 to 1, found {options.distance:g}.")
    file = read_voices(options.check, str(options.check))
    if not file.assignments:
        file.require()
    report = check_voices(file.assignments, method.parameters, distance=options.distance, file=str(options.check))
    if options.json:
        say_json(_content(report))
    else:
        say(report.sentence())
    return report_problems([*file.problems, *report.problems])


def _content(report: VoiceReport) -> dict[str, object]:
    return asdict(report) | {"holds": report.holds, "problems": problem_rows(report.problems)}


def _rows(voices: Voices) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for row in voices.assignments:
        voice = {"key": row.voice.key, "parameters": dict(row.voice.parameters)}
        names = {"role": row.role, "split": row.split, "level": row.level}
        about: dict[str, object] = {**names, "speaker": row.speaker, "utterance": row.utterance, **voice}
        rows.append(about | ({"target": row.voice.target} if row.voice.target else {}))
    return rows
