"""Numbers of bytes in words, in powers of ten everywhere: ``9.3 MB`` are 9.3 million bytes, as on a disk."""

from __future__ import annotations

_UNITS = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def size_words(count: int) -> str:
    """A number of bytes for a sentence.

    Example:
        >>> size_words(9_312_345), size_words(20 * 10**9), size_words(999_950), size_words(1)
        ('9.3 MB', '20 GB', '1 MB', '1 byte')
    """
    for size, unit in _UNITS:
        if count >= size - size // 20_000:  # what would be rounded to a thousand of the unit below
            return f"{count / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{count:,} byte{'' if count == 1 else 's'}"
