"""Withdrawal after an analysis: whatever holds answers of single people is deleted, with a receipt."""

import pytest
from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils import timezone

from listening.analysis.tables import ABOUT_LISTENERS, ABOUT_UTTERANCES
from listening.app.models import Analysis, Study
from listening.app.monitor.services import create_rule
from listening.app.periodic_tasks import erase_withdrawn_answers
from listening.app.results.inputs import collect_inputs, session_key
from listening.app.results.selectors import parsed_results, shown_analysis_for
from listening.app.results.services import delete_unused_files, publication_problems, publish_results, start_analysis
from listening.app.withdrawal import services
from listening.app.withdrawal.services import withdraw
from portal.core.models import AuditEvent
from portal.core.storage import store_bytes
from portal.home.next_steps import edition_path, select_organized
from portal.jobs.runner import JobContext, execute
from tests.listening.results.answered import CHOSEN, analysed, make_answered
from tests.portal.factories import make_organizer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_analyses")]
SINGLES = ABOUT_LISTENERS | ABOUT_UTTERANCES


def make_rated():
    return make_answered(evaluators=11)


@pytest.fixture
def study(once):
    return once(make_rated)


@pytest.fixture
def leave(django_capture_on_commit_callbacks):
    def do(session):
        with django_capture_on_commit_callbacks(execute=True):
            withdraw(session, timezone.now())

    return do


def files_of(analysis):
    return {analysis.inputs, analysis.results, *analysis.figures.values()} - {""}


def names_of(results):
    return {table.name for table in results.tables.values()}


def test_withdrawal_deletes_answers_from_analyses_and_keeps_figures_over_many(study, leave):
    analysis = analysed(start_analysis(study, None, CHOSEN))
    kept = dict(analysis.figures)
    assert kept
    analysis.figures |= {"common/map-board-1-light.svg": store_bytes(b"<svg/>", ".svg")}
    analysis.save()
    before, results = files_of(analysis), parsed_results(analysis.results)
    assert names_of(results) & SINGLES
    session = study.sessions.first()
    leave(session)
    analysis.refresh_from_db()
    assert (analysis.inputs, analysis.leftovers, analysis.figures) == ("", [], kept)
    assert analysis.erased_at is not None
    after = parsed_results(analysis.results)
    assert names_of(after) == names_of(results) - SINGLES
    assert after.table("raw", "summary") == results.table("raw", "summary")
    assert services.NOTE in after.remarks
    gone = before - files_of(analysis)
    assert gone == before - set(kept.values())
    assert not any(map(default_storage.exists, gone))
    assert all(map(default_storage.exists, files_of(analysis)))
    receipt = AuditEvent.objects.get(action="study.analysis_erased")
    assert (receipt.data["analysis"], set(receipt.data["files"])) == (analysis.pk, gone)
    inputs = collect_inputs(study)
    assert session_key(study, session.pk) not in set(inputs.ratings.session.tolist())


def test_what_is_published_stays_without_single_people(study, leave):
    analysis = _publish(study).analyses.get()
    leave(study.sessions.last())
    shown = shown_analysis_for(_visitor(), study.name)
    assert shown.analysis == analysis
    assert names_of(shown.results).isdisjoint(SINGLES)
    assert "no longer fits" in publication_problems(study)[0]


def _publish(study):
    study.edition.published_at = timezone.now()
    study.edition.save()
    analysed(start_analysis(study, None, CHOSEN))
    return publish_results(study=study, by=None, now=timezone.now())


@pytest.mark.parametrize(("evaluators", "is_kept"), [(4, True), (3, False)])
def test_published_results_of_too_few_people_are_taken_back_with_a_withdrawal(leave, evaluators, is_kept):
    study = _publish(make_answered(evaluators=evaluators))
    leave(study.sessions.first())
    study.refresh_from_db()
    assert (study.published_analysis_id is not None, study.results_published_at is not None) == (is_kept, is_kept)
    assert AuditEvent.objects.filter(action="study.results_taken_back").exists() is not is_kept


def test_people_whom_a_rule_leaves_out_protect_nobody(study, leave):
    study = _publish(make_answered(evaluators=4))
    left_out = study.sessions.last()
    create_rule(study=study, by=None, reason="noise", session=left_out, offers_block_again=False)
    leave(study.sessions.first())
    study.refresh_from_db()
    assert study.published_analysis is None


def test_organizers_read_on_home_and_on_its_page_that_results_were_taken_back(client, leave):
    study = _publish(make_answered(evaluators=1))
    organizer = make_organizer()
    study.edition.organizers.add(organizer)
    leave(study.sessions.first())
    said = edition_path(select_organized(organizer).get(), timezone.now()).next
    assert (said.title, said.url) == (f"Results of {study.title} were taken back", study.get_absolute_url())
    client.force_login(organizer)
    assert "were taken back. Somebody withdrew" in " ".join(client.get(said.url).content.decode().split())
    results = " ".join(client.get(reverse("studies:results", args=[study.name])).content.decode().split())
    assert "No answer is left to analyse." in results
    assert parsed_results(study.analyses.get().results).tables == {}
    assert study.analyses.get().figures == {}
    Study.objects.update(archived_at=timezone.now())
    assert "taken back" not in edition_path(select_organized(organizer).get(), timezone.now()).next.title


def _visitor():
    from django.contrib.auth.models import AnonymousUser

    return AnonymousUser()


def test_withdrawal_while_the_study_is_analysed_ends_the_job_and_leaves_no_file(study, leave, monkeypatch):
    analysis = start_analysis(study, None, CHOSEN)
    real, session, stored = JobContext.progress, study.sessions.first(), []
    monkeypatch.setattr(
        "listening.app.results.handlers.store_bytes", lambda *a: stored.append(store_bytes(*a)) or stored[-1]
    )

    def withdraw_meanwhile(self, stage, done, total):
        real(self, stage, done, total)
        if stage == "Done":
            leave(session)

    monkeypatch.setattr(JobContext, "progress", withdraw_meanwhile)
    job = execute(analysis.job.pk)
    assert (job.state, job.failure_actor) == ("failed", "organizer")
    assert "withdrew" in job.failure
    assert len(stored) == 2
    assert not any(map(default_storage.exists, stored))
    analysis.refresh_from_db()
    assert files_of(analysis) == set()


def test_files_that_could_not_be_deleted_at_once_are_deleted_later(study, leave, monkeypatch):
    analysis = analysed(start_analysis(study, None, CHOSEN))
    key = analysis.inputs

    def fail(_):
        raise OSError("the storage does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(default_storage, "delete", fail)
        leave(study.sessions.first())
    analysis.refresh_from_db()
    assert (analysis.inputs, key in analysis.leftovers, default_storage.exists(key)) == ("", True, True)
    assert not AuditEvent.objects.filter(action="study.analysis_erased").exists()
    erase_withdrawn_answers()
    assert not default_storage.exists(key)
    assert AuditEvent.objects.filter(action="study.analysis_erased").count() == 1
    erase_withdrawn_answers()
    assert AuditEvent.objects.filter(action="study.analysis_erased").count() == 1


def test_every_analysis_of_the_study_is_erased_and_none_of_another(study, leave):
    first = analysed(start_analysis(study, None, CHOSEN))
    second = analysed(start_analysis(study, None, CHOSEN | {"seed": 1}))
    other = analysed(start_analysis(make_answered(evaluators=2), None, CHOSEN))
    leave(study.sessions.first())
    erased = Analysis.objects.filter(erased_at__isnull=False)
    assert set(erased) == {first, second}
    assert not default_storage.exists(first.inputs)
    assert set(erased.values_list("inputs", flat=True)) == {""}
    assert default_storage.exists(other.inputs)
    assert all(default_storage.exists(one.results) for one in erased)


def test_nothing_of_single_people_is_shown_while_files_are_still_there(study, client, monkeypatch):
    monkeypatch.setattr(services, "finish_erasing", lambda _: 0)
    analysis = analysed(start_analysis(study, None, CHOSEN))
    organizer = study.edition.organizers.first()
    client.force_login(organizer)
    addresses = [
        reverse("studies:results-listeners", args=[study.name]),
        reverse("studies:results-bundle", args=[study.name]),
        reverse("studies:results-csv", args=[study.name, "raw", "listeners"]),
        reverse("studies:results-csv", args=[study.name, "raw", "utterances"]),
    ]
    assert [client.get(address).status_code for address in addresses] == [200] * 4
    withdraw(study.sessions.first(), timezone.now())
    analysis.refresh_from_db()
    assert analysis.inputs  # it is marked, and nothing is deleted yet
    assert [client.get(address).status_code for address in addresses] == [404] * 4
    page = client.get(reverse("studies:results", args=[study.name]))
    assert (page.status_code, page.context["has_listeners"]) == (200, False)
    assert shown_analysis_for(organizer, study.name).tables.isdisjoint(SINGLES)
    tables = client.get(reverse("studies:results-json", args=[study.name])).json()["tables"]
    assert {path.split("/")[1] for path in tables}.isdisjoint(SINGLES)


def test_flags_that_an_analysis_wrote_for_who_withdraws_are_deleted(study):
    gone, kept = study.sessions.order_by("pk")[:2]
    withdraw(gone, timezone.now())
    for session in (gone, kept):  # as an analysis writes them that ends at this moment
        session.flags.create(kind="disagrees", data={"holds": True})
    services.erase_answers(study)
    assert (gone.flags.count(), kept.flags.count()) == (0, 1)


def test_files_that_another_analysis_holds_are_kept():
    study = make_answered(evaluators=1)
    key = store_bytes(b"shared", ".zip")
    study.analyses.create(basis="", inputs=key)
    lost = store_bytes(b"held by nobody", ".zip")
    assert delete_unused_files([key, lost]) == [lost]
    assert default_storage.exists(key)
