"""The portal's own recognition: from kept words to error rates, as jobs, beside those of the original speech."""

import pytest

from common.errors import MachineError, NotPossible
from evaluation.app.models import Hypothesis
from evaluation.app.recognition.selectors import align_texts, list_recognitions, read_utterances
from evaluation.app.recognition.services import start_recognition
from evaluation.app.runs.context import EvaluationContext
from evaluation.app.runs.selectors import list_jobs
from portal.challenges.models import Utterance
from portal.core.health import write_heartbeat
from portal.jobs.models import JobState
from portal.submissions.models import SubmittedFile
from speech.recognizers import registry
from tests.evaluation.engines import require_recognizer
from tests.portal.attack_submissions import make_unprotected_submission, run_chain, store_samples
from tests.portal.factories import make_submission, make_team, make_team_system
from tests.portal.objective_runs import add_audio, tones_edition

pytestmark = pytest.mark.django_db(transaction=True)

TRIALS = "tones_trials_f"


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    """The default recogniser, as if all its parts were here: what it understood is kept before it is asked."""
    monkeypatch.setattr(registry, "explain_missing", lambda _: "")
    return registry.find_engine(registry.DEFAULT)


def make_different():
    """Anonymised speech that differs from the original, each recording by itself."""
    edition = tones_edition(speakers=4)
    submission = make_unprotected_submission(edition)
    for place, file in enumerate(submission.files.order_by("pk")):
        submission.files.filter(pk=file.pk).update(audio=store_samples([place + 1] * 800))
    return submission


@pytest.fixture
def submission(once):
    return once(make_different)


def understood(submission, engine, wrong=()):
    """Keep what the recogniser hears: every word of the originals, of the anonymised ones too, but for some."""
    rows = {one.audio: one.transcript.lower() for one in Utterance.objects.all()}
    for file in submission.files.select_related("utterance"):
        words = file.utterance.transcript.lower().split()
        rows[file.audio] = " ".join(["noise", *words[1:]] if file.utterance.name in wrong else words)
    Hypothesis.objects.bulk_create(Hypothesis(engine=engine.key, audio=key, text=text) for key, text in rows.items())


def recognise(submission, **fields):
    run = start_recognition(submission=submission, **fields)
    run_chain(run)
    return run


def test_utterances_come_worst_first_with_words_side_by_side(submission, engine):
    understood(submission, engine, ["tones-s2-003"])
    run = recognise(submission)
    rows = read_utterances(run, TRIALS)
    assert [row.errors for row in rows] == [1, 0, 0, 0]
    worst = rows[0]
    assert (worst.utterance, worst.error_rate, worst.original_errors) == ("tones-s2-003", 20.0, 0)
    assert SubmittedFile.objects.get(pk=worst.file or 0).utterance.name == "tones-s2-003"
    steps = align_texts(worst, run.parameters["rule"])
    assert [(step.reference, step.hypothesis) for step in steps][:2] == [("SENTENCE", "NOISE"), ("THREE", "THREE")]
    assert all(step.is_correct for step in align_texts(worst, run.parameters["rule"], original=True))
    assert len(read_utterances(run)) == 16


def test_missing_transcripts_are_told_and_the_rest_counted(submission, engine):
    Utterance.objects.filter(name="tones-s0-002").update(transcript="")
    understood(submission, engine)
    run = recognise(submission, data_sets=[TRIALS])
    [found] = list_recognitions(submission)
    assert {row.utterances for row in found.rows} == {3}
    [said] = [one for one in run.job.problems if one["code"] == "no-transcript"]
    assert said["found"] == "1 without, such as tones-s0-002"


def test_what_cannot_be_recognised_is_refused_in_a_sentence(submission, engine, monkeypatch):
    with pytest.raises(NotPossible, match="Expected a recogniser among"):
        start_recognition(submission=submission, engine="nobody")
    with pytest.raises(NotPossible, match="Expected data sets among tones_enrolls, tones_trials_f"):
        start_recognition(submission=submission, data_sets=["nothing"])
    with pytest.raises(NotPossible, match="holds no speech"):
        start_recognition(submission=make_submission(make_team_system(submission.system.team, "p2")))
    Utterance.objects.update(transcript="")
    assert all("has no transcript of" in one.problem for one in EvaluationContext(submission).spoken_sets())
    with pytest.raises(NotPossible, match="nothing to compare words with"):
        start_recognition(submission=submission)
    monkeypatch.setattr(registry, "explain_missing", lambda _: "Its weights are missing: fetch them.")
    with pytest.raises(NotPossible, match="fetch them"):
        start_recognition(submission=submission)


def test_reading_takes_the_same_queries_whatever_there_is(submission, engine, django_assert_num_queries):
    count = 3
    understood(submission, engine)
    for _ in range(count):
        recognise(submission, data_sets=[TRIALS])
    with django_assert_num_queries(2):
        assert len(list_recognitions(submission)) == 1


def test_real_recogniser_hears_no_words_in_tones(monkeypatch):
    """Nothing is kept beforehand: the model itself is asked, once for each recording."""
    monkeypatch.undo()
    require_recognizer(registry.DEFAULT)
    edition = tones_edition(speakers=2, utterances=1)
    submission = add_audio(make_submission(make_team_system(make_team(edition))))
    run = recognise(submission, data_sets=["tones_trials_f"])
    assert run.job.state == JobState.SUCCEEDED, [job.failure for job in list_jobs(run)]
    [found] = list_recognitions(submission)
    assert {row.speech for row in found.rows} == {"original", "anonymised"}
    assert all(row.error_rate > 50 for row in found.rows)
    # The same audio was recognised once.
    assert Hypothesis.objects.count() == edition.corpus.data_sets.get(name=TRIALS).utterances.count()


@pytest.mark.parametrize(("name", "queue"), [("moonshine-tiny", "cpu"), ("whisper-base", "gpu")])
def test_words_go_to_a_card_where_the_recogniser_has_a_form_for_one(submission, name, queue):
    write_heartbeat("a worker", kind="worker", queues=["gpu"], card="a card")
    run = start_recognition(submission=submission, engine=name, data_sets=[TRIALS])
    assert [(job.kind, job.queue, job.engine, job.needs_card) for job in list_jobs(run)] == [
        ("hypotheses", queue, name, False),
        ("recognition", "cpu", "", False),
    ]


def test_card_that_fails_at_work_ends_the_job_and_blames_no_recording(submission, monkeypatch):
    sentence = "Whisper base failed on “cuda”: CUDA failed with error out of memory"

    class Failing:
        def transcribe(self, *_):
            raise MachineError(sentence)

    monkeypatch.setattr(registry, "load", lambda *_: Failing())
    job = list_jobs(recognise(submission, engine="whisper-base", data_sets=[TRIALS]))[0]
    assert (job.state, job.failure, job.failure_actor, job.problems) == (JobState.FAILED, sentence, "operator", [])
