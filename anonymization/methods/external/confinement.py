"""What keeps a command to itself: Landlock for folders, a seccomp filter for system calls, a shared memory of its own.

None of them needs a privilege. Landlock: whatever folder is not named is closed, the memory and the environment of
processes outside included, because it also forbids to look into them; from version 6 (Linux 6.12) it confines signals
too. Seccomp: no socket is ever made but a pair of connected ones (multiprocessing needs it), so there is no network,
and no service of this machine can be asked either; what would touch files or processes outside by a way that Landlock
does not watch is refused, or does nothing where programs do it out of habit (times, owners and modes of files,
priorities). This module imports the standard library only, as the supervisor does.

Sources: Linux, include/uapi/linux/{landlock,seccomp,filter,audit}.h, Documentation/userspace-api/landlock.rst, the
tables of system calls of the two processors, mount_namespaces(7) and user_namespaces(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import stat
import struct
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

_PR_SET_NO_NEW_PRIVS = 38
_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
OPENED: dict[str, list[str]] = _TABLES["opened"]  # folders and files that programs of any kind need
_CALLS: dict[str, dict[str, list[int]]] = _TABLES["calls"]  # group: name: number on x86_64, on aarch64

# Folders (Landlock) ----------------------------------------------------------------------------------

LOWEST_LANDLOCK = 3  # Linux 6.2: before it, files outside could be cut to nothing
LANDLOCK_OF_SIGNALS = 6

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all processors
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


def find_landlock() -> int:
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
    known = find_landlock()
    handled = (1 << (16 if known >= 5 else 15)) - 1
    ruleset = _Ruleset(handled, 0b11 if known >= 4 else 0, 0b11 if known >= LANDLOCK_OF_SIGNALS else 0)
    size = 24 if known >= LANDLOCK_OF_SIGNALS else 16 if known >= 4 else 8
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


def list_own_files(process: int) -> list[str]:
    """What a process may read about itself: not its view of the network, which shows the sockets of all."""
    return [f"/proc/{process}/{name}" for name in OPENED["own_process"]]


def pin_own_files(process: int) -> list[int]:
    """Descriptors that keep the kernel from forgetting these files, and with them the rules that open them."""
    pins = []
    for path in list_own_files(process):
        with suppress(OSError):
            pins.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
    return pins


# System calls (seccomp) -----------------------------------------------------------------------------

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7), "arm64": (1, 0xC00000B7)}
_X32_CALLS = 0x40000000
# CLONE_NEWTIME would be 0x80, but in clone() that bit belongs to the signal of the end of the child.
_NEW_NAMESPACES = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x00020000

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2

# F_SETOWN, F_SETSIG, F_SETOWN_EX; FIOSETOWN, SIOCSPGRP: who gets which signal once a file has something to read.
_OWNERS_OF_SIGNALS = {"fcntl": (8, 10, 15), "ioctl": (0x8901, 0x8902)}

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def explain_missing_filter() -> str:
    """Why this machine cannot filter system calls; empty where it can."""
    if platform.system() != "Linux" or platform.machine() not in _ARCHITECTURES:
        return f"filters of system calls are known here for Linux on {' and '.join(_ARCHITECTURES)} only"
    try:
        actions = Path("/proc/sys/kernel/seccomp/actions_avail").read_text(encoding="ascii")
        return "" if "errno" in actions.split() else "its kernel cannot refuse system calls"
    except OSError:
        return "its kernel has no filters of system calls (seccomp)"


def forbid_calls(*, own_signals_only: bool) -> None:
    """Filter the calls of this process and of all that it will start, for ever.

    own_signals_only: refuse signals to any process but this one, and to choose who gets those of files, for kernels
    whose Landlock does not confine signals.

    Raises:
        OSError: the kernel refused the filter.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    program = _filter(own_signals_only=own_signals_only)
    code = b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    pointer = _Program(len(program), ctypes.cast(buffer, ctypes.c_void_p))
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(pointer), 0, 0))


def _filter(*, own_signals_only: bool) -> list[_Instruction]:
    index, architecture = _ARCHITECTURES[platform.machine()]
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if index == 0:
        program += [(_IF_AT_LEAST, 0, 1, _X32_CALLS), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    answers = {"refused": errno.EPERM, "not_supported": errno.ENOTSUP, "without_effect": 0, "unknown": errno.ENOSYS}
    for group, code in answers.items():
        for numbers in _CALLS[group].values():
            if (number := numbers[index]) >= 0:
                program += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | code)]
    examined = {name: numbers[index] for name, numbers in _CALLS["examined"].items()}
    refuse: _Instruction = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    allow: _Instruction = (_RETURN, 0, 0, _ALLOW)
    # The lower halves of the arguments hold all of these; x86_64 and aarch64 are little-endian.
    new_namespaces = [(_LOAD, 0, 0, _ARGUMENTS_AT), (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES), refuse, allow]
    program += _rule(examined["clone"], new_namespaces)
    program += _rule(examined["socketpair"], [*_connected_pairs(), refuse])
    program += _rule(examined["utimensat"], _times_without_effect())
    own = [(_LOAD, 0, 0, _ARGUMENTS_AT), (_IF_EQUAL, 1, 0, 0), (_IF_EQUAL, 0, 1, os.getpid()), allow, refuse]
    program += _rule(examined["prlimit64"], own)
    if own_signals_only:
        for numbers in _CALLS["signals"].values():
            program += _rule(numbers[index], own[:1] + own[2:])
        for name, commands in _OWNERS_OF_SIGNALS.items():
            chosen = [(_IF_EQUAL, len(commands) - place, 0, command) for place, command in enumerate(commands)]
            program += _rule(examined[name], [(_LOAD, 0, 0, _ARGUMENTS_AT + 8), *chosen, allow, refuse])
    return [*program, allow]


def _connected_pairs() -> Sequence[_Instruction]:
    """AF_UNIX, of streams or packets in order: a pair of datagrams could send to other addresses."""
    return (
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_IF_EQUAL, 0, 5, 1),
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8),
        (_AND, 0, 0, 0xF),
        (_IF_EQUAL, 1, 0, 1),
        (_IF_EQUAL, 0, 1, 5),
        (_RETURN, 0, 0, _ALLOW),
    )


def _times_without_effect() -> Sequence[_Instruction]:
    """Done without effect where times are copied; refused where a path is touched, which then is made by opening it."""
    path, times = _ARGUMENTS_AT + 8, _ARGUMENTS_AT + 16
    return (
        (_LOAD, 0, 0, times),
        (_IF_EQUAL, 0, 5, 0),
        (_LOAD, 0, 0, times + 4),
        (_IF_EQUAL, 0, 3, 0),
        (_LOAD, 0, 0, path),
        (_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ERRNO),
    )


def _rule(number: int, instructions: Sequence[_Instruction]) -> list[_Instruction]:
    """The instructions, which end with a return on every way, for one call; the accumulator holds the number before."""
    return [(_IF_EQUAL, 0, len(instructions), number), *instructions]


# Shared memory (/dev/shm) ---------------------------------------------------------------------------

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - its place is fixed
_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_NO_SETUID, _NO_DEVICES, _NO_EXECUTION, _PRIVATE, _RECURSIVE = 2, 4, 8, 1 << 18, 1 << 14


def give_shared_memory(size_mb: float) -> bool:
    """Give this process a shared memory of its own, for locks and queues of multiprocessing; it vanishes with the last
    process that it starts. That of the machine stays closed to commands: other processes of the same user keep theirs
    there.

    Returns:
        Whether the kernel lets this user have one; where it does not, nothing has changed that matters.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_MOUNTS):
        if libc.unshare(_NEW_USERS | _NEW_MOUNTS):
            return False
        try:
            lines = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
            for name, line in lines.items():
                Path(f"/proc/self/{name}").write_text(line, encoding="ascii")
        except OSError:
            return False
    if libc.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE | _RECURSIVE), None):
        return False
    flags = ctypes.c_ulong(_NO_SETUID | _NO_DEVICES | _NO_EXECUTION)
    size = f"size={int(size_mb)}m,mode=1777".encode()
    return bool(libc.mount(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", flags, size) == 0)
