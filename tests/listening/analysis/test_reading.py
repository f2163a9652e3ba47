"""Ratings of any laboratory: usual names, tolerant in values, strict in structure, and never a traceback."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ProblemsError
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.reading.ratings import ReadOptions, read_objective, read_ratings

PLAIN = """listener,task,system,rating
a,naturalness,original,9
a,naturalness,T01,4
b,intelligibility,original,8
b,verifiability,T01,2.5
"""


def read(text, name="lab.csv", **more):
    return read_ratings(text if isinstance(text, bytes) else text.encode(), name, ReadOptions(**more))


def problems(text, **more):
    with pytest.raises(ProblemsError) as raised:
        read(text, **more)
    return raised.value.problems


def test_four_columns_are_enough():
    inputs = read(PLAIN)
    ratings = inputs.ratings
    assert ratings.listener.tolist() == ["a", "a", "b", "b"]
    assert ratings.session.tolist() == ["a", "a", "b", "b"]
    assert ratings.rating.tolist() == [9, 4, 8, 2.5]
    assert set(ratings.purpose) == {"scored"}
    assert (set(ratings.is_target), ratings.is_finished.all(), set(ratings.excluded)) == ({-1}, True, {""})
    assert len(set(ratings.item)) == 4
    assert inputs.study.tasks == ("verifiability", "naturalness", "intelligibility")
    assert (inputs.study.name, inputs.study.form) == ("lab", "rating")
    assert inputs.study.scale["naturalness"] == (4, 9)
    assert inputs.study.scale["verifiability"] == (2, 3)
    assert any("4 to 9, was found in the ratings" in note for note in inputs.study.design["remarks"])


def test_a_scale_that_is_given_is_taken_and_not_noted():
    inputs = read(PLAIN, scale=(1, 10))
    assert set(inputs.study.scale.values()) == {(1, 10)}
    assert not any("scale" in note for note in inputs.study.design["remarks"])
    assert read(PLAIN, scale={"naturalness": (0, 100)}).study.scale["naturalness"] == (0, 100)


@pytest.mark.parametrize(("delimiter", "line_end", "start"), [(";", "\r\n", "\ufeff"), ("\t", "\n", "\n\n")])
def test_separators_line_ends_and_marks_of_any_spreadsheet_are_read(delimiter, line_end, start):
    text = start + PLAIN.replace(",", delimiter).replace("\n", line_end)
    assert read(text).ratings.rating.tolist() == [9, 4, 8, 2.5]


def test_decimal_commas_are_read_where_commas_separate_nothing():
    assert read("listener;task;system;rating\na;mos;x;2,5\n").ratings.rating.tolist() == [2.5]
    assert "found “1,234.5”" in problems("listener;task;system;rating\na;mos;x;1,234.5\n")[0]
    assert "expected 4 cells as in the header, found 5" in problems("listener,task,system,rating\na,mos,x,2,5\n")[0]


def test_gzipped_files_paths_and_streams_are_read(tmp_path):
    packed = gzip.compress(PLAIN.encode()[:40]) + gzip.compress(PLAIN.encode()[40:])
    path = tmp_path / "lab.csv.gz"
    path.write_bytes(packed)
    for source in (packed, path, io.BytesIO(packed)):
        inputs = read_ratings(source, path.name)
        assert (len(inputs.ratings), inputs.study.name) == (4, "lab")


def test_other_names_and_words_are_understood():
    text = (
        "Rater,Question,Condition,Score,Same speaker,Sample,Utt,Reference,Spk,Speaker gender,Order,Purpose,Completed,"
        "Valid\n"
        "a,Speech Quality,Original,5,,f1,u1,,s1,Female,1,,yes,true\n"
        "a,speaker-similarity,X,3,non-target,f2,u2,e2,s2,M,2,training,no,0\n"
    )
    ratings = read(text, original="Original").ratings
    assert ratings.task.tolist() == ["naturalness", "verifiability"]
    assert ratings.system.tolist() == [ORIGINAL, "X"]
    assert ratings.is_target.tolist() == [-1, 0]
    assert (ratings.item.tolist(), ratings.utterance.tolist()) == (["f1", "f2"], ["u1", "u2"])
    assert (ratings.enrolment.tolist(), ratings.gender.tolist()) == (["", "e2"], ["f", "m"])
    assert (ratings.position.tolist(), ratings.purpose.tolist()) == ([1, 2], ["scored", "practice"])
    assert ratings.is_finished.tolist() == [True, False]
    assert ratings.excluded.tolist() == ["", "marked as not valid in the file"]


def test_reasons_of_exclusion_are_kept_and_flags_become_reasons():
    header = "listener,task,system,rating,excluded\n"
    assert read(header + "a,mos,x,3,too fast\na,mos,y,4,\n").ratings.excluded.tolist() == ["too fast", ""]
    flagged = read(header + "a,mos,x,3,1\na,mos,y,4,0\n").ratings.excluded.tolist()
    assert flagged == ["marked as excluded in the file", ""]


def test_items_and_utterances_stand_in_for_each_other():
    of_utterances = read("listener,task,system,rating,utterance\na,mos,x,3,u1\nb,mos,x,4,u1\n").ratings
    assert of_utterances.item.tolist() == ["x/u1", "x/u1"]
    of_items = read("listener,task,system,rating,item\na,mos,x,3,i1\nb,mos,x,4,i1\n").ratings
    assert of_items.utterance.tolist() == ["i1", "i1"]


def test_lines_without_a_rating_are_left_out_and_counted():
    inputs = read("listener,task,system,rating\na,mos,original,3\na,mos,x,NA\na,mos,y,\n")
    assert inputs.ratings.system.tolist() == [ORIGINAL]
    assert "2 lines of the file without a rating left out." in inputs.study.design["remarks"]
    assert "expected ratings, found none in any line" in problems("listener,task,system,rating\na,mos,x,NA\n")[0]


def test_a_file_without_originals_says_so():
    inputs = read("listener,task,system,rating\na,mos,x,3\na,mos,natural,4\n")
    assert any(
        "No system is named original" in note and "natural, x" in note for note in inputs.study.design["remarks"]
    )
    assert read("listener,task,system,rating\na,mos,x,3\n", original="x").study.labels == {ORIGINAL: "x"}


def test_every_bad_line_is_named_with_what_was_expected_and_found():
    text = PLAIN + "c,loudness,T01,4\nc,naturalness,T01,good\n,naturalness,T01,4\nd,naturalness,,4\n"
    assert problems(text) == [
        "lab.csv, line 6: expected a task, found “loudness”. Use naturalness, intelligibility or verifiability.",
        "lab.csv, line 7: expected a number as rating, found “good”. Write a number such as 4 or 3.5.",
        "lab.csv, line 8: expected a listener, found nothing. Fill the cell; unprotected speech is named original.",
        "lab.csv, line 9: expected a system, found nothing. Fill the cell; unprotected speech is named original.",
    ]


def test_of_many_bad_lines_the_first_are_named_and_the_others_counted():
    said = problems("listener,task,system,rating\n" + "a,mos,x,bad\n" * 500)
    assert len(said) == 11
    assert said[-1] == "lab.csv: 490 more lines without a number as rating, up to line 501."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "found an empty file"),
        ("listener,task,system,rating\n", "expected rows below the header, found none"),
        ("listener,task,system\na,mos,x\n", "line 1: expected the columns listener, task, system, rating, found no"),
        ("listener,task,system,rating,rating\na,mos,x,3,3\n", "line 1: expected each column once, found 'rating'"),
        ("listener,rater,task,system,rating\na,b,mos,x,3\n", "one column for listener, found “listener” and “rater”"),
        ("listener,task,system,rating\na,mos,x\n", "line 2: expected 4 cells as in the header, found 3"),
        (PLAIN + PLAIN, "line 6: expected a row, found the header again"),
        ('listener,task,system,rating\na,mos,"x,3\n', "double quote that is not closed"),
        ("listener,task,system,rating\n" + "a" * 301 + ",mos,x,3\n", "cells of at most 300 characters, found 301"),
        (
            "listener,task,system,rating\n" + "a" * 200_000 + ",mos,x,3\n",
            "at most 100,000 characters in a line, found 200,008",
        ),
        ("listener,task,system,rating\na,mos,x,nan1\n", "expected a number as rating, found “nan1”"),
        ("listener,task,system,rating,position\na,mos,x,3,-1\n", "expected a position from 1, found “-1”"),
        ("listener,task,system,rating,purpose\na,mos,x,3,fun\n", "expected a purpose, found “fun”"),
        ("listener,task,system,rating,valid\na,mos,x,3,maybe\n", "expected valid as 1 or 0, found “maybe”"),
        ("listener,task,system,rating,is_target\na,sim,x,3,perhaps\n", "expected target or nontarget, found “perhaps”"),
        (b"\xff\xfel\0i\0", "found UTF-16. Save it as UTF-8"),
        (b"listener,task,system,rating\nJos\xe9,mos,x,3\n", "line 2: expected UTF-8 text, found the byte 0xE9"),
        (b"PK\x03\x04\x00\x00", "zero byte"),
        (b"\x1f\x8b\x08 broken", "gzip"),
        (gzip.compress(PLAIN.encode() * 100)[:-30], "expected a whole gzip file, found its end missing"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text, words):
    assert words in problems(text)[0]


def test_ratings_outside_the_scale_are_named():
    assert problems(PLAIN, scale=(1, 8)) == [
        "lab.csv, line 2: expected a rating of naturalness from 1 to 8, found “9”. "
        "Correct the rating, or give the scale that was used."
    ]


def test_an_original_that_is_not_there_is_named():
    assert "expected a system named “clean”, found T01, original" in problems(PLAIN, original="clean")[0]
    assert "found “T01” and a system “original”" in problems(PLAIN, original="T01")[0]


HEADERS = (
    b"",
    b"listener,task,system,rating\n",
    b"task,listener,sex,age,native,valid,system,sample,reference,score\n",
    b"\x1f\x8b\x08\x00",
)


@given(st.sampled_from(HEADERS), st.binary(max_size=300))
def test_any_bytes_give_ratings_or_sentences(header, data):
    said, count = [], 0
    try:
        count = len(read_ratings(header + data, "any.csv").ratings)
    except ProblemsError as error:
        said = error.problems
    assert bool(said) != bool(count)
    assert all(sentence.startswith("any.csv") for sentence in said)


VCC = "task,listener,sex,age,native,valid,system,sample,reference,score\n"
CONVERTED = "team01_intra,team01_intra-TEM1_SEF2_E30004"


def test_the_form_of_2020_is_told_by_its_header():
    inputs = read(
        VCC + f"quality,a,Female,18-29,yes,1,{CONVERTED},,2\n"
        f"similarity,a,,,,1,{CONVERTED},ref-TEM1_E30025,3\n"
        "quality,a,x,99,maybe,1,ref,ref-TEM1_E30024,,5\n"
        "similarity,a,x,99,maybe,1,ref,ref-TEM1_E30024,ref-TEM1_E30025,4\n"
        "quality,b,x,99,maybe,0,team34_intra,team34_intra-TEM1_SEF2_E30004,,5\n"
        "similarity,b,x,99,maybe,0,team34_intra,team34_intra-TEM1_SEF2_E30004,ref-TEM1_E30025,1\n"
    )
    ratings = inputs.ratings
    assert ratings.task.tolist() == ["naturalness", "verifiability"] * 3
    assert ratings.system.tolist() == ["team01_intra"] * 2 + [ORIGINAL] * 2 + ["team34_intra", ORIGINAL]
    assert ratings.is_target.tolist() == [-1, 1, -1, 1, -1, 0]
    assert ratings.utterance.tolist() == ["TEM1_SEF2_E30004"] * 2 + ["TEM1_E30024"] * 2 + ["TEM1_SEF2_E30004"] * 2
    assert ratings.speaker.tolist() == ["SEF2"] * 2 + ["TEM1"] * 2 + ["SEF2"] * 2
    assert ratings.gender.tolist() == ["f", "f", "m", "m", "f", "f"]
    assert ratings.item[1] == "team01_intra-TEM1_SEF2_E30004/ref-TEM1_E30025"
    assert [bool(reason) for reason in ratings.excluded] == [False] * 4 + [True] * 2
    assert dict(inputs.study.scale) == {"verifiability": (1, 4), "naturalness": (1, 5)}
    assert "CC BY 4.0" in inputs.study.attribution


def test_objective_measures_are_read_and_checked():
    found = read_objective(b"utterance,system,errors,words\nu1,T01,1,10\nu2,T01,,\n", "o.csv")
    assert (found.system.tolist(), found.utterance.tolist()) == (["T01", "T01"], ["u1", "u2"])
    assert np.array_equal(found.errors, [1, np.nan], equal_nan=True)
    assert np.isnan(found.pitch_correlation).all()
    with pytest.raises(ProblemsError) as raised:
        read_objective(b"system,utterance,errors,pitch_correlation\nT01,u1,-1,2\nT01,u1,1,x\n", "o.csv")
    assert raised.value.problems[0].startswith(
        "o.csv, line 3: expected a number or nothing in pitch_correlation, found “x”"
    )
    with pytest.raises(ProblemsError, match="found no utterance"):
        read_objective(b"system,errors\nT01,1\n", "o.csv")
    with pytest.raises(ProblemsError, match="u1 of T01 again"):
        read_objective(b"system,utterance\nT01,u1\nT01,u1\n", "o.csv")


POSITIONED = """listener,task,system,utterance,rating,position
a,naturalness,original,u1,9,1
a,naturalness,T01,u2,4,2
a,naturalness,T01,u2,4,2
a,naturalness,T01,u2,4,3
b,naturalness,T01,u2,4,2
"""


def test_criterion_34_rows_that_stand_twice_count_once_and_are_told():
    inputs = read(POSITIONED)
    assert len(inputs.ratings) == 4
    assert inputs.ratings.position.tolist() == [1, 2, 3, 2]
    notes = inputs.study.design["remarks"]
    assert "1 row appears twice, the same in every column: each rating counts once." in notes
    assert any(note.startswith("1 rating is of an item that the listener had rated") for note in notes)
