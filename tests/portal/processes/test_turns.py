"""Whose jobs real workers start first: one team sends twenty archives, another sends one, a study needs its stimuli.

A worker for checks and mails and one that computes run as `serve` starts them. Jobs that a test holds keep the second
one busy while archives are checked, so that what is ready at a time does not depend on how fast the machine is. What
is asserted is the order of the rows' times, never how long anything took.
"""

from uuid import uuid4

import pytest
from django.db import transaction

from listening.app.models import Study
from listening.app.studies.services import prepare_study
from portal.core.processes import LONG, SHORT
from portal.jobs.models import Job, JobState
from portal.submissions.models import Submission
from tests.listening.factories import make_study
from tests.portal.archives import anonymised, submit, zip_of
from tests.portal.factories import make_corpus, make_edition, make_organizer, make_team
from tests.portal.processes.programs import let_go, make_steps, wait_for_items, wait_until

SUBMISSIONS, MOST_BEFORE = 20, 2
PATIENCE_S = 600.0  # for twenty checks on a machine that does other work


@pytest.mark.parametrize("slots", [1, 2])
def test_other_team_starts_within_two_jobs_of_each_slot_and_stimuli_before_both(alone, tmp_path, slots):
    edition = make_edition(make_corpus("tones", speakers=2, utterances=1), scores_required=False)
    first, other = make_team(edition), make_team(edition)
    archive = zip_of(anonymised(edition.corpus))
    study = make_study(trials=2, systems=1, state=Study.State.DRAFT, launched_at=None)
    study.stimulus_files.update(file="", bytes=0, duration_s=0)
    alone.start_worker(queues=SHORT)
    alone.start_worker(queues=LONG, concurrency=slots)

    busy = hold_slots(tmp_path, edition, slots)
    many = [submit(first, archive) for _ in range(SUBMISSIONS)]
    wait_for_checks(many)
    let_go(*busy)
    wait_until(lambda: started(team=first.pk).count() > slots, "jobs of the first team", seconds=PATIENCE_S)
    busy = hold_slots(tmp_path, edition, slots)
    its = submit(other, archive)
    wait_for_checks([its])
    with transaction.atomic():
        stimuli = prepare_study(study, make_organizer())
    let_go(*busy)
    wait_until(lambda: state_of(its) == Submission.State.EVALUATED, "results of the other team", seconds=PATIENCE_S)
    alone.kill_all()

    in_order = list(started().select_related("after").order_by("started_at"))
    of_other = [job for job in in_order if job.team == other.pk]
    assert [job.pk for job in in_order if job.started_at > stimuli.created_at][:2] == [stimuli.pk, of_other[0].pk]
    for job in of_other:
        assert len(started_while_ready(job, in_order)) <= MOST_BEFORE * slots
    study.refresh_from_db()
    assert (study.job.state, study.state) == (JobState.SUCCEEDED, Study.State.PREPARED)
    assert sum(state_of(one) == Submission.State.EVALUATED for one in many) < SUBMISSIONS // 2


def hold_slots(folder, edition, slots):
    """Files of jobs that run and wait, one in each slot: each of a team of its own, which has the next turn."""
    files = [folder / uuid4().hex for _ in range(slots)]
    for file in files:
        make_steps(file, items=2, held_at=1, team=make_team(edition).pk)
    for file in files:
        wait_for_items(file, 1)
    return files


def wait_for_checks(submissions):
    """Every one of them is accepted and has the jobs of its evaluation."""

    def are_checked():
        states = {state_of(one) for one in submissions}
        assert states <= {"received", "checking", "evaluating"}, states
        return states == {"evaluating"}

    wait_until(are_checked, "checks", seconds=PATIENCE_S)


def state_of(submission):
    return Submission.objects.values_list("state", flat=True).get(pk=submission.pk)


def started(**fields):
    return Job.objects.filter(queue="cpu", started_at__isnull=False, **fields)


def started_while_ready(job, jobs):
    """Those that started between the moment from which a job could and its own start."""
    ready_at = max(job.created_at, job.after.finished_at) if job.after else job.created_at
    return [one for one in jobs if ready_at < one.started_at < job.started_at]
