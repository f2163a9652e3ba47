"""Texts of any language made comparable: letters stay, marks go, scripts without spaces are counted by characters."""

import unicodedata

import pytest

from evaluation.metrics.word_normalization import CHALLENGE_2022, WRITTEN, WRITTEN_ENGLISH, find_rule, rule_for


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Über dem Fluß – „nichts“!", "ÜBER DEM FLUSS NICHTS"),
        ("L’été, c'est déjà fini…", "L'ÉTÉ C'EST DÉJÀ FINI"),
        ("今日は、いい天気ですね。", "今 日 は い い 天 気 で す ね"),
        ("他们会害怕,因为 BBC", "他 们 会 害 怕 因 为 BBC"),
        ("مرحبا، كيف حالك؟", "مرحبا كيف حالك"),
        ("[Musik] (leise) 12 Äpfel", "12 ÄPFEL"),
        ("", ""),
    ],
)
def test_letters_of_any_script_stay_and_marks_go(text, words):
    assert WRITTEN.normalise(text) == words


def test_composed_and_decomposed_letters_are_the_same():
    for text in ("Zwölf Äpfel", "déjà", "が行く"):
        assert WRITTEN.normalise(unicodedata.normalize("NFD", text)) == WRITTEN.normalise(text)


def test_english_alone_keeps_its_rule_and_several_languages_share_one():
    assert rule_for(["en"]) is WRITTEN_ENGLISH
    assert rule_for([]) is WRITTEN_ENGLISH
    assert rule_for(["en", "de"]) is WRITTEN
    assert find_rule("written-1") is WRITTEN
    assert find_rule("vpc-2022") is CHALLENGE_2022
