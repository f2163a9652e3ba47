"""What careless and hostile users send gets a sentence, never a problem of the portal or a page that breaks later."""

import csv
import os
from itertools import product
from threading import Thread

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from common.errors import NotPossible
from portal.challenges.models import Corpus, DataSet
from portal.core import processes as starting
from portal.corpora.forms import find_corpora
from portal.corpora.services import start_import
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.systems.services import start_baseline
from tests.portal.factories import make_corpus, make_organizer, make_system, store_tone, write_manifest

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


# Start --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [DatabaseError("file is not a database"), OSError(28, "No space left on device")])
def test_start_with_a_broken_database_or_a_full_disk_is_one_sentence(error, monkeypatch):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr(starting, "call_command", fail)
    with pytest.raises(CommandError, match=r"file is not a database|No space left on device"):
        starting.prepare()
