"""Results of a study in a browser: every page at both widths and schemes, the switch of scores, print."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from portal.jobs.models import Job
from tests.browsing import leap_until, too_long, wait_until
from tests.listening.analysis.examples import made_up_results
from tests.listening.results.analysed import make_analysed
from tests.portal.factories import make_job, make_organizer

pytestmark = pytest.mark.django_db(transaction=True)
DRAWN = tuple(
    f"{scores}/{name}-{theme}.svg"
    for scores in ("raw", "normalised")
    for name in ("violin-naturalness", "det-naturalness", "significance-naturalness", "det-naturalness-of-T01-p1")
    for theme in ("light", "dark")
)
A4_TEXT = 680  # width of the text of an A4 page with usual margins, in pixels


def published_study():
    results = made_up_results()
    of_answers = {"estimates", "confusion", "answers_effect"}  # which no study of ratings has
    tables = {path: table for path, table in results.tables.items() if path.rpartition("/")[2] not in of_answers}
    return make_analysed(
        results=replace(results, tables=tables),
        organizer=make_organizer(name="Olga Organizer"),
        title="First hearing",
        is_simulated=True,
        figures=DRAWN,
        heard=["T01-p1"],
        publish=True,
    )


@pytest.fixture
def study(once):
    return once(published_study)


@pytest.fixture
def organizer(study):
    return study.edition.organizers.get()


@pytest.fixture
def address(study):
    return f"/studies/{study.name}/results/"


def top_of(page, selector):
    return page.locator(selector).evaluate("(element) => element.getBoundingClientRect().top")


def names_in(page, task):
    names = page.locator(f"section[aria-labelledby={task}] table[data-sortable] tbody th").all_inner_texts()
    return [name.strip() for name in names]


def test_results_of_a_study_are_sound_for_a_visitor(address, page, check_page):
    page.goto(address)
    expect(page.locator("h1")).to_have_text("What listeners said: First hearing")
    check_page(page, "results", with_axe=False)
    assert too_long(page) == {}
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => (one.open = true))")
    check_page(page, "results-open", schemes=("light",))  # axe sees all of the page in its light colours


def test_pages_for_organizers_are_sound(study, address, organizer, new_page, check_page):
    page = new_page(organizer)
    for path in ("listeners/", "unpublish/", "publish/"):
        page.goto(address + path)
        check_page(page, f"results-{path[:-1]}")
    for path, name in ((f"/studies/{study.name}/analyse/", "analyse"), ("/studies/import/", "import")):
        page.goto(path)
        check_page(page, f"results-{name}", schemes=("light",))
    page.get_by_role("button", name="Import").click()
    page.get_by_role("alert").wait_for()
    check_page(page, "results-import-faulty", schemes=("light",))


def test_switching_scores_keeps_the_place(address, page):
    page.goto(address)
    expect(page.locator(".switch [aria-current]")).to_have_text("Normalised ranks")
    page.locator("section[aria-labelledby=naturalness] details.more > summary").first.click()
    page.locator("section[aria-labelledby=naturalness] details.meanings > summary").first.click()
    page.locator("#naturalness").evaluate(
        "(heading) => scrollTo(0, scrollY + heading.getBoundingClientRect().top - 150)"
    )
    before = top_of(page, "#naturalness")
    page.get_by_role("link", name="Raw ratings").click()
    page.wait_for_url("**scores=raw**")
    expect(page.locator(".switch [aria-current]")).to_have_text("Raw ratings")
    page.wait_for_function(
        f"() => Math.abs(document.querySelector('#naturalness').getBoundingClientRect().top - {before}) < 3"
    )
    expect(page.locator("section[aria-labelledby=naturalness] details.meanings").first).to_have_attribute("open", "")
    expect(page.locator("section[aria-labelledby=naturalness] caption").first).to_contain_text("raw ratings")


def test_headings_sort_alike_with_and_without_script(address, new_page):
    plain, scripted = new_page(java_script_enabled=False), new_page()
    for page in (plain, scripted):
        page.goto(address)
        page.locator("section[aria-labelledby=naturalness] details.more > summary").first.click()
        page.evaluate("() => document.documentElement.setAttribute('data-came', 'once')")
        page.locator("section[aria-labelledby=naturalness]").get_by_role("link", name="Ratings", exact=True).click()
    plain.wait_for_url("**sort=n**")
    scripted.wait_for_url("**sort=n**")
    assert scripted.locator("html").get_attribute("data-came") == "once"
    in_order = names_in(plain, "naturalness")
    wait_until(lambda: names_in(scripted, "naturalness") == in_order, "the same order")
    expect(plain.locator("[aria-sort]").first).to_have_text(re.compile("^Ratings"))


def test_print_fits_a4(address, page):
    page.set_viewport_size({"width": A4_TEXT, "height": 1000})
    for path in (address, f"{address}systems/T01-p1/"):
        page.goto(path)
        page.emulate_media(media="print")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= A4_TEXT
        expect(page.locator(".contents, .masthead .nav").first).to_be_hidden()
        assert page.locator(".switch").inner_text().split("\n")[0].startswith("Normalised ranks")
        expect(page.locator("table.results-table").first).to_be_visible()
        sizes = page.evaluate(
            """() => [...document.querySelectorAll("main :is(caption, figcaption, td, small, dd, .soft)")]
              .filter((element) => element.checkVisibility())
              .map((element) => [parseFloat(getComputedStyle(element).fontSize), element.outerHTML.slice(0, 99)])"""
        )
        assert [(size, text[:60]) for size, text in sizes if size > 12.5] == []  # 9 points are 12
        assert {size for size, text in sizes if text.startswith("<td") and "text" in text[:20]} <= {9.6}


def test_page_follows_its_analysis(study, address, organizer, new_page):
    job = make_job("running", kind="analyse-study", title="Analysis")
    Job.objects.filter(pk=job.pk).update(stage="Mixed model, raw", done=5, total=19)
    pending = study.analyses.create(basis="x", job=job)
    page = new_page(organizer)
    page.clock.install()
    page.goto(address)
    expect(page.locator("#analysis")).to_contain_text("Mixed model, raw")
    Job.objects.filter(pk=job.pk).update(stage="Drawing the figures", done=7)
    drawing = page.locator("#analysis").get_by_text("Drawing the figures")
    leap_until(page, drawing.is_visible)
    pending.delete()
    leap_until(page, drawing.is_hidden)
    expect(page.locator("#naturalness")).to_be_visible()
