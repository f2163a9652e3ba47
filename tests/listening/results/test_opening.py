"""Compares the sentences with which results open with what the numbers say."""

import re
from dataclasses import replace

from django.template.loader import render_to_string

from common.tables import Column
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import make_table
from listening.app.results.figures import Reader
from listening.app.results.labels import number_and_span
from listening.app.results.opening import read_opening
from listening.app.results.tables import Shape, headline
from tests.listening.analysis.examples import made_up_results

READER = Reader("made-up", "raw", tables=frozenset())
MEANS = {ORIGINAL: (8.0, "a"), "T01-p1": (4.1, "b"), "T02-p1": (6.23, "c"), "T11-p1": (5.9, "cd"), "B2": (3.0, "d")}
RATES = {ORIGINAL: (0.08, "a"), "T01-p1": (0.46, "b"), "T02-p1": (0.31, "c"), "T11-p1": (0.2, "c"), "B2": (0.12, "c")}


def made(form="rating", counts=None, **tables):
    """Results with the given rows for tables of raw ratings."""
    results = made_up_results(systems=tuple(MEANS)[1:])
    rows = {f"raw/{name}": make_table(name, held) for name, held in tables.items()}
    facts = dict(results.study, form=form)
    return replace(results, study=facts, counts=counts or results.counts, tables=results.tables | rows)


def rated(rate_of_originals=0.08):
    natural = [
        {"task": task, "system": name, "kind": "all", "mean": mean, "mean_low": mean - 0.4, "mean_high": mean + 0.4}
        | {"group": group}
        for task in ("naturalness", "intelligibility")
        for name, (mean, group) in MEANS.items()
    ]
    rates = RATES | {ORIGINAL: (rate_of_originals, "a")}
    heard = [
        {"task": "verifiability", "system": name, "eer": eer, "eer_low": eer - 0.05, "eer_high": eer + 0.05}
        | {"group": group}
        for name, (eer, group) in rates.items()
    ]
    counts = {"listeners": 52, "ratings": 2704, "excluded_sessions": 1}
    return made(counts=counts, summary=natural, detection=heard)


def sentences(results, tasks=("verifiability", "naturalness", "intelligibility")):
    opening = {"opening": read_opening(Shape(READER, results), tasks)}
    page = render_to_string("listening/results/_sentences.html", opening)
    return [" ".join(one.split()) for one in re.findall("<p>(.*?)</p>", page, re.DOTALL)]


def test_ratings_open_with_the_best_the_most_private_and_the_basis():
    assert sentences(rated()) == [
        "T02-p1 sounds most natural of 4 systems. Its mean is 6.2, 5.8 to 6.6, that of unprotected speech 8.0. It "
        "does not differ significantly from T11-p1.",
        "T02-p1 is easiest to understand of 4 systems. Its mean is 6.2, 5.8 to 6.6, that of unprotected speech "
        "8.0. It does not differ significantly from T11-p1.",
        "Speakers are hardest to recognise with T01-p1: equal error rate 46 %, 41 to 51, unprotected speech 8 %, "
        "guessing 50 %. It differs significantly from all others.",
        "This rests on 52 simulated listeners and 2,704 ratings; 1 session was left out.",
    ]


def test_results_of_few_listeners_compare_no_systems():
    found = rated()
    few = replace(found, counts=found.counts | {"listeners": 2}, settings={**found.settings, "least_clusters": 10})
    assert sentences(few) == [
        "Too few listeners (2) to compare systems.",
        "This rests on 2 simulated listeners and 2,704 ratings; 1 session was left out.",
    ]
    assert "words" not in {one.key for one in headline(Shape(READER, few), "naturalness", ("", "")).columns}


def test_system_that_too_few_rated_is_not_among_those_that_differ():
    rows = [
        {"task": "naturalness", "system": system, "kind": "all", "mean": mean, "group": group}
        for system, mean, group in (("T01-p1", 8.0, "a"), ("T02-p1", 6.2, "b"), ("B2", 6.0, ""))
    ]
    said = sentences(made(summary=rows), ("naturalness",))[0]
    assert said.endswith("It differs significantly from all others that enough listeners rated.")
    said = sentences(made(summary=[row | {"group": ""} for row in rows]), ("naturalness",))[0]
    assert said.endswith(" Whether systems differ significantly was not tested.")


def test_rates_of_a_task_that_was_too_hard_are_not_called_privacy():
    *_, recognised, _ = sentences(rated(rate_of_originals=0.47))
    assert "that this may mean privacy or a task that is too hard." in recognised


def test_rates_above_guessing_are_reversed_answers():
    rows = [
        {"task": "verifiability", "system": name, "eer": eer, "eer_low": None, "eer_high": None, "group": ""}
        for name, eer in ((ORIGINAL, 0.08), ("T01-p1", 0.3), ("T02-p1", 0.45), ("B2", 1.0))
    ]
    hardest, confused, _ = sentences(made(detection=rows), ("verifiability",))
    assert hardest.startswith("Speakers are hardest to recognise with T02-p1: equal error rate 45 %")
    assert confused.startswith("With B2 listeners confused speakers more often than by guessing")
    rows[2] |= {"eer": 0.55, "eer_low": 0.48, "eer_high": 0.62}  # by chance above it
    rows[1]["eer"] = 0.7
    rows[3]["eer"] = 0.8
    hardest, confused, _ = sentences(made(detection=rows), ("verifiability",))
    assert "T02-p1" in hardest
    assert confused.startswith("With T01-p1, B2 listeners confused speakers")


def test_best_word_error_rate_is_called_untested():
    rates = {ORIGINAL: (0.049, 0.06), "T01-p1": (0.028, 0.05), "B2": (0.12, 0.178)}
    rows = [
        {"system": name, "wer": rate, "wer_low": rate / 2, "wer_high": high} for name, (rate, high) in rates.items()
    ]
    results = made("transcription")
    results = replace(results, tables={"common/transcription": make_table("transcription", rows)})
    assert sentences(results, ())[0] == (
        "Of 2 systems, T01-p1 has the lowest word error rate, 2.8 %, 1.4 to 5.0, and B2 the highest, 12 %, 6 to 18; "
        "unprotected speech: 4.9 %. Whether systems differ significantly was not tested."
    )


def test_linking_within_reach_of_guessing_is_not_called_possible():
    def linked(rate, **auc):
        row = auc | {"pairs": "original-anonymised", "system": "all", "eer": rate}
        row |= {"eer_low": rate - 0.1, "eer_high": rate + 0.1}
        return sentences(made("linkability", pair_detection=[row]), ())[0]

    assert "cannot be distinguished from guessing (equal error rate 45 %, 35 to 55" in linked(0.45)
    assert "is possible (equal error rate 30 %, 20 to 40" in linked(0.3)
    assert "is possible (equal error rate 45 %" in linked(0.45, auc_low=0.52, auc_high=0.6)


def test_numbers_of_few_listeners_are_no_more_exact_than_those_with_an_interval():
    share, points, score = (
        Column(key, "A", digits=digits, is_share=digits == 1)
        for key, digits in (("eer", 1), ("difference", 1), ("value", 3))
    )
    known, wide = {"eer_low": None, "difference_low": None}, {"value": 0.97, "value_low": -7.2, "value_high": 1.1}
    assert number_and_span({"eer": 0.25} | known, share) == ("25 %", "")
    assert number_and_span({"difference": -0.29} | known, points) == ("−29 points", "")
    assert number_and_span(wide, score) == ("1.0", "−7.2 to 1.1")
