"""Which code made a number: the release and, in a checkout, its commit."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from portal.client import RELEASE

ROOT = Path(__file__).resolve().parents[2]


@cache
def code_version() -> str:
    """Such as ``0.1.0+3f2a91c``, with ``.changed`` when files differ from that commit."""
    if not (ROOT / ".git").exists():
        return RELEASE
    command = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*", "--dirty=.changed"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return RELEASE
    return f"{RELEASE}+{found.stdout.strip()}"
