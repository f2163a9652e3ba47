"""The job that makes the files of an edition that its teams download."""

from __future__ import annotations

from typing import Any

from portal.challenges.data_files import keep_data_files, make_data_files
from portal.challenges.models import Edition
from portal.challenges.selectors import DATA_FILES
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext


@job_kind(DATA_FILES, title="Data files for teams", queue=Queue.LIGHT)
def run_data_files(context: JobContext) -> dict[str, Any]:
    """Make the files of an edition that its teams download; returns how many there are."""
    edition = Edition.objects.filter(pk=context.parameters["edition"]).first()
    if edition is None:
        return {"files": 0}
    try:
        made = make_data_files(edition, context.progress)
    except FileNotFoundError as error:
        raise JobFailure(
            f"A recording of the corpus {edition.corpus} is not among the portal's files.",
            actor=Actor.OPERATOR,
            remedy="Bring the portal's files back from a backup, or import the corpus again; then run this job again.",
        ) from error
    keep_data_files(edition, made)
    return {"files": len(made), "bytes": sum(one.bytes for one in made)}
