"""The sizes that a new study begins with: those of its group, the largest for which there are recordings, and why."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from math import ceil
from pathlib import Path
from time import thread_time
from typing import Any

from listening.app.models import Study
from listening.app.studies.planning import DESIGNED_AT_ONCE_AT_MOST, judge_plan
from listening.app.studies.selectors import codes_of, pool_of
from listening.app.studies.stored_design import crossed_request, list_shared
from listening.design.crossed import CrossedRequest
from listening.questions import Screen, propose_practice_trials
from portal.challenges.models import DataSet, Role
from portal.submissions.models import Submission

Form = Study.Form
SIZES = tomllib.loads(Path(__file__).with_name("sizes.toml").read_text(encoding="utf-8"))
SIZE = ("evaluators", "trials_per_evaluator", "originals_per_evaluator", "board_samples")
BOARD_SAMPLES = 12
ROOM_TO_EXCHANGE = 4  # evaluators: fewer hardly have trials to exchange, so that a design is seldom found
CHOSEN_IN_REQUEST_S, TRIED_FOR_S = 2.0, 0.5  # of the processor: for the size of a new study, and for each that is tried
CROSSED = "crossed"
USUAL_TRIALS, FEWEST_SUGGESTED, MOST_SUGGESTED = 60, 24, 500
TIMES_LONGER = 3  # a trial with all conditions at once
RATINGS_OF_EACH = 12  # of each item in each of its versions
ROOM = 1.5  # recordings of each role for each trial of a session


def describe_sizes() -> list[tuple[str, str]]:
    """Return the name of each group of sizes with its largest ones in words."""
    words = "{} evaluators × {} trials where two voices are compared, {} × {} for a voice map, {} × {} for a "
    words += "transcription, {} × {} for all others"
    forms = (Form.RATING, Form.LINKABILITY, Form.TRANSCRIPTION, CROSSED)
    largest = {
        name: words.format(*(number for form in forms for number in group["sizes"][form][0][:2]))
        for name, group in SIZES.items()
    }
    return [(name, group["words"].format(sizes=largest[name])) for name, group in SIZES.items()]


def choose_size(study: Study, group: str, systems: list[Submission], data_sets: list[DataSet]) -> dict[str, Any]:
    """Return the largest size of a group that can be designed, as far as can be tried while a page waits.

    Where recordings are scarce: with the trials beside the scored ones, or else without them. Without systems no design
    can be tried: the largest.
    """
    sizes = list_sizes(study.form, group)
    if not systems:
        return sizes[0]
    none = dict.fromkeys(SIZES[group]["extras"], 0)
    bare = [one | none for one in sizes if one["evaluators"] * one["trials_per_evaluator"] <= DESIGNED_AT_ONCE_AT_MOST]
    untried, end = [], thread_time() + CHOSEN_IN_REQUEST_S
    for size, is_scarce in (*((one, False) for one in sizes), *((one, True) for one in (*sizes, *bare))):
        tried = with_size(study, size)
        if not is_scarce and explain_room(tried, data_sets):
            continue
        seconds = max(0, min(TRIED_FOR_S, end - thread_time()))
        verdict = judge_plan(tried, systems=systems, data_sets=data_sets, seconds=seconds)
        is_counted = size["evaluators"] * size["trials_per_evaluator"] > DESIGNED_AT_ONCE_AT_MOST
        if not verdict.problems and (verdict.is_tried or is_counted):
            return size
        untried += [] if verdict.problems else [size]
    with_room = [one for one in untried if one["evaluators"] >= ROOM_TO_EXCHANGE]
    return (with_room or untried or sizes)[-1]


def choose_crossed_size(study: Study, group: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return evaluators, trials, practice and items of a crossed study: so many that each is rated often enough.

    Args:
        given: fields that are chosen already.
    """
    codes, pool = codes_of(study), pool_of(study)
    proposed = propose_practice_trials(study.asked, len(list_shared(study, codes, pool)))
    practice = {"practice_trials": given.get("practice_trials", proposed)}
    request = crossed_request(with_size(study, practice), codes, pool, study.evaluators)
    is_written = study.form == Form.TRANSCRIPTION
    evaluators, trials = SIZES[group]["sizes"][study.form if is_written else CROSSED][0]
    evaluators = given.get("evaluators", evaluators)
    trials = given.get("trials_per_evaluator", trials // TIMES_LONGER if study.screen == Screen.MANY else trials)
    versions = max(1, len(request.versions))
    items = max(trials if is_written else ceil(trials / versions), evaluators * trials // (versions * RATINGS_OF_EACH))
    items = given.get("items_at_most") or max(1, min(len(request.items), items))
    most = replace(request, items=request.items[:items]).most_trials
    size = practice | {"evaluators": evaluators, "trials_per_evaluator": min(trials, most), "items_at_most": items}
    return size | {name: value for name, value in given.items() if name in size}


def choose_numbers(request: CrossedRequest) -> tuple[int, int]:
    """Return evaluators and trials of each: all there is where it is little, else as many of each condition or pair."""
    versions, most = len(request.versions), request.most_trials
    usual = USUAL_TRIALS // TIMES_LONGER if request.screen == Screen.MANY else USUAL_TRIALS
    trials = most if most <= usual else usual - (usual % versions if versions <= usual else 0)
    wanted = ceil(RATINGS_OF_EACH * request.different_trials / max(1, trials))
    return min(MOST_SUGGESTED, max(FEWEST_SUGGESTED, wanted)), trials


def explain_size(study: Study, group: str) -> str:
    """Return that a new study is smaller than the largest size of its group; empty where it is not."""
    if study.is_crossed:
        return ""
    largest = list_sizes(study.form, group)[0]
    evaluators, trials = largest["evaluators"], largest["trials_per_evaluator"]
    if study.evaluators * study.trials_per_evaluator >= evaluators * trials:
        return ""
    unit = "boards" if study.form == Form.LINKABILITY else "trials"
    return (
        f"The recordings are enough for {study.evaluators} evaluators × {study.trials_per_evaluator} {unit}; the "
        f"preset has {evaluators} × {trials}. “Edit” takes any size, and says whether it can be designed."
    )


def with_size(study: Study, size: Mapping[str, Any]) -> Study:
    sized = copy(study)
    for field, value in size.items():
        setattr(sized, field, value)
    return sized


def explain_room(study: Study, data_sets: Sequence[DataSet]) -> str:
    """Return why a design may be slow or impossible; empty where a session leaves recordings over."""
    counts = dict.fromkeys((Role.TRIAL, Role.ENROLMENT), 0)
    for one in data_sets:
        counts[Role(one.role)] += one.utterances.exclude(audio="").count()
    trials = study.trials_per_evaluator + study.trials_beside
    if study.form != Form.RATING or ROOM * trials <= min(counts.values()):
        return ""
    return (
        f"For sessions of {trials} trials, practice and control among them, recordings are few: "
        f"{counts[Role.TRIAL]} of trial sets and {counts[Role.ENROLMENT]} of enrolment sets."
    )


def list_sizes(form: str, group: str) -> list[dict[str, Any]]:
    """Return the fields of each size of a group, the largest first."""
    chosen = SIZES[group]
    extras = chosen["extras"] if form == Form.RATING else dict.fromkeys(chosen["extras"], 0)
    sizes = ((*size, BOARD_SAMPLES)[: len(SIZE)] for size in chosen["sizes"][form])
    return [extras | dict(zip(SIZE, size, strict=True)) for size in sizes]
