"""Numbers beside their intervals keep the decimals that the interval leaves meaning to, and no others."""

import pytest

from common.rounding import few_digits, round_to_interval


@pytest.mark.parametrize(
    ("number", "most", "read"),
    [
        ((30.412, 10.3, 50.5), 3, ("30", "10 to 51")),
        ((8.314, 7.07, 9.55), 3, ("8.3", "7.1 to 9.6")),
        ((46.21, 41.0, 50.3), 1, ("46", "41 to 50")),
        ((0.123456, 0.1234, 0.1235), 3, ("0.123", "0.123 to 0.124")),
        ((0.0, -1e-15, 0.0), 3, ("0.000", "")),
        ((0.00004, -0.00031, 0.00039), 3, ("0.000", "")),  # the ends look equal
        ((-0.3, -20.0, 19.6), 2, ("0", "−20 to 20")),
        ((30.412, None, 50.5), 3, ("30.412", "")),
        ((0.5, float("-inf"), 1.0), 2, ("0.50", "−inf to 1.00")),
    ],
)
def test_numbers_are_rounded_to_their_interval(number, most, read):
    value, low, high = number
    assert round_to_interval(value, low, high, most) == read


@pytest.mark.parametrize(
    ("value", "unit", "most", "read"),
    [
        (34.483, "%", 3, "34.5"),
        (0.0, "%", 3, "0.0"),
        (-0.0042, "bit", 3, "−0.004"),
        (0.00001, "", 3, "0.000"),
        (3.0, "", 0, "3"),
        (34.483, None, 3, "34.483"),
    ],
)
def test_numbers_of_ours_without_an_interval_have_few_decimals(value, unit, most, read):
    assert round_to_interval(value, None, None, most, unit) == (read, "")
    assert unit is None or few_digits(value, unit, most) == len(read.partition(".")[2])
