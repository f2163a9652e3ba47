"""Own recordings that are sent in parts: what is known before the first byte is checked then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from common.errors import ProblemsError
from listening.app.models import Study
from listening.app.recordings.files import read_test_file, write_chosen
from listening.app.recordings.services import OwnTest, check_archive, find_original_problems
from listening.app.studies.services import check_names
from portal.submissions.models import Upload
from portal.submissions.resumable_uploads import create_test_upload


def begin_upload(
    *, chosen: OwnTest, fields: Mapping[str, Any], file_name: str, size: int, sha256: str, by: Any
) -> Upload:
    """Return the upload of an archive of which a job makes this test, begun now or before.

    Raises:
        ProblemsError: an archive like this cannot be used.
        ValidationError: the name or the title is taken.
        NotPossible: there is no room, or the sender may make no tests.
    """
    if chosen.edition:
        raise ProblemsError([f"The file of the test names the edition {chosen.edition}, so no recordings are sent."])
    check_archive(file_name, size)
    if problems := [*find_original_problems(chosen)]:
        raise ProblemsError(problems)
    check_names(Study(name=chosen.name, title=chosen.title), by)
    test = write_chosen(chosen, fields)
    read_test_file(test)  # as its job will
    return create_test_upload(
        test=test,
        title=chosen.title,
        file_name=file_name,
        size=size,
        claimed_sha256=sha256,
        by=by,
        now=timezone.now(),
    )
