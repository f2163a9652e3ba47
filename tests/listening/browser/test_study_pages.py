"""Studies in a browser: every page at both widths and schemes, and the way from an edition to a launched study."""

import io

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from common.errors import ProblemsError
from listening.app.models import Study
from listening.app.results.importing import import_study
from listening.app.studies import services
from listening.app.studies.services import close_study
from portal.jobs.models import Job
from portal.jobs.runner import execute
from tests.browsing import leap_until
from tests.listening.edition_factories import make_designed, make_draft, make_edition_with_speech, make_prepared
from tests.listening.factories import make_session
from tests.portal.factories import make_organizer


@pytest.fixture
def organizer(transactional_db):
    return make_organizer(name="Olga Organizer")


@pytest.fixture
def edition(organizer):
    return make_edition_with_speech(organizer=organizer, title="VoicePrivacy 2022, once more")


@pytest.fixture
def page(new_page, organizer):
    return new_page(organizer)


def address(name, study):
    return reverse(f"studies:{name}", args=[study.name])


def launch(study):
    services.launch_study(study=study, by=None, now=timezone.now())
    study.refresh_from_db()
    return study


def test_list_and_new(page, check_page, edition, organizer):
    page.goto("/studies/")
    check_page(page, "studies-empty")
    page.get_by_role("link", name="Make the first listening test").click()
    check_page(page, "study-new")
    page.get_by_role("button", name="Make the listening test").click()
    check_page(page, "study-new-faulty")
    make_draft(edition, title="A first hearing")
    study = launch(make_prepared(edition, title="Naturalness and verifiability of the primary systems"))
    make_session(study)
    page.goto("/studies/")
    check_page(page, "studies")


def test_edit_and_planner(page, check_page, edition):
    study = make_draft(edition)
    page.goto(address("edit", study))
    check_page(page, "study-edit")
    page.get_by_label("Trials of each evaluator").fill("190")
    page.get_by_label("Trials of each evaluator").press("Tab")
    page.locator("#planner strong", has_text="No design is possible for this plan").wait_for()
    check_page(page, "study-edit-infeasible")
    page.get_by_label("Title").fill("")
    page.get_by_label("Points of the scale").fill("12")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").wait_for()
    check_page(page, "study-edit-faulty")


def test_planner_fills_in_what_would_do(page, edition):
    page.goto(address("edit", make_draft(edition)))
    page.get_by_label("Trials of each evaluator").fill("200")
    page.get_by_label("Of which original").fill("100")
    page.get_by_label("Of which original").press("Tab")
    page.locator("#planner [data-fill^=trials]").first.click()
    page.locator("#planner", has_text="There are enough recordings for this plan").wait_for()
    assert int(page.get_by_label("Trials of each evaluator").input_value()) < 200


def test_states_of_a_study(page, check_page, edition):
    poor = make_draft(edition, evaluators=60, trials_per_evaluator=60, originals_per_evaluator=30)
    page.goto(poor.get_absolute_url())
    check_page(page, "study-infeasible")
    study = make_draft(edition)
    page.goto(study.get_absolute_url())
    check_page(page, "study-draft")
    study = make_prepared(edition)
    page.goto(study.get_absolute_url())
    check_page(page, "study-prepared")
    launch(study)
    page.reload()
    check_page(page, "study-open")
    page.goto(address("edit", study))
    check_page(page, "study-edit-launched")
    page.goto(address("extend", study))
    check_page(page, "study-extend")
    close_study(study=study, by=None, now=timezone.now())
    page.goto(study.get_absolute_url())
    check_page(page, "study-closed")


def test_design_and_texts(page, check_page, edition):
    page.goto(address("design", make_draft(edition)))
    check_page(page, "study-design-none")
    study = make_designed(edition)
    page.goto(address("design", study))
    check_page(page, "study-design")
    page.goto(address("texts", study))
    check_page(page, "study-texts")


def test_words_of_buttons_go_out_and_come_back_as_a_file(page, check_page, edition):
    study = make_draft(edition, languages=["en", "ar"])
    page.goto(address("texts", study))
    page.get_by_role("link", name="Buttons and hints, Arabic").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all words").click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    assert "\nBegin,,,\n" in text
    wrong = text.replace("\nBegin,,,\n", "\nBegin,,,<b>\n")
    page.get_by_label("Filled-in file").set_input_files(
        {"name": "w.csv", "mimeType": "text/csv", "buffer": wrong.encode()}
    )
    page.get_by_role("button", name="Replace all by this file").click()
    expect(page.get_by_role("alert").get_by_text("Expected words without <")).to_be_visible()
    right = text.replace("\nBegin,,,\n", "\nBegin,,,ابدأ\n")
    page.get_by_label("Filled-in file").set_input_files(
        {"name": "w.csv", "mimeType": "text/csv", "buffer": right.encode()}
    )
    page.get_by_role("button", name="Replace all by this file").click()
    expect(page.get_by_label("Begin", exact=True)).to_have_value("ابدأ")
    page.get_by_label("Next", exact=True).fill("التالي")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_text("Version 2,")).to_be_visible()
    expect(page.get_by_label("Next", exact=True)).to_have_value("التالي")
    check_page(page, "study-words")


def test_from_an_edition_to_a_launched_study(page, check_page, organizer):
    page.clock.install()
    edition = make_edition_with_speech(organizer=organizer, with_audio=True, speakers=8, utterances=8)
    page.goto(edition.get_absolute_url())
    page.locator("main").get_by_role("link", name="Listening tests").click()
    page.get_by_role("link", name="Make the first listening test").click()
    page.get_by_label("Title").fill("First hearing")
    page.get_by_label("Short name").fill("first-hearing")
    page.get_by_label("small:").check()
    page.get_by_role("button", name="Make the listening test").click()
    page.wait_for_url("**/studies/first-hearing/?preset=*")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Pay per hour").fill("15")
    page.get_by_label("Seed").fill("2022")
    expect(page.get_by_label("Contact")).to_have_value(organizer.email)
    page.get_by_label("Responsible body").fill("Test University")
    page.get_by_label("Personal data is kept for (months)").fill("24")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Make the design").click()
    page.get_by_text("Every check passes").wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="Balance certificate (JSON)").click()
    assert download.value.suggested_filename == "first-hearing-certificate.json"
    page.get_by_role("button", name="Prepare the stimuli").click()
    page.get_by_text("This page updates automatically.").wait_for()
    check_page(page, "study-preparing")
    execute(Job.objects.get(kind="prepare-study").pk)
    leap_until(page, page.get_by_role("link", name="Launch").is_visible)
    expect(page.locator("#marks")).to_contain_text("Ready to launch")
    page.get_by_role("button", name="Preview as an evaluator").click()
    page.wait_for_url("**/listen/**")
    page.goto("/studies/first-hearing/")
    page.get_by_role("link", name="Launch").click()
    page.get_by_role("button", name="Launch").click()
    page.get_by_text("Give evaluators this link.").wait_for()
    study = Study.objects.get()
    assert (study.state, study.pay_per_hour) == (Study.State.OPEN, 15)
    link = page.locator("#link").inner_text()
    assert link.endswith(f"/listen/join/{study.link_key}/")
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Nobody can begin now").wait_for()
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("link", name="More evaluators").click()
    page.get_by_label("More evaluators").fill("2")
    page.get_by_role("button", name="Add them").click()
    page.get_by_text("Blocks for 2 more evaluators are open.").wait_for()


def test_large_design_is_followed_on_its_page(page, check_page, edition, monkeypatch):
    page.clock.install()
    monkeypatch.setattr("listening.app.studies.services.DESIGNED_AT_ONCE_AT_MOST", 0)
    study = make_draft(edition)
    page.goto(address("design", study))
    page.get_by_role("button", name="Make the design").click()
    page.get_by_text("Making this design takes a while.").wait_for()
    check_page(page, "study-designing")
    page.goto(study.get_absolute_url())
    page.get_by_text("This page updates automatically.").wait_for()
    check_page(page, "study-designing-detail")
    page.goto(address("design", study))
    execute(Job.objects.get(kind="design-study").pk)
    leap_until(page, page.get_by_text("Every check passes").is_visible)
    page.get_by_role("link", name="Balance certificate (JSON)").wait_for()
    page.get_by_role("button", name="Make a new design").wait_for()
    check_page(page, "study-designed", with_axe=False)


def test_plan_that_a_job_cannot_meet_is_told_on_the_page(page, check_page, edition, monkeypatch):
    page.clock.install()
    monkeypatch.setattr("listening.app.studies.services.DESIGNED_AT_ONCE_AT_MOST", 0)
    study = make_draft(edition, title="A study that is asked for too much")
    page.goto(address("design", study))
    page.get_by_role("button", name="Make the design").click()
    page.get_by_text("Making this design takes a while.").wait_for()

    def fail(*_given, **_more):
        raise ProblemsError(["Order: no order was found.", "Gaps: 3 places would do."])

    monkeypatch.setattr("listening.app.studies.planning.allocate", fail)
    execute(Job.objects.get(kind="design-study").pk)
    leap_until(page, page.get_by_text("Order: no order was found.").is_visible)
    expect(page.get_by_text("Gaps: 3 places would do.")).to_be_visible()
    check_page(page, "study-design-impossible")


def test_imported_ratings(page, check_page, edition, organizer):
    lines = [f"worker-{n},naturalness,{system},u1,{3 + n % 2}" for n in range(3) for system in ("original", "T01-p1")]
    content = "\n".join(["listener,task,system,utterance,rating", *lines]).encode()
    study = import_study(
        edition=edition,
        by=organizer,
        name="elsewhere",
        title="Heard in another laboratory",
        file=io.BytesIO(content),
        file_name="ratings.csv",
        is_simulated=True,
    ).study
    page.goto("/studies/")
    check_page(page, "studies-imported")
    page.get_by_role("link", name=study.title, exact=True).click()
    check_page(page, "study-imported")
    for name in ("design", "export", "exclusions", "monitor"):
        page.goto(address(name, study))
        check_page(page, f"study-imported-{name}", widths=(360,), schemes=("light",), with_axe=False)
    page.goto(f"{address('exclusions', study)}?session={study.sessions.values_list('pk', flat=True)[0]}")
    check_page(page, "study-imported-leave-out", widths=(1280,), schemes=("light",), with_axe=False)
