"""Ratings collected elsewhere: what becomes of them, who is named where, and what is said of files that are wrong."""

import gzip
import html
import io
import json
import re
import time
from concurrent.futures import CancelledError
from urllib.parse import unquote

import numpy as np
import pytest
from django.core.exceptions import ValidationError
from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils import timezone

from common.child_process import ChildLimits
from common.errors import ProblemsError
from listening.analysis.bundle import read_inputs
from listening.app.models import Participant, Session, Study
from listening.app.results import importing
from listening.app.results.importing import import_study
from listening.app.results.inputs import collect_inputs, keys_of_sessions
from listening.app.results.selectors import parsed_results
from portal.jobs.models import Job
from portal.jobs.runner import JobContext, execute
from portal.jobs.services import request_cancel, run_again
from tests.listening.results.answered import analysed
from tests.portal.factories import make_corpus, make_edition, make_organizer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_analyses")]


def csv_of(listeners=12, systems=("original", "T01-p1", "T02-p1"), utterances=4, tasks=("naturalness",)):
    """Ratings of a small laboratory: everybody hears every utterance of every system; the last one leaves early."""
    numbers = np.random.default_rng(5)
    lines = ["listener,session,task,system,utterance,speaker,gender,rating,finished"]
    for listener in range(listeners):
        finished = int(listener < listeners - 1)
        for task in tasks:
            for system in systems:
                for utterance in range(utterances):
                    rating = int(np.clip(numbers.normal(4.4 if system == "original" else 2.5, 0.8), 1, 5))
                    who, what = f"worker-{listener},visit-{listener}", f"{task},{system}"
                    spoken = f"u{utterance},s{utterance % 2},{'fm'[utterance % 2]}"
                    lines.append(f"{who},{what},{spoken},{rating},{finished}")
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def edition():
    return make_edition(make_corpus("tones", speakers=2, utterances=2))


def bring(edition, content=None, **fields):
    given = {"name": "elsewhere", "title": "Elsewhere", "file_name": "ratings.csv", "by": edition.organizers.first()}
    return import_study(edition=edition, file=io.BytesIO(csv_of() if content is None else content), **given | fields)


def test_names_of_the_file_are_known_to_organizers_alone(edition):
    study = bring(edition).study
    people = Participant.objects.filter(study=study)
    assert sorted(people.values_list("platform_id", flat=True)) == sorted(f"worker-{n}" for n in range(12))
    with default_storage.open(study.imported) as stored:
        content = stored.read()
    inputs, _ = read_inputs(content)
    tokens = {*inputs.ratings.listener.tolist(), *inputs.ratings.session.tolist()}
    assert not any("worker" in one or "visit" in one for one in tokens)
    assert set(inputs.ratings.session.tolist()) == set(keys_of_sessions(study))
    states = dict(Session.objects.values_list("participant__platform_id", "state"))
    assert [who for who, state in states.items() if state != "finished"] == ["worker-11"]
    assert set(Session.objects.values_list("flagged_at", flat=True)) != {None}


def test_systems_called_as_in_the_edition_are_taken_for_these(edition):
    for label in ("T01-p1", "T03-p1"):
        system = edition.systems.create(name=f"x-{label}".lower(), label=label, title=label, corpus=edition.corpus)
        system.submissions.create(version=1, state="evaluated", evaluated_at=timezone.now())
        newest = system.submissions.create(version=2, state="evaluated", evaluated_at=timezone.now())
        system.submissions.create(version=3, state="refused")
    made = bring(edition, csv_of(systems=("original", "t01-P1", "T02-p1")))
    assert made.matched == ("t01-P1",)
    heard = made.study.systems.get()
    assert (heard.code, heard.submission.version) == ("t01-P1", newest.version)
    assert collect_inputs(made.study).objective is None


@pytest.mark.parametrize(
    "content", [b"", b"\x89PNG\r\n\x1a\n\x00", b"a,b\n1,2\n", b"\x1f\x8b broken", b"listener,task,system,rating\n"]
)
def test_what_is_no_table_of_ratings_is_refused_in_words(edition, content):
    with pytest.raises(ProblemsError) as error:
        bring(edition, content)
    assert all(sentence.startswith("ratings.csv") for sentence in error.value.problems)
    assert not Study.objects.exists()


def test_files_that_unzip_to_too_much_are_refused_before_they_are_read(edition, monkeypatch):
    monkeypatch.setattr(importing, "LARGEST_TEXT", 10 * importing.MEGABYTE)
    bomb = gzip.compress(b"0" * (6 * importing.MEGABYTE)) * 2
    assert len(bomb) < 100_000
    with pytest.raises(ProblemsError, match="once unzipped"):
        bring(edition, bomb)
    monkeypatch.setattr(importing, "LARGEST_FILE", 1000)
    with pytest.raises(ProblemsError, match="expected at most"):
        bring(edition)


def fill(*_):
    return [bytearray(1 << 26) for _ in range(100)]


def test_ratings_that_would_end_their_reader_are_refused(edition, monkeypatch):
    monkeypatch.setattr(importing, "read_ratings", fill)
    monkeypatch.setattr(importing, "child_limits", lambda _: ChildLimits(30, 1 << 28, 60))
    with pytest.raises(ProblemsError, match=r"ratings\.csv: .* was stopped: .*memory"):
        bring(edition)
    assert not Study.objects.exists()


@pytest.mark.parametrize(
    "line",
    [
        b'"' * 3_000_001,
        b"w1,v1,naturalness,T1,u,s,f," + b"9" * 90_000 + b",1",
        b"w,v,naturalness,T,u,s,f,1e999,1",
    ],
    ids=["quotes", "digits", "infinite"],
)
def test_hostile_lines_are_refused_in_words(edition, line):
    content = csv_of(listeners=2) + line + b"\n"
    with pytest.raises(ProblemsError, match=r"ratings\.csv, line "):
        bring(edition, content)
    assert not Study.objects.exists()


@pytest.mark.parametrize("name", ["new", "there"])
def test_names_that_are_taken_are_refused(edition, name):
    bring(edition, name="there", title="There")
    with pytest.raises(ValidationError) as error:
        bring(edition, name=name)
    assert set(error.value.message_dict) == {"name"}
    assert Study.objects.count() == 1


def test_more_systems_than_can_be_compared_are_refused(edition):
    lines = [f"w{n % 5},naturalness,s{n},u,3" for n in range(importing.MOST_SYSTEMS + 1)]
    with pytest.raises(ProblemsError, match="at most 150 systems, found 151"):
        bring(edition, "\n".join(["listener,task,system,utterance,rating", *lines]).encode())
    assert not Study.objects.exists()


def test_the_name_of_the_file_is_not_published(edition):
    lines = csv_of().decode().replace(",finished", ",valid").splitlines()
    lines[1] = ",".join((*lines[1].split(",")[:7], "", "1"))
    analysis = analysed(bring(edition, "\n".join(lines).encode(), file_name="secret-name.csv").analysis)
    results = parsed_results(analysis.results)
    told = " ".join(results.remarks) + str(results.table("raw", "listeners").rows)
    assert "1 line of the file without a rating left out." in told
    assert "marked as not valid in the file" in told
    assert "secret-name" not in told


# The page -------------------------------------------------------------------------------------------


def post(client, edition, content, **fields):
    file = io.BytesIO(content)
    file.name = fields.pop("file_name", "ratings.csv")
    given = {"edition": edition.pk, "title": "Elsewhere", "name": "elsewhere", "file": file} | fields
    return client.post(reverse("studies:import"), given)


def test_form_imports_and_leads_to_the_results(client, edition):
    client.force_login(edition.organizers.first())
    reply = post(client, edition, csv_of(), is_simulated="on")
    assert (reply.status_code, reply.url) == (302, "/studies/elsewhere/results/")
    assert Study.objects.get().is_simulated


def test_form_says_everything_that_is_wrong_with_the_file(client, edition):
    client.force_login(edition.organizers.first())
    text = csv_of().decode().replace("naturalness", "beauty", 2).encode()
    reply = post(client, edition, text)
    assert reply.status_code == 422
    page = reply.content.decode()
    assert "ratings.csv, line 2" in page
    assert "ratings.csv, line 3" in page
    assert "ends in .csv" in post(client, edition, csv_of(), file_name="ratings.xlsx").content.decode()
    assert not Study.objects.exists()


@pytest.fixture
def large(client, edition, monkeypatch, django_capture_on_commit_callbacks):
    """Posts a file that counts as large, and ends the job that reads it."""
    monkeypatch.setattr(importing, "READ_AT_ONCE", 100)
    client.force_login(edition.organizers.first())

    def send(content, end=lambda job: execute(job.pk), **fields):
        reply = post(client, edition, content, **fields)
        job = Job.objects.get(kind="import-ratings", state="waiting")
        assert (reply.status_code, reply.url) == (302, job.get_absolute_url())
        assert default_storage.exists(job.parameters["content"])
        with django_capture_on_commit_callbacks(execute=True):
            end(job)
        assert not default_storage.exists(job.parameters["content"])
        job.refresh_from_db()
        return job

    return send


def test_large_file_is_read_by_a_job_that_leads_to_the_results(client, large):
    job = large(gzip.compress(csv_of()), file_name="ratings.csv.gz", is_simulated="on", attribution="A laboratory")
    study = Study.objects.get()
    assert (job.state, job.result["study"], job.result["ratings"]) == ("succeeded", "elsewhere", 144)
    assert (study.title, study.is_simulated, study.created_by) == ("Elsewhere", True, job.created_by)
    assert study.analyses.get().job is not None
    page = client.get(job.get_absolute_url()).content.decode()
    assert 'href="/studies/elsewhere/results/"' in page
    assert "144 ratings are imported" in page


def test_job_of_a_large_file_says_what_is_wrong_and_forgets_the_file(client, large):
    job = large(csv_of().decode().replace("naturalness", "beauty", 2).encode())
    assert (job.state, job.failure_actor) == ("failed", "organizer")
    assert "ratings.csv, line 2" in job.failure
    assert "ratings.csv, line 3" in job.failure
    run_again(job, by=job.created_by)
    assert execute(job.pk).failure == importing.GONE
    assert not Study.objects.exists()


def test_cancelled_import_forgets_its_file_and_a_taken_name_is_said_at_once(client, edition, large):
    assert large(csv_of(), lambda job: request_cancel(job, by=None)).state == "cancelled"
    bring(edition)
    reply = post(client, edition, csv_of())
    assert (reply.status_code, "Another study is called elsewhere" in reply.content.decode()) == (422, True)
    assert Job.objects.filter(kind="import-ratings").count() == 1


def test_reading_of_a_large_file_can_be_cancelled(large, monkeypatch):
    def read_slowly(*_):
        time.sleep(60)

    def cancel_while_reading(job):
        monkeypatch.setattr(JobContext, "check", stop)
        execute(job.pk)

    def stop(context):
        if context.job.stage:
            raise CancelledError

    monkeypatch.setattr(importing, "read_ratings", read_slowly)
    began = time.monotonic()
    assert large(csv_of(), cancel_while_reading).state == "cancelled"
    assert time.monotonic() - began < 30
    assert not Study.objects.exists()


def test_form_offers_own_editions_only(client, edition):
    other = make_edition(organizers=[make_organizer()])
    client.force_login(edition.organizers.first())
    assert post(client, other, csv_of()).status_code == 422
    assert not Study.objects.exists()


# Every page of such a study ------------------------------------------------------------------------


def test_every_page_of_a_study_copes_with_imported_ratings(client, edition):
    made = bring(edition)
    analysed(made.analysis)
    client.force_login(edition.organizers.first())
    session = made.study.sessions.first()
    names = [
        "detail",
        "edit",
        "texts",
        "planner",
        "design",
        "extend",
        "monitor",
        "live",
        "exclusions",
        "export",
        "export-json",
        "export-zip",
        "analyse",
        "results",
        "results-listeners",
        "publish-results",
        "unpublish-results",
    ]
    pages = {name: client.get(reverse(f"studies:{name}", args=["elsewhere"])) for name in names}
    pages["list"] = client.get(reverse("studies:list"))
    pages["session"] = client.get(reverse("studies:session", args=["elsewhere", session.pk]))
    pages["leave-out"] = client.get(f"{reverse('studies:exclusions', args=['elsewhere'])}?session={session.pk}")
    pages["system"] = client.get(reverse("studies:results-system", args=["elsewhere", "T01-p1"]))
    assert {name: page.status_code for name, page in pages.items()} == dict.fromkeys(pages, 200)
    detail = pages["detail"].content.decode()
    assert "collected elsewhere" in detail
    assert "/listen/join/" not in detail
    for action in ("prepare", "preview", "launch", "pause", "resume", "close"):
        reply = client.post(reverse(f"studies:{action}", args=["elsewhere"]))
        assert reply.status_code == 409, action
    exported = b"".join(pages["export-json"].streaming_content)
    assert len(json.loads(exported)["tables"]["sessions"]) == 12


def test_systems_may_be_called_anything(client, edition):
    names = ["a/b", "..", "a/../b", "a?b#c", "<b>x</b>", "=1+1", "日本語", "x" * 300, "%2F", 'a"b']
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in names}
    lines = ["listener,task,system,utterance,rating"]
    lines += [f"w{n},naturalness,{one},u,{1 + n % 5}" for n in range(3) for one in ("original", *quoted.values())]
    analysed(bring(edition, "\n".join(lines).encode()).analysis)
    client.force_login(edition.organizers.first())
    page = client.get(reverse("studies:results", args=["elsewhere"]))
    assert page.status_code == 200
    assert "<b>x</b>" not in page.content.decode()
    addresses = set(re.findall(r'href="(/studies/elsewhere/results/systems/[^"]*)"', page.content.decode()))
    assert len(addresses) == len(names) - 2  # a browser would resolve the dots
    for address in addresses:
        reply = client.get(html.unescape(address))
        assert reply.status_code == 200, address
        switch = re.findall(r'href="([^"]*)\?scores=raw"', reply.content.decode())
        assert unquote(html.unescape(switch[0])) == unquote(html.unescape(address).partition("?")[0])
