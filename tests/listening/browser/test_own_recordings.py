"""A listening test of one's own recordings in a browser: from the list of tests to the page of a trial."""

import pytest

from listening.app.models import Study
from tests.listening.own_factories import pack, recordings, run_jobs
from tests.portal.factories import make_organizer


@pytest.fixture
def page(new_page, transactional_db):
    return new_page(make_organizer(name="Olga Organizer"))


def test_archive_of_recordings_becomes_an_open_test(page, check_page):
    page.goto("/studies/")
    page.get_by_role("link", name="Test your own recordings").first.click()
    check_page(page, "own-recordings-new")
    archive = pack(recordings() | {"codec/d.wav": b"no sound"})
    file = {"name": "codecs.zip", "mimeType": "application/zip", "buffer": archive.read()}
    page.get_by_label("Recordings", exact=True).set_input_files(file)
    page.get_by_label("Title").fill("Codecs")
    page.get_by_label("Responsible body").fill("Test University")
    page.get_by_role("button", name="Make the listening test").click()
    page.wait_for_url("**/jobs/*/")
    run_jobs()
    page.reload()
    page.get_by_text("codec/d.wav").first.wait_for()
    check_page(page, "own-recordings-refused")
    page.goto("/studies/new/recordings/")
    page.get_by_label("Recordings", exact=True).set_input_files(file | {"buffer": pack(recordings()).read()})
    page.get_by_label("Title").fill("Codecs")
    page.get_by_label("Responsible body").fill("Test University")
    page.get_by_role("button", name="Make the listening test").click()
    page.wait_for_url("**/jobs/*/")
    run_jobs()
    page.reload()
    page.get_by_role("link", name="Open the listening test").click()
    page.get_by_role("heading", name="Codecs").wait_for()
    run_jobs()
    page.reload()
    page.goto(f"{Study.objects.get().get_absolute_url()}questions/")
    check_page(page, "own-recordings-questions")
    page.go_back()
    page.get_by_role("link", name="Launch").click()
    check_page(page, "own-recordings-launch")
    page.get_by_role("button", name="Launch").click()
    page.get_by_text("Give evaluators this link").wait_for()
