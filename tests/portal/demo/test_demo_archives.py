"""The archives of the demo: the problems that are seeded into one, and the one that was made beforehand."""

import csv
import hashlib
import io
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np
import soundfile
from django.conf import settings

from portal.corpora.services import DEMO_CORPUS
from portal.demo.archives import DemoSubmission, DemoUtterance, spoil
from portal.demo.challenge import T04_ARCHIVE, T04_COMMAND


def test_spoiled_archive_has_each_problem_in_another_utterance() -> None:
    random = np.random.default_rng(1)
    names = [f"d01-{number:04d}" for number in range(12)]
    originals = {name: random.integers(-3000, 3000, 8000).astype(np.int16) for name in names}
    speech = {name: random.integers(-3000, 3000, 8000).astype(np.int16) for name in names}
    utterances = [DemoUtterance(name, "d01", "f", "demo_enrolls", "enroll", originals[name]) for name in names]
    submission = DemoSubmission(utterances, dict(speech))
    spoil(submission, "_anon")
    left_out, copied, stereo, cut, silent, clipped, empty, twin = names[:8]
    found = submission.speech
    assert set(names) - set(found) == {left_out, stereo, empty}
    assert np.array_equal(found[copied], originals[copied])
    assert np.array_equal(found[cut], speech[cut][:4000])
    assert not found[silent].any()
    assert np.mean(np.abs(found[clipped].astype(int)) >= 32767) > 0.5
    assert np.array_equal(found[twin], found[names[8]])
    assert [name for name in names[8:] if not np.array_equal(found[name], speech[name])] == []
    assert set(submission.files) == {
        f"demo_enrolls_anon/wav/{stereo}.wav",
        f"demo_enrolls_anon/wav/{empty}.wav",
        "wavs/somebody-else-0001.wav",
        "__MACOSX/._notes",
    }
    assert submission.files[f"demo_enrolls_anon/wav/{empty}.wav"] == b""


def test_archive_made_beforehand_is_the_one_of_the_manual_and_has_other_speech_of_every_utterance():
    manual = Path(settings.BASE_DIR, "docs", "demo.md").read_text()
    assert hashlib.sha256(T04_ARCHIVE.read_bytes()).hexdigest() in manual
    assert T04_COMMAND in manual
    with (DEMO_CORPUS / "utterances.csv").open(encoding="utf-8", newline="") as file:
        originals = {row["utterance_id"]: DEMO_CORPUS / row["path"] for row in csv.DictReader(file)}
    with zipfile.ZipFile(T04_ARCHIVE) as archive:
        assert "system_description.pdf" in {PurePosixPath(name).name for name in archive.namelist()}
        speech = [name for name in archive.namelist() if name.endswith(".flac")]
        assert {PurePosixPath(name).stem for name in speech} == set(originals)
        for name in speech:
            samples, rate_hz = soundfile.read(io.BytesIO(archive.read(name)), dtype="int16")
            original, _ = soundfile.read(originals[PurePosixPath(name).stem], dtype="int16")
            assert (rate_hz, samples.ndim) == (16_000, 1)
            assert np.abs(samples).max() > 1000
            assert not np.array_equal(samples, original)
