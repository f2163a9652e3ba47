"""Analyses as jobs: when they may start, what they keep, that nothing is computed twice, and how they end."""

import io
import zipfile

import pytest
from django.core.files.storage import default_storage
from django.urls import reverse

from common.errors import NotPossible
from listening.analysis.tables import Results
from listening.app.models import Analysis, Study
from listening.app.periodic_tasks import analyse_closed_studies
from listening.app.results import handlers
from listening.app.results import services as analysing
from listening.app.results.selectors import current_analysis, running_job
from listening.app.results.services import start_analysis
from listening.app.withdrawal.services import erase_answers
from portal.core.models import AuditEvent
from portal.jobs.models import Job
from portal.jobs.runner import JobContext, JobReleased, execute
from portal.jobs.services import request_cancel
from tests.listening.factories import make_session, make_study
from tests.listening.results.answered import CHOSEN, analysed, answer, close, make_answered

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_analyses")]


def make_rated():
    """With few tasks: what happens to analyses does not depend on how much is in them."""
    return make_answered(tasks=["similarity", "naturalness"])


@pytest.fixture
def study(once):
    return once(make_rated)


@pytest.fixture
def computed(monkeypatch):
    """How often the numbers of a study were computed."""
    calls, real = [], handlers.analyse
    monkeypatch.setattr(handlers, "analyse", lambda *args: calls.append(args) or real(*args))
    return calls


def stored(key):
    with default_storage.open(key) as file:
        return file.read()


def test_analysis_is_refused_until_the_study_is_closed(study):
    Study.objects.update(state="paused")
    with pytest.raises(NotPossible, match="locked until the study is closed"):
        start_analysis(study, None)
    assert not Analysis.objects.exists()
    assert not Job.objects.exists()


def test_analysis_is_refused_where_nobody_answered():
    study = make_study(state="closed")
    answer(make_session(study), state="active")
    with pytest.raises(NotPossible, match="nothing to analyse"):
        start_analysis(study, None)


def test_analysis_is_refused_while_one_runs(study):
    first = start_analysis(study, None, CHOSEN)
    with pytest.raises(NotPossible, match="being analysed already"):
        start_analysis(study, None, CHOSEN | {"seed": 1})
    assert running_job(study) == first.job
    assert current_analysis(study) is None


def test_equal_analysis_is_not_computed_again(study, computed):
    first = analysed(start_analysis(study, None, CHOSEN))
    assert start_analysis(study, None, CHOSEN) == first
    assert Job.objects.count() == 1
    other = analysed(start_analysis(study, None, CHOSEN | {"seed": 1}))
    assert other.fingerprint != first.fingerprint
    assert len(computed) == 2
    assert current_analysis(study) == other
    assert start_analysis(study, None, CHOSEN) == first
    assert current_analysis(study) == first
    assert (len(computed), Analysis.objects.count(), Job.objects.count()) == (2, 2, 2)
    event = AuditEvent.objects.get(action="study.analysis_taken_again")
    assert event.data["analysis"] == first.pk


def test_withdrawal_while_an_analysis_is_taken_again_leaves_no_copy(study, monkeypatch):
    analysed(start_analysis(study, None, CHOSEN))
    second = analysed(start_analysis(study, None, CHOSEN | {"seed": 1}))

    def withdraw_meanwhile(asked):
        erase_answers(asked)
        return second

    monkeypatch.setattr(analysing, "current_analysis", withdraw_meanwhile)
    with pytest.raises(NotPossible, match="withdrew"):
        start_analysis(study, None, CHOSEN)
    assert Analysis.objects.count() == 2
    assert not AuditEvent.objects.filter(action="study.analysis_taken_again").exists()


def test_equal_inputs_under_another_basis_are_not_computed_again(study, computed):
    first = analysed(start_analysis(study, None, CHOSEN))
    Analysis.objects.update(basis="")  # as if something had changed that does not enter the inputs
    second = analysed(start_analysis(study, None, CHOSEN))
    assert second.pk != first.pk
    assert (second.fingerprint, second.results, second.figures) == (first.fingerprint, first.results, first.figures)
    assert len(computed) == 1


def test_interrupted_analysis_continues_with_what_it_kept(study, computed, monkeypatch):
    analysis = start_analysis(study, None, CHOSEN)
    real, seen = JobContext.progress, []

    def stop(self, stage, done, total):
        real(self, stage, done, total)
        if stage == handlers.DRAWING and done == 2:
            raise JobReleased

    monkeypatch.setattr(JobContext, "progress", stop)
    assert execute(analysis.job.pk).state == "waiting"
    analysis.refresh_from_db()
    kept = dict(analysis.figures)
    assert (bool(analysis.inputs), bool(analysis.results), analysis.is_ready) == (True, True, False)
    assert kept
    assert current_analysis(study) is None
    monkeypatch.setattr(JobContext, "progress", lambda self, *told: seen.append(told) or real(self, *told))
    analysed(analysis)
    assert len(computed) == 1
    assert analysis.figures.items() > kept.items()
    assert analysis.is_ready


def test_after_a_failed_job_the_same_analysis_goes_on_with_a_new_one(study):
    first = start_analysis(study, None, CHOSEN)
    request_cancel(first.job, by=None)
    second = start_analysis(study, None, CHOSEN)
    assert (second.pk, second.job.pk != first.job.pk) == (first.pk, True)
    assert execute(first.job.pk) is None
    assert analysed(second).is_ready
    assert Analysis.objects.count() == 1


def test_answers_that_vanish_before_the_job_runs_end_it_with_a_sentence(study):
    analysis = start_analysis(study, None, CHOSEN)
    study.sessions.update(state="withdrawn")
    job = execute(analysis.job.pk)
    assert (job.state, job.failure_actor) == ("failed", "organizer")
    assert "found none" in job.failure
    assert "Analyse the study again" in job.failure_remedy


def test_study_that_is_closed_while_somebody_listens_is_analysed_after(django_capture_on_commit_callbacks):
    study = make_study(evaluators=2, trials=2)
    answer(make_session(study))
    late = make_session(study)
    with django_capture_on_commit_callbacks(execute=True):
        close(study)
    analyse_closed_studies()
    assert not study.analyses.exists()
    answer(late)
    analyse_closed_studies()
    assert study.analyses.count() == 1


def test_bundle_of_an_analysis_from_its_page_holds_inputs_tables_and_figures(client, study):
    client.force_login(study.edition.organizers.first())

    def get(name, *parts):
        return client.get(reverse(f"studies:{name}", args=[study.name, *parts]))

    page = get("analyse")
    assert client.post(page.request["PATH_INFO"], page.context["form"].initial | CHOSEN).status_code == 302
    analysed(study.analyses.get())
    response = get("results-bundle")
    assert response["Content-Disposition"] == f'attachment; filename="{study.name}-results.zip"'
    with zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content))) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        kept = Results.from_json(archive.read("results.json"))
        table = archive.read("tables/raw/summary.csv").decode()
    assert {"MANIFEST.sha256", "inputs/study.json"} <= names
    assert any(name.startswith("figures/raw/violin-naturalness") for name in names)
    assert kept == Results.from_json(get("results-json").content)
    assert table == get("results-csv", "raw", "summary").content.decode()
