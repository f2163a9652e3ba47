"""The system calls that a confined command must not make: a seccomp filter, which needs no privilege.

No socket is ever made but a pair of connected ones (multiprocessing needs it), so there is no network, and no service
of this machine can be asked either. What would touch files or processes outside by a way that Landlock does not watch
is refused, or does nothing where programs do it out of habit (times, owners and modes of files, priorities).
Source: Linux, include/uapi/linux/{seccomp,filter,audit}.h and the tables of system calls of the two processors.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from collections.abc import Sequence
from pathlib import Path

# Number of each call: on x86_64, on aarch64; None where a processor does not have it.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "mount": (165, 40),
    "umount2": (166, 39),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "acct": (163, 89),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
    "open_by_handle_at": (304, 265),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semctl": (66, 191),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgctl": (71, 187),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
}
# Told that this kind of disk has no such thing, as copying programs expect of some disks.
_NOT_SUPPORTED: dict[str, tuple[int | None, int | None]] = {
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
# Told that it was done, because copying programs do it and nothing depends on it.
_WITHOUT_EFFECT: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
}
_CLONE3 = (435, 435)
_CLONE = (56, 220)
_SOCKETPAIR = (53, 199)
_UTIMENSAT = (280, 88)
_PRLIMIT = (302, 261)
_SIGNALS = ((62, 129), (200, 130), (234, 131))  # kill, tkill, tgkill

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7), "arm64": (1, 0xC00000B7)}
_X32_CALLS = 0x40000000
# CLONE_NEWTIME would be 0x80, but in clone() that bit belongs to the signal of the end of the child.
_NEW_NAMESPACES = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x00020000

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def why_no_filter() -> str:
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

    own_signals_only: refuse signals to any process but this one, for kernels whose Landlock does not confine signals.

    Raises:
        OSError: the kernel refused the filter.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    program = _filter(own_signals_only=own_signals_only)
    code = b"".join(
        operation.to_bytes(2, "little") + bytes((yes, no)) + constant.to_bytes(4, "little")
        for operation, yes, no, constant in program
    )
    buffer = ctypes.create_string_buffer(code, len(code))
    pointer = _Program(len(program), ctypes.cast(buffer, ctypes.c_void_p))
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(pointer), 0, 0
    ):
        code_of_error = ctypes.get_errno()
        raise OSError(code_of_error, os.strerror(code_of_error))


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
    groups = ((_REFUSED, errno.EPERM), (_NOT_SUPPORTED, errno.ENOTSUP), (_WITHOUT_EFFECT, 0))
    for calls, code in (*groups, ({"clone3": _CLONE3}, errno.ENOSYS)):
        for numbers in calls.values():
            if (number := numbers[index]) is not None:
                program += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | code)]
    refuse: _Instruction = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    allow: _Instruction = (_RETURN, 0, 0, _ALLOW)
    # The lower halves of the arguments hold all of these; x86_64 and aarch64 are little-endian.
    program += _rule(_CLONE[index], [(_LOAD, 0, 0, _ARGUMENTS_AT), (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES), refuse, allow])
    program += _rule(_SOCKETPAIR[index], [*_connected_pairs(), refuse])
    program += _rule(_UTIMENSAT[index], _times_without_effect())
    own = [(_LOAD, 0, 0, _ARGUMENTS_AT), (_IF_EQUAL, 1, 0, 0), (_IF_EQUAL, 0, 1, os.getpid()), allow, refuse]
    program += _rule(_PRLIMIT[index], own)
    if own_signals_only:
        for numbers in _SIGNALS:
            program += _rule(numbers[index], own[:1] + own[2:])
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
