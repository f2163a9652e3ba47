"""A listening test of one's own recordings in a browser: from the list of tests to the page of a trial."""

import pytest
from django.test import Client
from playwright.sync_api import expect

from listening.app.models import Study
from tests.listening.browser.trials import open_trials, wait_for_rows
from tests.listening.factories import make_session
from tests.listening.own_factories import pack, recordings, run_jobs, send_recordings
from tests.portal.factories import make_organizer


@pytest.fixture
def page(new_page, transactional_db):
    return new_page(make_organizer(name="Olga Organizer"))


def test_archive_of_recordings_becomes_an_open_test(page, check_page, new_page):
    page.goto("/studies/")
    page.get_by_role("link", name="Test your own recordings").first.click()
    check_page(page, "own-recordings-new")
    archive = pack(recordings() | {"codec/d.wav": b"no sound"})
    file = {"name": "codecs.zip", "mimeType": "application/zip", "buffer": archive.read()}
    page.get_by_label("Recordings", exact=True).set_input_files(file)
    page.get_by_label("Title").fill("Codecs")
    page.get_by_label("Responsible body").fill("Test University")
    page.get_by_role("button", name="Make the listening test").click()
    page.get_by_text("codec/d.wav").first.wait_for()
    check_page(page, "own-recordings-refused")
    page.get_by_label("Recordings", exact=True).set_input_files(file | {"buffer": pack(recordings()).read()})
    page.get_by_role("button", name="Make the listening test").click()
    page.get_by_role("heading", name="Codecs").wait_for()
    run_jobs()
    page.reload()
    check_page(page, "own-recordings-prepared")
    page.goto(f"{Study.objects.get().get_absolute_url()}questions/")
    check_page(page, "own-recordings-questions")
    page.go_back()
    page.get_by_role("link", name="Launch").click()
    check_page(page, "own-recordings-launch")
    page.get_by_role("button", name="Launch").click()
    page.get_by_text("Give evaluators this link").wait_for()
    evaluator = new_page(None)
    evaluator.goto(f"/listen/join/{Study.objects.get().link_key}/")
    check_page(evaluator, "own-recordings-welcome")


def test_archive_of_recordings_becomes_a_test_that_somebody_answers(new_page, transactional_db):
    """From an archive of 48 kHz in stereo to an answer about what was heard, anchors among it."""
    organizer, client = make_organizer(), Client()
    client.force_login(organizer)
    conditions = ("clean", "codec", "other")
    files = recordings(conditions, rate_hz=48000, channels=2)
    chosen = {"preset": "mushra", "loudness": "as-is", "original": "clean", "anchors": "3500 7000"}
    assert send_recordings(client, files, **chosen).status_code == 302
    run_jobs()
    study = Study.objects.get()
    assert client.post(f"{study.get_absolute_url()}launch/").status_code == 302
    session = make_session(study)
    page = open_trials(new_page(None), session)
    samples = {one.slot: one for one in session.block.trials.get(position=1).presentation.samples.all()}
    for slot in samples:
        page.locator(f"[data-hear='{slot}'][aria-disabled='false']").click()
        expect(page.locator(f"[data-hear='{slot}']")).to_have_attribute("data-heard", "")
    assert len(samples) == 1 + study.conditions.count() == 6
    for slider in page.locator(".slider input").all():
        slider.fill("40")
    page.locator("#next").click()
    wait_for_rows(session.answers, 1, "answers")
    assert session.answers.get().data == {"ratings": dict.fromkeys(map(str, range(1, 6)), 40)}
    assert set(session.plays.values_list("slot", flat=True)) == set(samples)
