"""Text files as they are, not as one wishes them."""

import os

from common.text_files import read_text_file


def test_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "trials")
    text, [problem] = read_text_file(tmp_path / "trials")
    assert (text, problem.code, problem.found) == ("", "not-a-file", "a folder, pipe or device")
