"""Who may see what of results: rules, and the door by which pages come to them."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import Http404
from django.utils import timezone

from listening.app.models import Study
from listening.app.results.context import visible_results
from listening.app.results.inputs import compute_basis
from listening.app.results.rules import ResultsPart
from listening.app.results.selectors import list_shown_analyses, parsed_results, shown_analysis_for
from listening.app.results.services import publish_results
from portal.accounts.models import User
from portal.core.storage import store_bytes
from tests.listening.analysis.examples import SYSTEMS, made_up_results
from tests.listening.results.analysed import add_analysis, make_analysed
from tests.portal.factories import make_operator, make_organizer, make_team, make_user

pytestmark = pytest.mark.django_db


def analysed_study():
    """A team's system is heard under the first code of the made-up results."""
    study = make_analysed(organizer=make_organizer(name="organizer"))
    heard = study.systems.get()
    heard.code = SYSTEMS[0]
    heard.save()
    system = heard.submission.system
    system.team = make_team(study.edition, owner=make_user(name="member"))
    system.save()
    make_team(study.edition, owner=make_user(name="rival"))
    study.analyses.update(basis=compute_basis(study))
    return study


class Place:
    """Such a study and its people."""

    def __init__(self, study):
        self.study, self.code = study, SYSTEMS[0]
        names = ("organizer", "member", "rival")
        self.organizer, self.member, self.rival = (User.objects.get(name=name) for name in names)

    @property
    def others(self):
        people = (AnonymousUser(), self.member, self.rival, make_organizer(), make_operator())
        return dict(zip(("visitor", "member", "rival", "organizer", "operator"), people, strict=True))

    def publish(self):
        self.study.edition.published_at = timezone.now()
        self.study.edition.save()
        self.study = publish_results(study=self.study, by=self.organizer, now=timezone.now())


@pytest.fixture
def place(once):
    return Place(once(analysed_study))


def is_shown(user, study, part=ResultsPart.RESULTS):
    try:
        return shown_analysis_for(user, study.name, part).analysis is not None
    except Http404:
        return False


def test_before_publication_only_organizers_of_the_edition_see_results(place):
    assert is_shown(place.organizer, place.study, ResultsPart.BUNDLE)
    assert {who for who, user in place.others.items() if is_shown(user, place.study)} == set()


def test_published_results_are_everybodys_while_the_leaderboard_is(place):
    place.publish()
    assert all(is_shown(user, place.study) for user in place.others.values())
    place.study.edition.published_at = None
    place.study.edition.save()
    assert not any(is_shown(user, place.study) for user in place.others.values())
    assert is_shown(place.organizer, place.study)


def test_while_a_study_recruits_its_organizers_see_no_results(place):
    Study.objects.update(state="open")
    shown = shown_analysis_for(place.organizer, place.study.name)
    assert (shown.analysis, shown.is_organizer) == (None, True)
    with pytest.raises(Http404):
        _ = shown.results
    assert list_shown_analyses(place.organizer, place.study.edition) == []


def test_public_sees_what_was_published_and_organizers_the_newest(place):
    place.publish()
    published = place.study.published_analysis
    newest = add_analysis(place.study, made_up_results())
    mine, theirs = (shown_analysis_for(user, place.study.name) for user in (place.organizer, place.rival))
    assert (mine.analysis, mine.is_published) == (newest, False)
    assert (theirs.analysis, theirs.is_published) == (published, True)
    around = list_shown_analyses(place.organizer, place.study.edition)
    assert [(one.analysis, one.is_published) for one in around] == [(published, True)]


def test_results_are_read_with_few_queries_and_parsed_once(place, django_assert_num_queries, monkeypatch):
    place.publish()
    for user, queries in ((AnonymousUser(), 1), (place.member, 3), (place.organizer, 3)):
        with django_assert_num_queries(queries):
            shown = shown_analysis_for(user, place.study.name)
            first = shown.results
        assert shown_analysis_for(user, place.study.name).results is first


def test_studies_of_an_edition_are_found_in_as_many_queries_however_many(place, django_assert_num_queries):
    for _ in range(2):
        make_analysed(edition=place.study.edition)
    with django_assert_num_queries(2):
        assert len(list_shown_analyses(place.organizer, place.study.edition)) == 3


def test_right_answers_and_certificate_of_a_design_stay_with_organizers(place):
    analysis = place.study.analyses.get()
    results = parsed_results(analysis.results)
    design = {"seed": 5, "gold": {"item": {"naturalness": [1, 3]}}, "certificate": {"checks": []}, "stimuli": {"n": 1}}
    told = replace(results, study=dict(results.study, design=design))
    place.study.analyses.update(results=store_bytes(told.as_json().encode(), ".json"))
    place.publish()
    for user in place.others.values():
        assert visible_results(shown_analysis_for(user, place.study.name)).study["design"] == {"seed": 5}
    shown = shown_analysis_for(place.organizer, place.study.name)
    assert visible_results(shown).study["design"] == design
