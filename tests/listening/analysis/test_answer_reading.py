"""Answers from CSV files: of our own form, as other tools write them, and what is wrong with one."""

import pytest

from common.errors import ProblemsError
from listening.analysis.reading.answers import AnswerOptions, read_answers
from tests.command_line import run_study


def read(text, kind, **options):
    return read_answers([("file.csv", text.encode())], AnswerOptions(kind, **options))


def rows_of(inputs, *names):
    return list(zip(*(getattr(inputs.answers, name).tolist() for name in names), strict=True))


def problems_of(text, kind, **options):
    with pytest.raises(ProblemsError) as caught:
        read(text, kind, **options)
    return caught.value.problems


def test_own_table_of_ratings():
    text = "listener;session;item;condition;value;position\nann;s1;i1;A;4,5;1\nann;s1;i2;B;2;2\n"
    inputs = read(text, "mos", title="Mine")
    assert rows_of(inputs, "listener", "session", "item", "condition", "value", "position", "question") == [
        ("ann", "s1", "i1", "A", "4.5", 1, "answer"),
        ("ann", "s1", "i2", "B", "2", 2, "answer"),
    ]
    assert (inputs.study.title, inputs.study.form) == ("Mine", "answers")
    assert inputs.study.design["questions"] == {"answer": {"kind": "mos"}}


def test_own_table_of_slots():
    text = "listener,item,condition,slot,value,order,position\na,i,x,A,B,2,1\na,i,y,B,B,1,1\n"
    assert rows_of(read(text, "ab"), "condition", "slot", "value", "order") == [("x", "A", "B", 2), ("y", "B", "B", 1)]


def test_mushra_of_webmushra():
    text = (
        '"session_test_id","email","session_uuid","trial_id","rating_stimulus","rating_score","rating_time","rating_comment"\n'
        '"t","a@b","u1","trial1","reference","100","5000",""\n"t","a@b","u1","trial1","C1","37","5000","buzz"\n'
    )
    inputs = read(text, "mushra", reference="reference", anchor="anchor70")
    assert rows_of(inputs, "listener", "item", "condition", "value") == [
        ("u1", "trial1", "reference", "100"),
        ("u1", "trial1", "C1", "37"),
    ]
    assert inputs.study.design["questions"]["answer"] == {
        "kind": "mushra",
        "reference": "reference",
        "anchor": "anchor70",
    }


PAIRED_OF_WEBMUSHRA = (
    "session_test_id,email,trial_id,choice_reference,choice_non_reference,choice_answer,choice_time,choice_comment\n"
    "t,a@b,t1,ref,C1,correct,1,\nt,a@b,t2,ref,C2,undecided,1,\nt,a@b,t3,ref,C1,unknown,1,\nt,a@b,t3,ref,C1,incorrect,1,\n"
)


def test_paired_comparison_of_webmushra_needs_to_know_the_listener():
    """Its file has no column of sessions; the questionnaire may have asked for a name."""
    [problem] = problems_of(PAIRED_OF_WEBMUSHRA, "ab")
    assert problem.startswith("file.csv, line 1: expected a column for listener, found “session_test_id”, “email”")
    assert problem.endswith("Say which: listener=NAME.")
    inputs = read(PAIRED_OF_WEBMUSHRA, "ab", columns={"listener": "email"})
    assert rows_of(inputs, "item", "condition", "slot", "value", "position") == [
        ("t1", "ref", "A", "A", 1),
        ("t2", "ref", "A", "=", 2),
        ("t3", "ref", "A", "B", 3),
        ("t1", "C1", "B", "A", 1),
        ("t2", "C2", "B", "=", 2),
        ("t3", "C1", "B", "B", 3),
    ]
    assert inputs.study.design["remarks"] == ["1 line without an answer left out."]


def test_abx_of_webmushra_says_right_or_wrong():
    text = PAIRED_OF_WEBMUSHRA.replace("undecided", "correct")
    inputs = read(text, "abx", columns={"listener": "email"})
    assert set(rows_of(inputs, "value", "truth")) == {("right", "right"), ("wrong", "right")}


def test_votes_of_the_p808_toolkit():
    text = (
        "HITId,workerid,assignment_id,assignmentstatus,file,short_file_name,vote,question_type\n"
        "h,w1,a1,Approved,https://x/y/D501_C03_M2_S02.wav,D501_C03_M2_S02.wav,4,MOS\n"
    )
    inputs = read(text, "mos", pattern=r".*/(?P<item>D\d+)_c(?P<condition>\d+)_.*")
    assert rows_of(inputs, "listener", "session", "question", "condition", "item", "value") == [
        ("w1", "a1", "MOS", "03", "D501", "4")
    ]


def test_answers_of_the_p808_toolkit_have_a_column_for_each_clip():
    text = (
        "HITId,AssignmentId,AssignmentStatus,WorkerId,Input.tp,Input.gold_clips,Answer.Q1_URL,Answer.q1,Answer.Q2_URL,Answer.q2,"
        "Answer.Q3_URL,Answer.q3,Answer.audio_n_play_q1\n"
        "h,a1,Approved,w1,u/t/tp.wav,u/g/gold.wav,u/c1/i1.wav,4,u/t/tp.wav,1,u/g/gold.wav,5,1\n"
        "h,a2,Rejected,w2,u/t/tp.wav,u/g/gold.wav,u/c1/i1.wav,1,u/c2/i1.wav,1,u/c1/i2.wav,1,1\n"
        "h,a3,Submitted,w3,u/t/tp.wav,u/g/gold.wav,u/c2/i1.wav,2,u/c1/i2.wav,3,u/t/tp.wav,1,1\n"
    )
    inputs = read(text, "mos")
    assert sorted(rows_of(inputs, "listener", "session", "condition", "item", "value")) == [
        ("w1", "a1", "c1", "i1", "4"),
        ("w3", "a3", "c1", "i2", "3"),
        ("w3", "a3", "c2", "i1", "2"),
    ]
    assert inputs.study.design["remarks"] == [
        "1 rejected assignment left out.",
        "3 answers about trapping and gold clips left out.",
    ]


def test_ccr_of_the_p808_toolkit_compares_with_its_reference():
    """Its sign says already how much better the processed clip is; the order is told beside it."""
    text = (
        "AssignmentId,WorkerId,Answer.Q1_URL,Answer.q1,Answer.Q1_order,Answer.Q2_URL,Answer.q2,Answer.Q2_order\n"
        "a1,w1,u/c1/i1.wav,-2,rp,u/c2/i1.wav,1,pr\n"
    )
    inputs = read(text, "ccr", reference="source")
    assert sorted(rows_of(inputs, "position", "slot", "condition", "value", "order")) == [
        (1, "A", "source", "-2", 1),
        (1, "B", "c1", "-2", 2),
        (2, "A", "source", "1", 2),
        (2, "B", "c2", "1", 1),
    ]
    [problem] = problems_of(text, "ccr")
    assert "expected the columns condition_a and condition_b, or slot" in problem
    assert problem.endswith("or the condition that all were compared with (--reference).")


def test_p835_has_three_questions():
    text = "AssignmentId,WorkerId,Answer.Q1_URL,Answer.q1_sig,Answer.q1_bak,Answer.q1_ovrl\na,w,c/i.wav,5,4,3\n"
    assert sorted(rows_of(read(text, "mos"), "question", "value")) == [("bak", "4"), ("ovrl", "3"), ("sig", "5")]


LISTEN_AND_RATE = {
    "mos": ("system,item,rating", ["A,u1,4", "B,u1,2"], [("A", "", "4"), ("B", "", "2")]),
    "ccr": ("system_a,system_b,item,rating", ["A,B,u1,2"], [("A", "A", "2"), ("B", "B", "2")]),
    "ab": ("system_a,system_b,item,winner", ["A,B,u1,="], [("A", "A", "="), ("B", "B", "=")]),
    "abx": ("system_a,system_b,item,correct", ["A,B,u1,true"], [("A", "A", "right"), ("B", "B", "right")]),
}


@pytest.mark.parametrize("kind", LISTEN_AND_RATE)
def test_files_of_listen_and_rate(kind):
    header, lines, expected = LISTEN_AND_RATE[kind]
    files = [
        (f"{session}.csv", "\n".join([f"tool_version,session_id,timestamp,test_type,{header}", *told, ""]).encode())
        for session in ("s1", "s2")
        for told in [[f"1,{session},t,{kind},{line}" for line in lines]]
    ]
    inputs = read_answers(files, AnswerOptions(kind))
    assert rows_of(inputs, "condition", "slot", "value") == expected * 2
    assert set(inputs.answers.listener.tolist()) == {"s1", "s2"}


RATED, PAIRED = "listener,item,condition,value", "listener,item,condition_a,condition_b,value"


@pytest.mark.parametrize(
    ("header", "lines", "kind", "problem"),
    [
        (RATED, "a,i,c,6", "mos", "line 2: expected a number from 1 to 5, found “6”."),
        (RATED, "a,i,c,loud", "mushra", "line 2: expected a number from 0 to 100, found “loud”."),
        ("listener,item,value", "a,i,5", "mos", "line 1: expected a column for condition, found “listener”, “item”,"),
        (PAIRED, "a,i,x,y,C", "ab", "line 2: expected one of A, B, =, found “C”."),
        (PAIRED, "a,i,x,y,A", "abx", "line 2: expected which of A and B was X, found nothing"),
        (
            f"{RATED},position",
            "a,i,c,4,first",
            "mos",
            "line 2: expected position as a whole number from 1, found “first”.",
        ),
        (
            "listener,file,value",
            "a,only.wav,4",
            "mos",
            "line 2: expected a file name that the pattern fits, found “only.",
        ),
        (RATED, "a,i,c", "mos", "line 2: expected 4 cells as in the header, found 3."),
        (RATED, "a,i,c,", "mos", "expected answers, found none in any line."),
    ],
)
def test_problem_names_line_what_was_expected_and_found(header, lines, kind, problem):
    [said] = problems_of(f"{header}\n{lines}\n", kind)
    assert problem in said
    assert said.startswith("file.csv")


def test_options_that_fit_no_file_are_told():
    text = "listener,item,condition,value\na,i,c,4\n"
    assert problems_of(text, "mos", columns={"speaker": "item"})[0].startswith(
        "file.csv: expected a column among listener,"
    )
    assert "expected a column “name”, found “listener”" in problems_of(text, "mos", columns={"listener": "name"})[0]
    assert "listeners to leave out who answered, found “zoe”" in problems_of(text, "mos", leave_out=("zoe",))[0]
    files = "listener,file,value\na,c/i.wav,4\n"
    assert "a group (?P<condition>…)" in problems_of(files, "mos", pattern="(.*)")[0]
    assert "a regular expression" in problems_of(files, "mos", pattern="(")[0]


def test_command_analyses_a_folder_of_answers_and_makes_it_again(tmp_path, capsys):
    folder, out = tmp_path / "results", tmp_path / "out"
    folder.mkdir()
    for number in range(12):
        lines = [f"s{number:02},x,y,u{item},{'a' if (number + item) % 4 else 'b'}" for item in range(12)]
        (folder / f"s{number:02}.csv").write_text("\n".join(["session_id,system_a,system_b,item,winner", *lines, ""]))
    assert run_study("analyse", folder, out, "--kind", "ab", "--leave-out", "s03") == 0
    said = capsys.readouterr().out
    assert "results: 132 answers, 11 sessions, 11 listeners" in said
    assert "1 session with 12 answers is left out by rules in force: 1 “left out by choice”." in said
    [line] = [line.split() for line in said.splitlines() if "share of wins" in line]
    assert line[4:8] == ["x", "y", "132", "0.750"]
    assert (out / "figures/common/compared-answer-share-of-wins-light.svg").exists()
    assert run_study("reproduce", out / "bundle.zip", tmp_path / "again", "--no-figures") == 0
    assert "are the same byte for byte, 0 differ" in capsys.readouterr().out
