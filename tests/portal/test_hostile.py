"""What careless and hostile users send gets a sentence, never a problem of the portal or a page that breaks later."""

import csv
import os
from itertools import product
from threading import Thread

import pytest
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management import CommandError
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from common.errors import NotPossible
from portal.challenges.models import Corpus, DataSet
from portal.config.environment import read_environment
from portal.core import processes as starting
from portal.corpora.forms import find_corpora
from portal.corpora.services import DEMO_CORPUS, start_import
from portal.demo.management.commands.demo import open_for_imports
from portal.intake.corpora.reading import detect_layout, read_corpus
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.submissions.models import System
from portal.systems.anonymization import forms
from portal.systems.services import start_baseline
from tests.portal.factories import (
    make_corpus,
    make_operator,
    make_organizer,
    make_system,
    store_tone,
    write_manifest,
)

pytestmark = pytest.mark.django_db(transaction=True)
COLUMNS = ["utterance_id", "speaker", "gender", "transcript", "path"]


@pytest.fixture
def organizer(client):
    user = make_organizer()
    client.force_login(user)
    return user


def edit_manifest(folder, row=0, **values):
    """Change fields of one row, or of all rows where `row` is None; new columns are added."""
    path = folder / "utterances.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for each in rows if row is None else [rows[row]]:
        each.update(values)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(dict.fromkeys([*COLUMNS, *values])), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def run(folder, name="little", **options):
    return execute(start_import(folder=str(folder), name=name, run_here=True, **options).pk)


def codes(job):
    return [problem["code"] for problem in job.problems if problem["severity"] == "error"]


# Corpora ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "日" * 60])
def test_folder_of_any_name_becomes_a_corpus_whose_pages_open(name, client, organizer, tmp_path):
    assert run(write_manifest(tmp_path / name), is_shared=True).failure == ""
    assert client.get("/corpora/little/").status_code == 200
    for data_set in DataSet.objects.all():
        assert client.get(data_set.get_absolute_url()).status_code == 200


@pytest.mark.parametrize("name", ["a/b", "s" * 81])
def test_data_set_whose_name_fits_no_address_is_refused(name, tmp_path):
    folder = write_manifest(tmp_path / "speech")
    edit_manifest(folder, None, role="training", data_set=name)
    job = run(folder)
    assert (job.state, codes(job), Corpus.objects.count()) == (JobState.FAILED, ["bad-name"], 0)


def test_names_are_no_longer_than_their_columns(tmp_path):
    folder = write_manifest(tmp_path / "speech")
    edit_manifest(folder, utterance_id="x" * 120)
    assert run(folder).failure == ""
    edit_manifest(folder, utterance_id="x" * 121)
    assert codes(run(folder, "other")) == ["bad-name"]


def test_name_of_the_import_page_is_not_for_corpora():
    with pytest.raises(NotPossible, match="cannot be called import"):
        start_import(folder="/speech", name="import")
    assert Job.objects.count() == 0


def test_pipe_or_device_in_place_of_a_recording_is_a_missing_file(tmp_path):
    folder = write_manifest(tmp_path / "speech")
    for name in ("s0-000.flac", "s0-001.flac"):
        (folder / name).unlink()
    os.mkfifo(folder / "s0-000.flac")
    (folder / "s0-001.flac").symlink_to("/dev/zero")
    os.mkfifo(folder / "stray.wav")
    assert codes(run(folder)) == ["missing-file", "missing-file"]


def test_pipe_or_device_in_place_of_the_manifest_is_not_opened(tmp_path):
    (tmp_path / "list.csv").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "utterances.csv")
    assert codes(run(tmp_path)) == ["unknown-layout"]


def test_folder_that_cannot_be_read_is_one_problem(tmp_path, monkeypatch):
    def refuse(_):
        raise PermissionError(13, "Permission denied", "/speech/secret")

    monkeypatch.setattr("portal.intake.corpora.librispeech.find_librispeech", refuse)
    [problem] = read_corpus(tmp_path).problems
    assert (problem.code, problem.file, problem.found) == ("not-readable", "/speech/secret", "“Permission denied”")
    assert detect_layout(tmp_path) is None


def test_contradicting_recording_is_told_by_its_hash_not_by_its_place_in_storage(tmp_path):
    assert run(write_manifest(tmp_path / "one")).failure == ""
    other = write_manifest(tmp_path / "two")
    (other / "s0-000.flac").write_bytes((other / "s1-000.flac").read_bytes())
    [found] = [problem for problem in run(other).problems if problem["file"] == "utterance s0-000, audio"]
    assert found["expected"].startswith("“SHA-256 ")
    assert "content/" not in found["expected"] + found["found"]


def test_same_import_started_from_many_browsers_at_once_is_one_job():
    started, refused = [], []

    def start():
        try:
            started.append(start_import(folder="/speech", name="race", run_here=True))
        except NotPossible as error:
            refused.append(str(error))
        finally:
            connection.close()

    if connection.vendor != "sqlite":
        pytest.skip(
            "only SQLite runs transactions that write one after the other; elsewhere the second import adds nothing"
        )
    threads = [Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(started), len(refused), Job.objects.count()) == (1, 5, 1)


# Forms and addresses ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["x" * 300, "\0"])
def test_import_form_refuses_impossible_folders(text, client, organizer, tmp_path, settings):
    settings.IMPORT_ROOTS = [tmp_path]
    response = client.post("/corpora/import/", {"folder": f"{tmp_path}/{text}", "name": "x"})
    assert (response.status_code, list(response.context["form"].errors)) == (422, ["folder"])


def test_search_for_corpora_ends_soon_and_follows_no_link(tmp_path, settings):
    root = tmp_path / "open"
    write_manifest(tmp_path / "closed", speakers=1)
    for number in range(300):
        (root / f"empty-{number:03d}").mkdir(parents=True)
    (root / "empty-000" / "loop").symlink_to(root)
    (root / "link").symlink_to(tmp_path / "closed")
    write_manifest(root / "a" / "b", speakers=1)
    write_manifest(root / "a" / "c" / "too deep", speakers=1)
    (root / "a" / "sheet").mkdir()
    (root / "a" / "sheet" / "prices.csv").write_text("a,b")
    os.mkfifo(root / "a" / "utterances.csv")
    settings.IMPORT_ROOTS = [root]
    assert find_corpora() == []  # 200 folders come before
    for number in range(150):
        (root / f"empty-{number + 100:03d}").rmdir()
    assert [corpus.folder for corpus in find_corpora()] == [root / "a" / "b"]


def test_import_root_is_not_left_by_a_link(client, organizer, tmp_path, settings):
    settings.IMPORT_ROOTS = [tmp_path / "open"]
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "link").symlink_to(write_manifest(tmp_path / "closed"))
    response = client.post("/corpora/import/", {"folder": f"{tmp_path}/open/link", "name": "x"})
    assert (response.status_code, Job.objects.count()) == (422, 0)


def baseline(client, corpus, **fields):
    values = {"method": "mcadams-2022", "data_sets": [corpus.data_sets.first().pk], "name": "b2", "seed": "1"} | fields
    return client.post(f"/systems/new/{corpus.name}/", values)


def refused_fields(response):
    """The fields that a form was refused for; none where it was taken."""
    return tuple(response.context["form"].errors) if response.status_code == 422 else ()


def test_seed_must_be_a_number_that_every_database_holds(client, organizer):
    corpus, seeds = make_corpus(), ("", "-1", "1e9", "1.5", "0x10", str(2**63), "9" * 5000)
    found = {seed: refused_fields(baseline(client, corpus, seed=seed)) for seed in seeds}
    assert found == dict.fromkeys(seeds, ("seed",))


def test_data_set_that_is_not_in_the_list_is_refused(client, organizer):
    corpus, keys = make_corpus(), ("-1", "999999", "abc", "1.5", "\0", str(2**70), "9" * 5000)
    found = {key: refused_fields(baseline(client, corpus, data_sets=[key])) for key in keys}
    assert found == dict.fromkeys(keys, ("data_sets",))


def test_data_set_of_another_corpus_or_without_audio_is_refused(client, organizer):
    corpus, other, lists = make_corpus(), make_corpus("other"), make_corpus("lists", with_audio=False)
    for key in (other.data_sets.first().pk, lists.data_sets.first().pk):
        assert baseline(client, corpus, data_sets=[key]).status_code == 422
    assert baseline(client, lists).status_code == 422
    assert System.objects.count() == 0


def test_system_whose_name_is_taken_between_check_and_creation_is_an_error_of_the_form(client, organizer, monkeypatch):
    corpus = make_corpus()
    check = forms.BaselineForm.clean_name

    def taken_meanwhile(form):
        name = check(form)
        make_system(corpus, name)
        return name

    monkeypatch.setattr(forms.BaselineForm, "clean_name", taken_meanwhile)
    response = baseline(client, corpus)
    assert response.status_code == 422
    assert response.context["form"].errors["name"] == ["There is a system b2 already. b2-2 is free."]
    assert (System.objects.count(), Job.objects.count()) == (1, 0)


def test_name_made_for_a_system_is_never_too_long_nor_taken(client, organizer):
    corpus = make_corpus("c" * 60)
    for _ in range(3):
        assert baseline(client, corpus, name="").status_code == 302
    names = set(System.objects.filter(corpus=corpus).values_list("name", flat=True))
    assert len(names) == 3
    assert max(map(len, names)) <= 60


def test_no_page_fails_at_odd_parameters(client, organizer):
    make_system(make_corpus())
    values = ("\0", '"><script>alert(1)</script>', "9" * 400, "\ud800x")
    addresses = (
        "/corpora/tones/utterances/",
        "/corpora/tones/sets/tones_trials_f/",
        "/corpora/tones/speakers/",
        "/corpora/import/",
        "/systems/",
        "/systems/b2-tones/",
        "/jobs/",
        "/",
    )
    for value, address in product(values, addresses):
        names = ("page", "text", "speaker", "gender", "order", "state", "side", "name")
        response = client.get(address, dict.fromkeys(names, value.encode("utf-8", "replace")))
        assert response.status_code == 200, (value, address)
        assert "<script>alert" not in response.content.decode(), (value, address)


def test_people_are_sought_by_odd_words(client):
    client.force_login(make_operator())
    for value in ("\0", "\ud800x"):
        response = client.get("/people/", {"q": value.encode("utf-8", "replace"), "show": "\0"})
        assert response.status_code == 200, value


def test_zero_byte_in_an_address_is_no_page(client, organizer):
    make_corpus()
    assert client.get("/corpora/tones/utterances/a%00b/").status_code == 404


def test_zero_byte_in_a_cookie_is_no_session(client):
    """A quoted cookie may hold any byte; PostgreSQL fails at this one."""
    client.cookies["sessionid"] = "\0" * 32
    with CaptureQueriesContext(connection) as queries:
        assert client.get("/log-in/").status_code == 200
    assert not [one for one in queries if "django_session" in one["sql"]]


def test_byte_range_of_absurd_length_is_ignored(client, organizer):
    corpus = make_corpus()
    page = client.get(f"/corpora/tones/utterances/{corpus.utterances.first().name}/")
    address = page.context["player"]["sources"][0]["url"]
    for digits in ("9" * 19, "9" * 5000):
        assert client.get(address, headers={"Range": f"bytes={digits}-"}).status_code == 200
    assert client.get(address, headers={"Range": f"bytes={'9' * 18}-"}).status_code == 416


def test_lost_recording_is_one_problem_of_the_run_without_the_place_of_the_file(organizer):
    corpus = make_corpus(speakers=1, utterances=1)
    lost = store_tone(1234)  # a sound that no test beside this one stores again
    default_storage.delete(lost)
    corpus.utterances.update(audio=lost)
    sets = corpus.data_sets.filter(name="tones_enrolls")
    start_baseline(name="b2", corpus=corpus, data_sets=sets, method="mcadams-2022", seed=1, by=organizer)
    job = execute(Job.objects.get(kind="anonymize").pk)
    [problem] = job.problems
    assert (job.state, problem["code"]) == (JobState.FAILED, "not-anonymised")
    assert problem["found"].startswith("expected the stored recording, found none.")


def test_audio_address_ends_with_its_session_even_for_who_kept_the_cookie(client, organizer):
    corpus = make_corpus()
    page = client.get(f"/corpora/tones/utterances/{corpus.utterances.first().name}/")
    address = page.context["player"]["sources"][0]["url"]
    cookie = client.cookies["sessionid"].value
    assert client.get(address).status_code == 200
    client.post("/log-out/")
    client.cookies["sessionid"] = cookie
    assert client.get(address).status_code == 404


# Start --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [DatabaseError("file is not a database"), OSError(28, "No space left on device")])
def test_start_with_a_broken_database_or_a_full_disk_is_one_sentence(error, monkeypatch):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr(starting, "call_command", fail)
    with pytest.raises(CommandError, match=r"file is not a database|No space left on device"):
        starting.prepare()


def test_second_portal_on_a_data_folder_is_refused_until_the_first_has_ended(tmp_path):
    for _ in range(2):
        with starting.hold(tmp_path, "127.0.0.1:8000"):
            with pytest.raises(CommandError) as raised, starting.hold(tmp_path, "127.0.0.1:8001"):
                pass
            assert str(raised.value) == (
                f"Another portal runs on the data folder {tmp_path}: process {os.getpid()}, http://127.0.0.1:8000/. "
                "Use that one, end it, or set PORTAL_DATA_DIR to another folder."
            )


def test_demo_opens_its_folders_beside_those_of_the_operator(tmp_path, monkeypatch):
    names = ("set", "speech", "a,b")
    for name in names:
        (tmp_path / name).mkdir()
    known, speech, odd = (tmp_path / name for name in names)
    monkeypatch.setitem(settings.ENVIRONMENT, "IMPORT_ROOTS", [known])
    monkeypatch.setenv("PORTAL_IMPORT_ROOTS", "")
    open_for_imports(DEMO_CORPUS, speech, speech, odd, tmp_path / "none")
    assert read_environment({"PORTAL_IMPORT_ROOTS": os.environ["PORTAL_IMPORT_ROOTS"]})["IMPORT_ROOTS"] == [
        known,
        DEMO_CORPUS,
        speech,
    ]


def test_interrupt_before_the_processes_run_is_no_traceback(tmp_path):
    with pytest.raises(SystemExit) as raised, starting.hold(tmp_path, "127.0.0.1:8000"):
        raise KeyboardInterrupt
    assert raised.value.code == 130


def test_start_at_a_taken_address_is_one_sentence(live_server):
    address = live_server.url.removeprefix("http://")
    with pytest.raises(CommandError, match=f"The address {address} cannot be used"):
        starting.require_free(address)
    starting.require_free("127.0.0.1:0")
