"""The anonymisers that come with the portal, compared: their parts, and what was measured of all on the same speech."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from anonymization.methods.contract import Anonymizer, Block, keeps_duration
from anonymization.methods.measured import (
    SHORTFALLS,
    Measurements,
    MethodResults,
    find_measured,
    reaches_voice,
    read_measurements,
)
from anonymization.methods.registry import methods
from common.rounding import fixed
from common.tables import Cell, Column, Table, number_table, plain_table
from evaluation.figures.tradeoff import Kind, SystemPoint
from evaluation.metrics.catalogue import WER
from portal.leaderboard.figures import Drawing, describe_figure, figure_key
from portal.leaderboard.pages import above_chance_note
from portal.leaderboard.selectors import ShownAverage
from speech.encoders import registry as encoders

SLOTS = ("content", "voice", "prosody", "synthesis")
# Of the attacker, as `MethodResults` names them.
ATTACKS = ("ignorant", "lazy_informed", "semi_informed")
_ORIGINAL, _COPIES = "Original speech", "Copies by HiFi-GAN"
_WORDS = ShownAverage("wer", WER, "")


def methods_page() -> dict[str, Any]:
    found = read_measurements()
    marks = {mark for one in found.methods.values() for mark in found.find_shortfalls(one)}
    return {
        "figures": [_figure(drawing) for drawing in list_method_drawings().values()],
        "numbers": numbers_table(found),
        "parts": _parts_table(),
        "about": f"Measured {found.date}: {found.describe_speech()}"
        f"{''.join(f'{mark.capitalize()}: {meaning}. ' for mark, meaning in SHORTFALLS.items() if mark in marks)}"
        "Work: processor time for a second of speech.",
    }


def list_method_drawings() -> dict[str, Drawing]:
    """EER against word errors by slug, one figure an attack, by an encoder and a recogniser that no method uses; the
    semi-informed attacker is one network, trained on each method's speech."""
    found, measured = read_measurements(), list(_measured())
    encoder, recognizer = found.encoders[0], found.recognizers[0]

    def find_eer(one: MethodResults, attack: str) -> float | None:
        rates = getattr(one, attack)
        return rates[encoder] if isinstance(rates, Mapping) else rates

    def point(name: str, eer: float, word_errors: float, kind: Kind = "system") -> SystemPoint:
        words = f"{name}: EER {_percent(eer)} %, word errors {_percent(word_errors)} %"
        return SystemPoint(name, 100 * eer, 100 * word_errors, kind, words=words, link="#numbers")

    drawings = {}
    for attack in ATTACKS:
        unprotected = "semi_informed" if attack == "semi_informed" else "ignorant"
        spoken: list[tuple[str, MethodResults, str, Kind]] = [(_ORIGINAL, found.original, unprotected, "original")]
        spoken += [(method.name, one, attack, "system") for method, one in measured]
        points = tuple(
            point(name, eer, one.word_errors[recognizer], kind)
            for name, one, by, kind in spoken
            if (eer := find_eer(one, by)) is not None
        )
        slug = attack.replace("_", "-")
        drawings[slug] = Drawing(slug, _WORDS, points=points)
    return drawings


def method_rows() -> Iterator[Sequence[Any]]:
    """Parts and numbers of each method, with every digit; the names of the columns first. Error rates are shares."""
    found = read_measurements()
    measures = list(found.measures())
    parts = [name for slot in SLOTS for name in (slot, f"{slot}_state")]
    yield (
        *("method", "title", "version", "fidelity", "keeps_duration", *parts, "intelligible", "voice_reached"),
        *(measure.key for measure in measures),
    )
    for name, one in ((_ORIGINAL, found.original), (_COPIES, found.copied)):
        yield (name, *[None] * (6 + len(parts)), *(measure.read(one) for measure in measures))
    for method in methods():
        measured, own = find_measured(method), _parts(method)
        yield (
            *(method.name, method.title, method.version, getattr(method, "fidelity", ""), keeps_duration(method)),
            *(getattr(own.get(slot), name, None) for slot in SLOTS for name in ("title", "state")),
            measured and found.is_intelligible(measured),
            measured and reaches_voice(measured),
            *(measure.read(measured) for measure in measures),
        )


def numbers_table(found: Measurements) -> Table:
    """What was measured, the original speech first."""
    rows: list[list[Cell | str]] = [
        [Cell(name, marks=marks), *found.row(one)]
        for name, one, marks in (
            (_ORIGINAL, found.original, ()),
            (_COPIES, found.copied, ()),
            *((method.name, one, found.find_shortfalls(one)) for method, one in _measured()),
        )
    ]
    return number_table("Measured on the same speech", ["Method", *found.heads], rows, styles="pin")


def _parts_table() -> Table:
    columns = [Column("method", "Method"), *(Column(slot, slot.capitalize(), kind="text") for slot in SLOTS)]
    rows: list[list[Cell | str]] = []
    for method in methods():
        own = _parts(method)
        marks = [getattr(method, "fidelity", ""), "" if keeps_duration(method) else "other duration"]
        first = Cell(method.name, title=method.title, marks=tuple(mark for mark in marks if mark))
        parts = (own.get(slot) for slot in SLOTS)
        rows.append([first, *(f"{part.title} ({part.state})" if part else "not told" for part in parts)])
    return plain_table("Parts of each method", columns, rows, styles="pin dense")


def _parts(method: Anonymizer) -> dict[str, Block]:
    return {part.slot: part for part in getattr(method, "pipeline", ())}


def _measured() -> Iterator[tuple[Anonymizer, MethodResults]]:
    for method in methods():
        if (one := find_measured(method)) is not None:
            yield method, one


def _figure(drawing: Drawing) -> dict[str, Any]:
    """A figure as `components/figure.html` takes it."""
    mark = figure_key(drawing.description(), "svg").rpartition("/")[2][:12]

    def address(extension: str, **form: str) -> str:
        return f"{reverse('anonymizers:figure', args=[drawing.slug, extension])}?{urlencode({'v': mark} | form)}"

    by = encoders.find_engine(read_measurements().encoders[0]).title
    if drawing.slug == "semi-informed":
        by = "an attacker trained on speech of each method"
    alt = f"EER of the {drawing.slug} attacker against word errors of {len(drawing.points)} kinds of speech."
    rows = ((one.name, fixed(one.eer, 1), fixed(one.utility, 1)) for one in drawing.points)
    words = {
        "title": f"Privacy against word errors, {drawing.slug} attacker",
        "caption": f"EER by {by}. Right: more private; below: more words kept. Word errors are of "
        f"{read_measurements().words} words: their intervals stand in the table below."
        f"{above_chance_note(one.eer for one in drawing.points)}",
        "alt": f"{alt} The numbers follow as a table.",
        "numbers": number_table("The figure in numbers", ["Method", "EER, %", "WER, %"], rows, styles=""),
    }
    return describe_figure(drawing, words, address)


def _percent(share: float) -> str:
    return fixed(100 * share, 1)
