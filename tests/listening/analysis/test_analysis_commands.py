"""``vp study``: what it writes, what it says, how it ends."""

import csv
import zipfile

import pytest

from tests.command_line import run_study
from tests.listening.analysis.made_ratings import made_inputs

QUICK = ["--resamples", "200", "--permutations", "200", "--no-figures"]


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """A CSV of ratings, and one of objective measures."""
    folder = tmp_path_factory.mktemp("ratings")
    inputs = made_inputs()
    for name, part, columns in (
        ("ratings.csv", inputs.ratings, ("listener", "task", "system", "rating", "is_target", "utterance", "speaker")),
        ("objective.csv", inputs.objective, ("system", "utterance", "errors", "words")),
    ):
        with (folder / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*(getattr(part, column).tolist() for column in columns), strict=True))
    return folder / "ratings.csv"


@pytest.fixture(scope="module")
def done(ratings, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    objective = str(ratings.with_name("objective.csv"))
    assert run_study("analyse", ratings, out, "--scale", "1-10", "--objective", objective, *QUICK) == 0
    return out


def test_run_writes_tables_and_a_bundle(done):
    tables = sorted(path.relative_to(done).as_posix() for path in done.rglob("*.csv"))
    assert {f"tables/{kind}/{name}.csv" for kind in ("raw", "normalised") for name in ("summary", "detection")} <= set(
        tables
    )
    with zipfile.ZipFile(done / "bundle.zip") as archive:
        assert archive.testzip() is None
        assert {name for name in archive.namelist() if name.startswith("tables/")} == set(tables)
        for name in tables:
            assert archive.read(name) == (done / name).read_bytes()


def test_run_says_the_systems_of_each_task(ratings, tmp_path, capsys):
    assert run_study("analyse", ratings, tmp_path / "out", *QUICK) == 0
    said = capsys.readouterr()
    assert said.err == ""
    for words in ("Equal error rates", "verifiability", "intelligibility", "eer_low", "T03", "12 listeners"):
        assert words in said.out
    lines = [line.split() for line in said.out.splitlines() if line.startswith("naturalness ")]
    assert [line[1] for line in lines][:4].count("original") == 1
    assert all(0 <= float(line[4]) <= 1 for line in lines if line[2] == "all")


def test_reproduce_leaves_the_bundle_that_it_checks(done, tmp_path, capsys):
    content = (done / "bundle.zip").read_bytes()
    for command in ("reproduce", "analyse"):
        assert run_study(command, done / "bundle.zip", done, "--no-figures") == 2
        assert "expected another folder than that of bundle.zip" in capsys.readouterr().err
    assert (done / "bundle.zip").read_bytes() == content
    again = tmp_path / "again"
    assert run_study("reproduce", done / "bundle.zip", again, "--no-figures") == 0
    (again / "thesis.txt").write_text("mine")
    capsys.readouterr()
    assert run_study("reproduce", done / "bundle.zip", again, "--no-figures") == 2
    assert "with earlier results alone, found “thesis.txt” in it" in capsys.readouterr().err


def test_reproduce_ends_with_1_where_a_table_differs(done, tmp_path, capsys):
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(done / "bundle.zip") as before, zipfile.ZipFile(other, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            after.writestr(name, content.replace(b"T01", b"T09") if name == "tables/raw/summary.csv" else content)
    assert run_study("reproduce", other, tmp_path / "out", "--no-figures") == 1
    said = capsys.readouterr()
    assert "tables/raw/summary.csv: was changed after the bundle was made." in said.err
    assert "the bundle has “" in said.err
    assert "1 differ." in said.out


def test_a_zip_of_inputs_runs_with_other_settings(done, tmp_path, capsys):
    assert run_study("analyse", done / "bundle.zip", tmp_path / "out", "--normalisation", "midrank", *QUICK) == 0
    with zipfile.ZipFile(tmp_path / "out" / "bundle.zip") as archive:
        settings = archive.read("inputs/settings.json").decode()
    assert '"normalisation": "midrank"' in settings
    assert '"resamples": 200' in settings
    assert run_study("analyse", done / "bundle.zip", tmp_path / "out", "--scale", "1-5", *QUICK) == 2
    assert "belong to a CSV" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dance"], "vp study: No such command 'dance'. See vp study --help."),
        (["analyse", "none.csv", "{out}"], "none.csv: expected a readable file, found “No such file or directory”"),
        (["analyse", "{ratings}", "{ratings}"], "expected a folder, found a file"),
        (
            ["analyse", "{ratings}", "{out}", "--scale", "10-1"],
            "--scale: expected a scale such as 1-10 or",
        ),
        (["analyse", "{ratings}", "{out}", "--scale", f"1-{'9' * 400}"], "--scale: expected ratings within ±1,000,000"),
        (["analyse", "{ratings}", "{out}", "--level", "nan"], "Expected level from 0.5 to 0.999, found nan."),
        (["analyse", "{ratings}", "{out}", "--scale", "1-5"], "expected a rating of naturalness from 1 to 5"),
        (["reproduce", "{ratings}", "{out}"], "expected a zip of inputs or a bundle"),
        (["describe", "nothing"], "found 'nothing'"),
    ],
)
def test_what_cannot_be_used_is_told_in_sentences(ratings, tmp_path, capsys, arguments, words):
    named = [one.format(ratings=ratings, out=tmp_path / "out") for one in arguments]
    assert run_study(*named) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_describe_says_what_columns_mean(capsys):
    assert run_study("describe") == 0
    whole = capsys.readouterr().out
    assert run_study("describe", "detection", "ratings", "inputs") == 0
    chosen = capsys.readouterr().out
    for words in ("detection (raw, normalised)", "rocch_eer", "is_target", "placements.csv"):
        assert words in whole
        assert words in chosen
    assert "mann_whitney" not in chosen
