"""Reading corpora, cutting utterances and holding some out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError
from evaluation.attackers.training.corpus import TrainingUtterance, cut, read_corpus
from evaluation.attackers.training.recipe import PRESETS
from evaluation.attackers.training.trained_attacker import chance_levels
from speech.audio.files import write_flac16
from tests.evaluation.attackers.training.toys import utterances

SMALL = PRESETS["small"]
SECOND = 16_000


def spoken(identifier: str, source: str, seconds: float, **more: str) -> TrainingUtterance:
    samples = np.full(round(seconds * SECOND), 1000, dtype=np.int16)
    return TrainingUtterance(identifier, source, lambda: (samples, SECOND), **more)


def write(folder: Path) -> None:
    for speaker in ("a", "b"):
        (folder / speaker / "chapter").mkdir(parents=True)
        for number in range(2):
            write_flac16(folder / speaker / "chapter" / f"{speaker}-{number}.flac", np.ones(800, np.int16), SECOND)
    (folder / "readme.txt").write_text("no audio")


def test_folder_names_speakers_and_utterances(tmp_path):
    write(tmp_path)
    found = read_corpus(tmp_path)
    assert [(one.identifier, one.source) for one in found] == [("a-0", "a"), ("a-1", "a"), ("b-0", "b"), ("b-1", "b")]
    assert found[0].read()[1] == SECOND
    targets = tmp_path / "targets.csv"
    targets.write_text("utterance_id,target\na-0,t1\na-1,t2\nb-0,t1\nb-1,t1\nother,t9\n")
    assert [one.target for one in read_corpus(tmp_path, targets)] == ["t1", "t2", "t1", "t1"]
    targets.write_text("utterance_id,target\nx,t1\n")
    with pytest.raises(InputError, match="found none of their names"):
        read_corpus(tmp_path, targets)


def test_speech_of_nobody_is_not_left_out_in_silence(tmp_path):
    write(tmp_path)
    write_flac16(tmp_path / "loose.flac", np.ones(800, np.int16), SECOND)
    with pytest.raises(InputError, match=r"in a folder of that name, found loose\.flac outside any"):
        read_corpus(tmp_path)


def test_names_that_occur_twice_keep_their_folders(tmp_path):
    for speaker in ("a", "b"):
        (tmp_path / speaker).mkdir()
        write_flac16(tmp_path / speaker / "1.flac", np.ones(800, np.int16), SECOND)
    assert [one.identifier for one in read_corpus(tmp_path)] == ["a/1", "b/1"]


def test_csv_gives_every_column(tmp_path):
    write(tmp_path)
    table = tmp_path / "list.csv"
    table.write_text(
        "path,speaker,target_id,gender,original,utterance_id\n"
        "a/chapter/a-0.flac, a ,t1,F,rec1,one\n\nb/chapter/b-0.flac,b,,m,,\n"
    )
    first, second = read_corpus(table)
    assert (first.identifier, first.source, first.target, first.gender, first.recording) == (
        "one",
        "a",
        "t1",
        "f",
        "rec1",
    )
    assert (second.identifier, second.target, second.gender, second.recording) == ("b-0", None, "m", "b-0")
    assert first.read()[0].size == 800


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("path,name\nx,y\n", "line 1: expected the columns path, source, found path, name"),
        ("path,source,gender\nx,y,z\n", "line 2: expected a path, a source and a gender of f, m or none"),
    ],
)
def test_other_csv_files_are_refused(tmp_path, content, said):
    table = tmp_path / "list.csv"
    table.write_text(content)
    with pytest.raises(InputError, match=said):
        read_corpus(table)


def test_missing_and_empty_folders_and_files_are_said(tmp_path):
    with pytest.raises(InputError, match=r"found none\. Name another folder"):
        read_corpus(tmp_path)
    with pytest.raises(InputError, match="expected a folder of speakers or a CSV file, found neither"):
        read_corpus(tmp_path / "nowhere")
    table = tmp_path / "list.csv"
    table.write_text("path,source\na.flac,a\nb.flac,b\n")
    with pytest.raises(InputError, match=r"a\.flac: expected a readable file.*b\.flac"):
        cut(read_corpus(table), SMALL, 1)


def test_pieces_follow_the_recipe():
    data = [spoken("1", "a", 7.5), spoken("2", "b", 5.5), spoken("3", "b", 1.0)]
    lengths = {name: (cut(data, PRESETS[name], 1).piece_length / SECOND).tolist() for name in PRESETS}
    assert lengths["small"] == [3.0, 3.0, 3.0, 2.5]
    assert lengths["spane"] == [3.0, 3.0, 1.5, 3.0, 2.5, 1.0]
    assert lengths["vpc24"] == [7.5, 5.5]  # windows anywhere in the utterance, once for each full piece
    assert cut(data, PRESETS["vpc24"], 1).row_piece.tolist() == [0, 0, 1]


def test_quiet_pieces_are_left_out():
    quiet = TrainingUtterance("q", "b", lambda: (np.full(3 * SECOND, 16, dtype=np.int16), SECOND))
    data = [spoken("1", "a", 3.0), spoken("2", "b", 3.0), quiet]
    assert cut(data, PRESETS["vpc24"], 1).row_piece.size == 2
    assert cut(data, PRESETS["spane"], 1).row_piece.size == 3


def test_last_piece_of_each_source_is_held_out_in_every_conversion():
    data = [
        spoken(f"{source}-{part}-{take}", source, 3.0, original=f"{source}-{part}")
        for source in "ab"
        for part in range(3)
        for take in range(2)
    ]
    segments = cut(data, SMALL, 1)
    held = [data[row].identifier for row in segments.validation_rows]
    assert held == ["a-2-0", "a-2-1", "b-2-0", "b-2-1"]


def test_tenth_of_each_speaker_is_rounded_down():
    data = [spoken(f"a{n}", "a", 3.0) for n in range(25)] + [spoken(f"b{n}", "b", 3.0) for n in range(9)]
    segments = cut(data, PRESETS["spane"], 1)
    assert np.bincount(segments.source[segments.held_out], minlength=2).tolist() == [2, 0]
    assert int(cut(data, PRESETS["vpc24"], 1).held_out.sum()) == 3
    assert not np.array_equal(segments.held_out, cut(data, PRESETS["spane"], 2).held_out)


def test_a_tenth_holds_out_all_conversions_of_a_recording():
    data = [spoken(f"a{n}-{draw}", "a", 3.0, original=f"a{n}") for n in range(10) for draw in range(3)]
    data += [spoken(f"b{n}", "b", 3.0) for n in range(10)]
    held_out = {data[row].identifier for row in cut(data, PRESETS["vpc24"], 1).validation_rows}
    recordings = {one.recording for one in data if one.identifier in held_out}
    assert held_out == {one.identifier for one in data if one.recording in recordings}
    assert len(recordings) == 2


def test_chance_knows_genders_where_targets_follow_them():
    data = [
        spoken(f"{source}{n}", source, 6.0, target=f"{gender}{n % (2 if gender == 'f' else 4)}", gender=gender)
        for source, gender in (("a", "f"), ("b", "m"))
        for n in range(8)
    ]
    chance = chance_levels(cut(data, SMALL, 1))
    assert (chance["source_chance"], chance["target_chance"]) == (0.5, 1 - 1 / 6)
    assert chance["target_chance_known_gender"] == pytest.approx((0.5 + 0.75) / 2)
    unknown = chance_levels(cut([spoken("1", "a", 6.0), spoken("2", "b", 6.0)], SMALL, 1))
    assert (unknown["target_chance"], unknown["target_chance_known_gender"]) == (None, None)


def test_fingerprint_changes_with_labels_and_with_the_sound():
    data = utterances()
    relabelled = utterances(sources=2) + [spoken(f"s2-{n}", "s2", 1.1, target="t0") for n in range(4)]
    recipe = SMALL.changed(segment_s=0.5, crop_s=0.4, shortest_s=0.4)
    assert cut(data, recipe, 1).fingerprint == cut(data, recipe, 1).fingerprint
    assert cut(data, recipe, 1).fingerprint != cut(relabelled, recipe, 1).fingerprint
    assert cut(data, recipe, 1).fingerprint != cut(utterances(seed=1), recipe, 1).fingerprint
