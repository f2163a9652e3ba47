"""The audit trail: one row for each deed, in the same transaction."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from portal.core.models import AuditEvent


def record(action: str, subject: Model, *, actor: Any = None, **data: Any) -> AuditEvent:
    """Write that `actor` (None: the portal itself) did `action`, such as ``corpus.imported``, to `subject`."""
    return AuditEvent.objects.create(
        action=action,
        actor=actor,
        subject_type=subject._meta.label_lower,
        subject_id=str(subject.pk),
        subject=str(subject)[:200],
        data=data,
    )
