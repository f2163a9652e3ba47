"""The CSV manifest: roles, and every problem with its line."""

import hashlib
import unicodedata

import pytest

from portal.intake.corpora.draft import Layout
from portal.intake.corpora.reading import read_corpus
from tests.portal.corpora import corpora
from tests.portal.corpora.corpora import found, sentence, sizes, trial_pairs


def test_without_roles_a_quarter_of_each_speaker_is_enrolment(tmp_path):
    draft = read_corpus(corpora.manifest(tmp_path / "toy"))
    assert draft.problems == ()
    assert sizes(draft) == {"toy_enrolls": 4, "toy_trials_f": 6, "toy_trials_m": 6}
    assert corpora.counts(draft) == {
        "toy_enrolls-toy_trials_f": ("same-gender-product", 6, 6),
        "toy_enrolls-toy_trials_m": ("same-gender-product", 6, 6),
    }
    assert [each.role for each in draft.data_sets] == ["enrolment", "trial", "trial"]


def test_enrolment_is_what_has_the_smallest_digest(tmp_path):
    rows = corpora.manifest_rows((("a", "F"),), each=40)
    draft = read_corpus(corpora.manifest(tmp_path / "toy", rows))
    names = [row["utterance_id"] for row in rows]
    by_digest = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    assert draft.data_sets[0].utterances == tuple(sorted(by_digest[:10]))


def test_the_split_does_not_depend_on_the_order_of_lines(tmp_path):
    rows = corpora.manifest_rows(each=9)
    first = read_corpus(corpora.manifest(tmp_path / "1" / "toy", rows))
    second = read_corpus(corpora.manifest(tmp_path / "2" / "toy", rows[::-1]))
    assert first.data_sets == second.data_sets


def test_trial_pairs_agree_with_the_counts(tmp_path):
    draft = read_corpus(corpora.manifest(tmp_path / "toy"))
    gender = {speaker.name: speaker.gender for speaker in draft.speakers}
    for each in draft.trial_lists:
        pairs = list(trial_pairs(draft, each))
        assert each.trials is None
        assert sum(pair.target for pair in pairs) == each.target_count
        assert len(set(pairs)) == each.target_count + each.nontarget_count
        assert all(gender[pair.model] == gender[pair.utterance[0]] for pair in pairs)
        assert all(pair.target == (pair.model == pair.utterance[0]) for pair in pairs)


def test_a_corpus_of_few_utterances_each_is_training(tmp_path):
    draft = read_corpus(corpora.manifest(tmp_path / "pool", corpora.manifest_rows(each=3)))
    assert sizes(draft) == {"pool_train": 12}
    assert (draft.data_sets[0].role, draft.trial_lists) == ("training", ())


def test_a_speaker_of_few_utterances_is_nontarget_only(tmp_path):
    rows = corpora.manifest_rows() + corpora.manifest_rows((("e", "F"),), each=2)
    draft = read_corpus(corpora.manifest(tmp_path / "toy", rows))
    assert corpora.counts(draft)["toy_enrolls-toy_trials_f"] == ("same-gender-product", 6, 10)
    assert "1 that are not, such as e" in sentence(draft, "not-enrolled")


def test_roles_without_data_sets_are_named_as_in_the_challenge(tmp_path):
    rows = [
        {**row, "corpus": "toy-dev", "role": "enrolment" if row["path"][-6] == "0" else "trial"}
        for row in corpora.manifest_rows()
    ]
    columns = (*corpora.COLUMNS, "corpus", "role")
    draft = read_corpus(corpora.manifest(tmp_path, rows, columns))
    assert draft.problems == ()
    assert sizes(draft) == {"toy-dev_enrolls": 4, "toy-dev_trials_f": 6, "toy-dev_trials_m": 6}
    assert {each.split for each in draft.data_sets} == {"dev"}


def test_transcripts_are_normalised_with_a_note(tmp_path):
    rows = corpora.manifest_rows()
    rows[1]["transcript"] = "Well,  isn't\nit?"
    draft = read_corpus(corpora.manifest(tmp_path, rows))
    assert draft.utterances[1].transcript == "WELL ISN'T IT"
    assert found(draft, "transcript-not-normalised") == [("utterances.csv", 3)]
    assert draft.is_usable


def break_row(field, value, row=5):
    def change(rows):
        rows[row][field] = value

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (break_row("utterance_id", "a_0"), "duplicate-utterance"),
        (break_row("utterance_id", ""), "no-utterance"),
        (break_row("utterance_id", "../../etc/passwd"), "bad-name"),
        (break_row("speaker", ""), "no-speaker"),
        (break_row("gender", "M"), "contradicting-gender"),
        (break_row("transcript", "  "), "no-transcript"),
        (break_row("path", "a/a_0.flac"), "file-listed-twice"),
        (break_row("path", ""), "missing-file"),
        (break_row("path", "/etc/passwd"), "path-outside"),
        (break_row("path", "C:/speech/a.flac"), "path-outside"),
        (break_row("duration_s", "-2"), "wrong-duration"),
        (break_row("synthetic", "perhaps"), "unknown-word"),
    ],
)
def test_each_problem_names_its_line(tmp_path, change, code):
    rows = corpora.manifest_rows()
    change(rows)
    columns = (*corpora.COLUMNS, *(("duration_s",) if "duration_s" in rows[5] else ()))
    columns += ("synthetic",) if "synthetic" in rows[5] else ()
    draft = read_corpus(corpora.manifest(tmp_path, rows, columns))
    assert ("utterances.csv", 7) in found(draft, code)


@pytest.mark.parametrize(
    ("role", "code"), [("judge", "unknown-role"), ("", "unknown-role"), ("trial", "contradicting-role")]
)
def test_each_utterance_of_a_corpus_with_roles_needs_the_right_one(tmp_path, role, code):
    rows = [{**row, "role": "train", "data_set": "toy"} for row in corpora.manifest_rows()]
    rows[5]["role"] = role
    draft = read_corpus(corpora.manifest(tmp_path, rows, (*corpora.COLUMNS, "role", "data_set")))
    assert found(draft, code) == [("utterances.csv", 7)]


@pytest.mark.parametrize(("gender", "code"), [("", "no-gender"), ("x", "unknown-gender")])
def test_a_speaker_needs_a_gender(tmp_path, gender, code):
    rows = [{**row, "gender": gender if row["speaker"] == "b" else row["gender"]} for row in corpora.manifest_rows()]
    draft = read_corpus(corpora.manifest(tmp_path, rows))
    assert found(draft, code) == [("utterances.csv", line) for line in (6, 7, 8, 9)]
    assert [speaker.name for speaker in draft.speakers] == ["a", "c", "d"]
    assert not draft.is_usable


def broken_corpus(folder):
    """Roles are given and sets are not named; one speaker has no gender, others a problem in one row each."""
    rows = [{**row, "role": "trial" if row["path"][-6] in "123" else "enrolment"} for row in corpora.manifest_rows()]
    for row in rows[4:8]:
        row["gender"] = ""
    rows[8]["role"] = "judge"
    rows[9]["path"] = "../c_1.flac"
    rows[12]["utterance_id"] = ""
    rows[13]["utterance_id"] = ""
    return corpora.manifest(folder, rows, (*corpora.COLUMNS, "role"))


def test_a_broken_row_is_one_problem_and_makes_no_set(tmp_path):
    draft = read_corpus(broken_corpus(tmp_path / "broken"))
    assert sorted((each.line, each.code) for each in draft.problems) == [
        *[(line, "no-gender") for line in (6, 7, 8, 9)],
        (10, "unknown-role"),
        (11, "path-outside"),
        (14, "no-utterance"),
        (15, "no-utterance"),
    ]
    assert corpora.sizes(draft) == {"broken_enrolls": 1, "broken_trials_f": 3, "broken_trials_m": 5}
    assert draft.trial_lists == ()


def test_quoted_commas_are_part_of_the_transcript_and_bare_ones_are_reported(tmp_path):
    corpora.manifest(tmp_path)
    path = tmp_path / "utterances.csv"
    corpora.edit(path, f"b_0,b,F,{corpora.SENTENCE},", 'b_0,b,F,"YES, NO",')
    corpora.edit(path, f"b_1,b,F,{corpora.SENTENCE},", "b_1,b,F,YES, NO,")
    draft = read_corpus(tmp_path)
    assert [u.transcript for u in draft.utterances if u.name == "b_0"] == ["YES NO"]
    assert sentence(draft, "malformed-line") == (
        "utterances.csv, line 7: expected 5 fields as in the heading, found 6. "
        "Put a transcript that holds a comma into quotes."
    )


def test_manifest_of_a_spreadsheet_with_semicolons_and_decimal_commas_is_read(tmp_path):
    rows = [row | {"duration_s": "1.5", "transcript": "ONE; TWO"} for row in corpora.manifest_rows()]
    folder = corpora.manifest(tmp_path / "toy", rows, (*rows[0],))
    path = folder / "utterances.csv"
    plain = read_corpus(folder)
    lines = ["\ufeff" + ";".join(rows[0])]
    lines += [";".join([*list(row.values())[:3], '"ONE; TWO"', row["path"], "1,5"]) for row in rows]
    path.write_text("\r\n".join([*lines, ""]), encoding="utf-8")
    draft = read_corpus(folder)
    assert draft.utterances == plain.utterances
    assert {one.duration_s for one in draft.utterances} == {1.5}


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"", "empty-file", None),
        (b"utterance_id,speaker,gender,transcript,path\n", "empty-file", None),
        (b"utterance_id,speaker,gender,path\na,a,F,a.wav\n", "missing-column", 1),
        (b"utterance_id|speaker|gender|transcript|path\n", "missing-column", 1),
        (b"utterance_id,speaker,gender,transcript,path,path\n", "repeated-column", 1),
        (b"utterance_id,speaker,gender,transcript,path\na,a,F,CAF\xc9,a.wav\n", "wrong-encoding", 2),
        (b'utterance_id,speaker,gender,transcript,path\na,a,F,"OPEN,a.wav\n', "malformed-line", 2),
    ],
)
def test_an_unusable_manifest_says_why(tmp_path, data, code, line):
    (tmp_path / "utterances.csv").write_bytes(data)
    draft = read_corpus(tmp_path)
    assert draft.layout is Layout.MANIFEST
    assert (draft.is_usable, draft.utterances) == (False, ())
    assert ("utterances.csv", line) in found(draft, code)


def test_windows_line_ends_and_a_byte_order_mark_are_tolerated(tmp_path):
    corpora.manifest(tmp_path)
    path = tmp_path / "utterances.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    draft = read_corpus(tmp_path)
    assert {each.code for each in draft.problems} == {"byte-order-mark", "windows-line-ends"}
    assert draft.is_usable


def test_paths_with_accents_are_found_however_the_disk_spells_them(tmp_path):
    rows = corpora.manifest_rows((("jürgen", "M"), ("max", "M"), ("ann", "F"), ("zoé", "F")))
    folder = corpora.manifest(
        tmp_path / "toy", [{name: unicodedata.normalize("NFD", cell) for name, cell in row.items()} for row in rows]
    )
    file = folder / "utterances.csv"
    file.write_text(unicodedata.normalize("NFC", file.read_text()))
    draft = read_corpus(folder)
    assert draft.problems == ()
    assert [speaker.name for speaker in draft.speakers] == ["ann", "jürgen", "max", "zoé"]
    assert all(utterance.audio and utterance.audio.is_file() for utterance in draft.utterances)
