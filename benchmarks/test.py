"""Seconds that `make test` takes in a fresh clone, with the installation of everything."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from time import monotonic

from benchmarks._measuring import ROOT, Figure, report

BUDGET_S = 480


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        began = monotonic()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), folder], check=True)
        status = subprocess.run(["make", "test"], cwd=folder, check=False).returncode
    if status:
        print(f"make test ended with status {status}.")
        return 1
    return report(Figure("make test of a fresh clone", monotonic() - began, BUDGET_S, "s"))


if __name__ == "__main__":
    sys.exit(main())
