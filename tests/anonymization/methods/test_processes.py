"""Methods in other processes: fresh and forked."""

import hashlib
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anonymization.methods.mcadams.method import mcadams
from anonymization.methods.mcadams.parameters import McAdamsParameters

ROOT = Path(__file__).resolve().parents[3]

PRINT_DIGEST = """
import hashlib, numpy as np
from anonymization.methods.mcadams.method import mcadams
from anonymization.methods.mcadams.parameters import McAdamsParameters
noise = np.random.default_rng(5).integers(-9000, 9000, 32_000).astype(np.int16)
output = mcadams(noise, 16_000, McAdamsParameters(alpha=0.8), threads=2)
print(hashlib.sha256(output.tobytes()).hexdigest())
"""


def make_noise():
    return np.random.default_rng(5).integers(-9000, 9000, 32_000).astype(np.int16)


def digest(threads=2):
    output = mcadams(make_noise(), 16_000, McAdamsParameters(alpha=0.8), threads=threads)
    return hashlib.sha256(output.tobytes()).hexdigest()


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_running_a_method_needs_neither_scipy_nor_torch():
    code = PRINT_DIGEST + "import sys; print(*(name in sys.modules for name in ('numba', 'scipy.signal', 'torch')))"
    assert run_python(code).split() == [digest(), "True", "False", "False"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_workers_run_after_their_parent_did():
    expected = digest(threads=2)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map_async(digest, [1, 2, 2, 1]).get(timeout=120)
    assert results == [expected] * 4
