"""What the pages about people show: the list of accounts, and one of them."""

from __future__ import annotations

from collections.abc import Iterable

from django.urls import reverse

from common.tables import Cell, Column, Table, plain_table
from portal.accounts.models import User
from portal.core.labels import MISSING, moment_cell

COLUMNS = (
    Column("name", "Name", kind="text"),
    Column("email", "E-mail", kind="text"),
    Column("roles", "Roles"),
    Column("state", "State"),
    Column("since", "Since"),
    Column("last", "Last log-in (UTC)"),
)


def people_table(people: Iterable[User]) -> Table:
    """A page of the accounts, each with a link to its own page."""
    rows = (
        [
            Cell(str(user), link=reverse("people:person", args=[user.pk])),
            user.email,
            roles_in_words(user),
            state_cell(user),
            moment_cell(user.date_joined),
            moment_cell(user.last_login, "%Y-%m-%d %H:%M") if user.last_login else MISSING,
        ]
        for user in people
    )
    return plain_table("People", COLUMNS, rows, caption="Accounts by name", is_caption_hidden=True, is_page=True)


def roles_in_words(user: User) -> str:
    """Such as ``organizer, operator``."""
    roles = [word for word, has in (("organizer", user.is_organizer), ("operator", user.is_staff)) if has]
    return ", ".join(roles) or "member"


def state_cell(user: User) -> Cell:
    """Whether an account is active, waits for its owner, or is deactivated; reads the addresses of `user`."""
    if not user.is_active:
        return Cell("deactivated", badge="cancelled")
    if not user.has_usable_password():
        return Cell("invited", badge="waiting")
    addresses = user.emailaddress_set.all()  # type: ignore[attr-defined]
    if addresses and not any(one.verified for one in addresses):
        return Cell("not confirmed", badge="waiting")
    return Cell("active", badge="succeeded")
