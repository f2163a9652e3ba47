"""Stored files are compared with their hashes: each that is missing or changed is named with what it belongs to."""

from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command

from portal.challenges.models import Utterance
from tests.portal.factories import make_corpus

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_storage")]


def test_flipped_byte_and_missing_file_are_named(capsys):
    make_corpus("tones")
    damaged, missing = Utterance.objects.all()[:2]
    path = Path(default_storage.path(damaged.audio))
    content = path.read_bytes()
    path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    Path(default_storage.path(missing.audio)).unlink()
    with pytest.raises(SystemExit) as ended:
        call_command("verify")
    said = capsys.readouterr()
    assert ended.value.code == 1
    assert f"files/{damaged.audio}: expected content {path.stem} of utterances, found content " in said.err
    assert f"files/{missing.audio}: expected a file of utterances, found none. Copy the file back" in said.err
    assert ": 2 differences." in said.out
