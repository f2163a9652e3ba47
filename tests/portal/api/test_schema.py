"""The description of the API holds: whatever a program sends, it meets no failure and nothing that is not described.

SCHEMA_EXAMPLES=200 asks more of each operation than the test run does.
"""

import json
import os
import re
from base64 import b64encode
from contextlib import suppress
from uuid import UUID

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import get_resolver, resolve
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
from portal.challenges.models import Corpus
from portal.teams.selectors import data_access
from tests.listening.own_factories import pack, recordings
from tests.listening.results.published import make_heard_study
from tests.portal.api.calls import ALL_SCOPES, Api, take_challenge, token_of
from tests.portal.test_access import MATRIX, POSTS

pytestmark = pytest.mark.django_db
EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "1"))
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
def challenge(once, limits, one_connection):
    challenge = take_challenge(once)
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


def described():
    loaded = schemathesis.openapi.from_wsgi("/api/schema/?format=json", WSGIHandler())
    loaded.config.generation.update(modes=[GenerationMode.NEGATIVE])
    loaded.config.analysis.constants.enabled = False  # of the modules that happen to be loaded
    return [found.ok() for found in loaded.get_all_operations()]


def test_nothing_is_answered_that_is_not_described(challenge):
    headers = {"Authorization": f"Bearer {token_of(challenge.organizer, ALL_SCOPES)}"}
    asked, statuses = 0, set()
    for operation in described():

        @SMALL
        @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
        def ask(case):
            nonlocal asked
            for names in ({}, known_names(challenge, case.path)):
                case.path_parameters.update({key: names[key] for key in case.path_parameters if key in names})
                statuses.add(answer_of(case, headers))
                asked += 1

        with suppress(SkipTest):  # nothing can be wrong in a request without parameters
            ask()
    assert asked >= 20
    assert {200, 404} <= statuses


def answer_of(case, headers):
    """The status of the answer, which is as described; nothing that it changed stays."""
    try:
        with transaction.atomic():
            response = case.call(headers=headers)
            case.validate_response(response, checks=CHECKS, headers=headers)
            raise Undone
    except Undone:
        return response.status_code


def test_description_is_valid():
    answer = Client().get("/api/schema/")
    assert answer["Content-Type"] == "application/json"
    assert answer.json()["openapi"].startswith("3.1")
    validate_schema(answer.json())


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


ALL = ("visitor", "stranger", "other organizer", "rival", "member", "owner", "organizer")
EVERYBODY, ACCOUNT, TAKING_PART, TEAM, OWNER, ORGANIZERS = ALL, ALL[1:], ALL[3:], ALL[4:], ALL[5:], ALL[6:]
OF_ORGANIZERS = ("other organizer", "organizer")
FOR = {
    "corpora/{corpus}/proposed-recipe": {"get": OF_ORGANIZERS},
    "editions/": {"get": EVERYBODY, "post": OF_ORGANIZERS},
    "editions/{edition}/": {"get": EVERYBODY, "patch": ORGANIZERS},
    "editions/{edition}/audit": {"get": ORGANIZERS},
    "editions/{edition}/copy": {"post": ORGANIZERS},
    "editions/{edition}/data/": {"get": TAKING_PART},
    "editions/{edition}/data/accept": {"post": TAKING_PART},
    "editions/{edition}/expected": {"get": TAKING_PART},
    "editions/{edition}/expected/{data_set}.csv": {"get": TAKING_PART},
    "editions/{edition}/leaderboard": {"get": EVERYBODY},
    "editions/{edition}/leaderboard/freeze": {"post": ORGANIZERS},
    "editions/{edition}/leaderboard/policy": {"get": ORGANIZERS, "put": ORGANIZERS},
    "editions/{edition}/leaderboard/publish": {"post": ORGANIZERS},
    "editions/{edition}/leaderboard/recipe": {"put": ORGANIZERS},
    "editions/{edition}/leaderboard/unfreeze": {"post": ORGANIZERS},
    "editions/{edition}/leaderboard/unpublish": {"post": ORGANIZERS},
    "editions/{edition}/recipe": {"get": EVERYBODY},
    "editions/{edition}/requirements/": {"get": EVERYBODY},
    "editions/{edition}/studies/": {"get": EVERYBODY},
    "editions/{edition}/teams/": {"get": ORGANIZERS, "post": ACCOUNT},
    "editions/{edition}/uploads/": {"get": ACCOUNT},
    "engines/": {"get": EVERYBODY},
    "me": {"get": ACCOUNT},
    "network-trainings/": {"get": OF_ORGANIZERS},
    "schema/": {"get": EVERYBODY},
    "studies/": {"post": OF_ORGANIZERS},
    "studies/uploads/": {"post": OF_ORGANIZERS},
    "studies/{study}/results": {"get": EVERYBODY},
    "studies/{study}/results/{scores}/{table}": {"get": EVERYBODY},
    "submissions/": {"get": ACCOUNT},
    "submissions/{id}/": {"get": TEAM},
    "submissions/{id}/attacks": {"get": TEAM, "post": ORGANIZERS},
    "submissions/{id}/check": {"post": ORGANIZERS},
    "submissions/{id}/diff/{other}": {"get": TEAM},
    "submissions/{id}/documents/{document}": {"get": TEAM},
    "submissions/{id}/evaluate": {"post": ORGANIZERS},
    "submissions/{id}/recognitions": {"get": TEAM, "post": ORGANIZERS},
    "submissions/{id}/report": {"get": TEAM},
    "submissions/{id}/retrained-recognitions": {"get": TEAM, "post": ORGANIZERS},
    "submissions/{id}/runs/{run}/cancel": {"post": ORGANIZERS},
    "submissions/{id}/runs/{run}/continue": {"post": ORGANIZERS},
    "submissions/{id}/withdraw": {"post": TEAM},
    "systems/": {"get": EVERYBODY},
    "systems/{name}/": {"get": EVERYBODY},
    "systems/{name}/attacks": {"get": EVERYBODY},
    "systems/{name}/files": {"get": TEAM},
    "systems/{name}/recognitions": {"get": EVERYBODY},
    "systems/{name}/retrained-recognitions": {"get": EVERYBODY},
    "systems/{name}/values": {"get": EVERYBODY},
    "teams/": {"get": ACCOUNT},
    "teams/{id}/": {"get": TEAM, "patch": OWNER},
    "teams/{id}/decide": {"post": ORGANIZERS},
    "teams/{id}/invitations/": {"get": OWNER, "post": OWNER},
    "teams/{id}/invitations/{invitation}/revoke": {"post": OWNER},
    "teams/{id}/leave": {"post": ("member", "owner")},  # an owner learns why not
    "teams/{id}/members/{membership}/remove": {"post": OWNER},
    "teams/{id}/members/{membership}/transfer": {"post": OWNER},
    "teams/{id}/release": {"post": ORGANIZERS},
    "teams/{id}/withdraw": {"post": OWNER},
    "uploads/": {"post": TAKING_PART},
    "uploads/{id}": {"get": TEAM, "patch": TEAM, "delete": TEAM},
    "uploads/{id}/submit": {"post": TEAM},
}
METADATA = {"filename": "a.zip", "edition": "vpc", "system_kind": "contrastive", "system_title": "Second"}
UPLOAD = {
    "tus-resumable": "1.0.0",
    "upload-length": "10",
    "upload-offset": "4",
    "upload-metadata": ",".join(f"{key} {b64encode(value.encode()).decode()}" for key, value in METADATA.items()),
}


def test_each_operation_is_for_whom_the_table_says_and_takes_its_example(challenge):
    """Whom it is not for is asked to log in, or finds nothing; a body that is shown is refused by its state alone."""
    people = challenge.people() | {name: getattr(challenge, name) for name in ("member", "owner", "organizer")}
    apis = {name: Api(people.get(name)) for name in ALL}
    Corpus.objects.update(is_shared=True)
    terms = data_access(challenge.owner, challenge.edition).terms
    found = {}
    for path, methods in schema()["paths"].items():
        for method, operation in methods.items():
            names = {"corpus": "tones", "run": str(challenge.attack.pk), "data_set": "tones_enrolls", "number": "1"}
            names |= known_names(challenge, path) | ({"id": str(challenge.upload.pk)} if "uploads/{" in path else {})
            if "{file}" in path:
                continue  # none is made: editions/test_data
            address = path.format_map(names) + ("?data_set=tones_enrolls" if path.endswith("/files") else "")
            example = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
            sent = json.dumps(example).replace("TERMS", terms) if example else ""
            kind = "application/offset+octet-stream" if "/uploads/{" in path else "application/json"
            if "multipart/form-data" in operation.get("requestBody", {}).get("content", {}):
                form = {"test": 'title = "My test"', "archive": pack(recordings())}
                sent, kind = encode_multipart(BOUNDARY, form), MULTIPART_CONTENT
            found.setdefault(path.removeprefix("/api/"), {})[method] = tuple(
                name for name in ALL if status_of(apis[name], method, address, sent, kind) not in {401, 403, 404}
            )
    assert found == FOR


def status_of(api, method, address, sent, kind):
    """The status of an answer; nothing that was changed stays, and an example is never wrong in itself."""
    try:
        with transaction.atomic():
            headers = UPLOAD if "/uploads/" in address and "/editions/" not in address else {}
            response = api.client.generic(method.upper(), address, sent, content_type=kind, headers=headers)
            assert response.status_code != 400, (method, address, response.content)
            raise Undone
    except Undone:
        return response.status_code


def test_operations_agree_with_the_matrix_of_access():
    """What a visitor gets there is for everybody; what every member gets, for everybody with an account."""
    for path, methods in schema()["paths"].items():
        asked = dict.fromkeys(re.findall(r"{(\w+)}", path), "1") | {"id": "1"}
        place = path.format_map(asked | ({"id": str(UUID(int=1))} if "/uploads/" in path else {}))
        name = resolve(place).view_name
        for method, operation in methods.items():
            row = (
                MATRIX[name] if method == "get" else POSTS.get(name, (401, 404, 404, 404)) if method == "post" else None
            )
            if row is not None:
                is_open = {} in operation["security"]
                assert is_open >= (row[0] == 200), (method, path)
                assert method == "get" or row[0] == 401, (method, path)


def test_every_operation_tells_what_it_is_for():
    for path, methods in schema()["paths"].items():
        for method, operation in methods.items():
            assert operation["description"].endswith((".", "`.")), (path, method)
            assert operation["x-scopes"], (path, method)
            assert operation["tags"], (path, method)
