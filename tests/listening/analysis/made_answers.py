"""Made-up answers of every kind: rows as tables of pandas, and studies whose truth is known."""

import numpy as np
import pandas as pd

from listening.analysis.reading.inputs import Answers, Inputs, StudyFacts

COLUMNS = (*("listener", "session", "question", "item", "condition", "slot"), *("value", "order", "position", "truth"))


def frame_of(rows, **usual):
    """Answers from dictionaries; what a row does not name is as usual."""
    usual = {
        "listener": "l1",
        "question": "q",
        "item": "i1",
        "slot": "",
        "order": 0,
        "position": 0,
        "truth": "",
    } | usual
    filled = [{"session": (usual | row)["listener"]} | usual | row for row in rows]
    frame = pd.DataFrame(filled, columns=COLUMNS)
    numbers = pd.to_numeric(frame["value"], errors="coerce")
    return frame.assign(score=numbers, excluded="")


def comparison(a, b, value, **more):
    """The two rows of a comparison."""
    heard = more.pop("heard", "")
    orders = {"A": 1 + (heard == "B"), "B": 1 + (heard == "A")} if heard else {"A": 0, "B": 0}
    return [
        {"condition": condition, "slot": slot, "value": value, "order": orders[slot]} | more
        for slot, condition in (("A", a), ("B", b))
    ]


def rated(seed, levels, listeners=24, items=16, each=8, spread=0.5, noise=1.0, points=None):
    """Everybody rates `each` items of each condition; listeners, items and their tastes for conditions vary."""
    numbers = np.random.default_rng(seed)
    tastes = [numbers.normal(0, spread, (count, 1 + len(levels))) for count in (listeners, items)]
    rows = []
    for listener in range(listeners):
        for place, level in enumerate(levels):
            for item in numbers.choice(items, each, replace=False):
                value = level + sum(
                    of[who, 0] + of[who, 1 + place] for of, who in zip(tastes, (listener, item), strict=True)
                )
                value += numbers.normal(0, noise)
                if points:
                    value = float(np.clip(np.rint(value), *points))
                rows.append(
                    {
                        "listener": f"l{listener:02}",
                        "item": f"i{item:02}",
                        "condition": f"c{place}",
                        "value": str(value),
                    }
                )
    return frame_of(rows)


def compared(seed, levels, listeners=24, items=16, each=8, spread=0.5, ties=0.0, as_rating=False):
    """Everybody compares each two conditions on `each` items, in slots and in an order by lot."""
    numbers = np.random.default_rng(seed)
    tastes = [numbers.normal(0, spread, (count, len(levels))) for count in (listeners, items)]
    rows = []
    for listener in range(listeners):
        for first in range(len(levels)):
            for second in range(first + 1, len(levels)):
                for item in numbers.choice(items, each, replace=False):
                    sides = (first, second) if numbers.random() < 0.5 else (second, first)
                    heard = "AB"[int(numbers.random() < 0.5)]
                    perceived = [
                        levels[one] + tastes[0][listener, one] + tastes[1][item, one] + numbers.normal()
                        for one in sides
                    ]
                    gain = perceived[1] - perceived[0]  # of B
                    value = "=" if abs(gain) < ties else "B" if gain > 0 else "A"
                    if as_rating:
                        value = str(int(np.clip(np.rint(gain), -3, 3)))
                    names = (f"c{one}" for one in sides)
                    more = {"listener": f"l{listener:02}", "item": f"i{item:02}", "heard": heard}
                    rows += comparison(*names, value, **more, position=len(rows) // 2 + 1)
    return frame_of(rows)


def answer_inputs(frames, questions):
    """A study of these answers; `questions`: by name what the design says about them."""
    frame = pd.concat(frames, ignore_index=True)
    kinds = {"order": np.int64, "position": np.int64}
    columns = {name: frame[name].to_numpy().astype(kinds.get(name, np.str_)) for name in Answers.__dataclass_fields__}
    facts = StudyFacts("made", "Made up", "answers", tuple(questions), {}, True, design={"questions": questions})
    return Inputs(facts, answers=Answers(**columns))


def all_kinds():
    """A small study with a question of each kind."""
    numbers = np.random.default_rng(3)
    labels = ["glad", "sad"]
    chosen = [
        {
            "listener": f"l{listener:02}",
            "item": f"i{item}",
            "condition": f"c{item % 2}",
            "truth": labels[item % 3 == 0],
            "value": labels[(item % 3 == 0) ^ (numbers.random() < 0.3)],
        }
        for listener in range(12)
        for item in range(9)
    ]
    told = []
    for listener in range(12):
        for item in range(6):
            truth = "AB"[item % 2]
            value = truth if numbers.random() < 0.8 else "AB"[1 - item % 2]
            sides = ("c0", "c1") if item < 3 else ("c1", "c2")
            told += comparison(*sides, value, listener=f"l{listener:02}", item=f"i{item}", truth=truth)
    sliders = rated(5, (97, 60, 40), listeners=12, items=6, each=6, spread=3, noise=4, points=(0, 100))
    questions = {
        "quality": {"kind": "mos", "scale": [-10, 10]},
        "better": {"kind": "ccr"},
        "preferred": {"kind": "ab"},
        "which": {"kind": "abx"},
        "sliders": {"kind": "mushra", "reference": "c0", "anchor": "c2"},
        "emotion": {"kind": "choice"},
    }
    frames = [
        rated(1, (0, 0.5, 1), listeners=12, items=8, each=4),
        compared(2, (0, 0.5, 1), listeners=12, items=8, each=4, as_rating=True),
        compared(3, (0, 0.5, 1), listeners=12, items=8, each=4, ties=0.3),
        frame_of(told),
        sliders,
        frame_of(chosen),
    ]
    return answer_inputs([one.assign(question=name) for one, name in zip(frames, questions, strict=True)], questions)
