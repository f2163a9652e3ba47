"""Own recordings that are sent in parts: what is known before the first byte is checked then."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from common.errors import ProblemsError
from listening.app.models import Study
from listening.app.recordings.choosing import ChosenTestForm
from listening.app.recordings.services import check_archive
from listening.app.studies.services import check_names
from portal.submissions.models import Upload
from portal.submissions.resumable_uploads import create_test_upload


def begin_upload(*, test: ChosenTestForm, file_name: str, size: int, sha256: str, by: Any) -> Upload:
    """Return the upload of an archive of which a job makes the test of a valid form, begun now or before.

    What has made just this test already is found, too, so that a sender who did not hear of it makes it once.

    Raises:
        ProblemsError: an archive like this cannot be used.
        ValidationError: the name or the title is taken.
        NotPossible: there is no room, or the sender may make no tests.
    """
    chosen = test.choose()
    if chosen.edition:
        raise ProblemsError([f"The file of the test names the edition {chosen.edition}, so no recordings are sent."])
    check_archive(file_name, size)
    name, title = (str(chosen.study[one]) for one in ("name", "title"))
    same = Upload.objects.filter(created_by=by, size=size, claimed_sha256=sha256, state=Upload.State.COMPLETE)
    for upload in same.filter(imported_as={"test": test.sent, "name": title}):
        if Study.objects.filter(recordings__upload=str(upload.pk)).exists():
            return upload
    check_names(Study(name=name, title=title), by)
    return create_test_upload(
        test=test.sent,
        title=title,
        file_name=file_name,
        size=size,
        claimed_sha256=sha256,
        by=by,
        now=timezone.now(),
    )
