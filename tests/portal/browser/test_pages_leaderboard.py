"""The board in a browser: what the world sees, and what its organizer decides about it."""

from pathlib import Path

import pytest
from django.utils import timezone

from portal.results.board import board_of
from portal.results.board_figures import drawings_of, figure_file
from portal.submissions.models import System
from tests.browsing import SCREENSHOTS
from tests.portal.boards import make_baseline, make_board, put_on_board
from tests.portal.factories import make_edition, make_organizer, make_team, make_team_system

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = ("Alder", "Birchwood Audio", "Cedar", "Dogwood Speech Laboratory", "Elm", "Fir")
# Of each system: team, label, EER, WER, ρF0, G_VD.
SYSTEMS = (
    (0, "p1", 15.25, 7.12, 0.71, -9.1),
    (0, "p2", 21.4, 7.49, 0.69, -10.3),
    (0, "c1", 31.92, 9.42, 0.58, -12.9),
    (1, "p1", 16.8, 7.31, 0.66, -5.2),
    (1, "p2", 25.31, 8.61, 0.64, -8.8),
    (2, "p1", 20.04, 7.95, 0.42, -3.1),
    (3, "p1", 41.7, 12.9, 0.35, -14.2),
    (3, "c1", 52.3, 19.4, 0.33, -17.5),
    (4, "p1", 28.6, 8.02, 0.27, -6.6),
)


@pytest.fixture
def organizer():
    return make_organizer(name="Olga Organizer")


@pytest.fixture
def edition(organizer):
    """A board as a challenge would have it: six teams, late, gated, claimed and missing ones, three baselines."""
    edition = make_edition(organizers=[organizer], name="vpc", title="VoicePrivacy 2026")
    teams = [make_team(edition, name=name) for name in NAMES]
    for team, label, eer, wer, pitch, gain in SYSTEMS:
        put_on_board(make_team_system(teams[team], label), eer=eer, wer=wer, pitch=pitch, gain=gain, interval=0.6)
    late = make_team_system(teams[5], "p1")
    put_on_board(late, eer=22.2, wer=7.2, pitch=0.6, interval=0.6, is_late=True)
    claimed = make_team_system(teams[5], "c1")
    put_on_board(claimed, eer=18.0, wer=6.9, claimed=True)
    lost = ("EER (Kaldi) of vctk_test_trials_f, semi-informed", "no scores", True)
    put_on_board(make_team_system(teams[4], "c1"), eer=20, wer=8, missing=[lost])
    make_baseline(edition, "B1.a", eer=15.81, wer=8.285, pitch=0.765, gain=-10.145)
    make_baseline(edition, "B1.b", eer=9.183, wer=7.56, pitch=0.801, gain=-6.438)
    make_baseline(edition, "B2", eer=7.769, wer=9.03, pitch=0.62, gain=-1.633)
    return edition


def draw(edition):
    """Draw every figure of the board beforehand, so that pictures of the page hold them."""
    board = board_of(edition)
    for slug in drawings_of(board):
        for theme in ("light", "dark"):
            for shape in ("", "narrow"):
                figure_file(board, slug, "svg", theme, shape)


def publish(edition):
    edition.published_at = timezone.now()
    edition.save()


def texts(page, selector):
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


@pytest.mark.parametrize(("width", "shape"), [(1280, ""), (360, "narrow")])
def test_figures_keep_their_place_before_they_have_come(page, edition, width, shape):
    publish(edition)
    draw(edition)
    held = []
    page.route("**/board/figures/**", lambda route: held.append(route))
    page.set_viewport_size({"width": width, "height": 20_000})  # nothing is far enough away to be loaded later
    page.goto("/editions/vpc/board/", wait_until="domcontentloaded")
    page.wait_for_timeout(200)
    heights = "() => [...document.querySelectorAll('img.plate')].map((image) => image.getBoundingClientRect().height)"
    before = page.evaluate(heights)
    for route in held:
        route.continue_()
    page.wait_for_function("() => [...document.querySelectorAll('img.plate')].every((image) => image.naturalWidth > 0)")
    after = page.evaluate(heights)
    assert len(before) == 3
    assert min(before) > 100
    assert before == pytest.approx(after, abs=1.5)
    shown = page.evaluate("() => document.querySelector('.wide-figure img').currentSrc")
    assert ("shape=narrow" in shown) is bool(shape)


def test_published_board_is_sound_at_every_width_for_a_visitor(page, edition, check_page):
    publish(edition)
    draw(edition)
    page.goto("/editions/vpc/board/")
    assert page.locator("h1").inner_text() == "Board of VoicePrivacy 2026"
    assert page.locator("table.board").count() == 5
    page.wait_for_function("() => document.querySelector('.wide-figure img').naturalWidth > 0")
    check_page(page, "board")


def test_empty_board_says_who_came_near(new_page, organizer, check_page):
    edition = make_edition(organizers=[organizer], name="low")
    put_on_board(make_team_system(make_team(edition), "p1"), eer=11.809, wer=8.285)
    page = new_page(organizer)
    page.goto("/editions/low/board/")
    assert "came nearest with 11.809 %, 3.191 away." in page.locator("main").inner_text()
    check_page(page, "board-empty")


def test_headings_sort_in_place_and_say_so(page, edition):
    publish(edition)
    page.goto("/editions/vpc/board/")
    table = page.locator("table[data-sortable]").first
    names = lambda: [text.split()[0] for text in table.locator("tbody th").all_inner_texts()]  # noqa: E731
    by_rank = names()
    table.get_by_role("link", name="EER").click()
    assert names()[0] == "T04-c1"
    assert table.locator("[aria-sort]").get_attribute("aria-sort") == "descending"
    assert page.url.endswith("/board/")
    table.get_by_role("link", name="EER").click()
    assert names()[0] == "Original"
    table.get_by_role("link", name="Rank").click()
    assert names() == by_rank


def test_headings_sort_without_script_alike(new_page, edition):
    publish(edition)
    plain, scripted = new_page(java_script_enabled=False), new_page()
    orders = []
    for page in (plain, scripted):
        page.goto("/editions/vpc/board/")
        page.locator("table[data-sortable]").first.get_by_role("link", name="Pitch").click()
        if page is plain:
            page.wait_for_url("**sort=pitch_correlation**")
        orders.append(texts(page, "table[data-sortable] >> nth=0 >> tbody th"))
    assert orders[0] == orders[1]


def test_organizer_tries_a_policy_makes_it_live_and_publishes(new_page, organizer, edition, check_page):
    page = new_page(organizer)
    page.goto("/editions/vpc/board/")
    page.get_by_role("link", name="Policy").click()
    check_page(page, "board-policy")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_label("Minimum EERs of the conditions").fill("10, 20, 30")
    page.get_by_label("interval: only in the last").check()
    page.get_by_label("are ranked and marked late").check()
    page.get_by_role("button", name="Save as a draft").click()
    assert "What the draft would change" in page.locator("main").inner_text()
    check_page(page, "board-policy-draft")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("link", name="Make it live").click()
    check_page(page, "board-live")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("button", name="Make it live").click()
    assert "The policy is live." in page.locator(".messages").inner_text()
    page.get_by_role("link", name="Freeze").click()
    check_page(page, "board-freeze")
    page.get_by_role("button", name="Show what it would hold").click()
    check_page(page, "board-freeze-preview")
    page.get_by_role("button", name="Freeze it so").click()
    page.get_by_role("link", name="Publish").click()
    check_page(page, "board-publish")
    page.get_by_role("button", name="Publish").click()
    assert "published" in page.locator(".page-title").inner_text()
    visitor = new_page()
    visitor.goto("/editions/vpc/board/")
    assert "EER from 10 % to below 20 %" in visitor.locator("main").inner_text()
    assert "Frozen." in visitor.locator("main").inner_text()


def test_policy_form_says_what_is_wrong(new_page, organizer, check_page):
    make_board(organizers=[organizer], name="wrong")
    page = new_page(organizer)
    page.goto("/editions/wrong/board/policy/")
    page.get_by_label("Minimum EERs of the conditions").fill("20, 15")
    page.get_by_role("button", name="Save as a draft").click()
    assert "Expected limits from 0 to 100 % that ascend, found 20, 15." in page.locator(".error-summary").inner_text()
    check_page(page, "board-policy-wrong")
    assert System.objects.filter(edition__draft_policy={}).exists()


def test_board_prints_without_what_only_a_screen_needs(page, edition):
    publish(edition)
    page.goto("/editions/vpc/board/")
    page.emulate_media(media="print")
    if SCREENSHOTS:
        page.set_viewport_size({"width": 794, "height": 1123})
        page.screenshot(path=Path(SCREENSHOTS) / "board-print.png", full_page=True)
    assert not page.locator(".masthead .nav").is_visible()
    assert page.locator("table.board").first.is_visible()
