"""The plan of the demo's listening test, and whose systems are heard in it."""

import pytest
from django.utils import timezone

from listening.app.models import Study
from portal.demo.challenge import ENTRIES, TEAMS
from portal.demo.studies import SAMPLED, heard_submissions, release_samples
from portal.submissions.models import System
from portal.systems.selectors import list_samples
from tests.listening.factories import make_stimulus, original_of
from tests.portal.factories import (
    make_corpus,
    make_edition,
    make_organizer,
    make_submission,
    make_team,
    make_team_system,
)


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
    assert heard_submissions(edition, without=entry.team) == select_demo_submissions[1:]


@pytest.mark.django_db
def test_everybody_hears_of_one_system_what_the_open_study_does_not_play():
    edition = make_edition(make_corpus("tones", speakers=3), published_at=timezone.now())
    entry = next(entry for entry in ENTRIES if entry.team == SAMPLED)
    team = make_team(edition, name=TEAMS[SAMPLED][0])
    submission = make_submission(make_team_system(team, title=entry.title))
    utterances = list(edition.corpus.utterances.order_by("name"))
    audio = {"data_set": edition.corpus.data_sets.first(), "audio": "absent.flac", "samples": 9600, "rate_hz": 16000}
    for utterance in utterances:
        submission.files.create(utterance=utterance, **audio)
    study = edition.studies.create(name="open", title="Open", state=Study.State.OPEN)
    for utterance in utterances[:5]:  # all of the first speaker, one of the second
        make_stimulus(study, original_of(study), utterance)
    people = {SAMPLED: team.memberships.get().user, "organizer": make_organizer()}
    said = []
    for _ in range(2):
        release_samples(edition=edition, people=people, say=said.append)
    parts = submission.shared_parts.all()
    assert [one.file.utterance.name for one in parts] == [utterances[7].name, utterances[11].name]
    assert said == [f"{submission.system}: 2 samples can be heard by everybody"]
    study.state = Study.State.CLOSED
    study.save()
    assert list_samples(parts, submission) == list(parts)
