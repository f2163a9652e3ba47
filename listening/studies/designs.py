"""From a plan to rows: who hears what, in which order, and the certificate that it is balanced.

`plan_design` is the science alone: it chooses controls and candidates, allocates and orders them. `make_design` writes
what it gave in one transaction and stores the certificate that `listening.studies.row_checks` computes from the rows.
The same seed and the same recordings give the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.db import transaction

from listening.design.allocation import allocate
from listening.design.boards import plan_boards
from listening.design.extension import extend
from listening.design.insertion import insert_controls
from listening.design.ordering import Progress
from listening.design.plan import Candidate, Design, DesignError
from listening.design.selection import choose_candidates
from listening.design.transcription import plan_transcription
from listening.models import Item, Study
from listening.studies.controls import Control, ControlPlan, choose_controls, used_by
from listening.studies.design_rows import (
    DesignRows,
    board_request,
    has_pairs,
    make_request,
    rating_design,
    rating_request,
    read_rows,
    relaxations_of,
    transcription_request,
)
from listening.studies.design_writing import PlannedDesign, PlannedItem, clear_design, drop_unused_stimuli, write_design
from listening.studies.pools import Pool, make_pool, set_problems
from listening.studies.row_checks import certificate_of, failures_of
from listening.studies.selectors import locked_study, refuse_unless
from listening.studies.study_rules import PLAN_FIELDS, plan_number_problems
from portal.challenges.models import DataSet
from portal.core import audit
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission

State = Study.State
DESIGNABLE = (State.DRAFT, State.PREPARED)
EXTENDABLE = (State.OPEN, State.PAUSED)
LONGEST_KEY = 200
CHANGED = "The study was changed while its design was made. Try again."
PAUSE_FIRST = "Pause the study first: its new blocks need further recordings, which have to be prepared."
NO_SYSTEMS = "Choose at least one system: a study compares anonymised with original speech."


def plan_design(study: Study, codes: tuple[str, ...], pool: Pool, *, progress: Progress | None = None) -> PlannedDesign:
    """What a study with these systems and recordings presents to whom.

    Raises:
        DesignError: the plan cannot be met, with the numbers that would do.
    """
    if study.form == Study.Form.LINKABILITY:
        return _boards(study, codes, pool, study.evaluators)
    if study.form == Study.Form.TRANSCRIPTION:
        return _writings(study, codes, pool, study.evaluators)
    controls, candidates = choose_trials(study, codes, pool)
    design = allocate(make_request(study, codes, candidates), progress=progress)
    blocks = _with_controls(design, controls, study.seed)
    return PlannedDesign((*map(_control_item, controls), *map(_candidate_item, candidates)), blocks)


def choose_trials(
    study: Study, codes: tuple[str, ...], pool: Pool
) -> tuple[tuple[Control, ...], tuple[Candidate, ...]]:
    """The controls of a study of ratings, and its candidates from the recordings that are left.

    Raises:
        DesignError: there are too few recordings.
    """
    plan = ControlPlan(
        practice=study.practice_trials,
        gold=study.gold_trials,
        bridge=study.bridge_trials,
        scale_points=study.scale_points,
        has_pairs=has_pairs(study),
    )
    controls = choose_controls(pool.utterances, systems=codes, plan=plan, seed=study.seed)
    taken = used_by(controls)
    left = [one for one in pool.utterances if one.key not in taken]
    candidates = choose_candidates(
        left,
        systems=codes,
        evaluators=study.evaluators,
        trials=study.trials_per_evaluator,
        originals=study.originals_per_evaluator,
        seed=study.seed,
        is_paired=has_pairs(study),
        **relaxations_of(study),
    )
    return controls, tuple(replace(one, key=_short_key(one.key)) for one in candidates)


def plan_problems(
    study: Study,
    *,
    systems: Iterable[Submission] | None = None,
    data_sets: Iterable[DataSet] | None = None,
) -> list[str]:
    """Why no design can be made of a plan, as sentences; empty where one can.

    Args:
        study: with the numbers to be tried; it need not be saved.
        systems, data_sets: those to be tried; the study's own where none are given.
    """
    chosen = list(study.data_sets.all() if data_sets is None else data_sets)
    submissions = _submissions(study) if systems is None else {str(one.pk): one for one in systems}
    numbers = {name: getattr(study, name) for name in NUMBERS}
    problems = [sentence for found in plan_number_problems(numbers).values() for sentence in found]
    problems += [] if submissions else [NO_SYSTEMS]
    problems += set_problems(chosen)
    if problems:
        return problems
    codes, pool = tuple(submissions), make_pool(chosen, submissions)
    try:
        if study.form == Study.Form.RATING:
            choose_trials(study, codes, pool)
        else:
            plan_design(study, codes, pool)
    except DesignError as error:
        return error.problems
    return []


NUMBERS = (
    "form", "tasks", "evaluators", "trials_per_evaluator", "originals_per_evaluator", "practice_trials",
    "gold_trials", "bridge_trials",
)  # fmt: skip


def make_design(study: Study, by: Any, *, progress: Progress | None = None) -> dict[str, Any]:
    """Design a study anew and store its certificate, which is returned.

    The planning takes its time and holds nothing; the rows are written in one transaction if the plan is the same.

    Args:
        progress: called with how many are done, of how many, and of what; whatever it raises leaves all as it was.

    Raises:
        DesignError: the plan cannot be met.
        NotPossible: the study is launched, its stimuli are being made, or it was changed meanwhile.
    """
    study = Study.objects.get(pk=study.pk)
    refuse_unless(study, DESIGNABLE, "designed anew")
    submissions = _submissions(study)
    sets = list(study.data_sets.all())
    if problems := [*([] if submissions else [NO_SYSTEMS]), *set_problems(sets)]:
        raise DesignError(problems)
    pool = make_pool(sets, submissions)
    planned = plan_design(study, tuple(submissions), pool, progress=progress)
    if progress is not None:
        progress(0, 0, "writing")
    with transaction.atomic():
        now = locked_study(study, DESIGNABLE, "designed anew")
        if (
            _plan_of(now) != _plan_of(study)
            or _submissions(now) != submissions
            or set(now.data_sets.all()) != set(sets)
        ):
            raise NotPossible(CHANGED)
        clear_design(now)
        write_design(now, planned, pool, wave=0, first_number=1)
        drop_unused_stimuli(now)
        _certify(now, pool)
        now.save(update_fields=["certificate", "state", "stimuli"])
        audit.record("study.designed", now, actor=by, seed=now.seed, fingerprint=now.certificate["fingerprint"])
    return now.certificate


def extend_design(study: Study, blocks: int, by: Any) -> dict[str, Any]:
    """Add blocks to a launched study: of ratings balanced together with those there are, else among themselves.

    Blocks of ratings are of the same recordings. Those of boards and transcriptions need further ones, which have to be
    prepared before anybody meets them, so the study has to rest meanwhile.

    Raises:
        DesignError: no such blocks exist.
        NotPossible: the study is not launched, closed, has to be paused first, or was extended meanwhile.
    """
    study = Study.objects.get(pk=study.pk)
    refuse_unless(study, EXTENDABLE, "extended")
    if study.form != Study.Form.RATING and study.state != State.PAUSED:
        raise NotPossible(PAUSE_FIRST)
    rows = read_rows(study)
    wave = len(rows.waves())
    planned = _plan_extension(rows, blocks, wave)
    with transaction.atomic():
        now = locked_study(study, EXTENDABLE, "extended")
        if now.certificate.get("fingerprint") != study.certificate.get("fingerprint") or now.state != study.state:
            raise NotPossible(CHANGED)
        write_design(now, planned, rows.pool, wave=wave, first_number=len(rows.blocks) + 1)
        _certify(now, rows.pool)
        now.save(update_fields=["certificate"])
        fingerprint = now.certificate["fingerprint"]
        audit.record("study.extended", now, actor=by, blocks=blocks, wave=wave, fingerprint=fingerprint)
    return now.certificate


# Planning -----------------------------------------------------------------------------------------


def _with_controls(design: Design, controls: Iterable[Control], seed: int) -> tuple[tuple[str, ...], ...]:
    keys: dict[str, list[str]] = {purpose: [] for purpose in Item.Purpose.values}
    for control in controls:
        keys[control.purpose].append(control.key)
    practice, gold, bridge = (keys[name] for name in (Item.Purpose.PRACTICE, Item.Purpose.GOLD, Item.Purpose.BRIDGE))
    return insert_controls(design, practice=practice, gold=gold, bridge=bridge, seed=seed)


def _short_key(key: str) -> str:
    """The key itself where a row can hold it, else its beginning with what makes it unlike any other."""
    if len(key) <= LONGEST_KEY:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{key[: LONGEST_KEY - len(digest) - 1]}:{digest}"


def _control_item(control: Control) -> PlannedItem:
    samples = [("a", control.system, control.a), *([("b", "", control.b)] if control.b else [])]
    return PlannedItem(
        control.key, control.purpose, control.system, control.is_target, tuple(samples), control.expected
    )


def _candidate_item(one: Candidate) -> PlannedItem:
    samples = [("a", one.system, one.source), *([("b", "", one.enrolment)] if one.enrolment else [])]
    return PlannedItem(one.key, Item.Purpose.SCORED, one.system, one.is_target, tuple(samples))


def _boards(study: Study, codes: tuple[str, ...], pool: Pool, evaluators: int, wave: int = 0) -> PlannedDesign:
    plan = plan_boards(board_request(study, codes, pool, evaluators, wave))
    prefix = f"wave-{wave}-" if wave else ""
    items = tuple(
        PlannedItem(
            key=prefix + board.key,
            purpose=Item.Purpose.SCORED,
            system=board.system,
            is_target=None,
            samples=tuple((str(slot), one.system, one.utterance) for slot, one in enumerate(board.samples, 1)),
        )
        for block in plan.blocks
        for board in block
    )
    return PlannedDesign(items, tuple(tuple(prefix + board.key for board in block) for block in plan.blocks))


def _writings(study: Study, codes: tuple[str, ...], pool: Pool, evaluators: int, wave: int = 0) -> PlannedDesign:
    plan = plan_transcription(transcription_request(study, codes, pool, evaluators, wave))
    items = {
        one.key: PlannedItem(one.key, Item.Purpose.SCORED, one.system, None, (("a", one.system, one.utterance),))
        for block in plan.blocks
        for one in block
    }
    return PlannedDesign(tuple(items.values()), tuple(tuple(one.key for one in block) for block in plan.blocks))


def _plan_extension(rows: DesignRows, blocks: int, wave: int) -> PlannedDesign:
    """The items that are new, and the blocks of a further wave."""
    study, seed = rows.study, rows.study.seed + wave
    if study.form == Study.Form.LINKABILITY:
        return _boards(study, rows.systems, rows.pool, blocks, wave)
    if study.form == Study.Form.TRANSCRIPTION:
        return _writings(study, rows.systems, rows.pool, blocks, wave)
    design = extend(rating_request(rows), rating_design(rows), blocks=blocks, seed=seed)
    added = replace(design, blocks=design.blocks[len(rows.blocks) :], extensions=())
    return PlannedDesign((), _with_controls(added, _controls_of(study), seed))


def _plan_of(study: Study) -> dict[str, Any]:
    """What a design is made from, besides systems and data sets."""
    return {name: getattr(study, name) for name in sorted(PLAN_FIELDS - {"systems", "data_sets"})}


def _controls_of(study: Study) -> list[Control]:
    """The controls of a study by purpose and key alone."""
    rows = study.items.exclude(purpose=Item.Purpose.SCORED).order_by("pk").values_list("purpose", "key")
    return [Control(purpose, key, "", "", "", None) for purpose, key in rows]


# Certificate --------------------------------------------------------------------------------------


def _certify(study: Study, pool: Pool) -> None:
    """Put the certificate of the rows on the study.

    Raises:
        DesignError: it does not pass.
    """
    certificate = certificate_of(read_rows(study, pool))
    if not certificate["passes"]:
        raise DesignError(failures_of(certificate))
    study.certificate = certificate


def _submissions(study: Study) -> dict[str, Submission]:
    return {one.code: one.submission for one in study.systems.select_related("submission").order_by("code")}
