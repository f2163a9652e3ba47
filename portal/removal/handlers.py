"""The job that deletes a large thing."""

from __future__ import annotations

from typing import Any

from portal.core.models import AuditEvent
from portal.core.removal import find_kind
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext
from portal.jobs.selectors import REMOVAL
from portal.jobs.services import NotPossible
from portal.removal.services import remove_in_pieces


@job_kind(REMOVAL, title="Deletion", queue=Queue.LIGHT)
def run_removal(context: JobContext) -> dict[str, Any]:
    """Delete what the job names, however often it was interrupted; the number of the receipt."""
    told, by = context.parameters, context.job.created_by
    kind, number = find_kind(told["thing"]), told["number"]
    thing = kind.model._default_manager.filter(pk=number).first()
    if thing is None:  # it was gone when the last attempt ended
        model = kind.model._meta
        found = AuditEvent.objects.filter(
            subject_type=model.label_lower, subject_id=str(number), action=f"{model.model_name}.deleted"
        )
        return {"receipt": found.values_list("pk", flat=True).first()}
    try:
        counted = {"total": told["rows"], "counted": told["deletes"]}
        receipt = remove_in_pieces(kind=kind, thing=thing, by=by, progress=context.progress, **counted)
    except NotPossible as reason:
        raise JobFailure(str(reason), actor=Actor.ORGANIZER, remedy="Fix this, then run this job again.") from None
    return {"receipt": receipt.pk}
