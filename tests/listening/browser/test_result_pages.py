"""Results of a study in a browser: every page at both widths and schemes, the switch of scores, read-outs, print."""

import pytest

from portal.jobs.models import Job
from tests.listening.analysis.examples import made_up_results
from tests.listening.results.analysed import make_analysed, make_closed
from tests.portal.factories import make_job, make_organizer

pytestmark = pytest.mark.django_db(transaction=True)
DRAWN = tuple(
    f"{scores}/{name}-{theme}.svg"
    for scores in ("raw", "normalised")
    for name in ("violin-naturalness", "det-naturalness", "significance-naturalness", "det-naturalness-of-T01-p1")
    for theme in ("light", "dark")
)
A4_TEXT = 680  # width of the text of an A4 page with usual margins, in pixels


@pytest.fixture
def organizer():
    return make_organizer(name="Olga Organizer")


@pytest.fixture
def study(organizer):
    return make_analysed(
        organizer=organizer, title="First hearing", is_simulated=True, figures=DRAWN, heard=["T01-p1"], publish=True
    )  # fmt: skip


@pytest.fixture
def address(study):
    return f"/studies/{study.name}/results/"


def top_of(page, selector):
    return page.locator(selector).evaluate("(element) => element.getBoundingClientRect().top")


def names_in(page, task):
    names = page.locator(f"section[aria-labelledby={task}] table[data-sortable] tbody th").all_inner_texts()
    return [name.strip() for name in names]


def test_results_of_a_study_are_sound_for_a_visitor(page, address, check_page):
    page.goto(address)
    assert page.locator("h1").inner_text() == "What listeners said: First hearing"
    check_page(page, "results")
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => (one.open = true))")
    check_page(page, "results-open", schemes=("light",))


def test_results_are_sound_for_an_organizer(new_page, organizer, address, check_page):
    page = new_page(organizer)
    page.goto(address)
    page.get_by_role("link", name="Take back").wait_for()
    check_page(page, "results-organizer", schemes=("light",))


def test_results_of_a_system_are_sound(new_page, organizer, address, check_page):
    page = new_page(organizer)
    page.goto(address)
    page.locator("section[aria-labelledby=naturalness]").get_by_role("link", name="T01-p1", exact=True).first.click()
    page.get_by_text("Listen to the disagreements").wait_for()
    check_page(page, "results-system")
    page.locator("section[aria-labelledby=heard] a[href*='/systems/']").first.click()
    page.get_by_role("heading", name="1089-134686-0000").wait_for()


def test_pages_for_organizers_are_sound(new_page, organizer, study, address, check_page):
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
    page.goto(f"/studies/{make_closed(organizer=organizer).name}/results/")
    check_page(page, "results-none", schemes=("light",))


def test_switching_scores_keeps_the_place(page, address):
    page.goto(address)
    assert page.locator(".switch [aria-current]").inner_text() == "Normalised ranks"
    page.locator("#naturalness").evaluate(
        "(heading) => scrollTo(0, scrollY + heading.getBoundingClientRect().top - 150)"
    )
    page.locator("section[aria-labelledby=naturalness] details.meanings > summary").first.click()
    before = top_of(page, "#naturalness")
    page.get_by_role("link", name="Raw ratings").click()
    page.wait_for_url("**scores=raw**")
    assert page.locator(".switch [aria-current]").inner_text() == "Raw ratings"
    page.wait_for_function(
        f"() => Math.abs(document.querySelector('#naturalness').getBoundingClientRect().top - {before}) < 3"
    )
    assert page.locator("section[aria-labelledby=naturalness] details.meanings").first.get_attribute("open") is not None
    assert "raw ratings" in page.locator("section[aria-labelledby=naturalness] caption").first.inner_text()


def test_pointing_reads_numbers_out(page, address):
    page.goto(address)
    square = page.locator("section[aria-labelledby=compare-naturalness]")
    square.locator("td[data-read]").first.hover()
    assert "Original speech" in square.locator(".readout").inner_text()
    page.goto(f"{address}systems/T01-p1/")
    figure = page.locator("figure[data-curve]").first
    figure.locator("svg").hover()
    assert "false alarms" in figure.locator(".readout").inner_text()
    assert figure.locator(".dot").is_visible()


def test_headings_sort_alike_with_and_without_script(new_page, address):
    plain, scripted = new_page(java_script_enabled=False), new_page()
    for page in (plain, scripted):
        page.goto(address)
        page.locator("section[aria-labelledby=naturalness]").get_by_role("link", name="Ratings", exact=True).click()
    plain.wait_for_url("**sort=n**")
    assert "sort=" not in scripted.url
    assert names_in(plain, "naturalness") == names_in(scripted, "naturalness")
    assert plain.locator("[aria-sort]").first.inner_text().startswith("Ratings")


def test_sixty_two_systems_scroll_in_their_regions(page, organizer):
    systems = tuple(f"T{number:02}-p1" for number in range(1, 63))
    study = make_analysed(organizer=organizer, results=made_up_results(systems=systems), publish=True)
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(f"/studies/{study.name}/results/")
    assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    region = page.locator("section[aria-labelledby=naturalness] .table-scroll").first
    name = region.locator("tbody th").nth(1)
    left = name.bounding_box()["x"]
    region.evaluate("(element) => element.scrollTo(300, 400)")
    assert name.bounding_box()["x"] == left
    assert region.locator("thead th").first.bounding_box()["y"] >= region.bounding_box()["y"] - 1


def test_print_fits_a4(page, address):
    page.set_viewport_size({"width": A4_TEXT, "height": 1000})
    for path in (address, f"{address}systems/T01-p1/"):
        page.goto(path)
        page.emulate_media(media="print")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= A4_TEXT
        assert not page.locator(".contents, .masthead .nav").first.is_visible()
        assert page.locator(".switch").inner_text().split("\n")[0].startswith("Normalised ranks")
        assert page.locator("table.results-table").first.is_visible()


def test_page_follows_its_analysis(new_page, organizer, study, address):
    job = make_job("running", kind="analyse-study", title="Analysis")
    Job.objects.filter(pk=job.pk).update(stage="Mixed model, raw", done=5, total=19)
    pending = study.analyses.create(basis="x", job=job)
    page = new_page(organizer)
    page.goto(address)
    page.locator("#analysis").get_by_text("Mixed model, raw").wait_for()
    Job.objects.filter(pk=job.pk).update(stage="Drawing the figures", done=7)
    page.locator("#analysis").get_by_text("Drawing the figures").wait_for()
    pending.delete()
    page.locator("#analysis").get_by_text("Drawing the figures").wait_for(state="detached")
    assert page.locator("#naturalness").is_visible()
