"""Publishing results: what it asks for, what it writes down, whom it tells, and how it is taken back."""

import pytest
from django.utils import timezone

from evaluation.app.models import EvaluationRun
from listening.app.models import Analysis, Study
from listening.app.results.inputs import Changed
from listening.app.results.services import publication_problems, publish_results, unpublish_results
from portal.accounts.rules import NotificationKind
from portal.core.models import AuditEvent
from portal.jobs.models import Job
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission
from tests.listening.analysis.examples import made_up_results
from tests.listening.factories import make_session
from tests.listening.results.analysed import add_analysis, make_analysed
from tests.portal.factories import make_job, make_team, make_user

pytestmark = pytest.mark.django_db


def analysed_study():
    found = make_analysed()
    found.edition.published_at = timezone.now()
    found.edition.save()
    return found


@pytest.fixture
def study(once):
    return once(analysed_study)


def publish(study):
    return publish_results(study=study, by=study.edition.organizers.first(), now=timezone.now())


def test_publication_shows_the_newest_analysis_and_is_written_down(study):
    done = publish(study)
    assert done.published_analysis == study.analyses.get()
    assert done.results_published_at is not None
    event = AuditEvent.objects.get(action="study.results_published")
    assert (event.data["analysis"], event.data["is_simulated"]) == (done.published_analysis_id, False)
    assert event.actor == study.edition.organizers.first()


def test_everything_that_stands_in_the_way_is_said_at_once(study):
    study.edition.published_at = None
    study.edition.save()
    Analysis.objects.all().delete()
    with pytest.raises(NotPossible, match=r"no finished analysis.*not published yet"):
        publish(study)
    assert Study.objects.get().results_published_at is None


def test_an_evaluation_that_ends_after_the_analysis_does_not_keep_results_from_being_published(study, client):
    """Nothing that listeners said follows from it; the page says that there is something newer, and what."""
    client.force_login(study.edition.organizers.first())
    address = f"/studies/{study.name}/results/"
    assert "newer objective measures" not in client.get(address).content.decode()
    submission = study.systems.get().submission
    kind = EvaluationRun.Kind.MEASURES
    EvaluationRun.objects.create(submission=submission, kind=kind, recipe="audio", job=make_job("succeeded"))
    assert publication_problems(study) == []
    page = client.get(address).content.decode()
    assert "There are newer objective measures" in page
    assert "An evaluation of a system that was heard has ended since." in page
    assert "This analysis is out of date" not in page
    publish(study)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: Study.objects.update(title="Another"), Changed.STUDY),
        (lambda _: Submission.objects.update(state="withdrawn"), Changed.SYSTEMS),
        (lambda study: make_session(study, block=None, state="finished"), Changed.ANSWERS),
        (lambda _: Analysis.objects.update(erased_at=timezone.now()), Changed.ANSWERS),
        (lambda _: Analysis.objects.update(basis="0123456789abcdef" * 4), Changed.METHOD),
    ],
)
def test_results_that_no_longer_fit_name_what_changed(study, client, change, reason):
    change(study)
    study.refresh_from_db()
    [problem] = publication_problems(study)
    assert problem == f"The analysis no longer fits the study. {reason} Analyse it again first."
    client.force_login(study.edition.organizers.first())
    page = client.get(f"/studies/{study.name}/results/").content.decode()
    assert f"<p>{reason}" in page
    assert "This analysis is out of date" in page


def test_while_the_study_is_analysed_nothing_is_published(study):
    study.analyses.create(basis="", job=make_job("running"))
    with pytest.raises(NotPossible, match="being analysed"):
        publish(study)


def test_results_of_a_study_that_recruits_are_not_published(study):
    Study.objects.update(state="open")
    with pytest.raises(NotPossible, match="not closed"):
        publish(study)


def test_publishing_again_moves_to_the_newest_analysis(study):
    first = publish(study)
    with pytest.raises(NotPossible, match="published already"):
        publish(study)
    newest = add_analysis(study, made_up_results())
    second = publish(study)
    assert second.published_analysis == newest != first.published_analysis
    event = AuditEvent.objects.filter(action="study.results_published").first()
    assert event.data["before"] == first.published_analysis_id


def test_teams_that_were_heard_are_told_once_a_day(study):
    heard, _ = make_team(study.edition, owner=make_user()), make_team(study.edition, owner=make_user())
    system = study.systems.get().submission.system
    system.team = heard
    system.save()
    publish(study)
    unpublish_results(study=study, by=None)
    publish(study)
    notice = Job.objects.get(kind="send-notice").parameters
    assert (notice["team"], notice["kind"]) == (heard.pk, NotificationKind.HEARD)
    assert notice["url"] == f"/studies/{study.name}/results/"


def test_simulated_results_say_so_wherever_they_are_told(study):
    Study.objects.update(is_simulated=True)
    system = study.systems.get().submission.system
    system.team = make_team(study.edition, owner=make_user())
    system.save()
    add_analysis(Study.objects.get(), made_up_results())
    publish(study)
    assert "simulated" in " ".join(Job.objects.get(kind="send-notice").parameters["lines"])
    assert AuditEvent.objects.get(action="study.results_published").data["is_simulated"] is True
