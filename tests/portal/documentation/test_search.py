"""The index and the search of the documentation."""

import re

import pytest

from evaluation.metrics.catalogue import ALL_METRICS
from portal.documentation.manual import GROUPS, PAGES, search_manual
from tests.pages import read_page

pytestmark = pytest.mark.django_db


def test_index_names_every_page_and_what_it_tells(client):
    page = client.get("/docs/").content.decode()
    assert set(re.findall(r'<dt><a href="/docs/([\w-]+)/">', page)) == {*PAGES, "recipe-fields"}
    assert [told for pages in GROUPS.values() for told in pages.values() if told not in page] == []
    assert 'href="/docs/"' in client.get("/").content.decode()


def test_search_finds_sections_with_every_word_and_leads_to_them(client):
    first = search_manual("nginx SECRETS")[0]
    assert first.section.address.startswith("/docs/operator/#")
    assert [word.casefold() for word in first.excerpt[1::2]].count("secrets") > 0
    page = client.get("/docs/?q=nginx+SECRETS").content.decode()
    assert f'href="{first.section.address}">{first.section.heading}</a>' in page
    assert "<mark>secrets</mark>" in page


def test_word_in_a_heading_comes_first():
    assert search_manual("withdraw")[0].section.heading.casefold().count("withdraw") == 1


def test_whole_words_come_before_beginnings_and_letters_inside_words_are_nothing():
    found = search_manual("WER")
    assert found
    for one in found:
        assert re.search(r"\bwer", f"{one.section.title} {one.section.heading} {one.section.text}", re.IGNORECASE)
    whole = [bool(re.search(r"\bwer\b", f"{one.section.heading} {one.section.text}", re.IGNORECASE)) for one in found]
    assert whole == sorted(whole, reverse=True)
    for query, address in (
        ("lazy-informed", "/docs/methods/#attack-models-ignorant-lazy-informed-semi-informed"),
        ("ignorant attack", "/docs/methods/#attack-models-ignorant-lazy-informed-semi-informed"),
        ("compare two systems", "/docs/methods/#compare-two-systems"),
    ):
        assert search_manual(query)[0].section.address == address
    assert search_manual("equal error rate")[0].section.address.startswith("/docs/methods/")


def test_names_and_keys_of_metrics_find_what_explains_them():
    for query, key in (
        ("WER", "wer"),
        ("G_VD", "gain_of_voice_distinctiveness"),
        ("linkability", "linkability"),
        ("min C_llr", "min_cllr"),
        ("voiced pitch correlation", "pitch_correlation_voiced"),
        *((key, key) for key in ALL_METRICS),
    ):
        assert search_manual(query)[0].section.address == f"/docs/metrics/#{key}", query
    assert "pitch" in search_manual("pitch correlation")[0].section.address


def test_sections_with_some_words_are_found_where_none_has_all(client):
    found = search_manual("nginx nosuchword")
    assert found
    assert not any(one.holds_all for one in found)
    assert [one.section for one in found] == [one.section for one in search_manual("nginx")]
    assert "/docs/evaluators/" in {one.section.address.partition("#")[0] for one in search_manual("voice map")}
    assert "with some words of “nginx nosuchword”" in read_page(client.get("/docs/?q=nginx+nosuchword"))
    assert all(one.holds_all for one in search_manual("nginx secrets"))


def test_small_words_of_a_question_do_not_count():
    assert "Ranks" in [one.section.heading for one in search_manual("How is the rank made?")]
    assert search_manual("how")  # nothing else is asked


def test_fields_of_a_recipe_are_found():
    assert "/docs/recipe-fields/#" in "".join(one.section.address for one in search_manual("attackers by portal"))


def test_every_found_section_has_its_address(client):
    for word in ("the", "speaker", "recipe"):
        for one in search_manual(word):
            address, _, part = one.section.address.partition("#")
            assert not part or f'id="{part}"' in client.get(address).content.decode()


@pytest.mark.parametrize("query", ["", "  ", "…", "nosuchword"])
def test_nothing_is_found_for_words_that_stand_nowhere(client, query):
    assert search_manual(query) == []
    assert client.get("/docs/", {"q": query}).status_code == 200


def test_query_is_text_and_not_long(client):
    page = client.get("/docs/", {"q": "<b>portal</b>" + "x" * 500}).content.decode()
    assert "<b>portal" not in page
    assert "x" * 300 not in page
    assert "Nothing with" in read_page(client.get("/docs/", {"q": "portal" * 100}))


def test_cells_of_a_table_do_not_run_into_the_sentence_after_them(client):
    text = " ".join("".join(one.excerpt) for one in search_manual("equal error rate"))
    assert " · " in text
    assert "these words: “equal error rate”" in client.get("/docs/?q=equal+error+rate").content.decode()
