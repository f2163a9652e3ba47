"""The wordings that evaluators read as they are shipped: consent, both role plays, instructions, thanks.

They are Markdown in this folder, in English and French; the questions before the trials are JSON.
A study copies them into rows of its own when it is made and
changes them there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from listening.questions import FIRST_PRESET, SWITCHING, AskedQuestion, find_form, load_preset

FOLDER = Path(__file__).parent
LANGUAGES = {"en": "English", "fr": "Français"}  # in which every wording and every page is shipped
SHIPPED_LANGUAGES = tuple(LANGUAGES)
RIGHT_TO_LEFT = frozenset({"ar", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"})
WITHOUT_STORY = ("own", "none")  # role plays: of a study that brings its wording, or has none


def shipped_text(
    kind: str,
    role_play: str,
    language: str,
    *,
    questions: Sequence[AskedQuestion] | None = None,
    is_about_voices: bool = True,
) -> str:
    """Return the wording in Markdown that comes with the portal; in English where there is none in this language.

    Args:
        kind: ``consent``, ``role-play``, ``instructions`` or ``thanks``.
        role_play: ``broadcaster``, ``call-centre``, each with a story for ratings, for voice maps and for
            transcriptions; or one of `WITHOUT_STORY`, whose wording is empty.
        questions: those of the first preset where they are left out.
        is_about_voices: whether the purpose is to hide who is speaking, as consent and thanks then say.
    """
    language = language if language in LANGUAGES else "en"
    questions = load_preset(FIRST_PRESET).questions if questions is None else questions
    if kind == "role-play":
        form = find_form(questions)
        story = f"{kind}-{role_play}" + ("" if form in ("rating", "answers") else f"-{form}")
        return "" if role_play in WITHOUT_STORY else _read(language, story)
    if kind == "instructions":
        parts = [one.words(language).instructions.replace("{top}", str(one.points)) for one in questions]
        name = f"{kind}-switching" if any(one.screen in SWITCHING for one in questions) else kind
        return "\n\n".join(filter(None, [_read(language, name), *parts]))
    name = kind if is_about_voices else f"{kind}-general"
    return _read(language, name).replace("{what}", _say_what(language, questions))


def _say_what(language: str, questions: Sequence[AskedQuestion]) -> str:
    """Return what an evaluator does with the recordings, for the consent."""
    words = json.loads((FOLDER / "consent.json").read_text(encoding="utf-8"))[language]
    rated = [one.words(language).consent for one in questions if one.is_judged]
    rated = list(filter(None, rated)) or [words["how"]] * bool(rated)
    said = ", ".join(rated[:-1]) + words["and"] * (len(rated) > 1) + rated[-1] if rated else ""
    others = [one.words(language).consent for one in questions if not one.is_judged]
    return ", ".join([f"{words['say']} {said}"] * bool(said) + others)


def shipped_questionnaire() -> list[dict[str, Any]]:
    """Return the questions that a study asks before its trials unless it is changed, in the form of its field."""
    found: list[dict[str, Any]] = json.loads((FOLDER / "questionnaire.json").read_text(encoding="utf-8"))
    return found


def direction_of(language: str) -> str:
    """Return ``rtl`` or ``ltr``."""
    return "rtl" if language.partition("-")[0] in RIGHT_TO_LEFT else "ltr"


def render_markdown(text: str, *, below: int = 0) -> str:
    """Return Markdown of an organizer as HTML that holds no script, no style, no image and no address of elsewhere.

    Args:
        below: by how many levels its headings are lower than they are written, on a page that has headings above them.
    """
    parser = MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink", "html_inline"])
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + below)}"
    return str(parser.renderer.render(tokens, parser.options, {}))


@cache
def _read(language: str, name: str) -> str:
    """Return a file with each paragraph on one line: who edits it sees no breaks of the file."""
    text = (FOLDER / language / f"{name}.md").read_text(encoding="utf-8").strip()
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text)
