"""From a portal without data to a published leaderboard and a published listening test: no admin page, no TOML.

The first account imports speech, makes a challenge by the form, runs a baseline; a team takes the data with `vp`,
anonymises, packs and submits, and is accepted at the first try. Then the organizer makes a study, somebody listens on a
phone, and a visitor reads the results. Everything is computed by the worker of `serve`.
"""

import os
import re
import subprocess
import sys

import pytest
from django.conf import settings
from playwright.sync_api import expect

from portal.submissions.models import Submission
from tests.browsing import wait_until
from tests.listening.browser.evaluators import Evaluator
from tests.listening.browser.test_steps import PHONE, answers_to_open_test, choose, continue_
from tests.portal.browser.journey import copy_speech, fill

# Its programs would take the jobs of other tests of the same process.
pytestmark = pytest.mark.processes

PASSWORD = "a long password"
OLGA, OLIVE = "olga@uni.example", "olive@uni.example"
EVALUATION_S = 600
TITLE, NAME = "Challenge of Voices", "challenge-of-voices"
EDITION = f"/editions/{NAME}/"


@pytest.fixture
def imports(tmp_path, monkeypatch):
    """Two women and two men with five recordings in each set: of fewer, hardly a listening test can be designed.

    The portal has no model files, so what attacks is the long-term spectrum, and draws no figures for print: networks
    and figures are tried by themselves.
    """
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("TEST_FIGURES", "svg")
    copy_speech(tmp_path / "corpora" / "voices", speakers_of_a_gender=2, enrolled=5, tried=5, seconds=1)
    return tmp_path / "corpora"


def test_stranger_carries_a_challenge_from_nothing_to_published_results(open_page, look, portal, imports, tmp_path):
    organizer, team, visitor, evaluator = open_page(), open_page(), open_page(), open_page(PHONE["width"])
    make_first_account(organizer, portal)
    import_speech(organizer, imports)
    make_challenge(organizer, look)
    start_baseline(organizer, look)
    register(team, portal)
    approve(organizer)
    take_part(team, look, portal, tmp_path)
    publish(organizer)
    read(visitor)
    link = launch_study(organizer, look)
    listen(evaluator, look, link)
    publish_results(organizer, look)
    read_results(visitor, look)


def make_first_account(page, portal):
    address = wait_until(lambda: re.search(r"(/first-account/\S+)", portal.program.output()), "the first address")[1]
    page.goto(address)
    fill(page, "Create the account", name="Olga Organizer", email=OLGA, password1=PASSWORD)
    page.goto("/")


def import_speech(page, imports):
    page.goto("/editions/new/")
    page.get_by_role("link", name="Import a folder of speech").click()
    page.get_by_label(str(imports / "voices")).check()
    page.get_by_label("Name of the corpus").fill("voices")
    page.get_by_label("Synthetic speech").check()
    page.get_by_role("button", name="Start the import").click()
    page.get_by_role("button", name="Continue").wait_for()
    page.get_by_role("heading", name="Import of voices").wait_for(state="detached", timeout=1000 * EVALUATION_S)


def make_challenge(page, look):
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Title").fill(TITLE)
    look(page, "challenge")
    page.get_by_label("Approved teams download the speech of the corpus here").check()
    page.get_by_label("Listed").check()
    page.get_by_role("button", name="Create the challenge").click()
    page.get_by_role("heading", name=TITLE, level=1).wait_for()


def start_baseline(page, look):
    page.get_by_role("region", name="Next").get_by_role("link", name="Run a baseline").click()
    page.get_by_role("button", name="Run the baseline").click()
    page.wait_for_url(f"**/systems/{NAME}-b2/")
    look(page, "baseline-started")


def register(page, portal):
    """Sign up, confirm the address by mail, register a team."""
    page.goto("/")
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


def approve(page):
    page.goto("/")
    page.goto(f"{EDITION}teams/")
    page.get_by_role("link", name="Decide about Quiet Voices").click()
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("T01").first.wait_for()


def take_part(page, look, portal, folder):
    """Accept the terms, then everything by `vp` as the page of the data says."""
    page.goto("/")
    page.goto(f"{EDITION}data/")
    page.get_by_role("button", name="Accept the terms").click()
    page.get_by_role("heading", name="Files").wait_for()
    page.goto(f"{EDITION}submit/")
    look(page, "submit")
    page.goto("/account/tokens/")
    page.get_by_label("Name").fill("my computer")
    page.get_by_role("button", name="Make the token").click()
    vp = Vp(folder, portal.url, page.locator("code.copyable").inner_text())
    vp("data", NAME)
    vp("run", NAME, "--method", "mcadams-2022", "--jobs", "1")
    vp("pack", NAME)
    vp("submit", f"{NAME}/{NAME}.zip", "--edition", NAME, "--title", "Ours")
    assert [one.version for one in Submission.objects.filter(system__team__isnull=False)] == [1]
    evaluated = Submission.objects.filter(state=Submission.State.EVALUATED)
    wait_until(lambda: evaluated.count() == 2, "both systems are evaluated", seconds=EVALUATION_S)
    page.goto("/")
    page.goto(Submission.objects.get(system__team__isnull=False).system.get_absolute_url())


class Vp:
    """Runs `vp` in a folder of a team's machine; every command is to end well."""

    def __init__(self, folder, url, token):
        self.folder = folder / "team"
        self.folder.mkdir()
        self.environment = os.environ | {"VP_SERVER": url, "VP_TOKEN": token, "PYTHONPATH": str(settings.BASE_DIR)}
        self.environment |= {"XDG_CONFIG_HOME": str(folder / "config")}

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


def publish(page):
    page.goto(f"{EDITION}leaderboard/")
    page.get_by_role("link", name="Publish", exact=True).first.click()
    page.get_by_role("button", name="Publish").click()
    page.wait_for_url(f"**{EDITION}leaderboard/")


def read(page):
    page.goto("/")
    page.goto(f"{EDITION}leaderboard/")
    table = page.get_by_role("region", name="Systems of this leaderboard").locator("table")
    expect(table).to_contain_text(re.compile("Original.*B2|B2.*Original", re.DOTALL))
    expect(table).to_contain_text("T01-p1")


def launch_study(page, look):
    """From home to the link for evaluators, with the study that the portal proposes."""
    page.goto("/")
    page.get_by_role("link", name="New listening test").click()
    page.get_by_label("Responsible body").fill("University of Somewhere")
    page.get_by_role("button", name="Make the listening test").click()
    page.get_by_role("button", name="Make the design").click()
    page.get_by_text("Every check passes").wait_for()
    page.get_by_role("button", name="Prepare the stimuli").click()
    page.get_by_role("link", name="Launch").click(timeout=1000 * EVALUATION_S)
    page.get_by_role("button", name="Launch").click()
    link = page.locator("#link").inner_text()
    look(page, "study-open")
    return link


class PhoneEvaluator(Evaluator):
    """Goes through a whole session on the page of this test."""

    def __init__(self, page, link):
        super().__init__("", link, 1)
        self.page = page

    def test_sound(self):
        super().test_sound()
        self.page.get_by_role("button", name="Play round 1").click()
        choose(self.page, answers_to_open_test())
        continue_(self.page)


def listen(page, look, link):
    evaluator = PhoneEvaluator(page, link)
    evaluator.go_through()
    assert evaluator.code
    look(page, "listened")


def publish_results(page, look):
    page.goto("/")
    page.get_by_role("link", name="Listening test", exact=True).click()
    page.get_by_role("link", name="Close", exact=True).click()
    page.get_by_role("button", name="Close the listening test").click()
    page.get_by_role("link", name="results", exact=True).click()
    page.get_by_role("link", name="Publish", exact=True).click(timeout=1000 * EVALUATION_S)
    page.get_by_role("button", name="Publish").click()
    page.get_by_text("The results are published").wait_for()
    page.goto("/")
    look(page, "home-done")
    expect(page.locator(".path .badge[data-state=succeeded]")).to_have_count(6)


def read_results(page, look):
    """From the leaderboard to what listeners said, of all systems and of one."""
    page.goto(f"{EDITION}leaderboard/")
    page.get_by_role("link", name=f"Listening test of {TITLE}").first.click()
    page.wait_for_url(re.compile("/studies/.*/results/"))
    expect(page.locator("main")).to_contain_text("T01-p1")
    page.goto(f"{EDITION}leaderboard/")
    page.get_by_role("link", name="T01-p1").first.click()
    expect(page.get_by_role("heading", name="What listeners said").first).to_be_visible()
    look(page, "system-heard")
