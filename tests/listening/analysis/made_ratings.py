"""Small made-up studies as inputs of an analysis: listeners with a bias, systems with a level, seeded noise."""

import numpy as np

from listening.analysis.reading.inputs import ORIGINAL, SCORED, Inputs, ObjectiveRows, Ratings, StudyFacts
from tests.listening.rated import RATED, questions_of

SYSTEMS = {ORIGINAL: 8.5, "T01": 6.5, "T02": 5.0, "T03": 5.0}
SCALE = dict.fromkeys(RATED, (1.0, 10.0))


def columns_of(rows, **usual):
    """Ratings from dictionaries; what a row does not name is as usual."""
    usual = {
        "listener": "l1",
        "session": "",
        "task": "naturalness",
        "system": ORIGINAL,
        "is_target": -1,
        "item": "i",
        "utterance": "u",
        "enrolment": "",
        "speaker": "s",
        "gender": "f",
        "rating": 5.0,
        "position": 0,
        "purpose": SCORED,
        "is_finished": True,
        "excluded": "",
    } | usual
    return fill(Ratings, rows, usual)


def fill(kind, rows, usual):
    """Columns of a part of the inputs from dictionaries; what a row does not name is as usual, and of that type."""
    types = {str: np.str_, int: np.int64, float: np.float64, bool: np.bool_}
    columns = {name: [row.get(name, value) for row in rows] for name, value in usual.items()}
    return kind(**{name: np.array(values, types[type(usual[name])]) for name, values in columns.items()})


def made_ratings(listeners=12, of_each=4, seed=1):
    """Every listener rates, of every system, `of_each` utterances on each task; half of the pairs are targets."""
    numbers = np.random.default_rng(seed)
    rows = []
    for listener in range(listeners):
        bias = numbers.normal(0, 1)
        for system, level in SYSTEMS.items():
            for number in range(of_each):
                utterance = f"u{(listener * of_each + number) % (3 * of_each)}"
                is_target = number % 2
                for task in RATED:
                    shift = {"verifiability": (2 if system == ORIGINAL else 0.5) * (2 * is_target - 1)}.get(task, 0)
                    rating = float(np.clip(round(level + bias + shift + numbers.normal(0, 1.5)), 1, 10))
                    rows.append(
                        {
                            "listener": f"l{listener:02}",
                            "session": f"s{listener:02}",
                            "task": task,
                            "system": system,
                            "is_target": is_target,
                            "item": f"{system}/{utterance}",
                            "utterance": utterance,
                            "speaker": f"p{number}",
                            "rating": rating,
                            "position": number + 1,
                        }
                    )
    return columns_of(rows)


def made_inputs(**more):
    ratings = made_ratings()
    of = sorted(set(zip(ratings.system.tolist(), ratings.utterance.tolist(), strict=True)))
    numbers = np.random.default_rng(2)
    objective = ObjectiveRows(
        np.array([system for system, _ in of]),
        np.array([utterance for _, utterance in of]),
        numbers.integers(0, 4, len(of)).astype(float),
        np.full(len(of), 10.0),
        numbers.uniform(0.2, 0.9, len(of)),
    )
    facts = StudyFacts(
        "made", "Made up", "rating", RATED, SCALE, is_simulated=True, design={"seed": 5}, questions=questions_of()
    )
    return Inputs(facts, ratings=ratings, objective=objective, **more)
