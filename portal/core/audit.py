"""The audit log: one row for each action, in the same transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db.models import Model

from portal.core.models import AuditEvent

LONGEST_KEPT = 200


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


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Of each field what it was and what it is, as `record` can keep it; a long text is kept by its length alone."""
    return {name: [_kept(before[name]), _kept(after[name])] for name in sorted(after)}


def _kept(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds")
    if isinstance(value, list):
        return [str(one) for one in value]
    text = str(value)
    return text if len(text) <= LONGEST_KEPT else f"a text of {len(text):,} characters"
