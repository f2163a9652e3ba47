"""Collecting comparisons and choices: who answered what about which conditions, against a plain reading of the rows."""

import pytest

from listening.app.models import Answer, Play, Presentation
from listening.app.results.inputs import collect_inputs
from listening.questions import load_preset
from tests.listening.factories import make_session, make_study
from tests.listening.results.compared import compare, make_compared, make_comparing
from tests.listening.session_factories import make_finished_session

pytestmark = pytest.mark.django_db
PLAIN = ("question", "item", "condition", "slot", "value", "position", "truth")
LETTERS = {1: "A", 2: "B", 3: "="}


def rows_of(study, *names):
    answers = collect_inputs(study).answers
    return list(zip(*(getattr(answers, name).tolist() for name in names), strict=True))


def conditions_of(answer):
    """The codes of the conditions that were heard, by slot; the original by its name."""
    heard = answer.trial.presentation.samples.values_list("slot", "stimulus__condition__code")
    return {slot: code or "original" for slot, code in heard}


def told(answer):
    item = answer.trial.presentation.samples.first().stimulus.item.name
    return answer.task, item, answer.trial.position


@pytest.mark.parametrize("task", ["preference", "comparison", "identity"])
def test_comparison_is_a_row_for_each_of_its_two_recordings(task):
    study = make_compared([task], evaluators=2, items=2)
    expected = []
    for answer in Answer.objects.order_by("session", "pk"):
        heard, (task, item, position) = conditions_of(answer), told(answer)
        value = str(answer.rating) if task == "comparison" else LETTERS[answer.rating]
        truth = "" if "x" not in heard else "A" if heard["x"] == heard["a"] else "B"
        expected += [(task, item, heard[slot], slot.upper(), value, position, truth) for slot in ("a", "b")]
    assert rows_of(study, *PLAIN) == expected
    assert len(expected) == 2 * 2 * 6 * 2


def test_sliders_are_a_row_for_each_condition_and_none_for_the_open_reference():
    study = make_compared(["basic-audio-quality"], evaluators=2, items=2)
    expected = [
        (*told(answer)[:2], conditions_of(answer)[slot], slot, str(value), told(answer)[2], "")
        for answer in Answer.objects.order_by("session", "pk")
        for slot, value in answer.data["ratings"].items()
    ]
    assert rows_of(study, *PLAIN) == expected
    assert len(expected) == 2 * 2 * 4


def test_choice_is_told_by_its_english_label_and_the_scale_beside_it_by_its_number():
    study = make_compared(
        evaluators=2, items=2, questions=[*load_preset("emotion").questions, *load_preset("mos").questions]
    )
    labels = load_preset("emotion").questions[0].words("en").labels
    expected = [
        (task, item, conditions_of(answer)["a"], "", value, position, "")
        for answer in Answer.objects.order_by("session", "pk")
        for task, item, position in [told(answer)]
        for value in [labels[answer.rating - 1] if task == "emotion" else str(answer.rating)]
    ]
    assert rows_of(study, *PLAIN) == expected
    assert {kind["kind"] for kind in collect_inputs(study).study.answered.values()} == {"choice", "mos"}


def test_order_is_that_in_which_recordings_were_first_played():
    study = make_comparing(["preference"], evaluators=1, items=1)
    session = make_session(study)
    compare(session)
    Play.objects.all().delete()
    first, second, *_ = session.block.trials.order_by("position")
    for slot in "bab":
        Play.objects.create(session=session, trial=first, slot=slot, started_ms=1, heard_ms=1, is_whole=False)
    Play.objects.create(session=session, trial=second, slot="a", started_ms=1, heard_ms=1, is_whole=False)
    found = {(position, slot): order for position, slot, order in rows_of(study, "position", "slot", "order")}
    assert [found[1, "A"], found[1, "B"], found[2, "A"], found[2, "B"], found[3, "A"]] == [2, 1, 1, 0, 0]


def test_practice_and_control_trials_are_no_answers():
    study = make_compared(evaluators=1, items=1)
    for purpose, trial in zip(("practice", "gold"), study.presentations.order_by("pk"), strict=False):
        Presentation.objects.filter(pk=trial.pk).update(purpose=purpose)
    assert len(collect_inputs(study).answers) == 2 * (6 - 2)


def test_mushra_knows_its_reference_and_the_anchor_of_7_khz():
    about = collect_inputs(make_compared(["basic-audio-quality"], evaluators=1, items=1)).study.answered
    assert about == {
        "basic-audio-quality": {"kind": "mushra", "scale": [0, 100], "reference": "original", "anchor": "low"}
    }
    without = make_compared(["basic-audio-quality"], evaluators=1, items=1, anchor_hz=3500)
    assert collect_inputs(without).study.answered["basic-audio-quality"]["anchor"] == ""


def test_choices_about_systems_of_an_edition_go_with_a_withdrawn_submission():
    study = make_study(evaluators=1, trials=4, systems=2, tasks=["emotion"])
    make_finished_session(study, lambda *_: 2)
    assert {value for _, value in rows_of(study, "condition", "value")} == {"happy"}
    first, second = study.systems.values_list("code", flat=True)
    assert {condition for (condition,) in rows_of(study, "condition")} == {"original", first, second}
    gone = study.systems.get(code=first).submission
    gone.state = "withdrawn"
    gone.save()
    assert {condition for (condition,) in rows_of(study, "condition")} == {"original", second}
