"""Computes what the sentences say with which the results of a study open.

The sentences, in ``_sentences.html``, say which system has the best mean and whether it differs significantly from the
others, how recognisable speakers are, and on how many listeners and answers that rests. With few listeners none
compares.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import CONTENTS, Results
from listening.app.results import labels
from listening.app.results.labels import CHANCE, EVERY, label_of
from listening.app.results.tables import Record, Shape, as_number, find_column

PAIRS = "original-anonymised"  # the pairs that an attacker would look at


def read_opening(shape: Shape, tasks: Sequence[str]) -> dict[str, Any]:
    """Return what the page of a study opens with: leads for its sentences.

    Args:
        tasks: those that were rated.
    """
    form = str(shape.results.study["form"])
    questions = [one for name, one in shape.results.questions.items() if name in tasks]
    words = shape.records("transcription", scores="common") if form == "transcription" else []
    return {
        "few": shape.few,
        "compared": shape.compared,
        "reference": labels.refer_to_original(shape.results) if shape.results.is_crossed else "unprotected speech",
        "best": [(one, best) for one in questions if not one.compares_voices and (best := lead_of(shape, one.key))],
        "recognised": [read_recognised(shape, one.key) for one in questions if one.compares_voices],
        "linked": _read_linked(shape) if form == "linkability" else None,
        "understood": read_lead(shape, words, "transcription", "wer", is_lowest_first=True),
        "basis": read_basis(shape.results),
    }


def lead_of(shape: Shape, task: str) -> dict[str, Any] | None:
    """Return which system of a task has the highest mean, as `read_lead`."""
    return read_lead(shape, shape.records("summary", task=task, kind="all"), "summary", "mean")


def read_lead(
    shape: Shape, rows: Iterable[Record], table: str, name: str, *, is_lowest_first: bool = False
) -> dict[str, Any] | None:
    """Return which of the rows comes first by its number, beside the original and the others; None without any.

    With few listeners none compares: then it is None, too, unless one system was heard alone.

    Args:
        rows: of systems, with the number `name` of `table`, and with letters (`group`) where it was tested.
    """
    rows, column, reference = list(rows), find_column(CONTENTS[table], name), shape.results.original
    original: Record = next((row for row in rows if row["system"] == reference), {})
    own = [row for row in rows if row["system"] not in (reference, EVERY) and as_number(row.get(name)) is not None]
    own.sort(key=lambda row: float(row[name] or 0), reverse=not is_lowest_first)
    if not own or (shape.few and len(own) > 1):
        return None
    first, *others = own
    return compare_letters(shape, first, others) | {
        "name": _name(shape, first),
        "of": len(own),
        "number": _with_span(first, column),
        "short": labels.number_and_span(first, column)[0],
        "original": "" if shape.few else labels.number_and_span(original, column)[0],
        "last": _name(shape, others[-1]) if others else "",
        "last_number": _with_span(others[-1], column) if others else "",
        "last_short": labels.number_and_span(others[-1], column)[0] if others else "",
    }


def compare_letters(shape: Shape, own: Record, others: Sequence[Record]) -> dict[str, Any]:
    """Return with how many others a system was compared, and the names of those that share a letter with it."""
    tested = [row for row in others if row.get("group")] if own.get("group") else []
    is_spaced = any(" " in str(row.get("group") or "") for row in (own, *tested))
    share = functools.partial(labels.share_a_letter, str(own.get("group") or ""), is_spaced=is_spaced)
    alike = [_name(shape, row) for row in tested if share(str(row["group"]))]
    return {"alike": alike, "tested": len(tested), "are_all_tested": len(tested) == len(others)}


def read_recognised(shape: Shape, task: str) -> dict[str, Any]:
    """Return with which system speakers are hardest to recognise, and with which they were confused.

    A rate above guessing, and not only by chance, is no privacy: such systems are named apart.
    """
    rows = shape.records("detection", task=task)
    known = [row for row in rows if row["system"] != ORIGINAL and as_number(row.get("eer")) is not None]
    reversed_ = [row for row in known if _is_reversed(row)]
    original: Record = next((row for row in rows if row["system"] == ORIGINAL), {})
    return {
        "is_known": bool(known),
        "hardest": read_lead(shape, [row for row in rows if row not in reversed_], "detection", "eer"),
        "doubt": "" if shape.few else labels.privacy_in_doubt(*_rate_and_high(original)),
        "confused": [] if shape.few else [_name(shape, row) for row in reversed_],
        "confused_up_to": labels.percent(max((float(row["eer"] or 0) for row in reversed_), default=0), 0),
    }


def _is_reversed(row: Record) -> bool:
    """Return whether a rate is above guessing, with its whole interval where it has one."""
    rate, low = as_number(row.get("eer")), as_number(row.get("eer_low"))
    return rate is not None and min(rate, rate if low is None else low) > CHANCE


def _rate_and_high(row: Record) -> tuple[float | None, float | None]:
    return as_number(row.get("eer")), as_number(row.get("eer_high"))


def _read_linked(shape: Shape) -> dict[str, Any]:
    """Return how well voices on boards identify the samples of one speaker."""
    rows = {(row["pairs"], row["system"]): row for row in shape.records("pair_detection")}
    column = find_column(CONTENTS["pair_detection"], "eer")
    overall, original = rows.get((PAIRS, EVERY), {}), rows.get(("original-original", EVERY), {})
    rate, high = _rate_and_high(overall)
    auc = as_number(overall.get("auc_low")), as_number(overall.get("auc_high"))
    return {
        "is_known": rate is not None,
        "number": _with_span(overall, column),
        "is_guess": rate is not None and labels.may_be_guessing(rate, as_number(overall.get("eer_low")), high, auc),
        "is_possible": rate is not None and rate < CHANCE,
        "original": _with_span(original, column),
        "doubt": labels.privacy_in_doubt(*_rate_and_high(original)),
    }


def read_basis(results: Results, system: str = "") -> dict[str, Any]:
    """Return on how much everything rests: counts, how many listeners heard a system, how many ratings are of one."""
    found: dict[str, int] = {}
    of_form = {"linkability": ("raw", "pair_detection"), "transcription": ("common", "transcription")}
    for row in results.records(*of_form.get(str(results.study["form"]), ("raw", "summary"))):
        if row["system"] not in (results.original, EVERY) and row.get("listeners") is not None:
            found[row["system"]] = max(found.get(row["system"], 0), int(row["listeners"]))
    return {
        "counts": results.counts,
        "is_simulated": results.study.get("is_simulated"),
        "is_of_system": bool(system),
        "fewest": min(found.values(), default=None),
        "most": max(found.values(), default=None),
        "own": sum(int(row["n"] or 0) for row in results.records("raw", "summary", system=system, kind="all")),
    }


def _name(shape: Shape, row: Record) -> str:
    return label_of(str(row["system"]), shape.system_labels)


def _with_span(row: Record, column: Any) -> str:
    """Return a number with its interval, such as ``46 %, 41 to 50``."""
    return ", ".join(filter(None, labels.number_and_span(row, column)))
