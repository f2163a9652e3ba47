"""Texts made comparable, and hypotheses kept while a recogniser works."""

from __future__ import annotations

import errno
import os
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from evaluation.formats import hypothesis_file as text_store
from evaluation.formats.hypothesis_file import TextStore
from evaluation.metrics.word_normalization import RULES, find_rule, written_english


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Mr. Quilter is here; Mrs. Day, too.", "MISTER QUILTER IS HERE MISSUS DAY TOO"),
        ("Well-known — and “quoted”", "WELL KNOWN AND QUOTED"),
        ("It’s the girls' ‘tis", "IT'S THE GIRLS TIS"),
        ("R&D at 100%", "R AND D AT ONE HUNDRED PER CENT"),
        ("in 1815, 1905, 1900 and 2004", "IN EIGHTEEN FIFTEEN NINETEEN OH FIVE NINETEEN HUNDRED AND TWO THOUSAND FOUR"),
        ("the 2nd, 12th, 21st and 30th", "THE SECOND TWELFTH TWENTY FIRST AND THIRTIETH"),
        ("the 1930s and 60's", "THE NINETEEN THIRTIES AND SIXTIES"),
        ("$5, £1 and $2.50", "FIVE DOLLARS ONE POUND AND TWO DOLLARS AND FIFTY"),
        ("$3 million", "THREE MILLION DOLLARS"),
        ("3.14 at 10:30 and 4:00", "THREE POINT ONE FOUR AT TEN THIRTY AND FOUR O'CLOCK"),
        ("007", "ZERO ZERO SEVEN"),
        ("東京", ""),
    ],
)
def test_written_english_becomes_plain_words(written, said):
    assert written_english(written) == said


@settings(max_examples=30)
@given(st.text())
def test_written_english_leaves_plain_words_only_and_changes_them_no_more(text):
    once = written_english(text)
    assert set(once) <= set(string.ascii_uppercase + "' ")
    assert written_english(once) == once


def test_rules_have_names_that_can_be_asked_for():
    assert list(RULES) == ["vpc-2022", "written-english-1", "written-1"]
    assert find_rule("vpc-2022").normalise("Mr. Day, 5!") == "MR DAY 5"
    with pytest.raises(InputError, match="vpc-2022, written-english-1, written-1, found “kaldi”"):
        find_rule("kaldi")


def test_a_stopped_run_goes_on_after_its_last_whole_line(tmp_path):
    path = tmp_path / "text"
    with TextStore(path, "one@1") as store:
        store.add("b", "two\nwords ")
        store.add("a", "")
    with path.open("a") as file:
        file.write("c cut o")
    with TextStore(path, "one@1") as store:
        assert store.done == {"b": "two words", "a": ""}
        store.add("c", "whole")
        store.finish()
    assert path.read_text() == "a\nb two words\nc whole\n"
    assert not list(tmp_path.glob(".*"))


def test_words_of_two_recognisers_never_share_a_file(tmp_path):
    path = tmp_path / "text"
    with TextStore(path, "one@1") as store:
        store.add("a", "x")
    with pytest.raises(InputError, match="expected hypotheses of two@1, found those of one@1"):
        TextStore(path, "two@1")
    (tmp_path / "text.engine").unlink()
    with pytest.raises(InputError, match="a file of unknown origin"):
        TextStore(path, "one@1")
    assert path.read_text() == "a x\n"


def test_words_of_other_recordings_are_told_apart(tmp_path):
    path = tmp_path / "text"
    with TextStore(path, "one@1") as store:
        store.add("a", "x", "digest-of-a")
    with (tmp_path / "text.engine").open("a") as file:
        file.write("b cut")
    with TextStore(path, "one@1") as store:
        assert store.recordings["a"] == "digest-of-a"
        store.add("b", "y", "digest-of-b")
    with TextStore(path, "one@1") as store:
        assert store.recordings == {"a": "digest-of-a", "b": "digest-of-b"}
        assert store.done == {"a": "x", "b": "y"}


def test_a_full_disk_keeps_what_is_done(tmp_path, monkeypatch):
    path = tmp_path / "text"
    with TextStore(path, "one@1") as store:
        store.add("a", "x")
    lines = path.read_text()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(text_store, "write_listing", full)
    with (
        pytest.raises(InputError, match=r"No space left on device.*make room and repeat"),
        TextStore(path, "one@1") as store,
    ):
        store.finish()
    assert path.read_text() == lines
    assert {one.name for one in tmp_path.iterdir()} == {"text", "text.engine"}


def test_a_folder_or_a_file_of_somebody_else_is_left_as_it_was(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes").write_text("mine\n")
    with pytest.raises(InputError, match="Is a directory"):
        TextStore(tmp_path / "folder", "one@1")
    with pytest.raises(InputError, match="a file of unknown origin"):
        TextStore(tmp_path / "notes", "one@1")
    assert {one.name for one in tmp_path.iterdir()} == {"folder", "notes"}
