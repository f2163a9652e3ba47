"""Runs every benchmark; each prints a ratio to a yardstick measured in the same run, and its budget."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> int:
    """The number of benchmarks that missed their budget."""
    known = sorted(script.stem for script in FOLDER.glob("[!_]*.py"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}; all where none is named")
    names = parser.parse_args().names
    if unknown := sorted({*names} - {*known}):
        parser.error(f"expected {', '.join(known)}; found {', '.join(unknown)}")
    failed = 0
    for name in names or known:
        print(f"\n{name}\n{'-' * len(name)}", flush=True)
        run = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=FOLDER.parent, check=False)
        failed += run.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
