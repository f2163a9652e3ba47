"""The leaderboard in a browser: what the world sees, and what its organizer decides about it."""

from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.browsing import SCREENSHOTS, wait_until
from tests.portal.factories import make_edition, make_organizer, make_team, make_team_system
from tests.portal.leaderboards import make_baseline, put_on_leaderboard

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


def full_leaderboard():
    """A leaderboard as a challenge has it: six teams, late, gated, reported and missing ones, three baselines."""
    organizer = make_organizer(name="Olga Organizer")
    edition = make_edition(organizers=[organizer], name="vpc", title="VoicePrivacy 2026")
    teams = [make_team(edition, name=name) for name in NAMES]
    for team, label, eer, wer, pitch, gain in SYSTEMS:
        put_on_leaderboard(make_team_system(teams[team], label), eer=eer, wer=wer, pitch=pitch, gain=gain, interval=0.6)
    late = make_team_system(teams[5], "p1")
    put_on_leaderboard(late, eer=22.2, wer=7.2, pitch=0.6, interval=0.6, is_late=True)
    reported = make_team_system(teams[5], "c1")
    put_on_leaderboard(reported, eer=18.0, wer=6.9, reported=True)
    lost = ("EER (Kaldi) of vctk_test_trials_f, semi-informed", "no scores", True)
    put_on_leaderboard(make_team_system(teams[4], "c1"), eer=20, wer=8, missing=[lost])
    make_baseline(edition, "B1.a", eer=15.81, wer=8.285, pitch=0.765, gain=-10.145)
    make_baseline(edition, "B1.b", eer=9.183, wer=7.56, pitch=0.801, gain=-6.438)
    make_baseline(edition, "B2", eer=7.769, wer=9.03, pitch=0.62, gain=-1.633)
    return edition


@pytest.fixture
def edition(once):
    return once(full_leaderboard)


@pytest.fixture
def organizer(edition):
    return edition.organizers.get()


def publish(edition):
    edition.published_at = timezone.now()
    edition.save()


def texts(page, selector):
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def test_published_leaderboard_with_its_drawn_figure_is_sound_on_screens_and_paper(edition, new_page, check_page):
    """A point of its figure leads to the system; each width has its own form."""
    publish(edition)
    page = new_page(java_script_enabled=False)
    wide, narrow = (page.locator(f".table-and-figure .drawn-{form} svg") for form in ("wide", "narrow"))
    for width, shown, hidden in ((360, narrow, wide), (1280, wide, narrow)):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto("/editions/vpc/leaderboard/")
        expect(shown).to_be_visible()
        expect(hidden).to_be_hidden()
        sizes = "(one) => 9 * one.getBoundingClientRect().width / one.viewBox.baseVal.width"  # of the smallest text
        assert shown.evaluate(sizes) >= 10
        assert shown.bounding_box()["width"] <= width
        marked = page.locator(".leaderboard td.num .reading:has(.mark):has(small)").first
        interval, mark = (marked.locator(part).bounding_box() for part in ("small", ".mark"))
        assert mark["y"] >= interval["y"] + interval["height"]  # beneath it, so that it covers no other number
    shown.get_by_role("link", name="T04-c1").first.click()
    page.wait_for_url("**/systems/**t04-c1/")
    page = new_page()
    page.goto("/editions/vpc/leaderboard/")
    expect(page.locator("h1")).to_have_text("Leaderboard of VoicePrivacy 2026")
    expect(page.locator("table.leaderboard")).to_have_count(1)
    check_page(page, "leaderboard")

    # Paper gets nothing that only a screen needs.
    page.emulate_media(media="print")
    if SCREENSHOTS:
        page.set_viewport_size({"width": 794, "height": 1123})
        page.screenshot(path=Path(SCREENSHOTS) / "board-print.png", full_page=True)
    expect(page.locator(".masthead .nav")).to_be_hidden()
    expect(page.locator("table.leaderboard").first).to_be_visible()
    expect(page.get_by_text("Baselines and the original speech are listed by their utility")).to_be_visible()
    expect(page.locator("details.printed > ul li").first).to_be_visible()
    chosen = page.locator(".choices-bar [aria-current]").first
    assert chosen.evaluate("(one) => getComputedStyle(one).borderTopStyle") == "none"  # words, no button
    figure, main = (page.locator(part).bounding_box()["width"] for part in (".table-and-figure .plate:visible", "main"))
    assert figure > 0.98 * main
    expect(page.get_by_role("heading", name="Downloads")).to_be_hidden()


def test_headings_sort_in_place_say_so_and_sort_alike_without_script(edition, new_page):
    publish(edition)
    page, plain = new_page(), new_page(java_script_enabled=False)
    page.goto("/editions/vpc/leaderboard/")
    table = page.locator("table[data-sortable]").first
    names = lambda: [text.split()[0] for text in table.locator("tbody th").all_inner_texts()]  # noqa: E731
    by_rank = names()
    table.get_by_role("link", name="EER").click()
    wait_until(lambda: names()[0] == "T04-c1", "the order by EER")
    expect(table.locator("[aria-sort]")).to_have_attribute("aria-sort", "descending")
    assert page.url.endswith("/leaderboard/?sort=eer&order=desc")
    others = page.locator(".choices-bar a").evaluate_all("links => links.map((link) => link.search)")
    assert others
    assert all("sort=eer&order=desc" in search for search in others)
    table.get_by_role("link", name="EER").click()
    wait_until(lambda: names()[0] == "Original", "the other order by EER")
    table.get_by_role("link", name="Rank").click()
    wait_until(lambda: names() == by_rank, "the order by rank")
    page.set_viewport_size({"width": 360, "height": 800})
    table.get_by_role("link", name="EER").click()
    wait_until(lambda: names()[0] == "T04-c1", "the order by EER on a phone")
    page.set_viewport_size({"width": 1280, "height": 800})

    plain.goto("/editions/vpc/leaderboard/")
    for one in (plain, page):
        one.locator("table[data-sortable]").first.get_by_role("link", name="WER").click()
    plain.wait_for_url("**sort=wer**")
    in_order = texts(plain, "table[data-sortable] >> nth=0 >> tbody th")
    wait_until(lambda: texts(page, "table[data-sortable] >> nth=0 >> tbody th") == in_order, "the same order")
