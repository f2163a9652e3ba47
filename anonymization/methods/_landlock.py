"""The folders that a confined command may read or write: Landlock, which needs no privilege.

Whatever is not named is closed, the memory and the environment of processes outside included, because Landlock also
forbids to look into them. From version 6 (Linux 6.12) it confines signals too.
Source: Linux, include/uapi/linux/landlock.h and Documentation/userspace-api/landlock.rst.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

LOWEST_VERSION = 3  # Linux 6.2: before it, files outside could be cut to nothing
SIGNALS_VERSION = 6

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all processors
_PR_SET_NO_NEW_PRIVS = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_REMOVE = 1 << 4 | 1 << 5
_MAKE = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12  # folders, files, sockets, pipes, links; no devices
_REFER = 1 << 13
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _REMOVE | _MAKE | _REFER
DEVICE = _READ_FILE | _WRITE_FILE | _READ_DIR | _IOCTL_DEVICE


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


def version() -> int:
    """The version of Landlock of this kernel; 0 where there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))))


def close_folders(rules: Iterable[tuple[str, int]]) -> None:
    """Confine this process and all that it will start to these paths, for ever.

    Args:
        rules: path and `READ`, `WRITE` or `DEVICE`; a path that does not exist is left out.

    Raises:
        OSError: the kernel refused a rule.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    known = version()
    handled = (1 << (16 if known >= 5 else 15)) - 1
    ruleset = _Ruleset(handled, 0b11 if known >= 4 else 0, 0b11 if known >= SIGNALS_VERSION else 0)
    size = 24 if known >= SIGNALS_VERSION else 16 if known >= 4 else 8
    descriptor = _checked(libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint(0)))
    try:
        for path, access in rules:
            _open_path(libc, descriptor, path, access & handled)
        _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, descriptor, ctypes.c_uint(0)))
    finally:
        os.close(descriptor)


def _open_path(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            access &= _OF_FILES
        rule = struct.pack("=Qi", access, parent)
        _checked(libc.syscall(_ADD_RULE, ruleset, ctypes.c_int(1), rule, ctypes.c_uint(0)))
    finally:
        os.close(parent)


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
