"""What the pages of a study's texts show: a text in a language, and the words of buttons and hints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from listening.app.models import Study, StudyText
from listening.app.studies.interface_words import list_words, ships_words, translations_of
from listening.app.studies.pages import count_english_words, language_name
from listening.app.studies.selectors import shown_text
from listening.texts import LANGUAGES, direction_of


def chosen_text(study: Study, query: Mapping[str, str]) -> tuple[str, str]:
    """Return the kind and the language that an address asks for; the first ones where it asks for none that exist."""
    kind, language = query.get("kind", ""), query.get("language", "")
    kind = kind if kind in list(StudyText.READ) else StudyText.Kind.CONSENT.value
    return kind, language if language in study.languages else study.languages[0]


def text_page(study: Study, kind: str, language: str) -> dict[str, Any]:
    """Return a text as evaluators read it, its history, and the way to the others."""
    return _common(study, kind, language) | {
        "is_shipped": language in LANGUAGES,
        "shown": shown_text(study, kind, language, below=1),
    }


def words_page(study: Study, language: str) -> dict[str, Any]:
    """Return the words of buttons and hints in a language that ships none, their history, and the way to the texts."""
    translations = translations_of(study, language)
    rows = [(word, translations.get(word.key, "")) for word in list_words(language)]
    return _common(study, StudyText.Kind.WORDS, language) | {
        "rows": rows,
        "direction": direction_of(language),
        "words": count_english_words(study, language),
        "counts_forms": any(word.form > 1 for word, _ in rows),
    }


def _common(study: Study, kind: str, language: str) -> dict[str, Any]:
    return {
        "study": study,
        "kind_label": StudyText.Kind(kind).label.capitalize(),
        "language": language,
        "language_label": language_name(language),
        "tabs": _tabs(study, kind, language),
        "versions": study.texts.filter(kind=kind, language=language).select_related("created_by"),
    }


def _tabs(study: Study, kind: str, language: str) -> list[dict[str, Any]]:
    address = reverse("studies:texts", args=[study.name])
    tabs = [
        {
            "label": f"{one.label.capitalize()}, {language_name(code)}",
            "url": f"{address}?{urlencode({'kind': one.value, 'language': code})}",
            "is_chosen": (one, code) == (kind, language),
        }
        for one in StudyText.READ
        for code in study.languages
    ]
    return tabs + [
        {
            "label": f"Buttons and hints, {language_name(code)}",
            "url": reverse("studies:words", args=[study.name, code]),
            "is_chosen": (StudyText.Kind.WORDS, code) == (kind, language),
        }
        for code in study.languages
        if not ships_words(code)
    ]
