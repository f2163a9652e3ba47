"""Background work on corpora."""

from __future__ import annotations

from typing import Any

from portal.challenges.importing import run_import
from portal.jobs.kinds import job_kind
from portal.jobs.models import Queue
from portal.jobs.runner import JobContext


@job_kind("import-corpus", title="Import of a corpus", queue=Queue.IO)
def import_corpus(context: JobContext) -> dict[str, Any]:
    return run_import(context)
