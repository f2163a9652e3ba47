"""Editions and teams in a browser: an organizer makes an edition, a team registers, invites, joins and is approved."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from portal.teams.models import Team
from tests.browsing import wait_until
from tests.portal.editions.test_editions import RECIPE, sets_for
from tests.portal.factories import make_corpus, make_edition, make_organizer, make_user

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
