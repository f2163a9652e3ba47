"""Editions and teams in a browser: an organizer makes an edition, a team registers, invites, joins and is approved."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from portal.challenges.models import Edition
from portal.core import audit
from portal.teams import services
from portal.teams.models import Team
from tests.browsing import too_long, wait_until
from tests.portal.editions.test_editions import RECIPE, recipe_for, sets_for
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_organizer,
    make_team,
    make_user,
)

LONG = "Interdisciplinary Laboratory of Speaker De-Identification and Pseudonymisation"


@pytest.fixture
def organizer():
    return make_organizer(name="Olga Organizer")


@pytest.fixture
def edition(organizer):
    now = timezone.now()
    return make_edition(
        make_corpus(is_synthetic=True),
        organizers=[organizer],
        name="vpc",
        title="VoicePrivacy Challenge of Tones",
        recipe_text=RECIPE.replace("[data_sets]", f"[data_sets]\n{sets_for('tones')}"),
        description="A small challenge.\n\nIt has tones instead of voices.",
        registration_closes_at=now + timedelta(days=20, hours=2),
        submissions_open_at=now + timedelta(days=1),
        submissions_close_at=now + timedelta(days=30),
        late_until=now + timedelta(days=32),
    )


def test_list_and_page_of_an_edition_pass_the_check_for_everybody(new_page, edition, organizer, check_page):
    make_edition(title="Voices of 2020", protocol="2020", published_at=timezone.now())
    make_edition(title="Two tracks", protocol="2026", track="track2", organizers=[organizer], is_listed=False)
    for name, person in (("visitor", None), ("organizer", organizer)):
        page = new_page(person)
        page.goto("/editions/")
        check_page(page, f"editions-{name}")
        page.get_by_role("link", name="VoicePrivacy Challenge of Tones").click()
        expect(page.locator(".ribbon")).to_have_text("synthetic speech")
        check_page(page, f"edition-{name}")


def test_form_of_an_edition_tells_all_problems_and_saves(new_page, organizer, check_page):
    corpus = make_corpus(speakers=4)
    page = new_page(organizer)
    page.goto("/editions/new/")
    page.get_by_role("button", name="Continue").click()
    check_page(page, "challenge-proposed")
    page.get_by_role("button", name="Show the rules").click()
    check_page(page, "challenge-rules")
    assert too_long(page) == {}
    page.get_by_role("link", name="Change speech or rules").click()
    page.get_by_label("My own recipe (TOML)").check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Custom recipe as text").fill("x = ")
    page.get_by_label("Deadline (UTC)").fill("2026-12-01T12:00")
    page.get_by_label("Submissions open (UTC)").fill("2026-12-02T12:00")
    page.get_by_role("button", name="Create the challenge").click()
    summary = page.locator(".error-summary li")
    expect(summary).to_have_count(3)  # title, recipe, deadline
    check_page(page, "challenge-errors")
    page.get_by_label("Title").fill("Tones")
    text = recipe_for("tones").replace("utterances = 4", "utterances = 8")
    recipe = {"name": "tones.toml", "mimeType": "application/toml", "buffer": text.encode()}
    page.get_by_label("Custom recipe as a file").set_input_files(recipe)
    page.get_by_label("Submissions open (UTC)").fill("2026-11-02T12:00")
    page.get_by_role("button", name="Create the challenge").click()
    page.wait_for_url("**/editions/tones/")
    edition = Edition.objects.get()
    assert (edition.recipe.title, edition.corpus) == ("Tones", corpus)
    assert edition.submissions_close_at.isoformat() == "2026-12-01T12:00:00+00:00"


def test_teams_and_audit_trail_pass_the_check(new_page, organizer, edition, check_page):
    page = new_page(organizer)
    owner = make_user(name="Owen Owner")
    make_team(edition, owner=owner, name=LONG, affiliation=LONG, members=[make_user()])
    waiting = make_team(edition, name="Bats", number=None, state="waiting")
    services.decline_team(team=make_team(edition, name="Cats"), by=organizer, now=timezone.now(), note="Twice")
    for _ in range(60):
        audit.record("edition.changed", edition, actor=organizer, fields=["registration_closes_at", "title"])
    page.goto("/editions/vpc/teams/")
    check_page(page, "teams")
    page.get_by_role("link", name="Decide about Bats").click()
    page.get_by_label("Note to the team").fill("Welcome!")
    check_page(page, "team-decide")
    page.get_by_role("button", name="Approve").click()
    page.wait_for_url("**/editions/vpc/teams/")
    waiting.refresh_from_db()
    assert (waiting.state, waiting.label) == ("approved", "T04")
    page.goto("/editions/vpc/audit/")
    check_page(page, "audit")
    page.get_by_label("Team").select_option(label="T04 Bats")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_page_of_a_team_passes_the_check_for_everybody(new_page, organizer, edition, check_page):
    owner, member = make_user(name="Owen Owner"), make_user(name="Mia Member")
    team = make_team(edition, owner=owner, members=[member], name="Bats", state_note="See the rules, section 2.")
    services.invite_member(
        team=team, email="a-very-long-address-of-somebody@institute.university.example", by=owner, now=timezone.now()
    )
    pages = {"owner": new_page(owner), "member": new_page(member), "organizer": new_page(organizer)}
    for state in ("waiting", "approved", "declined"):
        Team.objects.filter(pk=team.pk).update(state=state)
        for name, page in pages.items():
            if state == "approved" or name == "owner":
                page.goto(team.get_absolute_url())
                check_page(page, f"team-{state}-{name}")


def test_team_registers_invites_joins_and_hands_over(new_page, organizer, edition, check_page, mailoutbox):
    owner, invited = make_user(name="Owen Owner", email="owen@uni.example"), make_user(email="nia@uni.example")
    page = new_page(owner)
    page.goto("/editions/vpc/")
    page.get_by_role("link", name="Register a team").click()
    check_page(page, "team-register")
    expect(page.get_by_label("Contact person", exact=True)).to_have_value("Owen Owner")
    page.get_by_label("Name of the team").fill("Bats")
    page.get_by_role("button", name="Register the team").click()
    expect(page.locator(".error-summary li")).to_have_count(3)
    page.get_by_label("Affiliation").fill("University of Somewhere")
    page.get_by_label("Country").select_option("FR")
    page.get_by_label("academic: university or public research", exact=True).check()
    page.get_by_role("button", name="Register the team").click()
    page.get_by_label("E-mail address").fill("nia@uni.example")
    page.get_by_role("button", name="Invite", exact=True).click()
    expect(page.get_by_text("give this link to nia@uni.example yourself")).to_be_visible()
    check_page(page, "team-invited")
    link = re.search(r"/teams/invitations/\S+", mailoutbox[-1].body)[0]

    visitor = new_page()
    visitor.goto(link)
    check_page(visitor, "invitation-visitor")
    page.goto(link)
    expect(page.locator("main")).to_contain_text("This invitation is for nia@uni.example")
    theirs = new_page(invited)
    theirs.goto(link)
    check_page(theirs, "invitation")
    theirs.get_by_role("button", name="Join the team").click()
    theirs.wait_for_url("**/teams/*/")
    expect(theirs.get_by_role("row")).to_have_count(3)

    page = new_page(owner)
    page.goto(Team.objects.get().get_absolute_url())
    page.get_by_role("link", name="Hand over to").click()
    check_page(page, "team-confirm")
    page.get_by_role("button", name="Hand over").click()
    page.get_by_text("owns the team now.").wait_for()
    assert Team.objects.get().memberships.get(role="owner").user == invited
    expect(page.get_by_role("link", name="Leave the team")).to_be_visible()


def test_team_pages_work_without_script(new_page, organizer, edition):
    owner = make_user()
    team = make_team(edition, owner=owner, members=[make_user(name="Mia Member")])
    page = new_page(owner, java_script_enabled=False)
    page.goto(team.get_absolute_url())
    page.get_by_role("link", name="Remove Mia Member").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.locator("main")).to_contain_text("Mia Member does not belong to the team any more.")
    assert team.memberships.count() == 1


def test_what_was_written_is_not_lost_without_a_question(new_page, edition, organizer):
    page = new_page(organizer)
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    page.goto("/editions/vpc/edit/")
    page.click("[name=description]")
    page.keyboard.type("Written. ")
    page.evaluate("location.reload()")
    wait_until(lambda: asked, "the question")
    assert (asked, "Written. " in page.input_value("[name=description]")) == (["beforeunload"], True)
    page.click("button:text-is('Save')")
    page.wait_for_url("**/editions/vpc/")
    page.goto("/editions/vpc/edit/")
    page.reload()
    assert asked == ["beforeunload"], "nothing was written"
