"""What pages read of runs of anonymisers, and how long a method will take here.

The time a method will take is told by what its runs took, else by a trial; nothing where neither tells. Only what the
version at hand took counts: another may be many times faster. Options do not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Sum
from django.http import Http404

from anonymization.app.models import AnonymizationRun, NetworkSeed
from anonymization.app.networks import find_run_method
from anonymization.methods.contract import Anonymizer, MethodError, OptionValue, keeps_duration
from anonymization.methods.registry import methods
from portal.challenges.models import Corpus, DataSet
from portal.challenges.selectors import may_see_corpus
from portal.jobs.models import ACTIVE_STATES, Job, JobState
from portal.submissions.models import Submission

RUNS_THAT_TELL = 20
RUNS_LOOKED_AT = 200
TRIALS_LOOKED_AT = 20
TRIAL = "try-anonymizers"  # the kind of jobs that try methods
# What has to be read with runs for the networks of trainings here that they used.
NETWORKS = "network__training__decoder__training"


@dataclass(frozen=True)
class Setting:
    """An option of a run: its value, what it is for, and whether it is the usual one."""

    name: str
    value: str
    meaning: str
    is_usual: bool

    @property
    def label(self) -> str:
        return label_of(self.name)


def label_of(name: str) -> str:
    """Return an option or a choice as a label: ``keep_digital_silence`` reads ``Keep digital silence``."""
    words = name.replace("_", " ").replace("-", " ")
    return words[:1].upper() + words[1:]


def find_method(run: AnonymizationRun) -> Anonymizer | None:
    """Return the method of a run; None where this portal has it no more."""
    try:
        return find_run_method(run)
    except MethodError:
        return None


def get_run(submission: Submission, data_set: str) -> AnonymizationRun:
    """Return the run that made a data set of a submission, or "not found"."""
    rests_on = ("data_set__corpus", "job", "target_set", "network__training__corpus", f"{NETWORKS}__corpus")
    runs = submission.anonymization_runs.select_related(*rests_on)
    run = runs.filter(data_set__name=data_set).first()
    if run is None:
        raise Http404
    run.submission = submission
    return run


def outputs_keep_duration(submission: Submission, data_set: DataSet) -> bool:
    """Return whether files of a submission are to be as long as their originals: as its method or the recipe says."""
    run = submission.anonymization_runs.filter(data_set=data_set).select_related(NETWORKS).first()
    if run:
        return keeps_duration(find_method(run))
    edition = submission.system.edition
    return edition.recipe.keeps_duration if edition else True


def list_networks(user: Any, run: AnonymizationRun) -> list[tuple[NetworkSeed, str]]:
    """Return the networks of trainings here that a run used; each with the page of its training for those who may see
    it."""
    pages = ((one, one.training) for one in run.networks)
    return [
        (one, training.get_absolute_url() if may_see_corpus(user, training.corpus) else "") for one, training in pages
    ]


def list_runs(submission: Submission) -> list[AnonymizationRun]:
    """All runs of a submission without what is long of them, in the order in which they were started."""
    rests_on = ("data_set", "network__training__corpus", f"{NETWORKS}__corpus")
    runs = submission.anonymization_runs.select_related(*rests_on)
    return list(runs.defer("voices", "report", "targets", "target_recordings").order_by("pk"))


def list_settings(run: AnonymizationRun) -> list[Setting]:
    """Return the options of a run; those of before options were kept are none."""
    method = find_method(run)
    known = {option.name: option for option in method.options} if method else {}
    return [
        Setting(
            name=name,
            value=format_value(value, known[name].unit if name in known else ""),
            meaning=known[name].meaning if name in known else "",
            is_usual=name in known and known[name].default == value,
        )
        for name, value in run.options.items()
    ]


def format_value(value: OptionValue, unit: str = "") -> str:
    """Return the value of an option in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {unit}".strip()


def list_problems(run: AnonymizationRun) -> list[dict[str, Any]]:
    """Return what the checks found in the files of a run and in its voices, as problems are stored."""
    problems: list[dict[str, Any]] = run.report.get("problems", [])
    of_voices: list[dict[str, Any]] = run.report.get("voices", {}).get("problems", [])
    return [*problems, *of_voices]


# How long a method takes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Pace:
    """Seconds of work for a second of speech. source: ``runs`` or ``trial``; n: how many of them."""

    work_per_second: float
    source: str
    n: int


def list_paces() -> dict[str, Pace]:
    """Return what is known of each method of this portal by name, in three queries."""
    versions = {method.name: method.version for method in methods()}
    return _paces_of_trials(versions) | _paces_of_runs(versions)


def _paces_of_runs(versions: Mapping[str, str]) -> dict[str, Pace]:
    """By the newest runs that went through at the first attempt: the times of others are not those of the work."""
    runs = AnonymizationRun.objects.filter(job__state=JobState.SUCCEEDED, job__attempt__lte=1).order_by("-pk")
    columns = ("method", "recipe_version", "data_set", "job__started_at", "job__finished_at")
    found = runs.filter(method__in=versions).values_list(*columns)[:RUNS_LOOKED_AT]
    rows = [(method, *others) for method, version, *others in found if version == versions[method]]
    speech = sum_speech({data_set for _, data_set, *_ in rows})
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


def sum_speech(data_sets: set[int]) -> dict[int, float]:
    """Return seconds of speech of data sets by key."""
    members = DataSet.utterances.through.objects.filter(dataset__in=data_sets).order_by()
    rows = members.values_list("dataset").annotate(seconds=Sum("utterance__duration_s"))
    return {data_set: seconds or 0.0 for data_set, seconds in rows}


def _seconds(started: datetime | None, ended: datetime | None) -> float | None:
    return (ended - started).total_seconds() if started and ended else None


def _paces_of_trials(versions: Mapping[str, str]) -> dict[str, Pace]:
    jobs = Job.objects.filter(kind=TRIAL, state=JobState.SUCCEEDED).order_by("-finished_at")
    found: dict[str, Pace] = {}
    for result in jobs.values_list("result", flat=True)[:TRIALS_LOOKED_AT]:
        for method, tried in result.get("methods", {}).items():
            if "work_per_second" in tried and tried.get("version") == versions.get(method, ""):
                found.setdefault(method, Pace(tried["work_per_second"], "trial", 1))
    return found


def list_unfinished_trials(corpus: Corpus) -> list[Job]:
    """Return the trials on this corpus that have not ended."""
    jobs = Job.objects.filter(kind=TRIAL, state__in=ACTIVE_STATES, parameters__corpus=corpus.name)
    return list(jobs.order_by("needs_card"))
