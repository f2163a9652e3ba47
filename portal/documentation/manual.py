"""The documentation as pages: the Markdown files of `docs/` that concern those who use the portal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from common.tables import Column, Table, plain_table
from evaluation.metrics.catalogue import FAMILIES, Direction, Metric
from evaluation.protocols.recipes import FOLDER, shipped_editions
from evaluation.protocols.schema import TableText, describe_recipe
from portal.core.templatetags.portal import words as unbroken_words

# The pages by whom they are for, each with what it tells.
GROUPS = {
    "Teams": {
        "teams": "Register, get the data, submit, read the report and the results; the program vp.",
        "anonymizers": "The built-in anonymisers, their options, and the command that runs them.",
        "plugins": "Bring your own anonymiser, as a command or as a Python package.",
    },
    "Organizers": {
        "organizer": "From the corpus to the published leaderboard: import, editions, teams, submissions, ranking.",
        "attackers": "Attacks and recognition by the portal: engines, models, and what they measure.",
    },
    "Listening tests": {
        "listening": "Design a study, check its balance, run it and watch it.",
        "results": "Read, publish and download the results of a study.",
        "analysis": "Analyse ratings of any laboratory with the same methods, by command.",
        "other_tools": "Analyse answers that webMUSHRA, the P.808 toolkit or listen-and-rate collected.",
        "evaluators": "For those who listen: what is asked, what is kept, how to withdraw.",
    },
    "Numbers": {
        "metrics": "Every metric with its key, unit, direction and definition.",
        "methods": "How each number is defined and computed, with its source.",
    },
    "Operators": {
        "operator": "Install, start, maintain and back up the portal; accounts, mail, production.",
        "settings": "Every environment variable with its default.",
    },
}
FAMILIES_IN_WORDS = {
    "detection": "Privacy: verification of speakers",
    "disclosure": "Privacy: categories",
    "exposure": "Privacy beyond the EER",
    "content": "Utility: words and emotions",
    "pitch": "Utility: pitch",
    "voices": "Voices of speakers",
    "training": "Training of attackers",
    "naturalness": "Naturalness",
    "extras": "Gender and inversion",
    "audio": "Audio",
}
BETTER = {Direction.NEAR_ZERO: "Best near zero.", Direction.NEITHER: "Neither direction is better."}
RECIPE_FIELDS = ("Fields of a recipe", "Every table and field of a recipe: type, default, meaning, example.")
PAGES = tuple(name for pages in GROUPS.values() for name in pages)
EXAMPLE_ADDRESS = "https://portal.example.org"  # in commands of the files; the pages show the address of this portal
LONGEST_QUERY = 200
MOST_FOUND = 20
ASKING = re.compile(r"a|an|and|are|can|do|does|how|i|in|is|it|made|my|of|the|to|what|when|where|which|who|why")
WHOLE_WORD, PHRASE = 20, 10_000  # how much more they count than the beginning of a word
EXCERPT_BEFORE, EXCERPT_LENGTH = 60, 220
NOTHING = "–"  # in a cell, which phones leave out
LONGEST_NUMBER = 12  # characters of a number with its interval or unit, which is not broken
_FIELD_HEADS = ("Type", "Meaning", "Example")
_TABLE = '<div class="table-scroll" role="region" tabindex="0" aria-label="{}"><table class="data stack">\n'


@dataclass(frozen=True)
class ManualPage:
    """A page of the documentation: what stands before its first section; of each section address, title and text."""

    name: str
    title: str
    lead: SafeString
    sections: tuple[tuple[str, str, SafeString], ...]


@dataclass(frozen=True)
class ManualSection:
    """A part of a page as it is searched: the page's title, its own heading, its text without any mark-up."""

    address: str
    title: str
    heading: str
    text: str


@dataclass(frozen=True)
class Found:
    """A section that holds words that were asked for, so many; `excerpt` alternates other text and found words."""

    section: ManualSection
    excerpt: tuple[str, ...]
    words: int
    score: int
    holds_all: bool


def manual_groups() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Of each group its pages: address, title and what it tells."""
    groups = [
        (group, [(_page_address(name), manual_page(name).title, told) for name, told in pages.items()])
        for group, pages in GROUPS.items()
    ]
    dict(groups)["Organizers"].append((reverse("docs:recipe-fields"), *RECIPE_FIELDS))
    return groups


def _page_address(name: str) -> str:
    return reverse("docs:page", args=[name])


def search_manual(query: str) -> list[Found]:
    """Sections that hold every word of the query, in any order and case; else those that hold most of them.

    The best come first. A whole word counts more than the beginning of one, words that stand together count most; in a
    heading more than in the title of a page, there more than in the text. The small words of a question do not count.
    """
    asked = list(dict.fromkeys(re.findall(r"\w+", query[:LONGEST_QUERY].casefold())))
    words = [word for word in asked if not ASKING.fullmatch(word)] or asked
    if not words:
        return []
    sections = chain(*map(_sections, PAGES), _field_sections())
    found = [one for section in sections if (one := _match(section, words))]
    with_all = [one for one in found if one.holds_all]
    return sorted(with_all or found, key=lambda one: (-one.words, -one.score))[:MOST_FOUND]


def _match(section: ManualSection, words: list[str]) -> Found | None:
    title, heading, text = (part.casefold() for part in (section.title, section.heading, section.text))
    score = held = 0
    is_found = False
    for word in words:
        begin = re.compile(rf"\b{re.escape(word)}")
        whole = re.compile(rf"{begin.pattern}\b")
        counts = {part: len(begin.findall(part)) for part in (title, heading, text)}
        held += any(counts.values())
        is_found = is_found or bool(counts[heading] or counts[text])
        for pattern, weight in ((begin, 1), (whole, WHOLE_WORD)):
            in_text = min(len(pattern.findall(text)), 5)
            score += weight * (10 * bool(pattern.search(heading)) + 5 * bool(pattern.search(title)) + in_text)
    if not is_found:
        return None  # every section of a page would stand there for its title alone
    if len(words) > 1:
        phrase = re.compile(r"\b" + r"\W+".join(map(re.escape, words)) + r"\b")
        score += PHRASE * bool(phrase.search(heading) or phrase.search(text))
    return Found(section, _excerpt(section.text, words), held, score, held == len(words))


def _excerpt(text: str, words: list[str]) -> tuple[str, ...]:
    """The text around the rarest of the words, cut at words; every second part is a found word."""
    pattern = re.compile(
        r"\b(?:" + "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) + ")", re.IGNORECASE
    )
    plain = text.casefold()
    places = {word: [found.start() for found in re.finditer(rf"\b{re.escape(word)}", plain)] for word in words}
    rarest = min(filter(None, places.values()), key=len, default=[0])
    start = max(0, rarest[0] - EXCERPT_BEFORE)
    start = text.find(" ", start) + 1 if start else 0
    end = text.rfind(" ", start, start + EXCERPT_LENGTH) if len(text) > start + EXCERPT_LENGTH else len(text)
    cut = f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"
    return tuple(re.split(f"({pattern.pattern})", cut, flags=re.IGNORECASE))


@cache
def _sections(name: str) -> list[ManualSection]:
    """The sections of a page, each from its heading to the next one of any rank."""
    title, address, found = manual_page(name).title, _page_address(name), []
    part, heading, texts = address, title, list[str]()
    tokens = _parse(name)
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            found.append(ManualSection(part, title, heading, _run_on(texts)))
            heading, texts = _plain(tokens[place + 1]), []
            part = address if token.tag == "h1" else f"{address}#{token.attrs['id']}"
        elif token.type == "fence" or (token.type == "inline" and tokens[place - 1].type != "heading_open"):
            texts.append(" ".join(_plain(token).split()))
    found.append(ManualSection(part, title, heading, _run_on(texts)))
    return [section for section in found if section.text]


def _run_on(texts: list[str]) -> str:
    """Paragraphs and cells as one text; a point stands after those that end without a sign."""
    return " ".join(one if one.endswith((".", ":", ";", "?", "!")) else f"{one} ·" for one in texts if one).rstrip(" ·")


@cache
def _field_sections() -> list[ManualSection]:
    """The tables of a recipe, each with the meaning of its fields."""
    address, title = reverse("docs:recipe-fields"), RECIPE_FIELDS[0]
    return [
        ManualSection(
            f"{address}#{table.key}",
            title,
            table.place,
            " ".join([table.meaning, *(f"{field.name}: {field.meaning}" for field in table.fields)]),
        )
        for table in describe_recipe()
    ]


def _plain(token: Any) -> str:
    """The text of a token without its mark-up."""
    if not token.children:
        return str(token.content)
    return "".join(" " if child.type.endswith("break") else child.content for child in token.children)


@cache
def manual_page(name: str) -> ManualPage:
    """A page by the name of its file, such as ``teams``; read once in a process.

    Raises:
        LookupError: there is no such page.
    """
    if name not in PAGES:
        raise LookupError(name)
    parser, tokens = _parser(), _parse(name)
    title, starts, tables = "", list[int](), 0
    _name_cells(tokens)
    for place, token in enumerate(tokens):
        token.attrs.pop("style", None)  # the alignment of a column
        if token.type == "heading_open":
            if token.tag == "h1":
                title = _plain(tokens[place + 1])
            elif token.tag == "h2":
                starts.append(place)
        elif token.type == "table_open":
            tables += 1
            token.meta["label"] = f"Table {tables}"
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs["href"] = _address(str(child.attrs["href"]))

    def render(start: int, end: int) -> SafeString:
        after_heading = tokens[start + 3 : end]  # the page has headings of its own
        return mark_safe(parser.renderer.render(after_heading, parser.options, {}))  # noqa: S308 – our own file, raw HTML escaped

    lead, *texts = (render(start, end) for start, end in pairwise([0, *starts, len(tokens)]))
    heads = ((str(tokens[start].attrs["id"]), _plain(tokens[start + 1])) for start in starts)
    sections = tuple((*head, text) for head, text in zip(heads, texts, strict=True))
    return ManualPage(name, title, lead, sections)


def _name_cells(tokens: list[Any]) -> None:
    """The first cell of a row is its heading; the others carry the heading of their column, which phones show."""
    labels, column = list[str](), 0
    for place, token in enumerate(tokens):
        if token.type == "table_open":
            labels = []
        elif token.type == "tr_open":
            column = 0
        elif token.type == "th_open":
            token.attrs["scope"] = "col"
            label = _plain(tokens[place + 1])
            labels.append(label[:1].upper() + label[1:] if label.isascii() else label)
        elif token.type == "td_open":
            text = _plain(tokens[place + 1])
            if column == 0:
                token.tag = tokens[place + 2].tag = "th"
                token.attrs["scope"] = "row"
            if column or not any(map(str.isalpha, text)):  # a number alone does not say of what
                token.attrs["data-label"] = labels[column]
            if text == NOTHING:
                token.attrs["class"] = "none"
            elif column and re.match(r"[-−+]?\d", text) and len(text) <= LONGEST_NUMBER:
                token.attrs["class"] = "figures"
            column += 1


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    # Raw HTML stays text, so that nothing here can carry a script or a style of its own.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", lambda _, tokens, place, *__: _TABLE.format(tokens[place].meta["label"]))
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("fence", _code)
    parser.add_render_rule(
        "code_inline", lambda _, tokens, place, *__: f"<code>{unbroken_words(tokens[place].content)}</code>"
    )
    return parser


def _parse(name: str) -> list[Any]:
    """The tokens of a page; every heading has the address of its section."""
    tokens: list[Any] = _parser().parse(_source(name))
    for place, token in enumerate(tokens):
        if token.type == "fence" and token.content.startswith("deploy/"):  # it names the file that stands here
            token.content = (settings.FILES_DIR / token.content.strip()).read_text(encoding="utf-8")
        elif token.type == "fence":
            token.content = token.content.replace(EXAMPLE_ADDRESS, settings.SITE_URL.rstrip("/"))
        if token.type == "heading_open":
            words = tokens[place + 1].content
            key = re.search(r"`(\w+)`$", words)  # that of a metric is its address
            token.attrs["id"] = key[1] if key else _slug(words)
    return tokens


def _source(name: str) -> str:
    """The Markdown of a page: that of the metrics is made of their catalogue, of others it is a file."""
    if name != "metrics":
        return (settings.FILES_DIR / "docs" / f"{name}.md").read_text(encoding="utf-8")
    parts = [
        "# Metrics",
        "Files and the API name a metric by its key. [Methods and numbers](methods.md) says how each is computed.",
    ]
    for family, metrics in FAMILIES.items():
        parts += [f"## {FAMILIES_IN_WORDS[family]}", *chain.from_iterable(map(_describe_metric, metrics.values()))]
    return "\n\n".join(parts)


def _describe_metric(metric: Metric) -> tuple[str, str]:
    unit = f"Unit: {metric.unit}. " if metric.unit else ""
    better = BETTER.get(metric.direction, f"{metric.direction.capitalize()} is better.")
    return f"### {metric.label}: `{metric.key}`", f"{metric.definition.strip()} {unit}{better}"


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
    """A block of code that the keyboard can scroll, or commands that wrap; a script adds a button to copy it."""
    from markdown_it.common.utils import escapeHtml

    code = tokens[place].content
    if tokens[place].info == "sh":
        lines = "\n".join(map(unbroken_words, code.split("\n")))
        return f'<div class="listing"><pre tabindex="0" class="wraps"><code>{lines}</code></pre></div>\n'
    return f'<div class="listing"><pre tabindex="0"><code>{escapeHtml(code)}</code></pre></div>\n'


def recipe_tables() -> list[tuple[TableText, Table]]:
    """Every table of a recipe, each with its fields."""
    return [(one, _fields_table(one)) for one in describe_recipe()]


def _fields_table(one: TableText) -> Table:
    columns = [Column("field", "Field"), *(Column(head.lower(), head, kind="text") for head in _FIELD_HEADS)]
    return plain_table(
        f"Fields of {one.place}",
        columns,
        (
            [
                field.name,
                f"{field.type}; {'required' if field.is_required else f'default: {field.default}'}",
                field.meaning,
                field.example,
            ]
            for field in one.fields
        ),
        caption=f"Fields of {one.place}",
        is_caption_hidden=True,
    )
