"""Uploads by tus through Django's client: what each request may say, and what becomes of an upload."""

import base64
import errno
import hashlib
import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from portal.accounts.models import AccessToken
from portal.accounts.tokens import create_token
from portal.core.models import AuditEvent
from portal.jobs.models import Job
from portal.submissions import receiving
from portal.submissions.models import Submission, System, Upload
from portal.submissions.periodic_tasks import tidy_uploads
from portal.submissions.resumable_uploads import upload_path
from tests.portal.factories import make_edition, make_submission, make_team, make_team_system, make_user

pytestmark = pytest.mark.django_db

ADDRESS = "/api/uploads/"
CONTENT = bytes(range(256)) * 40
SIZE = len(CONTENT)


@pytest.fixture
def edition(organizer):
    return make_edition(name="vpc", organizers=[organizer])


@pytest.fixture
def owner():
    return make_user()


@pytest.fixture
def team(edition, owner):
    return make_team(edition, owner=owner, number=11)


@pytest.fixture
def sender(team, owner):
    return Tus(owner)


class Tus:
    """A person's tus client, without a thought of its own."""

    def __init__(self, user=None, **options):
        self.client = Client(**options)
        if user is not None:
            self.client.force_login(user)

    def __call__(self, method, address, body=b"", content_type="application/offset+octet-stream", **headers):
        sent = {"Tus-Resumable": "1.0.0", "Content-Type": content_type}
        sent |= {name.replace("_", "-"): value for name, value in headers.items() if value}
        return self.client.generic(method, address, body, content_type, headers=sent)

    def create(self, size=SIZE, body=b"", *, content_type="", headers=None, **metadata):
        metadata = {"filename": "archive.zip", "edition": "vpc"} | metadata
        headers = {"Upload-Length": str(size), "Upload-Metadata": encoded(metadata)} | (headers or {})
        return self("POST", ADDRESS, body, content_type or "application/octet-stream", **headers)

    def begin(self, **options):
        answer = self.create(**options)
        assert answer.status_code == 201, answer.content
        return answer["Location"]

    def send(self, address, offset, body, **headers):
        return self("PATCH", address, body, **{"Upload-Offset": str(offset)} | headers)

    def offset(self, address):
        return int(self("HEAD", address)["Upload-Offset"])

    def state(self, address):
        return self.client.get(address).json()


def encoded(metadata):
    return ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in metadata.items())


def sentence(answer):
    assert answer["Content-Type"] == "application/problem+json"
    assert json.loads(answer.content)["status"] == answer.status_code
    return json.loads(answer.content)["detail"]


# The protocol ------------------------------------------------------------------------------------


def test_upload_in_parts_becomes_a_submission(sender, team, owner):
    address = sender.begin(size=len(CONTENT), system_title="Our best")
    assert sender.offset(address) == 0
    for start in range(0, len(CONTENT), 4000):
        answer = sender.send(address, start, CONTENT[start : start + 4000])
        assert answer.status_code == 204, answer.content
        assert int(answer["Upload-Offset"]) == min(len(CONTENT), start + 4000)
        assert answer["Cache-Control"] == "private, no-store"
    upload = Upload.objects.get()
    assert upload_path(upload).read_bytes() == CONTENT
    submission = upload.submission
    system = submission.system
    assert (upload.state, upload.offset, upload.created_by) == ("complete", len(CONTENT), owner)
    assert (submission.state, submission.version, submission.submitted_by) == ("received", 1, owner)
    assert (system.label, system.name, system.title) == ("T11-p1", "vpc-t11-p1", "Our best")
    assert (system.team, system.kind, system.is_baseline, submission.is_late) == (team, "primary", False, False)
    assert submission.events.get().note == "archive.zip arrived."
    assert submission.job.kind == "intake"
    team.refresh_from_db()
    assert team.members_frozen_at is None  # only what is accepted fixes them
    assert AuditEvent.objects.filter(action="submission.created", actor=owner).count() == 1
    assert sender.state(address)["submission"] == {"id": submission.pk, "address": submission.get_absolute_url()}


def test_creation_with_upload_takes_the_first_part_at_once(sender):
    answer = sender.create(body=CONTENT[:100], content_type="application/offset+octet-stream")
    assert (answer.status_code, answer["Upload-Offset"]) == (201, "100")
    assert sender.send(answer["Location"], 100, CONTENT[100:]).status_code == 204
    assert upload_path(Upload.objects.get()).read_bytes() == CONTENT


def test_another_version_is_refused(sender):
    answer = sender("PATCH", sender.begin(), **{"Tus-Resumable": "0.2.2"})
    assert (answer.status_code, answer["Tus-Version"]) == (412, "1.0.0")


def test_part_at_another_offset_is_refused_and_changes_nothing(sender):
    address = sender.begin()
    sender.send(address, 0, CONTENT[:100])
    for offset in (0, 99, 101, 200):
        answer = sender.send(address, offset, b"x" * 50)
        assert answer.status_code == 409
        assert "100 bytes are here" in sentence(answer)
    assert sender.offset(address) == 100
    assert sender.send(address, 100, CONTENT[100:]).status_code == 204
    assert upload_path(Upload.objects.get()).read_bytes() == CONTENT


def test_part_with_a_checksum_counts_only_whole(sender):
    address = sender.begin()
    checksum = f"sha1 {base64.b64encode(hashlib.sha1(CONTENT[:500]).digest()).decode()}"
    damaged = sender.send(address, 0, b"?" + CONTENT[1:500], Upload_Checksum=checksum)
    assert (damaged.status_code, sender.offset(address)) == (460, 0)
    assert sentence(damaged) == "This part was damaged during the transfer. Send it again."
    assert sender.send(address, 0, CONTENT[:500], Upload_Checksum=checksum).status_code == 204
    assert sender.send(address, 500, CONTENT[500:]).status_code == 204
    assert upload_path(Upload.objects.get()).read_bytes() == CONTENT


def test_more_bytes_than_announced_are_refused(sender):
    address = sender.begin(size=100)
    assert sender.send(address, 0, CONTENT[:101]).status_code == 413
    assert sender.offset(address) == 0


def test_last_part_may_be_sent_again_when_its_answer_was_lost(sender):
    address = sender.begin()
    sender.send(address, 0, CONTENT)
    assert sender.send(address, len(CONTENT), b"").status_code == 204
    assert sender.send(address, 0, CONTENT).status_code == 409
    assert Submission.objects.count() == 1


def test_what_lies_beyond_the_offset_is_cut_off(sender):
    """As a killed process leaves it: more on disk than the row knows."""
    address = sender.begin()
    sender.send(address, 0, CONTENT[:1000])
    with upload_path(Upload.objects.get()).open("ab") as stream:
        stream.write(b"never acknowledged" * 1000)
    assert sender.offset(address) == 1000
    sender.send(address, 1000, CONTENT[1000:])
    assert upload_path(Upload.objects.get()).read_bytes() == CONTENT


@pytest.mark.postgres
def test_second_part_at_a_time_is_locked_out(sender, monkeypatch):
    monkeypatch.setattr(receiving, "LOCK_PATIENCE_S", 0.1)
    address = sender.begin()
    with receiving.held(Upload.objects.get().pk, is_new=True):
        answer = sender.send(address, 0, CONTENT)
    assert answer.status_code == 423
    assert "Another connection" in sentence(answer)
    assert sender.send(address, 0, CONTENT).status_code == 204


def test_lost_bytes_are_told_and_not_invented(sender):
    address = sender.begin()
    sender.send(address, 0, CONTENT[:1000])
    upload_path(Upload.objects.get()).write_bytes(CONTENT[:500])
    answer = sender.send(address, 1000, CONTENT[1000:])
    assert (answer.status_code, Submission.objects.count()) == (410, 0)
    upload_path(Upload.objects.get()).unlink()
    assert sender.send(address, 1000, CONTENT[1000:]).status_code == 410


# Termination and expiration ----------------------------------------------------------------------


def test_discarded_upload_leaves_nothing(sender, django_capture_on_commit_callbacks):
    address = sender.begin()
    sender.send(address, 0, CONTENT[:100])
    path = upload_path(Upload.objects.get())
    assert path.exists()
    with django_capture_on_commit_callbacks(execute=True):
        assert sender("DELETE", address).status_code == 204
    assert (path.exists(), Upload.objects.get().state) == (False, "abandoned")
    for method in ("HEAD", "DELETE"):
        assert sender(method, address).status_code == 410
    assert sender.send(address, 100, CONTENT[100:]).status_code == 410


def test_upload_expires_a_week_after_its_last_byte(sender, django_capture_on_commit_callbacks):
    address = sender.begin()
    sender.send(address, 0, CONTENT[:100])
    upload = Upload.objects.get()
    assert timedelta(days=6, hours=23) < upload.expires_at - timezone.now() <= timedelta(days=7)
    tidy_uploads()
    assert sender.offset(address) == 100
    Upload.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert sender("HEAD", address).status_code == 410
    assert sender.send(address, 100, CONTENT[100:]).status_code == 410
    with django_capture_on_commit_callbacks(execute=True):
        tidy_uploads()
    upload.refresh_from_db()
    assert (upload.state, upload_path(upload).exists()) == ("expired", False)
    assert AuditEvent.objects.filter(action="upload.expired").count() == 1


def test_uploads_of_others_look_like_unknown_ones(sender, edition):
    address = sender.begin()
    rival = Tus(make_team(edition).memberships.get().user)
    unknown = ADDRESS + "5f1a5a52-4b0c-4c52-9b7a-3f0d4a9b1f10"
    for method in ("HEAD", "GET", "PATCH", "DELETE"):
        found = [rival(method, one, CONTENT, Upload_Offset="0") for one in (address, unknown)]
        assert [answer.status_code for answer in found] == [404, 404]
        assert found[0].content == found[1].content
    assert rival("POST", f"{address}/submit").status_code == 404
    assert sender.offset(address) == 0


# Who ----------------------------------------------------------------------------------------------


def test_change_by_session_needs_the_csrf_token(team, owner):
    strict = Tus(owner, enforce_csrf_checks=True)
    refused = strict.create()
    assert (refused.status_code, Upload.objects.count()) == (403, 0)
    assert sentence(refused).endswith("Load it again and continue; what has arrived is kept.")
    strict.client.get("/log-in/")
    strict.client.cookies["csrftoken"] = "a" * 32
    accepted = strict.create(headers={"X-CSRFToken": "a" * 32})
    assert accepted.status_code == 201
    assert strict.send(accepted["Location"], 0, CONTENT).status_code == 403
    assert strict.send(accepted["Location"], 0, CONTENT, X_CSRFToken="a" * 32).status_code == 204


def test_token_with_the_scope_sends_without_a_session(team, owner):
    secret = token_of(owner, AccessToken.Scope.SUBMIT)
    program = Tus(enforce_csrf_checks=True)
    bearer = {"Authorization": f"Bearer {secret}"}
    address = program.create(headers=bearer)["Location"]
    assert program.send(address, 0, CONTENT, **bearer).status_code == 204
    assert program.client.get(address, headers=bearer).json()["state"] == "complete"


def test_token_without_the_scope_and_unknown_tokens_are_refused(team, owner):
    reading = token_of(owner, AccessToken.Scope.READ)
    refused = Tus().create(headers={"Authorization": f"Bearer {reading}"})
    assert (refused.status_code, "submit" in sentence(refused)) == (403, True)
    assert Tus(owner).create(headers={"Authorization": "Bearer vpp_nonsense"}).status_code == 401
    AccessToken.objects.update(revoked_at=timezone.now(), scopes=["submit"])
    assert Tus().create(headers={"Authorization": f"Bearer {reading}"}).status_code == 401


def token_of(user, *scopes):
    _, secret = create_token(user=user, name="test", scopes=list(scopes), expires_at=None)
    return secret


# Metadata -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"edition": "nothing"}, "no edition named “nothing”"),
        ({"system": "vpc-t99-p1"}, "has no system named “vpc-t99-p1”"),
        ({"team": "99999"}, "No team of yours"),
        ({"filename": "archive.rar"}, "“archive.rar” is not a supported archive"),
        ({"sha256": "12"}, "64 hexadecimal digits"),
    ],
)
def test_metadata_that_fits_nothing_is_told(sender, metadata, words):
    answer = sender.create(**metadata)
    assert answer.status_code == 422
    assert words in sentence(answer)


def test_file_name_loses_its_folders(sender):
    sender.begin(filename="..\\..\\secret/../a\tb.tar.gz")
    assert Upload.objects.get().file_name == "a b.tar.gz"


def test_organizer_uploads_baselines(organizer, edition):
    tus = Tus(organizer)
    assert "A baseline needs a title" in sentence(tus.create())
    tus.send(tus.begin(system_title="B1.b"), 0, CONTENT)
    system = System.objects.get()
    assert (system.name, system.label, system.title, system.is_baseline, system.team) == (
        "vpc-b1-b",
        "B1.b",
        "B1.b",
        True,
        None,
    )
    assert "a system “B1.b” already" in sentence(tus.create(system_title="B1.b"))
    tus.send(tus.begin(system="vpc-b1-b"), 0, CONTENT)
    assert system.submissions.count() == 2


# Eligibility --------------------------------------------------------------------------------------


def test_quota_is_asked_before_the_first_byte(sender, edition, team):
    edition.submissions_per_team = 2
    edition.save()
    system = make_team_system(team)
    for state in ("refused", "withdrawn", "evaluated"):
        make_submission(system, state)
    sender.begin()
    make_submission(system, "checking")
    answer = sender.create()
    assert answer.status_code == 403
    assert "has used all 2 submissions of this edition" in sentence(answer)


def test_full_disk_is_told_and_the_upload_goes_on_later(sender, monkeypatch):
    address = sender.begin()
    sender.send(address, 0, CONTENT[:1000])

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(receiving.os, "write", fail)
        answer = sender.send(address, 1000, CONTENT[1000:])
    assert (answer.status_code, "No space left on device" in sentence(answer)) == (507, True)
    assert sender("HEAD", address)["Upload-Offset"] == "1000"
    assert sender.send(address, 1000, CONTENT[1000:]).status_code == 204
    assert Submission.objects.count() == 1


@pytest.mark.postgres
def test_unfinished_uploads_are_limited(sender):
    for _ in range(20):
        sender.begin(size=10)
    answer = sender.create(size=10)
    assert (answer.status_code, "Finish or discard one" in sentence(answer)) == (403, True)


def test_upload_refused_at_the_end_keeps_its_bytes_and_may_be_submitted_later(sender, edition, team):
    address = sender.begin()
    sender.send(address, 0, CONTENT[:100])
    edition.submissions_per_team = 1
    edition.save()
    make_submission(make_team_system(team))
    answer = sender.send(address, 100, CONTENT[100:])
    assert answer.status_code == 403
    assert "has used its one submission" in sentence(answer)
    state = sender.state(address)
    assert (state["state"], state["offset"], state["submission"]) == ("refused", len(CONTENT), None)
    assert "has used its one submission" in state["refusal"]
    assert sender.offset(address) == len(CONTENT)
    assert sender("POST", f"{address}/submit").status_code == 403
    edition.submissions_per_team = 2
    edition.save()
    assert sender("POST", f"{address}/submit").json()["state"] == "complete"
    assert sender("POST", f"{address}/submit").json()["state"] == "complete"
    assert upload_path(Upload.objects.get()).read_bytes() == CONTENT
    assert Submission.objects.filter(upload__isnull=False).count() == 1
    assert Job.objects.filter(kind="intake").count() == 1


def test_deadline_during_the_upload_marks_it_late_or_refuses_it(sender, edition):
    late, too_late = sender.begin(), sender.begin()
    edition.submissions_close_at = timezone.now() - timedelta(minutes=1)
    edition.late_until = timezone.now() + timedelta(minutes=1)
    edition.save()
    assert sender.send(late, 0, CONTENT).status_code == 204
    assert Submission.objects.get().is_late
    edition.late_until = None
    edition.save()
    assert "Submissions closed on" in sentence(sender.send(too_late, 0, CONTENT))


def test_organizer_submits_for_a_team_after_the_deadline_as_late(organizer, edition, team):
    edition.submissions_close_at = timezone.now() - timedelta(days=1)
    edition.save()
    tus = Tus(organizer)
    tus.send(tus.begin(team=str(team.pk)), 0, CONTENT)
    assert Submission.objects.get().is_late


def test_member_who_was_removed_meanwhile_is_refused(sender, team, owner, organizer):
    address = sender.begin()
    team.memberships.all().delete()
    assert sender.send(address, 0, CONTENT).status_code == 404
    assert Tus(organizer).send(address, 0, CONTENT).status_code == 204


def test_submission_whose_numbers_were_seen_counts_though_it_is_withdrawn(sender, edition, team):
    edition.submissions_per_team = 1
    edition.save()
    submission = make_submission(make_team_system(team), Submission.State.WITHDRAWN)
    assert sender.create().status_code == 201
    Submission.objects.filter(pk=submission.pk).update(evaluated_at=timezone.now())
    answer = sender.create()
    assert (answer.status_code, "has used its one submission" in sentence(answer)) == (403, True)
