"""HiFi-GAN: an utterance comes back with its words and its spectrum; parts, batches and edges on a small network."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the vocoder needs torch, which is not installed here")

from common.errors import InputError, MachineError  # noqa: E402
from speech.vocoders import hifigan  # noqa: E402
from speech.vocoders.hifigan import BANDS, HOP_SAMPLES, RATE_HZ, Generator, HifiGan, log_mel  # noqa: E402
from tests.evaluation.engines import require_model_file  # noqa: E402

NOISE = (0.1 * np.random.default_rng(3).standard_normal(40_000)).astype(np.float32)


@pytest.fixture(scope="module")
def small() -> HifiGan:
    """A narrow network of random weights: as wide a view as the published one."""
    torch.manual_seed(1)
    return HifiGan(Generator(channels=32))


@pytest.fixture(scope="module")
def published() -> HifiGan:
    require_model_file("hifigan-universal")
    return hifigan.load()


def test_the_spectrum_is_that_of_the_definition():
    """Frame by frame, in double precision, with the ends mirrored."""
    wave = np.pad(NOISE[: 6 * HOP_SAMPLES].astype(np.float64), 384, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    frames = np.stack([wave[256 * number : 256 * number + 1024] * window for number in range(6)])
    magnitudes = np.sqrt(np.abs(np.fft.rfft(frames)) ** 2 + 1e-9)
    edges = np.linspace(0, 15 + 27 * np.log(8) / np.log(6.4), BANDS + 2)
    hertz = np.where(edges < 15, edges * 200 / 3, 1000 * np.exp((edges - 15) * np.log(6.4) / 27))
    bins = np.arange(513) * RATE_HZ / 1024
    expected = np.stack(
        [
            magnitudes @ np.interp(bins, hertz[band : band + 3], [0, 2 / (hertz[band + 2] - hertz[band]), 0])
            for band in range(BANDS)
        ],
        axis=1,
    )
    np.testing.assert_allclose(log_mel(NOISE[: 6 * HOP_SAMPLES]), np.log(np.maximum(expected, 1e-5)), atol=2e-3)


@pytest.mark.parametrize(("samples", "frames"), [(1, 1), (257, 2), (1024, 4)])
def test_every_length_has_its_frames_and_samples(small, samples, frames):
    spectrum = log_mel(NOISE[:samples])
    assert spectrum.shape == (frames, BANDS)
    assert small.synthesize([spectrum])[0].shape == (frames * HOP_SAMPLES,)


@pytest.mark.parametrize(
    ("spectrum", "sentence"),
    [
        (np.zeros((5, 40)), r"\(frames, 80\), found \(5, 40\)"),
        (np.zeros((0, 80)), r"found \(0, 80\)"),
        (np.full((5, 80), np.nan), "number 1 has others"),
    ],
)
def test_what_is_no_spectrum_is_refused(small, spectrum, sentence):
    with pytest.raises(InputError, match=sentence):
        small.synthesize([spectrum.astype(np.float32)])
    with pytest.raises(InputError, match="found \\(0,\\)"):
        log_mel(np.zeros(0, np.float32))


def with_lengths(generator: Generator) -> dict[str, torch.Tensor]:
    """The state as it is published: weights as lengths and directions."""
    state = {}
    for name, tensor in generator.state_dict().items():
        if name.endswith("weight"):
            state[f"{name}_v"] = 3 * tensor
            state[f"{name}_g"] = torch.linalg.vector_norm(tensor, dim=(1, 2), keepdim=True)
        else:
            state[name] = tensor
    return state


def test_a_file_of_lengths_and_directions_gives_the_network_and_differences_are_named(tmp_path):
    generator, path = Generator(), tmp_path / "generator.pth.tar"
    state = with_lengths(generator)
    torch.save({"generator": state}, path)
    loaded = hifigan.load_generator(path).state_dict()
    for name, tensor in generator.state_dict().items():
        torch.testing.assert_close(loaded[name], tensor)
    torch.save({"generator": with_lengths(Generator(256))}, path)
    with pytest.raises(InputError, match=r"of another shape: conv_pre\.weight is 256×80×7 instead of 512×80×7"):
        hifigan.load_generator(path)
    del state["ups.0.weight_g"]
    for content in ({"generator": state}, [1]):
        torch.save(content, path)
        with pytest.raises(InputError, match=r"generator\.pth\.tar is no generator of HiFi-GAN"):
            hifigan.load_generator(path)


def test_without_its_file_the_vocoder_says_how_to_fetch_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path))
    with pytest.raises(MachineError, match=r"HiFi-GAN, universal .* is missing.*models fetch hifigan-universal"):
        hifigan.load()
