"""Mistakes of organizers in the form of a study, each of which has to be told and must close no page."""

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from listening.app.models import Session
from listening.app.studies import services
from listening.app.studies.settings import parse_questionnaire, read_questions
from portal.submissions.models import Submission
from tests.listening.edition_factories import make_draft, make_edition_with_speech, make_prepared
from tests.listening.studies.test_studies import page, save

pytestmark = pytest.mark.django_db
CODES = {"parameters": {}, "codes": {"complete": "C1"}, "confirm_by_api": False}


@pytest.fixture
def edition(client, once):
    edition = once(make_edition_with_speech)
    client.force_login(edition.organizers.get())
    return edition


@pytest.fixture
def prepared(client, once):
    study = once(make_prepared)
    client.force_login(study.created_by)
    return study


def launch_on_prolific():
    study = make_prepared(platform="prolific", platform_settings=CODES)
    return services.launch_study(study=study, by=study.created_by, now=timezone.now())


@pytest.fixture
def on_prolific(client, once):
    study = once(launch_on_prolific)
    client.force_login(study.created_by)
    return study


def test_languages_of_commas_alone_are_none(client, edition):
    study = make_draft(edition)
    for languages in (",", " ; ;", ",,,"):
        response = save(client, study, languages=languages)
        assert response.status_code == 422
        assert "Give at least one language, such as en." in response.content.decode()
    study.refresh_from_db()
    assert study.languages == ["en", "fr"]
    for name in ("detail", "edit", "texts"):
        assert client.get(page(name, study)).status_code == 200


def test_choice_without_words_in_the_first_language_is_named_by_the_next():
    (question,) = read_questions("Do you sing? = // oui; no // non", languages=["en", "fr"])
    assert [one["value"] for one in question["choices"]] == ["oui", "no"]
    assert question["choices"][0]["labels"] == {"fr": "oui"}
    assert parse_questionnaire([question])[0].choices[0].value == "oui"


def test_code_of_a_launched_study_can_be_changed(client, on_prolific):
    assert save(client, on_prolific, code_complete="C2", code_technical="T2").status_code == 302
    on_prolific.refresh_from_db()
    assert on_prolific.platform_settings["codes"] == {"complete": "C2", "technical": "T2"}


def test_settings_of_a_launched_study_stay_sound_when_anyone_changes_them(on_prolific):
    with pytest.raises(ValidationError, match="completion code"):
        services.change_study(study=on_prolific, by=None, platform_settings=CODES | {"codes": {}})
    on_prolific.refresh_from_db()
    assert on_prolific.platform_settings == CODES


def test_study_with_a_submission_that_was_taken_back_is_not_launched(client, prepared):
    study = prepared
    submission = study.systems.first().submission
    submission.state = Submission.State.WITHDRAWN
    submission.save()
    response = client.post(page("launch", study))
    assert response.status_code == 409
    assert f"{submission} is withdrawn. Leave it out of the systems of the study." in response.content.decode()
    study.refresh_from_db()
    assert (study.state, study.launched_at) == ("prepared", None)


def test_preview_ends_with_the_test_that_it_stands_before(client, prepared):
    study = prepared
    study.screening = {"sound": False, "headphones": "woods"}
    study.save()
    address = client.post(page("preview", study)).url
    Session.objects.update(step="headphones", consented_at=timezone.now())
    assert client.get(address).status_code == 200
    assert save(client, study, headphones="none").status_code == 302
    study.refresh_from_db()
    assert (study.state, study.screening["headphones"]) == ("prepared", "none")
    assert client.get(address).status_code == 404
    assert client.get(client.post(page("preview", study)).url).status_code == 200


def test_code_may_come_later_while_a_study_is_a_draft(client, edition):
    study = make_draft(edition, platform="prolific")
    assert save(client, study, code_complete=None).status_code == 302
