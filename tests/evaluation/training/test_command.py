"""``train-attacker`` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evaluation.attackers.training.trained import load_trained
from evaluation.formats.audio import write_flac16
from tests.evaluation.commands import Shell, refusal
from tests.evaluation.training.toys import utterances

TINY = ["width=8", "aggregated=24", "embedding=8", "attention=8", "epochs=2", "batch=8", "segment_s=0.5"]
TINY += ["crop_s=0.4", "shortest_s=0.4"]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "speech"
    lines = ["utterance_id,target"]
    for one in utterances():
        (folder / one.source).mkdir(parents=True, exist_ok=True)
        write_flac16(folder / one.source / f"{one.identifier}.flac", *one.read())
        lines.append(f"{one.identifier},{one.target}")
    (tmp_path / "targets.csv").write_text("\n".join(lines))
    return folder


def test_command_trains_seeds_and_ends_with_a_table(shell, corpus, tmp_path):
    out = tmp_path / "out"
    targets = tmp_path / "targets.csv"
    arguments = (
        "train-attacker",
        "--data",
        corpus,
        "--targets",
        targets,
        "--variant",
        "literal",
        "--device",
        "cpu",
        out,
    )
    answer = shell(*arguments, "--seeds", 4, 5, "--set", *TINY)
    assert answer.code == 0, answer.err
    assert "mean ± sample deviation" in answer.out
    assert "only the fresh probe says whether the target is still there" in " ".join(answer.out.split())
    assert answer.err.count("epoch 2 of 2") == 2
    assert [load_trained(out / f"seed-{seed}").seed for seed in (4, 5)] == [4, 5]
    assert "found one. Add --resume" in refusal(shell(*arguments, "--seeds", 4, "--set", *TINY))
    again = shell(*arguments, "--seeds", 4, "--set", *TINY, "--resume", "--json")
    assert again.json["seeds"][0]["seed"] == 4
    assert again.json["recipe"]["largest_weight"] == 1.0
    assert json.loads((out / "training.json").read_text())["epochs"] == 2


def test_command_trains_seeds_side_by_side(shell, corpus, tmp_path):
    options = ("--data", corpus, "--device", "cpu", "--seeds", 1, 2, "--set", *TINY)
    assert shell("train-attacker", tmp_path / "beside", "--processes", 2, *options).code == 0
    assert shell("train-attacker", tmp_path / "after", *options).code == 0
    for seed in (1, 2):
        beside, after = (load_trained(tmp_path / name / f"seed-{seed}") for name in ("beside", "after"))
        assert np.allclose(beside.training_mean, after.training_mean, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "colour=red"), "expected NAME=VALUE with a name among"),
        (("--set", "epochs=many"), "expected epochs as a number such as 10"),
        (("--set", "width=12"), "width: expected a multiple of 8"),
        (("--variant", "literal"), "Expected the target of every utterance"),
        (("--seeds", "-1"), "expected a number of 0 or more"),
        (("--processes", "0"), "1 or more"),
    ],
)
def test_command_says_what_is_wrong(shell, corpus, tmp_path, arguments, said):
    answer = shell("train-attacker", "--data", corpus, "--device", "cpu", tmp_path / "out", *arguments)
    assert said in refusal(answer)
    assert not (tmp_path / "out").exists()
