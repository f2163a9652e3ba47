"""What may be changed in a study, and what its numbers and settings have to be: functions of their arguments."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from common.errors import ProblemsError
from listening.app.models import Session, Study
from listening.app.studies.settings import parse_platform
from listening.questions import FEWEST_TO_SWAP, PAIRED, AskedQuestion, Kind, Orders, Screen, list_slots

State = Study.State
CHANGEABLE = (State.DRAFT, State.PREPARED, State.OPEN, State.PAUSED)
DESIGNABLE = (State.DRAFT, State.PREPARED)
LAUNCHED = (State.OPEN, State.PAUSED)
RESULTS_TAKEN_BACK = "study.results_taken_back"  # in the audit log: after a withdrawal they rested on too few people
# The numbers of a plan that can be checked without knowing the recordings.
NUMBERS = (
    *("asked", "evaluators", "trials_per_evaluator", "originals_per_evaluator"),
    *("practice_trials", "gold_trials", "bridge_trials"),
)
# At which stimuli may be played.
RATES_HZ = (16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
# What a crossed study of systems has none of.
NOT_CROSSED = ("originals_per_evaluator", "practice_trials", "gold_trials", "bridge_trials")
NEITHER = 3  # of a choice between A and B
# Systems, data sets, and what a crossed study of systems compares besides: the original and anchors.
RELATIONS = frozenset({"systems", "data_sets", "further"})
# A change of one of these takes the design away.
PLAN_FIELDS = (
    frozenset(NUMBERS)
    | RELATIONS
    | {
        *("items_at_most", "against", "board_samples", "board_dimensions", "board_groups"),
        *("relaxations", "seed", "rate_hz", "channels", "loudness"),
    }
)
# What evaluators answered rests on these.
LOCKED_AFTER_LAUNCH = PLAN_FIELDS | {
    *("name", "pages", "orders", "plays_at_most", "role_play", "questionnaire", "screening", "platform"),
    *("half_width", "most_evaluators"),
}
# Rules of the design that may give way where an organizer says so.
RELAXATIONS = {
    "sources": "the same utterance may come again in a session, in another form",
    "enrolments": "the same recording of a speaker may be compared again in a session",
    "sexes": "women and men need not be half and half, but as there are recordings",
}
PERSONAL_DATA = "platform IDs, devices and what a platform sent"  # what `forget_people` deletes
CONSENT_FIELDS = ("responsible", "contact", "keep_months")
# An open page says that it is there every half minute; after four times in vain somebody has stopped for now.
STALLED_AFTER = timedelta(minutes=2)
NETWORKS_OF_A_STUDY, FEWEST_OF_A_NETWORK = 4, 3
PLACES_OF_A_ROOM = 12  # a class or a laboratory behind one address; more evaluators come from more networks
SECONDS_TO_RATE, SECONDS_TO_PLACE, SECONDS_TO_WRITE = 4.0, 6.0, 20.0
HEARD_ON_A_BOARD, HEARD_TO_WRITE, HEARD_IN_PARTS = 3, 2, 2
PRACTICE_AT_MOST, GOLD_AT_MOST, BRIDGE_AT_MOST = 10, 12, 12


def places_for_one_network(study: Study, places: int) -> int:
    """Return how many places one network address may hold at once: as the study says, else a quarter of them."""
    return study.places_per_network or max(FEWEST_OF_A_NETWORK, ceil(places / NETWORKS_OF_A_STUDY))


def is_too_narrow_for_a_room(study: Study, places: int) -> bool:
    """Return whether few places are not all for one network address, and nobody has decided so."""
    share = places_for_one_network(study, places)
    return study.platform == Study.Platform.OWN and not study.places_per_network and share < places <= PLACES_OF_A_ROOM


def is_stalled(session: Session, now: datetime) -> bool:
    """Return whether nothing was heard of an active session for `STALLED_AFTER`."""
    return session.state == Session.State.ACTIVE and now - (session.last_seen_at or session.started_at) >= STALLED_AFTER


def kept_until(study: Study) -> datetime | None:
    """Return until when what leads to evaluators may be kept, as their consent says; None while no time runs."""
    if study.closed_at is None or study.keep_months is None:
        return None
    months = study.closed_at.month - 1 + study.keep_months
    year, month = study.closed_at.year + months // 12, months % 12 + 1
    return study.closed_at.replace(year=year, month=month, day=min(study.closed_at.day, monthrange(year, month)[1]))


def describe_published_results(study: Study) -> str:
    """Return what published results are, as pages say it: public as long as the leaderboard is."""
    return "hidden until the leaderboard is published again" if study.waits_for_leaderboard else "published"


def study_archiving_problem(study: Study) -> str:
    """Return why a study cannot leave the lists: somebody can take part."""
    return "It takes answers. Close it first." if study.state in LAUNCHED else ""


def study_deletion_problem(study: Study, *, was_published: bool) -> str:
    """Return why a study cannot be deleted with its answers.

    Args:
        was_published: whether its results are or ever were public.
    """
    if was_published:
        return "Its results are or were published. Archive it instead: published results depend on it."
    return study_archiving_problem(study)


def slots_of_trial(study: Study) -> tuple[str, ...]:
    """Return the slots of the samples of a trial, in the order in which they are shown."""
    screens = {one.screen for one in study.asked}
    if Screen.BOARD in screens:
        return tuple(str(number) for number in range(1, study.board_samples + 1))
    conditions = study.compared.count() if Screen.MANY in screens else 0
    return max((list_slots(one, conditions) for one in screens), key=len, default=list_slots(Screen.SINGLE))


def right_answers(study: Study, *, is_same: bool) -> dict[str, list[int]]:
    """Return the right ratings of a control trial by question: of those that compare voices."""
    return {one.key: right_ratings(one.points, is_high=is_same) for one in study.asked if one.compares_voices}


def known_answers(asked: Sequence[AskedQuestion], heard: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return the lowest and highest right answer to a trial by question, where what is heard makes it sure.

    X is A or B. A recording beside itself is about the same, and neither is preferred; a reference beside itself is
    not degraded. Scales of five points and more allow one point, as `right_ratings` does.

    Args:
        heard: by slot; equal where the same recording is heard.
    """
    found = {}
    for one in asked:
        (_, highest), allowed = one.ends, int(one.points >= 5)
        if one.screen == Screen.TRIPLE:
            found[one.key] = [1, 1] if heard["x"] == heard["a"] else [2, 2]
        elif one.screen == Screen.REFERENCE and heard["a"] == heard["r"]:
            found[one.key] = [highest - allowed, highest]
        elif one.screen == Screen.PAIR and heard["a"] == heard["b"]:
            if one.is_rated:
                found[one.key] = [-allowed, allowed]
            elif one.points == NEITHER:
                found[one.key] = [NEITHER, NEITHER]
    return found


def has_known_answers(asked: Sequence[AskedQuestion]) -> bool:
    """Return whether trials whose answer is sure can be made of any recordings, as `known_answers`."""
    return bool(known_answers(asked, dict.fromkeys("rxab")))


def count_items_aside(asked: Sequence[AskedQuestion], practice: int, gold: int) -> int:
    """Return how many items so many practice and control trials keep from the scored ones: X of A and B has two."""
    return practice + gold * (2 if asked and asked[0].screen == Screen.TRIPLE else 1)


def aside_problems(asked: Sequence[AskedQuestion], practice: int, gold: int, items: int) -> list[str]:
    """Return why practice and control trials cannot be made of items that every condition has, as sentences."""
    problems = []
    if gold and not has_known_answers(asked):
        problems.append(
            "Control trials need a known answer, which DCR, CCR, AB with “neither” and ABX have. Choose 0, or send "
            "recordings whose answer is known in the folder control-trials, where single recordings are heard."
        )
    if items <= (needed := count_items_aside(asked, practice, gold)) and needed:
        problems.append(
            f"The {practice + gold} practice and control trials need {needed} items of their own, and every condition "
            f"has {items}. Take fewer of these trials, or more items."
        )
    return problems


def read_known_answer(question: AskedQuestion, answer: str) -> list[int]:
    """Return the lowest and highest right answer, written as 1, 4-5 or a label; nothing where it is none to this."""
    if question.kind == Kind.CHOICE:
        return next(([number] * 2 for number, label in question.labels("en").items() if label == answer), [])
    first, _, last = answer.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal()):
        return []
    (lowest, highest), found = question.ends, [int(first), int(last or first)]
    return found if lowest <= found[0] <= found[1] <= highest else []


def right_ratings(points: int, *, is_high: bool) -> list[int]:
    """Return the lowest and highest rating that is right for an original pair of one speaker, or a woman and a man.

    For one speaker, who may sound a little different in two recordings, the upper half of the scale. For a woman and
    a man within one point of the end, as ITU-T P.808's toolkit takes a known answer; the end itself below five points.
    """
    if is_high:
        return [points // 2 + 1, points]
    return [1, 2 if points >= 5 else 1]


def plan_number_problems(numbers: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what is wrong with the numbers of a plan, without looking at recordings.

    Args:
        numbers: fields of `Study` and its questions, `asked`; those that could not be read are missing.
            `has_own_recordings`: the answers of control trials may come with them.
    """
    problems: dict[str, list[str]] = {}
    asked: Sequence[AskedQuestion] = numbers.get("asked", ())
    if numbers.get("half_width"):
        evaluators, most = numbers.get("evaluators") or 0, numbers.get("most_evaluators") or 0
        if not most:
            problems["most_evaluators"] = ["A wanted half width needs a number of evaluators at most. Give it."]
        elif most <= evaluators:
            problems["most_evaluators"] = [
                f"A wanted half width needs more evaluators at most than the {evaluators} at first, found {most}."
            ]
        if asked and not any(one.is_judged and one.analysed_as != "choice" for one in asked):
            problems["half_width"] = [
                "The intervals of texts and labels are not measured while a test is open: leave the half width empty."
            ]
    if numbers.get("orders") == Orders.SWAP_FIRST_TWO and len(asked) < FEWEST_TO_SWAP:
        problems["orders"] = [
            f"Two questions change places before a last one: expected at least {FEWEST_TO_SWAP}, found {len(asked)}."
        ]
    if asked and numbers.get("against") and asked[0].screen not in PAIRED:
        problems["against"] = ["Only AB, CCR and ABX compare with one condition alone: leave it out."]
    if numbers.get("plays_at_most") and any(one.is_heard_in_parts for one in asked):
        problems["plays_at_most"] = ["Where evaluators change between recordings, plays have no limit: leave it out."]
    trials, originals = numbers.get("trials_per_evaluator"), numbers.get("originals_per_evaluator")
    has_voices = any(one.compares_voices for one in asked)
    if has_voices and trials is not None and originals is not None and not 0 <= originals <= trials:
        problems["originals_per_evaluator"] = [f"Expected at most the {trials} trials of an evaluator."]
    beside = (numbers.get("gold_trials") or 0) + (numbers.get("bridge_trials") or 0)
    if trials is not None and beside > trials - 1 and beside:
        problems["gold_trials"] = [
            f"Control and bridge trials are never next to each other: {trials} scored trials have room for "
            f"{max(0, trials - 1)} of them, found {beside}."
        ]
    if not has_voices and numbers.get("bridge_trials"):
        problems["bridge_trials"] = ["Bridge trials exist only where two voices are compared. Choose 0."]
    is_known = has_voices or has_known_answers(asked)
    has_labels = any(one.screen == Screen.SINGLE and one.is_judged for one in asked)
    if asked and numbers.get("gold_trials") and not (is_known or (numbers.get("has_own_recordings") and has_labels)):
        problems["gold_trials"] = [
            "Control trials have a known answer where voices or recordings are compared with each other only. Ask such "
            "a question, or choose 0."
        ]
    return problems


def consent_problems(study: Study) -> dict[str, str]:
    """Return what evaluators would not be told before they consent, as sentences by field."""
    missing = {
        "responsible": "Consent does not name the body that is responsible for the study.",
        "contact": "Consent names no contact for questions about the study and its pay.",
        "keep_months": "Consent does not say for how long personal data is kept.",
    }
    return {
        name: f"{words} Fill it in on the page “Edit”." for name, words in missing.items() if not getattr(study, name)
    }


def seconds_of_trial(asked: Sequence[AskedQuestion], sample_s: Sequence[float]) -> float:
    """Estimate how long a trial takes in s: each sample as often as it is heard, and some seconds for each answer.

    Args:
        sample_s: the length of each sample; of voices sample A first.
    """
    kinds = {one.kind for one in asked}
    if any(one.is_heard_in_parts for one in asked):
        rated = len(sample_s) - 1 if Kind.SLIDER in kinds else len(asked)
        return HEARD_IN_PARTS * sum(sample_s) + rated * SECONDS_TO_RATE
    if Kind.PLACEMENT in kinds:
        return HEARD_ON_A_BOARD * sum(sample_s) + SECONDS_TO_PLACE * len(sample_s)
    if Kind.TEXT in kinds:
        return HEARD_TO_WRITE * sum(sample_s) + SECONDS_TO_WRITE
    is_heard_again = len(asked) > 1 and any(one.listen_again for one in asked)
    return sum(sample_s) + sum(sample_s[:1]) * is_heard_again + len(asked) * SECONDS_TO_RATE


def platform_problems(study: Study) -> list[str]:
    """Return what is wrong with the settings of the platform, as sentences."""
    try:
        parse_platform(study)
    except ProblemsError as error:
        return error.problems
    return []


def closing_problems(study: Study) -> list[str]:
    """Return why a study cannot be closed, as sentences; empty where it can."""
    if study.state in LAUNCHED:
        return []
    if study.state == State.CLOSED:
        return ["It is closed already."]
    return ["It was never launched, so nobody can listen to it and there is nothing to close."]
