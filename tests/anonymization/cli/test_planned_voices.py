"""A method that plans its voices as mixtures and synthesises speech: planned, run, resumed, written, read, checked."""

import json
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest
import soundfile

from anonymization.app.models import AnonymizationRun
from anonymization.app.services import start_anonymization
from anonymization.app.voices import check_run_voices, find_voice
from anonymization.checks.outputs import check_output
from anonymization.checks.voices import check_voices_of_method
from anonymization.conformance import check_method, make_vowel
from anonymization.methods import registry
from anonymization.methods.contract import Described, MethodError, PseudoSpeaker, VoiceRequest, plans_voices
from anonymization.methods.voices.files import list_voice_columns, read_voices, write_voices
from anonymization.methods.voices.pseudo_speakers import Assignment, plan_requests
from common.problems import Severity
from portal.submissions.services import create_baseline
from tests.portal.factories import make_corpus, make_organizer


@dataclass(frozen=True)
class Slower(Described):
    """Plays each sample twice, in a ring modulation by the first share of a mixture."""

    def plan_voices(self, requests, pool=None):  # noqa: ARG002
        voices = []
        for request in requests:
            share = int(request.key[:8], 16) / 2**32
            names = ("f-one", "f-two") if self._gender(request) == "f" else ("m-one", "m-two")
            voices.append(PseudoSpeaker(request.key, {}, mixture=dict(zip(names, (share, 1 - share), strict=True))))
        return voices

    def _gender(self, request):
        """As told, else by how much is spoken."""
        return request.gender or ("f" if sum(read()[0].size for read in request.recordings) % 2 else "m")

    def _anonymize(self, item, rate, options, threads):  # noqa: ARG002
        if not item.pseudo_speaker.mixture:
            raise MethodError("slower takes a voice that is a mixture; found none.")
        if item.samples.ndim != 1 or item.samples.dtype != np.int16 or rate < 8000:
            raise MethodError("slower takes samples of int16 at 8 kHz or more; found others.")
        share = next(iter(item.pseudo_speaker.mixture.values()))
        ring = np.cos((0.1 + share) * np.arange(item.samples.size))
        return np.repeat((item.samples * ring).astype(np.int16), 2)


SLOWER = Slower("slower", "Half as fast", "1", "Nobody 2026", keeps_duration=False)


@pytest.fixture
def slower(monkeypatch):
    others = registry._built_in()
    monkeypatch.setattr(registry, "_built_in", lambda: (*others, SLOWER))
    return SLOWER


def test_method_that_plans_keeps_the_contract():
    found = check_method(SLOWER, speech=make_vowel(16_000, 0.5))
    assert [problem.sentence() for problem in found if problem.severity is not Severity.NOTE] == []
    assert plans_voices(SLOWER)


def test_run_plans_by_gender_goes_on_where_it_was_and_takes_its_own_file_of_voices(shell, slower, tmp_path):
    source = tmp_path / "in"
    for number, name in enumerate(("a/a-1.wav", "a/a-2.wav", "b/b-1.wav")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(source / name, make_vowel(16_000, 0.4 + 0.1 * number), 16_000)
    (source / "spk2gender").write_text("a f\nb m\n")
    run = ("run", "--method", "slower", source)
    answer = shell(*run, tmp_path / "out", "--seed", 1, "--limit", 1)
    assert (answer.code, answer.err) == (0, "")
    answer = shell(*run, tmp_path / "out", "--seed", 1)
    assert (answer.code, answer.err) == (0, "")
    assert "1 of them by an earlier call" in answer.out
    rows = [json.loads(line) for line in (tmp_path / "out" / "anonymization.jsonl").read_text().splitlines()]
    assert [sorted(row["voice"]["mixture"]) for row in rows] == [["f-one", "f-two"]] * 2 + [["m-one", "m-two"]]
    assert not list(chain.from_iterable(row["problems"] for row in rows))  # twice as long, which is as it should be
    shell("voices", source, "--method", "slower", "--seed", 1, "--out", tmp_path / "v.csv")
    assert shell("voices", "--method", "slower", "--check", tmp_path / "v.csv").code == 0
    assert shell(*run, tmp_path / "again", "--voices", tmp_path / "v.csv").code == 0
    lines = (tmp_path / "again" / "anonymization.jsonl").read_text().splitlines()
    assert [json.loads(line)["sha256"] for line in lines] == [row["sha256"] for row in rows]


def test_mixtures_are_written_and_read_to_the_bit_and_equal_ones_are_found(tmp_path):
    voices = plan_requests(SLOWER, [VoiceRequest("1" * 64, "f"), VoiceRequest("2" * 64, "m")])
    rows = [Assignment("trial", "dev", "speaker", f"s{i}", "", voice) for i, voice in enumerate(voices)]
    write_voices(tmp_path / "v.csv", rows, list_voice_columns(SLOWER))
    assert read_voices(tmp_path / "v.csv").require() == tuple(rows)
    assert check_voices_of_method(SLOWER, rows, distance=0.0).voices_differ
    same = PseudoSpeaker("3" * 64, {}, mixture=voices[0].mixture)
    alike = [rows[0], Assignment("trial", "dev", "speaker", "s1", "", same)]
    assert not check_voices_of_method(SLOWER, alike, distance=0.0).voices_differ
    (tmp_path / "v.csv").write_text((tmp_path / "v.csv").read_text().replace("f-one=", "f-one=nan"))
    assert "shares such as" in read_voices(tmp_path / "v.csv").problems[0].sentence()


def test_another_duration_is_a_problem_only_of_a_method_that_keeps_it():
    speech = make_vowel(16_000, 0.5)
    spoken = (np.repeat(speech, 2) // 2).astype(np.int16)
    codes = [problem.code for problem in check_output(speech, spoken, 16_000, file="a")]
    assert codes == ["duration-differs"]
    assert check_output(speech, spoken, 16_000, file="a", keeps_duration=False) == []


def test_mixture_is_refused_by_a_method_that_plans_none():
    voice = PseudoSpeaker("1" * 64, {}, mixture={"f-one": 1.0})
    with pytest.raises(MethodError, match="takes no voices that are mixtures"):
        registry.get_method("mcadams-2020").anonymize(make_vowel(16_000, 0.5), 16_000, voice)


@pytest.mark.django_db
def test_portal_plans_when_a_run_starts_and_shows_mixtures_to_organizers(client, slower):
    corpus = make_corpus("tones", speakers=4, utterances=1)
    data_set = corpus.data_sets.get(name="tones_trials_f")
    submission = create_baseline(name="slower", title="Slower", corpus=corpus)
    start_anonymization(submission=submission, data_sets=[data_set], method="slower", seed=1)
    run = AnonymizationRun.objects.get()
    speakers = set(data_set.utterances.values_list("speaker__name", flat=True))
    assert speakers <= set(run.voices)
    assert all(set(run.voices[speaker]["mixture"]) == {"f-one", "f-two"} for speaker in speakers)
    assert check_run_voices(run)[0].voices_differ
    run.level, run.voices = "utterance", {}
    utterance = data_set.utterances.select_related("speaker").first()
    alone = find_voice(run, speaker=utterance.speaker.name, utterance=utterance.name)
    assert set(alone.mixture) == {"f-one", "f-two"}
    client.force_login(make_organizer())
    page = client.get(f"/systems/slower/runs/{data_set.name}/").content.decode()
    assert "f-one 0." in page
    assert "all speakers get one voice" not in page
