"""How many processor cores this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def count_cores(quota: Path = _QUOTA) -> int:
    """Cores of this machine that the process may run on, fewer where its container is given less time; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        time, _, period = quota.read_text().partition(" ")
        cores = min(cores, math.ceil(int(time) / int(period)))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        pass
    return max(1, cores)
