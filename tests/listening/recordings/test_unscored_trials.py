"""Practice and control trials of own recordings: folders of the archive with these names, answers in items.csv."""

import pytest
from django.utils import timezone

from listening.app.models import Flag, Study
from listening.app.monitor.services import flag_sessions
from listening.app.results.inputs import collect_inputs
from listening.app.studies.designing import extend_design
from tests.listening.own_factories import recordings, run_jobs, send_recordings, sound
from tests.listening.recordings.test_own_tests import address
from tests.listening.session_factories import make_finished_session

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
    assert "practice-trials: only tests that rate single recordings on a scale have such trials" in told
