"""The description of the API for programs (OpenAPI) and, rendered from it, for people."""

from __future__ import annotations

import json
import shlex
from operator import itemgetter
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticatedOrReadOnly
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.access import open_read
from portal.accounts.models import AccessToken
from portal.api.access import HasScope
from portal.api.base import ApiViewSet
from portal.api.schema import schema
from portal.core.mail import absolute


class SchemaViewSet(ApiViewSet):
    """This description as OpenAPI 3.1: JSON, or YAML by `Accept: application/vnd.oai.openapi` or `format=yaml`."""

    permission_classes = [IsAuthenticatedOrReadOnly, HasScope]
    renderer_classes = [JSONRenderer, OpenApiYamlRenderer, OpenApiJsonRenderer]

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def retrieve(self, request: Request) -> Response:
        return Response(schema())


@open_read
def documentation(request: HttpRequest) -> HttpResponse:
    """Show the page that explains the API."""
    described = schema()
    operations = [
        _describe_operation(path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    shapes = [_describe_shape(name, one) for name, one in described["components"]["schemas"].items()]
    context = {
        "groups": [
            tag | {"operations": [each for each in operations if tag["name"] in each["tags"]]}
            for tag in described["tags"]
        ],
        "shapes": sorted((shape for shape in shapes if shape["fields"]), key=itemgetter("name")),
        "scopes": AccessToken.Scope.choices,
        "limits": settings.API_REQUESTS_PER_MINUTE,
    }
    return render(request, "api/docs.html", context)


def _describe_shape(name: str, shape: dict[str, Any]) -> dict[str, Any]:
    needed = shape.get("required", ()) if name.endswith("Request") else ()
    fields = [
        field | describe_kind(field) | {"name": key, "required": key in needed}
        for key, field in shape.get("properties", {}).items()
    ]
    return shape | {"name": name, "fields": fields}


def _describe_operation(path: str, method: str, operation: dict[str, Any]) -> dict[str, Any]:
    bodies = [content["schema"] for content in operation.get("requestBody", {}).get("content", {}).values()]
    status, answer = next(iter(operation["responses"].items()))
    content = answer.get("content", {})
    shown = describe_kind(next(iter(content.values()))["schema"]) if content else {}
    return operation | {
        "path": path,
        "method": method.upper(),
        "scopes": " or ".join(operation["x-scopes"]),
        "parameters": [one | describe_kind(one["schema"]) for one in operation.get("parameters", [])],
        "takes": describe_kind(bodies[0]) if bodies else None,
        "answer": {"status": status, "formats": list(content)} | shown,
        "curl": _write_curl(path, method.upper(), operation),
    }


def describe_kind(one: dict[str, Any]) -> dict[str, str]:
    """Return a schema in words, such as ``string or null``, and the name of the shape that it refers to, if any."""
    schemas = schema()["components"]["schemas"]
    options = [one, *one.get("allOf", ()), *one.get("oneOf", ()), *one.get("anyOf", ()), one.get("items", {})]
    name = next((each["$ref"].rpartition("/")[2] for each in options if "$ref" in each), "")
    choices = (schemas.get(name) or one).get("enum")
    kinds = one.get("type", name or "any")
    words = " or ".join(kinds) if isinstance(kinds, list) else kinds
    if kinds == "string":
        words = one.get("format", kinds)
    if choices:
        words = f"one of {', '.join(map(str, filter(None, choices)))}"
    elif kinds == "array":
        words = f"list of {name or describe_kind(one.get('items', {}))['kind']}"
    return {"kind": words, "shape": "" if choices else name}


def _write_curl(path: str, method: str, operation: dict[str, Any]) -> str:
    """Return a line for the shell; words in capitals are to be replaced."""
    words = ["curl", "--request", method]
    query = []
    for parameter in operation.get("parameters", []):
        name, place = parameter["name"], parameter["in"]
        path = path.replace(f"{{{name}}}", name.upper())
        if place == "header" and parameter.get("required"):
            words += ["--header", f"{name}: {parameter['schema'].get('enum', [name.rpartition('-')[2].upper()])[0]}"]
        elif place == "query" and parameter.get("required"):
            query.append(f"{name}={name.upper()}")
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        example = json.dumps(content["application/json"]["example"], ensure_ascii=False)
        words += ["--header", "Content-Type: application/json", "--data", example]
    elif "application/offset+octet-stream" in content:
        words += ["--header", "Content-Type: application/offset+octet-stream", "--data-binary", "@PART"]
    address = absolute(path) + ("?" if query else "") + "&".join(query)
    return f'{shlex.join([*words, address])} --header "Authorization: Bearer $VP_TOKEN"'
