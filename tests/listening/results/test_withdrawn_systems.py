"""Submissions that are withdrawn after people heard them: what was published of them is hidden, a new analysis leaves
them out, and a study is public again once that is published."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import Http404
from django.utils import timezone

from listening.analysis.reading.inputs import ORIGINAL
from listening.app.results.inputs import collect_inputs, compute_basis
from listening.app.results.selectors import current_analysis, list_shown_analyses, shown_analysis_for
from listening.app.results.services import publication_problems, publish_results, start_analysis
from portal.jobs.models import Job
from portal.submissions.models import Submission
from tests.listening.results.answered import CHOSEN, analysed, is_outdated, make_answered
from tests.portal.factories import make_team, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_analyses")]


def codes_of(study):
    return sorted(study.systems.values_list("code", flat=True))


def withdraw(study, code):
    Submission.objects.filter(pk=study.systems.get(code=code).submission_id).update(state="withdrawn")


def publish(study):
    study.edition.published_at = timezone.now()
    study.edition.save()
    return publish_results(study=study, by=study.edition.organizers.first(), now=timezone.now())


def heard_by_all(study):
    try:
        shown = shown_analysis_for(AnonymousUser(), study.name)
    except Http404:
        return set()
    return set(shown.results.table("raw", "summary").values("system")) - {ORIGINAL}


def make_published():
    made = make_answered(evaluators=6, trials=8, systems=2, tasks=["similarity"])
    analysed(start_analysis(made, None, CHOSEN))
    return publish(made)


@pytest.fixture
def study(once):
    return once(make_published)


def test_results_that_name_a_withdrawn_system_are_hidden_until_others_are_published(study):
    kept, gone = codes_of(study)
    assert heard_by_all(study) == {kept, gone}
    withdraw(study, gone)
    assert heard_by_all(study) == set()
    assert list_shown_analyses(AnonymousUser(), study.edition) == []
    assert is_outdated(current_analysis(study), study)
    assert "A submission that was heard was withdrawn" in publication_problems(study)[0]
    analysed(start_analysis(study, None, CHOSEN))
    assert heard_by_all(study) == set()
    publish(study)
    assert heard_by_all(study) == {kept}
    shown = shown_analysis_for(AnonymousUser(), study.name)
    assert gone not in shown.results.as_json()


def test_nothing_about_a_withdrawn_system_enters_an_analysis(study):
    kept, gone = codes_of(study)
    before, basis = collect_inputs(study), compute_basis(study)
    assert set(before.ratings.system.tolist()) == {ORIGINAL, kept, gone}
    withdraw(study, gone)
    inputs = collect_inputs(study)
    assert compute_basis(study) != basis
    assert set(inputs.ratings.system.tolist()) == {ORIGINAL, kept}
    assert len(inputs.ratings) == (before.ratings.system != gone).sum()
    assert set(inputs.study.labels) == {kept}
    assert set(inputs.study.design["submissions"]) == {kept}


def test_other_states_change_nothing(study):
    _, code = codes_of(study)
    basis = compute_basis(study)
    Submission.objects.filter(pk=study.systems.get(code=code).submission_id).update(state="evaluating")
    assert compute_basis(study) == basis
    assert code in heard_by_all(study)


def test_teams_of_withdrawn_systems_get_no_notice(study):
    kept, gone = codes_of(study)
    for code in (kept, gone):
        system = study.systems.get(code=code).submission.system
        system.team = make_team(study.edition, owner=make_user())
        system.save()
    withdraw(study, gone)
    analysed(start_analysis(study, None, CHOSEN))
    publish(study)
    told = Job.objects.filter(kind="send-notice").values_list("parameters__team", flat=True)
    assert set(told) == {study.systems.get(code=kept).submission.system.team_id}
