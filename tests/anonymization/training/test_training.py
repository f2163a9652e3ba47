"""Training of the content decoder: it learns, goes on after a kill to the same weights, and leaves a card."""

import csv
import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from anonymization.cli.main import main
from anonymization.training.recipe import read_recipes
from common.errors import MetricInputError
from speech.conversion.shape import DecoderShape
from tests.evaluation.engines import require_engine, require_model_file

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed here")

SHAPE = DecoderShape(inputs=6, bottleneck=4, stages=2, codes=8, speaker=3, width=8, blocks=2)
RECIPE = replace(
    read_recipes()["content-decoder"], shape=SHAPE, steps=8, batch=4, crop=12, warm_up=2, checkpoint_every=2
)


@pytest.fixture(scope="module")
def features():
    """Of five utterances, one of them shorter than a piece."""
    from anonymization.training.features import Features

    draw = np.random.default_rng(1)

    def utterance(frames):
        content = draw.standard_normal((2, frames, 6)).astype(np.float16)
        spectra = draw.standard_normal((round(frames * 1.72), 80)).astype(np.float16)
        tune = draw.random((len(spectra), 2)).astype(np.float32)
        return Features(content, spectra, tune, np.full(3, 120, np.float32), np.ones(3, np.float32))

    return [utterance(frames) for frames in (40, 60, 5, 30, 50)]


def make_training(features, path, recipe=RECIPE, key="key"):
    from anonymization.training.loop import _Training

    return _Training(features, recipe, 1, path, key)


def weights(training):
    return {name: tensor.clone() for name, tensor in training.network.state_dict().items()}


def test_training_that_was_killed_goes_on_to_the_same_weights(features, tmp_path):
    whole = make_training(features, tmp_path / "whole.pt")
    whole.run(lambda *_: None)
    begun = make_training(features, tmp_path / "part.pt")

    def kill(done, _):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begun.run(kill)
    resumed = make_training(features, tmp_path / "part.pt")
    assert resumed.step == 4
    resumed.run(lambda *_: None)
    assert resumed.losses == whole.losses
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(resumed)[name]), name


def test_training_learns_spectra_and_every_code_is_used(features, tmp_path):
    training = make_training(features, tmp_path / "state.pt", replace(RECIPE, steps=60, checkpoint_every=20))
    training.run(lambda *_: None)
    first, *_, last = training.losses
    assert last[1] < first[1]
    content = training.network.encode(torch.from_numpy(features[1].layers[0].astype(np.float32)))
    sums, numbers = training.network.quantize(content, 2)
    errors = [(content - each).square().mean().item() for each in sums]
    assert errors[1] < errors[0]
    assert len(numbers[0].unique()) > 2


def test_state_of_another_training_and_a_damaged_one_are_refused(features, tmp_path):
    make_training(features, tmp_path / "state.pt", replace(RECIPE, steps=2)).run(lambda *_: None)
    with pytest.raises(MetricInputError, match="found one of another recipe, seed or speech"):
        make_training(features, tmp_path / "state.pt", key="other")
    (tmp_path / "state.pt").write_bytes(b"cut")
    with pytest.raises(MetricInputError, match="found a damaged file"):
        make_training(features, tmp_path / "state.pt")


def test_all_values_that_are_none_are_named():
    with pytest.raises(MetricInputError) as error:
        RECIPE.changed(step=3, steps="many", decay=1)
    sentence = str(error.value)
    assert "found “step”" in sentence
    assert "steps as a number such as 8, found “many”" in sentence
    assert "decay within its range, found 1" in sentence


def test_command_trains_on_real_speech_and_its_files_make_a_converter(shared, tmp_path, capsys):
    require_engine("ge2e")
    require_model_file("whisper-base")
    with (shared / "speech" / "utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["corpus"] == "vctk"]
    rows.sort(key=lambda row: float(row["duration_s"]))
    chosen = list({row["speaker"]: row for row in reversed(rows)}.values())[:2]
    lines = [f"{shared / 'speech' / row['path']},{row['speaker']},{row['gender']}" for row in chosen]
    (tmp_path / "speech.csv").write_text("\n".join(["path,speaker,gender", *lines]))
    call = ["train", "content-decoder", str(tmp_path / "out"), "--data", str(tmp_path / "speech.csv"), "--json"]
    values = ["--set", "steps=2", "batch=1", "crop=8", "warm_up=1", "variants=0", "--licence", "CC BY 4.0, VCTK"]
    assert main([*call, *values]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["data"]["speakers"] == 2
    assert card["data"]["licence"] == "CC BY 4.0, VCTK"
    for name, digest in card["sha256"].items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    assert (tmp_path / "out" / "losses.csv").read_text().startswith("step,spectrum,codes\n2,")
    from speech.conversion.content_decoder import load

    converter = load(tmp_path / "out" / "weights.safetensors")
    layers = np.random.default_rng(1).standard_normal((50, 1536)).astype(np.float32)
    spectrum = converter.convert(layers, np.full(86, 120.0), np.ones(256, np.float32) / 16, 1)
    assert spectrum.shape == (86, 80)
    # Again: what is finished is told, not done; another seed is refused.
    assert main([*call, *values]) == 0
    assert json.loads(capsys.readouterr().out) == card
    assert main([*call, *values, "--seed", "2"]) == 2
    assert "found one of another recipe, seed or speech" in capsys.readouterr().err
