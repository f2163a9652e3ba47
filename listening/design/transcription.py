"""Which utterances each evaluator writes down, in which form (original or one system's), and in which order.

Every evaluator hears a sentence once only, as the original or as one system made it, and from evaluator to evaluator
the form changes: the same sentences are written down in every form, so that word error rates of systems and originals
are compared on equal words. Two recordings of the same words, read by two people, count as one sentence.

Conventions: a form is the code of a system, or ``""`` for the original; counts are of trials. Public:
`plan_transcription`, `TranscriptionRequest`, `TranscriptionPlan`; `listening.design.board_certificate` has the checks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from listening.design.plan import DesignError, PoolUtterance

VERSION = "transcription-1"
ATTEMPTS = 20
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


@dataclass(frozen=True)
class TranscriptionPlan:
    """The trials of each evaluator, in order."""

    version: str
    seed: int
    blocks: tuple[tuple[Writing, ...], ...]


def plan_transcription(request: TranscriptionRequest) -> TranscriptionPlan:
    """Trials for every evaluator, balanced over systems, speakers, sexes and forms of each utterance.

    Raises:
        DesignError: if the request cannot be met, with the numbers that would do.
    """
    problems = _problems(request)
    if problems:
        raise DesignError(problems)
    for attempt in range(ATTEMPTS):
        blocks = _Maker(request, np.random.default_rng([request.seed, attempt])).blocks()
        if blocks is not None:
            return TranscriptionPlan(VERSION, request.seed, blocks)
    raise DesignError(
        [
            f"No order of {request.trials} trials was found in which neither a speaker nor a system follows itself. "
            "Take fewer trials for each evaluator, or data sets with more speakers."
        ]
    )


def usable_utterances(request: TranscriptionRequest) -> list[PoolUtterance]:
    """Trial utterances that every system has anonymised and whose words are known."""
    wanted = frozenset(request.systems)
    return [
        one
        for one in request.pool
        if one.role == "trial" and wanted <= one.systems and request.sentences.get(one.key, "").strip()
    ]


def _problems(request: TranscriptionRequest) -> list[str]:
    problems = []
    if request.evaluators < 1 or request.trials < 1:
        problems.append(
            f"Expected at least one evaluator and one trial each, found {request.evaluators} and {request.trials}."
        )
    if not 0 <= request.originals <= request.trials:
        problems.append(f"Expected 0 to {request.trials} originals for each evaluator, found {request.originals}.")
    if not request.systems or len(set(request.systems)) < len(request.systems):
        problems.append("Expected at least one system, each named once.")
    if problems:
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


class _Maker:
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
        """The forms of each evaluator's trials, taken from one endless row of the systems."""
        request = self.request
        names = [request.systems[index] for index in self.rng.permutation(len(request.systems))]
        anonymised = request.trials - request.originals
        rows = []
        for start in range(0, request.evaluators * anonymised, anonymised) if anonymised else [0] * request.evaluators:
            row = [names[(start + place) % len(names)] for place in range(anonymised)]
            rows.append([""] * request.originals + row)
        return rows

    def _utterances(self) -> list[PoolUtterance] | None:
        """Utterances of one evaluator: sexes in turn, then the speaker and the utterance that were heard least."""
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
        """Utterance by utterance the form in which it was heard least, all of them together; then so for speakers."""
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
    """An order in which neither a speaker nor a system follows itself, where the numbers allow that at all.

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
    """Place by place whether an original stands there."""
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
