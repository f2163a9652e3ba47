"""All answers of a study: each question by its kind, and what came of it as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from common.errors import ProblemsError
from common.tables import DataTable
from listening.analysis.answers.choices import confusion, estimate_choices, estimate_discrimination
from listening.analysis.answers.estimates import Estimate
from listening.analysis.answers.pairs import COMPARISON, estimate_comparison, estimate_preference
from listening.analysis.answers.scales import (
    ANCHOR_HIGH,
    REFERENCE_LOW,
    estimate_mushra,
    estimate_scale,
    screen_mushra,
)
from listening.analysis.post_screening.rules import STANDING
from listening.analysis.reading.answer_values import NUMERIC_KINDS, PAIRED_KINDS, find_scale, is_allowed, say_allowed
from listening.analysis.reading.inputs import Answers, Settings
from listening.analysis.tables import Row, make_table

if TYPE_CHECKING:
    from pandas import DataFrame

MEAN_KINDS = frozenset({"mos", "mushra"})  # whose first number is the mean of a condition


def make_answer_tables(
    answers: Answers, questions: Mapping[str, Mapping[str, Any]], settings: Settings
) -> list[DataTable]:
    """Return ``estimates``, and where there are such questions ``confusion``, ``screening`` and ``answers_effect``.

    Args:
        answers: those that a rule in force leaves out enter ``answers_effect`` alone.
        questions: as `StudyFacts.answered`.

    Raises:
        ProblemsError: a question is not known, or answers are not of its kind.
    """
    estimates: list[Estimate] = []
    confusions: list[Row] = []
    screened: list[Row] = []
    effects: list[Row] = []
    for name, of_question in answers.as_frame().groupby("question", sort=True):
        if str(name) not in questions:
            raise ProblemsError(f"Expected the kind of question “{name}” in study.json, found none. Add it there.")
        about = questions[str(name)]
        everything = _scored(of_question, str(name), about)
        scored = everything[everything["excluded"] == ""]
        if about["kind"] in MEAN_KINDS and len(scored) < len(everything):
            effects += _effect(STANDING, everything, scored)
        if scored.empty:
            continue
        estimates += _estimate(scored, about, settings)
        if about["kind"] == "choice":
            confusions += confusion(scored)
        if about["kind"] == "mushra" and about.get("reference"):
            found = screen_mushra(scored, about["reference"], about.get("anchor", ""))
            screened += found
            for rule in (REFERENCE_LOW, ANCHOR_HIGH):
                caught = [row["listener"] for row in found if row["rule"] == rule and row["is_caught"]]
                effects += _effect(rule, scored, scored[~scored["listener"].isin(caught)]) if caught else []
    rows = {"confusion": confusions, "screening": screened, "answers_effect": effects}
    tables = [make_table("estimates", [one.as_row() for one in estimates])]
    return tables + [make_table(name, made) for name, made in rows.items() if made]


def _effect(rule: str, before: DataFrame, after: DataFrame) -> list[Row]:
    """Return of each condition listeners, answers and mean with and without those whom a rule leaves out."""

    def summarise(answers: DataFrame) -> DataFrame:
        groups = answers.groupby("condition")
        return groups.agg(listeners=("listener", "nunique"), n=("score", "size"), mean=("score", "mean"))

    both = summarise(before).merge(summarise(after), "left", on="condition", suffixes=("_before", "_after"))
    both = both.fillna({"listeners_after": 0, "n_after": 0}).astype({"listeners_after": int, "n_after": int})
    about = {"rule": rule, "question": str(before["question"].iloc[0])}
    return [about | row for row in both.reset_index().to_dict("records")]


def _estimate(scored: DataFrame, about: Mapping[str, Any], settings: Settings) -> list[Estimate]:
    kind = about["kind"]
    if kind == "ab":
        return estimate_preference(scored, settings)
    if kind == "ccr":
        return estimate_comparison(scored, settings, find_scale(about)[1])
    if kind == "abx":
        return estimate_discrimination(scored, settings)
    if kind == "choice":
        return estimate_choices(scored, settings)
    if kind == "mushra":
        return estimate_mushra(scored, settings)
    return estimate_scale(scored, settings, find_scale(about))


def _scored(answers: DataFrame, name: str, about: Mapping[str, Any]) -> DataFrame:
    """Return the answers with the column `score` where they are numbers.

    Raises:
        ProblemsError: answers are not of the kind.
    """
    if about["kind"] in PAIRED_KINDS and answers.duplicated([*COMPARISON, "slot"]).any():
        raise ProblemsError(
            f"Question “{name}”: expected one recording in each slot of a comparison, found several at one position of "
            "a session. Give each comparison a position of its own."
        )
    wrong = answers[[not is_allowed(value, about) for value in answers["value"]]]
    if len(wrong):
        first = wrong.iloc[0]
        raise ProblemsError(
            f"Question “{name}”: expected {say_allowed(about)}, found “{first['value']}” of listener "
            f"{first['listener']} about {first['item']}, and {len(wrong) - 1:,} more. Correct them, or the kind."
        )
    return answers.assign(score=answers["value"].astype(float)) if about["kind"] in NUMERIC_KINDS else answers
