"""The evaluator of 2020 and 2022: a training that ends with LDA and PLDA, and attacks that compare by them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError
from evaluation.attackers.back_ends import Plda
from evaluation.attackers.training.recipe import PRESETS
from evaluation.attackers.training.train import FEWEST_SPEAKERS, find_back_end_problem, train
from evaluation.attackers.training.trained_attacker import BACK_END, load_trained, read_back_end
from evaluation.attackers.trial_scores import score_pairs
from evaluation.objective_results.attack import average_voices
from evaluation.objective_results.vector_files import read_vectors
from speech.audio.files import write_flac16
from tests.evaluation.attackers.training.toys import TINY_XVECTOR, utterances
from tests.evaluation.commands import Shell, refusal

CHANGES = {"back_end": "plda", "centre": False, "lda_dimensions": 6, "loading": 0.01, "epochs": 1}
TINY_PLDA = TINY_XVECTOR.changed(**CHANGES)
SPEAKERS, EACH = 10, 3


@pytest.fixture(scope="module")
def speech():
    return utterances(SPEAKERS, EACH)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, speech):
    place = tmp_path_factory.mktemp("trained") / "seed-1"
    train(speech, TINY_PLDA, 1, place)
    return place


@pytest.fixture(scope="module")
def files(tmp_path_factory, speech) -> Path:
    """The speech as files and as Kaldi directories: two utterances of each speaker are enrolled, one is tested."""
    place = tmp_path_factory.mktemp("files")
    for one in speech:
        path = place / "speech" / one.source / f"{one.identifier}.flac"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_flac16(path, *one.read())
    for name, numbers in (("enrolls", "01"), ("trials", "2")):
        (place / name).mkdir()
        chosen = [one for one in speech if one.identifier[-1] in numbers]
        (place / name / "utt2spk").write_text("".join(f"{one.identifier} {one.source}\n" for one in chosen))
    lines = [
        f"s{model} {one.identifier} {'target' if f's{model}' == one.source else 'nontarget'}\n"
        for model in range(SPEAKERS)
        for one in chosen
    ]
    (place / "trials" / "trials").write_text("".join(lines))
    return place


def test_values_that_the_back_end_has_no_use_for_are_refused():
    with pytest.raises(InputError, match="lda_dimensions: expected 200 with the cosine"):
        TINY_XVECTOR.changed(lda_dimensions=50)
    with pytest.raises(InputError, match="centre: expected false with PLDA"):
        TINY_PLDA.changed(centre=True)


def test_back_end_is_fitted_on_whole_training_utterances(folder, speech):
    vectors = load_trained(folder).embed([one.read()[0] for one in speech], 16_000).astype(np.float64)
    expected = Plda.fit(vectors, [one.source for one in speech], lda_dimensions=6, loading=0.01)
    found = read_back_end(folder)
    assert found is not None
    np.testing.assert_allclose(
        score_pairs(vectors, vectors, found), score_pairs(vectors, vectors, expected), rtol=1e-4, atol=1e-4
    )


def test_other_or_missing_back_end_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    whole = (tmp_path / BACK_END).read_bytes()
    (tmp_path / BACK_END).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match=r"expected the back end that recipe\.json names by SHA-256"):
        read_back_end(tmp_path)
    (tmp_path / BACK_END).unlink()
    with pytest.raises(InputError, match=r"expected back_end\.npz beside recipe\.json, found none"):
        read_back_end(tmp_path)


@pytest.mark.parametrize(
    ("speakers", "each", "recipe", "said"),
    [
        (FEWEST_SPEAKERS - 1, 50, "2022-small", "expected at least 10 training speakers with two utterances each, fou"),
        (20, 20, "2022", "expected at least 532 utterances of 20 speakers, found 400"),
        (FEWEST_SPEAKERS, 2, "2022-small", ""),
        (2, 2, "x-vector", ""),
    ],
)
def test_too_few_speakers_or_utterances_are_refused_before_anything_is_trained(speakers, each, recipe, said):
    names = [f"s{speaker}" for speaker in range(speakers) for _ in range(each)]
    found = find_back_end_problem(names, PRESETS[recipe])
    assert said in found if said else not found


@pytest.mark.usefixtures("few_resamples", "light_encoder")
def test_attack_compares_by_the_back_end_of_the_training(capsys, tmp_path, folder, files):
    shell = Shell(capsys)
    audio = files / "speech"
    arguments = ("attack", "--enrolment", files / "enrolls", "--trials", files / "trials", "--anonymised", audio)
    arguments += ("--original", audio, "--trained", folder, "--trained-on", "anonymised", "--out", tmp_path, "--json")
    answer = shell(*arguments)
    assert answer.code == 0, answer.err
    rows = [one for one in answer.json["numbers"] if (one["metric"], one["estimator"]) == ("eer", "kaldi")]
    assert len({one["attack_model"] for one in rows}) == 1
    assert Path(answer.json["results"]).name == "results-trained-seed-1"
    stored = read_vectors(next(iter(tmp_path.glob("vectors-anonymised-trained-*.npz"))))
    enrolled = [stored[f"s4-{number}"] for number in "01"]
    back_end = read_back_end(folder)
    score = back_end.model_factors(np.mean(enrolled, axis=0, dtype=np.float64)[None], np.array([2]))
    score = float((score @ back_end.test_factors(stored["s5-2"][None].astype(np.float64)).T)[0, 0])
    found = [path for path in tmp_path.rglob("scores") if path.parent.name.count("_anon") == 2]
    lines = dict(line.rsplit(" ", 1) for line in found[0].read_text().splitlines())
    assert float(lines["s4 s5-2"]) == pytest.approx(score, rel=1e-4, abs=1e-3)
    cosine = shell(*arguments, "--preset", "2024")
    assert cosine.code == 0, cosine.err
    again = dict(line.rsplit(" ", 1) for line in found[0].read_text().splitlines())
    assert all(-1.001 <= float(value) <= 1.001 for value in again.values())


def test_voices_are_compared_by_the_back_end_as_single_utterances(folder, speech):
    """Protocol 2.7: the similarity matrices of 2022 hold scores of PLDA of the original evaluator."""
    vectors = load_trained(folder).embed([one.read()[0] for one in speech], 16_000)
    speakers = [one.source for one in speech]
    back_end = read_back_end(folder)
    found = average_voices(list(vectors), list(vectors), speakers, back_end)
    assert found.gain_db == pytest.approx(0)
    by_cosine = average_voices(list(vectors), list(vectors), speakers)
    assert not np.allclose(found.oo.values, by_cosine.oo.values)


def test_preset_2022_without_a_fitted_back_end_is_refused_before_anything_is_read(capsys, tmp_path, files):
    audio = files / "speech"
    arguments = ("attack", "--enrolment", files / "enrolls", "--trials", files / "trials", "--anonymised", audio)
    answer = Shell(capsys)(*arguments, "--original", audio, "--preset", "2022", "--out", tmp_path / "out")
    assert "Attack with an encoder whose training fits them (train-attacker, recipe 2022)" in refusal(answer)
    assert not (tmp_path / "out").exists()
