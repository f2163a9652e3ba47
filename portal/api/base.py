"""What every address of the API has in common: its methods, its formats, its pages and how a body is read.

An operation is a function of the address (`ApiView`) and of what its path names; its name is its identifier in the
description of the API, its docstring says what it does. A shape is what an answer holds.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from copy import deepcopy
from enum import StrEnum
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import URLPattern, path
from django.utils.cache import patch_cache_control
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.drainage import set_override
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.pagination import PageNumberPagination
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from common.line_texts import line_problem
from portal.api.access import READS, Scope
from portal.api.problems import NotAllowed, problem
from portal.client import PORTAL_VERSION, RELEASE
from portal.core.fields import LineText


class Who(StrEnum):
    """Who may use an operation; to everybody else what it is about does not exist."""

    EVERYBODY = "Everybody; visitors are answered with what is public"
    ACCOUNT = "Everybody with an account"
    TAKING_PART = "Approved teams of the edition, and its organizers"
    TEAM = "The team and the organizers of the edition"
    MEMBER = "Members of the team, except for its owner"
    OWNER = "The owner of the team and the organizers of the edition"
    ORGANIZERS = "The organizers of the edition"
    ORGANIZER = "Accounts of organizers"


Operation = TypeVar("Operation", bound=Callable[..., HttpResponse])


class Pages(PageNumberPagination):
    """So many objects at a time."""

    page_size = 50
    page_query_description = "Which page of the list, from 1."
    page_size_query_description = "Entries per page: 50 by default, at most 200."
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
        who: of each method, who may use it.
        scopes: of each method, the scopes of which a token needs one; reading needs “read”.
        examples: of each method that takes a body, one.
    """

    content_negotiation_class = Negotiation
    pagination_class = Pages
    who: ClassVar[Mapping[str, Who]] = {}
    examples: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    scopes: ClassVar[Mapping[str, tuple[Scope, ...]]] = {}

    def scopes_for(self, method: str | None) -> tuple[Scope, ...]:
        """Return the scopes of which a token needs one."""
        return (Scope.READ,) if method in READS else self.scopes.get(method or "", (Scope.ORGANIZE,))

    def who_for(self, method: str | None) -> Who:
        """Return who may use a method."""
        return self.who.get("GET" if method in READS else method or "", Who.ORGANIZERS)

    def is_open_for(self, method: str | None) -> bool:
        """Return whether visitors who say not who they are learn something by it."""
        return self.who_for(method) is Who.EVERYBODY

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
        """Finish the response: it depends on who asks, and nobody in between keeps it; it says by which version."""
        final = super().finalize_response(request, response, *args, **kwargs)
        final[PORTAL_VERSION] = RELEASE
        patch_cache_control(final, private=True, no_store=True)
        return final

    def paginated(
        self, found: QuerySet[Any] | list[Any], serializer: type[Serializer[Any]], **context: Any
    ) -> Response:
        """Return one page of what was found."""
        paginator = self.pagination_class()
        page = paginator.paginate_queryset(found, self.request, view=self)
        shown = serializer(page, many=True, context={"request": self.request, **context})
        return paginator.get_paginated_response(shown.data)

    def query(self, serializer: type[Serializer[Any]]) -> dict[str, Any]:
        """Return the parameters of the address, read strictly; `operation` refuses those that it does not know."""
        found = serializer(data=self.request.query_params, context={"also": self.request.query_params})
        found.is_valid(raise_exception=True)
        return dict(found.validated_data)

    def body(self, serializer: type[Serializer[Any]], *, partial: bool = False, **context: Any) -> dict[str, Any]:
        """Read the body of the request strictly; with `partial` any of its fields may be left out."""
        found = serializer(data=self.request.data, partial=partial, context=context)
        found.is_valid(raise_exception=True)
        return dict(found.validated_data)

    @property
    def user(self) -> Any:
        """Return who asks."""
        return self.request.user

    @property
    def wants_csv(self) -> bool:
        """Return whether the asker prefers rows."""
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


def operation(
    answer: Any,
    *,
    takes: Any = None,
    asks: Any = None,
    status: int = 200,
    kinds: list[type[BaseRenderer]] | None = None,
    who: Who = Who.ORGANIZERS,
    example: Mapping[str, Any] | None = None,
    scopes: tuple[Scope, ...] = (Scope.ORGANIZE,),
    parsers: Sequence[type[BaseParser]] | None = None,
) -> Callable[[Operation], Operation]:
    """Make a function an operation of the API.

    Args:
        answer: the shape of the answer; None where it is empty.
        takes: the shape of the body.
        asks: the shape of the parameters.
        kinds: in which formats it answers; JSON without it.
        who: may use it.
        example: a body that it takes; words in capitals are to be replaced.
        scopes: of which a token needs one, unless it only reads.
        parsers: in which formats it takes a body; JSON without it.
    """
    renderers = kinds or [JSONRenderer]
    shapes = {(status, kind.media_type): OpenApiTypes.STR if kind is CsvRenderer else answer for kind in renderers}

    def described(function: Operation) -> Operation:
        schema = extend_schema(
            operation_id=function.__name__,
            parameters=[asks] if asks else None,
            request=takes,
            responses=shapes if answer else {status: None},
        )
        function.access = renderers, who, scopes, example  # type: ignore[attr-defined]
        function.takes = takes  # type: ignore[attr-defined]
        function.parsers = parsers  # type: ignore[attr-defined]
        function.parameters = _list_parameters(answer, asks)  # type: ignore[attr-defined]
        return schema(function)

    return described


def address(route: str, name: str, **operations: Callable[..., HttpResponse]) -> URLPattern:
    """Return an address of the API with an operation for each method."""
    first = next(iter(operations.values()))
    access = {method.upper(): one.access for method, one in operations.items()}  # type: ignore[attr-defined]
    members: dict[str, Any] = {
        "__module__": first.__module__,
        "renderer_classes": first.access[0],  # type: ignore[attr-defined]
        "who": {method: who for method, (_, who, _, _) in access.items()},
        "scopes": {method: scopes for method, (_, _, scopes, _) in access.items()},
        "examples": {method: example for method, (_, _, _, example) in access.items() if example},
    }
    if parsers := first.parsers:  # type: ignore[attr-defined]
        members["parser_classes"] = parsers
    members |= {method: _as_method(one) for method, one in operations.items()}
    view: type[ApiView] = type("Address", (ApiView,), members)
    return path(route, view.as_view(), name=name)


def _list_parameters(answer: Any, asks: Any) -> list[str] | None:
    """Return the parameters of an operation; None, for any, where it is no list and asks for none."""
    is_list = getattr(answer, "many", False)
    if asks is None and not is_list:
        return None
    asked = [asks.name] if isinstance(asks, OpenApiParameter) else [*asks().fields] if asks else []
    return [*asked, *((Pages.page_query_param, Pages.page_size_query_param) if is_list else ())]


def _has_body(request: Request) -> bool:
    """Return whether a request brings fields; an empty form brings none."""
    is_form = request.content_type.startswith(("multipart/form-data", "application/x-www-form-urlencoded"))
    return bool(request._request.POST or request._request.FILES) if is_form else True


def _as_method(function: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    takes, parameters = function.takes, function.parameters  # type: ignore[attr-defined]

    @wraps(function)
    def method(self: ApiView, request: Request, **given: Any) -> HttpResponse:
        if parameters is not None:
            known = (*parameters, api_settings.URL_FORMAT_OVERRIDE)
            refuse_unknown(request.query_params, known, "parameter", parameters)
        if takes is None and request.method not in READS and _has_body(request) and isinstance(request.data, Mapping):
            refuse_unknown(request.data, (), "field", ())
        return function(self, **given)

    return method


@csrf_exempt  # it changes nothing, and says so in the same words to everybody
def nothing_here(_: Any, rest: str) -> HttpResponse:
    """Answer below /api/, where there is no address."""
    return problem(404, f"The API has no address /api/{rest[:200]}. All of its addresses are listed at /api/.")


class LineField(serializers.CharField):
    """One line of text: line ends and other control characters would break mails and tables."""

    def to_internal_value(self, data: Any) -> str:
        text = " ".join(super().to_internal_value(data).split())
        if sentence := line_problem(text):
            raise serializers.ValidationError(sentence)
        return text


# Shapes --------------------------------------------------------------------------------------------
MOST_UNKNOWN = 10


def refuse_unknown(given: Iterable[Any], known: Container[Any], what: str, takes: Sequence[str]) -> None:
    """Refuse names that are not known: passed over, a slip of the pen would look like a wish that was met.

    Raises:
        ValidationError: names the first ten of them, and what is known.
    """
    unknown = [str(name)[:60] for name in given if name not in known]
    if unknown:
        there = f"It takes {', '.join(takes)}." if takes else "It takes none."
        sentence = f"This address has no {what} of that name. {there}"
        raise exceptions.ValidationError({name: [sentence] for name in unknown[:MOST_UNKNOWN]})


class Shape(Serializer[Any]):
    """What an answer or a body holds; fields of one kind may be assigned to several names at once.

    A body is refused that has fields which the shape has not, and told so beside what else is wrong.
    """

    def to_internal_value(self, data: Any) -> Any:
        takes = [name for name, field in self.fields.items() if not field.read_only]
        errors: dict[str, Any] = {}
        try:
            if isinstance(data, Mapping):
                refuse_unknown(data, {*takes, *self.context.get("also", ())}, "field", takes)
        except exceptions.ValidationError as unknown:
            errors |= cast("dict[str, Any]", unknown.detail)
        try:
            found = super().to_internal_value(data)
        except exceptions.ValidationError as wrong:
            raise exceptions.ValidationError(errors | cast("dict[str, Any]", wrong.detail)) from None
        if errors:
            raise exceptions.ValidationError(errors)
        return found

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {name: deepcopy(field) for name, field in self._declared_fields.items()}


class ModelShape(Shape, serializers.ModelSerializer[Any]):
    """A shape of rows: names, limits and texts of its fields are those of the model."""

    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {LineText: LineField}
    get_fields = serializers.ModelSerializer.get_fields


class Computed(serializers.Field[Any, Any, Any, Any]):
    """What a function makes of the object that is shown, and of the context in which it is shown.

    Args:
        kind: what it describes itself as.
    """

    def __init__(self, kind: serializers.Field[Any, Any, Any, Any], read: Callable[..., Any], **given: Any) -> None:
        super().__init__(source="*", read_only=True, **given)
        self.read = read
        set_override(self, "field", kind)

    def to_representation(self, value: Any) -> Any:
        return self.read(value, self.context)
