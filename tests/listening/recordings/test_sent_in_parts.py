"""Own recordings that are sent in parts: announced with the file of the test, made by a job, told by the upload."""

import hashlib

import pytest
from django.test import Client
from django.urls import reverse

from listening.app.models import Study
from portal.accounts.tokens import create_token
from portal.core import upload_files
from portal.jobs.models import Job
from portal.submissions.models import Upload
from tests.listening.own_factories import make_own_draft, pack, recordings, run_jobs
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db(transaction=True)
TUS = {"tus-resumable": "1.0.0"}


class Sender:
    """An organizer whose token may do no more than organize."""

    def __init__(self, content):
        secret = create_token(user=make_organizer(), name="vp", scopes=["read", "organize"], expires_at=None)[1]
        self.client = Client(headers={"Authorization": f"Bearer {secret}"})
        self.content = content

    def announce(self, test='title = "Codecs"', file_name="codecs.zip", **more):
        told = {"test": test, "file_name": file_name, "size": len(self.content)}
        told |= {"sha256": hashlib.sha256(self.content).hexdigest()} | more
        return self.client.post("/api/studies/uploads/", told, content_type="application/json")

    def send(self, address, start, end=None):
        headers = TUS | {"upload-offset": str(start)}
        part = self.content[start:end]
        return self.client.patch(address, part, content_type="application/offset+octet-stream", headers=headers)

    def deliver(self, **more):
        reply = self.announce(**more)
        assert reply.status_code == 201, reply.content
        assert self.send(reply.json()["address"], 0).status_code == 204
        run_jobs()
        return self.client.get(reply.json()["address"]).json()


def test_recordings_go_on_where_they_stopped_and_become_a_test():
    sender = Sender(pack(recordings()).read())
    address = sender.announce().json()["address"]
    assert sender.send(address, 0, 1000).status_code == 204
    again = sender.announce(test='title = "Two codecs"').json()
    assert (again["address"], again["offset"]) == (address, 1000)
    assert sender.send(address, 1000).status_code == 204
    waiting = sender.client.get(address).json()
    assert (waiting["job"]["state"], waiting["study"]) == ("waiting", None)
    run_jobs()
    run_jobs()  # the stimuli
    made = sender.client.get(address).json()["study"]
    study = Study.objects.get(name=made["name"])
    assert (study.title, study.stimulus_files.exclude(file="").count()) == ("Two codecs", 6)
    assert not upload_files.is_there(waiting["id"])


def test_what_is_wrong_with_the_recordings_is_told_by_the_upload_and_nothing_stays():
    told = Sender(pack({"notes.txt": b"x"}).read()).deliver()
    assert (told["job"]["state"], told["study"]) == ("failed", None)
    assert "There is no recording CONDITION/ITEM.wav or .flac in the archive" in told["job"]["failure"]
    assert not Study.objects.exists()


def test_what_was_wrong_with_the_choices_is_corrected_without_another_sending(client):
    sender = Sender(pack(recordings()).read())
    told = sender.deliver(test='title = "Codecs"\noriginal = "clear"')
    assert "There is no condition clear in the archive" in told["job"]["failure"]
    client.force_login(Job.objects.get().created_by)
    assert reverse("studies:own") in client.get(Job.objects.get().get_absolute_url()).text
    again = sender.announce(test='title = "Codecs"\noriginal = "clean"').json()
    assert (again["offset"], again["address"].endswith(told["id"])) == (len(sender.content), True)
    run_jobs()
    assert sender.client.get(again["address"]).json()["study"]["title"] == "Codecs"


def test_archive_that_was_damaged_on_its_way_is_sent_again():
    sender = Sender(pack(recordings()).read())
    whole = sender.content
    sender.content = whole[:-1] + bytes([whole[-1] ^ 1])
    damaged = sender.announce(sha256=hashlib.sha256(whole).hexdigest()).json()["address"]
    sender.send(damaged, 0)
    run_jobs()
    assert "was damaged on its way" in sender.client.get(damaged).json()["job"]["failure"]
    sender.content = whole
    assert sender.deliver()["study"]["title"] == "Codecs"


def test_archive_of_which_no_test_could_be_made_is_discarded_at_once():
    sender = Sender(pack(recordings()).read())
    failed = sender.deliver(test='title = "Codecs"\noriginal = "clear"')
    page = Client()
    page.force_login(Upload.objects.get().created_by)
    assert "no test was made of it" in page.get("/studies/new/recordings/").content.decode()
    assert sender.client.delete(f"/api/uploads/{failed['id']}", headers=TUS).status_code == 204
    assert not upload_files.is_there(failed["id"])
    assert "no test was made of it" not in page.get("/studies/new/recordings/").content.decode()
    assert sender.announce().json()["offset"] == 0
    made = sender.deliver()
    assert sender.client.delete(f"/api/uploads/{made['id']}", headers=TUS).status_code == 409


def test_archive_and_file_that_made_a_test_lead_to_it():
    sender = Sender(pack(recordings()).read())
    made = sender.deliver()
    again = sender.announce().json()
    assert again["offset"] == len(sender.content)
    assert sender.client.get(again["address"]).json()["study"] == made["study"]
    assert "has this title" in str(sender.announce(test='title = "Codecs"\noriginal = "clean"').json())
    assert Study.objects.count() == 1


def test_archive_of_a_test_that_is_being_made_is_taken_for_no_other():
    sender = Sender(pack(recordings()).read())
    sender.send(sender.announce().json()["address"], 0)
    refused = sender.announce(test='title = "Another"')
    assert refused.status_code == 409
    assert "These recordings are being made into the test “Codecs”." in refused.json()["detail"]


def test_name_that_was_taken_while_recordings_came_is_another_one():
    sender = Sender(pack(recordings()).read())
    address = sender.announce().json()["address"]
    make_own_draft(make_organizer(), name="codecs", title="Codecs of others")
    sender.send(address, 0)
    run_jobs()
    made = sender.client.get(address).json()["study"]
    assert (made["title"], made["name"] != "codecs") == ("Codecs", True)


def test_token_that_may_only_submit_neither_sends_nor_discards_them():
    sender = Sender(pack(recordings()).read())
    address = sender.announce().json()["address"]
    secret = create_token(user=Upload.objects.get().created_by, name="s", scopes=["submit"], expires_at=None)[1]
    sender.client = Client(headers={"Authorization": f"Bearer {secret}"})
    assert sender.send(address, 0).status_code == 403
    assert sender.client.delete(address, headers=TUS).status_code == 403


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"test": "titel = 1"}, "test", "title: Give the study a title."),
        ({"test": 'title = "x"\n[sessions]\nhalf_width = 0.2'}, "test", "needs a number of evaluators at most."),
        ({"file_name": "codecs.mp3"}, "file_name", "Expected an archive (.zip, "),
        ({"size": 3 << 30}, "file_name", "Expected at most 2"),
        ({"sha256": "x"}, "sha256", ""),
    ],
)
def test_what_cannot_become_a_test_is_refused_before_anything_is_sent(given, field, sentence):
    reply = Sender(b"x").announce(**given)
    errors = reply.json()["errors"]
    assert (reply.status_code, {one["field"] for one in errors}) == (400, {field})
    assert sentence in " ".join(one["detail"] for one in errors)
    assert not Upload.objects.exists()
