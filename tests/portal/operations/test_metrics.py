"""/metrics: nothing without its token, and what Prometheus reads with it."""

import json
import re
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from portal.core.models import Heartbeat
from portal.jobs import workers
from portal.jobs.models import JobState
from tests.listening.factories import make_session, make_study
from tests.portal.factories import make_job

pytestmark = pytest.mark.django_db
TOKEN = "a-token-of-the-operator"
LEGEND = re.compile(r"{{(\w+)}}")
LINE = re.compile(r'# (HELP|TYPE) voiceprivacy_\w+ .+|voiceprivacy_\w+({\w+="[^"]*"(,\w+="[^"]*")*})? [\d.e+-]+')


@pytest.mark.parametrize("given", ["", "Bearer another", f"Basic {TOKEN}"])
def test_nobody_reads_metrics_without_the_token(client, settings, given):
    settings.METRICS_TOKEN = TOKEN
    answer = client.get("/metrics", headers={"authorization": given})
    assert (answer.status_code, answer.content) == (401, b"A token is needed.\n")
    settings.METRICS_TOKEN = ""
    assert client.get("/metrics", headers={"authorization": given}).status_code == 404


def test_metrics_count_jobs_workers_and_evaluators(client, settings):
    settings.METRICS_TOKEN = TOKEN
    now = timezone.now()
    make_job(queue="cpu", waiting_since=now - timedelta(minutes=5))
    for seconds in (30, 60):
        make_job(
            "succeeded", queue="cpu", kind="test-steps", started_at=now - timedelta(seconds=seconds), finished_at=now
        )
    Heartbeat.objects.create(name='box "1"', kind=workers.KIND, at=now, details={"queues": ["cpu"], "processes": 1})
    make_session(make_study(), last_seen_at=now)
    answer = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    lines = answer.content.decode().splitlines()
    strange = [line for line in lines if not LINE.fullmatch(line.replace(r"\"", ""))]
    assert strange == []
    found = dict(line.removeprefix("voiceprivacy_").rsplit(" ", 1) for line in lines if line[0] != "#")
    assert found['jobs_ended{kind="test-steps",state="succeeded"}'] == "2"
    assert float(found['job_duration_seconds{kind="test-steps",state="succeeded"}']) == pytest.approx(90)
    assert float(found['oldest_wait_seconds{queue="cpu"}']) >= 300
    assert found['jobs_waiting{queue="cpu"}'] == "1"
    assert r'worker_silence_seconds{worker="box \"1\""}' in found
    assert (found["evaluators_active"], found["answers"]) == ("1", "0")
    assert found['ready{check="database"}'] == "1.0"


def test_board_for_grafana_shows_every_metric_and_no_other(client, settings):
    settings.METRICS_TOKEN = TOKEN
    make_job("succeeded", kind="test-steps", started_at=timezone.now(), finished_at=timezone.now())
    text = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"}).content.decode()
    told = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    board = json.loads((settings.BASE_DIR / "deploy/grafana/voiceprivacy.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert {name for query in queries for name in re.findall(r"voiceprivacy_\w+", query)} == told
    labels = {label for query in queries for label in re.findall(r"by \((\w+)(?:, (\w+))?\)|(\w+)=\"", query)}
    labels = {one for found in labels for one in found if one}
    labels |= {one for panel in board["panels"] for target in panel["targets"] for one in LEGEND.findall(str(target))}
    assert labels <= set(re.findall(r"[{,](\w+)=\"", text)) | {"worker"}
    keys = [panel["id"] for panel in board["panels"]]
    assert len(keys) == len(set(keys))
    assert all(panel["title"] for panel in board["panels"])
    assert not overlaps([panel["gridPos"] for panel in board["panels"]])


def test_rules_for_prometheus_name_metrics_and_states_that_exist(settings):
    rules = yaml.safe_load((settings.BASE_DIR / "deploy/prometheus/alerts.yml").read_text())["groups"][0]["rules"]
    written = (settings.BASE_DIR / "portal/operations/metrics.py").read_text()
    queries = " ".join(rule["expr"] for rule in rules)
    assert [name for name in re.findall(r"voiceprivacy_(\w+)", queries) if f'"{name}"' not in written] == []
    assert set(re.findall(r'state="(\w+)"', queries)) <= set(JobState)


def overlaps(places):
    cells = [
        (x, y)
        for one in places
        for x in range(one["x"], one["x"] + one["w"])
        for y in range(one["y"], one["y"] + one["h"])
    ]
    return len(cells) != len(set(cells)) or max(x for x, _ in cells) > 23
