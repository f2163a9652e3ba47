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


def test_shipped_recipes_are_handed_out_where_an_edition_is_made(client):
    client.force_login(make_organizer())
    page = client.get("/editions/new/").content.decode()
    for name in shipped_editions():
        assert f'href="/docs/recipes/{name}.toml" download' in page
        answer = client.get(f"/docs/recipes/{name}.toml")
        assert answer.content.decode() == (FOLDER / f"{name}.toml").read_text()
        assert tomllib.loads(answer.content.decode())["edition"] == name
