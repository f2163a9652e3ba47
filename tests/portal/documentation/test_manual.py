"""The documentation on pages: complete, without styles of its own, and with links that lead somewhere."""

import tomllib

import pytest

from evaluation.protocols.recipes import FOLDER, shipped_editions
from tests.portal.factories import make_organizer, make_user

pytestmark = pytest.mark.django_db


def test_there_is_no_other_page_of_the_documentation(client):
    member = make_user()
    client.force_login(member)
    assert client.get("/docs/decisions/").status_code == 404
    assert client.get("/docs/recipes/2023.toml").status_code == 404


def test_listening_test_is_explained_to_organizers_and_evaluators(client):
    assert 'href="/docs/listening/"' in client.get("/").content.decode()
    page = client.get("/docs/listening/").content.decode()
    for link in ("/docs/evaluators/", "/docs/operator/", "/docs/organizer/", "/docs/settings/"):
        assert f'<a href="{link}">' in page
    assert 'id="the-lock-against-peeking"' in page
    assert 'id="how-to-withdraw"' in client.get("/docs/evaluators/").content.decode()
    assert 'href="#how-to-withdraw"' in client.get("/docs/evaluators/?open=all").content.decode()


def test_shipped_recipes_are_handed_out_where_an_edition_is_made(client):
    client.force_login(make_organizer())
    page = client.get("/editions/new/").content.decode()
    for name in shipped_editions():
        assert f'href="/docs/recipes/{name}.toml" download' in page
        answer = client.get(f"/docs/recipes/{name}.toml")
        assert answer.content.decode() == (FOLDER / f"{name}.toml").read_text()
        assert tomllib.loads(answer.content.decode())["edition"] == name
