"""The check of an archive through real processes, killed in its midst."""

import os
import signal

import pytest
from django.conf import settings

from portal.core.storage import load_audio
from portal.jobs.models import State
from portal.submissions.models import Submission
from tests.portal.archives import anonymised, submit
from tests.portal.factories import make_corpus, make_edition, make_team
from tests.portal.processes.programs import wait_for_end, wait_until

STAGED_BEFORE_THE_KILL = 20


@pytest.fixture
def team():
    corpus = make_corpus("many", speakers=10, utterances=30)
    return make_team(make_edition(corpus, scores_required=False))


def test_check_goes_on_after_a_kill_and_keeps_each_recording_once(standing, team):
    members = anonymised(team.edition.corpus, first_hertz=1000)  # above every original
    members.popitem()  # refused for it, so that no evaluation begins
    submission = submit(team, members)
    folder = settings.DATA_DIR / "staging" / f"submission-{submission.pk}"
    wait_until(lambda: len(list(folder.glob("*.flac"))) >= STAGED_BEFORE_THE_KILL, "staged recordings")
    for pid in set(standing.worker.family()) - {standing.worker.pid}:
        os.kill(pid, signal.SIGKILL)
    assert Submission.objects.get(pk=submission.pk).state == Submission.State.CHECKING
    staged = len(list(folder.glob("*.flac")))
    assert submission.files.count() == 0
    ended = wait_for_end(submission.job)
    assert (ended.state, ended.attempt) == (State.SUCCEEDED, 2), ended.failure
    submission.refresh_from_db()
    found = [(cause["code"], cause["count"]) for cause in submission.report_summary]
    assert (submission.state, submission.errors) == (Submission.State.REFUSED, 1), found
    assert not folder.exists()
    note = f"{staged} recordings of an earlier attempt were reused."
    assert note in set(ended.events.values_list("text", flat=True))
    files = list(submission.files.select_related("utterance"))
    assert len(files) == len({file.audio for file in files}) == len(members)
    for file in files:
        assert load_audio(file.audio)[0].size == file.samples
