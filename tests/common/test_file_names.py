"""Names of files: equal where they look alike, and what operating systems leave behind."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from common.file_names import find_spelling, fold_names, is_dropping, name_other_capitals, plain_name
from common.folders import AudioIndex, audio_files, find_droppings

NFC, NFD = (unicodedata.normalize(form, "jürgen/müller-1.wav") for form in ("NFC", "NFD"))


def test_names_are_the_same_however_their_accents_are_stored():
    assert NFC != NFD
    assert plain_name(NFD) == plain_name(NFC) == NFC


@pytest.mark.parametrize(
    "path",
    [
        *(
            "a/.DS_Store",
            "a/Icon\r",
            "a/._x.wav",
            "__MACOSX/a/x.wav",
            ".Spotlight-V100/Store-V2/x.db",
            ".Trashes/501/x.wav",
        ),
        *(".fseventsd/fseventsd-uuid", ".AppleDouble/x.wav", ".TemporaryItems/folders.501/x", ".localized"),
        *("Thumbs.db", "THUMBS.DB", "a/ehthumbs.db", "Desktop.ini", "$RECYCLE.BIN/S-1-5/$R1.wav", "~$minutes.docx"),
        *("System Volume Information/IndexerVolumeGuid", "x.wav:Zone.Identifier"),
        *(".directory", ".nfs000000000123", ".Trash-1000/files/x.wav", ".~lock.minutes.odt#", ".fuse_hidden0001"),
        *("@eaDir/x.wav/SYNOAUDIO_01", "a/@eaDir/x.wav@SynoEAStream", "#recycle/x.wav", ".@__thumb/x.jpg"),
    ],
)
def test_what_systems_leave_behind_is_known(path):
    assert is_dropping(path)


@pytest.mark.parametrize("path", ["a/x.wav", "icon.wav", "Icon", "_MACOSX/x.wav", "a/.hidden.wav", "recycle/x.wav"])
def test_what_people_made_is_no_dropping(path):
    assert not is_dropping(path)


@pytest.mark.parametrize(("stored", "asked"), [(NFD, NFC), (NFC, NFD)])
def test_files_are_found_under_the_spelling_of_the_disk(tmp_path, stored, asked):
    (tmp_path / stored).parent.mkdir()
    (tmp_path / stored).touch()
    assert find_spelling(tmp_path / asked) == tmp_path / stored
    assert find_spelling(tmp_path / "nöne" / "x.wav") == tmp_path / "nöne" / "x.wav"
    assert AudioIndex(tmp_path).matches(f"/elsewhere/{asked}") == [stored]


def test_names_that_differ_in_capitals_are_told():
    folded = fold_names(["X.WAV", "y.wav"])
    assert name_other_capitals("x.wav", folded) == ", but “X.WAV”, which differs in capitals only"
    assert [name_other_capitals(name, folded) for name in ("y.wav", "z.wav")] == ["", ""]


def test_audio_of_a_folder_is_without_what_systems_left_behind(tmp_path):
    for name in ("b/x.WAV", "a.flac", "a.aiff", "$RECYCLE.BIN/y.wav", "__MACOSX/b/._x.WAV", "notes.txt", "Thumbs.db"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert list(audio_files(Path(tmp_path))) == ["a.aiff", "a.flac", "b/x.WAV"]
    assert sorted(find_droppings(tmp_path)) == ["$RECYCLE.BIN/y.wav", "Thumbs.db", "__MACOSX/b/._x.WAV"]
