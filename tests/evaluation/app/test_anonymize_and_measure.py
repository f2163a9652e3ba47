"""B2 over a corpus and its measures, as jobs run in this process, on the demo corpus and on real speech."""

from __future__ import annotations

import csv
import io
import threading
import time
from collections import Counter
from itertools import combinations, count
from pathlib import Path

import numpy as np
import pytest
import soundfile
from django.core.files.storage import default_storage
from django.test import Client

from anonymization.app import job as job_body
from anonymization.app import voice_assignment
from anonymization.app.models import AnonymizationRun
from anonymization.app.selectors import list_paces
from anonymization.app.services import start_trials
from anonymization.app.voice_assignment import find_pseudo_speaker, list_planned_voices
from anonymization.methods.contract import MethodError, Option, VoicedUtterance, complete_options
from anonymization.methods.registry import get_method
from anonymization.methods.voices.pseudo_speakers import guaranteed_distance, voice_distance
from evaluation.app.models import EvaluationRun, UtteranceMeasure
from evaluation.metrics import naturalness
from evaluation.metrics.pitch import pitch_correlation
from portal.challenges.models import Corpus, Utterance
from portal.corpora.services import start_import
from portal.jobs.models import Job, JobState
from portal.jobs.runner import JobReleased, execute
from portal.jobs.services import run_again
from portal.leaderboard.selectors import build_leaderboard
from portal.submissions.models import Submission, SubmittedFile, System
from portal.submissions.rules import Relation
from portal.submissions.services import withdraw
from portal.systems.services import start_baseline, start_edition_baseline
from speech.pitch.estimators import f0_praat
from tests.pages import read_page
from tests.portal.factories import make_edition

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quick_figures", "quick_measures")]
ROOT = Path(__file__).resolve().parents[3]
SPEAKERS, EACH = ("d01", "d02", "d03", "d06", "d07", "d08"), {"enrolment": 1, "trial": 2}


def import_speech(folder: Path, name: str) -> Corpus:
    job = execute(start_import(folder=str(folder), name=name, run_here=True, is_shared=True).pk)
    assert (job.state, job.failure) == (JobState.SUCCEEDED, "")
    return Corpus.objects.get(name=name)


def anonymize(corpus: Corpus, *, name: str = "b2", seed: int = 2022, sets: tuple[str, ...] = (), **settings) -> System:
    data_sets = corpus.data_sets.filter(name__in=sets) if sets else corpus.data_sets.all()
    return start_baseline(name=name, corpus=corpus, data_sets=data_sets, method="mcadams-2022", seed=seed, **settings)


def run_waiting_jobs() -> list[Job]:
    """What a worker does, in this process: every waiting job in the order of its creation."""
    waiting = Job.objects.filter(state=JobState.WAITING).order_by("created_at")
    return [ended for job in waiting if (ended := execute(job.pk))]


def samples_of(key: str) -> np.ndarray:
    with default_storage.open(key) as stored:
        samples, rate = soundfile.read(io.BytesIO(stored.read()), dtype="int16")
    assert rate == 16_000
    return samples


@pytest.fixture(scope="module")
def part_of_demo(tmp_path_factory):
    """The first third of an utterance of the enrolment set and of two of the trial set of three women and three men."""
    folder, whole, number = tmp_path_factory.mktemp("demo"), ROOT / "demo" / "corpus", Counter()
    with (whole / "utterances.csv").open(newline="") as file, (folder / "utterances.csv").open("w", newline="") as part:
        rows = csv.DictReader(file)
        written = csv.DictWriter(part, rows.fieldnames)
        written.writeheader()
        for row in rows:
            number[row["speaker"], row["role"]] += 1
            is_taken = row["speaker"] in SPEAKERS and number[row["speaker"], row["role"]] <= EACH[row["role"]]
            if is_taken:
                samples, rate_hz = soundfile.read(whole / row["path"], dtype="int16")
                third = samples[: samples.size // 3]
                written.writerow(row | {"duration_s": f"{third.size / rate_hz:.3f}"})
                (folder / row["path"]).parent.mkdir(exist_ok=True)
                soundfile.write(folder / row["path"], third, rate_hz, subtype="PCM_16")
    return folder


@pytest.fixture
def demo(once, part_of_demo):
    return once(import_speech, part_of_demo, "demo")


def find_peak(samples: np.ndarray, _: int = 0) -> float:
    return float(np.abs(samples.astype(int)).max())


def make_system(folder: Path) -> System:
    """The peak stands in for the network that predicts naturalness, which takes longer than all other measures."""
    system = anonymize(import_speech(folder, "demo"), sets=("demo_enrolls", "demo_trials_f"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(naturalness, "missing", lambda: "")
        patch.setattr(naturalness, "predict_naturalness", find_peak)
        assert [job.state for job in run_waiting_jobs()] == [JobState.SUCCEEDED] * 4
    return system


@pytest.fixture
def system(once, quick_figures, part_of_demo):
    return once(make_system, part_of_demo)


def test_values_are_mean_spread_and_n_of_the_utterances(system):
    run = EvaluationRun.objects.get(data_set__name="demo_enrolls")
    for gender, n in (("f", 3), ("m", 3), ("", 6)):
        measures = run.measures.filter(file__utterance__speaker__gender__contains=gender)
        rho = np.array(measures.values_list("pitch_correlation", flat=True))
        value = run.values.get(metric="pitch_correlation", gender=gender)
        assert (value.n, rho.size) == (n, n)
        assert value.value == pytest.approx(rho.mean(), abs=1e-12)
        assert value.spread == pytest.approx(rho.std(), abs=1e-12)
        assert value.estimator.startswith("official 2022, praat 6.1.38")


def test_measure_is_what_the_metric_gives_for_the_stored_audio(system):
    measure = UtteranceMeasure.objects.filter(run__data_set__name="demo_trials_f").select_related("file__utterance")[3]
    original, anonymised = samples_of(measure.file.utterance.audio), samples_of(measure.file.audio)
    expected = pitch_correlation(f0_praat(original, 16_000), f0_praat(anonymised, 16_000))
    assert measure.pitch_correlation == pytest.approx(expected.rho, abs=1e-12)
    assert (measure.lag_frames, measure.duration_difference_ms) == (expected.lag_frames, 0.0)
    assert (measure.predicted_naturalness, measure.predicted_original) == (find_peak(anonymised), find_peak(original))
    level = 20 * np.log10(np.std(anonymised / 32768) / np.std(original / 32768))
    assert measure.level_change_db == pytest.approx(level, abs=0.05)


class _Cable:
    """Pulled after so many batches were kept."""

    def __init__(self, monkeypatch, batches):
        self.kept, self.batches = [], batches
        original = job_body.AnonymizationWork._keep

        def keep(work, outcomes):
            if len(self.kept) == self.batches:
                raise JobReleased
            outcomes = list(outcomes)
            self.kept.append([outcome.task.name for outcome in outcomes])
            original(work, outcomes)

        monkeypatch.setattr(job_body.AnonymizationWork, "_keep", keep)

    @property
    def names(self):
        return [name for batch in self.kept for name in batch]


def test_cancelled_run_keeps_what_was_finished_and_can_be_continued(demo, monkeypatch):
    anonymize(demo, sets=("demo_trials_m",))
    job = Job.objects.get(kind="anonymize")
    original = job_body.AnonymizationWork._keep

    def cancel_then_keep(work, outcomes):
        original(work, outcomes)
        work._check.__self__.cancel_wanted.set()

    monkeypatch.setattr(job_body.AnonymizationWork, "_keep", cancel_then_keep)
    ended = execute(job.pk)
    kept = set(SubmittedFile.objects.values_list("pk", flat=True))
    assert (ended.state, ended.failure) == (JobState.CANCELLED, "Cancelled; what was finished is kept.")
    assert len(kept) == 1
    monkeypatch.setattr(job_body.AnonymizationWork, "_keep", original)
    run_again(ended, by=None)
    assert [job.state for job in run_waiting_jobs()] == [JobState.SUCCEEDED] * 2
    assert SubmittedFile.objects.count() == 6
    assert kept < set(SubmittedFile.objects.values_list("pk", flat=True))


def test_bad_first_utterance_stops_the_run_as_a_canary(demo):
    first = Utterance.objects.get(name="d01-0006")
    with default_storage.open(first.audio) as stored:
        content = stored.read()
    Path(default_storage.path(first.audio)).write_bytes(content[:500])
    anonymize(demo, sets=("demo_trials_f",))
    run_waiting_jobs()
    job = Job.objects.get(kind="anonymize")
    assert (job.state, SubmittedFile.objects.count()) == (JobState.FAILED, 0)
    assert job.failure == (
        "1 of 6 utterances of demo_trials_f could not be anonymised, the first one among them, "
        "so the others were not tried."
    )
    Path(default_storage.path(first.audio)).write_bytes(content)
    run_again(job, by=None)
    assert [job.state for job in run_waiting_jobs()] == [JobState.SUCCEEDED] * 2


@pytest.mark.slow  # 400 real utterances through jobs
def test_pitch_correlation_of_b2_on_real_speech_lies_in_the_published_range(shared):
    """Published for B2: 0.61 to 0.70 for female, 0.53 to 0.66 for male sets of many speakers and voices."""
    corpus = import_speech(shared / "speech", "speech")
    anonymize(corpus, sets=tuple(corpus.data_sets.filter(role="trial").values_list("name", flat=True)))
    assert {job.state for job in run_waiting_jobs()} == {JobState.SUCCEEDED}
    rho = {
        gender: np.mean(
            UtteranceMeasure.objects.filter(file__utterance__speaker__gender=gender).values_list(
                "pitch_correlation", flat=True
            )
        )
        for gender in "fm"
    }
    with (shared / "speech" / "utterances.csv").open() as manifest:
        assert len({row["speaker"] for row in csv.DictReader(manifest)}) == 67
    assert 0.58 < rho["f"] < 0.73
    assert 0.50 < rho["m"] < 0.69


# Voices --------------------------------------------------------------------------------------------


def test_voices_of_a_split_are_planned_together_and_kept_with_each_run(demo):
    system = anonymize(demo)
    runs = {run.data_set.name: run for run in system.submissions.get().anonymization_runs.all()}
    speakers = set(demo.speakers.values_list("name", flat=True))
    assert {run.level for run in runs.values()} == {"speaker"}
    assert all(set(run.voices) == speakers for run in runs.values())
    assert runs["demo_trials_f"].voices == runs["demo_trials_m"].voices != runs["demo_enrolls"].voices
    [distance] = {run.voice_distance for run in runs.values()}
    assert distance == guaranteed_distance(len(speakers), 1)
    parameters = get_method("mcadams-2022").parameters
    for run in (runs["demo_enrolls"], runs["demo_trials_f"]):
        voices = [voice for _, voice in list_planned_voices(run)]
        assert min(voice_distance(a, b, parameters) for a, b in combinations(voices, 2)) >= distance


def test_training_data_cannot_be_anonymised_at_speaker_level(demo):
    demo.data_sets.filter(name="demo_enrolls").update(role="training")
    with pytest.raises(MethodError, match="utterance"):
        anonymize(demo, sets=("demo_enrolls",), level="speaker")
    assert (System.objects.count(), Job.objects.filter(kind="anonymize").count()) == (0, 0)
    run = anonymize(demo, sets=("demo_enrolls",)).submissions.get().anonymization_runs.get()
    assert run.level == "utterance"


def test_files_of_two_versions_of_a_method_are_never_mixed(demo, monkeypatch):
    anonymize(demo, sets=("demo_trials_f",))
    job = Job.objects.get(kind="anonymize")
    AnonymizationRun.objects.update(recipe_version="0")
    cable = _Cable(monkeypatch, batches=2)
    execute(job.pk)
    version = get_method("mcadams-2022").version
    assert set(AnonymizationRun.objects.values_list("recipe_version", flat=True)) == {version}  # none was made before
    AnonymizationRun.objects.update(recipe_version="0")
    cable.batches = 1000
    ended = execute(job.pk)
    assert ended.state == JobState.FAILED
    assert f"anonymised by mcadams-2022 in version 0; this portal has version {version}" in ended.failure


def test_speaker_who_came_after_the_voices_were_planned_gets_no_unplanned_voice(demo):
    anonymize(demo, sets=("demo_trials_f",))
    run, job = AnonymizationRun.objects.get(), Job.objects.get(kind="anonymize")
    speaker = run.data_set.utterances.order_by("name").last().speaker.name
    planned = run.voices
    AnonymizationRun.objects.update(voices={name: voice for name, voice in planned.items() if name != speaker})
    ended = execute(job.pk)
    assert (ended.state, ended.failure_actor, SubmittedFile.objects.count()) == (JobState.FAILED, "organizer", 0)
    assert ended.failure == (
        "1 of 3 speakers of demo_trials_f have no voice in this run, because they came into the corpus after its "
        f"voices were planned: {speaker}."
    )
    run.refresh_from_db()
    with pytest.raises(MethodError, match=f"no voice for speaker {speaker}"):
        find_pseudo_speaker(run, run.data_set.utterances.filter(speaker__name=speaker).first())


# Any method ----------------------------------------------------------------------------------------


class Backwards:
    """A plug-in as somebody might write it: plays speech backwards, and does not like some of it."""

    name, title, version, reference = "backwards", "Backwards", "1", "Nobody, 2026"
    parameters, options = (), (Option("sign", 1.0, "What samples are multiplied with", low=-1.0, high=1.0),)
    is_deterministic, needs_gpu = True, False

    def __init__(self):
        self.batches, self.refused = [], set()

    def missing(self):
        return ""

    def anonymize(self, samples, rate, pseudo_speaker, *, options=None, threads=1):
        return self.anonymize_batch([VoicedUtterance(samples, pseudo_speaker)], rate, options=options, threads=threads)[
            0
        ]

    def anonymize_batch(self, items, rate, *, options=None, threads=1):  # noqa: ARG002
        self.batches.append(len(items))
        sizes = {item.samples.size for item in items}
        if wrong := sizes & self.refused:
            raise (MethodError if min(wrong) % 2 else ValueError)(f"not {min(wrong)} samples")
        sign = complete_options(self, options)["sign"]
        return [(item.samples[::-1] * sign).astype(np.int16) for item in items]


@pytest.fixture
def backwards(monkeypatch):
    plugin = Backwards()
    for place in ("services", "networks", "handlers", "models"):
        monkeypatch.setattr(f"anonymization.app.{place}.get_method", {"backwards": plugin}.__getitem__)
    return plugin


def start_backwards(corpus, **settings):
    data_sets = corpus.data_sets.filter(name="demo_trials_f")
    return start_baseline(name="plug", corpus=corpus, data_sets=data_sets, method="backwards", seed=1, **settings)


def test_output_that_is_no_speech_loses_its_utterance_only(demo, backwards):
    sizes = list(demo.data_sets.get(name="demo_trials_f").utterances.order_by("name").values_list("samples", flat=True))
    wrong = next(size for size in sizes if size != sizes[0] and sizes.count(size) == 1)
    whole = backwards.anonymize_batch

    def anonymize_batch(items, *args, **settings):
        outputs = zip(items, whole(items, *args, **settings), strict=True)
        return [output[:0] if item.samples.size == wrong else output for item, output in outputs]

    backwards.anonymize_batch = anonymize_batch
    system = start_backwards(demo)
    job = run_waiting_jobs()[0]
    assert (job.state, system.submissions.get().files.count()) == (JobState.FAILED, 5)
    [problem] = job.problems
    expected = "backwards was to give int16 samples of the shape (n,), at least one; it gave int16 (0,)."
    assert (problem["code"], problem["found"]) == ("not-anonymised", expected)


def test_no_thread_works_after_a_job_whose_files_cannot_be_kept(demo, backwards, monkeypatch):
    """At the third batch nothing is taken any more; the fourth is under way then, hears of it and is waited for."""
    monkeypatch.setattr(job_body, "threads", lambda: 2)
    monkeypatch.setattr(job_body, "TOGETHER", 1)
    _Cable(monkeypatch, batches=2)
    inner, calls, told, fourth = job_body.anonymize_tasks, count(1), [], threading.Event()

    def slow(*args, should_stop):
        call = next(calls)
        if call == 3:
            assert fourth.wait(60)
        if call == 4:
            fourth.set()
            end = time.monotonic() + 60
            while not should_stop() and time.monotonic() < end:
                time.sleep(0.01)
            told.append(should_stop())
        return inner(*args, should_stop=should_stop)

    monkeypatch.setattr(job_body, "anonymize_tasks", slow)
    start_backwards(demo)
    ended = execute(Job.objects.get(kind="anonymize").pk)
    assert (ended.state, SubmittedFile.objects.count(), told) == (JobState.WAITING, 2, [True])
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("anonymize")]


def test_what_the_checks_find_is_kept_with_the_run_by_cause_and_shown_with_the_job(demo, backwards, monkeypatch):
    loud = 32767 * np.ones(1, np.int16)
    backwards.anonymize_batch = lambda items, *_, **__: [np.resize(loud, item.samples.size) for item in items]
    monkeypatch.setattr(job_body, "TOGETHER", 3)
    system = start_backwards(demo)
    cable = _Cable(monkeypatch, batches=2)
    run_waiting_jobs()
    run = system.submissions.get().anonymization_runs.get()
    kept = len(cable.names)
    assert {row["code"] for row in run.report["problems"]} >= {"clipped"}
    assert sum(row["count"] for row in run.report["problems"] if row["code"] == "clipped") == kept < 6
    cable.batches = 1000
    job = run_waiting_jobs()[0]
    run.refresh_from_db()
    clipped = [row for row in run.report["problems"] if row["code"] == "clipped"]
    assert (job.state, sum(row["count"] for row in clipped)) == (JobState.SUCCEEDED, 6)
    assert len(clipped) <= voice_assignment.EXAMPLES + 1
    assert clipped == [row for row in job.problems if row["code"] == "clipped"]


def test_method_that_is_gone_fails_with_a_sentence(demo):
    anonymize(demo, sets=("demo_trials_f",))
    AnonymizationRun.objects.update(method="bought-elsewhere")
    job = run_waiting_jobs()[0]
    assert (job.state, job.failure_actor) == (JobState.FAILED, "operator")
    assert 'There is no anonymisation method "bought-elsewhere".' in job.failure


# A baseline of an edition --------------------------------------------------------------------------


@pytest.fixture
def edition(demo):
    return make_edition(demo, name="vpc", scores_required=False)


def begin(edition, **settings):
    system = start_edition_baseline(
        edition=edition,
        label="B2.a",
        data_sets=edition.corpus.data_sets.all(),
        method="mcadams-2022",
        seed=1,
        by=edition.organizers.first(),
        **settings,
    )
    return system.submissions.get()


def steps(submission):
    return list(submission.events.values_list("state", flat=True))


def test_baseline_of_an_edition_goes_from_received_to_the_leaderboard(demo, edition):
    submission = begin(edition)
    system = submission.system
    assert (system.label, system.name, system.is_baseline, system.team) == ("B2.a", "vpc-b2-a", True, None)
    assert (submission.state, steps(submission)) == (Submission.State.RECEIVED, ["received"])
    assert {job.kind: job.edition for job in Job.objects.exclude(kind="import-corpus")} == {"anonymize": "vpc"}
    first, second, third = Job.objects.filter(kind="anonymize").order_by("created_at")
    for job in (first, second):
        assert execute(job.pk).state == JobState.SUCCEEDED
    submission.refresh_from_db()
    assert submission.state == Submission.State.RECEIVED
    assert execute(third.pk).state == JobState.SUCCEEDED
    submission.refresh_from_db()
    assert submission.state == Submission.State.EVALUATING
    ended = run_waiting_jobs()
    assert [job.kind for job in ended] == ["measure"] * 3 + ["objective"]
    assert {job.state for job in ended} == {JobState.SUCCEEDED}
    submission.refresh_from_db()
    assert (submission.state, submission.evaluated_at is not None) == (Submission.State.EVALUATED, True)
    assert steps(submission) == ["received", "accepted", "evaluating", "evaluated"]
    organizer = edition.organizers.get()
    assert [one.actor for one in submission.events.all()] == [organizer, None, None, None]  # the portal starts the rest
    client = Client()
    client.force_login(organizer)
    page = read_page(client.get(submission.get_absolute_url()))
    assert f'<span class="soft">by {organizer}</span>' in page
    assert 'Evaluating <span class="soft">by the portal</span>' in page
    note = submission.events.get(state="accepted").note
    assert note == "18 utterances of 3 data sets were anonymised with B2: McAdams coefficient (2022)."
    [entry] = [entry for entry in build_leaderboard(edition).entries if entry.kind == "baseline"]
    assert entry.label == "B2.a"


def test_failed_run_leaves_the_submission_as_it_is_and_tells_its_timeline(demo, edition):
    submission = begin(edition)
    Utterance.objects.filter(name="d01-0006").update(audio="")
    ended = run_waiting_jobs()
    assert sorted(job.state for job in ended) == [JobState.FAILED, JobState.SUCCEEDED, JobState.SUCCEEDED]
    submission.refresh_from_db()
    assert (submission.state, steps(submission)) == (Submission.State.RECEIVED, ["received", "received"])
    assert submission.events.last().note == (
        "The run on demo_trials_f failed: 1 of 6 utterances of demo_trials_f have no audio in the corpus. "
        "It can be run again; what was finished is kept."
    )
    audio = Utterance.objects.exclude(audio="").first().audio
    Utterance.objects.filter(name="d01-0006").update(audio=audio)
    run_again(next(job for job in ended if job.state == JobState.FAILED), by=None)
    assert {job.state for job in run_waiting_jobs()} == {JobState.SUCCEEDED}
    run_waiting_jobs()
    submission.refresh_from_db()
    assert submission.state == Submission.State.EVALUATED


def test_withdrawn_baseline_is_not_accepted_and_its_runs_are_cancelled(demo, edition):
    submission = begin(edition)
    first, *others = Job.objects.filter(kind="anonymize").order_by("created_at")
    execute(first.pk)
    withdraw(submission=submission, by=edition.organizers.first(), relation=Relation.ORGANIZER)
    assert {Job.objects.get(pk=job.pk).state for job in others} == {JobState.CANCELLED}
    for job in others:
        run_again(Job.objects.get(pk=job.pk), by=None)
    assert {job.state for job in run_waiting_jobs()} == {JobState.SUCCEEDED}
    submission.refresh_from_db()
    assert (submission.state, EvaluationRun.objects.count()) == (Submission.State.WITHDRAWN, 0)
    assert "accepted" not in steps(submission)


# Estimates -----------------------------------------------------------------------------------------


def test_trial_measures_each_method_on_one_utterance_and_keeps_it(demo):
    assert list_paces() == {}
    job = start_trials(corpus=demo, methods=["mcadams-2022", "no-such-method"])
    assert start_trials(corpus=demo, methods=["mcadams-2022"]) == job  # one at a time
    ended = execute(job.pk)
    assert (ended.state, set(ended.result["methods"])) == (JobState.SUCCEEDED, {"mcadams-2022", "no-such-method"})
    assert "There is no anonymisation method" in ended.result["methods"]["no-such-method"]["reason"]
    [(name, pace)] = list_paces().items()
    assert (name, pace.source) == ("mcadams-2022", "trial")
    assert pace.work_per_second > 0


def test_runs_tell_more_than_a_trial(demo):
    execute(start_trials(corpus=demo, methods=["mcadams-2022"]).pk)
    anonymize(demo, sets=("demo_trials_f",))
    execute(Job.objects.get(kind="anonymize").pk)
    assert list_paces()["mcadams-2022"].source == "runs"
    job = Job.objects.get(kind="anonymize")
    seconds = sum(Utterance.objects.filter(data_sets__name="demo_trials_f").values_list("duration_s", flat=True))
    expected = (job.finished_at - job.started_at).total_seconds() / seconds
    assert list_paces()["mcadams-2022"].work_per_second == pytest.approx(expected)
