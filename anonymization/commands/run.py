"""``run``: anonymise everything in a folder, check it, and say what became of it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from anonymization.commands.arguments import (
    add_method,
    add_options,
    add_reading,
    count,
    description_of,
    jobs,
    method_of,
    options_of,
    reading_of,
    require_usable,
    seed,
)
from anonymization.commands.assigning import Voices, voices_from_file
from anonymization.commands.interruption import interruption
from anonymization.commands.kaldi_outputs import write_lists
from anonymization.commands.progress import Progress, counted, duration_words
from anonymization.commands.records import (
    FULL,
    JOURNAL,
    PART,
    REPORT,
    TARGETS,
    NoSpaceError,
    OutputFolder,
    RunRecord,
    file_sha256,
    write_whole,
)
from anonymization.commands.sources import Source, Utterance, read_source
from anonymization.commands.targeting import (
    Targeting,
    add_targets,
    plan_voices_of,
    recorded,
    rows_of_targets,
    targeting_of,
)
from anonymization.commands.work import Settings, Task, outcomes
from anonymization.methods.checks import VoiceReport
from anonymization.methods.contract import Anonymizer, OptionValue
from anonymization.methods.target_checks import check_voices_of_method
from anonymization.methods.target_files import targets_as_csv
from evaluation.commands.terminal import PROBLEMS, CommandError, problem_rows, report_problems, say, say_json, warn
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem, Severity

DESCRIPTION = (
    "Anonymise a folder of WAV or FLAC files (any depth), a Kaldi data directory, or a folder of such directories. "
    "The output folder keeps a record of the run: the same command goes on where an earlier call ended, and does "
    "nothing twice."
)


# So many failures without one success are no matter of single files.
_HOPELESS = 50


@dataclass(slots=True)
class _Tally:
    """What became of the utterances of this call."""

    done: int = 0
    kept: int = 0
    failed: int = 0
    speech_s: float = 0.0
    notes: Counter[str] = field(default_factory=Counter)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add_method(parser)
    parser.add_argument("source", type=Path, metavar="IN", help="folder of audio, Kaldi directory, or folder of those")
    parser.add_argument("out", type=Path, metavar="OUT", help="new folder, or that of an earlier call to continue")
    parser.add_argument("--seed", type=seed, help="what the voices are drawn from; needed unless --voices is given")
    parser.add_argument("--voices", type=Path, metavar="FILE.csv", help="voices of your own instead of drawn ones")
    add_targets(parser)
    add_reading(parser)
    add_options(parser)
    parser.add_argument("--jobs", type=jobs, default=1, metavar="N", help="processes (default 1; 0: one for each core)")
    parser.add_argument("--strict", action="store_true", help="refuse audio that is not mono, 16 bits, 16 kHz")
    parser.add_argument("--format", choices=("wav", "flac"), help="of the output (default wav)")
    parser.add_argument(
        "--suffix", default="", metavar="TEXT", help="for the names of Kaldi directories, such as _anon"
    )
    parser.add_argument("--limit", type=count, metavar="N", help="only the first N utterances")


def run(options: argparse.Namespace) -> int:
    """Anonymise; the exit code."""
    method = method_of(options.method)
    require_usable(method)
    settings = options_of(method, options.option)
    if options.seed is None and options.voices is None:
        raise CommandError("--seed: expected a whole number, from which the voices are drawn; found none.")
    if options.voices and (options.seed is not None or options.level):
        said = "--seed" if options.seed is not None else "--level"
        raise CommandError(f"--voices: expected the voices of a file alone, found {said}, too, which draws others.")
    _refuse_nested(options.source, options.out)
    targeting = targeting_of(method, options)
    reading = reading_of(options)
    source = read_source(options.source, reading)
    if options.voices:
        voices = voices_from_file(method, source.utterances, options.voices)
    else:
        voices = plan_voices_of(method, source, targeting, seed=options.seed, level=options.level)
    record = _record(method, options, settings, reading.container, targeting)
    with closing(OutputFolder(options.out, record)) as folder:
        if not options.json:
            _say_begin(method, source)
        chosen = source.utterances[: options.limit]
        problems = source.problems
        with _keeping(folder):
            _remove_parts(options.out, chosen)
            tally = _anonymize(folder, _tasks(folder, chosen, voices), _settings(options, settings, reading.container),
                               options.jobs, problems, len(chosen))  # fmt: skip
        return _finish(options, source, chosen, voices, method, folder, tally, problems)


@contextmanager
def _keeping(folder: OutputFolder) -> Iterator[None]:
    """Where the run cannot go on, says so, and what of it is kept.

    Raises:
        NoSpaceError: the disk of the output folder is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise NoSpaceError.of(folder.folder, error) from error
    except KeyboardInterrupt:
        kept = counted(len(folder.rows), "finished utterance")
        warn(f"{folder.folder}: {kept} kept. Repeat the command to go on.")
        raise


def _say_begin(method: Anonymizer, source: Source) -> None:
    say(f"{method.title}, {counted(len(source.utterances), 'utterance')}.")
    for remark in source.remarks:
        say(f"  {remark}")
    sys.stdout.flush()


def _refuse_nested(source: Path, out: Path) -> None:
    inside, outside = source.resolve(), out.resolve()
    if inside == outside:
        raise CommandError(f"{out}: expected an output folder apart from the input, found the input. Name another one.")
    if outside.is_relative_to(inside):
        raise CommandError(
            f"{out}: expected an output folder outside the input, found one inside, which the next call would take for "
            f"input. Name another one."
        )
    if inside.is_relative_to(outside):
        raise CommandError(f"{out}: expected an output folder of its own, found one that holds the input.")


def _record(
    method: Anonymizer,
    options: argparse.Namespace,
    settings: dict[str, OptionValue],
    container: str,
    targeting: Targeting | None,
) -> RunRecord:
    description = description_of(options.method)
    return RunRecord(
        method=method.name,
        version=method.version,
        description=file_sha256(description) if description else "",
        options=settings,
        seed=None if options.voices else options.seed,
        voices=file_sha256(options.voices) if options.voices else "planned",
        source=str(options.source.resolve()),
        container=container,
        suffix=options.suffix,
        is_strict=options.strict,
        role=options.role,
        split=options.split,
        level=options.level,
        speaker_from=options.speaker_from,
        **recorded(targeting),
    )


def _settings(options: argparse.Namespace, settings: dict[str, OptionValue], container: str) -> Settings:
    return Settings(options.method, settings, options.out, container, options.strict, options.targets)


def _tasks(folder: OutputFolder, utterances: Sequence[Utterance], voices: Voices) -> list[Task]:
    return [Task(each.audio, each.output, voices.of(each), folder.rows.get(each.output)) for each in utterances]


def _remove_parts(out: Path, utterances: Sequence[Utterance]) -> None:
    """Take away what a killed process did not finish; only this process writes here."""
    for place in {(out / each.output).parent for each in utterances} | {out}:
        if place.is_dir():
            for path in place.iterdir():
                if path.name.startswith(".") and path.name.endswith(PART):
                    path.unlink()


def _anonymize(
    folder: OutputFolder, tasks: list[Task], settings: Settings, n_jobs: int, problems: ProblemList, total: int
) -> _Tally:
    tally = _Tally()
    with (
        interruption() as is_interrupted,
        Progress(total, "utterances") as progress,
        closing(outcomes(tasks, settings, min(n_jobs, total), is_interrupted)) as finished,
    ):
        for outcome in finished:
            speech_s = 0.0
            tally.notes.update(outcome.notes)
            if outcome.problem:
                folder.forget(outcome.task.output)
                problems.add(outcome.problem)
                tally.failed += 1
            elif outcome.row:
                speech_s = outcome.row.samples / outcome.row.rate_hz
                problems.keep(outcome.row.problems)
                tally.kept += outcome.is_kept
                tally.done += not outcome.is_kept
                tally.speech_s += speech_s
                if not outcome.is_kept:
                    folder.add(outcome.row)
            progress.add(is_new=not outcome.is_kept, speech_s=speech_s)
            if tally.failed >= _HOPELESS and not tally.done + tally.kept:
                break
    return tally


def _finish(
    options: argparse.Namespace,
    source: Source,
    chosen: Sequence[Utterance],
    voices: Voices,
    method: Anonymizer,
    folder: OutputFolder,
    tally: _Tally,
    problems: ProblemList,
) -> int:
    with _keeping(folder):
        for data_set in (each for each in source.data_sets if each.is_kaldi):
            problems.keep(write_lists(options.out, data_set, _of(source, data_set.name), folder.rows))
    problems.keep(_left_over(source, folder))
    problems.keep(_other_voices(source, voices, folder))
    checked = check_voices_of_method(
        method, voices.assignments, distance=voices.distance, file=f"voices of {method.name}"
    )
    report = _report(source, chosen, folder, tally, problems, checked)
    with _keeping(folder):
        if options.targets:
            finished = [each for each in source.utterances if each.output in folder.rows]
            write_whole(options.out / TARGETS, targets_as_csv(rows_of_targets(finished, source.data_sets, voices)))
        folder.finish((each.output for each in source.utterances), report)
    if options.json:
        say_json(report)
    else:
        _say_summary(options, report, tally, checked)
    return max(report_problems([*problems.report(), *checked.problems]), PROBLEMS if tally.failed else 0)


def _of(source: Source, data_set: str) -> list[Utterance]:
    return [each for each in source.utterances if each.data_set == data_set]


def _left_over(source: Source, folder: OutputFolder) -> list[Problem]:
    known = {each.output for each in source.utterances}
    found = [output for output in folder.rows if output not in known]
    if not found:
        return []
    return [
        Problem(
            "left-over",
            str(folder.folder),
            "anonymised versions of what is in the input",
            f"{len(found):,} of earlier calls whose originals are not there any more, such as {found[0]}",
            "Remove them, or put the originals back.",
            Severity.WARNING,
        )
    ]


def _other_voices(source: Source, voices: Voices, folder: OutputFolder) -> Iterator[Problem]:
    """Utterances of earlier calls that this one did not reach, and which other names or lists gave other voices."""
    for each in source.utterances:
        row = folder.rows.get(each.output)
        voice = voices.of(each)
        if row and (row.voice.key, dict(row.voice.parameters)) != (voice.key, dict(voice.parameters)):
            expected, found = f"the voice that {each.speaker} has now", "another one, of an earlier call"
            remedy = "Repeat the command without --limit."
            yield Problem("other-voice", str(folder.folder / each.output), expected, found, remedy)


def _report(
    source: Source,
    chosen: Sequence[Utterance],
    folder: OutputFolder,
    tally: _Tally,
    problems: ProblemList,
    checked: VoiceReport,
) -> dict[str, Any]:
    rows = [folder.rows[each.output] for each in chosen if each.output in folder.rows]
    changed = Counter(remark for row in rows for remark in row.remarks)
    voices = asdict(checked)
    voices["problems"] = problem_rows(checked.problems)
    return {
        "utterances": len(source.utterances),
        "finished": tally.done + tally.kept,
        "finished_now": tally.done,
        "failed": tally.failed,
        "not_tried": len(source.utterances) - tally.done - tally.kept - tally.failed,
        "speech_s": sum(row.samples / row.rate_hz for row in rows),
        "inferred": source.remarks,
        "changed_before": dict(sorted(changed.items())),
        "remarks_of_the_method": dict(sorted(tally.notes.items())),
        "voices": voices,
        "problems": sorted(problem_rows(problems.report()), key=lambda row: (str(row["code"]), str(row["file"]))),
    }


def _say_summary(options: argparse.Namespace, report: dict[str, Any], tally: _Tally, checked: VoiceReport) -> None:
    parts = [f"{report['finished']:,} finished ({duration_words(tally.speech_s)} of speech)"]
    parts += [f"{tally.kept:,} of them by an earlier call"] if tally.kept else []
    parts += [f"{tally.failed:,} failed"] if tally.failed else []
    if report["not_tried"]:
        why = "as the first ones all failed" if tally.failed >= _HOPELESS else "--limit"
        parts += [f"{report['not_tried']:,} not tried ({why})"]
    say(", ".join(parts) + ".")
    for remark, times in report["changed_before"].items():
        say(f"  changed before, of {counted(times, 'utterance')}: {remark}")
    for note, times in report["remarks_of_the_method"].items():
        say(f"  {f'{times:,} × ' if times > 1 else ''}{note}")
    say(checked.sentence())
    say(f"In {options.out}; each utterance in {JOURNAL}, everything found in {REPORT}.")
