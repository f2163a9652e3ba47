"""The index and the search of the documentation."""

import pytest

from portal.documentation.manual import search_manual

pytestmark = pytest.mark.django_db


def test_search_finds_sections_with_every_word_and_leads_to_them(client):
    first = search_manual("nginx SECRETS")[0]
    assert first.section.address.startswith("/docs/operator/#")
    assert [word.casefold() for word in first.excerpt[1::2]].count("secrets") > 0
    page = client.get("/docs/?q=nginx+SECRETS").content.decode()
    assert f'href="{first.section.address}">{first.section.heading}</a>' in page
    assert "<mark>secrets</mark>" in page


def test_word_in_a_heading_comes_first():
    assert search_manual("withdraw")[0].section.heading.casefold().count("withdraw") == 1
