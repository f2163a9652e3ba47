"""Rates of systems with intervals: equal error rates of listeners, of pairs on boards, and word error rates.

Overlapping systems are not ranked: rows are sorted, and letters say which cannot be told apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.figures.numbers import NumberTable
from listening.analysis.figures.dots import Dot, DotPlot, Line, paint_dots
from listening.analysis.figures.figure import Figure
from listening.analysis.figures.sheet import size_of
from listening.analysis.figures.view import EVERY_SYSTEM, Record, View, has_interval, numbers_of, ordered
from listening.analysis.figures.words import listed, percent, sentence, short_group
from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Scores

_CHANCE = 0.5
_EER_COLUMNS = ("system", "n_target", "n_nontarget", "listeners", "eer", "eer_low", "eer_high", "auc", "group")
_PAIR_COLUMNS = ("pairs", "system", "n_target", "n_nontarget", "listeners", "boards", "eer", "eer_low", "eer_high")
_WER_COLUMNS = ("system", "n", "listeners", "words", "wer", "wer_low", "wer_high", "recogniser_wer")
# The privacy-critical ones first.
PAIRS = ("original-anonymised", "anonymised-anonymised", "original-original")


def eer_figures(view: View, scores: Scores, task: str) -> list[Figure]:
    """Equal error rate of each system of a task."""
    records = {name: row for name, row in view.by_system(scores, "detection", task).items() if row["eer"] is not None}
    if not records:
        return []
    rows = [records[name] for name in ordered(records, "eer")]
    plot = DotPlot(
        dots=[_eer_dot(view, row) for row in rows],
        axis=f"{sentence(task)}: EER of listeners, %",
        heads=("EER, %", "group") if any(row["group"] for row in rows) else ("EER, %",),
        lines=(Line(_CHANCE, "chance"),),
        dot_words="system, interval" if has_interval(rows, "eer") else "system",
        anchor_words="originals",
    )
    return [
        Figure(
            scores=scores,
            name=f"eer-{task}",
            title=f"{sentence(task)}: equal error rate of each system",
            caption=view.caption(
                view.kind_words(scores, task),
                meaning_of(task),
                "Systems that share a letter cannot be told apart." if len(plot.heads) > 1 else "",
                detection_size(rows),
                view.interval_words(are_drawn=has_interval(rows, "eer")),
            ),
            alt=f"{sentence(task)}, equal error rates, {view.level_words} intervals in brackets: "
            f"{listed([rate_text(view, row) for row in rows])}.",
            size=size_of(plot.inches, is_simulated=view.is_simulated),
            paint=lambda sheet: paint_dots(sheet, plot),
            count=lambda: NumberTable(*numbers_of(view, rows, _EER_COLUMNS)),
            task=task,
            is_simulated=view.is_simulated,
        )
    ]


def meaning_of(task: str) -> str:
    """What a miss and a false alarm are, and which way is better."""
    if task == "verifiability":
        return (
            "Listeners tell pairs of the same speaker from pairs of different ones, speech of one system; near 50 % is "
            "private. Of originals, low: listeners can do the task."
        )
    return "Listeners tell originals (targets) from speech of the system; a higher rate is a better system."


def detection_size(rows: Sequence[Record]) -> str:
    """n of the systems; the pool of originals is theirs together."""
    most = max(rows, key=lambda row: int(row["listeners"] or 0))
    targets = sorted({int(row["n_target"] or 0) for row in rows})
    others = sorted({int(row["n_nontarget"] or 0) for row in rows})
    return (
        f"n = {_range(targets)} target and {_range(others)} nontarget ratings of each system, "
        f"by {most['listeners']} listeners (the clusters)."
    )


def rate_text(view: View, row: Record) -> str:
    text = f"{view.labels[str(row['system'])]} {percent(row['eer'])} %"
    if row["eer_low"] is not None:
        text += f" ({percent(row['eer_low'])} to {percent(row['eer_high'])})"
    return text


def pair_eer_figures(view: View, scores: Scores) -> list[Figure]:
    """Equal error rate of telling same speakers by closeness on the board, by kind of pairs and system."""
    rows = [row for row in view.rows(scores, "pair_detection") if row["eer"] is not None]
    if not rows:
        return []
    kinds = sorted({str(row["pairs"]) for row in rows}, key=lambda kind: (*_place(kind), kind))
    shown: list[Record] = []
    dots: list[Dot] = []
    for kind in kinds:
        of_kind = [row for row in rows if row["pairs"] == kind]
        of_kind.sort(key=lambda row: (row["system"] != EVERY_SYSTEM, -float(row["eer"])))
        shown += of_kind
        if len(of_kind) == 1:
            dots.append(_pair_dot(of_kind[0], kind))
            continue
        dots.append(Dot(kind))
        dots += [_pair_dot(row, view.short[str(row["system"])]) for row in of_kind]
    plot = DotPlot(
        dots=dots,
        axis="Same speaker by closeness: EER, %",
        heads=("EER, %",),
        lines=(Line(_CHANCE, "chance"),),
        dot_words="with interval" if has_interval(rows, "eer") else "EER",
    )
    return [
        Figure(
            scores=scores,
            name="pairs-eer",
            title="Linkability: equal error rate by kind of pairs",
            caption=view.caption(
                "Raw distances." if scores == "raw" else "Distances ranked within each board.",
                "Pairs of samples on a board, closeness as the score; near 50 % is private.",
                view.size_words([row for row in shown if row["system"] == EVERY_SYSTEM] or shown, "n_target",
                                "n_nontarget", of="pairs"),
                view.interval_words(are_drawn=has_interval(rows, "eer")),
            ),
            alt="Equal error rates of pairs by closeness: "
            + listed([f"{row['pairs']}, {rate_text(view, row)}" for row in shown if row["system"] == EVERY_SYSTEM]
                     or [f"{row['pairs']}, {rate_text(view, row)}" for row in shown])
            + ".",
            size=size_of(plot.inches, is_simulated=view.is_simulated),
            paint=lambda sheet: paint_dots(sheet, plot),
            count=lambda: NumberTable(*numbers_of(view, shown, _PAIR_COLUMNS)),
            is_simulated=view.is_simulated,
        )
    ]  # fmt: skip


def transcription_figures(view: View) -> list[Figure]:
    """Word error rate of listeners by system, the recogniser's beside it."""
    records = {
        str(row["system"]): row for row in view.rows("common", "transcription") if row["wer"] is not None
    }  # fmt: skip
    if not records:
        return []
    order = ordered(records, "wer", highest_first=False)
    order.sort(key=lambda name: (name != ORIGINAL, name != EVERY_SYSTEM))
    rows = [records[name] for name in order]
    plot = DotPlot(
        dots=[_wer_dot(view, row) for row in rows],
        axis="Word error rate, %",
        heads=("WER, %", "recogniser") if any(row["recogniser_wer"] is not None for row in rows) else ("WER, %",),
        dot_words="listeners, interval" if has_interval(rows, "wer") else "listeners",
        beside_words="recogniser",
        anchor_words="originals",
        starts_at=0.0,
    )
    return [
        Figure(
            scores="common",
            name="transcription",
            title="Words that listeners understood: word error rate of each system",
            caption=view.caption(
                "Word error rate of what listeners typed, weighted by words; the recogniser on the same utterances.",
                view.size_words([row for row in rows if row["system"] != EVERY_SYSTEM], "n", of="transcripts"),
                view.interval_words(are_drawn=has_interval(rows, "wer")),
            ),
            alt=f"Word error rates, {view.level_words} intervals in brackets: "
            f"{listed([_wer_text(view, row) for row in rows])}.",
            size=size_of(plot.inches, is_simulated=view.is_simulated),
            paint=lambda sheet: paint_dots(sheet, plot),
            count=lambda: NumberTable(*numbers_of(view, rows, _WER_COLUMNS)),
            is_simulated=view.is_simulated,
        )
    ]


def _eer_dot(view: View, row: Record) -> Dot:
    name = str(row["system"])
    texts = (percent(row["eer"]), short_group(str(row["group"] or "")))
    return Dot(view.short[name], row["eer"], row["eer_low"], row["eer_high"], is_anchor=name == ORIGINAL, texts=texts)


def _pair_dot(row: Record, name: str) -> Dot:
    return Dot(name, row["eer"], row["eer_low"], row["eer_high"], texts=(percent(row["eer"]),))


def _wer_dot(view: View, row: Record) -> Dot:
    name = str(row["system"])
    return Dot(
        view.short[name], row["wer"], row["wer_low"], row["wer_high"], beside=row["recogniser_wer"],
        is_anchor=name == ORIGINAL, texts=(percent(row["wer"]), percent(row["recogniser_wer"])),
    )  # fmt: skip


def _wer_text(view: View, row: Record) -> str:
    text = f"{view.labels[str(row['system'])]} {percent(row['wer'])} %"
    if row["wer_low"] is not None:
        text += f" ({percent(row['wer_low'])} to {percent(row['wer_high'])})"
    if row["recogniser_wer"] is not None:
        text += f", recogniser {percent(row['recogniser_wer'])} %"
    return text


def _place(kind: str) -> tuple[int]:
    return (PAIRS.index(kind) if kind in PAIRS else len(PAIRS),)


def _range(values: Sequence[int]) -> str:
    return f"{values[0]:,}" if values[0] == values[-1] else f"{values[0]:,} to {values[-1]:,}"
