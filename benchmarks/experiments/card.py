"""What networks give on a graphics card, beside what they give on the processor, and how much faster.

Run from the root of the repository on a machine where torch finds a card: ``python -m benchmarks.experiments.card``.
Prints the card's own limits (a matrix product of bfloat16, a copy), then of each network the largest difference of an
output over the largest number of all, and seconds of speech in a second on one core and on the card. Without a card it
says so. Speech is that of `../shared/speech`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from anonymization.methods.content_decoder import network_files
from anonymization.methods.mcadams import torch_engine
from anonymization.methods.mcadams.parameters import McAdamsParameters
from benchmarks._speech import RATE_HZ, SPEECH, read_speech
from common.arrays import Samples
from speech.conversion import content_decoder, f0_regressor, joint_generator, source_filter, world_decoder
from speech.encoders import registry
from speech.features import whisper_layers
from speech.model_files.devices import Device
from speech.vocoders import hifigan

DEVICES: tuple[Device, Device] = ("cpu", "cuda")
UTTERANCES = 8
SIZE, COPIED, ROUNDS = 8192, 2**30, 10

Outputs = Sequence[Any]


def main() -> int:
    """0, also where there is no card or no speech."""
    if not torch.cuda.is_available():
        print("skipped: torch finds no graphics card here")
        return 0
    if not (SPEECH / "utterances.csv").is_file():
        print(f"skipped: the real speech of {SPEECH} is not here")
        return 0
    torch.set_num_threads(1)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print_limits()
    speech = [each.samples for each in islice(read_speech(1).utterances, UTTERANCES)]
    seconds = sum(samples.size for samples in speech) / RATE_HZ
    print(f"{len(speech)} utterances, {seconds:.0f} s")
    for name, run in networks(speech).items():
        compare(name, run, seconds)
    return 0


def networks(speech: Sequence[Samples]) -> dict[str, Callable[[Device], Callable[[], Outputs]]]:
    """Of each network, what loads it on a device and gives what then runs."""
    encoder = whisper_layers.load("cuda")
    layers = [content_decoder.content_layers(samples, encoder) for samples in speech]
    counts = [content_decoder.count_spectra(samples.size) for samples in speech]
    contours = [np.where(np.arange(count) % 90 < 60, 130.0, 0.0) for count in counts]
    voice, *_ = network_files.read_pool().voice({network_files.read_pool().names[0]: 1.0})
    on_processor = content_decoder.load(network_files.WEIGHTS)
    content = [on_processor.find_content(each, count, 4) for each, count in zip(layers, counts, strict=True)]
    spectra = [on_processor.convert(each, hz, voice, 4) for each, hz in zip(layers, contours, strict=True)]

    def embed(name: str) -> Callable[[Device], Callable[[], Outputs]]:
        def load(device: Device) -> Callable[[], Outputs]:
            loaded = registry.load(name, device)
            return lambda: list(loaded.embed(speech, RATE_HZ))

        return load

    def whisper(device: Device) -> Callable[[], Outputs]:
        loaded = whisper_layers.load(device)
        return lambda: loaded.encode(speech, RATE_HZ, content_decoder.LAYERS)

    def decode(device: Device) -> Callable[[], Outputs]:
        loaded = content_decoder.load(network_files.WEIGHTS, device)
        return lambda: [loaded.convert(each, hz, voice, 4) for each, hz in zip(layers, contours, strict=True)]

    def regress(device: Device) -> Callable[[], Outputs]:
        loaded = f0_regressor.load(network_files.REGRESSOR, device)
        return lambda: [loaded.estimate(each, voice) for each in content]

    def vocode(device: Device) -> Callable[[], Outputs]:
        loaded = hifigan.load(device)
        return lambda: loaded.synthesize(spectra)

    def join(device: Device) -> Callable[[], Outputs]:
        loaded = joint_generator.load(network_files.JOINT_GENERATOR, device)
        return lambda: [loaded.synthesize(each, hz, voice) for each, hz in zip(content, contours, strict=True)]

    def filter_source(device: Device) -> Callable[[], Outputs]:
        loaded = source_filter.load(network_files.SOURCE_FILTER, device)
        return lambda: [loaded.synthesize(each, hz, voice) for each, hz in zip(spectra, contours, strict=True)]

    def parametrize(device: Device) -> Callable[[], Outputs]:
        loaded = world_decoder.load(network_files.WORLD_DECODER, device)
        return lambda: [loaded.speak(each, hz, voice) for each, hz in zip(content, contours, strict=True)]

    def bend(device: Device) -> Callable[[], Outputs]:
        given = [McAdamsParameters(0.7, engine="torch")] * len(speech)
        return lambda: list(torch_engine.bend_poles(speech, given, device=device))

    return {
        "Whisper base, layers 3 to 5": whisper,
        "GE2E": embed("ge2e"),
        "ECAPA-TDNN (16 bits on the card)": embed("ecapa-voxceleb"),
        "decoder of content": decode,
        "regressor of F0": regress,
        "HiFi-GAN universal": vocode,
        "joint generator": join,
        "vocoder by filters of a source": filter_source,
        "decoder to parameters of WORLD": parametrize,
        "B2 on torch (64 bits)": bend,
    }


def compare(name: str, load: Callable[[Device], Callable[[], Outputs]], seconds: float) -> None:
    """Print how far the outputs of a network are apart, and how fast it is on each device."""
    outputs, took = [], []
    for device in DEVICES:
        run = load(device)
        run()
        torch.cuda.synchronize()
        began = time.perf_counter()
        outputs.append([np.asarray(each, np.float64) for each in run()])
        torch.cuda.synchronize()
        took.append(time.perf_counter() - began)
    largest = max(float(np.abs(each).max()) for each in outputs[0])
    apart = max(float(np.abs(here - there).max()) for here, there in zip(*outputs, strict=True))
    core, card = (seconds / each for each in took)
    print(f"{name:36} differs by {apart / largest:.1e}; {core:6.1f} × real time on a core, {card:6.0f} on the card")


def print_limits() -> None:
    """What the card can do at most."""
    numbers = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    product = 2 * SIZE**3 / _clock(lambda: numbers @ numbers)
    source = torch.empty(COPIED, device="cuda")
    target = torch.empty_like(source)
    copy = 2 * source.nbytes / _clock(lambda: target.copy_(source))
    print(f"matrix product of bfloat16 {product / 1e12:.0f} TFLOP/s, copy {copy / 1e12:.2f} TB/s")


def _clock(work: Callable[[], object]) -> float:
    work()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(ROUNDS):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / ROUNDS


if __name__ == "__main__":
    sys.exit(main())
