"""The designs of the two forms of study that are not rated: boards and transcriptions.

**Boards** (`plan_boards`): which samples stand on which evaluator's board, when voices are placed by how alike they
sound. A board holds samples of three or four speakers, half of them original enrolment utterances and half trial
utterances anonymised by one system: what an attacker holds who wants to link them (VoicePrivacy 2020 evaluation plan,
6.2.2). Speakers of a board are of one sex wherever both sexes have enough of them, for otherwise the sex alone would
separate them. The number of speakers changes from board to board, so that nobody can know it beforehand. Nobody meets a
recording twice.

**Transcriptions** (`plan_transcription`): which utterances each evaluator writes down, in which form (original or one
system's), and in which order. Every evaluator hears a sentence once only, and from evaluator to evaluator the form
changes: the same sentences are written down in every form, so that word error rates of systems and originals are
compared on equal words. Two recordings of the same words, read by two people, count as one sentence.

`listening.design.unrated_certificate` checks what is made here.

Conventions: counts are of boards or of transcriptions unless they say otherwise; an evaluator's boards stand in the
order of presentation and the samples of a board in the order in which they are handed out, which is random; a form is
the code of a system, or ``""`` for the original.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, gcd
from typing import Any, Generic, TypeVar

import numpy as np

from common.errors import ProblemsError
from listening.design.requirements import PoolUtterance

BOARDS_VERSION = "boards-1"
FEWEST_SAMPLES, MOST_SAMPLES = 6, 16
SPEAKERS = (3, 4)
FOUR_SPEAKERS_FROM = 12  # samples; with fewer, four speakers would have less than three each
BOARDS_ATTEMPTS = 30
_Choice = TypeVar("_Choice", str, int)
_Trial = TypeVar("_Trial")


@dataclass(frozen=True)
class UnratedPlan(Generic[_Trial]):
    """What each evaluator gets, in order: boards, or trials to write down."""

    version: str
    seed: int
    blocks: tuple[tuple[_Trial, ...], ...]


def _attempt(make: type[_BoardMaker | _TranscriptionMaker], request: Any, attempts: int) -> Any:
    """Return the blocks of the first attempt that succeeds; None where none does."""
    makers = (make(request, np.random.default_rng([request.seed, attempt])) for attempt in range(attempts))
    return next((blocks for maker in makers if (blocks := maker.blocks()) is not None), None)


def _wrong_numbers(request: BoardRequest | TranscriptionRequest, what: str, each: int, own: str) -> list[str]:
    """Return what is wrong with the numbers of a request; `own`: what is wrong with those of its form alone."""
    told = f"Expected at least one evaluator and one {what} each, found {request.evaluators} and {each}."
    is_named_once = bool(request.systems) and len(set(request.systems)) == len(request.systems)
    systems = "" if is_named_once else "Expected at least one system, each named once."
    return list(filter(None, (told if request.evaluators < 1 or each < 1 else "", own, systems)))


@dataclass(frozen=True)
class BoardRequest:
    """What is asked for: `boards` boards of `samples` samples each for every one of `evaluators` people."""

    evaluators: int
    boards: int
    samples: int
    systems: tuple[str, ...]
    pool: tuple[PoolUtterance, ...]
    seed: int


@dataclass(frozen=True)
class BoardSample:
    """An utterance on a board; `system` is empty for the original."""

    utterance: str
    speaker: str
    system: str


@dataclass(frozen=True)
class Board:
    """Samples in the order of handing out: slot ``1`` is the first. `system` anonymised those that are not original."""

    key: str
    system: str
    samples: tuple[BoardSample, ...]


BoardPlan = UnratedPlan[Board]


def plan_boards(request: BoardRequest) -> BoardPlan:
    """Plan boards for every evaluator, balanced over systems, speakers and sexes.

    Raises:
        ProblemsError: if the request cannot be met, with the numbers that would do.
    """
    if problems := _wrong_boards(request):
        raise ProblemsError(problems)
    blocks = _attempt(_BoardMaker, request, BOARDS_ATTEMPTS)
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
    expected = f"Expected {FEWEST_SAMPLES} to {MOST_SAMPLES} samples on a board, found {request.samples}."
    is_wrong = not FEWEST_SAMPLES <= request.samples <= MOST_SAMPLES
    if problems := _wrong_numbers(request, "board", request.boards, expected if is_wrong else ""):
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
    """One attempt at all boards, by always taking what was used least so far; ties fall by lot."""

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


TRANSCRIPTION_VERSION = "transcription-1"
TRANSCRIPTION_ATTEMPTS = 20
ORDER_ATTEMPTS = 400


@dataclass(frozen=True)
class TranscriptionRequest:
    """What is asked for.

    `sentences`: by utterance what is said in it, written alike where the words are alike; an utterance without words
    there is left out, as nobody could score what is written down of it. `originals`: of the `trials` of an evaluator.
    """

    evaluators: int
    trials: int
    originals: int
    systems: tuple[str, ...]
    pool: tuple[PoolUtterance, ...]
    seed: int
    sentences: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Writing:
    """An utterance in one form, to be written down."""

    key: str
    utterance: str
    speaker: str
    sex: str
    system: str


TranscriptionPlan = UnratedPlan[Writing]


def plan_transcription(request: TranscriptionRequest) -> TranscriptionPlan:
    """Plan trials for every evaluator, balanced over systems, speakers, sexes and forms of each utterance.

    Raises:
        ProblemsError: if the request cannot be met, with the numbers that would do.
    """
    problems = _wrong_transcription(request)
    blocks = None if problems else _attempt(_TranscriptionMaker, request, TRANSCRIPTION_ATTEMPTS)
    if blocks is None:
        none = (
            f"No order of {request.trials} trials was found in which neither a speaker nor a system follows itself. "
            "Take fewer trials for each evaluator, or data sets with more speakers."
        )
        raise ProblemsError(problems or [none])
    return TranscriptionPlan(TRANSCRIPTION_VERSION, request.seed, blocks)


def usable_utterances(request: TranscriptionRequest) -> list[PoolUtterance]:
    """Return trial utterances that every system has anonymised and whose words are known."""
    wanted = frozenset(request.systems)
    return [
        one
        for one in request.pool
        if one.role == "trial" and wanted <= one.systems and request.sentences.get(one.key, "").strip()
    ]


def _wrong_transcription(request: TranscriptionRequest) -> list[str]:
    expected = f"Expected 0 to {request.trials} originals for each evaluator, found {request.originals}."
    is_wrong = not 0 <= request.originals <= request.trials
    if problems := _wrong_numbers(request, "trial", request.trials, expected if is_wrong else ""):
        return problems
    usable = usable_utterances(request)
    by_sex: dict[str, set[str]] = defaultdict(set)
    for one in usable:
        by_sex[one.sex].add(request.sentences[one.key])
    needed = -(-request.trials // max(1, len(by_sex)))
    short = {sex: len(said) for sex, said in sorted(by_sex.items()) if len(said) < needed}
    in_all = len(set().union(*by_sex.values())) if by_sex else 0
    if not short and in_all >= request.trials:
        return []
    within = min([in_all, *(len(by_sex) * count for count in short.values())])
    return [
        f"{request.trials} trials for one evaluator need {request.trials} different sentences, an equal share of them "
        "by speakers of each sex, with a transcript and anonymised by every chosen system; found "
        f"{in_all} ({', '.join(f'{len(said)} {sex}' for sex, said in sorted(by_sex.items())) or 'none'}). "
        f"At most {within} trials for each evaluator would do, or data sets with more utterances."
    ]


class _TranscriptionMaker:
    """One attempt at all trials: what was used least comes first, ties fall by lot."""

    def __init__(self, request: TranscriptionRequest, rng: np.random.Generator) -> None:
        self.request = request
        self.rng = rng
        self.by_speaker: dict[str, dict[str, list[PoolUtterance]]] = defaultdict(lambda: defaultdict(list))
        for one in usable_utterances(request):
            self.by_speaker[one.sex][one.speaker].append(one)
        self.of_sex: Counter[str] = Counter()
        self.of_speaker: Counter[str] = Counter()
        self.of_utterance: Counter[str] = Counter()
        self.in_form: Counter[tuple[str, str]] = Counter()  # by utterance or speaker, and form

    def blocks(self) -> tuple[tuple[Writing, ...], ...] | None:
        blocks: list[tuple[Writing, ...]] = []
        for forms in self._forms():
            chosen = self._utterances()
            if chosen is None:
                return None
            block = order_trials(self._in_forms(chosen, forms), self.rng)
            if block is None:
                return None
            blocks.append(tuple(block))
        return tuple(blocks[index] for index in self.rng.permutation(len(blocks)))

    def _forms(self) -> list[list[str]]:
        """Return the forms of each evaluator's trials, taken from one endless row of the systems."""
        request = self.request
        names = [request.systems[index] for index in self.rng.permutation(len(request.systems))]
        anonymised = request.trials - request.originals
        rows = []
        for start in range(0, request.evaluators * anonymised, anonymised) if anonymised else [0] * request.evaluators:
            row = [names[(start + place) % len(names)] for place in range(anonymised)]
            rows.append([""] * request.originals + row)
        return rows

    def _utterances(self) -> list[PoolUtterance] | None:
        """Return utterances of one evaluator: sexes in turn, then the speaker and the utterance heard least."""
        said: set[str] = set()
        chosen: list[PoolUtterance] = []
        here: Counter[str] = Counter()
        for _ in range(self.request.trials):
            sex = min(self.by_speaker, key=lambda one: (here[one], self.of_sex[one], self.rng.random()))
            found = self._next(sex, said)
            if found is None:
                return None
            chosen.append(found)
            said.add(self.request.sentences[found.key])
            here[sex] += 1
            self.of_sex[sex] += 1
            self.of_speaker[found.speaker] += 1
            self.of_utterance[found.key] += 1
        return chosen

    def _next(self, sex: str, said: set[str]) -> PoolUtterance | None:
        speakers = self.by_speaker[sex]
        for speaker in sorted(speakers, key=lambda one: (self.of_speaker[one], self.rng.random())):
            fresh = [one for one in speakers[speaker] if self.request.sentences[one.key] not in said]
            if fresh:
                return min(fresh, key=lambda one: (self.of_utterance[one.key], self.rng.random()))
        return None

    def _in_forms(self, chosen: Sequence[PoolUtterance], forms: Sequence[str]) -> list[Writing]:
        """Return each utterance in the form in which it was heard least, all of them together; then so for speakers."""
        from scipy.optimize import linear_sum_assignment

        heard = np.array([[self.in_form[one.key, form] for form in forms] for one in chosen], float)
        of_speaker = np.array([[self.in_form[f"by {one.speaker}", form] for form in forms] for one in chosen], float)
        cost = heard + of_speaker / 100 + self.rng.random(heard.shape) / 1000
        trials = []
        for row, column in zip(*linear_sum_assignment(cost), strict=True):
            one, form = chosen[row], forms[column]
            self.in_form[one.key, form] += 1
            self.in_form[f"by {one.speaker}", form] += 1
            trials.append(Writing(f"{one.key} {form or 'original'}", one.key, one.speaker, one.sex, form))
        return trials


def order_trials(trials: Sequence[Writing], rng: np.random.Generator) -> list[Writing] | None:
    """Return an order in which neither a speaker nor a system follows itself, where the numbers allow that at all.

    Originals are spread evenly: every quarter holds its share. None if no such order was found.
    """
    speakers = Counter(one.speaker for one in trials)
    apart = 2 * max(speakers.values()) <= len(trials) + 1
    many = len({one.system for one in trials if one.system}) > 1
    for _ in range(ORDER_ATTEMPTS):
        order = _fill(trials, _kinds(trials, rng), apart, many, rng)
        if order is not None:
            return order
    return None


def _kinds(trials: Sequence[Writing], rng: np.random.Generator) -> list[bool]:
    """Return place by place whether an original stands there."""
    total, originals = len(trials), sum(not one.system for one in trials)
    bounds = [total * quarter // 4 for quarter in range(5)]
    until = [round(originals * bound / total) for bound in bounds]
    kinds: list[bool] = []
    for quarter in range(4):
        places = bounds[quarter + 1] - bounds[quarter]
        lot = min(places, until[quarter + 1] - until[quarter])
        kinds += rng.permutation([True] * lot + [False] * (places - lot)).tolist()
    return kinds


def _fill(
    trials: Sequence[Writing], kinds: Sequence[bool], apart: bool, many: bool, rng: np.random.Generator
) -> list[Writing] | None:
    left = list(trials)
    speakers = Counter(one.speaker for one in left)
    systems = Counter(one.system for one in left)
    order: list[Writing] = []
    for is_original in kinds:
        last = order[-1] if order else None
        fitting = [
            one
            for one in left
            if (not one.system) == is_original
            and (last is None or not apart or one.speaker != last.speaker)
            and (last is None or not many or not one.system or one.system != last.system)
        ]
        if not fitting:
            return None
        chosen = max(fitting, key=lambda one: speakers[one.speaker] + systems[one.system] / 4 + 3 * rng.random())
        left.remove(chosen)
        speakers[chosen.speaker] -= 1
        systems[chosen.system] -= 1
        order.append(chosen)
    return order
