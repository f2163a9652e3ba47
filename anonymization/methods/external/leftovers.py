"""What a confined command has written and holds: how much that is, and how it is removed.

Folders are entered by the descriptor of the one above: no path is too long, no link is followed, and a folder that is
moved meanwhile leads nowhere else. What cannot be seen in full counts as too much. The standard library only, as for
the supervisor.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

MOST_FILES = 200_000
DEEPEST = 100  # each has an open descriptor while it is measured
_BUFFER_BYTES = {stat.S_IFSOCK: 256 * 1024, stat.S_IFIFO: 64 * 1024}  # as much as the kernel keeps in one that is full
_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HEADER = re.compile(rb"[0-9a-f]+-[0-9a-f]+ \S+ [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+) ")


def measure_folder(folder: str) -> int:
    """Return bytes on the disk of all that is in a folder.

    Raises:
        RuntimeError: it is too many files, too deep, or a folder cannot be read.
    """
    files = itertools.count(1)
    try:
        return _measure_folder(folder, None, files, DEEPEST)
    except OSError as error:
        raise RuntimeError(f"a folder cannot be read ({error.strerror})") from error


def _measure_folder(name: str, parent: int | None, files: Iterable[int], deepest: int) -> int:
    if deepest < 0:
        raise RuntimeError(f"folders are nested more than {DEEPEST} deep")
    try:
        folder = _open_folder(name, parent)
    except (FileNotFoundError, NotADirectoryError):
        return 0  # gone, or no folder any more; what took its place is seen at the next look
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry, count in zip(entries, files, strict=False):
                if count > MOST_FILES:
                    raise RuntimeError(f"there are more than {MOST_FILES:,} files")
                with suppress(FileNotFoundError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    total += _measure_folder(entry.name, folder, files, deepest - 1)
    finally:
        os.close(folder)
    return total


def _open_folder(name: str, parent: int | None = None) -> int:
    """Descriptor of a folder, which is no link; it is given the rights of its owner where they are lacking."""
    try:
        return os.open(name, _ENTER, dir_fd=parent)
    except PermissionError:
        place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            Path(f"/proc/self/fd/{place}").chmod(0o700)
            return os.open(".", _ENTER, dir_fd=place)
        finally:
            os.close(place)


def measure_held(processes: Iterable[Path], folder: str, largest: int) -> tuple[int, int]:
    """Return bytes on the disk of removed files that these processes still use, and of memory in their buffers and
    memfds.

    Args:
        processes: their folders in /proc.
        folder: where they may write.
        largest: bytes of the largest file that they can make; a removed file that is only mapped counts so much.

    Raises:
        RuntimeError: a process hides what it has open.
    """
    written = os.fsencode(f"{folder}/")
    files: dict[int, int] = {}
    buffers: dict[tuple[int, int], int] = {}
    for process in processes:
        try:
            opened = list((process / "fd").iterdir())
            maps = (process / "maps").read_bytes().splitlines()
        except PermissionError as error:
            if resident_bytes(process):  # one that is about to end has none
                raise RuntimeError("a process hides which files it has open") from error
            continue
        except OSError:
            continue
        for descriptor in opened:
            with suppress(OSError):
                about = descriptor.stat()
                if kept := _BUFFER_BYTES.get(stat.S_IFMT(about.st_mode)):
                    buffers[about.st_dev, about.st_ino] = kept
                elif stat.S_ISREG(about.st_mode) and not about.st_nlink:
                    if str(descriptor.readlink()).startswith("/memfd:"):
                        buffers[about.st_dev, about.st_ino] = about.st_blocks * 512
                    else:
                        files[about.st_ino] = about.st_blocks * 512
        for line in maps:
            if line.endswith(b" (deleted)") and line.split(maxsplit=5)[5].startswith(written):
                files.setdefault(int(line.split(maxsplit=5)[4]), largest)
    return sum(files.values()), sum(buffers.values())


def measure_memory(processes: Collection[Path], shared: Path, most: float) -> int:
    """Return bytes of memory of these processes and of the files in their shared memory.

    Args:
        processes: their folders in /proc.
        shared: where their shared memory is mounted.
        most: from where on pages that processes share have to be counted once.
    """
    device, shared_bytes = b"", 0
    with suppress(OSError):  # gone with the last of them
        number, about = shared.stat().st_dev, os.statvfs(shared)
        device = f"{os.major(number):02x}:{os.minor(number):02x}".encode()  # as the kernel names it in maps
        shared_bytes = (about.f_blocks - about.f_bfree) * about.f_frsize
    memory = sum(map(resident_bytes, processes)) + shared_bytes
    if memory > most:
        memory = sum(_proportional_bytes(process, device) for process in processes) + shared_bytes
    return memory


def resident_bytes(process: Path) -> int:
    """Return memory in use, shared pages in full; 0 for a process that has ended or is about to."""
    try:
        return int((process / "statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _proportional_bytes(process: Path, but: bytes) -> int:
    """Return memory in use, pages that processes share divided among them, without those of a device."""
    total, counts = 0, True
    try:
        with (process / "smaps").open("rb") as lines:
            for line in lines:
                if line.startswith(b"Pss:"):
                    total += int(line.split()[1]) * 1024 if counts else 0
                elif header := _HEADER.match(line):
                    counts = header[1] != but
    except OSError:
        return resident_bytes(process)
    return total


def remove_folder(folder: str, *, last: str = "") -> bool:
    """Remove a folder with all that is in it, whatever its names, depth and rights; links are not followed.

    A folder inside of it is emptied by moving what it holds to the top, so that two are open at a time.

    Args:
        last: the name in it that goes after all others: what a command has filled.

    Returns:
        Whether all of it is gone.
    """
    stuck: set[str] = set()
    names = (f"{secrets.token_hex(8)}-{number}" for number in itertools.count())
    with suppress(OSError):
        top = _open_folder(folder)
        try:
            while waiting := _list_names(top) - stuck:
                for name in sorted(waiting, key=lambda each: each == last):
                    try:
                        _remove_entry(name, top, names)
                    except OSError:
                        stuck.add(name)
        finally:
            os.close(top)
        Path(folder).rmdir()
    return not os.path.lexists(folder)


def _remove_entry(name: str, top: int, names: Iterable[str]) -> None:
    """Remove a file, or a folder after its folders were moved to the top under new names."""
    if _unlink(name, top):
        return
    folder = _open_writable(name, top)
    try:
        for inner in _list_names(folder):
            with suppress(OSError):
                if not _unlink(inner, folder):
                    os.close(_open_writable(inner, folder))  # who moves a folder must be allowed to write into it
                    os.rename(inner, next(iter(names)), src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _list_names(folder: int) -> set[str]:
    with os.scandir(folder) as entries:
        return {entry.name for entry in entries}


def _unlink(name: str, folder: int) -> bool:
    """Remove what is no folder; False for one."""
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):
        return False
    return True


def _open_writable(name: str, parent: int) -> int:
    folder = _open_folder(name, parent)
    os.fchmod(folder, 0o700)
    return folder
