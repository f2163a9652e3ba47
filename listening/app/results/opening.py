"""How the results of a study open: three sentences made from its numbers, and one drawing of them.

The sentences say which system has the best mean and whether it differs significantly from the others, how recognisable
speakers are, and on how many listeners and answers that rests. With few listeners none compares: what is left is what
they say of a system heard alone. The drawing has a panel for each task, a row for each
system: point and interval on an axis, coordinates for SVG. Systems with one letter do not differ significantly;
overlapping intervals decide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from common.tables import Value
from common.wording import counted
from listening.analysis.figures.labels import short_names
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import CONTENTS, Results
from listening.app.results import labels
from listening.app.results.labels import CHANCE, EVERY, label_of
from listening.app.results.tables import Record, Shape, System, as_number, find_column, read_systems
from listening.questions import AskedQuestion

MOST_NAMED = 3  # systems that do not differ from the best one; of more only the number is said
MOST_ROWS = 40  # of a panel; the tables have all
PAIRS = "original-anonymised"  # the pairs that an attacker would look at
ROW, TOP, FOOT = 24, 26, 34  # heights within a panel
WIDTH, LEFT, RIGHT = 360, 122, 290  # of a panel, and of its axis
UNTESTED = "whether systems differ significantly was not tested"
ENOUGH = " that enough listeners rated"


def opening_of(shape: Shape, tasks: Sequence[str]) -> dict[str, Any]:
    """Return `sentences` and `panels` of the page of a study, and what the dashed `lines` in them mean.

    Args:
        tasks: those that were rated.
    """
    form = str(shape.results.study["form"])
    told = {"linkability": _linked, "transcription": _understood}.get(form, _rated)
    said = () if form == "answers" else told(shape, tasks)  # each question has its own
    sentences = [one for one in (shape.few, *said, say_basis(shape.results)) if one]
    panels = [one for one in _panels(shape, tasks, form) if one is not None]
    return {
        "sentences": sentences,
        "panels": panels,
        "has_intervals": any(row["span"] for panel in panels for row in panel["rows"]),
        "lines": sorted({panel["line_words"] for panel in panels if panel["line_words"]}),
    }


# Sentences -----------------------------------------------------------------------------------------


def _rated(shape: Shape, tasks: Sequence[str]) -> Iterator[str]:
    asked = [one for name, one in shape.results.questions.items() if name in tasks]
    found = ((one, _by_mean(shape, one.key)) for one in asked)
    quality = [(one, systems) for one, systems in found if systems and not one.compares_voices]
    if quality and not (shape.few and len(quality[0][1]) > 1):
        yield _best(shape, *quality[0], quality[1:])
    for one in asked:
        if one.compares_voices:
            yield from _recognised(shape, one.key)


def _by_mean(shape: Shape, task: str) -> list[System]:
    """Return the systems of a task, the highest mean first."""
    return _by(read_systems(shape, task), lambda one: one.all.get("mean"))


def _best(
    shape: Shape, task: AskedQuestion, own: Sequence[System], others: Iterable[tuple[AskedQuestion, Sequence[System]]]
) -> str:
    """Return which system has the highest mean of a task, and from which others it does not differ significantly.

    Args:
        own: the systems by their means in the task.
        others: further tasks, each with its systems by their means.
    """
    first, name = own[0], _name(shape, own[0])
    systems = (one.all for one in read_systems(shape, task.key) if one.name == ORIGINAL)
    number = _beside_original(shape, first.all, next(systems, None), "summary", "mean")
    if len(own) == 1:
        return f"One system was rated: {name}, mean {task.key} {number}."
    alike = _alike(shape, own, lambda one: one.all.get("group"))
    said = f"{name} {task.said_of_best} of {len(own)} systems (mean {number}){f' and {alike}' if alike else ''}"
    is_tested = bool(alike)
    for other, (highest, *less) in others:
        mean = _with_span(highest.all, find_column(CONTENTS["summary"], "mean"))
        alike = _alike(shape, (highest, *less), lambda one: one.all.get("group"))
        verb, _, rest = other.said_of_best.partition(" ")
        also = f"it is also {rest}" if verb == "is" else f"it also {verb} {rest}"
        who = also if highest.name == first.name else f"{_name(shape, highest)} {other.said_of_best}"
        said += f"; {who} (mean {mean}){f' and {alike}' if alike else ''}"
        is_tested = is_tested and bool(alike or not less)
    return f"{said}." if is_tested else f"In this sample {said}; {UNTESTED}."


def _recognised(shape: Shape, task: str) -> Iterator[str]:
    """Yield sentences: with which system speakers are hardest to recognise, beside unprotected speech and guessing.

    A rate above guessing, and not only by chance, is no privacy: such systems are named apart.
    """
    systems = read_systems(shape, task)
    known = _by(systems, lambda one: one.detection.get("eer"))
    if not known:
        yield "How recognisable speakers are is not known: ratings of both kinds of pairs are needed."
    if shape.few:
        if len(known) == 1:
            yield _hardest(shape, known, systems)
        return
    own = [one for one in known if not _is_reversed(one.detection)]
    if own:
        yield _hardest(shape, own, systems)
    if confused := [one for one in known if _is_reversed(one.detection)]:
        column = find_column(CONTENTS["detection"], "eer")
        rates = [labels.number_and_span(one.detection, column)[0] for one in confused]
        many = len(confused) > MOST_NAMED
        names = f"{len(confused)} systems" if many else labels.listed([_name(shape, one) for one in confused])
        rate = f"equal error rate{'' if len(confused) == 1 else 's'} "
        rate += f"up to {rates[0]}" if many else labels.listed(rates)
        yield (
            f"With {names} listeners confused speakers more often than by guessing ({rate}, guessing 50 %): this "
            "points to reversed answers or too few of them, not to privacy."
        )


def _is_reversed(row: Record) -> bool:
    """Return whether a rate is above guessing, with its whole interval where it has one."""
    rate, low = as_number(row.get("eer")), as_number(row.get("eer_low"))
    return rate is not None and min(rate, rate if low is None else low) > CHANCE


def _hardest(shape: Shape, own: Sequence[System], systems: Iterable[System]) -> str:
    """Return with which system of `own`, by their rates, speakers are hardest to recognise."""
    original = next((one.detection for one in systems if one.name == ORIGINAL), {})
    name, number = _name(shape, own[0]), _beside_original(shape, own[0].detection, original, "detection", "eer")
    hardest = (
        f"Speakers are hardest to recognise with {name}" if len(own) > 1 else f"Speakers were compared with {name}"
    )
    alike = _alike(shape, own, lambda one: one.detection.get("group"))
    known = as_number(original.get("eer")), as_number(original.get("eer_high"))
    doubt = "" if shape.few else labels.privacy_in_doubt(*known)
    told = f"{hardest} (equal error rate {number}, guessing 50 %)"
    untested = f"; {UNTESTED}" if len(own) > 1 else ""
    return f"{told}{f', which {alike}' if alike else untested}{f'; {doubt}' if doubt else ''}."


def _linked(shape: Shape, _: Sequence[str]) -> Iterator[str]:
    """Yield sentences: how well voices on boards tell the samples of one speaker."""
    rows = {(row["pairs"], row["system"]): row for row in shape.records("pair_detection")}
    column = find_column(CONTENTS["pair_detection"], "eer")
    overall = rows.get((PAIRS, EVERY))
    if overall is None or overall["eer"] is None:
        yield "How well listeners link samples of one speaker is not known."
        return
    low, high = as_number(overall.get("eer_low")), as_number(overall.get("eer_high"))
    auc = as_number(overall.get("auc_low")), as_number(overall.get("auc_high"))
    is_guess = labels.may_be_guessing(float(overall["eer"]), low, high, auc)
    rate = f"equal error rate {_with_span(overall, column)}; 50 % is a guess"
    what = "Linking an unprotected sample with an anonymised one of the same speaker by ear"
    if shape.few:
        yield f"{what}: {rate}."
        return
    how = (
        "cannot be distinguished from guessing"
        if is_guess
        else "is possible"
        if float(overall["eer"]) < CHANCE
        else "fails"
    )
    yield f"{what} {how} ({rate})."
    original = rows.get(("original-original", EVERY), {})
    known, high = as_number(original.get("eer")), as_number(original.get("eer_high"))
    doubt = labels.privacy_in_doubt(known, high)
    said = (
        f"Two unprotected samples of one speaker are linked with an equal error rate of {_with_span(original, column)}"
    )
    yield f"{said}{f'; {doubt}' if doubt else ''}." if known is not None else f"{doubt[:1].upper()}{doubt[1:]}."


def _understood(shape: Shape, _: Sequence[str]) -> Iterator[str]:
    """Yield sentences: of which system listeners understood most words, and of which fewest."""
    rows = shape.records("transcription", scores="common")
    own = [row for row in rows if row["system"] not in (ORIGINAL, EVERY) and row["wer"] is not None]
    if not own or (shape.few and len(own) > 1):
        return
    own.sort(key=lambda row: float(row["wer"] or 0))
    column = find_column(CONTENTS["transcription"], "wer")
    first, last = own[0], own[-1]
    named = lambda row: label_of(str(row["system"]), shape.system_labels)  # noqa: E731
    best = (
        f"has the lowest word error rate of {len(own)} {shape.compared}"
        if len(own) > 1
        else f"is the one {shape.compared.removesuffix('s')} that was heard"
    )
    original = next((row for row in rows if row["system"] == ORIGINAL), None)
    rate = _beside_original(shape, first, original, "transcription", "wer")
    if len(own) == 1:
        yield f"{named(first)} {best} (word error rate {rate})."
        return
    yield (
        f"In this sample {named(first)} {best} ({rate}) and {named(last)} the highest ({_with_span(last, column)}); "
        f"{UNTESTED}."
    )


def say_basis(results: Results, system: str = "") -> str:
    """Return on how many listeners and answers everything rests, and how many of the ratings are of a system."""
    counts = results.counts
    simulated = "simulated " if results.study.get("is_simulated") else ""
    answers = ((one, counts.get(f"{one}s")) for one in labels.ANSWERS)
    said = labels.listed([counted(count, one) for one, count in answers if count])
    listeners = counted(counts.get("listeners", 0), f"{simulated}listener")
    listeners += "" if system else _range_of_listeners(results)
    out = counts.get("excluded_sessions", 0)
    basis = "The study rests on" if system else "This rests on"
    rests = f"{basis} {listeners} and {said}" if said else f"{basis} {listeners}"
    own = sum(int(row["n"] or 0) for row in results.records("raw", "summary", system=system, kind="all"))
    rests += f", {own:,} of them of this system" if system and own else ""
    told = f"{counted(out, 'session')} {'was' if out == 1 else 'were'}" if out else "no session was"
    missed = "" if system else labels.missed_controls(results)
    return (
        f"{rests}; {told} left out.{f' Control trials missed in the sessions that count: {missed}.' if missed else ''}"
    )


def _range_of_listeners(results: Results) -> str:
    """Return how many listeners heard each system, as `` (24 to 26 for each system)``; empty where all heard all."""
    found: dict[str, int] = {}
    of_form = {"linkability": ("raw", "pair_detection"), "transcription": ("common", "transcription")}
    for row in results.records(*of_form.get(str(results.study["form"]), ("raw", "summary"))):
        if row["system"] not in (ORIGINAL, EVERY) and row.get("listeners") is not None:
            found[row["system"]] = max(found.get(row["system"], 0), int(row["listeners"]))
    ends = list(dict.fromkeys(find(found.values()) for find in (min, max))) if found else []
    if not ends or ends == [results.counts.get("listeners")]:
        return ""
    return f" ({' to '.join(map(str, ends))} for each system)"


def _by(systems: Iterable[System], value: Any) -> list[System]:
    """Return those beside the original that have a value, the highest first."""
    known = [one for one in systems if one.name != ORIGINAL and as_number(value(one)) is not None]
    return sorted(known, key=lambda one: -float(value(one)))


def _alike(shape: Shape, ordered: Sequence[System], group: Any) -> str:
    """Return from what the first of some systems differs, such as ``does not differ significantly from B2``.

    Args:
        group: takes a system and gives its letters; without any, nothing is known and nothing said.
    """
    first, others = ordered[0], [one for one in ordered[1:] if group(one)]
    if not group(first) or not others:
        return ""
    is_spaced = any(" " in str(group(one) or "") for one in ordered)
    alike = [
        _name(shape, one)
        for one in others
        if labels.share_a_letter(str(group(first)), str(group(one)), is_spaced=is_spaced)
    ]
    if not alike:
        return f"differs significantly from all others{'' if len(others) == len(ordered) - 1 else ENOUGH}"
    named = labels.listed(alike) if len(alike) <= MOST_NAMED else _count(len(alike), len(others))
    return f"does not differ significantly from {named}"


def _count(alike: int, others: int) -> str:
    return f"any of the {others} others" if alike == others else f"{alike} of the {others} others"


def _name(shape: Shape, system: System) -> str:
    return label_of(system.name, shape.system_labels)


def _beside_original(shape: Shape, row: Record, original: Record | None, table: str, name: str) -> str:
    """Return ``46 %, 41 to 50; unprotected speech 9 %``, say; with few listeners the number alone."""
    column = find_column(CONTENTS[table], name)
    number = _with_span(row, column)
    if shape.few or not original or original.get(name) is None:
        return number
    reference = "the original" if shape.results.is_crossed else "unprotected speech"
    return f"{number}; {reference} {labels.number_and_span(original, column)[0]}"


def _with_span(row: Record, column: Any) -> str:
    """Return a number with its interval, such as ``46 %, 41 to 50``."""
    return ", ".join(filter(None, labels.number_and_span(row, column)))


# The drawing ---------------------------------------------------------------------------------------


def _panels(shape: Shape, tasks: Sequence[str], form: str) -> Iterator[dict[str, Any] | None]:
    if form == "linkability":
        rows = [row for row in shape.records("pair_detection") if row["system"] == EVERY]
        named = {str(row["pairs"]): labels.WORDS["pairs"].get(str(row["pairs"]), str(row["pairs"])) for row in rows}
        short = labels.METHOD["words"]["pairs_short"]
        shown = [(short.get(pairs, pairs), named[pairs], "", row) for row in rows if (pairs := str(row["pairs"]))]
        yield _panel("Linking by ear: EER", shown, "pair_detection", "eer", (0.0, 0.7), CHANCE, "guessing")
    elif form == "transcription":
        rows = [row for row in shape.records("transcription", scores="common") if row["system"] != EVERY]
        yield _panel("Words not understood: WER", _named(shape, rows), "transcription", "wer", None, None, "")
    for task in tasks:
        systems = read_systems(shape, task)
        title = shape.results.questions[task].title
        if shape.results.questions[task].compares_voices:
            rows = [dict(one.detection, system=one.name) for one in systems]
            yield _panel(f"{title}: EER", _named(shape, rows), "detection", "eer", (0.0, 0.7), CHANCE, "guessing")
        else:
            scale = shape.results.study["scale"].get(task, (1, 10)) if shape.scores != "normalised" else (0.0, 1.0)
            rows = [dict(one.all, system=one.name) for one in systems]
            mean = next((as_number(row.get("mean")) for row in rows if row["system"] == ORIGINAL), None)
            yield _panel(f"{title}: mean", _named(shape, rows), "summary", "mean", scale, mean, "unprotected speech")


Shown = tuple[str, str, str, Mapping[str, Value]]  # short name, whole name, address, row


def _named(shape: Shape, rows: Sequence[Mapping[str, Value]]) -> list[Shown]:
    names = {str(row["system"]): label_of(str(row["system"]), shape.system_labels) for row in rows}
    short = short_names(names)
    return [(short[name], names[name], shape.reader.system(name), row) for row in rows if (name := str(row["system"]))]


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not below it; 0.5 for nothing to reach."""
    if least <= 0:
        return 0.5
    power = float(10 ** math.floor(math.log10(least)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least)


def _panel(
    title: str,
    shown: Sequence[Shown],
    table: str,
    name: str,
    scale: Sequence[float] | None,
    line: float | None,
    line_words: str,
) -> dict[str, Any] | None:
    """Return a row for each that has a number, the original first and the highest next; None where none has any.

    Args:
        scale: ends of the axis, which goes on to what the numbers reach; from 0 where it is None.
        line: of what all are compared with, as `line_words` say.
    """
    known = [one for one in shown if as_number(one[3].get(name)) is not None]
    if not known:
        return None
    known.sort(key=lambda one: (one[3].get("system") != ORIGINAL, -float(one[3][name] or 0)))
    column = find_column(CONTENTS[table], name)
    ends = [as_number(row.get(f"{name}{end}")) for *_, row in known for end in ("", "_low", "_high")]
    most = max(one for one in ends if one is not None)
    first, last = (scale[0], max(scale[1], most)) if scale else (0.0, 2 * _round_step(most / 2))

    def x(value: float) -> float:
        return round(LEFT + min(1.0, max(0.0, (value - first) / (last - first))) * (RIGHT - LEFT), 1)

    rows = []
    for place, (short, whole, link, row) in enumerate(known[:MOST_ROWS]):
        value, low, high = (as_number(row.get(f"{name}{end}")) for end in ("", "_low", "_high"))
        number, span = labels.number_and_span(row, column)
        rows.append(
            {
                "name": short,
                "link": link,
                "y": TOP + ROW * place + ROW // 2,
                "x": x(float(value or 0)),
                "span": None if low is None or high is None else (x(low), x(high)),
                "number": number,
                "role": "original" if row.get("system") == ORIGINAL else "own",
                "told": f"{whole}: {number}{f', {span}' if span else ''}",
            }
        )
    floor = TOP + ROW * len(rows)
    marks = [first, CHANCE if column.is_share and scale else (first + last) / 2]
    marks += [] if column.is_share and scale and last <= scale[1] else [last]
    factor = 100 if column.is_share else 1
    return {
        "title": title,
        "rows": rows,
        "ticks": [(x(mark), f"{factor * mark:.3g}{' %' if column.is_share else ''}") for mark in marks],
        "line": None if line is None else x(line),
        "line_words": line_words if line is not None else "",
        "width": WIDTH,
        "height": floor + FOOT,
        "left": LEFT,
        "right": RIGHT,
        "floor": floor,
        "top": TOP,
        "end": WIDTH,
        "left_out": max(0, len(known) - MOST_ROWS),
    }
