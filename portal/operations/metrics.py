"""The portal's state in the text format of Prometheus, computed from the database at each request.

Counts are gauges: they fall when things are deleted or jobs run again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError

from listening.app.monitor.selectors import count_activity
from portal.core.clock import read_clock
from portal.core.health import check_all
from portal.core.maintenance import find_maintenance
from portal.jobs.selectors import count_ended, queue_states
from portal.jobs.workers import known_workers

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Samples = Iterable[tuple[Mapping[str, str], float]]


def write_metrics() -> str:
    """Return every metric with its samples; names begin with ``voiceprivacy_``, durations are in seconds.

    Without the database only the disk and the checks, which name it.
    """
    disk = shutil.disk_usage(settings.DATA_DIR)
    text = _metric("disk_free_bytes", "gauge", "Free in the data folder.", [({}, disk.free)])
    text += _metric("disk_size_bytes", "gauge", "Size of the disk of the data folder.", [({}, disk.total)])
    text += _metric("ready", "gauge", "1 where a check of /health/ready passes.", _checks())
    try:
        return text + _metrics_of_the_database()
    except DatabaseError:
        return text


def _metrics_of_the_database() -> str:
    now = read_clock()
    queues = queue_states(now)
    ended = count_ended()
    evaluators, answers = count_activity(now)
    parts = [
        _metric("jobs_waiting", "gauge", "Jobs that could run now.", (({"queue": q.name}, q.waiting) for q in queues)),
        _metric("jobs_running", "gauge", "Jobs that run.", (({"queue": q.name}, q.running) for q in queues)),
        _metric(
            "oldest_wait_seconds",
            "gauge",
            "How long the oldest job that could run has waited.",
            (({"queue": q.name}, _seconds(q.oldest_waiting)) for q in queues),
        ),
        _metric(
            "jobs_ended",
            "gauge",
            "Jobs that ended.",
            (({"kind": one.kind, "state": one.state}, one.count) for one in ended),
        ),
        _metric(
            "job_duration_seconds",
            "gauge",
            "Seconds that the last attempts of ended jobs took.",
            (({"kind": one.kind, "state": one.state}, one.seconds) for one in ended),
        ),
        _metric(
            "job_memory_bytes",
            "gauge",
            "Most memory that an ended job held.",
            (({"kind": one.kind, "state": one.state}, one.memory_bytes) for one in ended),
        ),
        _metric(
            "worker_silence_seconds",
            "gauge",
            "Since a worker's last heartbeat.",
            (({"worker": one.name}, _seconds(one.silence)) for one in known_workers(now)),
        ),
        _metric("maintenance", "gauge", "1 in maintenance mode.", [({}, float(find_maintenance() is not None))]),
        _metric("evaluators_active", "gauge", "Listening sessions seen within two minutes.", [({}, evaluators)]),
        _metric("answers", "gauge", "Answers of listening tests.", [({}, answers)]),
    ]
    return "".join(parts)


def _checks() -> Samples:
    return [({"check": name}, float(sentence is None)) for name, sentence in check_all().items()]


def _seconds(duration: timedelta | None) -> float:
    return duration.total_seconds() if duration else 0.0


def _metric(name: str, kind: str, meaning: str, samples: Samples) -> str:
    full = f"voiceprivacy_{name}"
    lines = [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}"]
    for labels, value in samples:
        pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{full}{{{pairs}}} {value!r}" if pairs else f"{full} {value!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
