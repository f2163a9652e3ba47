"""A method that plans its voices as mixtures and synthesises speech: planned, run, resumed, written, read, checked."""

import json
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import pytest
import soundfile

from anonymization.app import voice_assignment
from anonymization.app.handlers import PLANNING
from anonymization.app.models import AnonymizationRun
from anonymization.app.services import start_anonymization
from anonymization.app.voice_assignment import check_run_voices, find_voice, list_assignments
from anonymization.checks.voices import check_voices_of_method
from anonymization.conformance import check_method, make_vowel
from anonymization.methods import registry
from anonymization.methods.contract import (
    Block,
    Described,
    MethodError,
    Option,
    PseudoSpeaker,
    VoiceRequest,
    plans_voices,
)
from anonymization.methods.voices.files import list_voice_columns, read_voices, write_voices
from anonymization.methods.voices.pseudo_speakers import Assignment, plan_requests
from anonymization.methods.voices.vectors import hash_vector, read_vector, write_vector
from common.problems import Severity
from portal.core.storage import load_audio
from portal.jobs.models import JobState
from portal.jobs.runner import JobContext, execute
from portal.jobs.services import run_again
from portal.submissions.services import create_baseline
from portal.systems.anonymization.charts import draw_pipeline
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


PARTS = (
    Block("content", "All samples of the recording, each of them twice", "computed"),
    Block("voice", "Ring", "drawn"),
    Block("synthesis", "Ring modulation", "frozen", "MIT"),
)
SLOWER = Slower("slower", "Half as fast", "1", "Nobody 2026", keeps_duration=False, pipeline=PARTS)


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
    run = ("anonymize", "--method", "slower", source)
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


@dataclass(frozen=True)
class Tilted(Described):
    """Turns the sign of samples and plays them louder by a vector that is made of the recordings."""

    makes_vectors = True

    def plan_voices(self, requests, pool=None):  # noqa: ARG002
        gain = {request.key: request.options.get("gain", 1.0) for request in requests}
        mean = {
            request.key: np.mean([np.abs(read()[0].astype(float)).mean() for read in request.recordings])
            for request in requests
        }
        return [
            PseudoSpeaker(key, {}, vector=write_vector(np.array([1 + 1 / mean[key], 1 + int(key[:4], 16), gain[key]])))
            for key in gain
        ]

    def _anonymize(self, item, rate, options, threads):  # noqa: ARG002
        return (-item.samples * (0.1 * read_vector(item.pseudo_speaker.vector, 3)[2])).astype(np.int16)


TILTED = Tilted("tilted", "Tilted", "1", "Nobody 2026", options=(Option("gain", 1.0, "how loud", low=0.5, high=2.0),))


@pytest.fixture
def tilted(monkeypatch):
    others = registry._built_in()
    monkeypatch.setattr(registry, "_built_in", lambda: (*others, TILTED))
    return TILTED


def test_vectors_are_planned_with_the_options_written_read_and_used_again(shell, tilted, tmp_path):
    source = tmp_path / "in"
    for number, name in enumerate(("a/a-1.wav", "a/a-2.wav", "b/b-1.wav")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(source / name, make_vowel(16_000, 0.4 + 0.1 * number), 16_000)
    run = ("anonymize", "--method", "tilted", source)
    answer = shell(*run, tmp_path / "out", "--seed", 1, "--option", "gain=2")
    assert (answer.code, answer.err) == (0, "")
    rows = [json.loads(line) for line in (tmp_path / "out" / "anonymization.jsonl").read_text().splitlines()]
    assert [read_vector(row["voice"]["vector"])[2] for row in rows] == [2.0] * 3
    assert rows[0]["voice"]["vector"] == rows[1]["voice"]["vector"] != rows[2]["voice"]["vector"]
    again = shell(*run, tmp_path / "out", "--seed", 1, "--option", "gain=2")
    assert "3 of them by an earlier call" in again.out
    plan = ("voices", source, "--method", "tilted", "--seed", 1, "--option", "gain=2", "--out", tmp_path / "v.csv")
    assert shell(*plan).code == 0
    assert (tmp_path / "v.csv").read_text().startswith("role,split,level,speaker,utterance,key,vector\n")
    assert shell("voices", "--method", "tilted", "--check", tmp_path / "v.csv").code == 0
    assert shell(*run, tmp_path / "again", "--voices", tmp_path / "v.csv").code == 0
    lines = (tmp_path / "again" / "anonymization.jsonl").read_text().splitlines()
    assert [json.loads(line)["sha256"] for line in lines] == [row["sha256"] for row in rows]
    (tmp_path / "v.csv").write_text((tmp_path / "v.csv").read_text().replace(rows[0]["voice"]["vector"], "?"))
    assert "numbers as base64 of float16" in read_voices(tmp_path / "v.csv").problems[0].sentence()


@pytest.mark.django_db
def test_portal_makes_vectors_of_each_utterance_in_the_job_and_shows_their_hash(client, tilted):
    corpus = make_corpus("tones", speakers=2, utterances=2)
    submission = create_baseline(name="tilted", title="Tilted", corpus=corpus)
    data_set = corpus.data_sets.get(name="tones_trials_f")
    [run] = start_anonymization(
        submission=submission, data_sets=[data_set], method="tilted", seed=1, level="utterance", options={"gain": 1.5}
    )
    client.force_login(make_organizer())
    address = f"/systems/tilted/runs/{data_set.name}/"
    assert "plans a voice for each utterance from its recording" in client.get(address).content.decode()
    assert list(list_assignments(run)) == []
    assert execute(run.job_id).state == JobState.SUCCEEDED
    run.refresh_from_db()
    names = set(data_set.utterances.values_list("name", flat=True))
    assert set(run.voices) == names
    assert {read_vector(voice["vector"])[2] for voice in run.voices.values()} == {1.5}
    assert {row.utterance for row in list_assignments(run)} == names
    assert check_run_voices(run)[0].voices_differ
    page = client.get(address).content.decode()
    for voice in run.voices.values():
        assert hash_vector(voice["vector"])[:12] in page
        assert voice["vector"] not in page
    table = client.get(f"/systems/tilted/runs/{data_set.name}/voices.csv").content.decode()
    assert all(voice["vector"] in table for voice in run.voices.values())


def test_mixture_is_refused_by_a_method_that_plans_none():
    voice = PseudoSpeaker("1" * 64, {}, mixture={"f-one": 1.0})
    with pytest.raises(MethodError, match="takes no voices that are mixtures"):
        registry.get_method("mcadams-2020").anonymize(make_vowel(16_000, 0.5), 16_000, voice)


def start(corpus, *names, seed=1):
    submission = create_baseline(name="slower", title="Slower", corpus=corpus)
    data_sets = [corpus.data_sets.get(name=name) for name in names]
    return start_anonymization(submission=submission, data_sets=data_sets, method="slower", seed=seed)


@pytest.mark.django_db
def test_portal_plans_within_the_job_and_shows_mixtures_to_organizers(client, slower):
    corpus = make_corpus("tones", speakers=4, utterances=1)
    [run] = start(corpus, "tones_trials_f")
    client.force_login(make_organizer())
    address = f"/systems/slower/runs/{run.data_set.name}/"
    before = client.get(address).content.decode()
    assert "The job plans the voices of" in before
    assert run.voices == {}
    with pytest.raises(MethodError, match="not planned yet"):
        find_voice(run, speaker="tones-s0", utterance="tones-s0-001")
    assert list(list_assignments(run)) == []
    assert execute(run.job_id).state == JobState.SUCCEEDED
    run.refresh_from_db()
    assert set(run.voices) == {"tones-s0", "tones-s1", "tones-s2", "tones-s3"}  # of the split, not of the set alone
    assert all(set(run.voices[f"tones-s{i}"]["mixture"]) == {"f-one", "f-two"} for i in (0, 2))
    assert check_run_voices(run)[0].voices_differ
    run.level, run.voices = "utterance", {}
    utterance = run.data_set.utterances.select_related("speaker").first()
    alone = find_voice(run, speaker=utterance.speaker.name, utterance=utterance.name)
    assert set(alone.mixture) == {"f-one", "f-two"}
    page = client.get(address).content.decode()
    assert "f-one 0." in page
    drawn = draw_pipeline(SLOWER)
    assert 'aria-label="content: All samples of the recording, each of them twice, no weights; voice: Ring' in page
    assert all(
        f">{words}</text>" in page for words in ("Original speech", "Content", "Ring modulation", "frozen weights")
    )
    for one in drawn["boxes"]:
        assert (one.x, one.y) >= (0, 0)
        assert (one.x + one.width, one.bottom) < (drawn["width"], drawn["height"])
        others = [each for each in drawn["boxes"] if each is not one]
        assert all(
            one.bottom < each.y or each.bottom < one.y or one.x + one.width < each.x or each.x + each.width < one.x
            for each in others
        )
    assert "all speakers get one voice" not in page


@pytest.mark.django_db
def test_speakers_without_a_gender_are_heard_once_and_runs_of_a_split_share_their_plan(slower, monkeypatch):
    corpus = make_corpus("tones", speakers=4, utterances=1)
    runs = start(corpus, "tones_trials_f", "tones_trials_m")
    corpus.speakers.update(gender="")
    heard, told = [], []
    read = voice_assignment._read_recording
    monkeypatch.setattr(voice_assignment, "_read_recording", lambda key: heard.append(key) or read(key))
    monkeypatch.setattr(JobContext, "progress", lambda _, *words: told.append(words))
    assert [execute(run.job_id).state for run in runs] == [JobState.SUCCEEDED] * 2
    assert len(heard) == 4  # a trial of each, once for both runs
    assert [words for words in told if words[0] == PLANNING] == [(PLANNING, i, 4) for i in (0, 0, 1, 2, 3, 4)]
    first, second = (AnonymizationRun.objects.get(pk=run.pk).voices for run in runs)
    assert first == second


@pytest.mark.django_db
def test_job_that_is_cancelled_while_it_plans_plans_the_same_voices_later(slower, monkeypatch):
    corpus = make_corpus("tones", speakers=4, utterances=1)
    [run] = start(corpus, "tones_trials_f")
    corpus.speakers.update(gender="")
    read, told = voice_assignment._read_recording, []

    def stop_at_the_second(key):
        told.append(key)
        if len(told) == 2:
            raise CancelledError
        return read(key)

    monkeypatch.setattr(voice_assignment, "_read_recording", stop_at_the_second)
    assert execute(run.job_id).state == JobState.CANCELLED
    run.refresh_from_db()
    assert (run.voices, run.submission.files.count()) == ({}, 0)
    monkeypatch.setattr(voice_assignment, "_read_recording", read)
    assert execute(run_again(AnonymizationRun.objects.get(pk=run.pk).job, by=None).pk).state == JobState.SUCCEEDED
    run.refresh_from_db()
    requests = [
        VoiceRequest(voice["key"], "", (partial(load_audio, corpus.utterances.get(name=f"{name}-001").audio),))
        for name, voice in run.voices.items()
    ]
    assert [voice["mixture"] for voice in run.voices.values()] == [one.mixture for one in SLOWER.plan_voices(requests)]


@pytest.mark.django_db
def test_planning_that_fails_is_told_in_a_sentence(slower, monkeypatch):
    [run] = start(make_corpus("tones", speakers=4, utterances=1), "tones_trials_f")

    def refuse(*_):
        raise MethodError("The recording a.wav has no speech.")

    monkeypatch.setattr(Slower, "plan_voices", refuse)
    ended = execute(run.job_id)
    assert ended.state == JobState.FAILED
    assert "The voices of tones_trials_f could not be planned: The recording a.wav has no speech." in ended.failure
