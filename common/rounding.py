"""Numbers as they are read beside their interval: no more decimals than the interval leaves meaning to.

The rule is that of the Particle Data Group (Review of Particle Physics, section 5.3): half of the interval keeps two
significant digits where these are below 36, and one otherwise, so that 30.412 ± 20.1 reads 30 ± 20, and 8.31 ± 1.24
reads 8.3 ± 1.2. A number of ours without an interval, which many decimals would make look sure, is read with few. A
half is rounded away from zero. Files keep every digit.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)  # digits enough for any float
_NO_WIDTH = 1e-9  # of an interval: what computing leaves between ends that are one number
_TWO_DIGITS_BELOW = 3.55  # first digits of half an interval
FEW_OF_PERCENTAGES, FEW = 1, 2  # decimals of a number without an interval


def interval_digits(low: float, high: float, most: int) -> int:
    """Return decimals that an interval leaves meaning to, from 0 to `most`.

    Args:
        low, high: ends of the interval, in the unit that is shown.
        most: decimals of a number without an interval.

    Example:
        >>> interval_digits(10.3, 50.5, 3), interval_digits(7.07, 9.55, 3), interval_digits(0.61, 0.61, 3)
        (0, 1, 3)
    """
    half = abs(high - low) / 2
    if not math.isfinite(half) or half == 0:
        return most
    power = math.floor(math.log10(half))
    digits = 1 - power if half / 10**power < _TWO_DIGITS_BELOW else -power
    return max(0, min(most, digits))


def few_digits(value: float, unit: str, most: int) -> int:
    """Return decimals of a number without an interval: one of a percentage, two of any other, more where it would read
    0.

    Example:
        >>> few_digits(34.483, "%", 3), few_digits(0.8243, "", 4), few_digits(0.0042, "", 3)
        (1, 2, 3)
    """
    few = min(most, FEW_OF_PERCENTAGES if unit == "%" else FEW)
    return next((digits for digits in range(few, most) if value == 0 or float(_fixed_ascii(value, digits))), most)


def round_to_interval(
    value: float, low: float | None, high: float | None, most: int, unit: str | None = None, *, fewest: int = 0
) -> tuple[str, str]:
    """Return a number and its interval as texts of the same decimals.

    Args:
        value, low, high: in the unit that is shown. Without an end, or with equal ends, there is no interval: one that
            no resample widens, as with two speakers, could not be estimated. One whose ends look equal is not shown.
        most: the most decimals.
        unit: of a number of ours, which without an interval has `few_digits`; None of a number that was printed
            elsewhere, which keeps `most`.
        fewest: decimals at least, of a number with an interval.

    Returns:
        Such as ``("30", "10 to 51")``, or ``("30.4", "")`` without an interval; minus signs are true ones.
    """
    if low is None or high is None or not has_width(low, high):
        return fixed(value, most if unit is None else few_digits(value, unit, most)), ""
    digits = max(fewest, interval_digits(low, high, most))
    lower, upper = fixed(low, digits), fixed(high, digits)
    return fixed(value, digits), f"{lower} to {upper}" if lower != upper else ""


def range_in_words(low: str, high: str) -> str:
    """Return two written ends as a range, or the one number that both are.

    Example:
        >>> range_in_words("3", "5"), range_in_words("25", "25")
        ('3 to 5', '25')
    """
    return low if low == high else f"{low} to {high}"


def has_width(low: float, high: float) -> bool:
    """Return whether two ends make an interval: False of one number that was computed in two ways."""
    return not math.isclose(low, high, rel_tol=_NO_WIDTH, abs_tol=_NO_WIDTH)


def fixed(value: float, digits: int) -> str:
    """Return a number with so many decimals and a true minus sign; zero has none.

    Example:
        >>> fixed(62.5, 0), fixed(-0.125, 2), fixed(-0.001, 2)
        ('63', '−0.13', '0.00')
    """
    return _fixed_ascii(value, digits).replace("-", "\u2212")


def _fixed_ascii(value: float, digits: int) -> str:
    """Return the same with the minus sign of programs."""
    if not math.isfinite(value):
        return f"{value}"
    rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), context=_EXACT)
    return f"{rounded if rounded else abs(rounded):f}"


def format_distinct(value: float, limit: float, digits: int) -> str:
    """Return a number with as many digits as it takes to see that it is not the limit: 14.9996, not 15.000, below
    15."""
    for wanted in range(digits, 17):
        text = f"{value:.{wanted}f}"
        if value == limit or float(text) != limit:
            return text
    return repr(value)
