"""What tests of backups need: a study and an upload that are under way, and the rows that a backup holds."""

import gzip
import json
from datetime import timedelta

from django.utils import timezone

from portal.accounts.tokens import create_token
from portal.operations.backup.services import make_backup
from portal.submissions.models import Upload
from portal.submissions.resumable_uploads import upload_path
from tests.listening.factories import make_session, make_study
from tests.portal.factories import make_organizer, make_team, make_user

RECEIVED = bytes(range(256)) * 20


def ignore(*_):
    pass


def back_up(folder, *, later_s=0, **given):
    return make_backup(folder, now=timezone.now() + timedelta(seconds=later_s), progress=ignore, **given)


def read_dump(folder, name=""):
    """The rows of a backup by their table; those of one table sorted."""
    [file] = sorted(folder.glob(f"backups/{name}*/database.jsonl.gz"))[-1:]
    tables, rows = {}, []
    with gzip.open(file, "rt") as lines:
        for line in map(json.loads, lines):
            if isinstance(line, list):
                rows.append(json.dumps(line))
            elif "table" in line:
                rows = tables.setdefault(line["table"], [json.dumps(line["columns"])])
    return {table: [found[0], *sorted(found[1:])] for table, found in tables.items()}


def begin_work():
    """A session before its first trial, an upload of which half is here, and the token of its sender."""
    study = make_study(organizer=make_organizer(email="runs@test.example"))
    session = make_session(study)
    sender = make_user(email="sends@test.example")
    team = make_team(study.edition, owner=sender, number=7)
    upload = Upload.objects.create(
        edition=study.edition,
        team=team,
        created_by=sender,
        file_name="a.zip",
        size=2 * len(RECEIVED),
        offset=len(RECEIVED),
        system_kind="primary",
        system_title="Ours",
        expires_at=timezone.now() + timedelta(days=7),
    )
    upload_path(upload).write_bytes(RECEIVED)
    _, token = create_token(user=sender, name="test", scopes=["submit"], expires_at=None)
    return session, upload, token
