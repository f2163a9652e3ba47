"""Results that are made up, for tests of what only reads tables: every table filled, its numbers mean nothing."""

from functools import cache

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
    everything = (ORIGINAL, *systems)
    pairs = [(a, b) for place, a in enumerate(everything) for b in everything[place + 1 :]]
    edges = [(low / 10, (low + 1) / 10) for low in range(10)]
    of = {
        "summary": lambda: [{"task": t, "system": s, "kind": k} for t in tasks for s in everything for k in _kinds(t)],
        "det": lambda: [
            {"task": t, "system": s, "threshold": i / 10, "miss_rate": i / 10, "false_alarm_rate": (1 - i / 10) ** 2}
            for t in tasks
            for s in _detected(t, everything)
            for i in range(11)
        ],
        "detection": lambda: [{"task": t, "system": s} for t in tasks for s in _detected(t, everything)],
        "histogram": lambda: [
            {"task": t, "system": s, "kind": k, "lower": a, "upper": b, "share": 0.1, "count": 10}
            for t in tasks
            for s in everything
            for k in _kinds(t)
            for a, b in edges
        ],
        "model_variance": lambda: [
            {"task": t, "part": p} for t in tasks for p in ("listener", "utterance", "speaker", "residual")
        ],
        "reliability": lambda: [
            {"task": t, "measure": m, "over": "bridge set"} for t in tasks for m in ("Krippendorff's alpha", "ICC(2,1)")
        ],
        "listeners": lambda: [{"listener": one, "task": t} for one in listeners for t in tasks],
        "screening": lambda: [
            {"rule": r, "listener": one, "task": "naturalness", "session": f"s-{one}"}
            for r in ("disagrees", "low-variance")
            for one in listeners
        ],
        "exclusion_effect": lambda: [
            {"rule": r, "task": t, "system": s} for r in ("disagrees", "standing") for t in tasks for s in everything
        ],
        "utterances": lambda: [{"system": s, "utterance": u} for s in everything for u in UTTERANCES],
        "correlations": lambda: [
            {"first": "naturalness", "second": "1 − WER"},
            {"first": "intelligibility", "second": "1 − WER"},
            {"first": "naturalness", "second": "intelligibility"},
        ],
        "disagreements": lambda: [
            {"kind": k, "task": "intelligibility", "system": s, "utterance": u}
            for k in ("heard-badly", "heard-well")
            for s in systems
            for u in UTTERANCES[:3]
        ],
        "pair_detection": lambda: [{"pairs": p, "system": s} for p in PAIRS for s in ("all", *systems)],
        "pair_det": lambda: [
            {"pairs": p, "system": "all", "threshold": i / 10, "miss_rate": i / 10, "false_alarm_rate": 1 - i / 10}
            for p in PAIRS
            for i in range(11)
        ],
        "grouping": lambda: [
            {"source": "cut", "samples": k, "measure": m}
            for k in ("all", "original", "anonymised")
            for m in ("purity", "inverse purity", "F", "adjusted Rand index")
        ],
        "map": lambda: [
            {
                "board": "board-1",
                "slot": str(n),
                "system": everything[n % min(3, len(everything))],
                "speaker": f"speaker-{n % 4}",
            }
            for n in range(12)
        ],
        "map_fit": lambda: [{"board": "board-1", "dimensions": 2}],
        "transcription": lambda: [{"system": s} for s in everything],
        "estimates": lambda: [
            {"question": "quality", "measure": "mean", "condition": s, "letters": "a"} for s in everything
        ],
        "confusion": lambda: [
            {"question": "emotion", "condition": s, "truth": a, "answer": b}
            for s in everything
            for a in ("glad", "sad")
            for b in ("glad", "sad")
        ],
        "answers_effect": lambda: [{"rule": "standing", "question": "quality", "condition": s} for s in everything],
        "transcripts": lambda: [{"system": s, "utterance": u} for s in everything for u in UTTERANCES],
    }
    if name in of:
        return of[name]()
    if name in ("differences", "eer_differences", "mann_whitney"):
        return [{"task": t, "first": a, "second": b} for t in tasks for a, b in pairs]
    return [{"task": t, "system": s} for t in tasks for s in everything]


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
