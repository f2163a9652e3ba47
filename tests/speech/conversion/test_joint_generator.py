"""The joint generator: long speech by pieces, F0 of the source, and which files it takes."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import InputError

torch = pytest.importorskip("torch", reason="the network needs torch, which is not installed here")

from speech.conversion.content_decoder import ContentDecoder, Converter, intonation  # noqa: E402
from speech.conversion.joint_generator import JointGenerator, JointHifiGan, JointSynthesizer, load_hifigan  # noqa: E402
from speech.conversion.shape import DecoderShape, GeneratorShape, JointHifiGanShape  # noqa: E402
from speech.vocoders.harmonic_source import AMPLITUDE, HarmonicSource, PulseSource  # noqa: E402
from speech.vocoders.hifigan import HOP_SAMPLES, RATE_HZ, Generator, HifiGan  # noqa: E402

SHAPE = GeneratorShape(content=4, speaker=3, width=8, blocks=4, channels=16, harmonics=3)
VOICE = np.ones(3, np.float32)


@pytest.fixture
def network():
    torch.manual_seed(1)
    return JointGenerator(SHAPE).eval()


@pytest.fixture
def source():
    """One that gives the mean of its harmonics, but for the tanh."""
    made = HarmonicSource(4, RATE_HZ, HOP_SAMPLES)
    with torch.no_grad():
        made.join.weight.fill_(0.25)
        made.join.bias.zero_()
    return made


def test_voice_content_and_f0_each_change_the_samples(network):
    synthesizer, content, hz = JointSynthesizer(network), torch.randn(20, 4), np.full(20, 120.0)
    base = synthesizer.synthesize(content, hz, VOICE)
    for other in (
        synthesizer.synthesize(content.flip(0), hz, VOICE),
        synthesizer.synthesize(content, hz * 1.5, VOICE),
        synthesizer.synthesize(content, hz, np.array([1, -1, 1], np.float32)),
    ):
        assert not np.array_equal(base, other)


def test_pulses_are_all_harmonics_below_half_the_rate_equally_loud():
    hz = np.concatenate([np.zeros(20), np.full(60, 441.0)])
    signal = PulseSource(RATE_HZ, HOP_SAMPLES).of_recording(hz)[0, 0].numpy().astype(float)
    noise, voiced = np.split(signal, [20 * HOP_SAMPLES])
    times = np.arange(1, voiced.size + 1) / RATE_HZ  # the phase is that after each sample
    count = 24  # the 25th is half the rate itself, but for rounding
    sums = [sum(np.cos(2 * np.pi * 441 * number * times) for number in range(1, last + 1)) for last in (count, 25)]
    errors = [
        np.abs(voiced - AMPLITUDE * each / np.sqrt(last)).std() for each, last in zip(sums, (count, 25), strict=True)
    ]
    assert min(errors) < 0.004  # a little noise
    assert voiced.std() == pytest.approx(AMPLITUDE / np.sqrt(2), rel=0.05)
    assert noise.std() == pytest.approx(AMPLITUDE / 3, rel=0.05)


def test_source_has_harmonics_of_f0_where_voiced_and_noise_elsewhere(source):
    hz = np.repeat([0.0, 200.0], 90)
    signal = source.of_recording(hz)[0, 0].detach().numpy()
    noise, voiced = np.split(signal, 2)
    power = np.abs(np.fft.rfft(voiced * np.hanning(voiced.size))) ** 2
    hertz = np.fft.rfftfreq(voiced.size, 1 / RATE_HZ)
    near = np.min([np.abs(hertz - 200 * number) for number in (1, 2, 3, 4)], axis=0) < 5
    assert power[near].sum() > 0.99 * power.sum()
    # The mean of four sines of this amplitude, and of four noises of a third of it.
    assert voiced.std() == pytest.approx(AMPLITUDE / 4 * np.sqrt(2), rel=0.05)
    assert noise.std() == pytest.approx(AMPLITUDE / 6, rel=0.05)


def test_harmonics_above_half_the_rate_are_left_out(source):
    low, high = (np.abs(np.fft.rfft(source.of_recording(np.full(90, hz))[0, 0].detach().numpy())) for hz in (100, 4000))
    hertz = np.fft.rfftfreq(90 * HOP_SAMPLES, 1 / RATE_HZ)
    # The third harmonic of 4 kHz would be heard at 22,050 − 12,000 Hz.
    assert high[np.abs(hertz - 10_050) < 5].max() < 0.01 * high.max()
    assert low[np.abs(hertz - 400) < 5].max() > 0.5 * low.max()


def test_phase_goes_on_where_f0_changes(source):
    phases = source.phases(torch.tensor([[100.0, 0.0, 200.0]]))[0]
    assert phases[-1].item() == pytest.approx(300 * HOP_SAMPLES / RATE_HZ)
    assert phases.diff().max().item() == pytest.approx(200 / RATE_HZ)


def make_decoder():
    return ContentDecoder(DecoderShape(inputs=6, bottleneck=4, stages=2, codes=8, speaker=3, width=8, blocks=3))


def test_decoder_and_hifigan_get_what_they_learnt_together_and_keep_the_rest(tmp_path):
    from safetensors.torch import save_file

    shape, path = JointHifiGanShape(width=8, blocks=1, groups=2), tmp_path / "weights.safetensors"
    decoder, generator = make_decoder(), Generator(16)
    learnt = JointHifiGan(make_decoder(), Generator(16), shape).learnt()
    save_file({name: tensor.detach().contiguous() for name, tensor in learnt.items()}, path)
    content, hz = torch.randn(20, 4), np.full(20, 120.0)
    [before] = HifiGan(generator).synthesize([Converter(decoder).speak(content, hz, VOICE)])
    kept = generator.conv_post.weight.clone()
    converter, gan = load_hifigan(path, decoder, shape, generator)
    assert torch.equal(decoder.leave[1].weight, learnt["decoder.leave.1.weight"])
    assert torch.equal(generator.ups[1].weight, learnt["generator.ups.1.weight"])
    assert torch.equal(generator.conv_post.weight, kept)
    spectrum = converter.speak(content, hz, VOICE)
    [sound] = gan.synthesize([spectrum])
    assert sound.shape == before.shape
    assert not np.array_equal(sound, before)
    # As the network makes them, by which it learnt.
    whole = JointHifiGan(decoder, generator, shape)(
        content[None], torch.from_numpy(intonation(hz))[None], torch.ones(1, 3)
    )
    assert sound == pytest.approx(whole[0].detach().numpy(), abs=1e-5)
    with pytest.raises(InputError, match=r"missing: decoder\.blocks\.1"):
        load_hifigan(path, make_decoder(), JointHifiGanShape(width=8, blocks=2, groups=2), Generator(16))
    with pytest.raises(InputError, match=r"unexpected: generator\.resblocks\.0"):
        load_hifigan(path, make_decoder(), JointHifiGanShape(width=8, blocks=1, groups=1), Generator(16))
