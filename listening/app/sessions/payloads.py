"""What a browser sends about a trial, read strictly: JSON in, a `Claim` or everything that is wrong at once out.

**Strictly** means that nothing is guessed or repaired: a number is a JSON integer (never true, never 7.0), text has no
characters that a database cannot keep, and a name that is not known here is refused. What the browser says about
playing and about events is bounded in number and length; what goes beyond the bounds is left out and counted, since
nobody shall lose an answer for it. Nothing understood is an answer of its own, which somebody has to give on purpose; a
transcription is kept as it was typed.

**Boards** (`validate_board`). A point on a board is a list of one or two coordinates in [0, 1], as many as the study's
board has dimensions: the first from the left edge to the right one, the second from the top edge to the bottom one.
Both edges are equally long, so distances on a board of two dimensions are those on a unit square, whose diagonal is √2.
What is kept of a board (`Answer.data`): ``{"speakers", "samples": {slot: sample}, "moves", "left_out"}``, and of each
sample ``{"at", "group", "plays", "moves", "first", "first_ms", "last_ms"}``, where `moves` is their number. `first` and
the times are read off the moves here and not taken from the browser. `left_out` counts moves beyond those that are
kept.

Conventions: times of a board are ms since it appeared, by the browser's clock.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from common.errors import ProblemsError
from listening.app.models import Study
from listening.app.sessions.attention import MOST_PLAYS
from listening.app.studies.settings import Problems
from listening.questions import REFERENCE, AskedQuestion, Kind

MOST_BYTES = 64 << 10
MOST_BYTES_OF_BOARD = 256 << 10  # with every move of sixteen samples
MOST_EVENTS = 200
MOST_EVENT_FIELDS = 8
LONGEST_VALUE = 200
LAST_POSITION = 32767
MOST_MS = 7 * 24 * 3600 * 1000
SOUND_PROBLEMS = ("silence", "cut-off", "noise", "other")  # of a recording that loads but sounds wrong
PLAY_NOTES = frozenset({"muted", "rate", "seek", "hidden", "stopped", "suspended", "underrun"})
FLAT_DATA = (
    f"The data of an event are at most {MOST_EVENT_FIELDS} names with a number, true, false, null or text of at most "
    f"{LONGEST_VALUE} characters."
)
_TAB = re.compile(r"[A-Za-z0-9_-]{1,40}")
_KIND = re.compile(r"[a-z][a-z0-9-]{0,29}")
_SLOT = re.compile(r"[a-z0-9]{1,2}")
_ANSWER_KEYS = frozenset({"tab", "position", "answers", "text", "board", "client_ms", "is_late", "plays", "events"})


@dataclass(frozen=True)
class Value:
    """What is kept of the answer to one question; see `listening.app.models.Answer`."""

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
    """That a recording fails: it cannot be played, or it sounds wrong (`what` is one of `SOUND_PROBLEMS`).

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
    """Return the JSON object of a request's body.

    Raises:
        ProblemsError: it is too long, not UTF-8, not JSON, not an object, nested too deeply or has impossible text.
    """
    if len(body) > MOST_BYTES_OF_BOARD:
        raise ProblemsError([f"The request has more than {MOST_BYTES_OF_BOARD >> 10} kB."])
    try:
        text = body.decode()
        payload = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text:
            json.dumps(payload, ensure_ascii=False).encode()  # fails for half a character
            if "\\u0000" in text:
                raise ValueError
    except RecursionError:
        raise ProblemsError(["The request is nested too deeply."]) from None
    except ValueError:
        raise ProblemsError(["The request is not JSON in UTF-8 with text and finite numbers."]) from None
    if not isinstance(payload, dict):
        raise ProblemsError(["The request is not a JSON object."])
    return payload


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def find_position(payload: Mapping[str, Any]) -> int | None:
    """Return the position of the trial that a request names; None where it names none that can be."""
    return _whole_number(payload.get("position"), LAST_POSITION)


def read_answers(payload: Mapping[str, Any], *, study: Study, slots: Sequence[str] | None) -> Claim:
    """Return what was answered, on what page, and how.

    Args:
        slots: those of the samples of the trial at `find_position`, None where there is no such trial.

    Raises:
        ProblemsError: with everything that is wrong.
    """
    problems = _unknown(payload, _ANSWER_KEYS)
    tab = _name(payload.get("tab"), "tab", problems)
    position = _whole(payload.get("position"), "position", LAST_POSITION, problems)
    problems.unless(position is None or slots is not None, f"There is no trial {position}.")
    values = _values(payload, study, slots or (), problems)
    client_ms = payload.get("client_ms")
    if client_ms is not None:
        client_ms = _whole(client_ms, "client_ms", MOST_MS, problems)
    is_late = payload.get("is_late", False)
    problems.unless(isinstance(is_late, bool), "“is_late” must be true or false.")
    plays = _plays(payload.get("plays", []), slots or (), problems)
    events = _events(payload.get("events", []), problems)
    problems.refuse()
    return Claim(tab, position or 0, values, client_ms, is_late, plays, events)


def read_alive(payload: Mapping[str, Any]) -> tuple[str, list[ToldEvent]]:
    """Return the tab, and what it has to tell."""
    problems = _unknown(payload, {"tab", "events"})
    read = _name(payload.get("tab"), "tab", problems), _events(payload.get("events", []), problems)
    problems.refuse()
    return read


def read_tab(payload: Mapping[str, Any]) -> str:
    return read_alive({key: value for key, value in payload.items() if key != "events"})[0]


def read_report(payload: Mapping[str, Any]) -> Report:
    """Return what failed; without “skip” the trial is skipped, as what cannot be played has to be."""
    problems = _unknown(payload, {"tab", "position", "slot", "what", "skip", "key"})
    tab = _name(payload.get("tab"), "tab", problems)
    position = _whole(payload.get("position"), "position", LAST_POSITION, problems)
    slot, what = payload.get("slot"), payload.get("what", "")
    problems.unless(isinstance(slot, str) and _SLOT.fullmatch(slot), "“slot” must name a sample.")
    is_short = isinstance(what, str) and len(what) <= LONGEST_VALUE
    problems.unless(is_short, f"“what” must be text of at most {LONGEST_VALUE} characters.")
    is_skip, key = payload.get("skip", True), payload.get("key", "")
    if problems.unless(isinstance(is_skip, bool), "“skip” must be true or false.") and not is_skip:
        named = ", ".join(SOUND_PROBLEMS)
        problems.unless(what in SOUND_PROBLEMS, f"“what” of a recording that sounds wrong must be one of: {named}.")
    key = _name(key, "key", problems) if key != "" else ""
    problems.refuse()
    return Report(tab, position or 0, str(slot), what, is_skip, key)


def _values(payload: Mapping[str, Any], study: Study, slots: Sequence[str], problems: Problems) -> dict[str, Value]:
    asked = {one.key: one for one in study.asked}
    form = study.form
    answers = payload.get("answers", {})
    if not problems.unless(isinstance(answers, dict), "“answers” must give the rating of each task."):
        answers = {}
    is_judged = form in (Study.Form.RATING, Study.Form.ANSWERS)
    problems.unless(is_judged or not answers, "Nothing is rated in this study.")
    for key, its_form in (("text", Study.Form.TRANSCRIPTION), ("board", Study.Form.LINKABILITY)):
        problems.unless(form == its_form or key not in payload, f"“{key}” belongs to another kind of study.")
    try:
        if form == Study.Form.TRANSCRIPTION:
            read = validate_text(payload.get("text"))
            return {key: Value(text=read.text, data=read.data) for key in asked}
        if form == Study.Form.LINKABILITY:
            dimensions, has_groups = study.board_dimensions, study.board_groups
            data = validate_board(payload.get("board"), slots=slots, dimensions=dimensions, has_groups=has_groups)
            return {key: Value(data=data) for key in asked}
    except ProblemsError as error:
        problems += error.problems
        return {}
    return _judgements(answers, asked, study.pages, slots, problems)


def _judgements(
    answers: Mapping[str, Any], asked: Mapping[str, AskedQuestion], pages: str, slots: Sequence[str], problems: Problems
) -> dict[str, Value]:
    values = {}
    for key, given in answers.items():
        if key not in asked:
            problems.append(f"“{_short(key)}” is not asked in this study.")
        elif asked[key].kind == Kind.SLIDER:
            values[key] = _sliders(given, asked[key], [slot for slot in slots if slot != REFERENCE], problems)
        elif problems.unless(_is_rating(given, asked[key]), f"The rating of {key} {_range_of(asked[key])}"):
            values[key] = Value(rating=given)
    if pages == Study.Pages.TOGETHER:
        problems.unless(answers.keys() >= asked.keys(), _("Please answer every question on this page first."))
    elif pages == Study.Pages.SEPARATE:
        problems.unless(len(answers) == 1, _("Please answer only the question on this page."))
    return values


def _sliders(given: Any, asked: AskedQuestion, slots: Sequence[str], problems: Problems) -> Value:
    """Return the ratings of all samples but the reference, by slot."""
    if not isinstance(given, dict) or given.keys() != set(slots):
        problems.append(f"“{asked.key}” must rate each of these samples and no other: {', '.join(slots) or 'none'}.")
        return Value()
    wrong = [slot for slot in slots if not _is_rating(given[slot], asked)]
    problems.unless(not wrong, f"The rating of {asked.key} for sample {', '.join(wrong)} {_range_of(asked)}")
    return Value(data={"ratings": {slot: given[slot] for slot in slots}})


def _is_rating(given: Any, asked: AskedQuestion) -> bool:
    lowest, highest = asked.ends
    return type(given) is int and lowest <= given <= highest


def _range_of(asked: AskedQuestion) -> str:
    return "must be a whole number from {} to {}.".format(*asked.ends)


def _plays(given: Any, slots: Sequence[str], problems: Problems) -> list[ToldPlay]:
    if not problems.unless(isinstance(given, list), "“plays” must be a list."):
        return []
    plays, wrong = [], Problems()
    for play in given[:MOST_PLAYS]:
        if not isinstance(play, dict) or play.keys() - {"slot", "started_ms", "heard_ms", "is_whole", "remarks"}:
            wrong.append("A play has “slot”, “started_ms”, “heard_ms”, “is_whole” and “remarks”, and nothing else.")
            continue
        slot, is_whole, remarks = play.get("slot"), play.get("is_whole"), play.get("remarks", [])
        started_ms, heard_ms = (_whole_number(play.get(name), MOST_MS) for name in ("started_ms", "heard_ms"))
        wrong.unless(isinstance(slot, str) and slot in slots, "A play names a sample that this trial does not have.")
        wrong.unless(
            None not in (started_ms, heard_ms), f"The times of a play must be whole numbers of ms from 0 to {MOST_MS}."
        )
        wrong.unless(isinstance(is_whole, bool), "“is_whole” of a play must be true or false.")
        are_known = isinstance(remarks, list) and all(isinstance(one, str) and one in PLAY_NOTES for one in remarks)
        wrong.unless(are_known, f"A note on a play must be one of: {', '.join(sorted(PLAY_NOTES))}.")
        if not wrong:
            plays.append(ToldPlay(slot, started_ms, heard_ms, is_whole, sorted(set(remarks))))  # type: ignore[arg-type]
    problems += sorted(set(wrong))
    return plays


def _events(given: Any, problems: Problems) -> list[ToldEvent]:
    if not problems.unless(isinstance(given, list), "“events” must be a list."):
        return []
    events, wrong = [], Problems()
    for event in given[:MOST_EVENTS]:
        if not isinstance(event, dict) or event.keys() - {"kind", "ms", "data"}:
            wrong.append("An event has “kind”, “ms” and “data”, and nothing else.")
            continue
        kind, ms, data = event.get("kind"), event.get("ms", 0), event.get("data")
        is_named = isinstance(kind, str) and _KIND.fullmatch(kind)
        wrong.unless(is_named, "The kind of an event is a short name in small letters.")
        is_time = _whole_number(ms, MOST_MS) is not None
        wrong.unless(is_time, f"The time of an event must be a whole number of ms from 0 to {MOST_MS}.")
        wrong.unless(_is_flat({} if data is None else data), FLAT_DATA)
        if not wrong:
            events.append(ToldEvent(str(kind), {"ms": ms} | (data or {})))
    if len(given) > MOST_EVENTS:
        events.append(ToldEvent("events-left-out", {"count": len(given) - MOST_EVENTS}))
    problems += sorted(set(wrong))
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


def _unknown(payload: Mapping[str, Any], known: Collection[str]) -> Problems:
    return Problems(f"“{_short(key)}” is not known here." for key in payload if key not in known)


def _name(value: Any, name: str, problems: Problems) -> str:
    is_name = isinstance(value, str) and _TAB.fullmatch(value)
    return value if problems.unless(is_name, f"“{name}” must be a name of at most 40 letters, digits, _ and -.") else ""


def _whole(value: Any, name: str, most: int, problems: Problems) -> int | None:
    found = _whole_number(value, most)
    problems.unless(found is not None, f"“{name}” must be a whole number from 0 to {most}.")
    return found


def _whole_number(given: Any, most: int) -> int | None:
    return given if type(given) is int and 0 <= given <= most else None


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"


GROUPS = "ABCDEFGHIJKLMNOP"
MOVES_AT_MOST = 2000
LONGEST_MS = 24 * 3600 * 1000
WAYS = frozenset({"drag", "tap", "keys", "list"})
DECIMALS = 4


def validate_board(given: object, *, slots: Sequence[str], dimensions: int, has_groups: bool) -> dict[str, object]:
    """Return the board as it is stored.

    Args:
        given: ``{"speakers": 4, "samples": {"1": {"at": [0.2, 0.7], "group": "A", "plays": 2}, …}, "moves": [{"slot":
            "1", "ms": 1200, "by": "drag" | "tap" | "keys" | "list", "from": null | [x, y], "to": [x, y]}, …],
            "left_out": 0}``, decoded from JSON; ``group`` only where the study lets groups be drawn.
        slots: those of the trial's samples.
        dimensions: 1 or 2.

    Raises:
        ProblemsError: with everything that is wrong, for the evaluator to read.
    """
    if not isinstance(given, Mapping) or not isinstance(given.get("samples"), Mapping):
        raise ProblemsError([_("This answer is not a board.")])
    problems = Problems()
    placed = _samples(given["samples"], slots, dimensions, has_groups, problems)
    speakers = _whole_number(given.get("speakers"), len(slots)) or 0
    how_many = _("Say how many different speakers you hear: a whole number from 1 to %(most)d.")
    problems.unless(speakers, how_many % {"most": len(slots)})
    moves = _moves(given.get("moves"), slots, dimensions, problems)
    left_out = _whole_number(given.get("left_out", 0), 10**6)
    problems.unless(left_out is not None, _("The number of moves left out is not a whole number."))
    if not problems and has_groups:
        _check_groups(placed, speakers, problems)
    if not problems and not left_out:  # a whole record of moves ends where the samples lie
        last = {move["slot"]: move["to"] for move in moves}
        is_led_to = all(last.get(slot) == sample["at"] for slot, sample in placed.items())
        problems.unless(is_led_to, _("The record of moves does not match the positions of the samples."))
    problems.refuse()
    trails = {slot: [move for move in moves if move["slot"] == slot] for slot in slots}
    samples = {slot: placed[slot] | _trail(trails[slot]) for slot in slots}
    return {"speakers": speakers, "samples": samples, "moves": moves, "left_out": left_out}


def _samples(
    given: Mapping[str, Any], slots: Sequence[str], dimensions: int, has_groups: bool, problems: Problems
) -> dict[str, dict[str, Any]]:
    if missing := [slot for slot in slots if slot not in given]:
        told = ngettext("Sample %(names)s is not placed yet.", "Samples %(names)s are not placed yet.", len(missing))
        problems.append(told % {"names": ", ".join(missing)})
    problems.unless(set(given) <= set(slots), _("The answer names samples that are not part of this board."))
    return {slot: _sample(slot, given[slot], dimensions, has_groups, problems) for slot in slots if slot in given}


def _sample(slot: str, given: Any, dimensions: int, has_groups: bool, problems: Problems) -> dict[str, Any]:
    given = given if isinstance(given, Mapping) else {}
    at, plays = _point(given.get("at"), dimensions), _whole_number(given.get("plays"), 1000)
    group = given.get("group", "")
    name = {"name": slot}
    problems.unless(at is not None, _("Sample %(name)s has no position on the board.") % name)
    problems.unless(plays, _("Sample %(name)s has not been listened to yet.") % name)
    if has_groups:
        problems.unless(group in [*GROUPS], _("Sample %(name)s belongs to no group yet.") % name)
    else:
        problems.unless(group in ("", None), _("This study does not ask for groups."))
    return {"at": at, "group": group if has_groups else "", "plays": plays}


def _moves(given: Any, slots: Sequence[str], dimensions: int, problems: Problems) -> list[dict[str, Any]]:
    is_record = isinstance(given, list) and len(given) <= MOVES_AT_MOST
    if not problems.unless(is_record, _("The record of moves is missing or too long.")):
        return []
    moves = [move for one in given if (move := _move(one, slots, dimensions)) is not None]
    times = [move["ms"] for move in moves]
    is_whole = len(moves) == len(given) and times == sorted(times)
    problems.unless(is_whole, _("The record of moves cannot be read."))
    return moves


def _move(given: Any, slots: Sequence[str], dimensions: int) -> dict[str, Any] | None:
    """Return one change of place; ``from`` is None when the sample came from beside the board."""
    if not isinstance(given, Mapping):
        return None
    slot, way, at_ms = given.get("slot"), given.get("by"), _whole_number(given.get("ms"), LONGEST_MS)
    start, end = given.get("from"), _point(given.get("to"), dimensions)
    come_from = None if start is None else _point(start, dimensions)
    is_known = isinstance(slot, str) and slot in slots and isinstance(way, str) and way in WAYS
    if not is_known or at_ms is None or end is None or (start is not None and come_from is None):
        return None
    return {"slot": slot, "ms": at_ms, "by": way, "from": come_from, "to": end}


def _check_groups(placed: Mapping[str, Mapping[str, Any]], speakers: int, problems: Problems) -> None:
    drawn = len({sample["group"] for sample in placed.values()})
    groups = ngettext("%(n)d group", "%(n)d groups", drawn) % {"n": drawn}
    heard = ngettext("%(n)d speaker", "%(n)d speakers", speakers) % {"n": speakers}
    told = _("You formed %(groups)s, but say that you hear %(speakers)s.") % {"groups": groups, "speakers": heard}
    problems.unless(drawn == speakers, told)


def _trail(moves: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return of the moves of a sample how many there are, the first place and the times."""
    known = {"first": moves[0]["to"], "first_ms": moves[0]["ms"], "last_ms": moves[-1]["ms"]} if moves else {}
    return {"moves": len(moves)} | known


def _point(given: Any, dimensions: int) -> list[float] | None:
    if not isinstance(given, list) or len(given) != dimensions:
        return None
    is_point = all(type(value) in (int, float) and 0 <= value <= 1 for value in given)  # which no NaN passes
    return [round(float(value), DECIMALS) for value in given] if is_point else None


LONGEST = 1000


@dataclass(frozen=True)
class Transcript:
    """`text` as it was typed, empty exactly if `is_nothing`: the evaluator says that nothing was understood."""

    text: str
    is_nothing: bool

    @property
    def data(self) -> dict[str, bool]:
        """Return what is stored with the text in `Answer.data`."""
        return {"nothing": self.is_nothing}


def validate_text(given: object) -> Transcript:
    """Return the transcription as it is stored.

    Args:
        given: ``{"raw": "what was typed", "nothing": false}``, decoded from JSON; ``nothing`` true with an empty text
            for "I understood nothing".

    Raises:
        ProblemsError: with everything that is wrong, for the evaluator to read.
    """
    if not isinstance(given, Mapping):
        raise ProblemsError([_("This answer is not a transcription.")])
    raw, is_nothing = given.get("raw"), given.get("nothing", False)
    if not isinstance(raw, str) or not isinstance(is_nothing, bool):
        raise ProblemsError([_("This answer is not a transcription.")])
    problems, has_words = Problems(), bool(raw.strip())
    too_long = _("The text has %(found)d characters; at most %(most)d are taken.")
    problems.unless(len(raw) <= LONGEST, too_long % {"found": len(raw), "most": LONGEST})
    unreadable = _("The text has characters that nobody can type, such as control characters.")
    problems.unless(not any(_is_unreadable(sign) for sign in raw), unreadable)
    if is_nothing:
        both = _("You wrote something and said that you understood nothing. Please keep one of the two.")
        problems.unless(not has_words, both)
    else:
        problems.unless(has_words, _("Write what you heard, or say that you understood nothing."))
    problems.refuse()
    return Transcript("" if is_nothing else raw, is_nothing)


def _is_unreadable(sign: str) -> bool:
    """Return whether a character is a lone surrogate or a control character, but no line break or tab.

    Signs of direction and joiners (category Cf) are typed in right-to-left and Indic writing and stay.
    """
    return sign not in "\n\r\t" and unicodedata.category(sign) in {"Cc", "Cs"}
