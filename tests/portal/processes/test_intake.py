"""The check of an archive through real processes, killed in its midst."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings

from portal.core.storage import load_audio
from portal.jobs.models import JobState
from portal.submissions.models import Submission
from tests.portal.archives import anonymised, submit
from tests.portal.factories import make_corpus, make_edition, make_team
from tests.portal.processes.programs import PATIENCE_S, wait_for_end, wait_until

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
    history = list(ended.events.values_list("text", flat=True))
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 2), history
    submission.refresh_from_db()
    found = [(cause["code"], cause["count"]) for cause in submission.report_summary]
    assert (submission.state, submission.errors) == (Submission.State.REFUSED, 1), found
    assert not folder.exists()
    note = f"{staged} recordings of an earlier attempt were reused."
    assert note in history
    files = list(submission.files.select_related("utterance"))
    assert len(files) == len({file.audio for file in files}) == len(members)
    for file in files:
        assert load_audio(file.audio)[0].size == file.samples


def test_third_death_of_the_process_that_reads_is_a_refusal(standing, team):
    """The archive is sound: whatever ends the process, the archive that it reads is not read a fourth time."""
    submission = submit(team, anonymised(team.edition.corpus, first_hertz=1000))
    killed = kill_readers(standing.worker.pid, 3)
    ended = wait_for_end(submission.job)
    submission.refresh_from_db()
    assert (len(killed), ended.state, ended.attempt, submission.state) == (3, JobState.SUCCEEDED, 1, "refused")
    [cause] = submission.report_summary
    assert (cause["code"], cause["count"]) == ("cannot-be-read", 1)
    assert "ended the process that reads it 3 times" in cause["examples"][0]
    notes = [one.text for one in ended.events.all() if "The process that reads the archive was ended" in one.text]
    assert len(notes) == 3
    assert all(one.endswith("it died.") for one in notes)
    assert submission.files.count() == 0
    assert not (settings.DATA_DIR / "staging" / f"submission-{submission.pk}").exists()


def kill_readers(worker, count):
    """``kill -9`` of so many processes, one after another, that a process of this worker has started."""
    killed, ends_at = set(), time.monotonic() + PATIENCE_S
    while len(killed) < count:
        assert time.monotonic() < ends_at, f"{len(killed)} readers were seen"
        for process in children(worker):
            for reader in set(children(process)) - killed:
                with suppress(ProcessLookupError):
                    os.kill(reader, signal.SIGKILL)
                    killed.add(reader)
        time.sleep(0.005)
    return killed


def children(process):
    with suppress(OSError):
        tasks = Path(f"/proc/{process}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return []
