"""How fast encoders, recognisers, training and scoring are, and how near to what the device can do.

Run from the root of the repository: ``python -m benchmarks.engines``. Takes real speech (``../shared/speech``, else the
demo's). On the processor everything runs on one thread and counts processor time; where torch finds a graphics card,
the engines that can use it do, by the clock. Prints

- of each encoder, seconds of speech in a second, features included, and its network's FLOP/s over those of a matrix
  product of the same library, type of number and thread count;
- of training an ECAPA recogniser of widths 64 and 256, steps a second and the same share;
- of each recogniser, seconds of speech in a second (its library has no product to compare with);
- of scoring a hundred thousand and a million trials, seconds over one matrix product and one stable argsort of them.

Budgets are on the shares and the ratio, on the processor alone. Engines that lack something here say so.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._limits import (
    Device,
    Work,
    lstm_flop,
    measure_seconds,
    onnx_limit,
    resnet34_flop,
    torch_flop,
    torch_limit,
)
from common.arrays import Samples

FOLDERS = (Path("../shared/speech"), Path("demo/corpus"))
RATE_HZ = 16_000
SPEECH_S = {"cpu": 24.0, "cuda": 600.0}
WIDTHS = (64, 256)
TRIALS = ((40, 2_500), (200, 5_000))  # models, utterances
ENROLMENT, DIMENSION = 5, 192
LEAST_SHARE = {"wespeaker-resnet34": 0.4, "ecapa-voxceleb": 0.3, "ge2e": 0.2, "width 64": 0.15, "width 256": 0.2}
MOST_RATIO = 4.0
HEAD = 26


@dataclass(frozen=True)
class EngineSpeed:
    """What an engine did: FLOP of its network in so many seconds, and the FLOP/s that the device has for it."""

    flop: int
    seconds: float
    limit: float

    @property
    def share(self) -> float:
        return self.flop / self.seconds / self.limit

    def words(self) -> str:
        rate, limit = self.flop / self.seconds / 1e9, self.limit / 1e9
        return f"{rate:,.1f} of {limit:,.0f} GFLOP/s, share {self.share:.2f}"


def main() -> int:
    """Print the figures; the exit status is 1 where one misses its budget."""
    device = device_here()
    print("on a graphics card" if device == "cuda" else "on one thread of the processor")
    speech = read_speech(SPEECH_S[device])
    missed = [*print_encoders(speech, device), *print_training(device)]
    print_recognizers(speech, device)
    missed += print_scoring()
    for name in missed:
        print(f"{name}: missed its budget")
    return int(bool(missed) and device == "cpu")


def device_here() -> Device:
    """The graphics card where torch finds one, else the processor, whose libraries then use one thread each."""
    try:
        import torch
    except ImportError:
        return "cpu"
    torch.set_num_threads(1)
    return "cuda" if torch.cuda.is_available() else "cpu"


def read_speech(seconds: float) -> list[Samples]:
    """Utterances from all over the corpus, the same ones again where it is short."""
    import soundfile

    folder = next((one for one in FOLDERS if (one / "utterances.csv").is_file()), None)
    if folder is None:
        sys.exit(f"Expected utterances.csv in {' or '.join(map(str, FOLDERS))}, found none.")
    with (folder / "utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if 1.0 < float(row["duration_s"]) < 15.0]
    found: list[Samples] = []
    total = 0.0
    for row in cycle(rows[:: max(1, len(rows) // 50)]):
        samples, _ = soundfile.read(folder / row["path"], dtype="int16")
        found.append(samples)
        total += samples.size / RATE_HZ
        if total >= seconds:
            return found
    return found


def seconds_in(speech: Sequence[Samples]) -> float:
    return sum(samples.size for samples in speech) / RATE_HZ


# Encoders ------------------------------------------------------------------------------------------


def print_encoders(speech: Sequence[Samples], device: Device) -> list[str]:
    """Each encoder of the registry; the names of those below their share."""
    from common.errors import MetricInputError
    from speech.encoders import registry

    missed = []
    for engine in registry.engines().values():
        if sentence := registry.explain_missing(engine):
            print(f"{engine.name:{HEAD}} {sentence}")
            continue
        on: Device = "cpu" if not engine.packages else device
        try:
            encoder = registry.load(engine.name, on)
        except MetricInputError:  # an onnxruntime that knows the processor only
            on, encoder = "cpu", registry.load(engine.name, "cpu")
        encoder.embed(speech[:1], RATE_HZ)
        measured = measure_encoder(engine.name, encoder, speech, on)
        seconds = measured.seconds if measured else _seconds_to_embed(encoder, speech, on)
        said = f"{engine.name:{HEAD}} {seconds_in(speech) / seconds:8,.1f} s of speech a second"
        budget = f" (at least {LEAST_SHARE[engine.name]:g})" if measured and on == "cpu" else ""
        print(f"{said}, {measured.words() if measured else 'no network'}{budget}{_where(on, device)}")
        if measured and on == "cpu" and measured.share < LEAST_SHARE[engine.name]:
            missed.append(engine.name)
    return missed


def measure_encoder(name: str, encoder: Any, speech: Sequence[Samples], device: Device) -> EngineSpeed | None:
    """An encoder against its library's matrix product, measured before and after; None for one without a network."""
    counts: dict[str, tuple[Callable[[], float], Callable[[], int]]] = {
        "wespeaker-resnet34": (lambda: onnx_limit(device), lambda: _resnet_flop(speech)),
        "ecapa-voxceleb": (
            lambda: torch_limit(device, "float16" if device == "cuda" else "float32"),
            lambda: _counted(torch_flop(), lambda: encoder.embed(speech, RATE_HZ)),
        ),
        "ge2e": (
            lambda: torch_limit(device, "float32"),
            lambda: _counted(lstm_flop(encoder._network["lstm"]), lambda: encoder.embed(speech, RATE_HZ)),
        ),
    }
    if name not in counts:
        return None
    limit_of, flop_of = counts[name]
    before = limit_of()
    seconds = _seconds_to_embed(encoder, speech, device)
    return EngineSpeed(flop_of(), seconds, max(before, limit_of()))


def _seconds_to_embed(encoder: Any, speech: Sequence[Samples], device: Device) -> float:
    return measure_seconds(lambda: encoder.embed(speech, RATE_HZ), device)


def _resnet_flop(speech: Sequence[Samples]) -> int:
    return sum(resnet34_flop(1 + (samples.size - 400) // 160) for samples in speech)


def _counted(counting: Any, work: Work) -> int:
    with counting as total:
        work()
        return int(total())


def _where(on: Device, device: Device) -> str:
    return " (on the processor)" if on != device else ""


# Training ------------------------------------------------------------------------------------------


def print_training(device: Device) -> list[str]:
    """Steps of a training of each width; those below their share."""
    try:
        import torch  # noqa: F401
    except ImportError:
        print(f"{'training':{HEAD}} needs torch, which is not installed here.")
        return []
    missed = []
    for width in WIDTHS:
        name = f"width {width}"
        step, segments = training_step(width, device)
        step()
        dtype = "bfloat16" if device == "cuda" else "float32"
        before = torch_limit(device, dtype)
        seconds = measure_seconds(step, device, rounds=3)
        measured = EngineSpeed(_counted(torch_flop(), step), seconds, max(before, torch_limit(device, dtype)))
        print(f"{'training, ' + name:{HEAD}} {1 / seconds:8.2f} steps of {segments} segments a second, ", end="")
        print(measured.words() + (f" (at least {LEAST_SHARE[name]:g})" if device == "cpu" else ""))
        if device == "cpu" and measured.share < LEAST_SHARE[name]:
            missed.append(f"training, {name}")
    return missed


def training_step(width: int, device: Device) -> tuple[Work, int]:
    """A step of the small recipe at another width, on random features; how many segments it learns from."""
    import torch

    from evaluation.attackers.training.epochs import Batch, Trainer
    from evaluation.attackers.training.heads import CosineClassifier, Heads, build_encoder
    from evaluation.attackers.training.recipe import PRESETS, VARIANTS, with_variant

    recipe = with_variant(replace(PRESETS["small"], width=width, aggregated=3 * width), VARIANTS["none"].name)
    place, frames, speakers = torch.device(device), round(recipe.crop_s * 100) + 1, 40
    encoder = build_encoder(recipe).to(place)
    heads = Heads(CosineClassifier(recipe.embedding, speakers).to(place), None)
    trainer = Trainer(encoder, heads, recipe, place)
    trainer.set_learning_rate(1e-3)
    sources = torch.arange(recipe.batch, device=place) % speakers
    batch = Batch(torch.randn(recipe.batch, frames, 80, device=place), None, sources, torch.zeros_like(sources))
    return lambda: trainer.step(lambda: batch, 0.0), recipe.batch


# Recognisers and scores ----------------------------------------------------------------------------


def print_recognizers(speech: Sequence[Samples], device: Device) -> None:
    """Each recogniser of the registry: seconds of speech in a second, and its inverse."""
    from common.errors import MetricInputError
    from speech.recognizers import registry

    for engine in registry.engines().values():
        if sentence := registry.explain_missing(engine):
            print(f"{engine.name:{HEAD}} {sentence}")
            continue
        on: Device = device
        try:
            recogniser = registry.load(engine.name, on)
            recogniser.transcribe(speech[:1], RATE_HZ)
        except (MetricInputError, ValueError, RuntimeError):
            if device == "cpu":
                raise
            on, recogniser = "cpu", registry.load(engine.name, "cpu")  # its library knows the processor only
            recogniser.transcribe(speech[:1], RATE_HZ)
        factor = seconds_to_recognise(recogniser, speech, on) / seconds_in(speech)
        said = f"{engine.name:{HEAD}} {1 / factor:8,.1f} s of speech a second, real-time factor {factor:.3f}"
        print(said + _where(on, device))


def seconds_to_recognise(recogniser: Any, speech: Sequence[Samples], device: Device) -> float:
    """Once, for it takes long; processor time counts every thread that a library starts."""
    return measure_seconds(lambda: recogniser.transcribe(speech, RATE_HZ), device, rounds=1)


def print_scoring() -> list[str]:
    """Scores of full lists of trials by cosine, as attacks make them; those above their ratio."""
    missed = []
    for models, utterances in TRIALS:
        scored_s, yardstick_s = seconds_to_score(models, utterances)
        name, ratio = f"{models * utterances:,} trials", scored_s / yardstick_s
        print(f"{name:{HEAD}} scored in {scored_s:.3f} s, ratio to a product and an argsort {ratio:.1f} ", end="")
        print(f"(at most {MOST_RATIO:g})")
        if ratio > MOST_RATIO:
            missed.append(name)
    return missed


def seconds_to_score(models: int, utterances: int) -> tuple[float, float]:
    """Of all pairs, and of one matrix product and one stable argsort of as many."""
    from evaluation.attackers.trial_scores import score_trials

    random = np.random.default_rng(1)
    enrolment = {f"m{n}": random.normal(size=(ENROLMENT, DIMENSION)) for n in range(models)}
    tests = {f"u{n}": random.normal(size=DIMENSION) for n in range(utterances)}
    trials = [(model, utterance) for model in enrolment for utterance in tests]
    means = np.stack([vectors.mean(axis=0) for vectors in enrolment.values()])
    heard = np.stack(list(tests.values()))
    yardstick_s = measure_seconds(lambda: np.argsort((means @ heard.T).ravel(), kind="stable"), "cpu", rounds=3)
    return measure_seconds(lambda: score_trials(enrolment, tests, trials), "cpu", rounds=3), yardstick_s


if __name__ == "__main__":
    # Read by the libraries of recognisers when they are loaded, which is later.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
