"""Files of voices: what was written is read again, a foreign line gets a sentence, no cell is a formula."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymization.methods.contract import MethodError, Parameter, PseudoSpeaker
from anonymization.methods.voices.files import read_voices, write_voices
from anonymization.methods.voices.pseudo_speakers import Assignment, plan_voices
from common.problems import Severity

HEADING = "role,split,level,speaker,utterance,key,alpha"


def assignment(speaker="p225", utterance="", alpha=0.7, **changes):
    level = "utterance" if utterance else "speaker"
    voice = PseudoSpeaker(changes.pop("key", "ab12"), {"alpha": alpha})
    return Assignment(
        **{"role": "trial", "split": "dev", "level": level, **changes},
        speaker=speaker,
        utterance=utterance,
        voice=voice,
    )


def written(assignments, names=("alpha",)):
    stream = io.StringIO(newline="")
    write_voices(stream, assignments, names)
    return stream.getvalue()


def read_text(text):
    return read_voices(io.StringIO(text), "voices.csv")


def sentences(file):
    return [problem.sentence() for problem in file.problems]


def test_lines_are_as_documented():
    assert written([assignment(), assignment("p226", "p226_001", 0.1)]) == (
        f"{HEADING}\ntrial,dev,speaker,p225,,ab12,0.7\ntrial,dev,utterance,p226,p226_001,ab12,0.1\n"
    )


names = st.text(
    st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12
) | st.sampled_from(["=1+1", "'quoted", "-x", "@a", "+", "a,b", 'say "a"', " p ", "-1.5", "'=1", "ﬁ", "#"])
numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(names, names), min_size=1, max_size=5))
def test_no_cell_runs_in_a_spreadsheet(pairs):
    text = written([assignment(speaker, split=split) for speaker, split in pairs])
    for row in csv.reader(io.StringIO(text)):
        assert not any(cell.startswith(("=", "@", "\t", "\r")) for cell in row)
        for cell in row:
            if cell.startswith(("+", "-")):
                float(cell)


def test_planned_voices_survive_a_file(tmp_path):
    parameters = [Parameter("alpha", "", 0.5, 0.9, ""), Parameter("shift", "", -6.0, 6.0, "", gap=(-1.0, 1.0))]
    plan = plan_voices(parameters, seed=3, role="trial", split="dev", speakers=[f"s{i}" for i in range(50)])
    path = tmp_path / "voices.csv"
    write_voices(
        path,
        (Assignment("trial", "dev", "speaker", name, "", voice) for name, voice in plan.voices.items()),
        ["alpha", "shift"],
    )
    assert {row.speaker: row.voice for row in read_voices(path).require()} == plan.voices
    assert [file.name for file in tmp_path.iterdir()] == ["voices.csv"]


def test_file_of_a_spreadsheet_is_read_with_notes():
    text = "\ufeff" + written([assignment()]).replace("\n", "\r\n")
    file = read_text(text)
    assert file.require() == (assignment(),)
    assert {problem.severity for problem in file.problems} == {Severity.NOTE}


def test_failed_writing_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "voices.csv"
    write_voices(path, [assignment()], ["alpha"])
    before = path.read_bytes()
    with pytest.raises(MethodError, match="control or broken characters"):
        write_voices(path, [assignment("p226"), assignment("p\n227")], ["alpha"])
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["voices.csv"]


@pytest.mark.parametrize("name", ["a\nb", "\udc80", "a\u2028b"])
def test_names_that_no_line_can_hold_are_refused(name):
    with pytest.raises(MethodError, match="control or broken characters in a name; found"):
        written([assignment(name)])


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (assignment(alpha=float("nan")), "holds finite numbers; the voice of p225"),
        (Assignment("trial", "dev", "speaker", "a", "", PseudoSpeaker("k", {"beta": 1.0})), "the voice of a has beta"),
    ],
)
def test_voices_that_the_columns_cannot_hold_are_refused(row, sentence):
    with pytest.raises(MethodError, match=sentence):
        written([row])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("trial,dev,speaker,p225,,ab12", "line 2: expected 7 cells as in the heading, found 6"),
        ("enroll,dev,speaker,p225,,ab12,0.7", "line 2: expected the role enrolment, trial or training, found “enroll”"),
        ("trial,dev,utterance,p225,,ab12,0.7", "line 2: expected an utterance, as the level is utterance, found none"),
        ("trial,dev,speaker,p225,,ab12,nan", "line 2: expected a number for alpha, such as 0.75, found “nan”"),
        ('trial,dev,speaker,p225,,ab12,"0,7"', "found “0,7”"),
        ('trial,dev,speaker,"p2\n25",,ab12,0.7', "expected a speaker without control characters"),
        ('trial,dev,speaker,"p225,,ab12,0.7', "expected cells between commas, semicolons or tabs"),
    ],
)
def test_line_out_of_order_gets_a_sentence(line, sentence):
    file = read_text(f"{HEADING}\n{line}\n")
    assert file.assignments == ()
    assert any(sentence in found for found in sentences(file)), sentences(file)
    with pytest.raises(MethodError, match=r"voices\.csv, line 2"):
        file.require()


def test_every_wrong_line_is_told_at_once_and_the_others_are_read():
    good = "trial,dev,speaker,p225,,ab12,0.7"
    file = read_text(f"{HEADING}\n{good}\ntrial,dev,speaker\n\nenroll,,speaker,p226,,ab12,x\n")
    assert [(problem.line, problem.found) for problem in file.problems] == [
        (3, "3"),
        (5, "“enroll”"),
        (5, "none"),
        (5, "“x”"),
    ]
    assert [row.speaker for row in file.assignments] == ["p225"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected a heading"),
        ("speaker,alpha\np225,0.7\n", "line 1: expected the columns role,split,level,speaker,utterance,key first"),
        (HEADING.replace(",", "|") + "\n", "separate the cells by commas"),
        (f"{HEADING},alpha\n", "a name of its own for each parameter"),
    ],
)
def test_heading_out_of_order_gets_a_sentence(text, sentence):
    assert any(sentence in found for found in sentences(read_text(text))), sentences(read_text(text))


def test_voices_that_a_spreadsheet_saved_with_semicolons_are_the_same():
    text = written([assignment(), assignment("p226")])
    assert read_text(text.replace(",", ";").replace(".", ",")).assignments == read_text(text).assignments


def test_line_that_contradicts_an_earlier_one_is_told():
    lines = written([assignment(), assignment("p226"), assignment()]) + "trial,dev,speaker,p226,,ab12,0.8\n"
    file = read_text(lines)
    [problem] = file.problems
    assert (problem.line, problem.found) == (5, "another one than in line 3")
