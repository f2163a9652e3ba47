"""The benchmarks of a large challenge and of a deadline night, at a small size."""

import re

import pytest
from django.conf import settings
from django.db.models import Q

from benchmarks import deadline_night, scale
from portal.jobs import turns
from portal.jobs.models import Job, JobState
from tests.portal.grown import ROLES

pytestmark = pytest.mark.django_db
SMALL = [
    "--systems",
    "3",
    "--sets",
    "5",
    "--utterances",
    "200",
    "--files",
    "500",
    "--sessions",
    "12",
    "--trials",
    "8",
    "--jobs",
    "40",
]
NIGHT = ["--teams=4", "--submissions=8", "--gigabytes=20", "--cpu=1", "--gpu=1"]


def test_pages_of_a_challenge_are_printed_with_what_they_take(capsys):
    names = ["systems:list", "systems:data-set", "leaderboard:detail"]
    assert scale.measure_challenge(scale.read_sizes([*names, *SMALL])) == 0
    text = capsys.readouterr().out
    assert re.search(
        r"3 systems, 5 data sets, 2\d\d utterances, 4\d\d files, 12 sessions, \d{3} answers, \d+ jobs", text
    )
    lines = {line[:44].strip(): line.split() for line in text.splitlines()}
    assert {"systems:list", "systems:data-set", "leaderboard:detail", "leaderboard:detail with results"} <= set(lines)
    *_, queries, seconds, megabytes, role = lines["systems:list"]
    assert role in ROLES  # whose page took longest, which is chance on a busy machine
    assert 3 < int(queries) <= 20
    assert float(seconds) > 0
    assert 0.1 < float(megabytes) < 100
    assert re.search(r"0 of \d pages miss the budget", text)


def test_page_over_the_budget_is_named(capsys, monkeypatch):
    monkeypatch.setattr(scale, "QUERIES", 1)
    assert scale.measure_challenge(scale.read_sizes(["systems:list", *SMALL])) == 1
    assert re.search(r"systems:list .* \w+  over the budget\n", capsys.readouterr().out)


def test_many_submissions_of_one_team_do_not_delay_those_of_others(capsys):
    assert deadline_night.simulate_sizes(deadline_night.list_sizes(NIGHT)) == 0
    text = capsys.readouterr().out
    assert re.search(r"saw at most [01] of the first team's begin before its own \(budget 2\); 0 jobs left", text)
    results = [line.split("from")[0].split() for line in text.splitlines() if line.endswith("results")]
    others, first, alone, _, by_arrival, _ = [float(found[-2]) for found in results]  # 90 % have theirs by then
    assert alone <= others < min(first, 0.8 * by_arrival)


def test_sizes_have_the_workers_that_the_operators_manual_names():
    workers = {one.teams: (one.cpu, one.gpu, one.light) for one in deadline_night.list_sizes([])}
    assert workers == {3: (2, 0, 1), 30: (4, 2, 2), 300: (40, 10, 20)}
    manual = (settings.BASE_DIR / "docs" / "operator.md").read_text()
    for teams, (cpu, gpu, light) in workers.items():
        assert f"| {teams} | {cpu} `cpu`, {gpu} `gpu`, {light} others |" in manual
    [one] = deadline_night.list_sizes(["--teams=300", "--cpu=50"])
    assert (one.cpu, one.gpu, one.gigabytes) == (50, 10, 2000)


def test_night_without_a_graphics_card_computes_on_cores_and_ends_in_a_table(capsys):
    wanted = ["--teams=2", "--submissions=2", "--gigabytes=4", "--cpu=2", "--gpu=0", "--light=1"]
    assert deadline_night.simulate_sizes(deadline_night.list_sizes(wanted)) == 0
    text = capsys.readouterr().out
    assert not re.search("^gpu ", text, re.MULTILINE)
    *_, titles, row = text.splitlines()
    assert titles.split()[:6] == ["teams", "workers", "mail", "intake", "cpu", "gpu"]
    assert re.fullmatch(r" +2 2 cpu, 0 gpu, 1 light" + 3 * r" +\d+\.\d, \d+\.\d, \d+\.\d" + " +–.*", row)
    assert text.count("Simulated") == 5


def test_queue_in_the_order_of_arrival_misses_the_budget(monkeypatch, capsys):
    def find_oldest(queue):
        ready = Job.objects.filter(
            Q(after=None) | Q(after__state=JobState.SUCCEEDED), queue=queue, state=JobState.WAITING
        )
        return ready.order_by("waiting_since").values_list("pk", flat=True).first()

    monkeypatch.setattr(turns, "find_next", find_oldest)
    assert deadline_night.simulate_sizes(deadline_night.list_sizes(NIGHT)) == 1
