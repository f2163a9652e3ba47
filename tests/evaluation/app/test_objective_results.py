"""The objective numbers of a submission: from documents and audio to rows, states and mails."""

import io
import statistics

import numpy as np
import pytest
from django.core import mail
from django.core.files.base import ContentFile
from django.utils import timezone

from evaluation.app.objective_results.services import describe_averages, start_objective
from evaluation.app.runs.services import replicates_key
from evaluation.formats.results import AttackModel
from evaluation.metrics.detection import detection_metrics
from evaluation.objective_results import sources
from evaluation.objective_results.values import Basis
from portal.core.storage import default_storage
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.jobs.services import request_cancel, run_again
from portal.submissions.models import Submission, SubmissionEvent
from tests.portal.factories import make_job, make_organizer, make_submission, make_team, make_team_system
from tests.portal.leaderboards import make_leaderboard
from tests.portal.objective_runs import (
    STAMP,
    TEST,
    add_audio,
    add_documents,
    evaluate,
    find_objective_run,
    read_values_of_submission,
    run_waiting_jobs,
    tones_edition,
    tones_matrices,
    tones_scores,
    tones_words,
    trial_pairs,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("quick_figures", "quick_measures", "few_resamples"),
]


def everything(corpus, *, every_attack=False):
    return tones_scores(corpus, every_attack=every_attack) | tones_words(corpus) | tones_matrices(4)


def make_received():
    return make_submission(make_team_system(make_team(tones_edition())), state="received")


def make_evaluated(*parts):
    """Of a submission with documents, those of "every attack", with "audio"."""
    submission = make_received()
    add_documents(submission, everything(submission.system.edition.corpus, every_attack="every attack" in parts))
    return evaluate(add_audio(submission) if "audio" in parts else submission)


@pytest.fixture
def submission(once):
    return once(make_received)


@pytest.fixture
def edition(submission):
    return submission.system.edition


@pytest.fixture
def evaluated(once, quick_figures, few_resamples):
    return once(make_evaluated)


@pytest.fixture
def evaluated_of_every_attack(once, quick_figures, few_resamples):
    return once(make_evaluated, "every attack")


@pytest.fixture
def evaluated_with_audio(once, quick_figures, few_resamples):
    return once(make_evaluated, "audio")


def problems_of(submission, code):
    return [one for one in find_objective_run(submission).job.problems if one["code"] == code]


# What is computed ----------------------------------------------------------------------------------


def test_scores_give_the_numbers_of_the_metric_module_with_intervals_over_speakers(evaluated_of_every_attack):
    edition = evaluated_of_every_attack.system.edition
    files = tones_scores(edition.corpus)
    values = read_values_of_submission(evaluated_of_every_attack)
    lines = files[f"{STAMP}/ASV-tones_enrolls_anon-tones_trials_f_anon/scores"].decode().split()
    scores = np.array(lines[2::3], dtype=float)
    is_target = np.array(
        [model == utterance.speaker.name for model, utterance in trial_pairs(edition.corpus, "tones_trials_f")]
    )
    wanted = detection_metrics(scores[is_target], scores[~is_target])
    found = values.number("eer", "kaldi", data_set="tones_trials_f")
    assert (found.value, found.n) == (100 * wanted.kaldi_eer, len(scores))
    assert found.low <= found.value <= found.high
    assert found.low < found.high
    assert values.number("min_cllr", "pav", data_set="tones_trials_f").value == wanted.min_cllr
    assert values.number("zebra_population", data_set="tones_trials_f").value == wanted.zebra.population_bit
    attacks = [
        values.number("eer", "kaldi", data_set="tones_trials_m", attack_model=attack).value for attack in AttackModel
    ]
    assert attacks[0] < attacks[3] < attacks[1]  # unprotected, semi-informed, ignorant


def test_averages_weigh_the_unrounded_values_and_carry_their_interval(evaluated_of_every_attack):
    values = read_values_of_submission(evaluated_of_every_attack)
    for attack in AttackModel:
        members = [
            values.number("eer", "kaldi", data_set=f"tones_trials_{gender}", attack_model=attack) for gender in "fm"
        ]
        average = values.average("eer", "kaldi", split="test", attack_model=attack)
        assert average.value == pytest.approx(statistics.fmean(one.value for one in members), abs=1e-12)
        assert average.basis == Basis.VALUES
        assert (average.low is None) or average.low <= average.value <= average.high  # none without a single error
    narrower = values.average("eer", "kaldi", split="test")
    widest = max(one.high - one.low for one in members)  # of the last, the semi-informed attacker
    assert 0 < narrower.high - narrower.low <= widest
    with default_storage.open(replicates_key(values.run)) as file, np.load(io.BytesIO(file.read())) as packed:
        assert packed["average_test eer kaldi semi-informed"].shape == (sources.RESAMPLES,)


def test_hypotheses_are_scored_against_the_transcripts_of_the_corpus(edition, submission):
    wrong = [utterance.name for _, utterance in trial_pairs(edition.corpus, "tones_trials_f")[:2]]
    evaluate(add_documents(submission, tones_words(edition.corpus, wrong=wrong)))
    found = read_values_of_submission(submission).number("wer", "tglarge", data_set="tones_asr")
    words = 5 * 16  # eight speakers, two sentences of five words each
    assert (found.n, found.basis) == (words, Basis.TRANSCRIPTS)
    assert found.value == round(100 * len(set(wrong)) / words, 2)


def test_hypotheses_that_lack_an_utterance_cannot_be_relied_on(edition, submission):
    [(path, text)] = tones_words(edition.corpus).items()
    evaluate(add_documents(submission, {path: b"\n".join(text.splitlines()[1:]) + b"\n"}))
    values = read_values_of_submission(submission)
    [missing] = [one for one in values.missing if one.what == "WER of tones_asr"]
    assert missing.is_ranked
    assert missing.reason == f"{path} does not cover the organizer's utterances: 1 utterance without a hypothesis"
    assert missing.cause == "1 utterance without a hypothesis"
    assert len(problems_of(submission, "missing-hypothesis")) == 1
    assert values.number("wer", "tglarge", data_set="tones_asr") is None


def test_matrices_give_the_last_step_of_distinctiveness(evaluated):
    values = read_values_of_submission(evaluated)
    gain = values.number("gain_of_voice_distinctiveness", "official", data_set="tones_trials_f")
    assert gain.value == pytest.approx(10 * np.log10(0.4 / 0.7))
    assert values.number("de_identification", "official", data_set="tones_trials_f").value == pytest.approx(1.0)
    assert (gain.n, gain.basis) == (4, Basis.SIMILARITY)


@pytest.mark.parametrize(
    "content",
    [
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '|O', 'fortran_order': False, 'shape': (6, 6), }" + b" " * 55 + b"\n",
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (9999, 9999), }"
        + b" " * 46
        + b"\n",
    ],
)
def test_hostile_matrices_are_told_and_left_out(edition, submission, content):
    files = everything(edition.corpus)
    path = f"{STAMP}/similarity_matrices_DeID_Gvd/tones_trials_f/similarity_matrix_psp_psp.npy"
    evaluate(add_documents(submission, files | {path: content}))
    values = read_values_of_submission(submission)
    assert submission.state == Submission.State.EVALUATED
    assert values.number("gain_of_voice_distinctiveness", "official", data_set="tones_trials_f") is None
    assert values.number("gain_of_voice_distinctiveness", "official", data_set="tones_trials_m") is not None
    assert values.average("gain_of_voice_distinctiveness", "official", split="test") is None
    [problem] = problems_of(submission, "unusable-matrix")
    assert "tones_trials_f" in problem["file"]


def test_pitch_of_the_audio_stands_beside_nothing_else(evaluated_with_audio):
    found = read_values_of_submission(evaluated_with_audio).number(
        "pitch_correlation", "praat", data_set="tones_trials_m"
    )
    assert (found.value, found.n, found.basis) == (pytest.approx(1.0), 8, Basis.AUDIO)
    kinds = list(Job.objects.order_by("created_at").exclude(kind="send-notice").values_list("kind", "state"))
    assert kinds == [("measure", JobState.SUCCEEDED)] * 3 + [("objective", JobState.SUCCEEDED)]


# Reported numbers --------------------------------------------------------------------------------------------


def claiming(eer):
    return {f"{TEST}/EER": f"EER: {eer}%\n".encode()}


def test_claim_that_is_the_number_in_print_agrees(evaluated):
    exact = read_values_of_submission(evaluated).number("eer", "kaldi", data_set="tones_trials_f").value
    edition = evaluated.system.edition
    submission = make_submission(make_team_system(make_team(edition)), state="received")
    files = everything(edition.corpus) | claiming(f"{exact:.4g}")
    found = read_values_of_submission(evaluate(add_documents(submission, files)))
    number = found.number("eer", "kaldi", data_set="tones_trials_f")
    assert (number.reported_text, number.agrees, number.value) == (f"{exact:.4g}", True, exact)
    assert number.reported_in == f"{TEST}/EER, line 1"


# What is missing -----------------------------------------------------------------------------------


def test_original_speech_is_held_against_the_published_number(evaluated_of_every_attack):
    found = read_values_of_submission(evaluated_of_every_attack).number(
        "eer", "kaldi", data_set="tones_trials_f", attack_model=AttackModel.UNPROTECTED
    )
    assert abs(found.value - 5.0) > 0.1
    [problem] = problems_of(evaluated_of_every_attack, "unlike-published")
    assert problem["expected"] == "about 5 % as published for EER (Kaldi) of tones_trials_f, original speech"


def test_claims_do_not_stand_for_scores_that_are_required(edition, submission):
    evaluate(add_documents(submission, claiming("12.3")))
    values = read_values_of_submission(submission)
    reasons = {one.what: one.reason for one in values.unrankable}
    assert reasons["EER (Kaldi) of tones_trials_f, semi-informed"] == (
        "it is reported, but there are no scores or no official trials to recompute it from"
    )
    assert reasons["EER (Kaldi) of tones_trials_m, semi-informed"] == "nothing that was submitted gives it"
    ranking = edition.recipe.track.ranking
    assert values.average(ranking.privacy.metric, ranking.privacy.estimator, split=ranking.split) is None


def test_before_the_evaluation_everything_is_missing(submission):
    values = read_values_of_submission(submission)
    assert (values.run, values.is_complete, len(values.unrankable)) == (None, False, 5)
    assert {one.reason for one in values.missing} == {"the submission has not been evaluated yet"}


# States and mails ----------------------------------------------------------------------------------


def states_of(submission):
    return list(SubmissionEvent.objects.filter(submission=submission).values_list("state", flat=True))


def test_states_and_the_mail_to_the_team(evaluated_with_audio):
    submission = evaluated_with_audio
    assert states_of(submission) == ["accepted", "evaluating", "evaluated"]
    execute(Job.objects.get(kind="send-notice").pk)
    [letter] = mail.outbox
    assert letter.to == [submission.system.team.memberships.get().user.email]
    assert "has been evaluated" in letter.subject
    assert f"/systems/{submission.system.name}/" in letter.body
    assert "next to yours" in letter.body, "its recipe lets teams report numbers"
    assert "Its rank can be seen once the leaderboard is published." in letter.body
    assert "The released description" not in letter.body


def test_mail_of_an_evaluation_asks_to_offer_a_new_description(edition, submission):
    paper = {"path": "system.pdf", "kind": "description", "key": "documents/system.pdf", "bytes": 8}
    submission.shared_parts.create(document=submission.documents.create(**paper), released_at=timezone.now())
    later = make_submission(submission.system, version=2)
    later.documents.create(**paper | {"key": default_storage.save("documents/other.pdf", ContentFile(b"%PDF-1.7"))})
    evaluate(add_audio(later))
    [told] = Job.objects.get(kind="send-notice").parameters["lines"]
    assert (
        "The released description is that of version 1. To replace it, offer that of this version on the page" in told
    )


def test_mail_of_an_evaluation_gives_the_averages_that_rank():
    first = make_leaderboard().systems.get(label="T01-p1").submissions.get()
    assert describe_averages(first) == [
        "EER (Kaldi), semi-informed attacker: 22.5 % (95 % interval 22.1 to 22.9)",
        "WER: 8.3 % (95 % interval 7.9 to 8.7)",
    ]


def test_failed_measures_fail_the_evaluation_and_tell_the_team(edition, submission):
    add_audio(submission)
    submission.files.filter(data_set__name="tones_trials_f").update(audio="content/no/such.flac")
    evaluate(submission)
    assert submission.state == Submission.State.FAILED
    assert submission.evaluated_at is None
    assert "could not be measured" in SubmissionEvent.objects.filter(submission=submission).latest("pk").note
    execute(Job.objects.get(kind="send-notice").pk)
    assert "failed" in mail.outbox[0].subject


def test_withdrawn_submission_stays_withdrawn(edition, submission):
    start_objective(submission=submission)
    Submission.objects.filter(pk=submission.pk).update(state=Submission.State.WITHDRAWN)
    run_waiting_jobs()
    submission.refresh_from_db()
    assert submission.state == Submission.State.WITHDRAWN
    assert not Job.objects.filter(kind="send-notice").exists()


def test_cancelled_evaluation_is_no_news_for_the_team(edition, submission):
    run = start_objective(submission=submission)
    assert run.job is not None
    request_cancel(run.job, by=make_organizer())
    submission.refresh_from_db()
    assert submission.state == Submission.State.FAILED
    assert not Job.objects.filter(kind="send-notice").exists()


def test_submission_names_the_job_that_was_cancelled_and_is_evaluating_once_it_runs_again(edition, submission):
    first = make_job(title="Speaker vectors")
    second = make_job(title="Scores", after=first)
    start_objective(submission=submission, after=second)
    by = make_organizer()
    request_cancel(first, by=by)
    submission.refresh_from_db()
    assert submission.state == Submission.State.FAILED
    told = submission.events.latest("pk").note
    assert told == "“Speaker vectors” was cancelled. An organizer can let it run again."
    first.refresh_from_db()
    run_again(first, by=by)
    submission.refresh_from_db()
    assert submission.state == Submission.State.EVALUATING
