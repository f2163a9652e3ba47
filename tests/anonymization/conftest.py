"""Sound to try the methods on, made here."""

import numpy as np
import pytest

from anonymization.methods import registry


def make_vowels(duration_s, seed):
    """Pulse trains through three drifting resonances, with pauses of low noise; int16, 16 kHz."""
    rng = np.random.default_rng(seed)
    n = round(duration_s * 16_000)
    time_s = np.arange(n) / 16_000
    pitch_hz = 140 + 30 * np.sin(2 * np.pi * 0.7 * time_s)
    phase = np.cumsum(pitch_hz) / 16_000
    source = np.diff(np.floor(phase), prepend=0.0) + 0.01 * rng.normal(size=n)
    signal = np.zeros(n)
    state = np.zeros((3, 2))
    for t in range(n):
        value = source[t]
        for i, (centre_hz, depth_hz) in enumerate([(500, 200), (1500, 500), (2600, 200)]):
            angle = 2 * np.pi * (centre_hz + depth_hz * np.sin(3 * time_s[t])) / 16_000
            value += 1.9 * np.cos(angle) * state[i, 0] - 0.9025 * state[i, 1]
            state[i] = value, state[i, 0]
        signal[t] = value
    signal *= np.clip(np.sin(2 * np.pi * 1.3 * time_s) + 0.8, 0.01, 1)
    return (signal / np.abs(signal).max() * 12_000).astype(np.int16)


@pytest.fixture(scope="session")
def vowels():
    return make_vowels(2.5, seed=4)


@pytest.fixture
def target_spectrum(tmp_path, monkeypatch):
    """A method whose voices are those of target speakers as a plug-in, in other processes too."""
    about = tmp_path / "plugins" / "target_spectrum-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: filtered\nVersion: 1\n")
    lines = f"[{registry.GROUP}]\nfiltered = tests.anonymization.target_spectrum:METHODS\n"
    (about / "entry_points.txt").write_text(lines)
    monkeypatch.syspath_prepend(about.parent)
    registry._plug_ins.cache_clear()
    yield registry.get_method("filtered")
    registry._plug_ins.cache_clear()
