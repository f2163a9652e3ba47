"""The wordings that evaluators read: those shipped with the portal, and the version of a study's own that holds.

Shipped are consent, both role plays, instructions for every task, and thanks, each in English and French, as Markdown
in this folder. A study copies them into `StudyText` rows when it is made and changes them there; a session keeps which
version it was shown. Raw HTML, images and addresses in a text stay text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.utils.safestring import SafeString, mark_safe

from listening.models import Session, Study, StudyText, Task

FOLDER = Path(__file__).parent
LANGUAGES = {"en": "English", "fr": "Français"}  # in which every wording and every page is shipped
SHIPPED_LANGUAGES = tuple(LANGUAGES)
RIGHT_TO_LEFT = frozenset({"ar", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"})
RATED = (Task.VERIFIABILITY, Task.NATURALNESS, Task.INTELLIGIBILITY)


@dataclass(frozen=True)
class ShownText:
    """A text as a page shows it; `language` may be another one than the page's, `version` 0 is the shipped wording."""

    kind: str
    language: str
    version: int
    body: SafeString

    @property
    def direction(self) -> str:
        return "rtl" if self.language.partition("-")[0] in RIGHT_TO_LEFT else "ltr"


def shipped_text(
    kind: str, role_play: str, language: str, *, tasks: Iterable[str] = RATED, scale_points: int = 10
) -> str:
    """The wording in Markdown that comes with the portal; in English where there is none in this language.

    Empty for the role play of a study that brings its own.
    """
    language = language if language in LANGUAGES else "en"
    if kind == StudyText.Kind.ROLE_PLAY:
        return "" if role_play == Study.RolePlay.OWN else _read(language, f"role-play-{role_play}")
    if kind == StudyText.Kind.INSTRUCTIONS:
        parts = [_read(language, kind), *(_read(language, f"{kind}-{Task(task).value}") for task in tasks)]
        return "\n\n".join(parts).replace("{top}", str(scale_points))
    return _read(language, StudyText.Kind(kind).value)


def newest_text(study: Study, kind: str, language: str) -> ShownText:
    """The newest version of a study's text in this language, else in its first one, else as it is shipped."""
    rows = {}
    for row in study.texts.filter(kind=kind).order_by("version"):
        rows[row.language] = row
    found = next((rows[one] for one in (language, *study.languages, *rows) if one in rows), None)
    if found is not None:
        return ShownText(kind, found.language, found.version, as_html(found.text))
    wording = shipped_text(kind, study.role_play, language, tasks=study.tasks, scale_points=study.scale_points)
    shipped_in = language if language in LANGUAGES else "en"
    return ShownText(kind, shipped_in, 0, as_html(wording))


def show_text(session: Session, kind: str) -> ShownText:
    """The text as this session reads it now; which version it was is kept with the session."""
    shown = newest_text(session.study, kind, session.language)
    seen = {"language": shown.language, "version": shown.version}
    if session.texts.get(kind) != seen:
        session.texts = session.texts | {kind: seen}
        session.save(update_fields=["texts"])
    return shown


def as_html(text: str) -> SafeString:
    """Markdown of an organizer as HTML that holds no script, no style, no image and no address of elsewhere."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink", "html_inline"])
    return mark_safe(parser.render(text))  # noqa: S308


@cache
def _read(language: str, name: str) -> str:
    return (FOLDER / language / f"{name}.md").read_text(encoding="utf-8").strip()
