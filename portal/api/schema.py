"""The description of the API (OpenAPI 3.1), made from the views themselves, with every error that they may answer.

Uploads speak tus, whose views are not the framework's: their operations are written by hand
in `schema.yaml`, beside the words of tags and errors.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema

from portal.api.problems import CONTENT_TYPE

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as quick, where PyYAML was built with it
_WRITTEN = yaml.load(Path(__file__).with_name("schema.yaml").read_text("utf-8"), _LOADER)  # noqa: S506 (it is safe)
TAGS: dict[str, list[str]] = _WRITTEN["tags"]
PATH_WORDS: dict[str, str] = _WRITTEN["names"]
WORDS: dict[int, str] = _WRITTEN["errors"]
UPLOAD_WORDS: dict[int, str] = _WRITTEN["upload_errors"]
UPLOADS_TAG = TAGS["tus"][0]


class PortalSchema(AutoSchema):
    """An operation with its tag, the scopes that it needs, and the errors that it may answer."""

    view: Any

    def get_tags(self) -> list[str]:
        return [TAGS[type(self.view).__module__.rpartition(".")[2]][0]]

    def get_auth(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = super().get_auth()
        return [*found, {}] if self.view.is_open_for(self.method) else found

    def get_extensions(self) -> dict[str, Any]:
        scopes = [str(scope) for scope in self.view.scopes_for(self.method)]
        return {"x-scopes": scopes, "x-who": str(self.view.who_for(self.method))}

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        operation = super().get_operation(*args, **kwargs)
        if operation:
            for answer in operation["responses"].values():
                answer["description"] = answer["description"] or "What was asked for."
            if example := self.view.examples.get(self.method):
                for content in operation["requestBody"]["content"].values():
                    content["example"] = dict(example)
            for status in sorted(list_error_statuses(operation, self.method)):
                operation["responses"].setdefault(str(status), describe_error(status))
        return operation


def list_error_statuses(operation: dict[str, Any], method: str) -> set[int]:
    """Return the errors that an operation may answer."""
    found = {401, 403, 406, 429, 500}
    places = {parameter["in"] for parameter in operation.get("parameters", [])}
    names = {parameter["name"] for parameter in operation.get("parameters", [])}
    if "path" in places or "page" in names:
        found |= {404}
    if "query" in places:
        found |= {400}
    if method != "GET":  # a body where none is taken is refused, too
        found |= {400, 413, 415}
    if method in {"POST", "PUT", "PATCH"}:
        found |= {404, 409}
    return found


def describe_error(status: int) -> dict[str, Any]:
    """Describe an error as an answer of an operation."""
    answer = _describe_problem(WORDS[status])
    if status == 429:
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return answer


def _describe_problem(words: str) -> dict[str, Any]:
    return {"description": words, "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def describe_uploads() -> dict[str, Any]:
    """Describe the operations of uploads by address and method, each with the errors that it may answer."""
    paths: dict[str, Any] = deepcopy(_WRITTEN["uploads"])
    for methods in paths.values():
        for method, operation in methods.items():
            operation |= {"tags": [UPLOADS_TAG], "security": [{"token": []}, {"cookieAuth": []}]}
            for status in (*operation.pop("errors"), 500):
                words = UPLOAD_WORDS[status]  # the answer to HEAD has no body
                answer = {"description": words} if method == "head" else _describe_problem(words)
                operation["responses"][str(status)] = answer
    return paths


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "portal.api.access.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:  # noqa: ARG002
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An access token from your account page: `Authorization: Bearer vpp_…`.",
        }


def only_ours(endpoints: list[tuple[str, str, str, Any]]) -> list[tuple[str, str, str, Any]]:
    """Return, of all addresses, those of the API that are described by their views."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith("/api/")]


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the shape of errors, the words of tags, and uploads, whose views are not the framework's."""
    result["components"].setdefault("schemas", {})["Problem"] = _WRITTEN["problem"]
    _close_bodies(result)
    result["paths"] |= describe_uploads()
    result["tags"] = [{"name": name, "description": words} for name, words in TAGS.values()]
    return result


def _close_bodies(result: dict[str, Any]) -> None:
    """Say of what is only sent, never answered, that it has no other fields: these are refused."""
    operations = [one for methods in result["paths"].values() for one in methods.values()]
    schemas = result["components"]["schemas"]
    sent, answered = (
        _list_schemas([one.get(part) for one in operations], schemas) for part in ("requestBody", "responses")
    )
    for name in sent - answered:
        if "properties" in schemas[name]:
            schemas[name]["additionalProperties"] = False


def _list_schemas(part: Any, schemas: dict[str, Any]) -> set[str]:
    """Return the names of all schemas that a part of the description names, and of those that these name."""
    found, left = set[str](), [part]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            name = str(one.get("$ref", "")).rpartition("/")[2]
            if name in schemas and name not in found:
                found.add(name)
                left.append(schemas[name])
            left += one.values()
        elif isinstance(one, list):
            left += one
    return found


@cache
def schema() -> dict[str, Any]:
    """Return the whole description; it is the same for everybody."""
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found
