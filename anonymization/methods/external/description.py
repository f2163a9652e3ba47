"""The description of an external command: a TOML file that says what to call, with what, and within which limits.

Everything is checked when the file is read; `docs/plugins.md` explains each key. A placeholder in the command, such as
`{input}`, becomes what it names. A command that is a list of texts is called without a shell, a text by `/bin/sh`, to
which all other braces are left.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from anonymization.methods.contract import MOST_PARAMETERS, Described, MethodError, Option, Parameter
from anonymization.methods.external.sandbox import CommandLimits

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z][a-z0-9_]*)\}")  # ${input} is a variable of the shell
SHELL = ("/bin/sh", "-c")
LONGEST_NAME, LONGEST_VERSION, LARGEST_FILE = 60, 24, 256 * 1024
OF_FILES = ("input", "output")
OF_FOLDERS = ("input_folder", "output_folder", "manifest")
OF_VOICE = ("voice", "seed")
OF_RUN = ("python", "rate", "threads")
OF_ALL = frozenset({*OF_FILES, *OF_FOLDERS, *OF_VOICE, *OF_RUN})
LOWEST_RATE_HZ, HIGHEST_RATE_HZ = 4_000, 192_000
_REQUIRED: Any = object()  # in place of a default


@dataclass(frozen=True, kw_only=True)
class Description(Described):
    """What a description says; the attributes are its keys, paths are absolute.

    version: as written, and the first digits of the digest, which is the SHA-256 of the file.
    rate_hz: what the command is given, None for the rate of the speech. duration_tolerance_s: None where any duration
    will do. confinement: ``full``, ``limited`` (run it unconfined where this machine cannot confine it) or ``none``
    (run it as from a terminal, whatever it reads).
    """

    source: Path
    digest: str
    command: tuple[str, ...]
    folder: Path
    reads: tuple[Path, ...]
    environment: Mapping[str, str]
    limits: CommandLimits
    rate_hz: int | None
    converts_rate: bool
    duration_tolerance_s: float | None
    confinement: str

    @property
    def placeholders(self) -> frozenset[str]:
        """Return the names of all that the command is told."""
        return self.words_in_braces & self.known_placeholders

    @property
    def words_in_braces(self) -> frozenset[str]:
        return frozenset(name for part in self.command for name in PLACEHOLDER.findall(part))

    @property
    def known_placeholders(self) -> frozenset[str]:
        return OF_ALL.union((each.name for each in self.parameters), (each.name for each in self.options))

    @property
    def form(self) -> str:
        """Return what a call gives it: ``files`` (one utterance), ``folders`` (many) or ``streams`` (one utterance)."""
        return (
            "files" if "input" in self.placeholders else "folders" if "input_folder" in self.placeholders else "streams"
        )

    @property
    def gains_by_batches(self) -> bool:
        """Return whether one call serves several utterances."""
        return self.form == "folders"

    @property
    def has_voice_in_command(self) -> bool:
        """Return whether a call can serve one voice only."""
        return not self.placeholders.isdisjoint({*OF_VOICE, *(parameter.name for parameter in self.parameters)})

    @property
    def is_given_voices(self) -> bool:
        """Return whether the command learns which voice an utterance is to have."""
        return self.has_voice_in_command or "manifest" in self.placeholders

    @property
    def line(self) -> str:
        """Return the command as one would type it."""
        return self.command[-1] if self.is_shell else shlex.join(self.command)

    @property
    def is_shell(self) -> bool:
        return self.command[:-1] == SHELL


D = TypeVar("D", bound=Description)


def read_description(path: Path, kind: type[D]) -> D:
    """Return the description in a file, as something of that kind.

    Raises:
        MethodError: it cannot be read or used; names the file, the key, what was expected and found.
    """
    table, digest = read_table(path)
    return _describe(table, path.absolute(), digest, kind)


def read_table(path: Path) -> tuple[TomlTable, str]:
    """Return what a description holds, and the SHA-256 of the file. Raises MethodError where it cannot be read."""
    try:
        content = path.read_bytes()
        if len(content) > LARGEST_FILE:
            raise MethodError(f"{path}: expected a description of at most {LARGEST_FILE} bytes, found {len(content)}.")
        keys = tomllib.loads(content.decode())
    except OSError as error:
        raise MethodError(f"{path}: the description cannot be read ({error.strerror}).") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MethodError(f"{path}: expected a TOML file in UTF-8, found: {error}.") from error
    return TomlTable(keys, str(path)), hashlib.sha256(content).hexdigest()


class TomlTable:
    """A table of the file whose keys are taken one by one, so that one that nobody takes is told."""

    def __init__(self, keys: Mapping[str, Any], where: str) -> None:
        self.keys = dict(keys)
        self.where = where
        self.known: list[str] = []

    def take(self, key: str, expected: str, fits: Callable[[Any], bool], default: Any = _REQUIRED) -> Any:
        """Return the value of a key. Raises MethodError where it does not fit, or is not there and has no default."""
        self.known.append(key)
        if key not in self.keys and default is not _REQUIRED:
            return default
        value = self.keys.pop(key, None)
        if value is None or not fits(value):
            found = "nothing" if value is None else repr(value)
            raise MethodError(f"{self.where}: {key}: expected {expected}, found {found}.")
        return value

    def text(self, key: str, expected: str = "a text", default: Any = _REQUIRED, longest: int = 500) -> str:
        value = self.take(key, expected, lambda v: isinstance(v, str) and 0 < len(v.strip()) <= longest, default)
        return str(value).strip()

    def one_of(self, key: str, choices: Collection[str], default: Any = _REQUIRED) -> str:
        return str(self.take(key, f"one of {', '.join(choices)}", lambda v: v in choices, default))

    def flag(self, key: str, default: Any = _REQUIRED) -> bool:
        return bool(self.take(key, "true or false", lambda v: isinstance(v, bool), default))

    def number(self, key: str, low: float, high: float, default: Any = _REQUIRED) -> float:
        return float(self.take(key, f"a number from {low:g} to {high:g}", lambda v: _is_number(v, low, high), default))

    def texts(self, key: str, expected: str, default: Any = _REQUIRED) -> tuple[str, ...]:
        return tuple(self.take(key, expected, lambda v: is_list(v, str) and all(v), default))

    def tables(self, key: str) -> list[TomlTable]:
        found = self.take(key, f"[[{key}]] tables", lambda v: is_list(v, dict), [])
        return [TomlTable(each, f"{self.where}: {key} {number}") for number, each in enumerate(found, start=1)]

    def table(self, key: str) -> TomlTable:
        return TomlTable(self.take(key, f"a table [{key}]", lambda v: isinstance(v, dict), {}), f"{self.where}: {key}")

    def finish(self) -> None:
        """Raise MethodError for a key that nobody took."""
        for key in self.keys:
            near = difflib.get_close_matches(key, self.known, 1)
            hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(self.known)}."
            raise MethodError(f'{self.where}: there is no key "{key}". {hint}')


def is_list(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)


def _is_number(value: object, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def is_name(value: object) -> bool:
    return isinstance(value, str) and NAME.fullmatch(value) is not None and len(value) <= LONGEST_NAME


def _describe(table: TomlTable, path: Path, digest: str, kind: type[D]) -> D:
    name = table.take("name", "small letters, digits and hyphens", is_name)
    fits_version = f"a text of at most {LONGEST_VERSION} letters"
    rate = table.take("rate_hz", "a rate in hertz", lambda v: _is_number(v, LOWEST_RATE_HZ, HIGHEST_RATE_HZ), None)
    tolerance = table.take(
        "duration_tolerance_s", "a number from 0 to 3600", lambda v: _is_number(v, 0, 3600), default=None
    )
    confinement = table.one_of("isolation", ("full", "limited", "none"), "full")
    description = kind(
        source=path,
        digest=digest,
        name=name,
        title=table.text("title", longest=120),
        version=f"{table.text('version', fits_version, longest=LONGEST_VERSION)}+{digest[:8]}",
        reference=table.text("reference", "where the method is published, or by whom it is"),
        command=_command(table),
        folder=_folder(path, table.text("folder", "a folder", "."), confinement),
        reads=tuple(_folder(path, each, confinement) for each in table.texts("reads", "a list of folders", [])),
        environment=_environment(table.table("environment")),
        parameters=tuple(map(_parameter, table.tables("parameters"))),
        options=tuple(map(_option, table.tables("options"))),
        limits=_limits(table.table("limits")),
        rate_hz=None if rate is None else int(rate),
        converts_rate=table.one_of("output_rate", ("convert", "refuse"), "convert") == "convert",
        duration_tolerance_s=None if tolerance is None else float(tolerance),
        is_deterministic=table.flag("is_deterministic"),
        needs_gpu=table.flag("needs_gpu", default=False),
        confinement=confinement,
    )
    table.one_of("network", ("never",), "never")
    table.finish()
    _check_command(description, table.where)
    return description


def find_portal_data() -> Path:
    """Return where the portal of this environment keeps its data; it need not exist."""
    return Path(os.environ.get("PORTAL_DATA_DIR") or "var").expanduser().absolute()


def _folder(source: Path, text: str, confinement: str) -> Path:
    """Return a folder as the description names it, from its own place. Raises MethodError where it would open too
    much."""
    folder = Path(os.path.normpath(source.parent / Path(text).expanduser()))
    if confinement == "none":
        return folder
    data = find_portal_data()
    closed = {"the data of the portal": data, "the temporary files of all": Path(tempfile.gettempdir())}
    if text == ".":  # a home folder that is named is meant
        closed["your home folder"] = Path.home()
    for what, protected in closed.items():
        if protected.exists() and protected.resolve().is_relative_to(folder.resolve()):
            raise MethodError(
                f"{source}: the command may read all of {folder}, which holds {what}. Put it in a folder of its own."
            )
    if folder.resolve().is_relative_to(data.resolve()):
        raise MethodError(f"{source}: the command may read {folder}, which is inside the data of the portal. Move it.")
    return folder


def _command(table: TomlTable) -> tuple[str, ...]:
    def fits(value: object) -> bool:
        return is_list(value, str) and all(value) if isinstance(value, list) else isinstance(value, str)

    found = table.take("command", "the command as one types it, or a list of the program and its arguments", fits)
    return (*SHELL, found) if isinstance(found, str) else tuple(found)


def _environment(table: TomlTable) -> dict[str, str]:
    return {key: table.text(key, "a text") for key in list(table.keys)}


def _limits(table: TomlTable) -> CommandLimits:
    usual = CommandLimits()
    values = {each.name: table.number(each.name, 1, 1e7, getattr(usual, each.name)) for each in fields(CommandLimits)}
    table.finish()
    return CommandLimits(**values)


def _word(table: TomlTable) -> str:
    fits = re.compile(r"[a-z][a-z0-9_]*").fullmatch
    return str(table.take("name", "small letters, digits and _", lambda v: isinstance(v, str) and bool(fits(v))))


def _parameter(table: TomlTable) -> Parameter:
    name = _word(table)
    low, high = table.number("low", -1e12, 1e12), table.number("high", -1e12, 1e12)
    if low >= high:
        raise MethodError(f"{table.where}: high: expected more than low ({low:g}), found {high:g}.")
    gap = table.take("gap", f"[from, to] between {low:g} and {high:g}", lambda v: _is_gap(v, low, high), None)
    parameter = Parameter(
        name=name,
        unit=table.text("unit", default=""),
        low=low,
        high=high,
        meaning=table.text("meaning"),
        effect=table.text("effect", default=""),
        gap=gap and (float(gap[0]), float(gap[1])),
    )
    table.finish()
    return parameter


def _is_gap(value: object, low: float, high: float) -> bool:
    if not isinstance(value, list) or len(value) != 2 or not all(_is_number(each, low, high) for each in value):
        return False
    return bool(value[0] < value[1] and value[1] - value[0] < high - low)


def _option(table: TomlTable) -> Option:
    name = _word(table)
    default = table.take(
        "default", "true, false, a number or a text", lambda v: isinstance(v, bool | int | float | str)
    )
    choices = table.texts("choices", "a list of texts", [])
    is_number = _is_number(default, float("-inf"), float("inf"))
    low = table.number("low", -1e12, 1e12) if is_number else None
    high = table.number("high", -1e12, 1e12) if is_number else None
    option = Option(name, default, table.text("meaning"), choices, low, high, table.text("unit", default=""))
    table.finish()
    if isinstance(default, str) and not choices:
        raise MethodError(f"{table.where}: choices: expected a list of texts, one of them the default, found none.")
    try:
        option.validate(default)
    except MethodError as error:
        raise MethodError(f"{table.where}: default: {error}") from error
    return option


def _check_command(description: Description, where: str) -> None:
    own = [each.name for each in description.parameters] + [each.name for each in description.options]
    reserved = OF_ALL | {"utterance"}
    if len(description.parameters) > MOST_PARAMETERS:
        raise MethodError(
            f"{where}: expected at most {MOST_PARAMETERS} parameters, found {len(description.parameters)}."
        )
    for each in own:
        if own.count(each) > 1 or each in reserved:
            taken = "twice" if own.count(each) > 1 else "reserved for a placeholder"
            raise MethodError(f'{where}: expected another name for each parameter and option, found "{each}" {taken}.')
    if not description.command or not description.command[-1].strip():
        raise MethodError(f"{where}: command: expected the program and its arguments, found nothing.")
    found, known = description.placeholders, description.known_placeholders
    if not description.is_shell and (unknown := sorted(description.words_in_braces - known)):
        raise MethodError(
            f"{where}: command: expected placeholders of {', '.join(sorted(known))}, found {{{unknown[0]}}}."
        )
    pairs = [OF_FILES, OF_FOLDERS[:2]]
    for pair in pairs:
        if len(said := [name for name in pair if name in found]) == 1:
            absent = next(name for name in pair if name not in said)
            raise MethodError(f"{where}: command: expected {{{absent}}} with {{{said[0]}}}, found none.")
    if found.issuperset(OF_FILES) and not found.isdisjoint(OF_FOLDERS):
        raise MethodError(f"{where}: command: expected files or folders, found {{input}} and placeholders of folders.")
    if "manifest" in found and "input_folder" not in found:
        raise MethodError(f"{where}: command: expected {{input_folder}} with {{manifest}}, found none.")


def fill_in(command: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    """Return the command with the value of each name in braces in its place; braces in values stay as they are."""
    values = {"python": sys.executable, **values}
    if command[:-1] == SHELL:
        values = {name: shlex.quote(value) for name, value in values.items()}
    return [PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), part) for part in command]
