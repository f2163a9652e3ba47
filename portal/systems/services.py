"""Flows that span several parts: a baseline is anonymised and then measured, by itself or as part of an edition."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from anonymization.app.models import NetworkSeed
from anonymization.app.networks import make_method
from anonymization.app.services import start_anonymization
from evaluation.app.audio_measures.services import start_measures
from evaluation.app.submission_evaluation.services import start_originals
from portal.challenges.models import Corpus, Edition
from portal.submissions.models import System
from portal.submissions.services import create_baseline, create_edition_baseline


@transaction.atomic
def start_baseline(
    *, name: str, corpus: Corpus, method: str, network: NetworkSeed | None = None, by: Any = None, **asked: Any
) -> System:
    """Create a system and the jobs that anonymise and then measure each of the data sets.

    Args:
        asked: what else `start_anonymization` takes: data sets, seed, level, options and targets.

    Raises:
        MethodError: as `start_anonymization`.
    """
    submission = create_baseline(name=name, title=make_method(method, network).title, corpus=corpus, by=by)
    for run in start_anonymization(submission=submission, method=method, network=network, by=by, **asked):
        start_measures(submission=submission, data_set=run.data_set, after=run.job, by=by)
    return submission.system


@transaction.atomic
def start_edition_baseline(
    *, edition: Edition, label: str, method: str, network: NetworkSeed | None = None, by: Any = None, **asked: Any
) -> System:
    """Create a baseline of an edition and the jobs that make its files; arguments as of `start_baseline`.

    Once all have succeeded the submission is accepted, and evaluated as those of teams. Where the portal evaluates,
    the original speech is evaluated beside the first of them.

    Raises:
        MethodError: as `start_anonymization`.
    """
    submission = create_edition_baseline(edition=edition, label=label, title=make_method(method, network).title, by=by)
    start_anonymization(submission=submission, method=method, network=network, by=by, **asked)
    start_originals(submission=submission, by=by)
    return submission.system
