"""Counts the steps of a backtracking matcher, so that a pattern can be attacked without a clock.

The matcher walks the tree that `re` itself parses and tries what `re` would try, in the same order; each character that
it looks at and each end of a match that it tries is a step. Attacks are made of a pattern's own parts: for each of its
repetitions what leads there, what keeps it going and what makes the rest fail.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

FEW, SOME, MANY = 5, 20, 80
MOST_STEPS = 200_000
_POOL = "a0Z_ \n-é☃"
_ONE_CHARACTER = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY}
_REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
_LOOKS = {_constants.ASSERT, _constants.ASSERT_NOT}
Items = list[tuple[Any, Any]]
Then = Callable[[int], int | None]


class TooManySteps(Exception):  # noqa: N818
    """The matcher was stopped."""


class Matcher:
    """A pattern and how it is used: ``match``, ``fullmatch``, or ``search`` for all that look everywhere.

    It knows the letters that the pattern names and those of `_POOL`; texts are to be made of them.
    """

    def __init__(self, pattern: str | bytes, flags: int = 0, use: str = "search") -> None:
        text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
        self.state = _parser.parse(text, flags & ~re.UNICODE).state
        self.tree: Items = _parser.parse(text, flags & ~re.UNICODE).data
        self.flags, self.use = self.state.flags, use
        self.alphabet, self._fitting = self._choose_letters()
        self.text, self.steps, self.most = "", 0, MOST_STEPS

    # The alphabet: one letter for each way to fit into the pattern's classes ---------------------------
    def _choose_letters(self) -> tuple[str, dict[str, frozenset[str]]]:
        singles = {repr(item): item for item in _walk(self.tree) if item[0] in _ONE_CHARACTER}
        mentioned = {chr(code) for item in singles.values() for code in _codes(item)} | set(_POOL)
        fitting = {}
        for key, item in singles.items():
            fits = _compiler.compile(_parser.SubPattern(self.state, [item]), self.flags).match
            fitting[key] = frozenset(letter for letter in mentioned if fits(letter))
        kinds: dict[object, str] = {}
        for letter in sorted(mentioned):
            kinds.setdefault((_is_word(letter), letter == "\n", *(letter in fit for fit in fitting.values())), letter)
        return "".join(kinds.values()), fitting

    def letters_of(self, item: tuple[Any, Any]) -> frozenset[str]:
        return self._fitting[repr(item)]

    # Matching ------------------------------------------------------------------------------------------
    def count(self, text: str, most: int = MOST_STEPS) -> int:
        """The steps for a text; those of all searches in it where the pattern is looked for everywhere."""
        self.most = most
        self.find(text)
        return self.steps

    def find(self, text: str) -> list[tuple[int, int]]:
        """Where each match starts and ends."""
        self.text, self.steps, found, start = text, 0, [], 0
        while start <= (len(text) if self.use == "search" else 0):
            end = self._run(self.tree, 0, start, self._end)
            if end is not None:
                found.append((start, end))
            start = end if end is not None and end > start else start + 1
        return found

    def _end(self, at: int) -> int | None:
        return at if self.use != "fullmatch" or at == len(self.text) else None

    def _step(self, steps: int = 1) -> None:
        self.steps += steps
        if self.steps > self.most:
            raise TooManySteps

    def _run(self, items: Items, index: int, at: int, then: Then) -> int | None:
        self._step()
        while index < len(items) and items[index][0] in _ONE_CHARACTER:
            self._step()
            if at >= len(self.text) or self.text[at] not in self.letters_of(items[index]):
                return None
            index, at = index + 1, at + 1
        if index == len(items):
            return then(at)
        op, value = items[index]
        go_on: Then = lambda place: self._run(items, index + 1, place, then)  # noqa: E731
        if op is _constants.SUBPATTERN:
            return self._run(value[3].data, 0, at, go_on)
        if op is _constants.BRANCH:
            ends = (self._run(one.data, 0, at, go_on) for one in value[1])
            return next((end for end in ends if end is not None), None)
        if op is _constants.ATOMIC_GROUP:
            end = self._run(value.data, 0, at, lambda place: place)
            return None if end is None else go_on(end)
        if op is _constants.AT:
            return go_on(at) if self._is_at(value, at) else None
        if op in _LOOKS:
            return go_on(at) if self._looks(value, at) is (op is _constants.ASSERT) else None
        if op in _REPEATS:
            least, most, body = value
            return self._repeat(op, least, most, body, at, go_on)
        raise NotImplementedError(f"{op} in a pattern: teach it to tests/backtracking.py or do without")

    def _looks(self, value: tuple[int, Any], at: int) -> bool:
        direction, body = value
        start = at if direction > 0 else at - body.getwidth()[0]
        return start >= 0 and self._run(body.data, 0, start, lambda place: place) is not None

    def _is_at(self, place: Any, at: int) -> bool:
        text, several = self.text, bool(self.flags & re.MULTILINE)
        if place in (_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING):
            return at == 0 or (several and place is _constants.AT_BEGINNING and text[at - 1] == "\n")
        if place is _constants.AT_END_STRING:
            return at == len(text)
        if place is _constants.AT_END:
            return at == len(text) or (text[at] == "\n" and (several or at == len(text) - 1))
        around = [_is_word(letter) for letter in (text[at - 1 : at] if at else "", text[at : at + 1])]
        return (around[0] != around[1]) is (place is _constants.AT_BOUNDARY)

    def _repeat(self, op: Any, least: int, most: Any, body: Any, at: int, go_on: Then) -> int | None:
        if len(body.data) == 1 and body.data[0][0] in _ONE_CHARACTER and op is not _constants.MIN_REPEAT:
            return self._repeat_letter(op, least, most, self.letters_of(body.data[0]), at, go_on)
        if op is _constants.POSSESSIVE_REPEAT:
            done = 0
            while done < most and (end := self._run(body.data, 0, at, lambda place: place)) not in (None, at):
                assert end is not None
                done, at = done + 1, end
            return go_on(at) if done >= least else None

        def again(done: int, at: int, before: int) -> int | None:
            more: Then = lambda place: again(done + 1, place, at)  # noqa: E731
            if done < least:
                return self._run(body.data, 0, at, more)
            if op is _constants.MIN_REPEAT and (end := go_on(at)) is not None:
                return end
            if done < most and at != before and (end := self._run(body.data, 0, at, more)) is not None:
                return end
            return None if op is _constants.MIN_REPEAT else go_on(at)

        return again(0, at, -1)

    def _repeat_letter(
        self, op: Any, least: int, most: Any, letters: frozenset[str], at: int, go_on: Then
    ) -> int | None:
        end, text = at, self.text
        while end < len(text) and end - at < most and text[end] in letters:
            end += 1
        self._step(end - at + 1)
        if end - at < least:
            return None
        if op is _constants.POSSESSIVE_REPEAT:
            return go_on(end)
        found = (go_on(place) for place in range(end, at + least - 1, -1))
        return next((place for place in found if place is not None), None)

    # Attacking -----------------------------------------------------------------------------------------
    def find_attack(self) -> str | None:
        """A text whose steps grow faster than it does, as ``start, repeated, end``; None where none was found."""
        with _deep():
            tried = set()
            for start, pump, end in self._attacks():
                if (start, pump, end) not in tried and self._grows(start, pump, end):
                    return f"{start!r}, {pump!r} again and again, {end!r}"
                tried.add((start, pump, end))
        return None

    def _grows(self, start: str, pump: str, end: str) -> bool:
        """Whether a fourfold text takes far more than fourfold steps, and not only until some bound is reached."""
        try:
            few = self.count(start + pump * FEW + end)
            self.count(start + pump * SOME + end, int(4.5 * few))
            return False
        except TooManySteps:
            if self.most == MOST_STEPS:
                return True
        try:
            once, twice = (self.count(start + pump * many + end) for many in (MANY, 2 * MANY))
        except TooManySteps:
            return True
        return twice > 3 * once

    def _attacks(self) -> Iterator[tuple[str, str, str]]:
        plain = self.alphabet.replace("\n", "")
        outsider = min(plain, key=lambda one: sum(one in fit for fit in self._fitting.values()))
        repeated = [item for _, body, _ in _repetitions(self.tree) for item in _walk(body) if item[0] in _ONE_CHARACTER]
        kinds = {tuple(letter in self.letters_of(item) for item in repeated): letter for letter in self.alphabet}
        letters = list(kinds.values())
        for before, body, after in _repetitions(self.tree):
            starts = dict.fromkeys(["", self._sample(before, "", 0)])
            bodies = [self._sample(body, letter, taken) for letter in letters for taken in (0, 1, 2)]
            ways = [self._sample([*before, *body], letter, 0) for letter in letters]
            behind = [self._sample(after, "", taken) for taken in (0, 1)]
            follows = behind[0][:1]
            pumps = dict.fromkeys([*letters, follows, *bodies, *ways, *(one + follows for one in bodies)])
            cut = [one[:length] for one in behind for length in (1, 2, 3, len(one) - 1)]
            ends = dict.fromkeys(["", outsider, "\n", *cut, behind[0][:-1] + outsider])
            yield from product(starts, filter(None, pumps), ends)

    def _sample(self, items: Items, letter: str, taken: int) -> str:
        """A text that fits, of this letter where it may stand; `taken` chooses alternatives and what is optional."""
        text = ""
        for op, value in items:
            if op in _ONE_CHARACTER:
                fitting = self.letters_of((op, value))
                text += letter if letter in fitting else min(fitting, default="")
            elif op is _constants.BRANCH:
                text += self._sample(value[1][taken % len(value[1])].data, letter, taken)
            elif op in _REPEATS:
                text += self._sample(value[2].data, letter, taken) * max(value[0], min(taken, 1))
            elif op is _constants.SUBPATTERN:
                text += self._sample(value[3].data, letter, taken)
            elif op is _constants.ATOMIC_GROUP:
                text += self._sample(value.data, letter, taken)
        return text


def _repetitions(items: Items, before: Items | None = None, after: Items | None = None) -> Iterator[tuple[Items, ...]]:
    """What stands before each repetition, in it, and after it, at any depth."""
    for index, item in enumerate(items):
        first, last = [*(before or []), *items[:index]], [*items[index + 1 :], *(after or [])]
        if item[0] in _REPEATS and item[1][1] > 1:
            yield first, item[1][2].data, last
        for inner in _inside(item):
            yield from _repetitions(inner, first, last)


def _inside(item: tuple[Any, Any]) -> list[Items]:
    op, value = item
    if op is _constants.BRANCH:
        return [one.data for one in value[1]]
    if op in _REPEATS:
        return [value[2].data]
    if op is _constants.SUBPATTERN:
        return [value[3].data]
    if op in _LOOKS:
        return [value[1].data]
    return [value.data] if op is _constants.ATOMIC_GROUP else []


def _walk(items: Items) -> Iterator[tuple[Any, Any]]:
    for item in items:
        yield item
        for inner in _inside(item):
            yield from _walk(inner)


def _codes(item: tuple[Any, Any]) -> Iterator[int]:
    op, value = item
    for kind, given in value if op is _constants.IN else [item]:
        if kind in (_constants.LITERAL, _constants.NOT_LITERAL):
            yield given
        elif kind is _constants.RANGE:
            yield from given


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


@contextmanager
def _deep() -> Iterator[None]:
    """A matcher of functions that call each other: a level for each round of a repetition."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)
