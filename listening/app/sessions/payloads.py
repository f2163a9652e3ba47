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
from collections.abc import Callable, Iterable, Mapping, Sequence
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
MOST_SENTENCES = 20  # about playbacks or events

Check = tuple[Callable[[Any], bool], str]  # whether a value can be used, and what is expected of one
TRUTH: Check = (lambda value: isinstance(value, bool), "true or false")
OBJECT: Check = (lambda value: isinstance(value, Mapping), "an object")


def whole(lowest: int, highest: int) -> Check:
    return lambda value: type(value) is int and lowest <= value <= highest, f"a whole number, {lowest} to {highest}"


def one_of(*known: Any) -> Check:
    return lambda value: value in known and type(value) in map(type, known), f"one of {', '.join(map(str, known))}"


def matching(pattern: re.Pattern[str], words: str) -> Check:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None, words


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


_MS = whole(0, MOST_MS)
_LIST: Check = (lambda value: isinstance(value, list), "a list")
_OF_TAB: Mapping[str, Check] = {
    "tab": matching(re.compile("[A-Za-z0-9_-]{1,40}"), "a name of at most 40 letters, digits, _ and -")
}
_OF_PAGE: Mapping[str, Check] = {**_OF_TAB, "position": whole(0, LAST_POSITION)}
_OF_ALIVE: Mapping[str, Check] = {**_OF_TAB, "events": _LIST}
_OF_ANSWER: Mapping[str, Check] = {
    **_OF_PAGE,
    **dict.fromkeys(("text", "board"), (lambda _: True, "")),
    "answers": (OBJECT[0], "the rating of each task"),
    "client_ms": (lambda value: value is None or _MS[0](value), _MS[1]),
    "is_late": TRUTH,
    "plays": _LIST,
    "events": _LIST,
}
_OF_REPORT: Mapping[str, Check] = {
    **_OF_PAGE,
    "slot": matching(re.compile("[a-z0-9]{1,2}"), "the name of a sample"),
    "what": (
        lambda value: isinstance(value, str) and len(value) <= LONGEST_VALUE,
        f"a text of at most {LONGEST_VALUE} characters",
    ),
    "skip": TRUTH,
    "key": (lambda value: value == "" or _OF_TAB["tab"][0](value), _OF_TAB["tab"][1]),
}
_OF_PLAY: Mapping[str, Check] = {
    "started_ms": _MS,
    "heard_ms": _MS,
    "is_whole": TRUTH,
    "remarks": (
        lambda value: isinstance(value, list) and all(isinstance(one, str) and one in PLAY_NOTES for one in value),
        f"a list of {', '.join(sorted(PLAY_NOTES))}",
    ),
}
_OF_EVENT: Mapping[str, Check] = {
    "kind": matching(re.compile("[a-z][a-z0-9-]{0,29}"), "a short name in small letters"),
    "ms": _MS,
    "data": (
        lambda value: value is None or _is_flat(value),
        f"at most {MOST_EVENT_FIELDS} names with a number, true, false, null or text of at most {LONGEST_VALUE} "
        "characters",
    ),
}


@dataclass(frozen=True)
class Value:
    """What is kept of the answer to one question; see `listening.app.models.Answer`."""

    rating: int | None = None
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)


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
    """An answer to the tasks in `values`, and what the browser tells about how it came about.

    `plays`: fields of `listening.app.models.Play`; `events`: `kind` and `data` of `SessionEvent`.
    """

    tab: str
    position: int
    values: dict[str, Value]
    client_ms: int | None
    is_late: bool
    plays: list[dict[str, Any]]
    events: list[dict[str, Any]]


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
    position = payload.get("position")
    return position if _OF_PAGE["position"][0](position) else None


def read_answers(payload: Mapping[str, Any], *, study: Study, slots: Sequence[str] | None) -> Claim:
    """Return what was answered, on what page, and how.

    Args:
        slots: those of the samples of the trial at `find_position`, None where there is no such trial.

    Raises:
        ProblemsError: with everything that is wrong.
    """
    problems = Problems()
    read = _read(payload, ("tab", "position"), _OF_ANSWER, "", problems)
    position = read.get("position")
    problems.unless(position is None or slots is not None, f"There is no trial {position}.")
    values = _values(read, study, slots or (), problems)
    of_play = {"slot": one_of(*(slots or ())), **_OF_PLAY}
    plays = _rows(read.get("plays", [])[:MOST_PLAYS], tuple(of_play)[:-1], of_play, "play", problems)
    events = _events(read, problems)
    problems.refuse()
    for play in plays:
        play["remarks"] = sorted(set(play.get("remarks", ())))
    return Claim(
        read["tab"], read["position"], values, read.get("client_ms"), read.get("is_late", False), plays, events
    )


def read_alive(payload: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return the tab, and what it has to tell."""
    problems = Problems()
    read = _read(payload, ("tab",), _OF_ALIVE, "", problems)
    events = _events(read, problems)
    problems.refuse()
    return read["tab"], events


def read_report(payload: Mapping[str, Any]) -> Report:
    """Return what failed; without “skip” the trial is skipped, as what cannot be played has to be."""
    problems = Problems()
    read: dict[str, Any] = {"what": "", "skip": True, "key": ""}
    read |= _read(payload, ("tab", "position", "slot"), _OF_REPORT, "", problems)
    if not read["skip"] and read["what"] not in SOUND_PROBLEMS:
        named = ", ".join(SOUND_PROBLEMS)
        problems.append(f"what: expected of a recording that sounds wrong one of {named}, found {read['what']!r}.")
    problems.refuse()
    return Report(is_skip=read.pop("skip"), **read)


def _read(
    given: Any, needed: Iterable[str], table: Mapping[str, Check], where: str, problems: Problems
) -> dict[str, Any]:
    """Return the fields that can be used; every other one, and a needed one that is missing, becomes a problem.

    Args:
        where: what stands before the name of a field in a sentence.
    """
    if not isinstance(given, dict):
        problems.append(f"{where.rstrip(' ,')}: expected an object, found {str(given)[:60]!r}.")
        return {}
    found = {}
    for name, value in (dict.fromkeys(needed) | given).items():
        if name not in table:
            problems.append(f"{where}{str(name)[:60]}: there is no such field; there are: {', '.join(table)}.")
            continue
        is_right, expected = table[name]
        if is_right(value):
            found[name] = value
        else:
            problems.append(f"{where}{name}: expected {expected}, found {str(value)[:60]!r}.")
    return found


def _rows(
    given: Iterable[Any], needed: Iterable[str], table: Mapping[str, Check], where: str, problems: Problems
) -> list[dict[str, Any]]:
    """Return the objects of a list, each read by a table; of their problems the first ones are told."""
    wrong = Problems()
    rows = [_read(one, needed, table, f"{where}, ", wrong) for one in given]
    problems += sorted(set(wrong))[:MOST_SENTENCES]
    return rows


def _events(read: Mapping[str, Any], problems: Problems) -> list[dict[str, Any]]:
    given = read.get("events", [])
    found = _rows(given[:MOST_EVENTS], ("kind",), _OF_EVENT, "event", problems)
    events = [{"kind": one.get("kind"), "data": {"ms": one.get("ms", 0)} | (one.get("data") or {})} for one in found]
    left_out = len(given) - MOST_EVENTS
    return [*events, {"kind": "events-left-out", "data": {"count": left_out}}] if left_out > 0 else events


def _values(payload: Mapping[str, Any], study: Study, slots: Sequence[str], problems: Problems) -> dict[str, Value]:
    asked = {one.key: one for one in study.asked}
    form = study.form
    answers = payload.get("answers", {})
    is_judged = form in (Study.Form.RATING, Study.Form.ANSWERS)
    problems.unless(is_judged or not answers, "Nothing is rated in this study.")
    for key, its_form in (("text", Study.Form.TRANSCRIPTION), ("board", Study.Form.LINKABILITY)):
        problems.unless(form == its_form or key not in payload, f"“{key}” belongs to another kind of study.")
    try:
        if form == Study.Form.TRANSCRIPTION:
            return dict.fromkeys(asked, validate_text(payload.get("text")))
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


def validate_text(given: object) -> Value:
    """Return the transcription as it is stored: the text as it was typed, empty only where nothing was understood.

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
    return Value(text="" if is_nothing else raw, data={"nothing": is_nothing})


def _is_unreadable(sign: str) -> bool:
    """Return whether a character is a lone surrogate or a control character, but no line break or tab.

    Signs of direction and joiners (category Cf) are typed in right-to-left and Indic writing and stay.
    """
    return sign not in "\n\r\t" and unicodedata.category(sign) in {"Cc", "Cs"}
