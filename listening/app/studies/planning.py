"""Who hears what, in which order: a study with its systems and recordings becomes items and blocks.

Trials that everybody meets beside the scored ones (practice, control trials with a known answer, bridge trials) are
chosen first, and their recordings are kept out of the scored trials, so that nobody hears one of them twice. Practice
and bridge trials are of each kind in turn: original and anonymised, same and other speaker. Control trials are original
pairs whose answer everybody hears: one speaker in two recordings, and a woman beside a man. Never one recording beside
itself: nobody shall find a control trial by comparing what was downloaded. Where recordings are compared, only one
beside itself has a sure answer. The same seed and the same recordings give the same plan.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import thread_time
from types import MappingProxyType
from typing import Any

import numpy as np

from common.errors import ProblemsError
from listening.app.models import Condition, Presentation, Study
from listening.app.studies import rules, stored_design
from listening.app.studies.rules import NUMBERS, plan_number_problems, right_answers
from listening.app.studies.selectors import (
    StimulusPool,
    codes_of,
    heard_submissions,
    list_further,
    make_pool,
    name_codes,
    name_conditions,
    read_pool_of_rows,
    set_problems,
)
from listening.design.allocation import allocate, extend
from listening.design.boards import Board, plan_boards
from listening.design.crossed import find_crossed_problems, list_orders, list_versions, plan_crossed
from listening.design.ordering import insert_controls
from listening.design.requirements import Candidate, Design, PoolUtterance, Progress
from listening.design.selection import choose_candidates
from listening.questions import REFERENCE, Screen, list_slots
from portal.challenges.models import DataSet
from portal.submissions.models import Submission

# Original or anonymised, same or other speaker; the first two of practice lie near both ends of each scale.
KINDS_OF_PRACTICE = ((True, True), (False, False), (False, True), (True, False))
KINDS_OF_BRIDGE = ((True, True), (False, False), (True, False), (False, True))
Purpose = Presentation.Purpose
STREAM = 20  # of the seed: other draws than those of the scored trials
LONGEST_KEY = 200
DESIGNED_AT_ONCE_AT_MOST = 500  # trials: with more nobody waits for a page
CROSSED_AT_ONCE_AT_MOST = 20_000  # a second or two
TRIED_IN_REQUEST_S = 1.0  # of the processor, for as many trials or fewer
NO_SYSTEMS = "Choose at least one system: a study compares anonymised with original speech."


@dataclass(frozen=True)
class PlannedPresentation:
    """An item to be written; `samples` as (slot, system, utterance), `expected` as a control's right ratings."""

    key: str
    purpose: str
    system: str
    is_target: bool | None
    samples: tuple[tuple[str, str, str], ...]
    expected: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedDesign:
    """Every item, and for each block the keys of its items in the order of presentation."""

    items: tuple[PlannedPresentation, ...]
    blocks: tuple[tuple[str, ...], ...]


def limit_time(seconds: float) -> Progress:
    """Return a `Progress` that raises `TimeoutError` once a search for a design has taken so much of the processor."""
    end = thread_time() + seconds

    def look(*_: int | str) -> None:
        if thread_time() > end:
            raise TimeoutError

    return look


@dataclass(frozen=True)
class PlanVerdict:
    """Whether a design can be made of a plan.

    Attributes:
        problems: why none can be made, as sentences.
        is_tried: whether the design itself was tried; else the recordings were counted, which nearly always tells.
        is_heard_once: whether one evaluator alone hears each item, in each of its versions.
    """

    problems: list[str]
    is_tried: bool
    is_heard_once: bool = False


def plan_design(
    study: Study, codes: tuple[str, ...], pool: StimulusPool, *, progress: Progress | None = None, shuffles: bool = True
) -> PlannedDesign:
    """Return what a study with these systems and recordings presents to whom.

    Args:
        progress, shuffles: as of `allocate`.

    Raises:
        ProblemsError: the plan cannot be met, with the numbers that would do.
    """
    if study.is_crossed:
        return _plan_crossed(study, codes, pool, study.evaluators)
    if study.form != Study.Form.RATING:
        return _plan_boards(study, codes, pool, study.evaluators)
    controls, candidates = choose_trials(study, codes, pool)
    design = allocate(stored_design.make_request(study, codes, candidates), progress=progress, shuffles=shuffles)
    blocks = _insert_controls(design, [(one.purpose, one.key) for one in controls], study.seed)
    return PlannedDesign((*controls, *map(_candidate_item, candidates)), blocks)


def plan_extension(rows: stored_design.DesignRows, blocks: int, wave: int) -> PlannedDesign:
    """Return the new items and the blocks of a further wave: of ratings balanced together with those there are."""
    study, seed = rows.study, rows.study.seed + wave
    if study.is_crossed:
        whole = _plan_crossed(study, rows.systems, rows.pool, len(rows.blocks) + blocks)
        return replace(whole, blocks=whole.blocks[len(rows.blocks) :])
    if study.form != Study.Form.RATING:
        return _plan_boards(study, rows.systems, rows.pool, blocks, wave)
    design = extend(stored_design.rating_request(rows), stored_design.rating_design(rows), blocks=blocks, seed=seed)
    added = replace(design, blocks=design.blocks[len(rows.blocks) :], extensions=())
    controls = [(one.purpose, one.key) for one in rows.items.values() if not one.is_scored]
    return PlannedDesign((), _insert_controls(added, controls, seed))


def choose_trials(
    study: Study, codes: tuple[str, ...], pool: StimulusPool
) -> tuple[tuple[PlannedPresentation, ...], tuple[Candidate, ...]]:
    """Return the controls of a study of ratings, and its candidates from the recordings that are left.

    Raises:
        ProblemsError: there are too few recordings.
    """
    controls = choose_controls(study, codes, pool.utterances)
    taken = {utterance for one in controls for _, _, utterance in one.samples}
    candidates = choose_candidates(
        [one for one in pool.utterances if one.key not in taken],
        systems=codes,
        evaluators=study.evaluators,
        trials=study.trials_per_evaluator,
        originals=study.originals_per_evaluator,
        seed=study.seed,
        **stored_design.read_relaxations(study),
    )
    return controls, tuple(replace(one, key=_short_key(one.key)) for one in candidates)


def choose_controls(
    study: Study, codes: Sequence[str], pool: Sequence[PoolUtterance]
) -> tuple[PlannedPresentation, ...]:
    """Return practice, control and bridge trials, each of recordings of its own; equal for equal seeds.

    Raises:
        ProblemsError: the pool has too few recordings.
    """
    supply = _Supply(pool, codes, np.random.default_rng([study.seed, STREAM]))
    names = [codes[place] for place in supply.rng.permutation(len(codes))]
    made: list[PlannedPresentation] = []
    try:
        made.extend(_plan_gold(supply, study, number) for number in range(study.gold_trials))
        for purpose, count, kinds in (
            (Purpose.PRACTICE, study.practice_trials, KINDS_OF_PRACTICE),
            (Purpose.BRIDGE, study.bridge_trials, KINDS_OF_BRIDGE),
        ):
            for number in range(count):
                is_original, is_target = kinds[number % len(kinds)]
                system = "" if is_original or not names else names[len(made) % len(names)]
                made.append(_plan_control(supply, purpose, number, system, is_target))
    except LookupError as error:
        raise ProblemsError(
            [
                f"The {study.trials_beside} practice, control and bridge trials need recordings of their own, and the "
                f"data sets have too few: {error.args[0]} Take fewer of these trials ({len(made)} would do), or data "
                "sets with more utterances."
            ]
        ) from None
    return tuple(made)


def judge_plan(
    study: Study,
    *,
    systems: Iterable[Submission] | None = None,
    data_sets: Iterable[DataSet] | None = None,
    further: Iterable[str] | None = None,
    seconds: float = 0,
) -> PlanVerdict:
    """Return whether a design can be made of a plan, tried with the study's own seed where the time allows.

    Args:
        study: with the numbers to be tried; it need not be saved.
        systems, data_sets, further: those to be tried; the study's own where none are given.
        seconds: that the design may be tried; 0 to count recordings alone. Many ratings are only counted.
    """
    if study.has_own_recordings:
        return _judge_crossed(study, codes_of(study), read_pool_of_rows(study))
    chosen = list(study.data_sets.all() if data_sets is None else data_sets)
    submissions = heard_submissions(study) if systems is None else name_codes(systems)
    missing = explain_missing(study, submissions, chosen)
    if study.is_crossed and not missing:
        others = list(list_further(study) if further is None else further)
        return _judge_crossed(study, name_conditions(submissions, others), make_pool(chosen, submissions, others))
    numbers = {name: getattr(study, name) for name in NUMBERS}
    problems = [sentence for found in plan_number_problems(numbers).values() for sentence in found]
    if problems := problems + missing:
        return PlanVerdict(problems, is_tried=True)
    trials = study.evaluators * study.trials_per_evaluator
    if study.form == Study.Form.RATING and trials > DESIGNED_AT_ONCE_AT_MOST:
        seconds = 0
    return _try_plan(study, tuple(submissions), make_pool(chosen, submissions), seconds)


def explain_missing(study: Study, systems: Collection[Any], data_sets: Iterable[DataSet]) -> list[str]:
    """Return what a study of systems lacks to be heard at all, as sentences."""
    return [*([] if systems else [NO_SYSTEMS]), *set_problems(data_sets, is_crossed=study.is_crossed)]


def _judge_crossed(study: Study, codes: tuple[str, ...], pool: StimulusPool) -> PlanVerdict:
    if problems := _find_aside_problems(study, codes, pool):
        return PlanVerdict(problems, is_tried=True)
    request = stored_design.crossed_request(study, codes, pool, study.evaluators)
    is_once = request.evaluators * request.trials <= request.different_trials
    return PlanVerdict(find_crossed_problems(request), is_tried=True, is_heard_once=is_once)


def _try_plan(study: Study, codes: tuple[str, ...], pool: StimulusPool, seconds: float) -> PlanVerdict:
    is_rating = study.form == Study.Form.RATING
    is_once = False
    try:
        if is_rating:
            candidates = choose_trials(study, codes, pool)[1]
            is_once = len(candidates) == study.evaluators * study.trials_per_evaluator
        if seconds or not is_rating:
            plan_design(study, codes, pool, progress=limit_time(seconds), shuffles=False)
    except ProblemsError as error:
        return PlanVerdict(error.problems, is_tried=True)
    except TimeoutError:
        return PlanVerdict([], is_tried=False, is_heard_once=is_once)
    return PlanVerdict([], is_tried=bool(seconds) or not is_rating, is_heard_once=is_once)


# Controls -----------------------------------------------------------------------------------------


def _plan_gold(supply: _Supply, study: Study, number: int) -> PlannedPresentation:
    is_same = number % 2 == 0
    if is_same:
        heard = supply.take_trial(is_original=True, has_enrolment=True)
        compared = supply.take_enrolment(speaker=heard.speaker)
    else:
        sexes = ("f", "m") if number % 4 == 1 else ("m", "f")
        heard = supply.take_trial(is_original=True, sex=sexes[0])
        compared = supply.take_enrolment(sex=sexes[1])
    right = right_answers(study, is_same=is_same)
    samples = _samples("", heard.key, compared)
    return PlannedPresentation(f"gold-{number + 1}", Purpose.GOLD, "", is_same, samples, right)


def _plan_control(supply: _Supply, purpose: str, number: int, system: str, is_target: bool) -> PlannedPresentation:
    """Return a practice or bridge trial."""
    heard = supply.take_trial(is_original=not system, has_enrolment=is_target)
    whose = {"speaker": heard.speaker} if is_target else {"sex": heard.sex, "not_speaker": heard.speaker}
    samples = _samples(system, heard.key, supply.take_enrolment(**whose))
    return PlannedPresentation(f"{purpose}-{number + 1}", purpose, system, is_target, samples)


def _samples(system: str, heard: str, compared: str) -> tuple[tuple[str, str, str], ...]:
    return ("a", system, heard), ("b", "", compared)


class _Supply:
    """Recordings that are still free, taken from who has most of them, so that nobody runs out.

    Of trial utterances those that some system lacks come first where an original is wanted: nothing else needs them.
    """

    def __init__(self, pool: Sequence[PoolUtterance], systems: Sequence[str], rng: np.random.Generator) -> None:
        self.rng = rng
        self.shared = frozenset(one.key for one in pool if frozenset(systems) <= one.systems)
        self.free: dict[str, list[PoolUtterance]] = {"trial": [], "enrolment": []}
        for place in rng.permutation(len(pool)):
            self.free[pool[place].role].append(pool[place])

    def take_trial(self, *, is_original: bool, sex: str = "", has_enrolment: bool = False) -> PoolUtterance:
        compared = {one.speaker for one in self.free["enrolment"]}
        fits = [
            one
            for one in self.free["trial"]
            if sex in ("", one.sex)
            and (is_original or one.key in self.shared)
            and (not has_enrolment or one.speaker in compared)
        ]
        of_sex = f" of {'a woman' if sex == 'f' else 'a man'}" if sex else ""
        which = "" if is_original else " that every system has anonymised"
        spare = [one for one in fits if one.key not in self.shared] if is_original else []
        compared_with = Counter(one.speaker for one in self.free["enrolment"]) if has_enrolment else Counter()
        return self._take(spare or fits, f"no trial utterance{of_sex}{which} is left.", compared_with)

    def take_enrolment(self, *, sex: str = "", speaker: str = "", not_speaker: str = "") -> str:
        fits = [
            one
            for one in self.free["enrolment"]
            if sex in ("", one.sex) and speaker in ("", one.speaker) and one.speaker != not_speaker
        ]
        whose = f"of {speaker}" if speaker else f"of another {'woman' if sex == 'f' else 'man'}"
        return self._take(fits, f"no enrolment utterance {whose} is left.").key

    def _take(
        self, fits: list[PoolUtterance], sentence: str, compared_with: Mapping[str, int] = MappingProxyType({})
    ) -> PoolUtterance:
        """Return one of the speaker who has most to be compared with, and then most that fit."""
        if not fits:
            raise LookupError(sentence)
        held = Counter(one.speaker for one in fits)
        chosen = max(fits, key=lambda one: (compared_with.get(one.speaker, 0), held[one.speaker]))
        self.free[chosen.role].remove(chosen)
        return chosen


# Parts of a plan ----------------------------------------------------------------------------------


def _insert_controls(design: Design, controls: Iterable[tuple[str, str]], seed: int) -> tuple[tuple[str, ...], ...]:
    """Return the blocks with practice first and the others among the scored trials; `controls` as (purpose, key)."""
    keys: dict[str, list[str]] = {purpose: [] for purpose in Purpose.values}
    for purpose, key in controls:
        keys[purpose].append(key)
    practice, gold, bridge = (keys[name] for name in (Purpose.PRACTICE, Purpose.GOLD, Purpose.BRIDGE))
    return insert_controls(design, practice=practice, gold=gold, bridge=bridge, seed=seed)


def _short_key(key: str) -> str:
    """Return the key itself where a row can hold it, else its beginning with what makes it unlike any other."""
    if len(key) <= LONGEST_KEY:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{key[: LONGEST_KEY - len(digest) - 1]}:{digest}"


def _candidate_item(one: Candidate) -> PlannedPresentation:
    samples = _samples(one.system, one.source, one.enrolment)
    return PlannedPresentation(one.key, Purpose.SCORED, one.system, one.is_target, samples)


def _plan_crossed(study: Study, codes: tuple[str, ...], pool: StimulusPool, evaluators: int) -> PlannedDesign:
    if problems := _find_aside_problems(study, codes, pool):
        raise ProblemsError(problems)
    plan = plan_crossed(stored_design.crossed_request(study, codes, pool, evaluators))
    slots = list_slots(study.screen, len(codes))
    planned = {one: _crossed_item(*one, slots) for block in plan.blocks for one in block}
    blocks = tuple(tuple(planned[one].key for one in block) for block in plan.blocks)
    if controls := [*_own_controls(study), *_make_controls(study, codes, pool)]:
        design = Design(plan.version, study.seed, blocks)
        blocks = _insert_controls(design, [(one.purpose, one.key) for one in controls], study.seed)
    return PlannedDesign((*controls, *planned.values()), blocks)


def _own_controls(study: Study) -> Iterator[PlannedPresentation]:
    """Yield a trial for each own recording for practice, and for each whose right answer is known."""
    question = study.asked[0]
    for purpose, kind, most in (
        (Purpose.PRACTICE, Condition.Kind.PRACTICE, study.practice_trials),
        (Purpose.GOLD, Condition.Kind.CONTROL, study.gold_trials),
    ):
        unscored = study.stimulus_files.filter(condition__kind=kind).order_by("item__name")
        for code, item, answer in unscored.values_list("condition__code", "item__name", "item__answer")[:most]:
            known = rules.read_known_answer(question, answer)
            expected = {question.key: known} if known else {}
            yield PlannedPresentation(_short_key(f"{code}/{item}"), purpose, code, None, (("a", code, item),), expected)


def _find_aside_problems(study: Study, codes: tuple[str, ...], pool: StimulusPool) -> list[str]:
    items = stored_design.list_shared(study, codes, pool)
    return rules.aside_problems(study.asked, *stored_design.count_made(study), len(items)) if items else []


def _make_controls(study: Study, codes: tuple[str, ...], pool: StimulusPool) -> Iterator[PlannedPresentation]:
    """Yield practice trials as the scored ones are, then control trials, of items that no scored trial has.

    The first practice trial has the original, where it is compared. A control trial has one recording in all slots;
    in ABX it has two items, so that everybody hears which one is X.
    """
    rng = np.random.default_rng([study.seed, STREAM])
    slots, screen = list_slots(study.screen, len(codes)), study.screen
    items = [str(one) for one in rng.permutation(np.array(stored_design.draw_aside(study, codes, pool), dtype=object))]
    versions = list_versions(screen, codes, stored_design.read_against(study))
    drawn = sorted((versions[place] for place in rng.permutation(len(versions))), key=lambda one: "" not in one)
    answered = study.items.exclude(answer="") if screen == Screen.SINGLE else study.items.none()
    answers = dict(answered.values_list("name", "answer"))
    practice, gold = stored_design.count_made(study)
    for number in range(practice):
        version, item = drawn[number % len(drawn)], items.pop()
        orders = [rng.permutation(version)] if screen == Screen.MANY else list_orders(screen, version)
        conditions = [str(one) for one in orders[rng.integers(len(orders))]]
        made = _crossed_item(tuple(conditions), item, slots)
        heard = {slot: (code, item) for slot, code, item in made.samples}
        expected = rules.known_answers(study.asked, heard)
        if item in answers and (known := rules.read_known_answer(study.asked[0], answers[item])):
            expected = {study.asked[0].key: known}
        yield replace(made, key=f"practice-{number + 1}", purpose=Purpose.PRACTICE, expected=expected)
    for number in range(gold):
        code, item = "" if REFERENCE in slots else codes[number % len(codes)], items.pop()
        heard = dict.fromkeys(slots, (code, item))
        if screen == Screen.TRIPLE:
            heard["ab"[(number + 1) % 2]] = code, items.pop()
        samples = tuple((slot, *heard[slot]) for slot in slots)
        expected = rules.known_answers(study.asked, heard)
        yield PlannedPresentation(f"gold-{number + 1}", Purpose.GOLD, code, None, samples, expected)


def _crossed_item(conditions: tuple[str, ...], item: str, slots: tuple[str, ...]) -> PlannedPresentation:
    """Return a trial of conditions in the order of slots; the reference, which is the original, comes before them."""
    codes = dict(zip(slots, ("", *conditions) if REFERENCE in slots else conditions, strict=True))
    samples = tuple((slot, code, item) for slot, code in codes.items())
    key = _short_key("/".join([*conditions, item]))  # no name of a folder or file has a stroke
    return PlannedPresentation(key, Purpose.SCORED, codes.get("a", ""), None, samples)


def _plan_boards(
    study: Study, codes: tuple[str, ...], pool: StimulusPool, evaluators: int, wave: int = 0
) -> PlannedDesign:
    """Return the boards of a wave."""
    prefix = f"wave-{wave}-" if wave else ""
    boards = plan_boards(stored_design.board_request(study, codes, pool, evaluators, wave)).blocks
    blocks = [[_board_item(one, prefix) for one in block] for block in boards]
    items = tuple(one for block in blocks for one in block)
    return PlannedDesign(items, tuple(tuple(one.key for one in block) for block in blocks))


def _board_item(board: Board, prefix: str) -> PlannedPresentation:
    samples = tuple((str(slot), one.system, one.utterance) for slot, one in enumerate(board.samples, 1))
    return PlannedPresentation(prefix + board.key, Purpose.SCORED, board.system, None, samples)
