"""A web server and a worker on two machines without a common folder: data folders of their own, files in a bucket."""

import pytest
import requests
from django.conf import settings as configured
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test import override_settings

from evaluation.app.audio_measures.selectors import figure_key
from evaluation.app.models import EvaluationRun
from portal.core.models import Heartbeat
from portal.core.signed_urls import signed_address
from portal.core.storage import read_stored, store_bytes
from portal.jobs.models import Job, JobState
from portal.jobs.services import create_job
from portal.submissions.models import Submission
from tests.buckets import KEYS
from tests.jobkit.handlers import read_lines
from tests.portal.archives import anonymised, zip_of
from tests.portal.factories import client_of, make_corpus, make_edition, make_team, make_user
from tests.portal.processes.programs import wait_for_end, wait_until
from tests.portal.processes.test_vp import Shell
from tests.portal.processes.uploading import WebServer

QUICK = {"PORTAL_WORKER_PROCESSES": "1", "TEST_FIGURES": "svg"}
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@pytest.fixture
def place(bucket_store):
    """The settings that both machines have in common; this process reads the same files."""
    if connection.vendor != "postgresql" or not configured.CELERY_BROKER_URL.startswith("redis"):
        pytest.skip("two machines need PostgreSQL and Redis: python -m tests.services -- pytest …")
    with override_settings(STORAGES=bucket_store.settings()):
        yield {"PORTAL_FILES_URL": bucket_store.url, "PORTAL_SECRET_KEY": configured.SECRET_KEY, **KEYS, **QUICK}


def machine(folder, name, place):
    """The settings of a machine with a data folder of its own, and without networks."""
    return place | {"PORTAL_DATA_DIR": str(folder / name), "PORTAL_MODELS_DIR": str(folder / "models")}


def start_worker(portal, environment):
    command = ("manage.py", "worker", "--skip-checks")
    return portal.start("worker", *command, **environment)


def ask_ready(web):
    return requests.get(f"{web.address}/health/ready", timeout=30).json()["checks"]


def fetch(web, session, key, **headers):
    address = signed_address(type("Request", (), {"session": session})(), key)
    cookies = {"sessionid": session.session_key}
    return address, requests.get(f"{web.address}{address}", cookies=cookies, headers=headers, timeout=30)


@pytest.mark.redis
def test_submission_is_checked_measured_and_played_on_two_machines(alone, place, bucket_store, tmp_path):
    owner = make_user()
    edition = make_edition(make_corpus("tones", speakers=2), name="vpc", scores_required=False)
    team = make_team(edition, owner=owner, number=11)
    web = WebServer(alone, **machine(tmp_path, "web", place))
    alone.start_scheduler(**machine(tmp_path, "web", place))
    worker = start_worker(alone, machine(tmp_path, "worker", place))
    wait_until(lambda: Heartbeat.objects.filter(kind="worker").exists(), "a worker")

    archive = tmp_path / "archive.zip"
    archive.write_bytes(zip_of(anonymised(team.edition.corpus)))
    code, said, warned = Shell(tmp_path, web.address, owner).run("submit", archive, "--edition", "vpc")
    assert code == 0, said + warned
    submission = Submission.objects.get()
    assert wait_for_end(submission.job).state == JobState.SUCCEEDED, worker.output()
    wait_until(lambda: not Job.objects.exclude(state__in=ENDED).exists(), "the end of all jobs")
    submission.refresh_from_db()
    failed = [(job.title, job.failure) for job in Job.objects.exclude(state=JobState.SUCCEEDED)]
    assert (submission.state, failed) == ("evaluated", []), worker.output()

    session = client_of(owner).session
    audio = submission.files.first().audio
    address, played = fetch(web, session, audio, Range="bytes=10-99")
    assert (played.status_code, played.content) == (206, read_stored(audio)[10:100])
    stranger = SessionStore()
    stranger.create()
    cookies = {"sessionid": stranger.session_key}
    assert requests.get(f"{web.address}{address}", cookies=cookies, timeout=30).status_code == 404
    run = EvaluationRun.objects.filter(submission=submission, kind="measures").first()
    _, figure = fetch(web, session, figure_key(run, "light", "svg"))
    assert (figure.status_code, figure.content[:5]) == (200, b"<?xml")
    left = [path for name in ("web", "worker") for path in (tmp_path / name / "files").glob("**/*")]
    left += [path for name in ("web", "worker") for path in (tmp_path / name / "uploads").glob("*")]
    assert left == []
    assert not any(name.startswith("portal/uploads/") for name in bucket_store.names())

    # The store is away: nothing fails, and what needs it says so.
    key = store_bytes(b"something", ".json")
    parameters = {"file": str(tmp_path / "lines"), "items": 3, "pause_s": 0, "reads": key}
    bucket_store.stop()
    job = create_job(kind="test-steps", title="Steps", parameters=parameters)
    told = "does not answer"
    wait_until(lambda: job.events.filter(text__contains=told).exists(), "a job that waits for the store")
    assert fetch(web, session, audio)[1].status_code == 503
    assert told in ask_ready(web)["files"]
    assert read_lines(tmp_path / "lines") == []
    bucket_store.start()
    assert wait_for_end(job).state == JobState.SUCCEEDED
    assert len(read_lines(tmp_path / "lines")) == 3
    assert fetch(web, session, audio)[1].status_code == 200
