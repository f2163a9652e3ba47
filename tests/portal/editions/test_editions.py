"""Editions: who sees them, what cannot be saved, what the first submission fixes, copies, and the audit log."""

import csv
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from evaluation.app.objective_results.services import recipe_hash
from evaluation.protocols.recipes import FOLDER, parse_recipe
from portal.challenges import services
from portal.challenges.models import Edition
from portal.challenges.rules import read_recipe_text
from portal.core import audit
from portal.core.models import AuditEvent
from portal.jobs.models import Job
from portal.jobs.services import request_cancel, run_again
from portal.teams.services import decline_team, freeze_members
from tests.portal.api.calls import Api
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_job,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
    make_user,
    recipe_of,
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


def test_problems_of_a_recipe_file_stand_at_the_file_and_its_text_is_kept(client, organizer):
    text = RECIPE.replace('title = "VoicePrivacy 2022"', "").replace('policy = "cumulative"', 'policy = "x"')
    file = SimpleUploadedFile("own.toml", text.encode())
    response = client.post("/editions/new/", filled_in(organizer, protocol="own", recipe_file=file))
    errors = errors_of(response)
    assert set(errors) == {"recipe_file"}
    assert [sum(part in one for one in errors["recipe_file"]) for part in ("“title”", "found “x”")] == [1, 1]
    assert response.context["form"]["recipe_text"].value() == text


def test_organizer_is_warned_of_ranked_numbers_that_no_required_part_ensures(client, organizer):
    edition = make_edition(make_corpus(), organizers=[organizer], name="mine", protocol="2022")
    warning = "An accepted archive may lack what the ranking needs"
    assert warning not in client.get("/editions/mine/").content.decode()
    Edition.objects.update(scores_required=False)
    page = client.get("/editions/mine/").content.decode()
    assert warning in page
    assert "Score files are not required, but the rank rests on EER (Kaldi) from these." in page
    assert "Anonymised recordings are not required" not in page
    Edition.objects.update(audio_required=False)
    page = client.get("/editions/mine/").content.decode()
    assert "Anonymised recordings are not required, but the rank rests on Pitch correlation ρF0 from these." in page
    owner = make_user()
    make_team(edition, owner=owner)
    client.force_login(owner)
    assert warning not in client.get("/editions/mine/").content.decode()


def test_score_files_are_asked_for_only_where_teams_evaluate(client, organizer):
    corpus = make_corpus(speakers=4)
    for by, is_asked in (("portal", False), ("teams", True)):
        edition = make_edition(corpus, organizers=[organizer], recipe_text=recipe_of(corpus, by), scores_required=True)
        address = f"/editions/{edition.name}/edit/"
        assert ("Score files are required" in client.get(address).content.decode()) is is_asked
        sent = filled_in(organizer, name=edition.name, protocol="own", recipe_text=edition.recipe_text)
        sent["title"] = edition.title
        sent |= {"corpus": corpus.name}
        assert client.post(address, sent | {"scores_required": ""}).status_code == 302
        edition.refresh_from_db()
        assert edition.scores_required is not is_asked


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
    assert errors_of(response)["name"] == ["The address of new is taken. Choose another name."]


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


def test_copied_recipe_says_what_the_original_ranks_by(client, organizer):
    edition = make_edition(organizers=[organizer], name="mine", leaderboard_policy={"late": "ranked"})
    client.post("/editions/mine/copy/", {"name": "mine-low", "title": "Lower"})
    copied = Edition.objects.get(name="mine-low")
    assert (copied.leaderboard_policy, copied.recipe.track.ranking.late) == ({}, "ranked")
    assert copied.recipe.data_sets == edition.recipe.data_sets


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


def test_corpus_that_grew_does_not_block_other_changes(client, organizer):
    corpus = make_corpus()
    edition = make_edition(corpus, organizers=[organizer], name="mine", recipe_text=recipe_for("tones"))
    make_submission(make_team_system(make_team(edition)))
    enrolment = corpus.data_sets.get(name="tones_enrolls")
    enrolment.utterances.add(*corpus.utterances.all())
    assert client.post("/editions/mine/edit/", filled_in(organizer, title="Renamed")).status_code == 302
    edition.refresh_from_db()
    assert (edition.title, edition.corpus) == ("Renamed", corpus)


def test_form_keeps_what_is_not_changed(client, organizer):
    edition = make_edition(make_corpus(), organizers=[organizer], name="mine", recipe_text=recipe_for("tones"))
    shown = client.get("/editions/mine/edit/").context["form"]
    sent = {field.html_name: field.value() for field in shown if field.value() not in (None, False)}
    sent["corpus"] = edition.corpus.name
    before = Edition.objects.values().get()
    assert client.post("/editions/mine/edit/", sent).status_code == 302
    assert Edition.objects.values().get() == before | {"protocol": ""}
    assert AuditEvent.objects.get(action="edition.changed").data == {"changes": {"protocol": [before["protocol"], ""]}}


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


@pytest.mark.parametrize("state", ["", "title:00 unknown:11"])
def test_form_without_marks_of_its_values_is_taken_as_it_is(client, organizer, state):
    make_edition(make_corpus(), organizers=[organizer], name="mine", recipe_text=recipe_for("tones"))
    form = client.get("/editions/mine/edit/").context["form"]
    sent = {field.html_name: field.value() for field in form if field.value() not in (None, False)}
    sent |= {"corpus": form.initial["corpus"].name, "state_seen": state}
    assert client.post("/editions/mine/edit/", sent).status_code == 302


def test_unlisted_edition_is_seen_by_its_organizers_and_teams_only(client):
    organizer, member = make_organizer(), make_user()
    edition = make_edition(organizers=[organizer], is_listed=False, name="hidden", title="Hidden")
    make_team(edition, owner=member)
    for person, status in ((organizer, 200), (member, 200), (make_organizer(), 404), (make_user(), 404)):
        client.force_login(person)
        assert client.get("/editions/hidden/").status_code == status
        assert client.get("/editions/hidden/recipe/").status_code == status
        assert ("Hidden" in client.get("/editions/").content.decode()) == (status == 200)
        told = client.get("/editions/hidden/").content.decode().count("only organizers and teams see it")
        assert told == (2 if person == organizer else 1 if person == member else 0)
    client.logout()
    assert client.get("/editions/hidden/").url == f"{reverse('account_login')}?next=/editions/hidden/&missing=1"
    assert "Hidden" not in client.get("/editions/").content.decode()


def test_recipe_is_handed_out_as_its_organizer_wrote_it_under_the_title_of_the_edition(client, organizer):
    make_edition(name="shipped")
    assert client.get("/editions/shipped/recipe/").content.decode() == RECIPE
    own = RECIPE.replace('title = "VoicePrivacy 2022"', "title = 'Ünser eigenes'  # kept")
    edition = make_edition(organizers=[organizer], name="own", title="Ünser eigenes", recipe_text=own)
    hashed = recipe_hash(edition)
    services.rename_edition(thing=edition, by=organizer, title='The "new" \\ title')
    edition = Edition.objects.get(name="own")
    response = client.get("/editions/own/recipe/")
    assert response.content.decode() == own.replace("'Ünser eigenes'", r'"The \"new\" \\ title"')
    assert response["Content-Disposition"] == 'attachment; filename="own.toml"'
    assert edition.recipe.title == edition.title
    assert (edition.recipe_text, recipe_hash(edition)) == (own, hashed)  # its results are still of this recipe
    page = client.get("/editions/own/").content.decode()
    assert ("Custom recipe" in page, "Ünser eigenes" in page) == (True, False)


def test_edition_whose_title_reads_as_another_ones_is_refused(client, organizer):
    make_edition(name="first", title="Challenge of tones")
    page = client.post("/editions/new/", filled_in(organizer, title="challenge  OF tone\u017f"))
    assert (page.status_code, Edition.objects.count()) == (422, 1)
    assert page.context["form"].errors["title"] == [
        "The edition first has this title. Choose another one, such as with its year."
    ]


def test_title_of_another_edition_is_refused_wherever_it_is_changed(client, organizer):
    make_edition(name="first", title="Challenge of tones")
    edition = make_edition(organizers=[organizer], name="second", title="Second")
    said = "The edition first has this title. Choose another one, such as with its year."
    with pytest.raises(ValidationError, match=said):
        services.change_edition(edition=edition, by=organizer, title="Challenge of Tones")
    with pytest.raises(ValidationError, match=said):
        services.copy_edition(edition=edition, by=organizer, name="third", title="Challenge of Tones")
    assert (
        said in client.post("/manage/editions/second/", {"title": "Challenge of Tones"}, follow=True).content.decode()
    )
    assert client.post("/manage/editions/second/", {"title": "second"}).status_code == 302  # its own in other letters


@pytest.mark.parametrize(
    "hidden", [{"is_listed": False}, {"archived_at": timezone.now()}], ids=["unlisted", "archived"]
)
def test_title_of_an_edition_that_is_not_seen_is_free_until_it_is_listed(client, organizer, hidden):
    first = make_edition(**{"name": "first", "title": "Challenge of tones"} | hidden)
    assert client.post("/editions/new/", filled_in(organizer, title=first.title)).status_code == 302
    twin = Edition.objects.exclude(name="first").get()
    services.change_edition(edition=twin, by=organizer, is_listed=True)
    if "is_listed" in hidden:
        with pytest.raises(ValidationError, match=f"The edition {twin.name} has this title."):
            services.change_edition(edition=first, by=first.organizers.get(), is_listed=True)


def test_copies_have_names_of_their_own_in_form_and_recipe(client, organizer):
    edition = make_edition(make_corpus(), organizers=[organizer], name="mine", recipe_text=recipe_for("tones"))
    services.change_edition(
        edition=edition,
        by=organizer,
        recipe_text=edition.recipe_text.replace(f'edition = "{edition.recipe.edition}"', 'edition = "mine"', 1),
    )
    for name in ("mine-copy", "mine-copy-2", "mine-copy-3"):
        form = client.get("/editions/mine/copy/").context["form"]
        assert form["name"].value() == name
        assert client.post("/editions/mine/copy/", {one.html_name: one.value() for one in form}).status_code == 302
        assert Edition.objects.get(name=name).recipe.edition == name


def test_recipe_that_names_its_edition_follows_another_short_name(client, organizer):
    text = recipe_for("tones").replace(
        f'edition = "{read_recipe_text(recipe_for("tones"), file="x").edition}"', 'edition = "autum"'
    )
    edition = make_edition(make_corpus(), organizers=[organizer], name="autum", recipe_text=text)
    services.change_edition(edition=edition, by=organizer, name="autumn")
    renamed = Edition.objects.get(name="autumn")
    assert (renamed.recipe.edition, renamed.recipe_text) == ("autumn", text.replace('"autum"', '"autumn"', 1))
    other = make_edition(make_corpus("others"), organizers=[organizer], name="mine", recipe_text=text)
    services.change_edition(edition=other, by=organizer, name="ours")
    assert Edition.objects.get(name="ours").recipe_text == text, "it names another one"


def test_recipe_broken_by_hand_is_a_sentence_not_a_problem(client, organizer):
    make_edition(organizers=[organizer], name="broken", recipe_text="x = ")
    page = client.get("/editions/broken/")
    assert page.status_code == 200
    assert "The recipe of this edition cannot be read" in page.content.decode()
    assert client.get("/editions/broken/edit/").status_code == 200


def steps_for(client, user, edition):
    client.logout()
    if user is not None:
        client.force_login(user)
    return [step.title for step in client.get(edition.get_absolute_url()).context["steps"]]


def test_each_visitor_reads_what_to_do_next(client):
    now, organizer, owner = timezone.now(), make_organizer(), make_user()
    edition = make_edition(organizers=[organizer])
    assert steps_for(client, None, edition) == ["Take part"]
    assert steps_for(client, owner, edition) == ["Take part"]
    team = make_team(edition, owner=owner, name="Bats", state="waiting", number=None)
    assert steps_for(client, owner, edition) == ["Your team “Bats” waits for approval"]
    assert steps_for(client, organizer, edition) == ["1 team waits for approval"]
    decline_team(team=team, by=organizer, now=now, note="Twice here")
    assert steps_for(client, owner, edition) == ["Your team “Bats” is declined"]  # it asks again there
    team.state, team.number = "approved", 1
    team.save()
    assert steps_for(client, owner, edition) == ["Submit an archive"]
    Edition.objects.update(corpus=make_corpus(speakers=1, utterances=1), shares_data=True)
    assert steps_for(client, owner, edition) == ["Get the data", "Submit an archive"]
    make_team_system(team)
    assert steps_for(client, owner, edition) == ["Submit a further version or system", "Get the data"]
    team.data_acceptances.create(edition=edition, user=owner, text="Terms", accepted_at=now)
    assert steps_for(client, owner, edition) == ["Submit a further version or system"]
    member = make_user()
    team.memberships.create(user=member)
    assert steps_for(client, member, edition) == ["Submit a further version or system", "Get the data"]
    Edition.objects.update(submissions_open_at=now + timedelta(days=1))
    assert steps_for(client, owner, edition) == ["Your team “Bats” takes part as T01"]
    Edition.objects.update(submissions_open_at=None, submissions_close_at=now, registration_closes_at=now)
    assert steps_for(client, owner, edition) == ["Submissions are closed"]
    assert steps_for(client, make_user(), edition) == ["No team can register now"]
    Edition.objects.update(is_listed=False)
    assert steps_for(client, organizer, edition) == ["List the edition"]
    for shares, words in ((True, "can"), (False, "cannot")):
        Edition.objects.update(shares_data=shares)
        text = f"Approved teams {words} download the speech of the corpus; the same page decides it."
        assert text in client.get(edition.get_absolute_url()).context["steps"][0].text
        assert text in client.get("/").content.decode()


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


def test_audit_trail_holds_what_people_do_to_the_jobs_of_an_edition(client, organizer):
    edition, other = make_edition(organizers=[organizer]), make_edition(organizers=[organizer])
    submissions = [
        make_submission(make_team_system(make_team(each)), job=make_job(kind="intake")) for each in (edition, other)
    ]
    for submission in submissions:
        request_cancel(submission.job, by=organizer)
    run_again(Job.objects.get(pk=submissions[0].job_id), by=organizer)
    assert trail(client, edition) == ["job.cancelled", "job.run_again"]
    assert trail(client, other, f"?team={other.teams.get().pk}") == ["job.cancelled"]


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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", "Hid\u200bden"),
        ("name", "two words"),
        ("description", "x" * 10_001),
        ("submissions_per_team", 0),
        ("largest_archive_bytes", 1025 * 10**9),
    ],
)
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
