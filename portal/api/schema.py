"""What drf-spectacular cannot read off the views: scopes, examples of bodies and errors (`schema.yaml`)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from drf_spectacular.authentication import SessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as quick, where PyYAML was built with it
_WRITTEN = yaml.load(Path(__file__).with_name("schema.yaml").read_text("utf-8"), _LOADER)  # noqa: S506 (it is safe)


class ApiSchema(AutoSchema):
    """An operation with its parameters, its body, the scopes that it needs, and its errors."""

    view: Any

    def get_override_parameters(self) -> list[Any]:
        query = self.view.queries.get(self.view.action)
        return [query] if query else []

    def get_request_serializer(self) -> Any:
        return self.view.bodies.get(self.view.action)

    def get_response_serializers(self) -> Any:
        serializer = self.view.get_serializer_class()
        if serializer is None:
            return {204: None}
        formats = [renderer.media_type for renderer in self.view.get_renderers()]
        status = 201 if self._is_create_operation() else 200
        return {(status, kind): OpenApiTypes.STR if kind == "text/csv" else serializer for kind in formats}

    def get_extensions(self) -> dict[str, Any]:
        return {"x-scopes": [str(scope) for scope in self.view.get_scopes()]}

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        operation = super().get_operation(*args, **kwargs)
        if operation:
            if example := _WRITTEN["examples"].get(operation["operationId"]):
                operation["requestBody"]["content"]["application/json"]["example"] = example
            operation["responses"]["default"] = {"$ref": "#/components/responses/Problem"}
        return operation


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "portal.api.access.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        words = "An access token from your account page: `Authorization: Bearer vpp_…`."
        return {"type": "http", "scheme": "bearer", "description": words}


class PageScheme(SessionScheme):
    target_class = "portal.api.access.PageAuthentication"


def add_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the shape of errors, which every operation may answer."""
    result["components"].setdefault("schemas", {}).update(_WRITTEN["schemas"])
    result["components"]["responses"] = _WRITTEN["responses"]
    return result


@cache
def schema() -> dict[str, Any]:
    """Return the whole description; it is the same for everybody."""
    described: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return described
