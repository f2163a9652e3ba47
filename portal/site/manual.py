"""The documentation as pages: the Markdown files of `docs/` that concern those who use the portal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from evaluation.protocols.recipes import FOLDER, shipped_editions

PAGES = (
    *("teams", "organizer", "listening", "evaluators", "results", "analysis", "methods", "anonymizers"),
    *("plugins", "attackers", "semi_informed", "operator", "settings"),
)
_TABLE = '<div class="table-scroll" role="region" tabindex="0" aria-label="{}"><table class="data">\n'


@dataclass(frozen=True)
class ManualPage:
    """A page of the documentation; `sections` are address and title of its parts."""

    name: str
    title: str
    body: SafeString
    sections: tuple[tuple[str, str], ...]


@cache
def manual_page(name: str) -> ManualPage:
    """A page by the name of its file, such as ``teams``; read once in a process.

    Raises:
        LookupError: there is no such page.
    """
    if name not in PAGES:
        raise LookupError(name)
    from markdown_it import MarkdownIt

    text = (settings.BASE_DIR / "docs" / f"{name}.md").read_text(encoding="utf-8")
    # Raw HTML stays text, so that nothing here can carry a script or a style of its own.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", lambda _, tokens, place, *__: _TABLE.format(tokens[place].meta["label"]))
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("fence", _code)
    tokens = parser.parse(text)
    title, sections, tables = "", [], 0
    for place, token in enumerate(tokens):
        token.attrs.pop("style", None)  # the alignment of a column
        if token.type == "heading_open":
            words = tokens[place + 1].content
            token.attrs["id"] = _slug(words)
            if token.tag == "h1":
                title = words
            elif token.tag == "h2":
                sections.append((_slug(words), words.replace("`", "")))
        elif token.type == "table_open":
            tables += 1
            token.meta["label"] = f"Table {tables}"
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs["href"] = _address(str(child.attrs["href"]))
    body = tokens[3:] if tokens and tokens[0].tag == "h1" else tokens  # the page has a heading of its own
    html = mark_safe(parser.renderer.render(body, parser.options, {}))  # noqa: S308 – our own file, raw HTML escaped
    return ManualPage(name, title, html, tuple(sections))


def recipe_file(name: str) -> str:
    """The text of a shipped recipe.

    Raises:
        LookupError: there is no such recipe.
    """
    if name not in shipped_editions():
        raise LookupError(name)
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def _address(target: str) -> str:
    """Where a link of a file leads on the portal."""
    file, hash_sign, part = target.partition("#")
    name = file.removesuffix(".md")
    return f"{reverse('docs:page', args=[name])}{hash_sign}{part}" if file.endswith(".md") and name in PAGES else target


def _slug(words: str) -> str:
    return re.sub(r"[^\w]+", "-", words.lower()).strip("-")


def _code(_: Any, tokens: Any, place: int, *__: Any) -> str:
    """A block of code that the keyboard can scroll."""
    from markdown_it.common.utils import escapeHtml

    return f'<pre tabindex="0"><code>{escapeHtml(tokens[place].content)}</code></pre>\n'
