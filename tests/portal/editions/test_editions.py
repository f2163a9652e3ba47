"""Editions: who sees them, what cannot be saved, what the first submission fixes, copies, and the audit log."""

import csv
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from evaluation.protocols.recipes import FOLDER, parse_recipe
from portal.challenges import services
from portal.challenges.models import Edition
from portal.challenges.selectors import recipe_hash
from portal.core import audit
from portal.core.models import AuditEvent
from portal.teams.services import freeze_members
from tests.portal.api.calls import Api
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
    make_user,
)

pytestmark = pytest.mark.django_db
RECIPE = (FOLDER / "2022.toml").read_text()


def sets_for(corpus):
    """The enrolment and trial sets that corpora of the factory have, as lines of a recipe."""
    trials = [
        f'{corpus}_trials_{gender} = {{ role = "trial", split = "test", gender = "{gender}", '
        f'enrolment = "{corpus}_enrolls" }}'
        for gender in "fm"
    ]
    enrolment = f'{corpus}_enrolls = {{ role = "enrolment", split = "test", gender = "all", utterances = 4 }}'
    return "\n".join([enrolment, *trials])


def recipe_for(corpus):
    """A recipe of those data sets alone."""
    return f"""
edition = "tones"
title = "Tones"
anonymised_suffix = "_anon"
baselines = []
attack_models = ["ignorant"]
uncertain = []
[data_sets]
{sets_for(corpus)}
[[metrics]]
key = "eer"
estimator = "kaldi"
primary = true
[tracks.main]
languages = ["en"]
[[tracks.main.averages]]
metric = "eer"
estimator = "kaldi"
label = "Average EER"
weights.test = {{ {corpus}_trials_f = 0.5, {corpus}_trials_m = 0.5 }}
"""


def filled_in(user, **fields):
    """What the form of an edition sends."""
    return {
        "title": "Challenge of tones",
        "name": "tones-1",
        "protocol": "2022",
        "submissions_per_team": "5",
        "largest_archive_gb": "1.5",
        "organizers": user.email,
        "scores_required": "on",
    } | fields


@pytest.fixture
def organizer(client):
    organizer = make_organizer()
    client.force_login(organizer)
    return organizer


def errors_of(response):
    assert response.status_code == 422
    return response.context["form"].errors


def test_list_without_editions_says_whether_they_are_archived(client, organizer):
    assert "No edition yet" in client.get("/editions/").content.decode()
    make_edition(organizers=[organizer], archived_at=timezone.now())
    assert "Every edition is archived" in client.get("/editions/").content.decode()


def test_new_edition_is_made_as_it_was_filled_in(client, organizer):
    other = make_user()
    people = f"{organizer.email}\n{other.email.upper()}"
    sent = filled_in(organizer, organizers=people, submissions_close_at="2026-12-01T12:00", is_listed="on")
    response = client.post("/editions/new/", sent)
    edition = Edition.objects.get()
    assert response.url == edition.get_absolute_url() == "/editions/tones-1/"
    assert (edition.protocol, edition.recipe_text, edition.corpus) == ("2022", "", None)
    assert (edition.submissions_per_team, edition.largest_archive_bytes) == (5, 1_500_000_000)
    assert (edition.audio_required, edition.scores_required, edition.is_listed) == (False, True, True)
    assert edition.submissions_close_at.isoformat() == "2026-12-01T12:00:00+00:00"
    assert set(edition.organizers.all()) == {organizer, other}
    assert AuditEvent.objects.get(action="edition.created").actor == organizer


def test_own_recipe_as_a_file_takes_the_place_of_the_text(client, organizer):
    corpus = make_corpus()
    file = SimpleUploadedFile("mine.toml", b"\xef\xbb\xbf" + recipe_for("tones").encode())
    sent = filled_in(organizer, protocol="own", recipe_file=file, recipe_text="nonsense", corpus=corpus.name)
    assert client.post("/editions/new/", sent).status_code == 302
    edition = Edition.objects.get()
    assert (edition.protocol, edition.recipe.edition, edition.corpus) == ("", "tones", corpus)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Give the text of the recipe, or choose its file."),
        ("x = ", "tones-1.toml: expected a readable TOML file"),
        (RECIPE.replace('role = "trial"', 'role = "trail"'), "expected one of enrolment, trial, recognition"),
    ],
)
def test_recipe_that_cannot_be_read_is_not_saved(client, organizer, text, said):
    response = client.post("/editions/new/", filled_in(organizer, protocol="own", recipe_text=text))
    assert said in errors_of(response)["recipe_text"][0]
    assert not Edition.objects.exists()


def test_corpus_that_contradicts_the_recipe_is_not_saved(client, organizer):
    corpus = make_corpus()
    response = client.post("/editions/new/", filled_in(organizer, corpus=corpus.name))
    assert "holds none of the 17" in errors_of(response)["corpus"][0]
    text = recipe_for("tones").replace("utterances = 4", "utterances = 5")
    response = client.post("/editions/new/", filled_in(organizer, corpus=corpus.name, protocol="own", recipe_text=text))
    assert "expected 5 utterances, found 4" in errors_of(response)["corpus"][0]
    assert not Edition.objects.exists()


def test_every_other_problem_of_the_form_is_told_at_once(client, organizer):
    stranger = "nobody@nowhere.example"
    sent = filled_in(
        organizer,
        name="new",
        title="",
        protocol="2026",
        organizers=f"{organizer.email} {stranger}",
        submissions_open_at="2026-12-02T12:00",
        submissions_close_at="2026-12-01T12:00",
        largest_archive_gb="0",
        submissions_per_team="0",
    )
    errors = errors_of(client.post("/editions/new/", sent))
    fields = {"title", "track", "organizers", "submissions_close_at", "largest_archive_gb", "submissions_per_team"}
    assert set(errors) == fields
    assert errors["organizers"] == [f"No account has the address {stranger}. Ask this person to make one first."]
    response = client.post("/editions/new/", filled_in(organizer, name="new"))
    assert errors_of(response)["name"] == ["The address of “new” is taken. Choose another name."]


def test_organizer_cannot_remove_themselves_nor_take_a_name(client, organizer):
    other = make_user()
    edition = make_edition(organizers=[organizer, other], name="mine")
    make_edition(name="taken")
    sent = filled_in(organizer, name="taken", organizers=other.email)
    assert errors_of(client.post("/editions/mine/edit/", sent))["organizers"] == [
        "You cannot remove yourself; another organizer can."
    ]
    response = client.post("/editions/mine/edit/", filled_in(organizer, name="taken"))
    assert errors_of(response)["name"] == ["Another edition is called taken. Choose another name."]
    edition.refresh_from_db()
    assert edition.name == "mine"


def test_first_submission_fixes_the_recipe_and_a_copy_opens_it_again(client, organizer):
    edition = make_edition(organizers=[organizer], name="mine")
    make_submission(make_team_system(make_team(edition)))
    sent = filled_in(organizer, name="other", protocol="2020", title="Renamed")
    assert client.post("/editions/mine/edit/", sent).status_code == 302
    edition.refresh_from_db()
    assert (edition.name, edition.protocol, edition.title) == ("mine", "2022", "Renamed")
    page = client.get("/editions/mine/edit/").content.decode()
    assert ("copy the edition</a>" in page, f"/editions/{edition.name}/leaderboard/recipe/" in page) == (True, True)
    for fact in (
        "<dt>Short name</dt><dd>mine</dd>",
        "<dt>Recipe</dt><dd>VoicePrivacy 2022</dd>",
        "<dt>Corpus</dt><dd>none",
    ):
        assert fact in page
    assert [f'name="{name}"' in page for name in ("name", "protocol", "recipe_text", "recipe_file", "track")] == [
        False
    ] * 5
    assert 'name="title"' in page
    with pytest.raises(ValidationError, match="copy the edition to try something else"):
        services.change_edition(edition=edition, by=organizer, protocol="2020")

    assert client.post("/editions/mine/copy/", {"name": "mine-low", "title": "Lower"}).url == "/editions/mine-low/"
    copied = Edition.objects.get(name="mine-low")
    assert copied.recipe_text == RECIPE
    assert copied.recipe == replace(edition.recipe, title="Lower")
    assert (copied.is_listed, copied.teams.count(), copied.systems.count()) == (False, 0, 0)
    assert list(copied.organizers.all()) == [organizer]
    text = RECIPE.replace("[15, 20, 25, 30]", "[5]")
    sent = filled_in(organizer, name="mine-low", protocol="own", recipe_text=text.replace("\n", "\r\n"))
    assert client.post("/editions/mine-low/edit/", sent).status_code == 302
    copied = Edition.objects.get(name="mine-low")
    assert copied.recipe.track.ranking.minimum_eers == (5,)
    assert copied.recipe_text == text


def test_another_recipe_ranks_as_it_says(client, organizer):
    edition = make_edition(
        organizers=[organizer], protocol="", recipe_text=RECIPE, leaderboard_policy={"late": "ranked"}
    )
    address = f"/editions/{edition.name}/edit/"
    form = client.get(address).context["form"]
    shown = parse_recipe(form["recipe_text"].value(), file="shown.toml")
    assert shown.track.ranking.late == "ranked"
    sent = filled_in(
        organizer, name=edition.name, protocol="own", recipe_text=RECIPE.replace("[15, 20, 25, 30]", "[5]")
    )
    assert client.post(address, sent).status_code == 302
    edition = Edition.objects.get(pk=edition.pk)
    assert (edition.leaderboard_policy, edition.recipe.track.ranking.late) == ({}, "unranked")


def test_change_of_another_editor_is_told_before_it_is_replaced(client, organizer):
    make_edition(
        make_corpus(), organizers=[organizer], name="mine", description="Old text.", recipe_text=recipe_for("tones")
    )

    def opened():
        page = client.get("/editions/mine/edit/")
        form = page.context["form"]
        sent = {field.html_name: field.value() for field in form if field.value() not in (None, False)}
        return sent | {"corpus": form.initial["corpus"].name, "state_seen": state_in(page)}

    def state_in(page):
        return re.search(r'name="state_seen" value="([^"]*)"', page.content.decode())[1]

    first, second = opened(), opened()
    assert client.post("/editions/mine/edit/", first | {"description": "Text of the first."}).status_code == 302
    refused = client.post("/editions/mine/edit/", second | {"data_terms": "Terms of the second."})
    assert refused.status_code == 422
    assert errors_of(refused) == {
        "description": [
            "Somebody changed this after you opened the page. It is now “Text of the first.”. Save again to replace it."
        ]
    }
    assert Edition.objects.get().description == "Text of the first."
    agreed = second | {"data_terms": "Terms of the second.", "description": "Text of the first."}
    assert client.post("/editions/mine/edit/", agreed).status_code == 302
    again = second | {"description": "Mine.", "state_seen": state_in(refused)}
    told = client.post("/editions/mine/edit/", again)
    assert list(errors_of(told)) == ["data_terms"], "which changed since"
    assert client.post("/editions/mine/edit/", again | {"state_seen": state_in(told)}).status_code == 302
    assert (Edition.objects.get().description, Edition.objects.get().data_terms) == ("Mine.", "")


def test_recipe_is_handed_out_as_its_organizer_wrote_it_under_the_title_of_the_edition(client, organizer):
    make_edition(name="shipped")
    assert client.get("/editions/shipped/recipe/").content.decode() == RECIPE
    own = RECIPE.replace('title = "VoicePrivacy 2022"', "title = 'Ünser eigenes'  # kept")
    edition = make_edition(organizers=[organizer], name="own", title="Ünser eigenes", recipe_text=own)
    hashed = recipe_hash(edition)
    services.change_edition(edition=edition, by=organizer, title='The "new" \\ title')
    edition = Edition.objects.get(name="own")
    response = client.get("/editions/own/recipe/")
    assert response.content.decode() == own.replace("'Ünser eigenes'", r'"The \"new\" \\ title"')
    assert response["Content-Disposition"] == 'attachment; filename="own.toml"'
    assert edition.recipe.title == edition.title
    assert (edition.recipe_text, recipe_hash(edition)) == (own, hashed)  # its results are still of this recipe
    page = client.get("/editions/own/").content.decode()
    assert ("Custom recipe" in page, "Ünser eigenes" in page) == (True, False)


def test_title_of_another_edition_is_refused_wherever_it_is_changed(client, organizer):
    make_edition(name="first", title="Challenge of tones")
    edition = make_edition(organizers=[organizer], name="second", title="Second")
    said = "The edition first has this title. Choose another one, such as with its year."
    with pytest.raises(ValidationError, match=said):
        services.change_edition(edition=edition, by=organizer, title="Challenge of Tones")
    with pytest.raises(ValidationError, match=said):
        services.copy_edition(edition=edition, by=organizer, name="third", title="Challenge of Tones")
    services.change_edition(edition=edition, by=organizer, title="second")  # its own in other letters


def test_title_of_an_edition_that_is_not_seen_is_free_until_it_is_listed(client, organizer):
    first = make_edition(name="first", title="Challenge of tones", is_listed=False)
    assert client.post("/editions/new/", filled_in(organizer, title=first.title)).status_code == 302
    twin = Edition.objects.exclude(name="first").get()
    services.change_edition(edition=twin, by=organizer, is_listed=True)
    with pytest.raises(ValidationError, match=f"The edition {twin.name} has this title."):
        services.change_edition(edition=first, by=first.organizers.get(), is_listed=True)


def test_recipe_broken_by_hand_is_a_sentence_not_a_problem(client, organizer):
    make_edition(organizers=[organizer], name="broken", recipe_text="x = ")
    page = client.get("/editions/broken/")
    assert page.status_code == 200
    assert "The recipe of this edition cannot be read" in page.content.decode()
    assert client.get("/editions/broken/edit/").status_code == 200


def trail(client, edition, query=""):
    rows = client.get(f"/editions/{edition.name}/audit/{query}").context["rows"]
    return sorted(event.action for event, _, _ in rows)


def test_audit_trail_holds_the_edition_and_nothing_else(client, organizer):
    edition, other = make_edition(organizers=[organizer]), make_edition(organizers=[organizer])
    for each in (edition, other):
        team = make_team(each, owner=make_user(name="Ada"))
        submission = make_submission(make_team_system(team))
        upload = each.uploads.create(team=team, file_name="a.zip", size=1, expires_at=timezone.now())
        for subject in (each, team, submission, submission.system, upload):
            audit.record(f"{subject._meta.model_name}.{each.name}", subject, actor=organizer)
    kinds = ["edition", "submission", "system", "team", "upload"]
    assert trail(client, edition) == [f"{kind}.{edition.name}" for kind in kinds]
    first, second = edition.teams.get(), make_team(edition)
    freeze_members(team=second, now=timezone.now())
    assert trail(client, edition, f"?team={first.pk}") == [f"{kind}.{edition.name}" for kind in kinds[1:]]
    assert trail(client, edition, f"?team={second.pk}") == ["team.members_frozen"]
    for unknown in (other.teams.get().pk, "x", 10**30):
        assert client.get(f"/editions/{edition.name}/audit/?team={unknown}").status_code == 404


def test_audit_trail_says_what_changed_from_what_to_what(client, organizer):
    deadline = datetime(2026, 12, 1, 12, 0, 0, 123456, tzinfo=UTC)
    edition = make_edition(organizers=[organizer], name="mine", submissions_close_at=deadline)
    later, text = deadline + timedelta(days=1), "word " * 100
    fields = {"submissions_close_at": later, "late_until": later + timedelta(days=1)}
    fields |= {"is_listed": False, "description": text}
    services.change_edition(edition=edition, by=organizer, **fields)
    audit.record("board.frozen", edition, actor=organizer, as_of=deadline.isoformat())
    said = [details for _, _, details in client.get("/editions/mine/audit/").context["rows"]]
    assert said == [
        "as of: 2026-12-01 12:00 UTC",
        "description: none → a text of 500 characters; is listed: yes → no; "
        "late until: none → 2026-12-03 12:00 UTC; "
        "submissions close at: 2026-12-01 12:00 UTC → 2026-12-02 12:00 UTC",
    ]


def test_audit_trail_is_handed_out_as_csv_without_formulas(client, organizer):
    edition = make_edition(organizers=[organizer], title="=1+1")
    audit.record("edition.changed", edition, actor=organizer, fields=["title", "name"], is_late=False)
    freeze_members(team=make_team(edition, owner=make_user(name="Ada")), now=timezone.now())
    rows = list(csv.reader(client.get(f"/editions/{edition.name}/audit.csv").content.decode().splitlines()))
    assert rows[0] == ["time", "person", "action", "subject", "kind", "details"]
    assert rows[1][1:3] + rows[1][4:] == ["the portal", "team.members_frozen", "team", "members: Ada"]
    assert rows[2][1:] == [str(organizer), "edition.changed", "'=1+1", "edition", "fields: title, name; is late: no"]


@pytest.mark.parametrize(("field", "value"), [("name", "two words"), ("largest_archive_bytes", 1025 * 10**9)])
def test_page_api_and_services_refuse_the_same_values(client, organizer, field, value):
    sent = {field: value} if field != "largest_archive_bytes" else {"largest_archive_gb": value / 10**9}
    make_edition(name="mine", organizers=[organizer])
    assert set(errors_of(client.post("/editions/mine/edit/", filled_in(organizer, **sent)))) == set(sent)
    given = {"title": "Autumn", "name": "autumn", "protocol": "2022", field: value}
    answer = Api(organizer, ["organize"]).post("editions/", given)
    assert (answer.status_code, {one["field"] for one in answer.json()["errors"]}) == (400, {field})
    with pytest.raises(ValidationError) as refused:
        services.create_edition(by=organizer, organizers=[organizer], **given)
    assert set(refused.value.message_dict) == {field}
    assert [one.name for one in Edition.objects.all()] == ["mine"]
