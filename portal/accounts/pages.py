"""What the pages about people show: the list of accounts, and one of them."""

from __future__ import annotations

from collections.abc import Iterable

from common.tables import Cell
from portal.accounts.models import User


def people_rows(people: Iterable[User]) -> list[tuple[User, str, Cell]]:
    """Return accounts with their roles and state."""
    return [(user, roles_in_words(user), state_cell(user)) for user in people]


def roles_in_words(user: User) -> str:
    """Such as ``organizer, operator``."""
    roles = [word for word, has in (("organizer", user.is_organizer), ("operator", user.is_staff)) if has]
    return ", ".join(roles) or "member"


def state_cell(user: User) -> Cell:
    """Return whether an account is active, waits for its owner, or is deactivated; reads the addresses of `user`."""
    if not user.is_active:
        return Cell("deactivated", badge="cancelled")
    if not user.has_usable_password():
        return Cell("invited", badge="waiting")
    addresses = user.emailaddress_set.all()  # type: ignore[attr-defined]
    if addresses and not any(one.verified for one in addresses):
        return Cell("not confirmed", badge="waiting")
    return Cell("active", badge="succeeded")
