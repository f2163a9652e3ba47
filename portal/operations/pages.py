"""What the page of the operator shows of the evaluators and of the disk."""

from __future__ import annotations

import shutil
from datetime import timedelta

from django.conf import settings

from common.memory import format_size
from listening.app.monitor.selectors import count_activity, count_answers_since
from portal.core.clock import read_clock


def describe_activity() -> list[tuple[str, str]]:
    """Evaluators, answers and disk, as (label, value) pairs: what Prometheus reads of them."""
    now = read_clock()
    evaluators, answers = count_activity(now)
    disk = shutil.disk_usage(settings.DATA_DIR)
    return [
        ("Evaluators who listen", f"{evaluators:,}"),
        ("Answers in the last minute", f"{count_answers_since(now - timedelta(minutes=1)):,}"),
        ("Answers in all", f"{answers:,}"),
        ("Free disk of the data folder", f"{format_size(disk.free)} of {format_size(disk.total)}"),
    ]
