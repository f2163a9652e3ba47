"""The problems that the demo seeds into the archive of one of its teams."""

import numpy as np

from anonymization.methods.recognize_and_speak.method import RecognizeAndSpeak
from portal.demo.archives import DemoSubmission, DemoUtterance, anonymise, spoil


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


def test_method_that_plans_voices_gives_each_speaker_one_for_each_role(monkeypatch) -> None:
    given: dict[str, list[str]] = {}

    def anonymize(_, samples, rate, voice, **options):
        given.setdefault(str(samples[0]), []).append(str(sorted(voice.mixture)))
        return samples

    monkeypatch.setattr(RecognizeAndSpeak, "anonymize", anonymize)
    utterances = [
        DemoUtterance(f"{speaker}-{role}", name, gender, role, role, np.full(10, speaker, np.int16), "test")
        for speaker, (name, gender) in enumerate([("a", "F"), ("b", "M")])
        for role in ("enrolment", "trial")
    ]
    speech = anonymise(utterances, "t04", 5).speech
    assert set(speech) == {one.name for one in utterances}
    for speaker, initial in (("0", "f_"), ("1", "m_")):
        enrolment, trial = given[speaker]
        assert enrolment != trial
        assert initial in trial
