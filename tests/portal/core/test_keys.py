"""A new secret key beside the former one: sessions, links and evaluators go on; without the former one they end."""

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from listening.app.sessions.clip_urls import clip_names
from listening.app.sessions.platforms import person_keys
from portal.core.signed_urls import signed_address
from tests.listening.answering import hear
from tests.listening.factories import make_session, make_study
from tests.listening.visits import Visit

pytestmark = pytest.mark.django_db
NEW = "a-new-secret-key-of-the-portal"
CASES = pytest.mark.parametrize("keeps", [True, False], ids=["with the former key", "without it"])


@pytest.fixture
def rotate(settings, keeps):
    def change():
        settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY] if keeps else []
        settings.SECRET_KEY = NEW

    return change


@CASES
def test_signed_audio_of_a_visitor_stays_valid_in_its_session_alone(client, rf, rotate, keeps):
    key = default_storage.save("audio/kept.wav", ContentFile(b"RIFF"))
    session = client.session
    session.save()
    request = rf.get("/")
    request.session = session
    client.cookies["sessionid"] = session.session_key
    address = signed_address(request, key)
    rotate()
    assert (client.get(address).status_code == 200) is keeps
    client.cookies.clear()
    assert client.get(address).status_code == 404


@CASES
def test_recordings_of_an_open_page_of_an_evaluator_stay_there(client, rotate, keeps):
    session = make_session(make_study())
    hear(session)
    trial = session.block.trials.get(position=1)
    before = clip_names(session, trial, "a")[0]
    rotate()
    assert clip_names(session, trial, "a")[0] != before
    for name, is_there in ((before, keeps), (clip_names(session, trial, "a")[0], True)):
        assert (client.get(f"/listen/{session.token}/clips/{name}").status_code == 200) is is_there


@CASES
def test_person_who_returns_by_the_link_has_the_same_session(rotate, keeps):
    study = make_study()
    known = Visit(study, {"person": "P7"}).session
    assert known.participant.person_key == person_keys(study, "P7")[0]
    rotate()
    assert (Visit(study, {"person": "P7"}).session == known) is keeps
