"""The benchmark of engines runs, and what it counts is right."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import _limits, engines
from evaluation.attackers.training import recipe
from speech.encoders import registry as attackers
from speech.recognizers import registry as recognizers
from tests.evaluation.engines import require_model_file

DEMO = Path(__file__).parents[3] / "demo" / "corpus"


def _missing_beside(explain, others, engine):
    return f"{engine.title} is not measured here." if engine.name in others else explain(engine)


def test_benchmark_says_something_of_every_engine(monkeypatch, capsys):
    """The default of each kind is measured, the others are told to be missing: `make bench` measures them all."""
    for registry in (attackers, recognizers):
        _, *others = registry.engines()
        missing = partial(_missing_beside, registry.explain_missing, others)
        monkeypatch.setattr(registry, "explain_missing", missing)
    monkeypatch.setattr(recipe, "PRESETS", {"small": recipe.PRESETS["small"].changed(batch=8, crop_s=1.0)})
    monkeypatch.setattr(engines, "FOLDERS", (DEMO,))
    monkeypatch.setattr(engines, "device_here", lambda: "cpu")
    monkeypatch.setattr(engines, "SPEECH_S", {"cpu": 1.0, "cuda": 1.0})
    monkeypatch.setattr(engines, "WIDTHS", (64,))
    monkeypatch.setattr(engines, "TRIALS", ((4, 50),))
    monkeypatch.setattr(_limits, "SIZES", {"cpu": 128, "cuda": 1024})
    engines.main()  # whether speech so short meets the budgets says nothing
    told = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert {*attackers.engines(), *recognizers.engines(), "200 trials"} <= told.keys()
    for registry in (attackers, recognizers):
        for engine in registry.engines().values():
            assert (registry.explain_missing(engine) or "s of speech a second") in told[engine.name]


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
