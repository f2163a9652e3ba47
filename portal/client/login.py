"""``vp login``: keep address and access token of a portal for the next commands."""

from __future__ import annotations

import getpass
import sys

from common.errors import CommandError
from common.terminal import FINE, print_text
from portal.client.api import Server, keep_login, open_portal


def log_in(server: Server = None) -> int:
    """Save the address of a portal and an access token from your account page.

    They are kept once the portal confirms that the token is valid. Type the token when asked (it is not shown), or give
    it on standard input.

        vp login --server https://portal.example.org
    """
    try:
        token = getpass.getpass("Access token: ") if sys.stdin.isatty() else sys.stdin.readline()
    except EOFError:
        token = ""
    if not token.strip():
        raise CommandError("No token was given: type it when asked, or give it on standard input.")
    with open_portal(server, token.strip()) as portal:
        me = portal.get("me")
        place = keep_login(portal.address, token.strip())
        print_text(f"You are {me['name']} on {portal.address}; the token may {', '.join(me['token']['scopes'])}.")
    print_text(f"Kept in {place}, which only you can read.")
    return FINE
