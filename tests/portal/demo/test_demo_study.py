"""The plan of the demo's listening test, and whose systems are heard in it."""

import pytest

from listening.app.studies.settings import parse_screening
from portal.demo.challenge import ENTRIES, TEAMS
from portal.demo.studies import PLAN, heard_submissions
from portal.submissions.models import System
from tests.portal.factories import make_corpus, make_edition, make_submission, make_team, make_team_system


def test_evaluators_of_the_demo_need_no_headphones():
    screening = parse_screening(PLAN["screening"])
    assert (screening.sound, screening.headphones) == (True, "none")


@pytest.mark.django_db
def test_only_what_the_demo_handed_in_gets_simulated_ratings():
    edition = make_edition(make_corpus("tones"))
    entry = next(entry for entry in ENTRIES if entry.team)
    own = make_team_system(make_team(edition, name=TEAMS[entry.team][0]), title=entry.title)
    visitors = make_team(edition)
    theirs = [make_team_system(visitors, "p1"), make_team_system(visitors, "p2", title=entry.title)]
    baseline = System.objects.create(
        name="demo-b2", label="B2", title=ENTRIES[0].title, edition=edition, is_baseline=True
    )
    select_demo_submissions = [make_submission(one) for one in (own, baseline)]
    for system in theirs:
        make_submission(system)
    make_submission(own)  # a second version, by a person who tries the demo as this team
    make_submission(make_team_system(own.team, "c1", title=ENTRIES[4].title), state="refused")
    assert heard_submissions(edition) == select_demo_submissions
