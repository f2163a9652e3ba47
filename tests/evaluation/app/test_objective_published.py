"""What the challenge published, handed in as submissions: the portal computes the published averages from it."""

import pytest

from evaluation.formats.results import AttackModel
from evaluation.objective_results.values import Basis
from portal.challenges.models import Corpus
from portal.corpora.services import start_import
from portal.jobs.models import JobState
from portal.jobs.runner import execute
from portal.submissions.models import Submission
from tests.evaluation.formats.published import R2022
from tests.librispeech import EERS, name_test
from tests.portal.factories import make_edition, make_submission, make_team, make_team_system
from tests.portal.objective_runs import add_documents, evaluate, find_objective_run, read_values_of_submission

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quick_figures")]

STAMP = "exp/results-2022-07-01-10-00-00"


def test_numbers_without_scores_stay_claims_and_rates_follow_from_their_counts():
    edition = make_edition(audio_required=False, scores_required=False)
    submission = make_submission(make_team_system(make_team(edition)), state="received")
    summary = {f"{STAMP}/results_summary.txt": (R2022 / "RESULTS_summary_mcadams").read_bytes()}
    values = read_values_of_submission(evaluate(add_documents(submission, summary)))
    eer = values.number("eer", "kaldi", data_set="libri_test_trials_f")
    assert (eer.basis, eer.is_recomputed, eer.agrees) == (Basis.REPORTED, False, None)
    wer = values.number("wer", "tglarge", data_set="libri_test_asr")
    assert (wer.basis, wer.n, wer.agrees) == (Basis.COUNTS, 35042, True)
    assert values.average("eer", "kaldi", split="test").basis == Basis.REPORTED
    assert values.average("wer", "tglarge", split="test").basis == Basis.VALUES


# Scores of all official trials of dev ---------------------------------------------------------------


def import_directories(folder):
    job = execute(start_import(folder=str(folder / "data"), name="libri", without_audio=True, run_here=True).pk)
    assert (job.state, job.failure) == (JobState.SUCCEEDED, "")
    return Corpus.objects.get(name="libri")


@pytest.fixture
def corpus(once, librispeech):
    return once(import_directories, librispeech)


@pytest.mark.usefixtures("few_resamples")
def test_scores_give_the_rates_of_kaldi_with_intervals(corpus, librispeech):
    edition = make_edition(corpus, audio_required=False)
    files = {
        f"{STAMP}.orig/{path.parent.name}/scores": path.read_bytes()
        for path in (librispeech / "scores").glob("ASV-*/scores")
    }
    assert len(files) == 6
    submission = make_submission(make_team_system(make_team(edition)), state="received")
    evaluate(add_documents(submission, files))
    assert submission.state == Submission.State.EVALUATED
    values = read_values_of_submission(submission)
    found = {
        (attack, gender): values.number(
            "eer", "kaldi", data_set=f"libri_dev_trials_{gender}", attack_model=AttackModel(attack)
        )
        for attack, gender in EERS
    }
    assert {test: f"{number.value:.4g}" for test, number in found.items()} == EERS
    assert all(number.basis == Basis.SCORES and number.reported is None for number in found.values())
    assert all(number.low <= number.value <= number.high for number in found.values())
    female = found["ignorant", "f"]
    assert (female.n, female.low < female.value < female.high) == (15270, True)
    kept = {(one.data_set, one.attack_model): one for one in values.score_sets}
    assert len(kept) == 6
    assert kept["libri_dev_trials_f", "ignorant"].target_count == 704


def test_numbers_that_scores_do_not_give_are_missing_with_their_reason(corpus, librispeech):
    edition = make_edition(corpus, audio_required=False)
    path = name_test("unprotected", "f")
    whole = (librispeech / "scores" / path / "scores").read_bytes()
    short = b"".join(whole.splitlines(keepends=True)[:-1])
    submission = make_submission(make_team_system(make_team(edition)), state="received")
    evaluate(add_documents(submission, {f"{STAMP}.orig/{path}/scores": short}))
    values = read_values_of_submission(submission)
    assert not values.is_complete
    ranked = {one.what for one in values.unrankable}
    assert "EER (Kaldi) of libri_test_trials_f, semi-informed" in ranked
    assert "EER (Kaldi) of libri_dev_trials_f, semi-informed" not in ranked  # dev does not rank
    assert values.average("eer", "kaldi", split="dev", attack_model=AttackModel.UNPROTECTED) is None
    problems = find_objective_run(submission).job.problems
    assert {"missing-score"} <= {problem["code"] for problem in problems}
