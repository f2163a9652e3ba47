"""What an organizer does with a leaderboard: drafts, actions, their audit rows, and the notices that go out."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from evaluation.protocols.ranking.policy import make_policy
from evaluation.protocols.recipes import parse_recipe
from portal.accounts.models import User
from portal.challenges.models import Edition
from portal.challenges.selectors import export_recipe
from portal.challenges.services import change_edition
from portal.core.models import AuditEvent
from portal.jobs.models import Job
from portal.leaderboard import services
from portal.leaderboard.exports import leaderboard_as_latex
from portal.leaderboard.policy.pages import policy_page
from portal.leaderboard.selectors import build_leaderboard, policy_by
from portal.submissions.models import Submission
from tests.pages import read_page
from tests.portal.factories import (
    make_edition,
    make_job,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
    make_user,
)
from tests.portal.leaderboards import make_leaderboard
from tests.portal.objective import OWN_RECIPE, make_objective_run, ranked_numbers

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
ACTIONS = {
    "policy/": FORM | {"late": "ranked"},
    "policy/live/": {},
    "policy/discard/": {},
    "publish/": {},
    "unpublish/": {},
    "freeze/": {"at": ""},
    "unfreeze/": {},
}


@pytest.fixture
def organizer():
    return make_organizer()


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


def test_only_organizers_of_the_edition_decide(edition, address):
    member = edition.teams.first().memberships.first().user
    before = Edition.objects.values().get(pk=edition.pk)
    for user in (make_user(), make_organizer(), member, make_user(is_staff=True, is_superuser=True)):
        other = Client()
        other.force_login(user)
        for path, action in ACTIONS.items():
            assert other.get(address + path).status_code in {404, 405}, path
            assert other.post(address + path, action).status_code == 404, path
            assert Edition.objects.values().get(pk=edition.pk) == before, path
    for path, action in ACTIONS.items():
        visitor = Client().post(address + path, action)
        assert (visitor.status_code, visitor.url.startswith("/log-in/")) == (302, True), path
        assert Edition.objects.values().get(pk=edition.pk) == before, path
    assert actions(edition) == []


def test_draft_changes_nothing_that_others_see(client, edition, address):
    assert client.post(f"{address}policy/", FORM | {"late": "ranked", "minimum_eers": "10 20"}).status_code == 302
    edition.refresh_from_db()
    assert edition.leaderboard_policy == {}
    assert policy_by(edition, edition.draft_policy).minimum_eers == (10, 20)
    assert build_leaderboard(edition).policy.minimum_eers == (15, 20, 25, 30)
    assert actions(edition) == ["board.policy-drafted"]


def test_draft_like_the_live_policy_is_none(client, edition, address):
    client.post(f"{address}policy/", FORM | {"late": "ranked"})
    client.post(f"{address}policy/", FORM)
    edition.refresh_from_db()
    assert edition.draft_policy == {}


def test_preview_says_who_moves(client, edition, address):
    client.post(f"{address}policy/", FORM | {"late": "ranked"})
    edition.refresh_from_db()
    page = policy_page(edition)
    [first, *_] = page["changes"]
    assert [(move["entry"].label, move["before"], move["after"], move["direction"]) for move in first["moves"]] == [
        ("T02-p1", "late", "1", "up"),
        ("T01-c1", "1", "2", "down"),
    ]
    assert (first["unmoved"], page["n_moves"]) == (1, 6)
    assert page["dropped_words"] == ["Late submissions are listed without a rank."]
    assert page["new_words"] == ["Late submissions are ranked."]
    html = client.get(f"{address}policy/").content.decode()
    assert "6 places would change." in html


def test_preview_and_tables_name_what_ranks_in_words(organizer):
    by_words = '{ metric = "wer", estimator = "tglarge", better = "lower" }'
    by_pitch = '{ metric = "pitch_correlation", estimator = "praat", better = "higher" }'
    assert by_words in OWN_RECIPE
    fields = {"draft_policy": {"late": "ranked"}, "organizers": [organizer]}
    edition = make_edition(protocol="", recipe_text=OWN_RECIPE.replace(by_words, by_pitch), **fields)
    team = make_team(edition, name="Alder")
    make_objective_run(make_submission(make_team_system(team)), ranked_numbers(edition, eer=25, wer=8))
    assert {one["utility"] for one in policy_page(edition)["changes"]} == {"Pitch correlation ρF0"}
    assert r"by Pitch correlation $\rho$F0. EERs of" in leaderboard_as_latex(build_leaderboard(edition))


def test_draft_goes_live_and_back(client, edition, address):
    client.post(f"{address}policy/", FORM | {"late": "ranked", "gate_pitch_correlation": ""})
    assert client.post(f"{address}policy/live/").url == address
    edition.refresh_from_db()
    assert (edition.leaderboard_policy, edition.draft_policy) == (
        {"late": "ranked", "gates": {"pitch_correlation": None}},
        {},
    )
    assert build_leaderboard(edition).table.tables[0].rows[0].rank == 1
    client.post(f"{address}policy/", FORM)
    edition.refresh_from_db()
    assert edition.draft_policy["late"] == "unranked"
    client.post(f"{address}policy/live/")
    edition.refresh_from_db()
    assert edition.leaderboard_policy == {}
    event = AuditEvent.objects.filter(action="board.policy-live").order_by("pk").first()
    after = {"late": "ranked", "gates": {"pitch_correlation": None}}
    assert event.data == {"before": {}, "after": after, "recipe_version": 2}


def change_published(client, edition, address, **changes):
    """The edition, published and then ranked by another policy."""
    client.post(f"{address}publish/")
    client.post(f"{address}policy/", FORM | changes)
    client.post(f"{address}policy/live/")
    edition.refresh_from_db()
    edition.__dict__.pop("recipe", None)
    return edition


def test_changed_policy_is_a_version_whose_recipe_file_says_the_same(client, edition, address):
    edition = change_published(client, edition, address, minimum_eers="12, 24", late="ranked", basis="claims")
    page = Client().get(address)
    shown = page.context["leaderboard"]
    assert (edition.recipe_number, edition.published_number, shown.version.number) == (2, None, 2)
    start = f"/editions/{edition.name}/"
    files = [Client().get(path) for path in (f"{start}recipe/", f"{address}recipe/2/recipe.toml")]
    assert files[0].content == files[1].content
    assert f'filename="{edition.name}-version-2.toml"' in files[0]["Content-Disposition"]
    assert make_policy(parse_recipe(files[0].content.decode(), file="2.toml")) == shown.policy
    before = Client().get(f"{address}recipe/1/recipe.toml").content.decode()
    assert parse_recipe(before, file="1.toml").track.ranking.minimum_eers == (15, 20, 25, 30)


def test_published_leaderboard_says_when_and_what_was_changed(client, edition, address):
    edition = change_published(client, edition, address, late="ranked")
    page = read_page(Client().get(address))
    assert "Rules changed since the leaderboard was published" in page
    assert "Before: <del>Late submissions are listed without a rank.</del>" in page
    assert "Now: <ins>Late submissions are ranked.</ins>" in page
    [change] = Client().get(f"{address}leaderboard.json").json()["changes"]
    at = edition.recipe_versions.get(number=2).adopted_at.isoformat()
    assert (change["at"], change["version"], change["after"]) == (at, 2, ["Late submissions are ranked."])


def test_changed_deadline_stands_on_the_published_leaderboard(client, edition, address, organizer):
    change_edition(edition=edition, by=organizer, submissions_close_at=datetime(2026, 5, 1, tzinfo=UTC))
    client.post(f"{address}publish/")
    change_edition(edition=edition, by=organizer, submissions_close_at=datetime(2026, 6, 1, tzinfo=UTC))
    [change] = Client().get(f"{address}leaderboard.json").json()["changes"]
    assert (change["version"], change["before"], change["after"]) == (
        None,
        ["Deadline for submissions: 2026-05-01 00:00 UTC."],
        ["Deadline for submissions: 2026-06-01 00:00 UTC."],
    )


def test_policy_before_the_publication_is_no_change_of_it(client, edition, address):
    client.post(f"{address}policy/", FORM | {"late": "ranked"})
    client.post(f"{address}policy/live/")
    client.post(f"{address}publish/")
    assert Client().get(f"{address}leaderboard.json").json()["changes"] == []


def test_teams_are_told_of_a_policy_that_changes_a_published_leaderboard(client, edition, address):
    client.post(f"{address}publish/")
    Job.objects.filter(kind="send-notice").delete()
    change_published(client, edition, address, late="ranked")
    told = Job.objects.filter(kind="send-notice", parameters__kind="published")
    assert {job.parameters["team"] for job in told} == {team.pk for team in edition.teams.all()}


def test_policy_does_not_go_live_beside_a_draft_of_the_recipe(client, edition, address):
    text = export_recipe(edition).replace("minimum_eers = [15, 20, 25, 30]", "minimum_eers = [10]")
    client.post(f"{address}recipe/new/", {"recipe_text": text, "note": "Try."})
    client.post(f"{address}policy/", FORM | {"late": "ranked"})
    page = read_page(client.post(f"{address}policy/live/", follow=True))
    assert "Recipe version 2 is a draft already. Adopt or withdraw it first." in page


def test_policy_of_a_frozen_leaderboard_does_not_change(client, edition, address):
    client.post(f"{address}policy/", FORM | {"late": "ranked"})
    Edition.objects.update(frozen_at=timezone.now())
    for page in (f"{address}policy/", f"{address}policy/live/"):
        text = client.get(page).content.decode()
        assert services.FROZEN in text
        assert not {"Make it live</a>", "Make it live</button>"} & {*re.findall("Make it live</[a-z]+>", text)}
    assert services.FROZEN in client.post(f"{address}policy/live/", follow=True).content.decode()
    edition.refresh_from_db()
    assert (edition.leaderboard_policy, bool(edition.draft_policy)) == ({}, True)
    client.post(f"{address}unfreeze/")
    client.post(f"{address}policy/live/")
    edition.refresh_from_db()
    assert edition.leaderboard_policy == {"late": "ranked"}


def test_draft_can_be_discarded(client, edition, address):
    client.post(f"{address}policy/", FORM | {"policy": "interval"})
    client.post(f"{address}policy/discard/")
    edition.refresh_from_db()
    assert edition.draft_policy == {}
    assert actions(edition) == ["board.policy-drafted", "board.draft-discarded"]


def test_policy_form_says_what_is_wrong(client, edition, address):
    wrong = (
        ("minimum_eers", "20, 15", "Expected limits from 0 to 100 % that ascend, found 20, 15."),
        ("minimum_eers", "fifteen", "Write numbers with commas between them, such as 15, 20, 25, 30."),
        ("minimum_eers", "nan", "Expected a number, found “nan”."),
        ("policy", "best", "Select a valid choice. best is not one of the available choices."),
        ("note_within", "-1", "Ensure this value is greater than or equal to 0."),
        ("gate_pitch_correlation", "much", "Enter a number."),
    )
    found = []
    for field, value, _ in wrong:
        response = client.post(f"{address}policy/", FORM | {field: value})
        edition.refresh_from_db()
        found.append((value, response.status_code, response.context["form"].errors[field], edition.draft_policy))
    assert found == [(value, 422, [sentence], {}) for _, value, sentence in wrong]


def test_limits_may_be_written_in_several_ways(client, edition, address):
    client.post(f"{address}policy/", FORM | {"minimum_eers": " 12.5 %; 20%  40 "})
    edition.refresh_from_db()
    assert edition.draft_policy["minimum_eers"] == [12.5, 20, 40]


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
    assert event.data == {"teams": ["Alder", "Birch", "Cedar"], "recipe_version": 1}
    assert Client().get(address).status_code == 200


def test_question_whether_to_publish_names_what_is_not_ready(client, edition, address):
    assert "still being" not in read_page(client.get(f"{address}publish/"))
    system = make_team_system(edition.teams.get(number=1), label="late")
    make_submission(system, state="evaluating")
    stopped = make_team_system(edition.teams.get(number=1), label="stopped")
    make_submission(stopped, state="checking", job=make_job(kind="intake", state="failed"))
    Submission.objects.exclude(system__in=[system, stopped]).update(state="withdrawn")
    page = read_page(client.get(f"{address}publish/"))
    assert "There is no system on this leaderboard" in page
    assert "1 submission is still being checked or evaluated" in page


def test_teams_are_told_that_a_leaderboard_is_taken_back_as_of_its_publication(edition, organizer):
    edition.teams.get(number=1).memberships.create(user=organizer)
    services.publish_leaderboard(edition=edition, now=timezone.now(), by=organizer)
    services.unpublish_leaderboard(edition=edition, by=organizer)
    told = [
        (job.parameters["subject"], job.parameters["team"])
        for job in Job.objects.filter(kind="send-notice", parameters__kind="published")
    ]
    teams = [team for subject, team in told if subject.endswith("the leaderboard is published")]
    assert len(teams) == 3
    assert {team for subject, team in told if subject.endswith("no longer public")} == set(teams)
    assert all(organizer.pk not in job.parameters["members"] for job in Job.objects.filter(kind="send-notice"))


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


def test_looking_publishes_nothing(client, edition, address):
    client.get(f"{address}publish/")
    assert client.get(f"{address}unpublish/").status_code == 405
    edition.refresh_from_db()
    assert edition.published_at is None


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


def test_leaderboard_cannot_be_frozen_in_the_future_or_at_nonsense(client, edition, address):
    for typed, sentence in {
        "2999-01-01T00:00": "A leaderboard can be frozen as of now or of a time that has passed.",
        "soon": "Give a date and a time",
    }.items():
        response = client.post(f"{address}freeze/", {"at": typed, "confirmed": "yes"})
        page = response.content.decode()
        assert (response.status_code, sentence in page, f'value="{typed}"' in page) == (422, True, True)
        assert 'aria-invalid="true"' in page
    edition.refresh_from_db()
    assert edition.frozen_at is None


def test_time_before_any_evaluation_is_told_in_true_words(client, edition, address):
    page = read_page(client.post(f"{address}freeze/", {"at": "2020-01-01T00:00"}))
    assert "No system had been evaluated by then: the leaderboard would be empty." in page
    assert "On it now, but not then: T01-p1 (Alder)" in page
    client.post(f"{address}freeze/", {"at": "2020-01-01T00:00", "confirmed": "yes"})
    page = read_page(client.get(address))
    assert "No system had been evaluated by then" in page
    assert "No system has been evaluated yet" not in page
    assert f'class="button quiet" href="{address}publish/"' in page


def test_services_refuse_what_the_state_does_not_allow(organizer, edition):
    for action in (services.unpublish_leaderboard, services.unfreeze_leaderboard, services.make_policy_live):
        with pytest.raises(services.LeaderboardError):
            action(edition=edition, by=organizer)
    assert actions(edition) == []
