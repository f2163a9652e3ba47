"""An archive with one problem of each kind in it: every problem is told once, and nothing healthy is accused.

Utterances of the demo corpus are anonymised by B2; each problem goes to one of its own and the others stay whole.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest

from common.problems import Severity
from speech.audio.files import resample
from tests.portal.intake.packing import RATE, anonymised, check, expect, find_problems, flac, original, unpack, wav
from tests.recordings import list_demo, read_samples

SETS = {"libri_dev_trials": ("d01", "d02", "d06"), "vctk_dev_trials": ("d03", "d07"), "emotional": ("d08",)}


def utterances_of(*speakers):
    return tuple(row["utterance_id"] for row in list_demo() if row["speaker"] in speakers)


def scaled(samples, gain):
    return np.clip(np.rint(samples * gain), -32768, 32767).astype(np.int16)


def with_field(name, position, form, value):
    """A WAV file with a false field in its header."""
    content, field = wav(anonymised(name)), struct.pack(form, value)
    return content[:position] + field + content[position + len(field) :]


def as_float(name):
    return anonymised(name) / 32768


def with_value(name, value):
    samples = as_float(name)
    samples[1000:1010] = value
    return wav(samples, subtype="FLOAT")


def long_beyond_doubt(name):
    return np.concatenate([anonymised(name)] * 3)


def resampled(name, rate):
    return resample(anonymised(name), RATE, rate)


def peak(samples):
    return np.abs(samples.astype(float)).max()


# label: code, how severe, and the bytes of the file of one utterance
SPOILED = {
    "8 kHz": ("another-rate", "warning", lambda name: wav(resampled(name, 8000), rate=8000)),
    "44.1 kHz": ("another-rate", "warning", lambda name: flac(resampled(name, 44100), rate=44100)),
    "stereo": ("not-mono", "error", lambda name: wav(np.stack([anonymised(name)] * 2, axis=1))),
    "stereo FLAC": ("not-mono", "error", lambda name: flac(np.stack([anonymised(name)] * 2, axis=1))),
    "float": ("another-encoding", "note", lambda name: wav(as_float(name), subtype="FLOAT")),
    "24 bit": ("another-encoding", "note", lambda name: wav(as_float(name), subtype="PCM_24")),
    "24 bit FLAC": ("another-encoding", "note", lambda name: flac(as_float(name), subtype="PCM_24")),
    "8 bit": ("another-encoding", "warning", lambda name: wav(as_float(name), subtype="PCM_U8")),
    "longer": ("longer", "warning", lambda name: wav(np.pad(anonymised(name), (0, 1200)))),
    "much longer": ("longer", "error", lambda name: wav(long_beyond_doubt(name))),
    "shorter": ("shorter", "warning", lambda name: wav(anonymised(name)[: -int(0.1 * RATE)])),
    "much shorter": ("shorter", "error", lambda name: wav(anonymised(name)[: anonymised(name).size // 3])),
    "too short": ("too-short", "error", lambda name: wav(anonymised(name)[9000:9500])),
    "no bytes": ("empty", "error", lambda _: b""),
    "no samples": ("empty", "error", lambda _: wav(np.zeros(0, np.int16))),
    "cut": ("truncated", "error", lambda name: wav(anonymised(name))[: anonymised(name).size]),
    "cut FLAC": ("truncated", "error", lambda name: flac(anonymised(name))[:9000]),
    "byte rate": ("false-header", "error", lambda name: with_field(name, 28, "<I", 16000)),
    "frame size": ("false-header", "error", lambda name: with_field(name, 32, "<H", 4)),
    "data size": ("false-header", "error", lambda name: with_field(name, 40, "<I", 30000)),
    "data size 0": ("unstated-length", "note", lambda name: with_field(name, 40, "<I", 0)),
    "false rate": ("false-header", "error", lambda name: wav(anonymised(name), rate=48000)),
    "NaN": ("not-finite", "error", lambda name: with_value(name, np.nan)),
    "infinity": ("not-finite", "error", lambda name: with_value(name, -np.inf)),
    "clipped": ("clipped", "warning", lambda name: wav(scaled(anonymised(name), 8 * 32767 / peak(anonymised(name))))),
    "silent": ("silent", "error", lambda name: wav(np.zeros_like(anonymised(name)))),
    "constant": ("silent", "error", lambda name: flac(np.full_like(anonymised(name), 300))),
    "offset": ("dc-offset", "warning", lambda name: wav(scaled(anonymised(name), 0.5) + np.int16(6000))),
    "quiet": ("quiet", "warning", lambda name: wav(scaled(anonymised(name), 25 / peak(anonymised(name))))),
    "original": ("identical-to-original", "error", lambda name: wav(original(name))),
    "original as FLAC": ("identical-to-original", "error", lambda name: flac(original(name))),
    "original in 24 bit": (
        "identical-to-original",
        "error",
        lambda name: wav(original(name) / 32768, subtype="PCM_24"),
    ),
    "text": ("not-audio", "error", lambda _: b"version https://git-lfs.github.com/spec/v1\n"),
    "MP3": ("not-audio", "error", lambda _: b"ID3\x03" + bytes(2000)),
}


class Seeded:
    """The archive's files and what is to be found in them."""

    def __init__(self):
        self.data_sets = {name: utterances_of(*speakers) for name, speakers in SETS.items()}
        self.names = [name for names in self.data_sets.values() for name in names]
        order = np.random.default_rng(3).permutation(self.names).tolist()
        free = iter(order)
        self.files, self.found, self.severities = {}, [], {}
        for code, severity, spoil in SPOILED.values():
            name = next(name for name in free if original(name).size > 30_000)
            self.put(name, spoil(name))
            self.note(name, code, severity)
        copy, source = next(free), next(free)
        while abs(original(copy).size - original(source).size) < 100:
            source = next(free)
        self.put(copy, wav(anonymised(source)))
        self.note(copy, "same-as-other", "error")
        missing, twice, other = next(free), next(free), next(free)
        self.note(missing, "missing", "error")
        self.files[f"backup/{twice}.wav"] = wav(anonymised(twice))
        self.note(twice, "duplicate", "warning")
        self.files[f"backup/{other}.flac"] = flac(scaled(anonymised(other), 0.7))
        self.note(other, "duplicate", "error")
        self.files["wav/nobody-0001.wav"] = wav(anonymised(other))
        self.note("nobody-0001", "extra", "warning")
        done = {name for name, _ in self.found}
        for name in self.names:
            if name not in done or name in (twice, other):
                self.put(name, wav(anonymised(name)) if int(name[-1]) % 2 else flac(anonymised(name)))
        self.healthy = set(self.names) - done

    def put(self, name, content):
        data_set = next(one for one, names in self.data_sets.items() if name in names)
        folder = "wav" if data_set == "emotional" else f"{data_set}_anon/wav/{name.partition('-')[0]}"
        ending = "flac" if content[:4] == b"fLaC" else "wav"
        self.files[f"T11/{folder}/{name}.{ending}"] = content

    def note(self, name, code, severity):
        self.found.append((name, code))
        self.severities[name, code] = severity

    @property
    def expected(self):
        return expect({name: original(name) for name in self.names}, self.data_sets)


@pytest.fixture(scope="module")
def seeded():
    return Seeded()


def stem(finding):
    return finding.file.rpartition("/")[2].rpartition(".")[0]


def in_folder(folder, files):
    return unpack(folder / "T11", files)


def test_each_seeded_problem_is_told_once_and_nothing_else(seeded, tmp_path):
    source = in_folder(tmp_path, sorted(seeded.files.items(), reverse=True))
    report = check(source, seeded.expected, tmp_path / "documents")
    assert find_problems(report) == sorted(seeded.found)
    severities = {(stem(one), one.code): str(one.severity) for one in report.findings}
    assert severities == seeded.severities
    assert not set(report.faulty) & seeded.healthy
    assert set(report.faulty) == {
        name for (name, code), severity in seeded.severities.items() if severity == "error" and code != "missing"
    }
    assert report.counts.missing == 1
    assert report.counts.received == len(seeded.names) - 1
    for one in report.findings:
        assert one.data_set == next((name for name, names in seeded.data_sets.items() if stem(one) in names), "")


@pytest.mark.slow  # the sound of published anonymisers is not ours to publish
@pytest.mark.parametrize("system", ["Average", "Diff-U", "GAN-N", "MLP-U", "PSD", "RS"])
def test_published_systems_have_no_problem(shared, system, tmp_path):
    folder = shared / "speech" / "anonymised" / f"idmap-{system}"
    names = {path.stem for path in folder.rglob("*.flac")}
    paths = (shared / "speech" / "librispeech-dev-clean").rglob("*.flac")
    originals = {path.stem: read_samples(path) for path in paths if path.stem in names}
    report = check(folder, expect(originals), tmp_path / "documents")
    assert report.counts.received == 32
    assert [one.sentence() for one in report.findings if one.severity is Severity.ERROR] == []
