"""Seconds until the demo has its first page, and until it has everything, on a data folder of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from time import monotonic, sleep
from urllib.request import urlopen

from benchmarks._measuring import ROOT, Figure, report

FIRST_PAGE_S, WHOLE_S = 20, 300


def main() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PORTAL_DATA_DIR": folder, "PORTAL_ADDRESS": address}
        began = monotonic()
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--and-exit"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        )
        try:
            missed = report(Figure("make demo: first page", wait_for_page(address, process) - began, FIRST_PAGE_S, "s"))
            status = process.wait()
        finally:
            process.terminate()
            process.wait()
    if status:
        print(f"The demo ended with status {status}.")
        return 1
    return missed | report(Figure("make demo: everything", monotonic() - began, WHOLE_S, "s"))


def wait_for_page(address: str, process: subprocess.Popen[bytes]) -> float:
    """Return when the portal answered first, or infinity where it ended before."""
    while process.poll() is None:
        with suppress(OSError), urlopen(f"http://{address}/", timeout=5):
            return monotonic()
        sleep(0.2)
    return float("inf")


if __name__ == "__main__":
    sys.exit(main())
