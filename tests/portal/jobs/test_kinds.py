"""What each kind of job declares: that of the manual, and so little that the smallest worker runs all of them."""

import re

from django.conf import settings

from portal.jobs import kinds
from portal.jobs.models import Queue
from portal.jobs.workers import Capacity

GB = 10**9
SHIPPED = {name: kind for name, kind in kinds._kinds.items() if not name.startswith("test-")}
ORDER = list(Queue)


def describe(kind):
    memory, card = f"{kind.memory_mb / 1000:g} GB", f"{kind.card_memory_mb / 1000:g} GB"
    limit = f"{kind.time_limit_s // 60} min" if kind.time_limit_s else "–"
    return f"| `{kind.name}` | {kind.title} | {memory} | {card if kind.card_memory_mb else '–'} | {limit} |"


def test_table_of_the_manual_is_what_the_kinds_declare():
    text = (settings.BASE_DIR / "docs" / "operator.md").read_text()
    head = r"\| kind \| job \| memory \| memory of a card \| time limit \|\n\|[-| ]+\n"
    [table] = re.findall(rf"{head}((?:\|.*\n)+)", text)
    ordered = sorted(SHIPPED.values(), key=lambda kind: (ORDER.index(kind.queue), kind.name))
    assert table.splitlines() == [describe(kind) for kind in ordered]


def test_worker_with_one_core_and_the_memory_of_a_job_takes_every_kind():
    smallest = Capacity(cores=1, memory_bytes=3 * GB // 2)
    assert [name for name in smallest.kinds_beyond(Queue.CPU) if name in SHIPPED] == []
