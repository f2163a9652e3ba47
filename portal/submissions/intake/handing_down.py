"""Which documents of earlier versions stay beside those of an archive: rules on their paths alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import PurePosixPath
from typing import TypeVar

from portal.submissions.intake.contents import Content, classify, part_of, results_directory

T = TypeVar("T")


def offered(sound: Iterable[T], newest: Iterable[T], sent: Collection[str], *, path: Callable[[T], str]) -> list[T]:
    """What an archive with the paths `sent` may inherit: what is sound, or what it completes.

    An archive that brings something of a part, such as one of two results directories, means the newest form of that
    part, sound or not.
    """
    brought = {part_of(one) for one in sent}
    untouched = [one for one in sound if part_of(path(one)) not in brought]
    return [*untouched, *(one for one in newest if part_of(path(one)) in brought)]


def staying(old: Iterable[str], sent: Iterable[str]) -> list[str]:
    """The paths of old documents that stay although an archive with the paths `sent` has come.

    A file stays unless one of its path was sent. A results directory that was sent again replaces the old one as a
    whole, and one of another stamp replaces all old ones, because a submission has one set of results. A system
    description replaces the old one whatever its name.
    """
    paths, old = set(sent), list(old)
    above = {parent for path in paths for parent in _parents(path)}
    directories = {_name(found) for path in paths if (found := results_directory(path)) is not None}
    stamps = {_stamp(name) for name in directories}
    is_described = any(classify(path) is Content.DESCRIPTION for path in paths)
    replaced = {
        folder
        for one in old
        if (folder := results_directory(one)) is not None
        and directories
        and (_name(folder) in directories or _stamp(_name(folder)) not in stamps)
    }
    return [
        one
        for one in old
        if one not in paths | above  # a name is a file or a folder, not both
        and not paths.intersection(_parents(one))
        and not _lies_in(one, replaced)
        and not (is_described and classify(one) is Content.DESCRIPTION)
    ]


def _lies_in(path: str, directories: set[str]) -> bool:
    """Whether a file belongs to one of the directories, or lies somewhere below it."""
    if results_directory(path) in directories:
        return True
    return any(parent in directories for parent in _parents(path))


def _parents(path: str) -> list[str]:
    return [str(parent) for parent in PurePosixPath(path).parents][:-1]


def _name(directory: str) -> str:
    return directory.rpartition("/")[2]


def _stamp(name: str) -> str:
    return name.removesuffix(".orig")
