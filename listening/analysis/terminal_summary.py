"""The few numbers of an analysis that a terminal shows in the end; all others are in its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.commands.terminal import NONE, say, say_table, say_wrapped
from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Results

_WORDS = {"raw": "raw ratings", "normalised": "ranks normalised within listeners, 0 to 1"}


def say_summary(results: Results, scores: str) -> None:
    """Facts, remarks and, for each task, the systems by their mean.

    Args:
        scores: ``raw`` or ``normalised``.
    """
    counts = results.counts
    said = [
        f"{counts[name]:,} {name}"
        for name in ("ratings", "placements", "transcripts", "sessions", "listeners")
        if name in counts
    ]
    say(f"{results.study['title']}: {', '.join(said)}")
    if results.study["is_simulated"]:
        say("SIMULATED: no human being has listened.")
    for remark in results.remarks:
        say_wrapped(f"- {remark}")
    summary = results.table(scores, "summary")
    for task in results.study["tasks"] if summary else ():
        rows = _rows(results, scores, task)
        if rows:
            say()
            say(f"{task.capitalize()}, {_WORDS[scores]}")
            header = ("system", "ratings", "mean", "from", "to", "group", "EER %", "from", "to", "group")
            say_table(header, rows)
    _say_pairs(results, scores)
    _say_words(results)


def _rows(results: Results, scores: str, task: str) -> list[list[str]]:
    """The original first, then from the highest mean to the lowest."""
    summary, detection = results.table(scores, "summary"), results.table(scores, "detection")
    detected = {row["system"]: row for row in detection.records(task=task)} if detection else {}
    rows: Sequence[Mapping[str, Any]] = summary.records(task=task, kind="all") if summary else []
    ordered = sorted(rows, key=lambda row: (row["system"] != ORIGINAL, -(row["mean"] or 0), row["system"]))
    return [
        [
            str(row["system"]), f"{row['n']:,}", *(_number(row[name]) for name in ("mean", "mean_low", "mean_high")),
            row["group"] or NONE,
            *(_percent(detected.get(row["system"], {}).get(name)) for name in ("eer", "eer_low", "eer_high")),
            str(detected.get(row["system"], {}).get("group") or NONE),
        ]
        for row in ordered
    ]  # fmt: skip


def _say_pairs(results: Results, scores: str) -> None:
    table = results.table(scores, "pair_detection")
    if table is not None:
        say()
        say("Same speaker by closeness on the board")
        say_table(
            ("pairs", "system", "EER %", "from", "to", "AUC"),
            [
                [str(row["pairs"]), str(row["system"]), *_rates(row, "eer"), _number(row["auc"])]
                for row in table.records()
            ],
        )


def _say_words(results: Results) -> None:
    table = results.table("common", "transcription")
    if table is not None:
        say()
        say("Words that listeners understood")
        say_table(
            ("system", "transcripts", "WER %", "from", "to", "recogniser"),
            [
                [str(row["system"]), str(row["n"]), *_rates(row, "wer"), _percent(row["recogniser_wer"])]
                for row in table.records()
            ],
        )


def _rates(row: Mapping[str, Any], name: str) -> Sequence[str]:
    return [_percent(row[one]) for one in (name, f"{name}_low", f"{name}_high")]


def _number(value: Any) -> str:
    return NONE if value is None else f"{value:.3f}"


def _percent(value: Any) -> str:
    return NONE if value is None else f"{100 * value:.1f}"
