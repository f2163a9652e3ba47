"""Results that are made up, for tests of what only reads tables: every table filled, its numbers mean nothing."""

from functools import cache
from itertools import combinations, pairwise, product

import numpy as np

from listening.analysis.reading.inputs import ORIGINAL, Settings, StudyFacts
from listening.analysis.tables import BY_SCORES, COMMON, Results, make_table
from tests.listening.rated import RATED, questions_of

SYSTEMS = ("T01-p1", "T02-p1", "T02-c1", "T11-p1")
LISTENERS = tuple(f"listener-{number:02}" for number in range(1, 13))
UTTERANCES = tuple(f"1089-134686-{number:04}" for number in range(8))
PAIRS = ("original-original", "anonymised-anonymised", "original-anonymised")


def made_up_results(systems=SYSTEMS, tasks=RATED, is_simulated=True, seed=1, listeners=LISTENERS):
    """Each table with plausible rows; forms are mixed, which no study does."""
    facts = StudyFacts(
        "made-up",
        "A made-up study",
        "rating",
        tuple(tasks),
        dict.fromkeys(tasks, (1, 10)),
        is_simulated,
        questions=questions_of(tasks),
    )
    counts = {"listeners": len(LISTENERS), "sessions": len(LISTENERS), "ratings": 1234, "left_out": 0}
    tables = dict(_made_up_tables(tuple(systems), tuple(tasks), seed, tuple(listeners)))
    return Results(facts.as_data(), Settings().as_data(), counts, ["A note."], {"analysis": "0"}, tables)


@cache
def _made_up_tables(systems, tasks, seed, listeners):
    numbers = np.random.default_rng(seed)
    tables = {}
    for scores, contents in (("raw", BY_SCORES), ("normalised", BY_SCORES), ("common", COMMON)):
        for content in contents:
            rows = [_row(content, numbers, scores, fixed) for fixed in _fixed(content.name, systems, tasks, listeners)]
            tables[f"{scores}/{content.name}"] = make_table(content.name, rows)
    return tables


def _fixed(name, systems, tasks, listeners):
    """The columns that identify a row of a table."""
    everything, labels = (ORIGINAL, *systems), ("glad", "sad")
    tenths = [number / 10 for number in range(11)]
    detected = [row for task in tasks for row in _across(task=[task], system=_detected(task, everything))]
    kinds = [row for task in tasks for row in _across(task=[task], system=everything, kind=_kinds(task))]
    of = {
        "summary": kinds,
        "det": [
            row | {"threshold": x, "miss_rate": x, "false_alarm_rate": (1 - x) ** 2} for row in detected for x in tenths
        ],
        "detection": detected,
        "histogram": [
            row | {"lower": low, "upper": high, "share": 0.1, "count": 10}
            for row in kinds
            for low, high in pairwise(tenths)
        ],
        "model_variance": _across(task=tasks, part=("listener", "utterance", "speaker", "residual")),
        "reliability": _across(task=tasks, measure=("Krippendorff's alpha", "ICC(2,1)"), over=["bridge set"]),
        "listeners": _across(listener=listeners, task=tasks),
        "screening": [
            row | {"task": "naturalness", "session": f"s-{row['listener']}"}
            for row in _across(rule=("disagrees", "low-variance"), listener=listeners)
        ],
        "exclusion_effect": _across(rule=("disagrees", "standing"), task=tasks, system=everything),
        "utterances": _across(system=everything, utterance=UTTERANCES),
        "correlations": [
            {"first": "naturalness", "second": "1 − WER"},
            {"first": "intelligibility", "second": "1 − WER"},
            {"first": "naturalness", "second": "intelligibility"},
        ],
        "disagreements": _across(
            kind=("heard-badly", "heard-well"), task=["intelligibility"], system=systems, utterance=UTTERANCES[:3]
        ),
        "pair_detection": _across(pairs=PAIRS, system=("all", *systems)),
        "pair_det": [
            row | {"threshold": x, "miss_rate": x, "false_alarm_rate": 1 - x}
            for row in _across(pairs=PAIRS, system=["all"])
            for x in tenths
        ],
        "grouping": _across(
            source=["cut"],
            samples=("all", "original", "anonymised"),
            measure=("purity", "inverse purity", "F", "adjusted Rand index"),
        ),
        "map": [
            {"board": "board-1", "slot": str(n), "system": everything[n % min(3, len(everything))]}
            | {"speaker": f"speaker-{n % 4}"}
            for n in range(12)
        ],
        "map_fit": [{"board": "board-1", "dimensions": 2}],
        "transcription": _across(system=everything),
        "estimates": _across(question=["quality"], measure=["mean"], condition=everything, letters=["a"]),
        "confusion": _across(question=["emotion"], condition=everything, truth=labels, answer=labels),
        "answers_effect": _across(rule=["standing"], question=["quality"], condition=everything),
        "transcripts": _across(system=everything, utterance=UTTERANCES),
    }
    if name in of:
        return of[name]
    if name in ("differences", "eer_differences", "mann_whitney"):
        return [{"task": t, "first": a, "second": b} for t in tasks for a, b in combinations(everything, 2)]
    return _across(task=tasks, system=everything)


def _across(**columns):
    """A row for each combination of these values, the last changing first."""
    return [dict(zip(columns, values, strict=True)) for values in product(*columns.values())]


def _kinds(task):
    return ("all", "target", "nontarget") if task == "verifiability" else ("all",)


def _detected(task, everything):
    return everything if task == "verifiability" else everything[1:]


def _row(content, numbers, scores, fixed):
    """Numbers for what is not fixed; limits of an interval around their value."""
    row = dict(fixed)
    for column in content.columns:
        if column.key in row:
            continue
        base = column.key.removesuffix("_low").removesuffix("_high")
        if base != column.key and base in row:
            row[column.key] = row[base] - 0.04 if column.key.endswith("_low") else row[base] + 0.04
        elif column.key == "group":
            row[column.key] = str(numbers.choice(["a", "ab", "b"]))
        elif column.key == "is_told_apart":
            row[column.key] = 0
        elif column.digits is not None:
            is_rating = scores == "raw" and column.key in ("mean", "median", "naturalness", "intelligibility", "score")
            row[column.key] = float(1 + 9 * numbers.random() if is_rating else numbers.random())
        elif column.key in ("n", "listeners", "items", "count", "words", "utterances", "boards", "n_target"):
            row[column.key] = int(numbers.integers(10, 60))
        elif column.key in ("n_nontarget", "n_first", "n_second", "n_before", "n_after", "samples", "is_caught"):
            row[column.key] = int(numbers.integers(0, 2)) if column.key == "is_caught" else 52
        elif column.key == "speaker":
            row[column.key] = f"speaker-{int(numbers.integers(0, 4))}"
        elif column.key == "utterance":
            row[column.key] = UTTERANCES[int(numbers.integers(0, len(UTTERANCES)))]
    return row
