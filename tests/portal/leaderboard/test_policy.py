"""What an organizer does with a leaderboard: its policy, actions, their audit rows, and the notices that go out."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from portal.accounts.models import User
from portal.challenges.services import change_edition
from portal.core.models import AuditEvent
from portal.jobs.models import Job
from portal.leaderboard.selectors import build_leaderboard
from tests.pages import read_page
from tests.portal.factories import make_team
from tests.portal.leaderboards import make_leaderboard

pytestmark = pytest.mark.django_db
FORM = {
    "minimum_eers": "15, 20, 25, 30",
    "policy": "cumulative",
    "inclusive": "yes",
    "late": "unranked",
    "basis": "recomputed",
    "several_systems": "best",
    "note_within": "0.05",
    "gate_pitch_correlation": "0.3",
}


@pytest.fixture
def edition(organizer):
    return make_leaderboard(organizers=[organizer])


@pytest.fixture
def address(edition):
    return f"/editions/{edition.name}/leaderboard/"


@pytest.fixture
def client(organizer):
    client = Client()
    client.force_login(organizer)
    return client


def actions(edition):
    events = AuditEvent.objects.filter(subject_type="challenges.edition", subject_id=str(edition.pk))
    return [event.action for event in events.order_by("pk")]


def test_policy_changes_and_goes_back(client, edition, address):
    assert client.post(f"{address}policy/", FORM | {"late": "ranked", "gate_pitch_correlation": ""}).url == address
    edition.refresh_from_db()
    assert edition.leaderboard_policy == {"late": "ranked", "gates": {"pitch_correlation": None}}
    assert build_leaderboard(edition).table.tables[0].rows[0].rank == 1
    client.post(f"{address}policy/", FORM)
    edition.refresh_from_db()
    assert edition.leaderboard_policy == {}
    assert actions(edition) == ["board.recipe_changed"] * 2
    said = AuditEvent.objects.filter(action="board.recipe_changed").earliest("pk").data
    assert "Late submissions are listed without a rank." in said["before"]
    assert "Late submissions are ranked." in said["after"]


def test_changed_deadline_stands_on_the_published_leaderboard(client, edition, address, organizer):
    change_edition(edition=edition, by=organizer, submissions_close_at=datetime(2026, 5, 1, tzinfo=UTC))
    client.post(f"{address}publish/")
    change_edition(edition=edition, by=organizer, submissions_close_at=datetime(2026, 6, 1, tzinfo=UTC))
    [change] = Client().get(f"{address}leaderboard.json").json()["changes"]
    assert (change["is_pending"], change["before"], change["after"]) == (
        False,
        ["Deadline for submissions: 2026-05-01 00:00 UTC."],
        ["Deadline for submissions: 2026-06-01 00:00 UTC."],
    )


def test_policy_form_says_what_is_wrong(client, edition, address):
    wrong = (
        ("minimum_eers", "20, 15", "Expected limits from 0 to 100 % that ascend, found 20, 15."),
        ("minimum_eers", "fifteen", "Write numbers with commas between them, such as 15, 20, 25, 30."),
        ("minimum_eers", "nan", "Expected a number, found “nan”."),
    )
    found = []
    for field, value, _ in wrong:
        response = client.post(f"{address}policy/", FORM | {field: value})
        edition.refresh_from_db()
        found.append((value, response.status_code, response.context["form"].errors[field], edition.leaderboard_policy))
    assert found == [(value, 422, [sentence], {}) for _, value, sentence in wrong]


def test_publishing_tells_each_team_on_the_leaderboard(client, edition, address):
    make_team(edition, name="Without a system")
    declined = edition.teams.get(number=2).memberships.first().user
    User.objects.filter(pk=declined.pk).update(unwanted_notifications=["published"])
    assert client.post(f"{address}publish/").url == address
    edition.refresh_from_db()
    assert edition.published_at is not None
    told = Job.objects.filter(kind="send-notice")
    assert {job.parameters["team"] for job in told} == {edition.teams.get(number=number).pk for number in (1, 3)}
    assert {job.parameters["url"] for job in told} == {address}
    event = AuditEvent.objects.get(action="board.published")
    assert event.data == {"teams": ["Alder", "Birch", "Cedar"]}
    assert Client().get(address).status_code == 200


def test_leaderboard_is_published_and_taken_back_once(client, edition, address):
    heard = "The results of “Autumn listening” are"
    assert heard not in read_page(client.get(f"{address}publish/"))
    edition.studies.create(name="autumn", title="Autumn listening", state="closed", results_published_at=timezone.now())
    assert f"{heard} public again with it." in read_page(client.get(f"{address}publish/"))
    client.post(f"{address}publish/")
    assert f"{heard} hidden with it" in read_page(client.get(f"{address}publish/"))
    response = client.post(f"{address}publish/", follow=True)
    assert "The leaderboard is published already." in read_page(response)
    assert "Take it back" in read_page(client.get(f"{address}publish/"))
    client.post(f"{address}unpublish/")
    assert Client().get(address).status_code == 302
    response = client.post(f"{address}unpublish/", follow=True)
    assert "The leaderboard is not published." in read_page(response)
    assert actions(edition) == ["board.published", "board.unpublished"]


def test_leaderboard_is_frozen_as_of_now_or_of_a_time_that_passed(client, edition, address):
    client.post(f"{address}freeze/", {"at": "", "confirmed": "yes"})
    edition.refresh_from_db()
    assert timezone.now() - edition.frozen_at < timedelta(minutes=1)
    client.post(f"{address}freeze/", {"at": "2026-05-31T23:59", "confirmed": "yes"})
    edition.refresh_from_db()
    assert edition.frozen_at.isoformat() == "2026-05-31T23:59:00+00:00"
    assert "as of" in client.get(address).content.decode()
    client.post(f"{address}unfreeze/")
    edition.refresh_from_db()
    assert edition.frozen_at is None
    assert actions(edition) == ["board.frozen", "board.frozen", "board.unfrozen"]
