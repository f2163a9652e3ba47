"""What a browser sends about a trial, read strictly: JSON in, a `Claim` or every fault at once out.

Nothing is guessed or repaired: a number is a JSON integer (never true, never 7.0), text has no characters that a
database cannot keep, and a name that is not known here is a fault. What the browser says about playing and about
events is bounded in number and length; what goes beyond the bounds is left out and counted, since nobody shall lose
an answer for it. Public: `decode`, `read_answers`, `read_alive`, `read_report`, `read_tab`, `Invalid`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from listening.models import Study, Task
from listening.trials.boards import BoardError, validate_board
from listening.trials.transcripts import TextError, validate_text

MOST_BYTES = 64 << 10
MOST_BYTES_OF_BOARD = 256 << 10  # with every move of sixteen samples
MOST_PLAYS = 200
MOST_EVENTS = 200
MOST_EVENT_FIELDS = 8
LONGEST_VALUE = 200
LAST_POSITION = 32767
MOST_MS = 7 * 24 * 3600 * 1000
SOUND_FAULTS = ("silence", "cut-off", "noise", "other")  # of a recording that loads but sounds wrong
REMARKS = frozenset({"muted", "rate", "seek", "hidden", "stopped", "suspended", "underrun"})
_TAB = re.compile(r"[A-Za-z0-9_-]{1,40}")
_KIND = re.compile(r"[a-z][a-z0-9-]{0,29}")
_SLOT = re.compile(r"[a-z0-9]{1,2}")
_ANSWER_KEYS = frozenset({"tab", "position", "answers", "text", "board", "client_ms", "is_late", "plays", "events"})


class Invalid(ValueError):  # noqa: N818
    """What was sent cannot be taken; `sentences` tell everything that is wrong."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = list(sentences)


@dataclass(frozen=True)
class Value:
    """What is kept of the answer to one task; see `listening.models.Answer`."""

    rating: int | None = None
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToldPlay:
    slot: str
    started_ms: int
    heard_ms: int
    is_whole: bool
    remarks: list[str]


@dataclass(frozen=True)
class ToldEvent:
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Report:
    """That a recording fails: it cannot be played, or it sounds wrong (`what` is one of `SOUND_FAULTS`).

    `is_skip`: the trial shall be skipped. `key`: of the report, the same whenever it is sent again; empty if none.
    """

    tab: str
    position: int
    slot: str
    what: str
    is_skip: bool
    key: str


@dataclass(frozen=True)
class Claim:
    """An answer to the tasks in `values`, and what the browser tells about how it came about."""

    tab: str
    position: int
    values: dict[str, Value]
    client_ms: int | None
    is_late: bool
    plays: list[ToldPlay]
    events: list[ToldEvent]


def decode(body: bytes) -> dict[str, Any]:
    """The JSON object of a request's body.

    Raises:
        Invalid: it is too long, not UTF-8, not JSON, not an object, nested too deeply or has impossible text.
    """
    if len(body) > MOST_BYTES_OF_BOARD:
        raise Invalid([f"The request has more than {MOST_BYTES_OF_BOARD >> 10} kB."])
    try:
        text = body.decode()
        payload = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text:
            json.dumps(payload, ensure_ascii=False).encode()  # fails for half a character
            if "\\u0000" in text:
                raise ValueError
    except RecursionError:
        raise Invalid(["The request is nested too deeply."]) from None
    except ValueError:
        raise Invalid(["The request is not JSON in UTF-8 with text and finite numbers."]) from None
    if not isinstance(payload, dict):
        raise Invalid(["The request is not a JSON object."])
    return payload


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def read_answers(payload: Mapping[str, Any], *, study: Study, slots: Callable[[int], Sequence[str] | None]) -> Claim:
    """What was answered, on what page, and how.

    Args:
        slots: those of the samples of the trial at a position, None where there is no such trial.

    Raises:
        Invalid: with everything that is wrong.
    """
    faults = [f"“{_short(key)}” is not known here." for key in payload if key not in _ANSWER_KEYS]
    tab = _tab(payload, faults)
    position = _whole(payload.get("position"), "position", LAST_POSITION, faults)
    of_trial = slots(position) if position is not None else None
    if position is not None and of_trial is None:
        faults.append(f"There is no trial {position}.")
    values = _values(payload, study, of_trial or (), faults)
    client_ms = None
    if payload.get("client_ms") is not None:
        client_ms = _whole(payload["client_ms"], "client_ms", MOST_MS, faults)
    is_late = payload.get("is_late", False)
    if not isinstance(is_late, bool):
        faults.append("“is_late” must be true or false.")
    plays = _plays(payload.get("plays", []), of_trial or (), faults)
    events = _events(payload.get("events", []), faults)
    if faults:
        raise Invalid(faults)
    return Claim(tab, position or 0, values, client_ms, is_late, plays, events)


def read_alive(payload: Mapping[str, Any]) -> tuple[str, list[ToldEvent]]:
    """The tab, and what it has to tell."""
    faults = [f"“{_short(key)}” is not known here." for key in payload if key not in {"tab", "events"}]
    read = _tab(payload, faults), _events(payload.get("events", []), faults)
    if faults:
        raise Invalid(faults)
    return read


def read_tab(payload: Mapping[str, Any]) -> str:
    return read_alive({key: value for key, value in payload.items() if key != "events"})[0]


def read_report(payload: Mapping[str, Any]) -> Report:
    """What failed; without “skip” the trial is skipped, as what cannot be played has to be."""
    known = {"tab", "position", "slot", "what", "skip", "key"}
    faults = [f"“{_short(key)}” is not known here." for key in payload if key not in known]
    tab = _tab(payload, faults)
    position = _whole(payload.get("position"), "position", LAST_POSITION, faults)
    slot, what = payload.get("slot"), payload.get("what", "")
    if not isinstance(slot, str) or not _SLOT.fullmatch(slot):
        faults.append("“slot” must name a sample.")
    if not isinstance(what, str) or len(what) > LONGEST_VALUE:
        faults.append(f"“what” must be text of at most {LONGEST_VALUE} characters.")
    is_skip, key = payload.get("skip", True), payload.get("key", "")
    if not isinstance(is_skip, bool):
        faults.append("“skip” must be true or false.")
    elif not is_skip and what not in SOUND_FAULTS:
        faults.append(f"“what” of a recording that sounds wrong must be one of: {', '.join(SOUND_FAULTS)}.")
    if not isinstance(key, str) or (key and not _TAB.fullmatch(key)):
        faults.append("“key” must be a name of at most 40 letters, digits, _ and -.")
    if faults:
        raise Invalid(faults)
    return Report(tab, position or 0, str(slot), what, is_skip, key)


def _values(payload: Mapping[str, Any], study: Study, slots: Sequence[str], faults: list[str]) -> dict[str, Value]:
    form = study.form
    answers = payload.get("answers", {})
    if not isinstance(answers, dict):
        faults.append("“answers” must give the rating of each task.")
        answers = {}
    if form != Study.Form.RATING and answers:
        faults.append("Nothing is rated in this study.")
    for key, its_form in (("text", Study.Form.TRANSCRIPTION), ("board", Study.Form.LINKABILITY)):
        if form != its_form and key in payload:
            faults.append(f"“{key}” belongs to another kind of study.")
    if form == Study.Form.TRANSCRIPTION:
        return _transcription(payload.get("text"), faults)
    if form == Study.Form.LINKABILITY:
        return _board(payload.get("board"), study, slots, faults)
    return _ratings(answers, study, faults)


def _ratings(answers: Mapping[str, Any], study: Study, faults: list[str]) -> dict[str, Value]:
    values = {}
    for task, rating in answers.items():
        if task not in study.tasks:
            faults.append(f"“{_short(task)}” is not asked in this study.")
        elif type(rating) is not int or not 1 <= rating <= study.scale_points:
            faults.append(f"The rating of {task} must be a whole number from 1 to {study.scale_points}.")
        else:
            values[task] = Value(rating=rating)
    if study.pages == Study.Pages.TOGETHER and any(task not in answers for task in study.tasks):
        faults.append(_("Please answer every question of this page first."))
    elif study.pages == Study.Pages.SEPARATE and len(answers) != 1:
        faults.append(_("Please answer the question of this page, and this one alone."))
    return values


def _transcription(given: Any, faults: list[str]) -> dict[str, Value]:
    try:
        read = validate_text(given)
    except TextError as error:
        faults += error.sentences
        return {}
    return {Task.TRANSCRIPTION.value: Value(text=read.text, data=read.data)}


def _board(given: Any, study: Study, slots: Sequence[str], faults: list[str]) -> dict[str, Value]:
    try:
        data = validate_board(given, slots=slots, dimensions=study.board_dimensions, has_groups=study.board_groups)
    except BoardError as error:
        faults += error.sentences
        return {}
    return {Task.LINKABILITY.value: Value(data=data)}


def _plays(given: Any, slots: Sequence[str], faults: list[str]) -> list[ToldPlay]:
    if not isinstance(given, list):
        faults.append("“plays” must be a list.")
        return []
    plays, wrong = [], set()
    for play in given[:MOST_PLAYS]:
        if not isinstance(play, dict) or play.keys() - {"slot", "started_ms", "heard_ms", "is_whole", "remarks"}:
            wrong.add("A play has “slot”, “started_ms”, “heard_ms”, “is_whole” and “remarks”, and nothing else.")
            continue
        slot, is_whole, remarks = play.get("slot"), play.get("is_whole"), play.get("remarks", [])
        times = play.get("started_ms"), play.get("heard_ms")
        if not isinstance(slot, str) or slot not in slots:
            wrong.add("A play names a sample that this trial does not have.")
        if not all(type(ms) is int and 0 <= ms <= MOST_MS for ms in times):
            wrong.add(f"The times of a play must be whole numbers of ms from 0 to {MOST_MS}.")
        if not isinstance(is_whole, bool):
            wrong.add("“is_whole” of a play must be true or false.")
        if not isinstance(remarks, list) or not all(isinstance(one, str) and one in REMARKS for one in remarks):
            wrong.add(f"A remark on a play must be one of: {', '.join(sorted(REMARKS))}.")
        if not wrong:
            plays.append(ToldPlay(slot, *times, is_whole, sorted(set(remarks))))  # type: ignore[arg-type]
    faults += sorted(wrong)
    return plays


def _events(given: Any, faults: list[str]) -> list[ToldEvent]:
    if not isinstance(given, list):
        faults.append("“events” must be a list.")
        return []
    events, wrong = [], set()
    for event in given[:MOST_EVENTS]:
        if not isinstance(event, dict) or event.keys() - {"kind", "ms", "data"}:
            wrong.add("An event has “kind”, “ms” and “data”, and nothing else.")
            continue
        kind, ms, data = event.get("kind"), event.get("ms", 0), event.get("data")
        if not isinstance(kind, str) or not _KIND.fullmatch(kind):
            wrong.add("The kind of an event is a short name in small letters.")
        if type(ms) is not int or not 0 <= ms <= MOST_MS:
            wrong.add(f"The time of an event must be a whole number of ms from 0 to {MOST_MS}.")
        if not _is_flat({} if data is None else data):
            wrong.add(
                f"The data of an event are at most {MOST_EVENT_FIELDS} names with a number, true, false, null or text "
                f"of at most {LONGEST_VALUE} characters."
            )
        if not wrong:
            events.append(ToldEvent(str(kind), {"ms": ms} | (data or {})))
    if len(given) > MOST_EVENTS:
        events.append(ToldEvent("events-left-out", {"count": len(given) - MOST_EVENTS}))
    faults += sorted(wrong)
    return events


def _is_flat(data: Any) -> bool:
    if not isinstance(data, dict) or len(data) > MOST_EVENT_FIELDS or any(len(name) > LONGEST_VALUE for name in data):
        return False
    return all(_is_scalar(value) for value in data.values())


def _is_scalar(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_VALUE
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and abs(value) < 2**53)


def _tab(payload: Mapping[str, Any], faults: list[str]) -> str:
    tab = payload.get("tab")
    if isinstance(tab, str) and _TAB.fullmatch(tab):
        return tab
    faults.append("“tab” must be a name of at most 40 letters, digits, _ and -.")
    return ""


def _whole(value: Any, name: str, most: int, faults: list[str]) -> int | None:
    if type(value) is int and 0 <= value <= most:
        return value
    faults.append(f"“{name}” must be a whole number from 0 to {most}.")
    return None


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"
