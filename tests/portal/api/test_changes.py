"""What the API does beside showing: teams, people, documents, differences, policies of leaderboards, editions."""

import pytest

from portal.accounts.models import AccessToken
from portal.challenges.models import Corpus, Edition
from portal.teams.models import Team
from tests.portal.api.calls import Api
from tests.portal.api.test_api import read_problem
from tests.portal.factories import make_corpus, make_organizer, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(challenge):
    return Api(challenge.owner)


@pytest.fixture
def organizer(challenge):
    return Api(challenge.organizer)


def fields_of(response):
    """Which fields a refused body is told about."""
    read_problem(response, 400)
    return {one["field"] for one in response.json()["errors"]}


# Names that an address does not know ---------------------------------------------------------------


def test_fields_that_a_body_may_not_have_are_refused_beside_what_else_is_wrong(challenge, team):
    answer = team.send("PATCH", f"teams/{challenge.team.pk}/", {"colour": "red", "country": "XX"})
    assert fields_of(answer) == {"colour", "country"}
    assert fields_of(team.send("PATCH", f"teams/{challenge.team.pk}/", {"country": []})) == {"country"}
    told = {one["field"]: one["detail"] for one in answer.json()["errors"]}
    assert told["colour"].startswith("This address has no field of that name. It takes name, contact,")
    assert challenge.team.name == Team.objects.get(pk=challenge.team.pk).name


def test_parameters_that_a_list_does_not_know_are_refused(team):
    answer = team.get("systems/?teem=1")
    assert fields_of(answer) == {"teem"}
    takes = "edition, team, page, page_size"
    assert answer.json()["detail"] == f"teem: This address has no parameter of that name. It takes {takes}."


# Teams ---------------------------------------------------------------------------------------------


def test_owner_changes_fields_of_the_team(challenge, team):
    path = f"teams/{challenge.team.pk}/"
    assert team.send("PATCH", path, {"affiliation": " New  University "}).json()["affiliation"] == "New University"
    assert "Another team" in read_problem(team.send("PATCH", path, {"name": "birch"}), 409)
    assert fields_of(team.send("PATCH", path, {"contact": ""})) == {"contact"}
    for user in (challenge.member, challenge.rival):
        read_problem(Api(user).send("PATCH", path, {"affiliation": "Mine"}), 404)
    challenge.team.refresh_from_db()
    assert (challenge.team.name, challenge.team.affiliation) == ("Alder", "New University")


def member_path(challenge, user, action):
    return f"teams/{challenge.team.pk}/members/{challenge.team.memberships.get(user=user).pk}/{action}"


def test_members_are_listed_removed_and_handed_the_team(challenge, team):
    listed = {one["role"]: one["id"] for one in team.get(f"teams/{challenge.team.pk}/").json()["members"]}
    path = f"teams/{challenge.team.pk}/members/{listed['member']}"
    handed = team.post(f"{path}/transfer").json()
    assert {one["role"]: one["id"] for one in handed["members"]}["owner"] == listed["member"]
    read_problem(team.post(f"{path}/transfer"), 404)  # no longer its owner
    new_owner = Api(challenge.member)
    assert "owns the team" in read_problem(new_owner.post(f"{path}/remove"), 409)
    assert "owns" in read_problem(new_owner.post(f"{path}/transfer"), 409)
    left = new_owner.post(member_path(challenge, challenge.owner, "remove")).json()["members"]
    assert [one["role"] for one in left] == ["owner"]
    read_problem(team.get(f"teams/{challenge.team.pk}/"), 404)


# Policies of leaderboards --------------------------------------------------------------------------------


def test_organizer_changes_policy_and_recipe_of_a_published_leaderboard(challenge, organizer):
    board, path = "editions/vpc/leaderboard", "editions/vpc/leaderboard/policy"
    text = organizer.get("editions/vpc/recipe").content.decode()
    assert organizer.get(path).json()["policy"]["minimum_eers"] == [15.0, 20.0, 25.0, 30.0]
    organizer.post(f"{board}/publish")
    assert organizer.send("PUT", path, {"minimum_eers": [18]}).json()["policy"]["minimum_eers"] == [18.0]
    refused = organizer.send("PUT", "editions/vpc/leaderboard/recipe", {"recipe_text": text.replace("split", "spilt")})
    assert len(refused.json()["errors"]) > 1
    read_problem(organizer.send("PUT", "editions/vpc/leaderboard/recipe", {}), 400)
    changed = {"recipe_text": text.replace("minimum_eers = [15, 20, 25, 30]", "minimum_eers = [19]")}
    assert organizer.send("PUT", "editions/vpc/leaderboard/recipe", changed).json()["policy"]["minimum_eers"] == [19.0]
    assert "change something" in read_problem(organizer.send("PUT", "editions/vpc/leaderboard/recipe", changed), 409)
    found = Api().get(board).json()
    assert (found["policy"]["minimum_eers"], {one["is_pending"] for one in found["changes"]}) == (
        [15, 20, 25, 30],
        {True},
    )
    organizer.post(f"{board}/publish")
    found = Api().get(board).json()
    assert (found["policy"]["minimum_eers"], {one["is_pending"] for one in found["changes"]}) == ([19.0], {False})
    read_problem(organizer.post(f"{board}/publish"), 409)


def test_policy_that_cannot_be_is_refused_with_a_sentence(challenge, organizer):
    wrong = (
        ({"minimum_eers": [30, 15]}, "ascend"),
        ({"minimum_eers": [10**400]}, "too large"),
        ({"gates": {"eer": 3}}, "gates"),
        ([], "dictionary"),
    )
    path = "editions/vpc/leaderboard/policy"
    answers = [(organizer.send("PUT", path, body), told) for body, told in wrong]
    assert [told for one, told in answers if one.status_code != 400 or told not in read_problem(one, 400)] == []
    challenge.edition.refresh_from_db()
    assert challenge.edition.leaderboard_policy == {}


# Editions ------------------------------------------------------------------------------------------


def test_organizer_makes_changes_and_copies_an_edition():
    user, other = make_organizer(), make_user()
    api = Api(user)
    make_corpus("own")
    made = api.post("editions/", {"name": "vpc2030", "title": "The  2030 challenge", "protocol": "2022"})
    assert (made.status_code, made.json()["title"], made.json()["you_organise"]) == (201, "The 2030 challenge", True)
    changed = api.send(
        "PATCH", "editions/vpc2030/", {"is_listed": True, "organizers": [user.email, other.email.upper()]}
    )
    assert (changed.status_code, changed.json()["is_listed"]) == (200, True)
    assert set(Edition.objects.get(name="vpc2030").organizers.all()) == {user, other}
    copied = api.post("editions/vpc2030/copy", {"name": "vpc2031", "title": "Another"})
    assert (copied.status_code, copied.json()["protocol"], copied.json()["is_listed"]) == (201, "own", False)
    recipe = api.get("editions/vpc2031/recipe")
    original = Api().get("editions/vpc2030/recipe").content
    assert recipe.content == original.replace(b'title = "VoicePrivacy 2022"', b'title = "Another"')
    assert recipe["Content-Type"] == "application/toml; charset=utf-8"
    read_problem(Api().get("editions/vpc2031/recipe"), 401)
    own = api.send("PATCH", "editions/vpc2030/", {"recipe_text": recipe.content.decode()})
    assert own.json()["protocol"] == "own"
    assert api.get("editions/vpc2030/leaderboard").json()["protocol"] == "own"
    assert api.send("PATCH", "editions/vpc2030/", {"protocol": "2024"}).json()["protocol"] == "2024"
    assert Edition.objects.get(name="vpc2030").recipe_text == ""


def test_edition_that_does_not_hold_together_is_refused_field_by_field(challenge, organizer):
    whole = {"name": "new-one", "title": "New", "protocol": "2022"}
    assert fields_of(organizer.post("editions/", {})) == {"name", "title"}
    for wrong, fields in [
        ({"name": "vpc"}, {"name"}),
        ({"recipe_text": "no recipe"}, {"recipe_text"}),
        ({"recipe_text": r'title = "\u202e"'}, {"recipe_text"}),
        ({"title": "New\0"}, {"title"}),
        ({"corpus": "nothing"}, {"corpus"}),
        ({"organizers": ["nobody@test.example"]}, {"organizers"}),
        ({"organizers": [challenge.owner.email]}, {"organizers"}),
        ({"late_until": "2030-01-01T00:00:00Z"}, {"late_until"}),
        (
            {"submissions_per_team": 0, "largest_archive_bytes": 10**30},
            {"submissions_per_team", "largest_archive_bytes"},
        ),
    ]:
        assert fields_of(organizer.post("editions/", whole | wrong)) == fields, wrong
    assert fields_of(organizer.post("editions/", {"name": "new-one", "title": "New"})) == {"protocol"}
    own = {"name": "new-one", "title": "New", "recipe_text": "no recipe"}
    assert fields_of(organizer.post("editions/", own)) == {"recipe_text"}
    assert "name" in fields_of(organizer.post("editions/vpc/copy", {"name": "vpc", "title": "Copy"}))
    assert fields_of(organizer.send("PATCH", "editions/vpc/", {"name": "renamed"})) == {"name"}  # it has submissions
    assert Edition.objects.count() == 1


# Scopes --------------------------------------------------------------------------------------------

SCOPED = {
    "me": ("GET", {"read"}),
    "submissions/{submission}/evaluate": ("POST", {"organize"}),
    "submissions/{submission}/check": ("POST", {"organize"}),
    "teams/{team}/decide": ("POST", {"organize"}),
    "teams/{team}/invitations/": ("POST", {"organize"}),
    "teams/{team}/invitations/{invitation}/revoke": ("POST", {"organize"}),
    "editions/vpc/leaderboard/publish": ("POST", {"organize"}),
    "editions/vpc/leaderboard/unpublish": ("POST", {"organize"}),
    "editions/vpc/leaderboard/freeze": ("POST", {"organize"}),
    "editions/vpc/leaderboard/unfreeze": ("POST", {"organize"}),
    "editions/": ("POST", {"organize"}),
    "editions/vpc/": ("PATCH", {"organize"}),
    "editions/vpc/copy": ("POST", {"organize"}),
    "editions/vpc/recipe": ("GET", {"read"}),
    "editions/vpc/audit": ("GET", {"read"}),
    "editions/vpc/uploads/": ("GET", {"read"}),
    "editions/vpc/teams/": ("POST", {"submit"}),
    "editions/vpc/leaderboard/policy": ("PUT", {"organize"}),
    "editions/vpc/leaderboard/recipe": ("PUT", {"organize"}),
    "teams/{team}/": ("PATCH", {"organize"}),
    "teams/{team}/leave": ("POST", {"organize"}),
    "teams/{team}/withdraw": ("POST", {"organize"}),
    "teams/{team}/release": ("POST", {"organize"}),
    "teams/{team}/members/{member}/remove": ("POST", {"organize"}),
    "teams/{team}/members/{member}/transfer": ("POST", {"organize"}),
    "submissions/{submission}/documents/{document}": ("GET", {"read"}),
    "submissions/{submission}/diff/{submission}": ("GET", {"read"}),
}


def test_token_does_only_what_its_scopes_say(challenge):
    numbers = {
        "submission": challenge.submission.pk,
        "document": challenge.submission.documents.get().pk,
        "team": challenge.team.pk,
        "invitation": challenge.invitation.pk,
        "member": challenge.team.memberships.get(user=challenge.member).pk,
    }
    for scope in AccessToken.Scope.values:
        api = Api(challenge.rival, [scope])
        for path, (method, scopes) in SCOPED.items():
            answer = api.ask(method, path.format(**numbers))
            is_refused = answer.status_code == 403 and "lacks the scope" in answer.json()["detail"]
            assert is_refused == (scope not in scopes), (scope, path, answer.content)


def test_recipe_is_proposed_from_a_corpus_and_makes_an_edition(organizer):
    text = organizer.get("corpora/tones/proposed-recipe").content.decode()
    assert "tones_trials_f = {" in text
    made = organizer.post("editions/", {"name": "own", "title": "Own", "recipe_text": text, "corpus": "tones"})
    assert (made.status_code, Edition.objects.get(name="own").recipe_text) == (201, text)
    Corpus.objects.create(name="bare", layout="manifest", source="/speech", is_shared=True)
    assert organizer.get("corpora/bare/proposed-recipe").status_code == 409
