"""The job that deletes a large thing."""

from __future__ import annotations

from typing import Any

from django.apps import apps

from portal.core.models import AuditEvent
from portal.deletion.services import delete_in_batches
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext
from portal.jobs.selectors import DELETION
from portal.jobs.services import NotPossible


@job_kind(DELETION, title="Deletion", queue=Queue.LIGHT)
def run_deletion(context: JobContext) -> dict[str, Any]:
    """Delete what the job names, however often it was interrupted; the number of the receipt."""
    named = context.parameters
    model = apps.get_model(named["thing"])
    thing = model._default_manager.filter(pk=named["number"]).first()
    if thing is None:  # it was gone when the last attempt ended
        receipts = AuditEvent.objects.filter(subject_type=named["thing"], subject_id=str(named["number"]))
        deleted = receipts.filter(action=f"{model._meta.model_name}.deleted")
        return {"receipt": deleted.values_list("pk", flat=True).first()}
    try:
        receipt = delete_in_batches(
            thing=thing,
            by=context.job.created_by,
            total=named["rows"],
            counted=named["deletes"],
            progress=context.progress,
        )
    except NotPossible as reason:
        raise JobFailure(str(reason), actor=Actor.ORGANIZER, remedy="Fix this, then run this job again.") from None
    return {"receipt": receipt.pk}
