"""Training attackers: what is refused, what a job leaves, how it goes on, and what a whole chain starts."""

from datetime import timedelta

import numpy as np
import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from anonymization.app.models import AnonymizationRun
from common import packages
from common.errors import InputError
from evaluation.app.attacker_training import handlers as training_handlers
from evaluation.app.attacker_training import services as training_services
from evaluation.app.attacker_training.selectors import (
    count_steps_per_epoch,
    estimate_cost,
    list_epochs,
    list_material,
    make_report,
)
from evaluation.app.attacker_training.services import start_training, train_and_attack
from evaluation.app.attacks.stored_attackers import (
    encoder_key,
    engine_key,
    list_trained_seeds,
    load_attacker,
    load_back_end,
    load_encoder,
)
from evaluation.app.models import EvaluationRun, SpeakerVector
from evaluation.app.runs.kinds import TRAINING, describe_engine
from evaluation.attackers.back_ends import Plda
from evaluation.attackers.training.recipe import PRESETS
from evaluation.formats.results import Speech
from portal.challenges.models import TrialList
from portal.core.storage import load_audio
from portal.jobs.models import Job, JobState
from portal.jobs.runner import JobContext, execute
from portal.jobs.services import NotPossible, run_again
from tests.portal.factories import make_organizer
from tests.portal.trainings import TINY, final_values, make_trained_on, make_training, needs_torch, tiny, training_set

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_figures", "few_resamples")]
TINY_PLDA = PRESETS["2022-small"].changed(
    width=8, aggregated=16, embedding=16, lda_dimensions=4, epochs=1, batch=8, segment_s=1.0, crop_s=0.5, shortest_s=0.5
)


def begin(submission, **changes):
    asked = {"data_sets": [training_set(submission)], "recipe": TINY, "seeds": [1], "by": None} | changes
    return start_training(submission=submission, **asked)


@needs_torch
def test_same_training_is_not_started_twice():
    submission = make_trained_on()
    run = begin(submission)
    with pytest.raises(NotPossible, match=f"under way already as training {run.pk}"):
        begin(submission)
    assert begin(submission, seeds=[2]).pk != run.pk
    Job.objects.filter(pk=run.job_id).update(state=JobState.SUCCEEDED)
    assert begin(submission).pk != run.pk


@needs_torch
def test_withdrawn_submission_is_not_trained_on():
    submission = make_trained_on()
    run = begin(submission)
    submission.state = "withdrawn"
    submission.save()
    with pytest.raises(NotPossible, match="is withdrawn; there is no speech to train on"):
        begin(submission, seeds=[2])
    job = run_job(run)
    assert job.state == JobState.FAILED
    assert "nothing is computed of its speech any more" in job.failure
    assert not run.epochs.exists()


def test_speakers_that_are_tried_too_are_told():
    submission = make_trained_on(speakers=3)
    assert [(one.tested, one.warning) for one in list_material(submission)] == [(0, "")]
    corpus = submission.system.corpus
    trials = corpus.data_sets.create(name="voices_trials", role="trial", split="test")
    trials.utterances.set(corpus.utterances.filter(speaker__in=corpus.speakers.order_by("name")[:2]))
    [one] = list_material(submission)
    assert one.tested == 2
    assert one.warning.startswith("2 speakers of the training data are also in enrolment or trial data.")


def run_job(run):
    return execute(run.job_id)


def epochs_by_seed(run):
    return {seed: [one.epoch for one in epochs] for seed, epochs in list_epochs([run])[run.pk].items()}


# What is refused -----------------------------------------------------------------------------------


@needs_torch
def test_training_is_refused_with_a_sentence_that_says_what_is_missing():
    nothing = make_trained_on(with_files=False)
    with pytest.raises(NotPossible, match="The submission has no anonymised file of voices_train"):
        begin(nothing)
    assert EvaluationRun.objects.count() == 0


@needs_torch
def test_one_speaker_is_refused():
    with pytest.raises(NotPossible, match="voices_train has one speaker"):
        begin(make_trained_on(speakers=1, utterances=3))


@needs_torch
def test_seeds_are_few_different_and_not_negative():
    submission = make_trained_on()
    for seeds in ([], [1, 1], [-1], list(range(11)), [2**31]):
        with pytest.raises(NotPossible, match="Give 1 to 10 different seeds"):
            begin(submission, seeds=seeds)


@needs_torch
def test_only_training_sets_of_the_corpus_can_be_chosen():
    submission = make_trained_on()
    other = submission.system.corpus.data_sets.create(name="voices_trials", role="trial")
    with pytest.raises(NotPossible, match="it has these: voices_train"):
        begin(submission, data_sets=[other])
    with pytest.raises(NotPossible, match="Choose at least one training set"):
        begin(submission, data_sets=[])


@needs_torch
def test_target_classifier_needs_to_know_every_target():
    submission = make_trained_on()
    with pytest.raises(NotPossible, match="The target of 6 of 6 utterances of voices_train is not known"):
        begin(submission, recipe=tiny("measured"), variant="measured")
    assert list_material(submission)[0].targets == 0


def test_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(packages, "find_spec", {}.get)
    with pytest.raises(NotPossible, match="Training an attacker needs the packages torch and safetensors"):
        begin(make_trained_on())


# The job -------------------------------------------------------------------------------------------


@needs_torch
def test_encoder_embeds_the_speech_of_the_corpus_and_differs_between_seeds():
    submission = make_trained_on()
    run = begin(submission, seeds=[1, 2], recipe=tiny(epochs=1))
    with pytest.raises(InputError, match="has no finished attacker with seed 1"):
        load_encoder(run, 1)
    run_job(run)
    samples, rate_hz = load_audio(submission.files.first().audio)
    first, second = (load_encoder(run, seed).embed([samples], rate_hz) for seed in (1, 2))
    assert first.shape == (1, 16)
    assert np.isfinite(first).all()
    assert not np.allclose(first, second)
    assert np.array_equal(first, load_encoder(run, 1).embed([samples], rate_hz))
    assert (engine_key(run, 1), engine_key(run, 2)) == (f"trained-{run.pk}-s1", f"trained-{run.pk}-s2")
    attacker = load_attacker(run, 2)
    assert (attacker.seed, attacker.recipe.centre) == (2, True)
    assert np.allclose(second, attacker.embed([samples], rate_hz) - attacker.training_mean)
    default_storage.delete(encoder_key(run, 1))
    with pytest.raises(InputError, match="is missing in the portal's files"):
        load_encoder(run, 1)


@needs_torch
def test_target_classifier_measures_and_a_fresh_probe_stands_beside_it():
    submission = make_trained_on(targets=("t1", "t2"))
    run = begin(submission, recipe=tiny("literal", zero_epochs=0), variant="literal")
    assert run_job(run).state == JobState.SUCCEEDED
    report = make_report(list_epochs([run])[run.pk])
    assert report.first.target_chance == pytest.approx(0.5)
    assert (report.first.targets, report.first.target_probe is None) == (2, False)
    keys = {"source_validation_error", "target_validation_error", "target_probe_error"}
    assert set(run.values.values_list("metric", flat=True)) == keys
    weights = [epoch.values["target_weight"] for epoch in run.epochs.all()]
    assert weights == sorted(weights)
    assert weights[-1] == 1.0


@needs_torch
def test_training_for_a_graphics_card_waits_in_its_queue_and_refuses_a_worker_without_one():
    import torch

    run = begin(make_trained_on(), device="cuda")
    assert (run.job.kind, run.job.queue, run.job.needs_card) == ("train-attacker", "gpu", True)
    if torch.cuda.is_available():
        pytest.skip("this machine has a graphics card.")
    assert "this worker's torch finds none" in run_job(run).failure


@needs_torch
def test_recordings_that_are_gone_end_the_job_with_their_name():
    submission = make_trained_on()
    run = begin(submission)
    first = submission.files.order_by("utterance__name").first()
    first.audio = "content/00/gone.flac"
    first.save()
    failure = run_job(run).failure
    assert f"The anonymised recording of {first.utterance.name} cannot be read" in failure


@needs_torch
def test_lack_of_memory_is_told_before_anything_is_read(monkeypatch):
    monkeypatch.setattr("portal.jobs.long_work.available_bytes", lambda: 1000)
    run = begin(make_trained_on())
    job = run_job(run)
    assert "GiB of memory; this machine has 0.0 GiB left." in job.failure
    assert (job.failure_actor, run.epochs.count()) == ("operator", 0)


@needs_torch
def test_another_version_of_the_method_does_not_go_on_with_what_one_began():
    run = begin(make_trained_on())
    EvaluationRun.objects.filter(pk=run.pk).update(recipe_version="0")
    run.epochs.create(seed=1, epoch=1, seconds=1.0, values={})
    assert "This training began with version 0 of the method" in run_job(run).failure


# Going on ------------------------------------------------------------------------------------------


class Killed(BaseException):
    """As if the process had been killed: nothing of the job is told."""


@pytest.fixture
def killed_after_first_epoch(monkeypatch):
    """The process ends as soon as the first epoch is kept, once."""
    keep, killed = training_handlers._Turn.keep, []

    def keep_and_die(self, record):
        keep(self, record)
        if not killed:
            killed.append(record.epoch)
            raise Killed

    monkeypatch.setattr(training_handlers._Turn, "keep", keep_and_die)


@needs_torch
def test_training_whose_speech_was_erased_meanwhile_does_not_go_on(killed_after_first_epoch):
    submission = make_trained_on()
    run = begin(submission)
    with pytest.raises(Killed):
        training_handlers.train_attackers(JobContext(claimed(run)))
    submission.files.first().delete()
    Job.objects.filter(pk=run.job_id).update(state=JobState.WAITING, claim=None)
    job = run_job(run)
    assert job.state == JobState.FAILED
    assert "The training data has changed since this training began" in job.failure
    assert job.failure_remedy == "Start another training."
    assert epochs_by_seed(run) == {1: [1]}


def claimed(run):
    from portal.jobs.services import claim_job

    return claim_job(run.job_id)


@needs_torch
def test_cancelled_training_keeps_its_epochs_and_goes_on_when_asked(monkeypatch):
    by = make_organizer()
    run = begin(make_trained_on(), seeds=[1, 2])
    keep = training_handlers._Turn.keep

    def keep_and_cancel(self, record):
        if self.seed == 1 and record.epoch == 1:
            self.context.cancel_wanted.set()
        keep(self, record)

    monkeypatch.setattr(training_handlers._Turn, "keep", keep_and_cancel)
    job = run_job(run)
    assert (job.state, job.failure) == (JobState.CANCELLED, "Cancelled; what was finished is kept.")
    assert epochs_by_seed(run) == {1: [1]}
    monkeypatch.setattr(training_handlers._Turn, "keep", keep)
    run_again(job, by=by)
    assert run_job(run).state == JobState.SUCCEEDED
    assert (epochs_by_seed(run), list_trained_seeds(run)) == ({1: [1, 2], 2: [1, 2]}, [1, 2])


@needs_torch
def test_training_longer_than_a_job_may_take_gives_its_turn_back_between_epochs(settings):
    run = begin(make_trained_on())
    settings.JOB_SOFT_LIMIT_S = 10**6
    turns = 0
    while Job.objects.get(pk=run.job_id).state == JobState.WAITING and turns < 5:
        turns += 1
        run_job_that_has_worked_long(run)
    job = Job.objects.get(pk=run.job_id)
    assert (job.state, job.attempt, turns) == (JobState.SUCCEEDED, 1, 2)
    assert epochs_by_seed(run) == {1: [1, 2]}
    released = [text for text in job.events.values_list("text", flat=True) if "when the job runs again" in text]
    assert len(released) == 1
    assert released[0].endswith("seed 1 continues after epoch 1 of 2 when the job runs again.")


def run_job_that_has_worked_long(run):
    """The job as if it had begun almost its time ago."""
    from portal.jobs import runner

    claim = runner.services.claim_job

    def claim_long_ago(job_id):
        job = claim(job_id)
        job.started_at = timezone.now() - timedelta(seconds=10**6)
        return job

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner.services, "claim_job", claim_long_ago)
        run_job(run)


@needs_torch
def test_epoch_that_no_job_may_take_is_refused_once_its_pace_is_known(settings):
    settings.JOB_SOFT_LIMIT_S = 0
    # As many steps as it takes to tell the pace.
    run = begin(make_trained_on(speakers=4, utterances=4), recipe=tiny(batch=2, epochs=3))
    job = run_job(run)
    assert job.state == JobState.FAILED
    assert job.failure.startswith("One epoch takes ")
    assert "PORTAL_JOB_SOFT_LIMIT_S" in job.failure_remedy


# The chain -----------------------------------------------------------------------------------------


@needs_torch
def test_chain_anonymises_what_is_missing_like_the_other_sets_then_trains_then_attacks(monkeypatch):
    asked = []

    def attack(**given):
        asked.append(given)

    monkeypatch.setattr(training_services, "start_attack", attack)
    submission = make_trained_on(with_files=False)
    corpus = submission.system.corpus
    corpus.data_sets.create(name="voices_trials", role="trial")
    AnonymizationRun.objects.create(
        submission=submission,
        data_set=corpus.data_sets.get(name="voices_trials"),
        method="mcadams-2022",
        recipe_version="1",
        code_version="1",
        seed=7,
        level="speaker",
        options={},
    )
    corpus.data_sets.create(name="voices_train_2", role="training").utterances.set(corpus.utterances.all())
    sets = list(corpus.data_sets.filter(role="training"))
    run = train_and_attack(submission=submission, data_sets=sets, recipe=TINY, seeds=[3, 4], by=None)
    made = list(submission.anonymization_runs.filter(data_set__in=sets).order_by("pk"))
    assert [(one.method, one.seed, one.level) for one in made] == [("mcadams-2022", 7, "utterance")] * 2
    assert (made[0].job.after, made[1].job.after, run.job.after) == (None, made[0].job, made[1].job)
    assert [(one["trained"], one["seed"], one["after"]) for one in asked] == [(run, 3, run.job), (run, 4, run.job)]


@needs_torch
def test_evaluator_of_2022_is_trained_and_attacks_on_original_and_on_anonymised_speech():
    submission = make_trained_on(speakers=10)
    add_trials(submission)
    asked = {"data_sets": [training_set(submission)], "recipe": TINY_PLDA, "seeds": [5], "with_originals": True}
    run = train_and_attack(submission=submission, by=None, **asked)
    waiting = list(Job.objects.order_by("created_at").values_list("pk", flat=True))
    assert [execute(job).state for job in waiting] == [JobState.SUCCEEDED] * 14
    originals = EvaluationRun.objects.get(kind=TRAINING.kind, parameters__trained_on="original")
    assert isinstance(load_back_end(run, 5), Plda)
    runs = EvaluationRun.objects.filter(kind=EvaluationRun.Kind.ATTACK)
    attacks = {one.parameters["trained"]: one for one in runs.filter(parameters__scoring="PLDA")}
    cosines = {one.parameters["trained"]: one for one in runs.filter(parameters__scoring="cosine")}
    assert {one.engine for one in cosines.values()} == {f"{engine_key(one, 5)}-2024" for one in (run, originals)}
    assert {one.values.filter(metric="eer").count() for one in cosines.values()} == {
        one.values.filter(metric="eer").count() for one in attacks.values()
    }
    assert not SpeakerVector.objects.filter(engine__endswith="-2024").exists()  # both compare the same vectors
    eers = {
        pk: {
            (one.attack_model, one.training): one.value for one in attack.values.filter(metric="eer", estimator="kaldi")
        }
        for pk, attack in attacks.items()
    }
    assert set(eers[run.pk]) == {("semi-informed", "anonymised")}
    assert set(eers[originals.pk]) == {(name, "original") for name in ("unprotected", "ignorant", "lazy-informed")}
    assert describe_engine(attacks[originals.pk]).description == "Trained by this portal on original speech."
    # The files are the recordings themselves, so that both attackers learn and hear the same.
    own, other = eers[run.pk]["semi-informed", "anonymised"], eers[originals.pk]["lazy-informed", "original"]
    assert own == pytest.approx(other)


@needs_torch
def test_what_plda_or_original_speech_lacks_is_refused_at_once():
    submission = make_trained_on()
    with pytest.raises(NotPossible, match="expected at least 10 training speakers with two utterances each, found 3"):
        begin(submission, recipe=TINY_PLDA)
    with pytest.raises(NotPossible, match="Original speech has no target voice to classify"):
        begin(submission, recipe=tiny("measured"), trained_on=Speech.ORIGINAL)
    submission.system.corpus.utterances.update(audio="")
    with pytest.raises(NotPossible, match="6 utterances of voices_train have no original audio"):
        begin(submission, trained_on=Speech.ORIGINAL)
    assert EvaluationRun.objects.count() == 0


def add_trials(submission):
    """One recording of each speaker enrols and the other one is tried."""
    corpus = submission.system.corpus
    sets = {role: corpus.data_sets.create(name=f"voices_{role}", role=role) for role in ("enrolment", "trial")}
    for speaker in corpus.speakers.all():
        for utterance, data_set in zip(speaker.utterances.order_by("name"), sets.values(), strict=True):
            data_set.utterances.add(utterance)
            submission.files.create(
                data_set=data_set,
                utterance=utterance,
                audio=utterance.audio,
                samples=utterance.samples,
                rate_hz=utterance.rate_hz,
            )
    TrialList.objects.create(
        trial_set=sets["trial"],
        enrolment_set=sets["enrolment"],
        origin=TrialList.Origin.PRODUCT,
        model_count=3,
        target_count=3,
        nontarget_count=6,
    )


# Numbers -------------------------------------------------------------------------------------------


def test_report_says_when_a_target_error_above_chance_is_no_removal():
    submission = make_trained_on()
    run = make_training(submission, variant="literal", epochs={1: 2, 2: 2}, ended={
        1: final_values(0.9, 0.97, 0.3), 2: final_values(0.8, 0.99, 0.4),
    })  # fmt: skip
    report = make_report(list_epochs([run])[run.pk])
    assert report.is_anti_prediction
    assert report.probe_finds_more
    assert report.spread("target_probe").mean == pytest.approx(0.35)
    assert report.spread("source_error").deviation == pytest.approx(np.std([0.9, 0.8], ddof=1))
    honest = make_training(
        submission, variant="measured", seeds=[1], epochs={1: 1}, ended={1: final_values(0.9, 0.6, 0.65)}
    )
    found = make_report(list_epochs([honest])[honest.pk])
    assert (found.is_anti_prediction, found.probe_finds_more) == (False, False)
    assert found.spread("source_error").deviation is None


def test_cost_is_told_by_trainings_of_the_same_size_here_and_else_by_measurements_elsewhere():
    recipe = TINY
    unknown = estimate_cost(recipe, 3600.0, seeds=2, device="cpu")
    assert (unknown.steps, unknown.is_from_here) == (2 * 2 * count_steps_per_epoch(recipe, 3600.0), False)
    assert estimate_cost(recipe, 3600.0, seeds=2, device="cuda").seconds is None
    run = make_training(make_trained_on(), recipe=recipe, epochs={1: 2})  # 2 s for each 100 steps
    known = estimate_cost(recipe, 3600.0, seeds=2, device="cpu")
    assert known.is_from_here
    assert known.seconds == pytest.approx(known.steps * 0.02)
    assert not estimate_cost(recipe.changed(width=16), 3600.0, seeds=2, device="cpu").is_from_here
    assert run.epochs.count() == 2
