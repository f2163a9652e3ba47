"""F0 estimators by name: what each says, how it is named, and what they refuse."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

from common.errors import InputError
from evaluation.metrics.pitch import compare_pitch
from speech.pitch.estimators import ESTIMATORS, track_f0
from tests.recordings import RATE, read_samples

WORLD = ["dio", "harvest"]


@pytest.fixture(autouse=True)
def _with_pyworld(request):
    if "estimator" in request.fixturenames and request.getfixturevalue("estimator") in WORLD:
        pytest.importorskip("pyworld")


def voice(hz: np.ndarray | float, seconds: float, rate: int = RATE) -> np.ndarray:
    """Ten falling harmonics of a constant or moving F0."""
    phase = 2 * np.pi * np.cumsum(np.broadcast_to(hz, round(seconds * rate))) / rate
    return sum(0.3 / k * np.cos(k * phase) for k in range(1, 11))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_each_estimator_finds_the_pitch_of_a_voice(estimator):
    rate, hz = 44_100, 220.0
    track = track_f0(voice(hz, 1.0, rate), rate, estimator)
    voiced = track.hz[track.hz > 0]
    assert voiced.size > 0.8 * track.hz.size
    assert np.median(voiced) == pytest.approx(hz, rel=0.01)
    assert track.step_s == pytest.approx(0.01)
    assert track.times_s[-1] <= 1.0 + 1e-9


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_each_estimator_names_itself_with_versions(estimator):
    name = track_f0(voice(120, 0.2), RATE, estimator).estimator
    program, method = {
        "praat": ("praat 6.", "to-pitch-ac "),
        "dio": ("world (pyworld 0.", "dio+stonemask "),
        "harvest": ("world (pyworld 0.", "harvest "),
        "yaapt": ("yaapt (amfm_decompy 1.", ""),
    }[estimator]
    assert name.startswith(program)
    assert name.endswith(f") {method}75-500 Hz")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_each_estimator_takes_silence_for_unvoiced(estimator):
    assert not track_f0(np.zeros(RATE, np.int16), RATE, estimator).hz.any()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_each_estimator_needs_forty_milliseconds(estimator):
    assert track_f0(np.zeros(640, np.int16), RATE, estimator).hz.size >= 1
    with pytest.raises(InputError, match=r"at least 640 samples.*found 639"):
        track_f0(np.zeros(639, np.int16), RATE, estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("samples", "rate", "sentence"),
    [(np.zeros((700, 2), np.int16), RATE, "one channel"), (np.full(700, np.nan), RATE, "700 of 700")],
)
def test_each_estimator_refuses_what_is_no_speech_signal(estimator, samples, rate, sentence):
    with pytest.raises(InputError, match=sentence):
        track_f0(samples, rate, estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_each_estimator_follows_a_rising_and_falling_pitch_in_time(estimator):
    """A contour that came late would be low on the way up and high on the way down."""
    rising = np.linspace(100, 300, 2 * RATE)
    late = []
    for hz, slope in ((rising, 100), (rising[::-1], -100)):
        track = track_f0(voice(hz, 2.0), RATE, estimator)
        inside = (track.times_s > 0.1) & (track.times_s < 1.9)
        wanted = np.interp(track.times_s[inside], np.arange(hz.size) / RATE, hz)
        assert np.median(np.abs(track.hz[inside] / wanted - 1)) < 0.01
        late.append(np.median(wanted - track.hz[inside]) / slope)
    assert abs(np.mean(late)) < 0.005


def click_and_silence() -> np.ndarray:
    return np.eye(1, RATE, RATE // 2)[0]


@pytest.mark.parametrize("rate", [8000, 96000])
def test_yaapt_takes_the_shortest_voices_at_any_rate(rate):
    seconds = 0.04
    track = track_f0(voice(120, seconds, rate), rate, "yaapt")
    assert track.hz.size == round(100 * seconds) + 1
    assert np.median(track.hz[track.hz > 0]) == pytest.approx(120, rel=0.02)


@pytest.mark.parametrize(
    "samples",
    [np.full(RATE, 0.5), click_and_silence(), np.random.default_rng(1).normal(scale=0.1, size=640)],
    ids=["constant", "click", "short-noise"],
)
def test_yaapt_finds_no_pitch_where_there_is_none_and_warns_of_nothing(samples, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not track_f0(samples, RATE, "yaapt").hz.any()
    assert capsys.readouterr() == ("", "")


ABSENT = """
import sys
sys.modules["{module}"] = None
import numpy as np
from common.errors import InputError
from speech.pitch.estimators import track_f0
try:
    track_f0(np.zeros(1600), 16000, "{estimator}")
except InputError as error:
    print(error)
"""


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, check=True)


def test_an_absent_package_is_named_with_the_remedy():
    pytest.importorskip("pyworld")
    printed = run_python(ABSENT.format(module="pyworld", estimator="harvest")).stdout
    assert printed.startswith("F0 by WORLD needs the package pyworld, which is not installed here. Install it")
    printed = run_python(ABSENT.format(module="amfm_decompy", estimator="yaapt")).stdout
    assert printed.startswith("F0 by YAAPT needs the package amfm-decompy, which is not installed here. Install it")


def test_pkg_resources_is_not_needed():
    pytest.importorskip("pyworld")
    assert run_python(ABSENT.format(module="pkg_resources", estimator="harvest")).stdout == ""


def test_a_pair_may_differ_in_rate_and_length():
    moving = 150 + 30 * np.sin(np.arange(3 * RATE) / RATE * 4)
    original = voice(moving, 3.0)
    stretched = np.interp(np.linspace(0, 3, round(2.7 * 22050)), np.arange(3 * RATE) / RATE, moving)
    faster = voice(stretched, 2.7, 22050)
    pair = compare_pitch(original, faster, RATE, rate_anonymised=22050, realign=True)
    assert pair.correlation.rho > 0.95
    assert pair.realigned.rho > 0.95


def test_a_silent_side_gives_zero_and_a_short_one_is_named():
    pair = compare_pitch(voice(120, 1.0), np.zeros(RATE, np.int16), RATE, realign=True)
    assert (pair.correlation.rho, pair.correlation.rho_voiced) == (0.0, None)
    assert (pair.realigned.rho, pair.realigned.rho_voiced) == (0.0, None)
    with pytest.raises(InputError, match=r"^The anonymised utterance: .*at least 640 samples"):
        compare_pitch(voice(120, 1.0), np.zeros(100, np.int16), RATE)
    with pytest.raises(InputError, match=r"^The original utterance: "):
        compare_pitch(np.zeros(100, np.int16), voice(120, 1.0), RATE)


@pytest.mark.slow  # a published anonymiser, whose sound is not ours to publish; B2 and made-up melodies stay
def test_published_anonymised_speech_keeps_its_pitch(shared):
    name = "1272-128104-0000.flac"
    original = read_samples(shared / "speech" / "librispeech-dev-clean" / "1272" / name)
    anonymised = read_samples(next((shared / "speech" / "anonymised").rglob(name)))
    pair = compare_pitch(original, anonymised, RATE, realign=True)
    assert pair.correlation.rho > 0.3
    assert pair.realigned.rho_voiced > pair.correlation.rho_voiced
