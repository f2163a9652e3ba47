"""Practice and control trials of own recordings: folders of the archive with these names, answers in items.csv."""

import pytest
from django.utils import timezone

from listening.app.models import Flag, Study
from listening.app.monitor.services import flag_sessions
from listening.app.recordings.files import read_test_file, write_test_file
from listening.app.results.inputs import collect_inputs
from listening.app.studies.designing import extend_design
from listening.app.studies.forms import StudyForm, read_initial
from tests.listening.factories import make_session
from tests.listening.own_factories import recordings, run_jobs, send_recordings, sound
from tests.listening.recordings.test_own_tests import address
from tests.listening.session_factories import make_finished_session, play_trials

pytestmark = pytest.mark.django_db
UNSCORED = {
    "practice-trials/p1.wav": sound(310),
    "practice-trials/p2.wav": sound(320),
    "control-trials/say-bad.wav": sound(330),
    "control-trials/good-one.wav": sound(340),
}
TABLE = {"items.csv": "item,answer\nsay-bad,1\ngood-one,4–5\n"}


def errors(reply):
    assert reply.status_code == 422
    return " ".join(reply.context["form"].errors["archive"])


def launch(place):
    assert send_recordings(place.client, recordings() | UNSCORED | TABLE).status_code == 302
    run_jobs()
    assert place.client.post(address(Study.objects.get(), "launch")).status_code == 302
    return Study.objects.get()


def purposes(block):
    return [trial.presentation.purpose for trial in block.trials.select_related("presentation")]


def test_practice_comes_first_and_control_trials_stand_among_the_others_in_every_block(place):
    study = launch(place)
    assert (study.practice_trials, study.gold_trials, study.trials_per_evaluator) == (2, 2, 6)
    assert study.certificate["passes"]
    for block in study.blocks.all():
        found = purposes(block)
        assert found[:2] == ["practice"] * 2
        assert sorted(found[2:]) == ["gold"] * 2 + ["scored"] * 6
        assert "gold gold" not in " ".join(found)
    expected = dict(study.presentations.filter(purpose="gold").values_list("samples__stimulus__item__name", "expected"))
    assert expected == {"say-bad": {"quality": [1, 1]}, "good-one": {"quality": [4, 5]}}


def test_blocks_that_are_added_have_them_too(place):
    study = launch(place)
    assert extend_design(study, 3, place.organizer)["passes"]
    assert sorted(purposes(study.blocks.last())[:2]) == ["practice"] * 2
    assert purposes(study.blocks.last()).count("gold") == 2


def test_who_misses_them_is_flagged_and_they_enter_no_result(place):
    study = launch(place)
    careful, careless = (make_finished_session(study, lambda *_: 3) for _ in range(2))
    for item, right in {"say-bad": 1, "good-one": 5}.items():
        careful.answers.filter(trial__presentation__samples__stimulus__item__name=item).update(rating=right)
    flag_sessions(timezone.now())
    assert list(Flag.objects.filter(kind="gold-missed").values_list("session", flat=True)) == [careless.pk]
    answers = collect_inputs(Study.objects.get()).answers
    assert (set(answers.condition), len(answers)) == ({"clean", "codec"}, 2 * 6)


def test_everything_wrong_with_them_is_told_at_once(place):
    table = {"items.csv": "item,answer\nsay-bad,9\n"}
    files = recordings() | UNSCORED | {"practice-trials/a.wav": sound(350)}
    told = errors(send_recordings(place.client, files | table))
    assert "practice-trials/a.wav: expected a name that no other recording has" in told
    assert (
        "control-trials/good-one.wav: expected its right answer in the column answer of items.csv, found none" in told
    )


def test_they_are_refused_where_recordings_are_compared(place):
    told = errors(send_recordings(place.client, recordings() | UNSCORED | TABLE, preset="ab"))
    assert "practice-trials: only tests that rate or label single recordings have this folder" in told


def made(place, preset, items="abcdefgh", **more):
    """Launch a test with practice and control trials that are made of its own items."""
    files = recordings(conditions=("clean", "codec", "coder"), items=items, rate_hz=24000)
    send_recordings(place.client, files, preset=preset, original="clean", practice_trials=2, **more)
    run_jobs()
    assert place.client.post(address(Study.objects.get(), "launch")).status_code == 302
    return Study.objects.get()


def heard_in(presentation):
    """By slot what is heard, as (condition, item)."""
    names = presentation.samples.values_list("slot", "stimulus__condition__code", "stimulus__item__name")
    return {slot: (code, item) for slot, code, item in names}


@pytest.mark.parametrize(
    ("preset", "right"),
    [
        ("dcr", {"degradation": [4, 5]}),
        ("ccr", {"comparison": [-1, 1]}),
        ("ab", {"preference": [3, 3]}),
        ("abx", {"identity": [1, 1]}),
    ],
)
def test_control_trials_are_made_where_their_answer_is_sure(preset, right, place):
    study = made(place, preset, gold_trials=2)
    assert study.certificate["passes"]
    for block in study.blocks.all()[:3]:
        found = purposes(block)
        assert (found[:2], sorted(found[2:])[:2]) == (["practice"] * 2, ["gold"] * 2)
    gold = list(study.presentations.filter(purpose="gold").order_by("key"))
    assert [one.expected for one in gold] == [right, right if preset != "abx" else {"identity": [2, 2]}]
    for number, one in enumerate(gold):
        heard = heard_in(one)
        assert heard["x"] == heard["ab"[number]] if preset == "abx" else len(set(heard.values())) == 1
        assert len(set(heard.values())) == (2 if preset == "abx" else 1)
    aside = {item for one in study.presentations.exclude(purpose="scored") for _, item in heard_in(one).values()}
    scored = {item for one in study.presentations.filter(purpose="scored") for _, item in heard_in(one).values()}
    assert (len(aside), aside & scored) == (6 if preset == "abx" else 4, set())


@pytest.mark.parametrize("preset", ["mos", "mushra"])
def test_practice_alone_is_made_where_no_answer_is_sure(preset, place):
    study = made(place, preset)
    practice = list(study.presentations.filter(purpose="practice").order_by("key"))
    assert "" in {code for code, _ in heard_in(practice[0]).values()}
    assert (len(practice), study.gold_trials, "gold_trials" in StudyForm(study=study).fields) == (2, 0, False)


def test_practice_and_control_trials_that_cannot_be_are_refused(place):
    told = errors(send_recordings(place.client, recordings(), gold_trials=1))
    assert "Control trials need a known answer, which DCR, CCR, AB with “neither” and ABX have." in told
    told = errors(send_recordings(place.client, recordings(), preset="abx", practice_trials=1, gold_trials=1))
    assert "The 2 practice and control trials need 3 items of their own, and every condition has 3." in told


def test_right_answer_is_told_of_practice_in_abx_and_of_no_other_trial(place, client):
    study = made(place, "abx", gold_trials=1)
    session = make_session(study)
    play_trials(session, session.block.trials.all())
    practice = list(session.block.trials.filter(presentation__purpose="practice").order_by("position"))
    right = [one.presentation.expected["identity"][0] for one in practice]
    trials = client.get(f"/listen/{session.token}/state").json()["trials"]
    assert [one.get("right") for one in trials[:2]] == [{"identity": [one, " AB"[one]]} for one in right]
    assert [one for one in trials[2:] if "right" in one] == [] != trials[2:]


def test_who_misses_made_control_trials_is_flagged_and_they_enter_no_result(place):
    study = made(place, "ccr", gold_trials=2, items="abcdefg")
    careful, careless = (make_finished_session(study, lambda *_: 3) for _ in range(2))
    careful.answers.filter(trial__presentation__purpose="gold").update(rating=0)
    flag_sessions(timezone.now())
    assert list(Flag.objects.filter(kind="gold-missed").values_list("session", flat=True)) == [careless.pk]
    answers = collect_inputs(Study.objects.get()).answers
    assert len(answers) == 2 * 2 * study.trials_per_evaluator
    assert read_test_file(write_test_file(study)).given["gold_trials"] == 2


def test_labels_have_practice_with_feedback_and_control_trials_from_their_folders(place):
    table = {"items.csv": "item,answer\nsay-bad,sad\ngood-one,happy\np1,angry\n"}
    files = recordings(items="abc") | UNSCORED
    told = errors(send_recordings(place.client, files | TABLE, preset="emotion"))
    assert "expected the right answer to say-bad as one of neutral, happy, sad, angry, afraid, found 1." in told
    assert send_recordings(place.client, files | table, preset="emotion").status_code == 302
    expected = dict(Study.objects.get().presentations.exclude(purpose="scored").values_list("key", "expected"))
    assert expected["control-trials/say-bad"] == {"emotion": [3, 3]}
    assert expected["practice-trials/p1"] == {"emotion": [4, 4]}


def test_edit_page_keeps_control_trials_that_came_with_the_recordings(place):
    send_recordings(place.client, recordings() | UNSCORED | TABLE)
    study = Study.objects.get()
    given = read_initial(study) | {"gold_trials": 2}
    assert "gold_trials" not in StudyForm(given, study=study).errors
