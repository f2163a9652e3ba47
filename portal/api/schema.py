"""The description of the API (OpenAPI 3.1), made from the views themselves, with every fault that they may answer."""

from __future__ import annotations

from functools import cache
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema

from portal.api.problems import CONTENT_TYPE
from portal.api.tus_schema import UPLOADS, UPLOADS_TAG

TAGS = {
    "editions": ("Editions and boards", "What there is to take part in, what an archive has to hold, and the board."),
    "boards": ("Policies of boards", "What a board ranks by, a draft to try out, and who would move."),
    "studies": ("Listening studies", "What listeners said of the systems of an edition, once it is published."),
    "teams": ("Teams", "Teams, their people and invitations, the organizer's decision; and who you are to the portal."),
    "submissions": ("Submissions", "What was sent, what was found in it, and how far it is."),
    "systems": ("Systems", "The numbers of a system, recomputed, and for its own the claimed ones beside."),
    "engines": ("Attackers and recognisers", "The portal's own attacks and recognition: what there is, runs, numbers."),
    "docs": ("This description", "The description of the API for programs."),
}
PROBLEM = {
    "type": "object",
    "description": "A fault (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "Always about:blank: status and sentence say it all."},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "A sentence for people: what is wrong and what to do."},
        "errors": {
            "type": "array",
            "description": "With status 400: each refused field.",
            "items": {
                "type": "object",
                "required": ["field", "detail"],
                "properties": {"field": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
        "retry_after_s": {"type": "integer", "description": "With status 429: after how many seconds to go on."},
    },
}
WORDS = {
    400: "A parameter or the body is not as described; `errors` names each field.",
    401: "Nobody is known: no token, or one that is unknown, revoked or expired.",
    403: "The token lacks the scope, or the session's CSRF token is missing.",
    404: "There is no such thing, or it is not yours to see.",
    406: "The address has no such format.",
    409: "It is not possible now; the sentence says why.",
    413: "The body is too large.",
    415: "The body must be JSON.",
    429: "Too many requests; `Retry-After` says when to go on.",
    500: "The portal failed; its operator finds the reason in the log.",
}


class PortalSchema(AutoSchema):
    """An operation with its tag, the scopes that it needs, and the faults that it may answer."""

    view: Any

    def get_tags(self) -> list[str]:
        return [TAGS[type(self.view).__module__.rpartition(".")[2]][0]]

    def get_auth(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = super().get_auth()
        return [*found, {}] if self.view.is_open else found

    def get_extensions(self) -> dict[str, Any]:
        return {"x-scopes": [str(scope) for scope in self.view.scopes_for(self.method)]}

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        operation = super().get_operation(*args, **kwargs)
        if operation:
            for answer in operation["responses"].values():
                answer["description"] = answer["description"] or "What was asked for."
            for status in sorted(faults_of(operation, self.method)):
                operation["responses"].setdefault(str(status), fault(status))
        return operation


def faults_of(operation: dict[str, Any], method: str) -> set[int]:
    """The faults that an operation may answer."""
    found = {401, 403, 406, 429, 500}
    places = {parameter["in"] for parameter in operation.get("parameters", [])}
    names = {parameter["name"] for parameter in operation.get("parameters", [])}
    if "path" in places or "page" in names:
        found |= {404}
    if "query" in places:
        found |= {400}
    if "requestBody" in operation:
        found |= {400, 413, 415}
    if method in {"POST", "PUT", "PATCH"}:
        found |= {404, 409}
    return found


def fault(status: int, words: str = "") -> dict[str, Any]:
    """A fault as an answer of an operation."""
    content = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    answer: dict[str, Any] = {"description": words or WORDS[status], "content": content}
    if status == 429:
        seconds = {"schema": {"type": "integer"}, "description": "Seconds."}
        answer["headers"] = {"Retry-After": seconds}
    return answer


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
    """Of all addresses those of the API that are described by their views."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith("/api/")]


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the shape of faults, the words of tags, and uploads, whose views are not the framework's."""
    result["components"].setdefault("schemas", {})["Problem"] = PROBLEM
    result["paths"] |= UPLOADS
    result["tags"] = [{"name": name, "description": words} for name, words in (*TAGS.values(), UPLOADS_TAG)]
    return result


@cache
def schema() -> dict[str, Any]:
    """The whole description; it is the same for everybody."""
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found
