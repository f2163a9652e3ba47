"""What pages read of trainings of networks, and what a corpus has to learn from.

Durations are in seconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Prefetch, Q, QuerySet, Sum
from django.http import Http404
from django.shortcuts import get_object_or_404

from anonymization.app.models import NetworkSeed, NetworkTraining
from anonymization.app.networks import list_readers
from anonymization.methods.content_decoder.retrained import DECODER
from anonymization.network_training.recipe import Recipe, read_recipes
from common.errors import InputError
from portal.challenges.models import Corpus, DataSet, Role, Utterance
from portal.challenges.selectors import corpora_for, count_speakers_tested, may_see_corpus
from portal.jobs.models import Job, JobState

TRAINING = "train-network"  # the kind of jobs
START_ANOTHER = "Start another training"  # what to do where one cannot go on
HEARD = (
    "A method with this network has heard the people on whom it is evaluated; do not compare its numbers with those of "
    "others."
)
VOICES_FILE = "voices.safetensors"  # of a decoder: names and voices of the speakers whom it heard


def trainings_for(user: Any) -> QuerySet[NetworkTraining]:
    """Return the trainings on corpora that this person may see, newest first, each with its seeds and their jobs."""
    seeds = NetworkSeed.objects.select_related("job__after").defer("files")
    found = NetworkTraining.objects.filter(corpus__in=corpora_for(user))
    found = found.select_related("corpus", "created_by", "decoder__training__corpus")
    return found.prefetch_related(Prefetch("seeds", seeds)).order_by("-pk")


def training_for(user: Any, pk: int) -> NetworkTraining:
    return get_object_or_404(trainings_for(user), pk=pk)


def managed_trainings_for(user: Any) -> QuerySet[NetworkTraining]:
    """Return the trainings that this person may delete: who started them, who owns the corpus whose voices they
    learnt."""
    found = NetworkTraining.objects.select_related("corpus")
    if user.is_staff:
        return found
    return found.filter(Q(created_by=user) | Q(corpus__created_by=user)) if user.is_organizer else found.none()


def _is_key(text: str) -> bool:
    """Return whether a part of an address can be the key of a row."""
    return text.isdecimal() and len(text) < 19


def find_training(user: Any, corpus: Corpus, pk: str) -> NetworkTraining | None:
    """Return a training on this corpus by its key as an address has it; None where there is none."""
    return trainings_for(user).filter(corpus=corpus, pk=int(pk) if _is_key(pk) else 0).first()


def seed_for(user: Any, training: int, seed: int) -> NetworkSeed:
    """Return a seed that has ended, with its files."""
    rows = NetworkSeed.objects.filter(training__in=trainings_for(user), training=training, seed=seed)
    return get_object_or_404(rows.exclude(card={}).select_related("training__corpus"))


def find_network(user: Any, pk: str) -> NetworkSeed:
    """Return a seed that has ended by its key as an address has it, where a method reads such networks; or "not
    found"."""
    rows = NetworkSeed.objects.filter(training__in=trainings_for(user)).exclude(card={})
    rows = rows.select_related("training__corpus", "training__decoder__training__corpus")
    found = get_object_or_404(rows, pk=int(pk) if _is_key(pk) else 0)
    if not (may_see_decoder(user, found.training) and list_readers(found)[0]):
        raise Http404
    return found


def list_decoders(user: Any) -> QuerySet[NetworkSeed]:
    """Return the decoders, of trainings that this person may see, for which another network can be trained; newest
    first."""
    rows = NetworkSeed.objects.filter(training__in=trainings_for(user), training__recipe=DECODER).exclude(card={})
    return rows.select_related("training__corpus").order_by("-pk")


def may_see_decoder(user: Any, training: NetworkTraining) -> bool:
    """Return whether this person may see the speech of the decoder that a training is for, if that was trained here."""
    return training.decoder is None or may_see_corpus(user, training.decoder.training.corpus)


def list_jobs(training: NetworkTraining) -> list[Job]:
    """Return the jobs of a training, first to last."""
    return [one.job for one in training.seeds.all() if one.job is not None]


def sum_up_state(jobs: Sequence[Job]) -> JobState:
    """Return the state of a training by those of its jobs, of which each follows the one before."""
    states = {job.state for job in jobs}
    for state in (JobState.RUNNING, JobState.FAILED, JobState.CANCELLED, JobState.WAITING):
        if state in states:
            return state
    return JobState.SUCCEEDED


def read_recipe(training: NetworkTraining) -> Recipe:
    """Return the recipe of a training with the values that it was started with.

    Raises:
        KeyError: this version of the portal has it no more.
        InputError: or has other values.
    """
    return read_recipes()[training.recipe].changed(**training.changes)


def find_change(training: NetworkTraining) -> str:
    """Return why a training cannot go on with what it began with, a sentence; empty where it can, or has not begun."""
    try:
        recipe = read_recipe(training)
    except (KeyError, InputError):
        return f"This portal has no recipe {training.recipe} with the values of this training."
    if training.begun_with in {"", hash_material(recipe, list_spoken(training))}:
        return ""
    return (
        "The speech or the recipe has changed since this training began: utterances were deleted, added or replaced, "
        "or the portal has a new version. One training cannot learn from both."
    )


def hash_material(recipe: Recipe, spoken: Iterable[Utterance]) -> str:
    """Return digest of a recipe and the speech that is learned from by it."""
    rows = [(one.name, one.speaker.name, one.audio, one.transcript if recipe.needs_texts else "") for one in spoken]
    return hashlib.sha256(json.dumps([recipe.as_dict(), rows], sort_keys=True).encode()).hexdigest()


# What is learned from ------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainingSet:
    """A training set of a corpus.

    Attributes:
        with_audio: how many of its utterances have original audio; only these are learned from.
        speakers, seconds: of these.
        tested: how many speakers of the set are enrolled or tried, too.
    """

    data_set: DataSet
    utterances: int
    with_audio: int
    speakers: int
    seconds: float
    tested: int

    @property
    def problem(self) -> str:
        """Return why it cannot be learned from, a sentence; empty where it can."""
        return "" if self.with_audio else f"{self.data_set} has no audio. Import the corpus again with its recordings."

    @property
    def warning(self) -> str:
        """Return what a reader of evaluations must know of networks that learnt from it, a sentence; else empty."""
        if not self.tested:
            return ""
        who = "One of its speakers is" if self.tested == 1 else f"{self.tested} of its speakers are"
        return f"{who} also enrolled or tried. {HEARD}"


def list_material(corpus: Corpus) -> list[TrainingSet]:
    """Return the training sets of a corpus, by name; data of enrolment and trial is for evaluation only."""
    spoken = ~Q(utterances__audio="")
    rows = corpus.data_sets.filter(role=Role.TRAINING).order_by("name")
    counted = rows.annotate(
        n=Count("utterances"),
        with_audio=Count("utterances", filter=spoken),
        speakers=Count("utterances__speaker", filter=spoken, distinct=True),
        seconds=Sum("utterances__duration_s", filter=spoken, default=0.0),
    )
    return [
        TrainingSet(
            one,
            one.n,
            one.with_audio,
            one.speakers,
            one.seconds,
            count_speakers_tested(DataSet.objects.filter(pk=one.pk)),
        )
        for one in counted
    ]


def list_warnings(training: NetworkTraining) -> list[tuple[str, str]]:
    """Return what a reader of evaluations must know of the networks of a training, and of the decoder that it is for:
    heading and text of each."""
    learnt = [("It learns from speakers of the evaluation", "", training)]
    if training.decoder is not None:
        own = training.decoder.training
        learnt.append(("Its decoder learnt from speakers of the evaluation", f"Training {own.pk}: ", own))
    return [
        (heading, f"{whose}{one.warning}")
        for heading, whose, each in learnt
        for one in list_material(each.corpus)
        if one.data_set.name in each.data_sets and one.warning
    ]


def warn_of_speakers(network: NetworkSeed, corpus: Corpus) -> list[str]:
    """Where a network, or the decoder that it is for, heard speakers who are enrolled or tried in a corpus: a sentence
    each. Those of another corpus are known by their names."""
    found = []
    tested = corpus.data_sets.filter(role__in=(Role.ENROLMENT, Role.TRIAL))
    for training in (one.training for one in network.with_decoder):
        learnt = list_spoken(training).order_by().values("speaker__name")
        heard = corpus.utterances.filter(data_sets__in=tested, speaker__name__in=learnt)
        count = heard.order_by().values("speaker").distinct().count()
        who = "one speaker who is" if count == 1 else f"{count} speakers who are"
        names = "" if training.corpus_id == corpus.pk else ", to judge by names"
        if count:
            found.append(f"Training {training.pk} learnt from {who} enrolled or tried here{names}. {HEARD}")
    return found


def list_spoken(training: NetworkTraining) -> QuerySet[Utterance]:
    """Return the utterances that a training learns from, each once, by name."""
    sets = DataSet.objects.filter(corpus=training.corpus_id, name__in=training.data_sets, role=Role.TRAINING)
    spoken = Utterance.objects.filter(data_sets__in=sets).exclude(audio="").select_related("speaker")
    return spoken.order_by("name").distinct()


def list_unfinished() -> set[str]:
    """Return the trainings, by their keys as texts, of which a seed has not ended: their folders are needed still."""
    found: Iterable[int] = NetworkSeed.objects.filter(card={}).order_by().values_list("training", flat=True).distinct()
    return {str(pk) for pk in found}
