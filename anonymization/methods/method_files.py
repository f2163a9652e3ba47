"""What files ``methods.toml`` beside methods say of them: title, parameters, options, parts of the pipeline."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from anonymization.methods.contract import Block, MethodError, Option, Parameter

T = TypeVar("T")
_NEEDED = ("title", "version", "reference")


def read_methods(module: str) -> list[dict[str, Any]]:
    """Return what the file ``methods.toml`` beside a module says of each of its methods: arguments of `Described`.

    Keys above all tables are those of every method. A method may name parameters and options, whose tables follow; its
    own ``defaults`` stand in place of theirs.

    Args:
        module: the `__file__` of the module.

    Raises:
        MethodError: a key is lacking or unknown, or a parameter or option has no table; names the file and the table.
    """
    path = Path(module).with_name("methods.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    parameters = _read_tables(Parameter, f"{path}: parameters", tables.pop("parameters", {}))
    options = _read_tables(Option, f"{path}: options", tables.pop("options", {}))
    shared = {key: tables.pop(key) for key in list(tables) if not isinstance(tables[key], dict)}
    found = []
    for name, own in tables.items():
        about = {"name": name, **shared, **own}
        where = f"{path}: {name}"
        if absent := [key for key in _NEEDED if key not in about]:
            raise MethodError(f"{where}: expected {', '.join(_NEEDED)}, found no {absent[0]}.")
        defaults = about.pop("defaults", {})
        about["options"] = _choose(options, about.get("options", ()), f"{where}: options")
        _choose({option.name: option for option in about["options"]}, defaults, f"{where}: defaults")
        about["options"] = tuple(
            replace(option, default=defaults.get(option.name, option.default)) for option in about["options"]
        )
        about["parameters"] = _choose(parameters, about.get("parameters", ()), f"{where}: parameters")
        pipeline = about.get("pipeline", {}).items()
        about["pipeline"] = tuple(
            _make(Block, f"{where}: pipeline: {slot}", {"slot": slot, **part}) for slot, part in pipeline
        )
        found.append(about)
    return found


def _read_tables(kind: Callable[..., T], where: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, T]:
    return {name: _make(kind, f"{where}: {name}", {"name": name, **about}) for name, about in tables.items()}


def _make(kind: Callable[..., T], where: str, about: Mapping[str, Any]) -> T:
    """Return a parameter, option or block of its table; lists become tuples."""
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    if unknown := [key for key in about if key not in known]:
        raise MethodError(f"{where}: expected keys of {', '.join(known)}, found {unknown[0]}.")
    needed = [key for key, each in known.items() if each.default is MISSING and each.default_factory is MISSING]
    if absent := [key for key in needed if key not in about]:
        raise MethodError(f"{where}: expected {', '.join(needed)}, found no {absent[0]}.")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in about.items()})


def _choose(known: Mapping[str, T], names: Iterable[str], where: str) -> tuple[T, ...]:
    """Return those of these names, in their order."""
    if unknown := [name for name in names if name not in known]:
        raise MethodError(f"{where}: expected names of {', '.join(known) or 'none'}, found {unknown[0]}.")
    return tuple(known[name] for name in names)
