"""The page of an evaluated system in a browser: to its team, to the public, and at home."""

import pytest
from playwright.sync_api import expect

from portal.submissions.models import Submission
from tests.portal.factories import make_submission, make_team, make_team_system, make_user
from tests.portal.objective_runs import (
    TEST,
    add_audio,
    add_documents,
    evaluate,
    tones_edition,
    tones_matrices,
    tones_scores,
    tones_words,
)


def evaluated_system():
    """Everything handed in, one reported number that does not agree, and a newer version under way."""
    edition = tones_edition()
    system = make_team_system(make_team(edition))
    submission = make_submission(system, state="received")
    corpus = edition.corpus
    files = tones_scores(corpus) | tones_words(corpus) | tones_matrices(4) | {f"{TEST}/EER": b"EER: 12.3%\n"}
    evaluate(add_audio(add_documents(submission, files)))
    make_submission(system, state=Submission.State.CHECKING)
    make_team(edition, state="waiting", number=None, owner=make_user())
    return system


@pytest.fixture
def system(once, figures_of_pages, few_resamples):
    return once(evaluated_system)


def test_team_reads_numbers_claims_and_figures(system, new_page, check_page):
    page = new_page(system.team.memberships.get().user)
    page.goto(f"/systems/{system.name}/")
    expect(page.get_by_role("heading", name="T01-p1")).to_be_visible()
    expect(page.get_by_text("disagrees: reported 12.3")).to_have_count(1)
    expect(page.get_by_text("1 reported number differs from ours")).to_be_visible()
    check_page(page, "system-evaluated-team")
    drawn = page.get_by_role("group", name="DET curves of tones_trials_f")
    expect(drawn).to_be_visible()
    assert drawn.bounding_box()["width"] > 100
    page.locator("summary", has_text="Method, files").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="LaTeX").click()
    assert download.value.suggested_filename == f"{system.name}-objective.tex"
