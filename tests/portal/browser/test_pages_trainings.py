"""Trained attackers in a browser: the form, curves that grow while a training runs, and its report."""

import pytest
from playwright.sync_api import expect

from evaluation.attackers.training.recipe import PRESETS, with_variant
from portal.jobs.models import Job, JobState
from tests.browsing import leap_until
from tests.portal.trainings import epoch_values, final_values, make_trained_on, make_training

LIST = "/systems/b2-voices/trainings/"


def trained_on():
    return make_trained_on(targets=("t1", "t2"))


@pytest.fixture
def submission(once):
    return once(trained_on)


def test_curves_grow_without_reloading_until_the_report_stands(submission, organizer_page, check_page):
    recipe = with_variant(PRESETS["small"], "literal")
    run = make_training(submission, recipe=recipe, variant="literal", epochs={1: 4})
    page = organizer_page
    page.clock.install()
    page.goto(f"{LIST}{run.pk}/")
    errors = page.get_by_role("img", name="Validation errors")
    expect(errors).to_be_visible()
    page.evaluate("window.kept = true")
    check_page(page, "training-running")
    expect(errors.locator("circle")).to_have_count(8)
    run.epochs.create(seed=1, epoch=5, seconds=2.0, values=epoch_values(5, 1, recipe))
    leap_until(page, page.get_by_text("5 of 20 epochs trained, one took").is_visible)
    expect(errors.locator("circle")).to_have_count(10)
    assert page.evaluate("window.kept") is True
    for seed in (1, 2):
        for epoch in range(6 if seed == 1 else 1, 11):
            run.epochs.create(seed=seed, epoch=epoch, seconds=2.0, values=epoch_values(epoch, seed, recipe))
        last = run.epochs.get(seed=seed, epoch=10)
        last.values |= {"report": final_values(0.81 + seed / 50, 0.97 + seed / 100, 0.3 + seed / 10)}
        last.save()
    Job.objects.filter(pk=run.job_id).update(state=JobState.SUCCEEDED, claim=None)
    leap_until(page, page.get_by_role("heading", name="Report").is_visible)
    expect(page.get_by_text("VER_T is above chance: that is anti-prediction, not removal")).to_be_visible()
    check_page(page, "training-report")
    with page.expect_download() as download:
        page.get_by_role("link", name="Every epoch, CSV").click()
    assert download.value.suggested_filename == f"b2-voices-training-{run.pk}.csv"
