"""Numbers as they are read beside their interval: no more decimals than the interval leaves meaning to.

The rule is that of the Particle Data Group (Review of Particle Physics, section 5.3): half of the interval keeps two
significant digits where these are below 36, and one otherwise, so that 30.412 ± 20.1 reads 30 ± 20, and 8.31 ± 1.24
reads 8.3 ± 1.2. Files keep every digit.
"""

from __future__ import annotations

import math

_TWO_DIGITS_BELOW = 3.55  # first digits of half an interval


def interval_digits(low: float, high: float, most: int) -> int:
    """Decimals that an interval leaves meaning to, from 0 to `most`.

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


def round_to_interval(value: float, low: float | None, high: float | None, most: int) -> tuple[str, str]:
    """A number and its interval as texts of the same decimals.

    Args:
        value, low, high: in the unit that is shown. Without an end, or with equal ends, there is no interval: one that
            no resample widens, as with two speakers, could not be estimated.
        most: decimals of a number without an interval, and the most of any.

    Returns:
        Such as ``("30", "10 to 50")``, or ``("30.412", "")`` without an interval; minus signs are true ones.
    """
    if low is None or high is None or low == high:
        return fixed(value, most), ""
    digits = interval_digits(low, high, most)
    return fixed(value, digits), f"{fixed(low, digits)} to {fixed(high, digits)}"


def fixed(value: float, digits: int) -> str:
    """A number with so many decimals and a true minus sign; zero has none."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "\u2212")
