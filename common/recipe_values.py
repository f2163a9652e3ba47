"""The values of a recipe: what each means and its range, said once where it is declared, and changes of them by name.

A recipe is a frozen dataclass; a value that may be changed is annotated, as in
``steps: Annotated[int, Value("updates of the weights", 1)]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar, get_type_hints

from common.errors import InputError

R = TypeVar("R")


@dataclass(frozen=True)
class RecipeValue:
    """What a value means, and the smallest and the largest that it may be."""

    meaning: str
    least: float
    most: float = float("inf")

    def find_problem(self, name: str, found: float) -> str:
        """Return a sentence where a number is out of the range, else an empty text; also of what is not a number."""
        if self.least <= found <= self.most and found < float("inf"):
            return ""
        expected = f"at least {self.least:g}" if self.most == float("inf") else f"{self.least:g} to {self.most:g}"
        return f"{name}: expected {expected}, found {found:g}."


def list_values(recipe: type) -> Mapping[str, RecipeValue]:
    """Return the annotated values of a class, by name; those of the classes that it extends first."""
    hints = get_type_hints(recipe, include_extras=True)
    annotations = ((name, getattr(hint, "__metadata__", ())) for name, hint in hints.items())
    return {name: told[0] for name, told in annotations if told and isinstance(told[0], RecipeValue)}


def change_values(recipe: R, values: Mapping[str, object]) -> R:
    """Return a recipe with other values, each given as a number or as text.

    Raises:
        InputError: no such value, or one that is no number or out of its range; names all of them.
    """
    known = list_values(type(recipe))
    problems, found = [], {}
    for name, given in values.items():
        if name not in known:
            problems.append(f"Expected a value of the recipe ({', '.join(known)}), found “{name}”.")
            continue
        kind = type(getattr(recipe, name))
        try:
            found[name] = kind(str(given))
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            problems.append(f"{name}: expected {what}, such as {getattr(recipe, name):g}, found “{given}”.")
            continue
        if problem := known[name].find_problem(name, found[name]):
            problems.append(problem)
    if problems:
        raise InputError(" ".join(problems))
    return replace(recipe, **found)  # type: ignore[type-var]
