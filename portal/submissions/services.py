"""Creates systems and their submissions."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from portal.challenges.models import Corpus
from portal.core import audit
from portal.submissions.models import Submission, System


@transaction.atomic
def create_baseline(*, name: str, title: str, corpus: Corpus, by: Any = None) -> Submission:
    """A system of the organizer's own with its first, still empty submission."""
    system = System.objects.create(name=name, title=title, corpus=corpus, is_baseline=True, created_by=by)
    audit.record("system.created", system, actor=by)
    return Submission.objects.create(system=system, version=1)
