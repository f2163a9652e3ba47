"""The table of reliability: which items are compared, what is said where nothing can be."""

import krippendorff
import numpy as np
import pytest

from listening.analysis.agreement.reliability import (
    ALPHA,
    ALPHA_ORDINAL,
    BRIDGE_SET,
    REPEAT_DIFFERENCE,
    REPEAT_WITHIN_ONE,
    REPEATEDLY_RATED,
    REPEATS,
    make_reliability_tables,
    select_bridge,
)
from listening.analysis.reading.inputs import BRIDGE
from tests.listening.analysis.rated import QUICK, drawn, joined, ratings_of, scored_of


def rows_of(ratings, kind="raw", settings=QUICK, **equal):
    return make_reliability_tables(ratings, scored_of(ratings, kind), settings)[0].records(**equal)


def row_of(ratings, measure, over, **how):
    (row,) = rows_of(ratings, measure=measure, over=over, **how)
    return row


def bridge_set(listeners=12, items=5, seed=0, missing=()):
    """Everybody rates each item on ten points; `missing`: (listener, item) that were not rated."""
    numbers = np.random.default_rng(seed)
    cells = [(a, b) for a in range(listeners) for b in range(items) if (a, b) not in missing]
    quality, bias = numbers.normal(5.5, 2, items), numbers.normal(0, 1, listeners)
    values = [np.clip(np.round(quality[b] + bias[a] + numbers.normal()), 1, 10) for a, b in cells]
    return ratings_of(
        [f"L{a:03}" for a, _ in cells],
        ["T01"] * len(cells),
        values,
        item=[f"bridge-{b}" for _, b in cells],
        purpose=BRIDGE,
    )


def each_item_once(listeners=12, each=8):
    """Nobody rates what another one rated."""
    names = [f"L{a:03}" for a in range(listeners) for _ in range(each)]
    values = np.random.default_rng(1).integers(1, 11, len(names))
    return ratings_of(names, ["original", "T01"] * (len(names) // 2), values, item=[f"i{n}" for n in range(len(names))])


def test_with_one_rating_an_item_no_index_exists_and_the_remedy_is_named():
    rows = rows_of(each_item_once())
    assert [(row["over"], row["value"]) for row in rows] == [
        (BRIDGE_SET, None),
        (REPEATEDLY_RATED, None),
        (REPEATS, None),
    ]
    assert rows[1]["remark"] == (
        "Each item was rated by one listener, so no index can be computed; a bridge set that everybody rates is the "
        "remedy."
    )


def test_a_bridge_set_is_compared_where_other_items_cannot_be():
    ratings = joined(each_item_once(), bridge_set())
    row = row_of(ratings, ALPHA, BRIDGE_SET)
    matrix = np.full((12, 5), np.nan)
    bridge = ratings.rows(ratings.purpose == BRIDGE)
    for listener, item, value in zip(bridge.listener, bridge.item, bridge.rating, strict=True):
        matrix[int(listener[1:]), int(item[-1])] = value
    assert row["value"] == pytest.approx(krippendorff.alpha(matrix, level_of_measurement="interval"))
    assert (row["n"], row["listeners"], row["items"]) == (60, 12, 5)
    assert row["value_low"] <= row["value"] <= row["value_high"]
    expected = krippendorff.alpha(matrix, level_of_measurement="ordinal")
    assert row_of(ratings, ALPHA_ORDINAL, BRIDGE_SET)["value"] == pytest.approx(expected)
    assert "see the bridge set" in row_of(ratings, ALPHA, REPEATEDLY_RATED)["remark"]
    assert row_of(ratings, "ICC(2,1)", BRIDGE_SET)["value"] < row_of(ratings, "ICC(2,k)", BRIDGE_SET)["value"] <= 1


def test_icc_leaves_out_who_did_not_rate_the_whole_bridge_set():
    ratings = joined(each_item_once(), bridge_set(missing={(3, 0), (4, 2)}))
    row = row_of(ratings, "ICC(2,1)", BRIDGE_SET)
    assert (row["listeners"], row["items"], row["n"]) == (10, 5, 50)
    assert row["remark"] == "2 listeners did not rate the whole bridge set and are left out."
    assert row_of(ratings, ALPHA, BRIDGE_SET)["n"] == 58


def test_normalised_bridge_ratings_are_scores_of_the_listener():
    """Rated 1, 5, 5, 10: normalised 0, .5, .5, 1; so 5 is .5, 3 lies between 1 and 5, and 2 to 1 is 0 at the end."""
    own = ratings_of(["A"] * 4, ["T1"] * 4, [1, 5, 5, 10], item=list("abcd"))
    bridge = ratings_of(["A"] * 3 + ["B"], ["T1"] * 4, [5, 3, 10, 7], item=list("wxyz"), purpose=BRIDGE)
    ratings = joined(own, bridge)
    found = select_bridge(ratings, scored_of(ratings, "normalised"), "naturalness")
    assert found.score.tolist() == [0.5, 0.25, 1.0]  # B has no scored rating
    assert select_bridge(ratings, scored_of(ratings), "naturalness").score.tolist() == [5, 3, 10]


def test_items_rated_by_several_listeners_are_compared_once_a_listener():
    ratings = joined(drawn(listeners=12, points=10), drawn(listeners=12, points=10))  # each answer given twice
    once = drawn(listeners=12, points=10)
    assert row_of(ratings, ALPHA, REPEATEDLY_RATED) == row_of(once, ALPHA, REPEATEDLY_RATED)
    assert row_of(ratings, REPEAT_DIFFERENCE, REPEATS)["value"] == 0


def test_repeats_are_how_far_a_listener_agrees_with_himself():
    first = ratings_of(list("AABB"), ["T1"] * 4, [1, 5, 5, 10], item=list("xyxy"))
    again = ratings_of(list("AABB"), ["T1"] * 4, [2, 5, 8, 8], item=list("xyxz"))
    ratings = joined(first, again)
    assert row_of(ratings, REPEAT_DIFFERENCE, REPEATS)["value"] == pytest.approx((1 + 0 + 3) / 3)
    row = row_of(ratings, REPEAT_WITHIN_ONE, REPEATS)
    assert (row["value"], row["n"], row["listeners"], row["items"]) == (pytest.approx(2 / 3), 3, 2, 2)
    assert row_of(ratings, REPEAT_WITHIN_ONE, REPEATS, kind="normalised")["value"] == pytest.approx(2 / 3)


def test_excluded_sessions_do_not_speak_for_the_bridge_set():
    out = bridge_set()
    out = ratings_of(
        out.listener,
        out.system,
        out.rating,
        item=out.item,
        purpose=BRIDGE,
        excluded=np.where(out.listener == "L003", "low-variance", ""),
    )
    assert row_of(joined(each_item_once(), out), ALPHA, BRIDGE_SET)["listeners"] == 11
