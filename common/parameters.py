"""Parameters that commands share, and the check of those that exclude each other."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from common.errors import CommandError

AsJson = Annotated[bool, Option("--json", help="Machine-readable, with every digit.")]


def require_one(given: dict[str, object], *, is_required: bool = True) -> None:
    """Raise CommandError where several of these options were given, or none although one is required.

    Args:
        given: what was given, by the names of the options as people type them.
    """
    found = [name for name, value in given.items() if value not in (None, False)]
    if len(found) > 1 or (is_required and not found):
        wanted = "one of" if is_required else "at most one of"
        raise CommandError(f"Expected {wanted} {', '.join(given)}, found {' and '.join(found) or 'none'}.")
