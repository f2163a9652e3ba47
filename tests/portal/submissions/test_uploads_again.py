"""Uploads by tus: how much room they hold, and how the same content is found again."""

import hashlib
from datetime import timedelta

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from portal.core import upload_files
from portal.core.models import AuditEvent
from portal.submissions import receiving
from portal.submissions.models import Submission, Upload
from portal.submissions.resumable_uploads import upload_path
from portal.teams.models import Team
from tests.portal.factories import make_team, make_team_system, make_user
from tests.portal.submissions.test_uploads import ADDRESS, CONTENT, SIZE, Tus, sentence
from tests.portal.submissions.test_uploads import edition as edition
from tests.portal.submissions.test_uploads import owner as owner
from tests.portal.submissions.test_uploads import sender as sender
from tests.portal.submissions.test_uploads import team as team

pytestmark = pytest.mark.django_db

SHA256 = hashlib.sha256(CONTENT).hexdigest()


def member_of_a_team(edition):
    user = make_user()
    make_team(edition, owner=user)
    return Tus(user)


# Room ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(monkeypatch):
    """A disk with room for two archives of 1,000 bytes beside what the portal keeps free."""

    def free_bytes():
        return (1 << 30) + 2000 - sum(Upload.objects.values_list("offset", flat=True))

    monkeypatch.setattr(receiving, "free_bytes", free_bytes)


def test_uploads_of_which_nothing_comes_hold_no_room(edition, small_disk):
    for _ in range(2):
        rival = member_of_a_team(edition)
        for _ in range(2):
            rival.send(rival.begin(size=1000), 0, CONTENT[:1])
    third = member_of_a_team(edition)
    address = third.begin(size=1000)
    assert third.send(address, 0, CONTENT[:1000]).status_code == 204


def test_upload_holds_as_much_again_as_it_has_brought(sender, small_disk):
    sender.send(sender.begin(size=1000), 0, CONTENT[:500])  # and 500 to come
    assert sender.create(size=1001).status_code == 507
    assert sender.create(size=1000).status_code == 201


def test_upload_that_has_stopped_holds_what_is_here(sender, small_disk):
    sender.send(sender.begin(size=1000), 0, CONTENT[:500])
    Upload.objects.update(last_byte_at=timezone.now() - timedelta(minutes=16))
    assert sender.create(size=1500).status_code == 201


def test_upload_begun_earlier_comes_first(sender, small_disk):
    first, second = sender.begin(size=1200), sender.begin(size=1200)
    sender.send(first, 0, CONTENT[:100])
    sender.send(second, 0, CONTENT[:500])
    sender.send(first, 100, CONTENT[100:500])
    answer = sender.send(second, 500, CONTENT[500:1200])  # 1,000 are free, of which the first holds 500
    assert (answer.status_code, "what has arrived is kept" in sentence(answer)) == (507, True)
    assert sender.send(first, 500, CONTENT[500:1200]).status_code == 204


def test_empty_upload_lapses_after_an_hour(sender):
    address = sender.begin(size=10)
    expiring = Upload.objects.get()
    assert expiring.expires_at - expiring.created_at <= timedelta(hours=1)
    sender.send(address, 0, CONTENT[:1])
    expiring.refresh_from_db()
    assert expiring.expires_at - expiring.created_at >= timedelta(days=7)


def test_unfinished_uploads_bring_two_archives_at_most(sender, edition):
    edition.largest_archive_bytes = 1000
    edition.save()
    for came in (900, 600):
        sender.send(sender.begin(size=1000), 0, CONTENT[:came])
    address = sender.begin(size=500)
    answer = sender.create(size=501)
    assert (answer.status_code, "3 other uploads are unfinished, with 1.5 kB" in sentence(answer)) == (403, True)
    first = Upload.objects.order_by("created_at").first()
    sender.send(f"{ADDRESS}{first.pk}", 900, CONTENT[900:950])
    answer = sender.send(address, 0, CONTENT[:10])
    assert (answer.status_code, "Finish or discard one of them first" in sentence(answer)) == (403, True)


def test_first_of_uploads_that_fill_the_share_goes_on(sender, edition):
    edition.largest_archive_bytes = 1000
    edition.save()
    addresses = [sender.begin(size=1000) for _ in range(3)]
    for address in addresses:
        sender.send(address, 0, CONTENT[:1])
    Upload.objects.update(offset=700)
    for address in addresses:
        upload_path(Upload.objects.get(pk=address.split("/")[-1])).write_bytes(CONTENT[:700])
    answers = [sender.send(address, 700, CONTENT[700:900]).status_code for address in reversed(addresses)]
    assert answers == [403, 403, 204]


def test_part_stops_where_others_have_filled_the_share_meanwhile(sender, edition, monkeypatch):
    edition.largest_archive_bytes = 1000
    edition.save()
    monkeypatch.setattr(receiving, "KEEP_EVERY_BYTES", 100)
    monkeypatch.setattr(receiving, "PIECE_BYTES", 100)
    first, second = sender.begin(size=1000), sender.begin(size=1000)
    sender.send(first, 0, CONTENT[:1])
    send_on = upload_files.send_on

    def fill(pk, end):
        send_on(pk, end)
        if end == 300:
            Upload.objects.exclude(pk=pk).update(offset=1001)

    monkeypatch.setattr(upload_files, "send_on", fill)
    assert sender.send(second, 0, CONTENT[:999]).status_code == 403
    assert sender.offset(second) == 300


# The same content again -----------------------------------------------------------------------------


def test_unfinished_upload_of_the_same_content_is_found(sender):
    address = sender.begin(sha256=SHA256)
    sender.send(address, 0, CONTENT[:700])
    answer = sender.create(sha256=SHA256, filename="renamed.zip")
    assert (answer.status_code, answer["Location"], answer["Upload-Offset"]) == (200, address, "700")


@pytest.mark.parametrize("other", [{"sha256": "0" * 64}, {"sha256": ""}], ids=str)
def test_other_content_begins_anew(sender, other):
    address = sender.begin(sha256=SHA256)
    answer = sender.create(**other)
    assert (answer.status_code, answer["Location"] == address) == (201, False)


def test_content_of_a_rival_is_not_found(sender, edition):
    address = sender.begin(sha256=SHA256)
    rival = member_of_a_team(edition)
    assert rival.begin(sha256=SHA256) != address


def test_unfinished_upload_becomes_what_was_asked_last(sender, team):
    address = sender.begin(sha256=SHA256, system_title="First")
    system = make_team_system(team)
    assert sender.create(sha256=SHA256, system=system.name)["Location"] == address
    assert sender.create(sha256=SHA256, system_kind="contrastive", system_title="Last")["Location"] == address
    sender.send(address, 0, CONTENT)
    made = Submission.objects.get().system
    assert (made.kind, made.title) == ("contrastive", "Last")
    changes = [event.data["changes"] for event in AuditEvent.objects.filter(action="upload.changed").order_by("pk")]
    assert changes == [
        {"system": [None, str(system)], "system_kind": ["primary", ""], "system_title": ["First", ""]},
        {"system": [str(system), None], "system_kind": ["", "contrastive"], "system_title": ["", "Last"]},
    ]


def test_owner_is_locked_before_the_upload_as_where_content_is_looked_for(sender, monkeypatch):
    """In the other order PostgreSQL ends one of the two as a deadlock."""
    locked, lock = [], QuerySet.select_for_update

    def note(queries, *words, **named):
        locked.append(queries.model)
        return lock(queries, *words, **named)

    address = sender.begin()
    monkeypatch.setattr(QuerySet, "select_for_update", note)
    assert sender.send(address, 0, CONTENT).status_code == 204
    assert [model for model in locked if model in {Team, Upload}] == [Team, Upload, Team]


def test_content_that_was_submitted_is_found_and_not_submitted_twice(sender):
    address = sender.begin(sha256=SHA256)
    sender.send(address, 0, CONTENT)
    answer = sender.create(sha256=SHA256)
    assert (answer.status_code, answer["Location"], answer["Upload-Offset"]) == (200, address, str(SIZE))
    assert sender.state(address)["submission"]["id"] == Submission.objects.get().pk


def test_content_of_what_counts_for_nothing_is_taken_again(sender):
    sender.send(sender.begin(sha256=SHA256), 0, CONTENT)
    Submission.objects.update(state="refused")
    assert sender.create(sha256=SHA256).status_code == 201
