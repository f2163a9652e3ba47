"""The pages of the portal's attacks and recognisers in a browser, on tones that really are attacked."""

import pytest
from playwright.sync_api import expect

from evaluation.app.attacks.services import start_attack
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from tests.browsing import expect_drawn, too_long
from tests.portal.attack_runs import make_recognition_run
from tests.portal.factories import make_submission, make_team, make_team_system
from tests.portal.objective_runs import add_audio, make_objective_run, number, tones_edition


def attacked_system():
    """Audio and uploaded scores, attacked by the attacker that needs no model, by real jobs."""
    edition = tones_edition(speakers=8)
    system = make_team_system(make_team(edition))
    submission = add_audio(make_submission(system))
    make_objective_run(submission, [number(edition, "eer", "kaldi", "tones_trials_f", 7.77, low=6.0, high=9.0)])
    start_attack(submission=submission, engine="long-term-spectrum")
    while job := Job.objects.filter(state=JobState.WAITING).order_by("created_at", "pk").first():
        assert execute(job.pk).state == JobState.SUCCEEDED
    return system


@pytest.fixture
def system(once, figures_of_pages, few_resamples):
    return once(attacked_system)


def test_team_reads_attacks_side_by_side(system, new_page, check_page):
    page = new_page(system.team.memberships.get().user)
    page.goto(f"/systems/{system.name}/attacks/")
    expect(page.get_by_role("columnheader", name="Uploaded scores").first).to_be_visible()
    page.locator("summary", has_text="How distinct the voices are").click()
    page.locator("summary", has_text="Gender preservation").click()
    expect(page.get_by_role("columnheader", name="Same by chance, %")).to_be_visible()
    check_page(page, "attacks-team")
    for name in ("DET curves of tones_trials_f", "Voice similarity matrices of tones_trials_m"):
        expect_drawn(page, name)
    page.locator("summary", has_text="Score files").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="tones_trials_f, ignorant").click()
    assert download.value.suggested_filename.endswith("tones_trials_f-ignorant-scores.txt")
    page.goto(f"/systems/{system.name}/")
    page.locator("summary", has_text="Privacy: conditions").click()
    expect(page.get_by_role("heading", name="Attacks by the portal")).to_be_visible()
    check_page(page, "system-attacked")


def test_team_reads_the_worst_utterances_and_hears_them(system, new_page, check_page):
    make_recognition_run(system.submissions.get(), sets=["tones_trials_f", "tones_trials_m"])
    page = new_page(system.team.memberships.get().user)
    page.goto(f"/systems/{system.name}/recognition/")
    check_page(page, "recognition-team")
    assert too_long(page) == {}
    page.locator("summary", has_text="Listen").first.click()
    source = page.get_by_label("Anonymised of").first.get_attribute("src")
    assert page.request.get(source).body()[:4] == b"fLaC"
    page.get_by_label("Data set").select_option("tones_trials_m")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("tones_trials_f, speaker")).to_have_count(0)
