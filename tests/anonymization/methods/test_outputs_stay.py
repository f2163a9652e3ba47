"""The outputs of each version of a method stay the same to the byte; a changed output needs a new version.

Hashes are of one second of an utterance of the demo; other kinds of processors round otherwise and are skipped. Made
again by ``python -m tests.anonymization.methods.test_outputs_stay``, which prints them.
"""

import hashlib
from pathlib import Path

import pytest
import soundfile

from anonymization.methods.contract import VoiceRequest, plans_voices, takes_targets
from anonymization.methods.registry import get_method, methods
from anonymization.methods.voices.pseudo_speakers import draw_voice, pseudo_speaker_key
from anonymization.methods.voices.targets import pool_of_samples, target_voice

CORPUS = Path(__file__).resolve().parents[3] / "demo" / "corpus"
# Of torch.backends.cpu.get_cpu_capability().
PROCESSOR = "AVX512"
NEURAL = ("t04", "t11", "knn-vc", "asr-bn", "b1-lite", "t18-noise", "ohnn")
HASHES = {
    ("mcadams-2022", "2"): "8d2fb051a0a584b5",
    ("mcadams-2024", "2"): "7d06a83e07335191",
    ("mcadams-2020", "2"): "1463daa8d155e0d7",
    ("pitch-shift-psola", "1"): "2f899ad6d021cf34",
    ("pitch-shift-vocoder", "1"): "7f76c5df24cc2c40",
    ("world-formant-f0", "1"): "627b4fbfb1c77727",
    ("t04", "1"): "69bf5a30e307d14f",
    ("t11", "1"): "92c207c0247cb5a7",
    ("knn-vc", "1"): "51b2bc7c9902b759",
    ("asr-bn", "1"): "117a36e6ac98d0fa",
    ("b1-lite", "1"): "8fbc74dfaf08166b",
    ("t18-noise", "1"): "7ee74a2b8c88a8d1",
    ("ohnn", "1"): "1d6f89a0f90ef444",
}


def read_utterance(name):
    samples, rate = soundfile.read(CORPUS / name[:3] / f"{name}.flac", dtype="int16")
    assert rate == 16_000
    return samples


def hash_output(name):
    """SHA-256, shortened, of a second of speech by a method."""
    method, rate = get_method(name), 16_000
    whole = read_utterance("d01-0006")
    key = pseudo_speaker_key(seed=7, role="trial", split="dev", speaker="d01")
    if takes_targets(method):
        method = method.prepare(pool_of_samples({"other": read_utterance("d02-0001")[: 4 * rate]}, rate))
        voice = target_voice("other")
    else:
        voice = draw_voice(method, VoiceRequest(key, "f", (lambda: (whole, rate),) if plans_voices(method) else ()))
    output = method.anonymize(whole[8000:24_000], rate, voice)
    return hashlib.sha256(output.astype("<i2").tobytes()).hexdigest()[:16]


@pytest.fixture
def processor():
    torch = pytest.importorskip("torch")
    found = torch.backends.cpu.get_cpu_capability()
    if found != PROCESSOR:
        pytest.skip(f"the hashes are of a processor with {PROCESSOR}; this one has {found}")


@pytest.mark.parametrize("name", [method.name for method in methods() if method.name not in NEURAL])
def test_output_of_signal_processing_stays(name, processor):
    if missing := get_method(name).missing():
        pytest.skip(missing)
    assert hash_output(name) == HASHES[name, get_method(name).version]


@pytest.mark.slow
@pytest.mark.parametrize("name", NEURAL)
def test_output_of_networks_stays(name, processor):
    if missing := get_method(name).missing():
        pytest.skip(missing)
    assert hash_output(name) == HASHES[name, get_method(name).version]


if __name__ == "__main__":
    for each in methods():
        print(f'    ("{each.name}", "{each.version}"): "{hash_output(each.name)}",', flush=True)
