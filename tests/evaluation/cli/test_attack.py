"""The command `attack`: vectors, scores in the official layout, EERs; real vectors and trials where they are here."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest
import soundfile

from common.errors import InputError
from common.lock import lock_folder
from evaluation.cli.attack import LOCK
from evaluation.formats.scores import read_scores
from evaluation.objective_results import vector_files
from evaluation.objective_results.vector_files import read_vectors, write_vectors
from speech.encoders import long_term_spectrum, registry
from tests.evaluation.formant_speech import RATE_HZ, voice

pytestmark = pytest.mark.usefixtures("few_resamples")
SPECTRUM = "long-term-spectrum"


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def corpus(tmp_path):
    """Four speakers with two enrolment and two trial utterances each; anonymised, everybody has another's voice."""
    names = [(speaker, sentence) for speaker in range(4) for sentence in range(4)]
    for speaker, sentence in names:
        for form, heard in (("original", speaker), ("anonymised", (speaker + 1) % 4)):
            path = tmp_path / form / f"s{speaker}-{sentence}.wav"
            path.parent.mkdir(exist_ok=True)
            soundfile.write(path, voice(heard, sentence), RATE_HZ)
    listed = [f"s{speaker}-{sentence} s{speaker}" for speaker, sentence in names]
    write(tmp_path / "data/enrolls/utt2spk", [line for line in listed if line[3] in "01"])
    write(tmp_path / "data/trials_f/utt2spk", [line for line in listed if line[3] in "23"])
    write(tmp_path / "data/trials_f/spk2gender", [f"s{speaker} f" for speaker in range(4)])
    pairs = [(model, *line.split()) for line in listed if line[3] in "23" for model in ("s0", "s1", "s2", "s3")]
    lines = [f"{model} {utterance} {'target' if model == own else 'nontarget'}" for model, utterance, own in pairs]
    write(tmp_path / "data/trials_f/trials", lines)
    return tmp_path


def attack(shell, corpus, *more, engine=SPECTRUM):
    data = corpus / "data"
    return shell(
        "attack",
        "--enrolment",
        data / "enrolls",
        "--trials",
        data / "trials_f",
        "--original",
        corpus / "original",
        "--anonymised",
        corpus / "anonymised",
        "--engine",
        engine,
        "--out",
        corpus / "out",
        "--json",
        *more,
    )


def number(outcome, attack_model, metric="eer", estimator="kaldi"):
    [found] = [
        one
        for one in json.loads(outcome.out)["numbers"]
        if (one["attack_model"], one["metric"], one["estimator"]) == (attack_model, metric, estimator)
    ]
    return found


def test_table_shows_what_the_eer_hides_with_intervals(shell, corpus):
    data = corpus / "data"
    named = ["--enrolment", data / "enrolls", "--trials", data / "trials_f", "--out", corpus / "out"]
    audio = ["--original", corpus / "original", "--anonymised", corpus / "anonymised", "--engine", SPECTRUM]
    outcome = shell("attack", *named, *audio)
    assert outcome.code == 0, outcome.err
    again = attack(shell, corpus)
    found = {
        model: {one: number(again, model, one, "") for one in ("rank_disclosure", "worst_speaker_eer")}
        for model in ("unprotected", "ignorant", "lazy-informed")
    }
    lines = outcome.out.splitlines()
    [head] = [at for at, line in enumerate(lines) if line.startswith("trials_f, beyond the EER")]
    assert lines[head].split()[-3:] == list(found)
    rows = {line[:44].strip(): line[44:].split() for line in lines[head + 2 :]}
    assert rows["Rank disclosure, bit"] == [f"{one['rank_disclosure']['value']:.2f}" for one in found.values()]
    assert rows["Worst speaker, EER, %"] == [f"{one['worst_speaker_eer']['value']:.1f}" for one in found.values()]
    assert any(line.startswith("  95 % interval") for line in lines[head:])


def test_mean_f0_alone_is_an_attacker(shell, corpus):
    outcome = attack(shell, corpus, engine="mean-f0")
    assert outcome.code == 0, outcome.err
    table = read_scores(corpus / "out/results-mean-f0.orig/ASV-enrolls-trials_f/scores")
    vectors = read_vectors(corpus / "out/vectors-original-mean-f0@1.npz")
    pair = table.pairs[0].decode().split(" ")
    model = np.mean([vectors[f"{pair[0]}-{one}"][0] for one in (0, 1)])
    assert table.scores[0] == pytest.approx(-abs(model - vectors[pair[1]][0]), abs=1e-4)
    kinds = {one["metric"] for one in json.loads(outcome.out)["numbers"]}
    assert "rank_disclosure" in kinds
    assert not kinds & {"gain_of_voice_distinctiveness", "inversion_recovery", "gender_preservation"}


def test_words_alone_are_an_attacker_and_none_of_the_anonymised_are_needed(shell, corpus):
    data = corpus / "data"
    said = {"s0": "ships and sails", "s1": "stones on hills", "s2": "rain in spring", "s3": "bread with salt"}
    for part in ("enrolls", "trials_f"):
        names = [line.split() for line in (data / part / "utt2spk").read_text().splitlines()]
        write(data / part / "text", [f"{name} {said[speaker]} {name[-1]}" for name, speaker in names])
    named = ["attack", "--enrolment", data / "enrolls", "--trials", data / "trials_f", "--out", corpus / "out"]
    outcome = shell(*named, "--engine", "words", "--json")
    assert outcome.code == 0, outcome.err
    assert number(outcome, "unprotected")["value"] == 0
    assert {one["attack_model"] for one in json.loads(outcome.out)["numbers"]} == {"unprotected"}
    heard = corpus / "heard.txt"
    write(heard, [f"{name}-{one} {said['s0']}" for name in said for one in range(4)])
    outcome = shell(*named, "--engine", "words", "--anonymised", heard, "--json")
    assert number(outcome, "ignorant")["value"] == 50
    recordings = corpus / "recordings"
    recordings.mkdir()
    refused = shell(*named, "--engine", "words", "--original", recordings, "--anonymised", recordings)
    assert "recordings/text: expected a text file (utterance and words in each line), found none. Name" in refused.err
    heard.rename(recordings / "text")
    outcome = shell(*named, "--engine", "words", "--anonymised", recordings, "--json")
    assert number(outcome, "ignorant")["value"] == 50
    (data / "enrolls/text").unlink()
    refused = shell(*named, "--engine", "words")
    assert refused.code == 2
    assert "expected a text file" in refused.err


def test_a_trait_takes_no_preset(shell, corpus):
    outcome = attack(shell, corpus, "--preset", "2024", engine="mean-f0")
    assert outcome.code == 2
    assert "mean-f0 is a trait" in outcome.err


@pytest.fixture
def heard(monkeypatch):
    """How many utterances encoders were given."""
    counted = []

    def load(name, device="cpu"):
        encoder = registry.find_engine(name).load(device)

        class Counting:
            def embed(self, utterances, rate_hz):
                counted.extend(utterances)
                return encoder.embed(utterances, rate_hz)

        return Counting()

    monkeypatch.setattr("evaluation.cli.attack.registry.load", load)
    return counted


def test_an_interrupted_attack_keeps_what_it_has(shell, corpus, heard, monkeypatch):
    def stopped(self, name, path):
        if name == "s2-0":
            raise KeyboardInterrupt
        return take(self, name, path)

    take = vector_files._Extraction.take
    with monkeypatch.context() as patched:
        patched.setattr(vector_files._Extraction, "take", stopped)
        assert attack(shell, corpus).code == 130
    assert len(heard) == 8
    assert attack(shell, corpus).code == 0
    assert len(heard) == 32


def test_kept_vectors_that_are_damaged_say_so(shell, corpus):
    attack(shell, corpus)
    kept = corpus / "out" / f"vectors-original-{long_term_spectrum.ENGINE.key}.npz"
    kept.write_bytes(kept.read_bytes()[:1000])
    outcome = attack(shell, corpus)
    assert outcome.code == 2
    assert outcome.err.startswith(f"{kept}: expected an npz with ids and vectors, found another or a damaged file")


def test_a_full_disk_is_a_sentence(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "vectors.npz"
    write_vectors(path, {"u1": np.ones(2, np.float32)})
    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_vectors(path, {"u2": np.ones(2, np.float32)})
    assert [one.name for one in tmp_path.iterdir()] == ["vectors.npz"]
    assert set(read_vectors(path)) == {"u1"}


def test_two_attacks_never_write_into_one_folder(shell, corpus):
    with lock_folder(corpus / "out", LOCK):
        outcome = attack(shell, corpus)
    assert outcome.code == 2
    assert "expected to be the only writer" in outcome.err


def test_models_that_nobody_is_enrolled_for_are_named(shell, corpus):
    trials = corpus / "data/trials_f/trials"
    lines = trials.read_text().splitlines()
    write(trials, [*lines, "nobody s0-2 nontarget"])
    outcome = attack(shell, corpus)
    assert outcome.code == 1
    [problem] = [one for one in json.loads(outcome.out)["problems"] if one["code"] == "unknown-model"]
    assert problem["found"] == "1 of 5 that are not, such as nobody"
    write(trials, ["nobody s0-2 nontarget", "nobody s0-3 target"])
    assert attack(shell, corpus).code == 2


def test_what_cannot_be_used_is_named_and_the_rest_measured(shell, corpus):
    (corpus / "anonymised/s0-2.wav").unlink()
    soundfile.write(corpus / "anonymised/s1-2.wav", np.zeros(RATE_HZ, np.int16), RATE_HZ)
    (corpus / "anonymised/s2-2.wav").write_bytes(b"no sound")
    outcome = attack(shell, corpus)
    assert outcome.code == 1
    named = {one["file"] for one in json.loads(outcome.out)["problems"] if one["code"] == "unusable-recording"}
    assert named == {"s0-2", "s1-2", "s2-2"}
    assert number(outcome, "unprotected")["n"] == 32
    assert number(outcome, "ignorant")["n"] == 20
    assert number(outcome, "unprotected")["note"] == ""
    assert number(outcome, "ignorant")["note"] == "in part: 12 trials without a score"
    assert any("12 trials without a score" in one["reason"] for one in json.loads(outcome.out)["missing"])


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda at: (at / "data/trials_f/trials").unlink(), "expected a trials file"),
        (lambda at: [path.unlink() for path in (at / "anonymised").iterdir()], "expected WAV or FLAC files"),
        (lambda at: write(at / "data/trials_f/utt2spk", ["s0-2 s0"]), "expected every trial utterance"),
    ],
)
def test_what_is_missing_is_said_before_any_work(shell, corpus, spoil, sentence):
    spoil(corpus)
    outcome = attack(shell, corpus)
    assert outcome.code == 2
    assert sentence in outcome.err
    assert not (corpus / "out").exists()


def test_engine_that_is_unknown_or_without_weights_says_so(shell, corpus, monkeypatch, tmp_path):
    assert "Expected the name of an encoder" in attack(shell, corpus, engine="nobody").err
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path / "no-models"))
    outcome = attack(shell, corpus, engine="wespeaker-resnet34")
    assert outcome.code == 2
    assert outcome.err.strip()
    assert not (corpus / "out").exists()
