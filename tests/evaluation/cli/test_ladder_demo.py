"""The ladder of the default attacker on the demo's speech and B2: originals are known, anonymised speech is less so."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from hashlib import sha256
from pathlib import Path

import pytest
import soundfile

from anonymization.methods.registry import get_method
from anonymization.methods.voices.pseudo_speakers import draw_pseudo_speaker
from tests.evaluation.engines import require_engine

DEMO = Path(__file__).parents[3] / "demo" / "corpus"
ENGINE = "wespeaker-resnet34"
PER_ROLE = 2  # utterances of a speaker


@pytest.fixture
def corpus(tmp_path):
    """The first utterances of each speaker, as they are and by B2, in data directories as Kaldi has them."""
    require_engine(ENGINE)
    method = get_method("mcadams-2022")
    kept = defaultdict(list)
    with (DEMO / "utterances.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if len(kept[row["speaker"], row["role"]]) < PER_ROLE:
                kept[row["speaker"], row["role"]].append(row)
    for side in ("original", "anonymised"):
        (tmp_path / side).mkdir()
    listed = defaultdict(list)
    for (speaker, role), rows in kept.items():
        # Trials have another voice than the enrolment of the same speaker, as the challenge has it.
        voice = draw_pseudo_speaker(sha256(f"{role} {speaker}".encode()).hexdigest(), method.parameters)
        for row in rows:
            samples, rate = soundfile.read(DEMO / row["path"], dtype="int16")
            name = row["utterance_id"]
            soundfile.write(tmp_path / "original" / f"{name}.wav", samples, rate)
            soundfile.write(tmp_path / "anonymised" / f"{name}.wav", method.anonymize(samples, rate, voice), rate)
            listed[row["data_set"]].append((name, speaker, row["gender"].lower()))
    for data_set, utterances in listed.items():
        _write_lists(tmp_path / data_set, utterances)
    return tmp_path


def _write_lists(folder, utterances):
    folder.mkdir()
    speakers = {speaker: gender for _, speaker, gender in utterances}
    lists = {
        "utt2spk": [f"{name} {speaker}" for name, speaker, _ in utterances],
        "spk2gender": [f"{speaker} {gender}" for speaker, gender in speakers.items()],
        "trials": [
            f"{model} {name} {'target' if model == speaker else 'nontarget'}"
            for name, speaker, _ in utterances
            for model in speakers
        ],
    }
    for name, lines in lists.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))


def test_original_speech_is_known_and_anonymised_speech_less(shell, corpus):
    trials = [corpus / "demo_trials_f", corpus / "demo_trials_m"]
    outcome = shell(
        "attack",
        "--enrolment",
        corpus / "demo_enrolls",
        "--trials",
        *trials,
        "--original",
        corpus / "original",
        "--anonymised",
        corpus / "anonymised",
        "--engine",
        ENGINE,
        "--out",
        corpus / "out",
        "--json",
    )
    assert outcome.code == 0, outcome.err
    numbers = json.loads(outcome.out)["numbers"]
    rates = {
        (one["data_set"], one["attack_model"]): one["value"]
        for one in numbers
        if (one["metric"], one["estimator"]) == ("eer", "kaldi")
    }
    for path in trials:
        own = rates[path.name, "unprotected"]
        assert own < rates[path.name, "lazy-informed"]
        assert own < rates[path.name, "ignorant"]
    extras = {(one["metric"], one["speech"]) for one in numbers if one["data_set"] == "demo_enrolls"}
    assert extras == {
        ("gender_preservation", "anonymised"),
        ("gender_preservation", "original"),
        ("inversion_recovery_rate", "anonymised"),
        ("inversion_chance", "anonymised"),
    }
