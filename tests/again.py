"""Runs pytest; what failed gets a second attempt, alone on the machine, for its pace beside others no test can know.

`python -m tests.again -- COMMAND`, where the command runs pytest. A defect fails both times and is the failure of the
whole; what failed once only is named, so that a test which often does is seen and mended. Anything but failed tests
(no tests found, an error of collection, an interruption) ends it at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
TESTS_FAILED = 1  # pytest's exit code
MOST_AGAIN = 25  # more than this is a defect, not the pace of a machine


def main(arguments: list[str]) -> int:
    command = arguments[arguments.index("--") + 1 :]
    FAILED.unlink(missing_ok=True)
    code = subprocess.run(command, check=False).returncode
    failed = sorted(json.loads(FAILED.read_text())) if FAILED.is_file() else []
    if code != TESTS_FAILED or not 0 < len(failed) <= MOST_AGAIN:
        return code
    print(f"\nA second attempt, alone, for the {len(failed)} that failed:", *failed, sep="\n  ", flush=True)
    alone = [*command, "-n", "0", "--last-failed", "--last-failed-no-failures", "none"]
    code = subprocess.run(alone, check=False).returncode
    if code == 0:
        print("They pass alone. A test that is often in this list wants mending.", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv))
