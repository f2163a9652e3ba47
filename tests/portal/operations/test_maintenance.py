"""Maintenance mode: who gets which answer, what workers and the scheduler do, and what nobody loses."""

import io
import threading
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone

from common.errors import NotPossible
from listening.app.models import Block
from listening.app.periodic_tasks import expire_leases
from portal.accounts.models import User
from portal.core import maintenance
from portal.core.models import Heartbeat
from portal.jobs.models import Job, JobState
from portal.jobs.scheduler import sweep
from portal.jobs.selectors import with_estimates
from portal.jobs.services import claim_job, create_job, finish_job
from portal.jobs.turns import find_next
from portal.operations.maintenance import begin_maintenance
from portal.submissions import receiving
from portal.submissions.models import Submission
from portal.submissions.resumable_uploads import UploadPlan, create_upload, receive_part, upload_path
from tests.listening.answering import answer, hear, stored
from tests.listening.factories import make_session, make_study
from tests.portal.factories import make_edition, make_organizer, make_team, make_user

pytestmark = pytest.mark.django_db
BROWSER = {"accept": "text/html,application/xhtml+xml"}
MESSAGE = "We are back at 18:00 UTC."


@pytest.fixture(autouse=True)
def off_afterwards():
    yield
    maintenance._known.maintenance = None


def turn(*words):
    out = io.StringIO()
    call_command("maintenance", *words, stdout=out)
    maintenance.look()
    return out.getvalue()


def make_job(kind="test-done", **more):
    return create_job(kind=kind, title="A job", parameters={}, **more)


def test_visitors_members_and_organizers_get_a_page_that_says_why(client):
    turn("on", "--message", MESSAGE)
    organizer = Client()
    organizer.force_login(make_organizer())
    for who in (client, organizer):
        for path in ("/", "/operations/", "/media/abc"):
            response = who.get(path, headers=BROWSER)
            assert (response.status_code, response["Retry-After"]) == (503, "60")
            page = response.content.decode()
            assert "<h1>The portal is under maintenance</h1>" in page
            assert MESSAGE in page
            assert "default-src 'none'" in response["Content-Security-Policy"]
    said = client.post("/sign-up/", {"email": "a@example.org"})
    assert (said.status_code, said.content.decode()) == (
        503,
        f"The portal is under maintenance. What you sent before is kept. {MESSAGE}\n",
    )
    assert not User.objects.filter(email="a@example.org").exists()


def test_page_asks_nothing_of_the_database_and_logs_no_error(client, caplog, django_assert_num_queries):
    turn("on")
    with django_assert_num_queries(0):
        assert client.get("/", headers=BROWSER).status_code == 503
        assert client.get("/listen/some-token/", headers=BROWSER).status_code == 503
        assert client.get("/api/editions/").status_code == 503
    assert caplog.messages == []


def test_what_watches_the_portal_is_answered_as_before(client, settings):
    settings.METRICS_TOKEN = "a-token"
    bearer = {"authorization": "Bearer a-token"}
    assert "voiceprivacy_maintenance 0.0\n" in client.get("/metrics", headers=bearer).content.decode()
    before = client.get("/health/ready")
    turn("on")
    assert client.get("/health/live").status_code == 200
    after = client.get("/health/ready")
    assert after.status_code == before.status_code
    assert after.json()["maintenance"].startswith("on since 20")
    assert "maintenance" not in before.json()
    assert "voiceprivacy_maintenance 1.0\n" in client.get("/metrics", headers=bearer).content.decode()


def test_operators_log_in_see_all_pages_and_why(client):
    turn("on", "--message", MESSAGE)
    assert client.get("/log-in/", headers=BROWSER).status_code == 200
    operator = User.objects.create_superuser("operator@example.org", "a-long-password-17")
    client.force_login(operator)
    for path in ("/", "/operations/"):
        page = client.get(path, headers=BROWSER)
        assert page.status_code == 200
        assert "Maintenance mode is on" in page.content.decode()
        assert MESSAGE in page.content.decode()
        assert "manage.py maintenance off" in page.content.decode()
    assert client.get("/api/editions/").status_code == 503
    turn("off")
    assert "Maintenance mode is on" not in client.get("/operations/").content.decode()


def test_web_server_that_loses_the_database_keeps_to_what_it_saw(monkeypatch):
    turn("on")

    def break_off():
        raise DatabaseError("away")

    monkeypatch.setattr(maintenance, "find_maintenance", break_off)
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    monkeypatch.setattr(connection, "close", lambda: None)
    maintenance.keep_looking()
    assert maintenance.is_seen()


def test_workers_and_scheduler_begin_nothing_and_go_on_afterwards(settings):
    settings.SWEEP_EVERY_S = 5
    job = make_job()
    Job.objects.update(sent_at=timezone.now(), times_sent=1)
    running = claim_job(make_job().pk)
    assert find_next("cpu") == job.pk
    assert turn("on").splitlines()[-1] == "1 job is still running."
    assert find_next("cpu") is None
    job.refresh_from_db()
    assert with_estimates([job])[0].wait == "Waits for the end of maintenance mode."
    Job.objects.filter(pk=job.pk).update(sent_at=timezone.now() - timedelta(hours=2))
    assert sweep() == 0
    assert Heartbeat.objects.filter(name="scheduler").exists()
    finish_job(running, JobState.SUCCEEDED)
    assert turn().splitlines()[-1] == "No job is running."
    turn("off")
    assert find_next("cpu") == job.pk
    assert sweep() == 1
    job.refresh_from_db()
    assert job.times_sent == 2


def test_upload_on_its_way_stops_and_makes_no_submission_before_the_end():
    """A copy made meanwhile holds all that its sender was told to have arrived."""
    owner = make_user()
    team = make_team(make_edition(name="vpc"), owner=owner)
    content, stop = b"x" * 3 * receiving.PIECE_BYTES, 2 * receiving.PIECE_BYTES
    plan = UploadPlan(team.edition, team)
    upload = create_upload(plan=plan, file_name="a.zip", size=len(content), by=owner, now=timezone.now())

    def read_while_maintenance_begins(size):
        turn("on", "--message", MESSAGE)
        return rest.read(size)

    for arrives in (content[:stop], content[stop:]):
        rest, before = io.BytesIO(arrives), upload.offset
        with pytest.raises(NotPossible, match=f"The portal is under maintenance. .* {MESSAGE}"):
            receive_part(upload=upload, offset=before, read=read_while_maintenance_begins, by=owner)
        upload.refresh_from_db()
        assert (upload.offset, upload.state) == (stop, "receiving")
        turn("off")
    assert not Submission.objects.exists()
    receive_part(upload=upload, offset=stop, read=io.BytesIO(content[stop:]).read, by=owner)
    assert Submission.objects.get().upload == upload
    assert upload_path(upload).read_bytes() == content


def test_evaluator_in_a_session_keeps_place_and_answers(client):
    session = make_session(make_study())
    hear(session)
    block = Block.objects.get(holder=session)
    begun = timezone.now() - timedelta(hours=5)
    Block.objects.update(lease_expires_at=begun + timedelta(minutes=20))
    begin_maintenance(message="", now=begun)
    maintenance.look()
    asked = client.post(f"/listen/{session.token}/answers", "{}", content_type="application/json")
    assert (asked.status_code, asked["Retry-After"]) == (503, "60")
    turn("off")
    expire_leases()
    block.refresh_from_db()
    assert block.holder == session
    left = block.lease_expires_at - timezone.now()
    assert timedelta(minutes=19) < left < timedelta(minutes=21)
    assert answer(client, session, 1, 7, is_late=True)[0] == 200
    assert stored(session)[0] == (1, "verifiability", 7)
