"""Studies that were listened to: every evaluator rates every trial by a rule, so that results can be foreseen."""

from datetime import timedelta

import numpy as np
from django.utils import timezone

from listening.app.models import Answer, Session, Study
from listening.app.results.selectors import changes_since, outdating
from listening.app.results.services import close_study
from portal.jobs.models import Job
from portal.jobs.runner import execute
from tests.listening.factories import make_session, make_study
from tests.listening.session_factories import play_trials

CHOSEN = {"resamples": 200, "permutations": 200}


def make_answered(*, evaluators=12, trials=8, **fields):
    """A closed study in which everybody finished; the analysis that its closing would start is not there."""
    study = make_study(evaluators=evaluators, trials=trials, **fields)
    listeners = [answer(make_session(study), 7 + number) for number in range(evaluators)]
    assert all(one.state == "finished" for one in listeners)
    Study.objects.filter(pk=study.pk).update(state=Study.State.CLOSED, closed_at=timezone.now())
    study.refresh_from_db()
    return study


def answer(session, seed=0, *, state=Session.State.FINISHED):
    """Rate the trials of the session's block: originals high, systems lower, the rest by chance.

    Of a scale of other points than ten the same part.
    """
    numbers = np.random.default_rng(seed)
    now = timezone.now()
    trials = list(session.block.trials.select_related("presentation__condition").order_by("position"))
    play_trials(session, trials)
    rows = [
        Answer(
            session=session,
            trial=trial,
            task=one.key,
            rating=int(
                np.clip(
                    numbers.normal(4 if trial.presentation.condition.code else 8, 1.5) * one.points / 10, 1, one.points
                )
            ),
            received_at=now + timedelta(seconds=trial.position),
        )
        for trial in trials
        for one in session.study.asked
    ]
    Answer.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(state=state, step="end", ended_at=now)
    session.refresh_from_db()
    if state == Session.State.FINISHED:
        session.study.blocks.filter(holder=session).update(is_finished=True)
    return session


def analysed(analysis):
    """The analysis after its job has run in this process."""
    if analysis.job is not None:
        job = execute(analysis.job.pk) or Job.objects.get(pk=analysis.job.pk)
        assert job.state == "succeeded", (job.failure, [one.text for one in job.events.order_by("-pk")[:1]])
    analysis.refresh_from_db()
    return analysis


def close(study, by=None):
    return close_study(study=study, by=by or study.edition.organizers.first(), now=timezone.now())


def is_outdated(analysis, study):
    """Whether what listeners said would be analysed otherwise by now."""
    return bool(outdating(changes_since(analysis, study)))
