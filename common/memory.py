"""How much memory this machine has left, as far as it can be told; used before work begins that would take more."""

from __future__ import annotations

from pathlib import Path

_MEMORY = Path("/proc/meminfo")
_LIMITS = ((Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),)


def available_bytes(
    memory: Path = _MEMORY, limits: tuple[tuple[Path, Path], ...] = _LIMITS
) -> int | None:  # fmt: skip
    """Bytes that new work can have: what the kernel calls available, or what is left of the container's limit.

    None where neither can be read, such as outside of Linux.
    """
    found = [_of_kernel(memory), *(_of_container(most, used) for most, used in limits)]
    return min((one for one in found if one is not None), default=None)


def _of_kernel(memory: Path) -> int | None:
    try:
        lines = memory.read_text().splitlines()
    except OSError:
        return None
    stated = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), "")
    return 1024 * int(stated) if stated.isdecimal() else None


def _of_container(most: Path, used: Path) -> int | None:
    """What is left of a limit; files that the kernel keeps in memory count as used, so this is on the safe side."""
    try:
        limit, spent = most.read_text().strip(), used.read_text().strip()
    except OSError:
        return None
    return max(0, int(limit) - int(spent)) if limit.isdecimal() and spent.isdecimal() else None
