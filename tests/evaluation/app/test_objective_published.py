"""What the challenge published, handed in as submissions: the portal computes the published averages from it."""

import pytest

from evaluation.formats.results import AttackModel, Speech
from evaluation.objective_results.values import Basis
from evaluation.protocols.ranking.ranking import check_gate, conditions
from portal.challenges.models import Corpus
from portal.corpora.services import start_import
from portal.jobs.models import JobState
from portal.jobs.runner import execute
from portal.leaderboard.selectors import build_leaderboard
from portal.submissions.models import Submission
from tests.evaluation.formats.published import R2022
from tests.librispeech import EERS, name_test
from tests.portal.archives import hand_in
from tests.portal.factories import make_edition, make_submission, make_team, make_team_system
from tests.portal.objective_runs import (
    add_documents,
    evaluate,
    find_objective_run,
    read_values_of_submission,
    run_waiting_jobs,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quick_figures")]

STAMP = "exp/results-2022-07-01-10-00-00"
# Tables 5 to 7 of the results of 2022: EER of original and anonymised speech, WER of both, ρF0, G_VD; dev and test.
TABLES = {
    "tts_old_c": ("3.539 3.786", "11.742 11.809", "7.305 8.480", "7.940 8.285", "0.774 0.765", "-9.706 -10.145"),
    "tts_joint_nsf_hifigan": (
        "3.551 3.786",
        "9.928 9.183",
        "7.315 8.475",
        "7.585 7.560",
        "0.804 0.801",
        "-6.444 -6.438",
    ),
    "mcadams": ("3.539 3.786", "6.529 7.769", "7.305 8.485", "8.040 9.030", "0.608 0.620", "-1.721 -1.633"),
}


def published(system):
    """The published files of a system under the names that protocol 1.2 gives them."""
    return {
        f"{STAMP}/results_summary.txt": (R2022 / f"RESULTS_summary_{system}").read_bytes(),
        f"{STAMP}/results.txt": (R2022 / f"results.anon_{system}").read_bytes(),
        f"{STAMP}.orig/results.txt": (R2022 / f"results.orig_{system}").read_bytes(),
    }


@pytest.fixture
def edition():
    """The challenge of 2022 without a corpus: nothing but results is handed in."""
    return make_edition(audio_required=False, scores_required=False)


def make_published(system):
    edition = make_edition(audio_required=False, scores_required=False)
    submission = make_submission(make_team_system(make_team(edition)), state="received")
    return evaluate(add_documents(submission, published(system)))


def check_averages(submission, system):
    """Those that were published, to all printed digits; by them none reaches 15 %, and all keep their pitch."""
    values = read_values_of_submission(submission)
    assert (values.missing, values.disagreements, values.is_complete) == ((), (), True)

    def printed(metric, estimator, **speech):
        found = [values.average(metric, estimator, split=split, **speech) for split in ("dev", "test")]
        assert [number.agrees for number in found] == [True, True]
        assert [number.reported_text for number in found] == [f"{number.value:.3f}" for number in found]
        return " ".join(f"{number.value:.3f}" for number in found)

    assert TABLES[system] == (
        printed("eer", "kaldi", attack_model=AttackModel.UNPROTECTED),
        printed("eer", "kaldi"),
        printed("wer", "tglarge", speech=Speech.ORIGINAL),
        printed("wer", "tglarge"),
        printed("pitch_correlation", "praat"),
        printed("gain_of_voice_distinctiveness", "official"),
    )
    ranking = submission.system.edition.recipe.track.ranking
    eer = values.average("eer", "kaldi", split=ranking.split).value
    assert [condition.met for condition in conditions(eer, ranking.minimum_eers)] == [False] * 4
    for one in ranking.gates:
        assert all(
            group.passed
            for group in check_gate(values.gate_values(one, AttackModel.SEMI_INFORMED), one.groups, one.minimum)
        )


def test_numbers_without_scores_stay_claims_and_rates_follow_from_their_counts():
    values = read_values_of_submission(make_published("mcadams"))
    eer = values.number("eer", "kaldi", data_set="libri_test_trials_f")
    assert (eer.basis, eer.is_recomputed, eer.agrees) == (Basis.REPORTED, False, None)
    wer = values.number("wer", "tglarge", data_set="libri_test_asr")
    assert (wer.basis, wer.n, wer.agrees) == (Basis.COUNTS, 35042, True)
    assert values.average("eer", "kaldi", split="test").basis == Basis.REPORTED
    assert values.average("wer", "tglarge", split="test").basis == Basis.VALUES


def test_archives_of_three_teams_go_from_arrival_to_the_leaderboard(edition):
    labels = {}
    for system in TABLES:
        team = make_team(edition)
        submission = hand_in(team, published(system))
        assert (submission.job.failure, submission.errors) == ("", 0)
        assert submission.state == Submission.State.EVALUATING
        run_waiting_jobs()
        submission.refresh_from_db()
        assert submission.state == Submission.State.EVALUATED
        check_averages(submission, system)
        labels[submission.system.label] = system
    edition.leaderboard_policy = {"basis": "claims", "minimum_eers": [5, 9]}
    edition.save()
    order = [
        [labels[row.entry.label] for row in table.competitors] for table in build_leaderboard(edition).table.tables
    ]  # the lowest WER first, of those whose EER reaches the limit
    assert order == [["tts_joint_nsf_hifigan", "tts_old_c", "mcadams"], ["tts_joint_nsf_hifigan", "tts_old_c"]]
    edition.leaderboard_policy = {"basis": "claims"}
    assert [table.competitors for table in build_leaderboard(edition).table.tables] == [
        ()
    ] * 4  # as published: none reaches 15 %


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
