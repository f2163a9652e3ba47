"""Submissions in a browser: an archive with problems, its report, the corrected one, what differs, taking it back."""

import pytest
from playwright.sync_api import expect

from portal.jobs.models import JobState
from portal.submissions.models import Submission
from portal.submissions.services import change_state
from portal.submissions.signals import submission_accepted
from tests.browsing import leap_until
from tests.portal.archives import DESCRIPTION, anonymised, hand_in, wav
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_job,
    make_organizer,
    make_submission,
    make_team,
    make_user,
)


@pytest.fixture(autouse=True)
def nothing_evaluates(monkeypatch):
    """What is accepted here stays accepted, so that pages show that state."""
    monkeypatch.setattr(submission_accepted, "receivers", [])


@pytest.fixture
def owner(transactional_db):
    return make_user(name="Tamara Owner")


@pytest.fixture
def organizer(transactional_db):
    return make_organizer(name="Olga Organizer")


@pytest.fixture
def team(owner, organizer):
    corpus = make_corpus("libri_dev", speakers=4)
    edition = make_edition(corpus, organizers=[organizer], scores_required=False, title="VoicePrivacy 2022, once more")
    return make_team(edition, owner=owner, name="The Long-Named Laboratory for Speech")


@pytest.fixture
def members(team):
    return anonymised(team.edition.corpus) | {"paper/system-description.pdf": DESCRIPTION}


@pytest.fixture
def faulty(team, members):
    """Cut off, missing, silent, clipped, of another rate, of a name that is unknown."""
    names = list(members)
    sent = members | {
        names[0]: members[names[0]][:4000],
        names[2]: wav(0),
        names[3]: wav(400, rate_hz=44_100, seconds=0.6 * 44_100 / 16_000),
        "wav/another-name-that-nobody-knows.wav": wav(420),
    }
    del sent[names[1]]
    return hand_in(team, sent, file_name="anonymised-speech-of-the-development-and-test-sets-version-1-final.zip")


def test_refused_submission_shows_its_whole_report(new_page, check_page, owner, faulty):
    page = new_page(owner)
    page.goto(faulty.get_absolute_url())
    text = page.inner_text("main")
    for shown in ("errors keep this archive from being evaluated", "Cut off", "Missing utterances", "Silent"):
        assert shown in text
    errors = page.locator('.problems [data-severity="error"]').count()
    expect(page.locator(".problems details[open]")).to_have_count(errors)
    page.get_by_role("link", name="Submit a corrected archive").wait_for()
    check_page(page, "submission-refused")
    with page.expect_download() as download:
        page.get_by_role("link", name="The complete report, CSV").click()
    assert download.value.suggested_filename == f"{faulty.system.name}-v1-report.csv"


def test_running_check_renews_itself_and_then_shows_the_report(new_page, check_page, owner, team, faulty):
    job = make_job("running", kind="intake", stage="Reading the archive", done=310, total=16_000)
    submission = make_submission(faulty.system, state=Submission.State.CHECKING, job=job)
    page = new_page(owner)
    page.clock.install()
    page.goto(submission.get_absolute_url())
    expect(page.locator("#progress")).to_contain_text("310 of 16,000")
    check_page(page, "submission-checking")
    job.done = 900
    job.save()
    leap_until(page, page.get_by_text("900 of 16,000").is_visible)
    job.state = JobState.SUCCEEDED
    job.save()
    submission.report, submission.report_summary, submission.errors = faulty.report, faulty.report_summary, 3
    submission.save()
    change_state(submission=submission, state=Submission.State.REFUSED)
    leap_until(page, page.get_by_role("heading", name="Report").is_visible)
