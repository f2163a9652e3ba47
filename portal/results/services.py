"""Flows that span several parts: a baseline is anonymised and then measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from anonymization.methods.registry import get_method
from anonymization.services import start_anonymization
from evaluation.services import start_evaluation
from portal.challenges.models import Corpus, DataSet
from portal.submissions.models import System
from portal.submissions.services import create_baseline


@transaction.atomic
def start_baseline(
    *,
    name: str,
    corpus: Corpus,
    data_sets: Iterable[DataSet],
    method: str,
    seed: int,
    by: Any = None,
) -> System:
    """Create a system and the jobs that anonymise and then measure each of the data sets."""
    submission = create_baseline(name=name, title=get_method(method).title, corpus=corpus, by=by)
    for run in start_anonymization(submission=submission, data_sets=data_sets, method=method, seed=seed, by=by):
        start_evaluation(submission=submission, data_set=run.data_set, after=run.job, by=by)
    return submission.system
