"""The problems that the demo seeds into the archive of one of its teams."""

import numpy as np

from portal.demo.archives import DemoSubmission, DemoUtterance, spoil


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
