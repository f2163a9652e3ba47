"""The manual: built without an error, complete, and served within the policy of scripts."""

import base64
import re
import tomllib
from hashlib import sha256

import pytest
from django.conf import settings

from anonymization.methods.measured import read_measurements
from evaluation.metrics.catalogue import METRICS
from evaluation.protocols.recipes import FOLDER, shipped_editions
from portal.documentation.manual import build_manual
from portal.jobs.kinds import list_kinds
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db
LINK = re.compile(r"""{% url 'docs:page' '([\w-]+)' %}#([\w-]+)""")


def ids_of(name):
    return set(re.findall(r' id="([^"]+)"', (build_manual() / name / "index.html").read_text()))


def test_parts_of_the_manual_that_pages_of_the_portal_name_are_there():
    templates = (settings.BASE_DIR / "templates").rglob("*.html")
    links = {link for template in templates for link in LINK.findall(template.read_text())}
    assert len(links) > 5
    assert {(name, part) for name, part in links if part not in ids_of(name)} == set()


def test_links_from_the_manual_to_the_portal_lead_somewhere(client):
    pages = build_manual().rglob("*.html")
    links = {link for page in pages for link in re.findall(r'href="(/[^"#]*)', page.read_text())}
    assert "/api/" in links
    assert [link for link in sorted(links) if client.get(link).status_code == 404] == []


def test_every_metric_has_its_place_in_the_manual():
    assert set(METRICS) <= ids_of("metrics")


def test_manual_has_parts_numbers_and_source_of_every_built_in_anonymiser():
    page = (build_manual() / "anonymizer-methods" / "index.html").read_text()
    parts, rest = page.partition('id="measured-on-real-speech"')[::2]
    measured, sources = rest.partition('id="sources"')[::2]
    assert read_measurements().date in measured
    for name, result in read_measurements().methods.items():
        cells = [cell.text for cell in read_measurements().row(result)]
        row = measured.partition(f"<td><code>{name}</code>")[2]
        numbers = re.findall(r'<td style="text-align: right;">([^ <]+)', row)
        assert numbers[: len(cells)] == cells, name
        assert f"<td><code>{name}</code></td>" in parts
        assert f"<li><code>{name}</code>: " in sources


def test_manual_says_what_every_kind_of_job_needs():
    page = (build_manual() / "operator" / "index.html").read_text()
    assert [kind.name for kind in list_kinds() if f"<td><code>{kind.name}</code></td>" not in page] == []
    assert re.search(r"<td><code>hypotheses</code></td>\s*<td>[^<]+</td>\s*<td>1 GB</td>\s*<td>3 GB</td>", page)


def test_page_allows_its_own_scripts_only(client):
    response = client.get("/docs/teams/")
    scripts = re.findall(r"<script>(.*?)</script>", response.content.decode(), re.DOTALL)
    policy = response["Content-Security-Policy"]
    directive = next(one.split() for one in policy.split("; ") if one.startswith("script-src"))
    hashes = [f"'sha256-{base64.b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts]
    assert directive == ["script-src", "'self'", *hashes]


def test_commands_of_the_manual_name_this_portal(client, settings):
    assert settings.SITE_URL.rstrip("/") in client.get("/docs/teams/").content.decode()


@pytest.mark.parametrize("path", ["nothing/", "recipes/2023.toml", "../secret_key", "assets/../../x"])
def test_there_is_nothing_else_in_the_manual(client, path):
    client.force_login(make_organizer())
    assert client.get(f"/docs/{path}").status_code in (400, 404)


def test_shipped_recipes_are_handed_out_where_an_edition_is_made(client):
    client.force_login(make_organizer())
    page = client.get("/editions/new/").content.decode()
    for name in shipped_editions():
        assert f'href="/docs/recipes/{name}.toml" download' in page
        answer = client.get(f"/docs/recipes/{name}.toml")
        assert answer.content.decode() == (FOLDER / f"{name}.toml").read_text()
        assert tomllib.loads(answer.content.decode())["edition"] == name
