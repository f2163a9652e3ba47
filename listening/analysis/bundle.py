"""What makes an analysis reproducible: its inputs as one zip, and the bundle of inputs, results, tables and figures.

Equal inputs and settings give equal bytes: entries stand in a fixed order, bear no date, and hold text that does not
depend on the machine. A bundle is written piece by piece and never stands in memory as a whole; its figures may be a
mapping that reads each one when it is asked for.

`reproduce` makes an analysis again from its bundle and holds it against what the bundle holds, file by file.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import ProblemsError
from common.progress import Progress
from listening.analysis.analyse import ANALYSIS_VERSION, analyse
from listening.analysis.reading.input_files import STUDY, read_files, write_files
from listening.analysis.reading.inputs import Inputs, Settings
from listening.analysis.tables import Results, describe_inputs, describe_tables

INPUTS, TABLES, FIGURES = "inputs/", "tables/", "figures/"
RESULTS, README, MANIFEST = "results.json", "README.txt", "MANIFEST.sha256"
MOST_BYTES = 2 << 30
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_README = Path(__file__).with_name("readme.txt").read_text(encoding="utf-8")
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)
_COMPRESSED = (".svg", ".csv", ".json", ".txt", ".md", ".pdf", ".sha256")


def write_inputs(inputs: Inputs, settings: Settings) -> bytes:
    """Return a zip of the inputs and settings of an analysis; equal ones give equal bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in write_files(inputs, settings).items():
            _add(archive, name, content)
    return stream.getvalue()


def read_inputs(source: Path | bytes, name: str = "") -> tuple[Inputs, Settings]:
    """Return the inputs in a zip of `write_inputs`, or in a whole bundle.

    Raises:
        ProblemsError: it is no such file, or something in it cannot be analysed; one sentence for each problem.
    """
    place = name or (source.name if isinstance(source, Path) else "inputs.zip")
    files = read_zip(source, place, INPUTS)
    start = INPUTS if f"{INPUTS}{STUDY}" in files else ""
    return read_files({one.removeprefix(start): content for one, content in files.items()}, place)


def compute_fingerprint(inputs: Inputs, settings: Settings) -> str:
    """Return the SHA-256 of inputs, settings and version of the analysis: equal ones need not be computed again."""
    digest = hashlib.sha256(f"analysis {ANALYSIS_VERSION}\n".encode())
    for name, content in write_files(inputs, settings).items():
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def write_bundle(inputs_zip: bytes, results: Results, figures: Mapping[str, bytes]) -> Iterator[bytes]:
    """Yield the pieces of a zip that holds everything about an analysis, and the command that makes it again.

    Args:
        inputs_zip: of `write_inputs`.
        figures: files by their names, such as ``raw/det-naturalness-light.svg``.
    """
    stream = _Pieces()
    hashes: list[str] = []
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in _contents(inputs_zip, results, figures):
            hashes.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
            _add(archive, name, content)
            yield stream.take()
        _add(archive, MANIFEST, "".join(hashes).encode())
    yield stream.take()


def write_results(results: Results) -> dict[str, bytes]:
    """Write `results.json` and the CSV file of each table, by their names in a bundle."""
    files = {RESULTS: results.as_json().encode()}
    return files | {f"{TABLES}{path}.csv": results.tables[path].csv().encode() for path in sorted(results.tables)}


def read_zip(source: Path | bytes, place: str, inside: str = "") -> dict[str, bytes]:
    """Return the files of a zip.

    Args:
        inside: only those below this folder, where the zip has it.

    Raises:
        ProblemsError: it cannot be read.
    """
    try:
        with zipfile.ZipFile(source if isinstance(source, Path) else io.BytesIO(source)) as archive:
            listed = [one for one in archive.infolist() if not one.is_dir()]
            folder = _folder_of([one.filename for one in listed])
            chosen = [one for one in listed if one.filename.startswith(folder + inside)] or listed
            names = [one.filename.removeprefix(folder) for one in chosen]
            if twice := sorted(name for name, count in Counter(names).items() if count > 1):
                raise ProblemsError(f"{place}: expected each file once, found {twice[0]!r} again. Make it again.")
            if odd := [name for name, one in zip(names, chosen, strict=True) if one.compress_type not in _COMPRESSIONS]:
                raise ProblemsError(
                    f"{place}: expected files stored or deflated, found {odd[0]!r} compressed in another way. "
                    "Zip them again without options."
                )
            return dict(zip(names, _unzipped(archive, chosen, place), strict=True))
    except (OSError, EOFError, RuntimeError, NotImplementedError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, ProblemsError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ProblemsError(
            f"{place}: expected a zip of inputs or a bundle, found “{reason}”. Download it again."
        ) from None


def _unzipped(archive: zipfile.ZipFile, entries: Sequence[zipfile.ZipInfo], place: str) -> list[bytes]:
    """Return what the entries hold, never more of one than its header says, nor of all than is allowed.

    Raises:
        ProblemsError: there is more.
    """
    too_much = f"{place}: expected at most {MOST_BYTES >> 20:,} MiB of files, found more."
    if sum(one.file_size for one in entries) > MOST_BYTES:
        raise ProblemsError(too_much)
    contents: list[bytes] = []
    left = MOST_BYTES
    for one in entries:
        with archive.open(one) as file:
            content = file.read(one.file_size + 1)
        if len(content) != one.file_size:
            raise ProblemsError(
                f"{place}: expected {one.file_size:,} bytes in {one.filename!r}, found another number. "
                "Download it again."
            )
        left -= len(content)
        if left < 0:
            raise ProblemsError(too_much)
        contents.append(content)
    return contents


def _folder_of(names: list[str]) -> str:
    """Return the folder in which everything lies, as in a zip of an unpacked bundle; empty where there is none."""
    study = next((name for name in names if name.rsplit("/", 1)[-1] == STUDY), "")
    folder = study.removesuffix(STUDY).removesuffix(INPUTS)
    return folder if all(name.startswith(folder) for name in names) else ""


def _contents(inputs_zip: bytes, results: Results, figures: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    yield README, _readme(results).encode()
    for name, content in read_zip(inputs_zip, "inputs.zip").items():
        yield f"{INPUTS}{name}", content
    yield from write_results(results).items()
    for name in sorted(figures):
        yield f"{FIGURES}{name}", figures[name]


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _FIRST_DATE)
    entry.create_system = 3
    entry.external_attr = 0o644 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED if name.endswith(_COMPRESSED) else zipfile.ZIP_STORED
    archive.writestr(entry, content)


def _readme(results: Results) -> str:
    study = results.study
    simulated = "SIMULATED: no person has listened; every answer was drawn from a model.\n"
    notes = "".join(f"- {note}\n" for note in results.remarks)
    return _README.format(
        title=study["title"],
        name=study["name"],
        simulated=simulated if study["is_simulated"] else "",
        versions=_listed(results.versions),
        settings=_listed(results.settings),
        cite=f"\nCite: {study['attribution']}" if study["attribution"] else "",
        notes=f"\n{notes}",
        inputs=describe_inputs(),
        tables=describe_tables(),
    )


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


class _Pieces(io.RawIOBase):
    """A stream that cannot go back: what was written since the last time is taken from it."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        piece = bytes(content)
        self._pieces.append(piece)
        return len(piece)

    def take(self) -> bytes:
        taken, self._pieces = b"".join(self._pieces), []
        return taken


_HASH = re.compile(r"([0-9a-f]{64}) [ *](.+)")


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Attributes:
    results: made now.
    equal: how many tables came out the same byte for byte.
    differing: a sentence for each table that did not, or that only one side has.
    damaged: files of the bundle that its list of hashes does not know as they are.
    held: all files of the bundle, by name.
    """

    results: Results
    equal: int
    differing: tuple[str, ...]
    damaged: tuple[str, ...]
    held: Mapping[str, bytes]


def reproduce(source: Path | bytes, place: str, progress: Progress | None = None) -> Reproduction:
    """Analyse the inputs of a bundle again and compare the tables.

    Args:
        source: a bundle, or a zip of inputs alone, which leaves nothing to compare.
        place: what it is called, for what is said about it.

    Raises:
        ProblemsError: it is neither, or its inputs cannot be analysed.
    """
    inputs, settings = read_inputs(source, place)
    held = read_zip(source, place)
    results = analyse(inputs, settings, progress)
    made = {name: content for name, content in write_results(results).items() if name.startswith(TABLES)}
    before = {name: content for name, content in held.items() if name.startswith(TABLES)}
    differing = tuple(_differences(before, made)) if before else ()
    equal = sum(before.get(name) == content for name, content in made.items())
    return Reproduction(results, equal, differing, tuple(_damaged(held)), held)


def _differences(before: Mapping[str, bytes], made: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted({*before, *made}):
        if name not in made:
            yield f"{name}: is in the bundle, but was not made now."
        elif name not in before:
            yield f"{name}: was made now, but is not in the bundle."
        elif before[name] != made[name]:
            yield _first_difference(name, before[name], made[name])


def _first_difference(name: str, before: bytes, made: bytes) -> str:
    old, new = before.decode("utf-8", "replace").splitlines(), made.decode("utf-8", "replace").splitlines()
    pairs = zip(old, new, strict=False)
    line = next((number for number, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))
    shown = [f"“{rows[line][:80]}”" if line < len(rows) else "no such line" for rows in (old, new)]
    return f"{name}, line {line + 1}: the bundle has {shown[0]}, now it is {shown[1]}."


def _damaged(held: Mapping[str, bytes]) -> Iterator[str]:
    """Yield files whose bytes are not those of the list of hashes, that are missing, or that it does not name.

    A zip of inputs alone has no list.
    """
    if MANIFEST not in held:
        if any(name == RESULTS or name.startswith((INPUTS, TABLES, FIGURES)) for name in held):
            yield f"{MANIFEST}: is missing from the bundle, so it is not known whether its files were changed."
        return
    named = {MANIFEST}
    for line in held.get(MANIFEST, b"").decode("utf-8", "replace").splitlines():
        if (found := _HASH.fullmatch(line)) is None:
            yield f"{MANIFEST}: cannot be read where it says “{line[:60]}”."
            continue
        named.add(found[2])
        if found[2] not in held:
            yield f"{found[2]}: is missing from the bundle."
        elif hashlib.sha256(held[found[2]]).hexdigest() != found[1]:
            yield f"{found[2]}: was changed after the bundle was made."
    for name in held:
        if name not in named:
            yield f"{name}: is in the bundle, but {MANIFEST} does not name it."
