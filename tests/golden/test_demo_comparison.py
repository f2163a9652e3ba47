"""The comparison sees every difference that matters, and what is frozen is read as it was written."""

from __future__ import annotations

import pytest

from tests.golden import demo
from tests.golden.demo_comparison import differences
from tests.golden.demo_rules import pack, plain, plain_address, share, unpack, unshare

ROW = {"label": "T01-p1", "rank": 1, "group": "a", "value": 0.25, "low": None}


@pytest.mark.parametrize(
    ("field", "value"),
    [("rank", 2), ("rank", 1.5), ("group", "ab"), ("value", 0.250003), ("value", None), ("low", 0.0), ("label", "")],
)
def test_difference_is_listed_with_its_place_and_both_values(field, value):
    [line] = differences({"rows": [ROW]}, {"rows": [ROW | {field: value}]}, "board")
    assert line.startswith(f"board › rows › 1 (T01-p1, a) › {field}: expected ")


def test_rounding_of_processors_is_no_difference():
    assert not list(differences([0.25, 0.0, 3.0], [0.2500002, 1e-10, 3]))


def test_samples_that_round_otherwise_are_no_difference_of_a_system_that_shifts_pitch():
    row = {"name": "demo-pitch-shift", "rank": 1, "rate": 0.43}
    assert not list(differences([row], [row | {"rate": 0.41}]))
    assert len(list(differences([row], [row | {"rank": 2, "rate": 0.3}]))) == 2


def test_every_difference_is_listed():
    found = {"gone": 1, "rows": [1, 2, 3]}, {"new": 2, "rows": [1, 3]}
    assert list(differences(*found)) == [
        " › gone: expected 1, found nothing",
        " › rows: expected 3 entries, found 2",
        " › rows: expected 2, found nothing",
        " › new: expected nothing, found 2",
    ]


def test_what_is_written_is_read_again():
    rows = [ROW | {"rank": number, "label": "x" * 200} for number in range(3)]
    content = {"one": {"rows": rows, "empty": []}, "two": {"rows": rows}}
    written = share(pack(content))
    assert "same as" in str(written["two"])
    assert unpack(unshare(written)) == content


def test_what_differs_from_run_to_run_is_left_out():
    assert (
        plain("at 2026-11-30T05:01:52.831369Z by http://127.0.0.1:8000/media/a.b:c")
        == "at <time> by <portal>/media/<signed>"
    )
    assert plain_address("/submissions/3/documents/12/") == "/submissions/3/documents/<number>/"


def test_frozen_files_are_as_they_are_written(tmp_path):
    demo.write(demo.read_frozen(), tmp_path)
    for path in demo.FROZEN.glob("*.json"):
        assert (tmp_path / path.name).read_text() == path.read_text(), path.name
