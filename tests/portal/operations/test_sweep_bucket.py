"""Files in a bucket: what is deleted, and what verify compares."""

import time

import pytest
from django.core.management import call_command
from django.utils import timezone

from portal.core import storage
from portal.deletion.files import clean_up_files, list_held_files
from portal.deletion.retention import delete_speech
from portal.operations.sweep import find_unneeded, sweep
from tests.portal.factories import (
    add_files,
    make_corpus,
    make_edition,
    make_submission,
    make_team,
    make_team_system,
    store_tone,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_sweep_and_retention_delete_in_a_bucket_what_nothing_needs(bucket_files, bucket_store, capsys):
    corpus = make_corpus("tones", speakers=1)
    edition = make_edition(corpus)
    submission = make_submission(make_team_system(make_team(edition)))
    add_files(submission, audio=store_tone(333))
    storage.store_bytes(b"left by a job that was killed", ".npz")
    storage.replace_named("derived/attacks/999999/results.zip", b"of a run that is gone")
    needed = {key for _, key in list_held_files()}
    assert sweep(time.time() - 3600) == (0, 0)
    found = {one.key for one in find_unneeded(time.time() + 3600)}
    assert (len(found), found & needed, "derived/attacks/999999/results.zip" in found) == (2, set(), True)
    assert sweep(time.time() + 3600)[0] == 2
    assert {name.partition("/")[2] for name in bucket_store.names()} == needed

    speech = set(submission.files.values_list("audio", flat=True))
    assert delete_speech(edition, timezone.now())["anonymised recordings"] == submission.files.count()
    assert clean_up_files() == 0  # stored within a day
    assert sweep(time.time() + 3600)[0] == len(speech) == 1
    assert {name.partition("/")[2] for name in bucket_store.names()} == needed - speech
    call_command("verify")
    bucket_store.empty()
    with pytest.raises(SystemExit):
        call_command("verify")
    assert f"{len(needed - speech)} differences." in capsys.readouterr().out
