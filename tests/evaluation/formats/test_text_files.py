"""Text files as they are, not as one wishes them."""

import gzip
import os

import pytest

from common.errors import ProblemsError
from common.text_files import LONGEST_LINE, read_text_file
from evaluation.formats.results import parse_line
from listening.analysis.reading.text_tables import read_text


def test_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "trials")
    text, [problem] = read_text_file(tmp_path / "trials")
    assert (text, problem.code, problem.found) == ("", "not-a-file", "a folder, pipe or device")


def test_file_that_gzip_compressed_is_to_be_unpacked(tmp_path):
    (tmp_path / "r.txt.gz").write_bytes(gzip.compress(b"u1 one\n"))
    text, [problem] = read_text_file(tmp_path / "r.txt.gz")
    expected = "r.txt.gz: expected text, found a file that gzip compressed. Unpack it first (gunzip)."
    assert (text, problem.sentence()) == ("", expected)


def test_line_has_a_longest_length(tmp_path):
    path = tmp_path / "results.txt"
    sound = "x" * LONGEST_LINE + "\n"
    path.write_text(sound * 3 + "y" * LONGEST_LINE)
    assert read_text_file(path) == (path.read_text(), [])
    path.write_text(sound * 2 + "\n\n" + f"EER: {'1' * 3_000_000}%\n" + sound)
    text, [problem] = read_text_file(path)
    assert (text, problem.code, problem.line) == ("", "long-line", 5)
    sentence = "results.txt, line 5: expected at most 100,000 characters in a line, found 3,000,006. "
    assert problem.sentence() == f"{sentence}Break or shorten the line."
    with pytest.raises(ProblemsError, match=sentence):
        read_text(path, "results.txt")


@pytest.mark.parametrize("line", ["EER: {}%", "%WER 8.00 [ {} / 5, 1 ins, 1 del, 1 sub ]", "{}_trials_{}"])
def test_number_of_too_many_digits_is_of_no_known_kind(line):
    line = line.format("9" * 40_000, "x")
    entry = parse_line(line, 1, "ASV-a")
    assert entry is None or entry.values == ("9" * 40_000,)
