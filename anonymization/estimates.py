"""How long a method will take here: by what its runs took, else by a trial; nothing where neither tells.

Only what the version at hand took counts: another may be many times faster. Options are not told apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum

from anonymization.methods.registry import methods
from anonymization.models import AnonymizationRun
from anonymization.trials import KINDS
from portal.challenges.models import DataSet
from portal.jobs.models import Job, State

RUNS_THAT_TELL = 20
RUNS_LOOKED_AT = 200
TRIALS_LOOKED_AT = 20


@dataclass(frozen=True)
class Pace:
    """Seconds of work for a second of speech. source: ``runs`` or ``trial``; n: how many of them."""

    work_per_second: float
    source: str
    n: int


def paces() -> dict[str, Pace]:
    """What is known of each method of this portal by name, in three queries."""
    versions = {method.name: method.version for method in methods()}
    return _of_trials(versions) | _of_runs(versions)


def _of_runs(versions: Mapping[str, str]) -> dict[str, Pace]:
    """By the newest runs that went through at the first attempt: the times of others are not those of the work."""
    runs = AnonymizationRun.objects.filter(job__state=State.SUCCEEDED, job__attempt__lte=1).order_by("-pk")
    columns = ("method", "recipe_version", "data_set", "job__started_at", "job__finished_at")
    found = runs.filter(method__in=versions).values_list(*columns)[:RUNS_LOOKED_AT]
    rows = [(method, *others) for method, version, *others in found if version == versions[method]]
    speech = seconds_of({data_set for _, data_set, *_ in rows})
    known: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for method, data_set, started, ended in rows:
        took_s, speech_s = _seconds(started, ended), speech.get(data_set, 0.0)
        if took_s is not None and speech_s and len(known[method]) < RUNS_THAT_TELL:
            known[method].append((took_s, speech_s))
    return {
        method: Pace(sum(took for took, _ in found) / sum(spoken for _, spoken in found), "runs", len(found))
        for method, found in known.items()
        if found
    }


def seconds_of(data_sets: set[int]) -> dict[int, float]:
    """Seconds of speech of data sets by key."""
    members = DataSet.utterances.through.objects.filter(dataset__in=data_sets).order_by()
    rows = members.values_list("dataset").annotate(seconds=Sum("utterance__duration_s"))
    return {data_set: seconds or 0.0 for data_set, seconds in rows}


def _seconds(started: datetime | None, ended: datetime | None) -> float | None:
    return (ended - started).total_seconds() if started and ended else None


def _of_trials(versions: Mapping[str, str]) -> dict[str, Pace]:
    jobs = Job.objects.filter(kind__in=KINDS, state=State.SUCCEEDED).order_by("-finished_at")
    found: dict[str, Pace] = {}
    for result in jobs.values_list("result", flat=True)[:TRIALS_LOOKED_AT]:
        for method, tried in result.get("methods", {}).items():
            if "work_per_second" in tried and tried.get("version") == versions.get(method, ""):
                found.setdefault(method, Pace(tried["work_per_second"], "trial", 1))
    return found
