"""A program of anybody as an anonymiser: called with folders or with standard streams, confined, its output checked.

The description (`external_description`) says what to call; `sandbox` runs it without network and within its limits.
An output is handed on only after all of a call were checked, and the files of a call are removed in any case.
"""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from anonymization.methods import sandbox
from anonymization.methods._sandboxed import remove_folder
from anonymization.methods.contract import (
    Item,
    Option,
    Options,
    OptionValue,
    Parameter,
    PseudoSpeaker,
    Samples,
    complete_options,
    validate_samples,
    validate_voice,
)
from anonymization.methods.errors import MethodError
from anonymization.methods.external_description import (
    HIGHEST_RATE_HZ,
    LOWEST_RATE_HZ,
    Description,
    data_of_portal,
    fill_in,
    read_description,
)
from anonymization.methods.external_files import (
    OutputError,
    check_folder,
    file_name,
    key_of,
    read_output,
    seed_of,
    write_manifest,
    write_wav,
)

log = logging.getLogger(__name__)


class CommandStopped(MethodError):  # noqa: N818 - nothing is wrong
    """The run was stopped while a command worked."""


@dataclass(frozen=True)
class _Watch:
    should_stop: Callable[[], bool] | None
    remark: Callable[[str], None]


_UNWATCHED = _Watch(None, log.warning)
_watch: ContextVar[_Watch] = ContextVar("_watch", default=_UNWATCHED)


@contextmanager
def watching(
    *, should_stop: Callable[[], bool] | None = None, remark: Callable[[str], None] = log.warning
) -> Iterator[None]:
    """Within it, external commands of this thread end once `should_stop` says yes, and tell `remark` what was changed.

    Args:
        should_stop: asked several times a second; the call then raises `CommandStopped`.
        remark: takes a sentence: outputs that were converted, protections that this machine lacks.
    """
    token = _watch.set(_Watch(should_stop, remark))
    try:
        yield
    finally:
        _watch.reset(token)


@dataclass(frozen=True)
class ExternalCommand:
    """An `Anonymizer` made of a description; its version ends with the first digits of the description's SHA-256."""

    description: Description

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def title(self) -> str:
        return self.description.title

    @property
    def version(self) -> str:
        return f"{self.description.version}+{self.description.digest[:8]}"

    @property
    def reference(self) -> str:
        return self.description.reference

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.description.parameters

    @property
    def options(self) -> tuple[Option, ...]:
        return self.description.options

    @property
    def is_deterministic(self) -> bool:
        return self.description.is_deterministic

    @property
    def needs_gpu(self) -> bool:
        return self.description.needs_gpu

    @property
    def isolation(self) -> str:
        """How it is confined on this machine, a sentence for the record of a run."""
        if lacking := sandbox.missing_protections():
            return f"{self.name} runs with limited isolation: {'; '.join(lacking)}."
        return f"{self.name} runs without network, sees its own folder only, and writes into its work folder only."

    def missing(self) -> str:
        about = self.description
        lacking = sandbox.missing_protections()
        if lacking and not about.is_limited:
            return (
                f"{self.name} cannot be confined on this machine: {'; '.join(lacking)}. Run it elsewhere, or accept "
                f'that with isolation = "limited" in {about.source}.'
            )
        for folder in (about.folder, *about.reads):
            if not folder.exists():
                return f"{self.name} needs {folder}, which is not there. Put it there, or mend {about.source}."
        try:
            program = sandbox.find_program(fill_in(about.command[:1], {})[0], about.folder)
            opened = [*map(Path, sandbox.SYSTEM_FOLDERS), *sandbox.folders_of_program(program)]
        except (MethodError, OSError, KeyError) as error:
            return f"{self.name} cannot run: {error}"
        data = data_of_portal()
        if data.exists() and (within := [each for each in opened if data.resolve().is_relative_to(each.resolve())]):
            return f"{self.name} would read the data of the portal, which lie in {within[0]}. Move PORTAL_DATA_DIR."
        return ""

    def anonymize(
        self,
        samples: Samples,
        rate: int,
        pseudo_speaker: PseudoSpeaker,
        *,
        options: Options | None = None,
        threads: int = 1,
    ) -> Samples:
        return self.anonymize_batch([Item(samples, pseudo_speaker)], rate, options=options, threads=threads)[0]

    def anonymize_batch(
        self, items: Sequence[Item], rate: int, *, options: Options | None = None, threads: int = 1
    ) -> list[Samples]:
        if missing := self.missing():
            raise MethodError(missing)
        if self.needs_gpu and not _has_graphics_card():  # no part of `missing`: who offers it may be another machine
            raise MethodError(f"{self.name} needs a graphics card; this machine shows none. Run it on one that does.")
        for item in items:
            validate_samples(self.name, item.samples, rate, low_hz=LOWEST_RATE_HZ, high_hz=HIGHEST_RATE_HZ)
            validate_voice(self, item.pseudo_speaker)
        settled = complete_options(self, options)
        if sandbox.missing_protections():
            _watch.get().remark(self.isolation)
        outputs = [item.samples.copy() for item in items]  # what has no samples stays as it is
        remarks: Counter[str] = Counter()
        for call in self._calls(items):
            for index, output in _Call(self, call, rate, settled, threads).run(remarks):
                outputs[index] = output
        for remark, times in remarks.items():
            _watch.get().remark(f"{self.name}: {times} of {len(items)} outputs: {remark}.")
        return outputs

    def _calls(self, items: Sequence[Item]) -> list[list[tuple[int, Item]]]:
        """Which items go into one call of the command, with their places."""
        sounding = [(index, item) for index, item in enumerate(items) if item.samples.size]
        if self.description.mode == "streams":
            return [[each] for each in sounding]
        if not self.description.has_voice_in_command:
            return [sounding] if sounding else []
        by_voice: dict[str, list[tuple[int, Item]]] = {}
        for index, item in sounding:
            by_voice.setdefault(item.pseudo_speaker.key, []).append((index, item))
        return list(by_voice.values())


@dataclass(frozen=True)
class _Call:
    """One call of the command for some items of a batch."""

    method: ExternalCommand
    items: list[tuple[int, Item]]
    rate: int
    options: dict[str, OptionValue]
    threads: int

    def run(self, remarks: Counter[str]) -> list[tuple[int, Samples]]:
        """The output of each item with its place; adds what was changed to `remarks`."""
        try:
            work = Path(tempfile.mkdtemp(prefix="anonymize-"))
        except OSError as error:
            raise MethodError(f"{self.method.name}: no folder for its files can be made ({error.strerror}).") from error
        try:
            return self._run_in(work.resolve(), remarks)
        except OSError as error:
            raise MethodError(f"{self.method.name}: its files cannot be written or read ({error.strerror}).") from error
        finally:
            remove_folder(str(work))

    def _run_in(self, work: Path, remarks: Counter[str]) -> list[tuple[int, Samples]]:
        about = self.method.description
        source, output, home = (work / name for name in ("input", "output", "home"))
        for folder in (source, output, home):
            folder.mkdir(mode=0o700)
        given_rate = about.rate_hz or self.rate
        given = {index: self._write_input(source / file_name(index), item) for index, item in self.items}
        write_manifest(work / "manifest.csv", self.items, about.parameters)
        [name, *others] = [file_name(index) for index, _ in self.items]
        is_stream = about.mode == "streams"
        task = sandbox.Task(
            arguments=fill_in(about.command, self._values(work, given_rate)),
            folder=about.folder,
            work=work,
            writes=(output, home),
            reads=about.reads,
            stdin=source / name if is_stream else None,
            stdout=output / name if is_stream else None,
            limits=about.limits,
            needs_gpu=about.needs_gpu,
            threads=self.threads,
            own_variables=about.environment,
        )
        watch = _watch.get()
        outcome = sandbox.run_confined(task, allow_limited=about.is_limited, should_stop=watch.should_stop)
        if outcome.end == "stopped":
            raise CommandStopped(f"{self.method.name} was ended because the run was stopped.")
        failure = outcome.failure(about.limits)
        if not failure and (fault := check_folder(output, [name, *others])):
            failure = f"{fault}{sandbox.last_lines(outcome.errors, cut=outcome.cut)}"
        if failure:
            raise MethodError(f"{self.method.name} failed. {failure}")
        printed = sandbox.last_lines(outcome.errors, cut=outcome.cut)
        return [
            (index, self._read(output, index, given[index], given_rate, printed, remarks)) for index, _ in self.items
        ]

    def _write_input(self, path: Path, item: Item) -> int:
        """How many samples the command is given."""
        from evaluation.formats.audio import resample

        rate = self.method.description.rate_hz or self.rate
        samples = item.samples if rate == self.rate else resample(item.samples, self.rate, rate)
        write_wav(path, samples, rate)
        return int(samples.size)

    def _values(self, work: Path, rate: int) -> dict[str, str]:
        """What each placeholder becomes; those of a voice are used where all items have the same one only."""
        first = self.items[0][1]
        values = {
            "input": str(work / "input"),
            "output": str(work / "output"),
            "manifest": str(work / "manifest.csv"),
            "voice": key_of(first),
            "seed": str(seed_of(first)),
            "rate": str(rate),
            "threads": str(self.threads),
        }
        values |= {name: repr(float(value)) for name, value in first.pseudo_speaker.parameters.items()}
        return values | {name: _as_text(value) for name, value in self.options.items()}

    def _read(
        self, folder: Path, index: int, given: int, given_rate: int, printed: str, remarks: Counter[str]
    ) -> Samples:
        from evaluation.formats.audio import resample

        about = self.method.description
        expected = {given_rate, self.rate}
        try:
            samples, rate, stored = read_output(
                folder / file_name(index), given=given, given_rate=given_rate, tolerance_s=about.duration_tolerance_s
            )
            if rate not in expected and not about.converts_rate:
                rates = " or ".join(f"{each} Hz" for each in sorted(expected))
                raise MethodError(f"expected {rates}, found {rate} Hz")
        except MethodError as error:
            sentence = str(error).rstrip(".")
            raise OutputError(
                f"{self.method.name} failed. Its output for {file_name(index)} cannot be used: {sentence}.{printed}",
                index,
            ) from error
        if stored:
            remarks[stored] += 1
        if rate == self.rate:
            return samples
        remarks[f"resampled from {rate} Hz to {self.rate} Hz by soxr"] += 1
        return resample(samples, rate, self.rate)


def _has_graphics_card() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def _as_text(value: OptionValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, int | float) else value


def load_command(path: Path) -> ExternalCommand:
    """The command that a file describes.

    Raises:
        MethodError: the description cannot be used; says why.
    """
    return ExternalCommand(read_description(path))
