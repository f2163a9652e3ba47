"""Starts trainings of networks, and ends or continues them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from anonymization.app.models import NetworkSeed, NetworkTraining
from anonymization.app.network_training.selectors import TRAINING, list_jobs, list_material
from anonymization.methods.content_decoder.retrained import DECODER
from anonymization.network_training.recipe import MapRecipe, Recipe, read_recipes
from common.errors import InputError
from common.packages import missing_packages
from common.seeds import find_wrong_seeds
from evaluation.recognizer_training import frames
from portal.challenges.models import Corpus, DataSet, Role, Utterance
from portal.core import audit
from portal.core.version import code_version
from portal.jobs.models import Job
from portal.jobs.services import NotPossible, cancel_chain, continue_chain, create_job
from portal.jobs.workers import lacking
from speech.model_files.store import is_here, missing_sentence

# What a worker has that can train without and with the words of the speech.
ENGINES = {False: "network-training", True: "network-training-with-words"}
MOST_SEEDS = 5
_MODELS = ("whisper-base", "ge2e", "hifigan-universal")


def find_missing(*, with_texts: bool = False) -> str:
    """Return why no network can be trained on this machine, one sentence; empty where one can.

    Args:
        with_texts: by a recipe that learns from words, too.
    """
    if with_texts and (sentence := frames.missing()):
        return sentence
    if sentence := missing_packages("A training", "torch", "safetensors", "pyworld"):
        return sentence
    return next((missing_sentence(name) for name in _MODELS if not is_here(name)), "")


def explain_no_training(*, with_texts: bool = False) -> str:
    """Return why neither this machine nor a worker can train a network, one sentence; empty where one can."""
    engine = ENGINES[with_texts]
    return lacking({engine: find_missing(with_texts=with_texts)})[engine]


@transaction.atomic
def start_training(
    *,
    corpus: Corpus,
    data_sets: Sequence[DataSet],
    recipe: str,
    seeds: Sequence[int],
    changes: Mapping[str, str] | None = None,
    decoder: NetworkSeed | None = None,
    licence: str = "",
    by: Any = None,
) -> NetworkTraining:
    """Return a training with a job for each seed, each after the one before, which leaves it what it read of the
    speech.

    Args:
        data_sets: training sets of the corpus; what has audio is learned from.
        changes: values of the recipe, by name.
        decoder: of another training, whose content is learnt from in place of that of the decoder that ships.
        licence: of the speech and who has to be named, for the card.

    Raises:
        NotPossible: a sentence that says what is missing, or what is wrong.
    """
    if problems := find_problems(corpus, data_sets, recipe, seeds, changes or {}, decoder):
        raise NotPossible(" ".join(problems))
    training = NetworkTraining.objects.create(
        corpus=corpus,
        data_sets=[one.name for one in data_sets],
        recipe=recipe,
        changes=dict(changes or {}),
        decoder=decoder,
        licence=licence,
        code_version=code_version(),
        created_by=by,
    )
    changed = read_recipes()[recipe].changed(**(changes or {}))
    job: Job | None = None
    for seed in seeds:
        job = create_job(
            kind=TRAINING,
            title=f"Train {recipe}, seed {seed} · {corpus}",
            parameters={"training": training.pk, "seed": seed},
            corpus=corpus.name,
            engine=ENGINES[changed.needs_texts],
            card=needs_card(changed),
            after=job,
            by=by,
        )
        NetworkSeed.objects.create(training=training, seed=seed, job=job)
    about = {"recipe": recipe, "data_sets": training.data_sets, "seeds": [*seeds]}
    about |= {"decoder": str(decoder)} if decoder else {}
    audit.record("network-training.started", training, actor=by, **about)
    return training


def needs_card(recipe: Recipe) -> bool | None:
    """Return whether a training needs a graphics card, or must not use one; None where it uses one that is there."""
    return recipe.needs_card or (False if isinstance(recipe, MapRecipe) else None)


def find_problems(
    corpus: Corpus,
    data_sets: Sequence[DataSet],
    recipe: str,
    seeds: Sequence[int],
    changes: Mapping[str, str],
    decoder: NetworkSeed | None = None,
) -> list[str]:
    """Return what speaks against a training, a sentence each."""
    if sentence := explain_no_training():
        return [sentence]
    found = [
        find_wrong_values(recipe, changes),
        find_wrong_seeds(seeds, MOST_SEEDS),
        *find_wrong_sets(corpus, data_sets),
        find_missing_texts(data_sets, recipe, changes),
        find_wrong_decoder(recipe, decoder),
    ]
    return [sentence for sentence in found if sentence]


def find_wrong_values(recipe: str, changes: Mapping[str, str]) -> str:
    """Return why there is no such recipe, or what is wrong with its values, all of it; empty where nothing is."""
    if recipe not in read_recipes():
        return f"Expected a recipe ({', '.join(read_recipes())}), found “{recipe}”."
    try:
        read_recipes()[recipe].changed(**changes)
    except InputError as error:
        return str(error)
    return ""


def find_missing_texts(data_sets: Sequence[DataSet], recipe: str, changes: Mapping[str, str]) -> str:
    """Return why a recipe that learns from words cannot learn from these data sets, a sentence; empty where it can.

    Of a recipe that is none, or has wrong values, `find_wrong_values` tells.
    """
    if not data_sets or find_wrong_values(recipe, changes):
        return ""
    if not read_recipes()[recipe].changed(**changes).needs_texts:
        return ""
    if sentence := explain_no_training(with_texts=True):
        return sentence
    if Utterance.objects.filter(data_sets__in=data_sets).exclude(audio="").exclude(transcript="").exists():
        return ""
    names = ", ".join(one.name for one in data_sets)
    return f"{recipe} learns from words, and no utterance of {names} has a transcript. Import the corpus with them."


def find_wrong_decoder(recipe: str, decoder: NetworkSeed | None) -> str:
    """Return why a recipe cannot learn from the content of this network, a sentence; empty where it can."""
    if decoder is None or recipe not in read_recipes():
        return ""
    if decoder.training.recipe != DECODER or not decoder.card:
        return f"Expected a decoder that has ended its training, found {decoder}."
    return "" if read_recipes()[recipe].reads_decoder else f"{recipe} reads no decoder. Leave the one that ships."


def find_wrong_sets(corpus: Corpus, data_sets: Sequence[DataSet]) -> list[str]:
    """Return why these data sets of a corpus cannot be learned from, a sentence each."""
    if evaluated := [one.name for one in data_sets if one.role != Role.TRAINING]:
        return [
            f"{', '.join(evaluated)}: speech of enrolment and trials is for evaluation only. A network that learnt "
            "from it would make its method look better than it is. Choose training sets."
        ]
    material = {one.data_set.pk: one for one in list_material(corpus)}
    chosen = [material[one.pk] for one in data_sets if one.pk in material]
    if not chosen or len(chosen) < len(data_sets):
        known = ", ".join(one.data_set.name for one in material.values()) or "none"
        return [f"Choose at least one training set of {corpus}; it has these: {known}."]
    return [one.problem for one in chosen if one.problem]


def cancel_training(training: NetworkTraining, *, by: Any) -> None:
    """End a training; the state of the seed at work is kept.

    Raises:
        NotPossible: it has ended, or was asked before.
    """
    cancel_chain(list_jobs(training), by=by)


def continue_training(training: NetworkTraining, *, by: Any) -> None:
    """Let a failed or cancelled training go on where it stopped.

    Raises:
        NotPossible: nothing of it failed or was cancelled, or its speech or recipe has changed since it began.
    """
    continue_chain(list_jobs(training), by=by)
