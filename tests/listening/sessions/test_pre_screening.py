"""The tests before the trials: made, counted and scored on the server, before the main task."""

import io
import wave

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Block
from listening.app.monitor.services import flag_sessions
from listening.app.sessions.attention import fails_attention, is_gold_missed
from listening.app.sessions.forms import QuestionsForm
from listening.app.studies.settings import BackgroundQuestion
from tests.listening.factories import make_study
from tests.listening.visits import PERSON, PLAIN, Visit, text_of

pytestmark = pytest.mark.django_db
CODES = {"codes": {"complete": "ALLDONE1", "screened-out": "NOTTHIS2"}}


def make_visit(screening, **fields):
    study = make_study(platform="prolific", platform_settings=CODES, screening=PLAIN | screening, **fields)
    visit = Visit(study, PERSON)
    visit.consent()
    return visit


def results(visit):
    return list(visit.session.screening_results.values_list("kind", "attempt", "score", "of", "is_passed"))


def samples(content):
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getsampwidth()) == (2, 16000, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)


def test_criterion_19_sound_test_passes_who_counted_right():
    visit = make_visit({"sound": True})
    assert visit.session.step == "sound"
    visit.answer_test("sound")
    assert results(visit) == [("sound", 1, 2, 2, True)]
    assert visit.session.step == "role-play"


def test_criterion_19_sound_test_can_be_tried_three_times_and_no_more():
    visit = make_visit({"sound": True})
    for attempt in (1, 2, 3):
        assert f"attempt {attempt} of 3" in visit.text() or attempt == 1
        visit.answer_test("sound", right=False)
    assert [row[4] for row in results(visit)] == [False] * 3
    assert (visit.session.state, visit.session.step, visit.session.completion_code) == (
        "screened-out",
        "end",
        "NOTTHIS2",
    )
    visit.post("sound", attempt=4, answer1=2, answer2=2)
    assert len(results(visit)) == 3


def test_criterion_19_screened_out_before_the_main_task_with_a_polite_text_and_no_block():
    visit = make_visit({"headphones": "huggins", "headphones_gate": "gate", "headphones_attempts": 1})
    visit.answer_test("headphones", right=False)
    page = visit.page()
    assert "Thank you for your interest" in text_of(page)
    assert "NOTTHIS2" in text_of(page)
    assert "ALLDONE1" not in page.content.decode()
    assert Block.objects.exclude(holder=None).count() == 0
    assert visit.session.trials_started_at is None
    visit.post("role-play")
    assert (visit.session.state, visit.session.step) == ("screened-out", "end")


def test_criterion_19_flag_keeps_the_score_and_lets_go_on():
    visit = make_visit({"headphones": "huggins", "headphones_gate": "flag", "headphones_attempts": 2})
    visit.answer_test("headphones", right=False)
    assert visit.session.step == "headphones"
    visit.answer_test("headphones", right=False)
    assert results(visit) == [("huggins", 1, 0, 6, False), ("huggins", 2, 0, 6, False)]
    assert (visit.session.state, visit.session.step) == ("active", "role-play")


@pytest.mark.parametrize(("kind", "wrong", "is_passed"), [("huggins", 1, False), ("woods", 1, True)])
def test_huggins_needs_six_of_six_and_woods_five(kind, wrong, is_passed):
    visit = make_visit({"headphones": kind})
    visit.page()
    row = visit.session.screening_results.get()
    row.secret["sent"] = list(range(6))
    row.save()
    given = [one % 3 + 1 if place < wrong else one for place, one in enumerate(row.secret["right"])]
    visit.post("headphones", kind=kind, attempt=1, **{f"answer{place}": one for place, one in enumerate(given, 1)})
    row.refresh_from_db()
    assert (row.score, row.is_passed, row.given) == (6 - wrong, is_passed, given)


def test_bandwidth_and_environment_follow_the_headphones_and_each_has_its_own_consequence():
    visit = make_visit(
        {"headphones": "woods", "headphones_attempts": 1, "bandwidth": "flag", "environment": "gate"}, rate_hz=48000
    )
    assert len(visit.sounds()) == 6
    visit.answer_test("headphones")
    assert "Bandwidth check 2 of 3" in visit.text()
    files = [visit.ask("get", address).content for address in visit.sounds()]
    assert {int.from_bytes(file[24:28], "little") for file in files} == {48000}  # its rate
    visit.answer_test("headphones", right=False)
    assert "Check of your surroundings 3 of 3" in visit.text()
    visit.answer_test("headphones", right=False)
    assert results(visit) == [("woods", 1, 6, 6, True), ("bandwidth", 1, 0, 5, False), ("environment", 1, 0, 4, False)]
    assert (visit.session.state, visit.session.step) == ("screened-out", "end")
    flag_sessions(timezone.now())
    assert visit.session.flags.get().data == {"checks": ["bandwidth", "environment"], "holds": True}


@pytest.mark.parametrize(("wrong", "is_passed"), [(1, True), (2, False)])
def test_environment_needs_three_of_four_pairs(wrong, is_passed):
    visit = make_visit({"environment": "flag"})
    visit.page()
    row = visit.session.screening_results.get()
    row.secret["sent"] = [0, 1, 2, 3]
    row.save()
    given = [3 if place < wrong else one for place, one in enumerate(row.secret["right"])]
    visit.post("headphones", kind="environment", attempt=1, **{f"answer{n}": one for n, one in enumerate(given, 1)})
    row.refresh_from_db()
    assert (row.score, row.is_passed) == (4 - wrong, is_passed)


@pytest.mark.parametrize(("hearing", "state"), [("no", "active"), ("yes", "screened-out")])
def test_hearing_is_asked_and_decides_where_the_study_is_for_who_hears_well(hearing, state):
    visit = make_visit({"normal_hearing": True})
    assert visit.post("questions").status_code == 422
    visit.post("questions", hearing=hearing)
    assert (visit.session.state, results(visit)) == (
        state,
        [("hearing", 1, int(hearing == "no"), 1, hearing == "no")],
    )


def test_criterion_19_reload_or_old_form_is_no_new_attempt():
    visit = make_visit({"headphones": "huggins", "headphones_attempts": 2})
    first = [visit.sounds() for _ in range(3)]
    assert first[0] == first[1] == first[2]
    secret = visit.session.screening_results.get().secret
    visit.answer_test("headphones", right=False)
    old = {f"answer{place}": one for place, one in enumerate(secret["right"], 1)}
    visit.post("headphones", kind="huggins", attempt=1, **old)
    visit.page()
    visit.post("headphones", kind="huggins", attempt=1, **old)
    visit.post("headphones", kind="woods", attempt=2, **old)
    assert [row[4] for row in results(visit)] == [False, None]
    assert visit.sounds() != first[0]


def test_what_was_not_listened_to_cannot_be_answered():
    visit = make_visit({"sound": True})
    visit.sounds()
    answer = visit.post(visit.session.step, kind="huggins", attempt=1, answer1=2, answer2=2)
    assert answer.status_code == 422
    empty = visit.post(visit.session.step, kind="huggins", attempt=1)
    sentence = "Press “Test my sound” first."
    for told in (answer, empty):  # at the answer and in the summary
        assert text_of(told).count(sentence) == 4
    assert visit.session.screening_results.get().is_passed is None


@pytest.mark.parametrize("attempt", ["01", "1.0", " 1"])
def test_attempt_written_in_another_way_is_none(attempt):
    visit = make_visit({"headphones": "huggins"})
    visit.page()
    right = visit.session.screening_results.get().secret["right"]
    given = {f"answer{place}": one for place, one in enumerate(right, 1)}
    assert visit.post("headphones", kind="huggins", attempt=attempt, **given).status_code == 422
    assert visit.session.screening_results.get().is_passed is None


def test_untouched_or_crafted_answers_are_no_attempt():
    visit = make_visit({"headphones": "huggins"})
    visit.page()
    for given in ({"answer1": 1}, {f"answer{place}": 9 for place in range(1, 7)}):
        answer = visit.post("headphones", kind="huggins", attempt=1, **given)
        assert answer.status_code == 422
        assert "Something is still missing" in text_of(answer)
    assert visit.session.screening_results.get().is_passed is None
    assert b"checked" not in visit.page().content


@pytest.mark.parametrize(("native", "state", "step"), [("en", "active", "role-play"), ("fr", "screened-out", "end")])
def test_criterion_19_language_gate_lets_native_speakers_in(native, state, step):
    visit = make_visit({"native_languages": ["en-gb"]})
    assert visit.session.step == "questions"
    answer = visit.post("questions", native_language=native)
    assert answer.status_code == 302
    assert (visit.session.state, visit.session.step) == (state, step)
    assert results(visit) == [("language", 1, int(native == "en"), 1, native == "en")]
    assert visit.session.questionnaire == {"native_language": native}


def test_sound_test_plays_what_has_to_be_counted_in_both_ears():
    visit = make_visit({"sound": True})
    (address,) = visit.sounds()
    sound = samples(visit.ask("get", address).content)
    assert np.array_equal(sound[:, 0], sound[:, 1])
    loud = np.abs(sound[:, 0]).reshape(-1, 160).max(axis=1) > 100
    onsets = np.flatnonzero(loud & ~np.roll(loud, 1))
    gaps = np.flatnonzero(np.diff(onsets) * 0.01 > 1.2)
    counted = [int(gaps[0]) + 1, len(onsets) - int(gaps[0]) - 1]
    assert counted == visit.session.screening_results.get().secret["right"]


def test_sounds_of_other_sessions_attempts_and_times_are_not_found():
    study = make_study(screening=PLAIN | {"sound": True}, evaluators=2)
    visit, other = Visit(study), Visit(study)
    visit.consent()
    (address,) = visit.sounds()
    name = address.rpartition("/")[2]
    before_consent = reverse("listen:sound", args=[other.token, name])
    assert Client().get(before_consent).status_code == 404
    other.consent()
    other.page()
    assert Client().get(before_consent).status_code == 404
    visit.answer_test("sound", right=False)
    assert visit.ask("get", address).status_code == 404
    (address,) = visit.sounds()
    assert visit.ask("get", address).status_code == 200
    visit.answer_test("sound")
    assert visit.ask("get", address).status_code == 404


@pytest.mark.parametrize(("languages", "is_offered"), [((), True), (("en",), False)])
def test_native_language_may_be_kept_unless_the_study_asks_for_one(languages, is_offered):
    question = BackgroundQuestion("native_language", "language", {"en": "Native language"})
    form = QuestionsForm(None, questions=(question,), language="en", languages=languages)
    assert (("undisclosed", "I would rather not say") in form.fields["native_language"].choices) is is_offered


@pytest.mark.parametrize(
    ("given", "is_missed"),
    [
        ({"naturalness": 9}, False),
        ({"naturalness": 8}, True),
        ({"naturalness": 10, "intelligibility": 4}, True),
        ({"naturalness": 10, "intelligibility": 3}, False),
        ({"verifiability": 1}, False),
        ({"naturalness": None}, False),
    ],
)
def test_control_trial_is_missed_outside_of_what_is_expected(given, is_missed):
    expected = {"naturalness": [9, 10], "intelligibility": [1, 3]}
    assert is_gold_missed(expected, given) is is_missed


@pytest.mark.parametrize(
    ("missed", "answered", "fails"), [(0, 0, False), (1, 1, True), (1, 2, False), (2, 2, True), (2, 3, True)]
)
def test_attention_fails_with_more_than_half_of_the_control_trials_missed(missed, answered, fails):
    assert fails_attention(missed=missed, answered=answered) is fails
