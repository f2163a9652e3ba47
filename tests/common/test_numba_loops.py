"""Compiled loops in processes of their own: two that compile at once, and one without a folder to compile into.

They compile the smallest loop there is; what methods give in other processes is in `tests/anonymization`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PRINT_SUM = """
import numpy as np
from speech.pitch.autocorrelation_kernel import cube_sum
print(cube_sum(np.arange(9, dtype=np.float32)), len(cube_sum.compile().stats.cache_hits))
"""


def start_python(folder, **environment):
    return subprocess.Popen(
        [sys.executable, "-B", "-c", PRINT_SUM],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_output(process):
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return output.strip()


def test_of_two_processes_at_once_one_compiles_and_the_other_waits_for_it(tmp_path):
    processes = [start_python(ROOT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    taken_from_disk = ["1296.0 0", "1296.0 1"]
    assert sorted(read_output(process) for process in processes) == taken_from_disk
    assert list(tmp_path.rglob("*.nbi"))


def test_source_folder_without_writable_cache_still_runs(tmp_path):
    """A file where each cache folder would be: unwritable for any user, root included."""
    for package in ("common", "speech"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in tmp_path.rglob("*.py")}:
        (folder / "__pycache__").touch()
    home = tmp_path / "home"
    home.touch()
    unwritable = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "NUMBA_CACHE_DIR": ""}

    assert read_output(start_python(tmp_path, **unwritable)) == "1296.0 0"
    assert not list(tmp_path.rglob("*.nbi"))
