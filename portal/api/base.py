"""What every address of the API has in common: its methods, its formats, its pages, its faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils.cache import patch_cache_control
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.pagination import PageNumberPagination
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from portal.api.access import READS, Scope, require_scope
from portal.api.problems import NotAllowed, problem


class Pages(PageNumberPagination):
    """So many objects at a time."""

    page_size = 50
    page_query_description = "Which page of the list, from 1."
    page_size_query_description = "How many on a page: 50 without it, at most 200."
    page_size_query_param = "page_size"
    max_page_size = 200


class Negotiation(DefaultContentNegotiation):
    """A format that an address does not have is told as such."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:  # noqa: A002
        found = [renderer for renderer in renderers if renderer.format == format]
        if not found:
            known = ", ".join(renderer.format for renderer in renderers)
            raise exceptions.NotAcceptable(f"This address has no format “{format[:20]}”; it has {known}.")
        return found


class ApiView(APIView):
    """An address.

    Attributes:
        is_open: whether visitors who say not who they are learn something here.
        scopes: of each method, the scopes of which a token needs one; reading needs “read”.
    """

    content_negotiation_class = Negotiation
    pagination_class = Pages
    is_open: ClassVar[bool] = False
    scopes: ClassVar[Mapping[str, tuple[Scope, ...]]] = {}

    def scopes_for(self, method: str | None) -> tuple[Scope, ...]:
        """The scopes of which a token needs one."""
        return (Scope.READ,) if method in READS else self.scopes.get(method or "", (Scope.ORGANIZE,))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if (request.method or "").lower() not in self.http_method_names or not self._handler(request):
            raise NotAllowed(request.method or "", ", ".join(self.allowed_methods))
        super().initial(request, *args, **kwargs)

    def _handler(self, request: Request) -> Callable[..., Any] | None:
        return getattr(self, (request.method or "").lower(), None)

    @property
    def allowed_methods(self) -> list[str]:
        return [name for name in super().allowed_methods if name != "OPTIONS"]

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        raise NotAllowed("OPTIONS", ", ".join(self.allowed_methods))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """What is answered depends on who asks; nobody in between keeps it."""
        final = super().finalize_response(request, response, *args, **kwargs)
        patch_cache_control(final, private=True, no_store=True)
        return final

    def paginated(
        self, found: QuerySet[Any] | list[Any], serializer: type[Serializer[Any]], **context: Any
    ) -> Response:
        """One page of what was found."""
        paginator = self.pagination_class()
        page = paginator.paginate_queryset(found, self.request, view=self)
        shown = serializer(page, many=True, context={"request": self.request, **context})
        return paginator.get_paginated_response(shown.data)

    def query(self, serializer: type[Serializer[Any]]) -> dict[str, Any]:
        """The parameters of the address, read strictly."""
        found = serializer(data=self.request.query_params)
        found.is_valid(raise_exception=True)
        return dict(found.validated_data)

    def body(self, serializer: type[Serializer[Any]], *, partial: bool = False, **context: Any) -> dict[str, Any]:
        """The body of the request, read strictly; with `partial` any of its fields may be left out."""
        found = serializer(data=self.request.data, partial=partial, context=context)
        found.is_valid(raise_exception=True)
        return dict(found.validated_data)

    @property
    def wants_csv(self) -> bool:
        """Whether the asker prefers rows."""
        return bool(self.request.accepted_renderer.format == "csv")


class CsvRenderer(BaseRenderer):
    """Rows for spreadsheets; views write them themselves, so this only says that they can."""

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(self, data: Any, *_: Any) -> Any:
        return data


WITH_CSV = [JSONRenderer, CsvRenderer]


class BytesRenderer(CsvRenderer):
    """Files as they were sent."""

    media_type = "application/octet-stream"
    format = "bytes"
    charset = None  # type: ignore[assignment]


class TomlRenderer(CsvRenderer):
    """Recipes."""

    media_type = "application/toml"
    format = "toml"


@csrf_exempt  # it changes nothing, and says so in the same words to everybody
def nothing_here(_: Any, rest: str) -> HttpResponse:
    """Below /api/, where there is no address."""
    return problem(404, f"The API has no address /api/{rest[:200]}. All that it has stand at /api/.")


__all__ = [
    "WITH_CSV",
    "ApiView",
    "BytesRenderer",
    "CsvRenderer",
    "Negotiation",
    "Pages",
    "TomlRenderer",
    "nothing_here",
    "require_scope",
]
