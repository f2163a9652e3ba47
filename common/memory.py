"""Bytes: how many this machine has and has left, how many a process takes, and how a size is written.

Sizes are in powers of ten everywhere: ``9.3 MB`` are 9.3 million bytes, as on a disk.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_UNITS = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_MEMORY = Path("/proc/meminfo")
_LIMITS = ((Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),)
_PROCESSES = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def available_bytes(memory: Path = _MEMORY, limits: tuple[tuple[Path, Path], ...] = _LIMITS) -> int | None:
    """Return bytes that new work can have: what the kernel calls available, or what is left of the container's limit.

    None where neither can be read, such as outside of Linux.
    """
    found = [_of_kernel(memory), *(_of_container(most, used) for most, used in limits)]
    return min((one for one in found if one is not None), default=None)


def total_bytes(memory: Path = _MEMORY, limit: Path = _LIMITS[0][0]) -> int | None:
    """Return bytes of memory of this machine, or of its container where that has fewer; None where neither can be
    read."""
    found = [_of_kernel(memory, "MemTotal:")]
    with suppress(OSError):
        stated = limit.read_text().strip()
        found.append(int(stated) if stated.isdecimal() else None)
    return min((one for one in found if one is not None), default=None)


def resident_bytes(process: int, processes: Path = _PROCESSES) -> int:
    """Return bytes of memory that a process and all that it started hold; 0 of one that has ended, or outside of
    Linux."""
    pages, family = 0, [process]
    while family:
        folder = processes / str(family.pop())
        with suppress(OSError, IndexError, ValueError):  # it ended meanwhile
            pages += int((folder / "statm").read_text().split()[1])
            for thread in (folder / "task").iterdir():
                family += [int(one) for one in (thread / "children").read_text().split()]
    return pages * _PAGE_BYTES


def _of_kernel(memory: Path, name: str = "MemAvailable:") -> int | None:
    try:
        lines = memory.read_text().splitlines()
    except OSError:
        return None
    stated = next((line.split()[1] for line in lines if line.startswith(name)), "")
    return 1024 * int(stated) if stated.isdecimal() else None


def _of_container(most: Path, used: Path) -> int | None:
    """Return what is left of a limit; files that the kernel keeps in memory count as used, so this is on the safe
    side."""
    try:
        limit, spent = most.read_text().strip(), used.read_text().strip()
    except OSError:
        return None
    return max(0, int(limit) - int(spent)) if limit.isdecimal() and spent.isdecimal() else None


def format_size(count: int) -> str:
    """Return a number of bytes for a sentence.

    Example:
        >>> format_size(9_312_345), format_size(20 * 10**9), format_size(999_950), format_size(1)
        ('9.3 MB', '20 GB', '1 MB', '1 byte')
    """
    for size, unit in _UNITS:
        if count >= size - size // 20_000:  # what would be rounded to a thousand of the unit below
            return f"{count / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{count:,} byte{'' if count == 1 else 's'}"
