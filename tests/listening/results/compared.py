"""Closed tests of recordings of one's own in which conditions were compared or chosen: everybody answers by a rule."""

from itertools import combinations

import numpy as np
from django.utils import timezone

from listening.analysis.analyse import analyse
from listening.analysis.bundle import write_inputs
from listening.analysis.figures import list_figures
from listening.analysis.reading.inputs import Settings
from listening.app.models import Answer, Play, Presentation, Session, Study
from listening.app.results.inputs import collect_inputs
from listening.questions import Screen
from portal.core.storage import store_bytes
from tests.listening.comparing_factories import open_test
from tests.listening.factories import make_session
from tests.listening.rated import questions_of
from tests.listening.results.analysed import SVG, add_analysis
from tests.portal.factories import make_organizer

QUALITY = {"": 2.0, "codec": 0.8, "vocoder": -0.6, "low": -2.0}  # by the code of a condition
CODES = tuple(QUALITY)
SAID, WRITTEN = "the cat sat on the mat", "the cat sat on a mat"  # one word of six is wrong


def make_compared(tasks=("preference",), *, evaluators=12, items=4, anchor_hz=7000, seed=5, closed=True, **fields):
    """A test of the original, two conditions and an anchor, whose trials everybody has answered."""
    study = make_comparing(tasks, evaluators=evaluators, items=items, anchor_hz=anchor_hz, seed=seed, **fields)
    for number in range(evaluators):
        compare(make_session(study), seed + number)
    if closed:
        Study.objects.filter(pk=study.pk).update(state=Study.State.CLOSED, closed_at=timezone.now())
        study.refresh_from_db()
    return study


def analyse_compared(study):
    """Add the analysis of a closed test; each of its figures is a little square."""
    inputs = collect_inputs(study)
    results = analyse(inputs, Settings())
    paths = [path for figure in list_figures(results) for path in figure.files]
    analysis = add_analysis(study, results, dict.fromkeys(paths, store_bytes(SVG, ".svg")))
    analysis.inputs = store_bytes(write_inputs(inputs, Settings()), ".zip")
    analysis.save()
    return analysis


def make_comparing(
    tasks=("preference",), *, codes=CODES, evaluators=2, items=4, anchor_hz=7000, seed=5, questions=None, **fields
):
    """The same before anybody has answered, without files of its stimuli."""
    usual = {"languages": ["en"], "role_play": "none", "seed": 2022, "evaluators": evaluators}
    usual |= {"created_by": fields.pop("created_by", None) or make_organizer()}
    study = open_test(questions or questions_of(tasks), **usual | fields)
    kinds = {"": {"kind": "original"}, "low": {"kind": "anchor", "low_pass_hz": anchor_hz}}
    conditions = [study.conditions.create(code=code, **kinds.get(code, {"kind": "folder"})) for code in codes]
    rows = [study.items.create(name=f"i{place}", speaker=f"s{place % 2}", transcript=SAID) for place in range(items)]
    stimuli = {
        (condition.code, item.name): study.stimulus_files.create(condition=condition, item=item, source="absent")
        for condition in conditions
        for item in rows
    }
    numbers = np.random.default_rng(seed)
    trials = []
    for item in rows:
        for key, samples in _trials(study.asked[0].screen, codes, numbers):
            first = samples.get("a", "")
            condition = next(one for one in conditions if one.code == first)
            trial = Presentation.objects.create(study=study, key=f"{item.name}-{key}", condition=condition)
            for slot, code in samples.items():
                trial.samples.create(slot=slot, stimulus=stimuli[code, item.name])
            trials.append(trial)
    for block in range(1, evaluators + 1):
        made = study.blocks.create(number=block)
        for position, place in enumerate(numbers.permutation(len(trials)).tolist(), 1):
            made.trials.create(position=position, presentation=trials[place])
    return study


def _trials(screen, codes, numbers):
    """The samples of each trial about one item, by slot, with a name."""
    if screen == Screen.MANY:
        order = numbers.permutation(codes).tolist()
        yield "all", {"r": ""} | {str(place): code for place, code in enumerate(order, 1)}
    elif screen in (Screen.PAIR, Screen.TRIPLE):
        for pair in combinations(codes, 2):
            a, b = numbers.permutation(pair).tolist()
            x = {"x": (a, b)[numbers.integers(2)]} if screen == Screen.TRIPLE else {}
            yield f"{a}-{b}", x | {"a": a, "b": b}
    else:
        for code in codes:
            yield code, ({"r": ""} if screen == Screen.REFERENCE else {}) | {"a": code}


def compare(session, seed=0, *, how=None):
    """Answer every trial of the session's block: better conditions are mostly found better.

    Args:
        how: takes question and the conditions by slot, and gives rating and data; as `QUALITY` says without it.
    """
    numbers = np.random.default_rng(seed)
    now = timezone.now()
    trials = list(session.block.trials.select_related("presentation").order_by("position"))
    plays, answers = [], []
    for trial in trials:
        heard = dict(trial.presentation.samples.values_list("slot", "stimulus__condition__code"))
        plays += [
            Play(session=session, trial=trial, slot=slot, started_ms=100, heard_ms=600, is_whole=True)
            for slot in numbers.permutation(list(heard)).tolist()
        ]
        for one in session.study.asked:
            rating, data = how(one, heard) if how else _answer(one, heard, numbers)
            text = WRITTEN if one.kind == "text" else ""
            told = {"rating": rating, "data": data, "text": text, "received_at": now}
            answers.append(Answer(session=session, trial=trial, task=one.key, **told))
    Play.objects.bulk_create(plays)
    Answer.objects.bulk_create(answers)
    Session.objects.filter(pk=session.pk).update(state="finished", step="end", ended_at=now, flagged_at=now)
    session.refresh_from_db()
    session.study.blocks.filter(holder=session).update(is_finished=True)
    return session


def _answer(question, heard, numbers):
    found = {slot: QUALITY[code] + numbers.normal() for slot, code in heard.items()}
    kind = question.analysed_as
    if question.kind == "text":
        return None, {}
    if kind == "mushra":
        rated = {slot: int(np.clip(55 + 18 * value, 0, 92)) for slot, value in found.items() if slot != "r"}
        return None, {"ratings": {slot: 100 if heard[slot] == "" else value for slot, value in rated.items()}}
    if kind == "ccr":
        return int(np.clip(np.rint(found["b"] - found["a"]), *question.ends)), {}
    if kind == "ab":
        better = found["a"] - found["b"]
        return 3 if abs(better) < 0.3 else 1 if better > 0 else 2, {}
    if kind == "abx":
        right = 1 if heard["x"] == heard["a"] else 2
        return right if numbers.random() < 0.8 else 3 - right, {}
    if kind == "choice":
        return int(numbers.integers(1, question.points + 1)), {}
    return int(np.clip(np.rint(3 + found["a"]), *question.ends)), {}
