"""A shared memory (/dev/shm) that only a confined command has, so that locks and queues of multiprocessing work in it.

The one of the machine stays closed to commands: other processes of the same user keep theirs there. Source: Linux,
mount_namespaces(7) and user_namespaces(7).
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

FOLDER = "/dev/shm"  # noqa: S108 - its place is fixed
_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_NO_SETUID, _NO_DEVICES, _NO_EXECUTION, _PRIVATE, _RECURSIVE = 2, 4, 8, 1 << 18, 1 << 14


def give_shared_memory(size_mb: float) -> bool:
    """Give this process a shared memory of its own; it vanishes with the last process that it starts.

    Returns:
        Whether the kernel lets this user have one; where it does not, nothing has changed that matters.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_MOUNTS):
        if libc.unshare(_NEW_USERS | _NEW_MOUNTS):
            return False
        try:
            for name, line in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                Path(f"/proc/self/{name}").write_text(line, encoding="ascii")
        except OSError:
            return False
    if libc.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE | _RECURSIVE), None):
        return False
    flags = ctypes.c_ulong(_NO_SETUID | _NO_DEVICES | _NO_EXECUTION)
    size = f"size={int(size_mb)}m,mode=1777".encode()
    return bool(libc.mount(b"tmpfs", FOLDER.encode(), b"tmpfs", flags, size) == 0)
