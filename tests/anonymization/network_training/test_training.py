"""Trainings of decoder, F0 regressor and map: they learn, go on after a kill to the same weights, and leave a card."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from anonymization.network_training.recipe import read_recipes
from common.errors import InputError
from evaluation.attackers.training.corpus import TrainingUtterance
from speech.conversion.shape import (
    DecoderShape,
    GeneratorShape,
    JointHifiGanShape,
    RegressorShape,
    SoftUnitsShape,
    SourceFilterShape,
    WorldDecoderShape,
)

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed here")

SHAPE = DecoderShape(inputs=6, bottleneck=4, stages=2, codes=8, speaker=3, width=8, blocks=2)
RECIPE = replace(
    read_recipes()["content-decoder"], shape=SHAPE, steps=8, batch=4, crop=12, warm_up=2, checkpoint_every=2
)
REGRESSION = replace(
    read_recipes()["f0-regressor"],
    shape=RegressorShape(content=4, speaker=3, width=16, layers=2),
    steps=8,
    batch=8,
    crop=20,
    warm_up=2,
    checkpoint_every=2,
    learning_rate=0.01,
)
GENERATION = replace(
    read_recipes()["joint-nsf-hifigan"],
    shape=GeneratorShape(content=4, speaker=3, width=8, blocks=2, channels=16, harmonics=2),
    steps=8,
    batch=2,
    crop=8,
    warm_up=1,
    adversarial_from=4,
    narrower=32,
    checkpoint_every=2,
)
HIFIGAN = replace(
    read_recipes()["joint-hifigan"],
    shape=JointHifiGanShape(width=8, blocks=1, groups=2),
    steps=8,
    batch=2,
    crop=8,
    warm_up=1,
    narrower=32,
    checkpoint_every=2,
)
UNITS = replace(
    read_recipes()["soft-units-decoder"],
    shape=SoftUnitsShape(inputs=6, bottleneck=5, units=4, speaker=3, width=8, blocks=2),
    steps=8,
    batch=4,
    crop=12,
    warm_up=2,
    checkpoint_every=2,
)
VOCODER = replace(
    read_recipes()["hn-sinc-nsf"],
    shape=SourceFilterShape(speaker=3, width=8, blocks=2, hidden=4, filters=2, layers=3),
    steps=8,
    batch=2,
    crop=16,
    warm_up=1,
    narrower=32,
    checkpoint_every=2,
)


WORLD = replace(
    read_recipes()["world-decoder"],
    shape=WorldDecoderShape(content=4, speaker=3, width=8, blocks=2),
    steps=8,
    batch=2,
    crop=8,
    warm_up=1,
    checkpoint_every=2,
)


@pytest.fixture(scope="module")
def features():
    """Of five utterances, one of them shorter than a piece."""
    from anonymization.network_training.features import Features

    draw = np.random.default_rng(1)

    def utterance(frames):
        content = draw.standard_normal((2, frames, 6)).astype(np.float16)
        spectra = draw.standard_normal((round(frames * 1.72), 80)).astype(np.float16)
        tune = draw.random((len(spectra), 2)).astype(np.float32)
        return Features(content, spectra, tune, np.full(3, 120, np.float32), np.ones(3, np.float32))

    return [utterance(frames) for frames in (40, 60, 5, 30, 50)]


@pytest.fixture(scope="module")
def decoder():
    """Of a small shape, whose codes name the four sounds of `speech_of_sounds`."""
    from speech.conversion.content_decoder import ContentDecoder

    torch.manual_seed(0)
    network = ContentDecoder(SHAPE)
    with torch.no_grad():
        network.get_buffer("codebooks")[0, :4] = network.encode(torch.eye(6)[:4])
    return network.eval()


def speech_of_sounds(octaves, seed, frames=60):
    """Sounds of 10 frames, of which two are voiced, the second a third of an octave higher; the vector tells the voice.

    octaves: by how much the voice is above 120 Hz.
    """
    from anonymization.network_training.features import Features
    from speech.conversion.content_decoder import intonation, places_of_content

    sounds = np.random.default_rng(seed).integers(0, 4, -(-frames // 10)).repeat(10)[:frames]
    count = round(frames * 1.72)
    heard = sounds[np.clip(np.round(places_of_content(count)).astype(int), 0, frames - 1)]
    hz = np.select([heard == 0, heard == 1], [120.0, 150.0], 0.0) * 2**octaves
    vector = np.array([octaves, 1, 0], np.float32)
    layers = np.eye(6, dtype=np.float16)[sounds][None]
    spectrum = np.zeros((count, 80), np.float16)
    return Features(layers, spectrum, intonation(hz), hz[hz > 0].astype(np.float32), vector)


@pytest.fixture(scope="module")
def sounds():
    return [speech_of_sounds(octaves, seed) for seed, octaves in enumerate((0, 0.3, 0.6, 1, 0.8, 0.1, 0.4, 0.9))]


def make_training(features, path, recipe=RECIPE, key="key"):
    from anonymization.network_training.decoder import DecoderTraining

    return DecoderTraining(features, recipe, 1, path, key)


@pytest.fixture
def small_hifigan(monkeypatch):
    """A generator of few channels in place of the published one."""
    from anonymization.network_training import generator as module
    from speech.vocoders.hifigan import Generator

    monkeypatch.setattr(module, "find", lambda name: name)
    monkeypatch.setattr("anonymization.network_training.train.find", lambda name: name)
    monkeypatch.setattr(module, "load_generator", lambda _: Generator(16))


@pytest.fixture
def start(request, features, sounds, decoder, small_hifigan):
    """Starts a training of a kind."""

    def start_decoder(path, key="key", **changes):
        return make_training(features, path, replace(RECIPE, **changes), key)

    def start_regressor(path, key="key", **changes):
        from anonymization.network_training.regressor import RegressorTraining

        given = replace(REGRESSION, **changes)
        return RegressorTraining(sounds[2:], given, 1, path, key, decoder=decoder, held_out=sounds[:2])

    draw = np.random.default_rng(2)
    waves = [0.05 * draw.standard_normal(256 * len(each.spectrum)).astype(np.float32) for each in features]

    def start_units(path, key="key", **changes):
        from anonymization.network_training.decoder import SoftUnitsTraining

        return SoftUnitsTraining(sounds, replace(UNITS, **changes), 1, path, key)

    def start_vocoder(path, key="key", **changes):
        from anonymization.network_training.generator import VocoderTraining

        return VocoderTraining(features, replace(VOCODER, **changes), 1, path, key, waves=waves)

    def start_judged_vocoder(path, key="key", **changes):
        return start_vocoder(path, key, **{"discriminators": 1, "adversarial_from": 4, **changes})

    def start_world(path, key="key", **changes):
        from anonymization.network_training.decoder import WorldDecoderTraining

        parameters = [replace(each, spectrum=np.pad(each.spectrum, ((0, 0), (0, 1)), "edge")) for each in features]
        return WorldDecoderTraining(parameters, replace(WORLD, **changes), 1, path, key, decoder=decoder)

    def start_phones(path, key="key", **changes):
        from anonymization.network_training.decoder import DecoderTraining

        spoken = [speech_of_sounds(0, seed) for seed in range(20)]
        texts = [" ".join("abcd"[np.argmax(row)] for row in each.layers[0, ::10]) for each in spoken]
        return DecoderTraining(spoken, replace(RECIPE, phones=0.5, **changes), 1, path, key, texts=texts)

    kinds = {
        "decoder": start_decoder,
        "decoder by phones": start_phones,
        "world": start_world,
        "regressor": start_regressor,
        "units": start_units,
        "judged vocoder": start_judged_vocoder,
    }
    return kinds[request.param]


of_decoder = pytest.mark.parametrize("start", ["decoder"], indirect=True)
regressor = pytest.mark.parametrize("start", ["regressor"], indirect=True)


def weights(training):
    return {name: tensor.clone() for name, tensor in training.network.state_dict().items()}


@of_decoder
def test_training_that_was_killed_goes_on_to_the_same_weights(start, tmp_path):
    whole = start(tmp_path / "whole.pt")
    whole.run(lambda *_: None)
    begun = start(tmp_path / "part.pt")

    def kill(done, _):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begun.run(kill)
    resumed = start(tmp_path / "part.pt")
    assert resumed.step == 4
    resumed.run(lambda *_: None)
    assert resumed.losses == whole.losses
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(resumed)[name]), name


@of_decoder
def test_state_of_another_training_and_a_damaged_one_are_refused(start, tmp_path):
    start(tmp_path / "state.pt", steps=2).run(lambda *_: None)
    with pytest.raises(InputError, match="found one of another recipe, seed or speech"):
        start(tmp_path / "state.pt", key="other")
    (tmp_path / "state.pt").write_bytes(b"cut")
    with pytest.raises(InputError, match="found a damaged file"):
        start(tmp_path / "state.pt")


@regressor
def test_regressor_learns_f0_of_sound_and_voice_for_voices_that_it_does_not_know(start, tmp_path):
    training = start(tmp_path / "state.pt", steps=100)
    before = training.tell()["held_out"]
    training.run(lambda *_: None)
    found = training.tell()["held_out"]
    assert found["utterances"] == 2
    assert found["voicing_error"] < 0.1 < before["voicing_error"]
    assert found["rmse_semitones"] < 0.7 * found["null_rmse_semitones"] < before["rmse_semitones"]
    assert found["correlation"] > 0.7
    first, *_, last = training.losses
    assert last[1] < first[1]
    assert last[2] < first[2]


@pytest.mark.parametrize("start", ["decoder by phones"], indirect=True)
def test_bottleneck_learns_which_phone_is_said(start, tmp_path):
    """And no spectrum: those of these sounds are all alike."""
    training = start(tmp_path / "state.pt", steps=60, checkpoint_every=20, learning_rate=0.01)
    before = training.network.narrow[2].weight.clone()
    training.run(lambda *_: None)
    assert training.loss_names == ("spectrum", "codes", "phones")
    (_, _, _, first), *_, (_, _, _, last) = training.losses
    assert last < first / 2
    assert not torch.equal(training.network.narrow[2].weight, before)
    assert set(training.learnt()) == set(training.network.state_dict())


def test_too_few_transcripts_are_told(tmp_path):
    from anonymization.network_training.decoder import DecoderTraining

    spoken = [speech_of_sounds(0, seed) for seed in range(20)]
    # An utterance of 60 frames has room for 30 phones at most.
    texts = ["a b"] * 18 + ["", "a " * 31]
    with pytest.raises(InputError, match="at least 20 utterances with transcripts; found 18 of 20"):
        DecoderTraining(spoken, replace(RECIPE, phones=0.5), 1, tmp_path / "state.pt", "key", texts=texts)


@pytest.mark.parametrize("start", ["world"], indirect=True)
def test_decoder_learns_parameters_of_world(start, tmp_path):
    training = start(tmp_path / "state.pt", steps=60, checkpoint_every=20, learning_rate=0.01)
    training.run(lambda *_: None)
    (_, *first), *_, (_, *last) = training.losses
    assert all(after < before for before, after in zip(first, last, strict=True))


@pytest.mark.parametrize("start", ["judged vocoder"], indirect=True)
def test_vocoder_learns_from_discriminators_where_it_has_them(start, tmp_path):
    training = start(tmp_path / "state.pt")
    training.run(lambda *_: None)
    (_, *known), *_, (_, *last) = training.losses
    assert training.loss_names == ("mel spectrum", "power spectra", "adversarial", "features", "discriminators")
    assert known[2:] == [0, 0, 0]
    assert all(loss > 0 for loss in last)
    alone = start(tmp_path / "alone.pt", discriminators=0)
    assert alone.loss_names == ("mel spectrum", "power spectra")
    assert set(alone.parts()) == {"network", "optimizer"}


@pytest.mark.parametrize("start", ["units"], indirect=True)
def test_units_are_the_sounds_and_content_learns_to_name_them(start, sounds, tmp_path):
    training = start(tmp_path / "state.pt", steps=80, learning_rate=0.01, checkpoint_every=40)
    training.run(lambda *_: None)
    for own, units in zip(sounds, training._units, strict=True):
        frames = own.layers[0].argmax(axis=1)
        assert len({*zip(frames.tolist(), units.tolist(), strict=True)}) == len(set(frames.tolist()))
    first, *_, last = training.losses
    assert last[1] < first[1]
    assert last[2] < 0.1 < first[2]
    content = training.network.encode(torch.eye(6)[:4])
    assert content.norm(dim=1).tolist() == pytest.approx([5**0.5] * 4)
    assert training.network.name_units(content).argmax(dim=1).unique().numel() == 4


@pytest.mark.parametrize("start", ["units"], indirect=True)
def test_spectra_teach_content_nothing(start, tmp_path):
    """Else the voice of the original would be learnt to go through it."""
    training = start(tmp_path / "state.pt")
    first = training.network.narrow[0].weight
    batch = training._draw_batch(np.random.default_rng(1))
    training.descend = lambda loss: loss.backward()
    training.update(batch, np.random.default_rng(1))
    both = first.grad.clone()
    training.network.zero_grad()
    with training.in_16_bits():
        scores = training.network.name_units(training.network.encode(batch.layers))
    named = torch.nn.functional.cross_entropy(scores.float().flatten(0, 1), training._cut_units(batch).flatten())
    named.backward()
    assert first.grad.abs().max() > 0
    assert torch.allclose(both, first.grad, atol=1e-6)


def test_distance_of_spectra_is_that_of_their_logarithms():
    """Half the square of a difference of 2 ln 3 where one is three times the other, and none of the same."""
    from anonymization.network_training.generator import compare_spectra

    loud = torch.from_numpy(np.random.default_rng(1).standard_normal((2, 8192)).astype(np.float32))
    assert compare_spectra(loud, loud).item() == 0
    assert compare_spectra(3 * loud, loud).item() == pytest.approx(0.5 * (2 * np.log(3)) ** 2, rel=1e-3)


def test_measures_are_those_of_the_definition(decoder):
    """An estimate of one value for all is off by what the contours vary, and by how far the means are away."""
    from anonymization.network_training.regressor import measure
    from speech.conversion.content_decoder import Converter

    class Constant:
        def estimate(self, content, speaker):  # noqa: ARG002 - as the regressor has it
            return np.tile([np.log(240.0), 1.0], (len(content), 1))

    speech = speech_of_sounds(1, 3)
    found = measure(Constant(), Converter(decoder), 2, [speech])
    semitones = 12 * np.log2(speech.hz.astype(float) / 240)
    assert found["rmse_semitones"] == pytest.approx(np.sqrt(np.mean(semitones**2)), abs=1e-3)
    assert found["null_rmse_semitones"] == pytest.approx(semitones.std(), abs=1e-3)
    assert found["correlation"] is None
    assert found["voicing_error"] == pytest.approx(1 - speech.intonation[:, 1].mean(), abs=1e-3)
    assert measure(Constant(), Converter(decoder), 2, [])["voicing_error"] is None


def test_speakers_with_most_speech_are_not_held_out():
    from anonymization.network_training.regressor import hold_out_speakers

    counts = {f"s{number}": 1 if number < 18 else 30 for number in range(20)}
    speech = [TrainingUtterance(f"{name}-{n}", name, None) for name, count in counts.items() for n in range(count)]
    found = hold_out_speakers(speech, 0.2, 1)
    assert len(found) == 4
    assert not found & {"s18", "s19"}
    assert hold_out_speakers(speech[::-1], 0.2, 1) == found
    assert hold_out_speakers(speech, 0.2, 2) != found
    assert len(hold_out_speakers(speech[:2], 0.1, 1)) == 1


def test_speech_without_voiced_frames_trains_no_regressor(sounds, decoder, tmp_path):
    from anonymization.network_training.regressor import RegressorTraining

    silent = replace(sounds[0], hz=np.zeros(0, np.float32))
    with pytest.raises(InputError, match="voiced frames, found none"):
        RegressorTraining([silent], REGRESSION, 1, tmp_path / "state.pt", "key", decoder=decoder, held_out=[])


def test_card_of_a_regressor_tells_what_it_is_worth_and_on_which_codes(sounds, decoder, tmp_path, monkeypatch):
    from anonymization.network_training import regressor as regressor_module
    from anonymization.network_training import train as module
    from speech.conversion import f0_regressor

    monkeypatch.setattr(module, "read_features", lambda *_, **__: sounds)
    monkeypatch.setattr(regressor_module, "load_decoder", lambda _: decoder)
    speech = [TrainingUtterance(f"u{number}", f"s{number}", None) for number in range(len(sounds))]
    card = module.train(speech, REGRESSION, 1, tmp_path)
    assert json.loads((tmp_path / "card.json").read_text()) == card
    assert card["held_out"]["utterances"] == 1
    assert card["decoder_sha256"] == module.SHIPPED.decoder.sha256
    assert list(card["sha256"]) == ["weights.safetensors"]
    assert (tmp_path / "losses.csv").read_text().startswith("step,f0,voicing\n2,")
    loaded = f0_regressor.load(tmp_path / "weights.safetensors", shape=REGRESSION.shape)
    hz = loaded.predict(torch.zeros(30, 4), sounds[0].vector)
    assert hz.shape == (30,)
    with pytest.raises(InputError, match="found one of another recipe"):
        module.train(speech, replace(REGRESSION, steps=9), 1, tmp_path)


def test_model_that_is_not_here_is_told_before_speech_is_read(tmp_path, monkeypatch):
    from anonymization.network_training.train import train

    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path / "none"))
    with pytest.raises(InputError, match="models fetch hifigan-universal"):
        train([TrainingUtterance("u", "s", lambda: pytest.fail("was read"))], HIFIGAN, 1, tmp_path)


@pytest.mark.usefixtures("small_hifigan")
def test_files_of_generators_vocoder_and_units_make_speech(features, decoder, tmp_path, monkeypatch):
    from anonymization.network_training import generator as generator_module
    from anonymization.network_training import train as module
    from speech.conversion import content_decoder, joint_generator, source_filter
    from speech.vocoders.hifigan import Generator

    waves = [np.zeros(256 * len(each.spectrum), np.float32) for each in features]
    monkeypatch.setattr(module, "read_features", lambda *_, **__: features)
    monkeypatch.setattr(generator_module, "read_waves", lambda _: waves)
    monkeypatch.setattr(generator_module, "load_decoder", lambda _: decoder)
    speech = [TrainingUtterance(f"u{number}", f"s{number}", None) for number in range(len(features))]
    vocoder_card = module.train(speech, replace(VOCODER, steps=2), 1, tmp_path / "vocoder")
    assert "decoder_sha256" not in vocoder_card
    assert list(vocoder_card["losses"]) == ["mel spectrum", "power spectra"]
    vocoder = source_filter.load(tmp_path / "vocoder" / "weights.safetensors", shape=VOCODER.shape)
    assert vocoder.synthesize(np.zeros((7, 80), np.float32), np.zeros(7), np.ones(3, np.float32)).shape == (7 * 256,)
    wide = replace(HIFIGAN, steps=2, shape=JointHifiGanShape(width=99, blocks=9, groups=5))
    joint_card = module.train(speech, wide, 1, tmp_path / "joint")
    assert joint_card["recipe"]["shape"] == {"width": 8, "blocks": 2, "groups": 5}
    assert joint_card["decoder_sha256"] == module.SHIPPED.decoder.sha256
    converter, gan = joint_generator.load_hifigan(
        tmp_path / "joint" / "weights.safetensors",
        copy.deepcopy(decoder),
        JointHifiGanShape(**joint_card["recipe"]["shape"]),
        Generator(16),
    )
    [sound] = gan.synthesize([converter.convert(np.zeros((4, 6), np.float32), np.zeros(7), np.ones(3, np.float32), 0)])
    assert sound.shape == (7 * 256,)
    units_card = module.train(speech, replace(UNITS, steps=2), 1, tmp_path / "units")
    assert list(units_card["sha256"]) == ["weights.safetensors", "voices.safetensors"]
    converter = content_decoder.load(tmp_path / "units" / "weights.safetensors", shape=UNITS.shape)
    spectrum = converter.convert(np.zeros((4, 6), np.float32), np.zeros(7), np.ones(3, np.float32), 0)
    assert spectrum.shape == (7, 80)
    card = module.train(speech, replace(GENERATION, steps=4), 1, tmp_path)
    assert card["decoder_sha256"] == module.SHIPPED.decoder.sha256
    assert card["device"] == "cpu"
    assert list(card["losses"]) == ["spectrum", "adversarial", "features", "discriminators"]
    synthesizer = joint_generator.load(tmp_path / "weights.safetensors", shape=GENERATION.shape)
    assert synthesizer.synthesize(torch.zeros(7, 4), np.zeros(7), np.ones(3, np.float32)).shape == (7 * 256,)


def test_regressor_fits_the_content_of_its_decoder(sounds, tmp_path, monkeypatch):
    """One of another size: the regressor gets as many numbers a frame as it has."""
    from anonymization.network_training import regressor as regressor_module
    from anonymization.network_training import train as module
    from speech.conversion.content_decoder import ContentDecoder

    wide = replace(SHAPE, bottleneck=7)
    monkeypatch.setattr(module, "read_features", lambda *_, **__: sounds)
    monkeypatch.setattr(regressor_module, "load_decoder", lambda file: ContentDecoder(file.shape))
    speech = [TrainingUtterance(f"u{number}", f"s{number}", None) for number in range(len(sounds))]
    own = module.NetworkFile(tmp_path / "weights.safetensors", "0" * 64, is_shipped=False, shape=wide)
    card = module.train(speech, REGRESSION, 1, tmp_path, decoder=own)
    assert card["recipe"]["shape"]["content"] == 7
    assert card["decoder_sha256"] == "0" * 64
