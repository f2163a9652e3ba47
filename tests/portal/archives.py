"""Archives of anonymised tones, handed in as a team does and checked as a worker does."""

import io
import zipfile
from datetime import timedelta
from pathlib import Path

import soundfile
from django.conf import settings
from django.core.files.storage import default_storage
from django.utils import timezone

from portal.jobs.runner import execute
from portal.submissions.models import System, Upload
from portal.submissions.resumable_uploads import submit_upload, upload_path
from tests.portal.factories import RATE_HZ, tone
from tests.portal.intake.packing import DESCRIPTION as DESCRIPTION


def wav(hertz, seconds=0.6, rate_hz=RATE_HZ, subtype="PCM_16"):
    """A WAV file with a tone."""
    file = io.BytesIO()
    soundfile.write(file, tone(hertz, seconds), rate_hz, format="WAV", subtype=subtype)
    return file.getvalue()


def anonymised(corpus, first_hertz=300):
    """The members of a complete archive: each utterance of the corpus as a tone of its own."""
    names = corpus.utterances.order_by("name").values_list("name", flat=True)
    return {f"wav/{name}.wav": wav(first_hertz + 7 * number) for number, name in enumerate(names)}


def zip_of(members):
    """The same bytes for the same members, whatever the time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, data in members.items():
            member = zipfile.ZipInfo(path)
            member.external_attr = 0o600 << 16
            archive.writestr(member, data, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def submit(team, content, *, system=None, by=None, file_name="archive.zip", **fields):
    """A submission of an archive: members by path, or its bytes. It has arrived and waits for its check."""
    data = content if isinstance(content, bytes) else zip_of(content)
    upload = Upload.objects.create(
        edition=team.edition,
        team=team,
        system=system,
        system_kind="" if system else System.Kind.PRIMARY,
        file_name=file_name,
        size=len(data),
        offset=len(data),
        created_by=by or team.memberships.first().user,
        completed_at=timezone.now(),
        expires_at=timezone.now() + timedelta(days=1),
        **fields,
    )
    upload_path(upload).write_bytes(data)
    return submit_upload(upload=upload, now=timezone.now())


def check(submission):
    """Run the check of a submission in this process; the submission as it then is."""
    execute(submission.job_id)
    submission.refresh_from_db()
    return submission


def hand_in(team, content, **fields):
    """A submission of an archive after its check."""
    return check(submit(team, content, **fields))


def files_on_disk():
    """Everything that the portal keeps by content, stages while it reads an archive, or received."""
    folders = (Path(default_storage.path("content")), settings.DATA_DIR / "staging", Path(settings.UPLOAD_DIR))
    return {path for folder in folders if folder.is_dir() for path in folder.rglob("*") if path.is_file()}
