"""Flows that span several parts: a baseline is anonymised and then measured, by itself or as part of an edition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from anonymization.methods.contract import Options
from anonymization.methods.registry import get_method
from anonymization.services import start_anonymization
from anonymization.targets import TargetRequest
from anonymization.voices import BY_ROLE
from evaluation.services import start_evaluation
from portal.challenges.models import Corpus, DataSet, Edition
from portal.submissions.models import System
from portal.submissions.services import create_baseline, create_edition_baseline


@transaction.atomic
def start_baseline(
    *,
    name: str,
    corpus: Corpus,
    data_sets: Iterable[DataSet],
    method: str,
    seed: int,
    level: str = BY_ROLE,
    options: Options | None = None,
    targets: TargetRequest | None = None,
    by: Any = None,
) -> System:
    """Create a system and the jobs that anonymise and then measure each of the data sets.

    Raises:
        MethodError: as `start_anonymization`.
    """
    submission = create_baseline(name=name, title=get_method(method).title, corpus=corpus, by=by)
    runs = start_anonymization(
        submission=submission,
        data_sets=data_sets,
        method=method,
        seed=seed,
        level=level,
        options=options,
        targets=targets,
        by=by,
    )
    for run in runs:
        start_evaluation(submission=submission, data_set=run.data_set, after=run.job, by=by)
    return submission.system


@transaction.atomic
def start_edition_baseline(
    *,
    edition: Edition,
    label: str,
    data_sets: Iterable[DataSet],
    method: str,
    seed: int,
    level: str = BY_ROLE,
    options: Options | None = None,
    targets: TargetRequest | None = None,
    by: Any = None,
) -> System:
    """Create a baseline of an edition and the jobs that make its files.

    Once all have succeeded the submission is accepted, and evaluated as those of teams.

    Raises:
        MethodError: as `start_anonymization`.
    """
    submission = create_edition_baseline(edition=edition, label=label, title=get_method(method).title, by=by)
    start_anonymization(
        submission=submission,
        data_sets=data_sets,
        method=method,
        seed=seed,
        level=level,
        options=options,
        targets=targets,
        by=by,
    )
    return submission.system
