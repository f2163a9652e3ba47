"""``vp anonymize``: anonymise everything in a folder, check it, and say what became of it."""

from __future__ import annotations

import io
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TextIO

from typer import Argument, Option

from anonymization.checks.voices import VoiceReport, check_voices_of_method
from anonymization.cli import arguments, records, voice_assignment
from anonymization.cli.records import OutputFolder, OutputRow, write_text
from anonymization.cli.sources import FileToAnonymize, Reading, SourceDataSet, SpeechSource, read_source
from anonymization.cli.work import FileTask, RunSettings, interruption, outcomes
from anonymization.methods.content_decoder.retrained import find_retrained
from anonymization.methods.contract import Anonymizer, takes_targets
from anonymization.methods.voices.assignment import Voices
from anonymization.methods.voices.files import write_targets_csv
from anonymization.methods.voices.pseudo_speakers import Level
from common.cores import count_cores
from common.errors import CommandError
from common.hashes import compute_sha256
from common.parameters import AsJson
from common.problems import Problem, ProblemList, Severity, join_equal
from common.terminal import (
    PROBLEMS,
    ProgressBar,
    format_duration,
    print_json,
    print_message,
    print_problems,
    print_text,
    problem_rows,
)
from common.wording import counted
from evaluation.formats import kaldi

_COPIED = ("enrolls", "trials")
# So many failures without one success are no matter of single files.
_HOPELESS = 10


def anonymize(
    source: Annotated[Path, Argument(metavar="IN", help="Folder of audio, Kaldi data directory, or folder of those.")],
    out: Annotated[Path, Argument(metavar="OUT", help="New folder, or that of an earlier call to continue.")],
    method: arguments.MethodName,
    seed: arguments.Seed = None,
    voices: Annotated[
        Path | None, Option(metavar="FILE.csv", help="Voices to use, instead of drawn ones; then without --seed.")
    ] = None,
    targets: arguments.TargetFolder = None,
    target_selection: arguments.TargetSelection = None,
    genders: arguments.Genders = None,
    role: arguments.SpeakerRole = None,
    split: arguments.Split = None,
    level: arguments.VoiceLevel = None,
    speaker_from: arguments.NamedBy = None,
    option: arguments.MethodOptions = None,
    jobs: Annotated[int, Option(min=0, metavar="N", help="Number of processes; 0: one for each core.")] = 1,
    is_strict: Annotated[bool, Option("--strict", help="Refuse audio that is not mono, 16 bits, 16 kHz.")] = False,
    container: arguments.Container = "wav",
    suffix: Annotated[
        str, Option(metavar="TEXT", help="What to add to the names of Kaldi directories, such as _anon.")
    ] = "",
    limit: arguments.Limit = None,
    as_json: AsJson = False,
) -> int:
    """Anonymise a folder of WAV or FLAC files (any depth), a Kaldi data directory, or a folder of such directories.

    The output folder keeps a record of the run: the same command continues where an earlier call ended, and does
    nothing twice.

        vp anonymize --method mcadams-2022 recordings anonymised --seed 2022
        vp anonymize --method mcadams-2022 data anon --seed 1 --suffix _anon
    """
    arguments.require_reading(split, suffix)
    request = AnonymizationRequest(
        method=method,
        options=option or (),
        source=source,
        out=out,
        seed=seed,
        voices=voices,
        level=level,
        targets=targets,
        target_selection=target_selection,
        genders=genders,
        reading=Reading(role, split, speaker_from, container, suffix),
        jobs=jobs or count_cores(),
        is_strict=is_strict,
        limit=limit,
        as_json=as_json,
    )
    return run_on(request, read_source)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymizationRequest:
    """What is to be anonymised, and how; the fields are the parameters of `anonymize`."""

    method: str
    options: Sequence[str]
    source: Path
    out: Path
    seed: int | None
    voices: Path | None
    level: Level | None
    targets: Path | None
    target_selection: str | None
    genders: Path | None
    reading: Reading
    jobs: int
    is_strict: bool
    limit: int | None
    as_json: bool


def run_on(request: AnonymizationRequest, read: Callable[[Path, Reading], SpeechSource]) -> int:
    """Anonymise what `read` finds in the folder `request.source`; the exit code."""
    method = arguments.find_named_method(request.method)
    arguments.require_usable(method)
    settings = arguments.read_options(method, request.options)
    if request.seed is None and request.voices is None:
        raise CommandError("--seed: expected a whole number, from which the voices are drawn; found none.")
    if request.voices and (request.seed is not None or request.level):
        said = "--seed" if request.seed is not None else "--level"
        raise CommandError(f"--voices: expected no {said}, which draws other voices; found both. Leave one out.")
    _refuse_nested(request.source, request.out)
    targeting = voice_assignment.read_targeting(method, request.targets, request.target_selection, request.genders)
    if request.voices and takes_targets(method):
        raise CommandError(f"--voices: expected drawn voices; {method.name} gives those of --targets.")
    source = read(request.source, request.reading)
    if request.voices:
        voices = voice_assignment.voices_from_file(method, source.utterances, request.voices)
    else:
        assert request.seed is not None  # noqa: S101 - said above
        voices = voice_assignment.plan_source_voices(
            method, source, targeting, seed=request.seed, level=request.level, options=settings
        )
    container = request.reading.container
    work = RunSettings(request.method, settings, request.out, container, request.is_strict, request.targets)
    record = _record(method, request, work) | voice_assignment.describe_targets(targeting)
    with closing(OutputFolder(request.out, record)) as folder:
        if not request.as_json:
            print_text(f"{method.title}, {counted(len(source.utterances), 'utterance')}.")
            for note in source.notes:
                print_text(f"  {note}")
            sys.stdout.flush()
        started = _Run(request, method, source, voices, folder, source.utterances[: request.limit])
        started.anonymize(work)
        return started.finish()


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


def _record(method: Anonymizer, request: AnonymizationRequest, work: RunSettings) -> dict[str, Any]:
    """Return what decides the output of a run, for `OutputFolder`.

    voices: ``planned`` from the seed, or the SHA-256 of the file that they are from. description: SHA-256 of the file
    that describes the method; empty for others. role, split, level, speaker_from: as said, None where they were
    inferred. retrained: SHA-256 of the networks that were trained for the method, where some were.
    """
    description = arguments.find_description(request.method)
    return {
        "method": method.name,
        "version": method.version,
        "description": compute_sha256(description) if description else "",
        "options": work.options,
        **({"retrained": hashes} if (hashes := find_retrained(method)) else {}),
        "seed": None if request.voices else request.seed,
        "voices": compute_sha256(request.voices) if request.voices else "planned",
        "source": str(request.source.resolve()),
        "container": work.container,
        "suffix": request.reading.suffix,
        "is_strict": request.is_strict,
        "level": request.level,
        **{name: getattr(request.reading, name) for name in ("role", "split", "speaker_from")},
    }


@dataclass(slots=True)
class _Run:
    """A run under way: what was asked for, and what became of the utterances of this call."""

    request: AnonymizationRequest
    method: Anonymizer
    source: SpeechSource
    voices: Voices
    folder: OutputFolder
    chosen: list[FileToAnonymize]
    done: int = 0
    kept: int = 0
    failed: int = 0
    speech_s: float = 0.0
    notes: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Where the run cannot go on, says so, and what of it is kept.

        Raises:
            CommandError: the disk of the output folder is full.
        """
        try:
            yield
        except OSError as error:
            if error.errno not in records.FULL:
                raise
            raise records.no_space(self.folder.folder, error) from error
        except KeyboardInterrupt:
            kept = counted(len(self.folder.rows), "finished utterance")
            print_message(f"{self.folder.folder}: {kept} kept. Repeat the command to go on.")
            raise

    def anonymize(self, work: RunSettings) -> None:
        """Everything that is chosen and not finished."""
        with self._keeping():
            self._remove_parts()
            rows, total = self.folder.rows, len(self.chosen)
            tasks = [
                FileTask(each.audio, each.output, self.voices.of(each.place), rows.get(each.output))
                for each in self.chosen
            ]
            with (
                interruption() as is_interrupted,
                ProgressBar(is_kept=True, lines="minutes") as bar,
                closing(outcomes(tasks, work, min(self.request.jobs, total), is_interrupted)) as finished,
            ):
                bar.show("utterances", 0, total)
                for count, outcome in enumerate(finished, 1):
                    self.notes.update(outcome.notes)
                    if outcome.problem:
                        self.folder.forget(outcome.task.output)
                        self.source.problems.add(outcome.problem)
                        self.failed += 1
                    elif outcome.row:
                        self.source.problems.keep(outcome.row.problems)
                        self.kept += outcome.is_kept
                        self.done += not outcome.is_kept
                        self.speech_s += outcome.row.samples / outcome.row.rate_hz
                        if not outcome.is_kept:
                            self.folder.add(outcome.row)
                    bar.show("utterances", count, total)
                    if self.failed >= _HOPELESS and not self.done + self.kept:
                        break

    def _remove_parts(self) -> None:
        """Take away what a killed process did not finish; only this process writes here."""
        out = self.request.out
        for place in {(out / each.output).parent for each in self.chosen} | {out}:
            for path in place.glob(f".*{records.PART}"):
                path.unlink()

    def finish(self) -> int:
        """Write lists and report, and say what became of it; the exit code."""
        source, folder, problems = self.source, self.folder, self.source.problems
        with self._keeping():
            for data_set in (each for each in source.data_sets if each.is_kaldi):
                members = [each for each in source.utterances if each.data_set == data_set.name]
                problems.keep(write_lists(folder.folder, data_set, members, folder.rows))
        problems.keep(self._left_over())
        problems.keep(self._other_voices())
        checked = check_voices_of_method(
            self.method,
            self.voices.assignments,
            distance=self.voices.distance,
            file=f"voices of {self.method.name}",
        )
        report = self._report(checked)
        with self._keeping():
            if self.request.targets:
                finished = [each for each in source.utterances if each.output in folder.rows]
                rows = voice_assignment.list_target_rows(finished, source.data_sets, self.voices)
                write_text(folder.folder / records.TARGETS, write_targets_csv(rows))
            folder.finish((each.output for each in source.utterances), report)
        if self.request.as_json:
            print_json(report)
        else:
            self._say_summary(report, checked)
        code = print_problems(join_equal([*problems.report(), *checked.problems]), whole=records.REPORT)
        return max(code, PROBLEMS if self.failed else 0)

    def _left_over(self) -> Iterator[Problem]:
        known = {each.output for each in self.source.utterances}
        if found := [output for output in self.folder.rows if output not in known]:
            yield Problem(
                "left-over",
                str(self.folder.folder),
                "anonymised versions of what is in the input",
                f"{len(found):,} of earlier calls whose originals are not there any more, such as {found[0]}",
                "Remove them, or put the originals back.",
                Severity.WARNING,
            )

    def _other_voices(self) -> Iterator[Problem]:
        """Yield utterances of earlier calls that this one did not reach, and which other names or lists gave other
        voices."""
        for each in self.source.utterances:
            row = self.folder.rows.get(each.output)
            if row and not row.has_voice(self.voices.of(each.place)):
                expected, found = f"the voice that {each.speaker} has now", "another one, of an earlier call"
                remedy = "Repeat the command without --limit."
                yield Problem("other-voice", str(self.folder.folder / each.output), expected, found, remedy)

    def _report(self, checked: VoiceReport) -> dict[str, Any]:
        rows = [self.folder.rows[each.output] for each in self.chosen if each.output in self.folder.rows]
        changed = Counter(note for row in rows for note in row.remarks)
        found = problem_rows(self.source.problems.report())
        return {
            "utterances": len(self.source.utterances),
            "finished": self.done + self.kept,
            "finished_now": self.done,
            "failed": self.failed,
            "not_tried": len(self.source.utterances) - self.done - self.kept - self.failed,
            "speech_s": sum(row.samples / row.rate_hz for row in rows),
            "inferred": self.source.notes,
            "changed_before": dict(sorted(changed.items())),
            "remarks_of_the_method": dict(sorted(self.notes.items())),
            "voices": asdict(checked) | {"problems": problem_rows(checked.problems)},
            "problems": sorted(found, key=lambda row: (str(row["code"]), str(row["file"]))),
        }

    def _say_summary(self, report: dict[str, Any], checked: VoiceReport) -> None:
        parts = [f"{report['finished']:,} finished ({format_duration(self.speech_s)} of speech)"]
        parts += [f"{self.kept:,} of them by an earlier call"] if self.kept else []
        parts += [f"{self.failed:,} failed"] if self.failed else []
        if report["not_tried"]:
            why = "as the first ones all failed" if self.failed >= _HOPELESS else "--limit"
            parts += [f"{report['not_tried']:,} not tried ({why})"]
        print_text(", ".join(parts) + ".")
        for note, times in report["changed_before"].items():
            print_text(f"  changed before, of {counted(times, 'utterance')}: {note}")
        for note, times in report["remarks_of_the_method"].items():
            print_text(f"  {f'{times:,} × ' if times > 1 else ''}{note}")
        print_text(checked.sentence())
        files = f"each utterance in {records.JOURNAL}, everything found in {records.REPORT}"
        print_text(f"In {self.request.out}; {files}.")


# Lists of Kaldi --------------------------------------------------------------------------------------


def write_lists(
    folder: Path, data_set: SourceDataSet, utterances: Iterable[FileToAnonymize], rows: Mapping[str, OutputRow]
) -> tuple[Problem, ...]:
    """Write the lists of an anonymised Kaldi data directory, from the files that are really there.

    ``wav.scp`` has a line for each finished utterance, whichever call finished it; its paths start where the output
    folder was named from, as Kaldi's do. Lists that describe the original sound, such as features, are not copied.

    Args:
        folder: the output folder of the run.
        utterances: of the data set; those without a row are left out of what is written.
        rows: finished utterances by output.

    Returns:
        What is wrong with the lists that are copied. Of a list that is no UTF-8 the lines are copied as they are.
    """
    done = [each for each in utterances if each.output in rows]
    if not done:
        return ()
    problems = ProblemList()
    target = folder / data_set.output
    speakers = {each.name: each.speaker for each in done}
    by_speaker: dict[str, list[str]] = defaultdict(list)
    for name, speaker in speakers.items():
        by_speaker[speaker].append(name)
    durations = {each.name: rows[each.output].samples / rows[each.output].rate_hz for each in done}
    written = {
        "wav.scp": _format_list(kaldi.write_listing, {each.name: (folder / each.output).as_posix() for each in done}),
        "utt2spk": _format_list(kaldi.write_listing, speakers),
        "spk2utt": _format_list(kaldi.write_spk2utt, by_speaker),
        "utt2dur": _format_list(kaldi.write_utt2dur, durations),
    }
    of_original = (
        ("spk2gender", kaldi.read_spk2gender, by_speaker),
        ("text", partial(kaldi.read_text, known=speakers), speakers),
    )
    for name, read, keys in of_original:
        path = data_set.folder / name
        if path.is_file():
            parsed = read(path, str(path))
            problems.keep(parsed.problems)
            content = parsed.content or _read_raw_lines(path)
            own = {key: value for key, value in content.items() if key in keys}
            written[name] = _format_list(kaldi.write_listing, own)
    for path in sorted(data_set.folder.iterdir()):
        if path.name.startswith(_COPIED) and "." not in path.name and path.is_file():
            written[path.name] = path.read_text(encoding="utf-8", errors="surrogateescape")
    for name, text in written.items():
        write_text(target / name, text)
    return problems.report()


def _read_raw_lines(path: Path) -> dict[str, str]:
    """Return key and value of each line of a list that is no text, its bytes kept (``surrogateescape``)."""
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    return {key: "".join(value).rstrip() for key, *value in (line.split(None, 1) for line in lines if line.strip())}


def _format_list(write: Callable[[Any, TextIO], None], content: object) -> str:
    file = io.StringIO()
    write(content, file)
    return file.getvalue()
