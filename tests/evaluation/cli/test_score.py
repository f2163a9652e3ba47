"""``vp score``: the numbers, the figure, every refusal with its sentence."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from common.errors import InputError
from common.problems import Problem, Severity
from common.terminal import PROBLEMS_PER_KIND, format_problems, print_json, print_message, print_text, problem_rows
from evaluation.metrics.bootstrap import bootstrap_detection, draw_speakers
from evaluation.metrics.catalogue import DETECTION_METRICS, EXPOSURE_METRICS
from evaluation.metrics.exposure import measure_exposure
from evaluation.objective_results.recomputation import encode_trials, join_files, measure_scores
from tests.evaluation.commands import SPEAKERS, refusal, write_test

ROOT = Path(__file__).resolve().parents[3]


def test_score_json_holds_every_metric_with_every_digit(shell, tmp_path):
    scores, trials = write_test(tmp_path / "one")
    answer = shell("score", scores, "--trials", trials, "--json")
    [result] = answer.json["results"]
    expected = measure_scores(scores, trials)
    assert (answer.code, answer.err) == (0, "")
    assert result["metrics"] == dict(expected.values())
    assert result["kaldi_threshold"] == expected.kaldi_threshold
    assert (result["n_target"], result["n_nontarget"], result["name"]) == (24, 72, "one")
    metrics = DETECTION_METRICS | EXPOSURE_METRICS
    assert answer.json["units"] == {key: metric.unit for key, metric in metrics.items()}
    speakers = {one["name"]: one for one in result["exposure"]["speakers"]}
    assert (
        speakers["s1"]["kaldi_eer"]
        == 100
        * measure_exposure(encode_trials(join_files(scores, trials))).speakers[list(speakers).index("s1")].kaldi_eer
    )
    assert speakers["s1"]["linkability_note"] == "unreliable: 6 target trials"
    assert result["linkability_note"] == "unreliable: 24 target trials"
    assert result["eer_note"] == ""
    assert answer.json["problems"] == []


def test_score_table_has_a_line_for_each_metric_and_a_column_for_each_file(shell, tmp_path):
    first, trials = write_test(tmp_path / "first")
    second, _ = write_test(tmp_path / "second", shift=0.5)
    answer = shell("score", first, second, "--trials", trials)
    lines = answer.out.splitlines()
    assert lines[0].split() == ["first", "second"]
    values = [measure_scores(path, trials) for path in (first, second)]
    for key, metric in DETECTION_METRICS.items():
        [line] = [line for line in lines if line.startswith((f"{metric.label},", f"{metric.label}  "))]
        mark = "*" if key == "linkability" else ""  # of 24 target trials
        assert line.split()[-2:] == [f"{one.values()[key]:.{metric.decimals}f}{mark}" for one in values]
    assert len({len(line) for line in lines[2:16]}) == 1  # aligned


def test_score_intervals_are_those_of_the_bootstrap(shell, tmp_path):
    scores, trials = write_test(tmp_path / "one")
    answer = shell("score", scores, "--trials", trials, "--bootstrap", 40, "--seed", 7, "--json")
    joined = join_files(scores, trials)
    owners = [name.decode().split("-")[0] for name in joined.utterances.tolist()]
    models = [name.decode() for name in joined.models.tolist()]
    draws = draw_speakers(SPEAKERS, 40, np.random.default_rng(7))
    expected = bootstrap_detection(joined.scores, joined.targets, models, owners, draws)
    intervals = answer.json["results"][0]["intervals"]
    for key, scale in (("kaldi_eer", 100), ("min_cllr", 1)):
        interval = expected[key].find_interval()
        assert intervals[key]["lower"] == scale * interval.lower
        assert intervals[key]["upper"] == scale * interval.upper
        assert intervals[key]["estimate"] == answer.json["results"][0]["metrics"][key]
    assert answer.json["bootstrap"] == {"resamples": 40, "seed": 7, "level": 0.95}
    shown = shell("score", scores, "--trials", trials, "--bootstrap", 40, "--seed", 7).out
    limits = intervals["kaldi_eer"]
    assert f"{limits['lower']:.3f} to {limits['upper']:.3f}" in shown
    assert shown.splitlines()[0].split("  ")[-1] == "95 % interval"


def test_score_draws_the_figure_by_its_ending(shell, tmp_path):
    scores, trials = write_test(tmp_path / "one")
    paths = [tmp_path / f"det.{ending}" for ending in ("svg", "csv")]
    answer = shell("score", scores, "--trials", trials, *(word for path in paths for word in ("--det", path)))
    assert answer.code == 0
    assert [path.read_bytes()[:4] for path in paths] == [b"<?xm", b"labe"]
    assert "DET curves" in ElementTree.parse(paths[0]).getroot().get("aria-label", "")
    with paths[1].open(newline="") as file:
        [first, *_] = csv.DictReader(file)
    assert float(first["miss_rate"]) == measure_scores(scores, trials).kaldi_eer


def test_score_gives_no_numbers_of_scores_with_errors(shell, tmp_path):
    scores, trials = write_test(tmp_path / "one")
    lines = scores.read_text().splitlines(keepends=True)
    scores.write_text("".join([*lines[2:], lines[5], "s1 stranger 0.5\n", "s2 s1-0 nan\n"]))
    answer = shell("score", scores, "--trials", trials)
    assert answer.code == 1
    for kind in ("missing score", "extra score", "repeated score"):
        assert f"error: {kind}" in answer.err
    assert f"{trials}, line 1: expected a score of “s1 s1-0”" in answer.err
    why = "The scores have errors, and numbers of what is left would be those of another test."
    assert answer.out.strip() == f"one: no numbers. {why}"
    [result] = shell("score", scores, "--trials", trials, "--json").json["results"]
    assert (result["metrics"], result["missing"], result["not_finite"]) == (None, 2, 0)
    with pytest.raises(InputError, match="s1 stranger"):
        measure_scores(scores, trials)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere", "--trials", "trials"], "nowhere: expected a readable text file"),
        (["scores", "--trials", "targets"], "expected scores of target and nontarget trials of targets"),
        (["scores", "scores", "--trials", "trials"], "a path of its own for each of 2 score files"),
        (["scores", "--trials", "trials", "--det", "x.gif"], "x.gif: expected a figure that ends in svg"),
        (
            ["scores", "--trials", "trials", "--bootstrap", "9", "--utt2spk", "no"],
            "no: expected the speaker",
        ),
        (["scores", "--trials", "trials", "--bootstrap", "9", "--utt2spk", "few"], "such as “s1-1”"),
    ],
)
def test_score_refuses_in_one_sentence(shell, tmp_path, monkeypatch, arguments, sentence):
    write_test(tmp_path)
    (tmp_path / "targets").write_text("s1 s1-0 target\n")
    (tmp_path / "few").write_text("s1-0 s1\n")
    monkeypatch.chdir(tmp_path)
    assert sentence in refusal(shell("score", *arguments))


def test_program_ends_well_when_the_reader_leaves(tmp_path):
    command = f"{sys.executable} -m portal.client metrics | head -1; exit ${{PIPESTATUS[0]}}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "Metrics\n", "")


def test_program_writes_what_its_terminal_can_show(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "portal.client", "metrics"]
    answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "Pitch correlation ?F0" in answer.stdout


def test_a_terminal_is_not_told_what_to_do_by_names_in_files(capsys):
    """No escape sequences, no carriage returns, no halves of characters; JSON keeps everything, escaped."""
    name = "T\x1b[2J1\r\x9b0\ud800\tü"
    print_text(name)
    print_message(f"{name}\nb")
    print_json({"name": "T\x1b\x9b\x7f"})
    said = capsys.readouterr()
    assert said.out.startswith("T�[2J1��0�\tü\n")
    assert said.err == "T�[2J1��0�\tü\nb\n"
    assert json.loads(said.out.split("\n", 1)[1]) == {"name": "T\x1b\x9b\x7f"}
    assert not {"\x1b", "\x7f", "\x9b"} & set(said.out)


def test_long_lists_of_problems_are_cut_on_a_terminal_and_whole_in_json():
    problems = [Problem("missing-score", "trials", "a score", "none", "Score it.", line=line) for line in range(1, 31)]
    note = Problem("blank-line", "trials", "an entry", "a blank line", "Remove it.", Severity.NOTE, 40)
    heading, *sentences, rest, note_heading, note_sentence = format_problems([note, *problems])
    assert (heading, note_heading) == ("error: missing score (30)", "note: blank line")
    assert sentences == [f"  {problem.sentence()}" for problem in problems[:PROBLEMS_PER_KIND]]
    assert rest == "  … and 10 more; --json lists all."
    assert note_sentence == f"  {note.sentence()}"
    assert [row["line"] for row in problem_rows(problems)] == list(range(1, 31))


def test_score_says_what_the_eer_hides(shell, tmp_path):
    scores, trials = write_test(tmp_path / "one")
    answer = shell("score", scores, "--trials", trials, "--bootstrap", 20, "--json")
    [result] = answer.json["results"]
    expected = measure_exposure(encode_trials(join_files(scores, trials)))
    assert result["exposure"]["metrics"] == dict(expected.values())
    assert result["exposure"]["reasons"] == dict(expected.reasons)
    assert [one["name"] for one in result["exposure"]["speakers"]] == [one.name for one in expected.speakers]
    estimates = {key: one["estimate"] for key, one in result["exposure"]["intervals"].items()}
    assert "rank_disclosure" in estimates
    assert estimates == {key: expected.values()[key] for key in estimates}
    shown = shell("score", scores, "--trials", trials).out
    assert "72 nontarget trials cannot show a false-alarm rate of 1 %." in shown
