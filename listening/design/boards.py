"""Plan which samples stand on which evaluator's board, when voices are placed by how alike they sound.

A board holds samples of three or four speakers, half of them original enrolment utterances and half trial utterances
anonymised by one system: what an attacker holds who wants to link them (VoicePrivacy 2020 evaluation plan, 6.2.2).
Speakers of a board are of one sex wherever both sexes have enough of them, for otherwise the sex alone would separate
them. The number of speakers changes from board to board, so that nobody can know it beforehand. Nobody meets a
recording twice. `listening.design.boards_certificate` checks what is made here.

Conventions: counts are of boards unless they say otherwise; an evaluator's boards stand in the order of presentation
and the samples of a board in the order in which they are handed out, which is random.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd
from typing import TypeVar

import numpy as np

from common.errors import ProblemsError
from listening.design.requirements import PoolUtterance

BOARDS_VERSION = "boards-1"
FEWEST_SAMPLES, MOST_SAMPLES = 6, 16
SPEAKERS = (3, 4)
FOUR_SPEAKERS_FROM = 12  # samples; with fewer, four speakers would have less than three each
BOARDS_ATTEMPTS = 30
_Choice = TypeVar("_Choice", str, int)


@dataclass(frozen=True)
class BoardRequest:
    """Hold what is asked for: `boards` boards of `samples` samples each for every one of `evaluators` people."""

    evaluators: int
    boards: int
    samples: int
    systems: tuple[str, ...]
    pool: tuple[PoolUtterance, ...]
    seed: int


@dataclass(frozen=True)
class BoardSample:
    """Hold an utterance on a board; `system` is empty for the original."""

    utterance: str
    speaker: str
    system: str


@dataclass(frozen=True)
class Board:
    """Hold samples in the order of handing out: slot ``1`` is the first. `system` anonymised all but originals."""

    key: str
    system: str
    samples: tuple[BoardSample, ...]


@dataclass(frozen=True)
class BoardPlan:
    """Hold the boards of each evaluator, in order."""

    version: str
    seed: int
    blocks: tuple[tuple[Board, ...], ...]


def plan_boards(request: BoardRequest) -> BoardPlan:
    """Plan boards for every evaluator, balanced over systems, speakers and sexes.

    Raises:
        ProblemsError: if the request cannot be met, with the numbers that would do.
    """
    if problems := _wrong_boards(request):
        raise ProblemsError(problems)
    makers = (_BoardMaker(request, np.random.default_rng([request.seed, n])) for n in range(BOARDS_ATTEMPTS))
    blocks = next((blocks for maker in makers if (blocks := maker.blocks()) is not None), None)
    if blocks is None:
        raise ProblemsError(_too_many_boards(request))
    return BoardPlan(BOARDS_VERSION, request.seed, blocks)


def needed_of_each_kind(samples: int, speakers: int) -> int:
    """Return how many originals, and how many anonymised utterances, one speaker must have for one board at most."""
    return ceil(samples / speakers / 2)


def usable_speakers(pool: Sequence[PoolUtterance], systems: Iterable[str], samples: int) -> dict[str, str]:
    """Return the sex of speakers with enough for one board: enrolments, and trial utterances from every system."""
    needed = needed_of_each_kind(samples, SPEAKERS[0])
    held: Counter[tuple[str, str]] = Counter()
    sexes = {}
    wanted = frozenset(systems)
    for utterance in pool:
        sexes[utterance.speaker] = utterance.sex
        if utterance.role == "enrolment" or wanted <= utterance.systems:
            held[utterance.speaker, utterance.role] += 1
    enough = {name for name in sexes if min(held[name, "enrolment"], held[name, "trial"]) >= needed}
    return {name: sexes[name] for name in sorted(enough)}


def _wrong_boards(request: BoardRequest) -> list[str]:
    problems = []
    if request.evaluators < 1 or request.boards < 1:
        found = f"{request.evaluators} and {request.boards}"
        problems.append(f"Expected at least one evaluator and one board each, found {found}.")
    if not FEWEST_SAMPLES <= request.samples <= MOST_SAMPLES:
        problems.append(f"Expected {FEWEST_SAMPLES} to {MOST_SAMPLES} samples on a board, found {request.samples}.")
    if not request.systems or len(set(request.systems)) < len(request.systems):
        problems.append("Expected at least one system, each named once.")
    if problems:
        return problems
    speakers = usable_speakers(request.pool, request.systems, request.samples)
    if len(speakers) >= SPEAKERS[0]:
        return []
    needed = needed_of_each_kind(request.samples, SPEAKERS[0])
    return [
        f"A board of {request.samples} samples needs at least {SPEAKERS[0]} speakers with {needed} enrolment "
        f"utterances and {needed} trial utterances that every chosen system has anonymised; found {len(speakers)}. "
        "Take fewer samples on a board, fewer systems, or data sets with more speakers."
    ]


def _too_many_boards(request: BoardRequest) -> str:
    """Say how many boards do work: nobody meets a recording twice, so the speakers can run out of them."""
    words = (
        f"{request.boards} boards of {request.samples} samples for one evaluator: the speakers have too few "
        "utterances, as nobody hears a recording twice."
    )
    for boards in range(request.boards - 1, 0, -1):
        fewer = replace(request, boards=boards)
        if _BoardMaker(fewer, np.random.default_rng([request.seed, boards])).blocks() is not None:
            return f"{words} {boards} for each evaluator would do, or fewer samples, or data sets with more utterances."
    return f"{words} Take fewer samples, or data sets with more utterances."


class _BoardMaker:
    """Make one attempt at all boards, by always taking what was used least so far; ties fall by lot."""

    def __init__(self, request: BoardRequest, rng: np.random.Generator) -> None:
        self.request = request
        self.rng = rng
        self.groups = _groups(usable_speakers(request.pool, request.systems, request.samples))
        self.utterances: dict[tuple[str, str], list[str]] = defaultdict(list)
        for one in request.pool:
            if one.role == "enrolment" or frozenset(request.systems) <= one.systems:
                self.utterances[one.speaker, one.role].append(one.key)
        self.chosen: Counter[object] = Counter()  # sexes and numbers of speakers, and each with its company
        self.boards_of: Counter[str] = Counter()  # by speaker
        self.uses: Counter[str] = Counter()  # by utterance
        self.uses_of_version: Counter[tuple[str, str]] = Counter()  # by utterance and system
        self.heard: set[str] = set()

    def blocks(self) -> tuple[tuple[Board, ...], ...] | None:
        orders = system_orders(self.request.evaluators, self.request.boards, self.request.systems, self.rng)
        blocks = []
        for evaluator, systems in enumerate(orders, 1):
            self.heard = set()
            boards = [self._board(f"board-{evaluator}-{place}", system) for place, system in enumerate(systems, 1)]
            whole = [board for board in boards if board is not None]
            if len(whole) < len(boards):
                return None
            blocks.append(tuple(whole))
        return tuple(blocks)

    def _board(self, key: str, system: str) -> Board | None:
        sex = self._least([(one, system) for one in self.groups])[0]
        members = self.groups[sex]
        number = self._least([(one, sex) for one in _speaker_numbers(self.request.samples, len(members))])[0]
        speakers = sorted(members, key=lambda one: (self.boards_of[one], self.rng.random()))[:number]
        samples: list[BoardSample] = []
        for speaker, (originals, anonymised) in zip(speakers, self._shares(number), strict=True):
            self.boards_of[speaker] += 1
            samples += self._take(speaker, "enrolment", "", originals)
            samples += self._take(speaker, "trial", system, anonymised)
        if len(samples) < self.request.samples:
            return None
        order = self.rng.permutation(len(samples))
        return Board(key, system, tuple(samples[place] for place in order))

    def _least(self, choices: Sequence[tuple[_Choice, str]]) -> tuple[_Choice, str]:
        """Return the choice made least often so far; among those, in its company; then by lot."""
        chosen = min(choices, key=lambda one: (self.chosen[one[0]], self.chosen[one], self.rng.random()))
        self.chosen[chosen[0]] += 1
        self.chosen[chosen] += 1
        return chosen

    def _shares(self, speakers: int) -> list[tuple[int, int]]:
        """Share out originals and anonymised samples of speakers: equally, and half of each kind, as far as they go."""
        samples = self.request.samples
        sizes = [samples // speakers + (place < samples % speakers) for place in range(speakers)]
        odd = [place for place, size in enumerate(sizes) if size % 2]
        lot = len(odd) + (int(self.rng.integers(2)) if len(odd) % 2 else 0)
        more_originals = set(self.rng.permutation(odd)[: lot // 2].tolist()) if odd else set()
        shares = [
            ((size + 1) // 2, size // 2) if place in more_originals else (size // 2, (size + 1) // 2)
            for place, size in enumerate(sizes)
        ]
        return [shares[place] for place in self.rng.permutation(speakers)]

    def _take(self, speaker: str, role: str, system: str, count: int) -> list[BoardSample]:
        """Take utterances of a speaker not met by this evaluator, those used least first; fewer if they run out."""
        fresh = [key for key in self.utterances[speaker, role] if key not in self.heard]
        fresh.sort(key=lambda key: (self.uses_of_version[key, system], self.uses[key], self.rng.random()))
        for key in fresh[:count]:
            self.heard.add(key)
            self.uses_of_version[key, system] += 1
            self.uses[key] += 1
        return [BoardSample(key, speaker, system) for key in fresh[:count]]


def system_orders(
    evaluators: int, places: int, systems: Sequence[str], rng: np.random.Generator
) -> list[tuple[str, ...]]:
    """Return systems by place for each evaluator: each equally often in all, for each evaluator and at each place.

    Evaluators take windows of one endless row of the systems, so that totals and each window are even and no system
    follows itself. A window starts where the last one ended; once the starts repeat, they move on by one, so that in
    the end every system starts equally often.
    """
    count = len(systems)
    step = gcd(places, count)
    names = [systems[index] for index in rng.permutation(count)]
    starts = [evaluator * places + (evaluator // (count // step)) % step for evaluator in range(evaluators)]
    orders = [tuple(names[(start + place) % count] for place in range(places)) for start in starts]
    return [orders[index] for index in rng.permutation(evaluators)]


def _groups(speakers: dict[str, str]) -> dict[str, list[str]]:
    """Group speakers who may stand on one board: those of one sex, or all where a sex has too few of them."""
    by_sex: dict[str, list[str]] = defaultdict(list)
    for name, sex in speakers.items():
        by_sex[sex].append(name)
    if all(len(names) >= SPEAKERS[0] for names in by_sex.values()):
        return dict(by_sex)
    return {"mixed": list(speakers)}


def _speaker_numbers(samples: int, available: int) -> list[int]:
    most = SPEAKERS[1] if samples >= FOUR_SPEAKERS_FROM else SPEAKERS[0]
    return [number for number in SPEAKERS if number <= min(most, available)]
