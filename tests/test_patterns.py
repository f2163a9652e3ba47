"""No regular expression of the product takes longer than its text: each is attacked, and the steps are counted."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.urls import URLResolver, get_resolver
from django.urls.resolvers import RegexPattern

from tests.backtracking import Matcher

ROOT = Path(__file__).parent.parent
PACKAGES = ("common", "speech", "evaluation", "anonymization", "listening", "portal")
ANCHORED = {"match", "fullmatch"}
# By the place of the flags among their arguments.
COMPILERS = {"compile": 1, "sub": 4, "subn": 4, "split": 3}
COMPILERS |= dict.fromkeys(("search", "findall", "finditer", *ANCHORED), 2)
FIELDS = {"RegexField", "RegexValidator"}
# Patterns that are made while the product runs, by the file that makes them: all that there are.
MADE_WHILE_RUNNING: dict[str, list[str]] = {
    "anonymization/cli/arguments.py": ["(?=.{1,9}$)0*[1-9][0-9]*", "-?[0-9]{1,100}", "[0-9]{1,4}"],
    "evaluation/formats/results.py": [],  # found among what the module holds
    "evaluation/protocols/recipe_making.py": ["_f(?=_|$)"],
    "listening/analysis/reading/answers.py": ["q1(?:_(?!url|order)[a-z]+)?"],
    "listening/analysis/figures/labels.py": ["(?<=;) ", "(?<=[.;]) "],
    "portal/deletion/erasure.py": [
        r"(?<![0-9A-Za-z_-])(?:tones-1|content/1)(?![0-9A-Za-z_-])",
        r"(?:\A|(?<=[/\"'“]))1089(?=[/\"'”]|\Z)|(?:^|(?<=[/\"',;\t]))1089(?=[/\"',;\s]|$)",
    ],
    "portal/documentation/manual.py": ["clean|speech", "(clean|speech)"],
    "portal/submissions/rules.py": [r"T11-p(\d+)"],
    "speech/model_files/checkpoints.py": [
        *tomllib.loads((ROOT / "speech/encoders/ecapa_speechbrain.toml").read_text())
    ],
}


class Use(NamedTuple):
    """Where a pattern stands, and whether it has to fit at one place (``match``, ``fullmatch``) or anywhere."""

    place: str
    pattern: Any
    flags: int
    use: str


def list_uses() -> Iterator[Use]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"\bfrom re import|\bimport re as", text), f"{path}: import re"
            if "re.compile(" in text or re.search(r"\bre\.\w+\(|Regex(Field|Validator)\(", text):
                yield from uses_of_module(str(path.relative_to(ROOT)), ast.parse(text))
    for regex in patterns_of_addresses(get_resolver()):
        yield Use("addresses", regex.pattern, regex.flags, "search")


def uses_of_module(place: str, tree: ast.Module) -> Iterator[Use]:
    module = import_module(place.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    seen = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if not (name in COMPILERS and is_of(getattr(function, "value", None), "re")) and name not in FIELDS:
            continue
        given = call.args[COMPILERS[name] : COMPILERS[name] + 1] if name in COMPILERS else []
        flags = next((one.value for one in call.keywords if one.arg == "flags"), given[0] if given else None)
        where = f"{place}, line {call.lineno}"
        for use in uses_of_call(tree, name, call, parents):
            try:
                pattern = evaluate(call.args[0], module)
            except NameError:
                if not is_in_function(call, parents):
                    continue  # the module holds what was made of it
                for made in MADE_WHILE_RUNNING[place]:
                    yield Use(where, made, 0, use)
            else:
                seen.add(pattern)
                yield Use(where, pattern, int(evaluate(flags, module)) if flags else 0, use)
    for pattern in patterns_in(list(vars(module).values())):
        if pattern.pattern not in seen:
            for use in asked_of(tree, None):
                yield Use(place, pattern.pattern, pattern.flags, use)


def uses_of_call(tree: ast.Module, name: str, call: ast.Call, parents: dict[ast.AST, ast.AST]) -> set[str]:
    """How a pattern is used: by the name of the function, or of what the compiled one is asked for in its module."""
    parent = parents[call]
    if name in ANCHORED:
        return {name}
    if name == "compile" and isinstance(parent, ast.Attribute):
        return {parent.attr} if parent.attr in ANCHORED else {"search"}
    while name == "compile" and isinstance(parent, ast.Dict | ast.Tuple | ast.List):
        parent = parents[parent]
    if name == "compile" and isinstance(parent, ast.Assign):
        return asked_of(tree, getattr(parent.targets[0], "id", ""))
    return asked_of(tree, None)


def asked_of(tree: ast.Module, name: str | None) -> set[str]:
    """How a module uses the pattern of a name, or patterns without one; ``search`` where it says nothing of it."""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in COMPILERS]
    if name is not None and (named := {node.attr for node in attributes if is_of(node.value, name)}):
        return named if named <= ANCHORED else {"search"}
    others = {node.attr for node in attributes if not is_of(node.value, "re")} - {"split"}  # nearly always of a text
    return others if others and others <= ANCHORED else {"search"}


def is_in_function(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    outer: ast.AST | None = node
    while (outer := parents.get(outer) if outer else None) is not None:
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return True
    return False


def is_of(node: ast.AST | None, name: str) -> bool:
    """Whether it is what has this name, or one of it."""
    return is_of(node.value, name) if isinstance(node, ast.Subscript) else getattr(node, "id", None) == name


def evaluate(expression: ast.expr, module: Any) -> Any:
    value = eval(compile(ast.Expression(expression), "pattern", "eval"), dict(vars(module)))
    return value.pattern if isinstance(value, re.Pattern) else value


def patterns_in(values: list[Any]) -> Iterator[re.Pattern[Any]]:
    """The compiled patterns among what a module holds, in lists and tables too."""
    for value in values:
        if isinstance(value, re.Pattern):
            yield value
        elif isinstance(value, list | tuple) and len(value) < 100:
            yield from patterns_in(list(value))
        elif isinstance(value, dict) and len(value) < 100 and "__name__" not in value:
            yield from patterns_in(list(value.values()))


def patterns_of_addresses(resolver: URLResolver) -> Iterator[re.Pattern[str]]:
    for one in resolver.url_patterns:
        if isinstance(one.pattern, RegexPattern) and one.pattern.regex.pattern:
            yield one.pattern.regex
        if isinstance(one, URLResolver):
            yield from patterns_of_addresses(one)


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r".*,.*;", "match"),
        (r"\d++\.", "search"),
        (r"\[[^\]]*\]", "sub"),
        (r"\s+$", "search"),
        (r"a(?:[ab]*c)?", "search"),
        (r"\$(\d[\d,]*)(?:\.(\d\d))?(?![\d.]*\d)", "search"),
    ],
)
def test_pattern_that_takes_longer_than_its_text_is_found(pattern, use):
    assert Matcher(pattern, 0, "search" if use == "sub" else use).find_attack()


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?\Z", "match"),
        (r"[a-z0-9]+(-[a-z0-9]+)*", "fullmatch"),
        (r"\d+\.", "match"),
        (r"(?<!\d)\d+\.", "search"),
        (r"\b(\d+)\.(\d+)\b", "search"),
        (r"[A-Za-z0-9_-]{1,80}", "fullmatch"),
    ],
)
def test_pattern_that_takes_as_long_as_its_text_is_left_in_peace(pattern, use):
    assert Matcher(pattern, 0, use).find_attack() is None


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"(?P<a>\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", ["0,000.0", "00", "0,00", "a 0.", ""]),
        (r"\bst\.?(?=\s+[a-z])|(?<![a-z])'+", ["st. az", "st ", "ast a", "a'z ''s"]),
        (r"(?>a|ab)c|x{2,3}?y|[^b\n]*+b$", ["abc", "ac", "xxxy", "aab\n", "aa"]),
    ],
)
@pytest.mark.parametrize("use", ["match", "fullmatch", "search"])
def test_matcher_that_counts_finds_what_re_finds(pattern, texts, use):
    for text in texts:
        found = re.finditer(pattern, text) if use == "search" else [getattr(re, use)(pattern, text)]
        assert Matcher(pattern, 0, use).find(text) == [one.span() for one in found if one]


def test_no_pattern_of_the_product_takes_longer_than_its_text():
    uses: dict[tuple[Any, int, str], str] = {}
    for place, pattern, flags, use in list_uses():
        uses.setdefault((pattern, flags & ~re.UNICODE, use), place)
    found = {
        f"{place}: {pattern} ({use})": attack
        for (pattern, flags, use), place in uses.items()
        if (attack := Matcher(pattern, flags, use).find_attack())
    }
    assert len(uses) > 100
    assert not found, "\n".join(f"{place}\n    {attack}" for place, attack in found.items())
