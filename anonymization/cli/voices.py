"""The command ``voices``: which voices a run would give, without anonymising, or a check of a file of voices."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from anonymization.checks.voices import VoiceReport, check_voices_of_method
from anonymization.cli.arguments import (
    add_method,
    add_options,
    add_reading,
    find_named_method,
    read_options,
    read_reading,
    seed,
)
from anonymization.cli.records import write_text
from anonymization.cli.sources import SpeechSource, read_source
from anonymization.cli.voice_assignment import add_targets, list_target_rows, plan_source_voices, read_targeting
from anonymization.methods.contract import Anonymizer, takes_targets
from anonymization.methods.voices.assignment import Voices
from anonymization.methods.voices.files import list_voice_columns, read_voices, write_targets_csv, write_voices
from common.errors import CommandError
from common.terminal import print_json, print_problems, print_text, problem_rows

DESCRIPTION = (
    "The voices that run would give to a folder, as CSV on standard output or in a file. With --check, a file of "
    "voices is checked against rule (d) of the task: each speaker has one voice, no two speakers share one, and "
    "enrolment and trial voices differ."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("source", type=Path, nargs="?", metavar="IN", help="speech, as for run; not with --check")
    add_method(parser)
    parser.add_argument("--seed", type=seed, help="seed of the voices")
    add_targets(parser)
    add_reading(parser)
    add_options(parser)
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="write the voices there")
    parser.add_argument("--check", type=Path, metavar="FILE.csv", help="check the voices of a file instead")
    distance_help = "with --check: least distance between any two voices, 0 to 1 (default 0)"
    parser.add_argument("--distance", type=float, default=0.0, metavar="D", help=distance_help)


def run(options: argparse.Namespace) -> int:
    """Write or check voices; the exit code."""
    method = find_named_method(options.method)
    if options.check:
        return _check(method, options)
    if options.source is None:
        raise CommandError("voices: expected a folder whose speakers get voices, or --check FILE.csv; found neither.")
    if options.seed is None:
        raise CommandError("--seed: expected a whole number, from which the voices are drawn; found none.")
    targeting = read_targeting(method, options)
    source = read_source(options.source, read_reading(options))
    settled = read_options(method, options.option)
    voices = plan_source_voices(method, source, targeting, seed=options.seed, level=options.level, options=settled)
    report = check_voices_of_method(method, voices.assignments, distance=voices.distance)
    if options.out:
        _write(options.out, method, source, voices)
    if options.json:
        print_json(_content(report) | {"inferred": source.notes, "assignments": _list_rows(voices)})
    elif options.out:
        for note in source.notes:
            print_text(note)
        print_text(report.sentence())
        print_text(f"Written: {options.out}")
    else:
        _write(None, method, source, voices)
    return print_problems([*source.problems.report(), *report.problems])


def _write(path: Path | None, method: Anonymizer, source: SpeechSource, voices: Voices) -> None:
    """The voices, or for a method with targets the target of each utterance; without a path to standard output."""
    if not takes_targets(method):
        write_voices(path or sys.stdout, voices.assignments, list_voice_columns(method))
        return
    text = write_targets_csv(list_target_rows(source.utterances, source.data_sets, voices))
    if path is None:
        sys.stdout.write(text)
    else:
        write_text(path, text)


def _check(method: Anonymizer, options: argparse.Namespace) -> int:
    if not 0 <= options.distance <= 1:
        raise CommandError(f"--distance: expected a number from 0 to 1, found {options.distance:g}.")
    file = read_voices(options.check, str(options.check))
    if not file.assignments:
        file.require()
    report = check_voices_of_method(method, file.assignments, distance=options.distance, file=str(options.check))
    if options.json:
        print_json(_content(report))
    else:
        print_text(report.sentence())
    return print_problems([*file.problems, *report.problems])


def _content(report: VoiceReport) -> dict[str, object]:
    return asdict(report) | {"holds": report.voices_differ, "problems": problem_rows(report.problems)}


def _list_rows(voices: Voices) -> list[dict[str, object]]:
    columns = ("role", "split", "level", "speaker", "utterance")
    return [{name: getattr(row, name) for name in columns} | row.voice.as_dict() for row in voices.assignments]
