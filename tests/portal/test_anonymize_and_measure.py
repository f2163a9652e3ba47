"""B2 over a corpus and its measures, as jobs run in this process, on the demo corpus and on real speech."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from django.core.files.storage import default_storage

from anonymization import services as anonymization
from anonymization.methods.registry import get_method
from anonymization.services import pseudo_speaker_of
from evaluation.metrics.f0 import f0_praat
from evaluation.metrics.pitch import pitch_correlation
from evaluation.models import EvaluationRun, MetricValue, UtteranceMeasure
from evaluation.selectors import finished_runs
from evaluation.services import figure_key, start_evaluation
from portal.challenges.importing import start_import
from portal.challenges.models import Corpus, Utterance
from portal.jobs.models import Job, State
from portal.jobs.runner import JobReleased, execute
from portal.jobs.services import run_again
from portal.results.services import start_baseline
from portal.submissions.models import SubmittedFile, System

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the folder ../shared with real data is not here")


def import_speech(folder: Path, name: str) -> Corpus:
    job = execute(start_import(folder=str(folder), name=name, run_here=True).pk)
    assert (job.state, job.failure) == (State.SUCCEEDED, "")
    return Corpus.objects.get(name=name)


def anonymize(corpus: Corpus, *, name: str = "b2", seed: int = 2022, sets: tuple[str, ...] = ()) -> System:
    data_sets = corpus.data_sets.filter(name__in=sets) if sets else corpus.data_sets.all()
    return start_baseline(name=name, corpus=corpus, data_sets=data_sets, method="mcadams-2022", seed=seed)


def run_waiting_jobs() -> list[Job]:
    """What a worker does, in this process: every waiting job in the order of its creation."""
    waiting = Job.objects.filter(state=State.WAITING).order_by("created_at")
    return [ended for job in waiting if (ended := execute(job.pk))]


def samples_of(key: str) -> np.ndarray:
    with default_storage.open(key) as stored:
        samples, rate = soundfile.read(io.BytesIO(stored.read()), dtype="int16")
    assert rate == 16_000
    return samples


@pytest.fixture
def demo():
    return import_speech(ROOT / "demo" / "corpus", "demo")


@pytest.fixture
def system(demo):
    system = anonymize(demo, sets=("demo_enrolls", "demo_trials_f"))
    assert [job.state for job in run_waiting_jobs()] == [State.SUCCEEDED] * 4
    return system


def test_every_utterance_is_anonymised_once_in_the_voice_of_its_speaker_and_role(system):
    run = system.submissions.get().anonymization_runs.get(data_set__name="demo_trials_f")
    files = SubmittedFile.objects.filter(data_set=run.data_set).select_related("utterance__speaker")
    assert files.count() == 35
    alphas = {}
    for file in files:
        voice = pseudo_speaker_of(run, file.utterance)
        alphas.setdefault(file.utterance.speaker.name, set()).add(voice.parameters["alpha"])
        original = samples_of(file.utterance.audio)
        expected = get_method("mcadams-2022").anonymize(original, 16_000, voice)
        np.testing.assert_array_equal(samples_of(file.audio), expected)
        assert file.samples == original.size
    assert all(len(voices) == 1 for voices in alphas.values())
    assert len({next(iter(voices)) for voices in alphas.values()}) == 5


def test_enrolment_and_trial_voices_of_a_speaker_differ(system):
    enrolment, trial = system.submissions.get().anonymization_runs.order_by("data_set__name")
    utterance = Utterance.objects.get(name="d01-0001")
    assert pseudo_speaker_of(enrolment, utterance).parameters != pseudo_speaker_of(trial, utterance).parameters


def test_values_are_mean_spread_and_n_of_the_utterances(system):
    run = EvaluationRun.objects.get(data_set__name="demo_enrolls")
    for gender, n in (("f", 25), ("m", 25), ("", 50)):
        measures = run.measures.filter(file__utterance__speaker__gender__contains=gender)
        rho = np.array(measures.values_list("pitch_correlation", flat=True))
        value = run.values.get(metric="pitch_correlation", gender=gender)
        assert (value.n, rho.size) == (n, n)
        assert value.value == pytest.approx(rho.mean(), abs=1e-12)
        assert value.spread == pytest.approx(rho.std(), abs=1e-12)
        assert value.estimator.startswith("official 2022, praat 6.1.38")


def test_measure_is_what_the_metric_gives_for_the_stored_audio(system):
    measure = UtteranceMeasure.objects.filter(run__data_set__name="demo_trials_f").select_related("file__utterance")[7]
    original, anonymised = samples_of(measure.file.utterance.audio), samples_of(measure.file.audio)
    expected = pitch_correlation(f0_praat(original, 16_000), f0_praat(anonymised, 16_000))
    assert measure.pitch_correlation == pytest.approx(expected.rho, abs=1e-12)
    assert (measure.lag_frames, measure.duration_difference_ms) == (expected.lag_frames, 0.0)
    level = 20 * np.log10(np.std(anonymised / 32768) / np.std(original / 32768))
    assert measure.level_change_db == pytest.approx(level, abs=0.05)


def test_figures_are_drawn_for_light_dark_and_print(system):
    run = EvaluationRun.objects.get(data_set__name="demo_enrolls")
    starts = {
        ("light", "svg"): b"<?xml",
        ("dark", "svg"): b"<?xml",
        ("light", "png"): b"\x89PNG",
        ("light", "pdf"): b"%PDF",
    }
    for (theme, image_format), start in starts.items():
        with default_storage.open(figure_key(run, theme, image_format)) as figure:
            assert figure.read().startswith(start)


def test_second_system_extracts_no_f0_of_originals_again(system, monkeypatch):
    extracted = []
    from evaluation import services

    original = services.track_f0_praat
    monkeypatch.setattr(services, "track_f0_praat", lambda *args: extracted.append(1) or original(*args))
    anonymize(system.corpus, name="other-seed", seed=7, sets=("demo_trials_f",))
    assert [job.state for job in run_waiting_jobs()] == [State.SUCCEEDED] * 2
    assert len(extracted) == 35


def test_interrupted_run_continues_and_anonymises_nothing_twice(demo, monkeypatch):
    system = anonymize(demo, sets=("demo_trials_m",))
    job = Job.objects.get(kind="anonymize")
    made = []
    original = anonymization._anonymize_one

    def one(run, method, utterance):
        if len(made) == 10:
            raise JobReleased
        made.append(utterance.name)
        original(run, method, utterance)

    monkeypatch.setattr(anonymization, "_anonymize_one", one)
    assert execute(job.pk).state == State.WAITING
    assert SubmittedFile.objects.count() == 10
    monkeypatch.setattr(anonymization, "_anonymize_one", lambda *args: made.append(args[2].name) or original(*args))
    assert execute(job.pk).state == State.SUCCEEDED
    assert len(made) == len(set(made)) == 35
    assert "10 of 35 utterances were anonymised before; continuing." in job.events.values_list("text", flat=True)
    assert system.submissions.get().files.count() == 35


def test_same_seed_gives_the_same_files_again(system):
    again = anonymize(system.corpus, name="again", sets=("demo_trials_f",))
    run_waiting_jobs()
    files = [
        list(
            SubmittedFile.objects.filter(submission__system=one, data_set__name="demo_trials_f").values_list(
                "audio", flat=True
            )
        )
        for one in (system, again)
    ]
    assert files[0] == files[1]


def test_corpus_without_audio_fails_with_a_sentence_and_cancels_the_measures(demo):
    Utterance.objects.filter(name="d01-0006").update(audio="")
    anonymize(demo, sets=("demo_trials_f",))
    run_waiting_jobs()
    job, follower = Job.objects.filter(kind__in=["anonymize", "measure"]).order_by("created_at")
    assert (job.state, job.failure) == (
        State.FAILED,
        "1 of 35 utterances of demo_trials_f have no audio in the corpus.",
    )
    assert (follower.state, follower.failure) == (
        State.CANCELLED,
        f"Not run: it follows “{job.title}”, which failed.",
    )


def test_bad_first_utterance_stops_the_run_as_a_canary(demo):
    first = Utterance.objects.get(name="d01-0006")
    with default_storage.open(first.audio) as stored:
        content = stored.read()
    Path(default_storage.path(first.audio)).write_bytes(content[:500])
    anonymize(demo, sets=("demo_trials_f",))
    run_waiting_jobs()
    job = Job.objects.get(kind="anonymize")
    assert (job.state, SubmittedFile.objects.count()) == (State.FAILED, 0)
    assert job.failure == (
        "1 of 35 utterances of demo_trials_f could not be anonymised, the first one among them, "
        "so the others were not tried."
    )
    Path(default_storage.path(first.audio)).write_bytes(content)
    run_again(job, by=None)
    assert [job.state for job in run_waiting_jobs()] == [State.SUCCEEDED] * 2


def test_run_is_followed_not_changed_by_a_new_one(system):
    submission = system.submissions.get()
    before = list(MetricValue.objects.order_by("pk").values())
    start_evaluation(submission=submission, data_set=EvaluationRun.objects.first().data_set)
    run_waiting_jobs()
    assert list(MetricValue.objects.filter(pk__in=[row["id"] for row in before]).order_by("pk").values()) == before
    assert EvaluationRun.objects.count() == 3
    assert len(finished_runs(submission)) == 2


@needs_shared
def test_pitch_correlation_of_b2_on_real_speech_lies_in_the_published_range():
    """Published for B2: 0.61 to 0.70 for female, 0.53 to 0.66 for male sets of many speakers and voices."""
    corpus = import_speech(SHARED / "speech", "speech")
    anonymize(corpus, sets=tuple(corpus.data_sets.filter(role="trial").values_list("name", flat=True)))
    assert {job.state for job in run_waiting_jobs()} == {State.SUCCEEDED}
    rho = {
        gender: np.mean(
            UtteranceMeasure.objects.filter(file__utterance__speaker__gender=gender).values_list(
                "pitch_correlation", flat=True
            )
        )
        for gender in "fm"
    }
    with (SHARED / "speech" / "utterances.csv").open() as manifest:
        assert len({row["speaker"] for row in csv.DictReader(manifest)}) == 67
    assert 0.58 < rho["f"] < 0.73
    assert 0.50 < rho["m"] < 0.69
