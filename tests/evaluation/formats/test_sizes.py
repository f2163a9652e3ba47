"""One unit of size everywhere: powers of ten."""

import pytest

from common.memory import format_size


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 bytes"), (1000, "1 kB"), (9_312_345, "9.3 MB"), (999_950, "1 MB"), (2 * 10**12, "2 TB")]
)
def test_sizes_are_powers_of_ten(count, words):
    assert format_size(count) == words
