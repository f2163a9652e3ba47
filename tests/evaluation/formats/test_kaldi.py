"""Kaldi files: what is read, and the sentence and line of each problem."""

import hashlib
import io

import pytest

from common.problems import Severity
from evaluation.formats import kaldi
from evaluation.formats.kaldi import KaldiTrial

# protocol: utterances, model speakers, target, nontarget, SHA-256 of the sorted ids, of the trials
TRIAL_SETS = {
    "libri_dev_trials_f": (1018, 15, 704, 14566, "3f42ebf4c66ab4b1", "898c53ef8b2661cf"),
    "libri_dev_trials_m": (960, 14, 644, 12796, "c7cdc7d6f1b5b25f", "1b9cee0389354978"),
    "libri_test_trials_f": (734, 16, 548, 11196, "0ba702549ac77b38", "9e4042b057124c58"),
    "libri_test_trials_m": (762, 13, 449, 9457, "3fb17c8f10c193bf", "dde784ccca67b484"),
}


def digest(lines):
    text = "".join(f"{line}\n" for line in sorted(lines))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def only(parsed):
    (problem,) = parsed.problems
    return problem


@pytest.mark.parametrize("name", TRIAL_SETS)
def test_trial_sets_agree_with_the_protocol(librispeech, name):
    folder = librispeech / "data" / name
    speakers = kaldi.read_utt2spk(folder / "utt2spk")
    trials = kaldi.read_trials(folder / "trials")
    assert speakers.problems == trials.problems == ()
    written = io.StringIO()
    kaldi.write_trials(trials.content, written)
    assert written.getvalue() == (folder / "trials").read_text()
    targets = sum(trial.target for trial in trials.content)
    assert (
        len(speakers.content),
        len({trial.model for trial in trials.content}),
        targets,
        len(trials.content) - targets,
        digest(speakers.content),
        digest(written.getvalue().splitlines()),
    ) == TRIAL_SETS[name]


def test_every_official_list_is_read_without_a_problem(librispeech):
    readers = {
        "wav.scp": kaldi.read_wav_scp,
        "utt2spk": kaldi.read_utt2spk,
        "spk2utt": kaldi.read_spk2utt,
        "spk2gender": kaldi.read_spk2gender,
        "text": kaldi.read_text,
        "utt2dur": kaldi.read_utt2dur,
    }
    for directory in sorted((librispeech / "data").iterdir()):
        parsed = {name: read(directory / name) for name, read in readers.items()}
        assert [each.problems for each in parsed.values()] == [()] * 6
        speakers = parsed["utt2spk"].content
        assert set(parsed["text"].content) == set(parsed["utt2dur"].content) == set(speakers)
        inverse = parsed["spk2utt"].content
        assert speakers == {name: speaker for speaker in inverse for name in inverse[speaker]}


def test_a_pipe_is_refused_and_never_run(tmp_path):
    proof = tmp_path / "proof"
    parsed = kaldi.read_wav_scp(io.StringIO(f"a a.wav\nb touch {proof} |\n"), "wav.scp")
    assert parsed.content == {"a": "a.wav"}
    assert only(parsed).code == "pipe-refused"
    assert only(parsed).sentence() == (
        f"wav.scp, line 2: expected the path of a file, found the command “touch {proof} |”. "
        "Commands are never run: make the file and name its path."
    )
    assert not proof.exists()


def test_recordings_that_segments_cut_are_refused_as_a_whole(tmp_path):
    (tmp_path / "wav.scp").write_text("rec1 rec1.wav\n")
    (tmp_path / "segments").write_text("u1 rec1 0.0 1.0\nu2 rec1 1.0 99.0\n")
    parsed = kaldi.read_wav_scp(tmp_path / "wav.scp", "set/wav.scp")
    assert parsed.content == {}
    assert only(parsed).sentence() == (
        "set/segments: expected a file for each utterance, found recordings that are cut into segments. "
        "Write the segments to files first (Kaldi: extract-segments)."
    )


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("THE CAT (a-1)\n(a-2)\n", "trn"),
        ("a-1 1 0.0 0.3 THE\na-1 1 0.3 0.25 CAT 0.98\n", "ctm"),
        (";; made by sclite\na-1 1 a 0.0 1.3 <o,f0> THE CAT\na-2 1 a 1 2\n", "stm"),
    ],
)
def test_text_in_another_form_is_refused_as_a_whole(text, form):
    parsed = kaldi.read_text(io.StringIO(text), "hyp")
    assert (parsed.content, only(parsed).code) == ({}, "other-form")
    assert f"NIST's {form} form" in only(parsed).found


@pytest.mark.parametrize(
    "text",
    ["a-1 THE CAT (laughs)\n", "a-1 1 2 3 GO\na-2 ON\n", "u1 1 2 3 4\nu2 4 3 2 1\n", "u1 see (fig2)\nu2 see (fig3)\n"],
)
def test_text_is_not_taken_for_another_form(text):
    assert len(kaldi.read_text(io.StringIO(text), "hyp").content) == text.count("\n")


@pytest.mark.parametrize(
    ("text", "known", "code"),
    [
        ("anna see (fig2)\nbert see (fig3)\n", {"fig2", "fig3"}, ["other-form"]),
        ("7 CATS (a-1)\n8 CATS (a-2)\n", {"a-1", "a-2"}, ["other-form"]),
    ],
)
def test_known_utterances_tell_text_from_another_form(text, known, code):
    assert [one.code for one in kaldi.read_text(io.StringIO(text), "hyp", known=known).problems] == code


@pytest.mark.parametrize(
    ("read", "text", "code"),
    [
        (kaldi.read_utt2spk, "a 1\nb\n", "malformed-line"),
        (kaldi.read_utt2spk, "a 1\na 2\n", "repeated-entry"),
        (kaldi.read_spk2gender, "1 f\n2 x\n", "unknown-gender"),
        (kaldi.read_utt2dur, "a 1\nb long\n", "malformed-line"),
        (kaldi.read_utt2dur, "a 1\nb -1\n", "wrong-duration"),
        (kaldi.read_enrolls, "a\nb 1\n", "malformed-line"),
        (kaldi.read_trials, "1 a target\n1 b yes\n", "malformed-line"),
        (kaldi.read_wav_scp, "a a.wav\nb\n", "malformed-line"),
    ],
)
def test_a_faulty_line_is_reported_and_left_out(read, text, code):
    parsed = read(io.StringIO(text), "the_file")
    assert len(parsed.content) == 1
    assert parsed.lines == (1,)
    assert (only(parsed).code, only(parsed).file, only(parsed).line) == (code, "the_file", 2)


def test_all_problems_are_found_at_once_and_capped():
    parsed = kaldi.read_trials(io.StringIO("1 a target\n" + "wrong\n" * 15000), "trials")
    assert parsed.content == (KaldiTrial("1", "a", True),)
    *rows, rest = parsed.problems
    assert [problem.line for problem in rows] == list(range(2, 10_002))
    assert (rest.line, rest.found, rest.count) == (None, "5000 more", 5000)


def test_blank_lines_are_noted():
    parsed = kaldi.read_utt2spk(io.StringIO("a 1\n\nb 1\n"))
    assert parsed.lines == (1, 3)
    assert (only(parsed).code, only(parsed).severity) == ("blank-line", Severity.NOTE)


def test_line_ends_of_windows_are_tolerated(tmp_path):
    path = tmp_path / "utt2spk"
    path.write_bytes(b"a 1\r\nb 2\r\n")
    parsed = kaldi.read_utt2spk(path)
    assert parsed.content == {"a": "1", "b": "2"}
    assert (only(parsed).code, only(parsed).line) == ("windows-line-ends", 1)
    assert only(parsed).severity is Severity.NOTE


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"a ONE\nb CAF\xc9\n", "wrong-encoding", 2),
        ("a ONE\n".encode("utf-16"), "wrong-encoding", 1),
        (b"a ONE\nb \0\n", "not-text", 2),
        (b"", "empty-file", None),
    ],
)
def test_a_file_that_is_no_text_gives_one_problem(tmp_path, data, code, line):
    path = tmp_path / "text"
    path.write_bytes(data)
    parsed = kaldi.read_text(path)
    assert parsed.content == {}
    assert (only(parsed).code, only(parsed).file, only(parsed).line) == (code, "text", line)


def test_written_lists_read_back_sorted():
    def round_trip(write, read, content):
        file = io.StringIO()
        write(content, file)
        parsed = read(io.StringIO(file.getvalue()))
        assert parsed.problems == ()
        return file.getvalue(), parsed.content

    pairs = {"b-1": "b", "a-10": "a", "a-1": "a", "é-1": "é"}
    text, content = round_trip(kaldi.write_listing, kaldi.read_utt2spk, pairs)
    assert text == "a-1 a\na-10 a\nb-1 b\né-1 é\n"
    assert content == pairs
    assert round_trip(kaldi.write_listing, kaldi.read_text, {"u": "A WORD", "t": ""})[1] == {"t": "", "u": "A WORD"}
    assert round_trip(kaldi.write_listing, kaldi.read_spk2gender, {"s": "f"}) == ("s f\n", {"s": "f"})
    assert round_trip(kaldi.write_listing, kaldi.read_wav_scp, {"u": "wav/u 1.wav"})[1] == {"u": "wav/u 1.wav"}
    assert round_trip(kaldi.write_spk2utt, kaldi.read_spk2utt, {"s": ["s-2", "s-1"]})[1] == {"s": ("s-1", "s-2")}
    assert round_trip(kaldi.write_utt2dur, kaldi.read_utt2dur, {"u": 1.2345678901234567})[1] == {
        "u": 1.2345678901234567
    }


def test_entry_that_differs_in_its_unicode_form_only_is_repeated():
    parsed = kaldi.read_utt2spk(io.StringIO("mu\u0308ller-1 a\nm\u00fcller-1 b\n"), "utt2spk")
    assert parsed.content == {"m\u00fcller-1": "a"}
    assert [(problem.code, problem.line) for problem in parsed.problems] == [("repeated-entry", 2)]
