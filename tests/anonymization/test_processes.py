"""Methods in other processes: fresh, forked, two at once, and without a folder to compile into."""

import hashlib
import multiprocessing
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anonymization.methods.mcadams import McAdamsParameters, mcadams

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("numba", "scipy", "matplotlib", "torch", "pandas", "parselmouth", "pyworld", "django")

PRINT_DIGEST = """
import hashlib, numpy as np
from anonymization.methods.mcadams import McAdamsParameters, mcadams
noise = np.random.default_rng(5).integers(-9000, 9000, 32_000).astype(np.int16)
output = mcadams(noise, 16_000, McAdamsParameters(alpha=0.8), threads=2)
print(hashlib.sha256(output.tobytes()).hexdigest())
"""


def make_noise():
    return np.random.default_rng(5).integers(-9000, 9000, 32_000).astype(np.int16)


def digest(threads=2):
    output = mcadams(make_noise(), 16_000, McAdamsParameters(alpha=0.8), threads=threads)
    return hashlib.sha256(output.tobytes()).hexdigest()


def start_python(code, folder=ROOT, **environment):
    return subprocess.Popen(
        [sys.executable, "-B", "-c", code],
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


def test_importing_the_registry_imports_nothing_heavy():
    code = (
        "import sys, anonymization.methods.registry as r; r.get_method('mcadams-2022');"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert read_output(start_python(code)) == "[]"


def test_running_a_method_needs_no_scipy():
    code = PRINT_DIGEST + "import sys; print('numba' in sys.modules, 'scipy.signal' in sys.modules)"
    assert read_output(start_python(code)).split() == [digest(), "True", "False"]


def test_two_processes_compile_and_run_at_once(tmp_path):
    processes = [start_python(PRINT_DIGEST, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert [read_output(process) for process in processes] == [digest(), digest()]
    assert list(tmp_path.rglob("*.nbi"))


def test_source_folder_without_writable_cache_still_runs(tmp_path):
    """A file where each cache folder would be: unwritable for any user, root included."""
    package = tmp_path / "anonymization"
    shutil.copytree(
        ROOT / "anonymization/methods",
        package / "methods",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (package / "__init__.py").touch()
    (package / "methods/__pycache__").touch()
    home = tmp_path / "home"
    home.touch()
    unwritable = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "NUMBA_CACHE_DIR": ""}

    assert read_output(start_python(PRINT_DIGEST, tmp_path, **unwritable)) == digest()
    assert not list(tmp_path.rglob("*.nbi"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_workers_run_after_their_parent_did():
    expected = digest(threads=2)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map_async(digest, [1, 2, 2, 1]).get(timeout=120)
    assert results == [expected] * 4
