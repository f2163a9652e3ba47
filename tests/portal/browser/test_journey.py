"""The whole journey in a browser: from an empty portal to a published leaderboard, by real processes and mails.

An organizer imports a corpus and makes an edition; a team signs up, invites, is approved, uploads a faulty archive,
reads its report, sends the corrected recordings only, and compares its numbers; the ranking is published and a visitor
reads it. Web server, worker and scheduler are those of `manage.py serve`.
"""

import re

import pytest
from playwright.sync_api import expect

from portal.submissions.models import Submission
from tests.browsing import WIDTHS
from tests.portal.browser.journey import copy_speech, fill, make_archives, recipe_text
from tests.portal.factories import make_organizer

pytestmark = [
    pytest.mark.slow,  # a whole challenge in a browser
    pytest.mark.processes,
]

PASSWORD = "a long password"
OWNER, MEMBER = "olive@uni.example", "mina@uni.example"
EDITION = "/editions/voices/"
EVALUATION_MS = 300_000
CAUSES = (
    "Missing utterances",
    "The original itself, not anonymised",
    "More than one channel",
    "Silent",
    "Empty",
    "The same speech as another utterance",
)


@pytest.fixture
def imports(tmp_path):
    """A folder from which organizers may import, with a corpus in it."""
    copy_speech(tmp_path / "corpora" / "voices")
    return tmp_path / "corpora"


@pytest.mark.parametrize("width", WIDTHS)
def test_journey_from_an_empty_portal_to_a_published_leaderboard(width, open_page, look, portal, imports, tmp_path):
    archives = make_archives(tmp_path, imports / "voices")
    organizer, owner, member, visitor = (open_page(width) for _ in range(4))
    make_edition(organizer, look, make_organizer(name="Olga Organizer"), imports)
    register_team(owner, look, portal)
    join_team(member, look, portal)
    approve_team(organizer, look)
    upload_faulty_archive(owner, look, portal, archives)
    upload_correction(owner, look, archives)
    audio = read_results(owner, look, portal)
    assert visitor.goto(f"{EDITION}leaderboard/").url.endswith(
        f"/log-in/?next={EDITION}leaderboard/&missing=1"
    )  # not published yet
    publish(organizer, look, portal)
    read_leaderboard(visitor, look)
    find_nothing_else(visitor, audio)
    page_of_the_team = member.goto(Submission.objects.get(version=1).get_absolute_url())
    assert page_of_the_team.status == 200


def make_edition(page, look, organizer, imports):
    page.goto("/log-in/")
    fill(page, "Log in", login=organizer.email, password=PASSWORD)
    page.get_by_role("heading", name="Welcome, Olga Organizer").wait_for()
    page.goto("/corpora/import/")
    look(page, "import")
    page.get_by_label(str(imports / "voices")).check()
    page.get_by_label("Name of the corpus").fill("voices")
    page.get_by_label("Synthetic speech").check()
    page.get_by_role("button", name="Start the import").click()
    page.get_by_role("heading", name="Result").wait_for(timeout=EVALUATION_MS)
    look(page, "imported")
    page.goto("/editions/")
    page.locator('main a[href="/editions/new/"]').click()
    page.get_by_label("My own recipe (TOML)").check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Title").fill("Challenge of Voices")
    page.locator("[name=description]").fill("A small challenge on synthetic speech.")
    page.get_by_text("More about name, dates and people").click()
    page.get_by_label("Short name").fill("voices")
    recipe = {"name": "voices.toml", "mimeType": "application/toml", "buffer": recipe_text().encode()}
    page.get_by_label("Custom recipe as a file").set_input_files(recipe)
    page.get_by_label("A system description (PDF) is required").check()
    page.get_by_label("Listed").check()
    look(page, "new-edition")
    page.get_by_role("button", name="Create the challenge").click()
    page.wait_for_url(f"**{EDITION}")
    look(page, "edition-organizer")


def register_team(page, look, portal):
    """Sign up, confirm the address by mail, register, invite a member by mail."""
    page.goto(EDITION)
    look(page, "edition-visitor")
    page.get_by_role("link", name="Log in or make an account").click()
    page.get_by_role("link", name="Sign up").first.click()
    look(page, "sign-up")
    fill(page, "Sign up", name="Olive Owner", email=OWNER, password1=PASSWORD)
    page.goto(portal.link_to(OWNER, "Confirm your e-mail address", "/sign-up/confirm/"))
    look(page, "confirm")
    page.get_by_role("button", name="Yes, it is mine").click()
    page.wait_for_url(f"**{EDITION}register/")
    page.get_by_label("Name of the team").fill("Quiet Voices")
    page.get_by_label("Affiliation").fill("University of Somewhere")
    page.get_by_label("Country").select_option("FR")
    page.get_by_label("academic: university or public research", exact=True).check()
    look(page, "register")
    page.get_by_role("button", name="Register the team").click()
    page.get_by_label("E-mail address").fill(MEMBER)
    page.get_by_role("button", name="Invite", exact=True).click()
    page.get_by_text(f"give this link to {MEMBER} yourself").wait_for()
    look(page, "team-invited")


def join_team(page, look, portal):
    invitation = portal.link_to(MEMBER, "invitation to the team “Quiet Voices”", "/teams/invitations/")
    page.goto(invitation)
    look(page, "invitation")
    page.get_by_role("link", name="Create an account").click()
    # The link came to her address, so the address needs no other mail.
    fill(page, "Sign up", name="Mina Member", email=MEMBER, password1=PASSWORD)
    page.wait_for_url(f"**{invitation}")
    page.get_by_role("button", name="Join the team").click()
    page.wait_for_url("**/teams/*/")
    page.get_by_text("Olive Owner").first.wait_for()
    look(page, "joined")


def approve_team(page, look):
    page.goto("/")
    page.get_by_role("link", name="Quiet Voices").wait_for()
    look(page, "home-organizer")
    page.goto(EDITION)
    page.get_by_role("link", name="Look at the teams").click()
    look(page, "teams")
    page.get_by_role("link", name="Decide about Quiet Voices").click()
    look(page, "decide")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("T01").first.wait_for()


def upload(page, file):
    page.set_input_files("#file", file)
    page.click("#send")
    page.wait_for_url("**/submissions/*/")


def upload_faulty_archive(page, look, portal, archives):
    portal.mail_to(OWNER, "your team “Quiet Voices” takes part")
    page.goto(EDITION)
    page.get_by_role("link", name="Submit an archive").first.click()
    look(page, "upload")
    page.fill("#title", "Wide range")
    upload(page, archives.faulty)
    page.get_by_role("heading", name="Report").wait_for(timeout=EVALUATION_MS)
    for cause in CAUSES:
        expect(page.locator("main")).to_contain_text(cause)
    expect(page.locator("main")).to_contain_text("6 errors keep this archive from being evaluated.")
    look(page, "refused")
    assert "6 errors" in portal.mail_to(OWNER, "T01-p1 version 1 was refused")


def upload_correction(page, look, archives):
    page.get_by_role("link", name="Submit a corrected archive").click()
    expect(page.locator("input[name=system]:checked")).to_have_attribute("value", "voices-t01-p1")
    upload(page, archives.correction)
    # The page renews itself until the evaluation has ended.
    page.get_by_role("link", name="See the results").wait_for(timeout=EVALUATION_MS)
    page.wait_for_load_state()
    expect(page.locator("main")).to_contain_text("What the archive did not hold comes from version 1")
    sent = page.locator("td[data-label='From this archive']").all_inner_texts()
    assert sum(map(int, sent)) == archives.corrected
    look(page, "evaluated")
    page.get_by_role("link", name="What differs from version 1").click()
    look(page, "diff")
    page.go_back()


def read_results(page, look, portal):
    """The team's own page of its system; the addresses of a recording that it may hear."""
    assert "1 reported number differs from ours" in portal.mail_to(OWNER, "T01-p1 version 2 has been evaluated")
    page.get_by_role("link", name="See the results").click()
    page.wait_for_url("**/systems/voices-t01-p1/**")
    expect(page.locator("#disagreements strong")).to_contain_text("1 reported number differs from ours")
    expect(page.locator("#disagreements")).to_contain_text("reported 47.5, recomputed")
    look(page, "results")
    curves = page.get_by_role("group", name="DET curves of demo_trials_f")
    curves.scroll_into_view_if_needed()
    assert curves.bounding_box()["width"] > 100
    page.locator("#extremes").click()
    page.locator("details:has(#extremes)").get_by_role("link").first.click()
    page.wait_for_url("**/files/**")
    look(page, "listen")
    audio = page.locator("audio").evaluate_all("players => players.map((player) => player.src)")
    statuses = [page.request.get(address).status for address in audio]
    assert statuses == [200, 200]
    return [page.url, *audio]


def publish(page, look, portal):
    page.goto(EDITION)
    page.get_by_label("Edition").get_by_role("link", name="Leaderboard").click()
    page.get_by_text("preview, not published").wait_for()
    look(page, "board-preview")
    page.get_by_role("link", name="Policy").click()
    page.get_by_label("Minimum EERs of the conditions").fill("15, 60")
    page.get_by_role("button", name="Save as a draft").click()
    page.get_by_role("heading", name="What the draft would change").wait_for()
    look(page, "policy-draft")
    page.get_by_role("button", name="Discard the draft").click()
    page.get_by_role("heading", name="The live policy").wait_for()
    page.goto(f"{EDITION}leaderboard/")
    page.get_by_role("link", name="Publish", exact=True).click()
    look(page, "publish")
    page.get_by_role("button", name="Publish").click()
    page.wait_for_url(f"**{EDITION}leaderboard/")
    portal.mail_to(MEMBER, "the leaderboard is published")


def read_leaderboard(page, look):
    page.goto("/")
    look(page, "home-visitor")
    page.get_by_role("link", name="Leaderboard of Challenge of Voices").click()
    page.wait_for_url(f"**{EDITION}leaderboard/")
    assert "preview" not in page.inner_text("main")
    look(page, "leaderboard")
    page.get_by_role("link", name="T01-p1").first.click()
    page.wait_for_url("**/systems/voices-t01-p1/**")
    expect(page.get_by_role("heading", name="Privacy: speaker verification")).to_be_visible()
    expect(page.locator("#disagreements")).to_have_count(0)
    assert not re.search(r"reported 47\.5|Listen to the extremes", page.inner_text("main"))
    look(page, "system-visitor")


def find_nothing_else(page, addresses):
    """What is between a team and its organizers: reports, files, documents, speech."""
    one, two = Submission.objects.order_by("version")
    pages = [one.get_absolute_url(), f"{one.get_absolute_url()}report.csv", f"{two.get_absolute_url()}diff/{one.pk}/"]
    pages += [f"{two.get_absolute_url()}documents/{document.pk}/" for document in two.documents.all()[:1]]
    for address in [*pages, addresses[0]]:
        answer = page.request.get(address, max_redirects=0)
        assert (answer.status, answer.headers["location"].startswith("/log-in/")) == (302, True), address
    assert [page.request.get(address).status for address in addresses[1:]] == [404, 404]
