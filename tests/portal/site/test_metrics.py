"""/metrics: nothing without its token, and what Prometheus reads with it."""

import re
from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.utils import timezone

from portal.core.models import Pulse
from portal.jobs import workers
from portal.site import metrics
from tests.listening.factories import make_session, make_study
from tests.portal.factories import make_job

pytestmark = pytest.mark.django_db
TOKEN = "a-token-of-the-operator"
LINE = re.compile(r'# (HELP|TYPE) voiceprivacy_\w+ .+|voiceprivacy_\w+({\w+="[^"]*"(,\w+="[^"]*")*})? [\d.e+-]+')


@pytest.mark.parametrize("given", ["", "Bearer ", "Bearer another", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}é"])
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
    Pulse.objects.create(name='box "1"', kind=workers.KIND, at=now, details={"queues": ["cpu"], "processes": 1})
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


def test_metrics_without_the_database_are_those_of_disk_and_checks(monkeypatch):
    def fail(*_args):
        raise DatabaseError

    monkeypatch.setattr(metrics, "read_clock", fail)
    monkeypatch.setattr(metrics, "check_all", lambda: {"database": "The database does not answer."})
    text = metrics.write_metrics()
    assert 'voiceprivacy_ready{check="database"} 0.0' in text
    assert ("voiceprivacy_disk_free_bytes" in text, "voiceprivacy_jobs_waiting" in text) == (True, False)
