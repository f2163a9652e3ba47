"""The outputs of each version of a method stay the same to the byte; a changed output needs a new version.

Hashes are of one second of an utterance of the demo. Where libraries round by the kind of processor, there is one for
each kind on which it was made; an output is one of these, and on other kinds the test is skipped where it is none. The
number of threads changes none of them. Made again by ``python -m tests.anonymization.methods.test_outputs_stay``, which
prints them; of some methods, where they are named.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from anonymization.methods.contract import VoiceRequest, plans_voices, takes_targets
from anonymization.methods.registry import get_method, methods
from anonymization.methods.voices.pseudo_speakers import draw_voice, pseudo_speaker_key
from anonymization.methods.voices.targets import pool_of_samples, target_voice
from tests.anonymization.methods.networks import has_networks

CORPUS = Path(__file__).resolve().parents[3] / "demo" / "corpus"
NEURAL = tuple(method.name for method in methods() if has_networks(method))
EVERYWHERE = {
    ("mcadams-2022", "2"): "8d2fb051a0a584b5",
    ("mcadams-2024", "2"): "7d06a83e07335191",
    ("mcadams-2020", "2"): "1463daa8d155e0d7",
    ("pitch-shift-psola", "1"): "2f899ad6d021cf34",
    ("world-formant-f0", "1"): "627b4fbfb1c77727",
}
# Of those that round otherwise elsewhere, by vendor and torch.backends.cpu.get_cpu_capability().
BY_PROCESSOR = {
    "AuthenticAMD AVX2": {
        ("pitch-shift-vocoder", "1"): "7f76c5df24cc2c40",
        ("t04", "1"): "69bf5a30e307d14f",
        ("t11", "1"): "92c207c0247cb5a7",
        ("knn-vc", "1"): "b2ff98b2083ef88a",
        ("asr-bn", "1"): "70228e1ab2227f32",
        ("b1-lite", "1"): "0cb5dedfd8fd7bcb",
        ("t18-noise", "1"): "f300ad4d205ac58d",
        ("ohnn", "1"): "9f4bbb79284f4790",
        ("t18-asr", "1"): "851391e67ce11aaf",
        ("t40", "1"): "82b879711322e9f6",
        ("b1b", "1"): "73dda908023d503a",
        ("private-knn", "1"): "09f24ca1e714a8a3",
    },
    "AuthenticAMD AVX512": {
        ("pitch-shift-vocoder", "1"): "7f76c5df24cc2c40",
        ("t04", "1"): "69bf5a30e307d14f",
        ("t11", "1"): "92c207c0247cb5a7",
        ("knn-vc", "1"): "51b2bc7c9902b759",
        ("asr-bn", "1"): "117a36e6ac98d0fa",
        ("b1-lite", "1"): "8fbc74dfaf08166b",
        ("t18-noise", "1"): "7ee74a2b8c88a8d1",
        ("ohnn", "1"): "1d6f89a0f90ef444",
        ("t18-asr", "1"): "98bfc2ef1b5be75b",
        ("t40", "1"): "ac5aec32134e1af3",
        ("b1a", "2"): "052a8a034c89f811",
        ("b1b", "1"): "9a2c51357608c112",
        ("joint-hifigan", "1"): "7bb30daa2b1deda0",
        ("ssl-content", "1"): "f3ab6340e43ecf26",
        ("b1-world", "2"): "582c3d48f43bc2a8",
        ("private-knn", "1"): "f15e5cdf0436da6f",
    },
    "AuthenticAMD AVX512, family 25": {("private-knn", "1"): "b609a1b4473eb449"},
    "GenuineIntel AVX512": {
        ("pitch-shift-vocoder", "1"): "4adbbb70d451171c",
        ("t04", "1"): "8ce9f85658839430",
        ("t11", "1"): "b17caa0d53a3cd37",
        ("knn-vc", "1"): "44de4407a330be4b",
        ("asr-bn", "1"): "ff83d70920e890d7",
        ("b1-lite", "1"): "1b7a9a0ce49f7d1e",
        ("t18-noise", "1"): "96b63f154e99510c",
        ("ohnn", "1"): "5e0b6b58fa7e8dd6",
        ("t18-asr", "1"): "300604b9791e01a7",
        ("t40", "1"): "d5f39c9336af2522",
        ("b1b", "1"): "d9e96944103efb17",
        ("joint-hifigan", "1"): "cfc856188a231814",
        ("ssl-content", "1"): "6502946fb9c60780",
        ("private-knn", "1"): "15087472431d24d2",
    },
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


def name_processor():
    """Its vendor and what torch uses of it; libraries choose how they compute by both."""
    torch = pytest.importorskip("torch")
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    vendor = next((line.split(":")[1].strip() for line in lines if line.startswith("vendor_id")), "other")
    return f"{vendor} {torch.backends.cpu.get_cpu_capability()}"


def check_output(name):
    """It is that of this kind of processor, or of another: two of a kind can round differently, too."""
    method = get_method(name)
    if missing := method.missing():
        pytest.skip(missing)
    key = name, method.version
    found = hash_output(name)
    if key in EVERYWHERE:
        assert found == EVERYWHERE[key]
        return
    known = {processor: hashes[key] for processor, hashes in BY_PROCESSOR.items() if key in hashes}
    if found not in known.values() and name_processor() not in known:
        pytest.skip(f"no hash of {name} was made on a processor such as this one ({name_processor()})")
    assert found in known.values()


def test_every_version_of_a_method_has_a_hash():
    made = EVERYWHERE.keys() | set().union(*BY_PROCESSOR.values())
    assert {(method.name, method.version) for method in methods()} == made


@pytest.mark.parametrize("name", [method.name for method in methods() if method.name not in NEURAL])
def test_output_of_signal_processing_stays(name):
    check_output(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NEURAL)
def test_output_of_networks_stays(name):
    check_output(name)


@pytest.mark.slow
def test_number_of_threads_changes_no_output():
    """Libraries take it from the environment as they are loaded, so each number needs a process of its own."""
    names = [name for name in ("t04", "ohnn") if not get_method(name).missing()]
    if not names:
        pytest.skip(get_method("t04").missing())

    def print_hashes(threads):
        command = [sys.executable, "-m", "tests.anonymization.methods.test_outputs_stay", *names]
        variables = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=variables).stdout

    one, several = print_hashes("1"), print_hashes("4")
    assert [f'("{name}", ' in one for name in names] == [True] * len(names)
    assert one == several


if __name__ == "__main__":
    print(f'    "{name_processor()}": {{')
    for each in map(get_method, sys.argv[1:] or [method.name for method in methods()]):
        print(f'        ("{each.name}", "{each.version}"): "{hash_output(each.name)}",', flush=True)
