"""What a command leaves behind is removed whatever it is, its input first."""

import os

import pytest

from anonymization.methods.external import leftovers
from anonymization.methods.external.leftovers import measure_folder, remove_folder
from anonymization.methods.external.method import watching
from tests.anonymization.programs import items, make_command


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    for name in ("written/home/a/b", "written/output", "input"):
        (folder / name).mkdir(parents=True)
    (folder / "input" / "000001.wav").write_bytes(b"speech")
    return folder


def test_links_are_removed_and_not_followed(work, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(bytes(100_000))
    (work / "written" / "home" / "a" / "link").symlink_to(outside)
    (work / "link").symlink_to(outside / "kept")
    assert measure_folder(str(work)) < 100_000
    assert remove_folder(str(work))
    assert not work.exists()
    assert [path.name for path in outside.iterdir()] == ["kept"]


def test_names_that_are_no_text_and_folders_without_rights_are_removed(work):
    (work / "written" / "home" / "a" / os.fsdecode(b"\xff\n")).mkdir()
    (work / "written" / "home" / "a" / "b" / "closed").mkdir(mode=0)
    (work / "written" / "home" / "a").chmod(0o500)
    assert remove_folder(str(work))
    assert remove_folder(str(work)), "what is gone is gone"


def test_input_goes_first_and_what_cannot_be_removed_is_told(work, monkeypatch, tmp_path):
    gone, unlink = [], leftovers._unlink

    def stubborn(name, folder):
        gone.append(name)
        if name == "b":
            raise OSError("a broken disk")
        return unlink(name, folder)

    monkeypatch.setattr(leftovers, "_unlink", stubborn)
    assert not remove_folder(str(work), last="written")
    assert gone.index("000001.wav") < gone.index("a")
    assert [path.name for path in work.rglob("*") if path.name in ("input", "output", "b")] == ["b"]


def test_rest_that_cannot_be_removed_is_a_note_of_the_run(monkeypatch, tmp_path):
    command = make_command(tmp_path / "own", "copy()", isolation="limited")
    monkeypatch.setattr("anonymization.methods.external.method.remove_folder", lambda *_, **__: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    notes = []
    with watching(note=notes.append):
        command.anonymize_batch(items(160), 16_000)
    assert notes[-1].endswith("could be removed. Remove it by hand.")


def test_too_many_files_and_a_folder_that_is_gone(work, monkeypatch):
    assert measure_folder(str(work / "nowhere")) == 0
    monkeypatch.setattr(leftovers, "MOST_FILES", 3)
    with pytest.raises(RuntimeError, match="there are more than 3 files"):
        measure_folder(str(work))
