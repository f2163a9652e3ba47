"""``train-attacker`` as a person types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from common.lock import lock_folder
from evaluation.attackers.training.trained_attacker import load_trained
from evaluation.cli import attack
from portal.client.main import main
from speech.audio.files import write_flac16
from speech.encoders import registry
from speech.model_files import devices
from tests.evaluation.attackers.training.toys import utterances
from tests.evaluation.commands import Shell, refusal
from tests.evaluation.engines import require_engine

pytestmark = pytest.mark.usefixtures("few_resamples", "light_encoder")
SMALLEST = ("width=8", "aggregated=24", "embedding=8", "attention=8", "epochs=2", "batch=8", "segment_s=0.5")
TINY = [word for value in (*SMALLEST, "crop_s=0.4", "shortest_s=0.4") for word in ("--set", value)]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "speech"
    lines = ["utterance_id,target"]
    for one in utterances():
        (folder / one.source).mkdir(parents=True, exist_ok=True)
        write_flac16(folder / one.source / f"{one.identifier}.flac", *one.read())
        lines.append(f"{one.identifier},{one.target}")
    (folder.parent / "targets.csv").write_text("\n".join(lines))
    return folder


@pytest.fixture
def trained(once_trained: Path, tmp_path: Path) -> Path:
    """Two attackers that were trained on the system B2."""
    shutil.copytree(once_trained, tmp_path / "trained")
    return tmp_path / "trained"


@pytest.fixture(scope="module")
def once_trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    values = ["--seed", "1", "--seed", "2", *TINY, "--system", "B2"]
    assert main(["train-attacker", str(out), "--data", str(corpus), "--device", "cpu", *values]) == 0
    return out


def test_command_trains_seeds_and_ends_with_a_table(shell, corpus, tmp_path):
    out = tmp_path / "out"
    targets = corpus.parent / "targets.csv"
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
    answer = shell(*arguments, "--seed", 4, "--seed", 5, *TINY)
    assert answer.code == 0, answer.err
    assert "mean ± sample deviation" in answer.out
    assert "only the fresh probe shows whether the vectors still contain the target" in " ".join(answer.out.split())
    assert answer.err.count("epoch 2 of 2") == 2
    assert [load_trained(out / f"seed-{seed}").seed for seed in (4, 5)] == [4, 5]
    assert "found one. Add --resume" in refusal(shell(*arguments, "--seed", 4, *TINY))
    again = shell(*arguments, "--seed", 4, *TINY, "--resume", "--json")
    assert again.json["seeds"][0]["seed"] == 4
    assert again.json["recipe"]["largest_weight"] == 1.0
    assert json.loads((out / "training.json").read_text())["epochs"] == 2


def test_command_keeps_one_writer_and_one_recipe_to_a_folder(shell, corpus, tmp_path):
    out = tmp_path / "out"
    options = ("train-attacker", out, "--data", corpus, "--device", "cpu", "--seed", 1, *TINY)
    with lock_folder(out, ".seed-1.lock"):
        assert "expected to be the only writer" in refusal(shell(*options))
    assert shell(*options).code == 0
    before = (out / "training.json").read_bytes()
    assert "expected the recipe of this training" in refusal(shell(*options, "--set", "width=16", "--resume"))
    assert (out / "training.json").read_bytes() == before


def attack_toys(shell, corpus, trained, place, *more):
    """Attack the toys of `utterances`, the first two of each speaker enrolled."""
    for name, numbers in (("enrolls", "01"), ("trials", "23")):
        (place / name).mkdir(exist_ok=True)
        chosen = [one for one in utterances() if one.identifier[-1] in numbers]
        (place / name / "utt2spk").write_text("".join(f"{one.identifier} {one.source}\n" for one in chosen))
    pairs = [(f"s{model}", one) for model in range(3) for one in chosen]
    lines = [f"{model} {one.identifier} {'target' if model == one.source else 'nontarget'}" for model, one in pairs]
    (place / "trials" / "trials").write_text("\n".join(lines) + "\n")
    arguments = ["--enrolment", place / "enrolls", "--trials", place / "trials", "--anonymised", corpus]
    return shell("attack", *arguments, "--trained", trained, "--out", place / "out", *more)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "colour=red"), "expected NAME=VALUE with a name among"),
        (("--set", "width=12"), "width: expected a multiple of 8"),
        (("--variant", "literal"), "Expected the target of every utterance"),
        (("--seed", "9223372036854775808"), "9223372036854775808 is not in the range 0<=x<=9223372036854775807"),
    ],
)
def test_command_says_what_is_wrong(shell, corpus, tmp_path, arguments, said):
    answer = shell("train-attacker", "--data", corpus, "--device", "cpu", tmp_path / "out", *arguments)
    assert said in refusal(answer)
    assert not (tmp_path / "out").exists()


def test_attack_on_another_system_than_the_trained_one_is_not_reliable(shell, corpus, trained, tmp_path):
    trained = trained / "seed-1"
    assert load_trained(trained).description.system == "B2"
    other = attack_toys(shell, corpus, trained, tmp_path, "--system", "T04")
    assert "It never heard the voices of 100 % of what it attacks" in " ".join(other.out.split())
    [same] = attack_toys(shell, corpus, trained, tmp_path, "--system", "B2", "--json").json["strength"]
    assert same["data_set"] == "trials"
    assert not any("never heard" in reason for reason in same["reasons"])
    assert "whether it was trained on the voices that it attacks" not in same["not_checked"]
    [untold] = attack_toys(shell, corpus, trained, tmp_path, "--json").json["strength"]
    assert "whether it was trained on the voices that it attacks" in untold["not_checked"]
    assert not any("never heard" in reason for reason in untold["reasons"])
    said = " ".join(attack_toys(shell, corpus, trained, tmp_path).out.split())
    assert "name the system with --system" in said


def test_attack_is_held_against_other_seeds_and_the_shipped_encoder(shell, corpus, trained, tmp_path):
    [first] = attack_toys(shell, corpus, trained / "seed-1", tmp_path, "--json").json["strength"]
    answer = attack_toys(shell, corpus, trained / "seed-2", tmp_path, "--json").json
    [second] = answer["strength"]
    eers = {
        one["value"]
        for one in answer["numbers"]
        if (one["attack_model"], one["metric"], one["estimator"]) == ("semi-informed", "eer", "kaldi")
    }
    assert eers == set(first["other_seed_eers"])
    assert "a second seed" not in first["not_checked"]
    assert second["cosine_eer"] is None  # that is its own way
    is_there = not registry.explain_missing(registry.find_engine(registry.DEFAULT))
    assert (second["frozen_eer"] is not None) is is_there
    assert ("the attackers that were not trained" in second["not_checked"]) is not is_there
    (trained / "seed-1" / "recipe.json").unlink()
    alone = attack_toys(shell, corpus, trained / "seed-2", tmp_path, "--json").json
    assert alone["strength"][0]["other_seed_eers"] == []
    assert any("No other seed of this training lies beside" in one for one in alone["why_not_checked"])


def test_shipped_encoder_works_on_the_processor_where_a_card_is_of_no_use_to_it(monkeypatch):
    """A card for torch alone: it is onnxruntime's turn to find one, and it does not."""
    engine = require_engine(registry.DEFAULT)
    monkeypatch.setitem(devices._FIND_CARD, "onnxruntime", lambda: True)
    encoder = attack._load_shipped(registry.find_engine(registry.DEFAULT), "cuda")
    assert type(encoder) is type(engine)
