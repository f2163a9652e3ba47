"""Seeds of trainings: how people write them, and which ones can be taken."""

from __future__ import annotations

from collections.abc import Sequence

LARGEST_SEED = 2**31 - 1


def read_seeds(text: str) -> list[int]:
    """Seeds as a form takes them: whole numbers with commas or spaces between them.

    Raises:
        ValueError: something else is among them; its text is the sentence for the person.
    """
    parts = text.replace(",", " ").split()
    if not all(part.isascii() and part.isdecimal() and len(part) <= len(str(LARGEST_SEED)) for part in parts):
        raise ValueError("Seeds are whole numbers from 0 on with commas between them, such as 1, 2, 3.")
    return [int(part) for part in parts]


def find_wrong_seeds(seeds: Sequence[int], most: int) -> str:
    """Return why these cannot be the seeds of a training, a sentence; empty where they can."""
    is_wrong = not 1 <= len(seeds) <= most or any(not 0 <= seed <= LARGEST_SEED for seed in seeds)
    if is_wrong or len(set(seeds)) < len(seeds):
        found = ", ".join(map(str, seeds)) or "none"
        return f"Give 1 to {most} different seeds from 0 to {LARGEST_SEED}; found {found}."
    return ""
