"""What the portal found of the original speech of an edition, before any system has its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from evaluation.app.objective_results.services import recipe_hash
from evaluation.app.runs.kinds import ATTACK, RECOGNITION
from evaluation.protocols.ranking.entries import MeasuredValue
from portal.challenges.models import Edition
from portal.jobs.models import Job, JobState

ORIGINALS = "originals"
PARTS = (ATTACK.job, RECOGNITION.job)


def list_parts(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """What a job evaluates the originals by: an attack or recognition; both where its version made one job of them."""
    return (parameters["part"],) if "part" in parameters else PARTS


def read_originals(edition: Edition, as_of: datetime | None = None) -> dict[tuple[str, str, str], MeasuredValue]:
    """The averages of the originals by this recipe, each from the newest job: metric, estimator, data set → average.

    Args:
        as_of: what had been computed by then, unless the recipe was changed; None for now.
    """
    if not edition.recipe.evaluation.by_portal:
        return {}
    jobs = Job.objects.filter(
        kind=ORIGINALS, edition=edition.name, state=JobState.SUCCEEDED, parameters__recipe=recipe_hash(edition)
    )
    if as_of is not None and edition.recipe_number == 1:
        jobs = jobs.filter(finished_at__lte=as_of)
    return {
        (one["metric"], one["estimator"], one["data_set"]): MeasuredValue(one["value"], one["low"], one["high"])
        for result in jobs.order_by("finished_at").values_list("result", flat=True)
        for one in result["averages"]
    }
