"""Phone recognisers: they learn, go on after a kill to the same weights, and are compared over the same utterances."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from common.errors import InputError
from evaluation.attackers.training.corpus import TrainingUtterance, read_audio
from evaluation.formats.results import Speech
from evaluation.objective_results.phones import compare_phones
from evaluation.recognizer_training.frames import SpokenText, choose_speech, read_spoken_texts
from speech.recognizers.phone_recipe import INPUTS, PhoneRecipe
from speech.recognizers.phones import spell_phones

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed here")
ORIGINAL, ANONYMISED = Speech.ORIGINAL, Speech.ANONYMISED
RECIPE = PhoneRecipe(width=32, blocks=1, steps=60, batch_s=30, learning_rate=0.01, held_out=0.1)
ALPHABET = "abcdefgh"


def make_material(n, seed=1, shift=0.0):
    """Texts of drawn phones; each phone has four frames of its own vector, and noise."""
    vectors = np.random.default_rng(0).standard_normal((len(ALPHABET), INPUTS)) + shift
    draw = np.random.default_rng(seed)
    found = []
    for number in range(n):
        phones = draw.integers(len(ALPHABET), size=int(draw.integers(3, 12)))
        frames = np.repeat(vectors[phones], 4, axis=0) + 0.3 * draw.standard_normal((4 * len(phones), INPUTS))
        found.append(SpokenText(f"u{number}", frames.astype(np.float16), " ".join(ALPHABET[one] for one in phones)))
    return found


def error_rate(network, material):
    from evaluation.metrics.word_errors import count_word_errors

    heard = dict(zip((one.name for one in material), network.recognise([one.frames for one in material]), strict=True))
    return count_word_errors({one.name: one.phones for one in material}, heard).honest.error_rate


@pytest.mark.parametrize(
    ("text", "phones"),
    [
        ("THE CAT, twice", "ð ə k æ t t w I s"),
        # a flap counts as t
        ("", ""),
    ],
)
def test_texts_are_spelt_in_phones(text, phones):
    pytest.importorskip("hibari", reason="the dictionary is not installed here")
    assert spell_phones(text) == phones


def test_recogniser_learns_and_is_read_back_as_it_was(tmp_path):
    from evaluation.recognizer_training.training import train_phones
    from speech.recognizers.phone_network import load, save

    told = []
    fitted = train_phones(make_material(60), RECIPE, 1, progress=lambda done, total: told.append((done, total)))
    test = make_material(20, seed=2)
    assert error_rate(fitted.network, test) < 0.2
    assert fitted.epochs[-1].loss < fitted.epochs[0].loss / 2
    assert fitted.epochs[-1].error_rate is not None
    assert told[0] == (0, len(fitted.epochs))
    assert told[-1] == (len(fitted.epochs), len(fitted.epochs))
    save(fitted.network, tmp_path / "phones.safetensors")
    read = load(tmp_path / "phones.safetensors")
    assert (read.phones, read.recipe) == (tuple(ALPHABET), RECIPE)
    frames = [one.frames for one in test]
    assert read.recognise(frames) == fitted.network.recognise(frames)
    (tmp_path / "other.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(InputError, match=r"other\.safetensors: expected the weights of a phone recogniser"):
        load(tmp_path / "other.safetensors")


def test_frames_belong_to_the_nearest_output_that_names_a_phone(monkeypatch):
    from speech.recognizers.phone_network import PhoneNetwork

    network = PhoneNetwork(RECIPE, ALPHABET)
    outputs = np.array([0, 0, 0, 0, 2, 0, 0, 1, 1, 0, 0, 0, 0, 0])
    monkeypatch.setattr(PhoneNetwork, "_find_likeliest", lambda *_: outputs)
    labels = network.label_frames(np.zeros((27, INPUTS)))
    by_output = [0, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0]  # three outputs to each side; the nearer one between two
    assert labels.tolist() == np.repeat(by_output, 2)[:27].tolist()
    monkeypatch.setattr(PhoneNetwork, "_find_likeliest", lambda *_: np.zeros(14, int))
    assert not network.label_frames(np.zeros((27, INPUTS))).any()


def test_padding_behind_an_utterance_changes_nothing():
    from speech.recognizers.phone_network import PhoneNetwork

    torch.manual_seed(0)
    network = PhoneNetwork(RECIPE, ALPHABET).eval()
    frames = torch.randn(1, 15, INPUTS)
    behind = torch.cat([frames, torch.randn(1, 26, INPUTS)], dim=1)
    lengths = torch.tensor([15])
    with torch.inference_mode():
        alone, padded = network(frames, lengths), network(behind, lengths)
    assert alone.shape == (1, 8, len(ALPHABET) + 1)
    torch.testing.assert_close(padded[:, :8], alone)


def test_training_that_was_killed_goes_on_to_the_same_weights(tmp_path):
    from evaluation.recognizer_training.training import train_phones

    recipe, material = replace(RECIPE, steps=16), make_material(60)
    train = partial(train_phones, material, recipe, 1)
    whole = train(tmp_path / "whole.pt")

    def kill(done, _):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "part.pt", kill)
    again = train(tmp_path / "part.pt")
    assert again.epochs == whole.epochs
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, again.network.state_dict()[name]), name
    with pytest.raises(InputError, match="found one of another recipe, seed or speech"):
        train_phones(material, recipe, 2, tmp_path / "part.pt")


def test_training_does_not_go_on_with_speech_that_differs_in_one_frame(tmp_path):
    from evaluation.recognizer_training.training import train_phones

    recipe, material = replace(RECIPE, steps=4), make_material(60)
    train_phones(material, recipe, 1, tmp_path / "part.pt")
    material[5].frames[1] += 1
    with pytest.raises(InputError, match="found one of another recipe, seed or speech"):
        train_phones(material, recipe, 1, tmp_path / "part.pt")


def test_what_cannot_be_aligned_is_left_out_and_too_little_is_refused():
    from evaluation.recognizer_training.training import train_phones

    usable, short = make_material(20), SpokenText("short", np.zeros((2, INPUTS), np.float16), "a b c")
    twice = SpokenText("twice", np.zeros((4, INPUTS), np.float16), "a a")
    assert [one.is_possible for one in (usable[0], short, twice, replace(twice, phones=""))] == [
        True,
        False,
        False,
        False,
    ]
    assert replace(twice, phones="a b").is_possible
    with pytest.raises(InputError, match="at least 20 utterances with transcripts; found 19 of 21"):
        train_phones([*usable[:19], short, twice], RECIPE, 1)


def test_recipe_names_all_faults():
    with pytest.raises(InputError) as refused:
        PhoneRecipe().changed(layer=7, width="wide", depth=3, learning_rate="nan")
    for sentence in (
        "layer: expected 1 to 6, found 7.",
        "width: expected a whole number, such as 256, found “wide”.",
        "found “depth”",
        "learning_rate: expected 1e-05 to 0.1, found nan.",
    ):
        assert sentence in str(refused.value)
    assert PhoneRecipe.from_json(RECIPE.to_json()) == RECIPE


def test_no_more_speech_is_drawn_than_the_recipe_uses():
    utterances = [TrainingUtterance(f"u{number}", "s", lambda: None) for number in range(100)]
    recipe = PhoneRecipe(most_s=60)
    chosen = choose_speech(utterances, {one.identifier: 7.0 for one in utterances}, recipe, 1)
    assert len(chosen) == 8  # 56 s
    assert [one.identifier for one in chosen] == sorted(
        (one.identifier for one in chosen), key=lambda name: int(name[1:])
    )
    assert chosen == choose_speech(utterances, {one.identifier: 7.0 for one in utterances}, recipe, 1)


def test_the_three_rows_are_counted_over_the_same_utterances():
    references = {"a1": "x y z u", "a2": "x y", "b1": "x y z u", "b2": "x x", "lost": "x y"}
    ceiling = dict(references)
    frozen = {"a1": "x", "a2": "x y", "b1": "x y z", "b2": "x x"}  # 4 of 12 wrong
    retrained = references | {"a1": "x y z"}  # 1 of 12
    heard = {(ORIGINAL, ORIGINAL): ceiling, (ORIGINAL, ANONYMISED): frozen, (ANONYMISED, ANONYMISED): retrained}
    found = compare_phones(references, heard, {name: name[0] for name in references})
    assert {row.name: (row.counts.errors, row.counts.reference_words) for row in found.rows} == {
        "ceiling": (0, 12),
        "retrained": (1, 12),
        "frozen": (4, 12),
    }
    assert found.regained == pytest.approx(0.75)
    assert (found.utterances, found.speakers) == (4, 2)
    assert found.damage.estimate == pytest.approx(4 / 12)
    assert found.retraining.estimate == pytest.approx(-3 / 12)
    same = heard | {(ORIGINAL, ANONYMISED): ceiling}
    assert compare_phones(references, same, {}).regained is None
    with pytest.raises(InputError):
        compare_phones(references, heard | {(ANONYMISED, ANONYMISED): {}}, {})


def test_a_recording_that_cannot_be_used_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("evaluation.recognizer_training.frames.phones.spell_phones", lambda text: " ".join(text))
    (tmp_path / "bad.flac").write_bytes(b"")
    bad = TrainingUtterance("bad", "s", partial(read_audio, tmp_path / "bad.flac"))
    silent = TrainingUtterance("no text", "s", partial(read_audio, tmp_path / "bad.flac"))
    with pytest.raises(InputError, match=r"bad\.flac"):
        read_spoken_texts([bad, silent], {"bad": "abc"}, tmp_path / "frames", RECIPE)
    told = []
    assert read_spoken_texts([bad], {"bad": "abc"}, tmp_path / "frames", RECIPE, refuse=told.append) == []
    assert len(told) == 1
