"""How long jobs wait in a deadline night, by queue: a simulation that asks the portal itself which job starts next.

Run from the root of the repository: ``python -m benchmarks.deadline_night`` simulates 3, 30 and 300 teams with the
workers that `docs/operator.md` recommends for them (`SIZES`), in about twenty minutes; ``--teams 30`` simulates one of
them, and ``--help`` lists sizes and speeds. Archives come in six hours, most in the last two before the deadline; one
team sends many submissions at once. Jobs are made by the portal's services as they are for real submissions to an
edition that the portal evaluates, and are started by its query of turns (`portal.jobs.turns.find_next`), its claim
and its end; only time and work are simulated. An archive counts from when it has arrived whole. The steps of a
submission follow each other, so that a job waits from the end of the one before it.

The speeds of one core are those that `benchmarks.workload` measures, those of a graphics card are assumed. A night is
simulated three times: as the portal runs it; with one submission of the team that sends many; with all in the order of
arrival. The exit status is 1 where a team of which nothing ran had to see more than two jobs of that team start before
its own, or a job was left.
"""

from __future__ import annotations

import argparse
import heapq
import os
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from unittest import mock

import numpy as np

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
BYTES_PER_S = 32_000  # 16 bit at 16 kHz
HOUR_S = 3600.0
QUEUES = {"cpu": ("cpu",), "gpu": ("gpu",), "light": ("mail", "intake", "light")}  # of each kind of worker
LISTED = ("mail", "intake", "cpu", "gpu")
MOST_BEFORE = 2
NUMBERS = {
    "teams": (30, "teams"),
    "submissions": (20, "submissions of the first team; each other sends one to three"),
    "gigabytes": (200.0, "of all archives together"),
    "hours": (6.0, "before the deadline in which archives come"),
    "cpu": (4, "workers for the queue cpu, one job at a time"),
    "gpu": (2, "workers for the queue gpu, one job at a time; 0: no graphics card, its jobs go to the queue cpu"),
    "light": (2, "workers for mails, checks of archives and short jobs"),
    "check": (12.0, "MB of an archive that a check reads a second"),
    "measure": (70.0, "seconds of speech that a job of measures handles a second"),
    "vectors": (2000.0, "seconds of speech that an attacker handles a second"),
    "words": (300.0, "seconds of speech that a recogniser handles a second"),
    "fixed": (10.0, "seconds that any job of these takes besides"),
    "short": (60.0, "seconds that attacks, error rates and objective numbers take"),
    "seed": (2026, "of sizes and times"),
}
# Where so many teams differ from `NUMBERS`; attackers and recognisers without a graphics card have the speed of a core.
SIZES: dict[int, dict[str, float]] = {
    3: {"submissions": 2, "gigabytes": 20.0, "cpu": 2, "gpu": 0, "light": 1, "vectors": 50.0, "words": 50.0},
    30: {},
    300: {"gigabytes": 2000.0, "cpu": 40, "gpu": 10, "light": 20},
}


@dataclass
class Arrival:
    """An archive that has arrived."""

    team: int
    at_s: float
    bytes: float


@dataclass
class Night:
    """What was seen: waits by queue and by whether the job is of the team with many submissions.

    `before`: of each job of another team of which nothing ran, how many jobs of that team began since it was the next.
    """

    waits: dict[tuple[str, bool], list[float]] = field(default_factory=lambda: defaultdict(list))
    before: list[int] = field(default_factory=list)
    took: dict[bool, list[float]] = field(default_factory=lambda: defaultdict(list))
    left: int = 0


def main(arguments: list[str]) -> int:
    """Print the waits of each size; the exit status is 1 where the other teams had to wait for the one."""
    sizes = list_sizes(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PORTAL_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        import django

        django.setup()
        from django.test.utils import get_runner, setup_test_environment

        setup_test_environment()
        from django.conf import settings

        runner = get_runner(settings)(verbosity=0)
        databases = runner.setup_databases()
        try:
            return simulate_sizes(sizes)
        finally:
            runner.teardown_databases(databases)


def list_sizes(arguments: list[str]) -> list[argparse.Namespace]:
    """The night of the number of teams that is asked for, or one of each of `SIZES`."""
    first = read_numbers(arguments)
    if first.teams is not None:
        return [first]
    return [read_numbers([f"--teams={teams}", *arguments]) for teams in SIZES]


def read_numbers(arguments: list[str]) -> argparse.Namespace:
    """The fields of `NUMBERS`, by default those of so many teams; `teams` is None where no number is given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deadline_night")
    for name, (number, what) in NUMBERS.items():
        others = "".join(f"; {teams} teams: {one[name]:g}" for teams, one in SIZES.items() if name in one)
        default = "one night each of " + ", ".join(map(str, SIZES)) if name == "teams" else f"{number:g}{others}"
        parser.add_argument(f"--{name}", type=type(number), default=number, help=f"{what} (default: {default})")
    parser.set_defaults(teams=None)
    teams = parser.parse_args(arguments).teams
    parser.set_defaults(**SIZES.get(teams, {}))
    return parser.parse_args(arguments)


def simulate_sizes(sizes: list[argparse.Namespace]) -> int:
    """Print the waits of each size and a table of all; 1 where the other teams had to wait for the one in any."""
    found = [simulate_nights(wanted) for wanted in sizes]
    print(
        "\nSimulated, as the portal runs it: hours (median, 90 %, longest) that jobs of each queue wait, and from the "
        "arrival of an archive to the results of the others and of the first team"
    )
    print(f"{'teams':>5} {'workers':24}" + "".join(f"{name:>17}" for name in (*LISTED, "others", "the first")))
    for wanted, (night, _) in zip(sizes, found, strict=True):
        workers = f"{wanted.cpu} cpu, {wanted.gpu} gpu, {wanted.light} light"
        waits = [night.waits[queue, False] + night.waits[queue, True] for queue in LISTED]
        spreads = [_hours(one) for one in (*waits, night.took[False], night.took[True])]
        print(f"{wanted.teams:5} {workers:24}" + "".join(f"{one:>17}" for one in spreads))
    return max(status for _, status in found)


def simulate_nights(wanted: argparse.Namespace) -> tuple[Night, int]:
    """Print the waits of three nights; the first of them, and 1 where the other teams had to wait for the one."""
    print(
        f"\nSimulated deadline night: {wanted.teams} teams, {wanted.gigabytes:g} GB, {wanted.cpu} workers cpu, "
        f"{wanted.gpu} gpu, {wanted.light} light; a second of a worker: {wanted.check:g} MB checked, "
        f"{wanted.measure:g} s of speech measured, {wanted.vectors:g} s made vectors of, {wanted.words:g} s recognised",
        flush=True,
    )
    arrivals = draw_arrivals(wanted)
    alone = [one for one in arrivals if one.team] + [one for one in arrivals if not one.team][:1]
    night = _Simulation(wanted, arrivals).run()
    _describe(f"as the portal runs it, one team with {wanted.submissions} submissions", night)
    _describe("without these but one", _Simulation(wanted, alone).run())
    _describe("with them, in the order of arrival", _Simulation(wanted, arrivals, by_arrival=True).run())
    most = max(night.before, default=0)
    print(
        f"\nOf a team of which nothing ran, the next job saw at most {most} of the first team's begin before its own "
        f"(budget {MOST_BEFORE}); {night.left} jobs left",
        flush=True,
    )
    return night, int(most > MOST_BEFORE or night.left > 0)


def draw_arrivals(wanted: argparse.Namespace) -> list[Arrival]:
    """When each archive has arrived and how large it is: log-normal sizes, times that crowd before the deadline."""
    random = np.random.default_rng(wanted.seed)
    hours = wanted.hours
    found = [Arrival(0, (hours - min(2.0, hours)) * HOUR_S, 0.0) for _ in range(wanted.submissions)]
    for team in range(1, wanted.teams):
        before = random.exponential(1.0, random.integers(1, 4))
        found += [Arrival(team, max(0.0, hours - one) * HOUR_S, 0.0) for one in before]
    sizes = random.lognormal(0.0, 0.5, len(found))
    for one, size in zip(found, sizes / sizes.sum(), strict=True):
        one.bytes = float(size) * wanted.gigabytes * 1e9
    return sorted(found, key=lambda one: one.at_s)


def _describe(title: str, night: Night) -> None:
    print(
        f"\nSimulated, {title}\n{'queue':8} {'teams':14} {'jobs':>6} {'median':>9} {'90 %':>9} {'longest':>9}  "
        "minutes of waiting"
    )
    for (queue, is_first), waits in sorted(night.waits.items()):
        whose = "the first" if is_first else "all others"
        print(f"{queue:8} {whose:14} {len(waits):6} {_spread(waits)}")
    for is_first, took in sorted(night.took.items()):
        whose = "the first" if is_first else "all others"
        print(f"{'':8} {whose:14} {len(took):6} {_spread(took)}  from arrival to results", flush=True)


def _spread(seconds: list[float]) -> str:
    return " ".join(f"{one / 60:9.1f}" for one in _middle_to_longest(seconds))


def _hours(seconds: list[float]) -> str:
    return ", ".join(f"{one / HOUR_S:.1f}" for one in _middle_to_longest(seconds)) if seconds else "–"


def _middle_to_longest(seconds: list[float]) -> tuple[float, float, float]:
    """Median, 90 % and longest."""
    return float(np.median(seconds)), float(np.percentile(seconds, 90)), max(seconds)


class _Simulation:
    """One night: events in their order, workers that ask for jobs, the portal's rows."""

    def __init__(self, wanted: argparse.Namespace, arrivals: list[Arrival], *, by_arrival: bool = False) -> None:
        self.wanted, self.arrivals, self.by_arrival = wanted, arrivals, by_arrival
        self.now_s, self.number, self.events = 0.0, count(), []
        self.idle = [queues for kind, queues in QUEUES.items() for _ in range(getattr(wanted, kind))]
        self.archive: dict[int, Arrival] = {}  # by submission
        self.begun: dict[str, list[float]] = defaultdict(list)  # when jobs of the first team began, by queue
        self.served_s: dict[tuple[str, int], float] = {}  # when a job of a queue and team last began or ended
        self.night = Night()

    def run(self) -> Night:
        from django.db import transaction
        from django.test import override_settings

        from portal.jobs import services
        from portal.jobs.models import Job, JobState

        clock = mock.patch.object(services, "read_clock", self._read_clock)
        broker = mock.patch.object(services.current_app, "send_task")
        edition, self.teams = _make_edition(self.wanted.teams)
        self.sets = edition.corpus.data_sets.count()
        for one in self.arrivals:
            self._at(one.at_s, self._arrive, one)
        with clock, broker, override_settings(CARD_JOBS="always" if self.wanted.gpu else "never"):
            while self.events:
                self.now_s, _, do, *given = heapq.heappop(self.events)
                with transaction.atomic():
                    do(*given)
                while self.events and self.events[0][0] == self.now_s:
                    _, _, do, *given = heapq.heappop(self.events)
                    with transaction.atomic():
                        do(*given)
                self._start_what_may()
        self.night.left = Job.objects.filter(edition=edition.name).exclude(state=JobState.SUCCEEDED).count()
        Job.objects.filter(edition=edition.name).exclude(state=JobState.SUCCEEDED).update(state=JobState.CANCELLED)
        return self.night

    def _read_clock(self) -> datetime:
        return BEGAN + timedelta(seconds=self.now_s)

    def _at(self, seconds: float, do: Any, *given: Any) -> None:
        heapq.heappush(self.events, (seconds, next(self.number), do, *given))

    def _arrive(self, one: Arrival) -> None:
        from portal.submissions.models import Submission
        from portal.submissions.services import start_intake
        from tests.portal.factories import add_files, make_submission, make_team_system

        team = self.teams[one.team]
        system = make_team_system(team, label=f"c{team.systems.count() + 1}", kind="contrastive")
        submission = add_files(make_submission(system, state=Submission.State.RECEIVED))
        self.archive[submission.pk] = one
        start_intake(submission=submission)

    def _start_what_may(self) -> None:
        from portal.jobs.models import Job, JobState

        waiting = Job.objects.filter(self._ready(), state=JobState.WAITING).order_by()
        asked = set(waiting.values_list("queue", flat=True).distinct())  # the others have nothing for any worker
        for queues in list(self.idle):
            for queue in queues:
                if queue not in asked:
                    continue
                if (key := self._find_next(queue)) is not None:
                    self._start(key, queues)
                    break
                asked.remove(queue)

    def _find_next(self, queue: str) -> Any:
        """The portal's choice, or who waits longest."""
        from portal.jobs.models import Job, JobState
        from portal.jobs.turns import find_next

        if not self.by_arrival:
            return find_next(queue)
        waiting = Job.objects.filter(self._ready(), queue=queue, state=JobState.WAITING)
        return waiting.order_by("waiting_since", "created_at").values_list("pk", flat=True).first()

    @staticmethod
    def _ready() -> Any:
        from django.db.models import Q

        from portal.jobs.models import JobState

        return Q(after=None) | Q(after__state=JobState.SUCCEEDED)

    def _start(self, key: Any, queues: tuple[str, ...]) -> None:
        from portal.jobs.models import Job, JobState
        from portal.jobs.services import claim_job

        job = Job.objects.select_related("after").get(pk=key)
        since = max(job.waiting_since, job.after.finished_at if job.after else job.waiting_since)
        since_s = (since - BEGAN).total_seconds()
        first = self.teams[0].pk
        if job.team == first:
            self.begun[job.queue].append(self.now_s)
        elif job.team and not Job.objects.filter(queue=job.queue, team=job.team, state=JobState.RUNNING).exists():
            next_since_s = max(since_s, self.served_s.get((job.queue, job.team), 0.0))
            self.night.before.append(sum(at > next_since_s for at in self.begun[job.queue]))
        self.served_s[job.queue, job.team] = self.now_s
        self.night.waits[job.queue, job.team == first].append(max(0.0, self.now_s - since_s))
        claimed = claim_job(key)
        assert claimed is not None, f"{job} could not be claimed"
        self.idle.remove(queues)
        self._at(self.now_s + self._duration(claimed), self._end, claimed, queues)

    def _duration(self, job: Any) -> float:
        """The seconds that a job takes on its worker."""
        wanted, submission = self.wanted, self._submission_of(job)
        if submission is None:
            return 1.0  # a mail
        archive = self.archive[submission]
        of_set_s = archive.bytes / BYTES_PER_S / self.sets
        speeds = {"measure": wanted.measure, "vectors": wanted.vectors, "hypotheses": wanted.words}
        if job.kind == "intake":
            return float(archive.bytes / 1e6 / wanted.check + wanted.fixed)
        return float(of_set_s / speeds[job.kind] + wanted.fixed if job.kind in speeds else wanted.short)

    def _submission_of(self, job: Any) -> int | None:
        from evaluation.app.models import EvaluationRun

        if "run" in job.parameters:
            return int(EvaluationRun.objects.values_list("submission", flat=True).get(pk=job.parameters["run"]))
        found = job.parameters.get("submission") if job.kind == "intake" else None
        return int(found) if found is not None else None

    def _end(self, job: Any, queues: tuple[str, ...]) -> None:
        from portal.jobs.models import JobState
        from portal.jobs.services import finish_job
        from portal.submissions.models import Submission
        from portal.submissions.services import accept_submission

        self.idle.append(queues)
        self.served_s[job.queue, job.team] = self.now_s
        assert finish_job(job, JobState.SUCCEEDED), f"{job} was taken away"
        submission = self._submission_of(job)
        if job.kind == "intake":
            accept_submission(submission=Submission.objects.get(pk=submission))
        elif job.kind == "objective" and submission is not None:
            archive = self.archive[submission]
            self.night.took[archive.team == 0].append(self.now_s - archive.at_s)


def _make_edition(teams: int) -> tuple[Any, list[Any]]:
    """An edition that the portal evaluates, by an attacker and a recogniser, and its teams."""
    from evaluation.protocols.evaluation_table import Evaluation
    from evaluation.protocols.recipe_making import Choices, SpeakerShare, SpeechSet, make_recipe, write_recipe
    from tests.portal.factories import make_corpus, make_edition, make_team

    corpus = make_corpus(f"speech{_next_corpus()}", speakers=4)
    sets = [
        SpeechSet(
            name=one.name,
            role=one.role,
            speakers=tuple(
                SpeakerShare(speaker.name, speaker.gender, 2)
                for speaker in corpus.speakers.order_by("name")
                if one.utterances.filter(speaker=speaker).exists()
            ),
            transcribed=one.utterances.count(),
            enrolment=f"{corpus.name}_enrolls" if one.role == "trial" else "",
        )
        for one in corpus.data_sets.order_by("name")
    ]
    trials = tuple(one.name for one in sets if one.role == "trial")
    evaluation = Evaluation("portal", ("wespeaker-resnet34",), "whisper-base")
    choices = Choices("night", "Deadline night", trials, utilities=("wer",), evaluation=evaluation)
    edition = make_edition(corpus, protocol="", recipe_text=write_recipe(make_recipe(sets, choices)))
    return edition, [make_team(edition, name=f"Team {number + 1}") for number in range(teams)]


def _next_corpus() -> int:
    from portal.challenges.models import Corpus

    return Corpus.objects.count() + 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
