"""A program of anybody as an anonymiser: called with files, folders or standard streams, its output checked.

The description (`description`) says what to call; `sandbox` runs it, without network and within its limits unless the
description says that it needs no confinement. An output is handed on only after all of a call were checked, and the
files of a call are removed in any case. Utterances are called 000001, 000002, … to the command: it learns no name of a
speaker.

Conventions: samples are int16, mono, shape (n,); rates are in hertz.
"""

from __future__ import annotations

import csv
import hashlib
import logging
import os
import re
import shlex
import stat
import sys
import tempfile
import wave
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from anonymization.methods.audio_conversion import convert_audio
from anonymization.methods.contract import (
    MethodError,
    Options,
    OptionValue,
    Parameter,
    VoicedUtterance,
    complete_options,
    validate_samples,
    validate_voice,
)
from anonymization.methods.external import description, sandbox
from anonymization.methods.external.leftovers import remove_folder
from common.arrays import Samples
from speech.audio.files import AudioError, check_stated_rate, decode_audio, resample

log = logging.getLogger(__name__)

LONGEST_RATIO, LONGEST_MORE_S = 4.0, 10.0
LONGEST_LINE = 100  # of a command, in a sentence
_KEY = re.compile(r"[0-9a-f]{64}")
_BYTES_OF_A_SAMPLE, _BYTES_OF_HEADERS = 8, 1 << 20


@dataclass(frozen=True)
class _Watch:
    should_stop: Callable[[], bool] | None
    note: Callable[[str], None]


_UNWATCHED = _Watch(None, log.warning)
_watch: ContextVar[_Watch] = ContextVar("_watch", default=_UNWATCHED)


@contextmanager
def watching(
    *, should_stop: Callable[[], bool] | None = None, note: Callable[[str], None] = log.warning
) -> Iterator[None]:
    """Within it, external commands of this thread end once `should_stop` says yes, and tell `note` what was changed.

    Args:
        should_stop: asked several times a second; the call then raises `CancelledError`.
        note: takes a sentence: outputs that were converted, protections that this machine lacks.
    """
    token = _watch.set(_Watch(should_stop, note))
    try:
        yield
    finally:
        _watch.reset(token)


class ExternalCommand(description.Description):
    """An `Anonymizer` made of a description."""

    @property
    def isolation(self) -> str:
        """Return how it is confined on this machine and what it may learn, for who chooses it and the record of a
        run."""
        if self.confinement == "none":
            return f"{self.name} runs as from your terminal: it may read what you may read, and use the network."
        if reason := sandbox.explain_missing_bubblewrap():
            return f"{self.name} is not confined: it may read what this user may read, and use the network ({reason})."
        return (
            f"{self.name} runs without network, reads its own folder and those of the system, and writes into its work "
            "folder only."
        )

    def missing(self) -> str:
        if self.confinement == "none":
            return ""
        reason = sandbox.explain_missing_bubblewrap()
        if reason and self.confinement == "full":
            return (
                f"{self.name} cannot be confined on this machine: {reason}. Run it elsewhere, or accept that it runs "
                f'unconfined with isolation = "limited" in {self.source}.'
            )
        for folder in (self.folder, *self.reads):
            if not folder.exists():
                return f"{self.name} needs {folder}, which is not there. Put it there, or correct {self.source}."
        try:
            program = sandbox.find_program(description.fill_in(self.command[:1], {})[0], self.folder)
            opened = [*map(Path, sandbox.SYSTEM_FOLDERS), *sandbox.list_program_folders(program)]
        except (MethodError, OSError) as error:
            return f"{self.name} cannot run: {error}"
        data = description.find_portal_data()
        if data.exists() and (within := [each for each in opened if data.resolve().is_relative_to(each.resolve())]):
            return f"{self.name} would read the data of the portal, which are in {within[0]}. Move PORTAL_DATA_DIR."
        return ""

    def anonymize_batch(
        self, items: Sequence[VoicedUtterance], rate: int, *, options: Options | None = None, threads: int = 1
    ) -> list[Samples]:
        if missing := self.missing():
            raise MethodError(missing)
        if self.needs_gpu and not has_graphics_card():  # no part of `missing`: who offers it may be another machine
            raise MethodError(f"{self.name} needs a graphics card; this machine shows none. Run it on one that does.")
        low_hz, high_hz = description.LOWEST_RATE_HZ, description.HIGHEST_RATE_HZ
        for item in items:
            validate_samples(self.name, item.samples, rate, low_hz=low_hz, high_hz=high_hz)
            validate_voice(self, item.pseudo_speaker)
        settled = complete_options(self, options)
        if self.confinement != "none" and sandbox.explain_missing_bubblewrap():
            _watch.get().note(self.isolation)
        outputs = [item.samples.copy() for item in items]  # what has no samples stays as it is
        notes: Counter[str] = Counter()
        for call in self._calls(items):
            for index, output in _Call(self, call, rate, settled, threads).run(notes):
                outputs[index] = output
        for note, times in notes.items():
            which = f"{times} of {len(items)} outputs: {note}" if self.gains_by_batches else f"an output: {note}"
            _watch.get().note(f"{self.name}: {which}.")
        return outputs

    def _calls(self, items: Sequence[VoicedUtterance]) -> list[list[tuple[int, VoicedUtterance]]]:
        """Which items go into one call of the command, with their places."""
        sounding = [(index, item) for index, item in enumerate(items) if item.samples.size]
        if not self.gains_by_batches:
            return [[each] for each in sounding]
        if not self.has_voice_in_command:
            return [sounding] if sounding else []
        by_voice: dict[str, list[tuple[int, VoicedUtterance]]] = {}
        for index, item in sounding:
            by_voice.setdefault(item.pseudo_speaker.key, []).append((index, item))
        return list(by_voice.values())


@dataclass(frozen=True)
class _Call:
    """One call of the command for some items of a batch."""

    method: ExternalCommand
    items: list[tuple[int, VoicedUtterance]]
    rate: int
    options: dict[str, OptionValue]
    threads: int

    def run(self, notes: Counter[str]) -> list[tuple[int, Samples]]:
        """Return the output of each item with its place; adds what was changed to `notes`."""
        try:
            work = Path(tempfile.mkdtemp(prefix="anonymize-", dir=_find_temporary_folder()))
        except OSError as error:
            raise MethodError(f"{self.method.name}: no folder for its files can be made ({error.strerror}).") from error
        try:
            return self._run_in(work, notes)
        except OSError as error:
            raise MethodError(f"{self.method.name}: its files cannot be written or read ({error.strerror}).") from error
        finally:
            if not remove_folder(str(work), last="written"):
                _watch.get().note(f"{self.method.name}: not all of {work} could be removed. Remove it by hand.")

    def _run_in(self, work: Path, notes: Counter[str]) -> list[tuple[int, Samples]]:
        about = self.method
        source, written = work / "input", work / "written"
        output, shown, home = (written / name for name in ("output", "start", "home"))
        for folder in (source, written, output, shown, home):
            folder.mkdir(mode=0o700)
        start = self._show_folder(shown)
        given_rate = about.rate_hz or self.rate
        given = {index: self._write_input(source / name_file(index), item) for index, item in self.items}
        write_manifest(work / "manifest.csv", self.items, about.parameters)
        names = [name_file(index) for index, _ in self.items]
        files = {"input": str(source / names[0]), "output": str(output / names[0])}
        if about.form == "folders":
            files = {"input_folder": str(source), "output_folder": str(output), "manifest": str(work / "manifest.csv")}
        is_stream = about.form == "streams"
        task = sandbox.CommandCall(
            arguments=description.fill_in(about.command, files | self._values(given_rate)),
            folder=about.folder,
            work=work,
            start=start,
            reads=(*about.reads, *self._list_interpreter()),
            stdin=source / names[0] if is_stream else None,
            stdout=output / names[0] if is_stream else None,
            limits=about.limits,
            needs_gpu=about.needs_gpu,
            threads=self.threads,
            own_variables=about.environment,
        )
        outcome = sandbox.run_command(task, about.confinement, should_stop=_watch.get().should_stop)
        if outcome.end == "stopped":
            raise CancelledError(f"{about.name} was ended because the run was stopped.")
        failure = outcome.failure(about.limits)
        if not failure and (problem := self._check_files(output, names)):
            failure = f"{problem}{sandbox.last_lines(outcome.errors, cut=outcome.cut)}"
        try:
            if failure:
                raise MethodError(failure)
            return [(index, self._read(output, index, given[index], given_rate, notes)) for index, _ in self.items]
        except MethodError as error:
            # As the command names them: the folder is another one in each call, and equal failures are to be equal.
            told = str(error)
            for name, path in files.items():
                told = told.replace(path, f"{{{name}}}")
            told = told.replace(f"{start}/", "").replace(f"{work}/", "").rstrip(".")
            raise MethodError(f"{about.name} failed. {told}. Command: {shorten_line(about.line)}") from error

    def _show_folder(self, shown: Path) -> Path:
        """Make the folder in which the command starts, with links to all of its own and to what is beside.

        What it writes there goes with the call, so that calls at the same time do not disturb each other. A confined
        command is shown beside its folder only what it may read.
        """
        own, reads = self.method.folder, self.method.reads
        for folder in (own, *own.parents):
            copy = shown.joinpath(*folder.parts[1:])
            copy.mkdir(parents=True, exist_ok=True)
            if folder == own or (self.method.confinement == "none" and os.access(folder, os.R_OK)):
                names = [entry.name for entry in folder.iterdir()]
            else:
                names = [each.relative_to(folder).parts[0] for each in reads if folder in each.parents]
            for name in names:
                with suppress(FileExistsError):  # the way to its own folder
                    (copy / name).symlink_to(folder / name)
        return shown.joinpath(*own.parts[1:])

    def _list_interpreter(self) -> tuple[Path, ...]:
        """Return what a shell has to read for `{python}`; of the program that is called itself the sandbox knows."""
        is_used = self.method.is_shell and "python" in self.method.placeholders
        return sandbox.list_program_folders(Path(sys.executable)) if is_used else ()

    def _check_files(self, output: Path, names: Collection[str]) -> str:
        """Return what is wrong with the files that a call left, a sentence; empty where they are as expected."""
        if self.method.gains_by_batches:
            return check_folder(output, names)
        return "" if all(os.path.lexists(output / name) for name in names) else "It ended without writing {output}."

    def _write_input(self, path: Path, item: VoicedUtterance) -> int:
        """Return how many samples the command is given."""
        rate = self.method.rate_hz or self.rate
        samples = item.samples if rate == self.rate else resample(item.samples, self.rate, rate)
        write_wav(path, samples, rate)
        return int(samples.size)

    def _values(self, rate: int) -> dict[str, str]:
        """Return the value of each name in braces but those of files; of a voice where all items have the same."""
        first = self.items[0][1]
        values = {
            "voice": find_key(first),
            "seed": str(derive_seed(first)),
            "rate": str(rate),
            "threads": str(self.threads),
        }
        values |= {name: repr(float(value)) for name, value in first.pseudo_speaker.parameters.items()}
        return values | {name: _as_text(value) for name, value in self.options.items()}

    def _read(self, folder: Path, index: int, given: int, given_rate: int, notes: Counter[str]) -> Samples:
        expected, tolerance_s = {given_rate, self.rate}, self.method.duration_tolerance_s
        try:
            path = folder / name_file(index)
            samples, rate, stored = read_output(path, given=given, given_rate=given_rate, tolerance_s=tolerance_s)
            if rate not in expected and not self.method.converts_rate:
                rates = " or ".join(f"{each} Hz" for each in sorted(expected))
                raise MethodError(f"expected {rates}, found {rate} Hz")
        except MethodError as error:
            which = f" for {name_file(index)}" if self.method.gains_by_batches else ""
            unusable = f"Its output{which} cannot be used: {str(error).rstrip('.')}"
            raise MethodError(f"{unusable}.") from error
        if stored:
            notes[stored] += 1
        if rate == self.rate:
            return samples
        notes[f"resampled from {rate} Hz to {self.rate} Hz by soxr"] += 1
        return resample(samples, rate, self.rate)


def _find_temporary_folder() -> Path:
    """Return a folder whose path means the same in a line of the shell, within quotes and without."""
    folder = Path(tempfile.gettempdir()).resolve()
    return folder if shlex.quote(str(folder)) == str(folder) else Path("/tmp").resolve()  # noqa: S108


def has_graphics_card() -> bool:
    """Return whether the system shows one, of whatever maker."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def shorten_line(line: str) -> str:
    """Return a command in one line, cut where it is long."""
    shown = " ".join(_shown(line, len(line)).split())
    return shown if len(shown) <= LONGEST_LINE else f"{shown[: LONGEST_LINE - 1]}…"


def _as_text(value: OptionValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, int | float) else value


def load_command(path: Path) -> ExternalCommand:
    """Return the command that a file describes.

    Raises:
        MethodError: the description cannot be used; says why.
    """
    return description.read_description(path, ExternalCommand)


# The files between the portal and the command ----------------------------------------------------------


def name_file(index: int) -> str:
    """Of the utterance with this place in the batch, counted from 0, and of its output."""
    return f"{index + 1:06d}.wav"


def find_key(item: VoicedUtterance) -> str:
    """Return the key of the voice: 64 hexadecimal digits, those of the SHA-256 of what a file of voices has instead."""
    key = item.pseudo_speaker.key
    return key if _KEY.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def derive_seed(item: VoicedUtterance) -> int:
    """Return a number below 2^31 that follows from the voice."""
    return int(find_key(item)[:8], 16) >> 1


def write_wav(path: Path, samples: Samples, rate: int) -> None:
    """16-bit mono samples as WAV."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.ascontiguousarray(samples, dtype="<i2").data)


def write_manifest(path: Path, items: Sequence[tuple[int, VoicedUtterance]], parameters: Sequence[Parameter]) -> None:
    """One line for each utterance: its name without suffix, the key of its voice, its seed, its parameters."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["utterance", "voice", "seed", *(parameter.name for parameter in parameters)])
        for index, item in items:
            values = [repr(float(item.pseudo_speaker.parameters[parameter.name])) for parameter in parameters]
            table.writerow([Path(name_file(index)).stem, find_key(item), derive_seed(item), *values])


def check_folder(folder: Path, expected: Collection[str]) -> str:
    """Return what is wrong with the files in an output folder, a sentence; empty where they are just the expected
    ones."""
    found = {entry.name for entry in os.scandir(folder)}
    if missing := sorted(set(expected) - found):
        others = f" and {len(missing) - 1} others" if len(missing) > 1 else ""
        return f"It left no output for {missing[0]}{others}; {len(found & set(expected))} of {len(expected)} are there."
    if extra := sorted(found - set(expected)):
        others = f" and {len(extra) - 1} others" if len(extra) > 1 else ""
        return f'It left an unexpected file: "{_shown(extra[0])}"{others}. Expected one for each input only.'
    return ""


def read_output(path: Path, *, given: int, given_rate: int, tolerance_s: float | None) -> tuple[Samples, int, str]:
    """Return an output with its own rate and how it was stored.

    Args:
        given, given_rate: samples of the input and their rate.
        tolerance_s: by how much the duration may differ; None for up to four times and ten seconds.

    Raises:
        MethodError: no regular file, no mono audio, no samples, NaN, or too long or too short.
    """
    given_s = given / given_rate
    longest_s = given_s * LONGEST_RATIO + LONGEST_MORE_S
    try:
        with _opened(path) as file:
            most = int(longest_s * 192_000) * _BYTES_OF_A_SAMPLE + _BYTES_OF_HEADERS
            if (size := os.fstat(file.fileno()).st_size) > most:
                raise MethodError(f"expected at most {most} bytes, found {size}")
            decoded = decode_audio(file, longest_s=longest_s)
            check_stated_rate(len(decoded.samples), decoded.rate_hz, original=given, original_hz=given_rate)
    except OSError as error:
        raise MethodError(f"expected a file of its own, found a link or none ({error.strerror})") from error
    except AudioError as error:
        raise MethodError(f"expected {error.expected}, found {error.found}") from error
    found_s = len(decoded.samples) / decoded.rate_hz
    if tolerance_s is not None and abs(found_s - given_s) > tolerance_s:
        raise MethodError(f"expected {given_s:.3f} s within {tolerance_s:g} s, found {found_s:.3f} s")
    converted = convert_audio(decoded.samples, decoded.rate_hz, wanted_hz=decoded.rate_hz)
    stored = "" if decoded.encoding == "PCM_16" else f"{decoded.encoding} samples rounded to 16 bits"
    return converted.samples, decoded.rate_hz, stored


def _opened(path: Path) -> BinaryIO:
    """Return a regular file that has this one name, open for reading."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
        os.close(descriptor)
        raise MethodError("expected a file of its own, found a folder, a pipe or a link")
    return os.fdopen(descriptor, "rb")


def _shown(name: str, longest: int = 80) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:longest]
