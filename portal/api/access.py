"""Who asks, what they may do, how often and with what body: access tokens, scopes, throttles and the parser of JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.core.cache import cache
from django.http import Http404
from django.utils import timezone
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.accounts.models import AccessToken, User
from portal.accounts.tokens import user_of_token

Scope = AccessToken.Scope
WINDOW_S = 60


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer vpp_…``; wrong tokens count against the address that they come from."""

    def authenticate(self, request: Request) -> tuple[User, AccessToken] | None:
        kind, _, secret = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer":
            return None
        token = user_of_token(secret.strip(), timezone.now())
        if token is None:
            count("address", BaseThrottle().get_ident(request))
            raise exceptions.AuthenticationFailed("The access token is unknown, revoked or expired.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class PageAuthentication(SessionAuthentication):
    """The session of a page; a change needs its CSRF token."""

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied:
            sentence = "This page has no valid CSRF token. Load it again and continue; what has arrived is kept."
            raise exceptions.PermissionDenied(sentence) from None


class HasScope(BasePermission):
    """Whether the asker's token has one of the scopes that an action needs; with a session all is allowed."""

    def has_permission(self, request: Request, view: Any) -> bool:
        require_scope(request, *view.get_scopes())
        return True


class IsOrganizer(IsAuthenticated):
    """Whether the asker's account is one of organizers; for other accounts there is nothing here."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.user.is_authenticated and not request.user.is_organizer:
            raise Http404
        return super().has_permission(request, view)


def require_scope(request: Request, *scopes: Scope) -> None:
    """Require one of these scopes of a token.

    Raises:
        PermissionDenied: it has none of them.
    """
    if isinstance(request.auth, AccessToken) and not set(scopes) & set(request.auth.scopes):
        needed = " or ".join(f"“{scope}”" for scope in scopes)
        raise exceptions.PermissionDenied(
            f"The access token lacks the scope {needed}. Make one with it on your account page."
        )


# How often -----------------------------------------------------------------------------------------
class TooMany(exceptions.Throttled):
    """More requests than `settings.API_REQUESTS_PER_MINUTE` allows."""

    def __init__(self, limit: int, wait: float) -> None:
        super().__init__(wait)
        self.sentence = f"More than {limit} requests in a minute."


class Throttle(BaseThrottle):
    """Counts by token, by user for sessions, and by address for visitors, minute by minute."""

    def allow_request(self, request: Request, view: Any) -> bool:
        if isinstance(request.auth, AccessToken):
            count("token", str(request.auth.pk))
        elif request.user.is_authenticated:
            count("user", str(request.user.pk))
        else:
            count("address", self.get_ident(request))
        return True


def count(kind: str, key: str) -> None:
    """Count one request.

    Raises:
        TooMany: it is one too many.
    """
    now = time.time()
    window, limit = int(now // WINDOW_S), settings.API_REQUESTS_PER_MINUTE[kind]
    name = f"api:{kind}:{key}:{window}"
    if not cache.add(name, 1, WINDOW_S) and _one_more(name) > limit:
        raise TooMany(limit, (window + 1) * WINDOW_S - now)


def _one_more(name: str) -> int:
    try:
        return cache.incr(name)
    except ValueError:  # its minute ended just now
        return 1


class StrictJSONParser(JSONParser):
    """JSON whose nesting a machine can follow; anything else is the sender's error, not one of the portal."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError("The JSON is nested too deeply to be read.") from None
