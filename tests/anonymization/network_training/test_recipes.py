"""Recipes and their sizes, the cards of what ships, and the command that trains, on real speech."""

import hashlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from anonymization.network_training.recipe import explain_values, read_recipes, read_sizes
from common.errors import InputError
from portal.client.main import main

torch = pytest.importorskip("torch", reason="training needs torch, which is not installed here")


def test_card_beside_the_weights_that_ship_is_theirs():
    """Recipe, hash and decoder: the command that the documentation names made them."""
    from anonymization.methods.content_decoder import network_files as module

    recipes = read_recipes()
    for path in module.SHA256.keys() - {module.VOICES}:
        card = json.loads(path.with_name("card.json").read_text())
        assert card["sha256"][path.name] == module.SHA256[path], path
        assert card["recipe"] == recipes[card["recipe"]["name"]].as_dict(), path
        assert card.get("decoder_sha256", module.SHA256[module.WEIGHTS]) == module.SHA256[module.WEIGHTS], path


def test_map_is_measured_on_speakers_who_were_held_out_and_its_card_says_so(tmp_path, monkeypatch, capsys):
    """Each speaker is a level of sound, which features and vectors both tell."""
    from speech.encoders import registry
    from speech.features import whisper_layers

    class Level:
        def encode(self, utterances, rate_hz, layers):  # noqa: ARG002 - as Whisper has it
            return [np.full((1, -(-one.size // 320), 512), one[0] / 1000, np.float32) for one in utterances]

        def embed(self, utterances, rate_hz):  # noqa: ARG002 - as an encoder has it
            angle = np.array([one[0] / 1000 for one in utterances])
            vectors = np.zeros((len(utterances), 256), np.float32)
            vectors[:, 0], vectors[:, 1] = np.cos(angle), np.sin(angle)
            return vectors

    monkeypatch.setattr(whisper_layers, "load", Level)
    monkeypatch.setattr(registry, "load", lambda _: Level())
    (tmp_path / "speech").mkdir()
    for number in range(12):
        folder = tmp_path / "speech" / f"s{number}"
        folder.mkdir()
        soundfile.write(folder / f"u{number}.wav", np.full(16_000 * 4, 100 * (number + 1), np.int16), 16_000)
    call = ["train-network", "recognizer-map", str(tmp_path / "out"), "--data", str(tmp_path / "speech")]
    assert main([*call, "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["data"] == {"utterances": 12, "speakers": 12, "seconds": 48.0, "licence": ""}
    found = card["held_out"]
    assert found["pieces"] == 1
    assert found["cosine"] > 0.99 > found["null_cosine"]
    weights = (tmp_path / "out" / "weights.safetensors").read_bytes()
    assert card["sha256"] == {"weights.safetensors": hashlib.sha256(weights).hexdigest()}
    assert main(call) == 0
    assert "on 1 pieces of speakers who were held out, the cosine to their vectors is" in capsys.readouterr().out
    for number in range(4):
        shutil.rmtree(tmp_path / "speech" / f"s{number}")
    assert main([*call[:2], str(tmp_path / "few"), "--data", str(tmp_path / "speech")]) == 2
    assert "found 8. Add recordings of other speakers." in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in read_recipes() if "full" in read_sizes(name)])
def test_full_size_is_larger_needs_a_card_and_other_values_go_with_it(name):
    small, full = read_recipes()[name], read_recipes()[name].changed(size="full", steps=7)
    assert full.steps == 7
    assert full.shape.width > small.shape.width
    assert type(full.shape) is type(small.shape)
    assert full.needs_card
    assert small.changed(size="small") == small
    assert small.needs_card == (name == "joint-nsf-hifigan")
    assert replace(full, shape=small.shape, steps=small.steps).changed() != full
    with pytest.raises(InputError, match="Expected size as small or full, found “huge”"):
        small.changed(size="huge")


def test_recipe_of_one_size_says_so():
    with pytest.raises(InputError, match="Expected size as small, found “full”"):
        read_recipes()["recognizer-map"].changed(size="full")


def test_all_values_that_are_none_are_named():
    with pytest.raises(InputError) as error:
        read_recipes()["content-decoder"].changed(step=3, steps="many", decay=1)
    sentence = str(error.value)
    assert "found “step”" in sentence
    assert "steps: expected a whole number, such as 5000, found “many”" in sentence
    assert "decay: expected 0 to 0.9999, found 1" in sentence


def test_every_number_of_a_recipe_says_what_it_means():
    recipes = read_recipes()
    explained = {(one.name, recipe) for one in explain_values() for recipe in one.recipes or recipes}
    for recipe in recipes.values():
        numbers = [name for name, value in recipe.as_dict().items() if isinstance(value, int | float)]
        assert {(name, recipe.name) for name in numbers} <= explained
        assert recipe.changed(**{name: getattr(recipe, name) for name in numbers}) == recipe
