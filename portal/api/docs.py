"""The description of the API for programs (OpenAPI) and, rendered from it, for people."""

from __future__ import annotations

import json
import shlex
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.types import OpenApiTypes
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from portal.accounts.access import open_read
from portal.accounts.models import AccessToken
from portal.api.base import ApiView, Who, operation
from portal.api.schema import PATH_WORDS, UPLOAD_WORDS, UPLOADS_TAG, WORDS, schema
from portal.core.mail import absolute

NAMES = {"integer": "whole number", "boolean": "true or false", "object": "object", "number": "number"}
FORMATS = {"date-time": "time", "email": "e-mail address", "uuid": "UUID", "binary": "bytes"}


class PlainJson(JSONRenderer):
    """The description as ordinary JSON, for those who ask for no OpenAPI type."""


@operation(OpenApiTypes.OBJECT, kinds=[PlainJson, OpenApiYamlRenderer, OpenApiJsonRenderer], who=Who.EVERYBODY)
def show_schema(api: ApiView) -> Response:  # noqa: ARG001
    """This description as OpenAPI 3.1: JSON, or YAML by `Accept: application/vnd.oai.openapi` or `format=yaml`."""
    return Response(schema())


@open_read
def documentation(request: HttpRequest) -> HttpResponse:
    """Show the page that explains the API."""
    described = schema()
    groups = [
        {
            "name": tag["name"],
            "words": marked(tag["description"]),
            "operations": _operations(described, tag["name"]),
            "errors": _marked(UPLOAD_WORDS) if tag["name"] == UPLOADS_TAG else (),
        }
        for tag in described["tags"]
    ]
    shapes = [_shape(name, one) for name, one in sorted(described["components"]["schemas"].items())]
    context = {
        "groups": groups,
        "shapes": [shape for shape in shapes if shape["fields"]],
        "scopes": AccessToken.Scope.choices,
        "limits": settings.API_REQUESTS_PER_MINUTE,
        "errors": _marked(WORDS),
    }
    return render(request, "api/docs.html", context)


def marked(text: str) -> SafeString:
    """Return text whose words between backquotes are code."""
    pieces = enumerate(text.split("`"))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", one) if place % 2 else one,) for place, one in pieces)
    )


def _marked(problems: dict[int, str]) -> list[tuple[int, SafeString]]:
    return [(status, marked(words)) for status, words in problems.items()]


def _operations(described: dict[str, Any], tag: str) -> list[dict[str, Any]]:
    return [
        _operation(path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if tag in operation.get("tags", [])
    ]


def _operation(path: str, method: str, operation: dict[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    words = operation.get("description", "")
    answers = [_answer(status, one) for status, one in operation["responses"].items()]
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "words": marked(words),
        "who": operation["x-who"],
        "scopes": operation.get("x-scopes", []),
        "parameters": [_parameter(one) for one in operation.get("parameters", [])],
        "takes": [_reference(one["schema"]) for one in list(content.values())[:1]],
        "answers": [one for one in answers if not one["is_error"]],
        "errors": [one["status"] for one in answers if one["is_error"]],
        "curl": _curl(path, method.upper(), operation),
    }


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": parameter["name"],
        "place": parameter["in"],
        "kind": kind_of(parameter["schema"]),
        "required": parameter.get("required", False),
        "words": marked(parameter.get("description") or PATH_WORDS.get(parameter["name"], "")),
    }


def _answer(status: str, answer: dict[str, Any]) -> dict[str, Any]:
    content = answer.get("content", {})
    shapes = [_reference(one["schema"]) for one in content.values()]
    return {
        "status": status,
        "words": marked(answer["description"]),
        "kinds": list(content),
        "shape": next((shape for shape in shapes if shape), ""),
        "is_error": not status.startswith("2"),
    }


def _shape(name: str, component: dict[str, Any]) -> dict[str, Any]:
    required = component.get("required", [])
    fields = [
        {
            "name": field,
            "kind": kind_of(one),
            "shape": _reference(one) or _reference(one.get("items", {})),
            "words": marked(one.get("description", "")),
            "required": field in required,
        }
        for field, one in component.get("properties", {}).items()
    ]
    return {"name": name, "words": marked(component.get("description", "")), "fields": fields}


def _reference(one: dict[str, Any]) -> str:
    """Return the name of the shape that a schema refers to; empty for none."""
    for each in (one, *one.get("allOf", ()), *one.get("oneOf", ()), *one.get("anyOf", ())):
        if "$ref" in each:
            return str(each["$ref"]).rpartition("/")[2]
    return ""


def kind_of(one: dict[str, Any]) -> str:
    """Return a schema in words, such as ``time or null``."""
    if name := _reference(one):
        choices = schema()["components"]["schemas"].get(name, {}).get("enum")
        words = f"one of {', '.join(map(str, choices))}" if choices else name
        has_null = any(each.get("type") == "null" for each in (*one.get("oneOf", ()), *one.get("anyOf", ())))
        return f"{words} or null" if has_null else words
    if choices := one.get("enum"):
        return f"one of {', '.join(choice if choice else 'nothing' for choice in map(str, filter(None, choices)))}"
    given = one.get("type", "anything")
    kinds = given if isinstance(given, list) else [given]
    return " or ".join(_kind(kind, one) for kind in kinds)


def _kind(kind: str, one: dict[str, Any]) -> str:
    if kind == "array":
        return f"list of {kind_of(one.get('items', {}))}"
    if kind == "object" and isinstance(one.get("additionalProperties"), dict):
        return f"object of {kind_of(one['additionalProperties'])}"
    return FORMATS.get(one.get("format", ""), "text") if kind == "string" else NAMES.get(kind, kind)


def _curl(path: str, method: str, operation: dict[str, Any]) -> str:
    """Return a line for the shell; words in capitals are to be replaced."""
    for parameter in operation.get("parameters", []):
        path = path.replace(f"{{{parameter['name']}}}", parameter["name"].upper())
    address = absolute(path.replace("{", "").replace("}", ""))
    asked = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query" and one.get("required")]
    address += "?" + "&".join(f"{name}={name.upper()}" for name in asked) if asked else ""
    words = ["curl", *{"GET": [], "HEAD": ["--head"]}.get(method, ["--request", method])]
    line = shlex.join(words) + ' --header "Authorization: Bearer $VP_TOKEN"'
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        body = json.dumps(content["application/json"]["example"], ensure_ascii=False)
        line += f" --header 'Content-Type: application/json' --data {shlex.quote(body)}"
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "header" and parameter.get("required"):
            value = parameter["schema"].get("enum", [parameter["name"].rpartition("-")[2].upper()])[0]
            line += f" --header '{parameter['name']}: {value}'"
    if "application/offset+octet-stream" in content:
        line += " --header 'Content-Type: application/offset+octet-stream' --data-binary @PART"
    return f"{line} {shlex.quote(address) if '?' in address else address}"
