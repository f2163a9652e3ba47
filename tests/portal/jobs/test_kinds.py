"""What each kind of job declares: so little that the smallest worker runs all of them."""

from portal.jobs import kinds
from portal.jobs.models import Queue
from portal.jobs.workers import Capacity

GB = 10**9
SHIPPED = {name: kind for name, kind in kinds._kinds.items() if not name.startswith("test-")}


def test_worker_with_one_core_and_the_memory_of_a_job_takes_every_kind():
    smallest = Capacity(cores=1, memory_bytes=3 * GB // 2)
    assert [name for name in smallest.kinds_beyond(Queue.CPU) if name in SHIPPED] == []
