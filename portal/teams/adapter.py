"""What the log-in library asks of teams."""

from __future__ import annotations

from portal.accounts.adapter import AccountAdapter
from portal.accounts.rules import Voucher
from portal.teams.selectors import find_voucher


class InvitingAdapter(AccountAdapter):
    """Lets the link of an invitation confirm an address."""

    def find_voucher(self, link: str) -> Voucher | None:
        """Return what vouches for an address by the link of an invitation to a team."""
        return find_voucher(link)
