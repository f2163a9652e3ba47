"""Organizers change every word, the scales, the order and the number of questions until the launch, and see a trial."""

import re

import pytest
from django.urls import reverse
from django.utils import timezone

from listening.app.studies import services
from listening.questions import load_preset
from tests.listening.edition_factories import make_draft, make_edition_with_speech, make_prepared
from tests.listening.factories import make_session, make_study
from tests.listening.rated import RATED
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db


@pytest.fixture
def organizer():
    return make_organizer()


@pytest.fixture
def edition(organizer):
    return make_edition_with_speech(organizer=organizer)


@pytest.fixture
def signed_in(client, organizer):
    client.force_login(organizer)
    return client


def page_of(study):
    return reverse("studies:questions", args=[study.name])


def filled(client, study):
    """What a browser would send of the form as it is."""
    formset = client.get(page_of(study)).context["formset"]
    sent = {f"form-{name}": value for name, value in formset.management_form.initial.items()}
    for number, form in enumerate(formset):
        for name in form.fields:
            value = form[name].value()
            if name == "ORDER":
                value = number + 1 if form.instance.pk else ""
            if value not in (None, False, ""):
                sent[f"form-{number}-{name}"] = value
    return sent


def asked_of(study):
    return type(study).objects.get(pk=study.pk).asked


def test_form_that_is_sent_as_it_is_changes_nothing(signed_in, edition):
    study = make_prepared(edition)
    before = study.asked
    assert signed_in.post(page_of(study), filled(signed_in, study)).status_code == 302
    study.refresh_from_db()
    assert (asked_of(study), study.is_designed) == (before, True)


def test_wording_alone_keeps_the_design_and_reaches_the_trial(signed_in, edition):
    study = make_prepared(edition)
    sent = filled(signed_in, study) | {"form-1-question_fr": "Et A, naturel ou pas ?"}
    assert signed_in.post(page_of(study), sent).status_code == 302
    study.refresh_from_db()
    assert study.is_designed
    shown = signed_in.get(reverse("studies:question-preview", args=[study.name, "fr"])).content.decode()
    assert "Et A, naturel ou pas ?" in shown
    assert 'lang="fr"' in shown
    english = signed_in.get(reverse("studies:question-preview", args=[study.name, "en"])).content.decode()
    assert "How natural does A sound?" in english


def test_scale_order_and_number_of_questions_can_change_and_take_the_design_away(signed_in, edition):
    study = make_prepared(edition, gold_trials=0)
    labels = "Bad\nPoor\nFair\nGood\nExcellent"
    sent = filled(signed_in, study) | {
        "form-0-DELETE": "on",
        "form-1-ORDER": 9,
        "form-1-points": 5,
        "form-1-labels_en": labels,
        "form-1-labels_fr": labels,
        "form-3-key": "pleasantness",
        "form-3-question_en": "How pleasant is A?",
        "form-3-question_fr": "A est-il agréable ?",
        "form-3-ORDER": 1,
    }
    response = signed_in.post(page_of(study), sent)
    assert response.status_code == 302, response.content.decode()
    study.refresh_from_db()
    assert [(one.key, one.points) for one in asked_of(study)] == [
        ("pleasantness", 5),
        ("intelligibility", 10),
        ("naturalness", 5),
    ]
    assert (study.is_designed, study.state) == (False, "draft")
    assert asked_of(study)[2].labels("en")[5] == "Excellent"


def test_questions_that_do_not_go_together_are_told_and_not_kept(signed_in, edition):
    study = make_draft(edition)
    before = study.asked
    sent = filled(signed_in, study) | {"form-0-DELETE": "on", "form-1-labels_en": "one\ntwo\nthree"}
    response = signed_in.post(page_of(study), sent)
    assert response.status_code == 422
    page = response.content.decode()
    assert "expected a label for each of the 10 points or for the two ends, found 3 in the language en." in page
    assert asked_of(study) == before


def test_questions_are_fixed_since_the_launch(signed_in, edition):
    study = make_prepared(edition)
    sent = filled(signed_in, study) | {"form-1-question_en": "Other?"}
    services.launch_study(study=study, by=None, now=timezone.now())
    page = signed_in.get(page_of(study)).content.decode()
    assert "They are fixed since the launch." in page
    assert "<form class" not in page
    assert signed_in.post(page_of(study), sent).status_code == 422
    assert asked_of(study)[1].question == "How natural does A sound?"


def test_points_with_a_label_each_stand_in_a_column_with_the_best_one_above(client):
    study = make_study(tasks=["quality"])
    page = client.get(make_session(study).get_absolute_url()).content.decode()
    assert 'class="scale column" data-points="5"' in page
    assert re.findall(r"<b>(\d)</b> (\w+)", page) == [
        ("5", "Excellent"),
        ("4", "Good"),
        ("3", "Fair"),
        ("2", "Poor"),
        ("1", "Bad"),
    ]


def test_new_study_asks_what_its_preset_says(signed_in, edition, organizer):
    for preset in ("p835", "voiceprivacy-2020", "linkability"):
        sent = {"edition": edition.pk, "title": f"Of {preset}", "preset": preset, "size": "small"}
        assert signed_in.post(reverse("studies:new"), sent).status_code == 302
        study = edition.studies.get(title=f"Of {preset}")
        loaded = load_preset(preset)
        assert study.asked == loaded.questions
        assert {name: getattr(study, name) for name in loaded.study} == loaded.study
        assert study.gold_trials == 0 or preset == "voiceprivacy-2020"
    assert tuple(one.key for one in load_preset("voiceprivacy-2022").questions) == RATED


def test_new_study_of_boards_has_no_practice_trials_and_one_of_texts_those_that_are_wanted(signed_in, edition):
    sent = {"edition": edition.pk, "title": "New", "size": "small", "practice_trials": 2}
    page = signed_in.post(reverse("studies:new"), sent | {"preset": "linkability"})
    assert (page.status_code, edition.studies.exists()) == (422, False)
    assert "of systems has neither practice nor control trials: leave both empty." in page.text
    signed_in.post(reverse("studies:new"), sent | {"preset": "transcription"})
    study = edition.studies.get()
    assert study.presentations.filter(purpose="practice").count() == 2
    page = signed_in.get(reverse("studies:edit", args=[study.name]))
    assert {"practice_trials", "items_at_most"} <= page.context["form"].fields.keys()
    assert not {"gold_trials", "originals_per_evaluator", "pages"} & page.context["form"].fields.keys()
