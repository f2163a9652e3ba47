"""Collecting: what enters an analysis of a study and what never does, under which names, and at which price."""

import numpy as np
import pytest
from django.utils import timezone

from listening.analysis.post_screening.rules import read_right_answers
from listening.app.models import Answer, Presentation, Session, Study
from listening.app.monitor.services import create_rule, revoke_rule
from listening.app.results.inputs import collect_inputs, compute_basis, has_answers, keys_of_sessions, session_key
from tests.listening.factories import make_session, make_study
from tests.listening.results.answered import answer, make_answered

pytestmark = pytest.mark.django_db
QUERIES = 11


def test_ratings_are_those_of_the_answers_in_their_order():
    study = make_answered(evaluators=3, trials=4)
    ratings = collect_inputs(study).ratings
    keys = keys_of_sessions(study)
    stored = Answer.objects.order_by("session", "pk").values_list(
        "session",
        "task",
        "rating",
        "trial__presentation__key",
        "trial__position",
        "trial__presentation__condition__code",
    )
    columns = (ratings.session, ratings.task, ratings.rating, ratings.item, ratings.position, ratings.system)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    assert [(keys[row[0]], *row[1:5], "" if row[5] == "original" else row[5]) for row in rows] == list(stored)
    assert len(ratings) == 3 * 4 * 3
    assert set(ratings.purpose) == {"scored"}
    assert ratings.is_finished.all()


def test_voices_and_sample_b_belong_to_verifiability_alone():
    study = make_answered(evaluators=1, trials=4)
    ratings = collect_inputs(study).ratings
    compares = ratings.task == "verifiability"
    targets = dict(study.presentations.values_list("key", "is_target"))
    expected = [int(targets[item]) for item in ratings.item[compares].tolist()]
    assert ratings.is_target[compares].tolist() == expected
    assert set(ratings.is_target[~compares].tolist()) == {-1}
    assert (ratings.enrolment[compares] != "").all()
    assert set(ratings.enrolment[~compares]) == {""}
    sample = study.presentations.get(key=ratings.item[0]).samples.get(slot="a").stimulus.item
    row = (sample.name, sample.speaker, sample.sex)
    assert (ratings.utterance[0], ratings.speaker[0], ratings.gender[0]) == row


@pytest.mark.parametrize(
    ("is_preview", "counted"),
    [(False, {"finished": [True], "expired": [False], "technical": [False]}), (True, {})],
)
def test_sessions_that_count(is_preview, counted):
    study = make_study(evaluators=1, trials=2)
    answer(make_session(study))
    for state in Session.State:
        Session.objects.update(state=state, is_preview=is_preview)
        finished = counted.get(state, [])
        assert sorted(set(collect_inputs(study).ratings.is_finished.tolist())) == finished
        assert has_answers(study) is bool(finished)


def test_practice_is_left_out_and_controls_are_marked():
    study = make_answered(evaluators=1, trials=4)
    expected = {"verifiability": [9, 10]}
    for item, purpose in zip(study.presentations.order_by("pk"), ("practice", "gold", "bridge"), strict=False):
        Presentation.objects.filter(pk=item.pk).update(purpose=purpose, expected=expected)
    purposes = collect_inputs(study).ratings.purpose.tolist()
    assert {one: purposes.count(one) for one in purposes} == {"gold": 3, "bridge": 3, "scored": 3}
    gold = study.presentations.get(purpose="gold")
    assert read_right_answers(collect_inputs(study).study.design) == {gold.key: expected}
    study.presentations.update(purpose="practice")
    assert len(collect_inputs(study).ratings) == 0
    assert not has_answers(study)


def test_sessions_of_one_person_are_one_listener_and_nobody_is_named():
    study = make_study(evaluators=2, trials=2)
    first = answer(make_session(study))
    second = answer(make_session(study))
    Session.objects.filter(pk=second.pk).update(participant=first.participant)
    ratings = collect_inputs(study).ratings
    assert len(set(ratings.listener.tolist())) == 1
    assert set(ratings.session.tolist()) == {session_key(study, one.pk) for one in (first, second)}
    person = first.participant.person_key
    assert person not in "".join(ratings.listener.tolist())
    other = make_answered(evaluators=1, trials=2)
    other.participants.update(person_key=person)
    assert not set(collect_inputs(other).ratings.listener.tolist()) & set(ratings.listener.tolist())


def test_excluded_sessions_are_told_with_their_reason_while_the_rule_stands():
    study = make_answered(evaluators=2, trials=2)
    session = study.sessions.first()
    before, basis = collect_inputs(study), compute_basis(study)
    rule = create_rule(study=study, by=None, reason="listened on a train", session=session)
    inputs = collect_inputs(study)
    excluded = inputs.ratings.excluded[inputs.ratings.session == session_key(study, session.pk)]
    assert set(excluded.tolist()) == {"listened on a train"}
    assert (inputs.ratings.excluded != "").sum() == len(excluded) == 6
    assert inputs.exclusions == (("session", session_key(study, session.pk), "listened on a train", True),)
    assert compute_basis(study) != basis
    revoke_rule(rule=rule, by=None, now=timezone.now())
    again = collect_inputs(study)
    assert np.array_equal(again.ratings.excluded, before.ratings.excluded)
    assert again.exclusions[0][3] is False
    assert compute_basis(study) == basis


def test_design_seed_texts_and_scale_stand_with_the_inputs():
    study = make_answered(evaluators=1, trials=2, title="Voices", is_simulated=True)
    study.texts.create(kind="consent", language="en", version=1, text="I take part.")
    facts = collect_inputs(study).study
    assert (facts.name, facts.title, facts.form, facts.is_simulated) == (study.name, "Voices", "rating", True)
    assert facts.scale == dict.fromkeys(("verifiability", "naturalness", "intelligibility"), (1.0, 10.0))
    assert (facts.design["seed"], facts.design["certificate"]) == (2022, {"passes": True})
    assert collect_inputs(study).texts == {"consent-en-1.md": "I take part."}
    assert set(facts.labels) == set(study.systems.values_list("code", flat=True))


def test_boards_become_placements():
    study = make_study(evaluators=1, trials=1, tasks=["linkability"])
    session, item = make_session(study), study.presentations.get()
    samples = {
        "a": {"at": [0.25, 0.5], "group": "A", "plays": 1},
        "b": {"at": [1, 0], "group": "B", "plays": 2},
    }
    for sample, slot in zip(item.samples.order_by("pk"), ("1", "2"), strict=True):
        sample.slot = slot
        sample.save()
    data = {"speakers": 3, "samples": {"1": samples["a"], "2": samples["b"]}, "moves": [], "left_out": 0}
    now = timezone.now()
    session.answers.create(trial=session.block.trials.get(), task="linkability", data=data, received_at=now)
    Session.objects.update(state="finished")
    found = collect_inputs(study).placements
    assert found.slot.tolist() == ["1", "2"]
    assert (found.x.tolist(), found.y.tolist()) == ([0.25, 1.0], [0.5, 0.0])
    assert (found.group.tolist(), found.declared.tolist()) == (["A", "B"], [3, 3])
    assert set(found.board.tolist()) == {item.key}
    data["samples"]["1"]["at"] = [0.75]
    Answer.objects.update(data=data)
    line = collect_inputs(study).placements
    assert line.x[0] == 0.75
    assert np.isnan(line.y[0])


def test_transcriptions_stand_beside_what_was_said():
    study = make_study(evaluators=1, trials=2, tasks=["transcription"])
    session, now = make_session(study), timezone.now()
    first, second = session.block.trials.all()
    session.answers.create(trial=first, task="transcription", text="a sentence", received_at=now)
    session.answers.create(trial=second, task="transcription", data={"nothing": True}, received_at=now)
    Session.objects.update(state="finished")
    found = collect_inputs(study).transcripts
    said = [one.presentation.samples.get(slot="a").stimulus.item.transcript for one in (first, second)]
    assert all(said)
    assert (found.text.tolist(), found.reference.tolist()) == (["a sentence", ""], said)
    assert found.nothing.tolist() == [False, True]
    assert collect_inputs(study).ratings is None


def test_queries_do_not_grow_with_the_study(django_assert_num_queries):
    study = make_answered(evaluators=3, trials=8)
    create_rule(study=study, by=None, reason="test", session=study.sessions.first())
    study = Study.objects.select_related("edition__corpus").get(pk=study.pk)
    with django_assert_num_queries(QUERIES):
        collect_inputs(study)
    with django_assert_num_queries(6):
        compute_basis(study)
