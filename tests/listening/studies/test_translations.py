"""Everything that an evaluator reads exists in every shipped language, and what is compiled is what is written."""

import re

import pytest
from django.conf import settings

from listening import texts
from tests.listening.translating import ROOT, catalogue_of, sentences, source_of

OTHERS = [language for language in texts.LANGUAGES if language != "en"]
FIX = (
    "In the folder listening/app/locale/{0}/LC_MESSAGES translate it in django.po, then: "
    "msgfmt --check --no-hash -o django.mo django.po"
)
PLACES = re.compile(r"%\(\w+\)[sd]|\{\w+\}")
# Names of samples, groups and keys, which are the same in every language, and signs.
NO_WORDS = re.compile(r"^[\W\d_]*$|^(Enter|A|B)$")


@pytest.mark.parametrize("language", OTHERS)
def test_criterion_22_every_sentence_is_translated(language):
    known = source_of(language)
    missing = [
        f"{pair[0]!r} of {', '.join(where)}"
        for pair, where in sentences().items()
        if not (known.get((pair[0], 1)) if pair[1] else known.get(pair[0]))
    ]
    assert missing == [], FIX.format(language)
    assert len(known) > 150


@pytest.mark.parametrize("language", OTHERS)
def test_compiled_catalogue_fits_its_source(language):
    compiled = {key: value for key, value in catalogue_of(language).items() if key}
    source = {key: value for key, value in source_of(language).items() if key}
    assert compiled == source, FIX.format(language)


@pytest.mark.parametrize("language", OTHERS)
def test_translations_keep_what_is_filled_in_and_nothing_is_left_over(language):
    known, wanted = source_of(language), sentences()
    for one, many in wanted:
        plurals = [known.get((one, 0), ""), known.get((one, 1), "")] if many else []
        for translated in plurals or [known.get(one, "")]:
            assert sorted(set(PLACES.findall(translated))) == sorted(set(PLACES.findall(one))), one
    unused = {key if isinstance(key, str) else key[0] for key in known if key} - {one for one, _ in wanted}
    assert unused == set()


def test_no_template_of_an_evaluator_holds_words_outside_of_translation():
    left = []
    for path in sorted((ROOT / "templates" / "listening" / "sessions").rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"{% comment %}.*?{% endcomment %}|{#.*?#}|<!--.*?-->", " ", text, flags=re.S)
        text = re.sub(r"{% blocktrans(late)?\b.*?{% endblocktrans(late)? %}", " ", text, flags=re.S)
        shown = re.findall(r'\b(?:aria-label|title|placeholder|alt)="([^"]*)"', text)
        bare = re.sub(r"{%.*?%}|{{.*?}}", " ", text, flags=re.S)
        words = [re.sub(r"{%.*?%}|{{.*?}}", "", one) for one in shown]
        words += re.sub(r"<[^>]*>", "\n", bare).splitlines()
        words = [re.sub(r"&\w+;", " ", one).strip() for one in words]
        left += [f"{path.name}: {one}" for one in words if not NO_WORDS.match(one)]
    assert left == []


def test_no_script_of_an_evaluator_holds_words():
    """Sentences come from the page: a text in a script would have a capital, a space and no translation."""
    sentence = re.compile(r"""["'`]([A-Z][a-z]+ [^"'`]*)["'`]""")
    found = []
    for path in sorted((ROOT / "static" / "listening").glob("*.js")):
        if path.name != "monitor.js":
            lines = [line for line in path.read_text().splitlines() if not line.strip().startswith(("//", "*", "/*"))]
            code = [re.sub(r"(?<!:)//.*", "", line) for line in lines if "throw " not in line and "Error(" not in line]
            found += [f"{path.name}: {text}" for line in code for text in sentence.findall(line)]
    assert found == []


def test_right_to_left_is_the_same_for_texts_and_pages():
    assert frozenset(settings.LANGUAGES_BIDI) == texts.RIGHT_TO_LEFT
