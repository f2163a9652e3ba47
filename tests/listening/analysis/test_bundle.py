"""Inputs and bundles: the same bytes for the same study, everything back, and every problem of a changed file told."""

import hashlib
import io
import subprocess
import sys
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest

from common.errors import ProblemsError
from listening.analysis import bundle as bundle_module
from listening.analysis.analyse import analyse
from listening.analysis.bundle import (
    compute_fingerprint,
    read_inputs,
    reproduce,
    write_bundle,
    write_inputs,
    write_results,
)
from listening.analysis.reading import text_tables
from listening.analysis.reading.inputs import Placements, Settings, Transcripts
from listening.analysis.tables import Results
from tests.listening.analysis.made_ratings import made_inputs

SETTINGS = Settings(resamples=200, permutations=200)
AWKWARD = ("=1+1", "'=1+1", "'", "-1", "-a", "a,b", 'a"b', "a\nb", "a\r\nb", " a ", "ü — “x”", "")


def everything():
    """Inputs with every part and every text that a CSV file finds hard."""
    count = len(AWKWARD)
    words, names = np.array(AWKWARD), np.array([f"n{number}" for number in range(count)])
    zeros = np.zeros(count, np.int64)
    x, y = np.linspace(0, 1, count), np.full(count, np.nan)
    places = Placements(names, names, words, words, names, words, words, x, y, words, zeros, words)
    places = places.rows((words != "") & (words != " a "))
    typed = Transcripts(names, names, words, names, words, words, words, words, words == "", words)
    return made_inputs(
        placements=places,
        transcripts=typed,
        exclusions=(("=rule", "s01", "why, then", True), ("b", "s02", "", False)),
        texts={"role-play-en-1.md": "# Listen\n", "consent-fr-2.md": "Écoutez"},
    )


def equal(one, other):
    if one is None or other is None:
        return one is other
    pairs = ((getattr(one, column.name), getattr(other, column.name)) for column in fields(one))
    return all(
        first.dtype.kind == second.dtype.kind and np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
        for first, second in pairs
    )


def test_inputs_come_back_as_they_were():
    inputs = everything()
    back, settings = read_inputs(write_inputs(inputs, SETTINGS))
    assert settings == SETTINGS
    assert back.study == inputs.study
    assert (back.exclusions, back.texts) == (inputs.exclusions, inputs.texts)
    for part in ("ratings", "placements", "transcripts", "objective"):
        assert equal(getattr(back, part), getattr(inputs, part)), part


def test_equal_inputs_give_equal_bytes_also_after_reading():
    inputs = everything()
    written = write_inputs(inputs, SETTINGS)
    back, settings = read_inputs(written)
    assert write_inputs(inputs, SETTINGS) == written == write_inputs(back, settings)
    assert compute_fingerprint(inputs, SETTINGS) == compute_fingerprint(back, settings)


def test_a_changed_rating_or_setting_changes_the_fingerprint():
    inputs = made_inputs()
    ratings = replace(inputs.ratings, rating=inputs.ratings.rating + (np.arange(len(inputs.ratings)) == 5) * 0.5)
    prints = {
        compute_fingerprint(inputs, SETTINGS),
        compute_fingerprint(replace(inputs, ratings=ratings), SETTINGS),
        compute_fingerprint(inputs, replace(SETTINGS, seed=7)),
        compute_fingerprint(replace(inputs, objective=None), SETTINGS),
    }
    assert len(prints) == 4


def changed(name, old, new, inputs=None):
    """A zip of inputs where a text in one file is another."""
    before = zipfile.ZipFile(io.BytesIO(write_inputs(inputs or made_inputs(), SETTINGS)))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as after:
        for one in before.namelist():
            content = before.read(one).decode()
            after.writestr(one, content.replace(old, new, 1) if one == name else content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("ratings.csv", "naturalness", "loudness", "a scale of loudness in study.json"),
        ("ratings.csv", "l00,s00", ",s00", "line 2: expected a name as listener, found nothing"),
        ("ratings.csv", "rating,position", "position,rating", "line 1: expected the columns listener, session, task"),
        ("ratings.csv", "u0,,p0,f,", "u0,,p0,x,", "expected one of f, m,  as gender, found “x”"),
        ("ratings.csv", ",scored,1,", ",scored,yes,", "line 2: expected 1 or 0 in is_finished, found “yes”"),
        ("ratings.csv", ",1,scored,", ",one,scored,", "line 2: expected a whole number in position, found “one”"),
        ("ratings.csv", ",scored,", ",fun,", "line 2: expected one of scored, bridge, gold, practice as purpose"),
        ("objective.csv", ",10,", ",ten,", "line 2: expected a number or nothing in words, found “ten”"),
        ("study.json", '"form": "rating"', '"form": "opera"', "expected form as one of rating, linkability"),
        ("study.json", '"title"', '"titel"', "expected title as text, found None"),
        ("study.json", "10.0", "1e6000", "study.json: expected JSON, found “the number 1e6000, which is not finite”"),
        ("study.json", "10.0", "1e300", "expected a lower and a higher number within ±1,000,000"),
        ("study.json", '"seed": 5', '"remarks": [5]', "expected a list of texts as notes of the design, found [5]"),
        ("study.json", "Made up", "Made \\ud800 up", "study.json: expected JSON, found “'utf-8' codec can't encode"),
        ("ratings.csv", ",1,scored,", ",1000000001,scored,", "expected a number from 0 to 1e+09 as position"),
        ("study.json", '"verifiability": [', '"other": [', "expected a scale of verifiability in study.json"),
        ("study.json", "{", "[", "study.json: expected JSON, found"),
        ("settings.json", '"seed"', '"sead"', "There is no setting named 'sead'"),
    ],
)
def test_a_changed_file_is_told(name, old, new, words):
    with pytest.raises(ProblemsError) as raised:
        read_inputs(changed(name, old, new))
    assert any(words in problem for problem in raised.value.problems), raised.value.problems


def test_one_long_cell_of_many_is_told_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(text_tables, "MOST_CHARACTERS", 50_000)
    read_inputs(write_inputs(made_inputs(), SETTINGS))
    with pytest.raises(ProblemsError, match=r"ratings\.csv, line 2: expected at most 86 char.* in “item” of 576 row"):
        read_inputs(changed("ratings.csv", "original/u0", "original/u0" + "x" * 1000))


def test_what_is_read_is_limited_whatever_the_sizes_say(monkeypatch):
    content = write_inputs(made_inputs(), SETTINGS)
    monkeypatch.setattr(bundle_module, "MOST_BYTES", 1 << 20)
    read_inputs(content)
    monkeypatch.setattr(bundle_module, "MOST_BYTES", 1000)
    with pytest.raises(ProblemsError, match="of files, found more"):
        read_inputs(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = archive.getinfo("study.json").file_size
    for said in (size - 1, size + 1):  # in the directory at the end, which comes first in what is read
        place = content.rindex(b"study.json") - 46 + 24
        lying = content[:place] + said.to_bytes(4, "little") + content[place + 4 :]
        monkeypatch.setattr(bundle_module, "MOST_BYTES", 1 << 20)
        with pytest.raises(ProblemsError, match=r"Bad CRC-32|found another number|Overlapped"):
            read_inputs(lying)


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04" + bytes(40), b"listener,task\n"])
def test_what_is_no_zip_is_told(content):
    with pytest.raises(ProblemsError, match="expected a zip of inputs or a bundle"):
        read_inputs(content)


def test_a_damaged_zip_is_told():
    whole = write_inputs(made_inputs(), SETTINGS)
    for place in range(100, len(whole), len(whole) // 10):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        try:
            read_inputs(bytes(damaged))
        except ProblemsError:
            continue
        # Dates and the like may change; whatever is read is as it was.
        assert compute_fingerprint(*read_inputs(bytes(damaged))) == compute_fingerprint(made_inputs(), SETTINGS)


def test_files_that_belong_to_no_inputs_are_told():
    stream = io.BytesIO(write_inputs(made_inputs(), SETTINGS))
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("transcript.csv", "x\n")
        archive.writestr("../texts/evil.md", "x\n")
    with pytest.raises(ProblemsError) as raised:
        read_inputs(stream.getvalue())
    assert ["transcript.csv" in problem or "evil" in problem for problem in raised.value.problems] == [True, True]


# The whole bundle ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made():
    inputs = made_inputs(texts={"role-play-en-1.md": "# Listen\n"})
    results = analyse(inputs, SETTINGS)
    figures = {"raw/det-naturalness.svg": b"<svg/>", "normalised/det-naturalness.png": b"png"}
    return inputs, results, b"".join(write_bundle(write_inputs(inputs, SETTINGS), results, figures))


def test_a_bundle_holds_everything_and_says_what_it_is(made):
    _, results, content = made
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    tables = {f"tables/{path}.csv" for path in results.tables}
    assert tables
    assert set(files) == tables | {
        "README.txt",
        "MANIFEST.sha256",
        "results.json",
        "inputs/study.json",
        "inputs/settings.json",
        "inputs/ratings.csv",
        "inputs/objective.csv",
        "inputs/exclusions.csv",
        "inputs/texts/role-play-en-1.md",
        "figures/raw/det-naturalness.svg",
        "figures/normalised/det-naturalness.png",
    }
    readme = files["README.txt"].decode()
    assert "vp study reproduce BUNDLE.zip OUT" in readme
    assert "SIMULATED" in readme
    for path in results.tables:
        assert f"{path.split('/')[1]} (" in readme
    listed = dict(reversed(line.split("  ")) for line in files.pop("MANIFEST.sha256").decode().splitlines())
    assert listed == {name: hashlib.sha256(one).hexdigest() for name, one in files.items()}
    assert Results.from_json(files["results.json"]).as_json() == results.as_json()


def test_a_process_of_its_own_gives_the_same_tables_byte_for_byte(made, tmp_path):
    """Also with the linear algebra of an older processor, or shared by two threads."""
    _, results, content = made
    (tmp_path / "bundle.zip").write_bytes(content)
    command = ["-m", "portal.client", "study", "reproduce", tmp_path / "bundle.zip", tmp_path / "out", "--no-figures"]
    answer = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert f"{len(results.tables)} tables are the same byte for byte, 0 differ." in answer.stdout
    for name, one in write_results(results).items():
        assert (tmp_path / "out" / name).read_bytes() == one


def test_a_bundle_without_its_list_or_with_more_than_it_names_is_told(made):
    _, _, content = made
    for left_out, more, words in (
        ("MANIFEST.sha256", {}, "MANIFEST.sha256: is missing from the bundle, so it is not known"),
        ("", {"notes.txt": "x"}, "notes.txt: is in the bundle, but MANIFEST.sha256 does not name it."),
    ):
        stream = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(stream, "w") as after:
            for name in before.namelist():
                if name != left_out:
                    after.writestr(name, before.read(name))
            for name, text in more.items():
                after.writestr(name, text)
        (damaged,) = reproduce(stream.getvalue(), "bundle.zip").damaged
        assert damaged.startswith(words)
