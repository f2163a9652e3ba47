"""From a portal without data to a published leaderboard that the portal itself evaluates: no admin page, no TOML.

The first account imports speech, makes a challenge by the form, runs a baseline; a team takes the data with `vp`,
anonymises, packs and submits, and is accepted at the first try. Everything is computed by the worker of `serve`.
"""

import os
import re
import subprocess
import sys

import pytest
from django.conf import settings
from playwright.sync_api import expect

from portal.submissions.models import Submission
from tests.browsing import PATIENCE_S, wait_until, watch_page
from tests.portal.browser.journey import ServedPortal, copy_speech

PASSWORD = "a long password"
OLGA, OLIVE = "olga@uni.example", "olive@uni.example"
EVALUATION_S = 600
NAME = "challenge-of-voices"
EDITION = f"/editions/{NAME}/"


@pytest.fixture
def imports(tmp_path):
    copy_speech(tmp_path / "corpora" / "voices", speakers_of_a_gender=2)
    return tmp_path / "corpora"


@pytest.fixture
def portal(transactional_db, tmp_path, imports):
    served = ServedPortal(tmp_path, imports)
    yield served
    served.end()


@pytest.fixture
def open_page(browser, portal, problems):
    contexts = []

    def open_page():
        context = browser.new_context(base_url=portal.url, viewport={"width": 1280, "height": 800})
        contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE_S)
        page = context.new_page()
        watch_page(page, problems[page], portal.url)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def look(check_page):
    def look(page, name):
        check_page(page, f"from-zero-{name}", widths=[1280], schemes=["light"], with_axe=False)

    return look


def fill(page, button, **fields):
    for name, value in fields.items():
        page.locator(f"[name={name}]").fill(value)
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).click()


def test_stranger_carries_a_challenge_from_nothing_to_its_leaderboard(open_page, look, portal, imports, tmp_path):
    organizer, team, visitor = (open_page() for _ in range(3))
    make_first_account(organizer, look, portal)
    import_speech(organizer, look, imports)
    make_challenge(organizer, look)
    start_baseline(organizer, look)
    register(team, look, portal)
    approve(organizer, look)
    take_part(team, look, portal, tmp_path)
    publish(organizer, look)
    read(visitor, look)


def make_first_account(page, look, portal):
    address = wait_until(lambda: re.search(r"(/first-account/\S+)", portal.program.output()), "the first address")[1]
    page.goto(address)
    look(page, "first-account")
    fill(page, "Make the account", name="Olga Organizer", email=OLGA, password1=PASSWORD)
    page.goto("/")
    look(page, "home")


def import_speech(page, look, imports):
    page.goto("/editions/new/")
    look(page, "start")
    page.get_by_role("link", name="Import a folder of speech").click()
    page.get_by_label(str(imports / "voices")).check()
    page.get_by_label("Name of the corpus").fill("voices")
    page.get_by_label("Synthetic speech").check()
    page.get_by_role("button", name="Start the import").click()
    page.get_by_role("button", name="Continue").wait_for()
    page.get_by_role("heading", name="Import of voices").wait_for(state="detached", timeout=1000 * EVALUATION_S)


def make_challenge(page, look):
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Title").fill("Challenge of Voices")
    look(page, "challenge")
    page.get_by_label("Approved teams download the speech of the corpus here").check()
    page.get_by_label("Listed").check()
    page.get_by_role("button", name="Make the challenge").click()
    page.get_by_role("heading", name="Challenge of Voices", level=1).wait_for()
    look(page, "edition")


def start_baseline(page, look):
    page.get_by_role("link", name="Run a baseline").click()
    look(page, "baseline")
    page.get_by_role("button", name="Run an anonymiser").click()
    page.wait_for_url(f"**/systems/{NAME}-b2/")
    look(page, "baseline-started")


def register(page, look, portal):
    """Sign up, confirm the address by mail, register a team."""
    page.goto("/")
    look(page, "visitor")
    page.goto(EDITION)
    page.get_by_role("link", name="Log in or make an account").click()
    page.get_by_role("link", name="Sign up").first.click()
    fill(page, "Sign up", name="Olive Owner", email=OLIVE, password1=PASSWORD)
    page.goto(portal.link_to(OLIVE, "Confirm your e-mail address", "/sign-up/confirm/"))
    page.get_by_role("button", name="Yes, it is mine").click()
    page.wait_for_url(f"**{EDITION}register/")
    page.get_by_label("Name of the team").fill("Quiet Voices")
    page.get_by_label("Affiliation").fill("University of Somewhere")
    page.get_by_label("Country").select_option("FR")
    page.get_by_label("academic: university or public research", exact=True).check()
    page.get_by_role("button", name="Register the team").click()
    page.wait_for_url("**/teams/*/")


def approve(page, look):
    page.goto("/")
    look(page, "home-with-team")
    page.goto(f"{EDITION}teams/")
    page.get_by_role("link", name="Decide about Quiet Voices").click()
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("T01").first.wait_for()


def take_part(page, look, portal, folder):
    """Accept the terms, then everything by `vp` as the page of the data says."""
    page.goto("/")
    look(page, "home-team")
    page.goto(f"{EDITION}data/")
    look(page, "terms")
    page.get_by_role("button", name="Accept the terms").click()
    page.get_by_role("heading", name="Files").wait_for()
    look(page, "data")
    page.goto(f"{EDITION}submit/")
    look(page, "submit")
    page.goto("/account/tokens/")
    page.get_by_label("Name").fill("my computer")
    page.get_by_role("button", name="Make the token").click()
    vp = Vp(folder, portal.url, page.locator("code.secret").inner_text())
    vp("data", NAME)
    vp("run", NAME, "--method", "mcadams-2022", "--jobs", "1")
    vp("pack", NAME)
    vp("submit", f"{NAME}/{NAME}.zip", "--edition", NAME, "--title", "Ours")
    assert [one.version for one in Submission.objects.filter(system__team__isnull=False)] == [1]
    evaluated = Submission.objects.filter(state=Submission.State.EVALUATED)
    wait_until(lambda: evaluated.count() == 2, "both systems are evaluated", seconds=EVALUATION_S)
    page.goto("/")
    look(page, "home-evaluated")
    page.goto(Submission.objects.get(system__team__isnull=False).system.get_absolute_url())
    look(page, "system")


class Vp:
    """Runs `vp` in a folder of a team's machine; every command is to end well."""

    def __init__(self, folder, url, token):
        self.folder = folder / "team"
        self.folder.mkdir()
        self.environment = os.environ | {"VP_SERVER": url, "VP_TOKEN": token, "PYTHONPATH": str(settings.BASE_DIR)}
        self.environment |= {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}

    def __call__(self, *words):
        done = subprocess.run(
            [sys.executable, "-m", "portal.client", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=EVALUATION_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def publish(page, look):
    page.goto(f"{EDITION}leaderboard/")
    look(page, "leaderboard-before")
    page.get_by_role("link", name="Publish").first.click()
    page.get_by_role("button", name="Publish").click()
    page.wait_for_url(f"**{EDITION}leaderboard/")


def read(page, look):
    page.goto("/")
    look(page, "visitor-after")
    page.goto(f"{EDITION}leaderboard/")
    look(page, "leaderboard")
    expect(page.locator("main table").first).to_contain_text(re.compile("Original.*B2|B2.*Original", re.DOTALL))
    expect(page.locator("main table").first).to_contain_text("T01-p1")
