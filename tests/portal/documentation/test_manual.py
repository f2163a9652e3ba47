"""The documentation on pages: complete, without styles of its own, and with links that lead somewhere."""

import re
import tomllib

import pytest

from evaluation.protocols.recipes import FOLDER, shipped_editions
from portal.documentation import manual
from portal.documentation.manual import PAGES
from tests.portal.factories import make_edition, make_organizer, make_team, make_user

pytestmark = pytest.mark.django_db


def test_pages_of_the_documentation_hold_their_sections_and_links_that_lead_somewhere(client):
    answers = {path: client.get(path) for path in (f"/docs/{name}/" for name in PAGES)}
    for path, answer in list(answers.items()):
        page = answer.content.decode()
        body = page[page.index('<div class="manual">') :]
        assert page.count("<h1") == 1, path
        assert "style=" not in page, path
        assert "<table>" not in body, path
        ids = set(re.findall(r' id="([^"]+)"', page))
        for target in re.findall(r'href="([^"]+)"', body):
            if target.startswith("#"):
                assert target[1:] in ids, (path, target)
            elif target.startswith("/"):
                address, _, part = target.partition("#")
                other = answers.get(address) or answers.setdefault(address, client.get(address))
                assert other.status_code in {200, 302}, (path, target)
                assert not part or f' id="{part}"' in other.content.decode(), (path, target)
            else:
                assert target.startswith("https://"), (path, target)


def test_cells_of_tables_carry_the_heading_of_their_column_for_phones(client):
    page = client.get("/docs/settings/").content.decode()
    row = re.search(r"<tr>\s*<th scope=\"row\"><code>PORTAL_ADDRESS</code></th>\s*(.*?)</tr>", page, re.DOTALL).group(1)
    assert re.findall(r'<td data-label="(\w+)">', row) == ["Meaning", "Default"]
    methods = client.get("/docs/methods/").content.decode()
    assert '<th scope="row" data-label="Speakers of a split">30</th>' in methods
    assert 'data-label="ρF0"' in methods
    assert 'class="figures">0.0083</td>' in methods
    assert 'class="none">–</td>' in methods


def test_commands_wrap_and_other_blocks_of_code_scroll(client):
    page = client.get("/docs/teams/").content.decode()
    assert '<div class="listing"><pre tabindex="0" class="wraps"><code>vp login' in page
    assert '<div class="listing"><pre tabindex="0"><code>T11/' in page


def test_commands_for_teams_name_the_address_of_this_portal(client, settings):
    manual.manual_page.cache_clear()
    settings.SITE_URL = "https://vpc.uni.example"
    page = client.get("/docs/teams/").content.decode()
    manual.manual_page.cache_clear()
    assert 'vp login <span class="unbroken">--server</span> https://vpc.uni.example\n' in page
    assert "portal.example.org" not in page


def test_there_is_no_other_page_of_the_documentation(client):
    member = make_user()
    client.force_login(member)
    assert client.get("/docs/decisions/").status_code == 404
    assert client.get("/docs/recipes/2023.toml").status_code == 404


def test_documentation_is_linked_from_every_page_the_edition_and_the_upload(client):
    owner = make_user()
    edition = make_edition(name="mine")
    make_team(edition, owner=owner)
    assert 'href="/docs/teams/"' in client.get("/").content.decode()
    page = client.get("/editions/mine/").content.decode()
    assert 'href="/docs/teams/#what-to-pack"' in page
    client.force_login(owner)
    page = client.get("/editions/mine/submit/").content.decode()
    assert 'href="/docs/teams/#what-to-pack"' in page
    assert "<code>model utterance score</code>" in page
    assert 'id="what-to-pack"' in client.get("/docs/teams/").content.decode()


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


def test_options_do_not_break_after_their_hyphens(client):
    assert '<code><span class="unbroken">--add</span>' in client.get("/docs/teams/").content.decode()
