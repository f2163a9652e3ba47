"""The upload page in a browser: what it shows, and an upload that is paused, reloaded, cut off and outlives its server.

UPLOAD_TEST_MB=2048 sends 2 GB in place of 48 MB.
"""

import hashlib
import os
import threading
import time
from contextlib import suppress
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone
from playwright.sync_api import Error as PageError
from playwright.sync_api import expect

from portal.submissions.models import Submission, Upload
from portal.submissions.resumable_uploads import hash_upload, upload_path
from tests.browsing import PATIENCE_S, wait_until
from tests.portal.factories import make_edition, make_organizer, make_team, make_user
from tests.portal.processes.programs import Portal
from tests.portal.processes.uploading import MEBIBYTE, SIZE_MB, BadLine, WebServer, disturb, make_archive

PAGE = "/editions/vpc/submit/"
UNREADABLE = "The file has changed or cannot be read. Choose it again."


@pytest.fixture
def owner(transactional_db):
    return make_user(name="Ada Lovelace")


@pytest.fixture
def organizer(transactional_db):
    return make_organizer()


@pytest.fixture
def team(owner, organizer):
    edition = make_edition(name="vpc", title="VoicePrivacy 2022", organizers=[organizer])
    edition.submissions_close_at = timezone.now() + timedelta(days=3)
    edition.save()
    return make_team(edition, owner=owner, name="Quiet Voices", number=11)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "quiet voices.tar.gz"
    path.write_bytes(bytes(range(256)) * 4096)
    return path


def hold_parts(page):
    """The parts of an upload that the page sends from now on; none reaches the portal."""
    held = []
    page.route(
        "**/api/uploads/*", lambda route: held.append(route) if route.request.method == "PATCH" else route.continue_()
    )
    return held


def answer_parts(page, held):
    """Let parts through again. Those that were held are lost, also where the browser has not yet heard of a pause."""
    for route in held:
        with suppress(PageError):
            route.abort()
    page.unroute_all()


def choose(page, path):
    page.set_input_files("#file", path)


def send(page):
    page.click("#send")


def unfinished(team, path, bytes_here, **fields):
    """An upload of this file of which so many bytes arrived."""
    content = path.read_bytes()
    upload = Upload.objects.create(
        edition=team.edition,
        team=team,
        file_name=path.name,
        size=len(content),
        offset=bytes_here,
        system_kind="primary",
        created_by=team.memberships.get().user,
        expires_at=timezone.now() + timedelta(days=6),
        **{"claimed_sha256": hashlib.sha256(content).hexdigest()} | fields,
    )
    upload_path(upload).write_bytes(content[:bytes_here])
    return upload


# What it shows -----------------------------------------------------------------------------------


def test_line_that_is_lost_after_the_last_byte_is_told(new_page, owner, team, archive):
    """No button is left that could do nothing, and the page goes on once the portal answers again."""
    page = new_page(owner)
    page.goto(PAGE)
    page.route("**/api/uploads/*", lambda route: route.abort() if route.request.method == "GET" else route.continue_())
    choose(page, archive)
    send(page)
    state_of(page, "received")
    page.wait_for_selector("#sending-words:has-text('cannot be reached just now')")
    expect(page.locator("#pause")).to_be_hidden()
    expect(page.locator("#cancel")).to_be_hidden()
    page.unroute_all()
    page.wait_for_url("**/submissions/*/")


def test_paused_upload_passes_the_check_and_goes_on(new_page, owner, team, archive, check_page):
    page = new_page(owner)
    page.goto(PAGE)
    held = hold_parts(page)
    choose(page, archive)
    send(page)
    state_of(page, "sending")
    page.click("#cancel button")
    page.click("dialog >> text=Go back")
    state_of(page, "sending")
    page.click("#pause")
    state_of(page, "paused")
    check_page(page, "upload-paused")
    answer_parts(page, held)
    page.click("#pause")
    page.wait_for_url("**/submissions/*/")


# What it does ------------------------------------------------------------------------------------


def test_upload_ends_on_the_page_of_the_submission(new_page, owner, team, archive, problems):
    page = new_page(owner)
    page.goto(PAGE)
    page.click("text=A new contrastive system")
    page.fill("#title", "With random coefficients")
    choose(page, archive)
    send(page)
    page.wait_for_url("**/submissions/*/")
    submission = Submission.objects.get()
    assert (submission.system.label, submission.system.title) == ("T11-c1", "With random coefficients")
    assert upload_path(submission.upload).read_bytes() == archive.read_bytes()
    assert problems[page] == []


def test_corpus_is_uploaded_and_what_is_refused_can_be_corrected(new_page, organizer, archive, check_page, problems):
    page = new_page(organizer)
    page.goto("/corpora/upload/")
    check_page(page, "upload-corpus")
    page.fill("[name=name]", "no name")
    choose(page, archive)
    send(page)
    assert page.eval_on_selector(
        "[name=name]", "field => [field.validity.patternMismatch, field.title.slice(0, 18)]"
    ) == [True, "Use letters a to z"]
    assert page.evaluate("document.activeElement.name") == "name"
    page.evaluate("document.querySelector('[name=name]').removeAttribute('pattern')")
    send(page)
    expect(page.locator("#file-words.errorlist")).to_contain_text("Use letters a to z")
    problems[page].clear()  # the answer with status 422
    page.fill("[name=name]", "little")
    page.check("[name=is_synthetic]")
    send(page)
    page.wait_for_url("**/jobs/*/")
    upload = Upload.objects.get()
    assert (upload.imported_as["name"], upload.imported_as["is_synthetic"]) == ("little", True)
    assert upload_path(upload).read_bytes() == archive.read_bytes()
    assert problems[page] == []


def test_unfitting_files_are_refused_before_they_are_sent(new_page, owner, team, tmp_path):
    team.edition.largest_archive_bytes = 100
    team.edition.save()
    page = new_page(owner)
    page.goto(PAGE)
    for name, content, words in (
        ("a.rar", b"x", "is not a supported archive"),
        ("a.zip", b"", "is empty"),
        ("b.zip", b"x" * 101, "has 101 bytes"),
    ):
        (tmp_path / name).write_bytes(content)
        choose(page, tmp_path / name)
        expect(page.locator("#file-words")).to_contain_text(words)
        send(page)
    assert Upload.objects.count() == 0


def test_same_file_goes_on_where_another_browser_stopped(new_page, owner, team, archive):
    upload = unfinished(team, archive, 700_000)
    page = new_page(owner)
    page.goto(PAGE)
    page.check("[name=system][data-kind=contrastive]")
    choose(page, archive)
    expect(page.locator("#file-words")).to_contain_text("goes on from there")
    assert page.get_attribute("[name=system]:checked", "data-kind") == "primary", "of the upload that goes on"
    sent = []
    page.on("request", lambda request: sent.append((request.method, request.headers.get("upload-offset"))))
    send(page)
    page.wait_for_url("**/submissions/*/")
    assert ("PATCH", "700000") in sent
    assert Submission.objects.get().upload == upload
    assert upload_path(upload).read_bytes() == archive.read_bytes()


def test_another_file_of_the_same_name_and_size_begins_anew(new_page, owner, team, archive):
    """It ends as the first did where that stopped: its whole content tells them apart."""
    upload = unfinished(team, archive, 700_000)
    content = bytes(100) + archive.read_bytes()[100:]
    archive.write_bytes(content)
    page = new_page(owner)
    page.goto(PAGE)
    held = hold_parts(page)
    choose(page, archive)
    send(page)
    words = (
        "What is here of “quiet voices.tar.gz” is of another file and is kept; this one is sent from its beginning. "
        "Discard the other if it is no longer needed."
    )
    expect(page.locator("#sending-words")).to_have_text(words)
    page.click("#pause")
    answer_parts(page, held)
    page.click("#pause")
    page.wait_for_url("**/submissions/*/")
    submitted = Submission.objects.get().upload
    upload.refresh_from_db()
    assert (submitted != upload, upload.state) == (True, "receiving")
    assert upload_path(submitted).read_bytes() == content


def pause_in_the_middle(page, archive):
    """Pause an upload of which no part has been answered."""
    page.goto(PAGE)
    held = hold_parts(page)
    choose(page, archive)
    send(page)
    wait_until(lambda: held, "a part is sent")
    state_of(page, "sending")
    page.click("#pause")
    state_of(page, "paused")
    answer_parts(page, held)


def test_file_that_changes_while_it_is_paused_is_discarded(new_page, owner, team, archive):
    page = new_page(owner)
    pause_in_the_middle(page, archive)
    archive.write_bytes(archive.read_bytes()[::-1])
    os.utime(archive, (1, 1))
    page.click("#pause")
    expect(page.locator("#file-words.errorlist")).to_have_text(UNREADABLE)
    before = Upload.objects.get()
    assert before.state == "receiving"
    held = hold_parts(page)
    choose(page, archive)
    send(page)
    words = "The file has changed: what was sent of it before is discarded; this one is sent from its beginning."
    expect(page.locator("#sending-words")).to_have_text(words)
    before.refresh_from_db()
    assert before.state == "abandoned"
    page.click("#pause")
    answer_parts(page, held)
    page.click("#pause")
    page.wait_for_url("**/submissions/*/")
    assert upload_path(Submission.objects.get().upload).read_bytes() == archive.read_bytes()


def test_unfinished_upload_goes_on_although_nothing_new_may_begin(new_page, owner, team, archive, tmp_path):
    unfinished(team, archive, 10)
    team.edition.submissions_close_at = timezone.now() - timedelta(days=1)
    team.edition.save()
    other = tmp_path / "other.zip"
    other.write_bytes(b"another file")
    page = new_page(owner)
    page.goto(PAGE)
    choose(page, other)
    send(page)
    expect(page.locator("#file-words")).to_contain_text("Submissions closed on")
    choose(page, archive)
    send(page)
    page.wait_for_selector("text=Submit it now")
    assert upload_path(Upload.objects.get()).read_bytes() == archive.read_bytes()


# A bad line --------------------------------------------------------------------------------------


@pytest.fixture
def server(transactional_db, tmp_path):
    call_command("collectstatic", interactive=False, verbosity=0)
    portal = Portal(tmp_path)
    yield WebServer(portal)
    portal.kill_all()


@pytest.fixture
def line(server):
    line = BadLine(server.port, bytes_per_s=max(10, SIZE_MB // 8) * MEBIBYTE)
    yield line
    line.close()


@pytest.fixture
def far_page(browser, client, owner, line):
    """A page of the team's owner at the other end of the line."""
    client.force_login(owner)
    context = browser.new_context(base_url=line.address)
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": line.address}
    context.add_cookies([cookie])
    context.set_default_timeout(1000 * PATIENCE_S)
    yield context.new_page()
    context.close()


def received():
    upload = Upload.objects.order_by("created_at").first()
    return upload.offset if upload else 0


def settled():
    """What has been received once nothing more arrives of what was on its way."""
    before = -1
    while (now := received()) != before:
        before = now
        time.sleep(2)
    return now


def state_of(page, words):
    expect(page.locator("#sending-state")).to_have_text(words)


@pytest.mark.slow  # waits for a server that is killed and started again
def test_chromium_brings_a_file_through_pause_reload_cuts_and_kills(far_page, server, line, team, tmp_path):
    path = tmp_path / "archive.tar.gz"
    sha256 = make_archive(path)
    size = path.stat().st_size
    memory = server.memory_bytes()
    page = far_page
    page.goto(PAGE)
    choose(page, path)
    began = time.monotonic()
    send(page)
    wait_until(lambda: received() > 0, "the first bytes")
    page.click("#pause")
    state_of(page, "paused")
    stopped_at = settled()
    assert 0 < stopped_at < size
    time.sleep(1)
    assert received() == stopped_at
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(page.locator("#unfinished + ul")).to_contain_text("arrived. Choose the same file below to continue")
    choose(page, path)
    send(page)
    failed = []
    disturbing = threading.Thread(target=_disturb, args=(server, line, size, failed), daemon=True)
    disturbing.start()
    _arrive(page, server, failed)
    seconds = time.monotonic() - began
    disturbing.join(PATIENCE_S)
    assert (failed, line.cuts) == ([], 3)
    upload = Upload.objects.get()
    assert (upload.state, upload.offset) == ("complete", size)
    assert hash_upload(upload)
    assert upload.sha256 == sha256
    growth = server.most_memory_bytes - memory
    print(f"\n{SIZE_MB} MB by Chromium in {seconds:.1f} s; memory {memory >> 20} MB, then {growth >> 20} MB more")
    assert growth < 40 * MEBIBYTE


def _disturb(server, line, size, failed):
    from django.db import connection

    try:
        disturb(server, line, received, size)
    except BaseException as error:
        failed.append(error)
    finally:
        connection.close()


def _arrive(page, server, failed):
    """Wait for the page of the submission; whatever ends the way there fails the test at once, in words."""
    end = time.monotonic() + 900
    while "/submissions/" not in page.url:
        try:
            said = page.evaluate("() => document.querySelector('main')?.innerText ?? ''")
        except PageError:  # it is just leaving
            continue
        told = f"{failed} {said}\n{server.program.output()[-2000:]}"
        assert not failed, told
        assert "cannot be reached. Check your connection" not in said, told
        assert time.monotonic() < end, told
        page.wait_for_timeout(250)
