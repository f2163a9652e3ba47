"""The portal's own attacks: from audio to vectors, scores, numbers and figures, as jobs that may stop anywhere."""

import io
import zipfile

import numpy as np
import pytest
from django.core.files.storage import default_storage

from evaluation.app.attacks.selectors import list_attacks
from evaluation.app.attacks.services import start_attack
from evaluation.app.attacks.stored_attackers import engine_key
from evaluation.app.models import EvaluationRun, SpeakerVector
from evaluation.app.objective_results.selectors import det_key, group_curves, read_objective_values
from evaluation.app.runs.selectors import list_jobs
from evaluation.formats.results import AttackModel, Speech
from evaluation.objective_results.attack import is_usual_preset
from evaluation.objective_results.results.folders import read_results
from evaluation.objective_results.values import Basis
from portal.challenges.models import TrialList
from portal.jobs.models import Job, JobState
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission
from speech.encoders import registry
from tests.evaluation.formant_speech import voice
from tests.portal.attack_runs import make_attack_run
from tests.portal.attack_submissions import (
    SPECTRUM,
    attack,
    expected_metrics,
    make_unprotected_submission,
    replace_files,
    run_chain,
    spectrum_of,
    store_samples,
)
from tests.portal.factories import make_corpus, make_submission, make_system, make_team, make_team_system
from tests.portal.objective_runs import add_audio, make_objective_run, tones_edition
from tests.portal.trainings import make_training

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("quick_figures", "quick_measures", "few_resamples"),
]

RUNGS = (AttackModel.UNPROTECTED, AttackModel.IGNORANT, AttackModel.LAZY_INFORMED)
TRIALS = "tones_trials_f"


def make_unprotected():
    return make_unprotected_submission(tones_edition())


def make_attacked(*data_sets):
    submission = make_unprotected()
    attack(submission, data_sets=data_sets or None)
    return submission


@pytest.fixture
def submission(once):
    return once(make_unprotected)


@pytest.fixture
def edition(submission):
    return submission.system.edition


@pytest.fixture
def attacked_whole(once, quick_figures, few_resamples):
    return once(make_attacked)


@pytest.fixture
def attacked_trials(once, quick_figures, few_resamples):
    return once(make_attacked, TRIALS)


def only(submission):
    [found] = list_attacks(submission)
    return found


def problems_of(run, code):
    return [one for job in list_jobs(run) for one in job.problems if one["code"] == code]


# What is computed ----------------------------------------------------------------------------------


def test_attack_gives_the_numbers_of_the_engine_with_intervals_over_speakers(attacked_trials):
    found = only(attacked_trials)
    assert found.run.job.state == JobState.SUCCEEDED
    wanted = expected_metrics(
        attacked_trials.system.edition.corpus, TRIALS, lambda one: one.audio, lambda one: one.audio
    )
    for rung in RUNGS:  # the anonymised speech is the original one
        number = found.values.number("eer", "kaldi", data_set=TRIALS, attack_model=rung)
        assert (number.value, number.basis) == (100 * wanted.kaldi_eer, Basis.SCORES)
        assert number.n == wanted.n_target + wanted.n_nontarget
        assert number.low <= number.value <= number.high
        assert found.values.number("min_cllr", "pav", data_set=TRIALS, attack_model=rung).value == wanted.min_cllr
    assert found.values.number("eer", "kaldi", data_set=TRIALS) is None  # nobody was trained: no semi-informed one
    assert {one.training for one in found.numbers if one.metric == "eer"} == {Speech.ORIGINAL}
    assert {one.attack_model for one in found.score_sets} == {str(rung) for rung in RUNGS}


def test_averages_speakers_and_voices_are_those_of_the_recipe(attacked_whole):
    found = only(attacked_whole)
    members = [found.values.number("eer", "kaldi", data_set=f"tones_trials_{g}", attack_model=RUNGS[2]) for g in "fm"]
    average = found.values.average("eer", "kaldi", split="test", attack_model=RUNGS[2])
    assert average.value == pytest.approx(sum(one.value for one in members) / 2, abs=1e-12)
    assert set(group_curves(found.score_sets)) == {"tones_trials_f", "tones_trials_m"}
    assert default_storage.exists(det_key(found.run.pk, TRIALS))
    assert [one.data_set for one in found.voices] == ["tones_trials_f", "tones_trials_m"]
    assert default_storage.exists(found.voices[0].figure_key("dark"))
    assert "Diagonal dominance of M_oo" in found.voices[0].alt
    assert found.speakers == {"tones_trials_f": 4, "tones_trials_m": 4}


def test_files_are_a_results_directory_that_can_be_read_back(attacked_whole, tmp_path):
    found = only(attacked_whole)
    with default_storage.open(found.archive_key) as file, zipfile.ZipFile(io.BytesIO(file.read())) as archive:
        archive.extractall(tmp_path)
    top = f"results-{SPECTRUM}.orig"
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("scores")}
    assert f"{top}/ASV-tones_enrolls_anon-{TRIALS}_anon/scores" in names
    assert len(names) == 6
    [system] = read_results(tmp_path / top, recipe=attacked_whole.system.edition.recipe)
    assert {(one.data_set, one.training, one.enrolment, one.speech) for one in system.scores} == {
        (one.data_set, Speech.ORIGINAL, Speech(one.enrolment), Speech(one.speech)) for one in found.score_sets
    }
    for score_set in found.score_sets:
        with default_storage.open(found.scores_key(score_set)) as stored:
            lines = stored.read().decode().splitlines()
        assert len(lines) == score_set.target_count + score_set.nontarget_count
        assert lines == (tmp_path / top / found.test_of(score_set) / "scores").read_text().splitlines()


def test_baseline_without_an_edition_is_attacked_by_the_lists_of_its_corpus():
    system = make_system(make_corpus("tones", speakers=4))
    submission = system.submissions.get()
    run = attack(submission, data_sets=[TRIALS])
    assert run.job.state == JobState.SUCCEEDED
    found = only(submission)
    assert found.values.number("eer", "kaldi", data_set=TRIALS, attack_model=AttackModel.UNPROTECTED) is not None
    # Every anonymised file is one and the same tone: no voice is left, which is said instead of a number.
    assert found.values.number("gain_of_voice_distinctiveness", "official", data_set=TRIALS) is None
    [said] = problems_of(run, "no-voice-distinctiveness")
    assert "one vector for all 4" in said["found"]


def test_trained_attacker_makes_the_semi_informed_test_alone(edition, submission):
    """Its vectors are those of the spectrum, kept under its name beforehand: what it hears, it has heard."""
    trained = make_training(submission)
    key = engine_key(trained, 1)
    audio = set(submission.files.values_list("audio", flat=True))
    SpeakerVector.objects.bulk_create(
        SpeakerVector(engine=key, audio=one, vector=np.asarray(spectrum_of(one), "<f4").tobytes()) for one in audio
    )
    run = attack(submission, trained=trained, seed=1, data_sets=[TRIALS])
    assert run.job.state == JobState.SUCCEEDED, [job.failure for job in list_jobs(run)]
    found = only(submission)
    assert (found.engine.name, found.engine.training) == (key, Speech.ANONYMISED)
    assert {one.attack_model for one in found.score_sets} == {"semi-informed"}
    assert {one.training for one in found.numbers} == {
        Speech.ANONYMISED
    }  # no voices: protocol 2.7 takes the frozen one
    number = found.values.number("eer", "kaldi", data_set=TRIALS)
    assert number.identity.attack_model is AttackModel.SEMI_INFORMED
    assert found.archive_key
    assert not SpeakerVector.objects.exclude(engine=key).exists()


# Work is done once ---------------------------------------------------------------------------------


def test_attacks_that_compare_otherwise_stay_beside_the_usual_one(submission):
    usual, similar = (
        start_attack(submission=submission, engine=SPECTRUM, data_sets=[TRIALS], options={"preset": preset})
        for preset in ("", "max-similarity")
    )
    with pytest.raises(NotPossible, match="under way already"):
        start_attack(submission=submission, engine=SPECTRUM, options={"preset": "max-similarity"})
    for run in (usual, similar):
        run_chain(run)
    first, second = list_attacks(submission)
    assert [first.run, second.run] == [usual, similar]
    assert (second.engine.title, second.engine.key) == (
        f"{first.engine.title}, preset max-similarity",
        f"{first.engine.key}-max-similarity",
    )
    assert "the enrolment vector that is most similar" in second.engine.description
    again = attack(submission, data_sets=[TRIALS])
    assert [one.run for one in list_attacks(submission)] == [again, similar]


def test_preset_that_names_the_usual_way_of_an_encoder_is_the_usual_attack():
    assert is_usual_preset("ge2e", "")
    assert is_usual_preset("ge2e", "2024")
    assert not is_usual_preset("ge2e", "max-similarity")
    assert not is_usual_preset(SPECTRUM, "2024")  # which has a way of its own


# What is wrong -------------------------------------------------------------------------------------


def test_recordings_that_cannot_be_used_are_all_named_and_the_others_done(submission):
    broken = store_samples(voice(0, 0))
    files = list(submission.files.filter(data_set__name=TRIALS).order_by("utterance__name"))
    short, silent, damaged = files[3:6]
    replace_files(submission, store_samples(np.ones(100)), pk=short.pk)
    replace_files(submission, store_samples(np.zeros(9600)), pk=silent.pk)
    replace_files(submission, broken.replace(".flac", "0.flac"), pk=damaged.pk)
    run = attack(submission, data_sets=[TRIALS])
    assert run.job.state == JobState.SUCCEEDED
    named = {one["file"] for one in problems_of(run, "unusable-recording")}
    assert named == {f"{file.utterance.name} (anonymised)" for file in (short, silent, damaged)}
    found = only(submission)
    reasons = {one.what: one.reason for one in found.missing}
    assert any("12 trials without a score" in reason for reason in reasons.values()), reasons  # 3 of 4 models each
    number = found.values.number("eer", "kaldi", data_set=TRIALS, attack_model=AttackModel.IGNORANT)
    whole = found.values.number("eer", "kaldi", data_set=TRIALS, attack_model=AttackModel.UNPROTECTED)
    assert (number.n, whole.n) == (20, 32)
    assert (number.note, whole.note) == ("in part: 12 trials without a score", "")
    linked = found.values.number("linkability", data_set=TRIALS, attack_model=AttackModel.UNPROTECTED)
    assert linked.note == "unreliable: 8 target trials"


def test_audio_that_is_unusable_throughout_is_not_tried_to_the_end(submission):
    for file in submission.files.filter(data_set__name="tones_enrolls"):
        replace_files(submission, store_samples(np.full(100, file.pk)), pk=file.pk)
    run = attack(submission)
    [failed] = [job for job in list_jobs(run) if job.state == JobState.FAILED]
    assert "of the first 3 of" in failed.failure
    assert len(failed.problems) == 3
    assert run.job.state == JobState.CANCELLED


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda _: TrialList.objects.all().delete(), "has no trial list of tones_trials_f"),
        (lambda one: one.system.corpus.utterances.update(audio=""), "has audio in the corpus tones"),
        (lambda one: one.files.all().delete(), "holds no anonymised speech of tones_enrolls"),
        (lambda _: Submission.objects.update(state="withdrawn"), "is withdrawn; there is no speech"),
    ],
)
def test_what_cannot_be_attacked_is_refused_before_any_work(submission, spoil, sentence):
    spoil(submission)
    submission = Submission.objects.get(pk=submission.pk)
    with pytest.raises(NotPossible, match=sentence):
        start_attack(submission=submission, engine=SPECTRUM)
    assert not EvaluationRun.objects.filter(kind=EvaluationRun.Kind.ATTACK).exists()
    assert not Job.objects.filter(kind="vectors").exists()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"engine": "no-such-engine"}, "Expected the name of an encoder"),
        ({"options": {"preset": "2022"}}, "needs vectors and speakers of the training corpus"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused_in_a_sentence(submission, fields, sentence):
    with pytest.raises(NotPossible, match=sentence):
        start_attack(submission=submission, **{"engine": SPECTRUM} | fields)


def test_engine_without_its_weights_says_so_and_gives_no_number(submission, monkeypatch, tmp_path):
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path))
    engine = registry.find_engine(registry.DEFAULT)
    with pytest.raises(NotPossible) as refused:
        start_attack(submission=submission, engine=engine.name)
    assert str(refused.value) == registry.explain_missing(engine) != ""


def test_withdrawn_submission_is_not_worked_on_any_more(submission):
    run = start_attack(submission=submission, engine=SPECTRUM)
    SpeakerVector.objects.all().delete()
    Submission.objects.filter(pk=submission.pk).update(state=Submission.State.WITHDRAWN)
    first, *others = [Job.objects.get(pk=job.pk) for job in run_chain(run)] + list_jobs(run)[1:]
    assert first.state == JobState.FAILED
    assert "is withdrawn, so nothing is computed of its speech any more" in first.failure
    assert {job.state for job in others} == {JobState.CANCELLED}
    assert not SpeakerVector.objects.exists()


# Reading costs the same ----------------------------------------------------------------------------


def test_reading_takes_the_same_queries_whatever_there_is(edition, django_assert_num_queries):
    runs = 3
    submission = add_audio(make_submission(make_team_system(make_team(edition))))
    make_objective_run(submission, [])
    for engine in list(registry.engines())[:runs]:
        make_attack_run(submission, engine)
    submission = Submission.objects.select_related("system__edition__corpus", "system__corpus").get(pk=submission.pk)
    with django_assert_num_queries(3):
        assert len(list_attacks(submission)) == runs
    with django_assert_num_queries(3):
        assert read_objective_values([submission])[submission.pk].run
