"""Designs of tests of one's own recordings, on every screen: which samples a trial has, and what the checker sees."""

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils import timezone

from common.errors import ProblemsError
from listening.app.models import PresentationSample, Study
from listening.app.studies.designing import extend_design, make_design
from listening.app.studies.planning import LONGEST_KEY
from listening.app.studies.selectors import expected_effort
from listening.app.studies.services import change_questions, start_design
from listening.app.studies.stored_design import build_certificate, list_failures, read_rows
from listening.questions import load_preset
from tests.listening.own_factories import make_own_draft, make_own_prepared
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db
PRESETS = ("dcr", "ccr", "ab", "abx", "mushra")
SLOTS = {"dcr": "ra", "ccr": "ab", "ab": "ab", "abx": "abx", "mushra": "r123"}
CONDITIONS = ("", "codec", "coder")


def make(preset, **fields):
    return make_own_prepared(make_organizer(), preset=preset, conditions=CONDITIONS, **fields)


def samples_of(presentation):
    """Return the condition of each slot."""
    return dict(presentation.samples.values_list("slot", "stimulus__condition__code"))


@pytest.mark.parametrize("preset", PRESETS)
def test_trials_have_the_samples_of_their_screen(preset):
    study = make(preset)
    assert (study.certificate["passes"], study.blocks.count()) == (True, 4)
    for presentation in study.presentations.all():
        assert sorted(samples_of(presentation)) == sorted(SLOTS[preset])
        assert presentation.is_target is None
        assert presentation.samples.values("stimulus__item").distinct().count() == 1


def test_pairs_are_two_conditions_with_each_of_them_as_a():
    trials = [tuple(sorted(samples_of(one).items())) for one in make("ccr").presentations.all()]
    assert {(("a", one), ("b", other)) for one in CONDITIONS for other in CONDITIONS if one != other} == set(trials)


def test_x_is_the_stimulus_of_a_or_of_b():
    found = set()
    for presentation in make("abx").presentations.all():
        stimuli = dict(presentation.samples.values_list("slot", "stimulus"))
        assert stimuli["a"] != stimuli["b"]
        found.add(next(slot for slot in ("a", "b") if stimuli[slot] == stimuli["x"]))
    assert found == {"a", "b"}


def test_condition_of_a_presentation_is_that_of_sample_a():
    for presentation in make("ccr").presentations.all():
        assert samples_of(presentation)["a"] == presentation.condition.code


def test_names_of_many_long_conditions_give_different_keys_that_fit():
    conditions = ("", *(f"{number:02}" + "x" * 38 for number in range(11)))
    study = make_own_prepared(make_organizer(), preset="mushra", conditions=conditions, items=("a" * 120, "b" * 120))
    keys = list(study.presentations.values_list("key", flat=True))
    assert len(set(keys)) == len(keys) > 2
    assert max(map(len, keys)) <= LONGEST_KEY


def test_evaluators_are_added_while_a_test_is_open(client):
    study = make("ccr")
    Study.objects.filter(pk=study.pk).update(state=Study.State.OPEN, launched_at=timezone.now())
    before = list(study.blocks.values_list("number", "trials__presentation__key"))
    client.force_login(study.created_by)
    page = client.get(reverse("studies:extend", args=[study.name])).content.decode()
    assert "all together stay balanced" in page
    certificate = extend_design(Study.objects.get(pk=study.pk), 3, study.created_by)
    assert (certificate["passes"], certificate["waves"]) == (True, [4, 3])
    assert list(study.blocks.filter(wave=0).values_list("number", "trials__presentation__key")) == before


@pytest.mark.parametrize(
    ("slot", "sentence"),
    [("r", "the reference is of codec, not original"), ("2", "recordings of several items, a and b")],
)
def test_checker_sees_a_sample_that_is_not_as_the_screen_has_it(slot, sentence):
    study = make("mushra")
    sample = PresentationSample.objects.filter(presentation__study=study, slot=slot).first()
    item = "b" if slot == "2" else sample.stimulus.item.name
    code = sample.stimulus.condition.code if slot == "2" else "codec"
    if slot == "2" and sample.stimulus.item.name == "b":
        item = "a"
    sample.stimulus = study.stimulus_files.get(item__name=item, condition__code=code)
    sample.save()
    assert sentence in "\n".join(list_failures(build_certificate(read_rows(study))))


def test_checker_sees_a_sample_that_is_missing():
    study = make("abx")
    study.presentations.first().samples.get(slot="x").delete()
    assert "the samples a, b instead of x, a, b" in "\n".join(list_failures(build_certificate(read_rows(study))))


def test_design_with_a_reference_is_refused_without_an_original():
    study = make_own_draft(make_organizer(), preset="dcr", conditions=("codec", "coder"), trials_per_evaluator=3)
    with pytest.raises(ProblemsError, match="no condition is the original"):
        make_design(study, study.created_by)


def test_question_with_a_reference_is_refused_afterwards_without_an_original():
    study = make_own_draft(make_organizer())
    with pytest.raises(ValidationError, match="no condition is"):
        change_questions(study=study, by=study.created_by, questions=load_preset("dcr").questions)


def test_effort_counts_every_recording_of_a_trial():
    alone, pair = (
        make_own_prepared(make_organizer(), name=one, preset=one, trials_per_evaluator=3) for one in ("mos", "ab")
    )
    for study in (alone, pair):
        study.stimulus_files.update(duration_s=60)
    assert expected_effort(pair)["minutes"] - expected_effort(alone)["minutes"] == 3


@pytest.mark.parametrize(("preset", "each"), [("mushra", 12), ("abx", 24)])
def test_pages_of_organizers_tell_what_is_compared(preset, each, client):
    study = make(preset)
    client.force_login(study.created_by)
    pages = {
        name: client.get(reverse(f"studies:{name}", args=[study.name]))
        for name in ("detail", "design", "edit", "planner", "questions")
    }
    assert {name: reply.status_code for name, reply in pages.items()} == dict.fromkeys(pages, 200)
    counts = [(code or study.original_name, trials) for code, _, trials in pages["design"].context["counts"]]
    assert counts == [("original", each), ("codec", each), ("coder", each)]


@pytest.mark.parametrize(("evaluators", "is_made_at_once"), [(1000, True), (1700, False)])
def test_large_design_of_many_at_once_is_made_by_a_job(evaluators, is_made_at_once):
    study = make_own_draft(make_organizer(), preset="mushra", conditions=CONDITIONS, evaluators=evaluators)
    assert (start_design(study, study.created_by) is None) == is_made_at_once
