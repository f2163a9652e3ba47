"""Memory and cores of this machine and of processes."""

import os
import subprocess
import sys

from common.cores import count_cores
from common.memory import resident_bytes, total_bytes


def test_cores_are_those_of_the_container_where_it_has_fewer(tmp_path):
    quota = tmp_path / "cpu.max"
    every = count_cores(tmp_path / "none")
    assert every == len(os.sched_getaffinity(0))
    quota.write_text("max 100000\n")
    assert count_cores(quota) == every
    quota.write_text("50000 100000\n")
    assert count_cores(quota) == 1
    quota.write_text("6400000 100000\n")
    assert count_cores(quota) == every


def test_memory_is_that_of_the_container_where_it_has_less(tmp_path):
    memory, limit = tmp_path / "meminfo", tmp_path / "memory.max"
    memory.write_text("MemTotal:  2000 kB\nMemAvailable:  1000 kB\n")
    assert total_bytes(memory, limit) == 2_048_000
    limit.write_text("max\n")
    assert total_bytes(memory, limit) == 2_048_000
    limit.write_text("1000000\n")
    assert total_bytes(memory, limit) == 1_000_000
    assert total_bytes(tmp_path / "none", tmp_path / "none") is None


def test_memory_of_a_process_has_that_of_its_children():
    program = "import sys; held = b'x' * 200_000_000; print(flush=True); sys.stdin.read()"
    before = resident_bytes(os.getpid())
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        assert resident_bytes(child.pid) > 200_000_000
        assert resident_bytes(os.getpid()) - before > 150_000_000
        child.stdin.close()
    assert resident_bytes(child.pid) == 0
