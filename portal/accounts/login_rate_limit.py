"""How many wrong passwords are taken, by network address, account and browser."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from allauth.core.internal import ratelimit
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from portal.accounts.models import User

# Wrong passwords: from one address, for an account from one address, for an account from all strange browsers, and for
# an account from a browser in which it was logged in before, whom nobody else's attempts keep out.
PER_ADDRESS, PER_PAIR, PER_ACCOUNT, PER_KNOWN_BROWSER = "10/m/ip", "5/5m/key", "20/5m/key", "5/5m/key"
KNOWN_FOR_S = 365 * 24 * 3600
_SIGNED_BY = {"salt": "known browser"}


def count_attempt(request: HttpRequest, email: str) -> Iterator[ratelimit.RateLimitUsage | None]:
    """Count an attempt to log in against each limit that it falls under; None for one that is exceeded.

    Attempts of an address and those on an account count, in the owner's own browser only those made there.
    """
    email = email.lower()
    if browser := _find_known_browser(request, User.objects.filter(email__iexact=email).first()):
        rates = [(PER_KNOWN_BROWSER, f"browser {browser}")]
    else:
        pair = f"{email} from {ratelimit.get_ip(request)}"
        rates = [(PER_ADDRESS, ""), (PER_PAIR, pair), (PER_ACCOUNT, email)]
    for rate, key in rates:
        config = {"login_failed": rate}
        yield ratelimit.consume(request, app="allauth.account", action="login_failed", config=config, key=key)


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """The browser is known from now on as one in which this account was logged in."""
    browser = _find_known_browser(request, user) or secrets.token_urlsafe(12)
    flags: dict[str, Any] = {"httponly": True, "samesite": "Lax", "secure": settings.SESSION_COOKIE_SECURE}
    response.set_signed_cookie(_cookie_of(user), browser, max_age=KNOWN_FOR_S, **_SIGNED_BY, **flags)


def _cookie_of(user: User) -> str:
    return f"known_{user.pk}"


def _find_known_browser(request: HttpRequest, user: User | None) -> str:
    """Return the name of a browser in which this account was logged in within the last year; "" of any other."""
    if user is None:
        return ""
    return request.get_signed_cookie(_cookie_of(user), default="", max_age=KNOWN_FOR_S, **_SIGNED_BY) or ""
