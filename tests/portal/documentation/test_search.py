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


def test_small_words_of_a_question_do_not_count():
    assert "Ranks" in [one.section.heading for one in search_manual("How is the rank made?")]
    assert search_manual("how")  # nothing else is asked


@pytest.mark.parametrize("query", ["", "  ", "…", "nosuchword"])
def test_nothing_is_found_for_words_that_stand_nowhere(client, query):
    assert search_manual(query) == []
    assert client.get("/docs/", {"q": query}).status_code == 200
