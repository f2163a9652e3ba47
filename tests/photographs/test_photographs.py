"""The photographs miss no page; contact sheets and summary, of pictures that no browser has to take."""

from tests.photographs.__main__ import summarize
from tests.photographs.finding import NOT_PAGES, OBJECTS, list_patterns
from tests.photographs.states import NEEDED
from tests.photographs.taking import Look
from tests.portal.test_access import MATRIX

ONLY_SENT = {name for name, answers in MATRIX.items() if 405 in answers}


def test_each_pattern_that_can_be_read_is_visited_or_has_a_reason():
    missed = [one.name for one in list_patterns() if not (one.reason or one.is_visited or one.name in ONLY_SENT)]
    assert missed == []


def test_no_reason_and_no_object_is_left_over():
    patterns = list_patterns()
    names = {name for one in patterns for name in (one.name, one.space)}
    assert NOT_PAGES.keys() - names == set()
    assert OBJECTS.keys() - {(one.space, one.parameters) for one in patterns if not one.reason} == set()
    assert NEEDED.keys() - {one.name for one in patterns if not one.reason} == set()


def _look(number, height, **fields):
    shown = {"state": "", "width": 1280, "theme": "light", "status": 200, "height": height, "limit": 4000}
    return Look(number, "home", f"/{number}/", "visitor", **shown | {"picture": f"{number}.png"} | fields)


def test_summary_tells_each_problem_once_with_its_pages():
    looks = [
        _look(1, 5000, axe=["no name"]),
        _look(1, 5000, theme="dark", axe=["no name"]),
        _look(2, 100, failed=["500 /2/"]),
    ]
    summary = summarize(looks, ["teams:edit"], 3)
    assert summary.startswith("2 pages with 2 states, 3 looks, 3 s\n")
    assert "taller than its limit: 1\n  1 /1/ visitor 1280: 5000 px\n\n" in summary
    assert "axe: 1\n  no name\n    1 /1/ visitor 1280 light\n    1 /1/ visitor 1280 dark\n" in summary
    assert "failed: 1\n  500 /2/\n" in summary
    assert "or for nobody to see: teams:edit\n" in summary
