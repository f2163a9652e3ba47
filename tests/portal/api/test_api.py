"""The API: what each address answers, to whom, and how it says no."""

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client

from portal.submissions.models import Submission
from portal.teams.models import Team
from tests.portal.api.calls import Api
from tests.portal.factories import make_edition, make_team, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(challenge):
    return Api(challenge.owner)


@pytest.fixture
def organizer(challenge):
    return Api(challenge.organizer)


def read_problem(response, status):
    """The sentence of a problem document."""
    assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json"), response.content
    content = response.json()
    assert (content["status"], content["type"]) == (status, "about:blank")
    assert content["title"]
    return content["detail"]


# What the addresses answer -------------------------------------------------------------------------


def test_expected_is_for_approved_teams_and_organizers_only(challenge, organizer):
    assert organizer.get("editions/vpc/expected").status_code == 200
    waiting = make_user()
    make_team(challenge.edition, owner=waiting, state=Team.State.WAITING, number=None)
    for user in (waiting, make_user()):
        read_problem(Api(user).get("editions/vpc/expected"), 404)


def test_expected_of_a_further_version_is_for_its_team_and_organizers_only(challenge):
    challenge.publish()
    for user in (challenge.rival, make_user()):
        read_problem(Api(user).get(f"editions/vpc/expected?system={challenge.system.name}"), 404)
    read_problem(Api(challenge.owner).get("editions/vpc/expected?system=%00"), 400)
    other = make_edition(name="other")
    make_team(other, owner=challenge.owner)
    read_problem(Api(challenge.owner).get(f"editions/other/expected?system={challenge.system.name}"), 404)


def test_leaderboard_is_public_once_published(challenge, organizer):
    assert organizer.get("editions/vpc/leaderboard").json()["rankings"]
    for user in (None, challenge.owner):
        read_problem(Api(user).get("editions/vpc/leaderboard"), 404 if user else 401)
    published = organizer.post("editions/vpc/leaderboard/publish").json()
    assert published["published_at"]
    assert Api().get("editions/vpc/leaderboard").json()["edition"] == "vpc"
    assert Api().get("editions/vpc/leaderboard", accept="text/csv").content.startswith(b"minimum_eer,")


# What they do --------------------------------------------------------------------------------------


def test_owner_invites_and_revokes(challenge, team):
    made = team.post(f"teams/{challenge.team.pk}/invitations/", {"email": "ada@uni.example"})
    assert (made.status_code, made.json()["state"], mail.outbox[-1].to) == (201, "open", ["ada@uni.example"])
    path = f"teams/{challenge.team.pk}/invitations/{made.json()['id']}/revoke"
    assert team.post(path).json()["state"] == "revoked"
    read_problem(team.post(path), 409)
    read_problem(team.post(f"teams/{challenge.team.pk}/invitations/", {"email": "no address"}), 400)
    read_problem(Api(challenge.member).get(f"teams/{challenge.team.pk}/invitations/"), 404)


def test_withdrawing_as_organizer_needs_their_scope(challenge):
    path = f"submissions/{challenge.submission.pk}/withdraw"
    assert "“organize”" in read_problem(Api(challenge.organizer, ["submit"]).post(path), 403)
    assert Api(challenge.organizer, ["organize"]).post(path).status_code == 200


# How they say no -----------------------------------------------------------------------------------


def test_every_problem_is_a_problem_document(challenge, team):
    assert "accepts GET, HEAD" in read_problem(team.ask("DELETE", "me"), 405)
    assert team.ask("DELETE", "me")["Allow"] == "GET, HEAD"
    read_problem(team.ask("OPTIONS", "me"), 405)
    for path in ("no/such/address", "me/", "editions", "uploads/%0Aa", "%0A", "submissions/1"):
        read_problem(team.get(path), 404)
    for refused in (team.get("me?format=xml"), team.get("me", accept="image/png")):
        assert read_problem(refused, 406).endswith("it has json.")
    path = f"submissions/{challenge.submission.pk}/withdraw"
    read_problem(team.client.post(f"/api/{path}", "note=a", content_type="text/plain"), 415)
    assert "JSON parse error" in read_problem(
        team.client.post(f"/api/{path}", "{", content_type="application/json"), 400
    )
    without_boundary = team.client.post(
        f"/api/teams/{challenge.team.pk}/release", "--x", content_type="multipart/form-data"
    )
    read_problem(without_boundary, 400)
    assert "note" in read_problem(team.post(path, {"note": "n" * 2001}), 400)
    read_problem(team.get("submissions/99999999999999999999999/"), 404)
    read_problem(team.get("submissions/?edition=%00"), 400)


def test_failure_tells_nothing_of_the_inside(challenge, team, caplog):
    Submission.objects.filter(pk=challenge.submission.pk).update(report_summary=[{"no": "cause"}])
    sentence = read_problem(team.get(f"submissions/{challenge.submission.pk}/"), 500)
    assert "KeyError" not in sentence
    assert "KeyError" in caplog.text


def test_session_changes_nothing_without_its_csrf_token(challenge):
    client = Client(enforce_csrf_checks=True)
    client.force_login(challenge.owner)
    address = f"/api/submissions/{challenge.submission.pk}/withdraw"
    assert "CSRF" in read_problem(client.post(address, "{}", content_type="application/json"), 403)
    client.get("/account/")
    token = client.cookies["csrftoken"].value
    done = client.post(address, "{}", content_type="application/json", headers={"x-csrftoken": token})
    assert done.status_code == 200


def test_wrong_token_is_refused_even_where_visitors_are_not():
    response = Client(headers={"authorization": "Bearer vpp_wrong"}).get("/api/editions/")
    assert "unknown, revoked or expired" in read_problem(response, 401)
    assert response["WWW-Authenticate"] == "Bearer"


@pytest.fixture
def empty_counts():
    cache.clear()
    yield
    cache.clear()


def test_too_many_requests_are_told_when_to_go_on(challenge, settings, empty_counts):
    settings.API_REQUESTS_PER_MINUTE = {"token": 3, "user": 2, "address": 1}
    session = Client()
    session.force_login(challenge.owner)
    for limit, ask in ((3, Api(challenge.owner).get), (2, lambda path: session.get(f"/api/{path}")), (1, Api().get)):
        answers = [ask("editions/") for _ in range(limit + 1)]
        assert [one.status_code for one in answers] in ([*[200] * limit, 429], [200] * (limit + 1))
        if answers[-1].status_code == 200:  # the minute ended in between
            answers = [ask("editions/") for _ in range(limit + 1)]
        assert f"More than {limit} requests in a minute. Try again in" in read_problem(answers[-1], 429)
        assert 1 <= int(answers[-1]["Retry-After"]) <= 60


def test_guessing_tokens_is_throttled_by_address(settings, empty_counts):
    settings.API_REQUESTS_PER_MINUTE = {"token": 3, "user": 2, "address": 2}
    guess = Client(headers={"authorization": "Bearer vpp_guess"})
    assert 429 in [guess.get("/api/me").status_code for _ in range(6)]


def test_json_nested_without_end_is_the_senders_problem(challenge):
    body = "[" * 100_000
    organizer = Api(challenge.organizer)
    address = "/api/editions/vpc/leaderboard/freeze"
    answer = organizer.client.post(address, body, content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
