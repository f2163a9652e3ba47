"""The benchmark of engines runs, and what it counts is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import _limits, engines
from evaluation.attackers import registry as attackers
from evaluation.recognizers import registry as recognizers
from tests.evaluation.engines import require_model_file

DEMO = Path(__file__).parents[2] / "demo" / "corpus"


def test_benchmark_says_something_of_every_engine(monkeypatch, capsys):
    monkeypatch.setattr(engines, "FOLDERS", (DEMO,))
    monkeypatch.setattr(engines, "device_here", lambda: "cpu")
    monkeypatch.setattr(engines, "SPEECH_S", {"cpu": 1.0, "cuda": 1.0})
    monkeypatch.setattr(engines, "WIDTHS", (64,))
    monkeypatch.setattr(engines, "TRIALS", ((4, 50),))
    monkeypatch.setattr(_limits, "SIZES", {"cpu": 128, "cuda": 1024})
    engines.main()  # whether speech so short meets the budgets says nothing
    told = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert {*attackers.engines(), *recognizers.engines(), "200 trials"} <= told.keys()
    here = [one.name for one in attackers.engines().values() if not attackers.missing_of(one)]
    assert all("s of speech a second" in told[name] for name in here)


def test_model_of_a_product_is_one_that_onnxruntime_takes(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    path = tmp_path / "product.onnx"
    path.write_bytes(_limits.product_model())
    left, right = np.arange(4, dtype=np.float32).reshape(2, 2), np.full((2, 2), 2, np.float32)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    [found] = session.run(None, {"a": left, "b": right})
    assert (found == left @ right).all()


def test_weights_that_are_counted_are_those_of_the_published_file():
    path = require_model_file("wespeaker-resnet34")
    # The rest are biases and the text of the graph.
    assert 4 * _limits.resnet34_weights() == pytest.approx(path.stat().st_size, rel=0.01)


def test_operations_are_counted_as_by_hand():
    torch = pytest.importorskip("torch")
    with torch.inference_mode(), _limits.torch_flop() as total:
        torch.nn.Conv1d(8, 16, 5)(torch.zeros(2, 8, 24))
        assert total() == 2 * (2 * 16 * 20) * (8 * 5)
    lstm = torch.nn.LSTM(40, 256, 3, batch_first=True)
    with torch.inference_mode(), _limits.lstm_flop(lstm) as total:
        lstm(torch.zeros(2, 160, 40))
    matrices = sum(value.numel() for name, value in lstm.named_parameters() if name.startswith("weight"))
    assert total() == 2 * 2 * 160 * matrices
    # A first layer of 3 x 3 on 80 bands and one frame, and every layer after it, is linear in long speech.
    assert _limits.resnet34_flop(1600) == pytest.approx(2 * _limits.resnet34_flop(800), rel=0.01)
