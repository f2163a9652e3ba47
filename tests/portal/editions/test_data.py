"""The page “Data” and its files: who gets what, the terms, what the files hold, and downloads that go on."""

import io
import zipfile

import pytest
from django.core.exceptions import ValidationError
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse

from portal.challenges.models import DataFile, Edition
from portal.challenges.services import change_edition, copy_edition, prepare_data_files
from portal.core.models import AuditEvent
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.teams.models import DataAcceptance, Team
from portal.teams.selectors import data_access
from tests.portal.factories import (
    client_of,
    make_corpus,
    make_edition,
    make_operator,
    make_organizer,
    make_team,
    make_user,
    recipe_of,
)

pytestmark = pytest.mark.django_db
TERMS = "Licence of the corpus tones: CC BY 4.0"


def make_files(edition):
    """What the job of the files makes; it runs here."""
    prepare_data_files(edition=edition)
    job = Job.objects.get(kind="data-files", edition=edition.name, state=JobState.WAITING)
    execute(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED


@pytest.fixture
def edition():
    made = make_edition(make_corpus(licence="CC BY 4.0"), name="vpc", shares_data=True, organizers=[make_organizer()])
    make_files(made)
    return made


def page(edition):
    return reverse("editions:data", args=[edition.name])


def address(edition, name="tones_enrolls.zip"):
    return reverse("editions:data-file", args=[edition.name, name])


def accept(client, edition, terms=TERMS):
    return client.post(reverse("editions:accept-data", args=[edition.name]), {"terms": terms}, follow=True)


def member_of(edition, **fields):
    team = make_team(edition, **fields)
    return client_of(team.memberships.get().user), team


def body(response):
    return b"".join(response.streaming_content)


# Who gets what -------------------------------------------------------------------------------------
def everybody(edition):
    """People by what they are, the members of approved teams and organizers last."""
    other = make_edition(edition.corpus, name="other", shares_data=True)
    people = {
        "visitor": Client(),
        "member of no team": client_of(make_user()),
        "operator": client_of(make_operator()),
        "other organizer": client_of(make_organizer()),
        "team of another edition": member_of(other)[0],
    }
    states = (Team.State.WAITING, Team.State.DECLINED, Team.State.WITHDRAWN)
    people |= {state: member_of(edition, state=state)[0] for state in states}
    return people, {"team": member_of(edition)[0], "organizer": client_of(edition.organizers.get())}


def test_files_are_for_approved_teams_that_accepted_the_terms_and_for_organizers(edition):
    kept_out, let_in = everybody(edition)
    api = [reverse("api:data", args=["vpc"]), reverse("api:data-file", args=["vpc", "tones_enrolls.zip"])]
    sums = address(edition, "SHA256SUMS")
    for who, client in kept_out.items():
        assert accept(client, edition).status_code in (200, 404), who
        statuses = {client.get(one).status_code for one in (address(edition), sums, *api)}
        assert statuses <= ({302, 401} if who == "visitor" else {404}), who
        assert "tones_enrolls.zip" not in client.get(page(edition)).content.decode(), who
    assert not DataAcceptance.objects.exists()
    for who, client in let_in.items():
        told = client.get(api[0]).json()
        assert (told["accepted_at"], told["is_open"], told["terms"]) == (None, who == "organizer", TERMS)
        if who == "team":
            assert {client.get(one).status_code for one in (address(edition), sums, api[1])} == {404}
            assert told["files"] == []
            accept(client, edition)
        assert {client.get(one).status_code for one in (address(edition), sums, *api)} == {200}, who
        assert "tones_enrolls.zip" in client.get(page(edition)).content.decode(), who


def test_only_the_owner_of_the_corpus_and_operators_pass_its_speech_on():
    owner, other = make_organizer(), make_organizer()
    corpus = make_corpus(speakers=4, created_by=owner)  # shared with all organizers
    corpus.data_sets.update(split="test")
    edition = make_edition(corpus, name="vpc", recipe_text=recipe_of(corpus, "teams"), organizers=[other])
    with pytest.raises(ValidationError, match="Only the owner of the corpus tones or an operator") as refused:
        change_edition(edition=edition, by=other, shares_data=True)
    assert list(refused.value.message_dict) == ["shares_data"]
    Edition.objects.update(shares_data=True)  # as it may stand there from before
    edition.refresh_from_db()
    make_files(edition)
    client, _ = member_of(edition)
    assert "Terms" not in accept(client, edition).content.decode()
    assert client.get(address(edition)).status_code == 404
    edition.organizers.add(owner)
    accept(client, edition, data_access(owner, Edition.objects.get()).terms)
    assert client.get(address(edition)).status_code == 200
    change_edition(edition=edition, by=other, title="Another title")  # a fellow organizer changes the rest
    for person, is_kept in ((other, False), (owner, True), (make_operator(), True)):
        copied = copy_edition(
            edition=Edition.objects.get(name="vpc"), by=person, name=f"copy-{person.pk}", title=f"Copy {person.pk}"
        )
        assert copied.shares_data is is_kept, person


def test_acceptance_is_kept_with_words_time_person_and_team_once(edition):
    client, team = member_of(edition)
    for _ in range(2):
        accept(client, edition)
    kept = DataAcceptance.objects.get()
    assert (kept.team, kept.user, kept.text) == (team, team.memberships.get().user, TERMS)
    assert kept.accepted_at is not None
    assert AuditEvent.objects.get(action="data.accepted").data == {"text": kept.text}


def test_other_terms_are_accepted_anew_and_never_unread(edition):
    client, _ = member_of(edition)
    accept(client, edition)
    change_edition(edition=edition, by=None, data_terms="Delete the speech\nafter the challenge.")
    assert client.get(address(edition)).status_code == 404
    assert "The terms have changed" in accept(client, edition).content.decode()
    shown = client.get(page(edition)).context["access"].terms
    assert shown == f"{TERMS}\n\nDelete the speech\nafter the challenge."
    accept(client, edition, shown.replace("\n", "\r\n"))  # as browsers send it
    assert client.get(address(edition)).status_code == 200
    assert DataAcceptance.objects.count() == 2


def test_download_goes_on_and_never_mixes_two_files(edition):
    client, _ = member_of(edition)
    accept(client, edition)
    whole = client.get(address(edition))
    data, etag = body(whole), whole["ETag"]
    assert (whole["Accept-Ranges"], whole["Content-Disposition"]) == (
        "bytes",
        'attachment; filename="tones_enrolls.zip"',
    )
    for start in (1, len(data) // 2, len(data) - 1):
        rest = client.get(address(edition), headers={"Range": f"bytes={start}-", "If-Range": etag})
        assert (rest.status_code, body(rest)) == (206, data[start:])
    other = client.get(address(edition), headers={"Range": "bytes=5-", "If-Range": '"of another"'})
    assert (other.status_code, body(other)) == (200, data)
    head = client.head(address(edition))
    assert (head["Content-Length"], body(head)) == (str(len(data)), b"")


def test_one_archive_holds_recordings_and_lists_of_all_sets_and_goes_on(edition):
    client, _ = member_of(edition)
    everything = address(edition, "vpc-data.zip")
    assert client.get(everything).status_code == 404
    accept(client, edition)
    whole = client.get(everything)
    data = body(whole)
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert archive.testzip() is None
    parts = (
        zipfile.ZipFile(io.BytesIO(body(client.get(address(edition, file.name)))))
        for file in edition.data_files.filter(kind__in=("speech", "kaldi"))
    )
    expected = {name: part.read(name) for part in parts for name in part.namelist()}
    assert {name: archive.read(name) for name in archive.namelist()} == expected
    middle = len(data) // 2
    rest = client.get(everything, headers={"Range": f"bytes={middle}-", "If-Range": whole["ETag"]})
    assert (rest.status_code, body(rest)) == (206, data[middle:])


def test_files_follow_the_edition_and_the_recordings(edition):
    before = {file.name: file.sha256 for file in edition.data_files.all()}
    make_files(edition)
    assert {file.name: file.sha256 for file in edition.data_files.all()} == before
    change_edition(edition=edition, by=None, shares_data=False)
    assert not Job.objects.filter(state=JobState.WAITING).exists()
    change_edition(edition=edition, by=None, shares_data=True)
    assert Job.objects.filter(state=JobState.WAITING, kind="data-files").count() == 1
    assert prepare_data_files(edition=edition) is None  # one waits


@pytest.mark.parametrize(("by", "has_words"), [("teams", True), ("portal", False)])
def test_words_of_the_test_stay_here_where_the_portal_evaluates(by, has_words):
    corpus = make_corpus(speakers=4)
    corpus.data_sets.update(split="test")
    edition = make_edition(corpus, recipe_text=recipe_of(corpus, by), shares_data=True)
    make_files(edition)
    with default_storage.open(DataFile.objects.get(name="tones_trials_f-kaldi.zip").key) as file:
        names = zipfile.ZipFile(file).namelist()
    assert ("tones_trials_f/text" in names, "tones_trials_f/utt2spk" in names) == (has_words, True)
