"""The description of the API holds: whatever a program sends, it meets no failure and nothing that is not described.

SCHEMA_EXAMPLES=200 asks more of each operation than the test run does.
"""

import json
import os
from contextlib import suppress

import pytest
import schemathesis
import yaml
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from django.test import Client
from django.urls import get_resolver
from drf_spectacular.validation import validate_schema
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.control import SkipTest
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from portal.api.schema import schema
from portal.config.wsgi import application
from tests.listening.results.published import make_heard_study
from tests.portal.api.calls import ALL_SCOPES, Challenge, token_of

pytestmark = pytest.mark.django_db
EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "2"))
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
)
SMALL = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schemathesis.serializer("application/offset+octet-stream")
def as_bytes(_, value):
    return value if isinstance(value, bytes) else str(value).encode()


class Undone(Exception):  # noqa: N818
    """Ends a transaction without a trace."""


@pytest.fixture
def limits(settings):
    settings.API_REQUESTS_PER_MINUTE = dict.fromkeys(("token", "user", "address"), 10**9)


@pytest.fixture
def one_connection():
    """The requests run in the transaction of the test."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def challenge(limits, one_connection):
    challenge = Challenge()
    challenge.publish()
    make_heard_study(challenge.edition, [challenge.submission], name="heard")
    return challenge


def known_names(challenge, path):
    """What the parts of a path are called where everything exists."""
    of = challenge.submission if "/submissions/" in path else challenge.team
    number = challenge.upload.pk if "/uploads/" in path else of.pk
    name = challenge.system.name
    return {
        "edition": "vpc",
        "id": str(number),
        "name": name,
        "invitation": str(challenge.invitation.pk),
        "membership": str(challenge.team.memberships.get(user=challenge.member).pk),
        "document": str(challenge.submission.documents.get().pk),
        "other": str(challenge.submission.pk),
        "study": "heard",
        "scores": "raw",
        "table": "summary",
    }


def described(mode):
    loaded = schemathesis.openapi.from_wsgi("/api/schema/?format=json", application)
    loaded.config.generation.update(modes=[mode])
    loaded.config.analysis.constants.enabled = False  # of the modules that happen to be loaded
    return [found.ok() for found in loaded.get_all_operations()]


@pytest.mark.parametrize("who", ["organizer", "member", "nobody"])
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_nothing_is_answered_that_is_not_described(challenge, who, mode):
    user = {"organizer": challenge.organizer, "member": challenge.owner, "nobody": None}[who]
    headers = {"Authorization": f"Bearer {token_of(user, ALL_SCOPES)}"} if user else {}
    asked, statuses = 0, set()
    for operation in described(mode):

        @SMALL
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case):
            nonlocal asked
            for names in ({}, known_names(challenge, case.path)):
                case.path_parameters.update({key: names[key] for key in case.path_parameters if key in names})
                statuses.add(answer_of(case, headers))
                asked += 1

        with suppress(SkipTest):  # nothing can be wrong in a request without parameters
            ask()
    assert asked >= 20
    assert {200, 404} <= statuses if user else {200, 401} <= statuses
    print(f"{who}, {mode.value}: {asked} requests, statuses {sorted(statuses)}")


def answer_of(case, headers):
    """The status of the answer, which is as described; nothing that it changed stays."""
    try:
        with transaction.atomic():
            response = case.call(headers=headers)
            case.validate_response(response, checks=CHECKS, headers=headers)
            raise Undone
    except Undone:
        return response.status_code


def test_description_is_valid_and_comes_as_json_and_yaml():
    client = Client()
    as_json, as_yaml = client.get("/api/schema/"), client.get("/api/schema/?format=yaml")
    assert as_json["Content-Type"] == "application/json"
    assert json.loads(as_json.content) == yaml.load(as_yaml.content, yaml.CSafeLoader)
    assert as_json.json()["openapi"].startswith("3.1")
    validate_schema(as_json.json())


def test_every_address_is_described():
    """All but the page of the description and the answer to what does not exist."""
    found = set()
    for resolver in get_resolver().url_patterns:
        if str(resolver.pattern).startswith("api/"):
            found |= {f"/{resolver.pattern}{one.pattern}" for one in resolver.url_patterns}
    names = {"<slug:": "{", "<str:": "{", "<int:": "{", "<uuid:": "{", ">": "}", "{pk}": "{id}"}
    for before, after in names.items():
        found = {address.replace(before, after) for address in found}
    [nothing] = {address for address in found if "rest" in address}
    assert found - set(schema()["paths"]) == {"/api/", nothing}
    assert set(schema()["paths"]) <= found


def test_every_operation_tells_what_it_is_for():
    for path, methods in schema()["paths"].items():
        for method, operation in methods.items():
            assert operation["description"].endswith((".", "`.")), (path, method)
            assert operation["x-scopes"], (path, method)
            assert operation["tags"], (path, method)
