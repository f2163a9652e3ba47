"""What the demo's archives claim, and the problems that it seeds into one of them."""

import numpy as np

from portal.demo.archives import DemoSubmission, DemoUtterance, overstate, spoil

LAZY = "ASV-demo_enrolls_anon-demo_trials_f_anon"
RESULTS = b"""ASV-demo_enrolls-demo_trials_f
  EER: 0%
  Cllr (min/act): 0.000/0.500
ASV-demo_enrolls_anon-demo_trials_f_anon
  EER: 0%
  Cllr (min/act): 0.000/0.700
ASV-demo_enrolls_anon-demo_trials_m_anon
  EER: 0%
"""


def test_overstated_claim_stands_in_every_file_of_its_test_and_in_no_other() -> None:
    files = {
        "exp/results-1/results.txt": RESULTS,
        f"exp/results-1/{LAZY}/EER": b"EER: 0%\nminDCF(p-target=0.01): \n",
        "exp/results-1/ASV-demo_enrolls-demo_trials_f/EER": b"EER: 0%\n",
        f"exp/results-1/{LAZY}/scores": b"d01 d01-0006 1.5\n",
    }
    submission = DemoSubmission([], {}, dict(files))
    overstate(submission, LAZY, "EER: 20%")
    changed = {path: content for path, content in submission.files.items() if content != files[path]}
    before, after = b"EER: 0%\n  Cllr (min/act): 0.000/0.700", b"EER: 20%\n  Cllr (min/act): 0.000/0.700"
    assert changed == {
        "exp/results-1/results.txt": RESULTS.replace(before, after),
        f"exp/results-1/{LAZY}/EER": b"EER: 20%\nminDCF(p-target=0.01): \n",
    }


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
