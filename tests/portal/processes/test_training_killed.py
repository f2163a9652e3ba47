"""A worker that is killed while it trains an attacker loses the epoch under way and nothing else."""

import pytest

from evaluation.app.attacker_training.services import start_training
from evaluation.app.attacks.stored_attackers import list_trained_seeds
from evaluation.app.models import TrainingEpoch
from portal.jobs.models import Job, JobState
from tests.portal.processes.programs import wait_for_end, wait_until
from tests.portal.trainings import make_trained_on, needs_torch, tiny, training_set


@pytest.mark.slow  # two workers with PyTorch
@needs_torch
def test_training_goes_on_after_kill_of_its_worker(standing):
    submission = make_trained_on()
    # So many epochs that it cannot end before it is killed, however fast the machine is.
    recipe = tiny(epochs=40)
    run = start_training(submission=submission, data_sets=[training_set(submission)], recipe=recipe, seeds=[1])
    wait_until(lambda: TrainingEpoch.objects.filter(run=run, epoch__gte=2).exists(), "the second epoch")
    standing.worker.kill()
    kept = list(TrainingEpoch.objects.filter(run=run).values_list("epoch", "created_at"))
    assert len(kept) < recipe.epochs
    standing.stand()
    ended = wait_for_end(Job.objects.get(pk=run.job_id))
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 2)
    epochs = list(TrainingEpoch.objects.filter(run=run).order_by("epoch").values_list("epoch", "created_at"))
    assert [epoch for epoch, _ in epochs] == list(range(1, recipe.epochs + 1))
    assert set(kept) <= set(epochs)  # what had ended was not trained again
    assert list_trained_seeds(run) == [1]
    texts = ended.events.values_list("text", flat=True)
    assert [text for text in texts if text.startswith("Seed 1 continues after epoch ")]
