"""What holds for built-in methods that keep the duration: the contract, any audio, memory that does not run away."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anonymization.conformance import check_method, make_targets
from anonymization.methods.contract import MethodError, keeps_duration, takes_targets
from anonymization.methods.registry import get_method, methods
from anonymization.methods.voices.pseudo_speakers import draw_pseudo_speaker, pseudo_speaker_key
from anonymization.methods.voices.targets import target_voice
from common.problems import Severity
from tests.anonymization.methods.networks import has_networks

ROOT = Path(__file__).resolve().parents[3]
RATE = 16_000
# Two hours are 115.2 million samples: below 3 GB with input and output.
MOST_BYTES_A_SAMPLE = 24


# Networks take longer, and synthesised speech has other lengths; their tests are their own.
@pytest.fixture(params=[method.name for method in methods() if keeps_duration(method) and not has_networks(method)])
def method(request):
    found = get_method(request.param)
    if missing := found.missing():
        pytest.skip(missing)
    return with_targets(found)


@pytest.fixture
def speech(vowels):
    return vowels[:24_000]


def with_targets(method):
    return method.prepare(make_targets(RATE)) if takes_targets(method) else method


def voice_of(method):
    if takes_targets(method):
        return target_voice("lower")
    key = pseudo_speaker_key(seed=1, role="trial", split="dev", speaker="a")
    return draw_pseudo_speaker(key, method.parameters)


def test_method_keeps_the_contract(method, speech):
    problems = check_method(method, speech=speech[:16_000])
    assert [problem.sentence() for problem in problems if problem.severity is not Severity.NOTE] == []


def test_method_takes_a_view_that_is_neither_contiguous_nor_writable(method, speech):
    """Such as one channel of a file."""
    both = np.stack([speech, speech[::-1]], axis=1)
    both.setflags(write=False)
    output = method.anonymize(both[:, 0], RATE, voice_of(method))
    assert np.array_equal(output, method.anonymize(speech, RATE, voice_of(method)))


@pytest.mark.parametrize("rate", [8_000, 44_100])
def test_another_rate_gives_a_result_or_words_that_name_both(method, speech, rate):
    refusal = ""
    try:
        output = method.anonymize(speech, rate, voice_of(method))
    except MethodError as error:
        refusal = str(error)
    else:
        assert output.shape == speech.shape
        assert output.any()
    assert not refusal or re.search(f"16000 Hz.*{rate} Hz.*Resample", refusal)


PEAKS = """
import json, resource, sys
import numpy as np
from anonymization.conformance import make_vowel
from anonymization.methods.registry import get_method
from tests.anonymization.methods.test_every_method import voice_of, with_targets
method, peaks = with_targets(get_method(sys.argv[1])), []
for minutes in map(float, sys.argv[2:]):
    output = method.anonymize(np.resize(make_vowel(16_000), round(minutes * 960_000)), 16_000, voice_of(method))
    peaks.append((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, bool(output[-48_000:].any()), output.size))
    del output
print(json.dumps(peaks))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is counted in other units elsewhere")
@pytest.mark.parametrize("method", ["mcadams-2022"], indirect=True)
def test_memory_grows_with_the_samples_alone(method):
    """The peak of a long recording over that of a short one: two hours then fit into 3 GB, input and output too."""
    short, long = 0.5, 4
    done = subprocess.run(
        [sys.executable, "-c", PEAKS, method.name, str(short), str(long)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    (low, _, _), (high, is_spoken_to_the_end, n_samples) = json.loads(done.stdout)
    assert is_spoken_to_the_end
    assert n_samples == long * 960_000
    # Half a minute does not fill every buffer: what methods hold beside the samples may grow by 40 MB.
    assert (high - low) * 1024 < MOST_BYTES_A_SAMPLE * n_samples + 40e6
