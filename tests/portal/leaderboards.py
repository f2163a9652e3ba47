"""Editions whose leaderboards have something on them: systems with the numbers that a ranking needs."""

import io

import numpy as np

from evaluation.app.models import EvaluationRun, ScoreSet
from evaluation.objective_results.values import Basis
from portal.core.storage import store_bytes
from portal.submissions.models import System
from tests.portal.factories import make_edition, make_submission, make_team, make_team_system
from tests.portal.objective_runs import make_objective_run, ranked_numbers


def put_on_leaderboard(system, *, eer, wer, pitch=0.5, gain=-5.0, interval=0.4, reported=False, missing=(), **fields):
    """One evaluated submission of a system with these averages; `missing` as (what, reason, is_ranked)."""
    submission = make_submission(system, **fields)
    basis = Basis.REPORTED if reported else Basis.VALUES
    numbers = ranked_numbers(system.edition, eer=eer, wer=wer, pitch=pitch, gain=gain, interval=interval, basis=basis)
    lost = tuple(what for what, _, _ in missing)
    kept = [number for number in numbers if not _is_lost(number, lost)]
    make_objective_run(submission, kept, missing=missing)
    return submission


def keep_scores(submission, data_set, targets, nontargets):
    """Store the scores of its semi-informed test on a data set, each ascending, as its objective run would."""
    packed = io.BytesIO()
    np.savez(packed, targets=np.array(targets), nontargets=np.array(nontargets))
    ScoreSet.objects.create(
        run=EvaluationRun.objects.get(submission=submission),
        data_set=data_set,
        attack_model="semi-informed",
        training="anonymised",
        enrolment="anonymised",
        speech="anonymised",
        target_count=len(targets),
        nontarget_count=len(nontargets),
        key=store_bytes(packed.getvalue(), ".npz"),
    )


def _is_lost(number, lost):
    """Whether a number, or the average that rests on it, is missing."""
    identity = number.identity
    if any(f" of {identity.data_set}" in what for what in lost):
        return True
    return identity.data_set == "average_test" and any(what.startswith(number.metric.label) for what in lost)


def make_baseline(edition, label="B2", **numbers):
    """A baseline of the organizers in this edition."""
    system = System.objects.create(
        name=f"{edition.name}-{label}".lower().replace(".", "-"),
        label=label,
        title=f"Baseline {label}",
        edition=edition,
        is_baseline=True,
    )
    put_on_leaderboard(system, **numbers)
    return system


def make_leaderboard(**fields):
    """Three teams: T01 with two systems, T02 with one that is late, T03 with one of low EER; a baseline B2."""
    edition = make_edition(**fields)
    first, second, third = (make_team(edition, name=name) for name in ("Alder", "Birch", "Cedar"))
    put_on_leaderboard(make_team_system(first, "p1"), eer=22.5, wer=8.25)
    put_on_leaderboard(make_team_system(first, "c1"), eer=16.25, wer=7.75)
    put_on_leaderboard(make_team_system(second, "p1"), eer=31.0, wer=7.5, is_late=True)
    put_on_leaderboard(make_team_system(third, "p1"), eer=9.5, wer=7.0)
    make_baseline(edition, "B2", eer=15.5, wer=9.0)
    return edition
