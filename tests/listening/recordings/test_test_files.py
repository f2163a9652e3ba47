"""The file that describes a test of one's own recordings: by the API, by ``vp``, and written for others."""

import pytest
from django.test import Client

from common.errors import ProblemsError
from listening.app.models import Study
from listening.app.recordings.files import read_test_file, write_test_file
from portal.accounts.tokens import create_token
from portal.client.main import main
from tests.listening.own_factories import make_own_prepared, pack, recordings
from tests.portal.factories import make_organizer, make_user

FILE = """
title = "Three codecs"
original = "clean"

[sound]
rate_hz = 48000
loudness = "p56"

[sessions]
trials = 4
languages = ["fr"]

[consent]
responsible = "Test University"
"""


def token_of(user):
    return create_token(user=user, name="vp", scopes=["read", "organize"], expires_at=None)[1]


def post(user, **given):
    return Client(headers={"Authorization": f"Bearer {token_of(user)}"}).post("/api/studies/", given)


@pytest.mark.django_db
def test_file_chooses_what_it_names_and_leaves_the_rest_to_the_recordings():
    reply = post(make_organizer(), test=FILE, archive=pack(recordings()))
    assert (reply.status_code, reply.json()["name"], reply.json()["trials"]) == (201, "three-codecs", 4)
    study = Study.objects.get()
    assert (study.rate_hz, study.channels, study.loudness, study.languages) == (48000, 1, "p56", ["fr"])
    assert (study.responsible, study.conditions.get(kind="original").code) == ("Test University", "")


@pytest.mark.django_db
def test_api_tells_everything_that_is_wrong_with_a_file_or_an_archive():
    organizer = make_organizer()
    wrong = post(organizer, test='titel = "x"\n[sound]\nrate_hz = 1\n[more]\n', archive=pack(recordings()))
    told = [one["detail"] for one in wrong.json()["errors"]]
    assert wrong.status_code == 400
    assert "[sound] rate_hz: expected one of 16000, 22050, 24000, 32000, 44100, 48000, found '1'." in told
    assert len(told) == 4
    wrong = post(organizer, test=FILE, archive=pack({"notes.txt": b"x"}))
    assert [one["field"] for one in wrong.json()["errors"]] == ["archive"]
    assert not Study.objects.exists()


@pytest.mark.django_db
def test_who_is_no_organizer_makes_no_test_by_the_api():
    assert post(make_user(), test=FILE, archive=pack(recordings())).status_code == 404
    assert not Study.objects.exists()


@pytest.mark.django_db
def test_written_file_repeats_the_test():
    study = make_own_prepared(make_organizer(), title="Two “codecs”", rate_hz=24000)
    chosen, fields = read_test_file(write_test_file(study))
    assert (chosen.title, chosen.rate_hz, chosen.trials, fields["seed"]) == ("Two “codecs”", 24000, 6, 2022)


def test_file_that_is_no_toml_is_refused_with_its_place():
    with pytest.raises(ProblemsError, match=r"no TOML: .*line 1"):
        read_test_file("title: x")


@pytest.mark.django_db(transaction=True)
def test_command_makes_the_test_of_a_folder(monkeypatch, live_server, tmp_path, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("VP_SERVER", live_server.url)
    monkeypatch.setenv("VP_TOKEN", token_of(make_organizer()))
    for path, content in recordings().items():
        (tmp_path / "set" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / path).write_bytes(content)
    (tmp_path / "test.toml").write_text(FILE)
    assert main(["study", "new", str(tmp_path / "test.toml"), str(tmp_path / "set")]) == 0
    assert "/studies/three-codecs/" in capsys.readouterr().out
    assert main(["study", "new", str(tmp_path / "test.toml"), str(tmp_path / "nothing")]) == 2
    assert Study.objects.get().conditions.count() == 2
