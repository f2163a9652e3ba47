"""What the views of the API share: lists in pages, formats, and parameters and bodies that are read strictly."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from rest_framework import exceptions, serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.pagination import PageNumberPagination
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.settings import api_settings
from rest_framework.viewsets import GenericViewSet

from common.line_texts import line_problem
from portal.api.access import Scope
from portal.client import PORTAL_VERSION, RELEASE
from portal.core.fields import LineText

MOST_UNKNOWN = 10


class Pages(PageNumberPagination):
    """So many objects at a time."""

    page_size = 50
    page_query_description = "Which page of the list, from 1."
    page_size_query_description = "Entries per page: 50 by default, at most 200."
    page_size_query_param = "page_size"
    max_page_size = 200


class Negotiation(DefaultContentNegotiation):
    """Answer 406 where a format is asked for that an address does not have."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:  # noqa: A002
        chosen = [renderer for renderer in renderers if renderer.format == format]
        if not chosen:
            raise exceptions.NotAcceptable
        return chosen


class CsvRenderer(BaseRenderer):
    """Rows for spreadsheets; views write them themselves, so this only says that they can."""

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(self, data: Any, *_: Any) -> Any:
        return data


class BytesRenderer(CsvRenderer):
    """Files as they were sent."""

    media_type = "application/octet-stream"
    format = "bytes"
    charset = None  # type: ignore[assignment]


class TomlRenderer(CsvRenderer):
    """Recipes."""

    media_type = "application/toml"
    format = "toml"


WITH_CSV = (JSONRenderer, CsvRenderer)


def shape(name: str) -> dict[str, str]:
    """Return what describes an answer that no serializer makes: a shape of `schema.yaml`."""
    return {"$ref": f"#/components/schemas/{name}"}


class ApiViewSet(GenericViewSet[Any]):
    """Views that share a serializer; parameters and fields that an action does not know are refused.

    Attributes:
        answers: serializers of what is answered, by action, where it is not `serializer_class`.
        bodies: serializers of what is sent, by action; the others take no fields.
        queries: serializers of parameters, by action; lists take `page` and `page_size` as well.
        scopes: by action, the scopes of which a token needs one; else “read”, for changes “organize”.
        formats: by action, what it answers in where that is not JSON alone.
    """

    content_negotiation_class = Negotiation
    pagination_class = Pages
    http_method_names = ["get", "post", "put", "patch", "head"]
    answers: ClassVar[Mapping[str, Any]] = {}
    bodies: ClassVar[Mapping[str, type[Serializer[Any]]]] = {}
    queries: ClassVar[Mapping[str, type[Serializer[Any]]]] = {}
    scopes: ClassVar[Mapping[str, tuple[Scope, ...]]] = {}
    formats: ClassVar[Mapping[str, Sequence[type[BaseRenderer]]]] = {}

    @property
    def default_response_headers(self) -> dict[str, str]:
        """Return the headers of every answer: nobody in between keeps it, for it depends on who asks."""
        headers: dict[str, str] = super().default_response_headers
        return headers | {PORTAL_VERSION: RELEASE, "Cache-Control": "private, no-store"}

    def get_serializer_class(self) -> Any:
        return self.answers.get(self.action or "", self.serializer_class)

    def get_scopes(self) -> tuple[Scope, ...]:
        default = Scope.READ if self.request.method in SAFE_METHODS else Scope.ORGANIZE
        return self.scopes.get(self.action or "", (default,))

    def get_renderers(self) -> Any:
        return [renderer() for renderer in self.formats.get(self.action or "", self.renderer_classes)]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)
        super().initial(request, *args, **kwargs)
        action = self.action or ""
        if request.method in SAFE_METHODS:
            names = [*self.queries[action]().fields] if action in self.queries else []
            names += ["page", "page_size"] if action == "list" else []
            refuse_unknown(request.query_params, [*names, api_settings.URL_FORMAT_OVERRIDE], "parameter", names)
        elif action not in self.bodies and not _is_empty_form(request) and isinstance(request.data, Mapping):
            refuse_unknown(request.data, [], "field", [])

    def read_query(self) -> dict[str, Any]:
        """Return the parameters of the address.

        Raises:
            ValidationError: one is missing or wrong.
        """
        serializer = self.queries[self.action or ""](data=self.request.query_params)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def read_body(self, **context: Any) -> dict[str, Any]:
        """Return the body of the request; of PATCH any of its fields may be left out.

        Raises:
            ValidationError: a field is missing, wrong or unknown.
        """
        is_partial = self.request.method == "PATCH"
        serializer = self.bodies[self.action or ""](
            data=self.request.data, partial=is_partial, context={**self.get_serializer_context(), **context}
        )
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def answer_page(self, rows: Sequence[Any]) -> Response:
        """Return a page of rows that need no serializer."""
        return self.get_paginated_response(self.paginate_queryset(rows))

    @property
    def wants_csv(self) -> bool:
        """Tell whether the asker prefers rows."""
        return bool(self.request.accepted_renderer.format == "csv")


def _is_empty_form(request: Request) -> bool:
    form = request._request
    return request.content_type.startswith("multipart/") and not (form.POST or form.FILES)


def refuse_unknown(given: Iterable[Any], known: Container[Any], what: str, names: Sequence[str]) -> None:
    """Refuse names that are not known: passed over, a slip of the pen would look like a wish that was met.

    Raises:
        ValidationError: names the first ten of them, and what is known.
    """
    unknown = [str(name)[:60] for name in given if name not in known]
    if unknown:
        sentence = f"This address has no {what} of that name. It takes {', '.join(names) or 'none'}."
        raise exceptions.ValidationError({name: [sentence] for name in unknown[:MOST_UNKNOWN]})


class StrictSerializer(Serializer[Any]):
    """Refuses fields that it does not have, and says so beside what else is wrong."""

    def to_internal_value(self, data: Any) -> Any:
        errors: dict[Any, Any] = {}
        names = [name for name, field in self.fields.items() if not field.read_only]
        try:
            refuse_unknown(data if isinstance(data, Mapping) else (), names, "field", names)
        except exceptions.ValidationError as error:
            errors |= dict(error.detail)  # type: ignore[arg-type]
        try:
            values = super().to_internal_value(data)
        except exceptions.ValidationError as error:
            errors |= dict(error.detail)  # type: ignore[arg-type]
        if errors:
            raise exceptions.ValidationError(errors)
        return values


class LineSerializerField(serializers.CharField):
    """One line of text: line ends and other control characters would break mails and tables."""

    def to_internal_value(self, data: Any) -> str:
        text = " ".join(super().to_internal_value(data).split())
        if sentence := line_problem(text):
            raise serializers.ValidationError(sentence)
        return text


class StrictModelSerializer(StrictSerializer, serializers.ModelSerializer[Any]):
    """A body with fields of a model."""

    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {LineText: LineSerializerField}
