"""The listening test of the demo: a small study on the systems of its challenge, launched and open to whoever listens.

The systems are real ones of simulated teams; the ratings are those of the people who open the link, and nobody's else.
"""

from __future__ import annotations

from django.core.management.base import CommandError
from django.urls import reverse
from django.utils import timezone

from listening.models import Study
from listening.studies.designs import make_design
from listening.studies.plans import DEFAULT_SCREENING
from listening.studies.preparing import prepare_study
from listening.studies.services import create_study, launch_study
from portal.accounts.models import User
from portal.challenges.models import Edition
from portal.demo.challenge import handed_in
from portal.demo.telling import Say, wait_for_jobs
from portal.jobs.models import Job, State
from portal.jobs.terminal import failure_report
from portal.submissions.models import Submission

NAME, TITLE = "demo-listening", "Demo listening test (systems of simulated teams)"
PLAN = {
    "evaluators": 6,
    "trials_per_evaluator": 8,
    "originals_per_evaluator": 4,
    "practice_trials": 1,
    "gold_trials": 1,
    "bridge_trials": 0,
    "seed": 2022,
    "screening": DEFAULT_SCREENING | {"headphones": "none"},  # the link is tried on a phone, in a minute
}


def run_demo_study(*, edition: Edition, organizer: User, say: Say) -> Study:
    """Make what of the study is not there yet: its plan, its certified design, its stimuli, its launch.

    Raises:
        CommandError: the stimuli could not be made.
    """
    study = Study.objects.filter(name=NAME).first()
    if study is None:
        say("Planning a listening test on these systems")
        study = create_study(
            edition=edition,
            by=organizer,
            systems=heard_submissions(edition),
            data_sets=edition.corpus.data_sets.all() if edition.corpus else (),
            name=NAME,
            title=TITLE,
            **PLAN,
        )
    if study.state == Study.State.DRAFT:
        if not study.is_designed:
            make_design(study, organizer)
        prepare_study(study, organizer)
        study.refresh_from_db()
    if study.state == Study.State.PREPARING:
        _finish(study.job, say)
        study.refresh_from_db()
    if study.state == Study.State.PREPARED:
        study = launch_study(study=study, by=organizer, now=timezone.now())
        say("The listening test is open")
    return study


def evaluator_link(study: Study) -> str:
    """The address that evaluators are given, without the host."""
    return reverse("listen:join", args=[study.link_key])


def heard_submissions(edition: Edition) -> list[Submission]:
    """What the demo itself handed in, as far as it is evaluated; nobody else's system gets ratings that are made up."""
    return list(handed_in(edition).filter(state=Submission.State.EVALUATED).order_by("pk"))


def _finish(job: Job | None, say: Say) -> None:
    for ended in wait_for_jobs([job] if job else [], say):
        if ended.state != State.SUCCEEDED:
            raise CommandError(failure_report(ended))
