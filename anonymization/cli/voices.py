"""``vp voices``: which voices a run would give, without anonymising, or a check of a file of voices."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from anonymization.checks.voices import VoiceReport, check_voices_of_method
from anonymization.cli import arguments
from anonymization.cli.records import write_text
from anonymization.cli.sources import Reading, SpeechSource, read_source
from anonymization.cli.voice_assignment import list_target_rows, plan_source_voices, read_targeting
from anonymization.methods.contract import Anonymizer, takes_targets
from anonymization.methods.voices.assignment import Voices
from anonymization.methods.voices.files import list_voice_columns, read_voices, write_targets_csv, write_voices
from common.errors import CommandError
from common.parameters import AsJson
from common.terminal import print_json, print_problems, print_text, problem_rows


def voices(
    method: arguments.MethodName,
    source: Annotated[
        Path | None, Argument(metavar="IN", help="Speech, as for vp anonymize; not with --check.")
    ] = None,
    seed: arguments.Seed = None,
    targets: arguments.TargetFolder = None,
    target_selection: arguments.TargetSelection = None,
    genders: arguments.Genders = None,
    role: arguments.SpeakerRole = None,
    split: arguments.Split = None,
    level: arguments.VoiceLevel = None,
    speaker_from: arguments.NamedBy = None,
    option: arguments.MethodOptions = None,
    out: Annotated[Path | None, Option(metavar="FILE.csv", help="Write the voices there.")] = None,
    check: Annotated[Path | None, Option(metavar="FILE.csv", help="Check the voices of a file instead.")] = None,
    distance: Annotated[
        float, Option(min=0, max=1, metavar="D", help="With --check: least distance between any two voices.")
    ] = 0,
    as_json: AsJson = False,
) -> int:
    """Show the voices that vp anonymize would give to a folder, as CSV on standard output or in a file.

    With --check, a file of voices is checked against rule (d) of the task: each speaker has one voice, no two speakers
    share one, and enrolment and trial voices differ.

        vp voices data --method mcadams-2022 --seed 2022 --out voices.csv
        vp voices --method mcadams-2022 --check voices.csv
    """
    anonymizer = arguments.find_named_method(method)
    if check:
        return _check(anonymizer, check, distance, as_json=as_json)
    if source is None:
        raise CommandError("voices: expected a folder whose speakers get voices, or --check FILE.csv; found neither.")
    if seed is None:
        raise CommandError("--seed: expected a whole number, from which the voices are drawn; found none.")
    arguments.require_reading(split)
    targeting = read_targeting(anonymizer, targets, target_selection, genders)
    speech = read_source(source, Reading(role, split, speaker_from))
    settled = arguments.read_options(anonymizer, option or ())
    planned = plan_source_voices(anonymizer, speech, targeting, seed=seed, level=level, options=settled)
    report = check_voices_of_method(anonymizer, planned.assignments, distance=planned.distance)
    if out:
        _write(out, anonymizer, speech, planned)
    if as_json:
        print_json(_content(report) | {"inferred": speech.notes, "assignments": _list_rows(planned)})
    elif out:
        for note in speech.notes:
            print_text(note)
        print_text(report.sentence())
        print_text(f"Written: {out}")
    else:
        _write(None, anonymizer, speech, planned)
    return print_problems([*speech.problems.report(), *report.problems])


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


def _check(method: Anonymizer, path: Path, distance: float, *, as_json: bool) -> int:
    file = read_voices(path, str(path))
    if not file.assignments:
        file.require()
    report = check_voices_of_method(method, file.assignments, distance=distance, file=str(path))
    if as_json:
        print_json(_content(report))
    else:
        print_text(report.sentence())
    return print_problems([*file.problems, *report.problems])


def _content(report: VoiceReport) -> dict[str, object]:
    return asdict(report) | {"holds": report.voices_differ, "problems": problem_rows(report.problems)}


def _list_rows(voices: Voices) -> list[dict[str, object]]:
    columns = ("role", "split", "level", "speaker", "utterance")
    return [{name: getattr(row, name) for name in columns} | row.voice.as_dict() for row in voices.assignments]
